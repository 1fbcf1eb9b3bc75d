"""Softmax in place of hard attention: the gap, the share, and the answers."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify import NoSharpness, softened

HARD = ("dyck-1", "dyck-k-d", "induction-most-recent", "majority", "parity", "contains-abc")


def heads(model):
    return [
        (f"layer {number} head {k}", number, k, head)
        for number, layer in enumerate(model.layers)
        for k, head in enumerate(layer.heads)
    ]


def hard(name, n, weighting="average-hard", masks="future"):
    return tf.compile(PROGRAMS[name], max_length=n, weighting=weighting, masks=masks, reuse=False)


def recipe(name, n):
    built = tf.recipe(name)
    return built.build(max_length=n) if "max_length" in built.parameters else built.build()


def inputs(alphabet, longest, n):
    """Every string up to a length, and hard ones of n symbols."""
    for length in range(longest + 1):
        yield from itertools.product(alphabet, repeat=length)
    source = random.Random(n)
    yield from ((each,) * n for each in alphabet)
    yield from (tuple(source.choices(alphabet, k=n)) for _ in range(12))
    yield (alphabet[0],) * (n // 2) + (alphabet[1],) * (n - n // 2)
    for length in (9, 10, 11, 12):
        yield tuple(source.choices(alphabet, k=length))


def exact_gap(model, number, k, longest):
    """The least exact distance of a score below the largest, over every string up to a length."""
    head, exact = model.layers[number].heads[k], number_system("exact")
    least = math.inf
    for n in range(longest + 1):
        for x in itertools.product(model.alphabet, repeat=n):
            streams = [z for name, z in model.streams([x], "exact")]
            z = exact.numbers(streams[2 * number])[0]
            rows = len(z)
            q = z @ np.array(head.W_Q, object).T + np.array(head.b_Q, object)
            key = z @ np.array(head.W_K, object).T + np.array(head.b_K, object)
            scores = q @ key.T
            for i in range(rows):
                seen = [j for j in range(rows) if head.mask.admissible(np.array(i), np.array(j))]
                known = sorted({Fraction(scores[i, j]) for j in seen}, reverse=True)
                if len(known) > 1:
                    least = min(least, known[0] - known[1])
    return float(least) / math.sqrt(len(head.W_Q))


@pytest.mark.parametrize("name", HARD)
def test_answers_are_those_of_the_hard_model_and_certified_or_right(name):
    n = 64
    model = hard(name, n)
    soft = softened(model, "float32", n)
    assert {str(head.weighting) for *_, head in heads(soft)} == {"softmax"}
    program = PROGRAMS[name]
    for _, group in itertools.groupby(inputs(program.alphabet, 4, n), key=len):
        together = list(group)
        for x, got in zip(together, soft.answers(together, "float32"), strict=True):
            assert got == program(x), x


@pytest.mark.parametrize("name", ["parity", "dyck-1-nonuniform"])
def test_recipes(name):
    n = 64
    model = recipe(name, n)
    soft = softened(model, "float32", n)
    for x in inputs(model.alphabet, 6, n):
        assert soft(x, "float32") == model(x, "exact")


def test_the_share_is_the_largest_that_is_proved():
    model = hard("induction-most-recent", 64)
    soft = softened(model, "float32", 64)
    assert tf.grade_of(soft, "float32") == (1, "")
    # With a quarter of the sharpness a larger share strays, for which there is no proof.
    layers = [
        replace(
            own,
            heads=tuple(
                tf.soften(one, ratio(one, other) / 4)
                for one, other in zip(own.heads, layer.heads, strict=True)
            ),
        )
        for layer, own in zip(soft.layers, model.layers, strict=True)
    ]
    assert tf.grade_of(replace(soft, layers=tuple(layers)), "float32")[0] != 1


def ratio(hard_head, soft_head):
    """1/τ, the quotient of two entries."""
    for name in ("W_Q", "b_Q"):
        one, other = getattr(hard_head, name), getattr(soft_head, name)
        if one.any():
            at = np.argwhere(one)[0]
            return Fraction(other[tuple(at)]) / Fraction(one[tuple(at)])
    return Fraction(1)


@pytest.mark.parametrize(
    "name",
    ["parity", "induction-most-recent", pytest.param("contains-abc", marks=pytest.mark.slow)],
)
def test_the_sharpness_follows_from_a_gap_that_every_string_keeps(name):
    """1/τ = ln(R/s)/g of 4 bits with one s: so g of each head is known up to a factor."""
    n = 5
    model = hard(name, n)
    soft = softened(model, "float32", n)
    products = []
    for (_, number, k, one), (*_, other) in zip(heads(model), heads(soft), strict=True):
        gap = exact_gap(model, number, k, n)
        if math.isfinite(gap):
            products.append(float(ratio(one, other)) * gap)
    # 1/τ · (the true gap) is at least ln(R/s) ≥ ln(4R), as no gap is above the true one.
    assert min(products) >= math.log(4 * (n + 1))
    # The gaps of these two programs are tight: heads differ by the rounding to 4 bits alone.
    assert max(products) <= 9 / 8 * min(products) or name == "parity"


@pytest.mark.parametrize(
    ("model", "head", "why"),
    [
        (lambda: recipe("induction-most-recent", 16), "layer 0 head 0", "rightmost-hard takes one"),
        (lambda: recipe("dyck-1-exact-uniform", 16), "layer 1 head 0", "leftmost-hard takes one"),
        (lambda: hard("equal-abc", 16), "layer 1 head 0", "no least difference of its scores"),
        (lambda: recipe("count-modulo", 16), "layer 1 head 0", "symbols besides a single one"),
    ],
)
def test_no_sharpness_says_which_head_and_why(model, head, why):
    built = model()
    with pytest.raises(NoSharpness, match=why) as refusal:
        softened(built, "float32", 16)
    assert refusal.value.where.startswith("layer") and why in refusal.value.why
    assert refusal.value.where == head or why.startswith("symbols")


def test_a_model_without_hard_heads_is_itself():
    model = tf.compile(PROGRAMS["parity"], max_length=9)
    assert softened(model, "float32", 9) is model
