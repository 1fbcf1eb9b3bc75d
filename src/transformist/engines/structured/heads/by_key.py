"""Attention where keys take few values, apart from a term that no query scales.

Keys are grouped by their values without the term. Each group keeps a running sum that does not
depend on the query, and a query combines the groups.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.groups import Groups
from transformist.engines.structured.heads.head import HeadInput, HeadMaps, ScoreRanges
from transformist.engines.structured.heads.method import Method
from transformist.engines.structured.heads.past import Past
from transformist.engines.structured.heads.running_sums import take_value
from transformist.engines.structured.heads.weightings import (
    AVERAGE,
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
from transformist.engines.structured.stream_vectors import Vectors


# The score of a key is (q · group + term)/√d_key. For every query the keys of the largest term
# score highest in their group, as q · group is the same for all and rounding is monotone: under
# hard attention a group needs only these. Under softmax the ratio of two weights in a group is the
# exponential of the difference of their terms over √d_key, which no query enters. Which keys tie
# across groups depends on rounding: without terms a group has one score, the reference's; with
# terms, `ScoreRanges.allow_terms` asks that no sum rounds, or that rounding moves no softmax.
@kernel_part
def _take(
    kind: int, group: int, term: float, place: int, values: Any, row: int, root: Any,
    top: Any, places: Any, mass: Any, sums: Any,
) -> None:  # fmt: skip
    """Take a key: update the largest term of its group, and the sum of values there."""
    above = (term - top[group]) / np.float64(root)
    if take_value(kind, above, values, row, mass, sums, group):
        top[group] = term
        places[group] = place


@kernel_part
def _read(
    kind: int, query: Any, distinct: Any, root: Any, top: Any, places: Any, mass: Any, sums: Any,
    scores: Any, out: Any,
) -> None:  # fmt: skip
    """Write the mixed value for a query, from the groups that have come."""
    best, chosen = -np.inf, -1
    for g in range(distinct.shape[0]):
        if places[g] < 0:
            continue
        # A 0 in the format of the scores, in which every sum then rounds as in the reference.
        dot = root * query.dtype.type(0)
        for m in range(distinct.shape[1]):
            dot += query[m] * distinct[g, m]
        scores[g] = np.float64((dot + query.dtype.type(top[g])) / root)
        later = chosen >= 0 and places[g] > places[chosen]
        if scores[g] > best or (
            scores[g] == best and ((kind == FIRST and not later) or (kind == LAST and later))
        ):
            best, chosen = scores[g], g
    out[:] = 0.0
    total = 0.0
    for g in range(distinct.shape[0]):
        if places[g] < 0 or (kind >= FIRST and g != chosen):
            continue
        if kind == AVERAGE and scores[g] != best:
            continue
        weight = math.exp(scores[g] - best) if kind == SOFTMAX else 1.0
        total += weight * (mass[g, 0] + mass[g, 1])
        for c in range(out.shape[0]):
            out[c] += weight * (sums[g, 0, c] + sums[g, 1, c])
    if total > 0.0:
        for c in range(out.shape[0]):
            out[c] /= total


@kernel
def mix_by_key(
    order: int, kind: int, start: int, queries: Any, distinct: Any, root: Any,
    groups: Any, terms: Any, values: Any, top: Any, places: Any, mass: Any, sums: Any, scores: Any,
    out: Any,
) -> None:  # fmt: skip
    """Take the key of each row, answer its query, or both, in the order of the rows."""
    for i in range(max(values.shape[0], out.shape[0])):
        if order in (TAKE, TAKE_READ):
            _take(
                kind, groups[i], terms[i], start + i, values, i, root, top, places, mass, sums
            )  # fmt: skip
        if order != TAKE:
            _read(kind, queries[i], distinct, root, top, places, mass, sums, scores, out[i])
        if order == READ_TAKE:
            _take(
                kind, groups[i], terms[i], start + i, values, i, root, top, places, mass, sums
            )  # fmt: skip


class KeySums:
    """Largest term so far of each of few keys, and the sum of the values there.

    The score of a key is (q · (its group) + its term)/√d_key.
    """

    def __init__(self, distinct: NDArray[Any], maps: HeadMaps) -> None:
        self._distinct, self._maps = distinct, maps
        self._root = root_of(maps.d_key, distinct.dtype)
        self._start = 0
        count = len(distinct)
        self._state = (
            np.full(count, -np.inf),
            np.full(count, -1, np.int64),
            np.zeros((count, 2)),
            np.zeros((count, 2, maps.d_value)),
        )
        self._scores = np.zeros(count)

    def meet(self, distinct: NDArray[Any]) -> None:
        """Make room for the keys met by now, the earlier ones first."""
        more = len(distinct) - len(self._distinct)
        if not more:
            return
        self._distinct = distinct.copy()
        added = KeySums(distinct[len(distinct) - more :], self._maps)
        self._state = tuple(
            np.concatenate([old, new]) for old, new in zip(self._state, added._state, strict=True)
        )  # type: ignore[assignment]
        self._scores = np.zeros(len(distinct))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Keys, √d_key, sums, and room for scores, by the names of `token_table.ARRAYS`."""
        own = (self._distinct, np.array([self._root]), *self._state, self._scores)
        names = ("distinct", "root", "top", "chosen", "mass", "sums", "scores")
        return dict(zip(names, own, strict=True))

    def took(self, rows: int) -> None:
        """Record how many keys the kernel for one token consumed."""
        self._start += rows

    def mix(
        self,
        order: int,
        queries: NDArray[Any],
        groups: NDArray[np.int32],
        terms: NDArray[np.float64],
        values: NDArray[Any],
    ) -> NDArray[np.float64]:
        """The mixed values at rows that come in order, with the keys that come with them."""
        out = np.empty((0 if order == TAKE else len(queries), values.shape[1]))
        mix_by_key(
            order, self._maps.kind, self._start, queries, self._distinct, self._root,
            groups, terms, values, *self._state, self._scores, out,
        )  # fmt: skip
        self._start += len(values)
        return out


