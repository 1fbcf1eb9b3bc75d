"""The claim of a recipe, of whatever kind, tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from transformist.catalogue import recipe as find_recipe
from transformist.claims import FunctionClaim, PositionClaim, Recipe, SequenceClaim, StringClaim
from transformist.programs import PROGRAMS
from transformist.verify.functions import check_function
from transformist.verify.programs import check_program
from transformist.verify.sequences import check_positions, check_sequences
from transformist.verify.strings import check_strings
from transformist.verify.verdict import Verdict
from transformist.verify.workers import spread

CHECKS: Mapping[type, Callable[[Recipe[Any], int | None], Verdict]] = {
    FunctionClaim: check_function,
    SequenceClaim: check_sequences,
    PositionClaim: check_positions,
    StringClaim: check_strings,
}
"""How each kind of claim is tested."""


def check_recipe(recipe: Recipe[Any], max_length: int | None = None) -> Verdict:
    """Test the claim of a recipe: on its whole domain where that is small, else on many cases.

    Args:
        recipe: what to check.
        max_length: for strings, the length to which every one is tried; for lists of vectors, the
            longest. Chosen by the number of inputs when left out.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible, or with a claim on vectors.

    Example:
        >>> import transformist as tf
        >>> check_recipe(tf.recipe("max")).held
        True

    """
    return CHECKS[type(recipe.claim)](recipe, max_length)


def check_recipes(
    names: Sequence[str], max_length: int | None = None, processes: int | None = None
) -> Iterator[Verdict]:
    """The verdicts of several recipes, in order, as they come.

    Args:
        names: of the recipes.
        max_length: as for `check_recipe`.
        processes: how many work at a time; as many as there are processors, when left out.

    """
    yield from spread(partial(_check_named, max_length=max_length), names, processes)


def check_programs(
    max_length: int | None = None, processes: int | None = None
) -> Iterator[Verdict]:
    """The verdicts of the packaged programs, in order, as they come.

    Args:
        max_length: as for `check_program`.
        processes: how many work at a time; as many as there are processors, when left out.

    """
    yield from spread(partial(_check_packaged, max_length=max_length), list(PROGRAMS), processes)


def _check_packaged(name: str, max_length: int | None) -> Verdict:
    return check_program(f"programs/{name}", PROGRAMS[name], max_length)


def _check_named(name: str, max_length: int | None) -> Verdict:
    return check_recipe(find_recipe(name), max_length)
