"""A transformer as a checkpoint of Mistral (MistralForCausalLM): Llama, here with no window."""

from __future__ import annotations

from functools import partial

from transformist.hosts import checkpoint, llama
from transformist.hosts.plain_model import PlainModel
from transformist.hosts.stock import Arrays, decoder
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Transformer


def mapping(plain: PlainModel, model: Transformer, tokens: Vocabulary) -> Arrays:
    """Fit a plain model to Mistral, and return its settings and weights."""
    config, tensors = llama.mapping(plain, model, tokens)
    # The default is a window of 4096 tokens, beyond which a mean would miss the first ones.
    return config | {"model_type": "mistral", "sliding_window": None}, tensors


STOCK = decoder("mistral", "MistralForCausalLM", mapping, llama.require)
write = partial(checkpoint.write, STOCK)
run = partial(checkpoint.run, STOCK)
