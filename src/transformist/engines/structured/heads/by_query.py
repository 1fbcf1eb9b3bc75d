"""Attention where queries take few values: what each of them attends to, kept as keys come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.heads.sums import (
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


@kernel_part
def score(keys: Any, starts: Any, columns: Any, asked: Any, root: Any, scores: Any) -> None:
    """The scores of queries with keys (n, d_key), (count, n), as the reference rounds them.

    From `starts[a]` to before `starts[a + 1]`, `columns` and `asked` say which coordinates of the
    query a are not 0, and what they are.
    """
    for a in range(scores.shape[0]):
        for i in range(keys.shape[0]):
            scores[a, i] = 0
        for at in range(starts[a], starts[a + 1]):
            column, factor = columns[at], asked[at]
            for i in range(keys.shape[0]):
                scores[a, i] += keys[i, column] * factor
        if root != 1:
            for i in range(keys.shape[0]):
                scores[a, i] /= root


@kernel
def _score_all(keys: Any, starts: Any, columns: Any, asked: Any, root: Any, scores: Any) -> None:
    """As `score`."""
    score(keys, starts, columns, asked, root, scores)


@kernel_part
def _two_largest(
    kind: int, scores: Any, a: int, scored: Any, first: int, stop: int
) -> tuple[float, float, int]:
    """The largest score of a query with the keys of some rows, the next, and where the first is.

    Of equal ones it is where the first is, or under `LAST` the last.
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
    kind: int, scores: Any, a: int, scored: Any, first: int, stop: int, values: Any, worth: Any,
    least: float, top: Any, mass: Any, sums: Any,
) -> None:  # fmt: skip
    """A query takes the keys and values of some rows: the largest score, weights, and sums.

    The largest of their scores is found first, so that most of what is far below is never summed.
    """
    best, second, chosen = _two_largest(kind, scores, a, scored, first, stop)
    far, above = FAR if kind == SOFTMAX else 0.0, best - top[a]
    is_alone = second < best - far or kind >= FIRST
    if (above > far or (above == 0.0 and kind == LAST)) and is_alone:
        top[a] = best
        start_sum(values, worth[chosen], mass, sums, a)
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
                add_to_sum(weight, values, worth[i], mass, sums, a)


@kernel_part
def _read(a: int, mass: Any, sums: Any, out: Any, row: int) -> None:
    """What a query attends to by now."""
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
    asked: Any, root: Any, scores: Any, values: Any, worth: Any, taken: Any, least: float,
    top: Any, mass: Any, sums: Any, out: Any,
) -> None:  # fmt: skip
    """Rows in order: the key of each is taken, its query answered, or both.

    `ids` says which query each row has, the first of those here being number `begin`; `scored`
    which of the distinct keys, `worth` which of the distinct values. Scores are computed into
    `scores`. A query takes keys when it is asked, and at the end; `taken` is room for how many of
    these it has.
    """
    score(keys, starts, columns, asked, root, scores)
    taken[:] = 0
    for i in range(out.shape[0]):
        a = ids[i] - begin
        if 0 <= a < top.shape[0]:
            stop = i + 1 if order == TAKE_READ else i if order == READ_TAKE else 0
            _take(
                kind, scores, a, scored, taken[a], stop, values, worth, least, top, mass, sums
            )  # fmt: skip
            taken[a] = max(stop, taken[a])
            _read(a, mass, sums, out, i)
    for a in range(top.shape[0]):
        stop = scored.shape[0]
        _take(kind, scores, a, scored, taken[a], stop, values, worth, least, top, mass, sums)


@kernel_part
def mix_one(
    order: int, kind: int, asked: int, key: Any, starts: Any, columns: Any, queries: Any, root: Any,
    scores: Any, value: Any, top: Any, mass: Any, sums: Any, out: Any,
) -> None:  # fmt: skip
    """As `mix_by_query`, for one row: its key, of score `scores[a]` with the query a, and value."""
    if order == READ_TAKE:
        _read(asked, mass, sums, out, 0)
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
        _read(asked, mass, sums, out, 0)


@kernel_part
def _place(kind: int, scores: Any, key: int, place: int, top: Any, places: Any) -> None:
    """A key comes: every query's largest score, and where the first or last of them is."""
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
    """Rows in order, as `mix_by_query`: which key each query chooses, −1 where it sees none."""
    for i in range(scored.shape[0]):
        if order in (TAKE, TAKE_READ):
            _place(kind, scores, scored[i], start + i, top, places)
        if order != TAKE:
            out[i] = places[ids[i]]
        if order == READ_TAKE:
            _place(kind, scores, scored[i], start + i, top, places)


Indexed = tuple[NDArray[Any], NDArray[np.int32]]
"""Distinct vectors, and which of them each row is."""


