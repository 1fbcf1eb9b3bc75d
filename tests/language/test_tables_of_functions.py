"""Tables of functions and mappings, of categories, Booleans and listed numbers; values."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf

WEIGHT = {"a": 0, "b": Fraction(1, 3), "c": 2}


def sums(x):
    """The weight of each symbol and the one before it, 1/2 where there is none."""
    weights = [WEIGHT[symbol] for symbol in x]
    return [a + b for a, b in zip(weights, [Fraction(1, 2), *weights], strict=False)]


CASES = {
    # name: on the sequences x and w, the sums; from the definition on a symbol and a sum
    "category": (
        lambda x, w: w.map(lambda v: "low" if v < 1 else "high" if v > 2 else ("mid", v)),
        lambda a, v: "low" if v < 1 else "high" if v > 2 else ("mid", v),
    ),
    "Boolean": (lambda x, w: w.map(lambda v: v in (1, 4)), lambda a, v: v in (1, 4)),
    "number": (lambda x, w: w.map(lambda v: 36 * v * v % 7), lambda a, v: 36 * v * v % 7),
    "mapping": (
        lambda x, w: w.map({v: -v for v in (*w.values, 77)}, categories=True),
        lambda a, v: -v,
    ),
    "of two": (
        lambda x, w: x.table(w, values=lambda a, v: f"{a}!" if v > 1 else a),
        lambda a, v: f"{a}!" if v > 1 else a,
    ),
    "of three": (
        lambda x, w: w.table(x == "a", x, values=lambda v, b, a: v + (b or a == "c")),
        lambda a, v: v + (a in "ac"),
    ),
    "of a Boolean": (lambda x, w: (x == "a").map(lambda b: 3 - b), lambda a, v: 3 - (a == "a")),
    "of the symbol": (lambda x, w: x.map(WEIGHT.get) + x.map(ord), lambda a, v: WEIGHT[a] + ord(a)),
    "never": (lambda x, w: (x == "z") | x.isin(["c", 5, None]), lambda a, v: a == "c"),
    "always": (lambda x, w: x != ("a", "b"), lambda a, v: True),
}


def program_of(name):
    @tf.program(alphabet="abc")
    def program(x):
        weight = x.map(WEIGHT)
        w = weight + weight.predecessor(default=Fraction(1, 2))
        return CASES[name][0](x, w).tag()

    return program


def expected(name, x):
    return [CASES[name][1](*row) for row in zip(x, sums(x), strict=True)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weighting", ["softmax", "average-hard", "rightmost-hard"])
def test_the_function_is_taken_at_each_position(name, weighting):
    program = program_of(name)
    model = tf.compile(program, max_length=9, weighting=weighting)
    arithmetic = "float32" if weighting == "softmax" else "exact"
    strings = ["".join(x) for n in range(1, 5) for x in itertools.product("abc", repeat=n)]
    strings += ["a" * 9, "c" * 9, "abcabcabc", "cbacbabca"]
    answers = model.answers(strings, arithmetic=arithmetic)
    for x, answer in zip(strings, answers, strict=True):
        assert list(program(x)) == list(answer) == expected(name, x), x


@pytest.mark.parametrize("name", [*CASES])
def test_it_is_certified(name):
    model = tf.compile(program_of(name), max_length=50)
    certificate = tf.certify(model, "float32")
    assert certificate.holds and certificate.grade == 1


def test_functions_are_called_on_what_can_occur_once_each():
    seen = Counter()

    def function(b, a, v):
        seen[b, a, v] += 1
        return True

    @tf.program(alphabet="ab")
    def program(x):
        v = x.map({"a": 5, "b": Fraction(1, 2), "c": 0})
        return (x == "a").table(x, v, values=function).tag()

    assert program("ab") == [True, True]
    assert seen == Counter(itertools.product((False, True), "ab", (Fraction(1, 2), 5)))


def test_every_sequence_has_the_values_that_it_can_have():
    kept = []

    @tf.program(alphabet=[3, 1])
    def program(x):
        number = x.map({3: 3, 1: 1})
        kept.extend(each.values for each in (x, x == 1, number, number - number.predecessor()))
        kept.append(x.predecessor(default="none").values)
        return x.tag()

    assert kept == [(3, 1), (False, True), (1, 3), (-2, 0, 1, 2, 3), (3, 1, "none")]


def test_numbers_and_booleans_of_numpy_are_those_of_python():
    def program(x):
        return x.map(lambda a: np.int64(3) > ord(a)).where(x.map(np.char.str_len), 2).tag()

    traced = tf.program(alphabet="ab")(program)
    assert traced("ab") == [2, 2]
    assert not {type(row) for node in traced.nodes for row in getattr(node, "rows", ())} & {
        np.bool_,
        np.int64,
    }
