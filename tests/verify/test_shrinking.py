"""Shrinking of drawn counterexamples: what is reported is wrong, and as short as deletions make."""

import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import OutOfTime
from transformist.verify import Drawn
from transformist.verify.runs.execution import Subject
from transformist.verify.runs.shrinking import TRIES, shrunk
from transformist.verify.verdict import Mismatch

MODEL = tf.recipe("dyck-1").build(max_length=60)


def wrong_where(is_wrong, asked=None):
    """A reference that differs from the model on some strings."""

    def reference(x):
        if asked is not None:
            asked.append(x)
        return is_dyck(x) != is_wrong(x)

    return reference


def is_dyck(x):
    while "()" in x:
        x = x.replace("()", "")
    return x == ""


def shrink(is_wrong, x, **given):
    reference = wrong_where(is_wrong)
    subject = Subject(MODEL, reference, number_system("float64"))
    return shrunk(subject, Mismatch(x, reference(x), MODEL(x)), **given)


@pytest.mark.parametrize(
    ("is_wrong", "least"),
    [
        (lambda x: x.count(")") > 12, ")" * 13),
        (lambda x: "())(" in x and len(x) > 20, None),
        (lambda x: len(x) > 20, "(" * 21),
        (lambda x: len(x) % 7 == 3 and len(x) > 10, "(" * 17),
    ],
)
def test_no_symbol_can_be_deleted_or_made_earlier(is_wrong, least):
    start = "()))(())((())(" * 4 + "))"
    start = start if is_wrong(start) else start[:24]
    assert is_wrong(start)
    found = shrink(is_wrong, start)
    x = found.input
    assert is_wrong(x) and found.got == MODEL(x) == is_dyck(x) != found.expected
    assert len(x) <= len(start) and (least is None or x == least)
    for k in range(len(x)):
        assert not is_wrong(x[:k] + x[k + 1 :])
        assert x[k] == "(" or not is_wrong(x[:k] + "(" + x[k + 1 :])


def depth_of(x):
    return max(x[:k].count("(") - x[:k].count(")") for k in range(len(x) + 1))


@pytest.mark.parametrize(
    ("start", "is_wrong", "least"),
    [
        # Single symbols cannot go: the rest of the string is not balanced. Pairs that match can.
        ("(()(()()))()((()(())))", lambda x: is_dyck(x) and depth_of(x) >= 3, "((()))"),
        # Of 24 symbols, halving deletes 12, 6, 3 or 1, and none of these is a multiple of 7.
        ("(" * 24, lambda x: len(x) % 7 == 3, "((("),
    ],
)
def test_pairs_that_stand_apart_and_blocks_of_any_size_are_deleted(start, is_wrong, least):
    assert is_wrong(start)
    assert shrink(is_wrong, start).input == least


def test_a_drawn_counterexample_is_shrunk_and_the_count_is_kept():
    drawn = Drawn(200, 20, 60, seed=3)
    found = tf.check(MODEL, wrong_where(lambda x: x.count(")") > 12), 4, drawn=drawn)
    assert found.counterexample.input == ")" * 13
    strings = tf.domains.Strings(("(", ")"), lambda _: ())
    listed = list(strings.drawn_by_number(range(20, 61), range(200), 3))
    first = next(k for k, x in enumerate(listed) if x.count(")") > 12)
    assert found.cases == 31 + first + 1
    assert found.covered.endswith(f"until one of length {len(listed[first])} failed")
    again = tf.check(MODEL, wrong_where(lambda x: x.count(")") > 12), 4, drawn=drawn)
    assert again == found


def test_a_counterexample_among_all_strings_stays_the_first():
    found = tf.check(MODEL, wrong_where(lambda x: x in ("))((", "))()")), 5, drawn=10)
    assert found.counterexample.input == "))(("


def test_the_number_of_strings_compared_is_limited():
    asked = []
    reference = wrong_where(lambda x: len(x) > 3, asked)
    subject = Subject(MODEL, reference, number_system("float64"))
    start = Mismatch(")" * 60, True, False)
    assert len(shrunk(subject, start, tries=5).input) > 4 and len(asked) == 5
    asked.clear()
    assert shrunk(subject, start).input == "((((" and len(asked) < TRIES / 10


@pytest.mark.parametrize(
    ("error", "least"),
    [(ValueError, "(" * 20), (OutOfTime("must end", received="x", remedy="mend it"), ")" * 20)],
)
def test_a_reference_that_raises_or_hangs_ends_nothing(error, least):
    """A string that it refuses is not taken; one on which it hangs is the last that is tried."""

    def reference(x):
        if len(x) < 20:
            raise error
        return not is_dyck(x)

    subject = Subject(MODEL, reference, number_system("float64"))
    found = shrunk(subject, Mismatch(")" * 40, True, False))
    assert found == Mismatch(least, True, False)
