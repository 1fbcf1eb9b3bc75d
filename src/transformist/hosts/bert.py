"""A transformer as a checkpoint of BERT (BertForTokenClassification), an encoder without masks.

BERT normalizes after each sublayer, and the stream goes on from the norm. A norm is the identity up
to rounding: the stream has the factor s (`SHRINK`), its sum is 0, and the gain is √eps. What reads
the stream divides by s.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from transformist.host_evaluation import SHRINK
from transformist.hosts import checkpoint
from transformist.hosts.next_token import word_vectors
from transformist.hosts.plain_model import (
    ACTIVATIONS,
    PlainLayer,
    PlainModel,
    in_heads,
    multiple_of_8,
    network_of,
    rescaled,
    stacked,
    with_zero_sum,
)
from transformist.hosts.stock import Arrays, encoder
from transformist.hosts.vocabulary import Vocabulary, label_texts
from transformist.model import Transformer

EPSILON = 1e-12
"""The usual eps of BERT, kept."""


def mapping(plain: PlainModel, model: Transformer, tokens: Vocabulary) -> Arrays:
    """Fit a plain model to BERT, and return its settings and weights."""
    plain, count = in_heads(with_zero_sum(rescaled(plain, model)))
    size, width = plain.head_size, plain.width
    hidden = multiple_of_8(plain.most_hidden)
    labels = label_texts(plain.answers)
    norm = {"weight": np.full(width, math.sqrt(EPSILON)), "bias": np.zeros(width)}
    embeddings = {
        "word_embeddings.weight": SHRINK * word_vectors(plain, tokens),
        "position_embeddings.weight": SHRINK * plain.positions,
        "token_type_embeddings.weight": np.zeros((1, width)),
        **{f"LayerNorm.{name}": each for name, each in norm.items()},
    }
    tensors = {f"bert.embeddings.{name}": each for name, each in embeddings.items()}
    for number, layer in enumerate(plain.layers):
        arrays = _layer(layer, count, size, hidden)
        for place in ("attention.output.LayerNorm", "output.LayerNorm"):
            arrays |= {f"{place}.{name}": each for name, each in norm.items()}
        tensors |= {f"bert.encoder.layer.{number}.{name}": each for name, each in arrays.items()}
    tensors |= {"classifier.weight": plain.W_out / SHRINK, "classifier.bias": plain.b_out}
    config = {
        "model_type": "bert",
        "hidden_act": ACTIVATIONS[plain.activation],
        "hidden_size": width,
        "intermediate_size": hidden,
        "layer_norm_eps": EPSILON,
        "max_position_embeddings": len(plain.positions),
        "num_attention_heads": count,
        "num_hidden_layers": len(plain.layers),
        "type_vocab_size": 1,
        "vocab_size": len(tokens.texts),
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
        **dict.fromkeys(("attention_probs_dropout_prob", "hidden_dropout_prob"), 0.0),
    }
    return config, tensors


def _layer(layer: PlainLayer, count: int, size: int, hidden: int) -> dict[str, NDArray[np.float64]]:
    """The arrays of a layer."""
    heads = stacked(layer, count, np.arange(size), size)
    network = network_of(layer, hidden)
    arrays = {}
    for letter, name in {"Q": "query", "K": "key", "V": "value"}.items():
        arrays[f"attention.self.{name}.weight"] = heads[f"W_{letter}"] / SHRINK
        arrays[f"attention.self.{name}.bias"] = heads[f"b_{letter}"]
    return arrays | {
        "attention.output.dense.weight": SHRINK * heads["W_O"],
        "attention.output.dense.bias": SHRINK * layer.b_O,
        "intermediate.dense.weight": network["W_1"] / SHRINK,
        "intermediate.dense.bias": network["b_1"],
        "output.dense.weight": SHRINK * network["W_2"],
        "output.dense.bias": SHRINK * network["b_2"],
    }


STOCK = encoder("bert", "BertForTokenClassification", mapping)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
