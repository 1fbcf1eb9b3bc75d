"""Error bounds of floating-point sums and dot products, in the reference's order or in any.

Terms are added in the accumulator of the format, with unit roundoff w; the result is stored in the
format, with unit roundoff u, where that is narrower. Rounding is to nearest.

An addition is within w|a + b|, |a| and |b| of a + b, subnormal numbers included, since a and b are
numbers of the format: each bound below takes the least of these that it can use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import Arithmetic, Floating, whole_number
from transformist.errors import InvalidValue, ShapeMismatch, UnknownName
from transformist.model import rationals
from transformist.rounding.arguments import NOT_NEGATIVE, required
from transformist.rounding.float_format import for_real_numbers, storing_roundoff

Bound: TypeAlias = Fraction | float
"""An exact rational, or infinity."""


def sum_error(x: Any, arithmetic: Arithmetic | str, order: str = "reference") -> Bound:
    """Return a bound of |fl(Σxₖ) − Σxₖ| for numbers xₖ of a format.

    "any": (n − 1) w Σ|xₖ|, in every order and grouping of the additions (Jeannerod and Rump 2013).
    "reference": from left to right, Σₖ min(w |sₖ|, |xₖ|) over the partial sums sₖ from the second
    on, |sₖ| enlarged by the error before it. Storing adds u times the result and half the smallest
    number.

    Args:
        x: the numbers, shape (n,).
        arithmetic: the number system; the bound is 0 in one that does not round.
        order: `reference` or `any`.

    Returns:
        A rational; infinite where a sum may overflow.

    Raises:
        InvalidValue: for a number that the format does not hold.
        NotFinite: for one that it overflows at.
        ShapeMismatch: if the argument is not a list of numbers.
        UnknownName: for another order.

    Example:
        >>> sum_error([1, 1, 2], "float32", "any")
        Fraction(1, 2097152)
        >>> sum_error([1, 2], "exact")
        Fraction(0, 1)

    """
    terms = _numbers(x, for_real_numbers(arithmetic), "sum_error")
    return _bound(terms, Fraction(0), arithmetic, order)


def dot_error(x: Any, y: Any, arithmetic: Arithmetic | str, order: str = "reference") -> Bound:
    """Return a bound of |fl(Σxₖyₖ) − Σxₖyₖ| for numbers of a format.

    Each product is rounded by itself, in the accumulator, before they are added as in `sum_error`.

    Args:
        x: numbers, shape (n,).
        y: numbers, shape (n,).
        arithmetic: the number system; the bound is 0 in one that does not round.
        order: `reference` or `any`.

    Returns:
        A rational; infinite where a product or a sum may overflow.

    Raises:
        InvalidValue, NotFinite, ShapeMismatch, UnknownName: as `sum_error`.

    Example:
        >>> float(dot_error([1, 2], [3, 4], "float32", "any")) * 2**24
        22.000000655651093

    """
    a = for_real_numbers(arithmetic)
    left, right = (_numbers(each, a, "dot_error") for each in (x, y))
    if len(left) != len(right):
        raise ShapeMismatch(
            "x and y must have the same length",
            received=f"{len(left)} and {len(right)} numbers",
            where="dot_error",
            remedy="give two equally long lists",
        )
    products = [p * q for p, q in zip(left, right, strict=True)]
    if not isinstance(a, Floating):
        return _bound(products, Fraction(0), a, order)
    errors = [_product_error(p, a) for p in products]
    rounded = [abs(p) + e for p, e in zip(products, errors, strict=True)]
    return _bound(products, sum(errors, Fraction(0)), a, order, rounded)


def sum_error_within(n: int, total: Any, arithmetic: Arithmetic | str) -> Bound:
    """Return `sum_error` in any order for all n numbers with Σ|xₖ| ≤ `total`.

    Raises:
        InvalidValue: for n or a total below 0.

    Example:
        >>> sum_error_within(1025, 4, "float32")
        Fraction(1, 4096)

    """
    where = "sum_error_within"
    must = "n must be a whole number of at least 0"
    n = whole_number(n, 0, must, where=where, remedy="give the number of terms")
    size = required(
        "total",
        total,
        NOT_NEGATIVE,
        meaning="the sum of magnitudes",
        where=where,
        remedy="give a bound of Σ|x|",
    )
    a = for_real_numbers(arithmetic)
    error = max(n - 1, 0) * _roundoff(a) * size
    return _stored(size, error, size + error, a)


def _bound(
    terms: Sequence[Fraction],
    before: Fraction,
    arithmetic: Arithmetic | str,
    order: str,
    rounded: Sequence[Fraction] | None = None,
) -> Bound:
    """Return the error of adding terms whose errors sum to `before`, of sizes at most `rounded`."""
    if order not in _ADDING:
        raise UnknownName.among("order of summation", order, _ADDING)
    a = for_real_numbers(arithmetic)
    sizes = [abs(term) for term in terms] if rounded is None else rounded
    error, peak = _ADDING[order](terms, sizes, before, _roundoff(a))
    return _stored(abs(sum(terms, Fraction(0))), before + error, peak, a)


def _in_any_order(
    _: Sequence[Fraction], sizes: Sequence[Fraction], __: Fraction, w: Fraction
) -> tuple[Fraction, Fraction]:
    """Return the error of the additions, and the largest partial sum."""
    # (n − 1) w Σ|xₖ|, by induction: two partial sums of n₁ and n₂ terms are added, S₁ and S₂ being
    # their Σ|x|, e₁ = (n₁ − 1) w S₁ and e₂ = (n₂ − 1) w S₂ bounds of their errors.
    # If S₂ ≤ w S₁, adding costs at most the second computed sum, S₂ + e₂, where S₂ ≤ w S₁ and
    # e₂ ≤ (n₂ − 1) w · w S₁: in all at most (n₁ + n₂ − 1) w S₁ + e₂. Likewise if S₁ ≤ w S₂.
    # Else adding costs at most w (S₁ + S₂ + e₁ + e₂), where w e₁ < (n₁ − 1) w S₂ as w S₁ < S₂, and
    # w e₂ < (n₂ − 1) w S₁. In each case the errors sum to at most (n₁ + n₂ − 1) w (S₁ + S₂).
    total = sum(sizes, Fraction(0))
    error = max(len(sizes) - 1, 0) * w * total
    return error, total + error


def _left_to_right(
    terms: Sequence[Fraction], sizes: Sequence[Fraction], before: Fraction, w: Fraction
) -> tuple[Fraction, Fraction]:
    # The k-th addition costs at most w times its result, and no more than the term it adds.
    error, peak = Fraction(0), max(sizes, default=Fraction(0))
    for partial, size in list(zip(accumulate(terms), sizes, strict=True))[1:]:
        # The computed partial sum is off by the errors of its terms and of the additions before: at
        # most this large before it is rounded.
        largest = abs(partial) + before + error
        error += min(w * largest, size)
        peak = max(peak, largest + error)
    return error, peak


_ADDING: dict[str, Callable[..., tuple[Fraction, Fraction]]] = {
    "reference": _left_to_right,
    "any": _in_any_order,
}


def _roundoff(a: Arithmetic) -> Fraction:
    return a.accumulator_roundoff if isinstance(a, Floating) else Fraction(0)


def _product_error(product: Fraction, a: Floating) -> Fraction:
    """Return the error of a product in the accumulator."""
    # A product of two p-bit numbers has 2p bits: exact where the accumulator has as many
    # (w ≤ u², w = 2^−2p or less). It is a multiple of smallest²: it does not underflow where that
    # is at least the smallest number of the accumulator.
    tiny = Fraction(a.smallest_partial)
    digits = a.unit_roundoff**2 >= a.accumulator_roundoff
    relative = Fraction(0) if digits else a.accumulator_roundoff * abs(product)
    return relative + (Fraction(0) if digits and Fraction(a.smallest) ** 2 >= tiny else tiny / 2)


def _stored(value: Fraction, error: Fraction, peak: Fraction, a: Arithmetic) -> Bound:
    """Return the error after storing a value of magnitude ≤ `value`, partial sums ≤ `peak`."""
    if not isinstance(a, Floating):
        return error
    # A partial sum beyond the accumulator, or a result beyond the format, may be infinite: then
    # nothing bounds the error.
    if peak > Fraction(a.largest_partial) or value + error > Fraction(a.largest):
        return math.inf
    u = storing_roundoff(a)
    return error + (u * (value + error) + Fraction(a.smallest) / 2 if u else 0)


def _numbers(x: Any, a: Arithmetic, where: str) -> list[Fraction]:
    exact = rationals(x)
    if exact.ndim != 1:
        raise ShapeMismatch(
            "x must be a list of numbers",
            received=f"an array of shape {exact.shape}",
            where=where,
            remedy="give one list, shape (n,); for an array, call it once for each row",
        )
    held = rationals(a.numbers(a.array(exact))) if len(exact) else exact
    off = np.flatnonzero(held != exact)
    if off.size:
        raise InvalidValue(
            f"x must be numbers that {a.name} holds",
            received=f"{float(exact[off[0]])!r}, which it rounds to {float(held[off[0]])!r}",
            where=where,
            remedy="round the numbers first (arithmetic.array), and add the error of that",
        )
    return list(exact)
