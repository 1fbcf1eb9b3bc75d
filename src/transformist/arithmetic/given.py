"""Numbers as a user gives them, taken exactly."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import InvalidValue, NotFinite, ShapeMismatch


def exact_numbers(values: Any, where: str = "array") -> NDArray[Any]:
    """`values` exactly: float64 where every entry is one, an object array of `Fraction` elsewhere.

    Args:
        values: nested lists or an array of integers, floats, rationals, or strings such as "1/3".
        where: the name to use in a refusal.

    Raises:
        ShapeMismatch: when the rows have different lengths.
        NotFinite: for NaN or infinity.
        InvalidValue: if the argument is not a number.

    Example:
        >>> exact_numbers([[1, 0.5]])
        array([[1. , 0.5]])
        >>> exact_numbers(["1/3"])
        array([Fraction(1, 3)], dtype=object)

    """
    try:
        given = np.asarray(values)
    except ValueError:
        raise ShapeMismatch(
            "the rows of an array must have one length",
            received="rows of different lengths",
            where=where,
            remedy="make the rows equally long",
        ) from None
    except (TypeError, RuntimeError) as error:  # a tensor that numpy does not read
        raise InvalidValue(
            "an array must hold numbers that numpy reads",
            received=f"{type(values).__name__}: {error}"[:90],
            where=where,
            remedy="give a list or a numpy array; of a tensor, x.detach().double().numpy()",
        ) from None
    # numpy gives a list of mixed kinds one type, and rounds: [2**53 + 1, 0.5] to float64. An array
    # of objects keeps each number as it was given.
    if not isinstance(values, np.ndarray) and given.dtype.kind not in "iub":
        given = np.array(values, dtype=object)
    if given.dtype == np.float64 and np.isfinite(given).all():
        return given.copy(order="K")
    if given.dtype.kind == "f":
        floats = given.astype(np.float64)
        if np.isfinite(floats).all() and np.array_equal(floats, given):
            return floats
    # Every whole number up to 2⁵³ in magnitude is a float64.
    if given.dtype.kind in "iub" and (given <= 2**53).all() and (given >= -(2**53)).all():
        return given.astype(np.float64)
    flat = [_entry(value, where) for value in given.astype(object).ravel().tolist()]
    if all(map(is_float64, flat)):
        return np.array([nearest_float64(value) for value in flat]).reshape(given.shape)
    exact = np.empty(len(flat), dtype=object)
    exact[:] = flat
    return exact.reshape(given.shape)


def nearest_float64(value: Fraction) -> float:
    """The float64 nearest to a rational; ±inf beyond the largest."""
    # Python rounds the quotient of two whole numbers once, to nearest, ties to even, of any length.
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_float64(value: Fraction) -> bool:
    """True if the number is a float64."""
    ratio = p, q = value.as_integer_ratio()
    # p/2ᵏ of at most 53 bits, k < 1000, is 0 or at least 2⁻¹⁰⁰⁰ > 2⁻¹⁰²², so a normal number.
    if p.bit_length() <= 53 and q.bit_length() <= 1000:
        return q & (q - 1) == 0
    nearest = nearest_float64(value)
    return math.isfinite(nearest) and nearest.as_integer_ratio() == ratio


def rational(value: Any) -> Fraction:
    """A number, or the text of one such as "1/3" or "1e-6", exactly.

    Raises:
        ValueError, TypeError, OverflowError, ZeroDivisionError: for what is not a finite number,
            and ValueError for a text with an exponent beyond ±9999, which no format needs.
    """
    if isinstance(value, str) and _has_huge_exponent(value):
        raise ValueError
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def is_power_of_two(value: Fraction) -> bool:
    """True if a rational is 2ᵏ for a whole k.

    Example:
        >>> is_power_of_two(Fraction(1, 8)), is_power_of_two(Fraction(3))
        (True, False)

    """
    parts = value.numerator, value.denominator
    return value > 0 and all(part & (part - 1) == 0 for part in parts)


_EXPONENT = re.compile(r"[eE]([+-]?\d+(?:_\d+)*)")
"""Exponents that `Fraction` reads: digits of any script, with underscores between them."""


# `Fraction("1e1000000000")` would build a whole number of that many digits. Every format ends below
# 10³⁰⁹, and exact arithmetic of numbers beyond 10⁹⁹⁹⁹ has no use here.
def _has_huge_exponent(text: str) -> bool:
    """True if a text has an exponent beyond ±9999.

    Example:
        >>> [_has_huge_exponent(f"1e{k}") for k in ("9999", "1_0_000", "-１００００", "0001")]
        [False, True, True, False]

    """
    found = _EXPONENT.findall(text)
    return any(len(each) > 100 or abs(int(each)) > 9999 for each in found)  # int reads them too


def is_whole(value: Any, least: int) -> bool:
    """True for a whole number of at least `least`, such as a length, a width or a count.

    A Boolean is none, although Python counts with it: it is a slip for another argument.

    Example:
        >>> [is_whole(value, 1) for value in (3, np.int64(3), 0, 3.0, True)]
        [True, True, False, False, False]

    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return bool(is_integer and value >= least)


def whole_number(value: Any, least: int, invariant: str, *, where: str, remedy: str) -> int:
    """A whole number that a user gives, as an int.

    Args:
        value: what was given.
        least: the smallest that is admitted.
        invariant: what must hold, for the refusal.
        where: what takes it.
        remedy: what to do.

    Raises:
        InvalidValue: for what `is_whole` refuses.

    Example:
        >>> whole_number(True, 1, "n must be at least 1", where="f", remedy="give a length")
        Traceback (most recent call last):
        ...
        transformist.errors.InvalidValue: f: n must be at least 1; received True; give a length

    """
    if not is_whole(value, least):
        raise InvalidValue(invariant, received=f"{value!r:.40}", where=where, remedy=remedy)
    return int(value)


def in_words(value: Fraction) -> str:
    """A number that may be too large for float64."""
    size = value.numerator.bit_length() - value.denominator.bit_length()
    if size > 100:
        return f"a number of about {round(size * math.log10(2)) + 1} digits"
    return str(value) if abs(size) + value.denominator.bit_length() < 100 else f"{float(value):.6g}"


def _entry(value: Any, where: str) -> Fraction:
    if type(value) is Fraction:
        return value
    try:
        return rational(value)
    except (OverflowError, ValueError, TypeError, ZeroDivisionError):
        pass
    if isinstance(value, str) and _has_huge_exponent(value):
        raise InvalidValue(
            "an exponent must be between -9999 and 9999",
            received=f"{value:.60}",
            where=where,
            remedy="scale the numbers; no format holds one of this size",
        )
    if isinstance(value, str | float | np.floating) and not _is_finite(value):
        raise NotFinite(
            "every number must be finite",
            received=str(value),
            where=where,
            remedy="give integers, finite floats or rationals",
        )
    raise InvalidValue(
        "an array must hold numbers",
        received=f"{value!r:.60}",
        where=where,
        remedy="give integers, finite floats, or rationals such as 1/3",
    )


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return True
