"""Searches for the lengths that formats reach with a program, for the study precision-law."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import log2
from typing import Any

import numpy as np

import transformist as tf
from transformist.studies.experiment import Row
from transformist.studies.format_trials import STRUCTURED, Trials
from transformist.studies.short_formats import FIXED, NAMED, format_of

STEPS = 4
"""Lengths that are tried are 2^(k/4)."""

SHORTER = 8
"""The reference runs to an eighth of the longest length, the structured engine to all of it."""

CERTIFIED, FAILING, ENDED = "largest N certified", "first N failing", "ended by"
LAW, FOUND_LAW = "exponent certified", "exponent failing"


def reached(case: Row) -> Sequence[Row]:
    """The lengths certified and failing in each kind of formats, with their exponents."""
    trials = Trials(tf.programs.PROGRAMS[case["program"]])
    with warnings.catch_warnings():  # the warnings say that a claim does not cover the format
        warnings.simplefilter("ignore")
        return [_in_formats(case, kind, trials) for kind in case["formats"]]


def _in_formats(case: Row, kind: str, trials: Trials) -> Row:
    certified: list[int] = []
    failing: list[int | None] = []
    margins: list[str] = []
    row = {
        "program": case["program"],
        "formats": kind,
        "bits": case["formats"][kind],
        "N to": case["N to"],
    }
    for bits in row["bits"]:
        system = format_of(kind, bits)
        if kind != FIXED:  # certificates do not cover fixed point
            last, first = _search(partial(trials.is_certified, system), case["N to"])
            certified.append(last)
            margins += [] if first is None else [trials.margin(system, first)]
        longest = case["N to"] // (1 if system.name in STRUCTURED else SHORTER)
        is_run = kind == NAMED or None not in failing
        is_right = partial(trials.is_right, system)
        failing.append(_search(is_right, longest)[1] if is_run else None)
    laws = {
        name: None if kind == NAMED else exponent(row, lengths)
        for name, lengths in ((LAW, certified), (FOUND_LAW, failing))
    }
    lengths = {CERTIFIED: certified or None, ENDED: list(dict.fromkeys(margins)), FAILING: failing}
    return {**row, **lengths, **laws}


def _search(passes: Callable[[int], bool], longest: int) -> tuple[int, int | None]:
    """The last N that passes and the first that fails, by octaves and then by quarters."""
    # Not by bisection: what passes at a length does not pass at every shorter length.
    reached, last, first = 0, 0, None
    for step in (STEPS, 1):
        while reached + step <= STEPS * log2(longest):
            n = round(2 ** ((reached + step) / STEPS))
            # No length is tried twice: the first quarters round to the same length, and the last
            # quarter is the octave that failed.
            if n == first or (n > last and not passes(n)):
                first = n
                break
            reached, last = reached + step, n
    return last, first


def exponent(case: Row, lengths: Sequence[int | None]) -> float | None:
    """The exponent e of N ~ 2^(e p), by least squares; `None` from fewer than three lengths."""
    # Lengths below 4 are left out, as the next length tried is far from them; so is the largest
    # length tried, at which nothing ended.
    pairs = zip(case["bits"], lengths, strict=False)
    points = [(p, log2(n)) for p, n in pairs if n is not None and 4 <= n < case["N to"]]
    bits, logarithms = np.array(points).reshape(-1, 2).T
    return float(np.polyfit(bits, logarithms, 1)[0]) if len(points) > 2 else None


def laws(rows: Sequence[Row], kinds: Collection[str]) -> Sequence[Row]:
    """For each program its exponents, certified and found, in these kinds of formats."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["formats"] in kinds:
            of_program = found.setdefault(row["program"], {"program": row["program"]})
            for name, law in (("certified", LAW), ("found", FOUND_LAW)):
                of_program[f"e {name}, {row['formats']}"] = row[law] and round(row[law], 2)
    return list(found.values())
