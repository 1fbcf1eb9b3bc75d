"""Numbers without listed values that a program hands out: whole numbers, means over matches."""

import itertools
import random
from fractions import Fraction

import pytest

import transformist as tf
from transformist.compiler import largest_length
from transformist.errors import InvalidValue
from transformist.model import MultiClass, NearestFraction


def program_of(written):
    return tf.program(alphabet="ab")(written)


def strings(longest):
    draw = random.Random(longest)
    yield from ("".join(x) for n in range(7) for x in itertools.product("ab", repeat=n))
    for n in (longest - 1, longest):
        yield from ("a" * n, "ab" * (n // 2), "a" + "b" * (n - 1), "".join(draw.choices("ab", k=n)))


def mean(values, default=0):
    return Fraction(sum(values), len(values)) if values else default


# Means over matches. A reference takes the string; positions count from 0 in it.


def of_like(x):
    """Where a symbol occurs among positions, on average: the number of the position."""
    return x.select(x).mean(x.position("i")).tag()


def after_like(x):
    """The share of a among the positions that follow a symbol like this one."""
    return x.select(x.predecessor(default="-")).mean(x == "a").tag()


def earlier_values(x):
    values = x.map({"a": Fraction(1, 2), "b": -3})
    return x.select(x, mask="strict-future").mean(values.predecessor(default=1), default=7).tag()


def smaller(x):
    return x.select(x, relation="<=", mask="past").mean(x == "a").tag()


def fetched(x):
    return (x == "a").prefix_mean().nearest_left(x == "b", default=-1).tag()


def shares(x):
    return [Fraction(x[: i + 1].count("a"), i + 1) for i in range(len(x))]


def last_before(x, i, symbol):
    return max((j for j in range(i) if x[j] == symbol), default=None)


HALVES = {"a": Fraction(1, 2), "b": -3}
MEANS = {
    "positions of a symbol": (
        of_like,
        lambda x: [mean([j + 1 for j, b in enumerate(x) if b == a]) for a in x],
    ),
    "what follows": (
        after_like,
        lambda x: [
            mean([b == "a" for before, b in itertools.pairwise(x) if before == a]) for a in x
        ],
    ),
    "fractions and a default": (
        earlier_values,
        lambda x: [
            mean([HALVES[x[j - 1]] if j else 1 for j in range(i) if x[j] == a], 7)
            for i, a in enumerate(x)
        ],
    ),
    "by relation": (
        smaller,
        lambda x: [mean([b == "a" for b in x[i:] if b <= a]) for i, a in enumerate(x)],
    ),
    "a mean of another position": (
        fetched,
        lambda x: [
            -1 if (j := last_before(x, i, "b")) is None else shares(x)[j] for i in range(len(x))
        ],
    ),
}


WIDER = ("positions of a symbol", "fractions and a default")
"""Means of values up to 8, whose labels float32 keeps apart only for N below 8."""


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
@pytest.mark.parametrize("name", MEANS)
def test_a_mean_over_matches_is_the_fraction_that_it_is(name, weighting):
    written, reference = MEANS[name]
    program = program_of(written)
    arithmetic = "float64" if name in WIDER else "float32"
    model = tf.compile(program, max_length=8, weighting=weighting, arithmetic=arithmetic)
    given = list(strings(8))
    for x, answer in zip(given, model.answers(given, arithmetic=arithmetic), strict=True):
        assert program(x) == answer == reference(x), x
        assert all(type(each) is int for each in answer if each == int(each)), x


@pytest.mark.slow
def test_a_mean_over_matches_is_certified_for_a_small_length():
    model = tf.compile(program_of(lambda x: x.select(x).mean(x == "a").tag()), max_length=8)
    certificate = tf.certify(model, "float32")
    assert certificate.holds and certificate.grade == 1


@pytest.mark.slow
def test_fractions_are_handed_out_up_to_a_length():
    """The number of labels and the gap of neighbouring fractions limit N."""
    program = program_of(lambda x: x.select(x).mean(x == "a").tag())
    with pytest.raises(InvalidValue, match="must have at most 4,096 values") as told:
        tf.compile(program, max_length=200, arithmetic="exact")
    assert "give a smaller max_length" in str(told.value)
    # Fractions from 0 to 1 with denominators up to N + 1, the rows that a head sees: φ(1) + … + 1.
    longest = largest_length(program, most=150, arithmetic="exact")
    count = len({Fraction(p, q) for q in range(1, longest + 2) for p in range(q + 1)})
    more = len({Fraction(p, q) for q in range(1, longest + 3) for p in range(q + 1)})
    assert count <= 4096 < more


# Whole numbers

WHOLE = {
    "the position": (lambda x: x.position("i").tag(), lambda x: list(range(1, len(x) + 1))),
    "n": (lambda x: x.position("n").tag(), lambda x: [len(x)] * len(x)),
    "the position of another": (
        lambda x: x.position("i").nearest_left(x == "b", default=-2).tag(),
        lambda x: [-2 if (j := last_before(x, i, "b")) is None else j + 1 for i in range(len(x))],
    ),
    "a selected position": (
        lambda x: x.select(x, mask="strict-future").rightmost(x.position("i")).tag(),
        lambda x: [0 if (j := last_before(x, i, a)) is None else j + 1 for i, a in enumerate(x)],
    ),
    "a difference": (
        lambda x: (x.position("i") - 2 * (x == "b").count()).tag(),
        lambda x: [i + 1 - 2 * x.count("b") for i in range(len(x))],
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_labels_and_certified(name):
    written, reference = WHOLE[name]
    program = program_of(written)
    model = tf.compile(program, max_length=12)
    for x in strings(12):
        assert program(x) == model(x, "float32") == reference(x), x
    assert isinstance(model.read_out, MultiClass)
    assert tf.certify(model, "float32").grade == 1


@pytest.mark.slow
def test_a_whole_number_whose_labels_do_not_fit_is_the_nearest():
    """Squares of labels up to N² need more bits than float32 has; a whole number does not."""

    def written(x):
        return ((x == "a").count("future") * x.position("i")).tag()

    program = program_of(written)
    short, long = (tf.compile(program, max_length=n) for n in (8, 34))
    assert isinstance(short.read_out, MultiClass) and isinstance(long.read_out, NearestFraction)
    for x in ("ab" * 17, "a" * 34, "b" + "a" * 32):
        assert long(x, "float32") == [(i + 1) * x[: i + 1].count("a") for i in range(len(x))]


@pytest.mark.slow
def test_outputs_choose_their_labels_together():
    """Whole numbers and listed ones beside each other, both in their second way."""

    def written(x):
        product = (x == "a").count("future") * x.position("i")
        return tf.outputs(price=x.map({"a": 100_000, "b": 100_001}).tag(), product=product.tag())

    model = tf.compile(program_of(written), max_length=34)
    answer = model("ba" * 17, "float32")
    assert answer["price"] == [100_001, 100_000] * 17
    assert answer["product"] == [(i + 1) * ((i + 1) // 2) for i in range(34)]
