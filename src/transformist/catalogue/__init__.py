"""The recipes, one module a chapter; `contents` names them all in the paper's order."""

from transformist.catalogue.contents import recipe, recipes

__all__ = ["recipe", "recipes"]
