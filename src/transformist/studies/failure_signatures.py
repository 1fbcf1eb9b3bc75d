"""Study signatures: each failure signature provoked, named by `diagnose`, and remedied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import transformist as tf
from transformist.studies import failing_models
from transformist.studies.experiment import Chart, Claimed, Row, Study

RIGHT, EXACT = "answer by definition", "exact answer"
BEFORE, AFTER = "wrong before", "wrong after"
BY_HAND = 10  # the quick cases; the others are compiled programs


def _cases(is_quick: bool) -> Sequence[Row]:
    count = BY_HAND if is_quick else len(failing_models.FAILURES)
    return [{"case": k + 1} for k in range(count)]


def _rows(case: Row) -> Sequence[Row]:
    failure = failing_models.FAILURES[case["case"] - 1]
    x, right = failure.x, failure.right
    first, second = (
        tf.diagnose(failure.build(setting), x, arithmetic)
        for setting, arithmetic in zip(failure.settings, failure.formats, strict=True)
    )
    runs = [(str(symbol), len(list(run))) for symbol, run in groupby(x)]
    place = first.wrong_position

    def told(answer: Any) -> str:
        return str(answer) if place is None else f"{answer[place - 1]} at position {place}"

    row = {
        "signature": failure.signature,
        "model": failure.model,
        "format": failure.formats[0],
        "input": " ".join(symbol if n == 1 else f"{symbol}×{n}" for symbol, n in runs),
        RIGHT: told(right),
        EXACT: told(first.exact),
        "answer before": told(first.answer),
        "named before": first.signature and first.signature.name,
        "remedy": failure.remedy,
        "answer after": told(second.answer),
        "named after": second.signature and second.signature.name,
        BEFORE: int(first.answer != right),
        AFTER: int(second.answer != right),
    }
    return [{**case, **row}]


def _are_named(rows: Sequence[Row]) -> bool:
    """Every failure by rounding is named, and the one without rounding is not."""
    for row in rows:
        by_rounding = row[EXACT] == row[RIGHT] != row["answer before"]
        if row[BEFORE] != 1 or row["named before"] != (row["signature"] if by_rounding else None):
            return False
    return [row["case"] for row in rows if row["named before"] is None] == [7]


def _are_remedied(rows: Sequence[Row]) -> bool:
    are_right = all(row[AFTER] == 0 and row["answer after"] == row[RIGHT] for row in rows)
    return are_right and all(row["named after"] is None for row in rows)


def _chart(rows: Sequence[Row]) -> Chart:
    curves = {each: [(row["case"], row[each]) for row in rows] for each in (BEFORE, AFTER)}
    return Chart(x="case", y="wrong answers", curves=curves)


SIGNATURES = Study(
    name="signatures",
    question="An unpublished summary of the Cookbook lists failure signatures, each with a remedy. "
    "Does `tf.diagnose` name each failure of a small model in a format, and does the remedy remove "
    "it?",
    method="Ten models of one layer, and four compiled programs, fail on an input in a format. "
    "Each is diagnosed, and diagnosed again on this input after the remedy; a format as remedy "
    "takes the place of the one before. `tf.diagnose` compares a format with exact arithmetic, so "
    "it names a norm only if rounding moves the value; the norm of case 7 moves it without "
    "rounding. The norms have ε = 0.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "Before the remedy every answer is wrong. Where the exact answer is right, the "
            "signature is named; in case 7 it is wrong as well, and nothing is named.",
            _are_named,
        ),
        Claimed(
            "After the remedy every answer is right, and nothing is named.",
            _are_remedied,
        ),
    ),
    chart=_chart,
    answer=lambda _: (
        "All five failures are named, and each remedy removes its failure on this input: sharper "
        "queries, a smaller ε, a smaller N, W_N, a pair, or a wider format. A value that a norm "
        "over the whole stream moves without rounding is not named, since the exact answer is as "
        "wrong as that of the format: only the definition of the task shows it. W_N removes "
        "this failure too. Other inputs are not examined here."
    ),
)
