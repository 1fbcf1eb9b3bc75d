"""Powers of two and short numbers, which every format holds, on the safe side of a real number."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from transformist.errors import InvalidValue

SLACK = 1 + 1e-9
"""Factor that covers the rounding of a bound itself, computed in float64 from positive terms."""
# A bound of k float64 operations on terms of one sign, none of which cancels, is off by at most
# (1 + 2⁻⁵³)ᵏ − 1 ≈ 1.1e−16 k of itself. 1e-9 covers k up to nine million; no bound takes as many.

UNDERFLOW = 2.0**-1000
"""Term of a bound that covers all that underflows where the bound is computed in float64."""
# A product or a stored number that underflows is off by at most 2⁻¹⁰⁷⁴, which is no small share of
# it, so SLACK does not cover it. No sum of a bound has as many as 2⁷⁴ terms.


def power_of_two_at_most(x: Fraction) -> Fraction:
    """Return the largest power of two that is at most x > 0.

    Powers of two are exact in every binary format, and so are products with them.

    Raises:
        InvalidValue: for x ≤ 0.

    Example:
        >>> power_of_two_at_most(Fraction(1, 1000))
        Fraction(1, 1024)

    """
    if x <= 0:
        raise InvalidValue(
            "x must be greater than 0, as every power of two is",
            received=str(x),
            where="power_of_two_at_most",
            remedy="give a positive number",
        )
    # A numerator of a bits and a denominator of b bits: 2^(a−1−b) < x < 2^(a−b+1). So the power
    # is 2^(a−b) or half of it.
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= x else power / 2


def log(x: Fraction) -> float:
    """Return ln x of a positive rational whose parts float64 may not hold."""
    return math.log(x.numerator) - math.log(x.denominator)


def rounded_up(x: Any) -> Fraction:
    """Return the least number of 4 significant bits that is at least x > 0 (1 for x ≤ 0).

    x counts as 2⁻⁴⁰ of itself larger, which covers the rounding of an x computed in float64.
    """
    if x <= 0:
        return Fraction(1)
    value = Fraction(x) * (1 + Fraction(1, 2**40))
    # value lies in [8, 16] steps, so a whole number of steps has 4 bits; 16 steps have one.
    step = power_of_two_at_most(value) / 8
    return -(-value // step) * step
