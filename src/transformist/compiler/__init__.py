"""Programs into weights: every tolerance and sharpness follows from what the values can be."""

from transformist.compiler.compile_options import HEADS, WEIGHTINGS, Options
from transformist.compiler.pipeline import compile, largest_length

__all__ = ["HEADS", "WEIGHTINGS", "Options", "compile", "largest_length"]
