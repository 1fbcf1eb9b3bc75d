"""Warnings of inputs that the claim of a recipe does not cover."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.claims import FunctionClaim, SequenceClaim, ask
from transformist.errors import OutsideClaim

OUTSIDE = [
    ("layernorm-hash-lookup", {}, [[2, 1, 1, 5], [1, 1, 0.5, 7]], "float64", "v = 5 at position 1"),
    ("boolean", {}, [0, 1, 0.5], "exact", r"x = \[0, 1, 0.5\]"),
    ("conditional", {"lo": 0, "hi": 1}, [[1, 0, 1], [0, 2, 0]], "float32", r"x = \[0, 2, 0\]"),
    ("quadratic-lookup", {}, [[3, 1, 1, 1, 5], [1, 1, 2, 4, 7]], "float64", "q = 3 at position 1"),
    (
        "quadratic-lookup",
        {},
        [[1, 1, 1, 1, 5], [1, 1, 2, 5, 7]],
        "exact",
        r"i\^2 = 5 at position 2",
    ),
    ("predecessor", {"hi": 2}, [[1, -1, 2], [1, 1, 3]], "float16", "v = 3 at position 2"),
    ("quadratic-lookup-soft", {}, [[1, 1, 1, 1, -1]], "float64", "v = -1 at position 1"),
]


@pytest.mark.parametrize(("name", "settings", "x", "arithmetic", "words"), OUTSIDE)
def test_an_input_outside_the_claim_is_answered_with_one_warning(
    name, settings, x, arithmetic, words
):
    model = tf.recipe(name).build(**settings)
    with pytest.warns(OutsideClaim, match=f"{name} is claimed for .*; got {words}") as given:
        first = model(x, arithmetic)
    assert len(given) == 1 and given[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = model(x, arithmetic)
    system = number_system(arithmetic)
    assert np.array_equal(system.numbers(first), system.numbers(again))


def test_a_list_beyond_the_safe_length_of_its_format():
    x = [[i, 1, i, i * i, 1] for i in range(1, 40)]
    model = tf.recipe("quadratic-lookup").build()
    with pytest.warns(OutsideClaim, match="n = 39 in float16, in which it is safe up to 38"):
        model(x, "float16")


def test_the_warning_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideClaim)
        with pytest.raises(OutsideClaim, match="boolean"):
            tf.recipe("boolean").build()([0, 1, 2])


CLAIMED = [each for each in tf.recipes() if isinstance(each.claim, FunctionClaim | SequenceClaim)]


@pytest.mark.parametrize("recipe", CLAIMED, ids=lambda recipe: recipe.name)
def test_inputs_of_the_claim_are_not_outside(recipe):
    claim, settings = recipe.claim, recipe.settings({})
    domain = ask(claim.domain, **settings)
    for name, safe in claim.safe_lengths(settings).items():
        system, n = number_system(name), min(safe or 3, 3)
        if isinstance(claim, FunctionClaim):
            x = system.array(domain.cases(system, 12, seed=1))
        else:
            x = domain.encode(domain.cases(n, 3, system), n, system)
        assert claim.outside(x, system, settings) == ""


def test_numbers_that_a_caller_computes_in_float64_are_those_of_the_claim():
    """A third and hashes that are off by roundings, and numbers beyond float64 in exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideClaim)
        lookup = tf.recipe("layernorm-hash-lookup").build()
        lookup([[3, 1, 1, 1], [1, 1, 1 / 2, 1], [2, 1, 1 / 3, -1]], "float16")
        code = [[np.sqrt(2 / (i * i + 1)) * v for v in (i, 1, -i, -1)] for i in (1, 2, 3)]
        x = [[*code[0], *code[i], 10.0**i] for i in range(3)]
        for arithmetic in ("float64", "float32", "bfloat16"):
            tf.recipe("layernorm-hash-head").build()(x[:2], arithmetic)
        tf.recipe("mean").build(width=1)([["1e5000"], [1]], "exact")


def test_what_warns_is_no_part_of_the_model():
    recipe = tf.recipe("boolean")
    model = recipe.build()
    assert model == recipe.construct() and hash(model) == hash(recipe.construct())
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideClaim)
        for other in (pickle.loads(pickle.dumps(model)), replace(model, b_1=model.b_1)):
            other([0, 1, 2])
