"""Products of sparse matrices with arrays of bounds: the places of the entries are found once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.verify.proof.sparse_rows import places, starts
from transformist.verify.proof.upwards import MOST_SUMMED, MOST_TERMS, Floats, raised, require_terms

MOST_FILLED = 1 / 8
"""Largest share of nonzero weights at which the terms of a product are added one by one."""


@dataclass(frozen=True, eq=False)
class Entries:
    """The places of a matrix at which an entry may differ from 0, row by row.

    Attributes:
        shape: of the matrix.
        rows, columns: (entries,): the places, in the order of the rows.

    """

    shape: tuple[int, int]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    @classmethod
    def of(cls, matrix: Any) -> Entries:
        """Return the places of the entries that are not 0."""
        given = np.asarray(matrix)
        return cls(given.shape, *places(given))

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """The number of the first entry of each row that has one."""
        return starts(self.rows)

    def taken(self, which: NDArray[Any]) -> Entries:
        """Return the entries that an array of their numbers, or of Booleans, selects."""
        return Entries(self.shape, self.rows[which], self.columns[which])

    def at(self, matrix: Any) -> Any:
        """Return the entries of a matrix at these places."""
        return np.asarray(matrix)[self.rows, self.columns]

    def filled(self, values: Floats) -> Floats:
        """Return the matrix with these entries, and 0 elsewhere."""
        found = np.zeros(self.shape)
        found[self.rows, self.columns] = values
        return found

    def times(self, values: Any, z: Floats) -> Floats:
        """Return Σ_c values[r, c] z[…, c, kind], of numbers ≥ 0; `up` makes it an upper bound.

        Of a sparse matrix only the terms that are not 0 are added: 0 · ∞ is not among them. Else
        such a term is NaN, of which `up` makes infinity. A term of weight 0 times a finite number
        is 0 and adds no rounding, in any order of a matrix product (`excess`). So the terms of a
        row are its weights that are not 0, however many columns there are. Sums of more than
        `MOST_TERMS` of them are raised here, past what `up` does not cover.

        Args:
            values: (entries,): the matrix, which is 0 elsewhere.
            z: (…, columns, kinds).

        Raises:
            Unfollowed: if a row has more than `MOST_SUMMED` weights.

        """
        values = np.asarray(values, dtype=float)
        if np.count_nonzero(values) < len(values):
            used = np.flatnonzero(values)
            return self.taken(used).times(values[used], z)
        found = self._summed(values, z)
        if len(values) > MOST_TERMS:
            count = self.count(values)
            require_terms(int(count.max()), "weights", "weights in a row", MOST_SUMMED)
            found = raised(found, count[:, None])
        return np.asarray(found)

    def _summed(self, values: Floats, z: Floats) -> Floats:
        if MOST_FILLED * self.shape[0] * self.shape[1] < len(values):
            return np.asarray(np.matmul(self.filled(values), z))
        found = np.zeros((*z.shape[:-2], self.shape[0], z.shape[-1]))
        if not len(values):
            return found
        terms = values[:, None] * z[..., self.columns, :]
        found[..., self.rows[self.first], :] = np.add.reduceat(terms, self.first, axis=-2)
        return found

    def reduced(self, extreme: np.ufunc, values: Any, initial: float) -> Floats:
        """Return (rows, …): the least or largest of the values of each row and `initial`."""
        values = np.asarray(values, dtype=float)
        found = np.full((self.shape[0], *values.shape[1:]), initial)
        if len(values):
            found[self.rows[self.first]] = extreme.reduceat(values, self.first, axis=0)
        return np.asarray(extreme(found, initial))

    def any(self, of_columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return (rows, kinds): True if (columns, kinds) is True at some entry of a row."""
        found = np.zeros((self.shape[0], of_columns.shape[1]), dtype=bool)
        if len(self.rows):
            read = of_columns[self.columns]
            found[self.rows[self.first]] = np.logical_or.reduceat(read, self.first, axis=0)
        return found

    def count(self, values: Any) -> NDArray[np.intp]:
        """Return (rows,): how many of the values of a row are not 0."""
        return np.bincount(self.rows[np.asarray(values) != 0], minlength=self.shape[0])
