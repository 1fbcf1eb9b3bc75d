"""What is printed of feed-forward networks (4), as it stands."""

import math
from fractions import Fraction as F
from itertools import product

import pytest

import transformist as tf


def relu(x):
    return x if x > 0 else F(0)


def network(W_1, b_1, W_2, x):
    """Definition 2.5 with b₂ = 0 and one output."""
    sums = [
        sum((w * v for w, v in zip(row, x, strict=True)), F(0)) + b
        for row, b in zip(W_1, b_1, strict=True)
    ]
    return sum((w * relu(h) for w, h in zip(W_2, sums, strict=True)), F(0))


# 4.6


def step(x):
    """Φ."""
    return (1 + math.erf(x / math.sqrt(2))) / 2


def gelu(x):
    return x * step(x)


def gelu_tanh(x):
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_sigmoid(x):
    return x / (1 + math.exp(-1.702 * x))


def quadratic(z):
    """The first two terms of the series of GELU."""
    return z / 2 + z * z / math.sqrt(2 * math.pi)


def printed_product(x, y, activation=gelu):
    return math.sqrt(math.pi / 2) * (activation(x + y) - activation(x) - activation(y))


def test_printed_limit_of_the_step():
    for c in (1, 10, 10**6, 10**300):
        assert step(c * 0.0) == 1 / 2
        assert c * 0.0 * step(c * 0.0) == 0  # harmless
    for x in (1e-3, 1, 50):
        assert step(10**6 * x) == 1 and step(-(10**6) * x) == 0
    ramp = tf.recipe("relu-by-gelu").build()
    assert ramp([0]).tolist() == [0]


GRID = [k / 4 for k in range(-8, 9)]


def test_printed_product_by_two_activations():
    for x, y in product(GRID, GRID):
        assert printed_product(x, y, quadratic) == pytest.approx(x * y, abs=1e-13)
    assert printed_product(1, 1) == pytest.approx(0.34, abs=0.005)
    weights = tf.recipe("multiply-by-gelu").build()
    assert weights.activation == "gelu"


def test_the_printed_remainder_does_not_give_the_printed_bound():
    """Adding |z|³/6 for z = x + y, x and y gives more than r³/4; the error itself is less."""

    def derived(x, y):
        return math.sqrt(math.pi / 2) / 6 * (abs(x + y) ** 3 + abs(x) ** 3 + abs(y) ** 3)

    assert derived(1, 0) == pytest.approx(0.418, abs=5e-4)
    assert derived(0.5, 0.5) == pytest.approx(0.261, abs=5e-4)
    axis = [k / 10 for k in range(-60, 61)]
    for x, y in product(axis, axis):
        assert abs(printed_product(x, y) - x * y) <= 0.0825 * (abs(x) + abs(y)) ** 3 + 1e-12
    error = printed_product(1.02, 1.02) - 1.02**2
    assert abs(error) / 2.04**3 == pytest.approx(0.0824, abs=1e-4)


def test_printed_product_of_numbers_that_are_not_small():
    assert 1 - printed_product(1, 1) == pytest.approx(0.66, abs=0.005)
    assert abs(printed_product(10, 10)) < 0.005
    for size in (1, 10):
        network = tf.recipe("multiply-by-gelu").build(lo=-size, hi=size, tolerance="1/1000")
        for x, y in product(GRID, GRID):
            x, y = x * size / 2, y * size / 2
            assert network([x, y])[0] == pytest.approx(x * y, abs=2e-3)


def test_printed_bound_of_the_product_by_sigmoid():
    for k in range(3, 12):
        x = 2.0**-k
        bound = (2 * x) ** 3 / 4
        for activation in (gelu, gelu_tanh):
            assert abs(printed_product(x, x, activation) - x * x) <= bound
    x = 1 / 1000
    product_of_sigmoid = printed_product(x, x, gelu_sigmoid)
    assert product_of_sigmoid / x**2 == pytest.approx(1.067, abs=5e-4)
    assert abs(product_of_sigmoid - x * x) > 30 * (2 * x) ** 3 / 4


