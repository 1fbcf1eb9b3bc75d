"""A transformer as a checkpoint of Llama (LlamaForCausalLM), a decoder without position vectors.

Llama normalizes before each sublayer, by the root mean square alone: with the factor s (`SHRINK`)
in the stream, or in float16 with a pin (`neutral_norms`), a norm is the identity up to rounding. It
has no biases: they are read from the slot that holds 1. Rotations leave the coordinates of low
frequency as they are, and only these hold queries and keys. A hidden unit is silu(gate) · up, with
up = 1.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from transformist.host_evaluation import HOST_CLASSES, SHRINK
from transformist.hosts import checkpoint
from transformist.hosts.neutral_norms import MEAN_SQUARE_PINS, PINNED, neutral_norm
from transformist.hosts.next_token import answer_logits, word_vectors
from transformist.hosts.plain_model import (
    PlainLayer,
    PlainModel,
    in_heads,
    multiple_of_8,
    refuse_first,
    require_no_positions,
    rescaled,
    stacked,
    with_constant,
)
from transformist.hosts.stock import Arrays, decoder
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Transformer

EPSILON = HOST_CLASSES["llama"].epsilon
"""The usual eps of Llama, kept."""

THETA = 1e30
"""Base of the frequencies θ^(−2f/d_head), whose powers float32 holds."""

FROZEN = HOST_CLASSES["llama"].angle
"""Largest angle at the last row of a coordinate that holds queries and keys."""

SHARP = HOST_CLASSES["llama"].silu_factor
"""Factor c of the input of silu, which stands for ReLU."""


def mapping(plain: PlainModel, model: Transformer, tokens: Vocabulary) -> Arrays:
    """Fit a plain model to Llama, and return its settings and weights."""
    size, places = plain.head_size, _frozen(plain)
    plain = with_constant(rescaled(plain, model))
    constant = plain.width - 1
    neutral = neutral_norm(plain, SHRINK, MEAN_SQUARE_PINS)
    plain, count = in_heads(neutral.pinned(plain))
    factor, is_pinned = neutral.factor, plain.arithmetic == PINNED
    # One more hidden unit adds the biases of the layer to the stream.
    hidden = multiple_of_8(plain.most_hidden + 1)
    norm = np.full(plain.width, neutral.gain(EPSILON, plain.width))
    tensors = {
        "model.embed_tokens.weight": factor * word_vectors(plain, tokens),
        "model.norm.weight": norm,
        "lm_head.weight": answer_logits(plain, tokens, constant),
    }
    for number, layer in enumerate(plain.layers):
        arrays = {
            **_attention(layer, count, places, size, constant, factor, is_pinned),
            **_network(layer, hidden, constant, factor, is_pinned),
            "input_layernorm.weight": norm,
            "post_attention_layernorm.weight": norm,
        }
        tensors |= {f"model.layers.{number}.{name}": each for name, each in arrays.items()}
    config = {
        "model_type": "llama",
        "attention_bias": False,
        "head_dim": size,
        "hidden_act": "silu",
        "hidden_size": plain.width,
        "intermediate_size": hidden,
        "max_position_embeddings": len(plain.positions),
        "mlp_bias": False,
        "num_attention_heads": count,
        "num_hidden_layers": len(plain.layers),
        "num_key_value_heads": count,
        "rms_norm_eps": EPSILON,
        "rope_theta": THETA,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
        "vocab_size": len(tokens.texts),
        "attention_dropout": 0.0,
    }
    return config, tensors


def _frozen(plain: PlainModel) -> NDArray[np.int64]:
    """The coordinates of a head that rotations leave as they are, up to the last row."""
    half = plain.head_size // 2
    # At row r the pair of the frequency f is turned by the angle r f. A pair whose angle stays
    # below `FROZEN` up to the last row is the same in every row up to rounding, as if there were no
    # rotation.
    frequencies = THETA ** (-np.arange(half) / half)
    still = np.flatnonzero(frequencies * len(plain.positions) <= FROZEN)
    # The class rotates the pairs (f, f + half).
    return np.concatenate([still, still + half])


def require(plain: PlainModel, host: str) -> None:
    """Require a model without positions, with ReLU and queries of few coordinates.

    Raises:
        Unhostable: for another model.

    """
    require_no_positions(plain, host)
    most = len(_frozen(plain))
    sizes = [len(head.b_Q) for layer in plain.layers for head in layer.heads]
    faults = {
        "networks must have relu": (plain.activation != "relu", plain.activation),
        f"a query must have at most {most} coordinates": (
            max(sizes, default=0) > most,
            f"{max(sizes, default=0)}",
        ),
    }
    refuse_first(host, faults)


def _attention(
    layer: PlainLayer,
    count: int,
    places: NDArray[np.int64],
    size: int,
    constant: int,
    factor: float,
    is_pinned: bool,
) -> dict[str, NDArray[np.float64]]:
    heads = stacked(layer, count, places, size, are_balanced=is_pinned)
    arrays = {"self_attn.o_proj.weight": factor * heads["W_O"]}
    for letter in "QKV":
        weights = heads[f"W_{letter}"]
        # A weight of the slot that holds 1 is a bias.
        weights[:, constant] += heads[f"b_{letter}"]
        arrays[f"self_attn.{letter.lower()}_proj.weight"] = weights
    return arrays


def _network(
    layer: PlainLayer, hidden: int, constant: int, factor: float, is_pinned: bool
) -> dict[str, NDArray[np.float64]]:
    """The gated network; it also adds b_O, which the attention sublayer leaves out."""
    own, width = len(layer.b_1), len(layer.b_O)
    gate, up = np.zeros((hidden, width)), np.zeros((hidden, width))
    down = np.zeros((width, hidden))
    # W_1 reads z + b_O, where the stream still holds z.
    gate[:own] = layer.W_1
    gate[:own, constant] += layer.b_1 + layer.W_1 @ layer.b_O
    # The unit after the last is silu(c) / c for c times the slot of 1, which is 1 up to e^−c: it
    # carries b_O and b_2 to the stream.
    gate[own, constant] = 1
    up[: own + 1, constant] = 1
    down[:, :own] = layer.W_2
    down[:, own] = layer.b_O + layer.b_2
    sharp = _largest_factors(gate) if is_pinned else np.full(hidden, SHARP)
    return {
        "mlp.gate_proj.weight": sharp[:, None] * gate,
        "mlp.up_proj.weight": up,
        "mlp.down_proj.weight": down * (factor / sharp),
    }


def _largest_factors(gate: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each hidden unit in float16 the factor c of the input of silu, a power of two.

    Slots are about 1, so an input x is at most about the sum of the magnitudes of its weights, and
    c x stays below 2¹⁴, where float16 ends at 2¹⁶.
    """
    most = np.maximum(abs(gate).sum(axis=1), 1)
    return np.asarray(2.0 ** np.floor(14 - np.log2(most)))


STOCK = decoder("llama", "LlamaForCausalLM", mapping, require)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
