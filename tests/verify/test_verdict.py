"""Verdicts: a wrong model is found out, with the first input that shows it."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

import transformist as tf
from transformist.errors import InputTooLong, InvalidValue, Undecided
from transformist.model import BOS, Binary, Embedding, Stream, Transformer
from transformist.verify import Workers, agrees, check_recipe, check_recipes, string_claims


def test_a_right_model_is_held_on_every_string():
    verdict = tf.check(tf.recipe("dyck-1").build(max_length=8), lambda x: _depths(x), max_length=8)
    assert verdict.held and verdict.cases == 2**9 - 1
    assert verdict.covered == "every string to length 8"


def _depths(x):
    depths = [x[:i].count("(") - x[:i].count(")") for i in range(len(x) + 1)]
    return min(depths) >= 0 and depths[-1] == 0


def test_the_first_counterexample_is_the_shortest():
    found = tf.check(tf.recipe("dyck-1").build(), lambda x: _depths(x) and len(x) < 6, max_length=7)
    assert not found.held
    assert found.counterexample.input == "((()))"
    assert "gives True in float64, expected False" in str(found.counterexample)


def test_other_arithmetics_and_bad_requests():
    model = tf.recipe("dyck-1").build(max_length=4)
    assert tf.check(model, _depths, max_length=4, arithmetic="bfloat16").arithmetics == (
        "bfloat16",
    )
    with pytest.raises(InputTooLong):
        tf.check(model, _depths, max_length=5)
    with pytest.raises(InvalidValue):
        tf.check(model, _depths, max_length=-1)
    with pytest.raises(InvalidValue):
        check_recipe(tf.recipe("dyck-1"), max_length=-1)
    with pytest.raises(InvalidValue, match="at most 24"):
        tf.check(tf.recipe("dyck-1").build(), _depths, max_length=25)
    with pytest.raises(InvalidValue, match=r"IndexError.*on ''"):
        tf.check(model, lambda x: x[0] == "(")
    with pytest.raises(InvalidValue, match="a Transformer"):
        tf.check(tf.recipe("min").build(), _depths)


def test_symbols_of_several_characters_are_tried_as_tuples():
    stream = Stream(("x",))
    words = Transformer(
        stream=stream,
        embedding=Embedding.of(stream, {"if": "x", "i": {}, BOS: {}}, front=[BOS]),
        layers=(),
        read_out=Binary(W_out=[[1]]),
    )
    assert tf.check(words, lambda x: x[-1:] == ("if",), max_length=3).held
    assert not tf.check(words, lambda x: x[-1:] == ("i",), max_length=3).held


def test_a_verdict_is_as_true_as_it_held():
    model = tf.recipe("dyck-1").build(max_length=2)
    assert tf.check(model, _depths, max_length=2)
    assert not tf.check(model, lambda x: True, max_length=2)


def test_a_model_without_special_symbols_is_tried_from_one_symbol_up():
    stream = Stream(("x",))
    model = Transformer(
        stream=stream,
        embedding=Embedding.of(stream, {"a": "x", "b": {}}),
        layers=(),
        read_out=Binary(W_out=[[1]]),
    )
    verdict = tf.check(model, lambda x: x[-1] == "a", max_length=3)
    assert verdict and verdict.cases == 14


def too_bold():
    recipe = tf.recipe("dyck-1")
    claim = replace(recipe.claim, safe_length=lambda *, arithmetic: 1000)
    return check_recipe(replace(recipe, claim=claim), max_length=2)


@pytest.mark.slow
def test_a_claim_beyond_its_format_is_found_out():
    verdict = too_bold()
    assert not verdict.held and verdict.counterexample.arithmetic == "bfloat16"


def test_a_claim_beyond_its_format_is_found_out_among_fewer_strings(short, monkeypatch):
    monkeypatch.setattr(string_claims, "LONGEST", 100)
    verdict = too_bold()
    assert not verdict.held and verdict.counterexample.arithmetic == "bfloat16"


def test_several_recipes_are_checked_in_order_by_several_processes():
    names = ["not", "first", "min"]
    for processes in (1, 2):
        verdicts = list(check_recipes(names, workers=Workers(processes)))
        assert [verdict.name for verdict in verdicts] == names and all(verdicts)


@pytest.mark.parametrize("value", [0.75, Fraction(3, 4), -0.75, Fraction(1, 3), 2.0**-1074, 1e308])
@pytest.mark.parametrize("expected", [Fraction(3, 4), Fraction(1, 3), Fraction(0), Fraction(-1)])
@pytest.mark.parametrize("off", [Fraction(0), Fraction(1, 2**80), Fraction(-1, 2**80), 1])
def test_a_number_agrees_up_to_its_limit_and_no_further(value, expected, off):
    distance = abs(Fraction(value) - expected)
    limit = max(distance + off, Fraction(0))
    assert agrees(value, 0, expected, limit) == (distance <= limit)
    assert agrees(value, 0, expected, math.inf)
    assert not agrees(math.nan, 0, expected, limit)


@pytest.mark.parametrize("radius", [Fraction(1, 2**60), Fraction(1, 2**30), 1, 10**400])
def test_a_wide_ball_decides_only_where_it_is_on_one_side_of_the_limit(radius):
    limit = Fraction(1, 8)
    assert agrees(Fraction(1), radius, 1, limit + radius)
    assert not agrees(2 + limit + 2 * radius, radius, 1, limit)
    if radius <= Fraction(1, 2**40):
        assert agrees(1 + limit + radius, radius, 1, limit)
        return
    with pytest.raises(Undecided, match="neither confirms nor refutes"):
        agrees(1 + limit + radius, radius, 1, limit)


def test_a_limit_that_is_a_float_is_added_without_rounding():
    value, radius = Fraction(0.1) + Fraction(1, 2**80), Fraction(1, 2**70)
    assert agrees(value, radius, Fraction(0), 0.1)
    assert agrees(value, radius, Fraction(0), Fraction(0.1))


def test_a_claim_that_balls_are_too_wide_for_is_not_refuted():
    """Of x/ε with x = 10⁹ and ε = 10⁻³⁰, 128 bits give less than is asked of a ball near 0."""
    recipe = tf.recipe("equal-zero")

    def sharp(epsilon=Fraction(1, 10**30)):
        return recipe.construct(epsilon=epsilon)

    with pytest.raises(Undecided, match="wholly within the claimed error.*neither confirms nor"):
        check_recipe(replace(recipe, construct=sharp, claim=replace(recipe.claim, variants=())))
