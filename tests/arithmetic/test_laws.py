"""The laws of every arithmetic: what rounds, rounds the exact result once; order and shapes hold.

The definition of rounding is written here in `Fraction`; the float8 formats meet it on all pairs of
their numbers, the 16-bit formats on all numbers, the wider ones on drawn bit patterns.
"""

import math
import warnings
from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from transformist.arithmetic import SYSTEMS, Floating
from transformist.errors import NotFinite, NotRepresentable

F = Fraction


class Format(NamedTuple):
    """What a format is by its definition: p, the least exponent, the largest number."""

    precision: int
    least: int
    largest: Fraction
    infinite: bool = True


FORMATS = {
    "float64": Format(53, -1074, (2 - F(2) ** -52) * 2**1023),
    "float32": Format(24, -149, (2 - F(2) ** -23) * 2**127),
    "float16": Format(11, -24, F(65504)),
    "bfloat16": Format(8, -133, (2 - F(2) ** -7) * 2**127),
    "float8_e5m2": Format(3, -16, F(57344)),
    "float8_e4m3": Format(4, -9, F(448), infinite=False),
}
EIGHT = ["float8_e5m2", "float8_e4m3"]
SIXTEEN = ["float16", "bfloat16"]
WIDE = ["float64", "float32"]
formats = pytest.mark.parametrize("name", FORMATS)
systems = pytest.mark.parametrize("a", SYSTEMS.values(), ids=SYSTEMS)
EVERY = np.True_


def unbounded(value: Fraction, f: Format) -> Fraction:
    """The nearest multiple of the unit in the last place, the even one of two, of any size."""
    if not value:
        return F(0)
    n, d = abs(value).as_integer_ratio()
    exponent = n.bit_length() - d.bit_length()
    if n * 2 ** max(-exponent, 0) < d * 2 ** max(exponent, 0):
        exponent -= 1
    unit = F(2) ** max(exponent - f.precision + 1, f.least)
    return round(value / unit) * unit  # Fraction rounds half to even


def rounded(value: Fraction, f: Format) -> Fraction | float:
    """The number of the format nearest to a value; beyond the largest ±inf, or the largest."""
    result = unbounded(value, f)
    if abs(result) <= f.largest:
        return result
    beyond = math.inf if f.infinite else f.largest
    return beyond if value > 0 else -beyond


