"""Index lookup: each position fetches the value at the position it asks for (section 5.3).

A list of vectors holds, at each position i, a query qᵢ, the position i itself, both coded, and a
value vᵢ; the head gives v at qᵢ.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any

import numpy as np

from transformist.arithmetic import Arithmetic, Floating
from transformist.assembly import soften
from transformist.catalogue.attention import HARD, each
from transformist.catalogue.positions import almost_orthogonal, on_the_circle, require_size
from transformist.catalogue.safe_lengths import quadratic_length
from transformist.claims import NO_SOFTMAX, SequenceClaim, recipe
from transformist.domains import Feature, Query, Reals, Sequences, Values
from transformist.errors import InvalidValue
from transformist.model import Attention
from transformist.rounding import float_format_of, rounded_up, softmax_error
from transformist.rounding.float_format import storing_roundoff
from transformist.rounding.powers import log
from transformist.theory.softening import required_share

_VALUE = Values("v", Reals(1))


def looked_up(*, q: list[int], v: list[tuple[F, ...]]) -> list[list[F]]:
    """Return v at position q, the definition."""
    return [list(v[position - 1]) for position in q]


def coded_positions(code: Any, width: int, label: str, value: Values = _VALUE) -> Sequences:
    """Return queries and positions in one code, of this width, side by side, and values."""
    return Sequences((Query(code, width), Feature(label, code, width), value))


def one_hot(*, max_length: int, value: Values = _VALUE) -> Sequences:
    """Return queries and positions as one-hot vectors of N coordinates."""

    def code(i: int, _n: int) -> list[int]:
        return [int(k == i) for k in range(1, max_length + 1)]

    return coded_positions(code, max_length, "eⱼ", value)


def match_codes(width: int, weighting: str) -> Attention:
    """Return the head of W_Q = [I 0 0], W_K = [0 I 0], W_V = [0 0 1] (Eq. 36)."""
    # The score of query and key is the dot product of their codes; the value is the last number.
    # Each matrix is written in place: for N = 1,024 it has 2 million entries, which copies double.
    W_Q, W_K = np.zeros((2, width, 2 * width + 1))
    W_V = np.zeros((1, 2 * width + 1))
    np.fill_diagonal(W_Q, 1)
    np.fill_diagonal(W_K[:, width:], 1)
    W_V[0, -1] = 1
    return Attention(W_Q=W_Q, W_K=W_K, W_V=W_V, weighting=weighting)


@recipe(
    "one-hot-lookup",
    section="5.3.1",
    claim=SequenceClaim(
        statement="yᵢ = v at position qᵢ, positions as one-hot vectors",
        reference=looked_up,
        domain=lambda *, max_length: one_hot(max_length=max_length),
        why_safe="scores are 1/√N and 0",
        weightings=HARD,
        mask="none",
        gap=lambda *, max_length: (F(1), max_length),
        gap_statement="1/√N",
        variants=(*each("weighting", HARD), {"max_length": 1}, {"max_length": 11}),
        depends_on=("N",),
        size="width 2N + 1",
    ),
    sources=("the gap is printed as 1, which is that of the dot products",),
    errata=("one-hot-gap",),
)
def one_hot_lookup(max_length: int = 64, weighting: str = "average-hard") -> Attention:
    """The dot product of the one-hot vectors of qᵢ and j is [j = qᵢ]."""
    require_size(max_length, 2 * max_length + 1, "one-hot-lookup")
    return match_codes(max_length, weighting)


def _near(*, max_length: int, epsilon: F, width: int | None, seed: int) -> Sequences:
    family = almost_orthogonal(max_length, epsilon, width, seed)
    return coded_positions(lambda i, _n: family[i - 1], len(family[0]), "xⱼ")


def _near_gap(*, max_length: int, epsilon: F, width: int | None, seed: int) -> tuple[F, int]:
    m = len(almost_orthogonal(max_length, epsilon, width, seed)[0])
    return m * (1 - epsilon), m


def _near_length(
    *, max_length: int, epsilon: F, width: int | None, seed: int, arithmetic: Arithmetic
) -> int | None:
    m = len(almost_orthogonal(max_length, epsilon, width, seed)[0])
    if not isinstance(arithmetic, Floating):
        return None
    # Partial sums of m products ±1 are whole numbers of at most m ≤ 1/w, which the accumulator
    # holds.
    return None if m <= min(1 / arithmetic.accumulator_roundoff, F(arithmetic.largest)) else 0


@recipe(
    "almost-orthogonal-lookup",
    section="5.3.2",
    claim=SequenceClaim(
        statement="yᵢ = v at position qᵢ, positions as the vectors of position-almost-orthogonal",
        reference=looked_up,
        domain=_near,
        safe_length=_near_length,
        why_safe="dot products are m and at most ε m < m/2, whole numbers that the accumulator "
        "holds exactly (m ≤ 2^p) and the format does not overflow: rounding keeps their order",
        weightings=HARD,
        mask="none",
        gap=_near_gap,
        gap_statement="at least (1 − ε) √m, (1 − ε)/√m with vectors of norm 1",
        variants=(*each("weighting", HARD), {"max_length": 12, "epsilon": "2/5", "width": 40}),
        depends_on=("N",),
        size="width 2m + 1, m = ⌈(2/ε²) ln(2 N(N − 1))⌉, or as set",
    ),
    errata=(
        "almost-orthogonal-gap",
        "almost-orthogonal-probability",
        "almost-orthogonal-dimension",
    ),
)
def almost_orthogonal_lookup(
    max_length: int = 64,
    epsilon: F = F(1, 4),
    width: int | None = None,
    seed: int = 0,
    weighting: str = "average-hard",
) -> Attention:
    """The dot product of the vectors of qᵢ and j is m for j = qᵢ, at most ε m elsewhere."""
    return match_codes(len(almost_orthogonal(max_length, epsilon, width, seed)[0]), weighting)


def _as_number(i: int, _n: int) -> tuple[int]:
    return (i,)


def _quadratic(value: Values) -> Sequences:
    features = tuple(Feature.of(name) for name in ("1", "i", "i^2"))
    return Sequences((Query(_as_number), *features, value))


@recipe(
    "quadratic-lookup",
    section="5.3.4",
    claim=SequenceClaim(
        statement="yᵢ = v at position qᵢ, positions as i and i²",
        reference=looked_up,
        domain=lambda: _quadratic(_VALUE),
        safe_length=lambda *, arithmetic: quadratic_length(arithmetic),
        why_safe="bounds.quadratic_length",
        weightings=HARD,
        mask="none",
        gap=lambda: (F(1), 2),
        gap_statement="1/√2",
        variants=each("weighting", HARD),
    ),
    sources=(
        "the gap is printed as 1, which is that of the dot products",
        "keys may be scaled by a common positive factor only, not by one that depends on j",
    ),
    errata=("quadratic-scaled-keys", "quadratic-gap", "quadratic-precision"),
)
def quadratic_lookup(weighting: str = "average-hard") -> Attention:
    """The score (2 qᵢ j − j²)/√2 is largest at j = qᵢ."""
    # 2 q j − j² = q² − (q − j)²: the next best position scores 1 less before division.
    return Attention(
        W_Q=[[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]],
        W_K=[[0, 0, 2, 0, 0], [0, 0, 0, -1, 0]],
        W_V=[[0, 0, 0, 0, 1]],
        weighting=weighting,
    )


def quadratic_sharpness(tolerance: Any) -> F:
    """Return 1/τ for softmax in a quadratic lookup (5.3.4), the same for every length.

    Example:
        >>> quadratic_sharpness(F(1, 4))
        Fraction(3, 1)

    """
    # The position at distance m scores m²/√2 below the best: m² times as far as the next one.
    share = required_share(tolerance, "quadratic_sharpness")
    return rounded_up(quadratic_exponent(share) * math.sqrt(2))


def quadratic_exponent(tolerance: F) -> float:
    """Return c such that e^(−c m²), summed over positions at distances m ≥ 1, is ≤ the tolerance.

    Example:
        >>> round(quadratic_exponent(F(1, 4)), 3)
        2.081

    """
    # With x = e^(−c) the sum is at most 2(x + x⁴ + x⁹ + …) ≤ 2x/(1 − x³), as two positions lie at
    # each distance. With x = (t/2)(1 − (t/2)³), t the tolerance, that is at most t; −ln x =
    # ln(2/t) − ln(1 − e^(−3 ln(2/t))).
    least = log(2 / tolerance)
    return least - math.log1p(-math.exp(-3 * least))


def _soft_scores(n: int, tolerance: F) -> float:
    """Return a bound of the scores of a soft lookup, sharpness included."""
    # |2 q j − j²| ≤ n² for q, j ≤ n, and division by √2 makes it less.
    return float(quadratic_sharpness(tolerance)) * n * n


def _soft_rounding(n: int, tolerance: F, arithmetic: Arithmetic) -> float:
    return softmax_error(n, _soft_scores(n, tolerance), tolerance, arithmetic)


def _soft_length(*, arithmetic: Arithmetic, tolerance: F) -> int | None:
    """Return a length, a power of two, up to which rounding moves a soft lookup by at most 1/8."""
    if not isinstance(arithmetic, Floating):
        return None
    longest = 0
    # The error grows with n, so the first power of two beyond 1/8 ends the search.
    while _soft_rounding(2 * longest or 1, tolerance, arithmetic) <= 1 / 8:
        longest = 2 * longest or 1
    return longest


def _soft_error(*, n: int, arithmetic: Arithmetic, tolerance: F) -> F | float:
    return tolerance + _soft_rounding(n, tolerance, arithmetic)


def require_share(tolerance: F, where: str) -> None:
    """Refuse a tolerance that every mean of values in [0, 1] is within.

    Raises:
        InvalidValue: for a tolerance of 1 or more.

    """
    if tolerance >= 1:
        raise InvalidValue(
            "the tolerance must be below 1, the largest value",
            received=f"tolerance = {float(tolerance):g}" if tolerance < 2**1000 else "a huge one",
            where=where,
            remedy="give one such as 1/4",
        )


@recipe(
    "quadratic-lookup-soft",
    section="5.7",
    claim=SequenceClaim(
        statement="|yᵢ − v at position qᵢ| ≤ the tolerance, for v in [0, 1] and every length",
        reference=looked_up,
        domain=lambda: _quadratic(Values("v", Reals(1, F(0), F(1)))),
        error=_soft_error,
        error_statement="the tolerance, and bounds.softmax_error",
        safe_length=_soft_length,
        why_safe="up to there rounding moves the result by at most 1/8 (bounds.softmax_error)",
        weightings=("softmax",),
        mask="none",
        gap=lambda *, tolerance: (quadratic_sharpness(tolerance), 2),
        gap_statement="(1/τ)/√2 with 1/τ from bounds.quadratic_sharpness",
        excluded={"exact": NO_SOFTMAX},
        variants=({"tolerance": "1/100"},),
    ),
    sources=("the weight elsewhere is at most 2x/(1 − x³), x = e^(−1/(τ√2)): no N is needed",),
    errata=("quadratic-gap", "softmax-to-hardmax"),
)
def quadratic_lookup_soft(tolerance: F = F(1, 4)) -> Attention:
    """quadratic-lookup with W_Q times 1/τ."""
    require_share(tolerance, "quadratic-lookup-soft")
    return soften(quadratic_lookup.build(), quadratic_sharpness(tolerance))


# 3.5.2: counting modulo m


def _circle(*, period: int) -> Sequences:
    def cosine(i: int, _n: int) -> tuple[F]:
        return (on_the_circle(i, period)[0],)

    def sine(i: int, _n: int) -> tuple[F]:
        return (on_the_circle(i, period)[1],)

    return Sequences((Feature("cos 2πi/m", cosine), Feature("sin 2πi/m", sine), _VALUE))


def _circle_length(*, period: int, arithmetic: Arithmetic) -> int | None:
    """Return None, for every length, if the format tells neighbours on the circle apart; else 0."""
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # Positions that are equal modulo m have equal codes, and so equal scores, bit for bit. The dot
    # product with another key is less by 1 − cos θ = 2s², s = sin(θ/2) ≥ sin(π/m) ≥ 2/m. To first
    # order it is moved by the rounding of two keys (2u), of the query (u times their distance 2s),
    # of products and sums (2w each, so 4w), by storing (2v, the spacing above 1, v being u where
    # sums are stored in a narrower format, else 0) and by the division by √2 (2u). What is left,
    # 2s² − 2us − 4u − 4w − 2v, grows with s from u/2 on; 1 + 64u is for higher orders.
    u, w = a.unit_roundoff, a.accumulator_roundoff
    moved = (1 + 64 * u) * (4 * u + 4 * w + 2 * storing_roundoff(a) + 4 * u / period)
    return None if F(8, period**2) > moved else 0


@recipe(
    "modulo-by-sinusoids",
    section="3.5.2",
    claim=SequenceClaim(
        statement="yᵢ = v at position 1 + (i − 1) mod m: i mod m for vⱼ = j mod m, j ≤ m",
        reference=lambda *, v, n, period: [list(v[i % period]) for i in range(n)],
        domain=_circle,
        safe_length=_circle_length,
        why_safe="scores of positions that are equal modulo m are equal bit for bit, those of "
        "others lower by 8/m² at least",
        weightings=("leftmost-hard",),
        mask="future",
        gap=lambda *, period: (F(7, period**2), 2),
        gap_statement="at least 7/m² over √2",
        excluded={
            "exact": "cosines are irrational, but for few m",
            "interval": "balls of equal scores overlap",
        },
        variants=({"period": 2}, {"period": 7}, {"period": 60}),
    ),
    sources=(
        "printed in a sentence: sinusoids of period m, and a lookup; PARITY is m = 2",
        "positions that are equal modulo m must have codes equal bit for bit: of i mod m, not of i",
        "the periods of the printed encoding are 2π · 10000^(2c/d), none of them a whole number",
    ),
    errata=("sinusoid-coordinates", "sinusoid-parity"),
)
def modulo_by_sinusoids(period: int = 3) -> Attention:  # noqa: ARG001 (the features have it)
    """The score cos(2π(i − j)/m)/√2 is largest at every j ≡ i; the leftmost is the first such."""
    # The weights have no m: it is in the two sinusoids, which each position has as its features.
    return Attention(
        W_Q=[[1, 0, 0], [0, 1, 0]],
        W_K=[[1, 0, 0], [0, 1, 0]],
        W_V=[[0, 0, 1]],
        weighting="leftmost-hard",
        mask="future",
    )


RECIPES = (
    one_hot_lookup,
    almost_orthogonal_lookup,
    quadratic_lookup,
    quadratic_lookup_soft,
    modulo_by_sinusoids,
)
"""Recipes of the chapter, in the order in which they are listed."""
