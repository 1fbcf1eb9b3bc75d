"""A token by the kernel is a token by the steps, bit for bit."""

import copy
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest
from test_decoding import MODELS

import transformist as tf
from transformist.engines.structured.decoding import one_token, reading
from transformist.engines.structured.heads import method
from transformist.position_features import POSITIONS

LENGTH = 60
"""Longer than the room for keys is at first."""


def in_numbers(model):
    """The final vectors, as the answer."""
    return replace(model, read_out=tf.RealVector(W_out=np.eye(model.width), at="every"))


def taken_together(model, x, arithmetic="float64"):
    """Token by token, by the steps alone."""
    decoder = tf.decoder(model, arithmetic)
    return [decoder.take_all([symbol])[0] for symbol in x], decoder


def drawn(seed, alphabet="abc", d=5):
    """Heads whose queries and keys read places or symbols, networks, norms here and there."""
    rnd, chance = np.random.default_rng(seed), random.Random(seed)

    def numbers(*shape):
        return rnd.integers(-3, 4, shape) / chance.choice((1, 2, 3))

    def head():
        key, value = chance.randint(1, 3), chance.randint(1, 3)
        reads = {"place": [1, 0, 0, 0, 0], "symbol": [0, 1, 1, 0, 0], "both": [1, 1, 1, 1, 1]}
        q, k = (np.array(reads[chance.choice(list(reads))]) for _ in range(2))
        return tf.Attention(
            W_Q=numbers(key, d) * q, b_Q=numbers(key) * chance.randint(0, 1),
            W_K=numbers(key, d) * k, b_K=numbers(key) * chance.randint(0, 1),
            W_V=numbers(value, d), b_V=numbers(value), W_O=numbers(d, value) / 8,
            weighting=chance.choice(("softmax", "average-hard", "leftmost-hard", "rightmost-hard")),
            mask=chance.choice(("future", "strict-future")),
        )  # fmt: skip

    def norm():
        made = tf.LayerNorm(gain=numbers(d), bias=numbers(d), epsilon=1 / 8)
        return made if chance.random() < 0.15 else None

    def layer():
        network = tf.FeedForward(
            W_1=numbers(4, d), b_1=numbers(4), W_2=numbers(d, 4) / 8, b_2=numbers(d),
            activation=chance.choice(("relu", "relu", "relu", "gelu")),
        )  # fmt: skip
        return tf.Layer(
            heads=tuple(head() for _ in range(chance.randint(1, 3))),
            feed_forward=network,
            pre_norms=(norm(), norm()),
            post_norms=(norm(), norm()),
        )

    front = ("^",) * chance.randint(0, 1)
    places = ["i", "(-1)^i"] if front else ["i", "1/i", "-1/i", "(-1)^i", "i^2"]
    return tf.Transformer(
        stream=tf.Stream(tuple("vwxyz")),
        embedding=tf.Embedding(
            symbols=(*alphabet, *front),
            vectors=numbers(len(alphabet) + len(front), d),
            positions=tf.PositionFunctions((chance.choice(places), None, None, None, None)),
            front=front,
        ),
        layers=tuple(layer() for _ in range(chance.randint(1, 2))),
        final_norm=norm(),
        read_out=tf.MultiClass(W_out=numbers(3, d), labels=("p", "q", "r"), at="every"),
    )


def by_turns(model, x, arithmetic):
    """Some tokens by the kernel, some by the steps, and so on."""
    decoder, rnd, got = tf.decoder(model, arithmetic), random.Random(len(x)), []
    while len(got) < len(x):
        part = x[len(got) : len(got) + rnd.randint(1, 4)]
        got += [decoder.take(each) for each in part]
        part = x[len(got) : len(got) + rnd.choice((0, 1, 2))]
        got += [answer for each in part for answer in decoder.take_all([each])]
    return got


def require_same(model, x, arithmetic, few, monkeypatch):
    """The methods, by which answers and final vectors are those of the steps."""
    monkeypatch.setattr(method, "FEW", few)
    for each in (model, in_numbers(model)):
        expected, steps = taken_together(each, x, arithmetic)
        decoder = tf.decoder(each, arithmetic)
        assert [decoder.take(symbol) for symbol in x] == expected
        assert decoder.methods == steps.methods
        assert decoder.length == len(x) and decoder.answer == expected[-1]
        assert by_turns(each, x, arithmetic) == expected
    return set(decoder.methods)


