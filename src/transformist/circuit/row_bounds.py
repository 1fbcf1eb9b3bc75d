"""Largest error bound, and largest magnitude, of very many sums of the same numbers.

Upper limits of the bounds of all rows of a `SumMatrix` are computed together. The rows are then
taken from the highest limit downwards, and the bound of each is computed as `sum_errors` has it.
Once the next limit is at most the largest bound so far, no other row can be above it. The result is
the same float as the maximum over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.circuit import sum_errors
from transformist.circuit.atom_errors import AtomErrors, magnitude
from transformist.circuit.readings import SumMatrix, form_of
from transformist.circuit.sum_errors import SLACK

Bounds: TypeAlias = NDArray[np.float64]
"""A number of at least 0 for each row, or each weight."""

TINY = 2.0**-1000
"""Allowance for underflow: fewer than 2⁷⁰ float64 operations lose at most 2⁻¹⁰⁷⁴ each."""

_quiet = np.errstate(invalid="ignore", over="ignore")


def largest(bounds: Bounds, of_row: Callable[[int], float]) -> float:
    """Return the largest value of `of_row`, whose values lie between 0 and `bounds`.

    Example:
        >>> largest(np.array([2.0, 9.0, 5.0]), [1.5, 4.5, 4.0].__getitem__)
        4.5

    """
    most = 0.0
    for row in np.argsort(-bounds).tolist():
        if bounds[row] <= most:
            break
        most = max(most, of_row(row))
    return most


@_quiet
def largest_magnitude_of_rows(margins: AtomErrors, sums: SumMatrix) -> float:
    """Return the largest `sum_errors.magnitude_of` of any row."""
    # The range of a form lies within the sum of the ranges of its parts, so its size is at most the
    # sum of their sizes.
    sizes = [magnitude(margins.circuit.size(form_of(x))) for x in sums.numbers]
    values = _products(_magnitudes(sums.W), sizes) + _magnitudes(sums.shift)
    values += limits_of_inherited(margins, sums, "absolute")
    factors = [sum_errors.magnitude_of(margins, x) for x in sums.numbers]
    owns = [sum_errors.rounding(margins, x) for x in sums.numbers]
    # Three times SLACK: `sum_errors` raises the value that it gives to `rounding_within`, and the
    # magnitude itself; the third covers the rounding of these sums.
    bounds = values + limits_of_rounding(margins, sums, factors, owns, values * SLACK, 1.0)
    return largest(bounds * SLACK**2, lambda row: sum_errors.magnitude_of(margins, sums.row(row)))


@_quiet
def limits_of_inherited(margins: AtomErrors, sums: SumMatrix, which: str) -> Bounds:
    """Return an upper limit of `AtomErrors.inherited` for each row."""
    # The inherited error of a form is the largest, over kinds of rows, of a sum over its atoms. So
    # it is at most the sum of the inherited errors of the form's parts.
    errors = [margins.inherited(form_of(x), which) for x in sums.numbers]
    return _products(_magnitudes(sums.W), errors) * SLACK


@_quiet
def limits_of_rounding(
    margins: AtomErrors,
    sums: SumMatrix,
    sizes: Sequence[float],
    owns: Sequence[float],
    values: Bounds,
    times: float,
) -> Bounds:
    """Return an upper limit of `sum_errors.rounding_within` for each row.

    Args:
        margins: errors of the atoms.
        sums: the rows.
        sizes: magnitude of each number of `sums`, multiplied by `times`.
        owns: error of each number beyond its atoms, multiplied by `times`.
        values: magnitude of each row, multiplied by `times`.
        times: factor of the result; constants and underflow are multiplied here.

    """
    # These are the lines of `rounding_within`, with w̃ and b̃ as there, for sums that are neither of
    # hidden units nor stored after each addition. Three terms may be larger: w |w̃ₖ x̂ₖ| is added
    # where w̃ₖ is a power of two as well, u |the sum| also for one number times a power of two, and
    # underflow is counted for all numbers of the matrix. Every later term grows with the earlier
    # ones, so the result is at least that of `rounding_within`. One SLACK is the one in its result,
    # the other covers the rounding of both in float64; TINY covers underflow.
    a, w, u = margins.a, margins.w, sum_errors.storing_error(margins)
    near, off = _held(margins, sums.W)
    shift, off_shift = _held(margins, sums.shift)
    products = _products(near, sizes)
    total = products + shift * times
    error = off_shift * times + _products(near, owns) + _products(off, sizes)
    # One SLACK is in the comparison of `rounding_within`, one covers the rounding of these sums. An
    # infinite number makes one of them infinite or NaN, and its comparison false.
    fits = total * SLACK**2 / times < a.largest_partial
    fits &= (values + error) * SLACK**2 / times < a.largest
    summands = np.count_nonzero(sums.W, axis=1) + (sums.shift != 0)
    added = np.where(summands == 2, values + error, total)
    error += np.maximum(summands - 1, 0) * w * added
    error += 0.0 if margins.is_wide else w * products
    error *= 1 + np.expm1((summands + 3) * np.log1p(w))  # `off_by` of summands + 2
    error += u * (values + error)
    error += sum_errors.underflow(margins, len(sums.numbers)) * times + TINY
    return np.where(fits, error * SLACK**2, np.inf)


def _held(margins: AtomErrors, weights: NDArray[Any]) -> tuple[Bounds, Bounds]:
    """Return |w̃| and |w̃ − w|, w̃ the weight as the format holds it.

    Where |w| is the largest number of the format or more, |w̃| is infinite and |w̃ − w| is given as
    0: the row then has no bound.
    """
    fits = _magnitudes(weights) < margins.a.largest
    within = np.where(fits, weights, 0)
    near = margins.a.numbers(margins.a.array(within))
    if weights.dtype == np.float64:
        # If w̃ is not 0, |w| is at least half the least number of the format, so w̃ is between w/2
        # and 2 w, and w̃ − w is a float64 (Sterbenz). If w̃ is 0, it is −w.
        off = np.abs(near - within)
    else:
        pairs = zip(near.ravel().tolist(), within.ravel().tolist(), strict=True)
        off = np.array([_distance(x, y) for x, y in pairs]).reshape(near.shape)
    return np.where(fits, np.abs(near), np.inf), off


def _distance(x: float, y: Fraction) -> float:
    """|x − y| in float64. Integers are divided with one rounding, and faster than fractions."""
    (p, q), (r, s) = x.as_integer_ratio(), y.as_integer_ratio()
    return abs((p * s - r * q) / (q * s))


def _magnitudes(weights: NDArray[Any]) -> Bounds:
    """Return |w| in float64."""
    if weights.dtype == np.float64:
        return np.asarray(np.abs(weights))
    sizes = [magnitude(x) for x in weights.ravel().tolist()]
    return np.array(sizes).reshape(weights.shape)


def _products(weights: Bounds, sizes: Sequence[float]) -> Bounds:
    """Return Σₖ wₖ · sizeₖ for each row, of weights ≥ 0.

    A weight 0 adds 0 even if the size is infinite; an infinite weight with a size 0 gives NaN.
    """
    products = np.where(weights != 0, weights * np.array(sizes), 0.0)
    return np.asarray(products.sum(axis=1))
