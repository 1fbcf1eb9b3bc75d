"""Every operation of every format rounds the exact result once, to nearest, ties to even."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformist.arithmetic import (
    BFLOAT16,
    FLOAT8_E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    number_system,
)
from transformist.errors import NotFinite, UnknownName

FORMATS = {
    "float64": (FLOAT64, 53, -1074, 1023),
    "float32": (FLOAT32, 24, -149, 127),
    "float16": (FLOAT16, 11, -24, 15),
    "bfloat16": (BFLOAT16, 8, -133, 127),
    "float8_e5m2": (FLOAT8_E5M2, 3, -16, 15),
}
formats = pytest.mark.parametrize("name", FORMATS)


def nearest(value: Fraction, precision: int, least: int, most: int) -> Fraction | float:
    """The definition: the multiple of the unit in the last place that is nearest, even on a tie."""
    if value == 0:
        return Fraction(0)
    exponent = math.floor(math.log2(abs(value))) if abs(value) > Fraction(1, 2**1000) else -1000
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    while Fraction(2) ** exponent > abs(value):
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    rounded = round(value / unit) * unit  # Fraction rounds half to even
    return math.copysign(math.inf, value) if abs(rounded) >= Fraction(2) ** (most + 1) else rounded


def stored(system, value):
    return system.numbers(system.array([value]))[0]


rationals = st.builds(
    lambda numerator, denominator, shift: Fraction(numerator, denominator) * Fraction(2) ** shift,
    st.integers(-(2**70), 2**70),
    st.integers(1, 2**40),
    st.integers(-90, -20),
)


@formats
@given(value=rationals)
def test_a_rational_is_rounded_once(name, value):
    system, precision, least, most = FORMATS[name]
    expected = nearest(value, precision, least, most)
    if isinstance(expected, float):
        with pytest.raises(NotFinite):
            system.array([value])
    else:
        assert Fraction(stored(system, value)) == expected


@formats
@given(value=st.floats(-60000, 60000, allow_nan=False))
def test_a_float64_is_rounded_once(name, value):
    system, precision, least, most = FORMATS[name]
    assert Fraction(stored(system, value)) == nearest(Fraction(value), precision, least, most)


def test_float64_reaches_bfloat16_in_one_rounding():
    # by way of float32 this would become 1: 1 + 2⁻⁸ is a tie that 2⁻⁴⁰ decides
    assert stored(BFLOAT16, 1 + 2**-8 + 2**-40) == 1 + 2**-7
    assert stored(BFLOAT16, Fraction(1) + Fraction(1, 2**8) + Fraction(1, 2**90)) == 1 + 2**-7
    assert stored(FLOAT32, Fraction(1) + Fraction(1, 2**24) + Fraction(1, 2**90)) == 1 + 2**-23
    assert stored(FLOAT16, 1 + 2**-11 + 2**-40) == 1 + 2**-10


OPERATIONS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
}
numbers = st.floats(-200, 200, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-3)


@formats
@pytest.mark.parametrize("operation", OPERATIONS)
@given(x=numbers, y=numbers.filter(bool))
def test_elementary_operations_are_correctly_rounded(name, operation, x, y):
    system, precision, least, most = FORMATS[name]
    a, b = system.array([x]), system.array([y])
    got = system.numbers(getattr(system, operation)(a, b))[0]
    exact = OPERATIONS[operation](Fraction(system.numbers(a)[0]), Fraction(system.numbers(b)[0]))
    assert got == nearest(exact, precision, least, most)  # ±inf where it overflows


@formats
def test_transcendental_functions_are_within_a_unit_roundoff(name):
    system = FORMATS[name][0]
    u = float(system.unit_roundoff)
    x = system.array(np.linspace(-8, 8, 257))
    for function, reference in (
        (system.exp, math.exp),
        (system.tanh, math.tanh),
        (system.normal_cdf, lambda t: math.erfc(-t / math.sqrt(2)) / 2),
    ):
        expected = np.array([reference(value) for value in system.numbers(x)])
        error = np.abs(system.numbers(function(x)) - expected)
        limit = (2 * u if name == "float64" else u * (1 + 1e-6)) * np.abs(expected)
        assert (error <= limit + system.smallest).all()
    squares = system.array(np.arange(200))
    roots = system.numbers(system.sqrt(squares))
    for square, root in zip(system.numbers(squares), roots, strict=True):
        assert abs(root - math.sqrt(square)) <= u * math.sqrt(square) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2"])
def test_dot_products_accumulate_in_float32_and_round_once(name):
    system, precision, least, most = FORMATS[name]
    x = np.array([[2.0**precision, 1, 1, 1]])
    got = system.numbers(system.matmul(system.array(x), system.array(np.ones((4, 1)))))
    assert got[0, 0] == nearest(Fraction(2**precision + 3), precision, least, most)
    total = system.numbers(system.sum(system.array(x)))
    assert total[0, 0] == got[0, 0]


def test_sums_run_from_left_to_right():
    big, one = 2.0**24, 1.0
    row = FLOAT32.array([[big, one, one, -big]])
    column = FLOAT32.array(np.ones((4, 1)))
    assert FLOAT32.matmul(row, column)[0, 0] == 0  # each 1 is lost against 2²⁴
    assert FLOAT32.sum(row)[0, 0] == 0
    assert FLOAT32.affine(row, FLOAT32.array([[1, 1, 1, 1]]))[0, 0] == 0
    turned = FLOAT32.array([[one, one, big, -big]])
    assert FLOAT32.sum(turned)[0, 0] == 2
    many = np.full((1, 1000), 0.1)
    expected = np.float32(0)
    for value in many[0].astype(np.float32):
        expected = np.float32(expected + value)
    assert FLOAT32.sum(FLOAT32.array(many))[0, 0] == expected


def test_overflow_gives_infinity_without_a_warning_and_a_lost_score_is_refused():
    top = FLOAT16.array([60000.0])
    assert FLOAT16.numbers(FLOAT16.add(top, top))[0] == math.inf
    wide = FLOAT16.array([[60000.0, 60000.0]])
    with pytest.raises(NotFinite, match="score"):
        FLOAT16.scores(wide, wide)


def test_numbers_too_large_for_the_format_are_refused():
    with pytest.raises(NotFinite, match="65504"):
        FLOAT16.array([70000])
    with pytest.raises(NotFinite):
        FLOAT32.array([Fraction(10) ** 400])


def test_an_unknown_arithmetic_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean float32"):
        number_system("flot32")
