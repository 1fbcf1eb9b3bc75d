"""The balls of `interval` hold the real results, and decide what they can and nothing else.

A ball is taken apart here by its midpoint and radius as flint gives them; what it must hold is
computed in `Fraction`, or in balls of 1000 bits where it is irrational.
"""

import math
import re
from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from transformist.arithmetic import INTERVAL, Balls, Interval
from transformist.errors import InvalidValue, NotFinite, Undecided
from transformist.model.feed_forward import ACTIVATIONS
from transformist.model.normalization import LayerNorm
from transformist.model.weighting import Weighting, softmax

F = Fraction
ALL = np.True_
few = settings(max_examples=25)
widths = pytest.mark.parametrize("bits", [2, 11, 53, 128])


def dyadic(ball: arb) -> Fraction:
    mantissa, exponent = ball.man_exp()
    return int(mantissa) * F(2) ** int(exponent)


def ends(ball: arb) -> tuple[Fraction, Fraction]:
    midpoint, radius = dyadic(ball.mid()), dyadic(ball.rad())
    return midpoint - radius, midpoint + radius


def assert_holds(balls: Balls, values) -> None:
    """Each ball holds the value in its place."""
    values = np.array(values, dtype=object)
    assert balls.shape == values.shape
    for ball, value in zip(balls.values.ravel(), values.ravel(), strict=True):
        low, high = ends(ball)
        assert low <= value <= high, (ball, float(value))


def precisely(function, *points: Fraction) -> Fraction:
    """The value of a function of balls at rational points, to 1000 bits."""
    with flint.ctx.workprec(1000):
        return dyadic(function(*[arb(fmpq(p.numerator, p.denominator)) for p in points]).mid())


def cdf(t: arb) -> arb:
    """Φ by way of erf, where the arithmetic takes erfc."""
    return (1 + (t / arb(2).sqrt()).erf()) / 2


def balls(*entries: tuple[Fraction, Fraction]) -> Balls:
    """Balls of dyadic midpoints and radii, both taken exactly."""
    with flint.ctx.workprec(1000):
        return Balls(np.array([arb(*map(float, entry)) for entry in entries], dtype=object))


dyadics = st.builds(lambda n, k: F(n, 2**k), st.integers(-(2**12), 2**12), st.integers(0, 12))
radii = st.one_of(st.just(F(0)), st.integers(-20, 1).map(lambda k: F(2) ** k))
fractions = st.builds(
    lambda n, d: F(min(n, d), d) * (-1) ** n, st.integers(0, 9), st.integers(1, 9)
)


@st.composite
def pointed(draw, least=None):
    """A ball, as its midpoint and radius, and a point in it."""
    midpoint, radius = draw(dyadics), draw(radii)
    if least is not None:
        midpoint = abs(midpoint) + radius + least
    return midpoint, radius, midpoint + draw(fractions) * radius


def several(size, least=None):
    return st.lists(pointed(least), min_size=size, max_size=size)


def opened(drawn):
    return balls(*[(m, r) for m, r, _ in drawn]), [point for *_, point in drawn]


@few
@widths
@given(left=several(4), right=several(4), divisors=several(4, least=F(1, 64)))
def test_operations_hold_the_results_of_all_points(bits, left, right, divisors):
    a = Interval(bits)
    (x, p), (y, q), (z, d) = opened(left), opened(right), opened(divisors)
    assert_holds(a.add(x, y), [s + t for s, t in zip(p, q, strict=True)])
    assert_holds(a.subtract(x, y), [s - t for s, t in zip(p, q, strict=True)])
    assert_holds(a.multiply(x, y), [s * t for s, t in zip(p, q, strict=True)])
    assert_holds(a.divide(x, z), [s / t for s, t in zip(p, d, strict=True)])
    assert_holds(a.sum(x), [sum(p)])
    assert_holds(a.relu(x), [max(s, F(0)) for s in p])
    assert_holds(a.concatenate([x, y], axis=-1), p + q)
    mask = np.array([True, False, True, True])
    assert_holds(a.keep(x, mask), [p[0], F(0), p[2], p[3]])
    assert_holds(a.maximum(x, mask), [max(p[0], p[2], p[3])])
    m = Balls(x.values.reshape(2, 2))
    n = Balls(y.values.reshape(2, 2))
    assert_holds(
        a.matmul(m, n),
        [[p[2 * i] * q[j] + p[2 * i + 1] * q[2 + j] for j in (0, 1)] for i in (0, 1)],
    )
    rows = [[p[2 * i] * q[2 * j] + p[2 * i + 1] * q[2 * j + 1] for j in (0, 1)] for i in (0, 1)]
    assert_holds(a.affine(m, n), rows)
    assert_holds(a.affine(m, n, x[:2]), [[row[j] + p[j] for j in (0, 1)] for row in rows])


