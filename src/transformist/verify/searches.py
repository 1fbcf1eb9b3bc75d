"""The search that tells where a format breaks a recipe, by the kind of its claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from transformist.arithmetic import SYSTEMS, Floating
from transformist.catalogue import recipe as find_recipe
from transformist.catalogue import recipes
from transformist.claims import Recipe, Settings
from transformist.errors import InvalidValue
from transformist.verify.precision import ATTEMPTS, LONGEST, WORK, Breakdown, first_failure
from transformist.verify.tolerances import LeastError, has_tolerance, least_error
from transformist.verify.workers import spread

Found: TypeAlias = "Breakdown | LeastError"


def searched(recipe: Recipe[Any]) -> bool:
    """Whether there is something to search for: a length, or a tolerance.

    Recipes on strings, lists and positions have lengths; of the functions on vectors, those have a
    tolerance that approximate.
    """
    return type(recipe.claim) in ATTEMPTS or has_tolerance(recipe)


def formats(recipe: Recipe[Any]) -> list[str]:
    """The float formats that the claim names, in the order of `SYSTEMS`."""
    named = recipe.claim.arithmetics(recipe.settings({}))
    return [name for name in named if isinstance(SYSTEMS.get(name), Floating)]


def search(
    recipe: Recipe[Any], arithmetic: str, settings: Settings, longest: int | None, work: int = WORK
) -> Found:
    """The first failing length of a recipe in a format, or the least error that it reaches.

    Args:
        recipe: what is tried.
        arithmetic: a float format.
        settings: of the recipe.
        longest: no longer inputs are tried; for recipes that have lengths.
        work: as for `first_failure`.

    Raises:
        InvalidValue: for a recipe that has neither, a longest length for one that has none, and as
            `first_failure` and `least_error`.

    Example:
        >>> search(find_recipe("quadratic-lookup"), "bfloat16", {}, longest=30).length
        17

    """
    if not has_tolerance(recipe):
        return first_failure(recipe, arithmetic, longest or LONGEST, work, **settings)
    if longest is not None:
        raise InvalidValue(
            "a longest length must come with a recipe on strings, lists or positions",
            received=f"max_length = {longest} for {recipe.name}",
            where="precision",
            remedy="leave it out",
        )
    return least_error(recipe, arithmetic, **settings)


def search_all(
    longest: int | None, work: int, arithmetics: Sequence[str] = (), processes: int | None = None
) -> Iterator[tuple[Recipe[Any], list[Found]]]:
    """Every recipe that has a length, with what is found in each format."""
    names = [each.name for each in recipes() if type(each.claim) in ATTEMPTS]
    search_one = partial(_search_named, longest=longest, work=work, arithmetics=arithmetics)
    for name, found in zip(names, spread(search_one, names, processes), strict=True):
        yield find_recipe(name), found


def _search_named(
    name: str, longest: int | None, work: int, arithmetics: Sequence[str]
) -> list[Found]:
    recipe = find_recipe(name)
    chosen = [each for each in formats(recipe) if not arithmetics or each in arithmetics]
    return [search(recipe, each, {}, longest, work) for each in chosen]
