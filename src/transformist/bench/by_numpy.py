"""Models dense in numpy: attention by matrix products, in blocks of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.model import Attention, Transformer, Weighting

# 1,024 rows of scores at n = 16,384 take 128 MiB: few passes, and no n² memory.
BLOCK = 1024
"""This many rows of scores are computed at once."""

Floats = NDArray[np.float64]


def dense(model: Transformer, z: Floats) -> Floats:
    """The final vectors (n, d) of a model without norms, whose networks have ReLUs.

    Example:
        >>> from transformist.bench.workloads import brackets
        >>> from transformist.arithmetic import number_system
        >>> model, x, _ = brackets(4)
        >>> z = model.embedding([x], number_system("float64"))[0]
        >>> bool(np.allclose(dense(model, z), model.run(x).streams[-1][1]))
        True

    """
    for layer in model.layers:
        if layer.heads:
            z = z + sum(_mixed(head, z) for head in layer.heads)
        if layer.feed_forward is not None:
            ff = layer.feed_forward
            z = z + np.maximum(z @ ff.W_1.T + ff.b_1, 0) @ ff.W_2.T + ff.b_2
    return z


def _mixed(head: Attention, z: Floats) -> Floats:
    """The output of a head."""
    q, k, v = z @ head.W_Q.T + head.b_Q, z @ head.W_K.T + head.b_K, z @ head.W_V.T + head.b_V
    c, j = np.empty_like(v), np.arange(len(z))
    for start in range(0, len(z), BLOCK):
        rows = slice(start, start + BLOCK)
        seen = head.mask.admissible(j[rows, None], j[None, :])
        scores = np.where(seen, q[rows] @ k.T / math.sqrt(k.shape[1]), -np.inf)
        weights = _weights(head.weighting, scores, seen)
        total = weights.sum(axis=1, keepdims=True)
        c[rows] = weights @ v / np.where(total == 0, 1, total)
    mixed: Floats = (c if head.W_O is None else c @ head.W_O.T) + head.b_O
    return mixed


def _weights(weighting: Weighting, scores: Floats, seen: Any) -> Floats:
    """Weights before their division by their sum; 0 where the mask admits nothing."""
    top = scores.max(axis=1, keepdims=True)
    top[np.isinf(top)] = 0  # rows without an admissible key: −∞ minus −∞ would be NaN
    if not weighting.is_hard:
        soft: Floats = np.exp(scores - top)
        return soft
    largest: Any = (scores == top) & seen
    if weighting.takes_one:
        j = np.arange(scores.shape[1])
        first = largest.argmax(axis=1)
        last = scores.shape[1] - 1 - largest[:, ::-1].argmax(axis=1)
        chosen = first if weighting.ties == "leftmost" else last
        largest &= j[None, :] == chosen[:, None]
    hard: Floats = largest.astype(np.float64)
    return hard
