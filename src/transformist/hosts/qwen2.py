"""A transformer as a checkpoint of Qwen2 (Qwen2ForCausalLM): Llama with biases of Q, K and V."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from transformist.hosts import checkpoint, llama
from transformist.hosts.plain_model import PlainModel
from transformist.hosts.stock import Arrays, decoder
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Transformer


def mapping(plain: PlainModel, model: Transformer, tokens: Vocabulary) -> Arrays:
    """Fit a plain model to Qwen2, and return its settings and weights."""
    config, tensors = llama.mapping(plain, model, tokens)
    # The slot that holds 1 has the biases, as in Llama.
    biases = {
        f"{name.removesuffix('weight')}bias": np.zeros(len(weights))
        for name, weights in tensors.items()
        if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight"))
    }
    # A window would hide the first tokens of a long input.
    config |= {"model_type": "qwen2", "use_sliding_window": False}
    return config, tensors | biases


CAUTION = (
    "`AutoTokenizer` of transformers 5.23 builds its own class from the vocabulary of a Qwen2 "
    "checkpoint, which leaves other symbols out without an error and decodes without spaces. "
    "`PreTrainedTokenizerFast.from_pretrained` reads the tokenizer of this checkpoint."
)
"""The sentence for the card on the tokenizer."""

STOCK = replace(decoder("qwen2", "Qwen2ForCausalLM", mapping, llama.require), caution=CAUTION)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
