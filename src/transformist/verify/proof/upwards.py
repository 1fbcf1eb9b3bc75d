"""Upper bounds computed in float64, rounded so that none is too small.

A bound x ≥ 0 is made of sums, products and quotients of numbers ≥ 0, and then passed through `up`.
Differences are taken only where a comment says what covers their rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

ROOM = 2.0**-40
"""Relative allowance for the rounding of the bounds themselves.

A float64 operation on numbers ≥ 0 is off by a factor 1 + δ, |δ| ≤ 2⁻⁵³, or underflows. After fewer
than 2¹² of them one after the other, a sum of n terms counting as n − 1, the result is off by
less than 2¹² · 2⁻⁵³ = 2⁻⁴¹ of itself to first order, which ROOM covers twice over. A sum that was
raised on its own (`raised`) counts as one.
"""

FLOOR = 1e-300
"""Absolute allowance for underflow: 2¹² results lose at most 2⁻¹⁰⁷⁴ each, together 2⁻¹⁰⁶²."""

NEARLY = 1 - 2.0**-50
"""Factor that rounds a number > 0 down after at most three float64 operations (3 · 2⁻⁵³)."""

TINIEST = 2.0**-500
"""Least magnitude of weights, and of ends and sizes, other than 0 (`within_reach`)."""

MOST_TERMS = 2**11
"""Longest sum that `ROOM` covers: so a bound has fewer than its 2¹² operations.

Longer sums have an allowance of their own (`excess`). A sum without one is refused.
"""

MOST_SUMMED = 2**20
"""Longest sum with an allowance of its own, which is then below 2⁻³⁰ of the sum."""

MOST_BOUNDS = 2**23
"""Most bounds of one vector, coordinates times kinds of rows: 64 MiB, and a proof has dozens."""

MOST_PRODUCTS = 2**28
"""Most products of one map, weights that are not 0 times kinds of rows: 2 GiB each time."""


FEW, SPARSE = 2**14, 8
"""Of an array of more than `FEW` bounds with one in `SPARSE` or fewer not 0, only these are raised.

