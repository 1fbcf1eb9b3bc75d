"""Affine maps by their weights that are not 0, summed in the order of the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.kernel import kernel, kernel_part
from transformist.engines.structured.once import once

# The running sums of 256 rows take 2 KiB and stay in the first-level cache, as do the columns read.
TILE = 256
"""An entry of a matrix is applied to this many rows before the next entry."""


@kernel
def _apply_all(
    x: Any, starts: Any, columns: Any, values: Any, shift: Any, out: Any, total: Any
) -> None:
    """Compute `apply` for many rows: `len(total)` of them at a time, by the rows of W."""
    # Each number is summed from 0 in the order of the columns, whatever the loops around it, so
    # that it rounds as in the reference. One and two entries are most of a compiled model.
    # A sum that begins with 0 makes +0 of a lone product −0, as the reference does.
    zero = x.dtype.type(0)
    for start in range(0, x.shape[0], total.shape[0]):
        stop = min(start + total.shape[0], x.shape[0])
        for row in range(out.shape[1]):
            own, added = slice(starts[row], starts[row + 1]), shift[row]
            read, factors = columns[own], values[own]
            if read.shape[0] == 1:
                for at in range(start, stop):
                    i = np.uint64(at)
                    out[i, row] = zero + x[i, read[0]] * factors[0] + added
            elif read.shape[0] == 2:
                for at in range(start, stop):
                    i = np.uint64(at)
                    first = zero + x[i, read[0]] * factors[0]
                    out[i, row] = first + x[i, read[1]] * factors[1] + added
            else:
                _apply_some(x[start:stop], read, factors, total)
                for at in range(start, stop):
                    out[at, row] = total[at - start] + added


@kernel_part
def _apply_some(x: Any, columns: Any, values: Any, total: Any) -> None:
    """W x for one row of W, two entries at a time, which halves the traffic of `total`."""
    size = x.shape[0]
    total[:size] = 0
    for entry in range(0, columns.shape[0] - 1, 2):
        for at in range(size):
            i = np.uint64(at)
            first = total[i] + x[i, columns[entry]] * values[entry]
            total[i] = first + x[i, columns[entry + 1]] * values[entry + 1]
    if columns.shape[0] % 2:
        for at in range(size):
            i = np.uint64(at)
            total[i] += x[i, columns[-1]] * values[-1]


@kernel_part
def apply(x: Any, starts: Any, columns: Any, values: Any, shift: Any, out: Any) -> None:
    """Write W x + b to `out` for every row of x: products from left to right, then the bias."""
    zero, one = x.dtype.type(0), np.uint64(1)
    for at in range(x.shape[0]):
        i = np.uint64(at)
        for number in range(out.shape[1]):
            row, total = np.uint64(number), zero
            for entry in range(starts[row], starts[row + one]):
                total += x[i, columns[entry]] * values[entry]
            out[i, row] = total + shift[row]


@kernel_part
def add_applied(
    x: Any, starts: Any, columns: Any, values: Any, shift: Any, z: Any, into: Any
) -> None:
    """Add W x + b to z, in the columns `into`."""
    zero, one = x.dtype.type(0), np.uint64(1)
    for at in range(x.shape[0]):
        i = np.uint64(at)
        for number in range(shift.shape[0]):
            row, total = np.uint64(number), zero
            for entry in range(starts[row], starts[row + one]):
                total += x[i, columns[entry]] * values[entry]
            z[i, np.uint64(into[row])] += total + shift[row]


@kernel
def _add_all(x: Any, starts: Any, columns: Any, values: Any, shift: Any, z: Any, into: Any) -> None:
    """Compile `add_applied` for calls from Python."""
    add_applied(x, starts, columns, values, shift, z, into)


@dataclass(frozen=True, eq=False)
class SparseMap:
    """The map x ↦ W x + b; entries `starts[r]` to before `starts[r + 1]` are those of row r of W.

    Results are those of the reference, bit for bit, for finite numbers in float64 and float32: a
    product with 0 adds 0, which changes no sum, and the others are summed in the same order.
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
        # `nonzero` goes row by row: the entries of row r begin at the first whose row is r or more.
        starts = np.searchsorted(rows, np.arange(W.shape[0] + 1)).astype(np.uint64)
        shift = np.zeros(W.shape[0], W.dtype) if b is None else np.ascontiguousarray(b)
        return cls(starts, columns.astype(np.uint64), np.ascontiguousarray(W[rows, columns]), shift)

    @property
    def height(self) -> int:
        """The number of numbers in an image."""
        return len(self.shift)

    @property
    def matrix(self) -> NDArray[Any]:
        """W by the columns that are not 0: (rows, read)."""
        W = np.zeros((self.height, len(self.read)), self.values.dtype)
        own = self.on_what_it_reads
        W[np.repeat(np.arange(self.height), np.diff(self.starts.astype(int))), own.columns] = (
            self.values
        )
        return W

    @once
    def read(self) -> tuple[int, ...]:
        """The coordinates of x on which the image depends."""
        return tuple(sorted({int(column) for column in self.columns}))

    @once
    def on_what_it_reads(self) -> SparseMap:
        """The same map, for vectors that have only the coordinates `read`."""
        own = np.searchsorted(self.read, self.columns).astype(np.uint64)
        return SparseMap(self.starts, own, self.values, self.shift)

    @once
    def is_identity(self) -> bool:
        """True if the image of a vector of `height` coordinates is the vector."""
        count = np.arange(self.height + 1)
        return (
            len(self.values) == self.height
            and bool((self.values == 1).all() and not self.shift.any())
            and np.array_equal(self.columns, count[:-1])
            and np.array_equal(self.starts, count)
        )

    def rows(self, rows: NDArray[np.intp]) -> SparseMap:
        """The map to some numbers of the image."""
        spans = [np.arange(*self.starts[[row, row + 1]].astype(int)) for row in rows]
        entries = np.concatenate([np.empty(0, np.intp), *spans])
        starts = np.cumsum([0, *map(len, spans)])
        parts = (self.columns[entries], self.values[entries], self.shift[rows])
        return SparseMap(starts.astype(np.uint64), *parts)

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """The images of the rows of x: (n, d) → (n, rows)."""
        return self._applied(x, np.empty((x.shape[0], self.height), x.dtype))

    def by_columns(self, x: NDArray[Any]) -> NDArray[Any]:
        """The images, columns contiguous in memory."""
        return self._applied(x, np.empty((self.height, x.shape[0]), x.dtype).T)

    def _applied(self, x: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
        total = np.empty(TILE, x.dtype)
        _apply_all(x, self.starts, self.columns, self.values, self.shift, out, total)
        return out

    def add(self, x: NDArray[Any], z: NDArray[Any], into: NDArray[np.int64]) -> None:
        """Add W x + b to z, in some columns.

        Example:
            >>> z = np.ones((2, 2))
            >>> SparseMap.of(np.array([[2.0]]), None).add(
            ...     np.array([[5.0], [7.0]]), z, np.array([1])
            ... )
            >>> z.tolist()
            [[1.0, 11.0], [1.0, 15.0]]

        """
        _add_all(x, self.starts, self.columns, self.values, self.shift, z, into)
