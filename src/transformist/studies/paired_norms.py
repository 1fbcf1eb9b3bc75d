"""Study norms: layer norms over pairs (x, −x), and over a part of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import transformist as tf
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of, select

PAIRS, POSITIONS = 3, 4
"""Each of four positions holds three numbers x, and −x after them."""

PLACES, GAINS, EPSILONS = ("pre", "post"), ("1", "equal", "random"), ("0", "1/100000", "1/100")
LAYERS, QUICK_LAYERS = (2, 3, 4, 5, 6), (2, 6)
SCALES = 1, 10
"""Magnitudes of the distractors; the numbers of the computation are about 1."""

NORMS = WHOLE, SELECTIVE = "whole stream", "W_N"
FACTORS, SPREAD, LEAKAGE = "factor at each position", "spread of the factor", "leakage"


def _cases(is_quick: bool) -> Sequence[Row]:
    pairs = [
        {"norm": place, "gain": gain, "epsilon": epsilon, "layers": 1, "distractors": None}
        for place in PLACES
        for gain in GAINS
        for epsilon in EPSILONS
    ]
    beside = [
        {"norm": norm, "gain": "1", "epsilon": "1/100000", "layers": layers, "distractors": scale}
        for norm in NORMS
        for scale in SCALES
        for layers in (QUICK_LAYERS if is_quick else LAYERS)
    ]
    return pairs + beside


def _rows(case: Row) -> Sequence[Row]:
    if case["norm"] in NORMS:
        return [{**case, FACTORS: None, SPREAD: None, LEAKAGE: _leakage(case)}]
    factors = _factors(case)
    spread = float((factors.max(axis=1) / factors.min(axis=1) - 1).max())
    return [{**case, FACTORS: factors.mean(axis=1).tolist(), SPREAD: spread, LEAKAGE: None}]


def _identity(width: int) -> tf.FeedForward:
    """The identity ReLU(z) − ReLU(−z)."""
    unit = np.eye(width)
    return tf.FeedForward(W_1=np.concatenate([unit, -unit]), W_2=np.hstack([unit, -unit]))


def _factors(case: Row) -> Any:
    """Factors by which a sublayer with the identity multiplies each coordinate."""
    rnd, width = np.random.default_rng(0), 2 * PAIRS
    # Magnitudes from ½ to 2, larger at each position, so that no factor is a quotient by about 0.
    x = rnd.uniform(0.5, 2, (POSITIONS, PAIRS)) * rnd.choice([-1, 1], (POSITIONS, PAIRS))
    z = np.hstack([x, -x]) * np.arange(1, POSITIONS + 1)[:, None]
    drawn = rnd.uniform(0.5, 2, width)
    gain = {"1": np.ones(width), "equal": np.full(width, drawn[0]), "random": drawn}[case["gain"]]
    norm = tf.LayerNorm(gain=gain, epsilon=case["epsilon"])
    if case["norm"] == "pre":  # f(norm(z)) + z, where f passes on what it reads
        return (tf.Sublayer(_identity(width), pre_norm=norm)(z) - z) / z
    return tf.Sublayer(_identity(width), post_norm=norm)(z) / (2 * z)  # norm(f(z) + z)


def _leakage(case: Row) -> float:
    """Largest change of a computation on (a, b, −a, −b) when the distractors are doubled."""
    # Each sublayer adds (b, −a, −b, a)/2 of what it reads to these numbers: they stay pairs.
    turn = np.zeros((8, 8))
    turn[:4, :4] = np.array([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1], [0, 0, -1, 0]]) / 2
    network = tf.FeedForward(
        W_1=np.concatenate([np.eye(8), -np.eye(8)]), W_2=np.hstack([turn, -turn])
    )
    norm = tf.recipe("selective-layernorm").build(width=8, norm_epsilon=case["epsilon"])
    if case["norm"] == WHOLE:
        norm = tf.LayerNorm(gain=[1] * 8, epsilon=case["epsilon"])
    rnd = np.random.default_rng(0)
    numbers, distractors = rnd.uniform(0.5, 2, 2), rnd.uniform(0.5, 2, 2) * case["distractors"]
    results = []
    for d in (distractors, 2 * distractors):
        z = np.concatenate([numbers, -numbers, d, -d])[None]
        for _ in range(case["layers"]):
            z = tf.Sublayer(network, pre_norm=norm)(z)
        results.append(z[0, :4])
    return float(np.abs(results[0] - results[1]).max())


def _leaks(rows: Sequence[Row], norm: str) -> list[float]:
    return [row[LEAKAGE] for row in select(rows, norm=norm)]


def _pairs(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["norm"] in PLACES]


NORM_STUDY = Study(
    name="norms",
    question="Does a layer norm multiply all of a pair representation (x, −x) by one factor, and "
    "does W_N keep a computation apart from the rest of the stream, over several layers?",
    method="Vectors (x, −x) with three numbers x at four positions pass through a sublayer that "
    "passes on what it reads, with a pre-norm or a post-norm; its gain γ is 1, one number, or "
    "random. The factor of each coordinate is measured, and its spread is the largest quotient of "
    "two factors at a position, less 1. Then a computation on (a, b, −a, −b), in 2 to 6 layers "
    "with pre-norm, stands beside four distractors, numbers that it does not use. Its leakage is "
    "the largest change of its result when those are doubled, in float64, where the norm reads the "
    "whole stream and where W_N selects the four.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "The factor is the same for all coordinates of a position, within 10⁻¹⁴ of it, if and "
            "only if the gain is.",
            lambda rows: all(
                (row[SPREAD] < 1e-14) == (row["gain"] != "random") for row in _pairs(rows)
            ),
        ),
        Claimed(
            "The factor differs from position to position.",
            lambda rows: all(
                max(row[FACTORS]) > 1.1 * min(row[FACTORS]) > 0 for row in _pairs(rows)
            ),
        ),
        Claimed(
            "With W_N the leakage is exactly 0 in every row.",
            lambda rows: {*_leaks(rows, SELECTIVE)} == {0},
        ),
        Claimed(
            "Without W_N other distractors change the result by more than 1/20 in every row.",
            lambda rows: min(_leaks(rows, WHOLE)) > 0.05,
        ),
    ),
    chart=lambda rows: Chart(
        x="layers",
        y="leakage",
        curves=curves_of(rows, ["norm", "distractors"], "layers", LEAKAGE),
    ),
    seed=0,
    answer=lambda rows: (
        "A norm multiplies a pair representation by one factor if its gain is the same everywhere; "
        "a random gain gives every number a factor of its own. Even then the factor depends on the "
        "position, as it is smaller for a larger vector there, so numbers of two positions "
        "cannot be compared by magnitude. Over the whole stream a norm mixes all of it: doubled "
        f"distractors move the result by {min(_leaks(rows, WHOLE)):.2g} to "
        f"{max(_leaks(rows, WHOLE)):.2g}. With W_N nothing leaks, in 2 to 6 layers."
    ),
)
