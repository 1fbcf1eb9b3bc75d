"""Groups of equal vectors, numbered in the order in which they are met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.kernel import kernel, kernel_part


@kernel_part
def _are_equal(x: Any, y: Any) -> bool:
    for m in range(x.shape[0]):  # noqa: SIM110 (numba compiles no generator)
        if x[m] != y[m]:
            return False
    return True


@kernel_part
def find(row: Any, found: Any, table: Any) -> int:
    """The slot of the hash table that holds the number of a vector, or −1 if there is none yet."""
    # FNV-1a over words of 64 bits; the shift brings the high bits of a float, in which small whole
    # numbers differ, down to the low bits that choose the slot.
    hashed = np.uint64(14695981039346656037)
    for m in range(row.shape[0]):
        bits = np.float64(row[m])
        part = np.uint64(np.float64(bits).view(np.uint64))
        hashed = (hashed ^ part) * np.uint64(1099511628211)
        hashed ^= hashed >> np.uint64(29)
    slot = np.int64(hashed % np.uint64(table.shape[0]))
    while table[slot] >= 0:
        if _are_equal(found[table[slot]], row):
            break
        slot = (slot + 1) % table.shape[0]
    return int(slot)


@kernel
def _assign(rows: Any, found: Any, count: int, table: Any, ids: Any) -> int:
    """Write the group of each row to `ids`; return the number of groups, −1 if `found` is full."""
    last = -1
    for i in range(rows.shape[0]):
        if last < 0 or not _are_equal(rows[i], found[last]):
            slot = find(rows[i], found, table)
            if table[slot] < 0:
                if count == found.shape[0]:
                    return -1
                for m in range(rows.shape[1]):
                    found[count, m] = rows[i, m]
                table[slot] = count
                count += 1
            last = table[slot]
        ids[i] = last
    return count


class Groups:
    """Distinct vectors, at most `limit`, each with a number in the order of its first occurrence.

    Example:
        >>> groups = Groups(width=1, limit=2, dtype=np.dtype(float))
        >>> groups.of(np.array([[4.0], [-0.0], [0.0]])), groups.vectors.tolist()
        (array([0, 1, 1], dtype=int32), [[4.0], [0.0]])
        >>> groups.of(np.array([[5.0]])) is None
        True

    """

    def __init__(self, width: int, limit: int, dtype: np.dtype[Any]) -> None:
        self._found = np.zeros((limit, width), dtype)
        # Four slots a vector: probes stay short, and one slot is always free, so a search ends.
        self._table = np.full(4 * limit + 1, -1, np.int32)
        self._count = 0

    @property
    def vectors(self) -> NDArray[Any]:
        """The distinct vectors so far."""
        return self._found[: self._count]

    @property
    def width(self) -> int:
        """The width of the vectors."""
        return int(self._found.shape[1])

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """The vectors with the room behind them, and the hash table, as `find` needs them."""
        return self._found, self._table

    def of(self, rows: NDArray[Any]) -> NDArray[np.int32] | None:
        """The numbers of the rows; `None` if more than `limit` of all rows so far are distinct."""
        ids = np.empty(rows.shape[0], np.int32)
        rows = np.ascontiguousarray(rows) + rows.dtype.type(0)  # −0 is 0
        count = _assign(rows, self._found, self._count, self._table, ids)
        if count < 0:
            return None
        self._count = count
        return ids


@kernel
def _mark(ids: Any, marks: Any) -> None:
    for at in range(ids.shape[0]):
        marks[np.uint64(ids[np.uint64(at)])] = True


def marked(ids: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """A mark for each number below `count` that is in `ids`.

    Example:
        >>> marked(np.array([2, 0, 2]), 4)
        array([ True, False,  True, False])

    """
    marks = np.zeros(count, np.bool_)
    _mark(ids, marks)
    return marks


@kernel
def _translate(ids: Any, number: Any, out: Any) -> None:
    for at in range(ids.shape[0]):
        i = np.uint64(at)
        out[i] = number[np.uint64(ids[i])]


def translated(ids: NDArray[Any], number: NDArray[np.int32]) -> NDArray[np.int32]:
    """The new number of each old one.

    Example:
        >>> translated(np.array([2, 0, 2]), np.array([7, 8, 9], np.int32))
        array([9, 7, 9], dtype=int32)

    """
    out = np.empty(len(ids), np.int32)
    _translate(ids, number, out)
    return out
