"""Position encodings: shapes, exactness, one rounding, and what they refuse."""

import decimal
import itertools
from fractions import Fraction

import numpy as np
import pytest

from transformist.arithmetic import SYSTEMS, Interval, number_system
from transformist.errors import (
    InputTooLong,
    InvalidValue,
    NotFinite,
    ShapeMismatch,
    UnknownName,
)
from transformist.model import PositionFunctions, PositionTable, Sinusoids
from transformist.position_features import POSITIONS

FUNCTIONS = {
    "1": lambda i, n: Fraction(1),
    "i": lambda i, n: Fraction(i),
    "i^2": lambda i, n: Fraction(i * i),
    "i^3": lambda i, n: Fraction(i * i * i),
    "1/i": lambda i, n: Fraction(1, i),
    "-1/i": lambda i, n: Fraction(-1, i),
    "i/n": lambda i, n: Fraction(i, n),
    "-i/n": lambda i, n: Fraction(-i, n),
    "(-1)^i": lambda i, n: Fraction(-1 if i % 2 else 1),
}
TABLE = [[1, "1/3"], [2, "-1/7"], [3, 0]]


def test_functions_are_exact_in_their_order():
    names = tuple(FUNCTIONS)
    encoding = PositionFunctions(names)
    assert encoding.width == 9 and encoding.max_length is None and encoding.nonzero == 0
    for n in (1, 2, 7):
        expected = [[FUNCTIONS[name](i, n) for name in names] for i in range(1, n + 1)]
        assert encoding(n, "exact").tolist() == expected
    assert PositionFunctions(("i", "1"))(2).tolist() == [[1, 1], [2, 1]]


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_each_number_is_rounded_once(name):
    system = SYSTEMS[name]
    n, u = 21, system.unit_roundoff
    got = system.numbers(PositionFunctions(tuple(FUNCTIONS))(n, name)).tolist()
    for i, row in enumerate(got, start=1):
        for value, function in zip(row, FUNCTIONS.values(), strict=True):
            exact = function(i, n)
            assert abs(Fraction(value) - exact) <= u * abs(exact)
            # the format has no number nearer: one unit further is no closer
            assert system.numbers(system.array([exact]))[0] == value


def test_a_table_gives_its_first_rows():
    encoding = PositionTable(vectors=TABLE)
    assert (encoding.width, encoding.max_length, encoding.nonzero) == (2, 3, 5)
    rows = [[1, Fraction(1, 3)], [2, Fraction(-1, 7)], [3, 0]]
    for n in (1, 2, 3):
        assert encoding(n, "exact").tolist() == rows[:n]
        for name in ("float64", "bfloat16"):
            system = SYSTEMS[name]
            assert encoding(n, name).shape == (n, 2)
            assert (encoding(n, name) == system.array(rows[:n])).all()


def test_n_may_be_of_numpy():
    assert PositionFunctions(("i",))(np.int64(2)).tolist() == [[1], [2]]


@pytest.mark.parametrize("n", [0, -1, True, False, 1.0, 2.5, "2", None])
@pytest.mark.parametrize(
    "encoding", [PositionFunctions(("i/n",)), PositionTable(vectors=TABLE)], ids=["of n", "table"]
)
def test_lengths_that_are_none_are_refused(encoding, n):
    with pytest.raises(InvalidValue, match="whole number of at least 1"):
        encoding(n)


def test_lengths_beyond_the_table_are_refused():
    with pytest.raises(InputTooLong, match="N = 3"):
        PositionTable(vectors=TABLE)(4)


def test_what_is_no_encoding_is_refused():
    with pytest.raises(UnknownName, match="did you mean i/n"):
        PositionFunctions(("i", "i/m"))
    with pytest.raises(ShapeMismatch, match="a row for each position"):
        PositionTable(vectors=[1, 2])
    with pytest.raises(ShapeMismatch):
        PositionTable(vectors=np.zeros((0, 2)))
    with pytest.raises(NotFinite):
        PositionTable(vectors=[[np.nan]])
    with pytest.raises(NotFinite, match="65504"):
        PositionFunctions(("i^3",))(41, "float16")
    assert np.isfinite(PositionFunctions(("i^3",))(40, "float16")).all()


