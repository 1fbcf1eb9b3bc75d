"""A transformer as a checkpoint of OPT (OPTForCausalLM), a decoder with a table of positions."""

from __future__ import annotations

from functools import partial

import numpy as np

from transformist.hosts import checkpoint
from transformist.hosts.layer_normed import layer_normed
from transformist.hosts.plain_model import ACTIVATIONS, PlainModel
from transformist.hosts.stock import Arrays, decoder
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Transformer

EPSILON = 1e-5
"""The eps of OPT, which its configuration does not have."""

# The class adds 2 to the place of a token. A token of padding before an input has the place −1 and
# reads row 1, which no other token does.
EMPTY = 2
"""Rows of the table of positions before that of the first token."""

# The class has the matrices of the definition: a map is x W^T + b, with a row for each output.
SUBLAYERS = {
    "Q": "self_attn.q_proj",
    "K": "self_attn.k_proj",
    "V": "self_attn.v_proj",
    "O": "self_attn.out_proj",
    "1": "fc1",
    "2": "fc2",
}
"""The name of each linear map of a layer."""


def mapping(plain: PlainModel, model: Transformer, tokens: Vocabulary) -> Arrays:
    """Fit a plain model to OPT, and return its settings and weights."""
    made = layer_normed(plain, model, tokens, EPSILON)
    tensors = {
        "model.decoder.embed_tokens.weight": made.words,
        "model.decoder.embed_positions.weight": np.pad(made.positions, ((EMPTY, 0), (0, 0))),
        "lm_head.weight": made.logits,
    }
    norms = ["final_layer_norm"]
    for number, layer in enumerate(made.layers):
        prefix = f"layers.{number}."
        norms += [f"{prefix}self_attn_layer_norm", f"{prefix}final_layer_norm"]
        for letter, name in SUBLAYERS.items():
            tensors[f"model.decoder.{prefix}{name}.weight"] = layer[f"W_{letter}"]
            tensors[f"model.decoder.{prefix}{name}.bias"] = layer[f"b_{letter}"]
    tensors |= {
        f"model.decoder.{norm}.{name}": each for norm in norms for name, each in made.norm.items()
    }
    config = {
        "model_type": "opt",
        "activation_function": ACTIVATIONS[plain.activation],
        "do_layer_norm_before": True,
        "ffn_dim": made.hidden,
        "hidden_size": made.width,
        "max_position_embeddings": len(made.positions),
        "num_attention_heads": made.heads,
        "num_hidden_layers": len(made.layers),
        "vocab_size": len(tokens.texts),
        "word_embed_proj_dim": made.width,
        **dict.fromkeys(("attention_dropout", "dropout", "layerdrop"), 0.0),
    }
    return config, tensors


STOCK = decoder("opt", "OPTForCausalLM", mapping)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
