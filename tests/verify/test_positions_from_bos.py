"""Proofs of positions that a model computes from the share of BOS, and of models that only seem to.

A share, a function of the row and its extremes are computed here in rational numbers, row by row.
"""

import itertools
import random
from fractions import Fraction as F

import pytest
from test_proofs import hold_against, short_and_drawn, walked

import transformist as tf
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.proof import EVALUATIONS, prove
from transformist.verify.proof.row_functions import RowFunction

OF_PLACES = (
    "dyck-k-d",
    "induction-most-recent",
    "induction-most-frequent",
    "parity",
    "contains-abc",
)


@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", [n if n == "parity" else pytest.param(n, marks=pytest.mark.slow) for n in OF_PLACES]
)
def test_every_number_is_what_is_said_of_it(name, arithmetic):
    draw = random.Random(f"{name} {arithmetic} from BOS")
    given = {"masks": "future", "positions": "bos", "arithmetic": arithmetic}
    model = tf.compile(PROGRAMS[name], max_length=7, **given)
    walk = walked(model, arithmetic, 7)
    assert walk.ideal.known("i") is not None
    hold_against(walk, model, arithmetic, short_and_drawn(model, 7, draw, 3))


@pytest.mark.slow
@pytest.mark.parametrize("order", EVALUATIONS)
@pytest.mark.parametrize("name", OF_PLACES)
def test_programs_are_proved_in_every_order(name, order):
    model = tf.compile(PROGRAMS[name], max_length=100, masks="future", positions="bos")
    assert prove(model, number_system("float32"), 100, order).holds


def counter(N=4, mask="future", flags=(0, 0, 1), slope=2, constant=10 * 2**20):
    """A model that adds up ReLU(2 − slope j s), rounds the sum, and accepts if it is above 2."""
    stream = tf.Stream(("flag", "share", "sum", "place"))
    words = {
        symbol: {"flag": flag} if flag else {}
        for symbol, flag in zip(("a", "b", "BOS"), flags, strict=True)
    }
    head = tf.Attention(
        W_Q=[[0] * 4],
        W_K=[[0] * 4],
        W_V=[[1, 0, 0, 0]],
        W_O=[[0], [1], [0], [0]],
        weighting="softmax",
        mask=mask,
    )
    units = [([0, -slope * j, 0, 0], 2) for j in range(1, N + 1)]
    first = tf.FeedForward(
        W_1=[row for row, _ in units],
        b_1=[shift for _, shift in units],
        W_2=[[int(slot == 2)] * N for slot in range(4)],
    )
    second = tf.FeedForward(
        W_1=[[0, 0, 1, 0], [0] * 4],
        b_1=[constant, constant],
        W_2=[[0, 0], [0, 0], [0, 0], [1, -1]],
    )
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, words, front=("BOS",)),
        layers=(tf.Layer((head,), first), tf.Layer((), second)),
        read_out=tf.Binary(W_out=[[0, 0, 0, 1]], b_out=[F(-5, 2)], at="last"),
        max_length=N,
    )


def test_the_sum_is_the_position_and_without_an_error():
    model = counter()
    walk = walked(model, "float32", 4)
    place = walk.ideal.known("i")
    last = walk.streams[-1]
    assert place is not None and last.forms[3] == {place: 1}
    assert not last.error[:, 3].any() and last.error[0, 2, 0] > 0
    assert [model("ab" * k, "float32") for k in range(3)] == [False, False, True]


FORGED = (
    {"mask": "strict-future"},
    {"mask": "none"},
    {"mask": "past"},
    {"flags": (0, 0, 3)},
    {"flags": (0, 0, -1)},
    {"flags": (0, 1, 1)},
    {"flags": (F(1, 1024), 0, 1)},
)


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_what_is_no_position_gets_no_name(forged):
    model = counter(**forged)
    walk = walked(model, "float32", 4)
    assert walk.ideal.known("i") is None
    hold_against(walk, model, "float32", [(), ("a",), ("b", "a"), ("a", "b", "b")])


@pytest.mark.parametrize(
    ("bent", "factor"), [({"flags": (0, 0, F(9, 8))}, F(7, 8)), ({"slope": F(17, 8)}, F(15, 16))]
)
def test_a_bent_sum_is_named_by_the_line_that_it_is(bent, factor):
    """Σ_{j ≤ i} (2 − c j/(i + 1)) = (2 − c/2) i, where j ≤ i are the units above 0."""
    model = counter(**bent)
    walk = walked(model, "float32", 4)
    assert walk.streams[-1].forms[2] == {walk.ideal.known("i"): factor}
    hold_against(walk, model, "float32", [(), ("a",), ("b", "a"), ("a", "b", "b", "a")])


@pytest.mark.parametrize(
    ("arithmetic", "constant", "is_rounded"),
    [
        ("float32", 10 * 2**20, True),  # 5/8 · 2²⁴
        ("float32", 2**23 + 16, True),
        ("float32", 2**22, True),  # between halves, as the error is below 1/2
        ("float32", 4, False),
        ("float32", 2**24, False),  # even numbers alone
        ("float64", 4, False),
        ("float64", 5 * 2**50, True),
        ("float64", 2**53, False),
        ("float16", 5 * 2**8, True),
        ("float16", 2, False),
        ("float16", 2**11, False),
    ],
)
def test_a_constant_rounds_where_the_format_has_no_numbers_between(
    arithmetic, constant, is_rounded
):
    walk = walked(counter(constant=constant), arithmetic, 4)
    assert (not walk.streams[-1].error[0, 3, :2].any()) == is_rounded


def test_functions_of_the_row_are_what_rationals_give():
    draw, N = random.Random(3), 7
    rows = range(N + 1)
    for _ in range(60):
        a, b, c, limit = (F(draw.randint(-9, 9), draw.randint(1, 5)) for _ in range(4))
        limit = abs(limit) if draw.random() < 0.5 else None
        share = RowFunction.share_of_bos(N)
        made = RowFunction.total([(a, share), (F(1), RowFunction.of_rows(b, c, N))])
        wanted = [a / (r + 1) + (c if r else b) for r in rows]
        assert [made.at(r) for r in rows] == wanted
        clipped = made.clipped(limit)
        wanted = [max(x, F(0)) if limit is None else min(max(x, F(0)), limit) for x in wanted]
        assert [clipped.at(r) for r in rows] == wanted
        assert clipped.ends() == (min(wanted[1:]), max(wanted[1:]))
        place = RowFunction.of_position("i", N)
        line = [F(a + b * r) for r in rows]
        given = RowFunction.total([(b, place), (F(1), RowFunction.of_rows(a, a, N))])
        assert [given.at(r) for r in rows] == line
        assert given.in_terms_of(place) == ((a, b) if b else None)
        steps = {made.at(r + 1) - made.at(r) for r in range(N)}
        assert (made.in_terms_of(place) is None) == (len(steps) > 1 or steps == {0})


@pytest.mark.slow
def test_decisions_are_those_of_exact_arithmetic_on_every_input():
    model = counter(N=6)
    assert prove(model, number_system("float32"), 6, "any").holds
    for n in range(7):
        for x in itertools.product("ab", repeat=n):
            assert model("".join(x), "float32") == (n > 2)
