"""Read-outs: the unembeddings of 2.2.3, and the check outside the transformer of 9.2.1."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Array, is_whole
from transformist.errors import InvalidValue, NotFinite, ShapeMismatch, Undecided, UnknownName
from transformist.model.definition import Definition, OneOf, part, several
from transformist.model.embedding import Symbol
from transformist.model.mask import Mask
from transformist.model.parameter import Parameter, Parameterized, rationals, weights
from transformist.model.weighting import softmax
from transformist.model.weights_table import (
    HasWeights,
    NamedPart,
    named_matrix,
    named_vector,
    numbered,
)

Label: TypeAlias = "str | int | float | Fraction | bool | tuple[Any, ...] | None"
"""Label of a position."""

PLACES = ("last", "every", "cls")
"""The positions read: the last of the sequence, every one of the input, or the one of CLS."""

EACH = "each"
"""Every position of the input; for the empty input, the position of BOS.

`Outputs` has this value of `at` if some parts read every position and others the last one. A single
read-out cannot have it: a proof covers the row of BOS only for read-outs of the last position.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadOut(Parameterized, HasWeights):
    """A function of the final vectors W_out z + b_out at the positions `at`."""

    W_out: Parameter = weights()
    b_out: Parameter = weights(default=None)
    at: str = part(str, default="last")

    places: ClassVar[tuple[str, ...]] = PLACES

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("W_out", ("k", "d"), "a row for each output")
        self._fill("b_out", self.W_out.shape[0])
        self._require("b_out", (self.W_out.shape[0],), "the rows of W_out")
        if self.at not in self.places:
            raise UnknownName.among("place to read", self.at, self.places, self._kind)

    def __call__(self, z: Array, n: int, a: Arithmetic) -> list[Any]:
        """The answers for vectors (count, d) of inputs of length n."""
        return self.answers(self.values(z, a), n, a)

    def answers(self, y: Array, n: int, a: Arithmetic) -> list[Any]:
        """The answers from y = W_out z + b_out, shape (count, k).

        Raises:
            NotFinite: for a y that is NaN.

        """
        values = a.numbers(y)
        if values.dtype != object and np.isnan(values).any():
            raise NotFinite(
                f"the values read out must be numbers in {a.name}",
                received="NaN, which an overflow leaves behind",
                where=self._kind,
                remedy="use a format with a wider range",
            )
        return self.decide(y, values, n, a)

    def values(self, z: Array, a: Arithmetic) -> Array:
        """W_out z + b_out for vectors (..., d): (..., k)."""
        w = self.rounded(a)
        return a.affine(z, w.W_out, w.b_out)

    @abstractmethod
    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """The answers from y (count, k), whose exact values are `values`."""

    @property
    def reads_several(self) -> bool:
        """True if it reads several positions, whose answers are joined."""
        return self.at in ("every", EACH)

    def join(self, answers: list[Any], n: int) -> Any:
        """The answers at the positions that are read, of one input of length n, as one answer."""
        return answers

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the rows of W_out: the labels, where there are some."""
        labels: tuple[Label, ...] = getattr(self, "labels", ())
        return tuple(map(str, labels)) or numbered("output", len(self.W_out))

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """W_out and b_out, a row for each label."""
        rows = self.row_names
        matrices = (
            named_matrix(
                "W_out", rows, reads or numbered("input", self.W_out.shape[1]), self.W_out
            ),
            named_vector("b_out", rows, self.b_out),
        )
        yield NamedPart(name or "read-out", f"{self._kind}, position read: {self.at}", matrices)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Binary(ReadOut):
    """Accept where W_out z + b_out > 0 (Eq. 17). W_out has one row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("W_out", (1, "d"), "one row")

    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """A bool a vector."""
        # The arithmetic decides the sign: a ball that holds 0 is refused there, not rounded to its
        # midpoint.
        return [bool(accept) for accept in a.positive(y)[:, 0]]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class MultiClass(ReadOut):
    """The label of the largest coordinate of W_out z + b_out (Eq. 18); the first on a tie."""

    labels: tuple[Label, ...] = several(Hashable)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("W_out", (len(self.labels), "d"), "a row for each label")

    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """A label a vector."""
        # `argmax` of flags is the first True, so that of equal coordinates the first label is
        # taken.
        largest = a.maximal(y, np.full(y.shape, True))
        return [self.labels[int(row.argmax())] for row in largest]

    def join(self, answers: list[Any], n: int) -> Any:
        """A string where every label is a single character, a list elsewhere."""
        return _string_or_list(self.labels, answers)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LanguageModel(ReadOut):
    """A distribution over symbols, softmax(W_out z + b_out) (Eq. 19)."""

    labels: tuple[Symbol, ...] = several(Hashable)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("W_out", (len(self.labels), "d"), "a row for each symbol")

    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """Return for each vector a mapping from symbol to probability."""
        probabilities = a.numbers(softmax(y, np.full(y.shape, True), a))
        return [dict(zip(self.labels, row.tolist(), strict=True)) for row in probabilities]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RealVector(ReadOut):
    """The numbers W_out z + b_out themselves; in `interval`, balls in decimals that hold them."""

    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """A list of k numbers a vector."""
        shown: list[Any] = a.shown(y)
        return shown


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NearestFraction(ReadOut):
    """At every position the multiple of 1/(scale · D) nearest to the mean W_out z + b_out.

    D is the number of symbols that the mask leaves there. A mean over them of multiples of
    1/scale is such a fraction, so that this check outside the transformer takes the rounding of a
    format away. A mean that BOS takes part in, as 0, is made one of the symbols alone.

    Attributes:
        scale: a whole number, at least 1.
        mask: of the mean.
        with_bos: whether BOS takes part.

    """

    scale: int
    mask: OneOf[Mask] = OneOf(Mask)
    with_bos: bool = part(bool)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("W_out", (1, "d"), "one row")
        if self.at != "every" or not is_whole(self.scale, 1):
            raise InvalidValue(
                "a mean must be read at every position, and its scale must be at least 1",
                received=f"at = {self.at}, scale = {self.scale}",
                where="NearestFraction",
                remedy="give at='every' and a whole number of at least 1",
            )

    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """A number a vector, whole ones as int; 0 where the mask leaves no symbol.

        The vectors belong to the last positions up to n: to all, or to the next ones that a decoder
        reads. The one before position 1, of BOS, has no symbol.
        """
        means, radii = rationals(values)[:, 0], rationals(a.radius(y))[:, 0]
        first, end = self.mask.span(np.arange(n - len(means), n), n)
        rows = zip(means, radii, np.maximum(end - first, 0), strict=True)
        return [self._nearest(mean, radius, int(count)) for mean, radius, count in rows]

    def _nearest(self, mean: Fraction, radius: Fraction, count: int) -> int | Fraction:
        if not count:
            return 0
        # With BOS the mean is over D + 1 rows, of which BOS adds 0: it is a multiple of
        # 1/(scale (D + 1)), and the multiple times (D + 1)/D is the mean of the D symbols.
        parts = self.scale * (count + self.with_bos)
        # Rounding to the nearest whole number is monotone: if both ends of the ball round to one
        # number, every number in it does. The exact mean times `parts` is whole, so it is read
        # right from a number that is off by less than 1/(2 parts).
        total, last = (
            math.floor((mean + end) * parts + Fraction(1, 2)) for end in (-radius, radius)
        )
        if total != last:
            raise Undecided(
                "a mean that is read out must be nearest to one fraction",
                received=f"a ball of radius {float(radius):.2g} that is near to two",
                where="NearestFraction",
                remedy="evaluate with more bits, or in exact",
            )
        fraction = Fraction(total, self.scale * count)
        return fraction.numerator if fraction.denominator == 1 else fraction


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NearZero(ReadOut):
    """Accept where every |W_out z + b_out| is below half its least non-zero magnitude.

    This is the check outside the transformer of 9.2.1, for models whose weights know no N. The
    m-th coordinate must be 0 or at least (n + 1)^−power in magnitude, n + 1 counting BOS.

    Attributes:
        powers: the power for each row of W_out.

    """

    powers: tuple[int, ...] = several(int)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("W_out", (len(self.powers), "d"), "a row for each power")
        if not all(is_whole(power, 0) for power in self.powers):
            raise InvalidValue(
                "powers must be at least 0",
                received=repr(self.powers),
                where="NearZero",
                remedy="give the power of n + 1 in the least non-zero magnitude",
            )

    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """A bool a vector."""
        # Half of the least magnitude is the threshold with the largest distance from both cases.
        halves = np.array([Fraction(1, 2 * (n + 1) ** power) for power in self.powers])
        size, radius = abs(rationals(values)), rationals(a.radius(y))
        near, far = size + radius < halves, size - radius >= halves
        if not (near | far).all():
            raise Undecided(
                "a value that is read out must lie on one side of its threshold",
                received=f"a ball of radius {float(radius[~(near | far)][0]):.2g} that meets it",
                where="NearZero",
                remedy="evaluate with more bits, or in exact",
            )
        return [bool(accept) for accept in near.all(axis=1)]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Outputs(ReadOut):
    """Several answers by name, each by a read-out of its own; the answer is a mapping.

    The rows of all parts form one matrix, so every engine evaluates them as a single read-out.
    `W_out`, `b_out` and `at` follow from the parts.

    Attributes:
        names: the names of the answers.
        parts: for each name a read-out: `Binary`, `MultiClass` or `NearestFraction`.

    Example:
        >>> both = Outputs(
        ...     names=["long", "sign"],
        ...     parts=[Binary(W_out=[[1, 0]]), MultiClass(W_out=[[0, 1], [0, -1]], labels="+-")],
        ... )
        >>> both.W_out.shape, both.at
        ((3, 2), 'last')

    """

    names: tuple[str, ...] = several(str, least=1)
    parts: tuple[ReadOut, ...] = several(ReadOut, least=1)
    W_out: Parameter = field(init=False, metadata={"weights": True})
    b_out: Parameter = field(init=False, metadata={"weights": True})
    at: str = field(init=False)

    places: ClassVar[tuple[str, ...]] = (*PLACES, EACH)

    def __post_init__(self) -> None:
        Definition.__post_init__(self)
        self._require_parts()
        places = {each.at for each in self.parts}
        stacked = {
            "W_out": np.concatenate([each.W_out for each in self.parts]),
            "b_out": np.concatenate([each.b_out for each in self.parts]),
            "at": places.pop() if len(places) == 1 else EACH,
        }
        for name, value in stacked.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    def _require_parts(self) -> None:
        if len(self.names) != len(self.parts) or len(set(self.names)) < len(self.names):
            raise InvalidValue(
                "several outputs must each have a name of its own",
                received=f"names {', '.join(self.names)} of {len(self.parts)} read-outs",
                where="Outputs",
                remedy="give as many different names as read-outs",
            )
        for each in self.parts:
            if not isinstance(each, Binary | MultiClass | NearestFraction) or each.at == "cls":
                raise InvalidValue(
                    "each of several outputs must be Binary, MultiClass or NearestFraction, at the "
                    "last or at every position",
                    received=f"{type(each).__name__} at {each.at}",
                    where="Outputs",
                    remedy="build a model for this one by itself",
                )
        widths = {each.W_out.shape[1] for each in self.parts}
        if len(widths) > 1:
            raise ShapeMismatch(
                "several outputs must read vectors of one width",
                received=f"widths {', '.join(map(str, sorted(widths)))}",
                where="Outputs",
                remedy="give read-outs of one stream",
            )

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the rows of the parts, each after the name of its part."""
        parts = zip(self.names, self.parts, strict=True)
        return tuple(f"{name}: {row}" for name, part in parts for row in part.row_names)

    def part(self, name: str) -> ReadOut:
        """The read-out with this name.

        Raises:
            UnknownName: where there is none.

        """
        if name not in self.names:
            raise UnknownName.among("output", name, self.names, "Outputs")
        return self.parts[self.names.index(name)]

    def decide(self, y: Array, values: NDArray[Any], n: int, a: Arithmetic) -> list[Any]:
        """A mapping from names to answers for each vector."""
        # The rows of the parts stand one after the other in y; each part decides on its own rows,
        # as it does alone.
        ends = list(itertools.accumulate(len(each.W_out) for each in self.parts))
        answers = [
            each.decide(y[:, start:end], values[:, start:end], n, a)
            for each, start, end in zip(self.parts, [0, *ends], ends, strict=False)
        ]
        return [dict(zip(self.names, each, strict=True)) for each in zip(*answers, strict=True)]

    def join(self, answers: list[Any], n: int) -> Any:
        """A mapping; a part that reads the last position has its answer there."""
        # For the empty input one row is read, that of BOS, which is not a position of the input.
        # `inputs` has the answers at the n positions of the input.
        inputs = answers[len(answers) - n :]
        return {
            name: part.join([each[name] for each in inputs], n)
            if part.reads_several
            else answers[-1][name]
            for name, part in zip(self.names, self.parts, strict=True)
        }


def _string_or_list(labels: tuple[Label, ...], answers: list[Any]) -> Any:
    if all(isinstance(label, str) and len(label) == 1 for label in labels):
        return "".join(answers)
    return answers
