"""The family GPT-2: learned positions, layer norms, one matrix for queries, keys and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    def get(name: str) -> Array:
        return tensor(network, by, f"transformer.{name}")

    def normed(name: str, x: Array, role: str) -> Array:
        return norm(network, by, f"transformer.{name}", x, role)

    def linear(name: str, x: Array) -> Array:
        return product(x, get(f"{name}.weight"), by) + get(f"{name}.bias")

    size = network.config["n_embd"] // network.config["n_head"]
    activation = ACTIVATIONS[by.activation or network.setting("activation")]
    x = by.embedded(rows_of(get("wte.weight"), by.read([*ids])))
    if by.places:
        x = x + rows_of(get("wpe.weight"), by.places(len(ids)))
    for number in by.order(network.setting("layers")):
        own = f"h.{number}"
        row = linear(f"{own}.attn.c_attn", normed(f"{own}.ln_1", x, "first"))
        if by.joined:
            q, k, v = by.joined(row, size)
        else:
            q, k, v = (heads(each, size) for each in np.split(row, 3, axis=-1))
        q, k, v = by.prepared(q, k, v)
        mixed = attended(q, k, v, by, number, causal)
        before, x = x, joined(by, f"{number}.attention", x, linear(f"{own}.attn.c_proj", mixed))
        inner = normed(f"{own}.ln_2", before if by.reads_one_stream else x, "second")
        hidden = activation(linear(f"{own}.mlp.c_fc", inner))
        x = joined(by, f"{number}.network", x, linear(f"{own}.mlp.c_proj", hidden))
    return normed("ln_f", x, "outer")


def _matrices(sizes: Sizes) -> Mapping[str, tuple[int, int]]:
    width = sizes.width
    return {
        "attn.c_attn": (width, 3 * width),
        "attn.c_proj": (width, width),
        "mlp.c_fc": (width, sizes.hidden),
        "mlp.c_proj": (sizes.hidden, width),
    }


def _config(sizes: Sizes, epsilon: float, _theta: float, _has_biases: bool) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "layer_norm_epsilon": epsilon,
        "n_embd": sizes.width,
        "n_head": sizes.heads,
        "n_inner": sizes.hidden,
        "n_layer": sizes.layers,
        "n_positions": sizes.positions,
        **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0),
    }


def _joined(parts: Mapping[str, Array]) -> dict[str, Array]:
    return {
        "attn.c_attn.weight": np.concatenate([parts[each] for each in "qkv"], axis=1),
        "attn.c_proj.weight": parts["o"],
        "mlp.c_fc.weight": parts["up"],
        "mlp.c_proj.weight": parts["down"],
    }


GPT2 = Family(
    name="gpt2",
    title="GPT-2",
    architecture="GPT2LMHeadModel",
    words="transformer.wte.weight",
    positions="transformer.wpe.weight",
    layers="transformer.h",
    norms=("ln_1", "ln_2"),
    outer="transformer.ln_f",
    subtracts_mean=True,
    epsilon=1e-5,
    activation="gelu_new",
    settings={
        "layers": "n_layer",
        "heads": "n_head",
        "epsilon": "layer_norm_epsilon",
        "activation": "activation_function",
    },
    has_gates=False,
    is_transposed=False,
    matrices=_matrices,
    written=("attn.c_proj", "mlp.c_proj"),
    biases={
        "queries, keys and values": ("attn.c_attn.bias",),
        "the output of attention": ("attn.c_proj.bias",),
        "hidden units": ("mlp.c_fc.bias",),
        "the output of networks": ("mlp.c_proj.bias",),
        "norms": ("ln_1.bias", "ln_2.bias", "ln_f.bias"),
    },
    has_biases=lambda _name: True,
    can_have_biases=False,
    config=_config,
    joined=_joined,
    vectors=_vectors,
)
