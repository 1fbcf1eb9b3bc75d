"""A transformer as a checkpoint of BERT (BertForTokenClassification), an encoder without masks.

BERT normalizes after each sublayer, and the stream goes on from the norm. A norm is the identity up
to rounding: the stream has the factor s (`SHRINK`), its sum is 0, and the gain is √eps. What reads
the stream divides by s.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from transformist.host_evaluation import SHRINK
from transformist.hosts import checkpoint
from transformist.hosts.neutral_norms import LAYER_PINS, PINNED, neutral_norm
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
    plain = rescaled(plain, model)
    neutral = neutral_norm(plain, SHRINK, LAYER_PINS)
    plain, count = in_heads(with_zero_sum(neutral.pinned(plain)))
    factor, is_pinned = neutral.factor, plain.arithmetic == PINNED
    size, width = plain.head_size, plain.width
    hidden = multiple_of_8(plain.most_hidden)
    labels = label_texts(plain.answers)
    norm = {
        # `gain` takes the factor out of the stream; here it stays in, as the stream goes on from
        # the norm.
        "weight": np.full(width, neutral.gain(EPSILON, width) * factor),
        "bias": np.zeros(width),
    }
    embeddings = {
        "word_embeddings.weight": factor * word_vectors(plain, tokens),
        "position_embeddings.weight": factor * plain.positions,
        "token_type_embeddings.weight": np.zeros((1, width)),
        **{f"LayerNorm.{name}": each for name, each in norm.items()},
    }
    tensors = {f"bert.embeddings.{name}": each for name, each in embeddings.items()}
    for number, layer in enumerate(plain.layers):
        arrays = _layer(layer, count, size, hidden, factor, is_pinned)
        for place in ("attention.output.LayerNorm", "output.LayerNorm"):
            arrays |= {f"{place}.{name}": each for name, each in norm.items()}
        tensors |= {f"bert.encoder.layer.{number}.{name}": each for name, each in arrays.items()}
    # The read-out and all that reads the stream divide by s: its norms give s z, and not z.
    tensors |= {"classifier.weight": plain.W_out / factor, "classifier.bias": plain.b_out}
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


def _layer(
    layer: PlainLayer, count: int, size: int, hidden: int, factor: float, are_balanced: bool
) -> dict[str, NDArray[np.float64]]:
    """The arrays of a layer."""
    heads = stacked(layer, count, np.arange(size), size, are_balanced=are_balanced)
    network = network_of(layer, hidden)
    arrays = {}
    for letter, name in {"Q": "query", "K": "key", "V": "value"}.items():
        arrays[f"attention.self.{name}.weight"] = heads[f"W_{letter}"] / factor
        arrays[f"attention.self.{name}.bias"] = heads[f"b_{letter}"]
    return arrays | {
        "attention.output.dense.weight": factor * heads["W_O"],
        "attention.output.dense.bias": factor * layer.b_O,
        "intermediate.dense.weight": network["W_1"] / factor,
        "intermediate.dense.bias": network["b_1"],
        "output.dense.weight": factor * network["W_2"],
        "output.dense.bias": factor * network["b_2"],
    }


STOCK = encoder("bert", "BertForTokenClassification", mapping)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
