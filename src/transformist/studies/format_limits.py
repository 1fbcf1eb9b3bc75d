"""Study precision: recognizers of Dyck-1, 1/i and EqZero in every format, to n = 100,000."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import inf

import transformist as tf
from transformist.arithmetic import FORMATS
from transformist.studies import format_results
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of, select

RECIPROCAL, EQ_ZERO = "1/i", "EqZero"
RECOGNIZERS = OURS, PRINTED, UNIFORM = "dyck-1", "dyck-1-nonuniform", "dyck-1-uniform"
LENGTHS, QUICK_LENGTHS = (10, 100, 300, 1000, 10_000, 100_000), (10, 100)
SHARE, CERTIFIED, FAULT = "share right", "certified", "fault"


def _cases(is_quick: bool) -> Sequence[Row]:
    return [
        {"what": what, "arithmetic": system.name, "n": n}
        for what in (RECIPROCAL, EQ_ZERO, *RECOGNIZERS)
        for system in FORMATS
        for n in (QUICK_LENGTHS if is_quick else LENGTHS)
    ]


def recognizer(name: str, n: int) -> tf.Transformer:
    """The recognizer for N = n; the uniform one has no N."""
    length = {} if name == UNIFORM else {"max_length": n}
    model: tf.Transformer = tf.recipe(name).build(weighting="softmax", **length)
    return model


def _rows(case: Row) -> Sequence[Row]:
    what, n, arithmetic = case["what"], case["n"], case["arithmetic"]
    apart = {RECIPROCAL: format_results.reciprocals, EQ_ZERO: format_results.comparisons}
    with warnings.catch_warnings():  # they say that a format is outside a claim
        warnings.simplefilter("ignore")
        if what in apart:
            share = apart[what](n, arithmetic)
            return [{**case, SHARE: share, CERTIFIED: None, FAULT: None}]
        model = recognizer(what, n)
        right = format_results.strings_of(n)
        wrong = [x for x in right if format_results.answer(model, x, arithmetic) is not right[x]]
        found = {
            SHARE: 1 - len(wrong) / len(right),
            CERTIFIED: format_results.is_certified(model, arithmetic),
            FAULT: format_results.fault(model, wrong[0], arithmetic) if wrong else None,
        }
    return [{**case, **found}]


FIRST_WRONG = {
    RECIPROCAL: {"float16": 10_000, "bfloat16": 300, "float8_e4m3": 100, "float8_e5m2": 10},
    EQ_ZERO: {"float16": 300, "float8_e4m3": 100, "float8_e5m2": 300},
    OURS: {"float16": 10_000, "bfloat16": 1000, "float8_e4m3": 100, "float8_e5m2": 100},
    PRINTED: {"float16": 300, "float8_e4m3": 100, "float8_e5m2": 300},
    UNIFORM: {"float16": 10_000, "float8_e4m3": 100, "float8_e5m2": 1000},
}
"""The first of the lengths at which some result is wrong; the others have no wrong result."""


def _is_as_listed(row: Row) -> bool:
    """True if the row has a wrong result exactly where `FIRST_WRONG` lists one."""
    first = FIRST_WRONG[row["what"]].get(row["arithmetic"], inf)
    return bool((row[SHARE] < 1) == (row["n"] >= first))


def _has_fault(row: Row) -> bool:
    """True if a row has wrong answers, and few right ones, exactly where it has a fault."""
    is_wrong, has_none = row[SHARE] < 1, row[FAULT] is None
    is_long = is_wrong and row["what"] == UNIFORM and row["n"] > format_results.DENSE
    return bool((row[SHARE] < 0.99) == is_wrong and (is_wrong != has_none or is_long))


def _formats(rows: Sequence[Row], what: str) -> str:
    """The formats in which more than 99 % are right at every length up to 1000."""
    names = dict.fromkeys(row["arithmetic"] for row in rows)
    short = [row for row in rows if row["n"] <= 1000]
    return ", ".join(
        each
        for each in names
        if all(row[SHARE] > 0.99 for row in select(short, what=what, arithmetic=each))
    )


PRECISION = Study(
    name="precision",
    question="Which format do the recognizers of Dyck-1 need for more than 99 % right answers to "
    "length 1000, how does this go on to n = 100,000, and does 1/i or the comparison fail first?",
    method="For 1/i, y is the mean of [j = 1]. The share is of the positions i for which 1/y, "
    "rounded to a whole number, is i; beyond n = 1000, of 50 positions. For EqZero with ε = 1/(n + "
    "1)², the share is of the multiples kε, |k| ≤ 10, that come out on the right side of ½. The "
    "recognizers have softmax: dyck-1 and, as printed, dyck-1-nonuniform for N = n, and "
    "dyck-1-uniform, whose last numbers are compared with thresholds outside the weights. They "
    "answer strings of Dyck-1, and others that differ from them by a bracket or dip below zero; a "
    "refusal counts as wrong. Beyond n = 1000, float64 and float32 run in the structured engine, "
    "which takes sums in another order, and narrower formats by an evaluation that equals the "
    "reference to the bit. For the fault, the first wrong string is cut to prefixes of 2, 4, 8, … "
    "symbols, and `diagnose` gets the first prefix that is wrong too.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "Where a certificate holds, every answer is right; dyck-1 has one in float64 at all n.",
            lambda rows: (
                all(row[SHARE] == 1 for row in rows if row[CERTIFIED])
                and all(row[CERTIFIED] for row in select(rows, what=OURS, arithmetic="float64"))
            ),
        ),
        Claimed(
            "Some result is wrong for 1/i in float16 from n = 10,000 on, in bfloat16 from 300, in "
            "float8_e4m3 from 100 and in float8_e5m2 from 10; for dyck-1 in float16 from 10,000 "
            "on, in bfloat16 from 1000 and in float8 from 100; for EqZero and dyck-1-nonuniform in "
            "float16 and float8_e5m2 from 300 on and in float8_e4m3 from 100; for dyck-1-uniform "
            "in float16 from 10,000 on, in float8_e5m2 from 1000 and in float8_e4m3 from 100. All "
            "others are right.",
            lambda rows: all(map(_is_as_listed, rows)),
        ),
        Claimed(
            "Where a recognizer has a wrong answer, less than 99 % are right and a fault is named; "
            "but dyck-1-uniform may have no named fault beyond n = 1000, where short prefixes are "
            "right.",
            lambda rows: all(map(_has_fault, (r for r in rows if r["what"] in RECOGNIZERS))),
        ),
    ),
    chart=lambda rows: Chart(
        x="n",
        y="share right, dyck-1-nonuniform",
        curves=curves_of(select(rows, what=PRINTED), ["arithmetic"], "n", SHARE),
        logarithmic="x",
    ),
    seed=0,
    answer=lambda rows: (
        "Formats: more than 99 % of the answers are right to length 1000 in "
        f"{_formats(rows, OURS)} for dyck-1, in {_formats(rows, PRINTED)} for dyck-1-nonuniform "
        f"as printed, and in {_formats(rows, UNIFORM)} for dyck-1-uniform. To n = 100,000, float64 "
        "and float32 are right on every string tried.\n\n"
        "dyck-1-nonuniform: where it fails, the comparison fails, by overflow, since its weight "
        "1/ε = (N + 1)² is too large for the format; in float16 it is from n = 300 on. 1/i fails "
        "first in bfloat16, where the neighbours 1/i and 1/(i + 1) beyond i = 2⁸ round to the same "
        "number; that makes no answer wrong, as no step of the recognizer needs to know i.\n\n"
        "dyck-1-uniform: its second number can be 1/(n + 1)², which underflows in float16 and "
        "float8; bfloat16, with the range of float32, is right on every string tried.\n\n"
        "dyck-1: no weight overflows, but two hidden units of a step differ by less than 1/N. A "
        "format of few bits loses this beside a balance of 1/2: for a large N even on two symbols."
    ),
)
