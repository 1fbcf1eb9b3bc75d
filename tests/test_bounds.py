"""Derived constants: each is the extreme of its kind, and each bound covers what it bounds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transformist as tf
from transformist.arithmetic import SYSTEMS, Floating
from transformist.bounds import (
    GELU_BEND,
    GELU_PRODUCT,
    gelu_product_scale,
    power_of_two_at_most,
    relu_by_gelu_scale,
    rounding_error,
    step_zone,
)
from transformist.errors import InvalidValue
from transformist.model import FeedForward, FeedForwardStack, LayerNorm, Sublayer

positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)


@given(positive)
def test_the_power_of_two_is_the_largest(x):
    power = power_of_two_at_most(x)
    assert power <= x < 2 * power
    assert math.log2(power) == int(math.log2(power))


def test_there_is_no_power_of_two_below_zero():
    with pytest.raises(InvalidValue):
        power_of_two_at_most(Fraction(0))


@given(st.integers(1, 10**6))
def test_the_step_zone_lies_below_every_mean(n):
    assert step_zone(n) <= Fraction(1, n + 1) < 2 * step_zone(n)


GELUS = {
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu-tanh": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


@pytest.mark.parametrize("form", GELUS)
def test_the_constants_of_gelu_are_reached_and_not_exceeded(form):
    gelu = GELUS[form]
    grid = [s * 10 ** (k / 40) for k in range(-40, 60) for s in (1, -1)]
    bend = max(abs(gelu(x) - max(x, 0)) for x in np.linspace(-3, 3, 20001))
    assert 0.999 * float(GELU_BEND) < bend <= float(GELU_BEND)
    constant = float(GELU_PRODUCT[form])
    largest = 0.0
    for x in grid:
        for y in grid:
            product = math.sqrt(math.pi / 2) * (gelu(x + y) - gelu(x) - gelu(y))
            ratio = abs(product - x * y) / (abs(x) + abs(y)) ** 4
            assert ratio <= constant * (1 + 1e-6), (x, y)
            largest = max(largest, ratio)
    assert largest > 0.99 * constant


def test_the_bound_on_the_curvature_of_the_tanh_form():
    """D(z) = 1 − √(π/2) GELU″(z) lies in [0, 1.00496 z²], from which the constant follows."""
    c, k = math.sqrt(2 / math.pi), 0.044715
    for z in np.concatenate([np.linspace(1e-3, 1, 4000), np.linspace(1, 12, 4000)]):
        t = math.tanh(c * (z + k * z**3))
        slope, bend = c * (1 + 3 * k * z**2), c * 6 * k * z
        second = (1 - t * t) * slope + z / 2 * ((1 - t * t) * bend - 2 * t * (1 - t * t) * slope**2)
        deviation = 1 - math.sqrt(math.pi / 2) * second
        assert -1e-12 <= deviation <= 1.00496 * z**2 + 1e-12
    assert float(GELU_PRODUCT["gelu-tanh"]) >= 1.00496 * 7 / 96


@given(tolerance=positive, radius=st.fractions(Fraction(1, 100), 100))
def test_scales_are_the_extreme_ones_within_the_tolerance(tolerance, radius):
    for form, constant in GELU_PRODUCT.items():
        s = gelu_product_scale(tolerance, radius, form)
        assert constant * s**2 * radius**4 <= tolerance < constant * (2 * s) ** 2 * radius**4
    c = relu_by_gelu_scale(tolerance)
    assert GELU_BEND / c <= tolerance < GELU_BEND / (c / 2)


def drawn_network(seed, activation="relu"):
    rng = np.random.default_rng(seed)
    shapes = ((5, 3), (5,), (2, 5), (2,))
    W_1, b_1, W_2, b_2 = (rng.normal(size=shape) for shape in shapes)
    return FeedForward(W_1=W_1, b_1=b_1, W_2=W_2, b_2=b_2, activation=activation)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu-tanh"])
def test_rounding_errors_stay_within_the_bound_and_come_near_it(name, activation):
    system = SYSTEMS[name]
    assert isinstance(system, Floating)
    nearest = 0.0
    for seed in range(40):
        network = drawn_network(seed, activation)
        x = system.array(np.random.default_rng(seed).normal(size=(50, 3)))
        got = system.numbers(network(x, system))
        error = np.abs(got - network(system.numbers(x)))  # float64 stands for the real value
        bound = rounding_error(network, system.numbers(x), system)
        assert (error <= bound).all()
        nearest = max(nearest, float((error / bound).max()))
    assert nearest > 0.05


def test_rounding_errors_of_stacks_and_sublayers():
    square = FeedForward(W_1=np.eye(3) * 0.3, W_2=np.ones((3, 3)) * 0.7)
    x = np.array([[1.0, 2.0, 3.0]])
    system = SYSTEMS["float16"]
    for network in (FeedForwardStack((square, square)), Sublayer(square)):
        got = system.numbers(network(system.array(x), system))
        bound = rounding_error(network, x, system)
        assert (np.abs(got - network(x)) <= bound).all() and (bound < 0.1).all()
    assert not rounding_error(square, x, SYSTEMS["exact"]).any()
    with pytest.raises(InvalidValue, match="without a norm"):
        rounding_error(Sublayer(square, post_norm=LayerNorm(gain=[1, 1, 1])), x, system)


def test_each_rounding_is_counted():
    """One product, one bias, one residual sum: each rounds, and the bound has room for each."""
    rng = np.random.default_rng(3)
    for name in ("float32", "float16"):
        system = SYSTEMS[name]
        u = float(system.unit_roundoff)
        for _ in range(300):
            w, b, x = system.numbers(system.array(rng.uniform(1, 2, 3)))
            one = FeedForward(W_1=[[w]], b_1=[b], W_2=[[1]])
            exact = Fraction(w) * Fraction(x) + Fraction(b)
            got = system.numbers(one(system.array([[x]]), system))[0, 0]
            error = abs(Fraction(got) - exact)
            assert error <= rounding_error(one, [[x]], system)[0, 0] <= 8 * u * float(exact)
            added = Sublayer(FeedForward(W_1=[[0]], W_2=[[1]], b_2=[w * 2.0**-9]))
            off = abs(Fraction(system.numbers(added(system.array([[x]]), system))[0, 0]))
            off = abs(off - Fraction(x) - Fraction(w) / 512)
            assert off <= rounding_error(added, [[x]], system)[0, 0]
            assert rounding_error(added, [[x]], system)[0, 0] >= u * x


def test_where_a_partial_sum_may_overflow_the_bound_is_infinite():
    """1/ε · (h₁ − 2 h₂ + h₃) is 0 − but inf − inf on the way in float32."""
    network = tf.recipe("equal-zero").build(epsilon=Fraction(1, 2**126))
    for name in ("float32", "bfloat16"):
        system = SYSTEMS[name]
        assert np.isnan(system.numbers(network(system.array([[8.0]]), system))).all()
        assert np.isinf(rounding_error(network, [[8.0]], system)).all()


def test_where_a_result_may_overflow_the_bound_is_infinite():
    network = FeedForward(W_1=[[1000], [1]], W_2=[[1, 0], [0, 1]])
    bound = rounding_error(network, [[100.0], [1.0]], SYSTEMS["float16"])
    assert np.isinf(bound[0]).all() and np.isfinite(bound[1]).all()
