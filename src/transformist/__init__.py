"""Algorithms as the weights of a transformer, and exactly what those weights can be trusted to do.

>>> import transformist as tf
>>> model = tf.recipe("dyck-1").build(max_length=1000)
>>> model("(()())"), model(")(")
(True, False)
"""

from transformist.catalogue import recipe, recipes
from transformist.errors import TransformistError
from transformist.model import (
    Attention,
    Binary,
    Embedding,
    FeedForward,
    FeedForwardStack,
    Heads,
    LanguageModel,
    Layer,
    LayerNorm,
    MultiClass,
    NearZero,
    Stream,
    Sublayer,
    Trace,
    Transformer,
)
from transformist.verify import Verdict, check

__all__ = [
    "Attention",
    "Binary",
    "Embedding",
    "FeedForward",
    "FeedForwardStack",
    "Heads",
    "LanguageModel",
    "Layer",
    "LayerNorm",
    "MultiClass",
    "NearZero",
    "Stream",
    "Sublayer",
    "Trace",
    "Transformer",
    "TransformistError",
    "Verdict",
    "check",
    "recipe",
    "recipes",
]

__version__ = "0.1.0"
