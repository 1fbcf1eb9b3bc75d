"""How far a floating-point sum or dot product can be from the real one, in one order or in any.

Terms are added in the accumulator of the format, with unit roundoff w; the result is stored in the
format, with unit roundoff u, where that is narrower. Rounding is to nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import Arithmetic, Floating, is_whole, rational
from transformist.bounds.rounding import for_real_numbers
from transformist.errors import InvalidValue, ShapeMismatch, UnknownName
from transformist.model import rationals

Bound: TypeAlias = Fraction | float
"""An exact rational, or infinity."""


def sum_error(x: Any, arithmetic: Arithmetic | str, order: str = "reference") -> Bound:
    """A bound of |fl(Σxₖ) − Σxₖ| for numbers xₖ of a format.

    "any": (n − 1) w Σ|xₖ| in every order and grouping of the additions (Jeannerod and Rump 2013).
    An addition is within w|a + b|, |a| and |b| of a + b, subnormal numbers included, since a and b
    are numbers of the format. Let sums of n₁ and n₂ terms, Σ|x| being S₁ and S₂, have errors of at
    most (n₁ − 1) w S₁ and (n₂ − 1) w S₂. If S₂ ≤ w S₁, adding them costs at most the second one,
    S₂ + (n₂ − 1) w S₂ ≤ w S₁ + (n₂ − 1) S₂ w, and (n₂ − 1) w S₂ ≤ (n₂ − 1) w · w S₁. If neither is
    that small, it costs w(S₁ + S₂) + w (n₁ − 1) w S₁ + w (n₂ − 1) w S₂, where w S₁ < S₂ and
    w S₂ < S₁. In all cases the sum is at most (n₁ + n₂ − 1) w (S₁ + S₂).

    "reference": from left to right, Σₖ min(w |sₖ|, |xₖ|) over the partial sums sₖ from the second
    on, |sₖ| enlarged by the error before it.

    Storing adds u times the result and half the smallest number.

    Args:
        x: the numbers, shape (n,).
        arithmetic: the number system; the bound is 0 in one that does not round.
        order: `reference` or `any`.

    Returns:
        A rational; infinite where a sum may overflow.

    Raises:
        InvalidValue: for a number that the format does not hold.
        NotFinite: for one that it overflows at.
        ShapeMismatch: for what is no list of numbers.
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
    """A bound of |fl(Σxₖyₖ) − Σxₖyₖ| for numbers of a format, products being rounded on their own.

    A product is within w of itself and half the smallest number of the accumulator, or exact where
    the accumulator has twice the digits and the range; the rest as `sum_error`.

    Args:
        x: numbers, shape (n,).
        y: as many.
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
            "a dot product is of two equally long lists",
            received=f"{len(left)} and {len(right)} numbers",
            where="dot_error",
            remedy="give as many of each",
        )
    products = [p * q for p, q in zip(left, right, strict=True)]
    if not isinstance(a, Floating):
        return _bound(products, Fraction(0), a, order)
    errors = [_product_error(p, a) for p in products]
    rounded = [abs(p) + e for p, e in zip(products, errors, strict=True)]
    return _bound(products, sum(errors, Fraction(0)), a, order, rounded)


def sum_error_within(n: int, total: Any, arithmetic: Arithmetic | str) -> Bound:
    """`sum_error` in any order, of whatever n numbers with Σ|xₖ| ≤ `total`.

    Raises:
        InvalidValue: for n or a total below 0.

    Example:
        >>> sum_error_within(1025, 4, "float32")
        Fraction(1, 4096)

    """
    try:
        size = rational(total)
    except (TypeError, ValueError, ArithmeticError):
        size = Fraction(-1)
    if not is_whole(n, 0) or size < 0:
        raise InvalidValue(
            "a sum is of n ≥ 0 numbers, the sum of their magnitudes is at least 0",
            received=f"n = {n!r:.40}, total = {total!s:.40}",
            where="sum_error_within",
            remedy="give how many numbers there are, and a bound of Σ|x|",
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
    """The error of adding terms that are `before` off together, and at most `rounded` in size."""
    if order not in _ORDERS:
        raise UnknownName.among("order of summation", order, _ORDERS)
    a = for_real_numbers(arithmetic)
    sizes = [abs(term) for term in terms] if rounded is None else rounded
    error, peak = _ORDERS[order](terms, sizes, before, _roundoff(a))
    return _stored(abs(sum(terms, Fraction(0))), before + error, peak, a)


def _in_any_order(
    _: Sequence[Fraction], sizes: Sequence[Fraction], __: Fraction, w: Fraction
) -> tuple[Fraction, Fraction]:
    """What additions cost, and how large a partial sum may be."""
    total = sum(sizes, Fraction(0))
    error = max(len(sizes) - 1, 0) * w * total
    return error, total + error


def _left_to_right(
    terms: Sequence[Fraction], sizes: Sequence[Fraction], before: Fraction, w: Fraction
) -> tuple[Fraction, Fraction]:
    error, peak = Fraction(0), max(sizes, default=Fraction(0))
    for partial, size in list(zip(accumulate(terms), sizes, strict=True))[1:]:
        largest = abs(partial) + before + error
        error += min(w * largest, size)
        peak = max(peak, largest + error)
    return error, peak


_ORDERS: dict[str, Callable[..., tuple[Fraction, Fraction]]] = {
    "reference": _left_to_right,
    "any": _in_any_order,
}


def _roundoff(a: Arithmetic) -> Fraction:
    return a.accumulator_roundoff if isinstance(a, Floating) else Fraction(0)


def _product_error(product: Fraction, a: Floating) -> Fraction:
    """How far a product in the accumulator can be from the real one."""
    tiny = Fraction(a.smallest_partial)
    digits = a.unit_roundoff**2 >= a.accumulator_roundoff
    relative = Fraction(0) if digits else a.accumulator_roundoff * abs(product)
    return relative + (Fraction(0) if digits and Fraction(a.smallest) ** 2 >= tiny else tiny / 2)


def _stored(value: Fraction, error: Fraction, peak: Fraction, a: Arithmetic) -> Bound:
    """The error after storing a value of magnitude at most `value`, partial sums at most `peak`."""
    if not isinstance(a, Floating):
        return error
    if peak > Fraction(a.largest_partial) or value + error > Fraction(a.largest):
        return math.inf
    if a.unit_roundoff <= a.accumulator_roundoff:
        return error
    return error + a.unit_roundoff * (value + error) + Fraction(a.smallest) / 2


def _numbers(x: Any, a: Arithmetic, where: str) -> list[Fraction]:
    exact = rationals(x)
    if exact.ndim != 1:
        raise ShapeMismatch(
            "a sum is of a list of numbers",
            received=f"an array of shape {exact.shape}",
            where=where,
            remedy="give one list, row by row",
        )
    held = rationals(a.numbers(a.array(exact))) if len(exact) else exact
    off = np.flatnonzero(held != exact)
    if off.size:
        raise InvalidValue(
            f"the error of a sum is that of adding numbers that {a.name} holds",
            received=f"{float(exact[off[0]])!r}, which it rounds to {float(held[off[0]])!r}",
            where=where,
            remedy="round the numbers first (arithmetic.array), and add how far that moves them",
        )
    return list(exact)
