"""Attention where queries take few values: the running result of each, kept as keys come.

A query takes keys when it is read, all those that came since it was last read, at once. It looks
for the largest of their scores first: under hard attention, and where scores lie far apart, one
value is then all that is summed.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.arrays import unfilled
from transformist.engines.structured.groups import Groups
from transformist.engines.structured.heads.head import HeadInput, HeadMaps
from transformist.engines.structured.heads.method import Method
from transformist.engines.structured.heads.past import Past
from transformist.engines.structured.heads.running_sums import (
    add_to_sum,
    clear_sum,
    scale_sum,
    start_sum,
    take_value,
)
from transformist.engines.structured.heads.weightings import (
    FAR,
    FIRST,
    LAST,
    READ,
    READ_TAKE,
    SOFTMAX,
    TAKE,
    TAKE_READ,
    root_of,
)
from transformist.engines.structured.kernel import kernel, kernel_part
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.stream_vectors import Few, Vectors, blocks
from transformist.engines.structured.threads import on_all_processors, one_ahead


@kernel_part
def score(keys: Any, starts: Any, columns: Any, factors: Any, root: Any, scores: Any) -> None:
    """Write the scores of queries with keys (n, d_key), (count, n), as the reference rounds them.

    From `starts[a]` to before `starts[a + 1]`, `columns` and `factors` say which coordinates of the
    query a are not 0, and what they are.
    """
    for a in range(scores.shape[0]):
        for i in range(keys.shape[0]):
            scores[a, i] = 0
        for at in range(starts[a], starts[a + 1]):
            column, factor = columns[at], factors[at]
            for i in range(keys.shape[0]):
                scores[a, i] += keys[i, column] * factor
        if root != 1:
            for i in range(keys.shape[0]):
                scores[a, i] /= root


@kernel
def _score_all(keys: Any, starts: Any, columns: Any, factors: Any, root: Any, scores: Any) -> None:
    """Compile `score` for calls from Python."""
    score(keys, starts, columns, factors, root, scores)


@kernel_part
def _two_largest(
    kind: int, scores: Any, a: int, scored: Any, first: int, stop: int
) -> tuple[float, float, int]:
    """The largest score of a query with the keys of some rows, the second, and the largest's row.

    Of equal scores the first counts as the largest, or under `LAST` the last.
    """
    best, second, chosen = -np.inf, -np.inf, first
    for i in range(first, stop):
        here = np.float64(scores[a, np.uint64(scored[np.uint64(i)])])
        if here > best or (here == best and kind == LAST):
            best, second, chosen = here, best, i
        elif here > second:
            second = here
    return best, second, chosen


@kernel_part
def _take(
    kind: int, scores: Any, a: int, scored: Any, first: int, stop: int, values: Any, valued: Any,
    least: float, top: Any, mass: Any, sums: Any,
) -> None:  # fmt: skip
    """Update a query's largest score, weights and sums by the keys and values of some rows."""
    # `is_alone`: no other score of these rows has a weight beside the best. Three cases follow.
    # The best is far above all before: its value replaces the sums. It is not far below: values
    # are added, after the sums are cleared or scaled to a new largest score. Else nothing counts.
    best, second, chosen = _two_largest(kind, scores, a, scored, first, stop)
    far, above = FAR if kind == SOFTMAX else 0.0, best - top[a]
    is_alone = second < best - far or kind >= FIRST
    if (above > far or (above == 0.0 and kind == LAST)) and is_alone:
        top[a] = best
        start_sum(values, valued[chosen], mass, sums, a)
    elif above >= -far and kind < FIRST:
        if above > far:
            clear_sum(mass, sums, a)
        elif above > 0.0:
            scale_sum(math.exp(-above), least, mass, sums, a)
        top[a] = max(top[a], best)
        for i in range(chosen if is_alone else first, chosen + 1 if is_alone else stop):
            below = np.float64(scores[a, scored[i]]) - top[a]
            if below >= -far:
                weight = math.exp(below) if below < 0.0 else 1.0
                add_to_sum(weight, values, valued[i], mass, sums, a)


