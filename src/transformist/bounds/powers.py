"""Powers of two and short numbers, which every format holds, on the safe side of a real number."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from transformist.errors import InvalidValue

SLACK = 1 + 1e-9
"""For the rounding of a bound itself, where it is computed in float64 from positive terms."""


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


def log(x: Fraction) -> float:
    """ln x, of numbers that float64 may not hold."""
    return math.log(x.numerator) - math.log(x.denominator)


def rounded_up(x: Any) -> Fraction:
    """The least number of 4 significant bits that is at least x > 0, with some room; else 1."""
    if x <= 0:
        return Fraction(1)
    value = Fraction(x) * (1 + Fraction(1, 2**40))
    step = power_of_two_at_most(value) / 8
    return -(-value // step) * step
