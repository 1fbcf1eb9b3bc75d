"""Lengths up to which a format keeps scores apart, and counts and means what they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from transformist.arithmetic import Arithmetic, Floating
from transformist.bounds.rounding import float_format_of, mean_error
from transformist.bounds.temperatures import recency_sharpness


def count_length(arithmetic: Arithmetic | str) -> int | None:
    """How many positions the format counts: the longest n ≤ its largest number with n w ≤ 1/16.

    A sum of n ones is exact in the accumulator, whose integers go on to 1/w without a gap; stored,
    it is at most the largest number, a number of the format itself. So `mean_error` of numbers of
    magnitude ≤ 1 is finite: each step of the sum of n terms is within w of itself, and all of them
    together are within e^(1/16 + w) − 1.

    Example:
        >>> [count_length(name) for name in ("float32", "float16", "float8_e4m3")]
        [1048576, 65504, 448]

    """
    a = float_format_of(arithmetic)
    return None if a is None else int(min(1 / (16 * a.accumulator_roundoff), Fraction(a.largest)))


def mean_length(arithmetic: Arithmetic | str) -> int | None:
    """A length up to which a mean of numbers of magnitude ≤ 1 has an error below 1/8.

    The longest n ≤ `count_length` with `mean_error` below 1/8, which grows with n: at most
    (1 + u)²/(1 − u) · (1 + w)^(n+1) − 1, and what underflows. For u ≤ 1/256 the former is below
    (1 + 1/84)(1 + 1/15) − 1 < 1/12, as n w ≤ 1/16, and the latter, n + 1 times the least number,
    below 1/255 in float16 and less elsewhere: all of `count_length` is admitted. It is 0 where u is
    too large for n = 1 already: in 8 bits (1 + u)²/(1 − u) − 1 is above 1/5.

    Example:
        >>> [mean_length(name) for name in ("float32", "float16", "bfloat16", "float8_e4m3")]
        [1048576, 65504, 1048576, 0]

    """
    count = count_length(arithmetic)
    if count is None:
        return None
    return _longest(lambda n: n <= count and mean_error(n, Fraction(1), arithmetic) < 1 / 8)


def quadratic_length(arithmetic: Arithmetic | str) -> int | None:
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
    a = float_format_of(arithmetic)
    if a is None:
        return None
    return math.isqrt(math.isqrt(2 * 4 ** (a.precision - 1)))


def fraction_length(arithmetic: Arithmetic | str) -> int | None:
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
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u = a.unit_roundoff
    by_rounding = math.ceil((1 - u) ** 2 / (4 * u))
    return min(by_rounding, math.isqrt(int(1 / (4 * Fraction(a.smallest)))))


def tie_break_length(*, term: str, arithmetic: Arithmetic | str) -> int | None:
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
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u = a.unit_roundoff
    if term.endswith("n"):
        return _longest_apart(5 * u)
    pairs = _longest_apart(5 * u / 2)
    longest = (1 + math.isqrt(1 + 4 * pairs)) // 2
    return longest if u < Fraction(1, 30) else min(longest, 2)


def nearest_active_length(arithmetic: Arithmetic | str) -> int | None:
    """n up to which scores a ± j/n of active positions stay apart: the longest with 1/n > 3u.

    fl(j/n) is within u/2 of j/n, and sums in [0, 2] round to multiples of 2u or less. Sums that
    are more than 2u apart before that last rounding stay apart, and they are 1/n − u apart.

    Example:
        >>> from transformist.arithmetic import BFLOAT16
        >>> nearest_active_length(BFLOAT16)
        85

    """
    a = float_format_of(arithmetic)
    return None if a is None else _longest_apart(3 * a.unit_roundoff)


def quadratic_count_length(arithmetic: Arithmetic | str) -> int | None:
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
    a = float_format_of(arithmetic)
    if a is None:
        return None
    return math.isqrt(int(1 / (6 * a.unit_roundoff + 9 * a.accumulator_roundoff)))


def scaled_quadratic_length(arithmetic: Arithmetic | str) -> int | None:
    """n up to which C ≤ n is looked up from [x C, x], whatever x ≥ 1/n: the key of j is [2j, −j²].

    In units of x the dot product of j = C + m is C² − m². With u' = u where sums accumulate in a
    wider format, else 0, and w as elsewhere: the two numbers of the query are stored (u), which
    moves the difference of C and j by at most u (m² + 4C|m|); the products and their sum round in
    the accumulator, the sum is stored, and its quotient by √2 too: the score of j is A(j) times a
    number within g = (1 + w)(1 + u')(1 + u) − 1 of 1, where A(j), with w (1 + u)(2Cj + j²) for the
    products, is within e (3C² + 4Cm + m²) of C² − m², e = u + w (1 + u). That of C is positive; it
    is more than those with A(j) ≤ 0, among them all j > 2C, as 2C (1 + u) ≤ (2C + 1)(1 − u) and
    rounding keeps the order of the products. For |m| ≤ C and A(j) > 0,

        A(C) − A(j) ≥ m²(1 − u) − 4C|m| u − w (1 + u)(6C² + 4C|m| + m²),
        A(C) + A(j) ≤ 2C² − m² + e (6C² + 4C|m| + m²),

    and C scores more than j if the former exceeds g times the latter, for which m = 1 and C = n is
    the worst case: divided by |m|, one side grows with it and the other shrinks. Nothing underflows
    that matters, and 1/n, n² and all scores are in range, as 4n²u < 1. One position is always
    found.

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> scaled_quadratic_length(FLOAT16), scaled_quadratic_length(FLOAT32)
        (22, 1294)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u, w = a.unit_roundoff, a.accumulator_roundoff
    g = (1 + w) * (1 + u) * (1 + (u if w < u else 0)) - 1
    k = w * (1 + u) + g * (u + w * (1 + u))
    n = math.isqrt(int(1 / (2 * g + 6 * k)))
    while n > 1 and u + 4 * n * u + k * (6 * n * n + 4 * n + 1) + 2 * g * n * n >= 1:
        n -= 1
    return max(n, 1)


def hash_range_length(arithmetic: Arithmetic | str) -> int | None:
    """n up to which LN([x C, x, −x C, −x]) neither under- nor overflows, 1/n ≤ x, x C ≤ n.

    The squares sum to at most 2(n² + 1), with ten roundings, and the larger two are at least 1/n²:
    that is at least the least normal number of the format.

    Example:
        >>> from transformist.arithmetic import FLOAT16
        >>> hash_range_length(FLOAT16)
        128

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u = a.unit_roundoff
    normal = Fraction(a.smallest) / (2 * u)
    squares = Fraction(a.largest) / (2 * (1 + u) ** 10) - 1
    return math.isqrt(int(min(1 / normal, squares)))


def recency_length(arithmetic: Arithmetic | str) -> int | None:
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
    a = float_format_of(arithmetic)
    return None if a is None else _longest_apart(5 * a.unit_roundoff)


def softened_recency_length(arithmetic: Arithmetic | str, d_key: int) -> int:
    """The largest power of two N with 1/N ≥ 16u whose scores, at most 2 s(N), do not overflow."""
    a = float_format_of(arithmetic)
    if a is None:
        return 0
    length = int(1 / (16 * a.unit_roundoff))
    while length and 2 * recency_sharpness(length, d_key) > a.largest:
        length //= 2
    return length


def layernorm_hash_gap(n: int) -> Fraction:
    """A rational just below the least difference of lh(q) · lh(q) and lh(q) · lh(j), j ≠ q ≤ n.

    lh(q) has norm 2 and the direction of (q, 1) twice, and the directions of neighbours are nearest
    at n: with M = n(n − 1) + 1 and (n² + 1)((n − 1)² + 1) = M² + 1, the difference is
    4(1 − M/√(M² + 1)) = 4/(√(M² + 1)(√(M² + 1) + M)), at least 2/(M² + 1), at most 2/M².

    Example:
        >>> layernorm_hash_gap(10)
        Fraction(1, 4141)

    """
    return Fraction(2, (n * (n - 1) + 1) ** 2 + 1)


def layernorm_hash_length(arithmetic: Arithmetic | str) -> int | None:
    """n up to which layernorm-hash-lookup finds its position.

    Sums over pairs x, −x are 0 exactly, so a norm divides by a root. With v = u where sums are
    stored in a narrower format than they accumulate in, else 0, and to first order, relatively:
    the first norm's divisor is off by (u + 2w + v)/2 + u (squares, two inexact sums, a store; the
    root), its quotients by u more, a in all. The hashes are 8/10 of the variance of the second, so
    that a key comes out of it off by 0.6a + 0.4a, and by (2u + 8w + v)/2 + u of its divisor, and u
    of the quotient: ρ = 11u/2 + 5w + v in all. This moves its product with the query, which is 4,
    by 4ρ; four products and two inexact sums move it by 12w; two products keep their order when
    stored if they differ by 8v, the spacing above 4.
    The query moves both products alike, but for the quotients, off by 2u each: with s = sin(θ/2)
    for the angle θ between (q, 1) and (j, 1), the products differ by 8s² and the hashes by 4s, so
    by 16u s; the rounding of 1/j turns a key by at most u/2, which is 4u s. The difference
    8s² − 20u s grows with s, and s ≥ 1/(2√(M² + 1)), M as in `layernorm_hash_gap`. So
    2/(M² + 1) > (1 + 64u)(8ρ + 24w + 8v + 11u/M) is enough, the factor being for higher orders.

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> layernorm_hash_length(FLOAT16), layernorm_hash_length(FLOAT32)
        (3, 24)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u, w = a.unit_roundoff, a.accumulator_roundoff
    moved = 44 * u + 64 * w + 16 * (u if u > w else 0)
    n = 0
    while layernorm_hash_gap(n + 1) > (1 + 64 * u) * (moved + 11 * u / (n * (n + 1) + 1)):
        n += 1
    return n


