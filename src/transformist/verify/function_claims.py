"""Claims on vectors: their check, the error bound of one output, and the answer on an input.

A claim admits two errors: that of the construction (`approximation`), and that of rounding. In a
format without rounding the second is 0; on the inputs that the claim calls exact both are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import repeat
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic, Floating, exact_numbers, number_system
from transformist.claims import FunctionClaim, Recipe, Settings, ask
from transformist.domains import Case, Domain, NoCase
from transformist.errors import InvalidValue, NotFinite, NotRepresentable, UndefinedValue
from transformist.inputs import read_vector
from transformist.rounding import rounding_error
from transformist.verify.answer import AnswerInNumbers
from transformist.verify.verdict import (
    Coverage,
    Limit,
    Mismatch,
    Trial,
    Verdict,
    agrees,
    verdict_of,
)

CASES = 400
"""Number of inputs tried for each setting and arithmetic."""

Limits: TypeAlias = list[Limit]
"""The error that a claim admits for each output."""


def check_function(recipe: Recipe[FunctionClaim], max_length: int | None = None) -> Verdict:
    """Check cases of the domain in every arithmetic that holds the weights, under every variant."""
    if max_length is not None:
        raise InvalidValue(
            "a longest length must come with a recipe on strings or on lists of vectors",
            received=f"max_length = {max_length} for {recipe.name}",
            where="check",
            remedy="leave it out",
        )
    covered = recipe.claim.inputs(recipe.settings({}))
    return verdict_of(recipe.name, _trials(recipe), covered)


def _trials(recipe: Recipe[FunctionClaim]) -> Iterator[Trial]:
    claim = recipe.claim
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        model = recipe.construct(**settings)
        for system in map(number_system, claim.arithmetics(settings)):
            if not _holds_weights(model, system):
                continue
            for domain, limits_of in _claimed_on(claim, settings, model, system):
                cases = domain.cases(system, CASES, seed=0)
                limits = limits_of(cases) if cases else []
                # No finite limit, no claim; a norm may refuse to evaluate such a case.
                claimed = [
                    pair for pair in zip(cases, limits, strict=True) if min(pair[1]) < math.inf
                ]
                wrong = _first_mismatch(claim, settings, model, system, claimed)
                covered = Coverage(
                    arithmetic=system.name, cases=len(claimed), inputs=str(domain), settings=given
                )
                yield Trial(covered, wrong)


def _claimed_on(
    claim: FunctionClaim, settings: Settings, model: Any, system: Arithmetic
) -> Iterator[tuple[Domain, Callable[[list[Case]], list[Limits]]]]:
    """The domains on which a claim speaks in an arithmetic, each with its limits for cases."""

    def admitted(cases: list[Case]) -> list[Limits]:
        rounding = _rounding(claim, settings, model, system, cases)
        if claim.approximation is None:
            return rounding
        away = [ask(claim.approximation, *case, **settings) for case in cases]
        return [[error + by for error in row] for row, by in zip(rounding, away, strict=True)]

    def none(cases: list[Case]) -> list[Limits]:
        return [[Fraction(0)] * model.width_out for _ in cases]

    # On the inputs that the claim calls exact a float format must agree bit for bit. They are named
    # by the precision p, which an arithmetic that does not round has not.
    domain = ask(claim.domain, **settings)
    yield domain, admitted
    if claim.exact_on is not None and isinstance(system, Floating):
        for part in ask(claim.exact_on, p=system.precision, domain=domain, **settings):
            yield part, none


def _rounding(
    claim: FunctionClaim, settings: Settings, model: Any, system: Arithmetic, cases: list[Case]
) -> list[Limits]:
    """Bounds of the rounding error: by the claim's own formula where it has one."""
    bounds = rounding_error(model, cases, system).tolist()
    if claim.rounding is None or not isinstance(system, Floating):
        return [[Fraction(b) if math.isfinite(b) else math.inf for b in row] for row in bounds]
    u, w = system.unit_roundoff, system.accumulator_roundoff
    formats = {"u": u, "w": w if w < u else Fraction(0)}
    # A formula in u counts relative errors. A result that is stored below the normal numbers is
    # off by as much as half the smallest number, however small it is. The networks that have a
    # formula store at most four results after one another or in one sum (two hidden units that are
    # not 0 and an output, or one unit and an output twice): 4 · smallest/2.
    underflow = 2 * Fraction(system.smallest)
    return [
        # Where a result may overflow, or saturate, the formula says nothing.
        [math.inf]
        if math.inf in row
        else [ask(claim.rounding, *case, **settings, **formats) + underflow]
        for case, row in zip(cases, bounds, strict=True)
    ]


