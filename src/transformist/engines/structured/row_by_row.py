"""Vectors of an input, one for each row: stored, or computed whenever they are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.arrays import unfilled
from transformist.engines.structured.groups import Groups
from transformist.engines.structured.once import once
from transformist.engines.structured.placing import put
from transformist.engines.structured.ranges import ColumnRanges, largest_in
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.stream_vectors import Function, Vectors, blocks, numbers_below
from transformist.engines.structured.threads import on_all_processors


class RowByRow(Vectors):
    """Vectors of which each row has its own."""

    @property
    def read(self) -> int:
        """The number of numbers from which a vector is computed."""
        return self.width

    def through(self, function: Function, width: int) -> Vectors:
        return Image(self, function, width)

    def kept(self) -> Many:
        out = unfilled(self.n, self.width, self.dtype)

        def fill(rows: slice) -> None:
            out[rows] = self.at(rows)

        on_all_processors(fill, blocks(self.n), self.n * (self.read + self.width))
        return Many(out)

    def indexed(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        vectors = self.at(rows)
        return vectors, numbers_below(len(vectors))

    def numbered(self, groups: Groups) -> NDArray[np.int32] | None:
        ids = np.empty(self.n, np.int32)
        for rows in blocks(self.n):
            found = groups.of(self.at(rows))
            if found is None:
                return None
            ids[rows] = found
        return ids

    def measure(self, measured: ColumnRanges) -> None:
        for rows in blocks(self.n):
            measured.take(self.at(rows))

    @once
    def sizes(self) -> NDArray[np.float64]:

        def largest(rows: slice) -> NDArray[np.float64]:
            sizes = np.zeros(self.width)
            largest_in(self.at(rows), sizes)
            return sizes

        found = on_all_processors(largest, blocks(self.n), self.n * self.width)
        return np.asarray(np.max([np.zeros(self.width), *found], axis=0))

    @once
    def constants(self) -> list[float | None]:
        return [None] * self.width


@final
class Many(RowByRow):
    """Stored vectors, one for each row.

    Args:
        vectors: (n, width).
        bound: on the sizes of numbers, in each column; by default they are measured.

    """

    def __init__(self, vectors: NDArray[Any], bound: NDArray[np.float64] | None = None) -> None:
        self._vectors, self._bound = vectors, bound
        self.n, self.width = (int(each) for each in vectors.shape)
        self.dtype = vectors.dtype

    def at(self, rows: Any) -> NDArray[Any]:
        return np.ascontiguousarray(self._vectors[rows])

    def kept(self) -> Many:
        return self

    @once
    def sizes(self) -> NDArray[np.float64]:
        return super().sizes if self._bound is None else self._bound


@final
class Image(RowByRow):
    """The images of vectors under a function, computed whenever they are used."""

    # Queries, keys and values are a few products a number: computing a block when it is used costs
    # less than writing n rows to memory and reading them again.
    def __init__(self, source: Vectors, function: Function, width: int) -> None:
        self._source, self._function = source, function
        self.n, self.width, self.dtype = source.n, width, source.dtype

    @property
    def read(self) -> int:
        return self._source.width

    def at(self, rows: Any) -> NDArray[Any]:
        return self._function(self._source.at(rows))

    def by_columns(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
        if not isinstance(self._function, SparseMap):
            return super().by_columns(rows)
        vectors = self._function.by_columns(self._source.at(rows))
        return vectors, numbers_below(len(vectors))


@final
class Beside(RowByRow):
    """Columns of several parts, beside each other.

    Args:
        parts: each with the columns that are taken, and their new places.

    """

    def __init__(self, parts: Sequence[tuple[Vectors, list[int], list[int]]]) -> None:
        self._parts = [(part, np.array(own), np.array(into)) for part, own, into in parts]
        self.width = sum(len(into) for _, _, into in parts)
        self.n, self.dtype = parts[0][0].n, parts[0][0].dtype

    def at(self, rows: Any) -> NDArray[Any]:
        found = [part.indexed(rows) for part, _, _ in self._parts]
        out = np.empty((len(found[0][1]), self.width), self.dtype)
        for (_, own, into), (vectors, numbers) in zip(self._parts, found, strict=True):
            put(vectors, numbers, own, out, into)
        return out
