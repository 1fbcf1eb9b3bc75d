"""How a head is evaluated: by what its weights say, and the queries and keys that are met."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.by_key import ByKey
from transformist.engines.structured.by_query import TAKE, ByQuery
from transformist.engines.structured.dense import mix_dense
from transformist.engines.structured.head import KINDS, HeadInput, blocks
from transformist.engines.structured.on_hull import OnHull, is_concave
from transformist.model import SPANS


@dataclass(frozen=True, eq=False)
class Method(ABC):
    """A way to evaluate a head on an input.

    Attributes:
        given: the head and its input.
        why: what it was chosen for.

    """

    given: HeadInput
    why: str

    name = ""
    cost = ""

    @abstractmethod
    def mix(self, order: int, rows: slice) -> NDArray[np.float64]:
        """The mixed values of rows, which come in the order of the mask."""


@final
@dataclass(frozen=True, eq=False)
class FewQueries(Method):
    """A running result for each distinct query."""

    ids: NDArray[np.int32]
    state: ByQuery

    name = "by query"
    cost = "n · queries"

    def mix(self, order: int, rows: slice) -> NDArray[np.float64]:
        """As `Method.mix`."""
        z, maps = self.given.at(rows), self.given.maps
        ids = np.ascontiguousarray(self.ids[rows])
        return self.state.mix(order, ids, maps.key(z), maps.value(z))


@final
@dataclass(frozen=True, eq=False)
class FewKeys(Method):
    """A running result for each distinct key."""

    ids: NDArray[np.int32]
    columns: NDArray[np.int64]
    terms: NDArray[np.float64]
    state: ByKey

    name = "by key"
    cost = "n · keys"

    def mix(self, order: int, rows: slice) -> NDArray[np.float64]:
        """As `Method.mix`."""
        z, maps = self.given.at(rows), self.given.maps
        queries = np.ascontiguousarray(maps.query(z)[:, self.columns])
        groups = np.ascontiguousarray(self.ids[rows])
        terms = np.ascontiguousarray(self.terms[rows])
        return self.state.mix(order, queries, groups, terms, maps.value(z))


@final
@dataclass(frozen=True, eq=False)
class Hull(Method):
    """The upper hull of the keys that have come."""

    queries: NDArray[np.float64]
    points: NDArray[np.float64]
    arrivals: NDArray[np.int64]
    state: OnHull

    name = "hull"
    cost = "n · log n"

    def mix(self, order: int, rows: slice) -> NDArray[np.float64]:
        """As `Method.mix`; where all keys come first, they come by their first coordinate."""
        come = self.arrivals[rows] if order == TAKE else np.arange(*rows.indices(self.given.n))
        values = self.given.maps.value(self.given.at(come))
        points, queries = self.points[come], np.ascontiguousarray(self.queries[rows])
        places = self.given.n - 1 - come if self.given.backwards else come
        return self.state.mix(order, queries, points, places, values)


@final
@dataclass(frozen=True, eq=False)
class Dense(Method):
    """Every pair, a row at a time."""

    keys: NDArray[Any]
    values: NDArray[Any]

    name = "dense"
    cost = "n²"

    def mix(self, order: int, rows: slice) -> NDArray[np.float64]:
        """As `Method.mix`."""
        if order == TAKE:
            return np.empty((0, self.given.width))
        maps, n = self.given.maps, self.given.n
        first, stop = SPANS[maps.head.mask](np.arange(*rows.indices(n)), n)
        kind = KINDS[maps.head.weighting]
        queries = maps.query(self.given.at(rows))
        return mix_dense(kind, self.given.d_key, queries, self.keys, self.values, first, stop)


def by_query(given: HeadInput) -> Method | None:
    """Where queries take few values; under hard attention those of one column, few signs."""
    maps = given.maps
    constant = "the weights make scores 0" if not len(maps.fixed) else "the weights fix the query"
    grouped = given.queries
    if grouped is not None:
        ids, distinct = grouped
        count = len(distinct)
        why = f"{count} distinct quer{'y' if count == 1 else 'ies'} met"
        why = constant if maps.fixed.all() else why
    elif given.is_hard and len(maps.fixed) == 1:
        signs = np.sign(given.whole(maps.query))[:, 0]
        ids, distinct = (signs + 1).astype(np.int32), np.array([[-1], [0], [1]], signs.dtype)
        why = "scores of rank one: the sign of the query decides"
    else:
        return None
    state = ByQuery(distinct, given.d_key, given.width, given.kind)
    return FewQueries(given, why, ids, state)


def by_key(given: HeadInput) -> Method | None:
    """Where keys take few values in the columns in which the query varies.

    The parts of a score are divided by √d_key one by one, which is exact where it is a power of
    two; with another d_key ties of the sum would be lost.
    """
    maps, d_key = given.maps, given.d_key
    if d_key & (d_key - 1) or d_key.bit_length() % 2 == 0:
        return None
    varying = np.flatnonzero(~maps.fixed)
    grouped = given.grouped(maps.key, varying)
    if grouped is None:
        return None
    ids, distinct = grouped
    terms = np.empty(given.n)
    for rows in blocks(given.n):
        terms[rows] = maps.terms(maps.key(given.z[rows]))
    if not np.isfinite(terms).all():
        return None
    term = " and a term that the query does not scale" if maps.fixed.any() else ""
    why = f"{len(distinct)} distinct keys met{term}"
    state = ByKey(distinct, given.d_key, given.width, given.kind)
    return FewKeys(given, why, ids, varying, terms, state)


def on_hull(given: HeadInput) -> Method | None:
    """Where keys are points of the plane that come in a line's order, and queries look upwards."""
    maps = given.maps
    if len(maps.fixed) != 2:
        return None
    queries = given.whole(maps.query).astype(np.float64)
    points = given.whole(maps.key).astype(np.float64)
    size = abs(queries).max(axis=0) * abs(points).max(axis=0)
    if not np.isfinite(size.sum() * 4):
        return None
    for axis in (1, 0):
        turned = _upwards(queries, points, axis, given)
        if turned is not None:
            state = OnHull(given.d_key, given.width, given.kind, given.n)
            why = "keys are points of the plane" + ("" if given.is_hard else ", all on their hull")
            return Hull(given, why, *turned, state)
    return None


