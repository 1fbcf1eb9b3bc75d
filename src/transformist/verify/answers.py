"""What a recipe answers on an input, and how far its claim covers the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np

from transformist.arithmetic import Arithmetic, Interval, exact_numbers, number_system
from transformist.claims import (
    Finding,
    FunctionClaim,
    LengthClaim,
    PositionClaim,
    Recipe,
    SequenceClaim,
    Settings,
    StringClaim,
    ask,
)
from transformist.domains import Sequences
from transformist.errors import InputTooLong, InvalidValue, Undecided
from transformist.inputs import read_count, read_vector, read_vectors
from transformist.model import Symbol, Trace, Transformer, rationals
from transformist.verify.functions import error_bound
from transformist.verify.sequences import admitted, free_numbers
from transformist.verify.verdict import agrees


@dataclass(frozen=True, kw_only=True)
class AnswerInNumbers:
    """An answer in numbers.

    Attributes:
        length: how many numbers, vectors or positions the input has.
        shown: nested lists of the numbers, or of balls in decimals.
        covered: whether the claim speaks of this input.
        bound: how far the numbers (in `interval`, the real values that the balls hold) can be from
            what the claim states, for the stored input; `None` where it says nothing, and infinite
            where a result may overflow.
        stored: whether the arithmetic holds the input as it is.
        positions: of which the claim speaks, from 1; `None` for all.

    """

    length: int
    shown: Any
    covered: bool
    bound: tuple[float, ...] | None
    stored: bool = True
    positions: tuple[int, ...] | None = None


def answer_in_numbers(
    recipe: Recipe[Any], given: Settings, text: str, arithmetic: Arithmetic | str
) -> AnswerInNumbers:
    """What a recipe on vectors, on lists of them, or on positions gives for an input in JSON.

    Args:
        recipe: what to run.
        given: its settings; those left out have their defaults.
        text: the vector, the list of vectors, or n.
        arithmetic: the number system.

    Raises:
        TransformistError: for an input that cannot be read, or is not in the reach of the claim.

    Example:
        >>> import transformist as tf
        >>> answer_in_numbers(tf.recipe("mean"), {"width": 1}, "[[1], [2]]", "float64").shown
        [[1.5], [1.5]]

    """
    return _ANSWERS[type(recipe.claim)](
        recipe, recipe.settings(given), text, number_system(arithmetic)
    )


def _on_vector(
    recipe: Recipe[FunctionClaim], settings: Settings, text: str, system: Arithmetic
) -> AnswerInNumbers:
    model = recipe.construct(**settings)
    vector = read_vector(text, model.width, recipe.name, tuple(recipe.parameters))
    exact = tuple(map(Fraction, exact_numbers(vector)))
    bound = error_bound(recipe, settings, exact, system)
    return AnswerInNumbers(
        length=len(vector),
        shown=system.shown(model(vector, system)),
        covered=bound is not None,
        bound=None if bound is None else tuple(bound),
        stored=_is_stored(exact, system),
    )


def _on_vectors(
    recipe: Recipe[SequenceClaim], settings: Settings, text: str, system: Arithmetic
) -> AnswerInNumbers:
    claim = recipe.claim
    domain: Sequences = ask(claim.domain, **settings)
    meaning = read_vectors(text, domain, recipe.name)
    n = len(next(iter(meaning.values())))
    model = recipe.construct(**settings)
    require_length(recipe, settings, n, system)
    y = model(domain.encode([meaning], n, system), system)[0]
    held = domain.stored(meaning, system)
    inside = held in domain
    told = _told(claim, settings, held, n, system) if inside else ()
    bound = None
    if told:
        bound = (float(admitted(claim, settings, free_numbers(domain, held), n, system)),)
    return AnswerInNumbers(
        length=n,
        shown=system.shown(y),
        covered=bool(told),
        bound=bound,
        stored=held == meaning,
        positions=told if inside and len(told) < n else None,
    )


def _told(
    claim: SequenceClaim, settings: Settings, held: Any, n: int, system: Arithmetic
) -> tuple[int, ...]:
    """The positions of which the claim speaks."""
    rows = ask(claim.reference, n=n, arithmetic=system, **held, **settings)
    return tuple(i for i, row in enumerate(rows, start=1) if row is not None)


def _on_positions(
    recipe: Recipe[PositionClaim], settings: Settings, text: str, system: Arithmetic
) -> AnswerInNumbers:
    n = read_count(text, recipe.name)
    encoding = recipe.construct(**settings)
    require_length(recipe, settings, n, system)
    return AnswerInNumbers(
        length=n, shown=system.shown(encoding(n, system)), covered=True, bound=None
    )


_ANSWERS: Mapping[type, Callable[[Recipe[Any], Settings, str, Arithmetic], AnswerInNumbers]] = {
    FunctionClaim: _on_vector,
    SequenceClaim: _on_vectors,
    PositionClaim: _on_positions,
}
"""How a recipe is run on JSON, by the kind of its claim."""


def _is_stored(given: Sequence[Fraction], system: Arithmetic) -> bool:
    """Whether the arithmetic holds these numbers as they are, or in balls."""
    if not given:
        return True
    stored = system.array(list(given))
    return all(map(agrees, system.numbers(stored), system.radius(stored), given, repeat(0)))


def require_length(
    recipe: Recipe[LengthClaim], settings: Settings, n: int, system: Arithmetic
) -> None:
    """Refuse what is longer than N, or longer than the format is safe for.

    Raises:
        InputTooLong: beyond N.
        InvalidValue: beyond the safe length, or in an arithmetic in which nothing is claimed.

    """
    built_for = settings.get("max_length")
    if built_for is not None and n > built_for:
        raise InputTooLong(
            f"{recipe.name} must have at most N = {built_for} positions, for which it is built",
            received=f"{n}",
            remedy=f"give --set max_length={n}",
        )
    arithmetic = system.name
    lengths = recipe.claim.safe_lengths(settings)
    safe = lengths.get(arithmetic, 0)
    if not lengths:
        raise InvalidValue(
            f"{recipe.name} is claimed in arithmetics that hold its numbers",
            received="numbers that none of them holds",
            remedy="give numbers such as 1/2 or 3, and no larger than the largest number",
        )
    if safe == 0:
        reason = recipe.claim.excluded.get(arithmetic)
        raise InvalidValue(
            f"{recipe.name} is claimed in {', '.join(lengths)}",
            received=f"{arithmetic} ({reason})" if reason else arithmetic,
            remedy="choose another arithmetic",
        )
    if safe is not None and n > safe:
        raise InvalidValue(
            f"in {arithmetic} {recipe.name} is safe up to n = {safe}",
            received=f"n = {n}",
            remedy="give a shorter input or choose a wider format",
        )


@dataclass(frozen=True, kw_only=True)
class AnswerOnSymbols:
    """A run of a transformer on symbols.

    Attributes:
        trace: the run.
        settings: those that the model was built with.
        safe: the longest N the claim covers in this arithmetic; `None` for any.
        covered: whether the claim covers the model.
        finding: what is found about the input; empty where the claim does not cover it.
        error_bound: of an answer in numbers that the claim does not cover, how far they can be from
            the real values, which balls enclose; infinite where a number is, `None` where the
            products are too many to be enclosed, or the balls become too wide.
        recipe: whose claim it is; `None` for a model of which nothing is claimed.

    """

    trace: Trace
    settings: Settings
    safe: int | None
    covered: bool
    finding: Finding
    error_bound: float | None = None
    recipe: Recipe[StringClaim] | None = None


@dataclass(frozen=True, kw_only=True)
class BuiltModel:
    """A transformer built for an input.

    Attributes:
        model: the transformer.
        settings: those that it was built with.
        safe: the longest N the claim covers in the arithmetic; `None` for any.
        covered: whether the claim covers the model.

    """

    model: Transformer
    settings: Settings
    safe: int | None = None
    covered: bool = True


def built_for_input(
    recipe: Recipe[StringClaim], given: Settings, length: int, system: Arithmetic
) -> BuiltModel:
    """A recipe built for inputs of a length, where N is not given.

    N is the length rounded up to a power of two, but not beyond the length that the claim covers
    if the input fits into it.

    Raises:
        InvalidValue: where the claim does not cover the length and scores have a gap, or the
            arithmetic, the answer being no numbers.

    Example:
        >>> import transformist as tf
        >>> built = built_for_input(tf.recipe("dyck-1"), {}, 3, number_system("float32"))
        >>> built.settings["max_length"]
        4

    """
    settings = recipe.settings(given)
    safe = recipe.claim.safe_lengths(settings).get(system.name, 0)
    if safe == 0 and not recipe.claim.in_numbers:
        require_length(recipe, settings, length, system)
    if "max_length" in settings and "max_length" not in given:
        built_for = 1 << max(length - 1, 0).bit_length()
        built_for = min(built_for, safe) if safe is not None and length <= safe else built_for
        settings = recipe.settings({**given, "max_length": built_for})
    model = recipe.construct(**settings)
    covered = safe is None or (model.max_length or length) <= safe
    if not covered and ask(recipe.claim.gap, n=max(length, 1), **settings) is not None:
        require_length(recipe, settings, model.max_length or length, system)
    return BuiltModel(model=model, settings=settings, safe=safe, covered=covered)


def answer_on_symbols(
    recipe: Recipe[StringClaim],
    given: Settings,
    symbols: Sequence[Symbol],
    arithmetic: Arithmetic | str,
) -> AnswerOnSymbols:
    """Answer of a recipe on a string, by a model `built_for_input`.

    Numbers in a format of which nothing is claimed are compared with the real values: the input is
    evaluated in `interval` as well.

    Raises:
        InvalidValue: as `built_for_input`.
        TransformistError: as `Transformer.run`.

    Example:
        >>> import transformist as tf
        >>> answer_on_symbols(tf.recipe("dyck-1"), {}, "(()", "float32").settings["max_length"]
        4

    """
    system = number_system(arithmetic)
    built = built_for_input(recipe, given, len(symbols), system)
    trace = built.model.run(symbols, system)
    found = recipe.explain(trace) if recipe.explain and built.covered else Finding(sentence="")
    bound = _enclosed_error(trace) if recipe.claim.in_numbers and not built.covered else None
    return AnswerOnSymbols(
        trace=trace,
        settings=built.settings,
        safe=built.safe,
        covered=built.covered,
        finding=found,
        error_bound=bound,
        recipe=recipe,
    )


ENCLOSED = 2**21
"""How many products are enclosed in balls to tell how near numbers are: some seconds."""

PRECISIONS = (128, 1024)
"""The bits of those balls, the second where the first do not decide a choice."""


def _products(model: Transformer, rows: int) -> int:
    """About how many products an evaluation takes."""
    heads = [head for layer in model.layers for head in layer.heads]
    mixed = sum(head.W_Q.shape[0] + head.W_V.shape[0] for head in heads)
    return int(rows * model.nonzero + rows**2 * mixed)


def _enclosed_error(trace: Trace) -> float | None:
    """How far the numbers of an answer are at most from the real values that balls enclose."""
    if _products(trace.model, len(trace.symbols)) > ENCLOSED:
        return None
    (y,) = trace.model.values([trace.input], trace.arithmetic)
    numbers = trace.arithmetic.numbers(y)
    if numbers.dtype != object and not np.isfinite(numbers).all():
        return math.inf
    for bits in PRECISIONS:
        balls = Interval(bits)
        try:
            (enclosed,) = trace.model.values([trace.input], balls)
        except Undecided:
            continue
        real, radii = rationals(balls.numbers(enclosed)), rationals(balls.radius(enclosed))
        return math.nextafter(float((abs(rationals(numbers) - real) + radii).max()), math.inf)
    return None
