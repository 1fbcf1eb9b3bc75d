"""Attention where keys take few values, but for a term that no query scales: by their values.

Of a group of equal keys those of the largest term score highest, whatever is asked. Scores are
those of the reference where there are no terms, or where no sum with one rounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.heads.sums import take_value
from transformist.engines.structured.heads.weightings import (
    AVERAGE,
    FIRST,
    LAST,
    READ_TAKE,
    SOFTMAX,
    TAKE,
    TAKE_READ,
    root_of,
)
from transformist.engines.structured.kernel import kernel, kernel_part


@kernel_part
def _take(
    kind: int, group: int, term: float, place: int, values: Any, row: int, root: Any,
    top: Any, places: Any, mass: Any, sums: Any,
) -> None:  # fmt: skip
    """One key comes: the largest term of its group, and the values there or around it."""
    below = (term - top[group]) / np.float64(root)
    if take_value(kind, below, values, row, mass, sums, group):
        top[group] = term
        places[group] = place


@kernel_part
def _read(
    kind: int, query: Any, distinct: Any, root: Any, top: Any, places: Any, mass: Any, sums: Any,
    scores: Any, out: Any,
) -> None:  # fmt: skip
    """The mixed value for a query, from the groups that have come."""
    best, chosen = -np.inf, -1
    for g in range(distinct.shape[0]):
        if places[g] < 0:
            continue
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
    """Rows in order: the key of each is taken, its query answered, or both."""
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


class ByKey:
    """For each of few keys the largest added term so far, and the values there or around it.

    The score of a key is (q · (its group) + its term)/√d_key.
    """

    def __init__(self, distinct: NDArray[Any], d_key: int, width: int, kind: int) -> None:
        self._distinct, self._kind = distinct, kind
        self._root = root_of(d_key, distinct.dtype)
        self._start = 0
        count = len(distinct)
        self._state = (
            np.full(count, -np.inf),
            np.full(count, -1, np.int64),
            np.zeros((count, 2)),
            np.zeros((count, 2, width)),
        )
        self._scores = np.zeros(count)

    def meet(self, distinct: NDArray[Any]) -> None:
        """Room for the keys that have been met by now, the earlier ones first."""
        more = len(distinct) - len(self._distinct)
        if not more:
            return
        self._distinct = distinct.copy()
        added = ByKey(distinct[len(distinct) - more :], 1, self._state[3].shape[2], self._kind)
        self._state = tuple(
            np.concatenate([old, new]) for old, new in zip(self._state, added._state, strict=True)
        )  # type: ignore[assignment]
        self._scores = np.zeros(len(distinct))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The keys, √d_key, what is kept, and room for scores; for the kernel of one token."""
        own = (self._distinct, np.array([self._root]), *self._state, self._scores)
        names = ("distinct", "root", "top", "chosen", "mass", "sums", "scores")
        return dict(zip(names, own, strict=True))

    def took(self, rows: int) -> None:
        """Know that the kernel of one token has taken so many keys."""
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
            order, self._kind, self._start, queries, self._distinct, self._root,
            groups, terms, values, *self._state, self._scores, out,
        )  # fmt: skip
        self._start += len(values)
        return out
