"""Vectors: the inputs of position-wise functions, and how they are covered.

A domain yields cases as tuples of exact rationals that the arithmetic can represent, so that a
reference function sees the very input that the weights see.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, TypeVar

from transformist.arithmetic import FLOAT64, Arithmetic, Floating, Saturating
from transformist.errors import InvalidValue

T = TypeVar("T")
Case: TypeAlias = tuple[Fraction, ...]


class NoCase(InvalidValue):
    """A domain without an input among the numbers that are tried in an arithmetic."""


class Domain(Protocol):
    """Inputs of a position-wise function: vectors of `dimension` numbers."""

    @property
    def dimension(self) -> int:
        """Number of coordinates of a case."""

    def __str__(self) -> str:
        """The domain in a formula or a few words."""

    def __contains__(self, case: Case) -> bool:
        """True if the domain holds a vector of its dimension."""

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """All cases where there are at most `count`, else about `count`, corners first."""


@dataclass(frozen=True)
class Bits:
    """{0, 1}ᵐ, m the dimension."""

    dimension: int

    def __str__(self) -> str:
        return f"{{0, 1}}^{self.dimension}"

    def __contains__(self, case: Case) -> bool:
        return all(bit in (0, 1) for bit in case)

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every vector of bits, or `count` drawn ones."""
        return _covered([(Fraction(0), Fraction(1))] * self.dimension, count, seed)


