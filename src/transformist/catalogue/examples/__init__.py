"""Worked examples: chapter 9 of the Cookbook, and PARITY (3.5.2)."""

from transformist.catalogue.examples import dyck, induction, parity

RECIPES = (*parity.RECIPES, *induction.RECIPES, *dyck.RECIPES)
"""Recipes of the chapter, in the order in which they are listed."""

__all__ = ["RECIPES"]
