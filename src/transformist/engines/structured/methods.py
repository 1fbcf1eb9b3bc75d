"""How a head is evaluated: by what its weights say, and the queries and keys that are met."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.by_key import ByKey
from transformist.engines.structured.by_query import ByQuery, Choice, Indexed
from transformist.engines.structured.dense import mix_dense
from transformist.engines.structured.head import HeadInput
from transformist.engines.structured.on_hull import OnHull
from transformist.engines.structured.rows import (
    Few,
    Many,
    Rows,
    blocks,
    require_finite,
    unfilled,
)
from transformist.engines.structured.threads import on_all_processors, one_ahead
from transformist.engines.structured.weightings import FIRST, KINDS, LAST, READ, TAKE
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
    def mixed(self) -> Rows:
        """The mixed values, of d_value numbers, in the format."""


def _in_blocks(given: HeadInput, mix: Callable[[slice, NDArray[Any]], None]) -> NDArray[Any]:
    """What is mixed at blocks of rows, which come in the order of the mask."""
    out = unfilled(given.n, given.width, given.maps.a.dtype)
    for rows in given.in_order():
        if given.backwards:
            block = np.empty_like(out[rows])
            mix(rows, block)
            out[rows] = block
        else:
            mix(rows, out[rows])
    return out


def _means(given: HeadInput, mixed: NDArray[Any]) -> Many:
    """Mixed values: means of values, and so no larger than these but for their rounding."""
    return Many(mixed, given.values.sizes * ROUNDING)


ROUNDING = 1 + 2.0**-10
"""More than how many times larger a mean is made by rounding."""


@final
@dataclass(frozen=True, eq=False)
class Averages(Method):
    """A running mean for each distinct query."""

    queries: Few

    name = "by query"
    cost = "n · queries"

    def mixed(self) -> Rows:
        """As `Method.mixed`."""
        given, asked, states = self.given, self.queries, self._states()
        count = 0 if given.order == READ else given.n
        out = unfilled(count, given.width, given.maps.a.dtype)
        order = TAKE if given.order == READ else given.order
        numbers = given.n * (given.keys.width + given.width)
        for rows, arriving in one_ahead(self._arriving, given.in_order(), numbers):
            block = np.empty_like(out[rows]) if given.backwards else out[rows]
            on_all_processors(partial(_mix, order, arriving, block), states, numbers)
            if given.backwards:
                out[rows] = block
        if given.order != READ:
            return _means(given, out)
        mixed = np.concatenate([state.mixed() for state in states])
        return Few(mixed.astype(given.maps.a.dtype), asked.ids)

    def _states(self) -> list[ByQuery]:
        """For some of the queries each, so that these are evaluated at the same time."""
        given, table = self.given, self.queries.table
        size, least = max(-(-len(table) // PARTS), 1), _smallest(given.values)
        own = (given.d_key, given.width, given.kind)
        begins = range(0, max(len(table), 1), size)
        return [ByQuery(table[begin : begin + size], *own, begin, least) for begin in begins]

    def _arriving(self, rows: slice) -> Arriving:
        """What comes at some rows."""
        ids = np.ascontiguousarray(self.queries.ids[rows])
        return ids, self.given.keys.by_columns(rows), self.given.values.indexed(rows)


PARTS = 2
"""Into how many parts queries are divided."""


Arriving = tuple[NDArray[np.int32], Indexed, Indexed]
"""Which queries are asked at some rows; the keys and values that come there."""


def _mix(order: int, arriving: Arriving, out: NDArray[Any], state: ByQuery) -> None:
    """Evaluate rows, as `ByQuery.mix`."""
    state.mix(order, *arriving, out)


def _smallest(values: Rows) -> float:
    """The smallest size of a number that is not 0; 0 where it is not known."""
    if not isinstance(values, Few) or not values.table.any():
        return 0.0
    return float(np.abs(values.table[values.table != 0]).min())


@final
@dataclass(frozen=True, eq=False)
class Choices(Method):
    """The position that each distinct query chooses, as keys come."""

    queries: Few

    name = Averages.name
    cost = Averages.cost

    def mixed(self) -> Rows:
        """As `Method.mixed`."""
        given, asked = self.given, self.queries
        state = Choice(asked.table, given.d_key, given.kind)
        order = TAKE if given.order == READ else given.order
        places = np.empty(given.n, np.int64)
        for rows in given.in_order():
            ids = np.ascontiguousarray(asked.ids[rows])
            places[rows] = state.choose(order, ids, given.keys.by_columns(rows))
        if given.order == READ:
            places = state.chosen[asked.ids]
        return _fetched(given, places)


def _fetched(given: HeadInput, places: NDArray[np.int64]) -> Rows:
    """The values of keys, by their numbers in the order in which they come; 0 for none."""
    at = np.where(places < 0, -1, given.n - 1 - places) if given.backwards else places
    values = given.values
    if isinstance(values, Few):
        table = np.concatenate([values.table, np.zeros((1, values.width), values.dtype)])
        return Few.of(table, np.append(values.ids, np.int32(len(values.table)))[at])

    def mix(rows: slice, out: NDArray[Any]) -> None:
        out[:] = values.at(np.maximum(at[rows], 0))
        out[at[rows] < 0] = 0

    return _means(given, _in_blocks(given, mix))


@final
@dataclass(frozen=True, eq=False)
class FewKeys(Method):
    """A running result for each distinct key."""

    keys: Few
    columns: NDArray[np.intp]

    name = "by key"
    cost = "n · keys"

    def mixed(self) -> Rows:
        """As `Method.mixed`; what the query does not scale is added as a term."""
        given, maps = self.given, self.given.maps
        state = ByKey(self.keys.table, given.d_key, given.width, given.kind)
        queries = given.z.image(maps.query.rows(self.columns))
        terms = given.keys.lazily(lambda keys: maps.terms(keys)[:, None], 1)

        def mix(order: int, rows: slice) -> NDArray[np.float64]:
            groups = np.ascontiguousarray(self.keys.ids[rows])
            own = terms.at(rows)[:, 0].astype(np.float64)
            return state.mix(order, queries.at(rows), groups, own, given.values.at(rows))

        if given.order == READ:
            for rows in given.in_order():
                mix(TAKE, rows)
        out = _in_blocks(given, lambda rows, out: np.copyto(out, mix(given.order, rows)))
        return _means(given, out)


@final
@dataclass(frozen=True, eq=False)
class Hull(Method):
    """The upper hull of the keys that have come; where all come first, they have."""

    queries: NDArray[Any]
    points: NDArray[Any]
    state: OnHull

    name = "hull"
    cost = "n · log n"

    def mixed(self) -> Rows:
        """As `Method.mixed`."""
        return _means(self.given, _in_blocks(self.given, self._mix))

    def _mix(self, rows: slice, out: NDArray[Any]) -> None:
        given = self.given
        queries = np.ascontiguousarray(self.queries[rows])
        if given.order == READ:
            nothing = (self.points[:0], np.empty(0, np.int64), np.empty((0, given.width)))
            out[:] = self.state.mix(READ, queries, *nothing)
        else:
            out[:] = self.state.mix(given.order, queries, *arriving(given, self.points, rows))


def arriving(
    given: HeadInput, points: NDArray[Any], rows: slice
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
    """Points that come at some rows, their numbers in the order in which they come, and values."""
    places = np.arange(*rows.indices(given.n))
    numbers = given.n - 1 - places if given.backwards else places
    return points[rows], numbers, given.values.at(rows)


@final
@dataclass(frozen=True, eq=False)
class Dense(Method):
    """Every pair, a row at a time."""

    name = "dense"
    cost = "n²"

    def mixed(self) -> Rows:
        """As `Method.mixed`."""
        given, maps = self.given, self.given.maps
        keys, values, kind = given.keys.whole(), given.values.whole(), KINDS[maps.head.weighting]

        def mix(rows: slice, out: NDArray[Any]) -> None:
            first, stop = SPANS[maps.head.mask](np.arange(*rows.indices(given.n)), given.n)
            queries = given.queries.at(rows)
            out[:] = mix_dense(kind, given.d_key, queries, keys, values, first, stop, maps.a)

        return Many(_in_blocks(given, mix))  # whose rounding adds up, in a narrow format


SIGNS = 3
"""−1, 0 and 1."""


def by_query(given: HeadInput) -> Method | None:
    """Where queries take few values; under hard attention those of one column, few signs."""
    maps, queries = given.maps, given.few(given.queries)
    if queries is not None:
        count = len(queries.table)
        why = f"{count} distinct quer{'y' if count == 1 else 'ies'} met"
        if maps.fixed.all():
            why = "the weights fix the query" if len(maps.fixed) else "the weights make scores 0"
    elif given.is_hard and len(maps.fixed) == 1 and _is_by_sign(given):
        queries = given.queries.through(np.sign, 1).grouped(SIGNS)
        why = "scores of rank one: the sign of the query decides"
    if queries is None:
        return None
    by_place = given.kind in (FIRST, LAST)
    return (Choices if by_place else Averages)(given, why, queries)


def _is_by_sign(given: HeadInput) -> bool:
    """Whether products of a query and two different keys differ in the order of the keys.

    They do where keys lie at least 8u of the larger one apart, as a product and its quotient by
    √d_key are off by 2u of themselves, and nothing underflows.
    """
    a = given.maps.a
    queries, keys = (np.unique(each.whole()) for each in (given.queries, given.keys))
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
    keys = given.few(given.z.image(maps.key.rows(varying)))
    if keys is None:
        return None
    why = f"{len(keys.table)} distinct keys met"
    if maps.fixed.any():
        if not (given.is_exact if given.is_hard else given.is_soft):
            return None
        why += " and a term that the query does not scale"
    return FewKeys(given, why, keys, varying)


def on_hull(given: HeadInput) -> Method | None:
    """Where keys are points of the plane that come in a line's order, and queries look upwards.

    Points below the hull must lie too deep for rounding to lift them, where anything rounds; under
    softmax there must be none.
    """
    if len(given.maps.fixed) != 2:
        return None
    queries, points = given.queries.whole(), given.keys.whole()
    for axis in (1, 0):
        turned = _upwards(queries, points, axis, given)
        if turned is not None:
            return _on_hull(given, *turned)
    return None


def _on_hull(
    given: HeadInput, queries: NDArray[Any], points: NDArray[Any], arrivals: NDArray[np.int64]
) -> Method | None:
    """Where the hull of all points is known for sure; it is made, without values if keys come."""
    a, kind, come_first = given.maps.a, given.kind, given.order == READ
    state = OnHull(given.d_key, given.width if come_first else 0, kind, given.n, a)
    for rows in blocks(given.n):
        at = (arrivals if come_first else np.arange(given.n)[:: -1 if given.backwards else 1])[rows]
        values = given.values.at(at) if come_first else np.empty((len(at), 0), a.dtype)
        state.mix(TAKE, queries[:0], points[at], at, values)
    if not state.is_sure(queries, are_exact=False) and not (
        given.is_hard and given.is_exact and state.is_sure(queries, are_exact=True)
    ):
        return None
    why = "keys are points of the plane" + ("" if given.is_hard else ", all on their hull")
    if not come_first:
        state = OnHull(given.d_key, given.width, kind, given.n, a)
    return Hull(given, why, queries, points, state)


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
            affine = partial(a.affine, W=W, b=b)
            require_finite(given.z.whole().lazily(affine, len(W)), a)
    require_finite(given.values, a)
    return Dense(given, why)


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
