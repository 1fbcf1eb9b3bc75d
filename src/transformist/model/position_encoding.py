"""Position encodings peₙ(i) (section 3.5): by formula, from a table, or sinusoids."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import NoneType
from typing import TYPE_CHECKING, final

import numpy as np

from transformist.arithmetic import Arithmetic, Array, is_whole, number_system, whole_number
from transformist.deferred import Library
from transformist.errors import InputTooLong, InvalidValue, UndefinedValue, UnknownName
from transformist.model.definition import Definition, several
from transformist.model.parameter import Parameter, Parameterized, weights
from transformist.model.weights_table import (
    HasWeights,
    NamedPart,
    named_matrix,
    named_vector,
    numbered,
)
from transformist.positions import POSITIONS, position

if TYPE_CHECKING:
    import flint
else:
    flint = Library("flint")


class PositionEncoding(HasWeights):
    """A position encoding: n ↦ (peₙ(1), …, peₙ(n)), an array of shape (n, d).

    In an `Embedding` it is added to the word vectors; symbols that a model adds in front have the
    positions 0, −1, … there, those at the back n + 1, …
    """

    @property
    @abstractmethod
    def width(self) -> int:
        """d."""

    @property
    def max_length(self) -> int | None:
        """N, the longest n that the encoding covers; `None` for any."""
        return None

    @property
    @abstractmethod
    def nonzero(self) -> int:
        """Number of parameters that are not 0; 0 for a formula."""

    @property
    def knows_n(self) -> bool:
        """True if the vector of a position depends on n."""
        return False

    @abstractmethod
    def at(self, places: range, n: int, a: Arithmetic) -> Array:
        """The vectors peₙ(i) of the positions i in `places`, each number rounded once.

        Raises:
            InputTooLong: for a position beyond N.
            UndefinedValue: for one at which there is no vector.
            NotFinite: for a number too large for the format.

        """

    def __call__(self, n: int, arithmetic: Arithmetic | str = "float64") -> Array:
        """The vectors of positions 1 to n, shape (n, d), each number rounded once.

        Raises:
            InvalidValue: for n that is not a whole number of at least 1.
            InputTooLong: for n beyond N.
            NotFinite: for a number too large for the format.

        """
        length = whole_number(
            n,
            1,
            "a position encoding must be given n, a whole number of at least 1",
            where=type(self).__name__,
            remedy="give the length of the input",
        )
        return self.at(range(1, length + 1), length, number_system(arithmetic))

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The name of the class, for an encoding whose weights are unknown here."""
        yield NamedPart(name or "positions", type(self).__name__)


@final
@dataclass(frozen=True, eq=False)
class PositionFunctions(Definition, PositionEncoding):
    """Coordinates that are functions of (i, n), by their names in `POSITIONS`; `None` gives 0.

    Example:
        >>> PositionFunctions(("i", None, "i/n"))(2).tolist()
        [[1.0, 0.0, 0.5], [2.0, 0.0, 1.0]]

    """

    names: tuple[str | None, ...] = several(str, NoneType)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.names:
            if name is not None and name not in POSITIONS:
                raise UnknownName.among("position function", name, POSITIONS, "PositionFunctions")

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def knows_n(self) -> bool:
        """True if one of the functions is a multiple of 1/n."""
        return any(name is not None and name.endswith("/n") for name in self.names)

    def at(self, places: range, n: int, a: Arithmetic) -> Array:
        """The values of the functions at (i, n).

        Raises:
            UndefinedValue, NotFinite: as `PositionEncoding.at`.

        """
        named = [column for column, name in enumerate(self.names) if name is not None]
        values = [[position(str(self.names[column]), i, n) for column in named] for i in places]
        if not values:
            return a.array(np.zeros((0, self.width)))
        return a.affine(a.array(values), a.array(np.eye(self.width)[:, named]))

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The formula of each coordinate."""
        formulas = np.array([0 if each is None else each for each in self.names], dtype=object)
        coordinates = writes or numbered("output", self.width)
        kind = "formulas of the position i, from 1, and the length n"
        yield NamedPart(name or "positions", kind, (named_vector("pe", coordinates, formulas),))


@final
@dataclass(frozen=True, eq=False)
class PositionTable(Parameterized, PositionEncoding):
    """A vector for each position from 1 to N, the same for every n.

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
        return int(self.vectors.shape[1])

    @property
    def max_length(self) -> int:
        return int(self.vectors.shape[0])

    def at(self, places: range, n: int, a: Arithmetic) -> Array:
        last = places[-1] if places else 0
        if last > self.max_length:
            raise InputTooLong(
                f"a position must be at most N = {self.max_length}",
                received=f"n = {n}" if last == n else f"n = {n}, and a last position of {last}",
                where="PositionTable",
                remedy=f"build it for {last} positions or more",
            )
        if places and places[0] < 1:
            raise UndefinedValue(
                "a table must have a vector for each position from 1 on",
                received=f"position {places[0]}, of a symbol in front of the input",
                where="PositionTable",
                remedy="add no symbol in front, or use positions by formula",
            )
        return self.rounded(a).vectors[places.start - 1 : places.stop - 1]

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The vectors, a row for each position from 1."""
        rows = [f"position {i}" for i in range(1, self.max_length + 1)]
        coordinates = writes or numbered("output", self.width)
        table = named_matrix("vectors", rows, coordinates, self.vectors)
        yield NamedPart(name or "positions", "a table", (table,))


@final
@dataclass(frozen=True, eq=False)
class PositionsSideBySide(Definition, PositionEncoding):
    """Encodings side by side: the vector of a position concatenates the vectors of the parts.

    Example:
        >>> both = PositionsSideBySide((PositionFunctions(("i/n",)), PositionTable(vectors=[[7]])))
        >>> both(1).tolist(), both.max_length
        ([[1.0, 7.0]], 1)

    """

    parts: tuple[PositionEncoding, ...] = several(PositionEncoding, least=1)

    @property
    def width(self) -> int:
        return sum(each.width for each in self.parts)

    @property
    def max_length(self) -> int | None:
        """The least N of the parts."""
        lengths = [each.max_length for each in self.parts]
        return min((each for each in lengths if each is not None), default=None)

    @property
    def nonzero(self) -> int:
        """Sum over the parts."""
        return sum(each.nonzero for each in self.parts)

    @property
    def knows_n(self) -> bool:
        """True if a part does."""
        return any(each.knows_n for each in self.parts)

    def at(self, places: range, n: int, a: Arithmetic) -> Array:
        return a.concatenate([each.at(places, n, a) for each in self.parts], axis=-1)

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of each encoding, with its own coordinates."""
        writes, start = writes or numbered("output", self.width), 0
        for number, each in enumerate(self.parts):
            own = writes[start : start + each.width]
            yield from each.named_parts(f"{name or 'positions'} {number}", reads, own)
            start += each.width