@few
@widths
@given(drawn=several(3), above=several(3, least=F(0)))
def test_irrational_functions_hold_the_values_of_all_points(bits, drawn, above):
    a = Interval(bits)
    (x, p), (y, q) = opened(drawn), opened(above)
    assert_holds(a.exp(x), [precisely(arb.exp, s) for s in p])
    assert_holds(a.tanh(x), [precisely(arb.tanh, s) for s in p])
    assert_holds(a.sqrt(y), [precisely(arb.sqrt, s) for s in q])
    near = Balls(np.array([ball / 256 for ball in x.values], dtype=object))  # no Φ lost to 0 or 1
    assert_holds(a.normal_cdf(near), [precisely(cdf, s / 256) for s in p])
    assert_holds(a.root_two_over_pi(), [precisely(lambda: (2 / arb.pi()).sqrt())])


def test_the_root_of_a_ball_that_reaches_below_zero_is_that_of_the_rest():
    root = INTERVAL.sqrt(balls((F(1), F(3))))
    assert_holds(Balls(np.repeat(root.values, 3)), [F(0), F(1), F(2)])
    assert INTERVAL.sqrt(balls((F(0), F(0)))).values[0].is_zero()
    with pytest.raises(NotFinite):
        INTERVAL.numbers(INTERVAL.sqrt(INTERVAL.array([-1])))


@few
@pytest.mark.parametrize("bits", [11, 128])
@given(x=st.lists(dyadics, min_size=3, max_size=3), y=st.lists(dyadics, min_size=3, max_size=3))
def test_radii_are_of_the_last_bit(bits, x, y):
    """Of exact operands: a few 2⁻ᵇ of the result of an operation, and of the terms of a sum."""
    a = Interval(bits)
    u, v = a.array(x), a.array([t or F(1) for t in y])
    for result in (a.add(u, v), a.subtract(u, v), a.multiply(u, v), a.divide(u, v), a.exp(u)):
        for midpoint, radius in zip(a.numbers(result), a.radius(result), strict=True):
            assert radius <= 4 * F(2) ** -bits * max(abs(midpoint), F(2) ** -3900)
    terms = sum(abs(s) for s in x)
    assert a.radius(a.sum(u))[0] <= 8 * F(2) ** -bits * terms
    total = sum(abs(s * t) for s, t in zip(x, y, strict=True))
    row, column = Balls(u.values[None]), Balls(a.array(y).values[:, None])
    assert a.radius(a.matmul(row, column))[0, 0] <= 16 * F(2) ** -bits * total


@given(x=st.integers(-(2**60), 2**60), y=st.integers(-(2**60), 2**60), k=st.integers(-99, 99))
def test_an_exact_result_of_exact_operands_has_radius_zero(x, y, k):
    scale = F(2) ** k
    u, v = INTERVAL.array([x * scale]), INTERVAL.array([y * scale])
    for result, value in (
        (INTERVAL.add(u, v), (x + y) * scale),
        (INTERVAL.subtract(u, v), (x - y) * scale),
        (INTERVAL.multiply(u, v), x * y * scale**2),
        (INTERVAL.scores(u[None], v[None]), x * y * scale**2),
        (INTERVAL.affine(u, v[None], u), x * y * scale**2 + x * scale),
    ):
        if isinstance(value, F) and abs(value.numerator).bit_length() <= 128:
            assert INTERVAL.numbers(result).ravel()[0] == value
            assert INTERVAL.radius(result).ravel()[0] == 0


