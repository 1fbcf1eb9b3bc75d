"""The search that fits a recipe: for its first failing length, or for its least error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from transformist.arithmetic import SYSTEMS, Floating
from transformist.catalogue import recipe as find_recipe
from transformist.catalogue import recipes
from transformist.claims import LengthClaim, Recipe, Settings
from transformist.errors import InvalidValue
from transformist.verify.breakdowns import LONGEST, WORK, Breakdown, first_failure
from transformist.verify.runs.processes import Workers
from transformist.verify.tolerances import LeastError, has_tolerance, least_error
from transformist.verify.workers import EACH_PROCESSOR, spread

Found: TypeAlias = "Breakdown | LeastError"


def searched(recipe: Recipe[Any]) -> bool:
    """True if there is something to search for: a length, or a tolerance.

    Recipes on strings, lists and positions have lengths; functions on vectors that approximate
    have a tolerance.
    """
    return isinstance(recipe.claim, LengthClaim) or has_tolerance(recipe)


def formats(recipe: Recipe[Any]) -> list[str]:
    """The float formats that the claim names, in the order of `SYSTEMS`."""
    named = recipe.claim.arithmetics(recipe.settings({}))
    return [name for name in named if isinstance(SYSTEMS.get(name), Floating)]


def search(
    recipe: Recipe[Any], arithmetic: str, settings: Settings, longest: int | None, work: int = WORK
) -> Found:
    """The first failing length of a recipe in a format, or the least error that it reaches.

    Args:
        recipe: the recipe to try.
        arithmetic: a float format.
        settings: of the recipe.
        longest: length of the longest inputs, for recipes that have lengths.
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


def search_formats(
    recipe: Recipe[Any],
    arithmetics: Sequence[str],
    settings: Settings,
    longest: int | None,
    work: int = WORK,
    workers: Workers = EACH_PROCESSOR,
) -> Iterator[Found]:
    """Search in several float formats, and yield what is found in the order of the formats.

    Args:
        recipe: as for `search`.
        arithmetics: float formats.
        settings: as for `search`.
        longest: as for `search`.
        work: as for `search`, for each format.
        workers: the processes; as many as there are processors, when left out.

    Raises:
        InvalidValue: as `search`.

    """
    in_format = partial(_search_format, recipe, settings=settings, longest=longest, work=work)
    yield from spread(in_format, arithmetics, workers)


def _search_format(
    recipe: Recipe[Any], arithmetic: str, settings: Settings, longest: int | None, work: int
) -> Found:
    return search(recipe, arithmetic, settings, longest, work)


def search_all(
    longest: int | None,
    work: int,
    arithmetics: Sequence[str] = (),
    workers: Workers = EACH_PROCESSOR,
) -> Iterator[tuple[Recipe[Any], list[Found]]]:
    """Search for the first failing length of every recipe that has lengths, in each format."""
    names = [each.name for each in recipes() if isinstance(each.claim, LengthClaim)]
    search_one = partial(_search_named, longest=longest, work=work, arithmetics=arithmetics)
    for name, found in zip(names, spread(search_one, names, workers), strict=True):
        yield find_recipe(name), found


def _search_named(
    name: str, longest: int | None, work: int, arithmetics: Sequence[str]
) -> list[Found]:
    recipe = find_recipe(name)
    chosen = [each for each in formats(recipe) if not arithmetics or each in arithmetics]
    return [search(recipe, each, {}, longest, work) for each in chosen]
