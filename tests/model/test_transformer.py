"""The transformer as a whole: lengths, batches, traces, and what it refuses."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.errors import (
    InputTooLarge,
    InputTooLong,
    InvalidValue,
    ShapeMismatch,
    UnknownName,
)
from transformist.model import (
    BOS,
    Attention,
    Binary,
    Embedding,
    FeedForward,
    Layer,
    LayerNorm,
    Stream,
    Transformer,
)

STREAM = Stream(("x", "mean"))
MEAN = Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[0, 0], [1, 0]], mask="future")


ONE_LAYER = (Layer(heads=(MEAN,)),)


def made(layers=ONE_LAYER, **changes):
    parts = {
        "stream": STREAM,
        "embedding": Embedding.of(STREAM, {"a": {"x": 1}, "b": {"x": -1}}),
        "layers": layers,
        "read_out": Binary(W_out=STREAM.reading("mean")),
        **changes,
    }
    return Transformer(**parts)


def test_answers_equal_runs_one_by_one():
    model = made(max_length=6)
    strings = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]
    for arithmetic in ("exact", "float64", "bfloat16"):
        batch = model.answers(reversed(strings), arithmetic)
        assert batch == [model.run(x, arithmetic).answer for x in reversed(strings)]
    assert model.answers([]) == []


def test_the_final_norm_comes_before_the_read_out():
    normed = made(final_norm=LayerNorm(gain=[1, 1], epsilon=2**-40))
    trace = normed.run("aab")
    assert [name for name, _ in trace.streams] == ["embedding", "layer 0 attention", "final norm"]
    assert trace["mean"][-1] == pytest.approx(1)  # of x = −1 and mean = 1/3, the larger


def test_a_trace_holds_streams_scores_and_weights():
    trace = made().run("abb", "exact")
    assert trace.answer is False
    assert trace["mean"].tolist() == [1, 0, Fraction(-1, 3)]
    assert trace.values("mean", after=0).tolist() == [0, 0, 0]
    assert trace.attention(0, 0).tolist() == [
        [1, 0, 0],
        [Fraction(1, 2)] * 2 + [0],
        [Fraction(1, 3)] * 3,
    ]
    assert not trace.scores(0, 0).any()
    assert trace.symbols == ("a", "b", "b")
    for layer, head in ((1, 0), (0, 1), (-1, 0)):
        with pytest.raises(InvalidValue, match="counted from 0"):
            trace.attention(layer, head)


def test_a_trace_recomputes_the_attention_of_a_later_pre_normed_layer():
    sharp = Attention(W_Q=[[1, 0]], W_K=[[1, 0]], W_V=[[0, 0], [1, 0]])
    nothing = FeedForward(W_1=[[0, 0]], W_2=[[0], [0]])
    norm = LayerNorm(gain=[1, 1], epsilon=1)
    layers = (
        Layer(heads=(MEAN,), feed_forward=nothing),
        Layer(heads=(sharp,), pre_norms=(norm, None)),
    )
    trace = made(layers).run("aabab")
    z = norm(np.stack([trace.values("x", 2), trace.values("mean", 2)], axis=1))
    e = np.exp(np.outer(z[:, 0], z[:, 0]))
    assert np.allclose(trace.attention(1, 0), e / e.sum(axis=1, keepdims=True))


def test_length_limits_are_checked_before_any_work():
    model = made(max_length=3)
    with pytest.raises(InputTooLong, match="at most N = 3; received length 4"):
        model("aaaa")
    with pytest.raises(InputTooLong):
        model.answers(["a", "aaaa"])
    with pytest.raises(InvalidValue, match="at least one symbol"):
        model("")


def test_an_input_too_large_for_the_reference_is_refused_with_the_estimate():
    with pytest.raises(InputTooLarge, match=r"length 100000, which takes 10,000,000,000"):
        made()("a" * 100_000)
    with pytest.raises(InputTooLarge, match="in exact"):
        made().run("a" * 5000, "exact")
    long = tf.Trace(made(), ("a",) * 10_000, None, (), True)
    with pytest.raises(InputTooLarge, match="GiB"):
        long.attention(0, 0)


def test_every_part_has_the_width_of_the_stream():
    wide = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]])
    with pytest.raises(ShapeMismatch, match="layer 0, attention"):
        made((Layer(heads=(wide,)),))
    with pytest.raises(ShapeMismatch, match="read-out"):
        made(read_out=Binary(W_out=[[1]]))
    with pytest.raises(ShapeMismatch, match="final norm"):
        made(final_norm=LayerNorm(gain=[1]))
    with pytest.raises(ShapeMismatch, match="embedding"):
        made(embedding=Embedding(symbols=("a",), vectors=[[1]]))


def test_special_symbols_are_not_part_of_the_alphabet():
    words = {"a": {"x": 1}, BOS: {}}
    model = made(embedding=Embedding.of(STREAM, words, front=[BOS]))
    assert model.alphabet == ("a",)
    assert model("") is False
    assert model("a") is True


def test_the_same_weights_give_the_same_bits_twice():
    model = tf.recipe("dyck-1").build(max_length=200)
    again = tf.recipe("dyck-1").build(max_length=200)
    x = "(()" * 50
    for (_, first), (_, second) in zip(model.run(x).streams, again.run(x).streams, strict=True):
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda model, _: model(0), "a string, or a sequence of symbols; received 0"),
        (lambda model, _: model.answers([3.5]), "sequence of symbols; received 3.5"),
        (lambda model, _: model(np.array("(")), "a sequence of symbols; received array"),
        (lambda model, _: tf.run(model, np.array("(")), "a sequence of symbols; received array"),
        (lambda model, _: model.answers(np.array("(")), "a list of strings.* received array"),
        (lambda _, trace: trace.attention(layer="0", head=0), "received layer '0', head 0"),
        (lambda _, trace: trace.attention(layer=0, head=9), "received layer 0, head 9"),
        (lambda _, trace: trace.values("balance", after=9), "received after = 9"),
        (lambda _, trace: trace.shown("balance", after=1.5), "received after = 1.5"),
        (
            lambda model, _: model.answers("()("),
            r"not one string; received '\(\)\('; .*answers\(\['",
        ),
        (lambda model, _: model.values("()"), r"not one string.* values\(\['\(\)'\]\)"),
        (lambda model, _: list(model.streams("()")), r"not one string.* streams\(\['\(\)'\]\)"),
    ],
)
def test_what_is_not_there_is_refused(asked, words):
    model = tf.recipe("dyck-1").build(max_length=4)
    with pytest.raises(InvalidValue, match=words):
        asked(model, model.run("()"))


def test_a_step_is_found_by_its_name_and_by_its_number():
    trace = tf.recipe("dyck-1").build(max_length=4).run("())(", arithmetic="exact")
    for number, (name, z) in enumerate(trace.streams):
        column = list(trace.model.stream.slots).index("balance")
        assert trace.values("balance", after=name).tolist() == list(
            trace.arithmetic.numbers(z)[:, column]
        )
        assert trace.shown("balance", after=name) == trace.shown("balance", after=number)
    with pytest.raises(UnknownName, match="did you mean layer 0 attention"):
        trace.values("balance", after="layer 0 atention")


@pytest.mark.parametrize("arithmetic", ["float32", "exact"])
def test_streams_of_several_inputs_are_those_of_each(arithmetic):
    model, xs = tf.recipe("dyck-1").build(max_length=4), ["()()", "(())", "))(("]
    found = list(model.streams(xs, arithmetic))
    for k, x in enumerate(xs):
        trace = model.run(x, arithmetic)
        assert [name for name, _ in found] == [name for name, _ in trace.streams]
        for (_, z), (_, alone) in zip(found, trace.streams, strict=True):
            shown = [trace.arithmetic.numbers(each).tolist() for each in (z[k], alone)]
            assert shown[0] == shown[1]


@pytest.mark.parametrize(("xs", "received"), [(["()", "()()"], "lengths 2, 4"), ([], "no inputs")])
def test_streams_are_of_inputs_of_one_length(xs, received):
    with pytest.raises(InvalidValue, match=f"have one length; received {received}"):
        tf.recipe("dyck-1").build(max_length=4).streams(xs)


def test_a_head_is_asked_with_the_name_of_an_arithmetic():
    head = tf.recipe("mean").build(width=1)
    assert head.weights([[1], [2]], "float64").tolist() == [[0.5, 0.5]] * 2
    assert head.scores([[1], [2]], "float64").tolist() == [[0, 0]] * 2
    with pytest.raises(ShapeMismatch, match="epsilon must be given; received None"):
        tf.LayerNorm(gain=[1, 1], epsilon=None)


@pytest.mark.parametrize("arithmetic", ["float64", "float16", "exact", "interval"])
@pytest.mark.parametrize(
    "positions",
    [
        tf.PositionFunctions(("i/n", None)),
        tf.PositionTable(vectors=[[1, 0], [2, 0]]),
        tf.Sinusoids(2),
    ],
)
def test_of_no_symbols_there_are_no_answers(positions, arithmetic):
    """Where a model adds none either, and is read at every position."""
    head = tf.Attention(W_Q=[[1, 0]], W_K=[[1, 0]], W_V=[[1, 0], [0, 1]], weighting="average-hard")
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1, 0], [2, 0]], positions=positions),
        layers=(tf.Layer((head,)),),
        read_out=tf.MultiClass(W_out=[[1, 0], [0, 1]], labels=("u", "v"), at="every"),
    )
    assert model("", arithmetic) == ""
