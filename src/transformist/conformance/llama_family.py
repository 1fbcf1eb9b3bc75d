"""The family Llama: rotary positions, RMS norms, grouped queries, gated networks.

Qwen2 and Mistral have the same formulas: Qwen2 has biases of queries, keys and values, and Mistral
can have a sliding window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from transformist.conformance.family import Array, DenseModel, Family, Sizes
from transformist.conformance.forward import (
    ACTIVATIONS,
    Formulas,
    attended,
    causal,
    heads,
    joined,
    norm,
    product,
    rows_of,
    tensor,
)


def _vectors(network: DenseModel, ids: Sequence[int], by: Formulas) -> Array:
    config = network.config

    def linear(name: str, x: Array) -> Array:
        weight = tensor(network, by, f"model.layers.{name}.weight")
        return product(x, weight.T, by) + tensor(network, by, f"model.layers.{name}.bias")

    def normed(name: str, x: Array, role: str) -> Array:
        return norm(network, by, f"model.{name}", x, role)

    size = config["head_dim"]
    activation = ACTIVATIONS[by.activation or network.setting("activation")]
    theta = config["rope_theta"] if by.theta is None else by.theta
    words = tensor(network, by, "model.embed_tokens.weight")
    x = by.embedded(rows_of(words, by.read([*ids])))
    for number in by.order(network.setting("layers")):
        inner = normed(f"layers.{number}.input_layernorm", x, "first")
        q, k, v = by.prepared(
            *(heads(linear(f"{number}.self_attn.{c}_proj", inner), size) for c in "qkv")
        )
        q, k, v = (
            _rotated(each, theta, by) if name in by.rotated else each
            for name, each in zip("qkv", (q, k, v), strict=True)
        )
        mixed = attended(q, k, v, by, number, causal, network.window)
        added = linear(f"{number}.self_attn.o_proj", mixed)
        before, x = x, joined(by, f"{number}.attention", x, added)
        inner = before if by.reads_one_stream else x
        inner = normed(f"layers.{number}.post_attention_layernorm", inner, "second")
        names = ("up", "gate") if by.swaps_gate else ("gate", "up")
        gate, up = (linear(f"{number}.mlp.{each}_proj", inner) for each in names)
        added = linear(f"{number}.mlp.down_proj", activation(gate) * up)
        x = joined(by, f"{number}.network", x, added)
    return normed("norm", x, "outer")


def _rotated(x: Array, theta: float, by: Formulas) -> Array:
    """Rotate the pairs of coordinates of each row (heads, rows, d) by row · θ^(−2f/d)."""
    if not theta:
        return x
    half = x.shape[-1] // 2
    frequencies = by.frequencies(theta ** (-np.arange(half) / half))
    angles = by.rounded("angles", np.arange(x.shape[1])[:, None] * frequencies)
    first, second = (
        (np.arange(half), np.arange(half) + half)
        if by.pairs == "halves"
        else (2 * np.arange(half), 2 * np.arange(half) + 1)
    )
    cos, sin = np.cos(angles), np.sin(angles)
    a, b, turned = x[..., first], x[..., second], np.empty_like(x)
    turned[..., first], turned[..., second] = a * cos - b * sin, b * cos + a * sin
    return turned


def _matrices(sizes: Sizes) -> Mapping[str, tuple[int, int]]:
    width, grouped = sizes.width, sizes.groups * sizes.head
    return {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (width, grouped),
        "self_attn.v_proj": (width, grouped),
        "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (width, sizes.hidden),
        "mlp.up_proj": (width, sizes.hidden),
        "mlp.down_proj": (sizes.hidden, width),
    }


def _config(sizes: Sizes, epsilon: float, theta: float, has_biases: bool) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": has_biases,
        "head_dim": sizes.head,
        "hidden_act": "silu",
        "hidden_size": sizes.width,
        "intermediate_size": sizes.hidden,
        "max_position_embeddings": sizes.positions,
        "mlp_bias": has_biases,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "num_key_value_heads": sizes.groups,
        "rms_norm_eps": epsilon,
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "attention_dropout": 0.0,
    }


def _without_settings(*names: str, **settings: Any) -> Any:
    """Return the configuration of Llama without some settings, and with others."""

    def config(sizes: Sizes, epsilon: float, theta: float, has_biases: bool) -> dict[str, Any]:
        own = _config(sizes, epsilon, theta, has_biases)
        return {name: value for name, value in own.items() if name not in names} | settings

    return config


def _joined(parts: Mapping[str, Array]) -> dict[str, Array]:
    made = {f"self_attn.{each}_proj.weight": parts[each].T for each in "qkvo"}
    gate = np.zeros_like(parts["up"])
    return made | {
        "mlp.gate_proj.weight": gate.T,
        "mlp.up_proj.weight": parts["up"].T,
        "mlp.down_proj.weight": parts["down"].T,
    }


_BIASES = {
    "queries": ("q_proj.bias",),
    "keys": ("k_proj.bias",),
    "values": ("v_proj.bias",),
    "the output of attention": ("o_proj.bias",),
    "the gate": ("gate_proj.bias",),
    "up_proj": ("up_proj.bias",),
    "the output of networks": ("down_proj.bias",),
}

LLAMA = Family(
    name="llama",
    title="Llama",
    architecture="LlamaForCausalLM",
    words="model.embed_tokens.weight",
    positions=None,
    layers="model.layers",
    norms=("input_layernorm", "post_attention_layernorm"),
    outer="model.norm",
    subtracts_mean=False,
    epsilon=1e-6,
    activation="silu",
    settings={
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "epsilon": "rms_norm_eps",
        "activation": "hidden_act",
    },
    has_gates=True,
    is_transposed=True,
    matrices=_matrices,
    written=("self_attn.o_proj", "mlp.down_proj"),
    biases=_BIASES,
    has_biases=lambda _name: False,
    can_have_biases=True,
    config=_config,
    joined=_joined,
    vectors=_vectors,
)

QWEN2 = replace(
    LLAMA,
    name="qwen2",
    title="Qwen2",
    architecture="Qwen2ForCausalLM",
    biases={place: _BIASES[place] for place in ("queries", "keys", "values")},
    has_biases=lambda name: name.endswith(("q_proj", "k_proj", "v_proj")),
    can_have_biases=False,
    config=_without_settings(
        "attention_bias",
        "mlp_bias",
        architectures=["Qwen2ForCausalLM"],
        model_type="qwen2",
        use_sliding_window=False,
    ),
)

MISTRAL = replace(
    LLAMA,
    name="mistral",
    title="Mistral",
    architecture="MistralForCausalLM",
    biases={},
    can_have_biases=False,
    settings={**LLAMA.settings, "window": "sliding_window"},
    config=_without_settings(
        "attention_bias",
        "mlp_bias",
        architectures=["MistralForCausalLM"],
        model_type="mistral",
        sliding_window=None,
    ),
)