@kernel_part
def _read(a: int, mass: Any, sums: Any, out: Any, row: int) -> None:
    """Write the mixed value of a query by now."""
    # A total of 0 means that no key has come, and the sums are 0; one of 1, that there is one
    # value, which is given as it is.
    # The second part of each sum is the rounding error of the first, so their sum is the value.
    total = mass[a, 0] + mass[a, 1]
    if total == 0.0 or total == 1.0:
        for c in range(out.shape[1]):
            out[row, c] = sums[a, 0, c] + sums[a, 1, c]
    else:
        for c in range(out.shape[1]):
            out[row, c] = (sums[a, 0, c] + sums[a, 1, c]) / total


@kernel
def mix_by_query(
    order: int, kind: int, ids: Any, begin: int, keys: Any, scored: Any, starts: Any, columns: Any,
    factors: Any, root: Any, scores: Any, values: Any, valued: Any, taken: Any, least: float,
    top: Any, mass: Any, sums: Any, out: Any,
) -> None:  # fmt: skip
    """Take the key of each row, answer its query, or both, in the order of the rows.

    `ids` says which query each row has, the first of those here being number `begin`; `scored`
    which of the distinct keys, `valued` which of the distinct values. Scores are computed into
    `scores`. A query takes keys when it is asked, and at the end; `taken` is room for how many of
    these it has.
    """
    # Scores are those of distinct keys, so a block of few keys costs few scores. A query that is
    # read takes rows `taken[a]` to before `stop`; in the end all queries take the rest of the
    # block, as its keys are gone when the next block comes.
    score(keys, starts, columns, factors, root, scores)
    taken[:] = 0
    for i in range(out.shape[0]):
        a = ids[i] - begin
        if 0 <= a < top.shape[0]:
            stop = i + 1 if order == TAKE_READ else i if order == READ_TAKE else 0
            _take(
                kind, scores, a, scored, taken[a], stop, values, valued, least, top, mass, sums
            )  # fmt: skip
            taken[a] = max(stop, taken[a])
            _read(a, mass, sums, out, i)
    for a in range(top.shape[0]):
        stop = scored.shape[0]
        _take(kind, scores, a, scored, taken[a], stop, values, valued, least, top, mass, sums)


@kernel_part
def mix_one(
    order: int, kind: int, query: int, key: Any, starts: Any, columns: Any, queries: Any, root: Any,
    scores: Any, value: Any, top: Any, mass: Any, sums: Any, out: Any,
) -> None:  # fmt: skip
    """Compute `mix_by_query` for one row, each query taking its key at once."""
    # A strict mask answers the query before the row's own key is taken.
    if order == READ_TAKE:
        _read(query, mass, sums, out, 0)
    zero = key.dtype.type(0)
    for a in range(scores.shape[0]):
        dot = zero
        for at in range(starts[a], starts[a + 1]):
            dot += key[0, columns[at]] * queries[at]
        scores[a] = dot if root == 1 else dot / root
    for a in range(scores.shape[0]):
        here = np.float64(scores[a])
        if take_value(kind, here - top[a], value, 0, mass, sums, a):
            top[a] = here
    if order == TAKE_READ:
        _read(query, mass, sums, out, 0)


@kernel_part
def _place(kind: int, scores: Any, key: int, place: int, top: Any, places: Any) -> None:
    """Take a key: update every query's largest score, and its first or last place."""
    for a in range(top.shape[0]):
        here = np.float64(scores[a, key])
        if here > top[a] or (kind != FIRST and here == top[a]):
            top[a] = here
            places[a] = place


@kernel
def _choose(
    order: int, kind: int, start: int, ids: Any, scores: Any, scored: Any, top: Any, places: Any,
    out: Any,
) -> None:  # fmt: skip
    """Write to `out` the key that the query of each row chooses, −1 where it sees none."""
    for i in range(scored.shape[0]):
        if order in (TAKE, TAKE_READ):
            _place(kind, scores, scored[i], start + i, top, places)
        if order != TAKE:
            out[i] = places[ids[i]]
        if order == READ_TAKE:
            _place(kind, scores, scored[i], start + i, top, places)


