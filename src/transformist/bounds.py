"""Constants and error bounds, each derived from ranges, separations, lengths and tolerances."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Floating, number_system, rational
from transformist.errors import InvalidValue
from transformist.model import FeedForward, FeedForwardStack, Sublayer, rationals

FloatArray = NDArray[np.float64]


def power_of_two_at_most(x: Fraction) -> Fraction:
    """The largest power of two that is at most x > 0.

    Powers of two are exact in every binary format, and so are products with them.

    Raises:
        InvalidValue: for x ≤ 0.

    Example:
        >>> power_of_two_at_most(Fraction(1, 1000))
        Fraction(1, 1024)

    """
    if x <= 0:
        raise InvalidValue(
            "a power of two lies below positive numbers only",
            received=str(x),
            where="power_of_two_at_most",
            remedy="give a positive number",
        )
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= x else power / 2


GELU_PRODUCT = {"gelu": Fraction(7, 96), "gelu-tanh": Fraction(733, 10000)}
"""K with |√(π/2)(GELU(x+y) − GELU(x) − GELU(y)) − xy| ≤ K (|x| + |y|)⁴ for all x and y.

The left side is |∬ D(s + t)| over the rectangle from 0 to (x, y), D(z) = 1 − √(π/2) GELU″(z). For
x Φ(x), D(z) = 1 − e^(−z²/2)(1 − z²/2) lies in [0, z²], and the integral of (s + t)² is at most
7/96 (|x| + |y|)⁴, reached as x = y → 0. For the tanh form D(z) ≤ 1.00496 z².
"""

GELU_BEND = Fraction(1701, 10000)
"""sup |GELU(z) − ReLU(z)| = 0.16997 for x Φ(x) and 0.17004 for the tanh form, rounded up."""


def gelu_product_scale(tolerance: Fraction, radius: Fraction, activation: str) -> Fraction:
    """s, the largest power of two with K s² radius⁴ ≤ tolerance, for xy = mul(sx, sy)/s².

    Args:
        tolerance: the admitted error of the product, rounding aside.
        radius: a bound of |x| + |y|.
        activation: `gelu` or `gelu-tanh`.

    """
    square = tolerance / (GELU_PRODUCT[activation] * radius**4)
    return power_of_two_at_most(Fraction(math.isqrt(int(square * 2**200)), 2**100))


def relu_by_gelu_scale(tolerance: Fraction) -> Fraction:
    """c, the least power of two with GELU_BEND / c ≤ tolerance, for ReLU(x) ≈ GELU(cx)/c."""
    return 1 / power_of_two_at_most(tolerance / GELU_BEND)


def step_zone(max_length: int) -> Fraction:
    """s, the largest power of two that is at most 1/(N + 1).

    A mean over i + 1 ≤ N + 1 positions of integers is 0 or at least s in magnitude.

    Example:
        >>> step_zone(1000)
        Fraction(1, 1024)

    """
    return power_of_two_at_most(Fraction(1, max_length + 1))


def sharpness(gap: tuple[Any, int], max_length: int, tolerance: Any) -> Fraction:
    """1/τ for softmax in place of hard attention without ties (section 5.7).

    With s = gap/√d_key, a row of at most N scores gives all but (N − 1) e^(−s/τ) of its weight to
    its maximum (Lemma 5.3, whose exact form is smaller); this 1/τ makes that at most the tolerance.

    Args:
        gap: the least difference between the best dot product and the next, and d_key.
        max_length: N, the most positions that a row attends to.
        tolerance: the weight that may go elsewhere, between 0 and 1.

    Raises:
        InvalidValue: for a gap that is not positive, or a tolerance that is not between 0 and 1.

    Returns:
        A number of 4 significant bits, so that every format holds it exactly, and products of it
        with small integers.

    Example:
        >>> sharpness((Fraction(1), 1), 64, Fraction(1, 8))
        Fraction(13, 2)

    """
    dot, d_key = _positive_gap(gap)
    wanted = _log(max(max_length - 1, 1) / _share(tolerance))
    return _rounded_up(wanted * math.sqrt(d_key) / dot)


def _positive_gap(gap: tuple[Any, int]) -> tuple[Fraction, int]:
    """A gap of dot products with its d_key, both positive."""
    try:
        dot, d_key = rational(gap[0]), int(gap[1])
    except (TypeError, ValueError, IndexError, ArithmeticError):
        dot, d_key = Fraction(0), 0
    if dot <= 0 or d_key < 1:
        raise InvalidValue(
            "a gap is a pair: a positive difference of dot products, and d_key",
            received=repr(gap)[:60],
            where="bounds",
            remedy="give one such as (1, 2), or that of recipe.gap(n)",
        )
    return dot, d_key


def _share(tolerance: Any) -> Fraction:
    try:
        share = rational(tolerance)
    except (TypeError, ValueError, ArithmeticError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise InvalidValue(
            "the tolerance, a share of the weight, is between 0 and 1",
            received=f"tolerance = {str(tolerance)[:40]}",
            where="bounds",
            remedy="give one such as 1/4",
        )
    return share


def quadratic_sharpness(tolerance: Any) -> Fraction:
    """1/τ for softmax in a quadratic lookup (5.3.4), the same for every length.

    The scores lie m²/√2 below the best, m the distance of the positions, so that the weight
    elsewhere is at most 2x/(1 − x³) with x = e^(−1/(τ√2)): at most the tolerance with this 1/τ.

    Example:
        >>> quadratic_sharpness(Fraction(1, 4))
        Fraction(3, 1)

    """
    least = _log(2 / _share(tolerance))
    return _rounded_up((least - math.log1p(-math.exp(-3 * least))) * math.sqrt(2))


def underflow_sharpness(
    gap: tuple[Any, int], largest: Any, arithmetic: Arithmetic | str
) -> Fraction:
    """1/τ, a power of two, with which e^(−gap/(τ√d_key)) rounds to 0 in the format (5.7).

    Softmax, which subtracts the maximum, is then average-hard attention: every score below the
    maximum gets weight 0, equal ones get equal weights.

    Args:
        gap: the least difference between the best dot product and the next, and d_key.
        largest: the largest magnitude of a dot product, which says how much scores round.
        arithmetic: the format.

    Raises:
        InvalidValue: when the format does not resolve the gap beside the largest dot product, or
            the scores overflow.

    Example:
        >>> from transformist.arithmetic import FLOAT16
        >>> underflow_sharpness((Fraction(1), 1), Fraction(1), FLOAT16)
        Fraction(32, 1)

    """
    dot, d_key = _positive_gap(gap)
    largest, arithmetic = rational(largest), number_system(arithmetic)
    if not isinstance(arithmetic, Floating):
        raise InvalidValue(
            "numbers underflow in a float format",
            received=arithmetic.name,
            where="underflow_sharpness",
            remedy="give float64, float32, float16 or bfloat16",
        )
    share = 10 * arithmetic.unit_roundoff * largest / dot  # of the gap, lost to rounding
    least = 1 - math.log(arithmetic.smallest) + math.log(2)
    scale = Fraction(0)
    if share < 1:
        wanted = Fraction(least * math.sqrt(d_key)) / (dot * (1 - share))
        scale = 1 / power_of_two_at_most(1 / wanted)
    if not scale or scale * largest >= Fraction(arithmetic.largest) / 4:
        raise InvalidValue(
            f"{arithmetic.name} holds the scores and resolves their gap",
            received=f"a gap of {dot} beside dot products of {largest}, d_key = {d_key}",
            where="underflow_sharpness",
            remedy="build it for fewer positions, or use a wider format",
        )
    return scale


def _log(x: Fraction) -> float:
    """ln x, of numbers that float64 may not hold."""
    return math.log(x.numerator) - math.log(x.denominator)


def _rounded_up(x: Any) -> Fraction:
    """The least number of 4 significant bits that is at least x > 0, with some room; else 1."""
    if x <= 0:
        return Fraction(1)
    value = Fraction(float(x)) * (1 + Fraction(1, 2**40))
    step = power_of_two_at_most(value) / 8
    return -(-value // step) * step


def almost_orthogonal_dimension(max_length: int, epsilon: Fraction) -> int:
    """m such that N random vectors of ±1 have |x · y| ≤ ε m for x ≠ y, with probability ≥ ½.

    By Hoeffding a pair fails with probability at most 2 e^(−ε² m/2), and there are N(N − 1)/2
    pairs: m ≥ (2/ε²) ln(2 N(N − 1)).

    Example:
        >>> almost_orthogonal_dimension(64, Fraction(1, 4))
        288

    """
    pairs = max(max_length * (max_length - 1), 1)
    return max(1, math.ceil(2 / epsilon**2 * Fraction(math.log(2 * pairs))))


def printed_dimension(max_length: int, epsilon: Fraction, k: Fraction) -> int:
    """m = ⌈12 k ε⁻² ln 2N⌉, Eq. 38, enough with probability at least 1 − N^(−k) for k ≥ 2/5.

    Raises:
        InvalidValue: for k < 2/5, where that is not shown, and false for k = 1/5 and N = 256.

    Example:
        >>> printed_dimension(64, Fraction(1, 4), Fraction(1))
        932

    """
    if k < Fraction(2, 5):
        raise InvalidValue(
            "Eq. 38 is shown for k ≥ 2/5; for small k the vectors fail more often than it says",
            received=f"k = {k}",
            where="printed_dimension",
            remedy="give k of at least 2/5, or use almost_orthogonal_dimension",
        )
    return math.ceil(12 * k / epsilon**2 * Fraction(math.log(2 * max_length)))


def mean_error(n: int, size: Fraction, arithmetic: Arithmetic) -> float:
    """How far a mean computed by attention can be from the mean of n numbers of magnitude ≤ size.

    The count is stored (u), each weight 1/n is rounded (u, or half the least number where it
    underflows), the dot product accumulates n terms from left to right ((1 + w)^(n+1) − 1), and the
    result is stored (u). Each weight, and each product, may underflow. Infinite where the result
    may overflow.
    """
    if not isinstance(arithmetic, Floating):
        return 0.0
    u, w = float(arithmetic.unit_roundoff), float(arithmetic.accumulator_roundoff)
    relative = math.expm1(2 * math.log1p(u) - math.log1p(-u) + (n + 1) * math.log1p(w))
    if max(size * (1 + Fraction(relative)), Fraction(n)) >= Fraction(arithmetic.largest):
        return math.inf
    underflow = arithmetic.smallest * (n * float(size) + 1) + n * arithmetic.smallest_partial
    return (float(size) * relative + underflow) * _SLACK


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
    """n up to which scores (i/n)(j/n) of neighbouring j stay apart.

    Relative to the larger, neighbours are at least 1/n apart. A score has three roundings of u
    relative to itself (of i/n, of j/n, of their product), so two keep their order where
    6u(1 + u)³ < 1/n, as for n ≤ 1/(16u).

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT32
        >>> fraction_length(BFLOAT16), fraction_length(FLOAT32)
        (16, 1048576)

    """
    if not isinstance(arithmetic, Floating):
        return None
    return int(1 / (16 * arithmetic.unit_roundoff))


def tie_break_length(*, term: str, arithmetic: Arithmetic) -> int | None:
    """n up to which scores (s + t(j))/√2 of neighbouring j stay apart, for s of 0 and 1.

    The terms ±1/j of neighbours differ by at least 1/n², ±j/n by 1/n. Scores of magnitude at most
    2/√2 have five roundings of u (the term, the sum, its store, the root, the quotient), so two
    keep their order where 20u(1 + u)⁵ is below that, as for 1/(32u) ≥ n², or n.
    """
    if not isinstance(arithmetic, Floating):
        return None
    steps = int(1 / (32 * arithmetic.unit_roundoff))
    return steps if term.endswith("n") else math.isqrt(steps)


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


RECENCY_GAP = Fraction(9, 4)
"""A gap g with 2/(e^g − 1) ≤ 1/4.

