"""The ways to evaluate a head on an input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.arrays import unfilled
from transformist.engines.structured.heads.by_key import ByKey
from transformist.engines.structured.heads.by_query import ByQuery, Choice, Indexed
from transformist.engines.structured.heads.dense import mix_dense
from transformist.engines.structured.heads.head import HeadInput
from transformist.engines.structured.heads.on_hull import OnHull
from transformist.engines.structured.heads.weightings import READ, TAKE
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.rows import Few, Rows
from transformist.engines.structured.threads import on_all_processors, one_ahead
from transformist.errors import TakesLong


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
    out = unfilled(given.n, given.maps.d_value, given.maps.a.dtype)
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
"""However it rounds, a mean is at most so many times as large as the values."""


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
        out = unfilled(count, given.maps.d_value, given.maps.a.dtype)
        order = TAKE if given.order == READ else given.order
        numbers = given.n * (given.keys.width + given.maps.d_value)
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
        own = (given.maps.d_key, given.maps.d_value, given.kind)
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
        state = Choice(asked.table, given.maps.d_key, given.kind)
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
        state = ByKey(self.keys.table, given.maps.d_key, given.maps.d_value, given.kind)
        queries = given.z.image(maps.query.rows(self.columns))
        terms = given.keys.through(lambda keys: maps.terms(keys)[:, None], 1)

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
    """The upper hull of the keys that have come.

    Attributes:
        queries, points: which look upwards, and come rightwards.
        begun: the hull at the first row: of all points, or of none.

    """

    queries: NDArray[Any]
    points: NDArray[Any]
    begun: Callable[[], OnHull]

    name = "hull"
    cost = "n · log n"

    def mixed(self) -> Rows:
        """As `Method.mixed`."""
        return _means(self.given, _in_blocks(self.given, partial(self._mix, self.begun())))

    def _mix(self, state: OnHull, rows: slice, out: NDArray[Any]) -> None:
        given = self.given
        queries = np.ascontiguousarray(self.queries[rows])
        if given.order == READ:
            nothing = (self.points[:0], np.empty(0, np.int64), np.empty((0, given.maps.d_value)))
            out[:] = state.mix(READ, queries, *nothing)
        else:
            out[:] = state.mix(given.order, queries, *self._arriving(rows))

    def _arriving(self, rows: slice) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
        """Points that come at some rows, their numbers in the order they come in, and values."""
        given = self.given
        places = np.arange(*rows.indices(given.n))
        numbers = given.n - 1 - places if given.backwards else places
        return self.points[rows], numbers, given.values.at(rows)


LONG = 2**14
"""From this length on every pair takes long: seconds a head, four times those at twice it."""


@final
@dataclass(frozen=True, eq=False)
class Dense(Method):
    """Every pair, a row at a time."""

    name = "dense"
    cost = "n²"

    def mixed(self) -> Rows:
        """As `Method.mixed`."""
        given, maps = self.given, self.given.maps
        if given.n >= LONG:
            pairs = f"{given.n:,} × {given.n:,} pairs of positions"
            warn(TakesLong(f"a head goes through {pairs}, as {self.why}"), stacklevel=2)
        keys, values, own = given.keys.whole(), given.values.whole(), maps.head.weighting

        def mix(rows: slice, out: NDArray[Any]) -> None:
            first, stop = maps.head.mask.span(np.arange(*rows.indices(given.n)), given.n)
            queries = given.queries.at(rows)
            out[:] = mix_dense(own, given.maps.d_key, queries, keys, values, first, stop, maps.a)

        return Many(_in_blocks(given, mix))  # whose rounding adds up, in a narrow format
