"""The names of `__init__.py` with their types: what it imports when they are first asked for."""

from transformist.assembly import parallel, route, serial, soften, split_heads, tie_break
from transformist.bounds import activation_bounds, lipschitz_constant, perturbation_bounds
from transformist.catalogue import recipe, recipes
from transformist.compiler import compile
from transformist.domains import boolean_representations
from transformist.errors import TransformistError
from transformist.hosts import export, load, load_certificates, read_encoder, save, to_torch
from transformist.language import Program, outputs, program
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
    LayerStack,
    MultiClass,
    NearestFraction,
    NearZero,
    Outputs,
    PositionFunctions,
    PositionTable,
    RealVector,
    Sinusoids,
    Stream,
    Sublayer,
    Trace,
    Transformer,
)
from transformist.running import decoder, plan, run
from transformist.verify import (
    Certificate,
    Verdict,
    certify,
    check,
    check_certificate,
    sensitivity,
)

__all__ = [
    "Attention",
    "Binary",
    "Certificate",
    "Embedding",
    "FeedForward",
    "FeedForwardStack",
    "Heads",
    "LanguageModel",
    "Layer",
    "LayerNorm",
    "LayerStack",
    "MultiClass",
    "NearZero",
    "NearestFraction",
    "Outputs",
    "PositionFunctions",
    "PositionTable",
    "Program",
    "RealVector",
    "Sinusoids",
    "Stream",
    "Sublayer",
    "Trace",
    "Transformer",
    "TransformistError",
    "Verdict",
    "activation_bounds",
    "boolean_representations",
    "certify",
    "check",
    "check_certificate",
    "compile",
    "decoder",
    "export",
    "lipschitz_constant",
    "load",
    "load_certificates",
    "outputs",
    "parallel",
    "perturbation_bounds",
    "plan",
    "program",
    "read_encoder",
    "recipe",
    "recipes",
    "route",
    "run",
    "save",
    "sensitivity",
    "serial",
    "soften",
    "split_heads",
    "tie_break",
    "to_torch",
]

__version__: str
