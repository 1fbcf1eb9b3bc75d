"""The program language: programs, their tracing, and their interpreter."""

from transformist.language.decorator import program
from transformist.language.interpreter import Program
from transformist.language.outputs import Accept, NextToken, Tag
from transformist.language.per_position import Booleans, Categories, Numbers

__all__ = ["Accept", "Booleans", "Categories", "NextToken", "Numbers", "Program", "Tag", "program"]
