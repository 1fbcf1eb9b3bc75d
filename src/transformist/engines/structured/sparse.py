"""Affine maps by the weights that are not 0, in the order of the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.kernel import kernel


@kernel
def _apply(x: Any, starts: Any, columns: Any, values: Any, shift: Any, out: Any) -> None:
    """out = W x + b for every row of x: products from left to right, then the bias."""
    zero = x.dtype.type(0)
    for i in range(x.shape[0]):
        vector = x[i]
        for row in range(out.shape[1]):
            total = zero
            for at in range(starts[row], starts[row + 1]):
                total += vector[columns[at]] * values[at]
            out[i, row] = total + shift[row]


@kernel
def _add(
    x: Any, starts: Any, columns: Any, values: Any, shift: Any, z: Any, into: Any, start: int,
    step: int,
) -> None:  # fmt: skip
    """z + (W x + b) in the columns `into`, in place, x being of the rows start, start + step, …"""
    zero = x.dtype.type(0)
    for i in range(x.shape[0]):
        vector, changed = x[i], z[start + i * step]
        for row in range(shift.shape[0]):
            total = zero
            for at in range(starts[row], starts[row + 1]):
                total += vector[columns[at]] * values[at]
            changed[into[row]] += total + shift[row]


@dataclass(frozen=True, eq=False)
class SparseMap:
    """x ↦ W x + b, W by its rows: entries `starts[r]` to `starts[r + 1]` are those of row r.

    In float64 and float32 the results are those of the reference, bit for bit, for numbers that
    are finite: products with 0 are left out, the others summed in the same order.
    """

    starts: NDArray[np.uint64]
    columns: NDArray[np.uint64]
    values: NDArray[Any]
    shift: NDArray[Any]

    @classmethod
    def of(cls, W: NDArray[Any], b: NDArray[Any] | None) -> SparseMap:
        """The map of a matrix (rows, d) and a vector (rows,), or none.

        Example:
            >>> SparseMap.of(np.array([[0.0, 2.0]]), None)(np.array([[5.0, 7.0]]))
            array([[14.]])

        """
        rows, columns = np.nonzero(W)
        starts = np.searchsorted(rows, np.arange(W.shape[0] + 1)).astype(np.uint64)
        shift = np.zeros(W.shape[0], W.dtype) if b is None else np.ascontiguousarray(b)
        return cls(starts, columns.astype(np.uint64), np.ascontiguousarray(W[rows, columns]), shift)

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """The images of the rows of x: (n, d) → (n, rows)."""
        out = np.empty((x.shape[0], len(self.shift)), x.dtype)
        _apply(x, self.starts, self.columns, self.values, self.shift, out)
        return out

    def add(self, x: NDArray[Any], z: NDArray[Any], into: NDArray[np.int64], rows: slice) -> None:
        """z + W x + b in place, in some columns of some rows, x having a row for each of these.

        Example:
            >>> z = np.ones((2, 2))
            >>> SparseMap.of(np.array([[2.0]]), None).add(
            ...     np.array([[5.0], [7.0]]), z, np.array([1]), slice(1, None, -1)
            ... )
            >>> z.tolist()
            [[1.0, 15.0], [1.0, 11.0]]

        """
        start, _, step = rows.indices(z.shape[0])
        own = (self.starts, self.columns, self.values, self.shift)
        _add(x, *own, z, into, start, step)