def _first_mismatch(
    claim: FunctionClaim,
    settings: Settings,
    model: Any,
    system: Arithmetic,
    claimed: list[tuple[Case, Limits]],
) -> Mismatch | None:
    if not claimed:
        return None
    y = model(system.array([case for case, _ in claimed]), system)
    computed = system.numbers(y).tolist(), system.radius(y).tolist()
    for (case, limits), got, radii in zip(claimed, *computed, strict=True):
        expected = _outputs(ask(claim.reference, *case, **settings))
        if len(got) != len(expected) or not all(map(agrees, got, radii, expected, limits)):
            return Mismatch(list(case), expected, got)
    return None


def _outputs(values: Any) -> list[Fraction]:
    if not isinstance(values, list):
        raise InvalidValue(
            "the reference of a claim must return the list of outputs",
            received=f"{type(values).__name__} {values}",
            where="reference",
            remedy="return a list, of one number for one output",
        )
    return [Fraction(value) for value in values]


def worst_rounding(recipe: Recipe[FunctionClaim], settings: Settings) -> dict[str, float]:
    """For each float format, the largest rounding error that the claim admits on the cases tried.

    Infinite where an intermediate result may overflow, a norm may divide by 0, or the format does
    not hold the weights, or no input of the domain.
    """
    claim, chosen = recipe.claim, recipe.settings(settings)
    model, domain = recipe.construct(**chosen), ask(claim.domain, **chosen)
    worst: dict[str, float] = {}
    for system in map(number_system, claim.arithmetics(chosen)):
        if isinstance(system, Floating):
            worst[system.name] = math.inf
            if _holds_weights(model, system):
                with suppress(NoCase):
                    cases = domain.cases(system, CASES, seed=0)
                    limits = _rounding(claim, chosen, model, system, cases)
                    worst[system.name] = float(max(max(row) for row in limits))
    return worst


def _holds_weights(model: Any, system: Arithmetic) -> bool:
    """True if every weight is finite in the format."""
    # A definition refuses weights that are not finite in the format, whatever the input is.
    try:
        model(system.array([list(range(model.width))]), system)
    except NotFinite:
        return False
    except (UndefinedValue, NotRepresentable):
        return True  # of this input, not of the weights
    return True


def answer_on_vector(
    recipe: Recipe[FunctionClaim], settings: Settings, text: str, system: Arithmetic
) -> AnswerInNumbers:
    """Answer on a vector in JSON."""
    model = recipe.construct(**settings)
    vector = read_vector(text, model.width, recipe.name, tuple(recipe.parameters))
    exact = tuple(map(Fraction, exact_numbers(vector)))
    bound = _error_bound(recipe.claim, settings, model, exact, system)
    return AnswerInNumbers(
        length=len(vector),
        shown=system.shown(model(vector, system)),
        covered=bound is not None,
        bound=bound,
        stored=_is_stored(exact, system),
    )


def _error_bound(
    claim: FunctionClaim, settings: Settings, model: Any, case: Case, system: Arithmetic
) -> tuple[float, ...] | None:
    """For each output, an upper bound of its distance from the reference on the stored vector.

    `None` where the claim does not speak of the vector or of the arithmetic.
    """
    if system.name not in claim.arithmetics(settings):
        return None
    if case not in ask(claim.domain, **settings):
        return None
    # The claim speaks of the numbers that the weights see: the input as the arithmetic stores it.
    # Of several domains that hold it, each limit is true, so the least is.
    stored = tuple(Fraction(value) for value in system.numbers(system.array([case]))[0])
    limits = [
        limits_of([stored])[0]
        for domain, limits_of in _claimed_on(claim, settings, model, system)
        if stored in domain
    ]
    return tuple(_as_float(min(each)) for each in zip(*limits, strict=True)) if limits else None


def _as_float(limit: Limit) -> float:
    """The limit rounded up; infinite beyond float64."""
    # `float` rounds a fraction to the nearest: the next float above is no less than the fraction.
    try:
        return math.nextafter(float(limit), math.inf) if limit else 0.0
    except OverflowError:
        return math.inf


def _is_stored(given: Sequence[Fraction], system: Arithmetic) -> bool:
    """True if the arithmetic holds these numbers without rounding, or in balls."""
    if not given:
        return True
    stored = system.array(list(given))
    return all(map(agrees, system.numbers(stored), system.radius(stored), given, repeat(0)))
