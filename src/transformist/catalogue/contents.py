"""The catalogue: every recipe, in the paper's order."""

from __future__ import annotations

from transformist.catalogue import examples, feed_forward
from transformist.claims import Recipe
from transformist.errors import UnknownName

_RECIPES: tuple[Recipe, ...] = (*feed_forward.RECIPES, *examples.RECIPES)


def recipes() -> tuple[Recipe, ...]:
    """Every recipe, in the paper's order.

    Example:
        >>> recipes()[0].name
        'cpwl'

    """
    return _RECIPES


def recipe(name: str) -> Recipe:
    """The recipe of this name.

    Raises:
        UnknownName: when there is none, with the nearest names.

    Example:
        >>> recipe("min").build()([3, 2])
        array([2.])

    """
    for each in _RECIPES:
        if each.name == name:
            return each
    raise UnknownName.among("recipe", name, [each.name for each in _RECIPES])
