"""Functions of whole numbers in the language: values, ends, divisions, what is refused."""

import itertools
import pickle

import pytest

import transformist as tf
from transformist.language.types import Number

STRINGS = ["".join(x) for n in range(1, 6) for x in itertools.product("ab", repeat=n)]


def traced(function, alphabet="ab"):
    return tf.program(alphabet=alphabet)(function)


def whole_numbers(x):
    """Whole numbers that are not listed, by name, beside their values from the definition."""
    a, b, i, n = x == "a", x == "b", x.position("i"), x.position("n")
    past, seen, before = a.count("past"), a.count("future"), a.count("strict-future")
    later, other, every = b.count("strict-past"), b.count("future"), a.count()
    return {
        "i": (i, lambda s, k: k),
        "n": (n, lambda s, k: len(s)),
        "one": (x.position("1"), lambda s, k: 1),
        "every": (every, lambda s, k: s.count("a")),
        "past": (past, lambda s, k: s[k - 1 :].count("a")),
        "later": (later, lambda s, k: s[k:].count("b")),
        "seen": (seen, lambda s, k: s[:k].count("a")),
        "before": (before, lambda s, k: s[: k - 1].count("a")),
        "difference": (seen - other, lambda s, k: s[:k].count("a") - s[:k].count("b")),
        "rest": (n - i, lambda s, k: len(s) - k),
        "others": (3 - every * 2, lambda s, k: 3 - 2 * s.count("a")),
        "moved": (x.map({"a": 5, "b": -2}) + i, lambda s, k: (5 if s[k - 1] == "a" else -2) + k),
        "smaller": (seen.min(2), lambda s, k: min(2, s[:k].count("a"))),
        "larger": (seen.max(other), lambda s, k: max(s[:k].count("a"), s[:k].count("b"))),
        "smaller of two": (i.min(every), lambda s, k: min(k, s.count("a"))),
        "larger than": (seen.max(-1), lambda s, k: max(-1, s[:k].count("a"))),
        "apart": (abs(seen - other), lambda s, k: abs(s[:k].count("a") - s[:k].count("b"))),
        "clipped": ((i - 3).clip(-1, 1), lambda s, k: min(1, max(-1, k - 3))),
        "bent": ((seen - i).cpwl([0, 1], [2, 0]), lambda s, k: bent(s[:k].count("a") - k)),
        "before it": (seen.predecessor(default=9), lambda s, k: s[: k - 1].count("a") if k > 1
                      else 9),
        "after it": (i.successor(default=1), lambda s, k: k + 1 if k < len(s) else 1),
        "above 1": ((seen - 1).relu(), lambda s, k: max(0, s[:k].count("a") - 1)),
        "at the end": ((i - n).last(), lambda s, k: 0),
        "found": (i.nearest_left(a, default=-4), lambda s, k: max(
            (j for j in range(1, k) if s[j - 1] == "a"), default=-4)),
        "chosen": (a.where(i, -seen), lambda s, k: k if s[k - 1] == "a" else -s[:k].count("a")),
        "quotient": (i // 2, lambda s, k: k // 2),
        "negative quotient": ((seen - i - 1) // -3, lambda s, k: (s[:k].count("a") - k - 1) // -3),
        "quotient below 0": ((seen - i) // 2, lambda s, k: (s[:k].count("a") - k) // 2),
        "large rest": (i % 100, lambda s, k: k % 100),
        "product": (seen * other, lambda s, k: s[:k].count("a") * s[:k].count("b")),
        "square": ((seen - other) * (seen - other),
                   lambda s, k: (s[:k].count("a") - s[:k].count("b")) ** 2),
        "signed product": ((seen - i - 2) * (n - 1), lambda s, k: (s[:k].count("a") - k - 2)
                           * (len(s) - 1)),
        "product of three": (3 - i * before * (n + 1), lambda s, k: 3 - k * s[: k - 1].count("a")
                             * (len(s) + 1)),
        "product before it": ((i * i - n).predecessor(default=4), lambda s, k: (k - 1) ** 2 - len(s)
                              if k > 1 else 4),
        "less of products": ((i * n).min(seen), lambda s, k: min(k * len(s), s[:k].count("a"))),
        "more of products": ((i - i * n).max(-seen * n),
                             lambda s, k: max(k - k * len(s), -s[:k].count("a") * len(s))),
        "half of a product": ((seen * n - 5) // 2, lambda s, k: (s[:k].count("a") * len(s) - 5)
                              // 2),
        "mapped": (i.map(lambda k: k * k, max_length=99), lambda s, k: k * k),
    }  # fmt: skip


def bent(v):
    """The line through (0, 2) and (1, 0)."""
    return 2 - 2 * v


def value_of(bound, i, n):
    """The bound at a position and a length: a i + b n + c and the powers of n from n² on."""
    powers = sum(factor * n**k for k, factor in enumerate(bound.powers, start=2))
    return bound.i * i + bound.n * n + bound.constant + powers


WHOLE = []
traced(lambda x: (WHOLE.extend(whole_numbers(x)), x.tag())[1])


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_number_lies_between_its_ends(name):
    kept = []

    def program(x):
        number, _ = whole_numbers(x)[name]
        kept.append((number.node.type, whole_numbers(x)[name][1]))
        return number.tag()

    made = traced(program)
    type_, value = kept[0]
    ends = type_.ends
    assert isinstance(type_, Number) and type_.values is None and ends is not None
    for s in STRINGS:
        found = made(s)
        assert found == [value(s, k) for k in range(1, len(s) + 1)], s
        for k, each in enumerate(found, start=1):
            lo, hi = (value_of(bound, k, len(s)) for bound in (ends.lo, ends.hi))
            assert lo <= each <= hi, (s, k)
            assert each in ends.up_to(len(s)) and each in ends.up_to(len(s) + 3)


@pytest.mark.parametrize(
    ("number", "values"),
    [
        (lambda x: x.position("i"), range(1, 10)),
        (lambda x: x.position("n") - x.position("i"), range(9)),
        (lambda x: (x == "a").count(), range(10)),
        (lambda x: (x == "a").count("strict-future"), range(9)),
        (lambda x: (x == "a").count("future").min(2), range(3)),
        (lambda x: (x == "a").count() - (x == "b").count(), range(-9, 10)),
        (lambda x: x.position("i") // 2, range(5)),
        (lambda x: x.position("i") * (x == "a").count("future"), range(82)),
        (lambda x: x.position("n") * ((x == "a").count() - 2), range(-18, 82)),
    ],
)
def test_a_function_is_called_once_on_each_value_that_the_number_can_have(number, values):
    seen = []
    traced(lambda x: number(x).map(lambda v: seen.append(v) is None, max_length=9).tag())
    assert seen == list(values)


@pytest.mark.parametrize("c", [1, 2, 3, 100, -1, -3])
def test_divisions_are_those_of_python(c):
    def program(x):
        number = (x == "a").count("future") * 2 - (x == "b").count("future") * 3
        listed = x.map({"a": 7, "b": -4})
        return (((number // c) + (number % c) * 1000) + (listed // c + listed % c)).tag()

    made = traced(program)
    for s in STRINGS:
        for k, found in enumerate(made(s), start=1):
            number = 2 * s[:k].count("a") - 3 * s[:k].count("b")
            listed = 7 if s[k - 1] == "a" else -4
            assert found == number // c + number % c * 1000 + listed // c + listed % c


REMAINDERS = {
    "sum": (
        lambda x: 3 * (x == "a").count() - 4 * (x == "b").count("future") + x.position("i") + 5,
        lambda s, k: 3 * s.count("a") - 4 * s[:k].count("b") + k + 5,
    ),
    "product": (
        lambda x: 2 * (x == "a").count() * x.position("i") - 7,
        lambda s, k: 2 * s.count("a") * k - 7,
    ),
    "square of a sum": (
        lambda x: squared((x == "a").count() + 2 * x.position("i") - x.position("n")),
        lambda s, k: (s.count("a") + 2 * k - len(s)) ** 2,
    ),
    "sum of products and listed numbers": (
        lambda x: (
            x.map({"a": 9, "b": -2})
            + x.position("i") * (x.position("n") * x.position("n") + 1)
            + 30 * x.position("i")
        ),
        lambda s, k: (9 if s[k - 1] == "a" else -2) + k * (len(s) ** 2 + 1) + 30 * k,
    ),
    "sum with half of a listed number": (
        lambda x: x.map({"a": 6, "b": -2}) / 2 + x.position("i") + 2 * x.position("n"),
        lambda s, k: (3 if s[k - 1] == "a" else -1) + k + 2 * len(s),
    ),
    "what cancels out": (
        lambda x: 3 * x.position("i") * x.position("n") + 2 * (x.position("n") + x.position("i")),
        lambda s, k: 3 * k * len(s) + 2 * (len(s) + k),
    ),
}


def squared(number):
    return number * number


@pytest.mark.parametrize("c", [1, 2, 3, 10, 64, 65, -1, -3])
@pytest.mark.parametrize("name", REMAINDERS)
def test_remainders_of_sums_and_products_are_those_of_python(name, c):
    number, value = REMAINDERS[name]
    made = traced(lambda x: (number(x) % c).tag())
    for s in STRINGS:
        assert made(s) == [value(s, k) % c for k in range(1, len(s) + 1)], s


def test_a_deep_sum_of_products_has_a_remainder():
    def program(x):
        count = (x == "a").count()
        total = count
        for _ in range(60):
            total = total * count + x.position("n")
        return (total % 3).tag()

    a, made = 2, traced(program)
    total = a
    for _ in range(60):
        total = total * a + 3
    assert made("aba") == [total % 3] * 3


def test_traces_of_one_function_are_equal_and_survive_pickling():
    def of(rest):
        return traced(lambda x: (x == "a").count().map(lambda k: "pq"[k % 3 == rest]).tag())

    assert of(1) == of(1) != of(2) and hash(of(1)) == hash(of(1))
    copy = pickle.loads(pickle.dumps(of(1)))
    assert copy == of(1) and copy("aba") == of(1)("aba") == "ppp"


def test_the_answer_on_nothing_is_the_function_at_0_where_it_is_known():
    assert traced(lambda x: ((x == "a").count() % 2 == 0).accept())("") is True
    assert traced(lambda x: (x == "a").count().map(lambda k: k > 0).accept())("") is False
    assert traced(lambda x: (x.position("n") % 2 == 1).accept())("") is False
    with pytest.raises(tf.TransformistError, match="no value over no positions"):
        traced(lambda x: x.position("n").map(lambda n: n > 1).accept())


def test_a_number_beyond_what_is_known_has_no_value():
    def program(x):
        return (x == "a").count().map(lambda k: k > 1, max_length=2).tag()

    made = traced(program)
    assert made("aba") == [True] * 3
    with pytest.raises(tf.TransformistError) as refusal:
        made("aaa")
    place, words = str(refusal.value).split(": a function")
    assert place.startswith("test_whole_maps.py, line ") and "max_length=2" in place
    assert words.startswith(
        " of a number must have a value at each value of the number; received none at 3, but "
        "values at 0 to 2; give map(f, max_length=…) the length of the longest input"
    )


REFUSED = {
    "a mean": (lambda x: (x == "a").mean().map(str), "a mean"),
    "a power": (lambda x: x.position("i^2").map(str), "a power of i"),
    "half a count": (lambda x: ((x == "a").count() / 2) % 2, "need not be whole"),
    "raises": (lambda x: (x == "a").count().map(lambda k: 5 // (k - 2)),
               "ZeroDivisionError: integer division or modulo by zero for the arguments 2"),
    "several types": (lambda x: x.position("i").map(lambda k: k if k < 9 else "many"),
                      "a category for 9 and a number for 1"),
    "no hash": (lambda x: x.position("i").map(lambda k: [k]), "[1]"),
    "a sequence": (lambda x: x.position("i").map(lambda k: x), "x, a category"),
    "no key": (lambda x: x.position("i").map({"a": 1}), "the keys 'a'"),
    "no keys": (lambda x: x.position("i").map({}), "the keys none"),
    "no length": (lambda x: x.position("i").map(str, max_length=0), "max_length"),
    "too many": (lambda x: x.position("i").map(str, max_length=10**6), "1,000,000 values"),
    "no function": (lambda x: x.position("i").map(3), "received 3"),
    "a list": (lambda x: x.position("i").map([1, 2]), "[1, 2]"),
    "by 0": (lambda x: x.position("i") % 0, "other than 0; received 0"),
    "by a half": (lambda x: x.position("i") // 0.5, "received 0.5"),
    "by a sequence": (lambda x: x.position("i") % x.position("n"), "a number"),
    "of a category": (lambda x: x % 2, "% is not defined on a category"),
    "on the right": (lambda x: 7 % x.position("i"), "% is not defined on a number"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_value_is_refused_with_its_line(name):
    function, words = REFUSED[name]
    with pytest.raises(tf.TransformistError) as refusal:
        traced(lambda x: function(x).tag())
    assert words in str(refusal.value) and "test_whole_maps.py, line " in str(refusal.value)
