"""PARITY against a fold, for every string or, since only n and the count matter, every count."""

import functools
import itertools
import math
import operator
import random

import pytest

import transformist as tf
from transformist.arithmetic.systems import SYSTEMS
from transformist.bounds import count_modulo_length, quadratic_count_length

WEIGHTINGS = ["average-hard", "leftmost-hard", "rightmost-hard"]
ARITHMETICS = ["exact", "float64", "float32", "float16", "bfloat16"]


def odd(x):
    return functools.reduce(operator.xor, map(int, x), 0) == 1


def every_string(length):
    return ["".join(x) for n in range(length + 1) for x in itertools.product("01", repeat=n)]


def every_count(n):
    return ["1" * count + "0" * (n - count) for count in range(n + 1)]


def assert_right(model, strings, arithmetic):
    for x, answer in zip(strings, model.answers(strings, arithmetic), strict=True):
        assert answer == odd(x), (arithmetic, len(x), x)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_every_short_string(weighting, arithmetic):
    length = 6 if arithmetic == "bfloat16" else 7
    model = tf.recipe("parity").build(weighting=weighting)
    assert_right(model, every_string(length), arithmetic)


@pytest.mark.slow
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("arithmetic", ["exact", "float64", "float32", "float16"])
def test_every_string_to_length_12(weighting, arithmetic):
    model = tf.recipe("parity").build(weighting=weighting)
    assert_right(model, every_string(12), arithmetic)


def test_every_count_up_to_the_safe_length_of_narrow_formats():
    for arithmetic in ["float16", "bfloat16"]:
        model = tf.recipe("parity").build()
        for n in range(quadratic_count_length(SYSTEMS[arithmetic]) + 1):
            assert_right(model, every_count(n), arithmetic)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2, 99, 100, 255, 256])
def test_every_count_in_float32_and_float64(n):
    for arithmetic in ["float32", "float64"]:
        assert_right(tf.recipe("parity").build(), every_count(n), arithmetic)


@pytest.mark.slow
def test_counts_at_the_safe_length_of_float32():
    n = quadratic_count_length(SYSTEMS["float32"])
    assert n == 1057
    counts = [*range(4), *range(500, 504), *range(n - 12, n + 1)]
    assert_right(tf.recipe("parity").build(), [every_count(n)[c] for c in counts], "float32")


def test_the_order_of_the_bits_does_not_matter():
    model = tf.recipe("parity").build()
    source = random.Random(0)
    for n in [15, 18, 100]:
        for arithmetic in ["float32", "float16"] if n <= 18 else ["float32"]:
            strings = ["".join(source.choices("01", k=n)) for _ in range(20)]
            assert_right(model, strings, arithmetic)


def test_where_the_claim_ends_the_format_does_fail():
    model = tf.recipe("parity").build()
    for arithmetic, n in [("bfloat16", 17), ("float16", 38)]:
        assert n > quadratic_count_length(SYSTEMS[arithmetic])
        strings = every_count(n)
        assert model.answers(strings, arithmetic) != [odd(x) for x in strings]


@pytest.mark.parametrize("arithmetic", ["exact", "float64", "float32"])
def test_the_slot_is_the_sign_of_every_prefix(arithmetic):
    x = "1101000111010"
    signs = tf.recipe("parity").build().run(x, arithmetic)["even"].tolist()
    assert signs == [-1 if odd(x[:i]) else 1 for i in range(len(x) + 1)]


def test_the_size():
    model = tf.recipe("parity").build()
    assert (model.width, len(model.layers), model.max_length) == (8, 2, None)


# Counting modulo m


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("period", [2, 3, 60])
def test_every_count_modulo_m(weighting, period):
    model = tf.recipe("count-modulo").build(period=period, max_length=64, weighting=weighting)
    for n in (0, 1, 2, 64):
        expected = [count % period for count in range(n + 1)]
        assert model.answers(every_count(n), "float32") == expected


@pytest.mark.parametrize("arithmetic", ["float16", "bfloat16"])
def test_the_largest_period_of_a_format(arithmetic):
    """All residues are told apart to the period that is claimed, at every length."""
    periods = range(2, 200)
    safe = [m for m in periods if count_modulo_length(period=m, arithmetic=arithmetic)]
    assert safe == list(range(2, safe[-1] + 1)) and safe[-1] < periods[-1]
    longest = count_modulo_length(period=safe[-1], arithmetic=arithmetic)
    model = tf.recipe("count-modulo").build(period=safe[-1], max_length=longest)
    for n in range(longest + 1):
        expected = [count % safe[-1] for count in range(n + 1)]
        assert model.answers(every_count(n), arithmetic) == expected


def test_the_circle_is_that_of_the_definition():
    table = tf.recipe("count-modulo").build(period=7, max_length=20).embedding.positions
    points = table(21, "float64")[:, 4:6]
    angles = [2 * math.pi * (i % 7) / 7 for i in range(21)]
    assert abs(points - [[math.cos(angle), math.sin(angle)] for angle in angles]).max() < 1e-15
