"""Unfilled arrays, in memory that is kept from one input to the next."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 2**20
"""From this size in bytes on, an array takes its memory in large pages."""

# numpy asks Linux for large pages of 2 MiB from 4 MiB on; 6 MiB hold two whole ones wherever they
# begin. The first write to a small page of 4 KiB takes as long as filling it.
PAGES = 6 * 2**20
"""The least memory, in bytes, of an array of `LARGE` or more."""


def unfilled(n: int, width: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array (n, width) whose entries are not set.

    Example:
        >>> unfilled(2**17, 3, np.dtype(np.float32)).shape
        (131072, 3)

    """
    if n * width * dtype.itemsize < LARGE:
        return np.empty((n, width), dtype)
    room = np.empty(max(n * width, PAGES // dtype.itemsize), dtype)
    return room[: n * width].reshape(n, width)


# glibc takes arrays above its mmap threshold from the system, which clears every page anew: that is
# a fifth of the time of 16,384 symbols. Freeing an array raises the threshold to its size, up to
# 32 MiB, and smaller arrays then come from memory that glibc keeps, up to 64 MiB for each of its
# arenas (one a thread, eight a processor at most, also when the thread has ended).
KEPT = 31 * 2**20
"""Bytes of the array that is allocated and freed once, without being filled."""


@cache
def keep_memory() -> None:
    """Let freed memory be used again for the next arrays."""
    np.empty(KEPT, np.uint8)
