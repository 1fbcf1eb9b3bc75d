"""A transformer as a checkpoint of GPT-2 (GPT2LMHeadModel), a decoder with a table of positions."""

from __future__ import annotations

from functools import partial

import numpy as np

from transformist.host_evaluation import HOST_CLASSES
from transformist.hosts import checkpoint
from transformist.hosts.layer_normed import layer_normed
from transformist.hosts.plain_model import ACTIVATIONS, Matrix, PlainModel
from transformist.hosts.stock import Arrays, decoder
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Transformer

EPSILON = HOST_CLASSES["gpt2"].epsilon
"""The usual eps of GPT-2, kept: some engines ignore the value in the file."""


def mapping(plain: PlainModel, model: Transformer, tokens: Vocabulary) -> Arrays:
    """Fit a plain model to GPT-2, and return its settings and weights."""
    made = layer_normed(plain, model, tokens, EPSILON)
    tensors = {
        "transformer.wte.weight": made.words,
        "transformer.wpe.weight": made.positions,
        "lm_head.weight": made.logits,
        **{f"transformer.ln_f.{name}": values for name, values in made.norm.items()},
    }
    for number, layer in enumerate(made.layers):
        arrays = _layer(layer)
        arrays |= {
            f"{ln}.{name}": each for ln in ("ln_1", "ln_2") for name, each in made.norm.items()
        }
        tensors |= {f"transformer.h.{number}.{name}": each for name, each in arrays.items()}
    config = {
        "model_type": "gpt2",
        "activation_function": ACTIVATIONS[plain.activation],
        "layer_norm_epsilon": EPSILON,
        "n_embd": made.width,
        "n_head": made.heads,
        "n_inner": made.hidden,
        "n_layer": len(made.layers),
        "n_positions": len(made.positions),
        "vocab_size": len(tokens.texts),
        **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0),
    }
    return config, tensors


def _layer(layer: dict[str, Matrix]) -> dict[str, Matrix]:
    """The arrays of a layer; GPT-2 has the transposed matrices."""
    return {
        "attn.c_attn.weight": np.concatenate([layer[f"W_{each}"] for each in "QKV"]).T,
        "attn.c_attn.bias": np.concatenate([layer[f"b_{each}"] for each in "QKV"]),
        "attn.c_proj.weight": layer["W_O"].T,
        "attn.c_proj.bias": layer["b_O"],
        "mlp.c_fc.weight": layer["W_1"].T,
        "mlp.c_fc.bias": layer["b_1"],
        "mlp.c_proj.weight": layer["W_2"].T,
        "mlp.c_proj.bias": layer["b_2"],
    }


STOCK = decoder("gpt2", "GPT2LMHeadModel", mapping)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
