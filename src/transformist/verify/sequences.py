"""Claims on lists of vectors and on positions against the weights said to meet them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import repeat
from typing import Any

from transformist.arithmetic import Arithmetic, is_whole, number_system
from transformist.claims import (
    LengthClaim,
    PositionClaim,
    Recipe,
    SequenceClaim,
    Settings,
    ask,
)
from transformist.domains import Sequences
from transformist.errors import InvalidValue
from transformist.verify.verdict import Counterexample, Verdict, agrees, described

LENGTHS = (*range(1, 13), 16, 33, 64, 250)
"""Lists of these lengths are tried, as far as they are safe."""

LONGEST = {"exact": 64, "interval": 16}
"""In these arithmetics only up to so many vectors."""

LISTS = 16
"""About how many lists are tried for a length: with fewer positions, every q at every i."""

WORK = 2**23
"""Fewer lists are tried where their scores take more products than this."""

WORK_IN = {"interval": 2**18}
"""In these arithmetics where they take more than this."""

SHORTER = 33
"""The longest lists for settings other than the defaults."""

FEW = (1, 2, 3, 9, 33)
"""Lists of these lengths are tried where a claim names its arithmetics, of which there are many."""


def check_sequences(recipe: Recipe[SequenceClaim], max_length: int | None = None) -> Verdict:
    """Lists of many lengths, in every arithmetic, under every variant."""
    claim, total = recipe.claim, 0
    tried: dict[str, None] = {}
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        model = recipe.construct(**settings)
        domain: Sequences = ask(claim.domain, **settings)
        for name, safe in claim.safe_lengths(settings).items():
            system = number_system(name)
            for n in _lengths(claim, name, safe, settings, max_length, shorter=bool(given)):
                count = max(2, min(LISTS, WORK_IN.get(name, WORK) // (n * n * domain.width)))
                cases = domain.cases(n, count, system)
                total += len(cases)
                tried[name] = None
                found = _first_wrong(claim, settings, model, domain, cases, n, system)
                if found is not None:
                    cx = Counterexample(*found, name, described(given))
                    return Verdict(recipe.name, total, tuple(tried), str(domain), cx)
    domain = ask(claim.domain, **recipe.settings({}))
    return Verdict(recipe.name, total, tuple(tried), str(domain))


def _lengths(
    claim: LengthClaim,
    name: str,
    safe: int | None,
    settings: Settings,
    max_length: int | None,
    *,
    shorter: bool,
) -> Iterator[int]:
    if max_length is not None and not is_whole(max_length, 1):
        raise InvalidValue(
            "lists must have at least one vector",
            received=f"max_length = {max_length!r:.40}",
            where="check",
            remedy="give a length of at least 1",
        )
    lengths = LENGTHS if claim.only_in is None else FEW
    built_for = settings.get("max_length") or math.inf
    longest = min(
        math.inf if safe is None else safe,
        built_for,
        LONGEST.get(name, math.inf),
        SHORTER if shorter else math.inf,
        math.inf if max_length is None else max_length,
    )
    near = {longest, longest - 1, longest * 3 // 4, longest * 2 // 3}  # few are powers of two
    ends = {int(n) for n in near if n >= 1} if longest <= lengths[-1] else set()
    yield from sorted({n for n in lengths if n < longest} | ends)


def admitted(
    claim: SequenceClaim, settings: Settings, values: Any, n: int, system: Arithmetic
) -> Fraction | float:
    """The error that the claim admits for a list with these free numbers."""
    size = max((abs(value) for value in values), default=Fraction(0))
    limit: Fraction | float = ask(claim.error, n=n, size=size, arithmetic=system, **settings)
    return limit


def free_numbers(domain: Sequences, meaning: Any) -> Iterator[Fraction]:
    """The numbers in the free columns of a list, positions that are asked for aside."""
    for column in domain.columns:
        for entry in meaning[column.label]:
            if isinstance(entry, tuple):
                yield from map(Fraction, entry)


def _first_wrong(
    claim: SequenceClaim,
    settings: Settings,
    model: Any,
    domain: Sequences,
    cases: Sequence[Any],
    n: int,
    system: Arithmetic,
) -> tuple[Any, Any, Any] | None:
    """The list, the expected and the actual vectors of the first case that is off."""
    y = model(domain.encode(cases, n, system), system)
    computed = system.numbers(y).tolist(), system.radius(y).tolist()
    for case, got, radii in zip(cases, *computed, strict=True):
        expected = ask(claim.reference, n=n, arithmetic=system, **case, **settings)
        limit = admitted(claim, settings, free_numbers(domain, case), n, system)
        if not close(got, radii, expected, limit):
            free = {column.label: case[column.label] for column in domain.columns if column.free}
            return [free or n], expected, got
    return None


def close(got: Any, radii: Any, expected: Any, limit: Fraction | float) -> bool:
    """Whether rows of numbers, up to the radii of their balls, are within the limit.

    Of a row of which nothing is said, `None`, anything is.
    """
    return len(got) == len(expected) and all(
        wanted is None
        or (len(row) == len(wanted) and all(map(agrees, row, radius, wanted, repeat(limit))))
        for row, radius, wanted in zip(got, radii, expected, strict=True)
    )


def check_positions(recipe: Recipe[PositionClaim], max_length: int | None = None) -> Verdict:
    """Encodings of many lengths, in every arithmetic, under every variant."""
    claim, total = recipe.claim, 0
    tried: dict[str, None] = {}
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        encoding = recipe.construct(**settings)
        for name, safe in claim.safe_lengths(settings).items():
            system = number_system(name)
            for n in _lengths(claim, name, safe, settings, max_length, shorter=bool(given)):
                total += 1
                tried[name] = None
                y = encoding(n, system)
                vectors = [list(map(Fraction, row)) for row in system.numbers(y).tolist()]
                radius = max(system.radius(y).ravel().tolist())
                for i, row in enumerate(claim.observed(vectors), start=1):
                    expected = ask(claim.reference, i=i, n=n, **settings)
                    limits = [
                        ask(claim.error, arithmetic=system, value=Fraction(value), **settings)
                        for value in expected
                    ]
                    if len(row) != len(expected) or not all(
                        map(agrees, row, repeat(radius), expected, limits)
                    ):
                        where = {"i": i, "n": n}
                        cx = Counterexample([where], expected, row, name, described(given))
                        return Verdict(recipe.name, total, tuple(tried), "n", cx)
    return Verdict(recipe.name, total, tuple(tried), claim.inputs({}))
