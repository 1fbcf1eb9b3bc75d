"""Models whose certificates have been false: each decides otherwise in the format than exactly."""

from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from laws import by_laws, holds_by_laws
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Uncertifiable

Z = [[0] * 25]


def accepting(slots, words, row, shift, n=4, layers=(), **given):
    stream = tf.Stream(tuple(slots))
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, words, **given),
        layers=tuple(layers),
        read_out=tf.Binary(W_out=[row], b_out=[shift]),
        max_length=n,
    )


def a_constant_times_a_weight():
    words = {"a": {"c": F(1, 41), "x": 2}, "b": {"c": F(1, 41), "x": 1}}
    return accepting(("c", "x"), words, [-41, 1], 0), "float32", "b"


def heads_of_one_kind():
    values = {f"v{j}": F(1966 + j, 4096) for j in range(24)} | {"v0": 1024}
    heads = tuple(
        tf.Attention(W_Q=Z, W_K=Z, W_V=[[int(i == j) for i in range(25)]], W_O=[*[[0]] * 24, [1]])
        for j in range(24)
    )
    words = {"a": values, "b": values | {"v1": F(1960, 4096)}}
    layers = (tf.Layer(heads=heads),)
    return accepting((*values, "s"), words, [0] * 24 + [1], -1029, 1, layers), "float16", "a"


def constants_that_are_added_up():
    thirds = {f"c{j}": F(1, 3) for j in range(1000)}
    words = {"a": {**thirds, "x": F(1, 3)}, "b": {**thirds, "x": F(2, 3)}}
    shift = -F(1001, 3) - F(1, 3001)
    return accepting((*thirds, "x"), words, [1] * 1001, shift), "float32", "a"


def a_query_of_many_slots(count=30, arithmetic="bfloat16"):
    """Keys a and b score alike, `count` at a; in the format a sum of so many 143/37 does not.

    The last of those that score alike is the query itself.
    """
    parts = [f"t{j}" for j in range(count)]
    slots = (*parts, "half", "ka", "kb", "p", "v", "o")
    words = {  # no two parts are alike at all symbols
        symbol: {part: j >> k & 1 for j, part in enumerate(parts)}
        for k, symbol in enumerate("bcdefghijk")
    }
    words["a"] = {**dict.fromkeys(parts, 1), "half": F(count, 2), "ka": 1, "v": 1}
    words["b"]["kb"] = 2
    at = {slot: k for k, slot in enumerate(slots)}

    def row(**factors):
        return [factors.get(slot, 0) for slot in slots]

    factor = F(143, 37) * 128
    head = tf.Attention(
        W_Q=[row(**dict.fromkeys(parts, factor)), row(half=factor), row(), row()],
        b_Q=[0, 0, F(143, 37), 0],
        W_K=[row(ka=1), row(kb=1), row(p=1), row()],
        W_V=[row(v=1)],
        W_O=[[int(k == at["o"])] for k in range(len(slots))],
        weighting="average-hard",
    )
    layers = (tf.Layer(heads=(head,)),)
    return (
        accepting(slots, words, row(o=1), -F(1, 2), layers=layers, positions={"p": "i"}),
        arithmetic,
        "ba",
    )


def a_query_of_a_thousand_slots():
    return a_query_of_many_slots(1000, "float32")


def a_weight_that_underflows():
    words = {"a": {"x": 2**15}, "b": {"x": 2**15 + 32}}
    return accepting(("x",), words, [F(1, 2**26)], -F(1, 2**12)), "float16", "a"


def heads_that_round_more_than_they_are_large():
    """Eight heads, each rounded to two bits and a sign."""
    columns = [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2), (1, 4), (4, 1)]

    def row(k):
        return [int(j == k) for j in range(9)]

    heads = tuple(
        tf.Attention(
            W_Q=[[0] * 9], b_Q=[int(k > 2)], W_K=[row(k) if k > 2 else [0] * 9], W_V=[row(k)],
            W_O=[[0]] * 8 + [[1]], mask=("none", "future", "past")[k % 3],
            weighting="average-hard",
        )
        for k in range(8)
    )  # fmt: skip
    words = {x: {f"v{k}": c[j] for k, c in enumerate(columns)} for j, x in enumerate("ab")}
    slots = (*(f"v{k}" for k in range(8)), "o")
    shift = F(1, 2) - sum(c[0] for c in columns)
    return accepting(slots, words, row(8), shift, 1, (tf.Layer(heads),)), "float8_e5m2", "a"