def test_a_coordinate_without_a_name_is_0():
    encoding = PositionFunctions((None, "i/n", None))
    assert encoding(2, "exact").tolist() == [[0, Fraction(1, 2), 0], [0, 1, 0]]
    assert PositionFunctions((None,))(2).tolist() == [[0], [0]]


def test_which_encodings_know_n():
    assert PositionFunctions(("i", "-i/n")).knows_n
    assert not PositionFunctions(("i", None, "1/i")).knows_n
    assert not PositionTable(vectors=TABLE).knows_n and not Sinusoids(2).knows_n
    for name, function in POSITIONS.items():
        rows = [[function(i, n) for i in range(1, 5)] for n in range(4, 9)]
        assert PositionFunctions((name,)).knows_n == any(row != rows[0] for row in rows), name


def real_sinusoid(p, delta, d):
    """The sinusoid to some 200 digits: the Taylor series of the equation's angle."""
    with decimal.localcontext(prec=400):
        angle = p / decimal.Decimal(10000) ** (decimal.Decimal(delta - delta % 2) / d)
        total = decimal.Decimal(0)
        k = 1 - delta % 2
        term = angle if k else decimal.Decimal(1)
        while abs(term) > decimal.Decimal(10) ** -200 or k < angle:
            total, k = total + term, k + 2
            term = -term * angle * angle / (k * (k - 1))
        return Fraction(total)


@pytest.mark.parametrize("d", [1, 2, 5, 16, 512])
@pytest.mark.parametrize(
    "name", ["float64", "float32", "float16", "bfloat16", "saturating:16:1/16"]
)
def test_sinusoids_are_the_nearest_numbers_of_each_format(d, name):
    system = number_system(name)
    places = [0, 1, 2, 22, 39, 333]  # 22 and 333 are near multiples of π
    got = system.numbers(Sinusoids(d)(334, system))[places]
    step = system.unit_roundoff
    for p, row in zip(places, got, strict=True):
        for delta in {0, 1, 2, 3, d - 2, d - 1} & set(range(d)):
            real, number = real_sinusoid(p, delta, d), Fraction(row[delta])
            for away in (1 + 2 * step, 1 - 2 * step) if step else ():
                other = Fraction(system.numbers(system.array([number * away]))[0])
                assert abs(number - real) <= abs(other - real)
            assert abs(number - real) <= (step * abs(real) if step else Fraction(1, 32))
    assert got[0].tolist() == [delta % 2 for delta in range(d)]  # position 1 is 0 from 0


def test_exact_sinusoids_are_rationals_and_balls_hold_the_real_values():
    for bits in (128, 512):
        balls = Interval(bits)
        exact = Sinusoids(4)(30, "exact").fractions() if bits == 128 else None
        got = Sinusoids(4)(30, balls)
        middle, radius = balls.numbers(got), balls.radius(got)
        assert radius.max() < Fraction(1, 2 ** (bits - 2))
        for p, delta in itertools.product(range(30), range(4)):
            real = real_sinusoid(p, delta, 4)
            assert abs(middle[p, delta] - real) <= radius[p, delta]
            if exact is not None:
                assert abs(exact[p, delta] - real) < Fraction(1, 2**128)


def test_sinusoids_go_on_to_both_sides():
    system = SYSTEMS["float64"]
    around = Sinusoids(4).at(range(-1, 3), 2, system)
    ahead = Sinusoids(4)(4)
    assert (around[2:] == ahead[:2]).all()
    assert (around[1] == ahead[1] * [-1, 1, -1, 1]).all()  # p = −1, sin is odd, cos even
    assert (around[0] == ahead[2] * [-1, 1, -1, 1]).all()


@pytest.mark.parametrize("d", [0, -2, 2.0, True, "2"])
def test_sinusoids_have_a_width(d):
    with pytest.raises(InvalidValue, match="whole number of at least 1"):
        Sinusoids(d)
