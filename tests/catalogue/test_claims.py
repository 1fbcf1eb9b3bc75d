"""One suite over the whole catalogue: every claim, in every arithmetic it names."""

import functools
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import SYSTEMS, number_system
from transformist.claims import FunctionClaim, ask
from transformist.errors import InvalidValue, NotFinite, ShapeMismatch, UnknownName
from transformist.model import FeedForward, FeedForwardStack, Sublayer, rationals
from transformist.settings import SETTINGS
from transformist.verify import check_recipe

by_name = pytest.mark.parametrize("recipe", tf.recipes(), ids=lambda recipe: recipe.name)
functions = pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, FunctionClaim)],
    ids=lambda recipe: recipe.name,
)


@by_name
def test_the_claim_holds(recipe):
    verdict = check_recipe(recipe)
    assert verdict.held, str(verdict.counterexample)
    assert verdict.cases >= 10 * len(verdict.arithmetics) or recipe.name == "not"


@by_name
def test_every_arithmetic_is_claimed_or_excluded_with_a_reason(recipe):
    claim = recipe.claim
    assert set(claim.arithmetics) | set(claim.excluded) == set(SYSTEMS)
    assert not set(claim.arithmetics) & set(claim.excluded)
    assert all(claim.excluded.values())


@by_name
def test_it_builds_without_arguments_and_knows_its_parameters(recipe):
    recipe.build()
    assert set(recipe.parameters) <= set(SETTINGS)
    assert recipe.section and recipe.summary and recipe.sources


STABLE = """
    cpwl max-affine cancel-residual zero identity min max add subtract linear scale relu-by-gelu
    multiply-by-gelu greater-than-zero greater-or-equal-zero equal-zero greater-than-zero-with
    greater-or-equal-zero-with equal-zero-with boolean and or not conditional clip
    dyck-1-uniform dyck-1
"""


def test_names_are_stable_and_in_order():
    names = [recipe.name for recipe in tf.recipes()]
    assert len(set(names)) == len(names)
    assert [name for name in names if name in STABLE.split()] == STABLE.split()


def test_a_recipe_declares_its_parameters():
    with pytest.raises(UnknownName, match="setting"):
        replace(tf.recipe("not"), construct=lambda flavour=1: None)


def test_a_reference_gives_a_list():
    claim = replace(tf.recipe("not").claim, reference=lambda x: 1 - x)
    with pytest.raises(InvalidValue, match="list of outputs"):
        check_recipe(replace(tf.recipe("not"), claim=claim))


def parts_of(model):
    if isinstance(model, FeedForwardStack):
        return list(model.parts)
    return [model.function if isinstance(model, Sublayer) else model]


def with_part(model, index, part):
    if isinstance(model, FeedForwardStack):
        return FeedForwardStack((*model.parts[:index], part, *model.parts[index + 1 :]))
    return Sublayer(part) if isinstance(model, Sublayer) else part


def planted(model):
    """For each weight, the models with it an eighth larger and smaller; a 0 becomes 1 and −1."""
    for index, part in enumerate(parts_of(model)):
        fields = {name: getattr(part, name) for name in ("W_1", "b_1", "W_2", "b_2")}
        for name, weights in fields.items():
            exact = rationals(weights)
            for place in np.ndindex(exact.shape):
                pair = []
                for direction in (1, -1):
                    changed = exact.copy()
                    changed[place] += direction * (changed[place] / 8 or 1)
                    moved = FeedForward(**{**fields, name: changed}, activation=part.activation)
                    pair.append(with_part(model, index, moved))
                yield f"{name} of network {index} at {place}", pair


# Settings without redundancy, where the default has hidden units that are multiplied by 0.
PLANTED_IN = {
    "boolean": {"table": "11111111"},
    "max-affine": {
        "pieces": [[1, 0, 0], [0, 1, 0], [-1, -1, 1], [2, -1, -1]],
        "minus": [[1, 1, -2], [-1, 0, -1], [0, -2, 0], [-1, 2, -2]],
    },
}


@pytest.mark.slow
@functions
def test_a_planted_fault_is_caught(recipe):
    """Each weight matters, in one direction at least, and the claim notices."""
    given = PLANTED_IN.get(recipe.name, {})
    settings = recipe.settings(given)
    for where, pair in planted(recipe.build(**given)):
        if recipe.name == "zero" and "b_2" not in where:
            continue  # W₁ and b₁ are multiplied by 0, and W₂ multiplies 0
        caught = []
        for faulty in pair:
            build = _always(faulty, recipe.construct)
            claim = replace(recipe.claim, variants=(settings,))
            caught.append(not check_recipe(replace(recipe, construct=build, claim=claim)).held)
        assert any(caught), where


def _always(model, construct):
    @functools.wraps(construct)
    def build(**_):
        return model

    return build


