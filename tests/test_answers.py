"""What a recipe answers, and how far its claim covers that."""

import collections
import dataclasses
import functools
import json
import math
from fractions import Fraction

import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.claims import Recipe, StringClaim
from transformist.cli import main
from transformist.errors import InputTooLong, InvalidValue, NotFinite
from transformist.named import find_model, naming
from transformist.verify import answer_in_numbers, check_recipe


def numbers(name, text, arithmetic, **given):
    return answer_in_numbers(tf.recipe(name), given, text, arithmetic)


@pytest.mark.parametrize(
    ("name", "text", "got", "true"),
    [
        ("add", "[448, 32]", 448, 480),
        ("subtract", "[384, -384]", 448, 768),
        ("max", "[-384, 384]", None, 384),
        ("min", "[384, -384]", None, -384),
    ],
)
def test_no_bound_is_stated_where_a_result_saturates(name, text, got, true):
    """float8_e4m3 is finite however large a result: its bound must not be that of rounding."""
    answer = numbers(name, text, "float8_e4m3")
    assert answer.shown[0] == got if got else abs(answer.shown[0] - true) > 50
    assert answer.covered and answer.bound == (math.inf,)


@pytest.mark.parametrize("arithmetic", ["float64", "float16", "float8_e4m3"])
def test_a_sum_that_does_not_saturate_is_within_its_bound(arithmetic):
    answer = numbers("add", "[3.25, 0.0625]", arithmetic)
    stored = tf.recipe("add").build()([3.25, 0.0625], arithmetic)
    assert abs(float(stored[0]) - 3.3125) <= answer.bound[0] < 1


def test_run_says_when_there_is_no_bound(capsys):
    assert main(["run", "layernorm-pairs", "[1e200, 1e200, -1e200, -1e200]"]) == 0
    assert "with no bound" in capsys.readouterr().out
    assert main(["run", "add", "[400, 400]", "--arithmetic", "float8_e4m3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error_bound"] is None


def test_balls_hold_the_answer_and_say_so(capsys):
    answer = numbers("mean", "[[1], [1], [2]]", "interval", width=1)
    assert answer.shown == [["[1.3333333333333333333 +/- 3.34e-20]"]] * 3
    assert answer.bound == (0,) and answer.stored
    assert main(["run", "add", '["1/3", 1]', "--arithmetic", "interval"]) == 0
    assert "which holds the exact result" in capsys.readouterr().out
    assert main(["run", "multiply-by-gelu", "[0.5, 0.5]", "--arithmetic", "interval"]) == 0
    assert "a value within" in capsys.readouterr().out


def test_what_is_beyond_float64_is_answered_exactly():
    assert numbers("min", '["1e5000", 1]', "exact").shown == [1]
    assert numbers("add", '["1e5000", 1]', "interval").bound == (0.0,)


@pytest.mark.parametrize("name", ["layernorm-hash-lookup", "quadratic-lookup-soft", "soften"])
def test_a_verdict_names_only_the_arithmetics_it_was_reached_in(name):
    recipe = tf.recipe(name)
    verdict = check_recipe(recipe, max_length=2)
    assert verdict.held and list(verdict.arithmetics) == list(recipe.safe_lengths())
    with pytest.raises(InvalidValue, match="is claimed in"):
        numbers(name, "[[1, 1]]", "float8_e5m2")


def test_a_list_longer_than_the_model_is_refused():
    with pytest.raises(InputTooLong, match="at most N = 2"):
        numbers("one-hot-lookup", "[[1, 1], [1, 1], [1, 1]]", "float64", max_length=2)


def built(text, arithmetic, **given):
    return find_model("dyck-1", given).built(len(text), number_system(arithmetic))


def test_a_model_on_strings_is_built_for_the_input():
    fits = built("()" * 30, "bfloat16")
    assert fits.model.max_length == 63 and fits.covered and fits.model("()" * 30, "bfloat16")
    beyond = built("()" * 40, "bfloat16")
    assert beyond.model.max_length == 128 and not beyond.covered and beyond.safe == 63
    assert beyond.explained(beyond.model.run("())", "bfloat16")).sentence == ""
    assert built("()", "float64", max_length=5).model.max_length == 5


def test_a_run_checks_its_settings_and_builds_its_model_once(monkeypatch, capsys):
    counts = collections.Counter()

    def count(of, name):
        function = getattr(of, name)

        @functools.wraps(function)
        def called(*arguments, **named):
            if getattr(arguments[0] if arguments else None, "name", "dyck-1") == "dyck-1":
                counts[name] += 1  # its construction builds other recipes
            return function(*arguments, **named)

        return called

    dyck = tf.recipe("dyck-1")
    counting = dataclasses.replace(dyck, construct=count(dyck, "construct"))
    monkeypatch.setattr(naming, "find_recipe", lambda _: counting)
    for of, name in ((Recipe, "settings"), (StringClaim, "safe_lengths")):
        monkeypatch.setattr(of, name, count(of, name))
    assert main(["run", "dyck-1", "(())", "--arithmetic", "float32"]) == 0
    assert counts == {"settings": 1, "safe_lengths": 1, "construct": 1}
    assert "accepted" in capsys.readouterr().out


def test_a_weight_that_a_format_cannot_hold_is_named_as_a_weight():
    with pytest.raises(NotFinite, match="FeedForward: every weight must be finite in float8_e4m3"):
        tf.recipe("multiply-by-gelu").build()([0.5, 0.5], "float8_e4m3")


def test_a_trace_shows_balls():
    trace = tf.recipe("dyck-1").build(max_length=4).run("((", arithmetic="interval")
    bos, half, two_thirds = trace.shown("balance")
    assert (bos, half) == (0, Fraction(1, 2))
    assert two_thirds.startswith("[0.6666666666666666") and " +/- " in two_thirds
