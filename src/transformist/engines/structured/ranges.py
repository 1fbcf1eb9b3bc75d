"""How large numbers get, of which powers of two they are multiples; what is said of an overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.kernel import kernel
from transformist.errors import NotFinite

TILE = 256
"""How many rows are gone through column by column: they stay in the nearest memory."""

UNSIGNED = np.uint64(2**63 - 1)
"""The bits of a number that are not its sign."""


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
    """Of each row the first column that no other exceeds."""
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
    """Of each column the largest size, and the largest power of two that divides all of it."""
    for i in range(x.shape[0]):
        for m in range(x.shape[1]):
            size = abs(np.float64(x[i, m]))
            if size == 0.0:
                continue
            sizes[m] = max(sizes[m], size)
            while not (size >= steps[m] and np.floor(size / steps[m]) == size / steps[m]):
                steps[m] *= 0.5


class ColumnRanges:
    """The numbers met in each column: their largest size, and a power of two that divides all.

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
    """Whether no dot product rounds, and different ones still differ once divided by √d_key.

    Where products are whole multiples of g and their sizes add up to at most 2^(p − 2) g, every sum
    of them is a number of the format, of p bits, and the quotients of two different ones lie more
    than a unit in the last place apart.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> whole, tenths = ColumnRanges(1), ColumnRanges(1)
        >>> whole.take(np.array([[3.0], [5.0]])), tenths.take(np.array([[0.1]]))
        (None, None)
        >>> are_exact(whole, whole, FLOAT32), are_exact(whole, tenths, FLOAT32)
        (True, False)

    """
    both = (queries.sizes > 0) & (keys.sizes > 0)
    with np.errstate(over="ignore", under="ignore"):
        total = (queries.sizes * keys.sizes)[both].sum()
        step = (queries.steps * keys.steps)[both].min(initial=np.inf)
        room = 2.0 ** (a.precision - 2) * step
    return bool(total <= room and step >= a.smallest * 4.0**a.precision)


def overflow(numbers: str, a: Floating) -> NotFinite:
    """The refusal of a number beyond the largest of a format.

    Args:
        numbers: which ones are to stay below it.
        a: the format.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> print(overflow("scores", FLOAT32))
        structured engine: scores stay below 3.40282e+38 in float32; received one that overflows; \
        use a format with a wider range

    """
    return NotFinite(
        f"{numbers} stay below {a.largest:g} in {a.name}",
        received="one that overflows",
        where="structured engine",
        remedy="use a format with a wider range",
    )


SOFT = 1024.0
"""(d_key + 2) times the size of scores, up to which a softmax does not depend on how they round."""


def are_small(queries: ColumnRanges, keys: ColumnRanges, d_key: int) -> bool:
    """Whether a softmax is the same within 2⁻⁴⁰ of its values in float64, however scores round.

    A score is off by (d_key + 2) 2⁻⁵³ of the sizes of its terms, the difference of two that are
    computed in two ways by four times as much, and a mean by twice the difference.

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
