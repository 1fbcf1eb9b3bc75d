"""A decoder is used by one call at a time, and reads on after none that was not done to its end."""

import copy
import pickle
import random
import sys
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import transformist as tf
from transformist.engines.structured.decoding import decoders, reading
from transformist.engines.structured.decoding.steps import Attend
from transformist.engines.structured.heads import method

STEPS = Path(decoders.__file__).parent
READ_FILES = {str(STEPS / name) for name in ("decoders.py", "reading.py", "steps.py")}


def attending():
    """A head whose queries vary, one whose query is fixed, and symbols that weigh differently."""
    own = {"W_K": [[0, 1, 0, 0]], "W_V": [[0, 0, 1, 0]], "W_O": [[0], [0], [0], [1]]}
    heads = (
        tf.Attention(W_Q=[[0, 1, 0, 0]], weighting="average-hard", mask="future", **own),
        tf.Attention(W_Q=[[0, 0, 0, 0]], weighting="softmax", mask="future", **own),
    )
    return tf.Transformer(
        stream=tf.Stream(("i", "g", "v", "o")),
        embedding=tf.Embedding(
            symbols=tuple(range(6)),
            vectors=[[0, g, g * g, 0] for g in range(6)],
            positions=tf.PositionFunctions(("i", None, None, None)),
        ),
        layers=(tf.Layer(heads=heads),),
        read_out=tf.RealVector(W_out=[[0, 0, 0, 1]], at="every"),
    )


