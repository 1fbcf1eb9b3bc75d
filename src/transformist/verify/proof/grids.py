"""Grids of numbers: the numbers of which every value is a whole multiple.

A grid (g, None) holds the multiples of g, and (0, None) holds 0 alone. A grid (g, count) holds the
multiples of g/D, where D ≥ 1 is a number of rows that the count names, at the row of the value:

- a mask: the rows that it admits;
- `SYMBOLS`: the symbols of the input, n, which is the same at every row;
- the place of a head (`best_keys`): the keys with the largest score, of which it takes the mean.

The mean of D multiples of g lies on this grid. `None` says that no grid is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

Grid: TypeAlias = "tuple[Fraction, str | None] | None"

SYMBOLS = "symbols"
"""The count D = n."""

ANY_POWER = 10_000
"""Exponent of 2 for the number 0, which is a multiple of every power."""


def best_keys(where: str) -> str:
    """Return the count of the best keys of a head at this place."""
    return f"best keys of {where}"


def farey_neighbours(t: Fraction, most: int) -> tuple[Fraction, Fraction]:
    """Return the fractions next to t with denominators up to `most`, which t does not have.

    They are p₁/q₁, the last convergent of t with q₁ ≤ most, and (p₀ + k p₁)/(q₀ + k q₁) with the
    largest k that the limit allows, p₀/q₀ the convergent before. They lie on both sides of t, and
    p₁ (q₀ + k q₁) − q₁ (p₀ + k p₁) = ±1, so a fraction between them has a denominator of at least
    q₁ + (q₀ + k q₁) > most.

    Example:
        >>> farey_neighbours(Fraction(3, 10), 5)
        (Fraction(1, 4), Fraction(1, 3))

    """
    (n, d), (p_0, q_0, p_1, q_1) = t.as_integer_ratio(), (0, 1, 1, 0)
    while q_0 + (a := n // d) * q_1 <= most:
        p_0, q_0, p_1, q_1 = p_1, q_1, p_0 + a * p_1, q_0 + a * q_1
        n, d = d, n - a * d
    k = (most - q_0) // q_1
    one, other = Fraction(p_0 + k * p_1, q_0 + k * q_1), Fraction(p_1, q_1)
    return min(one, other), max(one, other)


def common_divisor(x: Fraction, y: Fraction) -> Fraction:
    """Return the largest g such that x and y are whole multiples of g."""
    return Fraction(
        math.gcd(x.numerator * y.denominator, y.numerator * x.denominator),
        x.denominator * y.denominator,
    )


def sum_grid(grids: Iterable[Grid]) -> Grid:
    """Return the grid of a sum of numbers on the given grids.

    A multiple of g is a multiple of g/D too. A multiple of g/D and one of h/D′, where D and D′
    belong to two masks, have no grid in common.
    """
    return combined_grid((1, 1, grid) for grid in grids)


def combined_grid(terms: Iterable[tuple[int, int, Grid]]) -> Grid:
    """Return the grid of Σ (p/q) · number, from (p, q, grid of the number), as `sum_grid` does.

    The common divisor of p₁/q₁, p₂/q₂, … is gcd(p₁ Q/q₁, p₂ Q/q₂, …)/Q for any common multiple Q
    of the qᵢ. This takes whole numbers alone; a chain of rationals is reduced at every step.
    """
    numerators, denominators, masks = list[int](), list[int](), set[str]()
    for p, q, grid in terms:
        if grid is None:
            return None
        g, mask = grid
        numerators.append(p * g.numerator)
        denominators.append(q * g.denominator)
        if mask is not None and g:
            masks.add(mask)
    if len(masks) > 1:
        return None
    Q = math.lcm(*denominators)
    divisor = math.gcd(*(p * (Q // q) for p, q in zip(numerators, denominators, strict=True)))
    return Fraction(divisor, Q), masks.pop() if masks else None


def exponent(x: Fraction) -> int | None:
    """Return the largest k such that x is a whole multiple of 2ᵏ; `None` if x is not dyadic."""
    if not x:
        return ANY_POWER
    denominator = x.denominator
    if denominator & (denominator - 1):
        return None
    p = abs(x.numerator)
    return (p & -p).bit_length() - denominator.bit_length()


def quantum(grid: Grid) -> int | None:
    """Return the largest k such that all numbers of a grid are multiples of 2ᵏ, or `None`."""
    return exponent(grid[0]) if grid is not None and grid[1] is None else None


def least(exponents: Iterable[int | None]) -> int | None:
    """Return the least exponent, or `None` if one of them is."""
    listed = list(exponents)
    known = [k for k in listed if k is not None]
    return min(known, default=ANY_POWER) if len(known) == len(listed) else None
