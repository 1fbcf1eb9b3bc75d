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
from transformist.engines.structured.head import KINDS, HeadInput, blocks, require_finite
from transformist.engines.structured.on_hull import OnHull
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

    queries: NDArray[Any]
    points: NDArray[Any]
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
        seen = (self.keys, self.values, first, stop)
        return mix_dense(kind, self.given.d_key, queries, *seen, maps.a)


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
    elif given.is_hard and len(maps.fixed) == 1 and _is_by_sign(given):
        signs = np.sign(given.whole(maps.query))[:, 0]
        ids, distinct = (signs + 1).astype(np.int32), np.array([[-1], [0], [1]], signs.dtype)
        why = "scores of rank one: the sign of the query decides"
    else:
        return None
    state = ByQuery(distinct, given.d_key, given.width, given.kind)
    return FewQueries(given, why, ids, state)


def _is_by_sign(given: HeadInput) -> bool:
    """Whether products of a query and two different keys differ in the order of the keys.

    They do where keys lie at least 8u of the larger one apart, as a product and its quotient by
    √d_key are off by 2u of themselves, and nothing underflows.
    """
    a = given.maps.a
    queries, keys = (np.unique(given.whole(part)) for part in (given.maps.query, given.maps.key))
    keys, apart = keys.astype(np.float64), np.diff(keys.astype(np.float64))
    larger = np.maximum(abs(keys[1:]), abs(keys[:-1]))
    least = [
        abs(each[each != 0].astype(np.float64)).min(initial=np.inf) for each in (queries, keys)
    ]
    normal = a.smallest * 2.0**a.precision * given.d_key
    with np.errstate(over="ignore", under="ignore"):
        product = least[0] * least[1]
    return bool((apart >= larger * 2.0 ** (3 - a.precision)).all() and product >= normal)


def by_key(given: HeadInput) -> Method | None:
    """Where keys take few values in the columns in which the query varies.

    Beside terms the choice is that of the reference where no dot product rounds; a softmax is near
    enough where scores are small.
    """
    maps = given.maps
    varying = np.flatnonzero(~maps.fixed)
    grouped = given.grouped(maps.key, varying)
    if grouped is None:
        return None
    why = f"{len(grouped[1])} distinct keys met"
    if maps.fixed.any():
        if not (given.is_exact if given.is_hard else given.is_soft):
            return None
        why += " and a term that the query does not scale"
    ids, distinct = grouped
    terms = np.empty(given.n)
    for rows in blocks(given.n):
        terms[rows] = maps.terms(maps.key(given.z[rows]))
    state = ByKey(distinct, given.d_key, given.width, given.kind)
    return FewKeys(given, why, ids, varying, terms, state)


def on_hull(given: HeadInput) -> Method | None:
    """Where keys are points of the plane that come in a line's order, and queries look upwards.

    Points below the hull must lie too deep for rounding to lift them, where anything rounds; under
    softmax there must be none.
    """
    if len(given.maps.fixed) != 2:
        return None
    queries, points = given.whole(given.maps.query), given.whole(given.maps.key)
    for axis in (1, 0):
        turned = _upwards(queries, points, axis, given)
        if turned is not None:
            return _on_hull(given, *turned)
    return None


def _on_hull(
    given: HeadInput, queries: NDArray[Any], points: NDArray[Any], arrivals: NDArray[np.int64]
) -> Method | None:
    """Where the hull of all points is known for sure: it is made once without values."""
    a, kind = given.maps.a, given.kind
    trial = OnHull(given.d_key, 0, kind, given.n, a)
    come = arrivals[:: -1 if given.backwards else 1]
    for rows in blocks(given.n):
        part = come[rows]
        trial.mix(TAKE, queries[:0], points[part], part, np.empty((len(part), 0), a.dtype))
    if not trial.is_sure(queries, are_exact=False) and not (
        given.is_hard and given.is_exact and trial.is_sure(queries, are_exact=True)
    ):
        return None
    why = "keys are points of the plane" + ("" if given.is_hard else ", all on their hull")
    state = OnHull(given.d_key, given.width, kind, given.n, a)
    return Hull(given, why, queries, points, arrivals, state)


def _upwards(
    queries: NDArray[Any], points: NDArray[Any], axis: int, given: HeadInput
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]] | None:
    """Queries and points, mirrored so that every query looks upwards and points come rightwards.

    The third array says in which order points come, if all come before the first query.
    """
    sign = np.sign(queries[:1, axis])
    if not sign.all() or (np.sign(queries[:, axis]) != sign).any():
        return None
    up = np.ones(2, queries.dtype)
    up[axis] = sign[0] if len(sign) else 1
    columns = [1 - axis, axis]
    queries, points = (np.ascontiguousarray((each * up)[:, columns]) for each in (queries, points))
    arrivals = np.arange(given.n)
    if given.maps.head.mask == "none":
        arrivals = np.lexsort((points[:, 1], points[:, 0]))
    come = points[arrivals, 0]
    falls, rises = (come[1:] < come[:-1]).any(), (come[1:] > come[:-1]).any()
    if given.backwards:
        falls, rises = rises, falls
    if falls and rises:
        return None
    if falls:
        left = np.array([-1, 1], queries.dtype)
        queries, points = queries * left, points * left
    return queries, points, arrivals


def by_pair(given: HeadInput) -> Method:
    """Always; what overflows is refused.

    Raises:
        NotFinite: for a query, key or value that overflows.

    """
    maps, a = given.maps, given.maps.a
    why = "neither queries nor keys are few"
    if not given.is_finite:
        why = "numbers come near the largest of the format"
        w = maps.head.rounded(a)
        for W, b in ((w.W_Q, w.b_Q), (w.W_K, w.b_K)):
            for rows in blocks(given.n):
                require_finite(a.affine(given.z[rows], W, b), a)
    keys, values = given.whole(maps.key), given.whole(maps.value)
    require_finite(values, a)
    return Dense(given, why, keys, values)


METHODS: tuple[Callable[[HeadInput], Method | None], ...] = (by_query, by_key, on_hull, by_pair)
"""The first that fits is taken."""


def method(given: HeadInput) -> Method:
    """The method for a head on an input.

    Raises:
        NotFinite: for a query, key or value that overflows.

    """
    if not given.is_finite:
        return by_pair(given)
    return next(found for fits in METHODS if (found := fits(given)) is not None)