def finite(f: Format) -> np.ndarray:
    """All finite numbers of a format, ascending, as float64."""
    unit, above = F(2) ** f.least, 2**f.precision
    ulps = [k * unit for k in range(above)]
    while ulps[-1] < f.largest:
        unit *= 2
        ulps += [k * unit for k in range(above // 2, above)]
    positive = np.array([float(value) for value in ulps if 0 < value <= f.largest])
    return np.concatenate([-positive[::-1], [0.0], positive])


def codes(a: Floating, count: int, seed: int) -> np.ndarray:
    """Numbers of drawn bit patterns: all exponents alike, NaN and infinities left out."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    bits = np.random.default_rng(seed).integers(
        0, np.iinfo(unsigned).max, count, dtype=unsigned, endpoint=True
    )
    drawn = bits.view(a.dtype)
    return drawn[np.isfinite(a.numbers(drawn))]


def same(got, expected) -> bool:
    """Equal as numbers; NaN is the same as NaN."""
    return got == expected or (got != got and expected != expected)


# The formats


@formats
def test_a_format_is_what_its_definition_says(name):
    a, f = SYSTEMS[name], FORMATS[name]
    assert a.unit_roundoff == F(1, 2**f.precision)
    assert F(a.largest) == f.largest
    assert F(a.smallest) == F(2) ** f.least
    assert a.saturates is not f.infinite
    assert a.accumulator == (np.float64 if name == "float64" else np.float32)
    assert a.accumulator_roundoff == F(1, 2 ** (53 if name == "float64" else 24))
    if f.infinite:
        assert float(a.infinity) == math.inf
        assert np.asarray(a.infinity).dtype == a.dtype
    else:
        with pytest.raises(NotRepresentable, match="no infinity: its largest number is 448"):
            _ = a.infinity


@pytest.mark.parametrize("name", EIGHT + SIXTEEN)
def test_the_numbers_of_a_format_are_those_of_its_definition(name):
    a = SYSTEMS[name]
    width = a.dtype.itemsize
    every = np.arange(256**width, dtype=f"u{width}").view(a.dtype)
    values = a.numbers(every)
    assert np.array_equal(np.unique(values[np.isfinite(values)]), finite(FORMATS[name]))
    assert np.isinf(values).any() == FORMATS[name].infinite


# Conversion


@pytest.mark.parametrize("name", EIGHT + SIXTEEN)
def test_halfway_between_two_neighbours_the_even_one_is_taken(name):
    a, values = SYSTEMS[name], finite(FORMATS[name])
    low, high = values[:-1], values[1:]
    halfway = (low + high) / 2  # exact in float64
    even = np.where(np.arange(len(low)) % 2 == (len(values) // 2) % 2, low, high)
    assert np.array_equal(a.numbers(a.array(halfway)), even)
    assert np.array_equal(a.numbers(a.array(np.nextafter(halfway, -np.inf))), low)
    assert np.array_equal(a.numbers(a.array(np.nextafter(halfway, np.inf))), high)
    step = slice(None, None, 1 if name in EIGHT else 113)
    exact = [F(value) for value in halfway[step]]
    for shift, expected in ((F(0), even), (F(-1, 2**400), low), (F(1, 2**400), high)):
        got = a.numbers(a.array([value + shift for value in exact]))
        assert np.array_equal(got, expected[step])


@pytest.mark.parametrize("name", WIDE)
def test_halfway_between_two_neighbours_of_a_wide_format_the_even_one_is_taken(name):
    a, f = SYSTEMS[name], FORMATS[name]
    x = a.numbers(codes(a, 300, 1))
    for value in map(F, x[np.abs(x) < a.largest / 4]):
        above = F(float(np.nextafter(a.dtype.type(float(value)), a.dtype.type(np.inf))))
        halfway = (value + above) / 2
        tiny = F(2) ** -2000
        values = [halfway, halfway - tiny, halfway + tiny]
        expected = [rounded(halfway, f), value, above]
        assert [F(number) for number in a.numbers(a.array(values))] == expected


@formats
def test_what_rounds_beyond_the_largest_number_is_refused(name):
    a, f = SYSTEMS[name], FORMATS[name]
    step = F(2) ** (f.largest.numerator.bit_length() - f.precision)  # to the next if there were one
    halfway = f.largest + step / 2
    for value in (f.largest, halfway - F(1, 2**99), halfway, halfway + F(1, 2**99), halfway * 2):
        for signed in (value, -value):
            if abs(unbounded(signed, f)) <= f.largest:
                assert F(a.numbers(a.array([signed]))[0]) == math.copysign(1, signed) * f.largest
            else:
                with pytest.raises(NotFinite, match=f"must be finite in {name}, whose largest"):
                    a.array([0, signed])
    assert a.numbers(a.array([F(1, 10**999)]))[0] == 0


@systems
def test_what_is_not_finite_is_refused(a):
    foreign = np.float64 if getattr(a, "dtype", None) != np.float64 else np.float32
    for bad in (math.nan, math.inf, -math.inf):
        for values in (
            bad,
            [0, bad],
            [[F(1, 3), bad]],
            np.array([bad], foreign),
            ["1/3", str(bad)],
        ):
            with pytest.raises(NotFinite, match="finite"):
                a.array(values)


# Elementary operations

EXACTLY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
}
operations = pytest.mark.parametrize("operation", EXACTLY)


def expected_of(operation, x, y, f, known):
    """By the definition where the exact result is a number, by IEEE 754 elsewhere."""
    if math.isfinite(x) and math.isfinite(y) and not (operation == "divide" and y == 0):
        exact = EXACTLY[operation](F(x), F(y))
        if exact not in known:
            known[exact] = float(rounded(exact, f))
        return known[exact]
    with np.errstate(all="ignore"):
        result = float(EXACTLY[operation](np.float64(x), np.float64(y)))
    return result if f.infinite or not math.isinf(result) else math.copysign(f.largest, result)


@operations
@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_all_pairs_of_float8_numbers_are_rounded_once(name, operation, step):
    a, f = SYSTEMS[name], FORMATS[name]
    every = np.arange(256, dtype=np.uint8).view(a.dtype)
    some = every[::step]
    got = a.numbers(getattr(a, operation)(some[:, None], every[None, :]))
    known: dict = {}
    x, y = a.numbers(some), a.numbers(every)
    expected = [[expected_of(operation, s, t, f, known) for t in y.tolist()] for s in x.tolist()]
    assert np.array_equal(got, np.array(expected), equal_nan=True)
    with np.errstate(all="ignore"):  # a result rounded to 0 keeps the sign IEEE 754 gives it
        signed = EXACTLY[operation](x[:, None], y[None, :])
    number = ~np.isnan(got)
    assert np.array_equal(np.signbit(got)[number], np.signbit(signed)[number])


@operations
@pytest.mark.parametrize("name", SIXTEEN + WIDE)
def test_drawn_numbers_are_rounded_once(name, operation):
    a, f = SYSTEMS[name], FORMATS[name]
    x, y = codes(a, 1500, 2), codes(a, 1500, 3)
    near = a.numbers(x) / a.largest * a.largest * np.random.default_rng(4).uniform(0.4, 2, len(x))
    near = near[np.abs(near) < a.largest]
    pairs = [
        (x[: min(len(x), len(y))], y[: min(len(x), len(y))]),
        (x[: len(near)], a.array(near)),  # near in size: sums cancel, quotients are near 1
        (a.array(np.arange(1, 501)), a.array(np.arange(1, 501)[::-1])),
    ]
    for left, right in pairs:
        got = a.numbers(getattr(a, operation)(left, right))
        known: dict = {}
        for s, t, result in zip(a.numbers(left), a.numbers(right), got, strict=True):
            assert same(result, expected_of(operation, float(s), float(t), f, known)), (s, t)


@formats
def test_sums_and_products_commute_bit_for_bit(name):
    a = SYSTEMS[name]
    x, y = codes(a, 256, 5)[:, None], codes(a, 256, 6)[None, :]
    for operation in (a.add, a.multiply):
        assert operation(x, y).tobytes() == operation(y, x).tobytes()


quarters = st.integers(-40, 40).map(lambda n: F(n, 4))


@systems
@settings(max_examples=40)
@given(x=quarters, y=quarters)
def test_a_result_that_is_a_number_of_the_arithmetic_is_exact(a, x, y):
    f = FORMATS.get(a.name, Format(60, -60, F(2**60)))
    if any(rounded(value, f) != value for value in (x, y)):
        return
    u, v = a.array([x]), a.array([y])
    for operation, exactly in EXACTLY.items():
        if operation == "divide" and (y == 0 or (x / y).denominator & ((x / y).denominator - 1)):
            continue
        exact = exactly(x, y)
        if rounded(exact, f) == exact:
            got = getattr(a, operation)(u, v)
            assert a.numbers(got)[0] == exact
            assert a.radius(got)[0] == 0
            assert F(a.shown(got)[0]) == exact
    if rounded(x * x, f) == x * x:
        assert a.numbers(a.sqrt(a.multiply(u, u)))[0] == abs(x)
    assert a.numbers(a.exp(a.subtract(u, u)))[0] == 1


@formats
def test_elementary_operations_are_monotone(name):
    a = SYSTEMS[name]
    x = a.array(np.sort(a.numbers(codes(a, 256, 7))))[:, None]
    y = codes(a, 100, 8)[None, :]
    y = y[a.numbers(y) != 0][None, :]
    positive = (a.numbers(y) > 0)[0]

    def rises(rows):
        return (rows[:-1] <= rows[1:]).all()

    assert rises(a.numbers(a.add(x, y)))
    assert rises(a.numbers(a.subtract(x, y)))
    assert rises(a.numbers(a.subtract(y, x))[::-1])
    for operation in (a.multiply, a.divide):
        result = a.numbers(operation(x, y))
        assert rises(result[:, positive])
        assert rises(result[::-1, ~positive])
    above = x[a.numbers(x)[:, 0] > 0]
    quotients = a.numbers(a.divide(y, above))
    assert rises(quotients[::-1, positive])
    assert rises(quotients[:, ~positive])


# Functions of one number

FUNCTIONS = {
    "exp": lambda t: t.exp(),
    "tanh": lambda t: t.tanh(),
    "normal_cdf": lambda t: (-t / arb(2).sqrt()).erfc() / 2,
}
functions = pytest.mark.parametrize("function", FUNCTIONS)


def precisely(function, points) -> np.ndarray:
    """The values of a function of balls, each the nearest float64."""
    with flint.ctx.workprec(150):
        return np.array([float(FUNCTIONS[function](arb(float(t))).mid()) for t in points])


def assert_nearest(a, f, got, values):
    """Each of the numbers `got` is one nearest to its value: nothing lies halfway between."""
    numbers = finite(f)
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) / 2 if f.infinite else np.inf
    ends = np.concatenate([[-beyond], (numbers[:-1] + numbers[1:]) / 2, [beyond]])
    place = np.searchsorted(numbers, np.clip(got, numbers[0], numbers[-1]))
    inside = np.isfinite(got)
    assert (numbers[place][inside] == got[inside]).all()
    assert ((ends[place] <= values) & (values <= ends[place + 1]))[inside].all()
    assert (got[values > beyond] == np.inf).all()
    assert (np.abs(values[~inside]) >= beyond).all()


def every_number(name, step=1):
    a = SYSTEMS[name]
    return a, a.array(finite(FORMATS[name])[::step])


@functions
@pytest.mark.parametrize(
    ("name", "step"),
    [
        *[(name, 1) for name in EIGHT],
        *[(name, 37) for name in SIXTEEN],
        *[pytest.param(name, 1, marks=pytest.mark.slow) for name in SIXTEEN],
    ],
)
def test_functions_of_all_narrow_numbers_are_rounded_to_nearest(name, step, function):
    a, x = every_number(name, step)
    x = x[np.abs(a.numbers(x)) < 2.0**20]  # beyond which 0, 1 and infinity are all there is
    got = a.numbers(getattr(a, function)(x))
    assert_nearest(a, FORMATS[name], got, precisely(function, a.numbers(x)))


@pytest.mark.parametrize("name", EIGHT + SIXTEEN)
def test_roots_of_all_narrow_numbers_are_rounded_to_nearest(name):
    a, x = every_number(name)
    x = x[a.numbers(x) >= 0]
    root = a.numbers(a.sqrt(x))
    numbers = finite(FORMATS[name])
    place = np.searchsorted(numbers, root)
    assert (numbers[place] == root).all()
    low, high = (
        (numbers[place - 1] + root) / 2,
        (numbers[np.minimum(place + 1, len(numbers) - 1)] + root) / 2,
    )
    assert (np.maximum(low, 0) ** 2 <= a.numbers(x)).all()  # squares exact in float64
    assert (a.numbers(x) <= high**2).all()


@pytest.mark.parametrize("name", WIDE)
def test_roots_of_wide_numbers_are_rounded_to_nearest(name):
    a, f = SYSTEMS[name], FORMATS[name]
    x = np.abs(codes(a, 1000, 9))
    for value, root in zip(a.numbers(x), a.numbers(a.sqrt(x)), strict=True):
        half = F(float(np.spacing(a.dtype.type(root)))) / 2
        low, high = F(root) - half, F(root) + half
        if math.frexp(root)[0] == 0.5:
            low = F(root) - half / 2
        assert max(low, F(0)) ** 2 <= F(value) <= high**2
        assert rounded(F(root), f) == root


@functions
@pytest.mark.parametrize("name", WIDE)
def test_functions_of_wide_numbers_are_within_their_bound(name, function):
    """float32: a unit roundoff. float64: two, of Φ with what the argument of erfc loses below 0."""
    a = SYSTEMS[name]
    rng = np.random.default_rng(10)
    drawn = np.concatenate([rng.uniform(-12, 12, 700), rng.uniform(-80, 80, 700), [0.0]])
    x = a.array(np.concatenate([drawn, drawn * 2.0**-20]))
    points = a.numbers(x)
    got = a.numbers(getattr(a, function)(x))
    room = 1 + 2.0**-20 if name == "float32" else 2
    if function == "normal_cdf" and name == "float64":
        room = 3 + 2 * (points**2 + 1) * (points < 0)
    with flint.ctx.workprec(200):
        for t, result, allowed in zip(points, got, np.broadcast_to(room, got.shape), strict=True):
            value = FUNCTIONS[function](arb(float(t)))
            if abs(value) > float(a.largest):
                assert result == math.inf
                continue
            limit = float(allowed) * float(a.unit_roundoff) * abs(value) + 2 * a.smallest
            assert abs(arb(float(result)) - value) <= limit, (t, result)


@pytest.mark.parametrize("name", ["float32", *SIXTEEN, *EIGHT])
@pytest.mark.parametrize("function", [*FUNCTIONS, "sqrt", "relu"])
def test_functions_rise(name, function):
    """Of float64, where exp, tanh and Φ are the machine's, no such promise is made."""
    a = SYSTEMS[name]
    if name == "float32":
        drawn = np.sort(np.random.default_rng(11).uniform(-20, 20, 2000).astype(np.float32))
        x = np.unique(np.concatenate([drawn, np.nextafter(drawn, np.float32(99))]))
    else:
        x = a.array(finite(FORMATS[name]))
    x = x[a.numbers(x) >= 0] if function == "sqrt" else x
    got = a.numbers(getattr(a, function)(x))
    assert (got[:-1] <= got[1:]).all()
    if function == "relu":
        assert np.array_equal(got, np.maximum(a.numbers(x), 0))


# Sums and dot products, from left to right, in plain numpy scalars


def stored(total, f: Format) -> float:
    return float(rounded(F(float(total)), f))


def dot(x, y, kind):
    total = kind(0)
    for s, t in zip(x, y, strict=True):
        total = kind(total + kind(kind(s) * kind(t)))
    return total


@formats
def test_sums_and_dot_products_run_from_left_to_right_and_are_rounded_once(name):
    a, f = SYSTEMS[name], FORMATS[name]
    rng = np.random.default_rng(12)
    kind = a.accumulator.type

    def drawn(*shape):  # sizes far apart, so that the order shows
        return a.array(rng.normal(size=shape) * 2.0 ** rng.integers(-5, 4, shape))

    x, W, b = drawn(40, 7), drawn(5, 7), drawn(5)
    X, M, B = a.numbers(x), a.numbers(W), a.numbers(b)
    totals = [[dot(row, column, kind) for column in M] for row in X]
    plain = [[stored(total, f) for total in row] for row in totals]
    assert a.numbers(a.matmul(x, W.T)).tolist() == plain
    assert a.numbers(a.affine(x, W)).tolist() == plain
    assert a.numbers(a.affine(x, W, b)).tolist() == [
        [stored(kind(total + kind(t)), f) for total, t in zip(row, B, strict=True)]
        for row in totals
    ]
    with flint.ctx.workprec(300):
        man, exp = arb(7).sqrt().mid().man_exp()
    root = F(rounded(int(man) * F(2) ** int(exp), f))
    assert a.numbers(a.scores(x, W)).tolist() == [
        [float(rounded(F(value) / root, f)) for value in row] for row in plain
    ]
    sums = []
    for row in X:
        total = kind(row[0])
        for value in row[1:]:
            total = kind(total + kind(value))
        sums.append([stored(total, f)])
    assert a.numbers(a.sum(x)).tolist() == sums
    exact = [
        [rounded(sum(F(s) * F(t) for s, t in zip(r, c, strict=True)), f) for c in M] for r in X
    ]
    if a.unit_roundoff == a.accumulator_roundoff:  # the test can tell an order from another
        backwards = [[dot(row[::-1], column[::-1], kind) for column in M] for row in X]
        assert totals != backwards
        assert exact != plain


@formats
def test_sums_of_products_are_monotone(name):
    a = SYSTEMS[name]
    rng = np.random.default_rng(13)
    x, y = a.array(rng.normal(size=(30, 6))), a.array(np.abs(rng.normal(size=(6, 4))))
    up = a.array(a.numbers(x) + np.abs(rng.normal(size=(30, 6))))
    assert (a.numbers(up) >= a.numbers(x)).all()
    for function in (
        a.sum,
        lambda t: a.matmul(t, y),
        lambda t: a.affine(t, y.T, y[0, :]),
        lambda t: a.scores(t, y.T),
        lambda t: a.maximum(t, EVERY),
    ):
        assert (a.numbers(function(x)) <= a.numbers(function(up))).all()


@systems
def test_products_of_matrices_commute_when_turned(a):
    rng = np.random.default_rng(14)
    x, y = a.array(rng.normal(size=(3, 4))), a.array(rng.normal(size=(5, 4)))

    def turned(z):
        return np.swapaxes(a.numbers(z), 0, 1).tolist()

    assert a.numbers(a.scores(x, y)).tolist() == turned(a.scores(y, x))
    assert a.numbers(a.affine(x, y)).tolist() == turned(a.affine(y, x))


# Overflow, infinities, NaN


@formats
def test_overflow_gives_infinity_or_the_largest_number(name):
    a, f = SYSTEMS[name], FORMATS[name]
    top, one, zero, least = (a.array([v]) for v in (a.largest, 1, 0, a.smallest))
    beyond = math.inf if f.infinite else a.largest
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minus = a.subtract(zero, top)
        for result, expected in (
            (a.add(top, top), beyond),
            (a.subtract(minus, top), -beyond),
            (a.multiply(top, top), beyond),
            (a.multiply(top, minus), -beyond),
            (a.divide(top, least), beyond),
            (a.divide(one, zero), beyond),
            (a.divide(minus, zero), -beyond),
            (a.exp(top), beyond),
            (a.exp(minus), 0),
            (a.tanh(minus), -1),
            (a.normal_cdf(top), 1),
            (a.normal_cdf(minus), 0),
            (a.relu(minus), 0),
            (a.sum(a.concatenate([top, top, top], 0)), beyond),
            (a.affine(top, top[:, None], one), beyond),
            (a.matmul(minus[None], top[None]), -beyond),
            (a.divide(zero, zero), math.nan),
            (a.subtract(top, least), a.largest),
        ):
            assert result.dtype == a.dtype
            assert same(a.numbers(result).ravel()[0], expected)
    mixed = a.concatenate([top, top, minus], 0)
    passing = a.accumulator_roundoff != a.unit_roundoff and name != "bfloat16"
    assert a.numbers(a.sum(mixed))[0] == (a.largest if passing else math.inf)


@formats
def test_a_score_that_overflows_is_refused_or_saturates(name):
    a, f = SYSTEMS[name], FORMATS[name]
    q = a.array([[a.largest, a.largest, 0, 0]])
    if f.infinite:
        with pytest.raises(NotFinite, match="attention scores must stay below"):
            a.scores(q, q)
    else:
        assert a.numbers(a.scores(q, q)).tolist() == [[224]]  # fl(fl(q · k) / √4)
        assert a.numbers(a.scores(q, -q)).tolist() == [[-224]]


@pytest.mark.parametrize("name", [name for name, f in FORMATS.items() if f.infinite])
def test_infinities_follow_ieee_754(name):
    a = SYSTEMS[name]
    inf = np.array([a.infinity])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for result, expected in (
            (a.add(inf, inf), math.inf),
            (a.subtract(inf, inf), math.nan),
            (a.multiply(inf, a.array([0])), math.nan),
            (a.divide(a.array([1]), inf), 0),
            (a.sqrt(inf), math.inf),
            (a.relu(-inf), 0),
            (a.exp(inf), math.inf),
            (a.exp(-inf), 0),
            (a.tanh(-inf), -1),
            (a.normal_cdf(inf), 1),
            (a.maximum(np.concatenate([inf, -inf]), EVERY), math.inf),
        ):
            assert same(a.numbers(result)[0], expected)
    assert a.maximal(np.concatenate([-inf, -inf]), EVERY).all()


@formats
def test_nan_never_becomes_a_number(name):
    a = SYSTEMS[name]
    nan, one = np.array([math.nan]).astype(a.dtype), a.array([1])
    both, unread = a.concatenate([nan, one], 0), a.array([[0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = [
            *[
                getattr(a, name)(*pair)
                for name in EXACTLY
                for pair in ((nan, one), (one, nan), (nan, nan))
            ],
            *[getattr(a, name)(nan) for name in ("sqrt", "exp", "tanh", "normal_cdf", "relu")],
            a.sqrt(a.array([-1])),
            a.sum(both),
            a.matmul(both[None], a.array([[0], [1]])),
            a.affine(both, a.array([[1, 1]])),
            a.affine(one, one[None], nan),
            a.maximum(both, EVERY),
            a.keep(nan, EVERY),
            a.concatenate([nan], 0),
        ]
        assert np.isnan(np.concatenate([a.numbers(result).ravel() for result in results])).all()
        assert not a.maximal(both, EVERY).any()
        assert not a.positive(nan).any()
        assert a.numbers(a.affine(both, unread))[0] == 1  # which reads the second alone
        assert a.numbers(a.maximum(both, np.array([False, True])))[0] == 1
        with pytest.raises(NotFinite, match="score"):
            a.scores(both[None], both[None])


# Choices and selections


@systems
@settings(max_examples=30)
@given(
    rows=st.lists(
        st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=4, max_size=4),
        min_size=1,
        max_size=3,
    )
)
def test_selections_are_those_of_their_definitions(a, rows):
    values = [[value for value, _ in row] for row in rows]
    mask = np.array([[may for _, may in row] for row in rows])
    x = a.array(values)
    best = [max((value for value, may in row if may), default=None) for row in rows]
    largest = a.maximum(x, mask)
    assert a.numbers(largest).tolist() == [[top or 0] for top in best]
    maximal = a.maximal(x, mask)
    assert maximal.dtype == a.positive(x).dtype == bool
    assert maximal.tolist() == [
        [may and value == top for value, may in row] for row, top in zip(rows, best, strict=True)
    ]
    assert a.positive(x).tolist() == [[value > 0 for value in row] for row in values]
    assert a.numbers(a.relu(x)).tolist() == [[max(value, 0) for value in row] for row in values]
    assert a.numbers(a.keep(x, mask)).tolist() == [
        [value if may else 0 for value, may in row] for row in rows
    ]
    assert a.numbers(a.concatenate([x, x[:1]], axis=-2)).tolist() == [*values, values[0]]
    assert a.numbers(a.concatenate([x, x], axis=-1)).tolist() == [row + row for row in values]
    assert a.shown(x) == values
    for selected in (x, largest, a.relu(x), a.keep(x, mask)):
        assert not a.radius(selected).any()
        assert a.radius(selected).shape == selected.shape


# Shapes


@systems
@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ((2, 3), (2, 3), (2, 3)),
        ((2, 3), (3,), (2, 3)),
        ((2, 1), (1, 3), (2, 3)),
        ((4, 1, 3), (2, 1), (4, 2, 3)),
        ((2, 3), (), (2, 3)),
        ((), (), ()),
        ((0, 3), (1, 3), (0, 3)),
        ((2, 0), (1,), (2, 0)),
        ((0,), (0,), (0,)),
    ],
)
def test_elementary_operations_broadcast(a, left, right, result):
    x = np.arange(math.prod(left)).reshape(left) % 5 - 2.0
    y = 2.0 ** (np.arange(math.prod(right)) % 3).reshape(right)
    for operation, exactly in EXACTLY.items():
        got = getattr(a, operation)(a.array(x), a.array(y))
        assert got.shape == a.numbers(got).shape == a.radius(got).shape == result
        assert a.numbers(got).tolist() == exactly(x, y).tolist()
    for function in ("relu", "sqrt", "exp", "tanh", "normal_cdf"):
        if a.name == "exact" and function in ("tanh", "normal_cdf"):
            with pytest.raises(NotRepresentable, match="an activation other than ReLU"):
                getattr(a, function)(a.array(np.zeros(left)))
        else:
            got = getattr(a, function)(a.array(np.zeros(left)))
            assert got.shape == a.numbers(got).shape == left
    where = np.full(left, True)
    assert a.keep(a.array(x), where).shape == a.positive(a.array(x)).shape == left
    assert a.shown(a.array(x)) == x.tolist()


@systems
@pytest.mark.parametrize("batch", [(), (1,), (3,), (2, 3), (0,), (2, 0)])
@pytest.mark.parametrize(("r", "k", "c"), [(2, 3, 4), (1, 1, 1), (0, 3, 2), (2, 3, 0), (0, 2, 0)])
def test_matrix_operations_take_any_batch(a, batch, r, k, c):
    rng = np.random.default_rng(15)
    x = rng.integers(-1, 2, (*batch, r, k))
    y = rng.integers(-1, 2, (k, c))
    product = (x @ y).tolist()
    got = a.matmul(a.array(x), a.array(y))
    assert got.shape == (*batch, r, c)
    assert a.numbers(got).tolist() == product
    assert a.numbers(a.affine(a.array(x), a.array(y.T))).tolist() == product
    ones = a.array(np.ones(c))
    assert a.numbers(a.affine(a.array(x), a.array(y.T), ones)).tolist() == (x @ y + 1).tolist()
    scores = a.scores(a.array(x), a.array(y.T))
    assert scores.shape == (*batch, r, c)
    among = np.full((r, c), True)
    assert a.maximum(scores, among).shape == (*batch, r, 1)
    assert a.maximal(scores, among).shape == (*batch, r, c)
    total = a.sum(got)
    assert total.shape == (*batch, r, 1)
    assert a.numbers(total).tolist() == (x @ y).sum(-1, keepdims=True).tolist()
    joined = a.concatenate([got, got], axis=-2)
    assert joined.shape == (*batch, 2 * r, c)


@systems
def test_sums_of_nothing_are_zero(a):
    nothing = a.array(np.zeros((2, 0)))
    assert a.numbers(a.sum(nothing)).tolist() == [[0], [0]]
    assert a.numbers(a.matmul(nothing, a.array(np.zeros((0, 3))))).tolist() == [[0] * 3] * 2
    none = np.zeros((2, 0), dtype=bool)
    assert a.numbers(a.maximum(nothing, none)).tolist() == [[0], [0]]
    assert a.maximal(nothing, none).shape == (2, 0)
    closed = a.maximum(a.array([[5, 7]]), np.array([[False, False]]))
    assert a.numbers(closed).tolist() == [[0]]
    zero = a.affine(a.array([[3, 4]]), a.array(np.zeros((2, 2))), a.array([1, 2]))
    assert a.numbers(zero).tolist() == [[1, 2]]


@systems
def test_the_constant_of_gelu_is_the_nearest(a):
    if a.name == "exact":
        with pytest.raises(NotRepresentable, match="an activation other than ReLU"):
            a.root_two_over_pi()
        return
    constant = a.root_two_over_pi()
    assert constant.shape == (1,)
    with flint.ctx.workprec(300):
        man, exp = (2 / arb.pi()).sqrt().mid().man_exp()
    value = int(man) * F(2) ** int(exp)
    if a.name in FORMATS:
        assert F(a.numbers(constant)[0]) == rounded(value, FORMATS[a.name])
    else:
        assert abs(a.numbers(constant)[0] - value) <= a.radius(constant)[0] <= F(1, 2**120)
