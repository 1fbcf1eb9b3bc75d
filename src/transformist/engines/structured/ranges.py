"""Ranges of numbers: their sizes, and the powers of two of which they are multiples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.kernel import kernel
from transformist.errors import NotFinite

TILE = 256
"""This many rows are read column by column before the next ones: 16 KiB at 8 columns of float64."""

UNSIGNED = np.uint64(2**63 - 1)
"""The bits of a float64 number without its sign."""


@kernel
def largest_of(x: Any, columns: Any, sizes: Any) -> None:
    """sizes[m] = max |x[i, m]| for some columns m; NaN, once met, stays."""
    for i in range(x.shape[0]):
        row = x[i]
        for column in columns:
            m = np.uint64(column)
            size = abs(np.float64(row[m]))
            if not size <= sizes[m] and sizes[m] == sizes[m]:
                sizes[m] = size


@kernel
def largest_in(x: Any, sizes: Any) -> None:
    """sizes[m] = max |x[i, m]|; NaN, once met, stays.

    Without their signs, numbers are in the order of their bits, NaN being the largest.
    """
    for start in range(0, x.shape[0], TILE):
        stop = min(start + TILE, x.shape[0])
        for m in range(x.shape[1]):
            most = np.float64(sizes[m]).view(np.uint64)
            for at in range(start, stop):
                number = np.float64(x[np.uint64(at), m])
                most = max(most, np.float64(number).view(np.uint64) & UNSIGNED)
            sizes[m] = np.uint64(most).view(np.float64)


@kernel
def _first_largest(y: Any, found: Any) -> None:
    """Write to `found` the first column of each row that no other exceeds."""
    for i in range(y.shape[0]):
        largest = 0
        for m in range(1, y.shape[1]):
            if y[i, m] > y[i, largest]:
                largest = m
        found[i] = largest


def first_largest(y: NDArray[Any]) -> NDArray[np.intp]:
    """The column of the first of the largest numbers of each row; no number is NaN.

    Example:
        >>> first_largest(np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]))
        array([1, 0])

    """
    found = np.empty(len(y), np.intp)
    _first_largest(y, found)
    return found


@kernel
def _measure(x: Any, sizes: Any, steps: Any) -> None:
    """Widen for each column the largest size, and the largest power of two that divides it all."""
    # Division by a power of two is exact, so floor(x) == x tells multiples. Every float64 number
    # is a multiple of 2⁻¹⁰⁷⁴, so the halving ends.
    for i in range(x.shape[0]):
        for m in range(x.shape[1]):
            size = abs(np.float64(x[i, m]))
            if size == 0.0:
                continue
            sizes[m] = max(sizes[m], size)
            while not (size >= steps[m] and np.floor(size / steps[m]) == size / steps[m]):
                steps[m] *= 0.5


class ColumnRanges:
    """Ranges of the numbers in each column: the largest size, and a power of two that divides all.

    Attributes:
        sizes: the largest |x|.
        steps: the largest power of two, at most 2¹⁰²³, of which every x is a whole multiple.

    Example:
        >>> met = ColumnRanges(2)
        >>> met.take(np.array([[6.0, 0.0], [-0.5, 3.0]]))
        >>> met.sizes.tolist(), met.steps.tolist()
        ([6.0, 3.0], [0.5, 1.0])

    """

    def __init__(self, width: int) -> None:
        self.sizes = np.zeros(width)
        self.steps = np.full(width, 2.0**1023)

    def take(self, rows: NDArray[Any]) -> None:
        """Widen the ranges by more rows, of finite numbers."""
        _measure(rows, self.sizes, self.steps)


def are_exact(queries: ColumnRanges, keys: ColumnRanges, a: Floating) -> bool:
    """True if no dot product rounds, and different ones still differ once divided by √d_key.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> whole, tenths = ColumnRanges(1), ColumnRanges(1)
        >>> whole.take(np.array([[3.0], [5.0]])), tenths.take(np.array([[0.1]]))
        (None, None)
        >>> are_exact(whole, whole, FLOAT32), are_exact(whole, tenths, FLOAT32)
        (True, False)

    """
    both = (queries.sizes > 0) & (keys.sizes > 0)
    # Let products be multiples of g, and let their sizes add up to at most 2^(p − 2) g. Every
    # partial sum is a multiple of g of at most p − 2 bits, and so a number of the format, of p
    # bits. Two different sums differ by g or more, at least 4u = 2^(2 − p) of the larger one, u =
    # 2⁻ᵖ. Their quotients by the same √d_key differ by as much, and rounding moves each by at most
    # u of itself. g ≥ smallest · 4^p keeps products, and quotients by √d_key < 2^p, out of the
    # subnormal range.
    with np.errstate(over="ignore", under="ignore"):
        total = (queries.sizes * keys.sizes)[both].sum()
        step = (queries.steps * keys.steps)[both].min(initial=np.inf)
        room = 2.0 ** (a.precision - 2) * step
    return bool(total <= room and step >= a.smallest * 4.0**a.precision)


def overflow(numbers: str, a: Floating) -> NotFinite:
    """The error for a number beyond the largest of a format.

    Args:
        numbers: the numbers that must stay below it.
        a: the format.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> print(overflow("scores", FLOAT32))
        structured engine: scores must stay below 3.40282e+38 in float32; received one that \
        overflows; use a format with a wider range

    """
    return NotFinite(
        f"{numbers} must stay below {a.largest:g} in {a.name}",
        received="one that overflows",
        where="structured engine",
        remedy="use a format with a wider range",
    )


# With u = 2⁻⁵³ a score of d_key terms, whose sizes add up to S after the division by √d_key, is off
# by (d_key + 2)uS. Computed in two ways, two scores differ by four times that, relative to each
# other, and so does the ratio of two weights; a mean moves by at most twice as much of the largest
# value: 8 (d_key + 2) S u ≤ 8 · 2¹⁰ · 2⁻⁵³ = 2⁻⁴⁰.
SOFT = 1024.0
"""A softmax is soft if (d_key + 2) times the largest size of scores is at most this."""


def are_small(queries: ColumnRanges, keys: ColumnRanges, d_key: int) -> bool:
    """True if a softmax stays within 2⁻⁴⁰ of its largest value in float64, however scores round.

    `SOFT` has the derivation.

    Example:
        >>> met = ColumnRanges(1)
        >>> met.take(np.array([[16.0]]))
        >>> are_small(met, met, 1), are_small(met, met, 4)
        (True, True)
        >>> are_small(met, met, 100)
        False

    """
    largest = float((queries.sizes * keys.sizes).sum()) / math.sqrt(d_key)
    return (d_key + 2) * largest <= SOFT
