"""Attention over every pair, a row of scores at a time, in the order of the reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.by_query import AVERAGE, LAST, SOFTMAX
from transformist.engines.structured.kernel import kernel


@kernel
def _weigh(kind: int, scores: Any, first: int, stop: int) -> float:
    """The scores of a row made weights; what they sum to."""
    best, chosen, total = -np.inf, first, 0.0
    for j in range(first, stop):
        if not math.isfinite(scores[j]):
            return np.nan
        if scores[j] > best or (kind == LAST and scores[j] == best):
            best, chosen = scores[j], j
    for j in range(first, stop):
        if kind == SOFTMAX:
            scores[j] = math.exp(scores[j] - best)
        elif kind == AVERAGE:
            scores[j] = 1.0 if scores[j] == best else 0.0
        else:
            scores[j] = 1.0 if j == chosen else 0.0
        total += scores[j]
    return total


@kernel
def _mix(
    kind: int, root: Any, queries: Any, keys: Any, values: Any, first: Any, stop: Any, scores: Any,
    out: Any,
) -> None:  # fmt: skip
    """out[i] = Σ αᵢⱼ vⱼ, j from first[i] to stop[i] − 1."""
    for i in range(queries.shape[0]):
        for j in range(first[i], stop[i]):
            dot = root * keys.dtype.type(0)
            for m in range(keys.shape[1]):
                dot += queries[i, m] * keys[j, m]
            scores[j] = np.float64(dot / root)
        total = _weigh(kind, scores, first[i], stop[i])
        out[i] = 0.0
        for j in range(first[i], stop[i]):
            weight = scores[j] / total
            if weight != 0.0:
                for c in range(out.shape[1]):
                    out[i, c] += weight * values[j, c]


def mix_dense(
    kind: int, d_key: int, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any],
    first: NDArray[np.int64], stop: NDArray[np.int64],
) -> NDArray[np.float64]:  # fmt: skip
    """The mixed values of queries that see the keys from `first` to `stop` − 1.

    Scores are those of the reference; weights and sums are in float64, in the order of the
    positions. It takes as many steps as there are pairs, and the memory of one row.
    """
    root = np.sqrt(np.array([d_key], np.float64)).astype(keys.dtype)[0]
    out = np.empty((len(queries), values.shape[1]))
    scores = np.empty(len(keys))
    _mix(kind, root, queries, keys, values, first, stop, scores, out)
    return out
