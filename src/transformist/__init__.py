"""Algorithms as the weights of a transformer, and exactly what those weights can be trusted to do.

>>> import transformist as tf
>>> model = tf.recipe("dyck-1").build(max_length=1000)
>>> model("(()())"), model(")(")
(True, False)
"""

from transformist.deferred import handed_on

_ROOMS = {
    "Attention": "model",
    "Binary": "model",
    "Certificate": "verify",
    "Coverage": "verify",
    "Diagnosis": "verify",
    "Drawn": "verify",
    "Embedding": "model",
    "FeedForward": "model",
    "FeedForwardStack": "model",
    "Heads": "model",
    "LanguageModel": "model",
    "Layer": "model",
    "LayerNorm": "model",
    "LayerStack": "model",
    "MultiClass": "model",
    "NearZero": "model",
    "NearestFraction": "model",
    "Outputs": "model",
    "PositionFunctions": "model",
    "PositionTable": "model",
    "Program": "language",
    "RealVector": "model",
    "Sinusoids": "model",
    "Stream": "model",
    "Sublayer": "model",
    "Trace": "model",
    "Transformer": "model",
    "TransformistError": "errors",
    "Verdict": "verify",
    "ablate": "model",
    "activation_bounds": "bounds",
    "answered_after": "compiler",
    "boolean_representations": "domains",
    "certify": "hosts",
    "check": "verify",
    "check_certificate": "hosts",
    "compile": "compiler",
    "decoder": "running",
    "diagnose": "verify",
    "export": "hosts",
    "from_torch": "hosts",
    "grade_of": "verify",
    "lipschitz_constant": "bounds",
    "load": "hosts",
    "load_certificates": "hosts",
    "outputs": "language",
    "parallel": "assembly",
    "patch": "model",
    "perturbation_bounds": "bounds",
    "plan": "running",
    "program": "language",
    "read_encoder": "hosts",
    "recipe": "catalogue",
    "recipes": "catalogue",
    "route": "assembly",
    "run": "running",
    "save": "hosts",
    "search_host": "hosts",
    "sensitivity": "verify",
    "serial": "assembly",
    "soften": "assembly",
    "split_heads": "assembly",
    "tie_break": "assembly",
    "to_torch": "hosts",
    "to_transformer_lens": "hosts",
}
"""Module of each name, imported at the first use of the name. `__init__.pyi` has the types."""

__all__ = list(_ROOMS)

__getattr__, __dir__ = handed_on(__name__, _ROOMS)

__version__ = "0.1.0"