def interrupted_at(line, act):
    """Whether an act was interrupted, before the line of that number of those that it runs."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if frame.f_code.co_filename not in READ_FILES:
            return None
        lines += event == "line"
        if event == "line" and lines == line:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(
    "act",
    [
        lambda decoder, x: decoder.take(x[0]),
        lambda decoder, x: decoder.take_all(x[:3]),
        pytest.param(
            lambda decoder, x: (decoder.take_all(x[:2]), decoder.take(x[2])), marks=pytest.mark.slow
        ),
        pytest.param(lambda decoder, x: copy.copy(decoder), marks=pytest.mark.slow),
        lambda decoder, x: pickle.dumps(decoder),
    ],
    ids=["take", "take_all", "both", "copy", "pickle"],
)
def test_after_an_interruption_answers_are_right_or_refused(act, monkeypatch):
    monkeypatch.setattr(method, "FEW", 4)
    model = attending()
    x = random.Random(1).choices(range(3), k=30) + random.Random(2).choices(range(6), k=20)
    expected, begun = model(x), tf.decoder(model)
    begun.take_all(x[:20])
    refused, line = 0, 0
    while True:
        line += 1
        decoder = copy.copy(begun)
        for symbol in x[20:26]:
            decoder.take(symbol)
        if not interrupted_at(line, lambda known=decoder: act(known, x[known.length :])):
            break
        n = decoder.length
        try:
            got = [decoder.take(symbol) for symbol in x[n : n + 8]] + decoder.take_all(x[n + 8 :])
        except tf.TransformistError as error:
            assert "a symbol after one that was not read to its end; begin a new" in str(error)
            refused += 1
        else:
            np.testing.assert_allclose(got, expected[n:], err_msg=f"line {line}")
    assert line > 10 and 0 < refused < line


WHILE_READING = {
    "take": lambda decoder: decoder.take(")"),
    "take_all": lambda decoder: decoder.take_all(")")[0],
    "copy": lambda decoder: copy.copy(decoder).take(")"),
    "deepcopy": lambda decoder: copy.deepcopy(decoder).take(")"),
    "pickle": lambda decoder: pickle.loads(pickle.dumps(decoder)).take(")"),
}


@pytest.mark.parametrize("name", WHILE_READING)
def test_another_thread_waits(name, monkeypatch):
    """It comes in the middle of a symbol, and has what it asks for after that symbol."""
    decoder, whole, found = tf.decoder(tf.recipe("dyck-1").build()), reading.OneByOne.read, []
    other = threading.Thread(target=lambda: found.append(WHILE_READING[name](decoder)))

    def read(single, row):
        if other.ident is None:
            other.start()
            other.join(0.2)  # it waits for longer
        return whole(single, row)

    monkeypatch.setattr(reading.OneByOne, "read", read)
    assert decoder.take("(") is False
    other.join()
    assert found == [True]
    assert decoder.length == (2 if name.startswith("take") else 1)


def test_a_table_of_positions_that_ends_is_told_of_before_anything_is_read():
    model = replace(
        attending(),
        embedding=tf.Embedding(
            symbols=(0, 1),
            vectors=[[0, 1, 1, 0], [0, 2, 5, 0]],
            positions=tf.PositionTable(vectors=np.ones((3, 4))),
        ),
    )
    for read_first in ([], [0]):
        decoder = tf.decoder(model)
        decoder.take_all(read_first)
        with pytest.raises(tf.TransformistError, match="to N = 3; received length 4; build it"):
            decoder.take_all([0, 1, 0, 1][len(read_first) :])
        assert decoder.length == len(read_first)
        got = [decoder.take(symbol) for symbol in [0, 1, 0][len(read_first) :]]
        np.testing.assert_allclose(got, model([0, 1, 0])[len(read_first) :])
        for _ in range(2):
            with pytest.raises(tf.TransformistError, match="this one goes to N = 3; rec"):
                decoder.take(1)
        assert decoder.length == 3 and decoder.take_all([]) == []


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("read", [0, 1])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_hidden_unit_that_overflows_is_refused_by_what_comes_of_it(activation, read, sign):
    """The reference answers where nothing reads the unit, and where ReLU makes 0 of −∞."""
    network = tf.FeedForward(W_1=[[sign * 1e300]], W_2=[[read]], activation=activation)
    model = tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1], [1e100]]),
        layers=(tf.Layer(feed_forward=network),),
        read_out=tf.RealVector(W_out=[[1]], at="every"),
    )
    ways = [
        lambda: tf.run(model, "b", engine="structured"),
        lambda: tf.decoder(model).take_all("b"),
        lambda: [tf.decoder(model).take("b")],
    ]
    for way in ways:
        if not read or (activation, sign) == ("relu", -1):
            assert way() == model("b") == [[1e100]]
        else:
            with pytest.raises(tf.TransformistError, match="one that overflows"):
                way()


def ending(**given):
    return tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=("a", "b", "c"), vectors=[[1, 0], [1e308, 0], [5, 5]]),
        read_out=tf.Binary(W_out=[[1, 0]]),
        **given,
    )


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("symbol", "model", "why"),
    [
        (
            "b",
            ending(layers=(tf.Layer(feed_forward=tf.FeedForward(W_1=[[1, 0]], W_2=[[1], [0]])),)),
            r"refused \(scores and values must stay below 1.79769e\+308 in float64\); begin a new",
        ),
        (
            "c",
            ending(layers=(), final_norm=tf.LayerNorm(gain=[1, 1], epsilon=0)),
            r"refused \(a norm with ε = 0 needs a vector whose coordinates .*\); begin a new",
        ),
    ],
    ids=["overflow", "norm"],
)
def test_what_ended_it_is_said(symbol, model, why, together):
    decoder = tf.decoder(model)
    assert decoder.take("a") is True
    with pytest.raises(tf.TransformistError):
        decoder.take_all(symbol) if together else decoder.take(symbol)
    for _ in range(2):
        with pytest.raises(tf.TransformistError, match="a symbol after one that was " + why):
            decoder.take("a")
    with pytest.raises(tf.TransformistError, match="a symbol after one that was " + why):
        copy.copy(decoder).take("a")


def of_two(layers, first, W_out):
    """A model of two coordinates over one symbol."""
    return tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=("a",), vectors=[[first, 0]]),
        layers=layers,
        read_out=tf.RealVector(W_out=W_out, at="every"),
    )


def test_what_a_later_norm_drops_has_overflowed_nevertheless():
    beyond = tf.FeedForward(W_1=[[1e200, 0]], b_1=[0], W_2=[[0], [1e200]], b_2=[0, 0])
    more = tf.FeedForward(W_1=[[1, 0]], b_1=[0], W_2=[[1], [0]], b_2=[0, 0])
    norm = tf.LayerNorm(gain=[1, 1], bias=[0, 0], epsilon=1, W_N=[[1, 0], [-1, 0]])
    layers = (tf.Layer((), beyond), tf.Layer((), more, (None, None), (None, norm)))
    model = of_two(layers, 1, [[1, 0], [0, 1]])
    for run in (
        lambda: tf.run(model, "a", engine="structured"),
        lambda: tf.decoder(model).take("a"),
        lambda: tf.decoder(model).take_all("a"),
    ):
        with pytest.raises(tf.TransformistError, match="one that overflows"):
            run()


def test_a_number_near_the_largest_from_which_nothing_overflows():
    small = {name: [[1e-300, 0]] for name in ("W_Q", "W_K", "W_V")}
    head = tf.Attention(**small, W_O=[[0], [1]], mask="future")
    model = of_two((tf.Layer((head,)),), 1e308, [[0, 1]])
    decoder = tf.decoder(model)
    answers = [decoder.take("a"), *decoder.take_all("aa"), decoder.take("a")]
    assert answers == tf.run(model, "aaaa", engine="structured") == tf.run(model, "aaaa")


def test_a_pickle_holds_what_was_read_and_no_more():
    """Room for keys is made without being filled: in it is what was in memory before."""
    model = tf.recipe("induction-most-recent").build(alphabet="abcd")
    one, other = tf.decoder(model), tf.decoder(model)
    one.take_all("abcd" * 75)
    for _ in range(75):
        other.take_all("abcd")
    for each in (one, other):
        steps = pickle.loads(pickle.dumps(each))._steps
        *_, past = (step.head._past for step in steps if isinstance(step, Attend))
        assert [len(array) for array in past.room] == [past.count] * 2 == [301] * 2
    again = pickle.loads(pickle.dumps(one))
    assert again.take_all("abca") == one.take_all("abca") == other.take_all("abca")


def test_new_queries_go_through_the_past_in_blocks():
    """Else four hundred after a long past take an array of them times the past."""
    count, past = 400, 50_000
    vectors = np.stack([np.arange(1, count + 1), np.zeros(count)], axis=1)
    ones = {name: [[1, 0]] for name in ("W_Q", "W_K", "W_V")}
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=tuple(range(count)), vectors=vectors),
        layers=(tf.Layer((tf.Attention(**ones, W_O=[[0], [1]], mask="future"),)),),
        read_out=tf.Binary(W_out=[[0, 1]]),
    )
    decoder = tf.decoder(model)
    decoder.take_all([0] * past)
    tracemalloc.start()
    decoder.take_all(range(count))
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 8 * count * past / 2
