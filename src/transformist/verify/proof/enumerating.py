"""Enumeration of the values that several forms can have together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.verify.proof.ideal import Form, Ideal, Pattern

MOST_CASES = 4096
"""Largest number of combinations that are enumerated, which bounds the running time."""


def combinations(ideal: Ideal, forms: Sequence[Form], kind: int) -> NDArray[Any] | None:
    """(cases, forms): all combinations of rational values of forms at a kind of row.

    A head that attends to a single row chooses one kind of row: one of its shares is 1. A hidden
    unit that depends only on such choices is computed from them; any other step may be 0 or its
    height. There may be combinations that no input has. Return `None` if a form depends on other
    unknowns, or if there are too many cases.
    """
    needed = sorted(_needed(ideal, forms))
    choices: dict[Any, list[Any]] = {}
    for number in needed:
        unknown = ideal.unknowns[number]
        if unknown.share is not None and unknown.share[0].selection == "one":
            head = unknown.share[0]
            seen: list[int | None] = [*np.flatnonzero(head.sees[kind]).tolist()]
            choices[head] = seen + ([None] if head.empty[kind] or not seen else [])
        elif unknown.unit is None:
            return None
        elif not _follows(ideal, number):
            height = unknown.unit[1]
            if height is None or unknown.grid is None:
                return None
            ends = float(unknown.lo[kind]), float(unknown.hi[kind])
            choices[number] = [x for x in (Fraction(0), height) if ends[0] <= x <= ends[1]]
    if math.prod(map(len, choices.values())) > MOST_CASES:
        return None
    cases = list(itertools.product(*choices.values()))
    columns = dict(zip(choices, zip(*cases, strict=True), strict=True)) if choices else {}
    rows = {
        head: np.array([-1 if row is None else row for row in chosen])
        for head, chosen in columns.items()
        if isinstance(head, Pattern)
    }
    values: dict[int, NDArray[Any]] = {}

    def value(form: Form) -> NDArray[Any]:
        # Whole numbers are faster than rationals: the common denominator is divided by at the end.
        common = math.lcm(*(x.denominator for x in form.values()))
        factors = {number: int(x * common) for number, x in form.items()}
        # Sums of constants and of shares, which are 0 or 1, are then below 2⁶².
        is_small = sum(map(abs, factors.values())) < 2**62
        own = factors.get(kind, 0)
        total = np.full(len(cases), own, dtype=np.int64 if is_small else object)
        for number, x in factors.items():
            if number >= ideal.kinds:
                of = values[number]
                total = total + x * (of if is_small else of.astype(object))
        return total if common == 1 else total * Fraction(1, common)

    for number in needed:
        unknown = ideal.unknowns[number]
        if unknown.share is not None:
            head, of = unknown.share
            values[number] = (rows[head] == of).astype(np.int64)
        elif number in columns:
            values[number] = np.array(columns[number], dtype=object)
        else:
            x, height = unknown.unit or ({}, None)
            limit: Any = height
            above = np.maximum(value(x).astype(object), 0)
            values[number] = above if limit is None else np.minimum(above, limit)
    return np.stack([value(form) for form in forms], axis=1)


def case_keys(ideal: Ideal, forms: Sequence[Form]) -> list[Hashable]:
    """Return a key for each kind of row: kinds with equal keys have the same `combinations`.

    A key has everything of a kind that `combinations` reads: the coefficients of the kind, the set
    of kinds that each head may attend to, and the ends of steps that may be 0 or their height.
    """
    needed = sorted(_needed(ideal, forms))
    unknowns = [ideal.unknowns[number] for number in needed]
    own: list[list[tuple[int, Fraction]]] = [[] for _ in range(ideal.kinds)]
    read = [*forms, *(unknown.unit[0] for unknown in unknowns if unknown.unit is not None)]
    for place, form in enumerate(read):
        for number, x in form.items():
            if number < ideal.kinds:
                own[number].append((place, x))
    heads = dict.fromkeys(unknown.share[0] for unknown in unknowns if unknown.share is not None)
    steps = [
        unknown
        for number, unknown in zip(needed, unknowns, strict=True)
        if unknown.unit is not None and not _follows(ideal, number)
    ]
    return [
        (
            tuple(own[kind]),
            tuple((int(head.views.place[kind]), bool(head.empty[kind])) for head in heads),
            tuple((float(step.lo[kind]), float(step.hi[kind])) for step in steps),
        )
        for kind in range(ideal.kinds)
    ]


def _needed(ideal: Ideal, forms: Sequence[Form]) -> set[int]:
    """Unknowns of forms, and those that hidden units among them are computed from."""
    needed: set[int] = set()
    waiting = [number for form in forms for number in form]
    while waiting:
        number = waiting.pop()
        if number >= ideal.kinds and number not in needed:
            needed.add(number)
            unit = ideal.unknowns[number].unit
            if unit is not None and _follows(ideal, number):
                waiting.extend(unit[0])
    return needed


def _follows(ideal: Ideal, number: int) -> bool:
    """True if a hidden unit depends only on symbols, shares of single rows, and hidden units."""
    form, _ = ideal.unknowns[number].unit  # type: ignore[misc]
    for k in form:
        share, unit = ideal.unknowns[k].share, ideal.unknowns[k].unit
        known = k < ideal.kinds or (share is not None and share[0].selection == "one")
        if not known and (unit is None or (unit[1] is None and not _follows(ideal, k))):
            return False
    return True
