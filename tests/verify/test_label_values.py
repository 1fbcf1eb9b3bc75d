"""Labels of a number that is a mean over matches, or a fraction of n: every value is considered."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

import transformist as tf
from transformist.model import Mask, MultiClass, NearestFraction
from transformist.verify.certificate import grade_of
from transformist.verify.proof.grids import SYMBOLS, farey_neighbours
from transformist.verify.proof.ideal import Ideal, Moving

LONGEST = 4


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
def test_no_fraction_of_a_small_denominator_lies_between_neighbours(most):
    small = {Fraction(p, q) for q in range(1, most + 1) for p in range(-q, 2 * q + 1)}
    for q in range(most + 1, 3 * most + 2):
        for t in {Fraction(p, q) for p in range(1 - q, 2 * q)} - small:
            below, above = max(x for x in small if x < t), min(x for x in small if x > t)
            assert farey_neighbours(t, most) == (below, above), t


@tf.program(alphabet="ab")
def odd_share(x):
    """The share of odd positions among those of the same symbol."""
    return x.select(x, mask="none").mean(x.position("(-1)^i").relu()).tag()


def test_a_mean_over_matches_is_certified_for_every_value():
    model = tf.compile(odd_share, max_length=LONGEST)
    assert grade(model) == 1
    for n in range(LONGEST + 1):
        for word in itertools.product("ab", repeat=n):
            assert model.run(word, "float32").answer == odd_share(word)


@pytest.mark.slow
def test_labels_between_which_a_value_lies_halfway_are_not_certified():
    model = tf.compile(odd_share, max_length=3)
    words = (word for n in range(4) for word in itertools.product("ab", repeat=n))
    met = {Fraction(value) for word in words for value in odd_share(word)}
    labels, tied = [Fraction(label) for label in model.read_out.labels], 0
    for kept in itertools.combinations(range(len(labels)), 3):
        left = [labels[k] for k in kept]
        distances = [sorted(abs(value - label) for label in left) for value in met]
        if any(first == second for first, second, _ in distances):
            tied += 1
            weights = {name: getattr(model.read_out, name)[[*kept]] for name in ("W_out", "b_out")}
            read_out = MultiClass(**weights, labels=tuple(left), at="every")
            assert not grade(replace(model, read_out=read_out)), left
    assert tied > 5


@tf.program(alphabet="ab")
def place(x):
    return x.position("i/n").tag()


def test_a_fraction_of_the_number_of_symbols_is_read_out_with_that_denominator_alone():
    model = tf.compile(place, max_length=LONGEST)
    assert grade(model) == 1
    for changed in ({"with_bos": True}, {"mask": Mask("future")}):
        assert not grade(replace(model, read_out=replace(model.read_out, **changed)))


def test_a_mean_that_bos_takes_part_in_is_no_multiple_of_one_over_the_symbols():
    @tf.program(alphabet="ab")
    def mean(x):
        return (x.predecessor(default="b") == "a").mean("none").tag()

    model = tf.compile(mean, max_length=LONGEST)
    assert model.read_out.with_bos and grade(model) == 1
    assert not grade(replace(model, read_out=replace(model.read_out, with_bos=False)))


def test_a_whole_number_is_a_multiple_of_one_over_every_denominator_and_a_half_is_not():
    @tf.program(alphabet="ab")
    def hundreds(x):
        return (x.position("i") * 100 - (x == "a").where(3, 0)).tag()

    model = tf.compile(hundreds, max_length=50)
    read_out = model.read_out
    assert isinstance(read_out, NearestFraction) and grade(model) == 1
    assert grade(replace(model, read_out=replace(read_out, W_out=read_out.W_out / 200))) == 0


def test_values_are_listed_in_a_time_that_does_not_grow_with_the_length():
    half = Moving({}, [0.0], [0.5], (Fraction(1), SYMBOLS))
    point = Moving({}, [0.25], [0.25], (Fraction(1), SYMBOLS))
    assert Ideal(1, None, 10**15, []).values(half, 0) is None
    assert Ideal(1, None, 10**15, []).values(point, 0) == [Fraction(1, 4)]
    assert Ideal(1, None, 4, []).values(half, 0) == [0, *(Fraction(1, d) for d in (4, 3, 2))]


def grade(model):
    return grade_of(model)[0]
