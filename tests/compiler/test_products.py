"""Products of numbers of which at most one has listed values."""

import itertools
import random
from fractions import Fraction

import pytest

import transformist as tf
from transformist.errors import InvalidValue


def tagged(number, relation):
    return lambda x: relation(number(x)).tag()


def count(x, symbol="a"):
    return (x == symbol).count("future")


def ahead(x):
    """The number of a minus that of b up to here: both signs."""
    return count(x) - count(x, "b")


def by_position(function):
    """The reference: the value of a function at each position from 1, of the string and i."""
    return lambda x: [function(x, i) for i in range(1, len(x) + 1)]


def a(x, i):
    return x[:i].count("a")


def b(x, i):
    return x[:i].count("b")


PRODUCTS = {
    "two counts, handed out": (
        lambda x: (count(x) * (x == "b").count()).tag(),
        by_position(lambda x, i: a(x, i) * x.count("b")),
    ),
    "two counts, compared": (
        lambda x: (count(x) * (x == "b").count() == 4).tag(),
        by_position(lambda x, i: a(x, i) * x.count("b") == 4),
    ),
    "a square": (
        lambda x: (ahead(x) * ahead(x) > x.position("i")).tag(),
        by_position(lambda x, i: (a(x, i) - b(x, i)) ** 2 > i),
    ),
    "both signs": (
        lambda x: (ahead(x) * (2 - count(x)) < -1).tag(),
        by_position(lambda x, i: (a(x, i) - b(x, i)) * (2 - a(x, i)) < -1),
    ),
    "a mean": (
        lambda x: (x.position("i") * (x == "a").mean() >= "3/2").tag(),
        by_position(lambda x, i: Fraction(i * x.count("a"), len(x)) >= Fraction(3, 2)),
    ),
    "a mean, handed out": (
        lambda x: (ahead(x) * (x == "a").prefix_mean()).tag(),
        by_position(lambda x, i: Fraction((a(x, i) - b(x, i)) * a(x, i), i)),
    ),
    "listed fractions and a mean": (
        lambda x: (x.map({"a": Fraction(1, 2), "b": -3}) * (x == "a").prefix_mean()).tag(),
        by_position(lambda x, i: {"a": Fraction(1, 2), "b": -3}[x[i - 1]] * Fraction(a(x, i), i)),
    ),
    "listed numbers of other positions and a count": (
        lambda x: (x.map({"a": 2, "b": -1}).predecessor(default=3) * count(x) % 3).tag(),
        by_position(lambda x, i: (3 if i == 1 else {"a": 2, "b": -1}[x[i - 2]]) * a(x, i) % 3),
    ),
    "a product of three": (
        lambda x: (count(x) * count(x, "b") * x.position("i") == 8).tag(),
        by_position(lambda x, i: a(x, i) * b(x, i) * i == 8),
    ),
    "a product as key": (
        lambda x: x.position("i").select(count(x) * count(x, "b")).any().tag(),
        by_position(lambda x, i: any(a(x, j) * b(x, j) == i for j in range(1, len(x) + 1))),
    ),
}
"""Programs over ab, each with its meaning."""

SOONER = (
    "a product of three",
    "a product as key",
    "listed numbers of other positions and a count",
)
"""Certified for smaller N: keys of N² values, products of N³ values, a sum of steps."""


def strings(longest, short=6):
    draw = random.Random(longest)
    yield from ("".join(x) for n in range(short) for x in itertools.product("ab", repeat=n))
    for n in (longest - 1, longest):
        yield from ("a" * (n // 2) + "b" * (n - n // 2), "b" * (n // 2) + "a" * (n - n // 2))
        yield from ("a" * n, "".join(draw.choices("ab", k=n)))


def require_equal(name, model, arithmetic, longest):
    written, reference = PRODUCTS[name]
    program, given = tf.program(alphabet="ab")(written), list(strings(longest))
    for x, answer in zip(given, model.answers(given, arithmetic=arithmetic), strict=True):
        assert program(x) == reference(x), x
        assert answer == reference(x), x


@pytest.mark.parametrize("weighting", ["average-hard", "softmax"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_have_their_values(name, weighting):
    program = tf.program(alphabet="ab")(PRODUCTS[name][0])
    model = tf.compile(program, max_length=9, weighting=weighting)
    require_equal(name, model, "exact" if weighting == "average-hard" else "float32", 9)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_certified_and_right_at_greater_lengths(name):
    program = tf.program(alphabet="ab")(PRODUCTS[name][0])
    longest = 9 if name in SOONER else 24
    model = tf.compile(program, max_length=longest)
    require_equal(name, model, "float32", longest)
    assert tf.certify(model, "float32").grade == 1


def test_a_factor_needs_no_mean_under_rightmost_hard():
    program = tf.program(alphabet="ab")(
        lambda x: (x.position("i") * x.position("i").last() == 8).tag()
    )
    model = tf.compile(program, max_length=8, weighting="rightmost-hard")
    for x in strings(8):
        expected = [i * len(x) == 8 for i in range(1, len(x) + 1)]
        assert program(x) == model(x, "exact") == model(x, "float32") == expected


def test_the_ends_of_a_product_with_a_listed_number_are_known():
    """A count times −1, 0 or 2 is a whole number, so a function of it compiles; by hand: ends."""

    def written(x):
        return (x.map({"a": 2, "b": -1}) * count(x)).map(lambda v: f"{v}").tag()

    program = tf.program(alphabet="ab")(written)
    assert program("aaba") == ["2", "4", "-2", "6"]
    assert tf.compile(program, max_length=7)("aaba", "float32") == ["2", "4", "-2", "6"]


def test_no_more_values_are_promised_than_the_ends_allow():
    """(−1, 0 or 2) · (count − n) is between −2 n and n."""
    program = tf.program(alphabet="ab")(
        lambda x: (x.map({"a": 2, "b": -1}) * ((x == "a").count() - x.position("n"))).tag()
    )
    for n in range(1, 7):
        found = {v for x in itertools.product("ab", repeat=n) for v in program("".join(x))}
        allowed = program.output.node.type.ends.up_to(n)
        assert min(allowed) <= min(found) and max(found) <= max(allowed)
        assert {min(allowed), max(allowed)} == {-2 * n, n}


def test_two_means_are_refused():
    program = tf.program(alphabet="ab")(
        lambda x: ((x == "a").mean() * (x == "a").prefix_mean() > "1/4").tag()
    )
    assert program("ab") == [True, False]
    with pytest.raises(InvalidValue, match="a factor of a product must be a whole number") as told:
        tf.compile(program, max_length=5)
    assert "line" in str(told.value) and "multiply a mean by a count" in str(told.value)


def test_a_whole_factor_without_a_bound_needs_max_length():
    program = tf.program(alphabet="ab")(lambda x: (x.position("i") * x.position("i") > 3).tag())
    with pytest.raises(InvalidValue, match="max_length must be known"):
        tf.compile(program, max_length=None, weighting="average-hard", arithmetic=None)
