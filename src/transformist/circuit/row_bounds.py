"""Largest error bounds over very many sums of the same numbers, most of which are never computed.

The rows of a `SumMatrix` have upper bounds of their error bounds, which numpy computes for all rows
at once. The rows are then taken from the largest upper bound downwards, and the error bound of each
is computed as `sum_errors` has it. Once the next upper bound is at most the largest error bound so
far, no other row can be above it. The result is the same float as the maximum over all rows.
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
"""More than fewer than 2⁷⁰ float64 operations lose by underflow, each below 2⁻¹⁰⁷⁴."""

_quiet = np.errstate(invalid="ignore", over="ignore")


def largest(bounds: Bounds, of_row: Callable[[int], float]) -> float:
    """Return the maximum of a function of rows that is at least 0 and at most `bounds`.

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
def largest_magnitude(margins: AtomErrors, sums: SumMatrix) -> float:
    """Return the largest `sum_errors.magnitude_of` of any row."""
    # The range of a form lies within the sum of the ranges of its parts, so its size is at most the
    # sum of their sizes.
    sizes = [magnitude(margins.circuit.size(form_of(x))) for x in sums.numbers]
    values = _products(_magnitudes(sums.W), sizes) + _magnitudes(sums.shift)
    values += inherited(margins, sums, "absolute")
    factors = [sum_errors.magnitude_of(margins, x) for x in sums.numbers]
    owns = [sum_errors.rounding(margins, x) for x in sums.numbers]
    bounds = values + rounding(margins, sums, factors, owns, values * SLACK, 1.0)
    return largest(bounds * SLACK**2, lambda row: sum_errors.magnitude_of(margins, sums.sum(row)))


@_quiet
def inherited(margins: AtomErrors, sums: SumMatrix, which: str) -> Bounds:
    """Return a bound of `AtomErrors.inherited` of each row."""
    # It is a maximum, over kinds of rows, of sums over atoms, so that of a form is at most the sum
    # of those of its parts.
    errors = [margins.inherited(form_of(x), which) for x in sums.numbers]
    return _products(_magnitudes(sums.W), errors) * SLACK


@_quiet
def rounding(
    margins: AtomErrors,
    sums: SumMatrix,
    sizes: Sequence[float],
    owns: Sequence[float],
    values: Bounds,
    times: float,
) -> Bounds:
    """Return a bound of `sum_errors.rounding_within` of each row.

    Args:
        margins: errors of the atoms.
        sums: the rows.
        sizes: magnitude of each number of `sums`, multiplied by `times`.
        owns: error of each number beyond its atoms, multiplied by `times`.
        values: magnitude of each row, multiplied by `times`.
        times: factor of the result; constants and underflow are multiplied here.

    """
    # With w̃ and b̃ as in `sum_errors`, the lines below are those of `rounding_within` for numbers
    # that are no hidden units, with two more terms: w |w̃ₖ x̂ₖ| where w̃ₖ is a power of two, and
    # u |the sum| where it is a number times a power of two. Every term is at least 0, and grows
    # with the others, so each row has at least what `rounding_within` computes, but for the
    # rounding in float64 of both, which one more SLACK covers, and TINY where that underflows.
    a, w, u = margins.a, margins.w, sum_errors.stored(margins)
    near, off = _held(margins, sums.W)
    shift, off_shift = _held(margins, sums.shift)
    products = _products(near, sizes)
    total = products + shift * times
    error = off_shift * times + _products(near, owns) + _products(off, sizes)
    # An infinite number makes one of these sums infinite or NaN, and its comparison false.
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

    |w̃| is infinite for the largest number of the format, and for those that it does not hold.
    """
    fits = _magnitudes(weights) < margins.a.largest
    within = np.where(fits, weights, 0)
    near = margins.a.numbers(margins.a.array(within))
    if weights.dtype == np.float64:
        # w̃ is 0, or between w/2 and 2 w, as |w| is at least half the least number. Then w̃ − w is a
        # float64, by Sterbenz's lemma.
        off = np.abs(near - within)
    else:
        pairs = zip(near.ravel().tolist(), within.ravel().tolist(), strict=True)
        off = np.array([_distance(x, y) for x, y in pairs]).reshape(near.shape)
    return np.where(fits, np.abs(near), np.inf), off


def _distance(x: float, y: Fraction) -> float:
    """|x − y| in float64: integers are divided with one rounding, and sooner than fractions."""
    (p, q), (r, s) = x.as_integer_ratio(), y.as_integer_ratio()
    return abs((p * s - r * q) / (q * s))


def _magnitudes(weights: NDArray[Any]) -> Bounds:
    """Return |w| in float64."""
    if weights.dtype == np.float64:
        return np.asarray(np.abs(weights))
    sizes = [magnitude(x) for x in weights.ravel().tolist()]
    return np.array(sizes).reshape(weights.shape)


def _products(weights: Bounds, sizes: Sequence[float]) -> Bounds:
    """Return Σₖ |wₖ| · sizeₖ for each row of weights, 0 · ∞ = 0."""
    products = np.where(weights != 0, weights * np.array(sizes), 0.0)
    return np.asarray(products.sum(axis=1))
