"""Distances of scores of codes, against a search through exact scores of every input."""

import random
from fractions import Fraction

import numpy as np
import pytest
from test_proofs import hold_against, short_and_drawn, walked

import transformist as tf
from transformist.arithmetic import number_system
from transformist.model import Mask
from transformist.position_features import position
from transformist.programs import PROGRAMS
from transformist.verify.proof import EVALUATIONS
from transformist.verify.proof.coded_scores import (
    MOST_BEST,
    distances_below_best,
    values_at_rows,
)
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.walking import Walk

NAMES = ("(-1)^i", "cos(2pi i/4)", "sin(2pi i/4)", "cos(2pi i/8)", "sin(2pi i/8)")
SLOW = "cos(2pi i/64)"
COUNT = 4


def ideal_of(longest, bos=True):
    """The unknowns of a model with these position functions, over two symbols."""
    names = (*NAMES, "i", SLOW)
    model = tf.Transformer(
        stream=tf.Stream(tuple("abcdefg")),
        embedding=tf.Embedding(
            symbols=("x", "y", "BOS") if bos else ("x", "y"),
            vectors=np.zeros((2 + bos, 7)),
            positions=tf.PositionFunctions(names),
            front=("BOS",) if bos else (),
        ),
        layers=(),
        read_out=tf.RealVector(W_out=np.eye(7), at="every"),
    )
    walk = Walk(model, number_system("float32"), longest, EVALUATIONS["any"], Ledger())
    walk.embedded()
    return walk.ideal


ONE, AT_BOS = "1", "1 at BOS"


def value(factors, row):
    numbers = {name: position(name, row, row) for name in NAMES} | {ONE: 1, AT_BOS: row == 0}
    return sum((x * numbers[name] for name, x in factors.items()), Fraction(0))


def form_of(ideal, factors):
    """A form with these factors; a constant is a factor of the indicator of every kind."""
    form = {ideal.known(name): x for name, x in factors.items() if name in NAMES and x}
    for kind in range(ideal.kinds):
        x = factors.get(ONE, 0) + (kind == ideal.bos) * factors.get(AT_BOS, 0)
        form |= {kind: x} if x else {}
    return form


def drawn_pairs(source):
    """Queries and keys as factors of position functions, of 1, and of what is 1 at BOS."""
    names = (*NAMES, ONE, AT_BOS)
    return [
        tuple(
            {name: Fraction(source.randint(-8, 8), 4) for name in source.sample(names, 2)}
            for _ in range(2)
        )
        for _ in range(3)
    ]


def expected(pairs, mask, longest, bos):
    """The least m-th distances of symbols and of BOS, or None, from every length n."""
    found = {True: [np.inf] * COUNT, False: [np.inf] * COUNT}
    for n in range(1, longest + 1):
        rows = range(1 - bos, n + 1)
        for i in rows:
            keys = [j for j in rows if mask.admissible(np.array(i), np.array(j))]
            scores = sorted(
                (sum(value(q, i) * value(k, j) for q, k in pairs) for j in keys), reverse=True
            )
            for m, score in enumerate(scores[1 : COUNT + 1]):
                found[i == 0][m] = min(found[i == 0][m], scores[0] - score)
    return found


@pytest.mark.parametrize("mask", list(Mask))
@pytest.mark.parametrize("bos", [True, False])
def test_distances_are_those_of_all_pairs(mask, bos):
    source, longest = random.Random(mask), 9
    ideal = ideal_of(longest, bos)
    for _ in range(20):
        pairs = drawn_pairs(source)
        forms = [tuple(form_of(ideal, side) for side in pair) for pair in pairs]
        found = distances_below_best(ideal, forms, Mask(mask), COUNT)
        if found is None:
            assert not any("cos" in name or "sin" in name for p in pairs for s in p for name in s)
            continue
        wanted = expected(pairs, Mask(mask), longest, bos)
        for kind in range(ideal.kinds):
            exact = np.array(wanted[kind == ideal.bos], dtype=float)
            assert (found[:, kind] <= exact).all()
            assert found[:, kind] == pytest.approx(exact, abs=1e-9)