@pytest.mark.parametrize("few", [512, 4])
@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_on_models(name, arithmetic, few, monkeypatch):
    x = random.Random(name).choices(MODELS[name].alphabet, k=LENGTH)
    require_same(MODELS[name], x, arithmetic, few, monkeypatch)


@pytest.mark.trials(2, 30)
def test_on_drawn_models(trials, monkeypatch):
    methods = set()
    for seed in range(trials):
        model, x = drawn(seed), random.Random(seed).choices("abc", k=40)
        for arithmetic in ("float64", "float32"):
            for few in (512, 3):
                methods |= require_same(model, x, arithmetic, few, monkeypatch)
    assert methods >= {"by query", "by key", "dense"}


@pytest.mark.parametrize(
    "weighting", ["softmax", "average-hard", "leftmost-hard", "rightmost-hard"]
)
@pytest.mark.parametrize("mask", ["future", "strict-future"])
@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize("term", ["1/3", 0])
def test_by_key(weighting, mask, arithmetic, term, monkeypatch):
    """Queries are places, keys symbols, beside a term; without it c and d often tie."""
    head = tf.Attention(
        W_Q=[[1, 0, 0], [0, 0, 0], [0, 1, 0]], b_Q=[0, term, 0],
        W_K=[[0, 1, 0], ["1/7", 0, 0], [0, 0, 1]],
        W_V=[[0, "1/3", 1], [1, 0, 0]], W_O=[[0, 0], [0, 1], [1, 0]],
        weighting=weighting, mask=mask,
    )  # fmt: skip
    model = tf.Transformer(
        stream=tf.Stream(("place", "symbol", "other")),
        embedding=tf.Embedding(
            symbols=tuple("abcd"),
            vectors=[[0, -1, 2], [0, 0, "1/3"], [0, "1/3", 0], [0, "1/3", 1]],
            positions=tf.PositionFunctions(("1/i", None, None)),
        ),
        layers=(tf.Layer(heads=(head,)),),
        read_out=tf.RealVector(W_out=np.eye(3), at="every"),
    )
    x = random.Random(5).choices("abcd", k=LENGTH)
    methods = require_same(model, x, arithmetic, 8, monkeypatch)
    if not term:
        decoder = tf.decoder(model, arithmetic)
        decoder.take_all(x)  # of which there is room for 64 keys
        assert methods == {"by key"} and left_of(decoder, x[:4], monkeypatch) == []


def left_of(decoder, x, monkeypatch):
    """The steps that the kernel leaves while these are read, the first token aside."""
    done, do = [], reading.OneByOne._do
    decoder.take(x[0])
    monkeypatch.setattr(
        reading.OneByOne,
        "_do",
        lambda self, number, row: (done.append(number), do(self, number, row)),
    )
    for symbol in x[1:]:
        decoder.take(symbol)
    return done


@pytest.mark.parametrize(
    "name", ["dyck-1", "induction-most-recent", "programs/dyck-k-d softmax", "dyck-1-uniform"]
)
def test_the_kernel_takes_it_all(name, monkeypatch):
    """So that it is not the steps that are compared with themselves; 6 + 40 keys have room."""
    model = replace(MODELS[name], max_length=None)
    x = "".join(random.Random(name).choices(model.alphabet, k=200))
    decoder = tf.decoder(model)
    decoder.take_all(x[:140])
    assert left_of(decoder, x[140:180], monkeypatch) == []


@pytest.mark.parametrize("name", MODELS)
def test_one_by_one_is_as_all_at_once(name):
    model = in_numbers(MODELS[name])
    x = random.Random(name).choices(model.alphabet, k=LENGTH)
    decoder = tf.decoder(model)
    together, apart = tf.decoder(model).take_all(x), [decoder.take(symbol) for symbol in x]
    np.testing.assert_allclose(apart, together, rtol=1e-14, atol=1e-14)  # in another order
    assert "hull" not in decoder.methods


