"""First pass, program to program: rewritings that leave only masks that a target has."""

from transformist.compiler.rewriting.passes import PASSES, rewritten

__all__ = ["PASSES", "rewritten"]
