"""The program language: programs, their tracing, and their interpreter."""

from transformist.language.decorator import program
from transformist.language.interpreter import Program
from transformist.language.output_kinds import Accept, NamedOutputs, NextToken, Tag, outputs
from transformist.language.per_position import Booleans, Categories, Numbers

__all__ = [
    "Accept",
    "Booleans",
    "Categories",
    "NamedOutputs",
    "NextToken",
    "Numbers",
    "Program",
    "Tag",
    "outputs",
    "program",
]