def test_the_best_key_may_lie_behind_the_query():
    """The score of i + 1 is the largest where it is there: not at i = n, where another one is."""
    ideal = ideal_of(7)
    cos, sin = (ideal.known(name) for name in NAMES[3:])
    half, bos = Fraction(position(NAMES[3], 1, 1)), ideal.bos
    queries = {cos: half, sin: -half}, {sin: half, cos: half}
    keys = ({cos: Fraction(1)}, {sin: Fraction(1)})
    behind = list(zip(queries, keys, strict=True))
    # At i = n = 6 the rows 6 and 0 both have the distance 1 from i + 1, modulo 8.
    tie = distances_below_best(ideal, behind, Mask("none"), COUNT)
    assert tie.min() == pytest.approx(0, abs=1e-12)
    assert distances_below_best(ideal, behind, Mask("past"), COUNT).min() > 0.2
    # With the score 7/8 at BOS it is the best row at i = n, by 7/8 − cos(2π/8).
    keys[0][bos] = Fraction(-1)
    sink = ({kind: Fraction(7, 8) for kind in range(ideal.kinds)}, {bos: Fraction(1)})
    found = distances_below_best(ideal, [*behind, sink], Mask("none"), COUNT)
    assert found.min() == pytest.approx(1 / 8, abs=1e-3)
    too_low = ({kind: Fraction(5, 8) for kind in range(ideal.kinds)}, {bos: Fraction(1)})
    assert distances_below_best(ideal, [*behind, too_low], Mask("none"), COUNT).min() < 0.1


def test_a_best_key_that_changes_often_is_not_followed():
    """Scores that grow with j have a best key for each length."""
    ideal = ideal_of(MOST_BEST + 4)
    falling = [({kind: Fraction(1) for kind in range(ideal.kinds)}, {ideal.known(SLOW): -1})]
    assert distances_below_best(ideal, falling, Mask("none"), COUNT) is None
    assert distances_below_best(ideal, falling, Mask("future"), COUNT) is not None


def test_other_numbers_are_no_functions_of_the_row():
    ideal = ideal_of(5)
    wave, place = ideal.known(NAMES[1]), ideal.known("i")
    assert values_at_rows(ideal, {wave: Fraction(2)}) == [2, 0, -2, 0, 2, 0]
    assert values_at_rows(ideal, {wave: Fraction(2), ideal.bos: Fraction(1)})[0] == 3
    assert values_at_rows(ideal, {place: Fraction(1)}) is None
    assert values_at_rows(ideal, {wave: Fraction(1), 0: Fraction(1)}) is None  # one symbol's own
    pairs = [({wave: Fraction(1)}, {place: Fraction(1)})]
    assert distances_below_best(ideal, pairs, Mask("future"), COUNT) is None


@tf.program(alphabet="ab")
def two_before(x):
    return x.predecessor(2, default="b").tag()


@tf.program(alphabet="ab")
def around(x):
    """A symbol after, one at a number, and one counted from a number."""
    third = x.lookup(x.position("i") * 0 + 3, default="a")
    turned = x.lookup(9 - x.position("i"), default="b")
    return ((x.successor(2, default="a") == third) | (turned == "a")).tag()


MODELS = {
    "future": (PROGRAMS["induction-most-recent"], two_before),
    "none": (PROGRAMS["contains-abc"], around),
}


@pytest.mark.parametrize("order", ["any", "flash"])
@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("masks", ["future", "none"])
@pytest.mark.parametrize("number", [0, 1])
def test_every_number_is_what_is_said_of_it(number, masks, arithmetic, order):
    """Slot by slot, as other models are tested: in the reference, which `any` contains."""
    options = {"masks": masks, "reuse": False, "position_codes": "sinusoidal"}
    model = tf.compile(MODELS[masks][number], max_length=12, **options)
    walk = walked(model, arithmetic, 12, order)
    assert len(walk.streams) >= 2  # beyond the embedding
    inputs = short_and_drawn(model, 12, random.Random(arithmetic), 12)
    hold_against(walk, model, arithmetic, inputs)
