"""Attention where queries take few values: what each of them attends to, kept as keys come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.kernel import kernel
from transformist.engines.structured.sparse import SparseMap

SOFTMAX, AVERAGE, FIRST, LAST = range(4)
"""What becomes of the maximal scores; first and last in the order in which keys come."""

READ, TAKE, TAKE_READ, READ_TAKE = range(4)
"""What is done at each row, and in which order."""

FAR = 746.0
"""exp(−746) is 0 in float64: scores further below the largest have no weight."""


@kernel
def _add(total: Any, index: int, x: float) -> None:
    """total[index] + x, the error of the sum being kept in the second column (Neumaier)."""
    old = total[index, 0]
    new = old + x
    if abs(old) >= abs(x):
        total[index, 1] += (old - new) + x
    else:
        total[index, 1] += (x - new) + old
    total[index, 0] = new


@kernel
def _take(
    kind: int, starts: Any, columns: Any, asked: Any, root: Any, key: Any, value: Any,
    top: Any, mass: Any, sums: Any,
) -> None:  # fmt: skip
    """One key and value come: every query's largest score, weight and weighted sum."""
    for a in range(top.shape[0]):
        dot = root * key.dtype.type(0)
        for at in range(starts[a], starts[a + 1]):
            dot += asked[at] * key[columns[at]]
        score = np.float64(dot / root)
        if not math.isfinite(score):
            mass[a, 0] = np.nan
            continue
        below = score - top[a]
        if below < 0.0 and (kind != SOFTMAX or below < -FAR):
            continue
        if kind == FIRST and below == 0.0:
            continue
        weight = 1.0
        if below > 0.0 or (kind == LAST and below == 0.0):
            factor = math.exp(-below) if kind == SOFTMAX else 0.0
            for m in range(2):
                mass[a, m] *= factor
            for c in range(value.shape[0]):
                sums[a, c, 0] *= factor
                sums[a, c, 1] *= factor
            top[a] = score
        elif below < 0.0:
            weight = math.exp(below)
        _add(mass, a, weight)
        for c in range(value.shape[0]):
            _add(sums[a], c, weight * value[c])


@kernel
def _mix(
    order: int, kind: int, starts: Any, columns: Any, asked: Any, root: Any, ids: Any,
    keys: Any, values: Any, top: Any, mass: Any, sums: Any, out: Any,
) -> None:  # fmt: skip
    """Rows in order: the key of each is taken, its query answered, or both."""
    for i in range(max(keys.shape[0], out.shape[0])):
        if order in (TAKE, TAKE_READ):
            _take(kind, starts, columns, asked, root, keys[i], values[i], top, mass, sums)
        if order != TAKE:
            a = ids[i]
            total = mass[a, 0] + mass[a, 1]
            for c in range(out.shape[1]):
                out[i, c] = 0.0 if total == 0.0 else (sums[a, c, 0] + sums[a, c, 1]) / total
        if order == READ_TAKE:
            _take(kind, starts, columns, asked, root, keys[i], values[i], top, mass, sums)


class ByQuery:
    """For each of few queries the largest score so far, and the values there or around it.

    Scores are computed as the reference computes them, so that ties are the same ones. Weights
    and weighted values are summed in float64 in the order of the keys, compensated; of a softmax,
    those that are 0 in float64 are left out.

    Attributes:
        queries: the distinct queries, (count, d_key).

    """

    def __init__(self, queries: NDArray[Any], d_key: int, width: int, kind: int) -> None:
        asked = SparseMap.of(queries, None)
        self._asked = (asked.starts, asked.columns, asked.values)
        self._root = np.sqrt(np.array([d_key], np.float64)).astype(queries.dtype)[0]
        self._kind = kind
        self._top = np.full(len(queries), -np.inf)
        self._mass = np.zeros((len(queries), 2))
        self._sums = np.zeros((len(queries), width, 2))

    def joined(self, other: ByQuery) -> None:
        """The queries of another, after these; both have taken the same keys."""
        starts, columns, asked = self._asked
        more = other._asked
        self._asked = (
            np.concatenate([starts[:-1], more[0] + starts[-1]]),
            np.concatenate([columns, more[1]]),
            np.concatenate([asked, more[2]]),
        )
        self._top = np.concatenate([self._top, other._top])
        self._mass = np.concatenate([self._mass, other._mass])
        self._sums = np.concatenate([self._sums, other._sums])

    def mix(
        self, order: int, ids: NDArray[np.int32], keys: NDArray[Any], values: NDArray[Any]
    ) -> NDArray[np.float64]:
        """The mixed values at rows that come in order, with the keys that come with them."""
        rows = 0 if order == TAKE else len(ids)
        out = np.empty((rows, self._sums.shape[1]))
        state = (self._top, self._mass, self._sums)
        _mix(
            order, self._kind, *self._asked, self._root, ids, keys, values, *state, out
        )  # fmt: skip
        return out
