"""Rows of weights as lists of nonzero entries: large matrices have few of them."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

SparseRow: TypeAlias = "tuple[tuple[int, Any], ...]"
"""The nonzero numbers of a row, each with its place."""


def sparse_rows(matrix: Any) -> list[SparseRow]:
    """Return the nonzero entries of each row of a matrix.

    Example:
        >>> sparse_rows([[0.0, 2.0], [0.0, 0.0]])
        [((1, 2.0),), ()]

    """
    given = np.asarray(matrix)
    rows, columns = places(given)
    numbers = list(zip(columns.tolist(), given[rows, columns].tolist(), strict=True))
    ends = np.cumsum(np.bincount(rows, minlength=len(given))).tolist()
    starts = [0, *ends[:-1]]
    return [tuple(numbers[first:end]) for first, end in zip(starts, ends, strict=False)]


def places(array: NDArray[Any]) -> tuple[NDArray[np.intp], ...]:
    """Return the places of the numbers that are not 0, along each axis.

    Numpy finds those of a Boolean array in a tenth of the time, and compares floats fast.
    """
    return np.nonzero(array != 0 if array.dtype == np.float64 else array)


def starts(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the place of the first entry of each run of equal numbers.

    Example:
        >>> starts(np.array([2, 2, 5])).tolist()
        [0, 2]

    """
    is_other = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=is_other[1:])
    return np.flatnonzero(is_other)


def sparse_row(row: Any) -> SparseRow:
    """Return the nonzero entries of one row."""
    (columns,) = places(row)
    return tuple(zip(columns.tolist(), row[columns].tolist(), strict=True))


@lru_cache(maxsize=2**14)
def exactly(weight: Any) -> Fraction:
    """Return a weight as a rational; equal weights of a model are one object.

    Example:
        >>> exactly(0.5), exactly(0.5) is exactly(0.5)
        (Fraction(1, 2), True)

    """
    return Fraction(weight)


def negated(row: SparseRow) -> SparseRow:
    """Return the row with the opposite of every number."""
    return tuple((place, -x) for place, x in row)