class Asked:
    """Few distinct queries, and what scores keys have with them.

    Scores are computed as the reference computes them, so that ties are the same ones.

    Attributes:
        queries: (count, d_key).

    """

    def __init__(self, queries: NDArray[Any], d_key: int) -> None:
        self.queries, self._d_key = queries, d_key
        self._room = np.empty(0, queries.dtype)
        sparse = SparseMap.of(queries, None)
        root = np.array([root_of(d_key, queries.dtype)])
        self.arrays = (sparse.starts, sparse.columns, sparse.values, root)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: no room, in which may be what was in memory before."""
        return {**self.__dict__, "_room": self._room[:0]}

    def room(self, keys: int) -> NDArray[Any]:
        """Room for the scores of so many keys, (count, keys); the same each time."""
        numbers = len(self.queries) * keys
        if numbers > len(self._room):
            self._room = np.empty(numbers, self.queries.dtype)
        return self._room[:numbers].reshape(len(self.queries), keys)

    def scores(self, keys: NDArray[Any]) -> NDArray[Any]:
        """Of the queries with keys (n, d_key): (count, n), till others are computed."""
        scores, (starts, columns, asked, root) = self.room(len(keys)), self.arrays
        _score_all(keys, starts, columns, asked, root[0], scores)
        return scores

    def joined(self, other: Asked) -> Asked:
        """The queries of another, after these."""
        return Asked(np.concatenate([self.queries, other.queries]), self._d_key)


class ByQuery:
    """For each of few queries the largest score so far, and the values there or around it.

    Weights and weighted values are summed in float64, compensated; of a softmax, what weighs next
    to nothing is left out.

    Attributes:
        asked: the queries.

    """

    def __init__(
        self,
        queries: NDArray[Any],
        d_key: int,
        width: int,
        kind: int,
        begin: int = 0,
        smallest: float = 0.0,
    ) -> None:
        """Begin.

        Args:
            queries: (count, d_key).
            d_key: by whose root scores are divided.
            width: of values.
            kind: what becomes of scores.
            begin: the number of the first query.
            smallest: size of a number in values that is not 0, if it is known: a sum far below it
                is of what weighs next to nothing, and numbers that underflow take time.

        """
        self.asked, self._kind, self._begin = Asked(queries, d_key), kind, begin
        self._least = smallest * math.exp(-FAR) * 2.0**-60
        count = len(queries)
        self._state = (
            np.zeros(count, np.int64),
            np.full(count, -np.inf),
            np.zeros((count, 2)),
            np.zeros((count, 2, width)),
        )

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Queries, √d_key, what is kept, and room for scores; for the kernel of one token."""
        queries, (_, *kept) = self.asked.queries, self._state
        names = ("starts", "columns", "queries", "root", "top", "mass", "sums")
        own = dict(zip(names, (*self.asked.arrays, *kept), strict=True))
        return {**own, "scores": np.empty(len(queries), queries.dtype)}

    def joined(self, other: ByQuery) -> None:
        """The queries of another, after these; both have taken the same keys."""
        self.asked = self.asked.joined(other.asked)
        both = zip(self._state, other._state, strict=True)
        self._state = tuple(np.concatenate(each) for each in both)  # type: ignore[assignment]

    def mix(
        self,
        order: int,
        ids: NDArray[np.int32],
        keys: Indexed,
        values: Indexed,
        out: NDArray[Any],
    ) -> None:
        """Mix the values at rows that come in order, with the keys that come with them.

        Args:
            order: what is done at each row.
            ids: which query is asked there.
            keys: distinct keys, and which comes there.
            values: distinct values, and which comes there.
            out: what is filled where one of these queries is asked, (rows, d_value); without rows
                where keys are only taken.

        """
        starts, columns, asked, root = self.asked.arrays
        scores, (taken, top, mass, sums) = self.asked.room(len(keys[0])), self._state
        mix_by_query(
            order, self._kind, ids, self._begin, *keys, starts, columns, asked, root[0], scores,
            *values, taken, self._least, top, mass, sums, out,
        )  # fmt: skip

    def mixed(self) -> NDArray[np.float64]:
        """What each query attends to by now, (count, d_value)."""
        (count, d_key), width = self.asked.queries.shape, self._state[3].shape[2]
        ids = np.arange(self._begin, self._begin + count, dtype=np.int32)
        keys, values, out = np.empty((0, d_key)), np.empty((0, width)), np.empty((count, width))
        keys, none = keys.astype(self.asked.queries.dtype), np.empty(0, np.int32)
        self.mix(READ, ids, (keys, none), (values, none), out)
        return out


class Choice:
    """For each of few queries the largest score so far, and which of the keys there is chosen.

    Attributes:
        asked: the queries.

    """

    def __init__(self, queries: NDArray[Any], d_key: int, kind: int) -> None:
        self.asked, self._kind, self._start = Asked(queries, d_key), kind, 0
        self._state = (np.full(len(queries), -np.inf), np.full(len(queries), -1, np.int64))

    def choose(self, order: int, ids: NDArray[np.int32], keys: Indexed) -> NDArray[np.int64]:
        """The number of the key chosen at each row, or −1, in the order in which keys come.

        Args:
            order: what is done at each row.
            ids: which query is asked there.
            keys: distinct keys, and which comes there.

        """
        out, scores = np.empty(len(ids), np.int64), self.asked.scores(keys[0])
        _choose(order, self._kind, self._start, ids, scores, keys[1], *self._state, out)
        self._start += len(ids)
        return out

    @property
    def chosen(self) -> NDArray[np.int64]:
        """What each query chooses by now."""
        return self._state[1].copy()
