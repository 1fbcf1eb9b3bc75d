"""Columns of vectors, copied into columns of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformist.engines.structured.kernel import kernel, kernel_part

# A tile of 64 rows of 8 columns takes 4 KiB, and stays in the first-level cache while its columns
# are written one after the other. Written row by row, the same takes twice as long (2 to 32 columns
# of 10 or 40, measured on x86-64), as the inner loop is too short.
TILE = 64
"""This many rows are written column by column before the next ones."""


@kernel
def put(vectors: Any, numbers: Any, columns: Any, out: Any, into: Any) -> None:
    """out[i, into[m]] = vectors[numbers[i], columns[m]]."""
    for start in range(0, out.shape[0], TILE):
        stop = min(start + TILE, out.shape[0])
        for m in range(columns.shape[0]):
            _put_column(vectors, numbers, columns[m], out, into[m], start, stop)


@kernel_part
def _put_column(
    vectors: Any, numbers: Any, column: int, out: Any, target: int, start: int, stop: int
) -> None:
    """Copy one column, at some rows."""
    m, into = np.uint64(column), np.uint64(target)
    for at in range(start, stop):
        i = np.uint64(at)
        out[i, into] = vectors[np.uint64(numbers[i]), m]
