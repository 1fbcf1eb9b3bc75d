"""Proofs, operation by operation, that a format decides as exact arithmetic does."""

from transformist.verify.proof.proving import Proof, prove
from transformist.verify.proof.slack import Margin, slack
from transformist.verify.proof.softmax_orders import EVALUATIONS

__all__ = ["EVALUATIONS", "Margin", "Proof", "prove", "slack"]
