"""Tiny formats round as a definition says that is written in rational numbers."""

import functools
import itertools
import math
import random
from fractions import Fraction as F

import numpy as np
import pytest
from tiny import FORMATS, LONGER, Shape, Tiny, known, tiny

from transformist.arithmetic import FLOAT16, number_system
from transformist.errors import NotFinite

EXHAUSTIVE = 300
"""A format of at most so many numbers is tried on all pairs."""

DRAWN = 300
"""Pairs of the others."""

SMALL = {
    each.name: each
    for each in (
        *(tiny(3, 3, accumulator) for accumulator in ("own", "wider", "wide")),
        tiny(3, 3, has_subnormals=False),
        tiny(3, 3, "wider", has_subnormals=False),
        tiny(3, 3, clamps=True),
        tiny(4, 3, "wider", has_subnormals=False, clamps=True),
    )
}

BOTH = {**SMALL, **FORMATS, **LONGER}

QUICK = ("p3e3-own", "p3e3-wider-flushing", "p3e3-own-clamping")

NAMES = [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in BOTH]


@functools.lru_cache(2**14, typed=True)  # sums and products of the same numbers recur
def nearest(x: F, shape: Shape):
    """The number nearest to x, of two that are the one with an even significand."""
    if isinstance(x, float):
        return x
    p, least = shape.precision, F(2) ** shape.least
    size, sign = abs(x), -1 if x < 0 else 1
    if not shape.has_subnormals and size < least:  # below it 2ᵖ − 1 is odd
        return sign * least if size >= least * (1 - F(1, 2 ** (p + 1))) else F(0)
    above = size.numerator.bit_length() - size.denominator.bit_length()  # or one above
    exponent = max(above - (F(2) ** above > size), shape.least)
    ulp = F(2) ** (exponent + 1 - p)
    below, rest = divmod(size, ulp)
    is_up = 2 * rest > ulp or (2 * rest == ulp and below % 2 == 1)
    found = (below + is_up) * ulp
    largest = (2**p - 1) * F(2) ** (shape.most + 1 - p)
    return sign * (math.inf if found > largest else found)


def stored(x, a):
    found = nearest(x, a.shape)
    if a.clamps and abs(found) > a.largest:
        return math.copysign(a.largest, found)
    return found


def once(x, a):
    """One operation: rounded in the accumulator, then stored."""
    return float(stored(nearest(x, a.partial), a))


def pairs_of(a):
    numbers = a.all_numbers
    if len(numbers) <= EXHAUSTIVE:
        return list(itertools.product(numbers, repeat=2))
    draw = random.Random(a.name)
    return [(draw.choice(numbers), draw.choice(numbers)) for _ in range(DRAWN)]


def equal(found, wanted):
    return np.array_equal(np.asarray(found), np.array(wanted, dtype=float))


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_rounds_as_the_definition_says(name):
    a, pairs = BOTH[name], pairs_of(BOTH[name])
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    exact = [(F(p), F(q)) for p, q in pairs]
    assert equal(a.add(x, y), [once(p + q, a) for p, q in exact])
    assert equal(a.subtract(x, y), [once(p - q, a) for p, q in exact])
    assert equal(a.multiply(x, y), [once(p * q, a) for p, q in exact])
    divisors = [(p, q) for p, q in exact if q]
    found = a.divide(x[y != 0], y[y != 0])
    assert equal(found, [once(p / q, a) for p, q in divisors])


@pytest.mark.parametrize("name", NAMES)
def test_a_sum_rounds_at_every_addition_and_where_it_is_stored(name):
    a, pairs = BOTH[name], pairs_of(BOTH[name])
    x = np.array(pairs)
    draw = random.Random(name)
    v, w, b = (draw.choice([z for z in a.all_numbers if z and abs(z) <= 2]) for _ in range(3))

    def dot(p, q, *shift):
        terms = [nearest(p * F(v), a.partial), nearest(q * F(w), a.partial), *shift]
        return float(stored(added(terms), a))

    def added(terms):
        total = terms[0]
        for term in terms[1:]:
            if isinstance(total, float) or isinstance(term, float):  # infinite
                total = float(total) + float(term)
            else:
                total = nearest(total + term, a.partial)
        return total

    exact = [(F(p), F(q)) for p, q in pairs]
    with np.errstate(invalid="ignore"):
        want = np.array([dot(p, q) for p, q in exact])
        beside = np.array([dot(p, q, F(b)) for p, q in exact])
    W = np.array([[v, w]])
    assert np.array_equal(a.affine(x, W)[:, 0], want, equal_nan=True)
    assert np.array_equal(a.affine(x, W, np.array([b]))[:, 0], beside, equal_nan=True)
    assert np.array_equal(a.matmul(x, W.T)[:, 0], want, equal_nan=True)
    assert equal(a.sum(x)[:, 0], [float(stored(added([p, q]), a)) for p, q in exact])


