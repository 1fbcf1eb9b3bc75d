"""Study dyck: recognizers of Dyck-1 on valid and invalid strings to length 100."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import transformist as tf
from transformist.studies import dyck_strings
from transformist.studies.experiment import Chart, Claimed, Row, Study, select

RECIPES = "dyck-1-uniform", "dyck-1-nonuniform", "dyck-1", "dyck-1-exact-uniform"
UNIFORM, PRINTED, *OURS = RECIPES
LONGEST, STRINGS, QUICK_STRINGS = 100, 25, 3
FORMATS = "exact", "float64", "float32"
KINDS = VALID, TURNED, VIOLATED = "valid", "one bracket turned", "prefix violated"
LENGTHS, QUICK_LENGTHS = (10, 30, 60, LONGEST), (10, LONGEST)
DISTANCE, BALANCE, SHORTFALL = "distance of the bit", "|Bₙ/n|, least and largest", "tₙ, likewise"
POWERS = (1, BALANCE), (2, SHORTFALL)


def _cases(is_quick: bool) -> Sequence[Row]:
    number = QUICK_STRINGS if is_quick else STRINGS
    return [
        {"recipe": name, "arithmetic": arithmetic, "strings": kind, "n": n, "number": number}
        for name in RECIPES
        for arithmetic in FORMATS
        for kind in KINDS
        for n in (QUICK_LENGTHS if is_quick else LENGTHS)
    ]


def _drawn(kind: str, n: int, number: int) -> list[str]:
    """Draw strings of a kind, the same ones for every recipe and format."""
    rnd = random.Random(f"0 {kind} {n}")
    drawn: list[str] = []
    while len(drawn) < number:
        x = "".join(rnd.sample("()" * (n // 2), n))
        x = x if kind == VIOLATED else dyck_strings.rotated(x)
        if kind == TURNED:
            place = rnd.randrange(n)
            x = x[:place] + "()"[x[place] == "("] + x[place + 1 :]
        if dyck_strings.is_member(x) == (kind == VALID):
            drawn.append(x)
    return drawn


def _rows(case: Row) -> Sequence[Row]:
    name = case["recipe"]
    settings = {} if name in (UNIFORM, OURS[1]) else {"max_length": LONGEST}
    model = tf.recipe(name).build(weighting="softmax", **settings)
    strings = _drawn(case["strings"], case["n"], case["number"])
    traces = [model.run(x, case["arithmetic"]) for x in strings]
    right = [dyck_strings.is_member(x) for x in strings]
    last = {
        slot: [Fraction(trace[slot][-1]) for trace in traces]
        for slot in {"accept", "balance", "shortfalls"}.intersection(model.stream.slots)
    }
    bits = [abs(bit - wanted) for bit, wanted in zip(last.get("accept", []), right, strict=False)]
    is_printed = "shortfalls" in last  # our recipes have other numbers in place of these
    share = sum(trace.answer == x for trace, x in zip(traces, right, strict=True)) / len(strings)
    distance = float(max(bits)) if bits else None
    ends = [_ends(last[each]) if is_printed else None for each in ("balance", "shortfalls")]
    return [
        {**case, "share right": share, DISTANCE: distance, BALANCE: ends[0], SHORTFALL: ends[1]}
    ]


def _ends(numbers: Sequence[Fraction]) -> list[float]:
    magnitudes = sorted(map(abs, numbers))
    return [float(magnitudes[0]), float(magnitudes[-1])]


def _distances(rows: Sequence[Row], names: Sequence[str], formats: Sequence[str]) -> set[float]:
    chosen = [row for row in rows if row["recipe"] in names and row["arithmetic"] in formats]
    return {row[DISTANCE] for row in chosen}


def _is_parted(row: Row) -> bool:
    """True if both numbers are below their thresholds exactly where the strings are valid."""
    # The least numbers other than 0 are 1/(n + 1) and 1/(n + 1)²; half of them are the thresholds.
    # Of valid strings the largest numbers are the hard case, of others the least ones.
    end = int(row["strings"] == VALID)
    above = [row[column][end] * 2 * (row["n"] + 1) ** k > 1 for k, column in POWERS]
    return row[DISTANCE] is None and any(above) == (row["strings"] != VALID)


def _chart(rows: Sequence[Row]) -> Chart:
    shown = (TURNED, "exact", BALANCE, 0), (VIOLATED, "exact", SHORTFALL, 0)
    of_valid = tuple((VALID, each, BALANCE, 1) for each in FORMATS[1:])
    curves: dict[str, list[tuple[int, float]]] = {}
    for kind, arithmetic, column, end in shown + of_valid:
        for row in select(rows, recipe=UNIFORM, strings=kind, arithmetic=arithmetic):
            if row[column][end]:  # 0 has no place on a logarithmic axis
                name = f"{column.split(',')[0]}, {kind}, {arithmetic}"
                curves.setdefault(name, []).append((row["n"], row[column][end]))
    return Chart(x="n", y="least of invalid, largest of valid", curves=curves, logarithmic="xy")


DYCK = Study(
    name="dyck",
    question="Do the recognizers of Dyck-1 (section 9.2.1 of the Cookbook) answer rightly to n = "
    "100? Is the non-uniform one exactly 0 or 1, and are Bₙ/n and tₙ of the uniform one about 0?",
    method="Four recipes are built with softmax: dyck-1-uniform, whose Bₙ/n and tₙ are read beyond "
    "the weights, dyck-1-nonuniform with EqZero as printed, and ours, dyck-1 with a dead zone and "
    "dyck-1-exact-uniform. Strings are drawn: valid ones, valid ones with one bracket turned, and "
    "strings with as many of each bracket of which a prefix closes too many. A stack tells the "
    "right answer. The distance of the bit is that of the slot `accept` from the right 0 or 1.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "Every answer is right.", lambda rows: all(row["share right"] == 1 for row in rows)
        ),
        Claimed(
            "In exact arithmetic every bit is exactly 0 or 1, and those of our recipes also in "
            "float64 and float32.",
            lambda rows: (
                _distances(rows, RECIPES[1:], ["exact"]) | _distances(rows, OURS, FORMATS) == {0}
            ),
        ),
        Claimed(
            "In floats some bit of the printed recipe is not 0 or 1, and all are within 1/1000.",
            lambda rows: 0 < max(_distances(rows, [PRINTED], FORMATS)) < 1 / 1000,
        ),
        Claimed(
            "The uniform recipe, which has no bit, parts valid strings: both numbers are below "
            "1/(2(n + 1)) and 1/(2(n + 1)²) for them, and one is above for all others.",
            lambda rows: all(map(_is_parted, select(rows, recipe=UNIFORM))),
        ),
        Claimed(
            "In float64, Bₙ/n of some valid string is not exactly 0.",
            lambda rows: any(
                row[BALANCE][1]
                for row in select(rows, recipe=UNIFORM, strings=VALID, arithmetic="float64")
            ),
        ),
    ),
    chart=_chart,
    seed=0,
    answer=lambda rows: (
        "All answers are right. The printed non-uniform recognizer gives exactly 0 or 1 in exact "
        "arithmetic alone: EqZero magnifies rounding by (N + 1)², and its bit is off by up to "
        f"{max(_distances(rows, [PRINTED], ['float32'])):.1g} in float32, which a dead zone mends. "
        "The numbers of the uniform one are about 0 for valid strings, in floats not exactly; a "
        "check must compare them with half of their least magnitudes. With leftmost-hard heads a "
        "uniform model gives the bit itself."
    ),
)
