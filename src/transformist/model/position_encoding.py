"""Position encodings peₙ(i) of their own (section 3.5): by formula, or from a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from operator import index
from typing import final

from transformist.arithmetic import Arithmetic, Array, number_system
from transformist.errors import InputTooLong, InvalidValue, UnknownName
from transformist.model.parameter import Parameter, Parameterized, weights
from transformist.positions import POSITIONS, position


class PositionEncoding(ABC):
    """A position encoding: n ↦ (peₙ(1), …, peₙ(n)), an array of shape (n, d)."""

    @property
    @abstractmethod
    def width(self) -> int:
        """d."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """N, the longest n it covers; `None` for any."""

    @property
    @abstractmethod
    def nonzero(self) -> int:
        """How many parameters are not 0."""

    @abstractmethod
    def _encode(self, n: int, a: Arithmetic) -> Array:
        """The vectors of positions 1 to n."""

    def __call__(self, n: int, arithmetic: Arithmetic | str = "float64") -> Array:
        """The vectors of positions 1 to n, shape (n, d), each number rounded once.

        Raises:
            InvalidValue: for n that is not a whole number of at least 1.
            InputTooLong: for n beyond N.
            NotFinite: for a number too large for the format.

        """
        if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
            raise InvalidValue(
                "a position encoding takes n, a whole number of at least 1",
                received=repr(n),
                where=type(self).__name__,
                remedy="give the length of the input",
            )
        if self.max_length is not None and n > self.max_length:
            raise InputTooLong(
                f"the encoding covers positions up to N = {self.max_length}",
                received=f"n = {n}",
                where=type(self).__name__,
                remedy=f"build it for {n} positions or more",
            )
        return self._encode(index(n), number_system(arithmetic))


@final
@dataclass(frozen=True)
class PositionFunctions(PositionEncoding):
    """Coordinates that are functions of (i, n), by their names in `POSITIONS`.

    Example:
        >>> PositionFunctions(("i", "i/n"))(2).tolist()
        [[1.0, 0.5], [2.0, 1.0]]

    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in POSITIONS:
                raise UnknownName.among("position function", name, POSITIONS, "PositionFunctions")

    @property
    def width(self) -> int:
        """d."""
        return len(self.names)

    @property
    def max_length(self) -> None:
        """Any length."""

    @property
    def nonzero(self) -> int:
        """A formula has no parameters."""
        return 0

    def _encode(self, n: int, a: Arithmetic) -> Array:
        table = [[position(name, i, n) for name in self.names] for i in range(1, n + 1)]
        return a.array(table)


@final
@dataclass(frozen=True, eq=False)
class PositionTable(Parameterized, PositionEncoding):
    """A vector for each position up to N, whatever n is.

    Attributes:
        vectors: shape (N, d).

    Example:
        >>> PositionTable(vectors=[[1, 0], [0, 1]])(1).tolist()
        [[1.0, 0.0]]

    """

    vectors: Parameter = weights()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("vectors", ("N", "d"), "a row for each position")

    @property
    def width(self) -> int:
        """d."""
        return int(self.vectors.shape[1])

    @property
    def max_length(self) -> int:
        """N."""
        return int(self.vectors.shape[0])

    def _encode(self, n: int, a: Arithmetic) -> Array:
        (table,) = self.rounded(a)
        return table[:n]