FALSE = [
    heads_that_round_more_than_they_are_large,
    a_constant_times_a_weight,
    heads_of_one_kind,
    constants_that_are_added_up,
    a_query_of_many_slots,
    pytest.param(a_query_of_a_thousand_slots, marks=pytest.mark.slow),
    a_weight_that_underflows,
]


@pytest.mark.parametrize("made", FALSE, ids=lambda made: made.__name__)
@pytest.mark.parametrize("order", ["any", "reference"])
def test_a_model_that_decides_otherwise_has_no_certificate(made, order):
    model, arithmetic, x = made()
    assert model(x, "exact") != model(x, arithmetic)
    try:
        found = tf.certify(model, arithmetic, order=order)
    except Uncertifiable:
        return
    assert not found.holds and found.largest_length < len(x)


def a_sum_observed_up_to_nine(n):
    head = tf.Attention(
        W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[0, 1]], W_O=[[1], [0]], mask="future",
        weighting="rightmost-hard",
    )  # fmt: skip
    return accepting(
        ("i", "a"), {"a": {"a": 1}, "b": {}}, [1, 0], -F(8003, 2), n, (tf.Layer(heads=(head,)),),
        positions={"i": "i"},
    )  # fmt: skip


def test_what_is_observed_on_short_inputs_is_not_assumed_of_longer_ones():
    model, x = a_sum_observed_up_to_nine(5000), "b" * 4000 + "a"
    assert model(x, "float32") != model(x, "float16")
    found = tf.certify(model, "float16")
    assert not found.holds
    assert found.largest_length < 4001


def test_a_certificate_with_an_observation_holds_up_to_its_length_and_says_so(seen_up_to):
    built = tf.recipe("dyck-k-d").build()
    found = tf.certify(built, "float32", 50)
    assert not found.holds and found.largest_length == seen_up_to
    assert [each.checked for each in found.assumes] == [seen_up_to] * 3
    assert f"for N = {seen_up_to} it holds; for more it would have to be shown that" in str(found)
    assert tf.certify(built, "float32", seen_up_to).holds


@pytest.mark.trials(1, 1000)
def test_a_weight_of_almost_nothing_is_no_traceback(trials):
    model = tf.compile(PROGRAMS["dyck-1"], max_length=20)
    for number, layer in enumerate(model.layers):
        network = layer.feed_forward
        for k in range(0 if network is None else min(trials, np.count_nonzero(network.W_2))):
            changed = np.array(network.W_2, dtype=np.float64)
            changed[tuple(np.argwhere(changed)[k])] = 1e-300
            layers = list(model.layers)
            layers[number] = replace(layer, feed_forward=replace(network, W_2=changed))
            try:
                assert not tf.certify(replace(model, layers=tuple(layers))).holds
            except Uncertifiable as refusal:
                assert "received" in str(refusal)


def test_scores_that_are_divided_by_a_root_stay_equal_where_they_are():
    """Of 0 and 1, divided by √3, nothing rounds that decides: no place breaks ties here."""
    built = tf.recipe("induction-most-recent").build(alphabet="abc")
    assert tf.certify(built, "float32", 200).holds and holds_by_laws(built, "float32", 200)


def test_an_arithmetic_is_as_good_as_its_name():
    model = tf.compile(PROGRAMS["majority"], max_length=100)
    assert tf.certify(model, number_system("float16")) == tf.certify(model, "float16")


