"""The catalogue: every recipe, chapter by chapter."""

from __future__ import annotations

from typing import Any

from transformist.catalogue import (
    attention,
    composition,
    examples,
    feed_forward,
    finite,
    lookup,
    normalization,
    original,
    other_activations,
    positions,
    representations,
    rounding,
    weighting,
)
from transformist.claims import Recipe
from transformist.errors import UnknownName, is_name

_RECIPES: tuple[Recipe[Any], ...] = (
    *positions.RECIPES,
    *representations.RECIPES,
    *feed_forward.RECIPES,
    *other_activations.RECIPES,
    *attention.RECIPES,
    *lookup.RECIPES,
    *weighting.RECIPES,
    *normalization.RECIPES,
    *rounding.RECIPES,
    *composition.RECIPES,
    *finite.RECIPES,
    *examples.RECIPES,
    *original.RECIPES,
)


def recipes() -> tuple[Recipe[Any], ...]:
    """Return every recipe, chapter by chapter.

    Example:
        >>> recipes()[0].name
        'position-reciprocal'

    """
    return _RECIPES


def recipe(name: str) -> Recipe[Any]:
    """Return the recipe of this name.

    Raises:
        UnknownName: when there is none, with the nearest names.

    Example:
        >>> recipe("min").build()([3, 2])
        array([2.])

    """
    for each in _RECIPES:
        if is_name(name, (each.name,)):
            return each
    raise UnknownName.among("recipe", name, [each.name for each in _RECIPES])
