"""Proofs with sums of more than 2,048 terms, whose rounding has an allowance of its own."""

import itertools
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.verify.proof import prove, upwards
from transformist.verify.proof.answering import _Differences, _worst_pair
from transformist.verify.proof.ideal import Ideal
from transformist.verify.proof.sparse_products import Entries
from transformist.verify.proof.upwards import MOST_SUMMED, MOST_TERMS, Unfollowed, up

MANY = 2**15


def covers(bound, count):
    """True if a bound of `count` ones, added in any order, is past the loss of the worst order.

    Numpy adds in pairs or in blocks, and loses less: what is required is the allowance itself.
    """
    least = count * (1 + F(count, 2**53))
    return all(F(each) >= least for each in np.asarray(bound, dtype=float).ravel().tolist())


@pytest.mark.parametrize("columns", [MANY, 16 * MANY], ids=["dense", "sparse"])
def test_a_product_of_many_weights_is_not_too_small(columns):
    at = Entries((1, columns), np.zeros(MANY, dtype=int), np.arange(MANY))
    assert covers(up(at.times(np.ones(MANY), np.ones((1, columns, 1)))), MANY)


def test_the_ends_of_a_form_of_many_terms_are_not_too_narrow():
    ideal = Ideal(1, None, 1, [])
    numbers = [ideal.add(k, 0, 1, None) for k in range(MANY)]
    form = dict.fromkeys(numbers, F(1))
    lo, hi, size = ideal.measured([form, {n: -x for n, x in form.items()}])
    assert covers([hi[0, 0], -lo[1, 0]], MANY)
    assert covers(size, MANY)


def test_differences_of_labels_that_read_many_slots_are_not_too_small():
    weights = np.stack([np.zeros(MANY), np.ones(MANY)])
    assert covers(_Differences(weights, np.ones(MANY), np.zeros(2)).from_label(0)[1], MANY)
    assert covers(_worst_pair(weights, np.ones(MANY), np.zeros(2), 1.0)[0], MANY)


def test_shorter_sums_are_what_they_were():
    assert upwards.raised(0.1, MOST_TERMS) == 0.1 < upwards.raised(0.1, MOST_TERMS + 1)
    assert upwards.excess(MOST_TERMS) == 1 < upwards.excess(MOST_TERMS + 1)


def wide(width, units, shifts, weights):
    """A symbol a or b has 1 or −1 in slot 0; hidden units read it and write into the last slot."""
    words = {s: [x, *[0] * (width - 1)] for s, x in (("a", 1.0), ("b", -1.0))}
    W_1, W_2 = np.zeros((units, width)), np.zeros((width, units))
    W_1[:, 0], W_2[-1] = 1, weights
    layer = tf.Layer((), tf.FeedForward(W_1=W_1, b_1=shifts, W_2=W_2))
    out = np.zeros((1, width))
    out[0, -1] = 1
    return tf.Transformer(
        stream=tf.Stream(tuple(f"s{k}" for k in range(width))),
        embedding=tf.Embedding(symbols=tuple(words), vectors=list(words.values())),
        layers=(layer,),
        read_out=tf.Binary(W_out=out, b_out=[-F(1, 2)]),
    )


DRAWN = [
    (width, units, weight, seed)
    for width, units in ((2100, 3), (3, 2100))
    for weight, seed in ((1.0, 1), (2.0**-6, 2), (0.1, 3))
]


@pytest.mark.parametrize(("width", "units", "weight", "seed"), DRAWN)
@pytest.mark.parametrize("arithmetic", ["float32", "float16", "bfloat16"])
def test_what_is_proved_of_wide_models_is_so(width, units, weight, seed, arithmetic):
    """Sparse and dense rows: no proof holds where the format decides otherwise or refuses."""
    drawn = np.random.default_rng(seed)
    signs = drawn.choice([-1.0, 1.0], units)
    model = wide(width, units, drawn.integers(-4, 1, units) / 4, signs * weight)
    found = prove(model, number_system(arithmetic), 1, "any")
    assert "more than" not in found.stopped
    if found.holds:
        for (x,) in itertools.product("ab", repeat=1):
            assert model(x, arithmetic) == model(x, "exact")


def test_a_wide_model_of_few_weights_is_proved():
    model = wide(2100, 2100, [0] * 2100, [1.0] * 2100)
    assert prove(model, number_system("float32"), 1, "any").holds
    assert [model(x, "float32") for x in "ab"] == [True, False]


def test_sums_of_ones_beyond_a_format_are_not_proved():
    """No proof holds where sums of ones, beyond what a format holds, are decided otherwise."""
    model = wide(3, 4097, [0] * 4097, [1.0] * 2049 + [-1.0] * 2048)
    for arithmetic in ("float16", "bfloat16"):
        right = [model(x, arithmetic) == model(x, "exact") for x in "ab"]
        assert all(right) or not prove(model, number_system(arithmetic), 1, "any").holds


def test_what_memory_does_not_hold_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(upwards, "MOST_BOUNDS", 4199)
    found = prove(wide(2100, 3, [0] * 3, [1.0] * 3), number_system("float32"), 1, "any")
    expected = "embedding: 2,100 numbers for each of 2 kinds of rows are more than 4,199 bounds"
    assert found.stopped.startswith(expected)
    monkeypatch.setattr(upwards, "MOST_BOUNDS", 4000)
    found = prove(wide(3, 2100, [0] * 2100, [1.0] * 2100), number_system("float32"), 1, "any")
    assert found.stopped.startswith("layer 0 units: 2,100 numbers")


def test_what_memory_does_not_hold_of_a_dense_map_is_refused_before_it_is_made(monkeypatch):
    model = wide(3, 2100, [0] * 2100, [1.0] * 2100)
    monkeypatch.setattr(upwards, "MOST_PRODUCTS", 4199)
    found = prove(model, number_system("float32"), 1, "any")
    expected = "layer 0 units: 2,100 weights for each of 2 kinds of rows are more than 4,199 bounds"
    assert found.stopped.startswith(expected)
    monkeypatch.setattr(upwards, "MOST_PRODUCTS", 4200)
    assert not prove(model, number_system("float32"), 1, "any").stopped


def test_sums_beyond_every_allowance_are_refused():
    count = MOST_SUMMED + 1
    at = Entries((1, count), np.zeros(count, dtype=int), np.arange(count))
    with pytest.raises(Unfollowed, match="more than 1048576 weights in a row"):
        at.times(np.ones(count), np.ones((1, count, 1)))


def test_norms_keep_the_allowance_of_each_bound():
    model = wide(2100, 3, [0] * 3, [1.0] * 3)
    norm = tf.LayerNorm(gain=[1] * 2100, epsilon=1)
    normed = tf.Transformer(
        stream=model.stream,
        embedding=model.embedding,
        layers=model.layers,
        read_out=model.read_out,
        final_norm=norm,
    )
    stopped = prove(normed, number_system("float32"), 1, "any").stopped
    assert stopped == "final norm: more than 2048 coordinates"
