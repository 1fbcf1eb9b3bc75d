"""The files of a checkpoint of a dense network, which `hosts/` did not write."""

from __future__ import annotations

import json

import safetensors.numpy

from transformist.conformance.family import DenseModel
from transformist.hosts.plain_model import as_tensor
from transformist.hosts.vocabulary import Vocabulary, as_json


def labels_of(config: bytes) -> tuple[str, ...] | None:
    """The labels of an encoder in the order of their numbers; None for a decoder."""
    labels: dict[str, str] | None = json.loads(config).get("id2label")
    return tuple(labels[str(k)] for k in range(len(labels))) if labels else None


def files_of(network: DenseModel, tokens: Vocabulary, length: int) -> dict[str, bytes]:
    """Return the bytes of each file of a checkpoint by its name.

    Args:
        network: the network, with word vectors and head for all tokens.
        tokens: the tokens.
        length: the longest input, in tokens.

    """
    arrays = {each: as_tensor(each, weights) for each, weights in network.tensors.items()}
    ids = {"pad_token_id": tokens.pad, "bos_token_id": tokens.bos, "eos_token_id": tokens.eos}
    common = {"dtype": "float32", "tie_word_embeddings": False, "vocab_size": len(tokens.texts)}
    settings = {**common, **ids, **network.config}
    further = {}
    if network.family.generates:
        generation = {**ids, "do_sample": False, "max_new_tokens": 1}
        further["generation_config.json"] = as_json(generation)
    else:
        # An encoder has a label for each token of the vocabulary, with the same text and number.
        settings["id2label"] = {str(k): text for k, text in enumerate(tokens.texts)}
        settings["label2id"] = {text: k for k, text in enumerate(tokens.texts)}
    return {
        "config.json": as_json(settings),
        **further,
        "model.safetensors": safetensors.numpy.save(arrays, {"format": "pt"}),
        "tokenizer.json": tokens.tokenizer(),
        "tokenizer_config.json": tokens.settings(
            length, "left" if network.family.generates else "right"
        ),
    }
