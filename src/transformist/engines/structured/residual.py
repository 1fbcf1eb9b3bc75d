"""The residual stream of an input in parts: some coordinates that take few values, or many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.arrays import unfilled
from transformist.engines.structured.row_by_row import Beside, Many
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.stream_vectors import Few, Vectors, blocks

Columns = Sequence[int]
"""Coordinates, in order."""


@dataclass(frozen=True, eq=False)
class ResidualStream:
    """The vectors of an input in parts of some coordinates each.

    Where coordinates take few values together, a part holds each value once. A sum with coordinates
    that were constant so far is a part of its own, as few as the values added.

    Attributes:
        n: the number of positions.
        parts: the parts.
        places: the part of each coordinate, and its column there.

    """

    n: int
    parts: tuple[Vectors, ...]
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, n: int, parts: Sequence[tuple[Columns, Vectors]]) -> ResidualStream:
        """The stream of parts, each with the coordinates that it holds."""
        kept = [each for each in parts if len(each[0])] or parts[:1]
        places = {
            column: (number, at)
            for number, (columns, _) in enumerate(kept)
            for at, column in enumerate(columns)
        }
        return cls(n, tuple(part for _, part in kept), tuple(places[i] for i in range(len(places))))

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return len(self.places)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self.parts[0].dtype

    def rows(self, columns: Columns) -> Vectors:
        """The vectors in some coordinates."""
        if not len(columns):
            return Few.of(np.zeros((1, 0), self.dtype), np.zeros(self.n, np.int32))
        found = self._parted(columns)
        some = [_some(self.parts[number], own) for number, (own, _) in found.items()]
        if len(some) == 1:
            return some[0]
        few = [part for part in some if isinstance(part, Few)]
        # Parts that are few each are few together only if they do not vary independently.
        joined = few[0].with_all(few[1:]) if len(few) == len(some) else None
        if joined is None:
            return Beside([(self.parts[number], *where) for number, where in found.items()])
        places = [at for _, into in found.values() for at in into]
        return _some(joined, np.argsort(places).tolist())

    def _parted(self, columns: Columns) -> dict[int, tuple[list[int], list[int]]]:
        """For each part the columns that are wanted, and their places among `columns`."""
        found: dict[int, tuple[list[int], list[int]]] = {}
        for at, column in enumerate(columns):
            number, own = self.places[column]
            columns_there, into = found.setdefault(number, ([], []))
            columns_there.append(own)
            into.append(at)
        return found

    def whole(self) -> Vectors:
        """The vectors in all coordinates."""
        return self.rows(range(self.width))

    def image(self, part: SparseMap) -> Vectors:
        """The images of the vectors under an affine map, from the coordinates that it reads."""
        return self.rows(part.read).mapped(part.on_what_it_reads)

    def sizes(self, columns: Columns) -> NDArray[np.float64]:
        """The largest size of a number in some coordinates."""
        return np.array([self.parts[number].sizes[own] for number, own in self._at(columns)])

    def _at(self, columns: Columns) -> list[tuple[int, int]]:
        """The part of each of some coordinates, and its column there."""
        return [self.places[column] for column in columns]

    def plus(self, columns: Columns, added: Vectors, a: Floating) -> ResidualStream:
        """The stream plus rows in some coordinates.

        Where a coordinate was constant, only the rows added vary: they form a part of their own,
        which has few distinct vectors if they do.
        """
        if not len(columns):
            return self
        # A constant plus rows takes as few values as the rows do, whereas the other coordinates of
        # the part may take many: so these columns leave their part.
        constants = [self.parts[number].constants[own] for number, own in self._at(columns)]
        still = [at for at, constant in enumerate(constants) if constant is not None]
        moved = [at for at, constant in enumerate(constants) if constant is None]
        parts = self._without(columns)
        if still:
            part, offsets = _some(added, still), [constants[at] for at in still]
            if any(offsets):
                offset = np.array(offsets, self.dtype)
                part = part.through(lambda x: a.add(x, offset), len(still))
            parts.append(([columns[at] for at in still], part.kept()))
        if moved:
            own = [columns[at] for at in moved]
            parts.append((own, _sum(_some(added, moved), self.rows(own), a)))
        return ResidualStream.of(self.n, parts)

    def _without(self, columns: Columns) -> list[tuple[Columns, Vectors]]:
        """The parts, without some coordinates."""
        gone = set(columns)
        kept = [column for column in range(self.width) if column not in gone]
        return [
            ([kept[at] for at in into], _some(self.parts[number], own).kept())
            for number, (own, into) in self._parted(kept).items()
        ]


def _some(rows: Vectors, columns: list[int]) -> Vectors:
    """Some columns, in this order."""
    if len(columns) == rows.width and columns == list(range(rows.width)):
        return rows
    if isinstance(rows, Few):
        return Few(rows.table.take(columns, axis=1), rows.ids)
    return Beside([(rows, columns, list(range(len(columns))))])


def _sum(added: Vectors, old: Vectors, a: Floating) -> Vectors:
    """The sums, row by row."""
    width = old.width
    if isinstance(added, Few) and isinstance(old, Few):
        both = added.with_all([old])
        if both is not None:
            return both.through(lambda x: a.add(x[:, :width], x[:, width:]), width)
    out = unfilled(old.n, width, old.dtype)
    for rows in blocks(old.n):
        out[rows] = a.add(added.at(rows), old.at(rows))
    return Many(out)
