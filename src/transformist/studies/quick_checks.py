"""Study quick-checks: three questions on the basics, answered by weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import transformist as tf
from transformist.studies.experiment import Chart, Claimed, Row, Study

POINTS = [-3, -1, 0, 0.5, 2]
SCORES = [5, 4, 1]
CHECKS = "absolute value", "softmax", "overwriting"


def _cases(_: bool) -> Sequence[Row]:
    return [{"check": each} for each in CHECKS]


def _rows(case: Row) -> Sequence[Row]:
    return {CHECKS[0]: _absolute, CHECKS[1]: _softmax, CHECKS[2]: _overwriting}[case["check"]]()


def _row(check: str, what: str, given: list[Any], found: list[float]) -> Row:
    return {"check": check, "model": what, "given": given, "found": found}


def _absolute() -> Sequence[Row]:
    """ReLU(x) + ReLU(−x), and each of its two hidden units alone."""
    units = {"ReLU(x) + ReLU(−x)": [1, -1], "ReLU(x) alone": [1], "ReLU(−x) alone": [-1]}
    rows = []
    for what, signs in units.items():
        network = tf.FeedForward(W_1=[[sign] for sign in signs], W_2=[[1] * len(signs)])
        found = [float(network([x])[0]) for x in POINTS]
        rows.append(_row(CHECKS[0], what, POINTS, found))
    return rows


def _softmax() -> Sequence[Row]:
    """The weights of a head: key j has its score, and as its value the unit vector eⱼ."""
    rows = []
    for factor in (1, 10):
        head = tf.Attention(
            W_Q=[[0, 0, 0, 0, factor]],
            W_K=[[1, 0, 0, 0, 0]],
            W_V=[[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]],
        )
        # The last coordinate is 1 in every vector: the query reads it, so that query times key is
        # the score, and d_key = 1 leaves it as it is.
        vectors = [[s, *(int(k == j) for k in range(3)), 1] for j, s in enumerate(SCORES)]
        found = [float(weight) for weight in head(vectors)[0]]
        what = "head with these scores"
        rows.append(_row(CHECKS[1], what, [factor * s for s in SCORES], found))
    return rows


def _overwriting() -> Sequence[Row]:
    """Stream (a, b, sum): one sublayer writes 3, one writes 4, and a third adds up a and b."""
    reads = tf.FeedForward(W_1=[[1, 0, 0], [0, 1, 0]], W_2=[[0, 0], [0, 0], [1, 1]])

    def adds(slot: int, value: int, old: int = 0) -> tf.FeedForward:
        """A network that adds a constant to a slot, less `old` times what the slot holds."""
        unit = [int(k == slot) for k in range(3)]
        W_2 = [[-old * each] for each in unit]
        return tf.FeedForward(W_1=[unit], W_2=W_2, b_2=[value * each for each in unit])

    slots = ("a", "b", "sum")
    ways = {
        "4 is written to a fresh slot": adds(1, 4),
        "4 is added to the slot of 3": adds(0, 4),
        "4 replaces 3, which the network subtracts": adds(0, 4, old=1),
    }
    rows = []
    for what, second in ways.items():
        layers = tuple(tf.Layer((), each) for each in (adds(0, 3), second, reads))
        stack = tf.LayerStack(tf.Stream(slots), slots, layers, slots)
        found = [float(each) for each in stack([[0, 0, 0]])[0]]
        rows.append(_row(CHECKS[2], what, [0, 0, 0], found))
    return rows


def _found(rows: Sequence[Row], check: str) -> list[list[float]]:
    return [row["found"] for row in rows if row["check"] == check]


def _is_absolute(rows: Sequence[Row]) -> bool:
    sides = [max(x, 0) for x in POINTS], [max(-x, 0) for x in POINTS]
    return _found(rows, CHECKS[0]) == [[abs(x) for x in POINTS], *sides]


def _is_softmax(rows: Sequence[Row]) -> bool:
    once, tenfold = _found(rows, CHECKS[1])
    # e⁵, e⁴ and e¹ are 0.7214, 0.2654 and 0.0132 of their sum. After the factor the others have
    # e⁻¹⁰ = 4.54 · 10⁻⁵ and e⁻⁴⁰ = 4 · 10⁻¹⁸, the last of which the claim rounds to 0.
    near = zip(once + tenfold, (0.721, 0.265, 0.013, 0.99995, 4.5e-5, 0), strict=True)
    return all(math.isclose(x, y, rel_tol=0.02, abs_tol=1e-12) for x, y in near)


def _chart(rows: Sequence[Row]) -> Chart:
    units = [row for row in rows if row["check"] == CHECKS[0]]
    points = {row["model"]: list(zip(row["given"], row["found"], strict=True)) for row in units}
    return Chart(x="x", y="output", curves=points)


QUICK_CHECKS = Study(
    name="quick-checks",
    question="Why does |x| need two hidden units? What does a factor of 10 do to the softmax of "
    "5, 4, 1? Can a third layer read what two layers wrote, if the second used the same dimension?",
    method="Each question is a model of a few weights. A network with two hidden units, and with "
    "either one, is evaluated at five points. A head has the scores as keys and unit vectors as "
    "values, so that its output is its weights. Three sublayers write 3, write 4 and add up what "
    "the dimensions a and b of the stream (a, b, sum) hold. All runs are in float64.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "Both units give |x| at every point, and either one alone gives 0 on one side.",
            _is_absolute,
        ),
        Claimed(
            "The weights are 0.721, 0.265, 0.013, and after the factor 0.99995, 4.5e-05, 0.",
            _is_softmax,
        ),
        Claimed(
            "Fresh dimensions leave 3 and 4 to read; in one dimension 7 is left, or 4 alone.",
            lambda rows: _found(rows, CHECKS[2]) == [[3, 4, 7], [7, 0, 7], [4, 0, 4]],
        ),
    ),
    chart=_chart,
    answer=lambda _: (
        "A hidden unit is 0 on one side, so a network gives |x| with one for each side. The factor "
        "turns gaps of 1 and 4 into 10 and 40, so nearly all weight goes to the best key. A "
        "sublayer adds to the stream: in a used dimension the values are summed, and a value is "
        "replaced only if the network subtracts it, after which no layer can read it."
    ),
)
