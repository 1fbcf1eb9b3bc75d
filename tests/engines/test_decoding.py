"""Models that read a token at a time answer as they do on each prefix."""

import dataclasses
import random

import pytest

import transformist as tf
from transformist.engines.structured.heads import method
from transformist.programs import PROGRAMS


def tagger(of):
    """A program that tags with a mean of the places of a."""

    @tf.program(alphabet="ab")
    def means(x):
        return of((x == "a").where(1, 0)).tag()

    return tf.compile(means, max_length=64, arithmetic="float64")


MEAN_OF_ALL = tagger(lambda each: each.mean())
PREFIX_MEAN = tagger(lambda each: each.prefix_mean())
AHEAD = dataclasses.replace(
    PREFIX_MEAN, read_out=dataclasses.replace(PREFIX_MEAN.read_out, mask="past")
)

CAUSAL = ("dyck-1", "shuffle-dyck-2", "dyck-k-d", "induction-most-recent", "contains-abc")


def models():
    for name in ("parity", "induction-most-recent", "induction-most-frequent", "dyck-1"):
        yield (
            name,
            tf.recipe(name).build(max_length=64) if name == "dyck-1" else tf.recipe(name).build(),
        )
    yield "means to here", PREFIX_MEAN
    for weighting in ("softmax", "average-hard"):
        model = tf.compile(
            PROGRAMS["fraction-of-previous"],
            max_length=64,
            weighting=weighting,
            arithmetic="float64",
        )
        yield f"means before, {weighting}", model
    yield "dyck-1-uniform", tf.recipe("dyck-1-uniform").build()
    for name in ("dyck-1", "shuffle-dyck-2", "dyck-k-d", "induction-most-recent"):
        for weighting in ("softmax", "average-hard"):
            yield (
                f"programs/{name} {weighting}",
                tf.compile(
                    PROGRAMS[name], max_length=64, weighting=weighting, arithmetic="float64"
                ),
            )


MODELS = dict(models())


def last(answer):
    return answer[-1] if isinstance(answer, str | list) else answer


@pytest.mark.parametrize("name", MODELS)
def test_it_answers_for_every_prefix(name):
    model = MODELS[name]
    x = "".join(random.Random(name).choices(model.alphabet, k=40))
    decoder = tf.decoder(model)
    got = [decoder.take(symbol) for symbol in x]
    assert got == [last(model(x[: i + 1])) for i in range(len(x))]
    assert decoder.answer == got[-1] and decoder.length == 40


@pytest.mark.parametrize("name", MODELS)
def test_many_at_once_are_as_one_by_one(name, monkeypatch):
    monkeypatch.setattr(method, "FEW", 4)  # so that heads are evaluated by what takes over
    model = MODELS[name]
    x = "".join(random.Random(name).choices(model.alphabet, k=60))
    decoder = tf.decoder(model)
    got = decoder.take_all(x[:7]) + decoder.take_all("") + decoder.take_all(x[7:])
    expected = [last(model(x[: i + 1])) for i in range(len(x))]
    assert got == expected


def test_a_recognizer_with_bos_answers_on_nothing():
    assert tf.decoder(tf.recipe("dyck-1").build()).answer is True


def test_a_model_that_adds_no_symbol_answers_nothing_before_the_first():
    plain = tf.recipe("induction-most-recent").build()
    decoder = tf.decoder(plain)
    assert plain.embedding.front or decoder.answer is None


def test_it_reads_no_more_than_the_model_is_built_for():
    decoder = tf.decoder(tf.recipe("dyck-1").build(max_length=3))
    decoder.take_all("(()")
    with pytest.raises(tf.TransformistError, match="at most N = 3; received length 4; build it"):
        decoder.take(")")
    assert decoder.length == 3


def test_what_is_refused_is_not_read():
    decoder = tf.decoder(tf.recipe("dyck-1").build(max_length=9))
    with pytest.raises(tf.TransformistError, match="received 'x' at position 2"):
        decoder.take_all("(x)")
    assert decoder.length == 0 and decoder.take_all("()") == [False, True]


def test_an_unknown_symbol_is_refused_with_its_place_among_all():
    decoder = tf.decoder(MODELS["dyck-1"])
    decoder.take_all("(()")
    for take, given, place in ((decoder.take, "x", 4), (decoder.take_all, [")", "x"], 5)):
        with pytest.raises(tf.TransformistError) as error:
            take(given)
        assert f"received 'x' at position {place}; remove it, or build" in str(error.value)
        assert "--" not in str(error.value) and decoder.length == 3


def test_symbols_may_come_from_an_iterator():
    one, other = tf.decoder(MODELS["dyck-1"]), tf.decoder(MODELS["dyck-1"])
    assert one.take_all(each for each in "(())") == other.take_all("(())")
    assert one.length == 4 and one.take_all(iter(())) == []


@pytest.mark.parametrize(
    ("symbols", "why"),
    [
        (5, "an input must be a string, or a sequence of symbols; received 5; give"),
        (None, "an input must be a string, or a sequence of symbols; received None; give"),
        ([["("]], r"every symbol must be one of \( \); received \['\('\] at position 1"),
    ],
)
def test_what_is_no_symbol_is_refused_and_nothing_read(symbols, why):
    decoder = tf.decoder(tf.recipe("dyck-1").build(max_length=9))
    with pytest.raises(tf.TransformistError, match=why):
        decoder.take_all(symbols)
    assert decoder.length == 0 and decoder.take_all("()") == [False, True]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (tf.recipe("original-transformer").build(), r"masks that look ahead \(none\)"),
        (tf.recipe("dyck-k-d").build(), "strict-past"),
        (MEAN_OF_ALL, r"masks that look ahead \(none\) and a read-out of fractions of n"),
        (AHEAD, "with a read-out of fractions of n; run it"),
    ],
)
def test_a_model_that_looks_ahead_is_refused(model, why):
    with pytest.raises(tf.TransformistError, match=rf"must not look ahead; received .*{why}"):
        tf.decoder(model)


def test_another_arithmetic_is_refused():
    with pytest.raises(tf.TransformistError, match="compute in float64 or float32; received exa"):
        tf.decoder(tf.recipe("dyck-1").build(), arithmetic="exact")


def test_a_threshold_that_depends_on_n_is_that_of_each_prefix():
    """1/8 is below 1/(2(n + 1)) for n = 1 and 2, and not from 3 on."""
    model = tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a",), vectors=[[0.125]]),
        layers=(),
        read_out=tf.NearZero(W_out=[[1]], powers=(1,)),
    )
    expected = [model("a" * n) for n in range(1, 6)]
    assert expected == [True, True, False, False, False]
    decoder = tf.decoder(model)
    assert decoder.answer is None
    assert [*decoder.take_all("aaaa"), decoder.take("a")] == expected
