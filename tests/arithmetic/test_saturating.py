"""Fixed point with a largest number, against its definition in rationals; clamped float formats."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transformist as tf
from transformist.arithmetic import (
    FLOAT16,
    SATURATING,
    Clamped,
    Interval,
    Saturating,
    number_system,
)
from transformist.bounds import count_length, rounding_error, sum_error
from transformist.errors import InvalidValue, NotFinite, UnknownName

SMALL = [Saturating(1, 1), Saturating(4, "1/4"), Saturating(8, "1/2")]
FINE = pytest.param(Saturating(8, "1/8"), marks=pytest.mark.slow)
FORMATS = [*SMALL, Saturating(8, "1/8"), Saturating(16, 1), SATURATING, Saturating(1024, "1/1024")]


def every(a: Saturating) -> list[F]:
    steps = int(a.largest / a.resolution)
    return [k * a.resolution for k in range(-steps, steps + 1)]


def stored(x: F, a: Saturating) -> F:
    """x to the nearest multiple of r, the even one of two, then into [−B, B]."""
    steps = x / a.resolution
    low = steps.numerator // steps.denominator
    up = steps - low > F(1, 2) or (steps - low == F(1, 2) and low % 2 == 1)
    return max(-a.largest, min(a.largest, (low + up) * a.resolution))


def values(x) -> list[F]:
    return [F(v) for v in np.asarray(x, dtype=float).ravel().tolist()]


@pytest.mark.parametrize("a", [*SMALL, FINE], ids=lambda a: a.name)
def test_every_sum_difference_product_and_quotient(a):
    x, y = zip(*itertools.product(every(a), repeat=2), strict=True)
    left, right = a.array(list(x)), a.array(list(y))
    pairs = list(zip(x, y, strict=True))
    assert values(a.add(left, right)) == [stored(p + q, a) for p, q in pairs]
    assert values(a.subtract(left, right)) == [stored(p - q, a) for p, q in pairs]
    assert values(a.multiply(left, right)) == [stored(p * q, a) for p, q in pairs]
    divisible = [(p, q) for p, q in pairs if q]
    p, q = zip(*divisible, strict=True)
    quotients = a.divide(a.array(list(p)), a.array(list(q)))
    assert values(quotients) == [stored(m / n, a) for m, n in divisible]


WIDE = Saturating(1024, "1/1024")


@settings(max_examples=300, deadline=None)
@given(st.integers(-(2**20), 2**20), st.integers(-(2**20), 2**20))
def test_operations_of_the_widest_format_round_once(j, k):
    x, y = j * WIDE.resolution, k * WIDE.resolution
    left, right = WIDE.array([x]), WIDE.array([y])
    assert values(WIDE.multiply(left, right)) == [stored(x * y, WIDE)]
    if k:
        assert values(WIDE.divide(left, right)) == [stored(x / y, WIDE)]
    root = values(WIDE.sqrt(WIDE.array([abs(x)])))[0]
    half = WIDE.resolution / 2
    assert max(root - half, 0) ** 2 <= abs(x) <= (root + half) ** 2


@settings(max_examples=200, deadline=None)
@given(st.fractions(-1024, 1024))
def test_numbers_are_rounded_once(x):
    assert values(WIDE.array([x])) == [stored(x, WIDE)]


def test_a_rational_next_to_the_middle_is_not_rounded_twice():
    a = Saturating(8, 1)
    near = F(1, 2) + F(1, 2**80)
    assert values(a.array([near, F(1, 2), F(3, 2), -near])) == [1, 0, 2, -1]


@pytest.mark.parametrize("a", FORMATS, ids=lambda a: a.name)
def test_the_laws_that_recipes_stand_on(a):
    B = a.largest
    numbers = a.array(every(a) if B <= 16 else [0, 1, -1, B, -B, a.resolution, 1 - B])
    largest = a.array([B])
    up = a.add(a.add(numbers, largest), largest)
    assert set(values(up)) == {B}
    assert set(values(a.subtract(up, largest))) == {0}
    positive = numbers[np.asarray(a.positive(numbers))]
    assert set(values(a.multiply(a.multiply(positive, largest), largest))) == {B}
    assert values(a.multiply(a.array([0]), largest)) == [0]
    assert values(a.exp(a.array([-B]))) == [0]
    assert values(a.exp(largest)) == [stored(_exp(B), a)]
    assert values(a.divide(a.array([1]), largest)) == [stored(1 / B, a)]


def _exp(x: F) -> F:
    with localcontext() as context:
        context.prec = 700
        return F((Decimal(x.numerator) / Decimal(x.denominator)).exp())


@pytest.mark.parametrize("a", [*SMALL[1:], FINE], ids=lambda a: a.name)
def test_every_exponential_is_rounded_once(a):
    assert values(a.exp(a.array(every(a)))) == [stored(_exp(x), a) for x in every(a)]


def test_a_sum_is_clamped_at_every_step_from_left_to_right():
    a = Saturating(8, 1)
    assert values(a.sum(a.array([8, 8, -8]))) == [0]
    assert values(a.sum(a.array([8, -8, 8]))) == [8]
    row, one = a.array([[8, 8, -8]]), a.array([[1], [1], [1]])
    assert values(a.matmul(row, one)) == [0]
    assert values(a.affine(row, a.array([[1, 1, 1]]), a.array([-1]))) == [-1]
    assert values(a.affine(row, a.array([[1, -1, -1]]))) == [8]


def test_a_product_within_a_dot_product_is_rounded():
    a = Saturating(4, "1/4")
    assert values(a.affine(a.array([["1/4", "1/4"]]), a.array([["1/2", "1/2"]]))) == [0]
    assert values(a.affine(a.array([["1/4", "1/4"]]), a.array([["3/4", "3/4"]]))) == [F(1, 2)]


def test_a_score_is_rounded_once_after_the_root():
    a = Saturating(16, "1/16")
    q, k = a.array([[3, 0]]), a.array([[2, 0], [16, 0]])
    assert values(a.scores(q, k)) == [stored(F(6 / math.sqrt(2)), a), stored(F(16 / 2**0.5), a)]


def test_softmax_of_a_gap_of_b_selects():
    head = tf.Attention(W_Q=[[16]], W_K=[[1]], W_V=[[3]], mask="none")
    assert head([[1], [0], [0]], "saturating").tolist() == [[3], [F(15, 16)], [F(15, 16)]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 1), "must be a power of two; received 3"),
        ((0, 1), "must be a power of two; received 0"),
        (("inf", 1), "must be a power of two; received inf"),
        ((8, "1/16"), r"1/B ≤ r ≤ 1 ≤ B.*received B = 8, r = 1/16"),
        ((8, 2), "received B = 8, r = 2"),
        ((2**11, F(1, 2**11)), "2\\^20"),
    ],
)
def test_a_format_that_is_none_is_refused(arguments, message):
    with pytest.raises(InvalidValue, match=message):
        Saturating(*arguments)


def test_what_is_beyond_the_largest_number_is_refused():
    for value in (17, F(33, 2), -1e300):
        with pytest.raises(NotFinite, match="at most 16 in magnitude in saturating:16:1/16"):
            SATURATING.array([value])


def test_finite_arithmetics_are_asked_for_by_name():
    assert number_system("saturating") is SATURATING
    assert number_system("saturating:8:1/2") == Saturating(8, F(1, 2))
    assert number_system("float16:16").name == "float16:16"
    assert number_system("interval:512") == Interval(512)
    with pytest.raises(InvalidValue, match="received bits = 'x'"):
        number_system("interval:x")
    for name in ("saturating:8", "saturating:8:1:1", "exact:3", "float9:3", "float16:16:1"):
        with pytest.raises(UnknownName, match="no arithmetic has this name"):
            number_system(name)
    for name in ("float16:2049", "float16:0", "float16:-4", "float16:x", "float16:1e9"):
        with pytest.raises(InvalidValue, match="must be a positive number of the format"):
            number_system(name)


def test_bounds_do_not_speak_of_it():
    network = tf.FeedForward(W_1=[[1]], W_2=[[1]])
    for bound in (
        lambda: rounding_error(network, [[1]], "saturating"),
        lambda: sum_error([1, 2], "saturating"),
        lambda: count_length("saturating"),
    ):
        with pytest.raises(InvalidValue, match="the real numbers.*received saturating:16:1/16"):
            bound()


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "float8_e5m2"])
def test_a_clamped_format_is_the_format_up_to_its_bound(name):
    wide, clamped = number_system(name), number_system(f"{name}:8")
    numbers = clamped.drawn(300, "0")
    assert np.abs(numbers).max() <= 8
    x, y = clamped.array(numbers[:100]), clamped.array(numbers[100:200])
    for operation in ("add", "subtract", "multiply"):
        free = wide.numbers(getattr(wide, operation)(x, y))
        bound = clamped.numbers(getattr(clamped, operation)(x, y))
        assert bound.tolist() == np.clip(free, -8, 8).tolist()
        assert (np.abs(free) > 8).any()
    with pytest.raises(NotFinite, match=f"finite in {name}:8, whose largest is 8"):
        clamped.array([11])


@pytest.mark.parametrize("name", ["float64:8", "float32:8", "float16:8", "saturating:8:1"])
def test_numbers_beyond_the_largest_are_refused_of_every_kind(name):
    a = number_system(name)
    wide = np.array([1.0, 9.0], getattr(a, "dtype", np.float64))
    for values in (wide, [1, 9], np.array([9]), 9, F(28, 3)):
        with pytest.raises(NotFinite, match="largest is 8|at most 8"):
            a.array(values)
    with pytest.raises(tf.TransformistError, match="NotFinite|finite|at most 8"):
        a.array(wide * np.inf)
    model = tf.recipe("zero-at-flag").build(largest=16)
    with pytest.raises(NotFinite, match="every weight"):
        model([[1, 2, 1]], a)


@pytest.mark.parametrize("value", ["1/3", F(1, 3), 0.3, 1, True])
def test_a_single_number_is_an_array_of_no_axes(value):
    assert SATURATING.array(value).shape == ()
    assert SATURATING.array("1/3") == F(5, 16)


def test_a_norm_with_a_small_epsilon_is_evaluated():
    norm = tf.LayerNorm(gain=[1, 1], epsilon="1/100000")
    assert norm([1, -1], "saturating").tolist() == [1, -1]


def test_a_clamped_format_has_no_infinity():
    half = Clamped.at(16, FLOAT16)
    assert half.saturates
    with pytest.raises(tf.TransformistError, match="has no infinity"):
        _ = half.infinity
    assert half.numbers(half.exp(half.array([16]))).tolist() == [16]