Indexed = tuple[NDArray[Any], NDArray[np.int32]]
"""Distinct vectors, and the number of each row's vector."""

Arriving = tuple[NDArray[np.int32], Indexed, Indexed]
"""The numbers of the queries at some rows; the keys and values that come there."""


class QueryScores:
    """Few distinct queries, and the scores of keys with them.

    Scores are computed as the reference computes them, so that ties are the same ones.

    Attributes:
        queries: (count, d_key).
        arrays: the queries as a `SparseMap` has its rows, and √d_key.

    """

    def __init__(self, queries: NDArray[Any], d_key: int) -> None:
        self.queries, self._d_key = queries, d_key
        self._room = np.empty(0, queries.dtype)
        # One-hot queries are mostly zeros, whose products add nothing to a score.
        sparse = SparseMap.of(queries, None)
        root = np.array([root_of(d_key, queries.dtype)])
        self.arrays = (sparse.starts, sparse.columns, sparse.values, root)

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy, without `_room`: its unused memory may hold anything."""
        return {**self.__dict__, "_room": self._room[:0]}

    def room(self, keys: int) -> NDArray[Any]:
        """An array (count, keys) for scores; the same memory each time."""
        numbers = len(self.queries) * keys
        if numbers > len(self._room):
            self._room = np.empty(numbers, self.queries.dtype)
        return self._room[:numbers].reshape(len(self.queries), keys)

    def of(self, keys: NDArray[Any]) -> NDArray[Any]:
        """The scores of keys (n, d_key), (count, n), in memory that the next call overwrites."""
        scores, (starts, columns, factors, root) = self.room(len(keys)), self.arrays
        _score_all(keys, starts, columns, factors, root[0], scores)
        return scores

    def joined(self, other: QueryScores) -> QueryScores:
        """These queries, then the queries of another object."""
        return QueryScores(np.concatenate([self.queries, other.queries]), self._d_key)


class QuerySums:
    """Largest score so far of each of few queries, and the sum of the values there.

    Weights and weighted values are summed in float64, compensated; of a softmax, weights below
    exp(−FAR) of the largest are left out.

    Args:
        queries: (count, d_key).
        maps: the head.
        begin: the number of the first query.
        smallest: the smallest size of a nonzero number in values, 0 if it is not known.

    """

    def __init__(
        self, queries: NDArray[Any], maps: HeadMaps, begin: int = 0, smallest: float = 0.0
    ) -> None:
        self._scores, self._kind = QueryScores(queries, maps.d_key), maps.kind
        self._begin = begin
        # A scaled sum below this size is set to 0: numbers that underflow are slow. What is lost
        # weighs less than exp(−FAR) 2⁻⁶⁰ against a nonzero value, far below the rounding of a sum.
        self._least = smallest * math.exp(-FAR) * 2.0**-60
        count = len(queries)
        self._state = (
            np.zeros(count, np.int64),
            np.full(count, -np.inf),
            np.zeros((count, 2)),
            np.zeros((count, 2, maps.d_value)),
        )

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Queries, √d_key, sums, and room for scores, by the names of `token_table.ARRAYS`."""
        queries, (_, *sums) = self._scores.queries, self._state
        names = ("starts", "columns", "queries", "root", "top", "mass", "sums")
        own = dict(zip(names, (*self._scores.arrays, *sums), strict=True))
        return {**own, "scores": np.empty(len(queries), queries.dtype)}

    def join(self, other: QuerySums) -> None:
        """Append the queries of another, which has taken the same keys."""
        self._scores = self._scores.joined(other._scores)
        # Both have taken the same keys, so their states differ in the queries alone.
        both = zip(self._state, other._state, strict=True)
        self._state = tuple(np.concatenate(each) for each in both)  # type: ignore[assignment]

    def mix(self, order: int, arriving: Arriving, out: NDArray[Any]) -> None:
        """Mix the values at rows that come in order, with the keys that come with them.

        Args:
            order: what is done at each row.
            arriving: the queries, keys and values of the rows.
            out: filled at the rows of these queries, (rows, d_value); without rows where keys are
                only taken.

        """
        (ids, keys, values), (starts, columns, factors, root) = arriving, self._scores.arrays
        scores, (taken, top, mass, sums) = self._scores.room(len(keys[0])), self._state
        mix_by_query(
            order, self._kind, ids, self._begin, *keys, starts, columns, factors, root[0], scores,
            *values, taken, self._least, top, mass, sums, out,
        )  # fmt: skip

    def mix_rows(
        self, order: int, ids: NDArray[np.int32], keys: NDArray[Any], values: NDArray[Any]
    ) -> NDArray[np.float64]:
        """The mixed values at rows, each with a key and a value of its own."""
        rows = np.arange(len(keys), dtype=np.int32)
        out = np.empty((0 if order == TAKE else len(ids), values.shape[1]))
        self.mix(order, (ids, (keys, rows), (values, rows)), out)
        return out

    def read(self) -> NDArray[np.float64]:
        """The mixed value of each query by now, (count, d_value)."""
        queries, width = self._scores.queries, self._state[3].shape[2]
        ids = np.arange(self._begin, self._begin + len(queries), dtype=np.int32)
        out, no_rows = np.empty((len(queries), width)), np.empty(0, np.int32)
        self.mix(READ, (ids, (queries[:0], no_rows), (out[:0], no_rows)), out)
        return out


