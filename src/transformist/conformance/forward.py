"""Evaluation of a checkpoint in float64, by the formulas of its class or by other formulas.

The other formulas are the known mistakes of engines. Evaluation by them gives the answers of an
instrument in an engine that has the mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
}
"""The activations by their names in transformers."""


@dataclass(frozen=True, kw_only=True)
class DenseModel:
    """A checkpoint of GPT-2 or Llama: the settings and the tensors by their names in the class."""

    family: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Array]


@dataclass(frozen=True, kw_only=True)
class Formulas:
    """Formulas of an engine, where they differ from those of the class; None is that of the class.

    Attributes:
        epsilon: eps of the norms.
        gain_summand: a number that is added to the gain of every norm.
        subtracts_mean: true if norms subtract the mean.
        has_final_norm: true if the final norm is applied.
        activation: the name of the activation.
        swaps_gate: true if the activation is applied to `up_proj`.
        scale: exponent of d_head in the factor of the scores.
        groups: `blocks` if consecutive heads share keys and values; `turns` if every g-th head
            does, for g groups.
        theta: base of the rotary frequencies; 0 for no rotation.
        pairs: `halves` if a rotation pairs f with f + d/2, `neighbours` if 2f with 2f + 1.
        skipped: the sublayers that add nothing, such as `0.attention` and `1.network`.
        without_residual: the sublayers whose input is not added.
        zeros: the names of tensors that are taken as 0.

    """

    epsilon: float | None = None
    gain_summand: float = 0.0
    subtracts_mean: bool | None = None
    has_final_norm: bool = True
    activation: str | None = None
    swaps_gate: bool = False
    scale: float = -0.5
    groups: str = "blocks"
    theta: float | None = None
    pairs: str = "halves"
    skipped: Sequence[str] = ()
    without_residual: Sequence[str] = ()
    zeros: Sequence[str] = field(default=())


def final_vectors(network: DenseModel, ids: Sequence[int], by: Formulas) -> Array:
    """Return the vectors (rows, d) that the head over the vocabulary reads."""
    return (_gpt2 if network.family == "gpt2" else _llama)(network, ids, by)


def _tensor(network: DenseModel, by: Formulas, name: str) -> Array:
    found = network.tensors.get(name, np.zeros(1))
    return np.zeros_like(found) if name in by.zeros else found


def _product(x: Array, matrix: Array) -> Array:
    """The matrix product by one thread: threads cost more than products of this size."""
    return np.asarray(np.einsum("ij,jk->ik", x, matrix))


def _norm(network: DenseModel, by: Formulas, name: str, x: Array) -> Array:
    is_gpt2 = network.family == "gpt2"
    own = network.config["layer_norm_epsilon" if is_gpt2 else "rms_norm_eps"]
    epsilon = own if by.epsilon is None else by.epsilon
    subtracts_mean = is_gpt2 if by.subtracts_mean is None else by.subtracts_mean
    centred = x - x.mean(-1, keepdims=True) if subtracts_mean else x
    gain = _tensor(network, by, f"{name}.weight") + by.gain_summand
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    found: Array = scaled * gain + _tensor(network, by, f"{name}.bias")
    return found


def _attended(q: Array, k: Array, v: Array, by: Formulas) -> Array:
    """Causal attention of queries (heads, rows, d) to groups of keys and values."""
    count, rows, size = q.shape
    groups = len(k)
    own = [h * groups // count if by.groups == "blocks" else h % groups for h in range(count)]
    scores = q @ k[own].transpose(0, 2, 1) * size**by.scale
    scores = np.where(np.tri(rows, dtype=bool), scores, -np.inf)
    # The largest score of a row becomes 0, so that no exponential overflows.
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = weights / weights.sum(-1, keepdims=True) @ v[own]
    return np.asarray(mixed.transpose(1, 0, 2).reshape(rows, -1))


def _heads(x: Array, size: int) -> Array:
    return x.reshape(len(x), -1, size).transpose(1, 0, 2)


def _sum(by: Formulas, name: str, x: Array, added: Array) -> Array:
    if name in by.skipped:
        return x
    return added if name in by.without_residual else x + added


def _gpt2(network: DenseModel, ids: Sequence[int], by: Formulas) -> Array:
    def get(name: str) -> Array:
        return _tensor(network, by, f"transformer.{name}")

    def norm(name: str, x: Array) -> Array:
        return _norm(network, by, f"transformer.{name}", x)

    size = network.config["n_embd"] // network.config["n_head"]
    activation = ACTIVATIONS[by.activation or network.config["activation_function"]]
    x = get("wte.weight")[[*ids]] + get("wpe.weight")[: len(ids)]
    for number in range(network.config["n_layer"]):
        own = f"h.{number}"
        joined = _product(norm(f"{own}.ln_1", x), get(f"{own}.attn.c_attn.weight"))
        q, k, v = np.split(joined + get(f"{own}.attn.c_attn.bias"), 3, axis=-1)
        mixed = _attended(_heads(q, size), _heads(k, size), _heads(v, size), by)
        added = _product(mixed, get(f"{own}.attn.c_proj.weight")) + get(f"{own}.attn.c_proj.bias")
        x = _sum(by, f"{number}.attention", x, added)
        inner = _product(norm(f"{own}.ln_2", x), get(f"{own}.mlp.c_fc.weight"))
        hidden = activation(inner + get(f"{own}.mlp.c_fc.bias"))
        added = _product(hidden, get(f"{own}.mlp.c_proj.weight")) + get(f"{own}.mlp.c_proj.bias")
        x = _sum(by, f"{number}.network", x, added)
    return norm("ln_f", x) if by.has_final_norm else x


def _llama(network: DenseModel, ids: Sequence[int], by: Formulas) -> Array:
    def linear(name: str, x: Array) -> Array:
        weight = _tensor(network, by, f"model.layers.{name}.weight")
        return _product(x, weight.T) + _tensor(network, by, f"model.layers.{name}.bias")

    def norm(name: str, x: Array) -> Array:
        return _norm(network, by, f"model.{name}", x)

    size = network.config["head_dim"]
    activation = ACTIVATIONS[by.activation or network.config["hidden_act"]]
    theta = network.config["rope_theta"] if by.theta is None else by.theta
    x = _tensor(network, by, "model.embed_tokens.weight")[[*ids]]
    for number in range(network.config["num_hidden_layers"]):
        inner = norm(f"layers.{number}.input_layernorm", x)
        q, k, v = (_heads(linear(f"{number}.self_attn.{c}_proj", inner), size) for c in "qkv")
        q, k = (_rotated(each, theta, by.pairs) for each in (q, k))
        added = linear(f"{number}.self_attn.o_proj", _attended(q, k, v, by))
        x = _sum(by, f"{number}.attention", x, added)
        inner = norm(f"layers.{number}.post_attention_layernorm", x)
        names = ("up", "gate") if by.swaps_gate else ("gate", "up")
        gate, up = (linear(f"{number}.mlp.{each}_proj", inner) for each in names)
        added = linear(f"{number}.mlp.down_proj", activation(gate) * up)
        x = _sum(by, f"{number}.network", x, added)
    return norm("norm", x) if by.has_final_norm else x


def _rotated(x: Array, theta: float, pairs: str) -> Array:
    """Rotate the pairs of coordinates of each row (heads, rows, d) by row · θ^(−2f/d)."""
    if not theta:
        return x
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * theta ** (-np.arange(half) / half)
    first, second = (
        (np.arange(half), np.arange(half) + half)
        if pairs == "halves"
        else (2 * np.arange(half), 2 * np.arange(half) + 1)
    )
    cos, sin = np.cos(angles), np.sin(angles)
    a, b, turned = x[..., first], x[..., second], np.empty_like(x)
    turned[..., first], turned[..., second] = a * cos - b * sin, b * cos + a * sin
    return turned
