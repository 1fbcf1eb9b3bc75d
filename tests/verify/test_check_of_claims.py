"""`tf.check` of recipes, of changed recipes, and of models against the claim of a recipe."""

import pytest

import transformist as tf
from transformist.errors import InvalidValue, UnknownName


@pytest.mark.parametrize("name", ["min", "quadratic-lookup", "position-power"])
def test_a_model_has_the_claim_of_its_recipe_and_of_no_other(name):
    recipe = tf.recipe(name)
    assert tf.check(recipe.build(), recipe, 12 if name != "min" else None)


def test_a_model_with_another_function_fails_the_claim():
    found = tf.check(tf.recipe("max").build(), tf.recipe("min"))
    (low,), (got,) = found.counterexample.expected, found.counterexample.got
    assert not found.held and found.name == "min" and low < got


def test_a_transformer_is_compared_with_the_reference_of_a_recipe():
    model, claim = tf.recipe("dyck-1").build(max_length=8), tf.recipe("dyck-1")
    found = tf.check(model, claim, 8, "bfloat16")
    assert found.held and found.cases == 2**9 - 1 and found.arithmetics == ("bfloat16",)
    other = tf.compile(PROGRAM, max_length=4)
    assert tf.check(other, claim, 4).counterexample.input == ")"


@tf.program(alphabet="()")
def wrong(x):
    """Accept the strings that have a closing parenthesis, and the empty one."""
    return (x == ")").any().accept(empty=True)


PROGRAM = wrong


def test_a_changed_recipe_is_checked_for_its_claim():
    recipe = tf.recipe("quadratic-lookup")
    built = []

    def construct(**settings):
        built.append(settings)
        return recipe.construct(**settings)

    same = recipe.replace(construct=construct)
    assert same.parameters == recipe.parameters and same.chapter == recipe.chapter
    assert tf.check(same, max_length=8).held and built
    few = tf.recipe("dyck-1").replace(construct=lambda max_length: max_length)
    assert few.build(max_length=7) == 7 and few.build(weighting="softmax") == 1024
    renamed = recipe.replace(name="mine")
    assert renamed.name == "mine" and renamed.construct is not None and recipe.name != "mine"


@pytest.mark.parametrize(
    ("call", "refusal", "words"),
    [
        (lambda: tf.recipe("min").replace(build=1), UnknownName, "field of a recipe"),
        (lambda: tf.recipe("min").replace(construct=1), InvalidValue, "must be a function"),
        (lambda: tf.recipe("min").replace(construct=max), InvalidValue, "must be a function"),
        (
            lambda: tf.recipe("min").replace(claim=3),
            InvalidValue,
            "must be a FunctionClaim.*received 3",
        ),
        (
            lambda: tf.recipe("min").replace(claim=tf.recipe("dyck-k-d").claim),
            InvalidValue,
            "one that needs depth, kinds",
        ),
        (
            lambda: tf.check(tf.recipe("min").replace(claim=tf.recipe("dyck-1-uniform").claim)),
            InvalidValue,
            "of the kind Transformer; received FeedForward",
        ),
        (lambda: tf.check(tf.recipe("min"), address="tcp://a:1"), InvalidValue, "address"),
        (
            lambda: tf.recipe("min").replace(construct=lambda size: size),
            InvalidValue,
            "one that needs size",
        ),
        (lambda: tf.check(tf.recipe("min"), tf.recipe("max")), InvalidValue, "with a reference"),
        (lambda: tf.check(tf.recipe("min"), arithmetic="exact"), InvalidValue, "arithmetic"),
        (lambda: tf.check(tf.recipe("min"), drawn=9), InvalidValue, "received drawn"),
        (
            lambda: tf.check(tf.recipe("mean").build(), tf.recipe("min")),
            InvalidValue,
            "must be of the kind FeedForward",
        ),
        (
            lambda: tf.check(tf.recipe("dyck-1").build(), tf.recipe("min")),
            InvalidValue,
            "right or wrong; received the recipe min",
        ),
        (lambda: tf.check(tf.recipe("dyck-1").build()), InvalidValue, "received no reference"),
        (lambda: tf.check("dyck-1", len), InvalidValue, "must be a Transformer; received str"),
    ],
)
def test_refusals_of_claims(call, refusal, words):
    with pytest.raises(refusal, match=words):
        call()


@pytest.mark.parametrize("name", ["min", "dyck-1", "mean", "position-power"])
def test_a_construction_that_gives_no_model_is_refused(name):
    with pytest.raises(
        InvalidValue, match=f"the claim of {name} must be of the kind.*received int"
    ):
        tf.check(tf.recipe(name).replace(construct=lambda: 3))


@pytest.mark.parametrize(
    "option",
    [{"drawn": 3}, {"journal": "j"}, {"jobs": 2}, {"backend": "dask"}, {"address": "tcp://a:1"}],
)
def test_options_of_strings_are_refused_for_a_claim(option):
    (name,) = option
    with pytest.raises(InvalidValue, match=f"a claim must be checked by itself.*received {name}"):
        tf.check(tf.recipe("dyck-1"), **option)


def test_answers_of_a_users_own_classes_are_plain_values():
    class Text(str):
        __slots__ = ()

        def __repr__(self):
            raise RuntimeError

    class Number(float):
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

    model = tf.recipe("dyck-1").build(max_length=4)
    for answer in Text("a"), Number(3):
        found = tf.check(model, lambda _, answer=answer: answer, 2).counterexample
        assert str(found).endswith(("expected 'a'", "expected 3.0"))
