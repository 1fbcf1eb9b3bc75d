"""Sums of steps that round alike, lookups whose scores are stored, and margins that are reached."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.proof import EVALUATIONS, prove
from transformist.verify.proof.hidden_units import _first_bits
from transformist.verify.proof.scoring import largest_parabola
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.walking import Walk

FORMATS = {"float16": (np.float16, 11), "bfloat16": (ml_dtypes.bfloat16, 8)}


@pytest.mark.parametrize("name", FORMATS)
def test_steps_that_are_active_together_are_off_by_less_than_each_could_be(name):
    """The sum of all roundings, against the bound of `_of_active`; nothing smaller would do."""
    dtype, p = FORMATS[name]
    draw, u, reached = np.random.default_rng(1), 2.0**-p, 0.0

    def off(s, h):
        upper, lower = (x.astype(np.float32).astype(dtype).astype(float) for x in (s, s - h))
        return np.abs(upper - lower - h)

    for n, h in itertools.product((2, 3), (1.0, 3.0, 0.5)):
        below = 2.0 ** (math.ceil(math.log2(h)))
        E = int(draw.integers(2, math.log2(h) // 1 + p - 2)) + 1
        ends = 2.0 ** draw.integers(0, E + 1, (20000, n)) * (1 if h >= 1 else h)
        s = ends + np.floor(draw.uniform(0, h, ends.shape) * 2.0**8) / 2.0**8
        s = s[(s > h).all(axis=1)]
        bounds = u * (_first_bits(s.sum(axis=1), n) + n * below / 2)
        found = off(s, h).sum(axis=1)
        assert (found <= bounds).all(), (n, h)
        reached = max(reached, (found / bounds).max())
    assert reached > 0.9


def test_the_first_bits_are_the_largest_sum_of_powers_of_two():
    x = np.arange(64.0)
    for n in (1, 2, 3):
        among = [k for k in range(64) if bin(k).count("1") <= n]
        best = [max(k for k in among if k <= each) for each in x.tolist()]
        assert _first_bits(x, n).tolist() == best
    assert _first_bits(np.array([np.inf, 511.5]), 2).tolist() == [np.inf, 384]


def test_no_score_of_a_lookup_is_larger_than_its_bound():
    reached = 0.0
    for N, b, top in itertools.product((1, 4, 9), (1.0, 3.0), (0.0, 5.0, 40.0)):
        for D, sign in itertools.product((1, 4), (0, -1)):
            A, j = np.linspace(sign * top, top, 41)[:, None] / D, np.arange(N + 1)
            largest = np.abs(A * j - b / D * j**2).max()
            bound = largest_parabola(top / D, top, b / D, b, N, sign < 0)
            assert largest <= bound, (N, b, top, D)
            reached = max(reached, largest / max(bound, 1e-9))
    assert reached > 0.99


@pytest.mark.parametrize(
    ("name", "arithmetic", "N"),
    [
        ("most-frequent-token", "float16", 128),  # a margin is reached, and nothing rounds
        ("most-frequent-token", "bfloat16", 16),
        ("parity", "bfloat16", 6),  # scores are stored, which costs u of them, not of their terms
    ],
)
def test_a_program_is_certified(name, arithmetic, N):
    model = tf.compile(PROGRAMS[name], max_length=N, weighting="softmax", arithmetic="exact")
    assert prove(model, number_system(arithmetic), N, "any").holds


@pytest.mark.parametrize("chooses", [False, True])
def test_means_of_other_rows_share_no_factor(chooses):
    """Two heads of one mask: the best keys of the second are fewer than all rows."""
    of_b = {"W_Q": [[0, 0, 0, 0]], "b_Q": [1], "W_K": [[0, 1, 0, 0]]}
    of_all = {"W_Q": [[0, 0, 0, 0]], "W_K": [[0, 0, 0, 0]]}
    heads = tuple(
        tf.Attention(
            **scores,
            W_V=[[1, 0, 0, 0]],
            W_O=[[float(k == slot)] for k in range(4)],
            weighting="average-hard",
        )
        for slot, scores in ((2, of_all), (3, of_b if chooses else of_all))
    )
    model = tf.Transformer(
        stream=tf.Stream(("x", "is b", "mean", "mean of b")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[5, 0, 0, 0], [7, 1, 0, 0]]),
        layers=(tf.Layer(heads),),
        read_out=tf.Binary(W_out=[[0, 0, 1, -1]], b_out=[0]),
    )
    walk = Walk(model, number_system("float16"), 5, EVALUATIONS["any"], Ledger())
    walk.run()
    _, _, one, other = walk.streams[-1].shared.by.tolist()
    assert (one == other) != chooses and one >= 0