@final
class ByQuery(Method):
    """A running result for each distinct query; a new query goes through the past once."""

    name = "by query"
    cost = "n · queries"

    def __init__(self, maps: HeadMaps) -> None:
        super().__init__(maps)
        self._groups = self.groups(len(maps.fixed))
        self._ids: NDArray[np.int32] | None = None
        self._sums = QuerySums(self._groups.vectors, maps)

    def fits(self, given: HeadInput) -> bool:
        fixed = self.maps.fixed
        self._ids = given.queries.numbered(self._groups)
        if self._ids is not None:
            count = len(self._groups.vectors)
            self.why = f"{count} distinct quer{'y' if count == 1 else 'ies'} met"
            if fixed.all():
                self.why = (
                    "the weights fix the query" if len(fixed) else "the weights make scores 0"
                )
        elif self.maps.kind != SOFTMAX and len(fixed) == 1 and _signs_decide(given):
            self._groups = Groups(1, SIGNS, self.maps.a.dtype)
            self._ids = given.queries.through(np.sign, 1).kept().numbered(self._groups)
            self.why = "scores of rank one: the sign of the query decides"
        return self._ids is not None

    def mixed(self, given: HeadInput) -> Vectors:
        assert self._ids is not None  # as it fits
        if self.maps.kind in (FIRST, LAST):
            return _fetched(given, self._chosen(given, self._ids))
        return self._averaged(given, self._ids)

    def _averaged(self, given: HeadInput, ids: NDArray[np.int32]) -> Vectors:
        """The running means; some of the queries on each thread, which keeps sums as they are."""
        maps, table = self.maps, self._groups.vectors
        size, least = max(-(-len(table) // PARTS), 1), _smallest(given.values)
        begins = range(0, max(len(table), 1), size)
        parts = [QuerySums(table[begin : begin + size], maps, begin, least) for begin in begins]
        is_read = maps.order == READ
        order = TAKE if is_read else maps.order
        out = unfilled(0 if is_read else given.n, maps.d_value, maps.a.dtype)
        numbers = given.n * (given.keys.width + maps.d_value)

        def arriving(rows: slice) -> Arriving:
            keys, values = given.keys.by_columns(rows), given.values.indexed(rows)
            return np.ascontiguousarray(ids[rows]), keys, values

        for rows, come in one_ahead(arriving, given.in_order(), numbers):
            with given.block(out, rows) as block:
                on_all_processors(partial(_mix_part, order, come, block), parts, numbers)
        if not is_read:
            return given.means(out)
        mixed = np.concatenate([part.read() for part in parts])
        return Few(mixed.astype(maps.a.dtype), ids)

    def _chosen(self, given: HeadInput, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """The number of the key chosen at each row, as keys come; −1 where a row sees none."""
        maps, is_read = self.maps, self.maps.order == READ
        scores, count = QueryScores(self._groups.vectors, maps.d_key), len(self._groups.vectors)
        top, places = np.full(count, -np.inf), np.full(count, -1, np.int64)
        out, start = np.empty(given.n, np.int64), 0
        for rows in given.in_order():
            own, (keys, numbers) = np.ascontiguousarray(ids[rows]), given.keys.by_columns(rows)
            found = np.empty(len(own), np.int64)
            _choose(
                TAKE if is_read else maps.order, maps.kind, start, own, scores.of(keys), numbers,
                top, places, found,
            )  # fmt: skip
            out[rows] = found
            start += len(own)
        return places[ids] if is_read else out

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: Past
    ) -> NDArray[np.float64] | None:
        before = len(self._groups.vectors)
        ids = self._groups.of(queries)
        if ids is None:
            return None
        if len(self._groups.vectors) > before:
            # New queries go through the past in the blocks of whole inputs, and round alike.
            new = QuerySums(self._groups.vectors[before:], self.maps)
            for rows in blocks(past.count):
                new.mix_rows(TAKE, ids, past.keys[rows], past.values[rows])
            self._sums.join(new)
        return self._sums.mix_rows(self.maps.order, ids, keys, values)

    def token_arrays(self) -> tuple[Groups, dict[str, NDArray[Any]]] | None:
        return (self._groups, self._sums.arrays) if len(self._groups.vectors) else None


SIGNS = 3
"""−1, 0 and 1."""

PARTS = 2
"""Queries are divided among this many threads, as many as a small machine has processors."""


def _mix_part(order: int, arriving: Arriving, out: NDArray[Any], part: QuerySums) -> None:
    """Mix the rows of some of the queries."""
    part.mix(order, arriving, out)


def _smallest(values: Vectors) -> float:
    """The smallest size of a nonzero number; 0 where it is not known."""
    if not isinstance(values, Few) or not values.table.any():
        return 0.0
    return float(np.abs(values.table[values.table != 0]).min())


def _signs_decide(given: HeadInput) -> bool:
    """True if the signs of queries of one column decide which keys score highest, and which tie."""
    # A score is fl(fl(q k)/√d_key), off by at most 2u + u² of its size (u = 2⁻ᵖ, p the precision)
    # where nothing underflows. Two keys that lie at least 8u of the larger apart keep their order:
    # their exact scores differ by 8u of the larger one, and the errors of both together are at most
    # 4u + 2u² of it. So no two different keys tie, and equal ones do.
    a = given.maps.a
    queries, keys = (np.unique(each.whole()) for each in (given.queries, given.keys))
    keys, apart = keys.astype(np.float64), np.diff(keys.astype(np.float64))
    larger = np.maximum(abs(keys[1:]), abs(keys[:-1]))
    least = [
        abs(each[each != 0].astype(np.float64)).min(initial=np.inf) for each in (queries, keys)
    ]
    # The smallest product, even divided by √d_key ≤ d_key, stays a normal number.
    normal = a.smallest * 2.0**a.precision * given.maps.d_key
    with np.errstate(over="ignore", under="ignore"):
        product = least[0] * least[1]
    return bool((apart >= larger * 2.0 ** (3 - a.precision)).all() and product >= normal)


def _fetched(given: HeadInput, places: NDArray[np.int64]) -> Vectors:
    """The values of keys, by their numbers in the order in which keys come; 0 for none."""
    at = np.where(places < 0, -1, given.n - 1 - places) if given.maps.backwards else places
    values = given.values
    if isinstance(values, Few):
        table = np.concatenate([values.table, np.zeros((1, values.width), values.dtype)])
        return Few.of(table, np.append(values.ids, np.int32(len(values.table)))[at])

    def fetch(rows: slice, out: NDArray[Any]) -> None:
        out[:] = values.at(np.maximum(at[rows], 0))
        out[at[rows] < 0] = 0

    return given.means(given.filled(fetch))
