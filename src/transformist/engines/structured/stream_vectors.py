"""The vectors of an input; where few are distinct, these and the number of each row's."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.groups import Groups, marked, translated
from transformist.engines.structured.once import once
from transformist.engines.structured.ranges import ColumnRanges, overflow
from transformist.engines.structured.sparse import SparseMap

# A block of 10 columns of float64 takes 640 KiB, within the second-level cache. Processor time of
# 10⁵ symbols, in ms, in blocks of 2¹⁰, 2¹², 2¹³, 2¹⁴, 2¹⁶ rows: dyck-1 12, 8, 7, 8, 7; dyck-2-8
# 206, 116, 95, 94, 89; induction-softmax 52, 43, 41, 42, 45.
BLOCK = 2**13
"""This many rows are computed at once."""

# A function of a vector then is computed for at most a sixteenth of the rows, and looking up the
# result of each row, about 1 ns a number, is what remains.
SHARE = 16
"""Distinct vectors are few if there is at most one for this many rows."""

Function = Callable[[NDArray[Any]], NDArray[Any]]
"""A function of vectors, row by row: (m, d) → (m, width)."""


def blocks(n: int, backwards: bool = False) -> Iterator[slice]:
    """Slices of the rows 0 to n − 1, or n − 1 to 0.

    Example:
        >>> [list(range(3)[rows]) for rows in blocks(3, backwards=True)]
        [[2, 1, 0]]

    """
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        if backwards:
            last = n - stop - 1
            yield slice(n - start - 1, None if last < 0 else last, -1)
        else:
            yield slice(start, stop)


@lru_cache(maxsize=8)
def _kept_below(count: int) -> NDArray[np.int32]:
    numbers = np.arange(count, dtype=np.int32)
    numbers.flags.writeable = False
    return numbers


def numbers_below(count: int) -> NDArray[np.int32]:
    """The numbers 0 to count − 1; those below a block's length are kept for the next call."""
    return _kept_below(count) if count <= BLOCK else np.arange(count, dtype=np.int32)


