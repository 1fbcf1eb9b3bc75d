"""Lengths up to which a format keeps scores apart, and counts and means what they are."""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.arithmetic import Arithmetic, Floating
from transformist.bounds.temperatures import recency_sharpness


def mean_length(arithmetic: Arithmetic) -> int | None:
    """A length up to which a mean of numbers of magnitude ≤ 1 has an error below 1/8.

    At most 2^(p − 4) with p the precision of the accumulator, and at most the largest number of the
    format, which counts the positions.
    """
    if not isinstance(arithmetic, Floating):
        return None
    by_rounding = 1 / (16 * arithmetic.accumulator_roundoff)
    return int(min(by_rounding, Fraction(arithmetic.largest)))


def quadratic_length(arithmetic: Arithmetic) -> int | None:
    """n up to which the scores (2 q j − j²)/√2 of a quadratic lookup have one maximum, at j = q.

    The best dot product is q², the next q² − 1, both integers below 2^p and exact. As scores they
    are 1/√2 apart, and two numbers further apart than the spacing of the format do not round to
    one: q²/√2 < 2^(p−1), where the spacing is at most ½. All others are lower, and rounding keeps
    their order.

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> quadratic_length(FLOAT16), quadratic_length(FLOAT32)
        (38, 3444)

    """
    if not isinstance(arithmetic, Floating):
        return None
    return math.isqrt(math.isqrt(2 * 4 ** (arithmetic.precision - 1)))


def fraction_length(arithmetic: Arithmetic) -> int | None:
    """n up to which scores (i/n)(j/n) of neighbouring j stay apart: n − 1 < (1 − u)²/(4u).

    The scores of a row share fl(i/n), and j/n of neighbours are in a ratio of at least
    1 + 1/(n − 1). Each score has two more roundings of u relative to itself, of j/n and of the
    product, so that the ratio stays above 1 where 1/(n − 1) > ((1 + u)/(1 − u))² − 1 =
    4u/(1 − u)². Products that underflow are more than 1/(4n²) apart before they are stored, for
    u ≤ 1/8: no less than the least number of the format, for n² at most a quarter of its inverse.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT32
        >>> fraction_length(BFLOAT16), fraction_length(FLOAT32)
        (64, 4194304)

    """
    if not isinstance(arithmetic, Floating):
        return None
    u = arithmetic.unit_roundoff
    by_rounding = math.ceil((1 - u) ** 2 / (4 * u))
    return min(by_rounding, math.isqrt(int(1 / (4 * Fraction(arithmetic.smallest)))))


def tie_break_length(*, term: str, arithmetic: Arithmetic) -> int | None:
    """n up to which scores (s + t(j))/√2, s of 0 and 1, keep their order.

    It is the longest n with 1/n > 5u for t = ±j/n, with 2/(n(n − 1)) > 5u for t = ±1/j.

    Two numbers further apart than the spacing of a format round to different ones. For ±j/n, sums
    differ by 1/n or more, by 1/n − u with t as rounded (within u/2). They are stored as multiples
    of 2u, or of less, within u of themselves: more than 2u apart where 1/n > 5u, which is at least
    4u in multiples of 2u. Divided by fl(√2) < 2 they are more than 2u apart, the spacing above 1.

    For ±1/j sums differ by g = 1/(n(n − 1)) or more, by g − u/2 with t as rounded (within u/4, 1
    being exact). For −1/j sums are at most 1 in magnitude, stored as multiples of u within u/2 of
    themselves, and more than u apart where g > 5u/2: at least 2u; quotients are below 1, where the
    spacing is at most u, and more than that apart. For 1/j and s = 1 sums are stored within u:
    distinct multiples of 2u, as their differences are above 0 by the same g > 5u/2; quotients are
    below 1 from j = 3 on, since 4/3 < √2, and before that differ by more than 2u by themselves,
    1/6 being above 5u for u < 1/30 (n ≤ 2 elsewhere). For s = 0, t of neighbours are in a ratio of
    1 + 1/(n − 1) or more, above ((1 + u)/(1 − u))² since 1/(n − 1) > 5nu/2.

    Example:
        >>> from transformist.arithmetic import FLOAT16
        >>> tie_break_length(term="i/n", arithmetic=FLOAT16)
        409
        >>> tie_break_length(term="-1/i", arithmetic=FLOAT16)
        29

    """
    if not isinstance(arithmetic, Floating):
        return None
    u = arithmetic.unit_roundoff
    if term.endswith("n"):
        return math.ceil(1 / (5 * u)) - 1
    pairs = math.ceil(2 / (5 * u)) - 1
    longest = (1 + math.isqrt(1 + 4 * pairs)) // 2
    return longest if u < Fraction(1, 30) else min(longest, 2)


def nearest_active_length(arithmetic: Arithmetic) -> int | None:
    """n up to which scores a ± j/n of active positions stay apart: the longest with 1/n > 3u.

    fl(j/n) is within u/2 of j/n, and sums in [0, 2] round to multiples of 2u or less. Sums that
    are more than 2u apart before that last rounding stay apart, and they are 1/n − u apart.

    Example:
        >>> from transformist.arithmetic import BFLOAT16
        >>> nearest_active_length(BFLOAT16)
        85

    """
    u = arithmetic.unit_roundoff
    return None if u == 0 else -int(-1 // (3 * u)) - 1


def quadratic_count_length(arithmetic: Arithmetic) -> int | None:
    """The longest n with n² (6u + 9w) ≤ 1, up to which a count C ≤ n is looked up as itself.

    In units of 1/(n + 1), scores 2Ci − i² are at most n² in magnitude; C and C ± 1 score 1 apart.
    The share of ones is within (w C/2 + u) of itself, which moves the difference by 2C times that;
    each score has two products and a sum, rounded in the accumulator (w: 2n² + n² + n²), then is
    stored and divided by √2 (u: 2n²).

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> quadratic_count_length(FLOAT32)
        1057

    """
    if not isinstance(arithmetic, Floating):
        return None
    return math.isqrt(int(1 / (6 * arithmetic.unit_roundoff + 9 * arithmetic.accumulator_roundoff)))


def recency_length(arithmetic: Arithmetic) -> int | None:
    """The longest n with 1/n > 5u: scores (m + j/n)/√d_key, m ∈ {0, 1}, 0 ≤ j ≤ n, then differ.

    In order they begin with m = 0, j = 0, …, n, and go on with m = 1. Sums differ by 1/n, by more
    than 4u with fl(j/n), which is within u/2 and is the sum where m = 0. For m = 1 they are stored
    within u of themselves, more than 2u apart, so at least 4u, as multiples of 2u. Where the larger
    of two neighbours is x ≤ 2 (≤ 1 for m = 0) and c = fl(√d_key) ≥ 1, quotients are 4u/c apart or
    more, which is no less than 2u x/c, and that no less than the spacing at x/c.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> recency_length(FLOAT32)
        3355443

    """
    u = arithmetic.unit_roundoff
    return None if u == 0 else math.ceil(1 / (5 * u)) - 1


def softened_recency_length(arithmetic: Arithmetic, d_key: int) -> int:
    """The largest power of two N with 1/N ≥ 16u whose scores, at most 2 s(N), do not overflow."""
    if not isinstance(arithmetic, Floating):
        return 0
    length = int(1 / (16 * arithmetic.unit_roundoff))
    while length and 2 * recency_sharpness(length, d_key) > arithmetic.largest:
        length //= 2
    return length
