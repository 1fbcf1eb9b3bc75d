"""The family BERT: an encoder with learned positions, token types, and norms after sublayers.

An encoder has no causal mask and generates nothing: the head gives each token a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformist.conformance.family import TOKEN_TYPES, Array, DenseModel, Family, Sizes
from transformist.conformance.forward import (
    ACTIVATIONS,
    Formulas,
    attended,
    everywhere,
    heads,
    joined,
    norm,
    product,
    rows_of,
    tensor,
)


def _vectors(network: DenseModel, ids: Sequence[int], by: Formulas) -> Array:
    def linear(name: str, x: Array) -> Array:
        weight = tensor(network, by, f"{name}.weight")
        return product(x, weight.T, by) + tensor(network, by, f"{name}.bias")

    config, family = network.config, network.family
    size = config["hidden_size"] // config["num_attention_heads"]
    activation = ACTIVATIONS[by.activation or network.setting("activation")]
    x = by.embedded(rows_of(tensor(network, by, family.words), by.read([*ids])))
    if by.places and family.positions:
        x = x + rows_of(tensor(network, by, family.positions), by.places(len(ids)))
    if by.token_type is not None and family.types:
        x = x + rows_of(tensor(network, by, family.types), by.token_type)
    x = norm(network, by, family.outer, x, "outer")
    for number in by.order(network.setting("layers")):
        own = f"{family.layers}.{number}"

        def attention(x: Array, own: str = own, number: int = number) -> Array:
            parts = (linear(f"{own}.attention.self.{each}", x) for each in PROJECTIONS)
            q, k, v = by.prepared(*(heads(each, size) for each in parts))
            mixed = attended(q, k, v, by, number, everywhere)
            return linear(f"{own}.attention.output.dense", mixed)

        def feed_forward(x: Array, own: str = own) -> Array:
            return linear(f"{own}.output.dense", activation(linear(f"{own}.intermediate.dense", x)))

        sublayers = zip(
            ("attention", "network"),
            (attention, feed_forward),
            family.norms,
            ("first", "second"),
            strict=True,
        )
        before = x
        for part, sublayer, name, role in sublayers:
            place, read = f"{number}.{part}", before if by.reads_one_stream else x
            if by.normalizes_before:
                inner = norm(network, by, f"{own}.{name}", x, role)
                x = joined(by, place, x, sublayer(inner))
            else:
                x = norm(network, by, f"{own}.{name}", joined(by, place, x, sublayer(read)), role)
    return x


PROJECTIONS = ("query", "key", "value")
"""The names of the matrices of queries, keys and values."""


def _matrices(sizes: Sizes) -> Mapping[str, tuple[int, int]]:
    width = sizes.width
    return {
        **{f"attention.self.{each}": (width, width) for each in PROJECTIONS},
        "attention.output.dense": (width, width),
        "intermediate.dense": (width, sizes.hidden),
        "output.dense": (sizes.hidden, width),
    }


def _config(sizes: Sizes, epsilon: float, _theta: float, _has_biases: bool) -> dict[str, Any]:
    return {
        "architectures": ["BertForTokenClassification"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": sizes.width,
        "intermediate_size": sizes.hidden,
        "layer_norm_eps": epsilon,
        "max_position_embeddings": sizes.positions,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "type_vocab_size": TOKEN_TYPES,
        **dict.fromkeys(("attention_probs_dropout_prob", "hidden_dropout_prob"), 0.0),
    }


def _joined(parts: Mapping[str, Array]) -> dict[str, Array]:
    names = zip(PROJECTIONS, "qkv", strict=True)
    return {
        **{f"attention.self.{name}.weight": parts[each].T for name, each in names},
        "attention.output.dense.weight": parts["o"].T,
        "intermediate.dense.weight": parts["up"].T,
        "output.dense.weight": parts["down"].T,
    }


BERT = Family(
    name="bert",
    title="BERT",
    architecture="BertForTokenClassification",
    auto="AutoModelForTokenClassification",
    generates=False,
    words="bert.embeddings.word_embeddings.weight",
    positions="bert.embeddings.position_embeddings.weight",
    types="bert.embeddings.token_type_embeddings.weight",
    layers="bert.encoder.layer",
    norms=("attention.output.LayerNorm", "output.LayerNorm"),
    outer="bert.embeddings.LayerNorm",
    normalizes_after=True,
    subtracts_mean=True,
    epsilon=1e-12,
    activation="gelu",
    settings={
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "epsilon": "layer_norm_eps",
        "activation": "hidden_act",
    },
    has_gates=False,
    is_transposed=True,
    matrices=_matrices,
    written=("attention.output.dense", "output.dense"),
    biases={
        "queries": ("query.bias",),
        "keys": ("key.bias",),
        "values": ("value.bias",),
        "the output of attention": ("attention.output.dense.bias",),
        "hidden units": ("intermediate.dense.bias",),
        "the output of networks": tuple(f"layer.{k}.output.dense.bias" for k in range(8)),
        "norms": ("LayerNorm.bias",),
    },
    has_biases=lambda _name: True,
    can_have_biases=False,
    config=_config,
    joined=_joined,
    vectors=_vectors,
    head="classifier.weight",
    head_bias="classifier.bias",
)