@pytest.mark.parametrize("name", [name for name in POSITIONS if not name.endswith("/n")])
@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
def test_positions(name, arithmetic):
    """Where places are squared exactly, and beyond."""
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(
            symbols=("a", "b"),
            vectors=[["1/3", 1], ["-1/7", 2]],
            positions=tf.PositionFunctions((name, None)),
        ),
        layers=(),
        read_out=tf.RealVector(W_out=np.eye(2), at="every"),
    )
    for before in (0, 1, 2, 1000, 2**25 + 1, 2**26 - 2, 2**26, 2**40 + 1):
        expected, got = tf.decoder(model, arithmetic), tf.decoder(model, arithmetic)
        expected.length = got.length = before
        for symbol in "abba":
            assert got.take(symbol) == expected.take_all([symbol])[0]
    assert (name in one_token.FUNCTIONS) == (name != "i^3")


def test_other_positions_are_left_to_the_steps():
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=("a",), vectors=[[1, 2]], positions=tf.Sinusoids(2)),
        layers=(),
        read_out=tf.RealVector(W_out=np.eye(2), at="every"),
    )
    decoder = tf.decoder(model)
    assert [decoder.take("a") for _ in range(3)] == taken_together(model, "aaa")[0]


def doubling():
    """Twice 10³⁰⁸ is too large for float64."""
    return tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1], [1e308]]),
        layers=(tf.Layer(feed_forward=tf.FeedForward(W_1=[[1]], W_2=[[1]])),),
        read_out=tf.Binary(W_out=[[1]]),
    )


def test_what_overflows_is_refused_and_ends_it():
    decoder = tf.decoder(doubling())
    assert decoder.take("a") is True
    with pytest.raises(tf.TransformistError, match="one that overflows"):
        decoder.take("b")
    with pytest.raises(tf.TransformistError, match="begin a new decoder"):
        decoder.take("a")
    assert decoder.length == 1


def test_what_overflows_in_the_read_out_is_refused():
    model = replace(doubling(), read_out=tf.Binary(W_out=[[1e308]]))
    decoder = tf.decoder(model)
    with pytest.raises(tf.TransformistError, match="one that overflows"):
        decoder.take("a")


@pytest.mark.parametrize("together", [False, True])
def test_a_token_that_is_too_large_for_a_head_is_refused(together):
    """Its score is, which no hard head would show in what it gives."""
    head = tf.Attention(
        W_Q=[[0]], b_Q=[-1e200], W_K=[[1]], W_V=[[0]], weighting="average-hard", mask="future"
    )
    model = tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1], [1e200]]),
        layers=(tf.Layer(heads=(head,)),),
        read_out=tf.Binary(W_out=[[1]]),
    )
    decoder = tf.decoder(model)
    assert [decoder.take(symbol) for symbol in "aaa"] == [True] * 3
    with pytest.raises(
        tf.TransformistError, match="numbers so small that no score or sum of values"
    ):
        decoder.take_all("b") if together else decoder.take("b")


def test_an_unknown_symbol_is_not_read():
    decoder = tf.decoder(MODELS["dyck-1"])
    decoder.take("(")
    with pytest.raises(tf.TransformistError, match="received 'x' at position 2"):
        decoder.take("x")
    assert decoder.take(")") is True and decoder.length == 2


def from_bytes(decoder):
    """Its arrays are in bytes, which nothing may write to; here those of another one too."""
    buffers = []
    pickled = pickle.dumps(decoder, protocol=5, buffer_callback=buffers.append)
    kept = [bytes(each.raw()) for each in buffers]
    assert kept
    other = pickle.loads(pickled, buffers=kept)
    for symbol in decoder.model.alphabet:
        other.take(symbol)
    other.take_all([*decoder.model.alphabet] * 3)
    assert kept == [bytes(each.raw()) for each in buffers]
    return pickle.loads(pickled, buffers=kept)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), from_bytes],
    ids=["copy", "deepcopy", "pickle", "bytes"],
)
@pytest.mark.parametrize("name", ["induction-most-recent", "parity", "programs/dyck-1 softmax"])
def test_a_copy_goes_its_own_way(name, copied):
    model = MODELS[name]
    x = random.Random(name).choices(
        model.alphabet, k=2 * LENGTH if model.max_length is None else 60
    )
    decoder = tf.decoder(model)
    for symbol in x[:20]:
        decoder.take(symbol)
    other = copied(decoder)
    for symbol in reversed(x[20:]):
        other.take(symbol)
    assert [decoder.take(symbol) for symbol in x[20:]] == taken_together(model, x)[0][20:]
    assert other.answer == taken_together(model, [*x[:20], *reversed(x[20:])])[0][-1]