def test_what_is_not_exact_has_a_radius():
    third = INTERVAL.array([F(1, 3)])
    assert 0 < INTERVAL.radius(third)[0] < F(1, 2**128)
    assert abs(INTERVAL.numbers(third)[0] - F(1, 3)) <= INTERVAL.radius(third)[0]
    for value in (INTERVAL.exp(third), INTERVAL.sqrt(INTERVAL.array([2])), INTERVAL.tanh(third)):
        assert INTERVAL.radius(value)[0] > 0


# Choices

coarse = st.tuples(
    st.integers(-4, 4).map(lambda n: F(n, 2)), st.sampled_from([F(0), F(1, 2), F(1)])
)


def halves(*entries: tuple[Fraction, Fraction]) -> Balls:
    """Balls whose radius is 0, 1/2 or 1 exactly, so that they may touch; flint rounds one given."""
    with flint.ctx.workprec(2):
        sum_ = arb(1) + arb(2) ** -9  # rounded to 1, within 1/2
    with flint.ctx.workprec(1000):
        half = sum_ - 1
        drawn = [sum([half] * int(2 * radius), arb(float(middle))) for middle, radius in entries]
    found = [(dyadic(ball.mid()), dyadic(ball.rad())) for ball in drawn]
    assert found == list(entries)
    return Balls(np.array(drawn, dtype=object))


@settings(max_examples=200)
@pytest.mark.parametrize("bits", [2, 128])
@given(row=st.lists(st.tuples(coarse, st.booleans()), max_size=5))
def test_the_largest_is_chosen_where_it_is_the_same_for_all_points(bits, row):
    a = Interval(bits)
    entries, among = [entry for entry, _ in row], np.array([may for _, may in row], dtype=bool)
    high = [m + r for m, r in entries]
    low = max((m - r for (m, r), may in row if may), default=None)
    possible = [j for j, may in enumerate(among) if may and high[j] >= low]
    if len(possible) <= 1 or all(entries[j][1] == 0 for j in possible):
        chosen = a.maximal(halves(*entries), among)
        assert chosen.dtype == bool
        assert np.flatnonzero(chosen).tolist() == possible
    else:
        with pytest.raises(Undecided, match="more bits"):
            a.maximal(halves(*entries), among)


@given(row=st.lists(coarse, min_size=1, max_size=4))
def test_positive_is_answered_where_it_is_the_same_for_all_points(row):
    if any(m - r <= 0 < m + r for m, r in row):
        with pytest.raises(Undecided, match="positive"):
            INTERVAL.positive(halves(*row))
    else:
        assert INTERVAL.positive(halves(*row)).tolist() == [m > 0 for m, _ in row]


def test_numbers_longer_than_the_precision_are_compared_exactly():
    """A number given is kept with all its bits, and an end of it, rounded, would make a tie."""
    a = Interval(2)
    assert a.maximal(a.array([1.0, 1.25]), ALL).tolist() == [False, True]
    assert a.maximal(a.array([1.25, 1.0, 1.25]), ALL).tolist() == [True, False, True]
    close = a.array([1.0, 1 + 2.0**-52])
    assert a.maximal(close, ALL).tolist() == [False, True]
    assert a.maximal(close[::-1], ALL).tolist() == [True, False]


def test_what_is_unknown_is_never_chosen():
    unknown = INTERVAL.divide(INTERVAL.array([1, 1]), INTERVAL.array([0, 1]))
    for order in (slice(None), slice(None, None, -1)):
        with pytest.raises(Undecided):
            INTERVAL.maximal(unknown[order], ALL)
    with pytest.raises(Undecided):
        INTERVAL.positive(unknown)
    for read in (INTERVAL.numbers, INTERVAL.radius, INTERVAL.shown):
        with pytest.raises(NotFinite, match="every ball must be finite"):
            read(unknown)
        with pytest.raises(NotFinite):
            read(INTERVAL.relu(unknown))


# Scores