@dataclass(frozen=True)
class Signs:
    """{−1, 1}ᵐ, m the dimension."""

    dimension: int

    def __str__(self) -> str:
        return f"{{−1, 1}}^{self.dimension}"

    def __contains__(self, case: Case) -> bool:
        return all(sign in (-1, 1) for sign in case)

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every vector of signs, or `count` drawn ones."""
        return _covered([(Fraction(-1), Fraction(1))] * self.dimension, count, seed)


@dataclass(frozen=True)
class Reals:
    """Vectors of real numbers.

    Attributes:
        dimension: number of coordinates of a case.
        least, most: the interval each lies in; where it is open, cases go to −8 or 8, or to twice
            the furthest point.
        points: the values at which the function bends or jumps.
    """

    dimension: int
    least: Fraction | None = None
    most: Fraction | None = None
    points: tuple[Fraction, ...] = ()

    def __str__(self) -> str:
        power = "" if self.dimension == 1 else f"^{self.dimension}"
        tried = f"[{self._low}, {self._high}]{power}"
        if self.least is not None and self.most is not None:
            return tried
        low = "(−∞" if self.least is None else f"[{self.least}"
        high = "∞)" if self.most is None else f"{self.most}]"
        return f"{low}, {high}{power} (tried on {tried})"

    def __contains__(self, case: Case) -> bool:
        low = -math.inf if self.least is None else self.least
        high = math.inf if self.most is None else self.most
        return all(low <= value <= high for value in case)

    @property
    def is_everything(self) -> bool:
        """True if no number is excluded."""
        return self.least is None and self.most is None

    @property
    def _low(self) -> Fraction:
        return -self._reach if self.least is None else self.least

    @property
    def _high(self) -> Fraction:
        return self._reach if self.most is None else self.most

    @property
    def _reach(self) -> Fraction:
        """Magnitude of the largest cases in an open interval."""
        furthest = max(map(abs, self.points), default=Fraction(0))
        return Fraction(8) if furthest <= 8 else 2 * furthest

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Points, their neighbours and corners, half of `count` at most; then drawn numbers."""
        source = random.Random(f"{seed} {self} {arithmetic.name}")
        marks = {Fraction(0), Fraction(1), Fraction(-1), self._low, self._high, *self.points}
        # A bend or a jump that stands beside the right place shows in its neighbours.
        nudge = (self._high - self._low) / 4096
        marks |= {point + step for point in self.points for step in (nudge, -nudge)}
        axis = list(dict.fromkeys(self._representable(sorted(marks), arithmetic)))
        chosen = _covered([axis] * self.dimension, count // 2, seed)
        wanted = (count - len(chosen)) * self.dimension
        # Several numbers of a vector are taken from one iterator; a number that falls outside the
        # interval by rounding is left out, so that the last vector may be missing.
        numbers = iter(self._representable([self._draw(source) for _ in range(wanted)], arithmetic))
        return chosen + list(zip(*[numbers] * self.dimension, strict=False))

    def _draw(self, source: random.Random) -> Fraction:
        """A number drawn evenly from the interval, or by magnitude around zero or a point."""
        # Half of the numbers are even over the interval; the others lie around 0 or a point, at
        # distances 2⁻²⁰ to 2³, as errors of bends and jumps show near them.
        kind = source.randrange(4)
        if kind < 2:
            share = Fraction(source.getrandbits(60), 2**60)
            return self._low + (self._high - self._low) * share
        centre = source.choice([Fraction(0), *self.points]) if kind == 3 else Fraction(0)
        step = Fraction(2.0 ** source.uniform(-20, 3) * source.choice([1, -1]))
        return centre + step if centre else step

    def _representable(self, values: Sequence[Fraction], a: Arithmetic) -> list[Fraction]:
        """The values that the format holds, rounded; without those that leave the interval."""
        held = [each for each in values if a.largest is None or abs(each) <= a.largest]
        rounded = map(Fraction, a.numbers(a.array(held)).tolist())
        return [value for value in rounded if self._low <= value <= self._high]


@dataclass(frozen=True)
class WholeMultiples:
    """Multiples of a power of two up to a bound: numbers of a common exponent.

    Attributes:
        dimension: number of coordinates of a case.
        bits: the numbers are k · 2^exponent with |k| ≤ 2^bits.
        exponent: of the common factor.
    """

    dimension: int
    bits: int
    exponent: int = 0

    def __str__(self) -> str:
        return f"multiples of 2^{self.exponent}, at most 2^{self.bits + self.exponent} in magnitude"

    def __contains__(self, case: Case) -> bool:
        step = Fraction(2) ** self.exponent
        return all(x % step == 0 and abs(x) <= step * 2**self.bits for x in case)

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every combination, or `count` drawn ones."""
        step = Fraction(2) ** self.exponent
        axis = range(-(2**self.bits), 2**self.bits + 1)
        chosen = _covered([axis] * self.dimension, count, seed)
        return [tuple(k * step for k in case) for case in chosen]


@dataclass(frozen=True)
class Listed:
    """Some vectors, one by one.

    Attributes:
        vectors: at least one, all of one length.
        statement: which they are, in words.

    """

    vectors: tuple[tuple[int, ...], ...]
    statement: str

    @property
    def dimension(self) -> int:
        return len(self.vectors[0])

    def __str__(self) -> str:
        return self.statement

    def __contains__(self, case: Case) -> bool:
        return tuple(case) in self.vectors

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every vector, or `count` drawn ones."""
        chosen = _covered([self.vectors], count, seed)
        return [tuple(map(Fraction, vector)) for (vector,) in chosen]


@dataclass(frozen=True)
class FormatNumbers:
    """The finite numbers of a format, from the smallest to the largest; float64's elsewhere.

    Attributes:
        points: the values at which the function bends or jumps.
    """

    points: tuple[Fraction, ...] = ()

    dimension = 1

    def __str__(self) -> str:
        return "every finite number of the format (tried on numbers of float64 in exact)"

    def __contains__(self, case: Case) -> bool:
        return True

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """All numbers if there are at most `count`, else ends, points, and drawn bit patterns."""
        system = arithmetic if isinstance(arithmetic, Floating | Saturating) else FLOAT64
        drawn = system.drawn(count, seed=f"{seed} {self} {arithmetic.name}")
        ends = [Fraction(each) for each in (system.smallest, system.largest)]
        # Numbers at, above and below each point, and the smallest numbers, where formats underflow.
        near = [m * p for p in (*self.points, ends[0]) for m in _FACTORS if m * p <= ends[1]]
        marks = system.numbers(
            system.array([sign * each for each in (*near, ends[1]) for sign in (1, -1)])
        )
        numbers = [*marks.tolist(), *drawn.tolist()]
        return [(value,) for value in dict.fromkeys(map(Fraction, numbers))]


@dataclass(frozen=True)
class Product:
    """Each part's cases beside each other's."""

    parts: tuple[Domain, ...]

    @property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    def __str__(self) -> str:
        if len(self.parts) > 1 and len(set(map(str, self.parts))) == 1:
            return f"({self.parts[0]})^{len(self.parts)}"
        return " × ".join(str(part) for part in self.parts)

    def __contains__(self, case: Case) -> bool:
        numbers = iter(case)
        taken = [tuple(itertools.islice(numbers, part.dimension)) for part in self.parts]
        return all(each in part for each, part in zip(taken, self.parts, strict=True))

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every combination where `count` leaves room, else the parts' cases side by side."""
        lists = [part.cases(arithmetic, count, seed + k) for k, part in enumerate(self.parts)]
        return [tuple(itertools.chain(*row)) for row in _covered(lists, count, seed)]


@dataclass(frozen=True)
class Opposites:
    """[x, −x] for the cases x of a domain."""

    domain: Domain

    @property
    def dimension(self) -> int:
        return 2 * self.domain.dimension

    def __str__(self) -> str:
        return f"[x, −x] for x in {self.domain}"

    def __contains__(self, case: Case) -> bool:
        half = len(case) // 2
        return case[half:] == tuple(-value for value in case[:half]) and case[:half] in self.domain

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """The cases of the domain, each beside its opposite."""
        halves = self.domain.cases(arithmetic, count, seed)
        return [(*half, *(-value for value in half)) for half in halves]


@dataclass(frozen=True)
class Where:
    """The cases of a domain that satisfy a condition."""

    domain: Domain
    condition: Callable[[Case], bool]
    statement: str

    @property
    def dimension(self) -> int:
        return self.domain.dimension

    def __str__(self) -> str:
        return f"{self.domain} where {self.statement}"

    def __contains__(self, case: Case) -> bool:
        return case in self.domain and self.condition(case)

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Up to `count` cases that satisfy the condition, from up to 16 times as many if few do."""
        kept: list[Case] = []
        for more in (1, 4, 16):
            drawn = self.domain.cases(arithmetic, more * count, seed)
            kept = [case for case in drawn if self.condition(case)]
            if len(kept) >= count // 4 or len(drawn) < more * count:
                break
        if not kept:
            kept = self._of_one_or_two(drawn, seed)
        if not kept:
            raise NoCase(
                "a domain must have an input among the numbers that are tried",
                received=f"{self} in {arithmetic.name}",
                remedy="choose other settings, or another arithmetic",
            )
        return kept[:count]

    def _of_one_or_two(self, drawn: Sequence[Case], seed: int) -> list[Case]:
        """Vectors of one number and of two numbers in turn: few conditions keep none of them."""
        source, length = random.Random(f"{seed} {len(drawn)}"), self.dimension
        numbers = [*dict.fromkeys(itertools.chain.from_iterable(drawn))]
        pairs = [(each, source.choice(numbers[:MARKS])) for each in numbers]
        ones = [(each,) * length for each in numbers]
        twos = [tuple(source.choices(pair, k=length)) for pair in pairs if pair[0] != pair[1]]
        kept = (filter(self.condition, each) for each in (ones, twos))
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*kept))
        return [case for case in in_turn if case is not None]


MARKS = 8
"""Cases begin with vectors of some marks, such as the ends of an interval; at most so many."""

_FACTORS = (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2))


def _covered(axes: Sequence[Sequence[T]], count: int, seed: int) -> list[tuple[T, ...]]:
    """The product of the axes where it has at most `count` members, else `count` drawn ones."""
    total = math.prod(len(axis) for axis in axes)
    if total <= count:
        return list(itertools.product(*axes))
    source = random.Random(f"{seed} {total}")
    return [tuple(source.choice(axis) for axis in axes) for _ in range(count)]
