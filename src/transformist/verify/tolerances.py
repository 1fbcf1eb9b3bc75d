"""The least error that a number format reaches where a tolerance may be chosen freely: a search.

A finer tolerance means a larger or smaller scale of the hidden numbers, and with it more rounding.
So the total error falls until rounding outweighs the approximation, and rises from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import Arithmetic
from transformist.claims import FunctionClaim, Recipe, Settings, ask
from transformist.domains import Case
from transformist.errors import InvalidValue, NotFinite
from transformist.model import FeedForward
from transformist.verify.breakdowns import float_format
from transformist.verify.function_claims import CASES

PATIENCE = 12
"""The search ends after this many scales in a row that are no better than the best.

More than one, as rounding makes the error uneven from one scale to the next.
"""

COARSEST = Fraction(1, 16)
"""A recipe may refuse tolerances above this one."""


@dataclass(frozen=True, kw_only=True)
class LeastError:
    """The least total error that a search over tolerances 2⁻ᵏ found.

    Attributes:
        recipe: its name.
        arithmetic: the float format.
        settings: those that were given.
        error: the largest distance from the reference, rounding included, on the inputs tried.
        tolerance: 2⁻ᵏ, the first with which it is reached.
        scale: the factor of the inputs in these weights, the largest entry of W₁.
        input: where the error is that large.
        tried: the finest tolerance tried.
        cases: number of inputs tried.

    """

    recipe: str
    arithmetic: str
    settings: Settings
    error: float
    tolerance: Fraction
    scale: Fraction
    input: Case
    tried: Fraction
    cases: int


def has_tolerance(recipe: Recipe[Any]) -> bool:
    """True for a function whose error depends on a tolerance."""
    return isinstance(recipe.claim, FunctionClaim) and "tolerance" in recipe.parameters


def least_error(
    recipe: Recipe[FunctionClaim], arithmetic: Arithmetic | str, **given: Any
) -> LeastError:
    """Search for the tolerance 2⁻ᵏ with the least total error in a format.

    Tolerances are halved from 1 on, those that give the same weights passed over, until `PATIENCE`
    scales were no better, or the format does not hold the weights. Each is tried on the cases of
    the domain that `check` tries; the error elsewhere may be larger.

    Raises:
        InvalidValue: for a recipe without a tolerance, an arithmetic in which nothing rounds, a
            tolerance among the settings.
        NotFinite: where the format does not hold the weights of any.
        UnknownName, InvalidValue: as `recipe.settings`.

    Example:
        >>> import transformist as tf
        >>> found = least_error(tf.recipe("multiply-by-gelu"), "float32")
        >>> found.scale, f"{found.error:.1e}"
        (Fraction(1, 256), '3.1e-05')

    """
    system = float_format(arithmetic)
    _require(recipe, given)
    settings = recipe.settings(given)
    cases = ask(recipe.claim.domain, **settings).cases(system, CASES, seed=0)
    expected = [ask(recipe.claim.reference, *case, **settings) for case in cases]
    best: tuple[float, Fraction, Fraction, Case] | None = None
    worse, tolerance = 0, Fraction(1)
    for tolerance, scale, model in _scales(recipe, settings):
        try:
            error, case = _worst(model, system, cases, expected)
        except NotFinite:
            if best is None:
                raise
            break  # a finer tolerance has larger weights, which the format holds no more than these
        worse = 0 if best is None or error < best[0] else worse + 1
        if worse == 0:
            best = (error, tolerance, scale, case)
        if worse == PATIENCE:
            break
    assert best is not None
    return LeastError(
        recipe=recipe.name,
        arithmetic=system.name,
        settings={name: settings[name] for name in given},
        error=best[0],
        tolerance=best[1],
        scale=best[2],
        input=best[3],
        tried=tolerance,
        cases=len(cases),
    )


def _require(recipe: Recipe[Any], given: Settings) -> None:
    if not has_tolerance(recipe):
        raise InvalidValue(
            "the recipe must be one of the functions with a tolerance",
            received=repr(recipe.name),
            where="precision",
            remedy=f"transformist show {recipe.name} tells its rounding error",
        )
    if "tolerance" in given:
        raise InvalidValue(
            "the tolerance must be left out: the search varies it",
            received=f"tolerance = {given['tolerance']}",
            where="precision",
            remedy="leave it out",
        )


def _scales(
    recipe: Recipe[FunctionClaim], settings: Settings
) -> Iterator[tuple[Fraction, Fraction, FeedForward]]:
    """Tolerances 2⁻ᵏ, k = 0, 1, …, that the recipe admits, each with its scale and weights.

    Equal scales come only once.
    """
    last, tolerance = None, Fraction(1)
    while True:
        try:
            model: FeedForward = recipe.construct(**{**settings, "tolerance": tolerance})
        except InvalidValue:
            if tolerance < COARSEST:
                raise
            tolerance /= 2  # a step needs a tolerance below 1
            continue
        # A recipe may round its scale, so that several tolerances give the same weights: these
        # would each count as a scale that is no better.
        # The largest factor of an input.
        scale = max(abs(Fraction(entry)) for entry in model.W_1.ravel().tolist())
        if scale != last:
            yield tolerance, scale, model
        last, tolerance = scale, tolerance / 2


def _worst(
    model: FeedForward, system: Arithmetic, cases: list[Case], expected: list[list[Any]]
) -> tuple[float, Case]:
    """The largest error over the cases, infinite where a result is not finite, and its case."""
    got = system.numbers(model(system.array(np.array(cases, dtype=object)), system)).tolist()
    errors = [
        max(
            float(abs(Fraction(value) - want)) if math.isfinite(value) else math.inf
            for value, want in zip(row, wanted, strict=True)
        )
        for row, wanted in zip(got, expected, strict=True)
    ]
    worst = max(range(len(cases)), key=errors.__getitem__)
    return errors[worst], cases[worst]
