"""Programs into weights: every tolerance and temperature follows from what the values can be."""

from transformist.compiler.options import Options
from transformist.compiler.pipeline import compile, largest_length

__all__ = ["Options", "compile", "largest_length"]
