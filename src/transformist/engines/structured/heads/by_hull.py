"""Attention over keys that are points of the plane, which come from the left or from the right."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.heads.head import HeadInput, HeadMaps, ScoreRanges
from transformist.engines.structured.heads.method import Method
from transformist.engines.structured.heads.past import Past
from transformist.engines.structured.heads.upper_hull import UpperHull
from transformist.engines.structured.heads.weightings import READ, SOFTMAX, TAKE
from transformist.engines.structured.stream_vectors import Vectors

FIRST_ROOM = 16
"""Points for which a decoder has room at first; the room doubles."""


@final
class ByHull(Method):
    """The upper hull of the keys so far.

    Points below the hull must lie too deep for rounding to lift them, where anything rounds; under
    softmax there must be none.
    """

    name = "hull"
    cost = "n · log n"

    def __init__(self, maps: HeadMaps) -> None:
        super().__init__(maps)
        self._hull = self._begun(FIRST_ROOM, maps.d_value)
        self._ranges = ScoreRanges(maps)
        self._turn: _Turn | None = None
        self._right = -np.inf
        self._seen = 0

    def _begun(self, room: int, width: int) -> UpperHull:
        return UpperHull(self.maps.d_key, width, self.maps.kind, room, self.maps.a)

    def fits(self, given: HeadInput) -> bool:
        """True if the hull of all points is known; it is kept where all keys come first."""
        self.why = "keys are points of the plane"
        if self.maps.kind == SOFTMAX:
            self.why += ", all on their hull"
        return len(self.maps.fixed) == 2 and self._turned(given) and self._is_sure(given)

    def _turned(self, given: HeadInput) -> bool:
        """True if queries and points can be turned; `_numbers` numbers points as they come."""
        queries, points = given.queries.whole(), given.keys.whole()
        may_sort = self.maps.head.mask.is_whole
        turn = _Turn.of(queries, points, self.maps.backwards, may_sort)
        if turn is None:
            return False
        self._queries, self._points = turn(queries), turn(points)
        self._numbers = np.arange(given.n)[:: -1 if self.maps.backwards else 1]
        if may_sort:
            self._numbers = np.lexsort((self._points[:, 1], self._points[:, 0]))
        return True

    def _is_sure(self, given: HeadInput) -> bool:
        """True if the hull of all points, made without values if keys come, is known for sure."""
        is_read = self.maps.order == READ
        # The hull of all points is the deepest test: a point that is left out of the hull of the
        # points so far is left out of every later one, and `least` only falls. If all queries pass
        # it with all points, each passes it with the points that it sees.
        self._hull = self._begun(given.n, self.maps.d_value if is_read else 0)
        for rows in given.in_order():
            points, numbers = self._coming(rows)
            values = (
                given.values.at(numbers) if is_read else np.empty((len(points), 0), points.dtype)
            )
            self._hull.mix(TAKE, self._queries[:0], points, numbers, values)
        # The first test needs nothing to be known of the scores. Exactness is measured only if it
        # fails, as that takes a pass over all queries and keys.
        return self._hull.is_sure(self._queries, are_exact=False) or (
            self.maps.kind != SOFTMAX
            and given.scores.are_exact
            and self._hull.is_sure(self._queries, are_exact=True)
        )

    def _coming(self, rows: slice) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The points that come at some rows, and their numbers."""
        numbers = self._numbers[rows]
        return self._points[numbers if self.maps.order == READ else rows], numbers

    def mixed(self, given: HeadInput) -> Vectors:
        order, width = self.maps.order, self.maps.d_value
        nothing = (self._points[:0], np.empty(0, np.int64), np.empty((0, width)))
        hull = self._hull if order == READ else self._begun(given.n, width)

        def mix(rows: slice, out: NDArray[Any]) -> None:
            queries = np.ascontiguousarray(self._queries[rows])
            come = nothing if order == READ else (*self._coming(rows), given.values.at(rows))
            out[:] = hull.mix(order, queries, *come)

        return given.means(given.filled(mix))

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: Past
    ) -> NDArray[np.float64] | None:
        if len(self.maps.fixed) != 2:
            return None
        # The first rows bring the past with them: the turn needs queries, which the past has not.
        old = past.count if self._seen == 0 else 0
        keys = np.concatenate([past.keys[:old], keys])
        self._turn = self._turn or _Turn.of(queries, keys)
        if self._turn is None:
            return None
        queries, points = self._turn(queries), self._turn(keys)
        if not self._continues(queries, points):
            return None
        numbers = np.arange(self._seen, self._seen + len(points))
        self._hull.mix(TAKE, queries, points[:old], numbers[:old], past.values[:old])
        self._seen += len(points)
        mixed = self._hull.mix(self.maps.order, queries, points[old:], numbers[old:], values)
        if self.maps.kind != SOFTMAX:
            self._ranges.take(queries, points)
        sure = self._hull.is_sure(queries, are_exact=False) or (
            self.maps.kind != SOFTMAX
            and self._ranges.are_exact
            and self._hull.is_sure(queries, are_exact=True)
        )
        return mixed if sure else None

    def _continues(self, queries: NDArray[Any], points: NDArray[Any]) -> bool:
        """True if queries look upwards, and points go on to the right."""
        # Points that came earlier are on the stack already, so a new one must not lie left of them.
        x = np.append(self._right, points[:, 0])
        self._right = x[-1]
        return bool((queries[:, 1] > 0).all() and (x[1:] >= x[:-1]).all())


class _Turn:
    """A map of the plane after which queries look upwards and points come rightwards.

    It exchanges the coordinates or changes their signs, for queries and keys alike, which changes
    no product and no rounding of one. The sum of the two products is the same in either order.
    """

    def __init__(self, axis: int, signs: NDArray[Any]) -> None:
        self._axis, self._signs = axis, signs

    @classmethod
    def of(
        cls,
        queries: NDArray[Any],
        points: NDArray[Any],
        backwards: bool = False,
        may_sort: bool = False,
    ) -> _Turn | None:
        """The map for queries and points; `None` where there is none.

        Args:
            queries: (m, 2).
            points: (n, 2).
            backwards: points come from the last to the first.
            may_sort: points may come in any order.

        """
        # Codes of positions such as (j, −j²) have queries (2i, 1): their second coordinate never
        # changes sign, so it is tried first.
        for axis in (1, 0):
            up, x = np.sign(queries[:, axis]), points[:, 1 - axis]
            rises, falls = (x[1:] >= x[:-1]).all(), (x[1:] <= x[:-1]).all()
            if backwards:
                rises, falls = falls, rises
            if up.all() and (up == up[:1]).all() and (rises or falls or may_sort):
                # Where points fall, the map changes the sign of x: then they rise. Sorted points
                # always do.
                left = 1 if rises or may_sort else -1
                return cls(axis, np.array([left, *(up[:1] if len(up) else [1])], queries.dtype))
        return None

    def __call__(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """The images of vectors (m, 2)."""
        turned = np.empty_like(vectors, order="C")
        np.multiply(vectors[:, 1 - self._axis], self._signs[0], out=turned[:, 0])
        np.multiply(vectors[:, self._axis], self._signs[1], out=turned[:, 1])
        return turned