def test_scores_keep_ties_of_dot_products():
    """√3 divides them, and the quotients are not exact."""
    q, k = INTERVAL.array([[1, 2, 0]]), INTERVAL.array([[3, 0, 0], [1, 1, 5], [0, 1, 1]])
    s = INTERVAL.scores(q, k)
    assert INTERVAL.maximal(s, ALL).tolist() == [[True, True, False]]
    assert INTERVAL.maximal(INTERVAL.subtract(s, INTERVAL.maximum(s, ALL)), ALL).tolist() == [
        [True, True, False]
    ]
    assert INTERVAL.positive(s).all()
    for weighting, expected in (
        ("average-hard", [F(1, 2), F(1, 2), 0]),
        ("leftmost-hard", [1, 0, 0]),
        ("rightmost-hard", [0, 1, 0]),
    ):
        got = Weighting(weighting)(s, np.full((1, 3), True), INTERVAL)
        assert INTERVAL.numbers(got).tolist() == [expected]
        assert not INTERVAL.radius(got).any()
    even = softmax(s, np.array([[True, True, False]]), INTERVAL)
    assert INTERVAL.numbers(even).tolist() == [[F(1, 2), F(1, 2), 0]]
    assert not INTERVAL.radius(even).any()


@few
@given(q=several(3), k=several(6))
def test_scores_are_divided_by_the_root_everywhere_else(q, k):
    small = [[tuple(part / 64 for part in ball) for ball in drawn] for drawn in (q, k)]
    (x, p), (y, t) = map(opened, small)  # so that the exponentials can be written out
    s = INTERVAL.scores(Balls(x.values[None]), Balls(y.values.reshape(2, 3)))
    dot = [sum(p[i] * t[3 * j + i] for i in range(3)) for j in (0, 1)]
    root = [precisely(lambda d: d / arb(3).sqrt(), value) for value in dot]
    for low, value, radius in zip(INTERVAL.numbers(s)[0], root, INTERVAL.radius(s)[0], strict=True):
        assert abs(low - value) <= radius
    assert_holds(
        INTERVAL.exp(s), [[precisely(lambda d: (d / arb(3).sqrt()).exp(), d) for d in dot]]
    )
    one = INTERVAL.array([[1, 1]])
    assert_holds(INTERVAL.add(s, one), [[value + 1 for value in root]])
    assert_holds(INTERVAL.subtract(s, one), [[value - 1 for value in root]])
    assert_holds(INTERVAL.subtract(one, s), [[1 - value for value in root]])
    assert_holds(INTERVAL.multiply(s, one), [root])
    assert_holds(INTERVAL.divide(s, one), [root])
    assert_holds(INTERVAL.sum(s), [[sum(root)]])
    assert_holds(INTERVAL.relu(s), [[max(value, F(0)) for value in root]])
    assert_holds(INTERVAL.concatenate([s, one], axis=-1), [[*root, F(1), F(1)]])
    assert_holds(INTERVAL.tanh(s), [[precisely(arb.tanh, value) for value in root]])
    assert_holds(INTERVAL.matmul(s, INTERVAL.array([[1], [2]])), [[root[0] + 2 * root[1]]])
    largest = INTERVAL.maximum(s, ALL)
    assert_holds(INTERVAL.add(largest, INTERVAL.array([[0]])), [[max(root)]])
    kept = INTERVAL.keep(s, np.array([[True, False]]))
    assert_holds(INTERVAL.add(kept, INTERVAL.array([[0]])), [[root[0], F(0)]])
    below = INTERVAL.subtract(s, s)  # of the same balls, but not known to be of the same points
    assert_holds(INTERVAL.add(below, INTERVAL.array([[0]])), [[F(0), F(0)]])


# Precision

