"""1/τ from gap, length and tolerance (section 5.7)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from transformist.arithmetic import SYSTEMS, Arithmetic, is_whole, number_system, rational
from transformist.bounds.powers import log, power_of_two_at_most, rounded_up
from transformist.bounds.rounding import float_format_of
from transformist.errors import InvalidValue


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
    dot, d_key = _positive_gap(gap, "sharpness")
    wanted = log(max(max_length - 1, 1) / _share(tolerance, "sharpness"))
    return rounded_up(Fraction(wanted * math.sqrt(d_key)) / dot)


def softmax_remainder(gap: Any, n: int) -> float:
    """The largest ‖hardmax(s) − softmax(s)‖₁ over n scores with one maximum and gap g (Lemma 5.3).

    With r = Σ e^(sⱼ − max) over the others, at most (n − 1) e^−g, the others have r/(1 + r) of the
    weight, and the maximum lacks as much: 2r/(1 + r), which grows with r. So the largest is
    2(n − 1) e^−g/(1 + (n − 1) e^−g), reached where all others lie g below; rounded up.

    Args:
        gap: g ≥ 0, of scores (after 1/√d_key).
        n: how many scores there are.

    Raises:
        InvalidValue: for g < 0 or n < 1.

    Example:
        >>> round(softmax_remainder(2, 5), 9), softmax_remainder(2, 1)
        (0.702428711, 0.0)

    """
    g = _score_gap(gap, n, "softmax_remainder")
    others = (n - 1) * Fraction(_power_above(g))
    return float(2 * others / (1 + others)) * _ROOM


def printed_remainder(gap: Any, n: int) -> float:
    """2n e^−g, the bound of `softmax_remainder` printed in Lemma 5.3; rounded up.

    Example:
        >>> printed_remainder(2, 5) > 1.9 * softmax_remainder(2, 5)
        True

    """
    power = Fraction(_power_above(_score_gap(gap, n, "printed_remainder")))
    return float(min(2 * n * power, Fraction(2) ** 1000)) * _ROOM


_ROOM = 1 + 1e-12
"""For the rounding of g, which e^−g shows up to 745 times enlarged, and of what follows."""


def _power_above(g: Fraction) -> float:
    """e^−g, rounded up, where it underflows too."""
    return math.exp(-float(min(g, Fraction(800)))) * _ROOM + 4 * math.ulp(0.0)


def _score_gap(gap: Any, n: int, where: str) -> Fraction:
    try:
        g = rational(gap)
    except (TypeError, ValueError, ArithmeticError):
        g = Fraction(-1)
    if g < 0 or not is_whole(n, 1):
        raise InvalidValue(
            "softmax is near hardmax for n ≥ 1 scores with a gap of at least 0",
            received=f"gap = {gap!s:.40}, n = {n!r:.40}",
            where=where,
            remedy="give the difference of the largest score and the next",
        )
    return g


def quadratic_sharpness(tolerance: Any) -> Fraction:
    """1/τ for softmax in a quadratic lookup (5.3.4), the same for every length.

    The scores lie m²/√2 below the best, m the distance of the positions, so that the weight
    elsewhere is at most 2x/(1 − x³) with x = e^(−1/(τ√2)): at most the tolerance with this 1/τ.

    Example:
        >>> quadratic_sharpness(Fraction(1, 4))
        Fraction(3, 1)

    """
    least = log(2 / _share(tolerance, "quadratic_sharpness"))
    return rounded_up((least - math.log1p(-math.exp(-3 * least))) * math.sqrt(2))


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
    dot, d_key = _positive_gap(gap, "underflow_sharpness")
    largest, a = _magnitude(largest, "underflow_sharpness"), float_format_of(arithmetic)
    if a is None:
        formats = [name for name in SYSTEMS if float_format_of(name) is not None]
        raise InvalidValue(
            "numbers underflow in a float format",
            received=number_system(arithmetic).name,
            where="underflow_sharpness",
            remedy=f"give {', '.join(formats[:-1])} or {formats[-1]}",
        )
    share = 10 * a.unit_roundoff * largest / dot  # of the gap, lost to rounding
    least = 1 - math.log(a.smallest) + math.log(2)
    scale = Fraction(0)
    if share < 1:
        wanted = Fraction(least * math.sqrt(d_key)) / (dot * (1 - share))
        scale = 1 / power_of_two_at_most(1 / wanted)
    if not scale or scale * largest >= Fraction(a.largest) / 4:
        raise InvalidValue(
            f"{a.name} holds the scores and resolves their gap",
            received=f"a gap of {dot} beside dot products of {largest}, d_key = {d_key}",
            where="underflow_sharpness",
            remedy="build it for fewer positions, or use a wider format",
        )
    return scale


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


def _positive_gap(gap: tuple[Any, int], where: str) -> tuple[Fraction, int]:
    """A gap of dot products with its d_key, both positive."""
    try:
        dot, d_key = rational(gap[0]), int(gap[1])
    except (TypeError, ValueError, IndexError, ArithmeticError):
        dot, d_key = Fraction(0), 0
    if dot <= 0 or d_key < 1:
        raise InvalidValue(
            "a gap is a pair: a positive difference of dot products, and d_key",
            received=repr(gap)[:60],
            where=where,
            remedy="give one such as (1, 2), or that of recipe.gap(n)",
        )
    return dot, d_key


def _magnitude(given: Any, where: str) -> Fraction:
    try:
        value = rational(given)
    except (TypeError, ValueError, ArithmeticError):
        value = Fraction(-1)
    if value < 0:
        raise InvalidValue(
            "the largest magnitude of a dot product is a number of at least 0",
            received=repr(given)[:60],
            where=where,
            remedy="give a bound of |q · k|",
        )
    return value


def _share(tolerance: Any, where: str) -> Fraction:
    try:
        share = rational(tolerance)
    except (TypeError, ValueError, ArithmeticError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise InvalidValue(
            "the tolerance, a share of the weight, must be between 0 and 1",
            received=f"tolerance = {str(tolerance)[:40]}",
            where=where,
            remedy="give one such as 1/4",
        )
    return share
