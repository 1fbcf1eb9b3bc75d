"""Study arithmetic: min, max and add of random numbers in every format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import transformist as tf
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of, select

BITS = {
    "float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3": 4, "float8_e5m2": 3,
}  # fmt: skip
"""The precision of each format, in bits; u is 2^−bits."""

EXACT_BITS = 24
"""Integers to 2²³, for `exact`."""

RIGHT: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "min": min,
    "max": max,
    "add": lambda x, y: x + y,
}
# The share of 1,000 pairs has a standard deviation of 1.2 %, √(0.18 · 0.82/1000), and of 1.6 % for
# add: the limits are about three of these from 18 % and 54 %.
INEXACT = {"min": (0.14, 0.22), "max": (0.14, 0.22), "add": (0.49, 0.59)}
KINDS = "integers", "dyadics", "normals"
PAIRS, QUICK_PAIRS = 5000, 1000


def _cases(is_quick: bool) -> Sequence[Row]:
    pairs = QUICK_PAIRS if is_quick else PAIRS
    return [
        {"recipe": name, "numbers": kind, "arithmetic": arithmetic, "pairs": pairs}
        for name in RIGHT
        for kind in KINDS
        for arithmetic in (*BITS, "exact")
    ]


def _drawn(kind: str, arithmetic: str, pairs: int) -> Any:
    """Pairs of numbers of the format, as float64."""
    rnd, bits = np.random.default_rng(0), BITS.get(arithmetic, EXACT_BITS)
    if kind == "normals":
        x = rnd.normal(size=(pairs, 2))
        if arithmetic in ("float64", "exact"):
            return x
        # ReLU(x) − ReLU(−x) in the format: the drawn numbers, rounded to the format once.
        identity = tf.FeedForward(W_1=[[1], [-1]], W_2=[[1, -1]])
        return np.asarray(identity(x[..., None], arithmetic), np.float64)[..., 0]
    # Sums and differences of two integers to 2^(bits − 1) are at most 2^bits: the format has them.
    whole = rnd.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (pairs, 2), endpoint=True)
    return whole / (16 if kind == "dyadics" else 1)


def _rows(case: Row) -> Sequence[Row]:
    x = _drawn(case["numbers"], case["arithmetic"], case["pairs"])
    got = tf.recipe(case["recipe"]).build()(x, case["arithmetic"])
    if case["arithmetic"] == "exact":
        found = [Fraction(value) for (value,) in got.tolist()]
    else:
        found = [Fraction(float(each)) for each in got[:, 0]]
    # Rational arithmetic decides: in float64 the comparison itself would round.
    exact, largest = 0, Fraction(0)
    unit = Fraction(1, 2 ** BITS.get(case["arithmetic"], EXACT_BITS))
    for (one, other), value in zip(x.tolist(), found, strict=True):
        a, b = Fraction(one), Fraction(other)
        error = abs(value - RIGHT[case["recipe"]](a, b))
        exact += not error
        if error:
            largest = max(largest, error / (unit * max(abs(a), abs(b))))
    share = exact / case["pairs"]
    return [{**case, "share exact": share, "largest error / u max(|x|, |y|)": float(largest)}]


def _all_exact(rows: Sequence[Row], which: Callable[[Row], bool]) -> bool:
    found = [row["share exact"] for row in rows if which(row)]
    return bool(found) and set(found) == {1.0}


def _inexact(rows: Sequence[Row], name: str, arithmetic: str = "float64") -> float:
    (row,) = select(rows, recipe=name, numbers="normals", arithmetic=arithmetic)
    return 1 - float(row["share exact"])


def _largest(rows: Sequence[Row], names: tuple[str, ...]) -> float:
    return max(
        float(row["largest error / u max(|x|, |y|)"]) for row in rows if row["recipe"] in names
    )


def _chart(rows: Sequence[Row]) -> Chart:
    curves = curves_of(select(rows, numbers="normals"), ["recipe"], "arithmetic", "share exact")
    return Chart(x="arithmetic", y="share of exact results on normals", curves=curves)


ARITHMETIC = Study(
    name="arithmetic",
    question="Do the networks for min, max and add (sections 4.4 and 4.5 of the Cookbook) give the "
    "expected values with zero error?",
    method="Pairs of integers, of integers divided by 16, and of normal numbers are drawn with "
    "seed 0. The integers are at most 2^(p − 1), p being the precision of the format, so that the "
    "format has their sums and differences; normal numbers are rounded to the format first. Each "
    "recipe computes in each format and in exact arithmetic. The result is compared with that of "
    "rational arithmetic, and the error is given in units of u max(|x|, |y|), where u = 2^−p.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "On integers and dyadics whose sums and differences the format has, every result is "
            "exact.",
            lambda rows: _all_exact(rows, lambda row: row["numbers"] != "normals"),
        ),
        Claimed(
            "In exact arithmetic every result is exact.",
            lambda rows: _all_exact(rows, lambda row: row["arithmetic"] == "exact"),
        ),
        Claimed(
            "In every float format, min and max of normal numbers are inexact for 14 % to 22 % of "
            "the pairs, and add for 49 % to 59 %.",
            lambda rows: all(
                low <= _inexact(rows, name, each) <= high
                for each in BITS
                for name, (low, high) in INEXACT.items()
            ),
        ),
        # The recipes claim 2u|x − y| ≤ 4u max(|x|, |y|) for min and max, and u|x + y| ≤
        # 2u max(|x|, |y|) for add. In formats whose sums are in float32, min and max have u + 2⁻²³
        # in place of u; there u is at least 2⁻¹¹, so that 2⁻²³ is at most u/2¹².
        Claimed(
            "No error of min or max exceeds 4.01 u max(|x|, |y|), and none of add exceeds "
            "2 u max(|x|, |y|).",
            lambda rows: _largest(rows, ("min", "max")) <= 4.01 and _largest(rows, ("add",)) <= 2,
        ),
    ),
    chart=_chart,
    seed=0,
    answer=lambda rows: (
        "Only where the format has the difference x − y, on which min and max "
        "rest, or the sum that add gives. "
        f"In float64, {_inexact(rows, 'min'):.1%} of the minima and "
        f"{_inexact(rows, 'max'):.1%} of the maxima of normal numbers are not exact, although the "
        "right value is one of the two numbers given. The error stays within the bound that the "
        "recipes claim. Integers and dyadics are exact in every format that has their sums and "
        "differences."
    ),
)
