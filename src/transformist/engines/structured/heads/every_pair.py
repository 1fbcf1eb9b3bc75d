"""Attention over every pair, a row of scores at a time, bit for bit as in the reference."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, final
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.heads.head import HeadInput
from transformist.engines.structured.heads.method import Method
from transformist.engines.structured.heads.past import Past
from transformist.engines.structured.heads.weightings import (
    AVERAGE,
    KINDS,
    LAST,
    OTHER,
    SOFTMAX,
    root_of,
)
from transformist.engines.structured.kernel import kernel
from transformist.engines.structured.ranges import overflow
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.stream_vectors import Vectors, require_finite
from transformist.errors import TakesLong
from transformist.model import Weighting


@kernel
def _scores(query: Any, keys: Any, root: Any, scores: Any) -> bool:
    """Write the scores of a query with the keys; true if all are finite."""
    finite = True
    for j in range(keys.shape[0]):
        dot = root * keys.dtype.type(0)  # a 0 of the format, in which all sums then round
        for m in range(keys.shape[1]):
            dot += query[m] * keys[j, m]
        scores[j] = dot / root
        finite = finite and math.isfinite(scores[j])
    return finite


@kernel
def _hard(kind: int, scores: Any) -> None:
    """Turn scores into weights: 1 for one of the largest, or equal shares for all of them."""
    best, chosen, count = scores[0], 0, 1
    for j in range(1, scores.shape[0]):
        if scores[j] > best:
            best, chosen, count = scores[j], j, 1
        elif scores[j] == best:
            count += 1
            if kind == LAST:
                chosen = j
    one = scores.dtype.type(1)
    share = one / scores.dtype.type(count) if kind == AVERAGE else one
    for j in range(scores.shape[0]):
        has_part = scores[j] == best if kind == AVERAGE else j == chosen
        scores[j] = share if has_part else scores.dtype.type(0)


@kernel
def _share(weights: Any) -> None:
    """Divide weights by their sum, taken from left to right."""
    total = weights.dtype.type(0)
    for j in range(weights.shape[0]):
        total += weights[j]
    for j in range(weights.shape[0]):
        weights[j] /= total


@kernel
def _weighted(weights: Any, values: Any, out: Any) -> None:
    """Write Σ αⱼ vⱼ, summed from left to right."""
    out[:] = values.dtype.type(0)
    for j in range(values.shape[0]):
        for c in range(values.shape[1]):
            out[c] += weights[j] * values[j, c]


def mix_dense(
    weighting: Weighting, d_key: int,
    queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any],
    first: NDArray[np.int64], stop: NDArray[np.int64], a: Floating,
) -> NDArray[np.float64]:  # fmt: skip
    """The mixed values of queries that see the keys from `first` to `stop` − 1.

    It takes one step for each pair, and the memory of one row.

    Raises:
        NotFinite: where the score of a pair overflows, seen or not.

    """
    kind, root = KINDS.get(weighting, OTHER), root_of(d_key, a.dtype)
    out = np.zeros((len(queries), values.shape[1]), a.dtype)
    row = np.empty(len(keys), a.dtype)
    # Scores of all keys are computed, also of those outside the mask, as the reference does: an
    # overflow there is refused too.
    for i, (low, high) in enumerate(zip(first.tolist(), stop.tolist(), strict=True)):
        if not _scores(queries[i], keys, root, row):
            raise overflow("attention scores", a)
        weights = row[low:high]
        if not len(weights):
            continue
        if kind == OTHER:
            every = np.full((1, high - low), True)
            weights[:] = weighting(weights[None, :], every, a)[0]
        elif kind == SOFTMAX:
            # By the arithmetic itself, so that the exponential has the reference's last bits.
            weights[:] = a.exp(a.subtract(weights, weights.max()))
            _share(weights)
        else:
            _hard(kind, weights)
        _weighted(weights, values[low:high], out[i])
    return out.astype(np.float64)


# A pair takes 4 ns under hard attention and 10 ns under softmax, measured at n = 2048: at this
# length a head takes 1 to 3 s, and four times as long at twice the length.
SLOW_LENGTH = 2**14
"""From this length on, a warning says that every pair is evaluated."""


@final
class EveryPair(Method):
    """Every pair, a row at a time; fits every input."""

    name = "dense"
    cost = "n²"

    def fits(self, given: HeadInput) -> bool:
        """Always true.

        Raises:
            NotFinite: for a query, key or value that overflows.

        """
        a, self.why = self.maps.a, "neither queries nor keys are few"
        if self.maps.kind == OTHER:
            self.why = "the engine has no other way for this weighting"
        if not given.is_finite:
            self.why = "numbers come near the largest of the format"
            w = self.maps.head.rounded(a)
            for W, b in ((w.W_Q, w.b_Q), (w.W_K, w.b_K)):
                affine = partial(a.affine, W=W, b=b)
                require_finite(given.z.whole().through(affine, len(W)), a)
        require_finite(given.values, a)
        return True

    def mixed(self, given: HeadInput) -> Vectors:
        if given.n >= SLOW_LENGTH:
            pairs = f"{given.n:,} × {given.n:,} pairs of positions"
            warn(TakesLong(f"a head goes through {pairs}, as {self.why}"), stacklevel=2)
        keys, values = given.keys.whole(), given.values.whole()

        def mix(rows: slice, out: NDArray[Any]) -> None:
            at = np.arange(*rows.indices(given.n))
            out[:] = self._dense(given.queries.at(rows), keys, values, at, given.n)

        return Many(given.filled(mix))  # no bound: in float32 the rounding of long sums adds up

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: Past
    ) -> NDArray[np.float64] | None:
        n = past.count + len(keys)
        keys = np.concatenate([past.keys, keys])
        values = np.concatenate([past.values, values])
        return self._dense(queries, keys, values, np.arange(past.count, n), n)

    def _dense(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any],
        at: NDArray[np.int64], n: int,
    ) -> NDArray[np.float64]:  # fmt: skip
        """The mixed values of queries at some of n positions."""
        head = self.maps.head
        first, stop = head.mask.span(at, n)
        own = (head.weighting, self.maps.d_key, queries, keys, values)
        return mix_dense(*own, first, stop, self.maps.a)
