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
        InvalidValue: for what is not a number.

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
            "the rows of an array have one length",
            received="rows of different lengths",
            where=where,
            remedy="make the rows equally long",
        ) from None
    except (TypeError, RuntimeError) as error:  # a tensor that numpy does not read
        raise InvalidValue(
            "an array holds numbers that numpy reads",
            received=f"{type(values).__name__}: {error}"[:90],
            where=where,
            remedy="give a list or a numpy array; of a tensor, x.detach().double().numpy()",
        ) from None
    if not isinstance(values, np.ndarray) and given.dtype.kind not in "iub":
        given = np.array(values, dtype=object)  # a list of mixed kinds would be rounded to one
    if given.dtype.kind == "f":
        floats = given.astype(np.float64)
        if np.isfinite(floats).all() and np.array_equal(floats, given):
            return floats
    if given.dtype.kind in "iub" and (given <= 2**53).all() and (given >= -(2**53)).all():
        return given.astype(np.float64)
    flat = [_entry(value, where) for value in given.astype(object).ravel().tolist()]
    exact = np.empty(len(flat), dtype=object)
    exact[:] = flat
    if all(is_float64(value) for value in flat):
        exact = exact.astype(np.float64)
    return exact.reshape(given.shape)


def nearest_float64(value: Fraction) -> float:
    """The float64 nearest to a rational; ±inf beyond the largest."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_float64(value: Fraction) -> bool:
    """Whether float64 holds the number itself."""
    nearest = nearest_float64(value)
    return math.isfinite(nearest) and nearest.as_integer_ratio() == value.as_integer_ratio()


def rational(value: Any) -> Fraction:
    """A number, or the text of one such as "1/3" or "1e-6", exactly.

    Raises:
        ValueError, TypeError, OverflowError, ZeroDivisionError: for what is not a finite number,
            and ValueError for a text with an exponent beyond ±9999, which no format needs.
    """
    if isinstance(value, str) and _HUGE_EXPONENT.search(value):
        raise ValueError
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def is_power_of_two(value: Fraction) -> bool:
    """Whether a rational is 2ᵏ for a whole k.

    Example:
        >>> is_power_of_two(Fraction(1, 8)), is_power_of_two(Fraction(3))
        (True, False)

    """
    parts = value.numerator, value.denominator
    return value > 0 and all(part & (part - 1) == 0 for part in parts)


_HUGE_EXPONENT = re.compile(r"[eE][+-]?0*[1-9]\d{4}")


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
    if isinstance(value, str | float | np.floating) and not _is_finite(value):
        raise NotFinite(
            "every number is finite",
            received=str(value),
            where=where,
            remedy="give integers, finite floats or rationals",
        )
    raise InvalidValue(
        "an array holds numbers",
        received=repr(value),
        where=where,
        remedy="give integers, finite floats, or rationals such as 1/3",
    )


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return True
