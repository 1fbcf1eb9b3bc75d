"""Exact arithmetic against arrays of `Fraction`, across the border of 64-bit integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformist.arithmetic import EXACT
from transformist.arithmetic.exact import Rationals
from transformist.arithmetic.given import is_float64
from transformist.errors import InvalidValue, NotFinite, NotRepresentable, ShapeMismatch

numerators = st.one_of(
    st.integers(-9, 9), st.integers(-(2**62), 2**62), st.integers(-(2**90), 2**90)
)
values = st.builds(Fraction, numerators, st.one_of(st.integers(1, 9), st.integers(1, 2**70)))
matrices = st.lists(st.lists(values, min_size=3, max_size=3), min_size=3, max_size=3)


def plain(array):
    return array.tolist()


@given(x=matrices, y=matrices)
def test_operations_equal_those_of_fractions(x, y):
    a, b = EXACT.array(x), EXACT.array(y)
    each = [(i, j) for i in range(3) for j in range(3)]
    assert plain(EXACT.add(a, b)) == [[x[i][j] + y[i][j] for j in range(3)] for i in range(3)]
    assert plain(EXACT.subtract(a, b)) == [[x[i][j] - y[i][j] for j in range(3)] for i in range(3)]
    assert plain(EXACT.multiply(a, b)) == [[x[i][j] * y[i][j] for j in range(3)] for i in range(3)]
    assert plain(EXACT.matmul(a, b)) == [
        [sum(x[i][k] * y[k][j] for k in range(3)) for j in range(3)] for i in range(3)
    ]
    assert plain(EXACT.matmul(a, EXACT.array(y[0]))) == [
        sum(x[i][k] * y[0][k] for k in range(3)) for i in range(3)
    ]
    assert plain(EXACT.matmul(EXACT.array(x[0]), b)) == [
        sum(x[0][k] * y[k][j] for k in range(3)) for j in range(3)
    ]
    assert plain(EXACT.matmul(EXACT.array(x[0]), EXACT.array(y[0]))) == sum(
        x[0][k] * y[0][k] for k in range(3)
    )
    assert plain(EXACT.scores(a, b)) == [
        [sum(x[i][k] * y[j][k] for k in range(3)) for j in range(3)] for i in range(3)
    ]
    assert plain(EXACT.affine(a, b, EXACT.array(x[0]))) == [
        [sum(x[i][k] * y[j][k] for k in range(3)) + x[0][j] for j in range(3)] for i in range(3)
    ]
    assert plain(EXACT.affine(EXACT.array(x[1]), b)) == [
        sum(x[1][k] * y[j][k] for k in range(3)) for j in range(3)
    ]
    assert plain(EXACT.sum(a)) == [[sum(row)] for row in x]
    assert plain(EXACT.relu(a)) == [[max(value, Fraction(0)) for value in row] for row in x]
    assert plain(EXACT.concatenate([a, b], axis=-2)) == x + y
    positive = EXACT.positive(a)
    assert all(positive[i, j] == (x[i][j] > 0) for i, j in each)
    mask = np.array([[i <= j for j in range(3)] for i in range(3)])
    maximal = EXACT.maximal(a, mask)
    assert all(maximal[i, j] == (i <= j and x[i][j] == max(x[i][i:])) for i, j in each)
    assert plain(EXACT.maximum(a, mask)) == [[max(x[i][i:])] for i in range(3)]
    assert plain(EXACT.keep(a, mask)) == [
        [x[i][j] if i <= j else Fraction(0) for j in range(3)] for i in range(3)
    ]
    if all(value for row in y for value in row):
        assert plain(EXACT.divide(a, b)) == [
            [x[i][j] / y[i][j] for j in range(3)] for i in range(3)
        ]


def test_a_row_without_admissible_entries_has_maximum_zero():
    assert plain(EXACT.maximum(EXACT.array([[5, 7]]), np.array([[False, False]]))) == [[0]]


@pytest.mark.parametrize("large", [10**400, Fraction(1, 10**400)], ids=["large", "small"])
def test_nothing_times_numbers_beyond_float64_is_nothing(large):
    nothing, beyond = EXACT.array([[0, 0]]), EXACT.array([[large], [1]])
    assert plain(EXACT.matmul(nothing, beyond)) == [[0]]


def test_products_stay_exact_beyond_64_bits():
    x = EXACT.array([[3**50, -(3**50)]])
    assert plain(EXACT.matmul(x, EXACT.array([[3**50], [1]]))) == [[3**100 - 3**50]]
    edge = 2**62 - 1  # the largest numerator kept in 64 bits
    assert plain(EXACT.sum(EXACT.array([[edge] * 5]))) == [[5 * edge]]
    assert plain(EXACT.add(EXACT.array([edge]), EXACT.array([edge]))) == [2 * edge]
    assert plain(EXACT.subtract(EXACT.array([-edge]), EXACT.array([edge]))) == [-2 * edge]
    assert plain(EXACT.matmul(EXACT.array([[2**31] * 3]), EXACT.array([[2**31]] * 3))) == [
        [3 * 2**62]
    ]
    lone = EXACT.matmul(EXACT.array([2**63]), EXACT.array([1]))
    assert plain(lone) == 2**63 and lone.numerators.dtype == object  # not 64 bits without a sign
    tiny = EXACT.array([Fraction(1, 7**40)])
    assert plain(EXACT.subtract(EXACT.add(tiny, tiny), tiny)) == [Fraction(1, 7**40)]
    zeros = EXACT.array([Fraction(1, 7**40), 0])[1:]
    assert plain(EXACT.add(zeros, EXACT.array([2]))) == [2]


@given(st.lists(values.map(abs), min_size=1, max_size=4))
def test_roots_of_squares_are_exact(roots):
    assert plain(EXACT.sqrt(EXACT.array([root**2 for root in roots]))) == roots


def test_what_is_not_rational_is_refused():
    with pytest.raises(NotRepresentable, match="√2"):
        EXACT.sqrt(EXACT.array([4, 2]))
    assert plain(EXACT.exp(EXACT.array([0, 0]))) == [1, 1]
    with pytest.raises(NotRepresentable, match="hard weighting"):
        EXACT.exp(EXACT.array([0, Fraction(1, 2)]))
    for function in (EXACT.tanh, EXACT.normal_cdf):
        with pytest.raises(NotRepresentable, match="an activation other than ReLU"):
            function(EXACT.array([0]))


def test_a_list_of_mixed_kinds_is_taken_exactly():
    assert plain(EXACT.array([0.5, 2**53 + 1])) == [Fraction(1, 2), 2**53 + 1]
    tenth = Fraction(3602879701896397, 2**55)
    assert plain(EXACT.array(["1/3", 0.1])) == [Fraction(1, 3), tenth]
    assert plain(EXACT.array([np.float32(0.5), np.int64(3), np.True_])) == [Fraction(1, 2), 3, 1]


def test_floats_are_taken_as_the_numbers_they_are():
    assert plain(EXACT.array([0.1])) == [Fraction(3602879701896397, 2**55)]
    assert plain(EXACT.array(["1/3", "0.1"])) == [Fraction(1, 3), Fraction(1, 10)]


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ([math.nan], NotFinite),
        ([math.inf], NotFinite),
        (["nan"], NotFinite),
        ([[1], [1, 2]], ShapeMismatch),
        (["x"], InvalidValue),
        ([None], InvalidValue),
        ([1j], InvalidValue),
        (["1/0"], InvalidValue),
    ],
)
def test_what_is_no_number_is_refused(values, refusal):
    with pytest.raises(refusal):
        EXACT.array(values)


def test_a_lone_number_stays_an_array_whatever_its_size():
    """Such as the ε of a norm, beside numerators beyond 64 bits."""
    third, large = EXACT.array(Fraction(1, 3)), EXACT.array([[Fraction(1, 2**70)]])
    assert EXACT.add(large, third).tolist() == [[Fraction(1, 3) + Fraction(1, 2**70)]]


def test_a_lone_number_is_divided():
    half, third = EXACT.array(Fraction(1, 2)), EXACT.array(Fraction(1, 3))
    assert EXACT.divide(half, third).tolist() == Fraction(3, 2)
    assert EXACT.divide(half, EXACT.array(-(2**70))).tolist() == Fraction(-1, 2**71)


@pytest.mark.parametrize(
    "denominator", [1, 2, 3, 2**53, 2**999, 2**1001, 2**1074, 2**1100, 3 * 2**60]
)
def test_weights_are_the_numbers_themselves(denominator):
    """Either way to them, by a quotient of arrays and one by one, gives what the rationals are."""
    edges = [0, 1, -3, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**61 + 1, 2**62 + 1, 2**70]
    for size in range(1, len(edges) + 1):
        exact = [Fraction(each, denominator) for each in edges[:size]]
        weights = Rationals.of(exact).weights()
        assert [Fraction(each) for each in weights.tolist()] == exact
        assert (weights.dtype == np.float64) == all(map(is_float64, exact))
        assert list(map(is_float64, exact)) == [is_held(each) for each in exact]


def is_held(exact):
    """True if float64 holds a number, as `Fraction` converts it."""
    return Fraction(float(exact)) == exact


def test_whole_floats_are_taken_as_they_are():
    for floats in (
        [2.0**53, -3.0, -0.0],
        [2.0**62, 1.0],
        [2.0**63, 1.0],
        [1e300, -1.0],
        [0.5, 4.0],
    ):
        assert Rationals.of(floats).fractions().tolist() == list(map(Fraction, floats))
