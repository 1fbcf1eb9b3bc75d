"""Error bounds of scores, from queries and keys as the weights compute them.

A score is Σ q̂ₘ k̂ₘ / √d_key. Let η and κ be the errors of queries and keys, and d the number
of coordinates where neither is 0. The score is off by at most

    Σ ηₘ |kₘ| + κₘ |qₘ| + ηₘ κₘ                what is multiplied,
    + w Σ |q̂ₘ k̂ₘ| + (d − 1) w |the sum|         products, and additions in any order,
    + u |the sum|                              where it is stored in less than it accumulates in,
    + 2u |the sum|                             the root and the quotient, but by a power of two.

The error is 0 if all products are multiples of one number that the format holds. Then equal scores
also stay equal after division by a root that is no power of two.
"""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.arithmetic import is_power_of_two
from transformist.circuit import sum_errors
from transformist.circuit.margins import Margins, RoundedHead
from transformist.circuit.readings import ScoreReading

OF_QUOTIENT = 3
"""Relative error of the root and of the quotient, in units of u: 2u, and 2u² besides."""


def one_score(margins: Margins, head: RoundedHead, scoring: ScoreReading) -> float:
    """One scaled score as a dot product, before division by √d_key."""
    return float(margins.sharpness[head]) * math.sqrt(scoring.size)


def are_finite(margins: Margins, scoring: ScoreReading) -> bool:
    """True if every query and key has an error bound."""
    return all(margins.sum_error(each) < math.inf for pair in scoring.pairs for each in pair)


def has_plain_root(scoring: ScoreReading) -> bool:
    """True if √d_key is a power of two, so that division by it does not round."""
    root = math.isqrt(scoring.size)
    return root**2 == scoring.size and is_power_of_two(Fraction(root))


def is_exact(margins: Margins, scoring: ScoreReading) -> bool:
    """True if all products are multiples of one number, and the format holds their sums."""
    # Query m is a multiple of 1/c_q and key m of 1/c_k, so their product is one of 1/(c_q c_k). All
    # products and partial sums are multiples of 1/c with c the least common multiple, and at most
    # `total` in magnitude: the significand holds them if total · c ≤ 2ᵖ.
    c, total = 1, Fraction(0)
    for pair in scoring.pairs:
        if not all(sum_errors.is_exact(margins, each) for each in pair):
            return False
        grids = [margins.grid_everywhere(each.form) for each in pair]
        if any(grid is None or grid.counts for grid in grids):
            return False
        c = math.lcm(c, math.prod(grid.c for grid in grids if grid is not None))
        sizes = [Fraction(margins.circuit.size(each.form)) for each in pair]
        total += sizes[0] * sizes[1]
    # The quotient by a root 2ᵏ is a multiple of 1/(c 2ᵏ), which must not be below the least number.
    # By a root that is no power of two the quotient rounds; equal products still give equal
    # quotients.
    root = math.isqrt(scoring.size) if has_plain_root(scoring) else 1
    a = margins.a
    fits = total * c <= 2**a.precision and c * root * Fraction(a.smallest) <= 1
    return is_power_of_two(Fraction(c)) and fits


def rounding(margins: Margins, pairs: int, products: float, top: float) -> float:
    """Error of products, of their sum, and of storing it."""
    w = margins.w
    # d − 1 additions of partial sums; with two products, the one addition rounds the score itself
    off = (pairs - 1) * w * (top if pairs == 2 else products)
    off += 0.0 if margins.is_wide else w * products
    off += margins.u * top if margins.u > w else 0.0
    # The terms above are of first order. A product passes through at most pairs + 1 roundings: its
    # own, pairs − 1 additions and the store. Each multiplies what it finds by at most 1 + u, so the
    # factor, which has pairs + 3 of them, covers all products of errors.
    return off * (1 + sum_errors.off_by(pairs + 2, max(margins.u, w)))


def underflow(margins: Margins, scoring: ScoreReading) -> float:
    """Error by underflow of products, sums, stored results and quotients."""
    a = margins.a
    # A product and an addition for each pair, then the stored dot product and the quotient. Errors
    # are counted in the dot product: a quotient that loses `smallest` loses √d_key times that of
    # it.
    partial = 2 * len(scoring.pairs) * a.smallest_partial
    return partial + a.smallest * (1 + math.sqrt(scoring.size))
