"""Evaluation of a checkpoint in float64, by the formulas of its class or by other formulas.

The other formulas are the known mistakes of engines. Evaluation by them gives the answers of an
instrument in an engine that has the mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformist.conformance.family import Array, DenseModel


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf_gelu(x: Array) -> Array:
    below: Array = np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))
    return x * (1 + below) / 2


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "gelu_new": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "gelu": _erf_gelu,
    "quick_gelu": lambda x: x * _sigmoid(1.702 * x),
    "silu": lambda x: x * _sigmoid(x),
    "relu": lambda x: np.maximum(x, 0),
    "linear": lambda x: x,
}
"""The activations by their names in transformers."""


def _same(x: Array) -> Array:
    return x


def causal(rows: int, _layer: int) -> Any:
    """True where a key is not later than the query, shape (rows, rows)."""
    return np.tri(rows, dtype=bool)


def everywhere(rows: int, _layer: int) -> Any:
    """True for each key and each query, shape (rows, rows)."""
    return np.ones((rows, rows), bool)


def _softmax(scores: Array) -> Array:
    # The largest score of a row becomes 0, so that no exponential overflows.
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class Formulas:
    """Formulas of an engine, where they differ from those of the class; None is that of the class.

    Arrays of heads have the shape (heads, rows, d_head), scores (heads, queries, keys).

    Attributes:
        epsilon: eps of the norms.
        deviation: the divisor of a norm, from the mean square, eps and the width.
        gain: the gain of every norm, from that of the file.
        subtracts_mean: true if norms subtract the mean.
        left_out: the norms that are not applied, of `first`, `second` and `outer`.
        normalizes_before: true if norms come before the sublayers, where those of the class follow.
        norm_of: the name of the norm whose tensors are taken, from the name of the norm.
        activation: the name of the activation.
        swaps_gate: true if the activation is applied to `up_proj`.
        scale: exponent of d_head in the factor of the scores.
        factor: a further factor of the scores, from the layer and the number of heads.
        prepared: queries, keys and values, from those of the class, before rotations.
        joined: queries, keys and values of GPT-2 from the row (rows, 3 d) of all, or None.
        scored: the scores, from those of the class.
        sees: true where a query sees a key, from the number of rows and the layer; None is the
            mask of the class. Windows come on top.
        window: the number of keys that a query sees, from that of the file and the layer; None for
            all.
        weighed: the weights of attention from the scores.
        groups: `blocks` if consecutive heads share keys and values; `turns` if every g-th head
            does, for g groups; `first` if all heads share those of the first group.
        merged: the outputs of heads, from those of the class.
        frequencies: the rotary frequencies, from those of the class.
        rotated: the vectors that are rotated, of `q`, `k` and `v`.
        theta: base of the rotary frequencies; 0 for no rotation.
        pairs: `halves` if a rotation pairs f with f + d/2, `neighbours` if 2f with 2f + 1.
        skipped: the sublayers that add nothing, such as `0.attention` and `1.network`.
        without_residual: the sublayers whose input is not added.
        reads_one_stream: true if networks read the input of the layer, as attention does.
        zeros: the names of tensors that are taken as 0, or their last parts.
        order: the layers in the order of evaluation, from their number.
        read: the ids whose word vectors are taken, from the ids.
        embedded: the word vectors, from those of the class.
        places: the rows of the table of positions, from the number of rows; None for no positions.
        token_type: the row of the table of token types; None for no such vector.
        rounded: numbers as they are kept, from the name of their place and the numbers.

    """

    epsilon: float | None = None
    deviation: Callable[[Array, float, int], Array] = lambda square, eps, _width: np.sqrt(
        square + eps
    )
    gain: Callable[[Array], Array] = _same
    subtracts_mean: bool | None = None
    left_out: Sequence[str] = ()
    normalizes_before: bool = False
    norm_of: Callable[[str], str] = lambda name: name
    activation: str | None = None
    swaps_gate: bool = False
    scale: float = -0.5
    factor: Callable[[int, int], float] = lambda _layer, _heads: 1.0
    prepared: Callable[[Array, Array, Array], Sequence[Array]] = lambda q, k, v: (q, k, v)
    joined: Callable[[Array, int], Sequence[Array]] | None = None
    scored: Callable[[Array], Array] = _same
    sees: Callable[[int, int], Any] | None = None
    window: Callable[[int | None, int], int | None] = lambda size, _layer: size
    weighed: Callable[[Array], Array] = _softmax
    groups: str = "blocks"
    merged: Callable[[Array], Array] = _same
    frequencies: Callable[[Array], Array] = _same
    rotated: str = "qk"
    theta: float | None = None
    pairs: str = "halves"
    skipped: Sequence[str] = ()
    without_residual: Sequence[str] = ()
    reads_one_stream: bool = False
    zeros: Sequence[str] = ()
    order: Callable[[int], Sequence[int]] = range
    read: Callable[[Any], Any] = lambda ids: ids
    embedded: Callable[[Array], Array] = _same
    places: Callable[[int], Any] | None = np.arange
    token_type: int | None = 0
    rounded: Callable[[str, Array], Array] = lambda _place, x: x


def final_vectors(network: DenseModel, ids: Sequence[int], by: Formulas) -> Array:
    """Return the vectors (rows, d) that the head reads."""
    return network.family.vectors(network, ids, by)


def logits_by(
    network: DenseModel, ids: Sequence[int], by: Formulas, head: str | None = None
) -> Array:
    """Return the logits (rows, labels) of a prompt by formulas.

    Args:
        network: the checkpoint.
        ids: the tokens.
        by: the formulas.
        head: the tensor that serves as the head; that of the class when left out.

    """
    family = network.family
    found = by.rounded("factor", final_vectors(network, ids, by))
    rows = by.rounded("matrix", network.tensors[head or family.head])
    logits = np.einsum("ij,kj->ik", found, rows)
    if family.head_bias:
        logits = logits + tensor(network, by, family.head_bias)
    return by.rounded("logits", logits)


def tensor(network: DenseModel, by: Formulas, name: str) -> Array:
    """Return a tensor, or 0 where the class has none of this name."""
    found = network.tensors.get(name, np.zeros(1))
    if by.zeros and name.endswith(tuple(by.zeros)):
        return np.zeros_like(found)
    return by.rounded("matrix", found) if found.ndim == 2 else found


def rows_of(table: Array, places: Any) -> Array:
    """Return rows of a table; a row beyond the end is the last: a mistake may read one."""
    return np.asarray(table[np.minimum(places, len(table) - 1)])


def product(x: Array, matrix: Array, by: Formulas) -> Array:
    """The matrix product by one thread: threads cost more than products of this size."""
    return np.asarray(np.einsum("ij,jk->ik", by.rounded("factor", x), matrix))


def norm(network: DenseModel, by: Formulas, name: str, x: Array, role: str) -> Array:
    """Normalize rows by the norm of a name, in the role `first`, `second` or `outer`."""
    if role in by.left_out:
        return x
    name, own = by.norm_of(name), network.family.subtracts_mean
    epsilon = network.setting("epsilon") if by.epsilon is None else by.epsilon
    subtracts_mean = own if by.subtracts_mean is None else by.subtracts_mean
    centred = x - x.mean(-1, keepdims=True) if subtracts_mean else x
    gain = by.gain(tensor(network, by, f"{name}.weight"))
    square = (centred**2).mean(-1, keepdims=True)
    scaled = centred / by.deviation(square, epsilon, x.shape[-1])
    return by.rounded("norm", scaled * gain + tensor(network, by, f"{name}.bias"))


def attended(
    q: Array, k: Array, v: Array, by: Formulas, layer: int, mask: Any, window: int | None = None
) -> Array:
    """Attention of queries (heads, rows, d) to groups of keys and values.

    Args:
        q: the queries.
        k: the keys of each group.
        v: the values of each group.
        by: the formulas.
        layer: the number of the layer.
        mask: the mask of the class, a function as `Formulas.sees`.
        window: the number of keys that a query sees by the file; None for all.

    """
    count, rows, size = q.shape
    groups = len(k)
    own = {
        # H heads in g groups: H/g heads in a row share the keys and values of group ⌊h g/H⌋.
        "blocks": [h * groups // count for h in range(count)],
        "turns": [h % groups for h in range(count)],
        "first": [0] * count,
    }[by.groups]
    k, v = by.rounded("cache", k), by.rounded("cache", v)
    # d^(−1/2) is the usual factor; the exponents 0 and −1 are the mistakes of no scale and of 1/d.
    scores = q @ k[own].transpose(0, 2, 1) * size**by.scale * by.factor(layer, count)
    scores = by.rounded("scores", by.scored(scores))
    sees = (by.sees or mask)(rows, layer)
    kept = by.window(window, layer)
    if kept is not None:
        # Query i sees keys j with i − w < j ≤ i: w keys, its own among them.
        sees = sees & (np.arange(rows) > np.arange(rows)[:, None] - kept)
    weights = by.weighed(np.where(sees, scores, -np.inf))
    mixed = by.merged(by.rounded("weights", weights) @ v[own])
    return np.asarray(mixed.transpose(1, 0, 2).reshape(rows, -1))


def heads(x: Array, size: int) -> Array:
    """Split rows into heads (heads, rows, d_head)."""
    return x.reshape(len(x), -1, size).transpose(1, 0, 2)


def joined(by: Formulas, name: str, x: Array, added: Array) -> Array:
    """Add the output of a sublayer to the residual stream."""
    if name in by.skipped:
        return x
    return by.rounded("stream", added if name in by.without_residual else x + added)