OPERATIONS = {
    "array": lambda a, x: a.array(["1/3", 2]),
    "numbers": lambda a, x: a.numbers(x),
    "radius": lambda a, x: a.radius(x),
    "shown": lambda a, x: a.shown(x),
    "concatenate": lambda a, x: a.concatenate([x, x], axis=-1),
    "add": lambda a, x: a.add(x, x),
    "subtract": lambda a, x: a.subtract(x, x),
    "multiply": lambda a, x: a.multiply(x, x),
    "divide": lambda a, x: a.divide(x, x),
    "affine": lambda a, x: a.affine(x, x),
    "matmul": lambda a, x: a.matmul(x, x),
    "scores": lambda a, x: a.numbers(a.scores(x, x)),
    "sum": lambda a, x: a.sum(x),
    "maximum": lambda a, x: a.maximum(x, ALL),
    "relu": lambda a, x: a.relu(x),
    "sqrt": lambda a, x: a.sqrt(x),
    "exp": lambda a, x: a.exp(x),
    "root_two_over_pi": lambda a, x: a.root_two_over_pi(),
    "tanh": lambda a, x: a.tanh(x),
    "normal_cdf": lambda a, x: a.normal_cdf(x),
    "keep": lambda a, x: a.keep(x, ALL),
    "maximal": lambda a, x: a.maximal(a.array([1, 2]), ALL),
    "positive": lambda a, x: a.positive(x),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_precision_of_flint_is_that_of_its_user(operation):
    before = flint.ctx.prec
    a = Interval(200)
    x = a.array([["1/3", 2], [1, "5/7"]])
    try:
        for prec in (3, 77, 1000):
            flint.ctx.prec = prec
            got = OPERATIONS[operation](a, x)
            assert flint.ctx.prec == prec
            again = OPERATIONS[operation](a, x)
            assert str(got) == str(again)
            flint.ctx.prec = 1000  # to write all results alike
            assert repr(got) == repr(OPERATIONS[operation](a, x))
    finally:
        flint.ctx.prec = before


def test_an_exception_leaves_the_precision_of_flint_as_it_was():
    before = flint.ctx.prec
    wide = balls((F(0), F(1)), (F(0), F(1)))
    unknown = INTERVAL.divide(wide, wide)
    try:
        flint.ctx.prec = 77
        for refused in (
            lambda: INTERVAL.maximal(wide, ALL),
            lambda: INTERVAL.positive(wide),
            lambda: INTERVAL.numbers(unknown),
            lambda: INTERVAL.array([math.nan]),
            lambda: INTERVAL.array(["x"]),
        ):
            with pytest.raises((Undecided, NotFinite, InvalidValue)):
                refused()
            assert flint.ctx.prec == 77
        for broken in ("add", "matmul", "scores", "affine"):
            with pytest.raises((AttributeError, TypeError)):
                getattr(INTERVAL, broken)(wide, None)
            assert flint.ctx.prec == 77
    finally:
        flint.ctx.prec = before


def test_bits_are_a_whole_number_from_two():
    assert Interval(2).name == Interval().name == "interval"
    assert Interval(2) != Interval() == Interval(128)
    assert Interval(2**20).bits == 2**20
    for bits in (1, 0, -5, True, 2.5, 128.0, "128", None, 2**20 + 1, 2**21):
        with pytest.raises(InvalidValue) as refusal:
            Interval(bits)
        assert str(refusal.value) == (
            "Interval: an interval precision must be a whole number of bits from 2 to 1,048,576; "
            f"received bits = {bits!r}; give one such as 128"
        )


@few
@given(drawn=several(3), fewer=st.integers(16, 60), more=st.integers(2, 200))
def test_a_ball_of_more_bits_meets_that_of_fewer(drawn, fewer, more):
    x, _ = opened([(m / 16, F(0), m) for m, _, _ in drawn])
    coarse, fine = Interval(fewer), Interval(fewer + more)
    for function in (
        lambda a: a.exp(x),
        lambda a: a.tanh(x),
        lambda a: a.normal_cdf(x),
        lambda a: a.divide(x, a.array([3, 7, 11])),
        lambda a: a.sum(a.divide(x, a.array([3, 7, 11]))),
        lambda a: softmax(x, np.full(3, True), a),
    ):
        for wide, narrow in zip(
            map(ends, function(coarse).values), map(ends, function(fine).values), strict=True
        ):
            assert max(wide[0], narrow[0]) <= min(wide[1], narrow[1])
    finest = Interval(fewer + 64)
    assert (finest.radius(finest.exp(x)) <= coarse.radius(coarse.exp(x))).all()


# Definitions of the model


def assert_encloses(a, got, values, tolerance):
    assert_holds(got, values)
    assert (a.radius(got) <= tolerance).all()


@few
@pytest.mark.parametrize(("bits", "tolerance"), [(40, F(1, 2**20)), (128, F(1, 2**100))])
@given(x=st.lists(st.builds(F, st.integers(-20, 20), st.integers(1, 9)), min_size=4, max_size=4))
def test_definitions_of_the_model_enclose_their_values(bits, tolerance, x):
    a = Interval(bits)
    admissible = np.array([True, True, False, True])

    def weight(i):
        def of(*s):
            e = [t.exp() for t in (s[0], s[1], s[3])]
            return s[i].exp() / (e[0] + e[1] + e[2])

        return of

    got = softmax(a.array(x), admissible, a)
    values = [precisely(weight(i), *x) if admissible[i] else F(0) for i in range(4)]
    assert_encloses(a, got, values, tolerance)

    forms = {
        "gelu": lambda t: t * cdf(t),
        "gelu-tanh": lambda t: (
            t / 2 * (1 + ((2 / arb.pi()).sqrt() * (t + arb(fmpq(44715, 10**6)) * t**3)).tanh())
        ),
        "gelu-sigmoid": lambda t: t / (1 + (arb(fmpq(-1702, 1000)) * t).exp()),
        "silu": lambda t: t / (1 + (-t).exp()),
    }
    for name, form in forms.items():
        values = [precisely(form, t) for t in x]
        assert_encloses(a, ACTIVATIONS[name](a.array(x), a), values, tolerance)

    def normalized(i):
        def of(*s):
            mean = (s[0] + s[1] + s[2] + s[3]) / 4
            variance = sum(((t - mean) * (t - mean) for t in s), arb(0)) / 4
            return (s[i] - mean) / (variance + arb(fmpq(1, 10))).sqrt() * (i + 1) + 1

        return of

    norm = LayerNorm(gain=[1, 2, 3, 4], bias=[1, 1, 1, 1], epsilon=F(1, 10))
    values = [precisely(normalized(i), *x) for i in range(4)]
    assert_encloses(a, norm(x, a), values, tolerance)


# Very small, very large


def test_the_exponential_of_a_billion_either_way():
    small, large = INTERVAL.exp(INTERVAL.array([-(10**9)])), INTERVAL.exp(INTERVAL.array([10**9]))
    assert INTERVAL.numbers(small)[0] == 0
    assert 0 < INTERVAL.radius(small)[0] <= F(1, 2**4095)
    assert INTERVAL.positive(small).all()  # the ball itself is above 0
    assert INTERVAL.positive(large).all()
    with pytest.raises(NotFinite, match="below 2"):
        INTERVAL.numbers(large)
    both = INTERVAL.concatenate([small, large], axis=0)
    assert INTERVAL.maximal(both, ALL).tolist() == [False, True]
    product = INTERVAL.multiply(small, large)
    assert_holds(product, [F(1)])
    weights = softmax(INTERVAL.array([0, -(10**9)]), np.full(2, True), INTERVAL)
    assert_holds(weights[:1], [F(1)])
    assert INTERVAL.numbers(weights)[1] == 0


def test_a_midpoint_next_to_zero_is_not_written_out():
    """Its denominator would have 14 billion bits."""
    third = INTERVAL.array([F(1, 3)])
    nearly = INTERVAL.add(
        INTERVAL.subtract(third, third), INTERVAL.exp(INTERVAL.array([-(10**10)]))
    )
    assert INTERVAL.numbers(nearly)[0] == 0
    assert 0 < INTERVAL.radius(nearly)[0] < F(1, 2**127)


def test_numbers_near_the_limits_are_held():
    for value in (F(2) ** 2000, F(2) ** -2000, F(1, 3) * F(2) ** -4100, -(F(2) ** -5000)):
        x = INTERVAL.array([value])
        assert abs(INTERVAL.numbers(x)[0] - value) <= INTERVAL.radius(x)[0]


def test_shown_numbers_are_themselves_and_decimals_hold_the_ball():
    assert INTERVAL.shown(INTERVAL.array([3, "1/4", -2])) == [3, F(1, 4), -2]
    for value in (F(1, 3), F(-2, 7) * 10**30, F(5, 9) / 10**20):
        x = INTERVAL.array([value])
        (text,) = INTERVAL.shown(x)
        middle, radius = re.fullmatch(r"\[(\S+) \+/- (\S+)\]", text).groups()
        low, high = ends(x.values[0])
        assert F(middle) - F(radius) <= low <= value <= high <= F(middle) + F(radius)


def test_an_array_of_one_number_is_an_array():
    x = INTERVAL.array(F(1, 2))
    assert x.shape == ()
    assert INTERVAL.shown(x) == F(1, 2)
    assert INTERVAL.array([1, 2])[0].shape == ()
