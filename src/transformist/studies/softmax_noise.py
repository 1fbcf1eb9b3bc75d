"""Study softmax-noise: errors of soft lookups in formats, bounded with rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction

import numpy as np

import transformist as tf
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of

FORMATS = "float64", "float32", "float16", "bfloat16"
SHARPNESSES, QUICK_SHARPNESSES = (1, 4, 16, 64), (4, 64)
"""1/τ of scores: powers of two, so that the product with a query is exact."""
LENGTHS, QUICK_LENGTHS = (16, 64, 256), (16, 64)
LOOKUPS = "quadratic", "one-hot"
IDEAL, BOUND, FOUND = "bound without rounding", "bound with rounding", "error found"


def _cases(is_quick: bool) -> Sequence[Row]:
    return [
        {"lookup": lookup, "n": n, "1/τ": sharpness, "arithmetic": arithmetic}
        for lookup in LOOKUPS
        for n in (QUICK_LENGTHS if is_quick else LENGTHS)
        for sharpness in (QUICK_SHARPNESSES if is_quick else SHARPNESSES)
        for arithmetic in FORMATS
    ]


def _lookup(name: str, n: int) -> tuple[tf.Attention, list[list[int]], int, int]:
    """The hard head, the codes of query and key for each position, d_key, and the largest score.

    The score is a dot product, which is at most q² = n² for the quadratic lookup, and 1 for one-hot
    vectors; the partial sums 2qj are at most 2n².
    """
    places = range(1, n + 1)
    if name == "quadratic":
        codes = [[n + 1 - i, 1, i, i * i] for i in places]
        return tf.recipe("quadratic-lookup").build(), codes, 2, 2 * n * n
    units = np.eye(n, dtype=int).tolist()
    codes = [[*units[n - i], *units[i - 1]] for i in places]
    return tf.recipe("one-hot-lookup").build(max_length=n), codes, n, 1


def _rows(case: Row) -> Sequence[Row]:
    n, arithmetic = case["n"], case["arithmetic"]
    head, codes, d_key, largest = _lookup(case["lookup"], n)
    # The dot product of the query with the best key exceeds the next by 1: the sharpness is also
    # the gap of the dot products, and over √d_key that of the scores. The root is rounded up.
    root = Fraction(math.isqrt(d_key * 10**18) + 1, 10**9)
    gap, sharpness = case["1/τ"] / root, case["1/τ"]
    values = [i % 2 for i in range(n)]
    vectors = [[*code, v] for code, v in zip(codes, values, strict=True)]
    found = None
    with suppress(tf.TransformistError):  # scores that overflow the format
        got = np.asarray(tf.soften(head, sharpness)(vectors, arithmetic), np.float64)[:, 0]
        found = float(np.abs(got - values[::-1]).max())
    # Values are 0 or 1, so half of the L1 distance of the weights bounds the error: n e^(−γ/τ).
    ideal = min(tf.bounds.printed_remainder(gap, n) / 2, 1.0)
    share = Fraction(tf.bounds.softmax_remainder(gap, n)) / 2
    scores = float(largest * sharpness / math.sqrt(d_key))
    rounding = tf.bounds.softmax_error(n, scores, share / (1 - share), arithmetic)
    bound = ideal + rounding if math.isfinite(rounding) else None
    return [{**case, IDEAL: ideal, BOUND: bound, FOUND: found}]


def _above(rows: Sequence[Row], limit: str) -> list[Row]:
    """The rows whose error exceeds a bound that they have."""
    both = [row for row in rows if None not in (row[FOUND], row[limit])]
    return [row for row in both if row[FOUND] > row[limit]]


def _unbounded(rows: Sequence[Row]) -> set[str]:
    return {row["arithmetic"] for row in rows if row[BOUND] is None}


def _bfloat16(rows: Sequence[Row], column: str) -> list[tuple[int, float]]:
    wanted = "one-hot", 16, "bfloat16"
    return [
        (row["1/τ"], row[column])
        for row in rows
        if (row["lookup"], row["n"], row["arithmetic"]) == wanted
    ]


SOFTMAX_NOISE = Study(
    name="softmax-noise",
    question="The bound 2n e^(−γ/τ) of softmax assumes ideal arithmetic. Do formats "
    "exceed it, and is there a bound with rounding that they never exceed?",
    method="The quadratic and the one-hot lookup are softened with 1/τ a power of two, and every "
    "position is asked for once. Values are 0 and 1 in turn, for which the bound without rounding "
    "is n e^(−γ/τ), γ being the gap of scores, or 1 where that is less. The bound with rounding "
    "adds bounds.softmax_error, which is derived from n, the largest score and the format; it is "
    "missing where differences of scores may be off by more than 1. The error found is the largest "
    "over all positions; it is missing where scores overflow the format.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "No error exceeds the bound with rounding, which every row of the one-hot lookup has.",
            lambda rows: (
                not _above(rows, BOUND)
                and None not in [row[BOUND] for row in rows if row["lookup"] == "one-hot"]
            ),
        ),
        Claimed(
            "The bound with rounding is above the bound without.",
            lambda rows: all(row[BOUND] is None or row[BOUND] > row[IDEAL] > 0 for row in rows),
        ),
        Claimed(
            "Errors above the bound without rounding occur, and only in rows whose scores are too "
            "large for a bound with rounding; none exceeds 1.",
            lambda rows: (
                bool(_above(rows, IDEAL))
                and all(row[BOUND] is None for row in _above(rows, IDEAL))
                and all(row[FOUND] is None or row[FOUND] <= 1 for row in rows)
            ),
        ),
    ),
    chart=lambda rows: Chart(
        x="1/τ",
        y="error at n = 16",
        curves=curves_of(
            [row for row in rows if (row["lookup"], row["n"]) == ("one-hot", 16)],
            ["arithmetic"],
            "1/τ",
            FOUND,
        )
        | {"bound, bfloat16": _bfloat16(rows, BOUND), "bound, ideal": _bfloat16(rows, IDEAL)},
        logarithmic="xy",
    ),
    answer=lambda rows: (
        f"Yes to both. In {len(_above(rows, IDEAL))} of {len(rows)} rows a format exceeds the "
        "bound without rounding, all of them in "
        f"{', '.join(sorted({row['arithmetic'] for row in _above(rows, IDEAL)}))}: scores of the "
        "quadratic lookup grow with n², and their rounding moves the difference of two scores by "
        "more than the gap. The bound with rounding is never exceeded. It is missing for some rows "
        f"in {', '.join(sorted(_unbounded(rows)))}, where it would say nothing; scores of the "
        "one-hot lookup stay below 1/τ, and its bound holds in every format."
    ),
)