@final
class ByKey(Method):
    """A running result for each distinct key, in the columns in which the query varies.

    The other columns, in which the weights fix the query, add a term to the score of a key. With
    such terms, hard attention chooses as the reference where no dot product rounds; a softmax is
    near enough where scores are small.
    """

    name = "by key"
    cost = "n · keys"

    def __init__(self, maps: HeadMaps) -> None:
        super().__init__(maps)
        self._varying = np.flatnonzero(~maps.fixed)
        self._groups = self.groups(len(self._varying))
        self._ids: NDArray[np.int32] | None = None
        self._sums = KeySums(self._groups.vectors, maps)
        self._ranges = ScoreRanges(maps)
        self._seen = 0

    def fits(self, given: HeadInput) -> bool:
        keys = given.z.image(self.maps.key.rows(self._varying))
        self._ids = keys.numbered(self._groups)
        if self._ids is None:
            return False
        self.why = f"{len(self._groups.vectors)} distinct keys met"
        if self.maps.fixed.any():
            self.why += " and a term that the query does not scale"
            return given.scores.allow_terms
        return True

    def mixed(self, given: HeadInput) -> Vectors:
        assert self._ids is not None  # as it fits
        maps, ids = self.maps, self._ids
        self._sums.meet(self._groups.vectors)
        queries = given.z.image(maps.query.rows(self._varying))
        terms = given.keys.through(lambda keys: maps.terms(keys)[:, None], 1)

        def mix(order: int, rows: slice) -> NDArray[np.float64]:
            groups = np.ascontiguousarray(ids[rows])
            own = terms.at(rows)[:, 0].astype(np.float64)
            return self._sums.mix(order, queries.at(rows), groups, own, given.values.at(rows))

        if maps.order == READ:
            for rows in given.in_order():
                mix(TAKE, rows)
        return given.means(given.filled(lambda rows, out: np.copyto(out, mix(maps.order, rows))))

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: Past
    ) -> NDArray[np.float64] | None:
        if self._seen < past.count and self._take(TAKE, keys[:0], past.keys, past.values) is None:
            return None
        return self._take(self.maps.order, queries, keys, values)

    def _take(
        self, order: int, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any]
    ) -> NDArray[np.float64] | None:
        """The mixed values at the next rows; `None` where the method does not fit them."""
        groups = self._groups.of(keys[:, self._varying])
        if groups is None:
            return None
        if self.maps.fixed.any():
            self._ranges.take(queries, keys)
            if not self._ranges.allow_terms:
                return None
        self._seen += len(keys)
        self._sums.meet(self._groups.vectors)
        varying = np.ascontiguousarray(queries[:, self._varying])
        return self._sums.mix(order, varying, groups, self.maps.terms(keys), values)

    def token_arrays(self) -> tuple[Groups, dict[str, NDArray[Any]]] | None:
        if self.maps.fixed.any():  # keys have terms
            return None
        return self._groups, {**self._sums.arrays, "terms": np.zeros(1)}

    def took(self, rows: int) -> None:
        self._seen += rows
        self._sums.took(rows)
