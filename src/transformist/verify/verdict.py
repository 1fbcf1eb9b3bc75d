"""Verdicts: a claim, or a function on strings, against the weights said to compute it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import Arithmetic, Floating, number_system
from transformist.bounds import rounding_error
from transformist.claims import FunctionClaim, Recipe, Settings, StringClaim, ask
from transformist.domains import Case, Domain, Strings
from transformist.errors import InvalidValue, NotFinite
from transformist.model import Transformer

CASES = 400
"""How many inputs of a function are tried for each setting and arithmetic."""

LENGTH = 10
"""Strings are tried one and all up to this length."""

LONGEST = {"exact": 60, "float64": 250, "float32": 250, "float16": 250, "bfloat16": 250}
"""Hard and drawn strings are tried to the safe length, or to this one where it is less."""

MOST_STRINGS = 2**24
"""Strings of one length are tried one and all where there are at most so many."""

DECLARED = 2**20 - 1
"""Short strings are tried in models built for the safe length, or this one where it is less."""

DRAWN = 50
"""How many strings are drawn at random for each arithmetic."""


@dataclass(frozen=True)
class Counterexample:
    """An input on which the weights and the reference differ by more than the claim admits."""

    input: Any
    expected: Any
    got: Any
    arithmetic: str
    settings: str = ""

    def __str__(self) -> str:
        where = f" with {self.settings}" if self.settings else ""
        return (
            f"input {_shown(self.input)} gives {_shown(self.got)} in {self.arithmetic}{where}, "
            f"expected {_shown(self.expected)}"
        )


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        name: of what was checked.
        cases: how many inputs were evaluated, over all arithmetics.
        arithmetics: the number systems they were evaluated in.
        covered: what was tried, in words.
        counterexample: the first input that failed, or `None`.

    """

    name: str
    cases: int
    arithmetics: tuple[str, ...]
    covered: str
    counterexample: Counterexample | None = None

    @property
    def held(self) -> bool:
        """Whether no counterexample was found."""
        return self.counterexample is None

    def __bool__(self) -> bool:
        """As `held`, so that a verdict can be asserted."""
        return self.held


def check(
    model: Transformer,
    reference: Callable[[str], Any],
    max_length: int | None = None,
    arithmetic: Arithmetic | str = "float64",
) -> Verdict:
    """Compare a model with a function on every string up to a length.

    Args:
        model: the transformer.
        reference: the answer that a string should have.
        max_length: the longest strings; 14, or the length the model is built for where that is
            less, when left out.
        arithmetic: the number system to evaluate in.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible, symbols of more than one
            character, or a reference that raises.
        InputTooLong: for a length beyond N.

    Example:
        >>> import transformist as tf
        >>> tf.check(tf.recipe("dyck-1").build(), lambda x: x == "", max_length=3).counterexample
        Counterexample(input='()', expected=False, got=True, arithmetic='float64', settings='')

    """
    if not isinstance(model, Transformer):
        raise InvalidValue(
            "a function on strings is compared with a Transformer",
            received=type(model).__name__,
            where="check",
            remedy="give a transformer, such as tf.recipe('dyck-1').build()",
        )
    alphabet = tuple(str(symbol) for symbol in model.alphabet)
    if any(len(symbol) != 1 for symbol in alphabet):
        raise InvalidValue(
            "strings are made of symbols of one character",
            received=f"the alphabet {' '.join(alphabet)}",
            where="check",
            remedy="compare the answers of model.answers(...) yourself",
        )
    if max_length is None:
        max_length = min(14, model.max_length or 14)
    _feasible(max_length, len(alphabet))
    system = number_system(arithmetic)
    shortest = 0 if model.embedding.front or model.embedding.back else 1
    strings = Strings(alphabet, lambda _: ()).every(max_length, shortest)
    cases, found = _compare(model, reference, strings, system)
    return Verdict("model", cases, (system.name,), f"every string to length {max_length}", found)