def _upwards(
    queries: NDArray[Any], points: NDArray[Any], axis: int, given: HeadInput
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]] | None:
    """Queries and points, mirrored so that every query looks upwards and points come rightwards.

    The third array says in which order points come, if all come before the first query.
    """
    sign = np.sign(queries[:1, axis])
    if not sign.all() or (np.sign(queries[:, axis]) != sign).any():
        return None
    up = np.ones(2)
    up[axis] = sign[0]
    columns = [1 - axis, axis]
    queries, points = (np.ascontiguousarray((each * up)[:, columns]) for each in (queries, points))
    arrivals = np.arange(given.n)
    if given.maps.head.mask == "none":
        arrivals = np.lexsort((points[:, 1], points[:, 0]))
    steps = np.diff(points[arrivals, 0])
    if given.backwards:
        steps = -steps
    if (steps < 0).any():
        if (steps > 0).any():
            return None
        left = np.array([-1.0, 1.0])
        queries, points = queries * left, points * left
    come = points[arrivals][:: -1 if given.backwards else 1]
    if not given.is_hard and not is_concave(come):
        return None
    return queries, points, arrivals


def by_pair(given: HeadInput) -> Method:
    """Always."""
    keys, values = given.whole(given.maps.key), given.whole(given.maps.value)
    return Dense(given, "neither queries nor keys are few", keys, values)


METHODS: tuple[Callable[[HeadInput], Method | None], ...] = (by_query, by_key, on_hull, by_pair)
"""The first that fits is taken."""


def method(given: HeadInput) -> Method:
    """The method for a head on an input."""
    return next(found for fits in METHODS if (found := fits(given)) is not None)
