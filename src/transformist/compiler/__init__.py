"""Programs into weights: every tolerance and sharpness follows from what the values can be."""

from transformist.compiler.compile_options import HEADS, POSITION_CODES, WEIGHTINGS, Options
from transformist.compiler.pipeline import compile, largest_length
from transformist.compiler.rewriting.after_the_input import answered_after
from transformist.compiler.target import TARGETS

__all__ = [
    "HEADS",
    "POSITION_CODES",
    "TARGETS",
    "WEIGHTINGS",
    "Options",
    "answered_after",
    "compile",
    "largest_length",
]
