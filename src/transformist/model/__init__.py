"""Definitions of a transformer, one a file, in the order of the Cookbook."""

from transformist.model.attention import Attention
from transformist.model.coded import Coded
from transformist.model.embedding import BOS, CLS, EOS, Embedding, Symbol
from transformist.model.feed_forward import (
    ACTIVATIONS,
    GATES,
    PLAIN_ACTIVATIONS,
    FeedForward,
    FeedForwardStack,
    halves,
)
from transformist.model.intervention import ablate, patch
from transformist.model.layer import Heads, Layer, LayerStack, Sublayer
from transformist.model.mask import Mask
from transformist.model.normalization import LayerNorm
from transformist.model.parameter import Parameter, exact_product, parameter, rationals
from transformist.model.position_encoding import (
    PositionEncoding,
    PositionFlags,
    PositionFunctions,
    PositionsSideBySide,
    PositionTable,
    Sinusoids,
)
from transformist.model.read_out import (
    Binary,
    LanguageModel,
    MultiClass,
    NearestFraction,
    NearZero,
    Outputs,
    ReadOut,
    RealVector,
)
from transformist.model.stream import NOTHING, LinearForm, Span, Stream
from transformist.model.trace import Difference, Trace
from transformist.model.transformer import Transformer, length_of, require_transformer
from transformist.model.weighting import Weighting

__all__ = [
    "ACTIVATIONS",
    "BOS",
    "CLS",
    "EOS",
    "GATES",
    "NOTHING",
    "PLAIN_ACTIVATIONS",
    "Attention",
    "Binary",
    "Coded",
    "Difference",
    "Embedding",
    "FeedForward",
    "FeedForwardStack",
    "Heads",
    "LanguageModel",
    "Layer",
    "LayerNorm",
    "LayerStack",
    "LinearForm",
    "Mask",
    "MultiClass",
    "NearZero",
    "NearestFraction",
    "Outputs",
    "Parameter",
    "PositionEncoding",
    "PositionFlags",
    "PositionFunctions",
    "PositionTable",
    "PositionsSideBySide",
    "ReadOut",
    "RealVector",
    "Sinusoids",
    "Span",
    "Stream",
    "Sublayer",
    "Symbol",
    "Trace",
    "Transformer",
    "Weighting",
    "ablate",
    "exact_product",
    "halves",
    "length_of",
    "parameter",
    "patch",
    "rationals",
    "require_transformer",
]
