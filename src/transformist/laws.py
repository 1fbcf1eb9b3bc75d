"""Facts about a number that hold on every input: its range, and the grid it lies on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, overload

Bound: TypeAlias = "Fraction | float"
"""A rational number, or infinity of either sign."""

INFINITY = float("inf")


@dataclass(frozen=True)
class Range:
    """The numbers from lo to hi.

    Example:
        >>> a = Range.of(-1) + Range.of(2).hull(Range.of(3)).times(Fraction(1, 2))
        >>> a == Range(Fraction(0), Fraction(1, 2)), a.size
        (True, Fraction(1, 2))

    """

    lo: Bound
    hi: Bound

    @classmethod
    def of(cls, value: Any) -> Range:
        """One number."""
        point = value if isinstance(value, Fraction) else Fraction(value)
        return cls(point, point)

    @property
    def is_point(self) -> bool:
        """True if the range is one number."""
        return self.lo == self.hi

    @property
    def size(self) -> Bound:
        """The largest magnitude."""
        return max(-self.lo, self.hi)

    @property
    def diameter(self) -> Bound:
        """hi − lo."""
        return self.hi - self.lo

    def __add__(self, other: Range) -> Range:
        return Range(self.lo + other.lo, self.hi + other.hi)

    def times(self, factor: Fraction) -> Range:
        """The range of factor · x."""
        if factor == 1:
            return self
        if factor == 0:
            return Range.of(0)
        lo, hi = factor * self.lo, factor * self.hi
        return Range(lo, hi) if factor > 0 else Range(hi, lo)

    def hull(self, other: Range) -> Range:
        """The least range that holds both."""
        return Range(min(self.lo, other.lo), max(self.hi, other.hi))

    def relu(self) -> Range:
        """The range of max(x, 0)."""
        zero = Fraction(0)
        return Range(max(self.lo, zero), max(self.hi, zero))


ZERO = Range.of(0)
"""The number 0."""


class Ranges(Sequence[Range]):
    """The ranges of a number at each kind of row: one for most kinds, and one for each other kind.

    A sum of such ranges takes as many steps as there are others, however large the alphabet is.

    Attributes:
        common: the range of every kind that is not among the others.
        others: ranges of some kinds, by the number of the kind.

    Example:
        >>> bit = Ranges(3, ZERO, {1: Range.of(1)})
        >>> bit[1].lo, bit.hull() == Range(0, 1), bit == (ZERO, Range.of(1), ZERO)
        (Fraction(1, 1), True, True)

    """

    __slots__ = ("_kinds", "common", "others")

    def __init__(self, kinds: int, common: Range, others: Mapping[int, Range]) -> None:
        self._kinds, self.common, self.others = kinds, common, others

    @classmethod
    def of(cls, ranges: Sequence[Range]) -> Ranges:
        """Return the same ranges as `Ranges`, with the first as the common one."""
        if isinstance(ranges, Ranges):
            return ranges
        if not ranges:
            return cls(0, ZERO, {})
        common = ranges[0]
        others = {
            kind: each for kind, each in enumerate(ranges) if each is not common and each != common
        }
        return cls(len(ranges), common, others)

    def __len__(self) -> int:
        return self._kinds

    @overload
    def __getitem__(self, index: int) -> Range: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Range, ...]: ...

    def __getitem__(self, index: int | slice) -> Range | tuple[Range, ...]:
        """The range of one kind, or the ranges of several."""
        if isinstance(index, slice):
            return tuple(self[kind] for kind in range(self._kinds)[index])
        return self.others.get(range(self._kinds)[index], self.common)

    def __iter__(self) -> Iterator[Range]:
        get, common = self.others.get, self.common
        return (get(kind, common) for kind in range(self._kinds))

    def __eq__(self, other: object) -> bool:
        """True for the same ranges, also in a tuple."""
        if isinstance(other, tuple):
            return tuple(self) == other
        if not isinstance(other, Ranges) or self._kinds != other._kinds:
            return False
        named = {*self.others, *other.others}
        # If every kind is named, no kind has the common range, which may then be any.
        are_alike = len(named) == self._kinds or self.common == other.common
        return are_alike and all(self[kind] == other[kind] for kind in named)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def distinct(self) -> Iterator[Range]:
        """Every range that some kind has, the common one once; equal ranges may come twice."""
        if len(self.others) < self._kinds:
            yield self.common
        yield from self.others.values()

    def below(self, kinds: int) -> Ranges:
        """The ranges of the first kinds."""
        if kinds >= self._kinds:
            return self
        others = {kind: each for kind, each in self.others.items() if kind < kinds}
        return Ranges(kinds, self.common, others)

    def hull(self) -> Range:
        """The least range that holds all."""
        return hull(self.distinct())

    def where(self, holds: Callable[[Range], bool]) -> Iterator[int]:
        """The kinds for whose range a condition holds."""
        if not holds(self.common):
            return (kind for kind, each in self.others.items() if holds(each))
        # The condition holds of the common range, so it fails for a few named kinds at most.
        wrong = {kind for kind, each in self.others.items() if not holds(each)}
        return (kind for kind in range(self._kinds) if kind not in wrong)

    def plus(self, other: Ranges) -> Ranges:
        """Return the ranges of the sum of two independent numbers.

        Example:
            >>> bit = Ranges(3, ZERO, {1: Range.of(1)})
            >>> bit.plus(bit.mapped(lambda each: each + Range.of(2)))[1].lo
            Fraction(4, 1)

        """
        named = {*self.others, *other.others}
        others = {kind: self[kind] + other[kind] for kind in named}
        return Ranges(self._kinds, self.common + other.common, others)

    def mapped(self, of: Callable[[Range], Range]) -> Ranges:
        """Return the ranges with a function applied to each."""
        others = {kind: of(each) for kind, each in self.others.items()}
        return Ranges(self._kinds, of(self.common), others)


def total_range(ranges: Sequence[Range]) -> Range:
    """The range of the sum of numbers that are independent."""
    return Range(_sum([each.lo for each in ranges]), _sum([each.hi for each in ranges]))


def _sum(values: Sequence[Bound]) -> Bound:
    """The sum; numerators over the same denominator are added as whole numbers."""
    numerators: dict[int, int] = {}
    for each in values:
        if isinstance(each, float):
            return sum(values, Fraction(0))
        # Infinite ends are floats: then the sum is one, and the rest is of no account.
        top, bottom = each.as_integer_ratio()
        numerators[bottom] = numerators.get(bottom, 0) + top
    return sum((Fraction(top, bottom) for bottom, top in numerators.items()), Fraction(0))


def hull(ranges: Iterable[Range]) -> Range:
    """The least range that holds all."""
    first, *others = ranges
    for each in others:
        first = first.hull(each)
    return first


@dataclass(frozen=True)
class Grid:
    """The multiples of 1/(c D₁ D₂ …): c a whole number, each D a number of positions.

    Attributes:
        c: the known part of the denominator.
        counts: what the others count, by name; two grids with the same names have the same D.

    Example: a mean of halves, beside whole numbers.
        >>> grid = Grid(2).divided("seen from i") | Grid(1)
        >>> grid.separation(most=100)
        Fraction(1, 200)

    """

    c: int
    counts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, values: Iterable[Fraction]) -> Grid:
        """The multiples of one over the least common denominator."""
        return cls(math.lcm(*(value.denominator for value in values)))

    def __or__(self, other: Grid) -> Grid:
        """The least grid of this form that holds both, and so the sums of their numbers."""
        if self.c % other.c == 0 and not other.counts:
            return self
        return Grid(math.lcm(self.c, other.c), self.counts | other.counts)

    def times(self, factor: Fraction) -> Grid:
        """The grid of factor · x, or one that holds it where there are counts."""
        # (p/q) m/(c D) = (p/g) m/(q (c/g) D) with g = gcd(p, c): a multiple of 1/(q (c/g) D).
        shared = math.gcd(self.c, factor.numerator)
        return Grid(self.c // shared * factor.denominator, self.counts)

    def divided(self, count: str) -> Grid:
        """The grid of x / D."""
        return Grid(self.c, self.counts | {count})

    def separation(self, most: int | None) -> Fraction | None:
        """Least magnitude of a number other than 0 if each D is at most `most`; `None` for 0."""
        # A multiple of 1/(c D₁ … D_k) other than 0 is at least that, and each 1/D at least 1/most.
        if self.counts and most is None:
            return None
        return Fraction(1, self.c * (most or 1) ** len(self.counts))