Over a large alphabet most bounds are 0: a slot holds a number of one symbol. The result is the same
bit for bit, as 0 stays 0.
"""


class Unfollowed(Exception):
    """Raised at an operation for which the proof has no bound.

    Attributes:
        where: the part of the model.
        why: the reason.

    """

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where, self.why = where, why


def require_terms(count: int, where: str, what: str, most: int = MOST_TERMS) -> None:
    """Require that a sum has at most `most` terms.

    Raises:
        Unfollowed: if it has more.

    """
    if count > most:
        raise Unfollowed(where, f"more than {most} {what}")


def require_memory(coordinates: int, kinds: int, where: str) -> None:
    """Require that the bounds of a vector fit in memory (`MOST_BOUNDS`).

    Raises:
        Unfollowed: if they are more.

    """
    _require_few(coordinates, "numbers", kinds, MOST_BOUNDS, where)


def require_products(weights: int, kinds: int, where: str) -> None:
    """Require that the products of so many weights fit in memory (`MOST_PRODUCTS`).

    Raises:
        Unfollowed: if they are more.

    """
    _require_few(weights, "weights", kinds, MOST_PRODUCTS, where)


def _require_few(count: int, what: str, kinds: int, most: int, where: str) -> None:
    if count * kinds > most:
        raise Unfollowed(
            where,
            f"{count:,} {what} for each of {kinds:,} kinds of rows are more than {most:,} bounds, "
            "which would take gigabytes",
        )


def excess(count: Any) -> Floats:
    """Return max(1, n/2¹¹): `ROOM` times this covers the rounding of a sum of n products.

    A product rounds by at most 2⁻⁵³ of itself, and a factor of it that was rounded to float64, or a
    factor of a part of the sum, by as much again. An addition of 0 does not round, as x + 0 is a
    float64. Every other addition of a sum leaves one partial sum fewer that is not 0. So whatever
    the order and grouping, and with zeros in any number among the terms, at most n − 1 additions
    round, each by 2⁻⁵³ of a partial sum. (A fused product and sum rounds once instead of twice.)
    The result is off by less than (1 + 2⁻⁵³)^(n + 8) − 1 < 2⁻⁵² n of Σ |term| for
    2¹¹ < n ≤ `MOST_SUMMED`. This is 2⁻⁴¹ n/2¹¹, which ROOM n/2¹¹ covers twice over. Underflow of
    all terms loses 2²⁰ · 2⁻¹⁰⁷⁴ at most, below `FLOOR`.
    """
    return np.maximum(1.0, np.asarray(count, dtype=float) / MOST_TERMS)


def raised(x: Any, count: Any) -> Any:
    """Return an upper bound of a sum x of `count` terms ≥ 0, past its rounding beyond `ROOM`.

    A sum of at most `MOST_TERMS` terms is returned as it is, bit for bit: ROOM covers it.
    """
    count = np.asarray(count)
    if not (count > MOST_TERMS).any():
        return x
    return x * np.where(count > MOST_TERMS, 1 + ROOM * excess(count), 1.0)


def within_reach(x: Fraction) -> Fraction:
    """Return a weight or coefficient whose magnitude is 0 or between 2⁻⁵⁰⁰ and 2⁵⁰⁰.

    An error bound of 0 means "exact", and a size of 0 means "always 0", so neither may become 0 by
    underflow. Ends, sizes and weight errors are 0 or at least 2⁻⁵⁰⁰, too (`at_least_tiniest`). The
    product of two such numbers is at least 2⁻¹⁰⁰⁰, above the smallest normal float64, 2⁻¹⁰²².

    Raises:
        Unfollowed: for any other magnitude.

    """
    if x and not -500 < x.numerator.bit_length() - x.denominator.bit_length() < 500:
        raise Unfollowed("weights", "numbers are below 2^-500, or above 2^500, in magnitude")
    return x


def up(x: Any) -> Any:
    """Round a bound x ≥ 0 up, past the rounding errors of float64 (`ROOM`); 0 stays 0.

    A bound may overflow to infinity, and infinity times a weight of 0 is NaN. NaN bounds nothing,
    so it becomes infinity.
    """
    if isinstance(x, float):
        return x * (1 + ROOM) + FLOOR if x > 0 else 0.0 if x == 0 else math.inf
    x = np.asarray(x, dtype=float)
    if x.size > FEW:
        is_used = x != 0  # NaN as well
        if SPARSE * np.count_nonzero(is_used) < x.size:
            found = np.zeros(x.shape)
            found[is_used] = up(x[is_used])
            return found
    found = x * (1 + ROOM)
    found += FLOOR * np.sign(x)  # 0 stays 0
    # The least of numbers among which there is a NaN is NaN.
    least = np.minimum.reduce(x, axis=None, initial=0.0)
    return found if least >= 0 else np.where(x >= 0, found, math.inf)


def at_least_tiniest(x: Floats) -> Floats:
    """Raise bounds between 0 and 2⁻⁵⁰⁰ to 2⁻⁵⁰⁰ (`within_reach`); 0 stays 0."""
    found = np.array(x, dtype=float)
    found[(found > 0) & (found < TINIEST)] = TINIEST
    return found


def outwards(lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """Move ends between −2⁻⁵⁰⁰ and 2⁻⁵⁰⁰ outwards to the next of −2⁻⁵⁰⁰, 0 and 2⁻⁵⁰⁰."""
    return (
        np.where(np.abs(lo) < TINIEST, np.where(lo < 0, -TINIEST, 0.0), lo),
        np.where(np.abs(hi) < TINIEST, np.where(hi > 0, TINIEST, 0.0), hi),
    )


def compounded(*relative: Any) -> Any:
    """Return an upper bound of (1 + x)(1 + y) … − 1: relative errors of successive operations.

    Logarithms keep errors far below 2⁻⁵³, which 1 + x would lose.

    Example:
        >>> float(compounded(0.5, 1.0)) >= 2, float(compounded(2.0**-60, 2.0**-60)) < 2.0**-58
        (True, True)

    """
    return up(np.expm1(sum(np.log1p(x) for x in relative)))


def repeated(relative: Any, times: Any) -> Any:
    """Return an upper bound of (1 + x)^k − 1: the relative error of k operations."""
    return up(np.expm1(np.asarray(times, dtype=float) * np.log1p(relative)))


def widened(lo: Floats, hi: Floats, terms: Floats) -> tuple[Floats, Floats]:
    """Move the ends of a sum outwards, past the rounding errors of float64.

    Terms of both signs may cancel, so the allowance is relative to `terms`, the sum of their
    magnitudes: n terms, each a product, round by less than (n + 1) 2⁻⁵³ Σ |term|. For n above
    `MOST_TERMS`, `terms` is to be that sum times `excess`.
    """
    room = terms * ROOM
    return lo - room, hi + room


def magnitudes(lo: Floats, hi: Floats) -> Floats:
    """Return the largest |x| of lo ≤ x ≤ hi."""
    return np.maximum(np.abs(lo), np.abs(hi))
