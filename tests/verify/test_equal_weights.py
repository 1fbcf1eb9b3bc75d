"""Means whose keys all have one computed weight, and the hidden units that subtract from them.

The bounds of the proof are held against evaluations. A mean of 0 must be computed as exactly 0
where the proof says so, and a hidden unit without rounding must have the exact number.
"""

import random
from fractions import Fraction

import numpy as np
import pytest
from test_proofs import hold_against, walked

import transformist as tf
from transformist.arithmetic import number_system
from transformist.model import BOS
from transformist.programs import PROGRAMS
from transformist.verify.proof import prove

VALUES = {"a": 1, "b": -1, "c": 3, "d": -2}


def counter(units, values=VALUES, reads="mean"):
    """The mean of the values up to each position, and a slot for each unit (weight, shift)."""
    slots = ("value", "mean", *(f"unit{k}" for k in range(len(units))))
    stream = tf.Stream(slots)
    head = tf.Attention(
        W_Q=[[0] * len(slots)],
        W_K=[[0] * len(slots)],
        W_V=[[int(slot == "value") for slot in slots]],
        W_O=[[int(slot == "mean")] for slot in slots],
        mask="future",
    )
    network = tf.FeedForward(
        W_1=[[weight * (slot == reads) for slot in slots] for weight, _ in units],
        b_1=[shift for _, shift in units],
        W_2=[[int(slot == f"unit{k}") for k in range(len(units))] for slot in slots],
    )
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(
            stream, {**{s: {"value": v} for s, v in values.items()}, BOS: {}}, front=[BOS]
        ),
        layers=(tf.Layer((head,), network),),
        read_out=tf.Binary(W_out=[[0, 1] + [0] * len(units)], b_out=["-1/128"]),
    )


def words(n, draw, alphabet="abcd"):
    """Drawn words, each followed by the letters that take its sum back to 0."""
    for _ in range(8):
        word = draw.choices(alphabet, k=draw.randint(0, n // 2))
        total = sum(VALUES[s] for s in word)
        back = ["b" if total > 0 else "a"] * abs(total)
        yield tuple(word + back)[:n]


UNITS = [
    *((2**k, -Fraction(1, 2**m)) for k, m in ((0, 1), (0, 6), (0, 9), (3, 1), (3, 7))),
    (-4, Fraction(-3, 8)),
    (3, Fraction(-1, 2)),
]


@pytest.mark.parametrize("arithmetic", ["float32", "float16", "bfloat16", "float8_e5m2"])
def test_bounds_hold(arithmetic):
    """Fails if ω may be finer than its quantum, its error is halved, or a unit's t too fine."""
    draw, model = random.Random(arithmetic), counter(UNITS)
    for n in (3, 12):
        walk = walked(model, arithmetic, n)
        assert len(walk.streams) == 3
        hold_against(walk, model, arithmetic, [x for x in words(n, draw) if x])


@pytest.mark.parametrize("arithmetic", ["float32", "float16", "bfloat16"])
def test_a_unit_that_rounds_is_not_exact(arithmetic):
    """3 − 2^(1 − p) is half-way between two numbers, as is what it subtracts from 3 a multiple."""
    t = Fraction(2) ** (1 - number_system(arithmetic).precision)
    model = counter([(1, -t), (1, -2 * t)], reads="value")
    walk = walked(model, arithmetic, 2)
    hold_against(walk, model, arithmetic, [("c",), ("a", "c")])
    assert [bool(walk.streams[2].error[0, slot].any()) for slot in (2, 3)] == [True, False]


@pytest.mark.parametrize("arithmetic", ["float16", "bfloat16"])
def test_a_unit_rounds_only_where_it_is_positive(arithmetic):
    """ReLU(−3 v − t), v from −2 to 3: 6 − t is half-way between two numbers; −9 − t counts not."""
    u = number_system(arithmetic).unit_roundoff
    model = counter([(-3, -4 * u)], reads="value")
    walk = walked(model, arithmetic, 3)
    hold_against(walk, model, arithmetic, [("d",), ("c", "d", "a"), ("b",)])
    assert walk.streams[2].error[0, 2].max() < 6.1 * u + 6.1 * u  # of the unit, and stored again


def test_sums_that_round_in_the_accumulator_have_an_error():
    """In float32, which accumulates in itself, ±1/7 add up to 0 only by chance."""
    model = counter([(1, -1)], {"a": 1, "b": -1})
    walk = walked(model, "float32", 14)
    inputs = [tuple("a" * n + "b" * n) for n in range(1, 8)]
    hold_against(walk, model, "float32", inputs)
    assert walk.streams[1].absolute[1].any()


@pytest.mark.parametrize("arithmetic", ["float16", "bfloat16"])
def test_a_mean_of_zero_has_no_error(arithmetic):
    mean = walked(counter(UNITS), arithmetic, 100).streams[1]
    u = float(number_system(arithmetic).unit_roundoff)
    assert not mean.absolute[1].any() and mean.relative[1].max() < 3 * u


def test_units_that_take_the_rounding_away_are_exact():
    """2ᵏ m − t with t a multiple of the last place of 2ᵏ m; a finer t rounds."""
    z = walked(counter([(8, -Fraction(1, 2)), (8, -Fraction(1, 2**8))]), "float16", 50).streams[2]
    inherited = 8 * z.error[0, 1]
    assert (z.error[0, 2] <= inherited * (1 + 1e-9)).all()
    assert (z.error[0, 3] > inherited * 1.1)[:-1].any()


@pytest.mark.parametrize(
    ("name", "arithmetic", "n"), [("dyck-1", "float16", 255), ("majority", "bfloat16", 1000)]
)
def test_balances_are_proved_to_where_zones_end(name, arithmetic, n):
    model = tf.compile(PROGRAMS[name], max_length=n)
    assert prove(model, number_system(arithmetic), n, "any").holds


def test_kernels_have_no_equal_weight():
    z = walked(counter(UNITS), "float16", 20, "flash").streams[1]
    assert np.all(z.absolute[1][:-1] > 0)