def _feasible(length: int, symbols: int) -> None:
    """Refuse a length to which there are too many strings to try."""
    if length < 0:
        raise InvalidValue(
            "strings have a length of at least 0",
            received=f"max_length = {length}",
            where="check",
            remedy="give a length of at least 0",
        )
    longest = int(math.log(MOST_STRINGS, max(symbols, 2)))
    if length > longest:
        raise InvalidValue(
            f"at most {MOST_STRINGS:,} strings of one length are tried",
            received=f"max_length = {length} over {symbols} symbols",
            where="check",
            remedy=f"give a length of at most {longest}",
        )


def check_recipe(recipe: Recipe, max_length: int | None = None) -> Verdict:
    """Test the claim of a recipe: on its whole domain where that is small, else on many cases.

    Args:
        recipe: what to check.
        max_length: for strings, the length to which every one is tried; 10 when left out.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible.

    Example:
        >>> import transformist as tf
        >>> check_recipe(tf.recipe("max")).held
        True

    """
    if isinstance(recipe.claim, StringClaim):
        length = LENGTH if max_length is None else max_length
        _feasible(length, len(recipe.claim.domain.alphabet))
        return _check_strings(recipe, recipe.claim, length)
    return _check_function(recipe, recipe.claim)


def check_recipes(chosen: Iterable[Recipe], max_length: int | None = None) -> Iterator[Verdict]:
    """The verdicts one after the other, as they come."""
    return (check_recipe(recipe, max_length) for recipe in chosen)


def _check_function(recipe: Recipe, claim: FunctionClaim) -> Verdict:
    total = 0
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        model = recipe.construct(**settings)
        described = ", ".join(f"{name}={value}" for name, value in given.items())
        for name in claim.arithmetics:
            system = number_system(name)
            if given and not _holds_weights(model, system):
                continue
            for domain, error in _obligations(claim, settings, model, system):
                cases = domain.cases(system, CASES, seed=0)
                total += len(cases)
                found = _first_wrong(claim, settings, model, system, cases, error)
                if found is not None:
                    return Verdict(
                        recipe.name,
                        total,
                        claim.arithmetics,
                        str(domain),
                        Counterexample(*found, name, described),
                    )
    domain = ask(claim.domain, **recipe.settings({}))
    return Verdict(recipe.name, total, claim.arithmetics, str(domain))


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
    if claim.rounding is None or not isinstance(system, Floating):
        bounds = rounding_error(model, np.array(cases, dtype=np.float64), system)
        return [[_limit(bound) for bound in row] for row in bounds.tolist()]
    u, w = system.unit_roundoff, system.accumulator_roundoff
    formats = {"u": u, "w": w if w < u else Fraction(0)}
    return [
        [ask(claim.rounding, *case, **settings, **formats) + 2 * Fraction(system.smallest)]
        for case in cases
    ]


def _first_wrong(
    claim: FunctionClaim,
    settings: dict[str, Any],
    model: Any,
    system: Arithmetic,
    cases: list[Case],
    error: _Error,
) -> tuple[Any, Any, Any] | None:
    """The input, the expected and the actual value of the first case that is off."""
    if not cases:
        return None
    values = system.numbers(model(system.array(cases), system)).tolist()
    for case, got, limits in zip(cases, values, error(cases), strict=True):
        expected = _outputs(ask(claim.reference, *case, **settings))
        close = len(got) == len(expected) and all(
            limit == math.inf or (math.isfinite(value) and abs(Fraction(value) - wanted) <= limit)
            for value, wanted, limit in zip(got, expected, limits, strict=True)
        )
        if not close:
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


