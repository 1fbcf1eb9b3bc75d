"""Autoregressive language models: Eq. 20 against a sum over all strings, and generation."""

import itertools
import math

import pytest

from transformist.errors import InputTooLong, InvalidValue, UnknownSymbol
from transformist.model import (
    BOS,
    EOS,
    Attention,
    Binary,
    Embedding,
    LanguageModel,
    Layer,
    Stream,
    Transformer,
)

STREAM = Stream(("a", "b", "start", "mean"))
WORDS = {"a": "a", "b": "b", BOS: "start"}
MEAN = Attention(
    W_Q=[[0] * 4], W_K=[[0] * 4], W_V=STREAM.writing("mean") @ STREAM.reading("a"), mask="future"
)
SHARP = Attention(W_Q=STREAM.reading("b"), W_K=STREAM.reading("a"), W_V=MEAN.W_V, mask="future")
ROWS = STREAM.reading({"mean": 2, "b": 1}, {"a": 1, "start": 1}, {"b": 1, "mean": -1})


def language_model(**changes):
    parts = {
        "stream": STREAM,
        "embedding": Embedding.of(STREAM, WORDS, front=[BOS]),
        "layers": (Layer(heads=(MEAN, SHARP)),),
        "read_out": LanguageModel(W_out=ROWS, labels=("a", "b", EOS), at="every"),
        **changes,
    }
    return Transformer(**parts)


def by_hand(x):
    """log P(x) with plain floats: mean of [a], plus the same mean weighted by e^[query is b][a]."""
    return sum(step(x, i) for i in range(len(x) + 1))


def by_hand_end(x):
    return step(x, len(x))


def step(x, i):
    """log P of the symbol after x₁ … xᵢ, EOS being the last."""
    seen = [BOS, *x[:i]]
    ones = [symbol == "a" for symbol in seen]
    e = [math.exp(seen[-1] == "b" and one) for one in ones]
    mean = sum(ones) / len(ones) + sum(w for w, one in zip(e, ones, strict=True) if one) / sum(e)
    last = seen[-1]
    logits = [2 * mean + (last == "b"), (last == "a") + (last == BOS), (last == "b") - mean]
    target = [*x, EOS][i]
    chosen = logits[("a", "b", EOS).index(target)]
    return chosen - math.log(sum(math.exp(each) for each in logits))


def test_log_probability_is_that_of_the_definition():
    model = language_model()
    for n in range(5):
        for symbols in itertools.product("ab", repeat=n):
            x = "".join(symbols)
            assert model.log_probability(x) == pytest.approx(by_hand(x), rel=1e-12)


def both_ways():
    """A model whose position i sees the whole input: the share of a, and the symbol itself."""
    everywhere = Attention(W_Q=[[0] * 4], W_K=[[0] * 4], W_V=MEAN.W_V)
    return language_model(
        embedding=Embedding.of(STREAM, {"a": "a", "b": "b"}),
        layers=(Layer(heads=(everywhere,)),),
        read_out=LanguageModel(W_out=ROWS, labels=("p", "q", "r"), at="every"),
    )


def test_log_probability_given_an_input_is_that_of_the_definition():
    """Products of softmax at each position, in plain floats; over all y they sum to 1."""
    model = both_ways()
    for x in ("a", "ab", "bba"):
        share, total = x.count("a") / len(x), 0.0
        for y in itertools.product("pqr", repeat=len(x)):
            wanted = 0.0
            for given, symbol in zip(x, y, strict=True):
                logits = [2 * share + (given == "b"), given == "a", (given == "b") - share]
                wanted += logits["pqr".index(symbol)]
                wanted -= math.log(sum(math.exp(each) for each in logits))
            got = model.log_probability_given("".join(y), x)
            assert got == pytest.approx(wanted, rel=1e-12)
            total += math.exp(got)
        assert total == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("y", "x", "refusal", "words"),
    [
        ("p", "ab", InvalidValue, "1 symbols for 2 positions"),
        ("px", "ab", UnknownSymbol, "'x' at position 2"),
        ("pp", "ax", UnknownSymbol, "'x' at position 2"),
        (["p", ["q"]], "ab", UnknownSymbol, "at position 2"),
        (3, "ab", InvalidValue, "a string, or a sequence"),
    ],
)
def test_other_strings_are_refused(y, x, refusal, words):
    with pytest.raises(refusal, match=words):
        both_ways().log_probability_given(y, x)


def test_a_read_out_without_a_distribution_at_every_position_is_refused():
    binary = language_model(read_out=Binary(W_out=STREAM.reading("mean")))
    last = language_model(read_out=LanguageModel(W_out=ROWS, labels=("a", "b", EOS)))
    for model in (binary, last):
        with pytest.raises(InvalidValue, match="distribution at every position"):
            model.log_probability_given("a", "a")


def test_probabilities_of_all_short_strings_stay_below_one():
    model = language_model()
    total = sum(
        math.exp(model.log_probability("".join(x)))
        for n in range(8)
        for x in itertools.product("ab", repeat=n)
    )
    assert 0.5 < total < 1


def test_generation_takes_the_most_probable_symbol_until_eos():
    model = language_model(max_length=12)
    for prompt in ("", "a", "ab", "bba"):
        x = list(prompt)
        while len(x) < len(prompt) + 4:
            chance = {s: by_hand([*x, s]) - by_hand_end([*x, s]) for s in "ab"}
            if by_hand(x) > max(chance.values()):
                break
            x.append(max(chance, key=chance.get))
        assert model.generate(prompt, max_new_tokens=4) == x[len(prompt) :]
    certain = LanguageModel(
        W_out=STREAM.reading({"start": 9}, {"a": 9}, {"b": 9}), labels=("a", "b", EOS)
    )
    assert language_model(read_out=certain).generate("", max_new_tokens=9) == ["a", "b"]
    assert language_model(read_out=certain).generate("b") == []
    with pytest.raises(InputTooLong):
        model.generate("a" * 13)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"read_out": Binary(W_out=STREAM.reading("mean"))}, "a read-out with probabilities"),
        ({"read_out": LanguageModel(W_out=ROWS, labels=("a", "b", "c"))}, "EOS among the labels"),
        ({"embedding": Embedding.of(STREAM, {"a": "a", "b": "b"})}, "BOS in front"),
        (
            {"embedding": Embedding.of(STREAM, WORDS, positions={"mean": "i/n"}, front=[BOS])},
            "do not know n",
        ),
        (
            {"layers": (Layer(heads=(Attention(W_Q=[[0] * 4], W_K=[[0] * 4], W_V=MEAN.W_V),)),)},
            "future masks \\(it has none\\)",
        ),
    ],
)
def test_other_models_are_refused(changes, words):
    for call in (Transformer.log_probability, Transformer.generate):
        with pytest.raises(InvalidValue, match=words):
            call(language_model(**changes), "ab")
