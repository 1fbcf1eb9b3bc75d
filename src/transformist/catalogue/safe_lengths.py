"""Safe lengths that recipes of several chapters share; all others stand beside their recipe.

A safe length is a length up to which a format keeps apart the scores that a head must tell apart,
or keeps counts and means near their value. u is the unit roundoff of the format, w that of its
accumulator, p its bits. A format has numbers spaced by at most 2u x at x, and two numbers that are
further apart than the spacing where they lie do not round to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from transformist.arithmetic import Arithmetic
from transformist.rounding import float_format_of


def longest(holds: Callable[[int], bool]) -> int:
    """Return the largest n for which a condition holds that fails from some n on; 0 if none.

    Example:
        >>> longest(lambda n: n * n <= 50)
        7

    """
    # The condition holds at `low` (0 counts as held) and fails at `high`, from the doubling on.
    low, high = 0, 1
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def longest_apart(x: Fraction) -> int:
    """Return the largest n with 1/n > x.

    Example:
        >>> longest_apart(Fraction(1, 8)), longest_apart(Fraction(2, 15))
        (7, 7)

    """
    # 1/n > x is n < 1/x: the largest such n is ⌈1/x⌉ − 1, also where 1/x is whole.
    return math.ceil(1 / x) - 1


def count_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the largest count of positions of a format: n w ≤ 1/16, n at most its largest number.

    Up to there `mean_error` of numbers of magnitude ≤ 1 is finite.

    Example:
        >>> [count_length(name) for name in ("float32", "float16", "float8_e4m3")]
        [1048576, 65504, 448]

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # A sum of n ones is exact in the accumulator, whose integers go on to 1/w without a gap;
    # stored, it is at most the largest number, a number of the format itself. Each step of a sum of
    # n terms is within w of itself, and all of them together are within e^(1/16 + w) − 1.
    return int(min(1 / (16 * a.accumulator_roundoff), Fraction(a.largest)))


def quadratic_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which the scores (2 q j − j²)/√2 of a quadratic lookup are largest at q.

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> quadratic_length(FLOAT16), quadratic_length(FLOAT32)
        (38, 3444)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # The best dot product is q², the next q² − 1, both integers below 2^p and exact. As scores they
    # are 1/√2 apart. For q²/√2 < 2^(p−1) the spacing is at most ½, so they stay apart. All others
    # are lower, and rounding keeps their order. q⁴ < 2 · 4^(p−1) is that condition squared.
    return math.isqrt(math.isqrt(2 * 4 ** (a.precision - 1)))


def fraction_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which scores (i/n)(j/n) of neighbouring j stay apart.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT32
        >>> fraction_length(BFLOAT16), fraction_length(FLOAT32)
        (64, 4194304)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # The scores of a row share fl(i/n), and j/n of neighbours are in a ratio of at least
    # 1 + 1/(n − 1). Each score has two more roundings of u relative to itself, of j/n and of the
    # product, so that the ratio stays above 1 where 1/(n − 1) > ((1 + u)/(1 − u))² − 1 =
    # 4u/(1 − u)²: n − 1 < (1 − u)²/(4u).
    u = a.unit_roundoff
    by_rounding = math.ceil((1 - u) ** 2 / (4 * u))
    # Products that underflow are more than 1/(4n²) apart before they are stored, for u ≤ 1/8: no
    # less than the least number of the format, for n² at most a quarter of its inverse.
    return min(by_rounding, math.isqrt(int(1 / (4 * Fraction(a.smallest)))))


def nearest_active_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which scores a ± j/n of active positions stay apart: 1/n > 3u.

    Example:
        >>> from transformist.arithmetic import BFLOAT16
        >>> nearest_active_length(BFLOAT16)
        85

    """
    # fl(j/n) is within u/2 of j/n, so sums of neighbours are at least 1/n − u apart. Sums in [0, 2]
    # round to multiples of 2u or less: those more than 2u apart before that stay apart.
    a = float_format_of(arithmetic)
    return None if a is None else longest_apart(3 * a.unit_roundoff)
