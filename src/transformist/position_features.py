"""Positional features: functions of a position i and the length n (section 3.5.1).

The sine and the cosine of 2πi/L are irrational for nearly every i. The position functions of their
names are rational: each value is the multiple of 2⁻¹² (`SINE_STEP`) that is nearest to the sine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from transformist.deferred import Library
from transformist.errors import UndefinedValue

if TYPE_CHECKING:
    import flint
else:
    flint = Library("flint")

PositionFunction: TypeAlias = Callable[[int, int], Fraction | int]

SINE_STEP = Fraction(1, 2**12)
"""Step of the values of sines and cosines; each value is off by at most half of it.

It is the largest power of two with which a code of positions keeps 127/128 of its gap for every
length up to `LONGEST_WAVE` (`circuit/position_code`). Formats of 12 bits hold every value.
"""

SIGN = "(-1)^i"
"""Name of cos(2πi/2), which is 1 or −1; the sine of this wavelength is 0."""

LONGEST_WAVE = 2**16
"""The largest wavelength L; a code of positions tells this many positions apart."""


@functools.lru_cache(maxsize=2**18)
def cosine(i: int, wavelength: int) -> Fraction:
    """Return cos(2πi/L), rounded to the nearest multiple of `SINE_STEP`.

    Args:
        i: the position.
        wavelength: L, a power of two.

    Example:
        >>> cosine(0, 8), cosine(1, 8), cosine(2, 8)
        (Fraction(1, 1), Fraction(181, 256), Fraction(0, 1))

    """
    # The sine of a rational multiple of π is irrational, or 0, ±1/2 or ±1 (Niven), which are
    # multiples of the step. So none lies in the middle of two multiples, and balls of some
    # precision decide between the two.
    angle, precision = flint.fmpq(2 * (i % wavelength), wavelength), 64
    while True:
        with flint.ctx.workprec(precision):
            steps = flint.arb.cos_pi_fmpq(angle) * SINE_STEP.denominator
            nearest = (steps + flint.arb(flint.fmpq(1, 2))).floor().unique_fmpz()
        if nearest is not None:
            return int(nearest) * SINE_STEP
        precision *= 2


def _cosine(wavelength: int, i: int, _n: int) -> Fraction:
    return cosine(i % wavelength, wavelength)


def _sine(wavelength: int, i: int, _n: int) -> Fraction:
    return cosine((i - wavelength // 4) % wavelength, wavelength)


def wave_names(wavelength: int) -> tuple[str, str]:
    """Return the names of the cosine and the sine of 2πi/L, L a power of two from 4 on.

    Example:
        >>> wave_names(8)
        ('cos(2pi i/8)', 'sin(2pi i/8)')

    """
    return f"cos(2pi i/{wavelength})", f"sin(2pi i/{wavelength})"


POSITIONS: dict[str, PositionFunction] = {
    "1": lambda _i, _n: 1,
    "i": lambda i, _n: i,
    "i^2": lambda i, _n: i**2,
    "i^3": lambda i, _n: i**3,
    "1/i": lambda i, _n: Fraction(1, i),
    "-1/i": lambda i, _n: Fraction(-1, i),
    # With n = 0 there is only a symbol in front, i = 0: 0/0 is taken as the 0 of every other n.
    "i/n": lambda i, n: Fraction(i, n) if i else 0,
    "-i/n": lambda i, n: Fraction(-i, n) if i else 0,
    SIGN: lambda i, _n: (-1) ** i,
}
"""By name; i counts from 1, and a symbol that a model adds in front has i = 0."""

WAVELENGTHS: Mapping[str, int] = {
    name: 1 << k for k in range(2, LONGEST_WAVE.bit_length()) for name in wave_names(1 << k)
}
"""The wavelength of each sine and cosine, by its name; cos(2πi/2) is `SIGN`."""

WAVES: Mapping[str, PositionFunction] = {
    name: partial(_cosine if name.startswith("cos") else _sine, wavelength)
    for name, wavelength in WAVELENGTHS.items()
}
"""Sines and cosines, by name; the compiler uses them for codes of positions."""


def position(name: str, i: int, n: int) -> Fraction | int:
    """The value of a position function at (i, n).

    Raises:
        UndefinedValue: where the function has no value, as 1/i has none at i = 0.

    Example:
        >>> position("i/n", 2, 5)
        Fraction(2, 5)

    """
    try:
        return (POSITIONS.get(name) or WAVES[name])(i, n)
    except ZeroDivisionError:
        raise UndefinedValue(
            f"the position function {name} needs a divisor other than 0",
            received=f"i = {i}, n = {n}",
            where="position",
            remedy="use another position function: an added symbol in front has i = 0, and the "
            "empty input n = 0",
        ) from None
