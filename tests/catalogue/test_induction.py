"""The induction heads against a search through every earlier position."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic.systems import SYSTEMS
from transformist.bounds import recency_length, recency_sharpness
from transformist.errors import InputTooLong

NAMES = ["induction-most-recent", "induction-most-frequent"]
WEIGHTINGS = ["rightmost-hard", "average-hard", "softmax"]
ARITHMETICS = ["exact", "float64", "float32", "float16", "bfloat16"]


def recent(x, alphabet):
    answer = ""
    for i in range(len(x)):
        matches = [j for j in range(1, i + 1) if x[j - 1] == x[i]]
        answer += x[max(matches)] if matches else x[i]
    return answer


def frequent(x, alphabet):
    answer = ""
    for i in range(len(x)):
        counts = [
            (sum(x[j - 1 : j + 1] == x[i] + b for j in range(1, i + 1)), -k)
            for k, b in enumerate(alphabet)
        ]
        most, k = max(counts)
        answer += alphabet[-k] if most else x[i]
    return answer


ORACLES = dict(zip(NAMES, [recent, frequent], strict=True))


def every_string(alphabet, length):
    return ["".join(x) for n in range(length + 1) for x in itertools.product(alphabet, repeat=n)]


def assert_right(name, model, strings, alphabet, arithmetic):
    for x, answer in zip(strings, model.answers(strings, arithmetic), strict=True):
        assert answer == ORACLES[name](x, alphabet), (arithmetic, len(x), x)


def formats(weighting):
    """The arithmetics in which a weighting is claimed: softmax is irrational."""
    return [a for a in ARITHMETICS if (a, weighting) != ("exact", "softmax")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(("alphabet", "length"), [("ab", 6), ("cab", 4)])
def test_every_short_string(name, weighting, alphabet, length):
    strings = every_string(alphabet, length)
    for declared in [length, 1024] if weighting == "softmax" else [1024]:
        model = tf.recipe(name).build(alphabet=alphabet, weighting=weighting, max_length=declared)
        for arithmetic in formats(weighting):
            assert_right(name, model, strings, alphabet, arithmetic)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("weighting", "arithmetic"),
    [(w, a) for w in WEIGHTINGS for a in ("exact", "float64", "float32") if a in formats(w)],
)
@pytest.mark.parametrize(("alphabet", "length"), [("ab", 10), ("cab", 7)])
def test_every_string(name, weighting, alphabet, length, arithmetic):
    strings = every_string(alphabet, length)
    for declared in [length, 10_000] if weighting == "softmax" else [1024]:
        model = tf.recipe(name).build(alphabet=alphabet, weighting=weighting, max_length=declared)
        assert_right(name, model, strings, alphabet, arithmetic)


def hard_strings(alphabet, length, count, seed):
    """Drawn, skewed and periodic strings; one bigram early and one late; runs."""
    source = random.Random(seed)
    a, b, *_, z = alphabet
    quarter = length // 4
    strings = [a * length, z * length, alphabet * length, a + b + z * (length - 3) + a]
    strings += [b + a * (length - 2) + b, a * (length - 1) + b]
    strings += [(a + b) * quarter + (a + z) * more + a for more in (quarter - 1, quarter)]
    strings += [(a + z) * quarter + (a + b) * more + a for more in (quarter - 1, quarter)]
    for _ in range(count):
        strings.append("".join(source.choices(alphabet, k=length)))
        weights = [5 ** -source.random() * 3**-k for k in range(len(alphabet))]
        strings.append("".join(source.choices(alphabet, weights, k=length)))
    return [x[-length:] for x in strings]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_hard_strings_at_the_safe_lengths_of_narrow_formats(name, weighting):
    recipe = tf.recipe(name)
    settings = recipe.settings({"weighting": weighting})
    for arithmetic in ["bfloat16", "float16"]:
        safe = recipe.claim.safe_lengths(settings)[arithmetic]
        length = min(60 if safe is None else safe, 60)
        model = recipe.build(weighting=weighting, max_length=1024 if safe is None else safe)
        for n in {length, length - 1, length // 2} - {0, 1, 2, 3}:
            assert_right(name, model, hard_strings("ABCD", n, 4, n), "ABCD", arithmetic)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("arithmetic", ["float64", "float32", "float16"])
@pytest.mark.parametrize("length", [100, 127, 500])
def test_hard_strings(name, weighting, arithmetic, length):
    recipe = tf.recipe(name)
    safe = recipe.claim.safe_lengths(recipe.settings({"weighting": weighting}))[arithmetic]
    length = length if safe is None else min(length, safe)
    for declared in {length, 500 if safe is None else min(500, safe)}:
        model = recipe.build(weighting=weighting, max_length=declared)
        strings = hard_strings("ABCD", length, 4, length)
        assert_right(name, model, strings, "ABCD", arithmetic)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_long_string_in_float32(name):
    model = tf.recipe(name).build()
    strings = hard_strings("ABCD", 1000, 1, seed=0)[-4:]
    assert_right(name, model, strings, "ABCD", "float32")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_papers_example(name, weighting):
    expected = {"induction-most-recent": "ACCBDBAADC", "induction-most-frequent": "ACCBDBAAAC"}
    model = tf.recipe(name).build(weighting=weighting)
    assert model("ACABDACDCA") == expected[name]
    assert model("") == ""


def test_the_order_of_the_alphabet_breaks_ties():
    x = "abaca"
    assert tf.recipe("induction-most-frequent").build(alphabet="abc")(x)[-1] == "b"
    assert tf.recipe("induction-most-frequent").build(alphabet="cba")(x)[-1] == "c"


@pytest.mark.parametrize("name", NAMES)
def test_symbols_may_be_whole_numbers(name):
    model = tf.recipe(name).build(alphabet=[3, 1, 2])
    assert model((3, 1, 2, 3)) == [3, 1, 2, 1]
    assert model(()) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_the_weights_depend_on(name):
    recipe = tf.recipe(name)
    hard, averaged = recipe.build(), recipe.build(weighting="average-hard")
    assert hard.embedding.positions is None and hard.max_length is None
    names = dict(zip(averaged.stream.slots, averaged.embedding.positions.names, strict=True))
    assert {slot for slot, name in names.items() if name} == {"place"}
    assert averaged.max_length is None
    soft = recipe.build(weighting="softmax", max_length=77)
    assert soft.max_length == 77
    with pytest.raises(InputTooLong):
        soft("A" * 78)


def test_the_sizes():
    recent_model = tf.recipe("induction-most-recent").build()
    assert (recent_model.width, len(recent_model.layers)) == (12, 2)
    soft = tf.recipe("induction-most-recent").build(weighting="softmax")
    assert (soft.width, len(soft.layers)) == (18, 2)
    frequent_model = tf.recipe("induction-most-frequent").build()
    assert (frequent_model.width, len(frequent_model.layers)) == (50, 3)
    assert [each.feed_forward.W_1.shape[0] for each in frequent_model.layers] == [32, 16, 16]


def test_the_right_position_has_four_fifths_of_the_weight():
    model = tf.recipe("induction-most-recent").build(weighting="softmax", max_length=200)
    for x in hard_strings("ABCD", 200, 2, seed=1):
        trace = model.run(x, "float64")
        sources = [
            max((j for j in range(1, len(x)) if j <= i and x[j - 1] == x[i]), default=i)
            for i in range(len(x))
        ]
        weights = trace.attention(layer=1, head=0)
        assert min(weights[i + 1, j + 1] for i, j in enumerate(sources)) >= 0.8
        assert np.diag(trace.attention(layer=0, head=0), -1).min() >= 0.8


def test_sharpness_is_the_least_power_of_two_that_keeps_the_gap():
    for length, d_key in itertools.product([1, 2, 3, 7, 100, 1024, 2**20 - 1], [1, 4, 5, 27]):
        s = recency_sharpness(length, d_key)
        assert s.denominator == 1 and s.numerator & (s.numerator - 1) == 0
        assert s**2 >= 81 * length**2 * d_key / 4 > (s / 2) ** 2


def test_up_to_the_recency_length_scores_differ():
    """In bfloat16, for many d_key; beyond it scores do collide."""

    def distinct(a, n, d_key):
        places = a.array([[f"{j}/{n}", m] for m in (0, 1) for j in range(1, n + 1)])
        key = a.array(np.eye(2, d_key))
        scores = a.scores(a.affine(a.array([[1, 1]]), key.T), a.affine(places, key.T))
        return len(set(a.numbers(scores)[0, n:].tolist())) == n

    a = SYSTEMS["bfloat16"]
    safe = recency_length(a)
    assert safe == 51
    assert all(distinct(a, n, d) for n in range(1, safe + 1) for d in [2, 3, 5, 11, 27])
    assert not all(distinct(a, n, d) for n in (60, 90, 128) for d in [2, 3, 5])


def test_without_sharper_scores_softmax_does_fail():
    """The dependence on N is not idle: a model built for N = 8 is wrong on longer strings."""
    recipe = tf.recipe("induction-most-recent")
    short = recipe.build(weighting="softmax", max_length=8, alphabet="ab")
    declared = replace(short, max_length=200)
    source = random.Random(0)
    strings = ["".join(source.choices("ab", k=200)) for _ in range(5)]
    assert any(declared(x) != recent(x, "ab") for x in strings)
