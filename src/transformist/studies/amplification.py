"""Study amplification: clip and layer norm with ε > 0."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import Any

import transformist as tf
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of

EPSILONS = "1/100000", "1/1000000", "1/1000000000000"
POWERS = 1, 2
"""The least difference is 1/n, or 1/n²."""
DEPTHS, QUICK_DEPTHS = (1, 2, 3), (1, 2)
FOUND = "largest n, found"
FORMULA = "largest n, by the formula"


def _cases(is_quick: bool) -> Sequence[Row]:
    return [
        {"epsilon": epsilon, "difference": f"1/n^{power}", "norms": depth}
        for epsilon in EPSILONS
        for power in POWERS
        for depth in (QUICK_DEPTHS if is_quick else DEPTHS)
    ]


def _amplified(n: int, power: int, epsilon: Fraction, depth: int) -> float:
    """A number of at least 1/n^power after clip and norm, and after further norms, in float64."""
    delta = Fraction(1, n**power)
    # The recipe claims its value for |x| ≥ δ alone. 1/n rounded to float64 may be below δ, and 2/n
    # is not.
    first = tf.recipe("layernorm-sign").build(width=1, delta=delta, norm_epsilon=epsilon)
    further = tf.LayerNorm(gain=[1, 1], epsilon=epsilon)
    z: Any = first([2 * float(delta), -2 * float(delta)])
    for _ in range(depth - 1):
        z = further(z)
    return float(z[0])


def _by_formula(power: int, epsilon: Fraction, depth: int) -> int:
    """The largest n with a result of at least ½, in rational arithmetic.

    A norm maps (x, −x) to x/√(x² + ε), which is at least t where x² ≥ ε t²/(1 − t²). From t = ½
    backwards through the norms follows the least x; then x = 1/n^power gives n.
    """
    # x/√(x² + ε) grows with x, so each norm has one least input; only squares are computed, since
    # the roots are irrational.
    square = Fraction(1, 4)
    for _ in range(depth):
        square = epsilon * square / (1 - square)
    most = isqrt(int(1 / square))  # n^power ≤ 1/x
    return most if power == 1 else isqrt(most)


def _rows(case: Row) -> Sequence[Row]:
    power, epsilon = int(case["difference"][-1]), Fraction(case["epsilon"])
    depth = case["norms"]

    def is_there(n: int) -> bool:
        return _amplified(n, power, epsilon, depth) >= 0.5

    # The result falls with n, so bisection finds the only change. In float64 the result is off by
    # a few u of itself, and it changes by about 1/n of itself from n to n + 1: n is exact below
    # about 10¹⁵, and beyond that within a few parts in 10¹⁵.
    low, high = 1, 2
    while is_there(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_there(middle) else (low, middle)
    at = _amplified(low, power, epsilon, depth)
    return [{**case, FOUND: low, FORMULA: _by_formula(power, epsilon, depth), "result there": at}]


def _of(rows: Sequence[Row], epsilon: str, depth: int) -> list[int]:
    return [row[FOUND] for row in rows if (row["epsilon"], row["norms"]) == (epsilon, depth)]


def _chart(rows: Sequence[Row]) -> Chart:
    curves = curves_of(rows, ["difference", "epsilon"], "norms", FOUND)
    return Chart(x="norms", y="largest n with a result of ½", curves=curves, logarithmic="y")


AMPLIFICATION = Study(
    name="amplification",
    question="Section 6.4 of the Cookbook amplifies small differences to ±1 by clipping to ±δ and "
    "a layer norm with ε = 0. Does this fail with ε > 0, as practical architectures have it?",
    method="The recipe layernorm-sign is built with δ equal to the least difference, 1/n or 1/n², "
    "and evaluated in float64 on (2δ, −2δ), which gives δ/√(δ² + ε). Further layer norms of the "
    "same ε follow. The largest n at which the result is at least ½, so that a fixed threshold "
    "still finds it, is found by bisection. The formula gives this n in rational arithmetic.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "With ε = 1/100000 and one norm, the largest n is 547 for 1/n and 23 for 1/n².",
            lambda rows: _of(rows, EPSILONS[0], 1) == [547, 23],
        ),
        Claimed(
            "The largest n found is that of the formula within a part in 10¹², in every row.",
            lambda rows: all(abs(row[FOUND] / row[FORMULA] - 1) < 1e-12 for row in rows),
        ),
        # δ/√(δ² + ε) is at least ½ up to n² = 3/ε. A second norm needs x² ≥ ε/3 from the first, and
        # δ² ≥ ε²/(3 − ε) gives that: n is then about √3/ε, which is n²/√3 for the n before.
        Claimed(
            "For 1/n, the largest n with two norms exceeds half the square of that with one.",
            lambda rows: all(
                _of(rows, each, 2)[0] > _of(rows, each, 1)[0] ** 2 / 2 for each in EPSILONS
            ),
        ),
    ),
    chart=_chart,
    answer=lambda rows: (
        "One norm fails from a length on that depends on ε: with ε = 10⁻⁵, "
        f"differences of 1/n are lost beyond n = {_of(rows, EPSILONS[0], 1)[0]:,} and those of "
        f"1/n² beyond n = {_of(rows, EPSILONS[0], 1)[1]:,}. Depth mends it: after two norms these "
        f"are {_of(rows, EPSILONS[0], 2)[0]:,} and {_of(rows, EPSILONS[0], 2)[1]:,}, as each norm "
        "multiplies a small difference by about 1/√ε. No fixed number of norms is enough for "
        "every n."
    ),
)
