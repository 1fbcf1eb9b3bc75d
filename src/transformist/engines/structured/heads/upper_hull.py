"""Attention over keys that are points of the plane, by the upper hull of the points so far.

A query (p, q) with q > 0 scores the point (x, y) by (p x + q y)/√d_key. Points come with x that
never falls, and a stack holds their upper hull (A. M. Andrew, Information Processing Letters 9,
1979). Points on an edge stay on the stack, as they tie. Points below it are left out for good.

The search finds what the reference finds: the proof stands above `_near`.
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

# With u = 2⁻⁵³: each product of two rounded differences is off by 3u of itself, to first order,
# and the difference of two products by u more of both. 8u leaves room for the rounding of the
# bound itself.
TURN_ROUNDING = 2.0**-50
"""A turn is known if its two products differ by more than this times the sum of their sizes."""

# A product of at least 2⁻⁹⁰⁰ has its last bit, and that of its rounding error, above
# 2⁻⁹⁰⁰⁻¹⁰⁶ > 2⁻¹⁰⁷⁴, so the error is a float64 number.
SMALL = 2.0**-900
"""Products of differences of at least this size have no underflow in them, nor in their errors."""

# Differences stay below 2⁴⁰¹, products below 2⁸⁰², and 2²⁷ times a difference, which `_lost`
# computes, below 2⁴²⁸: far from 2¹⁰²⁴.
NARROW = 2.0**400
"""Coordinates below this size have no overflow in products of their differences."""

BELOW, ON, ABOVE, UNKNOWN = range(4)
"""Side of a line on which a point lies; `UNKNOWN` if rounding hides it."""


@kernel_part
def _lost(x: float, y: float, product: float) -> float:
    """The rounding error x y − fl(x y), which is a float64 number (T. J. Dekker, 1971)."""
    # 2²⁷ + 1 splits 53 bits into two halves, whose products are exact.
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
    """True if a computed difference fl(x − y) is x − y (Knuth's sum of two, TAOCP 4.2.2)."""
    back = difference - x
    return (x - (difference - back)) - (y + back) == 0.0


@kernel
def _turn(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> tuple[int, float]:
    """The side of the line from a to c on which b lies (ax < bx < cx), and its least depth.

    The sign of (bx − ax)(cy − ay) − (cx − ax)(by − ay) tells the side; divided by cx − ax it is the
    depth along y.
    """
    dx, dy, ex, ey = bx - ax, cy - ay, cx - ax, by - ay
    if dy == 0.0 and ey == 0.0:
        return ON, 0.0
    rise, own = dx * dy, ex * ey
    doubt = TURN_ROUNDING * (abs(rise) + abs(own)) + SMALL
    if rise - own > doubt:
        return BELOW, (rise - own - doubt) / ex
    if own - rise > doubt:
        return ABOVE, 0.0
    if min(abs(rise), abs(own)) < SMALL or not (
        _is_difference(dx, bx, ax) and _is_difference(dy, cy, ay)
        and _is_difference(ex, cx, ax) and _is_difference(ey, by, ay)
    ):  # fmt: skip
        return UNKNOWN, 0.0
    # All four differences are exact here, and so is `further`, as the products are within a factor
    # of 2. Rounding is monotone: if the rounded products differ, the exact ones differ in the same
    # sense. If not, the exact ones differ by their rounding errors.
    further = rise - own
    if further == 0.0:
        further = _lost(dx, dy, rise) - _lost(ex, ey, own)
    return (BELOW if further > 0.0 else ABOVE if further < 0.0 else ON), 0.0


@kernel_part
def _push(
    kind: int, new_x: Any, new_y: Any, place: int, values: Any, row: int, count: int, x: Any,
    y: Any, places: Any, mass: Any, sums: Any, least: Any,
) -> int:  # fmt: skip
    """Push a point; return the number of vertices.

    `least` becomes the smallest depth of a point that was left out, −1 once a turn is not known.
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
    """The score of a vertex, as the reference rounds it: all numbers are of its format."""
    # The reference sums two products, in either order; its other columns are 0 and add nothing.
    vertex = np.uint64(at)
    return (p * x[vertex] + q * y[vertex]) / root


@kernel_part
def _rises(p: Any, q: Any, root: Any, x: Any, y: Any, at: int) -> bool:
    """True if the vertex after this one scores higher."""
    return bool(_score(p, q, root, x, y, at + 1) > _score(p, q, root, x, y, at))


# Why the search finds what the reference finds. Scores are computed as the reference computes them,
# so ŝ below is the same float64 or float32 number in both. Let E bound |ŝ − s| for all points and
# one query; `_doubts` gives D/√d_key ≥ 4E, which is called the reach.
#
# 1. Along the stack exact scores rise, stay equal, and fall, once each: the difference of two
#    neighbours is their distance in x times p + q (slope of the edge), and slopes fall from left to
#    right. Call the peak m.
# 2. From any vertex, `_window` walks left and right until ŝ < best − reach, where best is the
#    largest ŝ met so far. It never stops before m: on the way to m every vertex j has an exact
#    score at least that of all vertices met before, so best ≤ ŝ_j + 2E < ŝ_j + reach.
# 3. Where it stops, behind m, at a vertex j, all vertices beyond have exact scores at most s_j, and
#    so ŝ ≤ ŝ_j + 2E < best. None of them is largest or ties. So the window holds all vertices whose
#    computed score is the largest, wherever the walk begins; the search by steps that double
#    (`_near`) only makes the walk short.
# 4. A point b left out lies below the hull by at least `least`, measured along y. The point of the
#    hull above b lies between two vertices, one of which has p x + q y larger than that of b by at
#    least q · least. `is_sure` asks for q · least > D, that is an exact difference of scores above
#    4E: the computed score of b is then below that of the vertex. Where no dot product rounds, any
#    difference is enough.
#
# Under softmax the reach grows by `FAR`: vertices beyond the window then weigh less than exp(−FAR)
# of the largest. Points left out would have weights of their own, so there must be none.


@kernel_part
def _near(p: Any, q: Any, root: Any, x: Any, y: Any, count: int, begin: int) -> int:
    """The first vertex of the largest score, but for rounding.

    Steps double from `begin`, then halve: the time is the logarithm of the distance from there.
    """
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
    """The vertices with scores down to `reach` below the best: first, one past the last; the best.

    Vertices outside score lower than the best: points 2 and 3 of the proof above.
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
    """Write the mixed value for a query to a row; return the vertex where the search ended.

    The search for the next query begins there, as it may look nearly in the same direction.
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
    """The upper hull of the points so far, each vertex with the sum of the values that are there.

    Args:
        d_key: scores are divided by its root.
        width: of values.
        kind: the weighting.
        room: points for which there is room at first.
        a: the format.

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
        """The state of a copy, without unused memory, which may hold anything."""
        filled = tuple(each[: self._count] for each in self._state)
        return {**self.__dict__, "_state": filled}

    def reserve(self, more: int) -> None:
        """Make room for this many more points; the room at least doubles."""
        if self._count + more > len(self._state[0]):
            size = max(2 * len(self._state[0]), self._count + more)
            grown = [np.empty((size, *each.shape[1:]), each.dtype) for each in self._state]
            for old, new in zip(self._state, grown, strict=True):
                new[: self._count] = old[: self._count]
            self._state = tuple(grown)  # type: ignore[assignment]

    def is_sure(self, queries: NDArray[Any], are_exact: bool) -> bool:
        """True if the points left out have no part in what these queries attend to.

        Point 4 of the proof above `_near` gives the reason.

        Args:
            queries: (m, 2); all points that they see have been taken.
            are_exact: no dot product of one with a point, left out or not, rounds.

        """
        least = float(self._least[0])
        if least < 0 or not (self._sizes < NARROW).all():
            return False
        if least == np.inf or self._kind == SOFTMAX:
            return least == np.inf
        return are_exact or bool((least * queries[:, 1] > self._doubts(queries)).all())

    def _doubts(self, queries: NDArray[Any]) -> NDArray[np.float64]:
        """The bound D on rounding, in units of dot products, for each query."""
        # With u = 2⁻ᵖ and the terms T = |p| max|x| + |q| max|y|, a product and the sum of two round
        # by (2u + u²) T together, and the division by √d_key by u of its result: an exact score is
        # off by E ≤ (3u + O(u²)) T/√d_key, and by 1.5 times the smallest number where something
        # underflows. D/√d_key = 16u T/√d_key + 8 smallest is more than 4E; the rest of the room
        # covers the rounding of D itself and of the depths with which D is compared.
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
        """Take the points of rows in order; return the mean value that each query attends to."""
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