# 4.7

CASES = {
    "greater-than-zero-with": (
        [[1, 0], [1, -1]],
        [1, -1],
        lambda x, e: 0 if x <= 0 else x if x < e else e,
    ),
    "greater-or-equal-zero-with": (
        [[1, 1], [1, 0]],
        [1, -1],
        lambda x, e: 0 if x <= -e else x + e if x < 0 else e,
    ),
    "equal-zero-with": (
        [[1, 1], [1, 0], [1, -1]],
        [1, -2, 1],
        lambda x, e: 0 if abs(x) >= e and (x, e) != (0, 0) else e - abs(x),
    ),
}
"""Eq. 32 to 34: W₁, W₂ (b₁ = 0), and the cases."""


BELOW_ZERO = {
    "greater-than-zero-with": (F(-1, 2), F(-1, 2)),
    "greater-or-equal-zero-with": (F(1, 2), F(-1, 2)),
    "equal-zero-with": (F(1, 2), F(1, 2)),
}
"""For ε = −1 an x, and what the network gives, where the first case says 0."""


@pytest.mark.parametrize("name", CASES)
def test_printed_comparisons_with_a_threshold(name):
    W_1, W_2, cases = CASES[name]
    recipe = tf.recipe(name).build()
    numbers = [F(k, 4) for k in range(-8, 9)]
    for x, epsilon in product(numbers, numbers):
        if epsilon >= 0:
            given = network(W_1, [0] * len(W_1), W_2, (x, epsilon))
            assert given == cases(x, epsilon) == recipe([x, epsilon], "exact").tolist()[0]
    x, wrong = BELOW_ZERO[name]
    assert network(W_1, [0] * len(W_1), W_2, (x, F(-1))) == wrong != cases(x, F(-1)) == 0


# 4.8


def assignments(m, first_is_highest):
    shifts = range(m - 1, -1, -1) if first_is_highest else range(m)
    return [[k >> shift & 1 for shift in shifts] for k in range(2**m)]


def of_table(table, rows, x):
    """Eq. 35, row k for the k-th assignment."""
    W_1 = [[2 * bit - 1 for bit in row] for row in rows]
    return network(W_1, [1 - sum(row) for row in rows], table, x)


@pytest.mark.parametrize("widths", [(2,), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_printed_order_of_bits(widths):
    for m in widths:
        printed = [[-1] * m, [-1] * (m - 1) + [1]]
        highest, lowest = (assignments(m, order) for order in (True, False))
        assert [[2 * bit - 1 for bit in row] for row in highest[:2]] == printed
        assert [[2 * bit - 1 for bit in row] for row in lowest[:2]] != printed
        differ = 0
        for table in product((0, 1), repeat=2**m):
            recipe = tf.recipe("boolean").build(table="".join(map(str, table)))
            for k, x in enumerate(highest):
                assert of_table(table, highest, x) == table[k]
                assert recipe(x, "exact").tolist() == [table[k]]
                differ += of_table(table, lowest, x) != table[k]
        assert differ > 0


# 4.9


def printed_conditional(p, x, y):
    return network([[1, 1, 0], [-1, 0, 1]], [-1, 0], [1, 1], (p, x, y))


def test_printed_range_of_the_conditional():
    assert printed_conditional(1, 2, 3) == 4
    assert printed_conditional(1, F(-1, 2), 0) == 0
    unit = [F(k, 4) for k in range(5)]
    for p, x, y in product((0, 1), unit, unit):
        assert printed_conditional(p, x, y) == (x if p else y)
    for lo, hi in ((0, 1), (-2, 3), (F(1, 3), F(5, 2))):
        chosen = tf.recipe("conditional").build(lo=lo, hi=hi)
        between = [lo + (hi - lo) * share for share in unit]
        M = hi - lo
        for p, x, y in product((0, 1), between, between):
            corrected = network([[M, 1, 0], [-M, 0, 1]], [-M - lo, -lo], [1, 1], (p, x, y)) + lo
            assert corrected == chosen([p, x, y], "exact").tolist()[0] == (x if p else y)