Where the m-th best position scores m g less than the best, and at most two positions share an m,
all of them together have at most 2 (e^−g + e^−2g + …) = 2/(e^g − 1) of its weight.
"""


def recency_sharpness(max_length: int, d_key: int) -> Fraction:
    """s, the least power of two such that scores s · j/n /√d_key are `2 · 9/4` apart for n ≤ N.

    Half of it is left to the rounding of scores.

    Example:
        >>> recency_sharpness(1024, d_key=1)
        Fraction(8192, 1)

    """
    square = (2 * RECENCY_GAP * max_length) ** 2 * d_key
    root = math.isqrt(math.ceil(square) - 1) + 1
    return 1 / power_of_two_at_most(Fraction(1, root))


def recency_length(arithmetic: Arithmetic) -> int | None:
    """The largest power of two n with 1/n > 7u: scores (m + j/n)/√d_key, m ∈ {0, 1}, then differ.

    Of a score, in units of 1/√d_key, fl(j/n) is within u/2, the sum u, the quotient 2u.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> recency_length(FLOAT32)
        2097152

    """
    u = arithmetic.unit_roundoff
    return None if u == 0 else int(1 / (8 * u))


def softened_recency_length(arithmetic: Arithmetic, d_key: int) -> int:
    """The largest power of two N with 1/N ≥ 16u whose scores, at most 2 s(N), do not overflow."""
    if not isinstance(arithmetic, Floating):
        return 0
    length = int(1 / (16 * arithmetic.unit_roundoff))
    while length and 2 * recency_sharpness(length, d_key) > arithmetic.largest:
        length //= 2
    return length


def softmax_error(n: int, scores: float, remainder: Fraction, arithmetic: Arithmetic) -> float:
    """How far the rounding of softmax can move a mean of values in [0, 1] fetched from one place.

    A score rounds at most four times (product, store, root, quotient), the difference from the
    maximum once more: δ ≤ 10u(1 + u)⁴ times the largest score. The weight elsewhere, relative to
    that of the place, grows by at most e^δ; the exponential (2u), the sum (n + 1 of w, one of u),
    the quotient and the store move the mean by as much of itself.

    Args:
        n: how many positions there are.
        scores: a bound of the magnitude of the scores.
        remainder: a bound of the weight elsewhere, relative to that of the place.
        arithmetic: the number system.

    """
    if not isinstance(arithmetic, Floating):
        return 0.0
    u, w = float(arithmetic.unit_roundoff), float(arithmetic.accumulator_roundoff)
    delta = 10 * u * (1 + u) ** 4 * scores
    if delta > 1:
        return math.inf
    relative = math.expm1(7 * u + 2 * (n + 2) * math.log1p(w))
    moved = float(remainder) * math.expm1(delta)
    return (moved + (1 + moved) * relative + 3 * n * arithmetic.smallest) * _SLACK


def rounding_error(
    network: FeedForward | FeedForwardStack | Sublayer, x: Any, arithmetic: Arithmetic
) -> FloatArray:
    """How far the network's value in `arithmetic` can be from its real value, for given inputs.

    A running error analysis of the very order of operations of the reference: with w the unit
    roundoff of the accumulator, a dot product of t terms has relative error (1 + w)^(t+1) − 1 of
    the sum of magnitudes, the stored result u of itself; ReLU passes errors on, GELU at most
    1.13 times.

    Args:
        network: the weights.
        x: inputs that the format represents, shape (cases, d).
        arithmetic: the number system; the bound is 0 in one that does not round.

    Returns:
        Bounds of shape (cases, d_out); infinite where an intermediate result may overflow.

    """
    start = np.asarray(x, dtype=np.float64)
    if not isinstance(arithmetic, Floating):
        width = network.width_out
        return np.zeros((start.shape[0], width))
    if isinstance(network, Sublayer):
        if not isinstance(network.function, FeedForward) or network.pre_norm or network.post_norm:
            raise InvalidValue(
                "a rounding error is bounded for feed-forward networks without a norm",
                received=type(network.function).__name__,
                where="rounding_error",
                remedy="bound the parts one by one",
            )
        value, error = _network(network.function, start, np.zeros_like(start), arithmetic)
        return _stored(value + start, error, arithmetic, arithmetic.unit_roundoff) * _SLACK
    parts = network.parts if isinstance(network, FeedForwardStack) else (network,)
    value, error = start, np.zeros_like(start)
    for part in parts:
        value, error = _network(part, value, error, arithmetic)
    return error * _SLACK


_SLACK = 1 + 1e-9
"""Covers the rounding of the bound itself, which is computed in float64 from positive terms."""

_GELU_SLOPE = 1.13
_GELU_ROUNDINGS = 8


def _network(
    network: FeedForward, x: FloatArray, error: FloatArray, a: Floating
) -> tuple[FloatArray, FloatArray]:
    """The real values of y, to float64, and a bound of the error of its computed values."""
    h, error = _affine(network.W_1, network.b_1, x, error, a)
    if network.activation != "relu":
        rounding = _GELU_ROUNDINGS * float(a.unit_roundoff)
        error = _GELU_SLOPE * error + rounding * (np.abs(h) + error) + _GELU_ROUNDINGS * a.smallest
    h = np.asarray(
        FeedForward(W_1=np.eye(h.shape[1]), W_2=np.eye(h.shape[1]), activation=network.activation)(
            h
        )
    )
    return _affine(network.W_2, network.b_2, h, error, a)


def _affine(
    W: Any, b: Any, x: FloatArray, error: FloatArray, a: Floating
) -> tuple[FloatArray, FloatArray]:
    exact_W, exact_b = W.astype(np.float64), b.astype(np.float64)
    near_W, near_b = a.numbers(a.array(W)), a.numbers(a.array(b))
    off_W = np.abs(rationals(near_W) - rationals(W)).astype(np.float64)
    off_b = np.abs(rationals(near_b) - rationals(b)).astype(np.float64)
    lost = np.asarray(~np.isfinite(error).all(axis=1))
    error = np.where(lost[:, None], 0.0, error)
    size = np.abs(x) + error
    magnitude = size @ np.abs(near_W).T + np.abs(near_b)
    terms = np.count_nonzero(near_W, axis=1) + 1
    w = float(a.accumulator_roundoff)
    total = error @ np.abs(near_W).T + size @ off_W.T + off_b
    total = total + magnitude * np.expm1((terms + 1) * np.log1p(w))
    total = total + terms * a.smallest_partial
    value = x @ exact_W.T + exact_b
    total = total + magnitude * terms * 2.0**-52
    # a partial sum may overflow the accumulator though the whole is small
    total[lost] = np.inf
    total[magnitude + total >= float(np.finfo(a.accumulator).max)] = np.inf
    narrow = a.unit_roundoff if a.unit_roundoff > a.accumulator_roundoff else Fraction(0)
    return value, _stored(value, total, a, narrow)


def _stored(value: FloatArray, error: FloatArray, a: Floating, u: Fraction) -> FloatArray:
    """The error after storing a value: infinite where the value may overflow the format."""
    size = np.abs(value) + error
    fits = size < a.largest
    return np.where(fits, error + float(u) * np.where(fits, size, 0.0) + a.smallest, np.inf)
