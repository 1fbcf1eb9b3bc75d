"""Rows of weights as lists of nonzero entries: large matrices have few of them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

SparseRow: TypeAlias = "tuple[tuple[int, Any], ...]"
"""The nonzero numbers of a row, each with its place."""


def sparse_rows(matrix: Any) -> list[SparseRow]:
    """Return the nonzero entries of each row of a matrix.

    Example:
        >>> sparse_rows([[0.0, 2.0], [0.0, 0.0]])
        [((1, 2.0),), ()]

    """
    return [sparse_row(row) for row in np.asarray(matrix)]


def sparse_row(row: Any) -> SparseRow:
    """Return the nonzero entries of one row."""
    places = np.flatnonzero(row)
    return tuple(zip(places.tolist(), row[places].tolist(), strict=True))


def negated(row: SparseRow) -> SparseRow:
    """Return the row with the opposite of every number."""
    return tuple((place, -x) for place, x in row)
