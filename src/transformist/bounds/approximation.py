"""Constants of networks that approximate, and widths of vectors that are almost orthogonal."""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.bounds.powers import power_of_two_at_most
from transformist.errors import InvalidValue, UnknownName

GELU_PRODUCT = {"gelu": Fraction(7, 96), "gelu-tanh": Fraction(733, 10000)}
"""K with |√(π/2)(GELU(x+y) − GELU(x) − GELU(y)) − xy| ≤ K (|x| + |y|)⁴ for all x and y.

The left side is |∬ D(s + t)| over the rectangle from 0 to (x, y), D(z) = 1 − √(π/2) GELU″(z). For
x Φ(x), D(z) = 1 − e^(−z²/2)(1 − z²/2) lies in [0, z²], and the integral of (s + t)² is at most
7/96 (|x| + |y|)⁴, reached as x = y → 0. For the tanh form D(z) ≤ 1.00496 z².
"""

GELU_BEND = Fraction(1701, 10000)
"""sup |GELU(z) − ReLU(z)| = 0.16997 for x Φ(x) and 0.17004 for the tanh form, rounded up."""

ACTIVATION_SLOPES = {
    "relu": Fraction(1),
    "gelu": Fraction(1129, 1000),
    "gelu-tanh": Fraction(1129, 1000),
    "gelu-sigmoid": Fraction(11, 10),
}
"""sup |act′|: 1 for ReLU, 1.128905 for x Φ(x), 1.128994 and 1.099840 for the others, rounded up.

The slope of x Φ(x) is greatest where its derivative φ(x)(2 − x²) is 0, and Φ(√2) + √2 φ(√2) there.
"""


def gelu_product_scale(tolerance: Fraction, radius: Fraction, activation: str) -> Fraction:
    """s, the largest power of two with K s² radius⁴ ≤ tolerance, for xy = mul(sx, sy)/s².

    Args:
        tolerance: the admitted error of the product, rounding aside.
        radius: a bound of |x| + |y|.
        activation: `gelu` or `gelu-tanh`.

    Raises:
        InvalidValue: for a tolerance or a radius that is not positive.
        UnknownName: for another activation.

    Example:
        >>> gelu_product_scale(Fraction(7, 96), Fraction(8), "gelu")
        Fraction(1, 64)

    """
    if activation not in GELU_PRODUCT:
        raise UnknownName.among("GELU", activation, GELU_PRODUCT, "gelu_product_scale")
    if tolerance <= 0 or radius <= 0:
        raise InvalidValue(
            "a product of numbers with |x| + |y| ≤ radius has an error: both are positive",
            received=f"tolerance = {tolerance}, radius = {radius}",
            where="gelu_product_scale",
            remedy="give a positive tolerance such as 1/1024, and a positive radius",
        )
    square = power_of_two_at_most(tolerance / (GELU_PRODUCT[activation] * radius**4))
    exponent = square.numerator.bit_length() - square.denominator.bit_length()
    return Fraction(2) ** (exponent // 2)  # s² = 2^(2⌊k/2⌋) is the largest such square ≤ 2^k


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
