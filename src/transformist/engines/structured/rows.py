"""The vectors of an input: few distinct ones and which of them each row is, or one for each row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.groups import Groups
from transformist.engines.structured.once import once
from transformist.engines.structured.placing import put
from transformist.engines.structured.ranges import Measured, largest_in
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.threads import on_all_processors
from transformist.errors import NotFinite

BLOCK = 2**13
"""How many rows are computed at once."""

SHARE = 16
"""Distinct vectors are few where there is at most one for so many rows."""

Function = Callable[[NDArray[Any]], NDArray[Any]]
"""Of vectors, row by row: (m, d) → (m, width)."""


def blocks(n: int, backwards: bool = False) -> Iterator[slice]:
    """Rows 0 to n − 1 in slices, or n − 1 to 0.

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


class Rows(ABC):
    """Vectors of the same width, one for each position.

    Attributes:
        n: how many there are.
        width: of each.
        dtype: of their numbers.

    """

    n: int
    width: int
    dtype: np.dtype[Any]

    @abstractmethod
    def at(self, rows: Any) -> NDArray[Any]:
        """The vectors of some rows, one after the other in memory."""

    @abstractmethod
    def through(self, function: Function, width: int) -> Few | Many:
        """The images under a function of vectors."""

    @abstractmethod
    def lazily(self, function: Function, width: int) -> Rows:
        """The images under a function of vectors; of many, computed whenever they are used."""

    @abstractmethod
    def indexed(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Vectors, and which of them those of some rows are."""

    @abstractmethod
    def grouped(self, limit: int) -> Few | None:
        """The same vectors, where at most so many of them are distinct."""

    @abstractmethod
    def measure(self, measured: Measured) -> None:
        """Take the numbers of all of them."""

    def by_columns(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """As `indexed`, each column of the vectors one after the other in memory."""
        vectors, numbers = self.indexed(rows)
        return np.asfortranarray(vectors), numbers

    @once
    @abstractmethod
    def sizes(self) -> NDArray[np.float64]:
        """What numbers are at most in size, in each column; NaN or infinite where one is."""

    @once
    @abstractmethod
    def constants(self) -> list[float | None]:
        """The numbers that columns hold at all rows; `None` where it is not known to be one."""

    @abstractmethod
    def kept(self) -> Few | Many:
        """The same vectors, computed."""

    def mapped(self, part: SparseMap) -> Rows:
        """The images under an affine map, as `lazily`."""
        is_same = part.is_identity and part.height == self.width
        return self if is_same else self.lazily(part, part.height)

    def whole(self) -> NDArray[Any]:
        """All the vectors, (n, width)."""
        return self.at(slice(None))


@final
class Few(Rows):
    """Few distinct vectors, and which of them each row is.

    Attributes:
        table: vectors, each of which is at some row.
        ids: the number of each row's.

    """

    def __init__(self, table: NDArray[Any], ids: NDArray[np.int32]) -> None:
        self.table, self.ids = table, ids
        self.n, self.width, self.dtype = len(ids), int(table.shape[1]), table.dtype

    @classmethod
    def of(cls, table: NDArray[Any], ids: NDArray[Any]) -> Few:
        """The rows of a table that are there, equal ones being made one.

        Example:
            >>> few = Few.of(np.array([[5.0], [7.0], [5.0], [9.0]]), np.array([2, 1, 0]))
            >>> few.table.tolist(), few.ids.tolist()
            ([[5.0], [7.0]], [0, 1, 0])

        """
        used = np.zeros(len(table), np.bool_)
        used[ids] = True
        number, distinct = _distinct(table, np.flatnonzero(used))
        return cls(distinct, number.take(ids, mode="clip"))

    @property
    def merged(self) -> Few:
        """The same, equal vectors being made one."""
        number, distinct = _distinct(self.table, np.arange(len(self.table)))
        alike = len(distinct) == len(self.table)
        return self if alike else Few(distinct, number.take(self.ids, mode="clip"))

    def at(self, rows: Any) -> NDArray[Any]:
        """As `Rows`."""
        found: NDArray[Any] = np.take(self.table, self.ids[rows], axis=0, mode="clip")
        return found

    def through(self, function: Function, width: int) -> Few:
        """As `Rows`."""
        return Few(function(self.table), self.ids)

    def lazily(self, function: Function, width: int) -> Few:
        """As `Rows`."""
        return self.through(function, width)

    def kept(self) -> Few:
        """As `Rows`."""
        return self

    def indexed(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """As `Rows`; from a table that is longer than a block only what is there."""
        if len(self.table) > BLOCK:
            vectors = self.at(rows)
            return vectors, numbers_below(len(vectors))
        return self.table, np.ascontiguousarray(self.ids[rows])

    def grouped(self, limit: int) -> Few | None:
        """As `Rows`."""
        merged = self.merged
        return merged if len(merged.table) <= limit else None

    def measure(self, measured: Measured) -> None:
        """As `Rows`."""
        measured.take(self.table)

    def with_all(self, others: Sequence[Few]) -> Few | None:
        """The vectors of all, one after the other in each row, where few of these are distinct.

        Example:
            >>> left, right = (Few.of(np.eye(2), np.arange(40) % each) for each in (2, 1))
            >>> left.with_all([right]).table.tolist()
            [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]]

        """
        if not others:
            return self
        tables = [each.merged for each in (self, *others)]
        sizes = [len(each.table) for each in tables]
        if math.prod(sizes) > max(self.n // SHARE, *sizes):
            return None
        ids = tables[0].ids
        for size, other in zip(sizes[1:], tables[1:], strict=True):
            ids = ids * np.int32(size) + other.ids
        places = np.unravel_index(np.arange(math.prod(sizes)), sizes)
        parts = [each.table[place] for each, place in zip(tables, places, strict=True)]
        return Few.of(np.concatenate(parts, axis=1), ids)

    @once
    def sizes(self) -> NDArray[np.float64]:
        """As `Rows`."""
        return np.asarray(np.abs(self.table).max(axis=0, initial=0), np.float64)

    @once
    def constants(self) -> list[float | None]:
        """As `Rows`."""
        if not len(self.table):
            return [0.0] * self.width
        are_one = (self.table == self.table[:1]).all(axis=0)
        found = zip(self.table[0].tolist(), are_one.tolist(), strict=True)
        return [number if is_one else None for number, is_one in found]


def _distinct(
    table: NDArray[Any], used: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """A number for each row of a table that is used, equal ones having the same, and the rows."""
    groups = Groups(int(table.shape[1]), max(len(used), 1), table.dtype)
    found = groups.of(table[used])
    assert found is not None  # as there is room for all
    number = np.zeros(len(table), np.int32)
    number[used] = found
    return number, groups.vectors


class _RowByRow(Rows):
    """What is common to those that have a vector for each row."""

    def kept(self) -> Many:
        """As `Rows`."""
        return self.through(lambda x: x, self.width)

    def through(self, function: Function, width: int) -> Many:
        """As `Rows`."""
        out = unfilled(self.n, width, self.dtype)

        def fill(rows: slice) -> None:
            out[rows] = function(self.at(rows))

        on_all_processors(fill, blocks(self.n), self.n * (self.width + width))
        return Many(out)

    def lazily(self, function: Function, width: int) -> Rows:
        """As `Rows`."""
        return Image(self, function, width)

    def indexed(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """As `Rows`."""
        vectors = self.at(rows)
        return vectors, numbers_below(len(vectors))

    def grouped(self, limit: int) -> Few | None:
        """As `Rows`."""
        groups = Groups(self.width, min(limit, max(self.n, 1)), self.dtype)
        ids = np.empty(self.n, np.int32)
        for rows in blocks(self.n):
            found = groups.of(self.at(rows))
            if found is None:
                return None
            ids[rows] = found
        return Few(groups.vectors, ids)

    def measure(self, measured: Measured) -> None:
        """As `Rows`."""
        for rows in blocks(self.n):
            measured.take(self.at(rows))

    @once
    def sizes(self) -> NDArray[np.float64]:
        """As `Rows`."""

        def largest(rows: slice) -> NDArray[np.float64]:
            sizes = np.zeros(self.width)
            largest_in(self.at(rows), sizes)
            return sizes

        found = on_all_processors(largest, blocks(self.n), self.n * self.width)
        return np.asarray(np.max([np.zeros(self.width), *found], axis=0))

    @once
    def constants(self) -> list[float | None]:
        """As `Rows`."""
        return [None] * self.width


@lru_cache(maxsize=8)
def _kept_below(count: int) -> NDArray[np.int32]:
    numbers = np.arange(count, dtype=np.int32)
    numbers.flags.writeable = False
    return numbers


def numbers_below(count: int) -> NDArray[np.int32]:
    """The numbers 0 to count − 1; those of a block are kept, as they are asked for often."""
    return _kept_below(count) if count <= BLOCK else np.arange(count, dtype=np.int32)


@final
class Many(_RowByRow):
    """A vector for each row.

    Args:
        vectors: (n, width).
        sizes: what numbers are at most in size, in each column; left out, they are looked through.

    """

    def __init__(self, vectors: NDArray[Any], sizes: NDArray[np.float64] | None = None) -> None:
        self._vectors = vectors
        if sizes is not None:
            self.sizes = sizes
        self.n, self.width = (int(each) for each in vectors.shape)
        self.dtype = vectors.dtype

    def at(self, rows: Any) -> NDArray[Any]:
        """As `Rows`."""
        return np.ascontiguousarray(self._vectors[rows])

    def kept(self) -> Many:
        """As `Rows`."""
        return self


@final
class Image(_RowByRow):
    """The images of vectors under a function, computed whenever they are used."""

    def __init__(self, source: Rows, function: Function, width: int) -> None:
        self._source, self._function = source, function
        self.n, self.width, self.dtype = source.n, width, source.dtype

    def at(self, rows: Any) -> NDArray[Any]:
        """As `Rows`."""
        return self._function(self._source.at(rows))

    def by_columns(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """As `Rows`."""
        if not isinstance(self._function, SparseMap):
            return super().by_columns(rows)
        vectors = self._function.by_columns(self._source.at(rows))
        return vectors, numbers_below(len(vectors))


@final
class Beside(_RowByRow):
    """The columns of several, beside each other.

    Args:
        parts: each with its columns that are taken, and where they go.

    """

    def __init__(self, parts: Sequence[tuple[Rows, list[int], list[int]]]) -> None:
        self._parts = [(part, np.array(own), np.array(into)) for part, own, into in parts]
        self.width = sum(len(into) for _, _, into in parts)
        self.n, self.dtype = parts[0][0].n, parts[0][0].dtype

    def at(self, rows: Any) -> NDArray[Any]:
        """As `Rows`."""
        found = [part.indexed(rows) for part, _, _ in self._parts]
        out = np.empty((len(found[0][1]), self.width), self.dtype)
        for (_, own, into), (vectors, numbers) in zip(self._parts, found, strict=True):
            put(vectors, numbers, own, out, into)
        return out


def require_finite(z: Rows, a: Floating) -> None:
    """Refuse what has overflowed.

    Raises:
        NotFinite: for a number that is NaN or infinite.

    """
    if not np.isfinite(z.sizes).all():
        raise NotFinite(
            f"scores and values stay below {a.largest:g} in {a.name}",
            received="one that overflows",
            where="structured engine",
            remedy="use a format with a wider range",
        )
