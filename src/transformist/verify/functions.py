"""Claims on vectors against the weights said to meet them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic, Floating, number_system
from transformist.bounds import rounding_error
from transformist.claims import FunctionClaim, Recipe, Settings, ask
from transformist.domains import Case, Domain
from transformist.errors import InvalidValue, NotFinite, NotRepresentable, UndefinedValue
from transformist.verify.verdict import Counterexample, Verdict, agrees, described

CASES = 400
"""How many inputs of a function are tried for each setting and arithmetic."""


def check_function(recipe: Recipe[FunctionClaim], max_length: int | None = None) -> Verdict:
    """Cases of the domain in every arithmetic that holds the weights, under every variant."""
    if max_length is not None:
        raise InvalidValue(
            "a longest length must come with a recipe on strings or on lists of vectors",
            received=f"max_length = {max_length} for {recipe.name}",
            where="check",
            remedy="leave it out",
        )
    claim, total = recipe.claim, 0
    tried: dict[str, int] = {}
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        model = recipe.construct(**settings)
        for name in claim.arithmetics(settings):
            system = number_system(name)
            if not _holds_weights(model, system):
                continue
            for domain, error in _obligations(claim, settings, model, system):
                told = _told(domain.cases(system, CASES, seed=0), error)
                total += len(told)
                tried[name] = tried.get(name, 0) + len(told)
                found = _first_wrong(claim, settings, model, system, told)
                if found is not None:
                    return Verdict(
                        recipe.name,
                        total,
                        tuple(tried),
                        str(domain),
                        Counterexample(*found, name, described(given)),
                    )
    domain = ask(claim.domain, **recipe.settings({}))
    arithmetics = tuple(name for name, cases in tried.items() if cases)
    return Verdict(recipe.name, total, arithmetics, str(domain))


Limit: TypeAlias = "Fraction | float"
"""An admitted error; infinite where the claim says nothing, as when a result may overflow."""

_Error = Callable[[list[Case]], list[list[Limit]]]


def _obligations(
    claim: FunctionClaim, settings: dict[str, Any], model: Any, system: Arithmetic
) -> Iterator[tuple[Domain, _Error]]:
    """The domains on which a claim speaks in an arithmetic, each with the error it admits there."""

    def admitted(cases: list[Case]) -> list[list[Limit]]:
        rounding = _rounding(claim, settings, model, system, cases)
        if claim.approximation is None:
            return rounding
        away = [ask(claim.approximation, *case, **settings) for case in cases]
        return [[error + by for error in row] for row, by in zip(rounding, away, strict=True)]

    def none(cases: list[Case]) -> list[list[Limit]]:
        return [[Fraction(0)] * model.width_out for _ in cases]

    domain = ask(claim.domain, **settings)
    yield domain, admitted
    if claim.exact_on is not None and isinstance(system, Floating):
        for part in ask(claim.exact_on, p=system.precision, domain=domain, **settings):
            yield part, none


def _rounding(
    claim: FunctionClaim,
    settings: dict[str, Any],
    model: Any,
    system: Arithmetic,
    cases: list[Case],
) -> list[list[Limit]]:
    """What rounding may do: the claim's own formula, and underflow, where it has one."""
    bounds = rounding_error(model, cases, system).tolist()
    if claim.rounding is None or not isinstance(system, Floating):
        return [[_limit(bound) for bound in row] for row in bounds]
    u, w = system.unit_roundoff, system.accumulator_roundoff
    formats = {"u": u, "w": w if w < u else Fraction(0)}
    return [
        [math.inf]
        if math.inf in row  # where a result may overflow, or saturate, the formula says nothing
        else [ask(claim.rounding, *case, **settings, **formats) + 2 * Fraction(system.smallest)]
        for case, row in zip(cases, bounds, strict=True)
    ]


def _told(cases: list[Case], error: _Error) -> list[tuple[Case, list[Limit]]]:
    """The cases of which something is claimed, with what is admitted; a norm may refuse others."""
    limited = zip(cases, error(cases) if cases else [], strict=True)
    return [(case, limits) for case, limits in limited if min(limits) < math.inf]


def _first_wrong(
    claim: FunctionClaim,
    settings: dict[str, Any],
    model: Any,
    system: Arithmetic,
    told: list[tuple[Case, list[Limit]]],
) -> tuple[Any, Any, Any] | None:
    """The input, the expected and the actual value of the first case that is off."""
    if not told:
        return None
    y = model(system.array([case for case, _ in told]), system)
    computed = system.numbers(y).tolist(), system.radius(y).tolist()
    for (case, limits), got, radii in zip(told, *computed, strict=True):
        expected = _outputs(ask(claim.reference, *case, **settings))
        if len(got) != len(expected) or not all(map(agrees, got, radii, expected, limits)):
            return list(case), expected, got
    return None


def _outputs(values: Any) -> list[Fraction]:
    if not isinstance(values, list):
        raise InvalidValue(
            "the reference of a claim gives the list of outputs",
            received=f"{type(values).__name__} {values}",
            where="reference",
            remedy="return a list, of one number for one output",
        )
    return [Fraction(value) for value in values]


def worst_rounding(recipe: Recipe[Any], settings: Settings) -> dict[str, float]:
    """For each float format, the largest rounding error that the claim admits on cases it tries.

    Infinite where an intermediate result may overflow, a norm may divide by 0, or the format does
    not hold the weights.
    """
    claim, chosen = recipe.claim, recipe.settings(settings)
    worst: dict[str, float] = {}
    if isinstance(claim, FunctionClaim):
        model, domain = recipe.construct(**chosen), ask(claim.domain, **chosen)
        for name in claim.arithmetics(chosen):
            system = number_system(name)
            if isinstance(system, Floating):
                worst[name] = math.inf
                if _holds_weights(model, system):
                    limits = _rounding(
                        claim, chosen, model, system, domain.cases(system, CASES, seed=0)
                    )
                    worst[name] = float(max(max(row) for row in limits))
    return worst


def error_bound(
    recipe: Recipe[Any], settings: Settings, case: Case, arithmetic: Arithmetic | str
) -> list[float] | None:
    """How far the answer on one vector can be from what the claim states, output by output.

    `None` where the claim does not speak of this vector or arithmetic.
    """
    claim, chosen, system = recipe.claim, recipe.settings(settings), number_system(arithmetic)
    if not isinstance(claim, FunctionClaim) or system.name not in claim.arithmetics(chosen):
        return None
    if case not in ask(claim.domain, **chosen):
        return None
    stored = tuple(Fraction(value) for value in system.numbers(system.array([case]))[0])
    model = recipe.construct(**chosen)
    limits = [
        admitted([stored])[0]
        for domain, admitted in _obligations(claim, chosen, model, system)
        if stored in domain
    ]
    return [_as_float(min(each)) for each in zip(*limits, strict=True)] if limits else None


def _as_float(limit: Limit) -> float:
    """A limit rounded up; infinite beyond float64."""
    try:
        return math.nextafter(float(limit), math.inf) if limit else 0.0
    except OverflowError:
        return math.inf


def _limit(bound: float) -> Limit:
    return Fraction(bound) if math.isfinite(bound) else math.inf


def _holds_weights(model: Any, system: Arithmetic) -> bool:
    """Whether every weight is finite in the format; one that is not is refused, with its name."""
    try:
        model(system.array([list(range(model.width))]), system)
    except NotFinite:
        return False
    except (UndefinedValue, NotRepresentable):
        return True  # of this input, not of the weights
    return True
