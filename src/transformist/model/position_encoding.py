"""Position encodings peₙ(i) (section 3.5): by formula, from a table, or sinusoids."""

from __future__ import annotations

import functools
import itertools
import math
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
from transformist.position_features import POSITIONS, WAVES, position

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

    @property
    def filled(self) -> tuple[int, ...]:
        """The coordinates that may be other than 0."""
        return tuple(range(self.width))

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
    """Coordinates that are functions of (i, n), by their names; `None` gives 0.

    A name is one of `POSITIONS`, or names a sine or cosine of 2πi/L, such as `cos(2pi i/8)`, for
    L = 4, 8, …, 2¹⁶. Sines and cosines are rounded to the nearest multiple of 2⁻¹².

    Example:
        >>> PositionFunctions(("i", None, "i/n"))(2).tolist()
        [[1.0, 0.0, 0.5], [2.0, 0.0, 1.0]]

    """

    names: tuple[str | None, ...] = several(str, NoneType)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.names:
            if name is not None and name not in POSITIONS and name not in WAVES:
                raise UnknownName.among("position function", name, POSITIONS, "PositionFunctions")

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def filled(self) -> tuple[int, ...]:
        """The coordinates that have a function."""
        return tuple(column for column, name in enumerate(self.names) if name is not None)

    @property
    def knows_n(self) -> bool:
        """True if one of the functions is a multiple of 1/n."""
        return any(name is not None and name.endswith("/n") for name in self.names)

    def at(self, places: range, n: int, a: Arithmetic) -> Array:
        """The values of the functions at (i, n).

        Raises:
            UndefinedValue, NotFinite: as `PositionEncoding.at`.

        """
        # Only the named coordinates are computed. The matrix puts each into its column; it has a
        # single 1 in each row, so nothing rounds.
        named = list(self.filled)
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

    @property
    def filled(self) -> tuple[int, ...]:
        """The columns of the table that are not all zero."""
        return tuple(np.flatnonzero((self.vectors != 0).any(axis=0)).tolist())

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
@dataclass(frozen=True, eq=False, kw_only=True)
class PositionFlags(Parameterized, PositionEncoding):
    """A coordinate that has a number at some positions, and 0 at all others, for every n.

    Attributes:
        places: the positions, which may be those of symbols before the input (0, −1, …).
        values: the number at each of them.

    Raises:
        InvalidValue: for a position that is no whole number, or stands there twice.
        ShapeMismatch: for another number of values.

    Example:
        >>> PositionFlags(places=(2, 3), values=[1, "1/2"])(3).tolist()
        [[0.0], [1.0], [0.5]]

    """

    places: tuple[int, ...] = several(int, least=1)
    values: Parameter = weights()

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = all(type(each) is int for each in self.places)
        if not whole or len(set(self.places)) != len(self.places):
            raise InvalidValue(
                "the flagged positions must be whole numbers, each given once",
                received=f"{self.places!r:.60}",
                where="PositionFlags",
                remedy="give positions such as (1, 4)",
            )
        self._require("values", (len(self.places),), "one for each position")

    @property
    def width(self) -> int:
        """1."""
        return 1

    @property
    def filled(self) -> tuple[int, ...]:
        """The coordinate, if a number is other than 0."""
        return (0,) if (self.values != 0).any() else ()

    def at(self, places: range, n: int, a: Arithmetic) -> Array:
        # Entry (i, k) is 1 where position i is the k-th flagged one. A row has at most one 1, so
        # its product with the values rounds nothing beyond the values themselves.
        flagged = np.equal.outer(
            np.array(places, dtype=object), np.array(self.places, dtype=object)
        )
        return a.affine(a.array(flagged.astype(np.float64)), self.rounded(a).values[None])

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The numbers, by their positions."""
        rows = [f"position {i}" for i in self.places]
        table = named_matrix("values", rows, writes or numbered("output", 1), self.values[:, None])
        yield NamedPart(name or "positions", "flags, 0 elsewhere", (table,))


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
        # A vector needs all of its parts, so the part that ends first limits all.
        lengths = [each.max_length for each in self.parts]
        return min((each for each in lengths if each is not None), default=None)

    @property
    def filled(self) -> tuple[int, ...]:
        """The coordinates that a part fills."""
        starts = itertools.accumulate((each.width for each in self.parts), initial=0)
        pairs = zip(starts, self.parts, strict=False)
        return tuple(start + column for start, each in pairs for column in each.filled)

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


@final
@dataclass(frozen=True, eq=False)
class Sinusoids(Definition, PositionEncoding):
    """The sinusoids of the original transformer, each rounded once from its real value.

    Coordinate δ, from 0, of position i, from 1 (p = i − 1 from 0):

        sin(p/10000^(δ/d)) for even δ,   cos(p/10000^((δ − 1)/d)) for odd δ.

    All but 0 and 1 are irrational. A float format has the number nearest to each real value; exact
    arithmetic has a rational within 2⁻¹²⁸ of it, and interval a ball that holds it.
    The wavelengths run from 2π, for δ = 0 and 1, up to less than 2π · 10⁴.

    Attributes:
        d: the width, at least 1.

    Raises:
        InvalidValue: for a width that is not a whole number of at least 1.

    Example:
        >>> Sinusoids(2)(2).tolist()
        [[0.0, 1.0], [0.8414709848078965, 0.5403023058681398]]

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
        return a.near(
            lambda bits: [[sinusoid(i - 1, delta, self.d, bits) for delta in width] for i in places]
        )


@functools.lru_cache(maxsize=2**18)
def sinusoid(p: int, delta: int, d: int, bits: int = 128) -> Fraction:
    """Return a rational within 2^−bits of a sinusoid; every float format rounds both alike.

    Args:
        p: the position, from 0.
        delta: the coordinate, from 0: a sine if it is even, a cosine if it is odd.
        d: the width of the encoding.
        bits: the precision.

    Example:
        >>> float(sinusoid(1, 0, 2))
        0.8414709848078965

    """
    # A format of up to 53 bits has its numbers, and the middles of two of them, among the multiples
    # of 2^(e − 53) where the value lies between 2^e and 2^(e + 1). The rational lies between the
    # same two multiples as the real value, so both round alike.
    # The loop ends: the argument is an algebraic number, and by Lindemann and Weierstrass the sine
    # and cosine of one are transcendental except at 0. So the value is none of the multiples, and
    # balls of some precision decide between which two it lies.
    # The phase p / 10000^(δ/d) is at most p, so it loses log₂ p bits of absolute precision; 64 bits
    # more are enough for p up to about 2⁶⁰ in one pass, and the loop doubles them otherwise.
    precision = bits + 64
    while True:
        with flint.ctx.workprec(precision):
            phase = p / _scale(delta - delta % 2, d, precision)
            value = phase.cos() if delta % 2 else phase.sin()
            middle, radius = value.mid(), value.rad()
            if value.is_exact():
                return _exactly(middle)
            fine = flint.arb(2) ** (54 - math.frexp(float(middle))[1])
            between = (value * fine).floor().unique_fmpz()
            if between is not None and radius < flint.arb(2) ** -bits:
                return _exactly(middle)
        precision *= 2


@functools.lru_cache(maxsize=2**12)
def _scale(delta: int, d: int, precision: int) -> flint.arb:
    """Return a ball with 10000^(δ/d)."""
    with flint.ctx.workprec(precision):
        return flint.arb(10000) ** flint.arb(flint.fmpq(delta, d))


def _exactly(ball: flint.arb) -> Fraction:
    """Return the value of an exact ball."""
    mantissa, exponent = map(int, ball.man_exp())
    return Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))
