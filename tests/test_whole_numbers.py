"""Lengths and counts, wherever they are taken: whole numbers, and no Boolean for one."""

from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import is_whole
from transformist.bounds import softmax_remainder, sum_error_within
from transformist.errors import InvalidValue
from transformist.programs import PROGRAMS
from transformist.verify import check_program, check_recipe, first_failure

MODEL = tf.recipe("dyck-1").build(max_length=4)
PROGRAM = PROGRAMS["dyck-1"]

TAKING_ONE = {
    "plan": lambda n: tf.plan(MODEL, length=n),
    "compile": lambda n: tf.compile(PROGRAM, max_length=n),
    "certify": lambda n: tf.certify(MODEL, max_length=n),
    "check": lambda n: tf.check(MODEL, PROGRAM, max_length=n),
    "check a recipe on strings": lambda n: check_recipe(tf.recipe("dyck-1"), n),
    "check a recipe on lists": lambda n: check_recipe(tf.recipe("mean"), n),
    "check a program": lambda n: check_program("dyck-1", PROGRAM, n),
    "precision": lambda n: first_failure(tf.recipe("dyck-1"), "bfloat16", max_length=n),
    "build": lambda n: tf.recipe("dyck-1").build(max_length=n),
    "Transformer": lambda n: replace(MODEL, max_length=n),
    "generate": lambda n: MODEL.generate("", n),
    "activation_bounds": lambda n: tf.activation_bounds(MODEL, "l2", max_length=n),
    "perturbation_bounds": lambda n: tf.perturbation_bounds(MODEL, 0, "l2", max_length=n),
    "positions": lambda n: tf.PositionFunctions(("i",))(n),
    "Sinusoids": tf.Sinusoids,
    "NearestFraction": lambda n: tf.NearestFraction(
        W_out=[[1]], at="every", scale=n, mask="none", with_bos=False
    ),
    "NearZero": lambda n: tf.NearZero(W_out=[[1]], powers=(n,)),
    "sum_error_within": lambda n: sum_error_within(n, 1, "float32"),
    "softmax_remainder": lambda n: softmax_remainder(1, n),
    "sensitivity": lambda n: tf.sensitivity(MODEL, ["()"], "exact", positions=[n]),
}


@pytest.mark.parametrize("given", [True, np.True_, 1.5, -1], ids=repr)
@pytest.mark.parametrize("name", TAKING_ONE)
def test_what_is_no_length_is_refused(name, given):
    with pytest.raises(InvalidValue) as error:
        TAKING_ONE[name](given)
    assert "\n" not in str(error.value)
    assert any(shown in str(error.value) for shown in (str(given), repr(given)))


def test_integers_are_whole_and_nothing_else():
    assert all(is_whole(each, 1) for each in (1, 2**70, np.int64(1), np.uint8(9)))
    others = (0, -1, True, False, np.True_, 1.0, np.float64(1), "1", None, [1], np.array([1]))
    assert not any(is_whole(each, 1) for each in others)


def test_none_is_no_length_where_a_recipe_needs_one():
    with pytest.raises(InvalidValue, match="max_length must be a whole number of at least 1"):
        tf.recipe("dyck-1").build(max_length=None)
