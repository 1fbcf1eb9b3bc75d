"""A transformer as a checkpoint of GPT-2 (GPT2LMHeadModel), a decoder with a table of positions.

GPT-2 normalizes before each sublayer: a norm is the identity up to rounding, since the stream has
the factor s (`SHRINK`), its sum is 0, and the gain is √eps / s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.hosts import checkpoint
from transformist.hosts.named_arrays import NO_FACTS
from transformist.hosts.next_token import answer_logits, word_vectors
from transformist.hosts.plain_model import (
    ACTIVATIONS,
    SHRINK,
    PlainLayer,
    in_heads,
    multiple_of_8,
    network_of,
    plain_model,
    rescaled,
    stacked,
    with_constant,
    with_zero_sum,
)
from transformist.hosts.stock import decoder
from transformist.hosts.vocabulary import vocabulary_of
from transformist.model import Mask, Transformer

STOCK = decoder("GPT2LMHeadModel")

MASKS = (Mask.FUTURE,)

EPSILON = 1e-5
"""The usual eps of GPT-2, kept: some engines ignore the value in the file."""


def write(
    model: Transformer,
    arithmetic: str,
    max_length: int | None = None,
    facts: Mapping[str, Any] = NO_FACTS,
) -> dict[str, bytes]:
    """Return the files of a checkpoint by their names.

    Args:
        model: the transformer.
        arithmetic: `float32`.
        max_length: the longest input, for a model without N.
        facts: the claim of the model and the inputs of its comparison, for the card.

    Raises:
        Unhostable: for a model or a format that a decoder does not have.
        InvalidValue: for symbols without texts, or a model of any length without `max_length`.
        NotFinite: for a weight that is too large for float32.

    """
    checkpoint.require_float32(arithmetic, "gpt2")
    plain = plain_model(model, "gpt2", MASKS, max_length)
    plain = with_zero_sum(with_constant(rescaled(plain, model)))
    constant, size = plain.width - 2, plain.head_size
    plain, count = in_heads(plain)
    width, hidden = plain.width, multiple_of_8(plain.most_hidden)
    tokens = vocabulary_of(model, plain.answers)
    norm = {"weight": np.full(width, math.sqrt(EPSILON) / SHRINK), "bias": np.zeros(width)}
    tensors = {
        "transformer.wte.weight": SHRINK * word_vectors(plain, tokens),
        "transformer.wpe.weight": SHRINK * plain.positions,
        "lm_head.weight": answer_logits(plain, tokens, constant),
        **{f"transformer.ln_f.{name}": values for name, values in norm.items()},
    }
    for number, layer in enumerate(plain.layers):
        arrays = _layer(layer, count, size, hidden)
        arrays |= {f"{ln}.{name}": each for ln in ("ln_1", "ln_2") for name, each in norm.items()}
        tensors |= {f"transformer.h.{number}.{name}": each for name, each in arrays.items()}
    config = {
        "model_type": "gpt2",
        "activation_function": ACTIVATIONS[plain.activation],
        "layer_norm_epsilon": EPSILON,
        "n_embd": width,
        "n_head": count,
        "n_inner": hidden,
        "n_layer": len(plain.layers),
        "n_positions": len(plain.positions),
        "vocab_size": len(tokens.texts),
        **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0),
    }
    return checkpoint.files(
        STOCK, model, tokens, tokens.answer_texts, config, tensors, max_length, facts
    )


def _layer(layer: PlainLayer, count: int, size: int, hidden: int) -> dict[str, NDArray[np.float64]]:
    """The arrays of a layer; GPT-2 has the transposed matrices."""
    heads = stacked(layer, count, np.arange(size), size)
    network = network_of(layer, hidden)
    return {
        "attn.c_attn.weight": np.concatenate([heads[f"W_{each}"] for each in "QKV"]).T,
        "attn.c_attn.bias": np.concatenate([heads[f"b_{each}"] for each in "QKV"]),
        "attn.c_proj.weight": SHRINK * heads["W_O"].T,
        "attn.c_proj.bias": SHRINK * layer.b_O,
        "mlp.c_fc.weight": network["W_1"].T,
        "mlp.c_fc.bias": network["b_1"],
        "mlp.c_proj.weight": SHRINK * network["W_2"].T,
        "mlp.c_proj.bias": SHRINK * network["b_2"],
    }


def run(files: Mapping[str, bytes]) -> Callable[[Any, Any], NDArray[Any]]:
    """Return a function from tokens and lengths to logits, by transformers."""
    return checkpoint.run(STOCK, files)
