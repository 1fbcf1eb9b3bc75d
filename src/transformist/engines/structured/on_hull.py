"""Attention over keys that are points of the plane: the upper hull of those that have come.

A query (p, q) with q > 0 scores the point (x, y) by p x + q y. The largest is taken at vertices of
the upper hull, along which scores rise and then fall, so that bisection finds them. Points come
with x that never falls, and the hull is a stack; points on an edge stay, as they tie.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.by_query import (
    AVERAGE,
    FAR,
    FIRST,
    READ_TAKE,
    SOFTMAX,
    TAKE,
    TAKE_READ,
)
from transformist.engines.structured.kernel import kernel

ROUNDING = 2.0**-50
"""8u: a turn is computed from products of differences, each within 3u of itself."""


@kernel
def _is_below(x: Any, y: Any, count: int, new_x: float, new_y: float) -> bool:
    """Whether the last point lies below the line from the one before it to the new one, surely."""
    a, b = count - 2, count - 1
    rise = (x[b] - x[a]) * (new_y - y[a])
    own = (y[b] - y[a]) * (new_x - x[a])
    return bool(rise - own > ROUNDING * (abs(rise) + abs(own)))


@kernel
def _push(
    kind: int, new_x: float, new_y: float, place: int, value: Any, count: int,
    x: Any, y: Any, places: Any, mass: Any, sums: Any,
) -> int:  # fmt: skip
    """The number of vertices with the new point."""
    while count > 0:
        top = count - 1
        if x[top] == new_x:
            if y[top] > new_y:
                return count
            if y[top] == new_y:
                if kind in (SOFTMAX, AVERAGE):
                    mass[top] += 1.0
                    for c in range(value.shape[0]):
                        sums[top, c] += value[c]
                elif kind != FIRST:
                    places[top] = place
                    for c in range(value.shape[0]):
                        sums[top, c] = value[c]
                return count
        elif count < 2 or not _is_below(x, y, count, new_x, new_y):
            break
        count -= 1
    x[count], y[count], places[count], mass[count] = new_x, new_y, place, 1.0
    for c in range(value.shape[0]):
        sums[count, c] = value[c]
    return count + 1


@kernel
def _score(p: float, q: float, x: float, y: float, root: float) -> float:
    return (p * x + q * y) / root


@kernel
def _highest(p: float, q: float, root: float, x: Any, y: Any, count: int) -> int:
    """The first vertex of the largest score, by bisection."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        here = _score(p, q, x[middle], y[middle], root)
        if _score(p, q, x[middle + 1], y[middle + 1], root) > here:
            low = middle + 1
        else:
            high = middle
    best = _score(p, q, x[low], y[low], root)
    while low > 0 and _score(p, q, x[low - 1], y[low - 1], root) >= best:
        low -= 1
        best = _score(p, q, x[low], y[low], root)
    while low + 1 < count and _score(p, q, x[low + 1], y[low + 1], root) > best:
        low += 1
        best = _score(p, q, x[low], y[low], root)
    return low


@kernel
def _read(
    kind: int, p: float, q: float, root: float, count: int,
    x: Any, y: Any, places: Any, mass: Any, sums: Any, out: Any,
) -> None:  # fmt: skip
    """The mixed value for a query: of the vertex that is highest, of those that tie, or near it."""
    out[:] = 0.0
    if count == 0:
        return
    middle = _highest(p, q, root, x, y, count)
    best = _score(p, q, x[middle], y[middle], root)
    least = best - FAR if kind == SOFTMAX else best
    chosen, total = middle, 0.0
    for step in range(-1, 2, 2):
        at = middle if step > 0 else middle - 1
        while 0 <= at < count:
            score = _score(p, q, x[at], y[at], root)
            if score < least:
                break
            if kind in (SOFTMAX, AVERAGE):
                weight = math.exp(score - best) if kind == SOFTMAX else 1.0
                total += weight * mass[at]
                for c in range(out.shape[0]):
                    out[c] += weight * sums[at, c]
            elif (places[at] < places[chosen]) == (kind == FIRST):
                chosen = at
            at += step
    for c in range(out.shape[0]):
        out[c] = out[c] / total if total > 0.0 else sums[chosen, c]


@kernel
def _mix(
    order: int, kind: int, root: float, queries: Any, points: Any, arrivals: Any,
    values: Any, count: int, x: Any, y: Any, places: Any, mass: Any, sums: Any, out: Any,
) -> int:  # fmt: skip
    """Rows in order: the point of each is taken, its query answered, or both; how many vertices."""
    for i in range(max(values.shape[0], out.shape[0])):
        if order in (TAKE, TAKE_READ):
            count = _push(
                kind, points[i, 0], points[i, 1], arrivals[i], values[i], count, x, y, places,
                mass, sums,
            )  # fmt: skip
        if order != TAKE:
            _read(
                kind, queries[i, 0], queries[i, 1], root, count, x, y, places, mass, sums,
                out[i],
            )  # fmt: skip
        if order == READ_TAKE:
            count = _push(
                kind, points[i, 0], points[i, 1], arrivals[i], values[i], count, x, y, places,
                mass, sums,
            )  # fmt: skip
    return count


def is_concave(points: NDArray[np.float64]) -> bool:
    """Whether points (n, 2) come with x that never falls and are vertices of their hull, all."""
    x, y = points[:, 0], points[:, 1]
    moved = np.append(True, (np.diff(x) != 0) | (np.diff(y) != 0))[: len(x)]
    x, y = x[moved], y[moved]
    dx, dy = np.diff(x), np.diff(y)
    rise, own = dx[:-1] * (y[2:] - y[:-2]), dy[:-1] * (x[2:] - x[:-2])
    below = rise - own > ROUNDING * (abs(rise) + abs(own))
    return bool((dx > 0).all() and not below.any())


class OnHull:
    """The upper hull of the points so far, each vertex with the values that are there.

    A softmax is taken over all vertices whose score is has a weight in float64; it needs
    points that are all vertices (`is_concave`). Scores are computed in float64, in the order of
    the reference.
    """

    def __init__(self, d_key: int, width: int, kind: int, room: int) -> None:
        self._kind = kind
        self._root = math.sqrt(d_key)
        self._count, size = 0, room
        self._state = (
            np.empty(size),
            np.empty(size),
            np.empty(size, np.int64),
            np.empty(size),
            np.empty((size, width)),
        )

    def reserve(self, more: int) -> None:
        """Room for so many more points, at least doubled where it is too small."""
        if self._count + more > len(self._state[0]):
            size = max(2 * len(self._state[0]), self._count + more)
            grown = [np.empty((size, *each.shape[1:]), each.dtype) for each in self._state]
            for old, new in zip(self._state, grown, strict=True):
                new[: self._count] = old[: self._count]
            self._state = tuple(grown)  # type: ignore[assignment]

    def mix(
        self,
        order: int,
        queries: NDArray[np.float64],
        points: NDArray[np.float64],
        arrivals: NDArray[np.int64],
        values: NDArray[Any],
    ) -> NDArray[np.float64]:
        """The mixed values at rows that come in order, with the points that come with them."""
        out = np.empty((0 if order == TAKE else len(queries), values.shape[1]))
        self._count = _mix(
            order, self._kind, self._root, queries, points, arrivals, values,
            self._count, *self._state, out,
        )  # fmt: skip
        return out
