"""The recipes, one module a chapter; `contents` names them all, chapter by chapter."""

from transformist.catalogue.contents import recipe, recipes

__all__ = ["recipe", "recipes"]
