"""The cost of weights as `show` tells it, against the arrays of the definitions."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.model.definition import Definition
from transformist.report.recipe_sheet import recipe_facts
from transformist.report.weight_cost import costs_by_length, feature_bits, weight_cost


def weights_of(value):
    """The entries of every array in a definition and in its parts."""
    if isinstance(value, np.ndarray):
        yield from (Fraction(each) for each in value.ravel().tolist())
    elif isinstance(value, tuple):
        for each in value:
            yield from weights_of(each)
    elif isinstance(value, Definition):
        for each in dataclasses.fields(value):
            if each.init:
                yield from weights_of(getattr(value, each.name))


def digits(value):
    """Binary digits of p, and of q unless it is 1, as Python writes them."""
    texts = [f"{abs(value.numerator):b}"]
    if value.denominator != 1:
        texts.append(f"{value.denominator:b}")
    return len("".join(texts))


OF_N = [each for each in tf.recipes() if "N" in each.claim.dependence(each.settings({}))]


@pytest.mark.parametrize("recipe", OF_N, ids=lambda recipe: recipe.name)
def test_the_cost_counts_every_weight_of_models_for_three_lengths(recipe):
    settings = recipe.settings({"max_length": 12})
    costs = costs_by_length(recipe, settings)
    assert [each["max_length"] for each in costs] == [3, 6, 12]
    for cost in costs:
        model = recipe.construct(**{**settings, "max_length": cost["max_length"]})
        found = [abs(each) for each in weights_of(model) if each]
        assert cost["nonzero"] == len(found)
        assert cost["distinct"] == len({*found})
        assert cost["bits"] == sum(map(digits, found))
        assert cost["longest"] == max(map(digits, found), default=0)


def test_rationals_count_both_numerator_and_denominator():
    cost = weight_cost(tf.recipe("scale").build(factor="-5/3"))
    assert (cost.nonzero, cost.distinct, cost.bits, cost.longest) == (4, 2, 12, 5)


def test_features_count_the_longest_fraction_of_all_positions():
    """At n = 16, i/n is longest for i = 9, 11, 13 and 15: four bits over five."""
    assert feature_bits(tf.recipe("dyck-1-2").build(), (), 16) == {"i/n": 9}
    assert feature_bits(tf.recipe("quadratic-lookup").build(), ("i^2", "1/i"), 16) == {
        "i^2": 9,
        "1/i": 6,
    }


def test_show_tells_the_cost_where_weights_depend_on_n(capsys):
    facts = recipe_facts(tf.recipe("position-one-hot"), {"max_length": 8})
    assert [each["bits"] for each in facts["weight_cost"]] == [2, 4, 8]
    assert recipe_facts(tf.recipe("min"), {})["weight_cost"] is None
    from transformist.cli import main

    assert main(["show", "position-one-hot", "--set", "max_length=8"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "cost of weights at N = 2: 2 non-zero parameters of 1 magnitude" in shown
