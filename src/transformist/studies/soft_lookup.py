"""Study soft-lookup: the quadratic lookup by softmax, beside two error bounds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import transformist as tf
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of

LENGTHS, QUICK_LENGTHS = (16, 64, 256, 1024), (16, 64)
SHARPNESSES = "1", "2", "5", "10", "20"
"""Factors 1/τ of W_Q."""
OWN = "recipe"
"""The sharpness of quadratic-lookup-soft, derived for an error of 1/4 of values from 0 to 1."""

ERROR, PRINTED, SCORES = "error at most", "2n e^(−γ/τ), γ = 1", "2n e^(−γ/τ), γ = 1/√2"
ABOVE = "error above γ = 1"


def _cases(is_quick: bool) -> Sequence[Row]:
    return [
        {"n": n, "weights": each}
        for n in (QUICK_LENGTHS if is_quick else LENGTHS)
        for each in (*SHARPNESSES, OWN)
    ]


def _sharpness(weights: str) -> Fraction:
    """1/τ."""
    return tf.bounds.quadratic_sharpness("1/4") if weights == OWN else Fraction(weights)


def _rows(case: Row) -> Sequence[Row]:
    n = case["n"]
    sharpness = _sharpness(case["weights"])
    head = tf.soften(tf.recipe("quadratic-lookup").build(), sharpness)
    # Position i asks for position n + 1 − i, so that every position is asked for. The neighbours of
    # each position hold the opposite value: they have nearly all of the weight that goes elsewhere,
    # and each of them moves the result by 2, the most that values of magnitude 1 admit.
    values = [(-1) ** i for i in range(1, n + 1)]
    balls = head([[n + 1 - i, 1, i, i * i, values[i - 1]] for i in range(1, n + 1)], "interval")
    pairs = zip(balls.values, reversed(values), strict=True)
    found = [abs(ball - v) for (ball,), v in pairs]
    error = max(float(each.upper()) for each in found)
    # printed_remainder(g, n) is 2n e^−g, rounded up by 10⁻¹² of it. With a root below √2 the gap is
    # too large and the bound too small, by at least 10⁻¹⁰ of it: an error below it is below the
    # bound. With γ = 1 the bound is too large: an error above it is above the bound.
    root = Fraction(1_414_213_562, 10**9)
    printed, scores = (tf.bounds.printed_remainder(g, n) for g in (sharpness, sharpness / root))
    # An upper end may lie above the bound where the error does not: the lower end decides.
    least = max(float(each.lower()) for each in found)
    return [
        {
            **case,
            "1/τ": float(sharpness),
            ERROR: error,
            PRINTED: printed,
            SCORES: scores,
            ABOVE: least > printed,
        }
    ]


def _above(rows: Sequence[Row]) -> list[tuple[int, str]]:
    """n and the weights of each row whose error exceeds the printed bound."""
    return [(row["n"], row["weights"]) for row in rows if row[ABOVE]]


def _grows(rows: Sequence[Row]) -> float:
    """The largest ratio of two errors with the same weights, at different lengths."""
    errors = curves_of(rows, ["weights"], "n", ERROR).values()
    return max(float(max(e for _, e in each) / min(e for _, e in each)) for each in errors)


SOFT_LOOKUP = Study(
    name="soft-lookup",
    question="Quadratic lookup (section 5.3.4 of the Cookbook) by softmax: is its error below "
    "2n e^(−γ/τ) with the printed gap γ = 1, and with the gap of scores, γ = 1/√2, at n = 16, 64, "
    "256 and 1024?",
    method="The recipe quadratic-lookup is softened: W_Q is multiplied by 1/τ. The row `recipe` "
    "has the 1/τ of quadratic-lookup-soft, derived for an error of at most 1/4 of values from 0 to "
    "1. Values are −1 and 1 in turn, and every position is asked for once. All is computed in "
    "interval arithmetic, and the error is the upper end of the largest |c − v|. Scores are "
    "divided by √d_key = √2 (Definition 2.3), which makes the gap 1/√2.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "With γ = 1/√2 the error is below the bound in every row.",
            lambda rows: all(0 < row[ERROR] <= row[SCORES] for row in rows),
        ),
        # The error is about 4 e^(−1/(τ√2)), whatever n is, and the bound 2n e^(−1/τ): the error is
        # larger where 1/τ (1 − 1/√2) > ln(n/2). At n = 16 that is 7.1, at n = 64 11.8.
        Claimed(
            "With γ = 1 the error is above the bound at n = 16 with 1/τ = 10 and 20, and at n = 64 "
            "with 1/τ = 20.",
            lambda rows: (
                [each for each in _above(rows) if each[0] <= 64]
                == [(16, "10"), (16, "20"), (64, "20")]
            ),
        ),
        Claimed(
            "With γ = 1 a row is marked as above the bound if and only if its error is.",
            lambda rows: all(row[ABOVE] == (row[ERROR] > row[PRINTED]) for row in rows),
        ),
        Claimed(
            "With the sharpness of the recipe, the error is at most 1/2, twice that of values from "
            "0 to 1.",
            lambda rows: all(row[ERROR] <= 0.5 for row in rows if row["weights"] == OWN),
        ),
        Claimed(
            "With the same weights, the error at any two lengths differs by less than 10⁻⁶ of it.",
            lambda rows: 1 <= _grows(rows) < 1 + 1e-6,
        ),
    ),
    chart=lambda rows: Chart(
        x="1/τ",
        y="error, and its bounds at n = 16",
        curves={
            name: [
                (row["1/τ"], row[name]) for row in rows if row["n"] == 16 and row["weights"] != OWN
            ]
            for name in (ERROR, PRINTED, SCORES)
        },
        logarithmic="y",
    ),
    answer=lambda rows: (
        "With the gap of scores, 1/√2, it always is. With the printed gap, which is that of dot "
        "products, it is not: the error exceeds the bound at (n, 1/τ) = "
        + ", ".join(f"({n}, {weights})" for n, weights in _above(rows))
        + ". The error does not depend on n, as the score of a position falls with the square of "
        "its distance from the one asked for; so both bounds are far too large for long inputs."
    ),
)
