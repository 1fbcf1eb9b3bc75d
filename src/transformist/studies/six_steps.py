"""Study six-steps: a model with a norm before each sublayer, built in six steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from transformist.studies.ab_star_model import build_ab_star
from transformist.studies.experiment import Chart, Claimed, Row, Study

LENGTH, QUICK_LENGTH = 10, 6
"""Every string up to this length is evaluated, in rationals."""
LONG = 99, 100, 1000


STEPS = {
    "representation": "a bit is −1 or 1, which a norm of pairs leaves as it is",
    "positions": "(−1)^i, for even and odd places",
    "heads": "means of three bits over all rows so far",
    "networks": "misplaced symbols, and three comparisons of means",
    "composition": "four layers, a norm before each sublayer, slots of their own",
    "uniformity": "no weight depends on a length",
}


def _cases(is_quick: bool) -> Sequence[Row]:
    longest = QUICK_LENGTH if is_quick else LENGTH
    return [{"step": each, "choice": STEPS[each], "longest": longest} for each in STEPS]


def _is_in_ab_star(x: str) -> bool:
    return re.fullmatch("(ab)*", x) is not None


def _by_definition(x: str) -> dict[str, dict[tuple[str, int | None], list[Any]]]:
    """For each step, the slots of the model after a sublayer, computed from the string."""
    rows = range(len(x) + 1)
    a, b = ([x[:i].count(each) for i in rows] for each in "ab")
    is_a = [1 if each == "a" else -1 for each in f"b{x}"]
    even = [1 - 2 * (i % 2) for i in rows]
    error = [1 if x[i - 1 : i] == ("a" if i % 2 == 0 else "b") and i else -1 for i in rows]
    errors = [error[: i + 1].count(1) for i in rows]
    over = [Fraction(1, i + 1) for i in rows]
    return {
        "representation": {("is a", 0): is_a},
        "positions": {("even", 0): even},
        "heads": {
            ("mean a", 2): [(a[i] - b[i] - 1) * over[i] for i in rows],
            ("mean front", 2): [2 * over[i] - 1 for i in rows],
            ("mean error", 2): [2 * errors[i] * over[i] - 1 for i in rows],
        },
        "networks": {
            ("error", 1): error,
            ("more a", None): [int(a[i] > b[i]) for i in rows],
            ("more b", None): [int(b[i] > a[i]) for i in rows],
            ("any error", None): [int(each > 0) for each in errors],
        },
    }


def _rows(case: Row) -> Sequence[Row]:
    model, step, longest = build_ab_star(), case["step"], case["longest"]
    strings = ["".join(each) for n in range(longest + 1) for each in product("ab", repeat=n)]
    if step == "composition":
        wrong = sum(model(x, "exact") != _is_in_ab_star(x) for x in strings)
        return [{**case, "compared": len(strings), "wrong": wrong}]
    if step == "uniformity":
        words = [("ab" * n)[:n] for n in LONG]
        strings = [each for x in words for each in (x, "ba" + x[2:], x[:-2] + x[:-3:-1])]
        wrong = sum(model(x, "float64") != _is_in_ab_star(x) for x in strings)
        return [{**case, "longest": max(LONG), "compared": len(strings), "wrong": wrong}]
    compared = wrong = 0
    for x in strings:
        trace = model.run(x, arithmetic="exact")
        for (slot, after), wanted in _by_definition(x)[step].items():
            found = list(trace.values(slot, after))
            compared += len(wanted)
            wrong += sum(y != z for y, z in zip(found, wanted, strict=True))
    return [{**case, "compared": compared, "wrong": wrong}]


SIX_STEPS = Study(
    name="six-steps",
    question="How is a transformer with norms before its sublayers built by hand, in six "
    "steps from the representation to uniformity? The language is (ab)*.",
    method="The function below builds the model; its comments number the steps. The first four "
    "steps compare slots of the model with their definitions, at every row of every string. The "
    "fifth compares its answers on every string, the sixth its answers on long strings, of which "
    "some have two symbols exchanged. All is in rationals but for the long strings, in float64.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "Every number and every answer is that of its definition.",
            lambda rows: all(row["compared"] > 0 == row["wrong"] for row in rows),
        ),
    ),
    chart=lambda rows: Chart(
        x="step",
        y="numbers or answers",
        curves={each: [(row["step"], row[each]) for row in rows] for each in ("compared", "wrong")},
    ),
    answer=lambda rows: (
        "By choosing numbers that norms leave alone. Bits are −1 or 1, so that a norm of the pairs "
        "(y, −y) does nothing, and heads and networks read them through it. Means are compared as "
        "whole numbers less 1/2, which are never 0, so that a norm with ε = 0 makes a bit of each. "
        f"The model is right on all {rows[4]['compared']:,} strings up to length "
        f"{rows[4]['longest']}, and no weight depends on a length."
    ),
    listing=build_ab_star,
)