def balance_length(arithmetic: Arithmetic | str) -> int | None:
    """The longest N, one less than a power of two, for which running means of ±1 part 0 from ≥ s.

    s = 1/(N + 1) is the least magnitude of a mean that is not 0. A mean that is 0 is computed as
    exactly 0 where the accumulator holds every multiple of a rounded weight (2 w (N + 1) ≤ u),
    and within u N/4 < s/4 of it where sums round in the format itself (2 u (N + 1)² ≤ 1). A step
    from 0 at s/4 to 1 at 3s/4 is the difference of numbers of at most 1/s, so that its 1 is within
    u/s ≤ 1/4 of 1 (4 u (N + 1) ≤ 1).

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT32
        >>> balance_length(BFLOAT16), balance_length(FLOAT32)
        (63, 2047)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u = a.unit_roundoff
    power = min(int(1 / (4 * u)), _rows_of_zero_sums(a, lambda rows: 2 * u * rows**2 <= 1))
    return power - 1


def balance_check_length(arithmetic: Arithmetic | str) -> int | None:
    """n up to which running means of ±1, and means of their negative parts, part 0 from (n + 1)⁻².

    A mean that is 0 is computed as exactly 0 where the accumulator holds every multiple of a
    rounded weight (2 w (n + 1) ≤ u), and within u n/4 of it where sums round in the format itself:
    then half of (n + 1)⁻² is more, with an eighth left to the second mean, for u n (n + 1)² ≤ 7/4.
    What is not 0 keeps more than half of itself through five roundings of u ≤ 1/8, if it does not
    underflow: 4 · smallest ≤ (n + 1)⁻².

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT16, FLOAT32
        >>> [balance_check_length(each) for each in (BFLOAT16, FLOAT16, FLOAT32)]
        [32767, 2047, 307]

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u, least = a.unit_roundoff, Fraction(a.smallest)
    if u == a.accumulator_roundoff:
        return _longest(lambda n: u * n * (n + 1) ** 2 <= Fraction(7, 4))
    rows = _rows_of_zero_sums(a, lambda _: False)
    while 4 * least * rows**2 > 1 or rows > a.largest:
        rows //= 2
    return rows - 1


def _rows_of_zero_sums(arithmetic: Floating, otherwise: Callable[[int], bool]) -> int:
    """The most rows, a power of two, over which ±1 that cancel have a mean of 0, or nearly so.

    Exactly 0 where the accumulator is wider than the format; `otherwise` says when it is near
    enough in a format that accumulates in itself.
    """
    u, w = arithmetic.unit_roundoff, arithmetic.accumulator_roundoff
    holds = otherwise if w == u else (lambda rows: 2 * w * rows <= u)
    rows = 1
    while holds(2 * rows):
        rows *= 2
    return rows


def _longest_apart(x: Fraction) -> int:
    """The longest n with 1/n > x."""
    return math.ceil(1 / x) - 1


def _longest(holds: Callable[[int], bool]) -> int:
    """The largest n for which a condition holds that fails from some n on."""
    low, high = 0, 1
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
