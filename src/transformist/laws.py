"""Facts about a number that hold on every input: its range, and the grid it lies on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

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
        point = Fraction(value)
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
        return cls(math.lcm(*(Fraction(value).denominator for value in values)))

    def __or__(self, other: Grid) -> Grid:
        """The least grid of this form that holds both, and so the sums of their numbers."""
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
