"""Programs into weights: every tolerance and temperature follows from what the values can be."""

from transformist.compiler.pipeline import compile

__all__ = ["compile"]
