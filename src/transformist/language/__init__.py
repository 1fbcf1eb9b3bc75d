"""The program language: what a program is, how it is traced, and what it means."""

from transformist.language.booleans import Booleans
from transformist.language.categories import Categories
from transformist.language.decorator import program
from transformist.language.definition import Program
from transformist.language.outputs import Accept, NextToken, Tag
from transformist.language.quantities import Numbers

__all__ = ["Accept", "Booleans", "Categories", "NextToken", "Numbers", "Program", "Tag", "program"]