def test_every_boolean_table_of_up_to_three_bits():
    for m in (1, 2, 3):
        inputs = list(itertools.product((0, 1), repeat=m))
        for table in itertools.product((0, 1), repeat=2**m):
            network = tf.recipe("boolean").build(table=table)
            for arithmetic in ("exact", "bfloat16"):
                got = network(inputs, arithmetic).tolist()
                assert [row[0] for row in got] == list(table)


def test_small_floats_of_min_and_max_one_and_all():
    """Every pair of bfloat16 numbers of three binades: the bound and where the result is exact."""
    system = number_system("bfloat16")
    u, w = system.unit_roundoff, Fraction(1, 2**24)
    axis = [s * m * 2.0**e for s in (1, -1) for e in (-9, -8, -3) for m in range(128, 256, 3)]
    pairs = np.array(list(itertools.product(axis, axis)))
    for name, reference, ordered in (
        ("min", np.minimum, pairs[:, 0] <= pairs[:, 1]),
        ("max", np.maximum, pairs[:, 0] >= pairs[:, 1]),
    ):
        got = system.numbers(tf.recipe(name).build()(system.array(pairs), system))[:, 0]
        error = np.abs(got - reference(*pairs.T))
        difference = pairs[:, 0] - pairs[:, 1]
        representable = system.numbers(system.array(difference)) == difference
        assert (error <= float(2 * (u + 2 * w)) * np.abs(difference)).all()
        assert (error[ordered | representable] == 0).all()
        assert (error > 0).any()  # "zero error", as sometimes said, is false


def test_the_known_float_failures_of_min_and_max():
    least, largest = tf.recipe("min").build(), tf.recipe("max").build()
    assert least([1e16, 1]).tolist() == [0]
    assert largest([-1e16, 1]).tolist() == [0]
    assert least([1, 0.1]).tolist() != [0.1]
    assert least([1e16, 1], "exact").tolist() == [1]


def test_the_reference_of_a_claim_gets_only_what_it_names():
    assert ask(lambda x, *, a: (x, a), Fraction(1), a=2, b=3) == (1, 2)
    with pytest.raises(KeyError):
        ask(lambda *, c: c, a=2)


BAD = [
    ("greater-than-zero", {"epsilon": 0}, InvalidValue, "epsilon is a positive number"),
    ("equal-zero", {"epsilon": "-1/8"}, InvalidValue, "positive"),
    ("clip", {"delta": 0}, InvalidValue, "positive"),
    ("cpwl", {"knots": [0, 0], "values": [1, 2]}, InvalidValue, "increase strictly"),
    ("cpwl", {"knots": [0, 1], "values": [1]}, InvalidValue, "2 knots and 1 values"),
    ("cpwl", {"knots": [0], "values": [1]}, InvalidValue, "at least two knots"),
    ("conditional", {"lo": 1, "hi": 1}, InvalidValue, "lo < hi"),
    ("multiply-by-gelu", {"activation": "gelu-sigmoid"}, InvalidValue, "second derivative"),
    ("multiply-by-gelu", {"lo": 0, "hi": 0}, InvalidValue, "lo < hi"),
    ("boolean", {"table": [0, 1, 1]}, InvalidValue, "2, 4, 8"),
    ("boolean", {"table": [0, 2]}, InvalidValue, "bits"),
    ("boolean", {"table": [0, 0.5]}, InvalidValue, "bits"),
    ("cancel-residual", {"matrix": [[1, 2]]}, ShapeMismatch, "square"),
    ("linear", {"matrix": [[1], [1, 2]]}, InvalidValue, "rows"),
    ("linear", {"matrix": []}, InvalidValue, "rows"),
    ("linear", {"matrix": [["nan"]]}, InvalidValue, "finite"),
    ("max-affine", {"pieces": [[1]]}, ShapeMismatch, "coefficient"),
    ("max-affine", {"minus": [[1, 2]]}, ShapeMismatch, "one length"),
    ("scale", {"factor": "x"}, InvalidValue, "factor is a number"),
    ("scale", {"factor": True}, InvalidValue, "number"),
    ("identity", {"width": 0}, InvalidValue, "from 1 to 256"),
    ("identity", {"width": 1.5}, InvalidValue, "whole"),
    ("dyck-1", {"max_length": 0}, InvalidValue, "at least 1"),
    ("dyck-1", {"maxlength": 4}, UnknownName, "did you mean max_length"),
    ("min", {"width": 4}, UnknownName, "takes no parameters"),
]


@pytest.mark.parametrize(("name", "settings", "refusal", "words"), BAD)
def test_bad_settings_are_refused(name, settings, refusal, words):
    with pytest.raises(refusal, match=words):
        tf.recipe(name).build(**settings)


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean dyck-1"):
        tf.recipe("dyck1")


def test_a_format_that_cannot_hold_the_weights_refuses():
    sharp = tf.recipe("relu-by-gelu").build(tolerance="1e-9")
    with pytest.raises(NotFinite, match="65504"):
        sharp([1], "float16")