class Vectors(ABC):
    """Vectors of the same width, one for each position.

    Attributes:
        n: their number.
        width: of each.
        dtype: the type of their numbers.

    """

    n: int
    width: int
    dtype: np.dtype[Any]

    @abstractmethod
    def at(self, rows: Any) -> NDArray[Any]:
        """The vectors of some rows, contiguous in memory."""

    @abstractmethod
    def through(self, function: Function, width: int) -> Vectors:
        """The images under a function; those of many vectors are computed at each use."""

    @abstractmethod
    def kept(self) -> Vectors:
        """The same vectors, computed now and stored."""

    @abstractmethod
    def indexed(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Vectors, and the number of the vector of each of some rows."""

    @abstractmethod
    def numbered(self, groups: Groups) -> NDArray[np.int32] | None:
        """The group of each row; `None` if there is no room for the groups."""

    @abstractmethod
    def measure(self, measured: ColumnRanges) -> None:
        """Widen ranges by all the vectors."""

    def by_columns(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """The vectors and numbers of `indexed`, columns of vectors contiguous in memory."""
        vectors, numbers = self.indexed(rows)
        return np.asfortranarray(vectors), numbers

    @once
    @abstractmethod
    def sizes(self) -> NDArray[np.float64]:
        """Upper bounds on the sizes of numbers, by columns; NaN or infinite where one is."""

    @once
    @abstractmethod
    def constants(self) -> list[float | None]:
        """The number that a column holds at all rows; `None` if it is not known to be one."""

    @once
    def are_finite(self) -> bool:
        """True if all numbers are finite."""
        return bool(np.isfinite(self.sizes).all())

    def mapped(self, part: SparseMap) -> Vectors:
        """The images under an affine map, as `through` gives them."""
        is_same = part.is_identity and part.height == self.width
        return self if is_same else self.through(part, part.height)

    def whole(self) -> NDArray[Any]:
        """All the vectors, (n, width)."""
        return self.at(slice(None))


@final
class Few(Vectors):
    """Few distinct vectors, and the number of each row's vector.

    Attributes:
        table: the vectors, each of which is at some row.
        ids: the number of each row's vector.

    """

    def __init__(self, table: NDArray[Any], ids: NDArray[np.int32]) -> None:
        self.table, self.ids = table, ids
        self.n, self.width, self.dtype = len(ids), int(table.shape[1]), table.dtype

    @classmethod
    def of(cls, table: NDArray[Any], ids: NDArray[Any]) -> Few:
        """The rows of a table that `ids` names; equal ones become one.

        Example:
            >>> few = Few.of(np.array([[5.0], [7.0], [5.0], [9.0]]), np.array([2, 1, 0]))
            >>> few.table.tolist(), few.ids.tolist()
            ([[5.0], [7.0]], [0, 1, 0])

        """
        number, distinct = _distinct(table, np.flatnonzero(marked(ids, len(table))))
        return cls(distinct, translated(ids, number))

    @property
    def merged(self) -> Few:
        """The same vectors; equal ones become one."""
        number, distinct = _distinct(self.table, np.arange(len(self.table)))
        alike = len(distinct) == len(self.table)
        return self if alike else Few(distinct, translated(self.ids, number))

    def at(self, rows: Any) -> NDArray[Any]:
        found: NDArray[Any] = np.take(self.table, self.ids[rows], axis=0, mode="clip")
        return found

    def through(self, function: Function, width: int) -> Few:
        return Few(function(self.table), self.ids)

    def kept(self) -> Few:
        return self

    def indexed(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """The table and the numbers; of a table longer than a block only the rows needed."""
        if len(self.table) > BLOCK:
            vectors = self.at(rows)
            return vectors, numbers_below(len(vectors))
        return self.table, np.ascontiguousarray(self.ids[rows])

    def numbered(self, groups: Groups) -> NDArray[np.int32] | None:
        found = groups.of(self.table)
        if found is None:
            return None
        is_same = np.array_equal(found, np.arange(len(found)))
        return self.ids if is_same else translated(self.ids, found)

    def measure(self, measured: ColumnRanges) -> None:
        measured.take(self.table)

    def with_all(self, others: Sequence[Few]) -> Few | None:
        """The vectors of all side by side, if few of these are distinct; `None` otherwise.

        Example:
            >>> left, right = (Few.of(np.eye(2), np.arange(40) % each) for each in (2, 1))
            >>> left.with_all([right]).table.tolist()
            [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]]

        """
        if not others:
            return self
        tables = [each.merged for each in (self, *others)]
        sizes = [len(each.table) for each in tables]
        # The combinations of numbers are themselves numbered, in a mixed radix. Their table may
        # have one row for `SHARE` positions, or as many rows as one of the parts, if the rest are
        # constant.
        if math.prod(sizes) > max(self.n // SHARE, *sizes):
            return None
        ids = tables[0].ids
        for size, other in zip(sizes[1:], tables[1:], strict=True):
            # This stays below the product of the sizes, which is at most n, and so within int32 for
            # every input that fits in memory.
            ids = ids * np.int32(size) + other.ids
        places = np.unravel_index(np.arange(math.prod(sizes)), sizes)
        parts = [each.table[place] for each, place in zip(tables, places, strict=True)]
        return Few.of(np.concatenate(parts, axis=1), ids)

    @once
    def sizes(self) -> NDArray[np.float64]:
        return np.asarray(np.abs(self.table).max(axis=0, initial=0), np.float64)

    @once
    def constants(self) -> list[float | None]:
        if not len(self.table):
            return [0.0] * self.width
        are_one = (self.table == self.table[:1]).all(axis=0)
        found = zip(self.table[0].tolist(), are_one.tolist(), strict=True)
        return [number if is_one else None for number, is_one in found]


def _distinct(
    table: NDArray[Any], used: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """A number for each used row of a table, the same for equal ones, and the distinct rows."""
    groups = Groups(int(table.shape[1]), max(len(used), 1), table.dtype)
    found = groups.of(table[used])
    assert found is not None  # as there is room for all
    number = np.zeros(len(table), np.int32)
    number[used] = found
    return number, groups.vectors


def require_finite(z: Vectors, a: Floating) -> None:
    """Refuse vectors that have overflowed.

    Raises:
        NotFinite: for a number that is NaN or infinite.

    """
    if not z.are_finite:
        raise overflow("scores and values", a)
