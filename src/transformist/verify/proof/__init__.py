"""Proofs, operation by operation, that a format decides as the weights do exactly."""

from transformist.verify.proof.proving import EVALUATIONS, Proof, prove
from transformist.verify.proof.walking import Margin

__all__ = ["EVALUATIONS", "Margin", "Proof", "prove"]
