"""Softmax in place of hard attention (section 5.7): 1/τ from gap, length and tolerance."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from transformist.arithmetic import SYSTEMS, Arithmetic, number_system, rational, whole_number
from transformist.errors import InvalidValue
from transformist.rounding.arguments import NOT_NEGATIVE, SHARE, required
from transformist.rounding.float_format import float_format_of
from transformist.rounding.powers import log, power_of_two_at_most, rounded_up


def sharpness(gap: tuple[Any, int], max_length: int, tolerance: Any) -> Fraction:
    """Return 1/τ for softmax in place of hard attention without ties (section 5.7).

    A row of at most N scores then gives all but the tolerance of its weight to its maximum.

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
    # With s = dot/√d_key each other score lies at least s below the maximum, so the weight
    # elsewhere is at most (N − 1) e^(−s/τ) (Lemma 5.3, whose exact form is smaller). That is at
    # most the tolerance where s/τ ≥ ln((N − 1)/tolerance).
    wanted = log(max(max_length - 1, 1) / required_share(tolerance, "sharpness"))
    return rounded_up(Fraction(wanted * math.sqrt(d_key)) / dot)


def softmax_remainder(gap: Any, n: int) -> float:
    """Return the largest ‖hardmax(s) − softmax(s)‖₁ of n scores with one maximum and gap g.

    The exact form of Lemma 5.3, 2(n − 1) e^−g/(1 + (n − 1) e^−g), rounded up.

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
    # With r = Σ e^(sⱼ − max) over the others, at most (n − 1) e^−g, the others have r/(1 + r) of
    # the weight and the maximum lacks as much: 2r/(1 + r), which grows with r. The largest r is
    # reached where all others lie g below the maximum.
    others = (n - 1) * Fraction(_power_above(g))
    return float(2 * others / (1 + others)) * _ROOM


def printed_remainder(gap: Any, n: int) -> float:
    """Return 2n e^−g, the bound of `softmax_remainder` printed in Lemma 5.3, rounded up.

    Example:
        >>> printed_remainder(2, 5) > 1.9 * softmax_remainder(2, 5)
        True

    """
    power = Fraction(_power_above(_score_gap(gap, n, "printed_remainder")))
    # 2¹⁰⁰⁰ stands for every larger bound, so that `float` does not overflow.
    return float(min(2 * n * power, Fraction(2) ** 1000)) * _ROOM


_ROOM = 1 + 1e-12
"""Factor that covers the rounding of e^−g and of what is made of it."""
# Rounding g ≤ 745 to float64 moves it by at most 745 · 2⁻⁵³ = 8.3e−14, and e^−g by as much of
# itself; the operations after it add a few 2⁻⁵³.


def _power_above(g: Fraction) -> float:
    """Return e^−g, rounded up, also where it underflows."""
    return math.exp(-float(min(g, Fraction(800)))) * _ROOM + 4 * math.ulp(0.0)


def _score_gap(gap: Any, n: int, where: str) -> Fraction:
    must = "n must be a whole number of at least 1"
    whole_number(n, 1, must, where=where, remedy="give the number of scores")
    remedy = "give the difference of the largest score and the next"
    return required(
        "gap", gap, NOT_NEGATIVE, meaning="a difference of scores", where=where, remedy=remedy
    )


def underflow_sharpness(
    gap: tuple[Any, int], largest: Any, arithmetic: Arithmetic | str
) -> Fraction:
    """Return 1/τ, a power of two, with which e^(−gap/(τ√d_key)) rounds to 0 in the format (5.7).

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
    where = "underflow_sharpness"
    dot, d_key = _positive_gap(gap, where)
    remedy = "give a bound of |q · k|"
    largest = required(
        "largest",
        largest,
        NOT_NEGATIVE,
        meaning="a magnitude of dot products",
        where=where,
        remedy=remedy,
    )
    a = float_format_of(arithmetic)
    if a is None:
        formats = [name for name in SYSTEMS if float_format_of(name) is not None]
        raise InvalidValue(
            "the arithmetic must be a float format, in which numbers underflow",
            received=number_system(arithmetic).name,
            where=where,
            remedy=f"give {', '.join(formats[:-1])} or {formats[-1]}",
        )
    # Rounding takes at most 10u of the largest score from the gap (see `softmax_error`). e^−x
    # rounds to 0 below half the smallest number: x > ln 2 − ln smallest, and 1 more to spare.
    lost_share = 10 * a.unit_roundoff * largest / dot
    least = 1 - math.log(a.smallest) + math.log(2)
    scale = Fraction(0)
    if lost_share < 1:
        wanted = Fraction(least * math.sqrt(d_key)) / (dot * (1 - lost_share))
        scale = 1 / power_of_two_at_most(1 / wanted)
    # Differences of two scores stay below half of the largest number.
    if not scale or scale * largest >= Fraction(a.largest) / 4:
        raise InvalidValue(
            f"{a.name} must hold the scores, and the gap must stay above their rounding",
            received=f"a gap of {dot} beside dot products of {largest}, d_key = {d_key}",
            where=where,
            remedy="build it for fewer positions, or use a wider format",
        )
    return scale


def _positive_gap(gap: tuple[Any, int], where: str) -> tuple[Fraction, int]:
    """Return a gap of dot products with its d_key, both positive."""
    try:
        dot, d_key = rational(gap[0]), int(gap[1])
    except (TypeError, ValueError, IndexError, ArithmeticError):
        dot, d_key = Fraction(0), 0
    if dot <= 0 or d_key < 1:
        raise InvalidValue(
            "gap must be a pair: a positive difference of dot products, and d_key",
            received=repr(gap)[:60],
            where=where,
            remedy="give one such as (1, 2), or recipe.gap(n)",
        )
    return dot, d_key


def required_share(tolerance: Any, where: str) -> Fraction:
    """Return a tolerance, a share of the weight of a row.

    Raises:
        InvalidValue: if the argument is not a number between 0 and 1.

    """
    remedy = "give one such as 1/4"
    return required(
        "tolerance", tolerance, SHARE, meaning="a share of the weight", where=where, remedy=remedy
    )
