"""Columns of vectors, put where they go."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformist.engines.structured.kernel import kernel, kernel_part

TILE = 64
"""How many rows are put column by column: they stay in the nearest memory."""

RUN = 4
"""From so many columns on, one after the other, they are put row by row."""


@kernel
def put(vectors: Any, numbers: Any, columns: Any, out: Any, into: Any) -> None:
    """out[i, into[m]] = vectors[numbers[i], columns[m]]."""
    count, is_run = columns.shape[0], True
    for m in range(count):
        is_run = is_run and columns[m] == columns[0] + m and into[m] == into[0] + m
    if is_run and count >= RUN:
        first, target = columns[0], into[0]
        for i in range(out.shape[0]):
            number = numbers[i]
            for m in range(count):
                out[i, target + m] = vectors[number, first + m]
    else:
        for start in range(0, out.shape[0], TILE):
            stop = min(start + TILE, out.shape[0])
            for m in range(count):
                _put_column(vectors, numbers, columns[m], out, into[m], start, stop)


@kernel_part
def _put_column(
    vectors: Any, numbers: Any, column: int, out: Any, target: int, start: int, stop: int
) -> None:
    """One column, at some rows."""
    m, into = np.uint64(column), np.uint64(target)
    for at in range(start, stop):
        i = np.uint64(at)
        out[i, into] = vectors[np.uint64(numbers[i]), m]