def worst_rounding(recipe: Recipe, settings: Settings) -> dict[str, float]:
    """For each float format, the largest rounding error that the claim admits on cases it tries.

    Infinite where an intermediate result may overflow, or the format does not hold the weights.
    """
    claim, chosen = recipe.claim, recipe.settings(settings)
    worst: dict[str, float] = {}
    if isinstance(claim, FunctionClaim):
        model, domain = recipe.construct(**chosen), ask(claim.domain, **chosen)
        for name in claim.arithmetics:
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
    recipe: Recipe, settings: Settings, case: Case, arithmetic: Arithmetic | str
) -> list[float] | None:
    """How far the answer on one vector can be from what the claim states, output by output.

    `None` where the claim does not speak of this vector or arithmetic.
    """
    claim, chosen, system = recipe.claim, recipe.settings(settings), number_system(arithmetic)
    if not isinstance(claim, FunctionClaim) or system.name not in claim.arithmetics:
        return None
    if case not in ask(claim.domain, **chosen):
        return None
    stored = tuple(Fraction(value) for value in system.numbers(system.array([case]))[0])
    model = recipe.construct(**chosen)
    _, admitted = next(iter(_obligations(claim, chosen, model, system)))
    return [float(limit) for limit in admitted([stored])[0]]


def _limit(bound: float) -> Limit:
    return Fraction(bound) if math.isfinite(bound) else math.inf


def _holds_weights(model: Any, system: Arithmetic) -> bool:
    """Whether every weight is finite in the format; one that is not is refused, with its name."""
    try:
        model(system.array([[0] * model.width]), system)
    except NotFinite:
        return False
    return True


def _check_strings(recipe: Recipe, claim: StringClaim, length: int) -> Verdict:
    total = 0
    reached = {}
    for name in claim.arithmetics:
        safe = claim.safe_lengths[name]
        n, N = max(LONGEST[name], length), DECLARED
        if safe is not None:
            n, N = min(n, safe), min(N, safe)
        reached[name] = n
        chosen = [*claim.domain.hard(n), *claim.domain.drawn(n, DRAWN, seed=0)]
        tried = [(N, [*claim.domain.every(min(length, n)), *chosen])]
        if "max_length" in recipe.parameters and n < N:
            tried.append((n, chosen))
        for declared, strings in tried:
            bound = {"max_length": declared} if "max_length" in recipe.parameters else {}
            model = recipe.build(**bound)
            cases, found = _compare(model, claim.reference, strings, number_system(name))
            total += cases
            if found is not None:
                shown = ", ".join(f"{key}={value}" for key, value in bound.items())
                found = replace(found, settings=shown)
                covered = f"{claim.domain} to length {n}"
                return Verdict(recipe.name, total, claim.arithmetics, covered, found)
    lengths = ", ".join(f"{n} in {name}" for name, n in reached.items())
    covered = f"{claim.domain}: all to length {length}, hard and drawn ones to {lengths}"
    return Verdict(recipe.name, total, claim.arithmetics, covered)


def _compare(
    model: Transformer,
    reference: Callable[[str], Any],
    strings: Iterable[str],
    system: Arithmetic,
) -> tuple[int, Counterexample | None]:
    """How many strings were compared, and the first on which the answers differ."""
    total = 0
    for block in _blocks(strings):
        answers = model.answers(block, system)
        for string, got in zip(block, answers, strict=True):
            total += 1
            expected = _expected(reference, string)
            if got != expected:
                return total, Counterexample(string, expected, got, system.name)
    return total, None


def _expected(reference: Callable[[str], Any], string: str) -> Any:
    try:
        return reference(string)
    except Exception as error:
        raise InvalidValue(
            "a reference answers every string",
            received=f"{type(error).__name__}: {error} on {string!r}",
            where=getattr(reference, "__name__", "reference"),
            remedy="mend the reference",
        ) from error


def _blocks(strings: Iterable[str]) -> Iterator[Sequence[str]]:
    block: list[str] = []
    for string in strings:
        block.append(string)
        if len(block) == 4096:
            yield block
            block = []
    if block:
        yield block


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(each) for each in value)}]"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
