"""Programs into weights: every tolerance and sharpness follows from what the values can be."""

from transformist.compiler.compile_options import HEADS, WEIGHTINGS, Options
from transformist.compiler.pipeline import compile, largest_length
from transformist.compiler.target import TARGETS

__all__ = ["HEADS", "TARGETS", "WEIGHTINGS", "Options", "compile", "largest_length"]
