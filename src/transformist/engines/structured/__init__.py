"""Long inputs: each head is evaluated by what its weights, and the keys that are met, allow."""

from transformist.engines.structured.evaluation import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
