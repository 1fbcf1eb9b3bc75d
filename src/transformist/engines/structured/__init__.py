"""Engine for long inputs: each head by the method that its weights, and the keys met, allow."""

from transformist.engines.structured.decoding import Decoder, decoder
from transformist.engines.structured.evaluation import Chosen, EvaluatedInput, answers, evaluate
from transformist.engines.structured.plans import Plan, plan

__all__ = ["Chosen", "Decoder", "EvaluatedInput", "Plan", "answers", "decoder", "evaluate", "plan"]