def test_products_are_rounded_unless_the_accumulator_holds_them_all():
    double, held = np.dtype(float), set()
    for p, least, most in itertools.product((5, 6, 7), range(-9, 0), range(3, 9)):
        partial = Shape(p, least, most)
        a = Tiny("p3e3", double, double, 3, Shape.of(3, 3), partial)
        x = np.array(a.all_numbers)
        exact = x[:, None] * x
        assert np.array_equal(a.products(x[:, None], x), partial.round(exact)), partial
        held.add(np.array_equal(partial.round(exact), exact))
    assert held == {True, False}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_infinite_or_nan_stays_and_zeros_keep_their_sign(name):
    for shape in (BOTH[name].shape, BOTH[name].partial):
        beyond = math.ldexp(2 - 2.0**-shape.precision, shape.most)  # half-way, a tie
        given = [math.inf, beyond, 1e308, np.nextafter(beyond, 0), 0.0, 1e-308, math.nan]
        wanted = [math.inf, math.inf, math.inf, shape.largest, 0.0, 0.0, math.nan]
        for sign in (1.0, -1.0):
            found, signed = shape.round(sign * np.array(given)), sign * np.array(wanted)
            assert np.array_equal(found, signed, equal_nan=True)
            assert np.array_equal(np.signbit(found), np.signbit(signed))


@pytest.mark.parametrize("name", NAMES)
def test_roots_and_powers_are_stored_once(name):
    a = BOTH[name]
    x = np.array([z for z in a.all_numbers if z >= 0])
    roots = np.sqrt(x)
    for given, near, found in zip(x, roots, a.sqrt(x), strict=True):
        assert found == float(stored(F(float(near)), a)), given
    below = np.array([z for z in a.all_numbers if z <= 0])
    assert equal(a.exp(below), [float(stored(F(math.exp(z)), a)) for z in below])
    assert a.exp(np.zeros(1))[0] == 1


@pytest.mark.parametrize("name", NAMES)
def test_what_bounds_ask_of_a_format_is_true(name):
    a = BOTH[name]
    numbers = [F(z) for z in a.all_numbers]
    least, most = min(z for z in numbers if z > 0), max(numbers)
    assert F(a.largest) == most and F(a.smallest) == least * (1 if a.has_subnormals else 2)
    draw = random.Random(name)
    for _ in range(2000):  # off by at most u of it, or half of the smallest
        x = F(draw.uniform(-1, 1)) * F(2) ** draw.randint(a.shape.least - 4, a.shape.most)
        off = abs(F(a.array([x])[0]) - x)
        assert off <= max(a.unit_roundoff * abs(x), F(a.smallest) / 2)
        kept = F(float(a.partial.round(np.array([float(x)]))[0]))
        allowed = max(a.accumulator_roundoff * abs(x), F(a.smallest_partial) / 2)
        assert abs(kept - F(float(x))) <= allowed
    for k in range(2**a.precision + 1):  # multiples of the smallest are numbers of the format
        if k * F(a.smallest) <= most:
            assert a.array([k * F(a.smallest)])[0] == k * F(a.smallest)


@pytest.mark.parametrize("name", NAMES)
def test_a_number_is_rounded_once_however_it_is_given(name):
    a, draw = BOTH[name], random.Random(name)
    for _ in range(300):
        x = F(draw.randint(-(10**6), 10**6), draw.randint(1, 10**6)) * F(2) ** draw.randint(-9, 2)
        want = nearest(x, a.shape)
        if abs(want) <= a.largest:
            assert F(float(a.array([x])[0])) == want
            assert F(float(a.array([float(x)])[0])) == nearest(F(float(x)), a.shape)
    for beyond in (F(a.largest) * 2, math.inf, math.nan):
        with pytest.raises(NotFinite):
            a.array([beyond])


def test_eleven_bits_and_five_of_exponent_are_half_precision():
    ours, draw = LONGER["p11e5-wide"], np.random.default_rng(0)
    x, y = (draw.integers(0, 2**16, 20000).astype(np.uint16).view(np.float16) for _ in range(2))
    is_number = np.isfinite(x) & np.isfinite(y) & (y != 0)
    x, y = x[is_number], y[is_number]
    wide = [each.astype(float) for each in (x, y)]
    for name in ("add", "subtract", "multiply", "divide"):
        theirs = FLOAT16.numbers(getattr(FLOAT16, name)(x, y))
        assert np.array_equal(getattr(ours, name)(*wide), theirs, equal_nan=True)
    W = FLOAT16.array([[0.3, 1.7, -2.1]])
    rows = x[: len(x) // 3 * 3].reshape(-1, 3) / np.float16(64)
    theirs = FLOAT16.numbers(FLOAT16.affine(rows, W, FLOAT16.array([0.7])))
    mine = ours.affine(rows.astype(float), W.astype(float), ours.array([0.7]))
    assert np.array_equal(mine, theirs, equal_nan=True)


def test_a_format_is_known_by_its_name_for_a_while():
    with known():
        assert number_system("p4e3-own") is FORMATS["p4e3-own"]
    with pytest.raises(LookupError):
        number_system("p4e3-own")
