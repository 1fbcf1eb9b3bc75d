"""The largest label: few are compared, many are searched on their hull, in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.heads.every_pair import SLOW_LENGTH
from transformist.engines.structured.heads.upper_hull import UpperHull
from transformist.engines.structured.heads.weightings import FIRST, READ, TAKE
from transformist.engines.structured.once import once
from transformist.engines.structured.ranges import first_largest
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.stream_vectors import blocks, require_finite
from transformist.engines.structured.threads import on_all_processors
from transformist.errors import TakesLong

# Measured for one vector with labels (2k, −k²): a search takes 0.12 to 0.25 µs for 64 to 8,192
# labels; comparing takes 0.18 µs for 64, 1.4 µs for 256, 35 µs for 8,192. From 256 on the search
# also pays for the hull, made once for a model, within some hundred vectors.
MANY = 2**8
"""From this many labels on, they are searched on their hull."""

# 2¹⁷ numbers of float64 take 1 MiB and stay in the second-level cache: comparing takes half as long
# as with 2²¹, and a third longer with 2¹³, where the handing on of blocks counts.
NEAR = 2**17
"""This many numbers are compared at once."""

# Two comparisons of scores for each of some 12 steps, and the vertices near the best.
SEARCH = 32
"""Numbers that the search for one label goes through, about."""

Turned = tuple[int, NDArray[np.float64], UpperHull]
"""Labels as points of the plane: the coordinate that is upwards, the sizes of both, the hull."""


class Labels:
    """The first label of the largest coordinate of W_out z + b_out, for many z.

    Where W_out has two columns that are not 0, and no bias, a label is a point of the plane, and
    its number is the score that a head with the query z would give a key there. Labels of a count,
    (2k, −k²), are such points, and are searched on their upper hull. Each product and sum is
    rounded as the reference rounds it, and all labels are compared that rounding could make the
    largest (`upper_hull` has the proof).

    Args:
        out: the affine map.
        a: the format.

    """

    def __init__(self, out: SparseMap, a: Floating) -> None:
        self._map, self._a = out.on_what_it_reads, a
        is_plane = len(out.read) == 2 and not out.shift.any()
        self._is_searched = is_plane and out.height >= MANY

    def largest(self, vectors: NDArray[Any]) -> NDArray[np.intp]:
        """The numbers of the labels, for vectors of the coordinates read: (m, read) → (m,).

        Raises:
            NotFinite: where the number of a label overflows.

        Example:
            >>> from transformist.arithmetic import FLOAT64
            >>> k = np.arange(1000.0)
            >>> labels = Labels(SparseMap.of(np.stack([2 * k, -k * k], axis=1), None), FLOAT64)
            >>> labels.largest(np.array([[7.0, 1.0], [0.5, 0.25], [0.75, 0.5]]))
            array([7, 2, 1])

        """
        if self._is_searched:
            begun = self._hulls  # made here, before threads share it
            search = partial(self._searched, begun)
            parts = (vectors[rows] for rows in blocks(len(vectors)))
            found = on_all_processors(search, parts, SEARCH * len(vectors))
            if all(each is not None for each in found):
                return np.concatenate([np.empty(0, np.intp), *found])
        return self._compared(vectors)

    def _compared(self, vectors: NDArray[Any]) -> NDArray[np.intp]:
        """The largest labels, by comparing all."""
        count, size = len(vectors), max(NEAR // max(self._map.height, 1), 1)
        if count * self._map.height >= SLOW_LENGTH**2:
            pairs = f"{count:,} vectors with {self._map.height:,} labels"
            warn(TakesLong(f"a read-out compares {pairs}, as their weights say"), stacklevel=2)
        found = np.empty(count, np.intp)

        def compare(start: int) -> None:
            rows = slice(start, start + size)
            y = self._map(vectors[rows])
            require_finite(Many(y), self._a)
            found[rows] = first_largest(y)

        on_all_processors(compare, range(0, count, size), count * self._map.height)
        return found

    def _searched(self, hulls: Sequence[Turned], vectors: NDArray[Any]) -> NDArray[np.intp] | None:
        """The largest labels, by search; `None` where no hull serves these vectors.

        A hull serves if labels under it lie so deep that rounding lifts none of them.
        """
        for up, sizes, hull in hulls:
            queries = np.ascontiguousarray(vectors[:, [1 - up, up]])
            with np.errstate(over="ignore"):
                largest = np.abs(queries).max(axis=0, initial=0).astype(np.float64) @ sizes
            # Below a quarter of the largest number no product or sum of two overflows.
            looks_up = (queries[:, 1] > 0).all() and largest < self._a.largest / 4
            if looks_up and hull.is_sure(queries, are_exact=False):
                none = (queries[:0], np.empty(0, np.int64), np.empty((0, 1)))
                return hull.mix(READ, queries, *none)[:, 0].astype(np.intp)
        return None

    @once
    def _hulls(self) -> list[Turned]:
        """The hulls for vectors that look upwards along the second coordinate, and the first."""
        points = self._map.matrix
        found = []
        for up in (1, 0):
            turned = np.ascontiguousarray(points[:, [1 - up, up]])
            order = np.lexsort((turned[:, 1], turned[:, 0]))
            hull = UpperHull(1, 1, FIRST, len(points), self._a)
            numbers = order.astype(np.float64)[:, None]
            hull.mix(TAKE, turned[:0], turned[order], order, numbers)
            found.append((up, np.abs(turned).max(axis=0).astype(np.float64), hull))
        return found