def test_a_length_at_which_a_model_is_refused_is_one_for_which_nothing_holds():
    """The key is N i/n, which is the place for N alone; the proof stops for any N."""

    @tf.program(alphabet="ab")
    def nearest(x):
        return (x.select(x, mask="strict-future").rightmost(x, default="a") == "a").tag()

    model = tf.compile(nearest, max_length=200, positions=("i/n",), arithmetic="exact")
    with pytest.raises(Uncertifiable, match="keys must be read with weight 1"):
        by_laws(model, "bfloat16", 10)
    assert not by_laws(model, "bfloat16").holds and not holds_by_laws(model, "bfloat16", 10)
    for n in (10, 200):
        found = tf.certify(model, "bfloat16", n)
        assert not found.holds and found.largest_length == 0
        assert found.stopped.startswith("layer 0 head 0: the error of a difference of scores")


def test_a_step_of_what_is_one_number_has_a_bound():
    network = tf.FeedForward(W_1=[[2, 0], [2, 0]], b_1=[-F(1, 2), -F(3, 2)], W_2=[[0, 0], [1, -1]])
    model = accepting(
        ("x", "o"), {"a": {"x": 1}}, [0, 1], -F(1, 2), layers=(tf.Layer(feed_forward=network),)
    )
    assert tf.certify(model, "float32").holds and holds_by_laws(model)
    assert model("a", "float32") is model("a", "exact")


def test_a_number_of_a_symbol_has_to_fit_though_nothing_reads_it():
    model = accepting(("x", "c"), {x: {"x": k, "c": 600} for k, x in enumerate("ab")}, [1, 0], -1)
    assert not tf.certify(model, "float8_e4m3").holds
    with pytest.raises(tf.TransformistError, match="finite"):
        model("a", "float8_e4m3")


@pytest.mark.parametrize("size", [1, 1000])
def test_weights_that_underflow_are_off_by_as_much_as_their_values_are_large(size):
    """Beyond the place that is chosen 200 weights of a softmax are below 2⁻²⁴ in float16."""
    head = tf.Attention(
        W_Q=[[0] * 3], b_Q=[16], W_K=[[0, 1, 0]], W_V=[[1, 0, 0]], W_O=[[0], [0], [1]]
    )
    words = {"a": {"v": size}, "b": {"v": -size}}
    model = accepting(
        ("v", "p", "o"), words, [0, 0, 1], -F(1, 2), 200, (tf.Layer((head,)),), positions={"p": "i"}
    )
    line = tf.certify(model, "float16").lines[-1]
    assert line.errors.absolute >= 3 * 200 * 2.0**-24 * size


@pytest.mark.trials(3, 10)
def test_each_number_of_a_short_vocabulary_is_tried_against_its_certificate(trials):
    """Constants, biases and weights that no format holds, at the edge of a decision, for N = 1."""
    held = 0
    for p in range(3, 3 + trials):
        for fmt in ("float16", "bfloat16", "float8_e5m2", "float8_e4m3"):
            c, w = F(p, 7), F(p + 2, 11)
            words = {"a": {"c": c, "x": F(1, p)}, "b": {"c": c, "x": 1}}
            for shift in (F(1, 2**k) * sign for k in (2, 4, 8, 12) for sign in (1, -1)):
                near = F(round(c * w * 2**10), 2**10)
                model = accepting(("c", "x"), words, [w, 3], shift - near - F(3, p), 1)
                found = tf.certify(model, fmt)
                held += holds_by_laws(model, fmt)
                for x in "ab" * found.holds:
                    assert model(x, fmt) == model(x, "exact"), (p, fmt, shift, x)
    assert held >= 4 * trials


def test_a_head_that_writes_nothing_is_refused_where_its_scores_may_overflow():
    """No number stands for its output, so no law required that its scores fit."""
    idle = tf.Attention(W_Q=[[1, 0]], W_K=[[1, 0]], W_V=[[1, 0]], W_O=[[0], [0]])
    words = {"a": {"v": 300}, "b": {"v": 301}}
    built = accepting("vo", words, [1, 0], -F(601, 2), 2, [tf.Layer((idle,))])
    with pytest.raises(tf.TransformistError, match="scores must stay below"):
        built("ab", "float16")
    with pytest.raises(Uncertifiable, match="a head must write to the stream"):
        tf.certify(built, "float16")
    assert tf.certify(built, "float32").grade == 1