# A sinusoid is k · 2⁻²⁴ with |k| ≤ 2²⁴, which float32 (24 bits) holds exactly; the nearest multiple
# is within half a step, 2⁻²⁵, of the real value.
SINUSOID_STEP = Fraction(1, 2**24)
"""Sinusoids are whole multiples of this step."""


@final
@dataclass(frozen=True, eq=False)
class Sinusoids(Definition, PositionEncoding):
    """The sinusoids of the original transformer, as the nearest multiples of 2⁻²⁴.

    Coordinate δ, from 0, of position i, from 1 (p = i − 1 from 0):

        sin(p/10000^(δ/d)) for even δ,   cos(p/10000^((δ − 1)/d)) for odd δ,

    within 2⁻²⁵ of the real values: no format of numbers holds these themselves, except 0 and 1.
    The wavelengths run from 2π, for δ = 0 and 1, up to less than 2π · 10⁴.

    Attributes:
        d: the width, at least 1.

    Raises:
        InvalidValue: for a width that is not a whole number of at least 1.

    Example:
        >>> Sinusoids(2)(2).tolist()
        [[0.0, 1.0], [0.8414709568023682, 0.5403022766113281]]

    """

    d: int

    def __post_init__(self) -> None:
        if type(self.d) is not int or not is_whole(self.d, 1):
            raise InvalidValue(
                "the width d of sinusoids must be a whole number of at least 1",
                received=f"d = {self.d!r}",
                where="Sinusoids",
                remedy="give the width of the stream",
            )

    @property
    def width(self) -> int:
        return self.d

    def at(self, places: range, n: int, a: Arithmetic) -> Array:
        if not places:
            return a.array(np.zeros((0, self.d)))
        width = range(self.d)
        return a.array([[_sinusoid(i - 1, delta, self.d) for delta in width] for i in places])


@functools.lru_cache(maxsize=2**18)
def _sinusoid(p: int, delta: int, d: int) -> Fraction:
    """The multiple of 2⁻²⁴ nearest to the sinusoid."""
    # The loop ends: the argument is an algebraic number, and by Lindemann and Weierstrass the sine
    # and cosine of one are transcendental except at 0. So the value is never in the middle of two
    # multiples, and balls of some precision decide which one is nearest.
    bits = 128
    while True:
        with flint.ctx.workprec(bits):
            phase = p / flint.arb(10000) ** flint.arb(flint.fmpq(delta - delta % 2, d))
            value = phase.cos() if delta % 2 else phase.sin()
            whole = (value * SINUSOID_STEP.denominator + 0.5).floor().unique_fmpz()
        if whole is not None:
            return int(whole) * SINUSOID_STEP
        bits *= 2
