"""Study one-representation: Booleans and integers through networks and norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from transformist.studies import coded_values
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of

ARITIES, QUICK_ARITIES = (1, 2, 3), (1, 2)
NUMBERS, QUICK_NUMBERS = (4, 16, 64, 256), (4, 16)
CODES = "bits as pairs", "points of a circle"
DISTANCE, BOUND, MOVED, WRONG = (
    "least distance",
    "bound for every code",
    "moved by the norm",
    "wrong",
)


def _cases(is_quick: bool) -> Sequence[Row]:
    arities = QUICK_ARITIES if is_quick else ARITIES
    numbers = QUICK_NUMBERS if is_quick else NUMBERS
    pairs = [{"code": "pair", "arguments": each, "N": 2} for each in arities]
    return pairs + [{"code": each, "arguments": 1, "N": N} for each in CODES for N in numbers]


def _rows(case: Row) -> Sequence[Row]:
    code, N = case["code"], case["N"]
    code_of = coded_values.on_circle if code == CODES[1] else coded_values.pairs
    vectors = [code_of(N, k) for k in range(N)]
    if code == "pair":
        functions, moved, wrong = coded_values.every_function(case["arguments"])
    else:
        functions, (moved, wrong) = 1, coded_values.there_and_back(vectors)
    width = len(vectors[0])
    squares = (sum(x * x for x in coded_values.minus(*two)) for two in combinations(vectors, 2))
    found = {DISTANCE: math.sqrt(min(squares)), BOUND: coded_values.packing(N, width)}
    return [
        {**case, "functions": functions, "width": width, **found, MOVED: float(moved), WRONG: wrong}
    ]


def _keeps_its_distance(row: Row) -> bool:
    """True if bits keep √8 at a width that grows, and points of a circle come closer at width 4."""
    width, distance, N = row["width"], row[DISTANCE], row["N"]
    if row["code"] == CODES[1]:
        return bool(width == 4 and distance < 4 * math.pi / N)
    return bool(width == 2 * (N - 1).bit_length() and math.isclose(distance, math.sqrt(8)))


def _chart(rows: Sequence[Row]) -> Chart:
    curves = curves_of([row for row in rows if row["code"] in CODES], ["code"], "N", DISTANCE)
    circle = [row for row in rows if row["code"] == CODES[1]]
    curves["bound for width 4"] = [(row["N"], row[BOUND]) for row in circle]
    return Chart(x="N", y=DISTANCE, curves=curves, logarithmic="xy")


ONE_REPRESENTATION = Study(
    name="one-representation",
    question="Section 3.1 of the Cookbook finds no representation of discrete values that networks "
    "and norms can both work on. Is there one for Booleans, and one for integers?",
    method="For Booleans, networks of all functions of up to three arguments are built that take "
    "pairs of Table 4 and give a pair. For integers from 0 to N − 1, a network interpolates the "
    "code vectors, and the vector with the largest score among all is read back. A norm with ε = 0 "
    "follows each network. Every input is evaluated, in rationals. The least distance of a code is "
    "that of its two nearest vectors; the bound for every code is the largest least distance "
    "that the theorem in the answer allows N vectors of this width.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "Every function is right on every input, and the norm moves no result.",
            lambda rows: all(row[WRONG] == row[MOVED] == 0 for row in rows),
        ),
        Claimed(
            "No least distance exceeds the bound for every code.",
            lambda rows: all(row[DISTANCE] <= row[BOUND] * (1 + 1e-12) for row in rows),
        ),
        Claimed(
            "Pairs and bits as pairs keep the distance √8, with two coordinates for each bit; "
            "points of a circle have four coordinates, and a distance below 4π/N.",
            lambda rows: all(map(_keeps_its_distance, rows)),
        ),
    ),
    chart=_chart,
    answer=lambda _: (
        "For Booleans there is one. Networks compute every function of up to three arguments from "
        "pairs (x, −x) to a pair, and a norm leaves each pair as it is: nothing is converted "
        "between networks and norms.\n\n"
        "For all integers at a fixed width there is none. A norm gives all vectors the same mean "
        "and variance, so they lie on one sphere, where only finitely many points keep a least "
        "distance. Theorem: at width d, at most (1 + 2√d/g)^(d−1) vectors of mean 0 and variance 1 "
        "are at a distance of at least g from each other. Proof: they lie on a sphere of radius √d "
        "in d − 1 dimensions. Balls of radius g/2 around them do not overlap, and lie in a ball of "
        "radius √d + g/2; the quotient of the volumes is the bound. Another mean or variance only "
        "moves and scales the sphere.\n\n"
        "For the integers from 0 to N − 1 there are codes. Bits as pairs keep the distance √8 and "
        "take 2⌈log₂ N⌉ coordinates. Points of a circle take four coordinates, and their distance "
        "falls below 4π/N. The column of bounds shows how far apart any code of this N and width "
        "could be at most."
    ),
)
