"""Arrays to be filled, in memory that is kept."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 2**20
"""From so many bytes on an array is worth large pages."""

PAGES = 6 * 2**20
"""Bytes that are asked for at least, so that numpy asks the system for large pages in its turn, and
some are whole: a small page takes as long as filling it."""


def unfilled(n: int, width: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array (n, width), to be filled.

    Example:
        >>> unfilled(2**17, 3, np.dtype(np.float32)).shape
        (131072, 3)

    """
    if n * width * dtype.itemsize < LARGE:
        return np.empty((n, width), dtype)
    room = np.empty(max(n * width, PAGES // dtype.itemsize), dtype)
    return room[: n * width].reshape(n, width)


KEPT = 31 * 2**20
"""Bytes of an array that is asked for and given back, once, without being filled.

glibc then takes smaller arrays from memory that it keeps, up to 64 MiB for each of its arenas (one
a thread, eight a processor at most; also when the thread has ended), and not each from the system,
which clears every page anew: a fifth of the time of 16,384 symbols."""


@cache
def keep_memory() -> None:
    """Let what is given back be there for the arrays that are asked for next."""
    np.empty(KEPT, np.uint8)
