"""The types of values at a position: Boolean, category, number."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from transformist.arithmetic import rational

Exact: TypeAlias = "int | Fraction"
"""A rational number: an int where it is whole, so that whole numbers are fast."""

MOST_VALUES = 64
"""The values of a number are listed where there are at most this many."""


@dataclass(frozen=True)
class Boolean:
    """False or true."""

    noun: ClassVar[str] = "a Boolean"
    values: ClassVar[tuple[bool, ...]] = (False, True)


@dataclass(frozen=True)
class Category:
    """One of finitely many values, such as symbols.

    Attributes:
        values: different and hashable, in the order in which they came.

    """

    noun: ClassVar[str] = "a category"
    values: tuple[Hashable, ...]


@dataclass(frozen=True)
class Polynomial:
    """a i + b n + c + Σ dₖ nᵏ for k ≥ 2, a function of the position i and the length n, 1 ≤ i ≤ n.

    Attributes:
        i, n, constant: a, b and c.
        powers: the factors of n², n³ and so on, all of one sign; the last is not 0.

    """

    i: Exact
    n: Exact
    constant: Exact
    powers: tuple[Exact, ...] = ()

    def __add__(self, other: Polynomial) -> Polynomial:
        return self.with_each(operator.add, other)

    def times(self, factor: Exact) -> Polynomial:
        """The function times a factor."""
        return self.with_each(lambda own, _: factor * own, self)

    def with_each(self, choose: Callable[[Exact, Exact], Exact], other: Polynomial) -> Polynomial:
        """The function whose factors are chosen, one by one, from those of two functions."""
        i, n = choose(self.i, other.i), choose(self.n, other.n)
        pairs = itertools.zip_longest(self.powers, other.powers, fillvalue=0)
        powers = list(itertools.starmap(choose, pairs))
        while powers and not powers[-1]:
            powers.pop()
        return Polynomial(i, n, choose(self.constant, other.constant), tuple(powers))

    def is_at_most(self, other: Polynomial) -> bool:
        """True only if the function is at most another wherever 1 ≤ i ≤ n."""
        # The pairs (i, n) are (1, 1) + s (0, 1) + t (1, 1) with s, t ≥ 0. So a linear difference is
        # at most 0 at all pairs if it is at most 0 at (1, 1) and grows in neither direction. Powers
        # of n with factors of at most 0 make it smaller.
        apart = self + other.times(-1)
        both = apart.i + apart.n
        is_lower = both + apart.constant <= 0 and apart.n <= 0 and both <= 0
        return is_lower and max(apart.powers, default=0) <= 0

    def at_corners(self, n: int) -> tuple[Exact, ...]:
        """The values at (1, 1), (1, n) and (n, n).

        For an upper end, whose powers of n have factors of at least 0, the largest of these values
        is the largest at 1 ≤ i ≤ m ≤ n, because a convex function is largest at a corner. For a
        lower end the smallest is the smallest.
        """
        corners = ((1, 1), (1, n), (n, n))
        return tuple(
            self.i * i
            + self.n * m
            + self.constant
            + sum(factor * m**k for k, factor in enumerate(self.powers, 2))
            for i, m in corners
        )


@dataclass(frozen=True)
class Ends:
    """Ends of a whole number: the number lies between two polynomials of i and n.

    Example: a count up to here, less 3.
        >>> count = Ends(Polynomial(0, 0, 0), Polynomial(1, 0, 0))
        >>> (count + Ends.at(-3)).up_to(10)
        range(-3, 8)

    """

    lo: Polynomial
    hi: Polynomial

    @classmethod
    def at(cls, value: Exact) -> Ends:
        """The ends of a constant."""
        return cls(Polynomial(0, 0, value), Polynomial(0, 0, value))

    @classmethod
    def of(cls, values: Iterable[Exact]) -> Ends | None:
        """The ends of a number with these values; `None` if one of them is not whole."""
        listed = list(values)
        if not all(type(value) is int for value in listed):
            return None
        return cls(Polynomial(0, 0, min(listed)), Polynomial(0, 0, max(listed)))

    @property
    def is_constant(self) -> bool:
        """True if neither end depends on i or n."""
        return not any(line.i or line.n or line.powers for line in (self.lo, self.hi))

    def __add__(self, other: Ends) -> Ends:
        return Ends(self.lo + other.lo, self.hi + other.hi)

    def times(self, factor: Exact) -> Ends:
        """The ends of the number times a factor."""
        lo, hi = self.lo.times(factor), self.hi.times(factor)
        return Ends(lo, hi) if factor >= 0 else Ends(hi, lo)

    def hull(self, other: Ends) -> Ends:
        """Ends of a number that is one of two."""
        # i and n are at least 0, so the function with the smaller factors lies below both.
        return Ends(self.lo.with_each(min, other.lo), self.hi.with_each(max, other.hi))

    def anywhere(self) -> Ends:
        """Ends of the number at any position j, where 1 ≤ j ≤ n."""
        lo = _with_j(self.lo, 1).with_each(min, _with_j(self.lo, 0))
        return Ends(lo, _with_j(self.hi, 1).with_each(max, _with_j(self.hi, 0)))

    def product(self, other: Ends) -> Ends:
        """Ends of the product of a number with these ends and one with others."""
        known, wide = (self, other) if self.is_constant else (other, self)
        if known.is_constant:
            # For a ≤ k ≤ b, k y lies between a y and b y.
            return wide.times(known.lo.constant).hull(wide.times(known.hi.constant))
        # With −d ≤ x ≤ u and −e ≤ y ≤ v, all at least 0, x y is at most the larger of u v and d e,
        # and at least the smaller of −u e and −d v. All four are sums of powers of n.
        (d, u), (e, v) = ((end.lo.times(-1), end.hi) for end in (self, other))
        return Ends(_largest((u, e), (d, v)).times(-1), _largest((u, v), (d, e)))

    def up_to(self, n: int) -> range:
        """The whole numbers between the ends on inputs of 1 to n symbols."""
        least, most = min(self.lo.at_corners(n)), max(self.hi.at_corners(n))
        return range(math.ceil(least), math.floor(most) + 1)


def _powers(bound: Polynomial) -> list[Exact]:
    """Factors of 1, n, n² and so on, at least 0, of a function that is at least the bound."""
    # In a i + b n, i is at most n if a > 0, and at least 0 if a ≤ 0.
    return [max(0, each) for each in (bound.constant, bound.n + max(bound.i, 0), *bound.powers)]


def _largest(*pairs: tuple[Polynomial, Polynomial]) -> Polynomial:
    """A function at least as large as each pair's product, negative bounds counting as 0."""
    highest = Polynomial(0, 0, 0)
    for x, y in pairs:
        xs, ys = _powers(x), _powers(y)
        factors: list[Exact] = [0] * (len(xs) + len(ys) - 1)
        for (j, a), (k, b) in itertools.product(enumerate(xs), enumerate(ys)):
            factors[j + k] += a * b
        constant, n, *powers = factors
        highest = Polynomial(0, n, constant, tuple(powers)).with_each(max, highest)
    return highest


