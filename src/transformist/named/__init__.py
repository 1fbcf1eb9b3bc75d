"""Models under the names that the command line gives them, a file for each kind of model."""

from transformist.named.named_model import BuiltModel, NamedModel
from transformist.named.naming import find_model, find_program

__all__ = ["BuiltModel", "NamedModel", "find_model", "find_program"]
