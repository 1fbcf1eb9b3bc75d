"""Attention over keys that are points of the plane: the upper hull of those that have come.

A query (p, q) with q > 0 scores the point (x, y) by p x + q y. The largest is taken at vertices of
the upper hull, along which scores rise and then fall, so that bisection comes near it. Points come
with x that never falls, and the hull is a stack; points on an edge stay, as they tie.

Scores are rounded as the reference rounds them, and so they rise and fall up to rounding only. From
where bisection ends all vertices are tried to both sides, until one lies further below the best
than rounding explains: beyond it scores fall. A point that lies under the hull is left out for
good; how deep such points lie, at least, says whether rounding could make one of them the best.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.heads.weightings import (
    AVERAGE,
    FAR,
    FIRST,
    READ_TAKE,
    SOFTMAX,
    TAKE,
    TAKE_READ,
    root_of,
)
from transformist.engines.structured.kernel import kernel, kernel_part
from transformist.engines.structured.ranges import largest_in

ROUNDING = 2.0**-50
"""8u: a turn is computed from products of differences, each within 3u of itself."""

SMALL = 2.0**-900
"""Products of differences of at least this size have no underflow in them, nor in their errors."""

NARROW = 2.0**400
"""Coordinates below this size have no overflow in products of their differences."""

BELOW, ON, ABOVE, UNKNOWN = range(4)


@kernel_part
def _lost(x: float, y: float, product: float) -> float:
    """x y − fl(x y), which is a number (Dekker)."""
    split = 134217729.0
    high = split * x
    high = high - (high - x)
    low = x - high
    other = split * y
    other = other - (other - y)
    rest = y - other
    return low * rest - (((product - high * other) - low * other) - high * rest)


@kernel_part
def _is_difference(difference: float, x: float, y: float) -> bool:
    """Whether a difference fl(x − y) is x − y (Knuth)."""
    back = difference - x
    return (x - (difference - back)) - (y + back) == 0.0


@kernel
def _turn(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> tuple[int, float]:
    """Where b lies of the line from a to c, ax < bx < cx; how deep below it, at least."""
    dx, dy, ex, ey = bx - ax, cy - ay, cx - ax, by - ay
    if dy == 0.0 and ey == 0.0:
        return ON, 0.0
    rise, own = dx * dy, ex * ey
    doubt = ROUNDING * (abs(rise) + abs(own)) + SMALL
    if rise - own > doubt:
        return BELOW, (rise - own - doubt) / ex
    if own - rise > doubt:
        return ABOVE, 0.0
    if min(abs(rise), abs(own)) < SMALL or not (
        _is_difference(dx, bx, ax) and _is_difference(dy, cy, ay)
        and _is_difference(ex, cx, ax) and _is_difference(ey, by, ay)
    ):  # fmt: skip
        return UNKNOWN, 0.0
    further = rise - own
    if further == 0.0:
        further = _lost(dx, dy, rise) - _lost(ex, ey, own)
    return (BELOW if further > 0.0 else ABOVE if further < 0.0 else ON), 0.0


@kernel_part
def _push(
    kind: int, new_x: Any, new_y: Any, place: int, values: Any, row: int, count: int, x: Any,
    y: Any, places: Any, mass: Any, sums: Any, least: Any,
) -> int:  # fmt: skip
    """The number of vertices with the new point; `least` is how deep those lie that are left out.

    It is below 0 from where a turn is not known.
    """
    while count > 0:
        top = count - 1
        if x[top] == new_x:
            if y[top] == new_y:
                if kind in (SOFTMAX, AVERAGE):
                    mass[top] += 1.0
                    for c in range(values.shape[1]):
                        sums[top, c] += values[row, c]
                elif kind != FIRST:
                    places[top] = place
                    for c in range(values.shape[1]):
                        sums[top, c] = values[row, c]
                return count
            least[0] = min(least[0], abs(np.float64(y[top]) - np.float64(new_y)))
            if y[top] > new_y:
                return count
        elif count < 2:
            break
        else:
            turn, depth = _turn(
                np.float64(x[top - 1]), np.float64(y[top - 1]), np.float64(x[top]),
                np.float64(y[top]), np.float64(new_x), np.float64(new_y),
            )  # fmt: skip
            if turn == UNKNOWN:
                least[0] = -1.0
            if turn != BELOW:
                break
            least[0] = min(least[0], depth)
        count -= 1
    x[count], y[count], places[count], mass[count] = new_x, new_y, place, 1.0
    for c in range(values.shape[1]):
        sums[count, c] = values[row, c]
    return count + 1


@kernel_part
def _score(p: Any, q: Any, root: Any, x: Any, y: Any, at: int) -> Any:
    """Of a vertex, as the reference rounds it: all are of its format."""
    vertex = np.uint64(at)
    return (p * x[vertex] + q * y[vertex]) / root


@kernel_part
def _rises(p: Any, q: Any, root: Any, x: Any, y: Any, at: int) -> bool:
    """Whether the vertex after this one scores higher."""
    return bool(_score(p, q, root, x, y, at + 1) > _score(p, q, root, x, y, at))


@kernel_part
def _near(p: Any, q: Any, root: Any, x: Any, y: Any, count: int, begin: int) -> int:
    """The first vertex of the largest score, but for rounding: in steps that double, and halve."""
    low, high, step = 0, count - 1, 1
    at = min(begin, high)
    if at < high and _rises(p, q, root, x, y, at):
        low = at + 1
        while low + step < high and _rises(p, q, root, x, y, low + step):
            low += step + 1
            step *= 2
        high = min(low + step, high)
    else:
        high = at
        while high - step > 0 and not _rises(p, q, root, x, y, high - step):
            high -= step
            step *= 2
        low = max(high - step, 0)
    while low < high:
        middle = (low + high) // 2
        if _rises(p, q, root, x, y, middle):
            low = middle + 1
        else:
            high = middle
    return low


@kernel_part
def _window(
    reach: float, p: Any, q: Any, root: Any, x: Any, y: Any, count: int, begin: int
) -> tuple[int, int, float]:  # fmt: skip
    """The vertices from the first number to before the second, and the best of their scores.

    They are those with scores down to `reach` below it; so far away scores fall further.
    """
    low = _near(p, q, root, x, y, count, begin)
    best, high = np.float64(_score(p, q, root, x, y, low)), low + 1
    while low > 0:
        score = np.float64(_score(p, q, root, x, y, low - 1))
        if score < best - reach:
            break
        best = max(best, score)
        low -= 1
    while high < count:
        score = np.float64(_score(p, q, root, x, y, high))
        if score < best - reach:
            break
        best = max(best, score)
        high += 1
    return low, high, best


@kernel_part
def _read(
    kind: int, p: Any, q: Any, root: Any, reach: float, count: int, begin: int,
    x: Any, y: Any, places: Any, mass: Any, sums: Any, out: Any, row: int,
) -> int:  # fmt: skip
    """The mixed value for a query: of the vertex that is highest, of those that tie, or near it.

    The search begins at a vertex, and the one where it ended is handed back: the next query may
    look nearly in the same direction.
    """
    out[row] = 0.0
    if count == 0:
        return 0
    low, high, best = _window(reach, p, q, root, x, y, count, begin)
    least = best - FAR if kind == SOFTMAX else best
    chosen, total = -1, 0.0
    for at in range(low, high):
        score = np.float64(_score(p, q, root, x, y, at))
        if score < least:
            continue
        if kind in (SOFTMAX, AVERAGE):
            vertex, weight = np.uint64(at), math.exp(score - best) if kind == SOFTMAX else 1.0
            total += weight * mass[vertex]
            for c in range(out.shape[1]):
                out[row, c] += weight * sums[vertex, c]
        elif chosen < 0 or (places[at] < places[chosen]) == (kind == FIRST):
            chosen = at
    for c in range(out.shape[1]):
        out[row, c] = out[row, c] / total if total > 0.0 else sums[chosen, c]
    return int(low)


@kernel
def _mix(
    order: int, kind: int, root: Any, reaches: Any, queries: Any, points: Any, arrivals: Any,
    values: Any, count: int, x: Any, y: Any, places: Any, mass: Any, sums: Any, least: Any,
    out: Any,
) -> int:  # fmt: skip
    """Take the point of each row, answer its query, or both; return the number of vertices."""
    near = 0
    for i in range(max(values.shape[0], out.shape[0])):
        if order in (TAKE, TAKE_READ):
            count = _push(
                kind, points[i, 0], points[i, 1], arrivals[i], values, i, count, x, y, places,
                mass, sums, least,
            )  # fmt: skip
        if order != TAKE:
            near = _read(
                kind, queries[i, 0], queries[i, 1], root, reaches[i], count, near, x, y, places,
                mass, sums, out, i,
            )  # fmt: skip
        if order == READ_TAKE:
            count = _push(
                kind, points[i, 0], points[i, 1], arrivals[i], values, i, count, x, y, places,
                mass, sums, least,
            )  # fmt: skip
    return count


class UpperHull:
    """The upper hull of the points so far, each vertex with the values that are there.

    A softmax is taken over all vertices whose score has a weight in float64; it needs points that
    are all vertices. Scores are those of the reference.
    """

    def __init__(self, d_key: int, width: int, kind: int, room: int, a: Floating) -> None:
        self._kind, self._a = kind, a
        self._root = root_of(d_key, a.dtype)
        self._count = 0
        self._sizes = np.zeros(2)
        self._least = np.array([np.inf])
        self._state = (
            np.empty(room, a.dtype),
            np.empty(room, a.dtype),
            np.empty(room, np.int64),
            np.empty(room),
            np.empty((room, width)),
        )

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: no room, in which may be what was in memory before."""
        filled = tuple(each[: self._count] for each in self._state)
        return {**self.__dict__, "_state": filled}

    def reserve(self, more: int) -> None:
        """Room for so many more points, at least doubled where it is too small."""
        if self._count + more > len(self._state[0]):
            size = max(2 * len(self._state[0]), self._count + more)
            grown = [np.empty((size, *each.shape[1:]), each.dtype) for each in self._state]
            for old, new in zip(self._state, grown, strict=True):
                new[: self._count] = old[: self._count]
            self._state = tuple(grown)  # type: ignore[assignment]

    def is_sure(self, queries: NDArray[Any], are_exact: bool) -> bool:
        """Whether what is left out of the hull has no part in what these queries attend to.

        Args:
            queries: (m, 2), to which all the points have come that they see.
            are_exact: whether no dot product of one with a point, left out or not, rounds.

        """
        least = float(self._least[0])
        if least < 0 or not (self._sizes < NARROW).all():
            return False
        if least == np.inf or self._kind == SOFTMAX:
            return least == np.inf
        return are_exact or bool((least * queries[:, 1] > self._doubts(queries)).all())

    def _doubts(self, queries: NDArray[Any]) -> NDArray[np.float64]:
        """What dot products with points can be off, together: 16u of their terms, and underflow."""
        terms = np.abs(queries).astype(np.float64, copy=False) @ self._sizes
        root = float(self._root)
        return np.asarray(2.0 ** (4 - self._a.precision) * terms + 8 * root * self._a.smallest)

    def mix(
        self,
        order: int,
        queries: NDArray[Any],
        points: NDArray[Any],
        arrivals: NDArray[np.int64],
        values: NDArray[Any],
    ) -> NDArray[np.float64]:
        """The mixed values at rows that come in order, with the points that come with them."""
        out = np.empty((0 if order == TAKE else len(queries), values.shape[1]))
        self.reserve(len(points))
        largest_in(points, self._sizes)
        reaches = self._doubts(queries) / float(self._root)
        if self._kind == SOFTMAX:
            reaches += FAR
        self._count = _mix(
            order, self._kind, self._root, reaches, queries, points, arrivals, values,
            self._count, *self._state, self._least, out,
        )  # fmt: skip
        return out
