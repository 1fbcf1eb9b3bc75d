"""One-line programs with selections are certified, and what is certified is true."""

import itertools
import random
from fractions import Fraction

import bounded
import pytest
from selections import Selection, drawn

import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import InvalidValue
from transformist.verify.certificate.affine import read
from transformist.verify.certificate.cases import cases
from transformist.verify.certificate.extraction import extract

FORMATS = ("bfloat16", "float16", "float32")
WEIGHTINGS = ("softmax", "softmax", "average-hard", "rightmost-hard")
BEYOND = "the positions beyond those for which what is assumed has been observed"

BY_REASON = {
    "a query that is fetched, at BOS too": Selection("categories", 5, 10, "past", 6),
    "the same without a mask": Selection("categories", 3, 1, "none", 6),
    "a query from two positions before": Selection("categories", 2, 2, "past", 7),
    "a query that is looked up by a count": Selection("categories", 8, 0, "none", 0),
    "a query that is a step of a mean": Selection("Booleans", 3, 2, "past", 2),
    "the same, of those behind": Selection("Booleans", 4, 0, "strict-past", 8),
    "numbers that lie 2 and more apart": Selection("numbers", 2, 6, "past", 0),
    "the same, fetched": Selection("numbers", 1, 1, "none", 6),
    "numbers that do not occur": Selection("numbers", 4, 3, "none", 6),
    "a number that never matches, looked up": Selection("numbers", 5, 6, "past", 10),
    "a lookup beside n": Selection("categories", 0, 4, "strict-future", 9),
    "means of those behind": Selection("categories", 0, 0, "past", 4),
    "means of those behind, compared with 0": Selection("categories", 7, 10, "strict-past", 5),
}
"""Selections that were compiled and not certified, each for a reason of its own."""


def inputs(N, draw):
    """All short strings, and some as long as they may be, in lists of one length."""
    for n in range(min(N, 3) + 1):
        yield list(map("".join, itertools.product("abc", repeat=n)))
    for n in {N - 1, N} if N > 4 else ():
        edges = [(a * k + b * n)[:n] for a in "abc" for b in "abc" for k in (1, n // 2)]
        yield [*edges, *("".join(draw.choices("abc", k=n)) for _ in range(12))]


def compiled(selection, weighting, N):
    """The model, or none where the language or the weighting has no such program."""
    try:
        program = selection.program
        model = tf.compile(program, max_length=N, weighting=weighting)
    except InvalidValue:
        return None, None
    return program, model


def require_certified_and_true(selection, weighting, N, refused=None):
    """Certificates of all formats follow from the weights, and no slot is further off.

    A model that rests on what was observed at fewer positions than N is counted in `refused`.
    """
    program, model = compiled(selection, weighting, N)
    if model is None:
        return 0
    found = {each: tf.certify(model, each) for each in FORMATS}
    held = [each for each in FORMATS if found[each].holds]
    if refused is not None and found["float32"].limiting.what == BEYOND:
        refused.append(selection)
        return 0
    assert "float32" in held, (selection, weighting, N, found["float32"].limiting)
    # Certification and its check are the same in each format but for its numbers, and drawn models
    # come to every format.
    checked = random.Random(f"{selection} {weighting} {N}").choice(held)
    tf.check_certificate(model, found[checked])
    batches = list(inputs(N, random.Random(N)))
    return bounded.require(model, N, batches, held, lambda xs: list(map(program, xs)))


@pytest.mark.parametrize("name", BY_REASON)
@pytest.mark.parametrize(
    "N", [1, 2, *(pytest.param(N, marks=pytest.mark.slow) for N in (9, 10, 11)), 12]
)
@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_selections_that_were_not_certified_are(name, weighting, N):
    assert require_certified_and_true(BY_REASON[name], weighting, N)


@pytest.mark.trials(5, 40)
def test_drawn_selections_are_certified(trials):
    draw, compiled_ones, refused = random.Random(7), 0, []
    while compiled_ones < trials:
        N = draw.choice((1, 2, 5, 9, 12, 40))
        count = require_certified_and_true(drawn(draw), draw.choice(WEIGHTINGS), N, refused)
        compiled_ones += bool(count)
    assert len(refused) <= trials // 20, refused


def require_among_cases(model):
    """How many cases there are on short inputs, each one that is known; 0 where none are known."""
    found = extract(model, 3)
    forms = read(model.read_out.W_out, model.read_out.b_out, found.state, {})
    known = cases(found.circuit, forms)
    if known is None:
        return 0
    xs = ["".join(x) for n in (1, 2, 3) for x in itertools.product("abc", repeat=n)]
    every = [bounded.hard(model).values([x], "exact")[0] for x in xs]
    rows = [row for each in every for row in number_system("exact").numbers(each)]
    seen = {tuple(map(Fraction, row)) for row in rows}
    assert seen <= set(map(tuple, known))
    return len(seen)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.successor(default="none").tag(),
        lambda x: x.predecessor(default="none").tag(),
        lambda x: x.select("a").rightmost(x, default="none").tag(),
        lambda x: x.lookup(x.position("i") + 1, default="none").tag(),
    ],
)
def test_labels_that_are_fetched_or_there_are_none(function):
    model = tf.compile(tf.program(alphabet="abc")(function), max_length=3)
    assert require_among_cases(model) > 1
    assert not tf.certify(model).assumes


@pytest.mark.trials(1, 6)
def test_drawn_selections_by_whole_numbers_are_certified(trials):
    draw, compiled_ones = random.Random(8), 0
    while compiled_ones < trials:
        N, selection = draw.choice((1, 2, 5, 9, 12, 40)), drawn(draw, ["whole numbers"])
        compiled_ones += bool(require_certified_and_true(selection, draw.choice(WEIGHTINGS), N))


@pytest.mark.trials(4, 60)
def test_labels_are_together_what_their_cases_are(trials):
    draw, counted = random.Random(3), 0
    while counted < trials:
        _, model = compiled(drawn(draw), draw.choice(WEIGHTINGS), 3)
        if model is not None and isinstance(model.read_out, tf.MultiClass):
            counted += bool(require_among_cases(model))
