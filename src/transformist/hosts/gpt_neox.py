"""A transformer as a checkpoint of GPT-NeoX (GPTNeoXForCausalLM), a decoder without positions.

The class rotates a fraction of the coordinates of each head, here none, and computes a network from
the stream after the heads.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from transformist.hosts import checkpoint
from transformist.hosts.layer_normed import LayerNormed, layer_normed
from transformist.hosts.plain_model import ACTIVATIONS, Matrix, PlainModel, require_no_positions
from transformist.hosts.stock import Arrays, decoder
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Transformer

EPSILON = 1e-5
"""The usual eps of GPT-NeoX, kept."""


def mapping(plain: PlainModel, model: Transformer, tokens: Vocabulary) -> Arrays:
    """Fit a plain model to GPT-NeoX, and return its settings and weights."""
    made = layer_normed(plain, model, tokens, EPSILON)
    tensors = {
        "gpt_neox.embed_in.weight": made.words,
        "embed_out.weight": made.logits,
        **{f"gpt_neox.final_layer_norm.{name}": each for name, each in made.norm.items()},
    }
    for number, layer in enumerate(made.layers):
        arrays = _layer(layer, made)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            arrays |= {f"{norm}.{name}": each for name, each in made.norm.items()}
        tensors |= {f"gpt_neox.layers.{number}.{name}": each for name, each in arrays.items()}
    config = {
        "model_type": "gpt_neox",
        "attention_bias": True,
        "hidden_act": ACTIVATIONS[plain.activation],
        "hidden_size": made.width,
        "intermediate_size": made.hidden,
        "layer_norm_eps": EPSILON,
        "max_position_embeddings": len(made.positions),
        "num_attention_heads": made.heads,
        "num_hidden_layers": len(made.layers),
        # A rotation of no coordinates: queries and keys stay as they are at every distance.
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.0,
        },
        # In parallel, a network would not read what the heads of its layer write.
        "use_parallel_residual": False,
        "vocab_size": len(tokens.texts),
        **dict.fromkeys(("attention_dropout", "hidden_dropout"), 0.0),
    }
    return config, tensors


def _layer(layer: dict[str, Matrix], made: LayerNormed) -> dict[str, Matrix]:
    """The arrays of a layer; the queries, keys and values of a head are neighbours."""

    # The class splits the output into heads first, and each head into its Q, K and V.
    def by_head(letter: str) -> Matrix:
        each = np.stack(
            [layer[f"{letter}_{name}"].reshape(made.heads, made.size, -1) for name in "QKV"], axis=1
        )
        return each.reshape(3 * made.width, -1)

    return {
        "attention.query_key_value.weight": by_head("W"),
        "attention.query_key_value.bias": by_head("b")[:, 0],
        "attention.dense.weight": layer["W_O"],
        "attention.dense.bias": layer["b_O"],
        "mlp.dense_h_to_4h.weight": layer["W_1"],
        "mlp.dense_h_to_4h.bias": layer["b_1"],
        "mlp.dense_4h_to_h.weight": layer["W_2"],
        "mlp.dense_4h_to_h.bias": layer["b_2"],
    }


STOCK = decoder("gpt-neox", "GPTNeoXForCausalLM", mapping, require_no_positions)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
