"""Long inputs through uniform heads, in narrow formats, for the study precision."""

from __future__ import annotations

from typing import Any

import numpy as np

import transformist as tf
from transformist.arithmetic import Floating


def answer(model: tf.Transformer, x: str, a: Floating) -> Any:
    """Return the answer of a model of uniform heads, which is that of the reference to the bit.

    A uniform head has equal scores and the mask `future`: row i is the mean of the first i values.
    The reference computes n² weights; here the work is n for each different weight 1/i, of which a
    narrow format has few.

    Raises:
        TransformistError: as `tf.run`, where weights or answers overflow.

    """
    for layer in model.layers:
        if layer.feed_forward is not None:
            layer.feed_forward.rounded(a)  # weights that overflow are refused before the long work
    z = model.embedding([x], a)
    for layer in model.layers:
        for _, sublayer in layer.sublayers():
            function = sublayer.function
            if isinstance(function, tf.Heads):
                rows = np.arange(len(x) + 1)  # with BOS
                y = function.total((means(head, z, a, rows) for head in function.heads), a)
            else:
                y = function.on(z, a)
            z = sublayer.added(y, z, a)
    return model.read_out(z[:, -1], len(x), a)[0]


def means(head: tf.Attention, z: Any, a: Floating, rows: Any) -> Any:
    """What a uniform head gives in some rows, counted from 0: (1, n, d) → (1, rows, d_out)."""
    if head.W_Q.any() or head.b_Q.any() or head.mask != "future" or head.weighting != "softmax":
        raise ValueError("a uniform head has W_Q = 0, b_Q = 0, softmax and the mask future")
    v = head.values(z, a)[0]
    limit = a.largest if a.saturates else np.inf
    with np.errstate(over="ignore"):
        # Softmax takes i times e⁰ = 1 in the accumulator, stores the sum i, and divides 1 by it.
        stored = np.minimum(rows + 1, limit).astype(a.accumulator).astype(a.dtype)
        weights = np.asarray(a.divide(a.array([1]), stored)).astype(a.accumulator)
        sums = np.empty((len(rows), v.shape[1]), a.accumulator)
        starts = np.flatnonzero(np.diff(weights, prepend=np.nan))
        for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
            products = weights[start] * v[: rows[end - 1] + 1].astype(a.accumulator)
            sums[start:end] = np.add.accumulate(products, axis=0)[rows[start:end]]
        return head.output(np.clip(sums, -limit, limit).astype(a.dtype)[None], a)
