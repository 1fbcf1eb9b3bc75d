"""The first string in the order of a check that is wrong or refused, whatever comes after it."""

import re

import pytest

import transformist as tf
from transformist.errors import InvalidValue, NotFinite, OutOfTime
from transformist.programs import PROGRAMS
from transformist.user_code import guarded
from transformist.verify import Drawn
from transformist.verify.comparison import first_wrong
from transformist.verify.runs import pieces

REVERSE = tf.compile(PROGRAMS["reverse"], max_length=40, arithmetic="exact")
DYCK = tf.recipe("dyck-1").build(max_length=40)


def reversed_unless_long(x):
    return "WRONG" if len(x) > 2 else x[::-1]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_string_that_the_format_refuses_hides_no_earlier_one(jobs):
    """Among the drawn strings some of 30 symbols overflow; the first of all, of 11, is wrong."""
    drawn = Drawn(50, 1, 40)
    found = tf.check(REVERSE, reversed_unless_long, 2, "float8_e4m3", drawn=drawn, jobs=jobs)
    assert found.counterexample.input == "aaa"


def test_a_string_that_the_format_refuses_is_named():
    """The first that is refused by itself; those before it are compared."""
    strings = ["ab", "a" * 40, "ab", "b" * 40]
    for each in strings[1::2]:
        with pytest.raises(NotFinite):
            REVERSE.answers([each], "float8_e4m3")
    system = tf.arithmetic.number_system("float8_e4m3")
    cases, found = first_wrong(REVERSE, lambda x: x[::-1], strings, system)
    assert cases == 1 and found.input == strings[1]
    assert f"on {strings[1]!r}"[:40] in str(found.error)
    cases, found = first_wrong(REVERSE, lambda x: "", strings, system)
    assert cases == 1 and found.input == "ab" and found.got == "ba"


def slow_on(string, wrong):
    """A reference of Dyck-1 that never answers on a string, and is wrong on another one."""

    def reference(x):
        while x == string:
            pass
        depth = 0
        for each in x:
            depth = -100 if depth < 0 else depth + (1 if each == "(" else -1)
        return (depth == 0) != (x == wrong)

    return guarded(reference, 0.05)


def test_a_string_without_an_answer_hides_no_earlier_one(monkeypatch):
    """The piece of ((, to length 6, is compared before that of ))."""
    monkeypatch.setattr(pieces, "STRINGS", 2)
    monkeypatch.setattr(pieces, "FEWEST_STRINGS", 2)
    found = tf.check(DYCK, slow_on("((((((", "))))("), 6)
    assert found.counterexample.input == "))))("


@pytest.mark.parametrize("string", ["((((((", "))))))"])
def test_a_string_without_an_answer_is_the_first_that_is_named(monkeypatch, string):
    monkeypatch.setattr(pieces, "STRINGS", 2)
    monkeypatch.setattr(pieces, "FEWEST_STRINGS", 2)
    with pytest.raises(OutOfTime, match=re.escape(f"no answer on '{string}'")):
        tf.check(DYCK, slow_on(string, "))))))("), 7)


def test_no_string_is_no_verdict():
    """The model has no string of length 0."""

    @tf.program(alphabet="ab")
    def swapped(x):
        return x.map({"a": "b", "b": "a"}).tag()

    model = tf.compile(swapped, max_length=8)
    with pytest.raises(InvalidValue, match="max_length must be at least 1"):
        tf.check(model, lambda x: "never", 0)
    found = tf.check(model, lambda x: x.translate({97: "b", 98: "a"}), 0, drawn=5)
    coverage = found.coverage[0]
    assert found and found.cases == 5 and coverage.every is None
    assert "every" not in found.covered and "every" not in coverage.inputs
    wrong = tf.check(model, lambda x: "never", 0, drawn=5)
    assert not wrong and "every" not in wrong.coverage[0].inputs


def test_strings_over_one_symbol_are_few():
    """There is one string of each length, so that 2**24 strings allow any of these lengths."""

    @tf.program(alphabet="a")
    def all_a(x):
        return (x == "a").all_so_far().accept()

    model = tf.compile(all_a, max_length=40)
    found = tf.check(model, lambda x: True, 40)
    assert found and found.cases == 41
    with pytest.raises(InvalidValue, match="at most 2,048 symbols"):
        tf.check(model, lambda x: True, 2049)
