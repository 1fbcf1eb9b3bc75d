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
from typing import TYPE_CHECKING

from transformist.arithmetic import is_power_of_two
from transformist.circuit import sum_errors
from transformist.circuit.heads import At, Match
from transformist.circuit.readings import Scoring, Sum

if TYPE_CHECKING:
    from transformist.circuit.margins import Margins


def scores(margins: Margins, head: Match, scoring: Scoring) -> tuple[float, float, float]:
    """Bounds of scores, of their error, and of the error of quotients of exact scores."""
    if not scoring.pairs:
        return 0.0, 0.0, 0.0
    if not _are_finite(margins, scoring):
        return math.inf, math.inf, 0.0
    columns = [list(each) for each in zip(*scoring.pairs, strict=True)]
    off_q, off_k = ([margins.sum_error(each) for each in column] for column in columns)
    queries, keys = (_magnitudes(margins, column) for column in columns)
    largest = max(_dot(q, k) for q in queries for k in keys)
    lost, off, divided = _underflow(margins, scoring), 0.0, 0.0
    if not _is_exact(margins, scoring):
        off = max(_dot(off_q, k) for k in keys) + max(_dot(off_k, q) for q in queries)
        off += _dot(off_q, off_k) + lost
        off += _rounding(margins, len(scoring.pairs), largest, largest)
    if not _has_plain_root(scoring):
        divided = _OF_QUOTIENT * margins.u * largest + lost
    unit = _unit(margins, head, scoring) / sum_errors.SLACK
    return largest / unit, off / unit, divided / unit


def at_scores(margins: Margins, head: At, scoring: Scoring) -> float:
    """Error bound of the index and of the scores of positions, in positions.

    A score is A (2 q j − w j²), q = w times the index; divided by A w, w at least 1/D, the products
    are at most 2 |index| N and N², and their sum is as `top` says, 0 ≤ j ≤ N.
    """
    if len(scoring.pairs) != 2 or not _are_finite(margins, scoring):
        return math.inf
    n = float(margins.circuit.longest)
    times = 1.0 if head.unit.is_constant else float(margins.most)
    place, square = scoring.pairs
    if place[1].form.atoms != head.place.atoms:
        place, square = square, place
    off, unit = 0.0, _unit(margins, head, scoring)
    for query, key in scoring.pairs:
        off += margins.sum_error(key) * sum_errors.magnitude_of(margins, query) * times
    rows = margins.circuit.rows(head.index)
    low = min(min(float(row.lo) for row in rows) * times, 0.0)
    high = max(max(float(row.hi) for row in rows) * times, n)
    top = max(n**2 - 2 * n * low, 2 * n * high - n**2)
    products = n**2 + 2 * n * max(high, -low)
    largest = 2 * max(high, -low) * unit / _factor(place[1])
    off += _error_of(margins, place[0], head, largest) * _factor(place[1]) / 2
    off += (
        _error_of(margins, square[0], head, unit / _factor(square[1])) * _factor(square[1]) * n**2
    )
    lost = _underflow(margins, scoring) * times
    if not _is_exact(margins, scoring):
        off += unit * _rounding(margins, len(scoring.pairs), products, top) + lost
    if not _has_plain_root(scoring):
        off += unit * _OF_QUOTIENT * margins.u * top + lost
    return off / unit * sum_errors.SLACK


_OF_QUOTIENT = 3
"""Relative error of the root and of the quotient, in units of u: 2u, and 2u² besides."""


def _unit(margins: Margins, head: Match | At, scoring: Scoring) -> float:
    """One scaled score as a dot product, before division by √d_key."""
    return float(margins.sharpness[head]) * math.sqrt(scoring.size)


def _factor(key: Sum) -> float:
    """How often a key is the place, or its square."""
    return abs(float(key.form.terms[0][1]))


def _error_of(margins: Margins, query: Sum, head: At, largest: float) -> float:
    """Error bound of a query; of D times the query where a unit is 1/D."""
    if head.unit.is_constant:
        return margins.sum_error(query)
    own = margins.scaled_rounding(query, head.unit, largest)
    return margins.inherited(query.form, "scaled") + own


def _magnitudes(margins: Margins, sums: list[Sum]) -> list[list[float]]:
    """Largest magnitude of each sum, at each kind of row."""
    errors = [margins.sum_error(each) for each in sums]
    rows = [margins.circuit.rows(each.form) for each in sums]
    kinds = range(len(margins.circuit.alphabet) + margins.circuit.bos)
    return [
        [float(row[kind].size) + error for row, error in zip(rows, errors, strict=True)]
        for kind in kinds
    ]


def _are_finite(margins: Margins, scoring: Scoring) -> bool:
    return all(margins.sum_error(each) < math.inf for pair in scoring.pairs for each in pair)


def _has_plain_root(scoring: Scoring) -> bool:
    """True if √d_key is a power of two, so that division by it does not round."""
    root = math.isqrt(scoring.size)
    return root**2 == scoring.size and is_power_of_two(Fraction(root))


def _is_exact(margins: Margins, scoring: Scoring) -> bool:
    """True if all products are multiples of one number, and the format holds their sums."""
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
    root = math.isqrt(scoring.size) if _has_plain_root(scoring) else 1
    a = margins.a
    fits = total * c <= 2**a.precision and c * root * Fraction(a.smallest) <= 1
    return is_power_of_two(Fraction(c)) and fits


def _rounding(margins: Margins, pairs: int, products: float, top: float) -> float:
    """Error of products, of their sum, and of storing it."""
    w = margins.w
    off = (pairs - 1) * w * (top if pairs == 2 else products)
    off += 0.0 if margins.is_wide else w * products
    off += margins.u * top if margins.u > w else 0.0
    return off * (1 + sum_errors.off_by(pairs + 2, max(margins.u, w)))


def _underflow(margins: Margins, scoring: Scoring) -> float:
    """Error by underflow of products, sums, stored results and quotients."""
    a = margins.a
    partial = 2 * len(scoring.pairs) * a.smallest_partial
    return partial + a.smallest * (1 + math.sqrt(scoring.size))


def _dot(x: list[float], y: list[float]) -> float:
    return sum(a * b if a and b else 0.0 for a, b in zip(x, y, strict=True))