def _with_j(end: Polynomial, is_last: int) -> Polynomial:
    """The bound at j = n (`is_last` = 1) or at j = 0; for 1 ≤ j ≤ n it lies between the two."""
    return replace(end, i=0, n=end.n + end.i * is_last)


@dataclass(frozen=True)
class Number:
    """A rational number.

    Attributes:
        values: those it can have, increasing, where they are known and at most `MOST_VALUES`.
        ends: the ends of a whole number without listed values; `None` if it need not be whole, or
            if no such polynomial bounds it.

    """

    noun: ClassVar[str] = "a number"
    values: tuple[Exact, ...] | None = None
    ends: Ends | None = None

    @property
    def whole(self) -> Ends | None:
        """The ends of a whole number, listed or not."""
        return self.ends if self.values is None else Ends.of(self.values)


Type: TypeAlias = "Boolean | Category | Number"


def exact(value: Any) -> Exact:
    """The exact value of a number, or of the text of one; of a float, its own value.

    Raises:
        ValueError, TypeError, ArithmeticError: for a value that is no finite number, or a Boolean.

    Example:
        >>> exact("1/3"), exact(0.5), exact(4.0)
        (Fraction(1, 3), Fraction(1, 2), 4)

    """
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise TypeError
    number = value if isinstance(value, Fraction) else rational(value)
    return number.numerator if number.denominator == 1 else number


def quotient(numerator: Exact, denominator: Exact) -> Exact:
    """The fraction, an int where it is whole.

    Example:
        >>> quotient(6, 3), quotient(1, 3)
        (2, Fraction(1, 3))

    """
    # Whole numbers by divmod: a Fraction would take their greatest common divisor each time.
    if type(numerator) is int and type(denominator) is int:
        whole, rest = divmod(numerator, denominator)
        return Fraction(numerator, denominator) if rest else whole
    return exact(Fraction(numerator) / denominator)


def number_of(values: Iterable[Exact]) -> Number:
    """The type of a number that has one of these values."""
    listed = sorted(set(values))
    return Number(tuple(listed)) if len(listed) <= MOST_VALUES else Number(None, Ends.of(listed))


def image(function: Callable[..., Exact], *types: Type) -> Number:
    """The type of a function of numbers, its values listed where theirs are."""
    # The image of listed values is listed by trying every combination; beyond MOST_VALUES² of them
    # that costs too much, and a type without a list is always true.
    known = [each.values for each in types if each.values is not None]
    if len(known) < len(types) or math.prod(map(len, known)) > MOST_VALUES**2:
        return Number()
    return number_of(itertools.starmap(function, itertools.product(*known)))


def union(first: Type, second: Type) -> Type:
    """The type of a value that is of one of two types, both Booleans, categories, or numbers."""
    if isinstance(first, Category) and isinstance(second, Category):
        return Category(tuple(dict.fromkeys((*first.values, *second.values))))
    if isinstance(first, Number) and isinstance(second, Number):
        if first.values is None or second.values is None:
            one, other = first.whole, second.whole
            return Number(None, one.hull(other) if one and other else None)
        return number_of((*first.values, *second.values))
    return Boolean()
