"""Warnings of inputs that the claim of a recipe does not cover."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.claims import FunctionClaim, SequenceClaim, StringClaim, ask
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


STRINGS = [
    (lambda model, x, a: model(x, a), "float16", 511),
    (lambda model, x, a: model.run(x, a, patch={}), "float16", 511),
    (lambda model, x, a: model.answers([x], a), "float16", 511),
    (lambda model, x, a: model.values([x], a), "float16", 511),
    (lambda model, x, a: list(model.streams([x], a)), "float16", 511),
    (lambda model, x, a: tf.run(model, x, a, engine="structured"), "float32", 2047),
    (lambda model, x, a: tf.decoder(model, a).take_all(x), "float32", 2047),
    (lambda model, x, a: [*map(tf.decoder(model, a).take, x)], "float32", 2047),
]
WAYS = ["call", "patch", "answers", "values", "streams", "structured", "decoder", "take"]


@pytest.mark.parametrize(("call", "arithmetic", "safe"), STRINGS, ids=WAYS)
def test_a_string_beyond_the_safe_length_is_answered_with_one_warning(call, arithmetic, safe):
    model = tf.recipe("dyck-1").build(max_length=4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideClaim)
        call(model, "(" * safe, arithmetic)
    words = f"dyck-1 .* n = {safe + 1} in {arithmetic}, .* up to {safe}"
    with pytest.warns(OutsideClaim, match=words) as given:
        call(model, "(" * (safe + 1), arithmetic)
    assert len(given) == 1 and given[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideClaim)
        call(model, "(" * (safe + 1), arithmetic)


def test_a_decoder_goes_on_after_the_warning_as_an_error():
    """The warning comes before anything is read, so that the decoder keeps its state."""
    decoder = tf.decoder(tf.recipe("dyck-1").build(max_length=4000), "float32")
    decoder.take_all("(" * 2047)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideClaim)
        with pytest.raises(OutsideClaim, match="n = 2048"):
            decoder.take(")")
    assert decoder.length == 2047
    decoder.take(")")
    assert decoder.length == 2048


def test_a_string_in_an_arithmetic_without_a_claim():
    model = tf.recipe("induction-most-recent").build(alphabet=("a", "b"))
    with pytest.warns(OutsideClaim, match=r"n = 1 in saturating:8:1/4, in which nothing is claim"):
        model("a", "saturating:8:1/4")


def test_a_longest_length_beyond_every_safe_one_is_built_with_a_warning():
    with pytest.warns(OutsideClaim, match="lengths up to 1024; it is built for N = 1025") as given:
        tf.recipe("count-modulo").build(max_length=1025)
    assert [each.filename for each in given] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideClaim)
        tf.recipe("count-modulo").build(max_length=1024)


OF_STRINGS = [each for each in tf.recipes() if isinstance(each.claim, StringClaim)]


@pytest.mark.parametrize("recipe", OF_STRINGS, ids=lambda recipe: recipe.name)
def test_a_model_has_the_alphabet_of_its_claim(recipe):
    """So the definition refuses a symbol that is not in the domain, and lengths are left."""
    for given in ({}, *recipe.claim.variants):
        settings = recipe.settings(given)
        domain = ask(recipe.claim.domain, **settings)
        assert {*recipe.construct(**settings).alphabet} == {*domain.alphabet}
