"""Sums of floats and what softmax leaves elsewhere: bounds reached, and never exceeded."""

import decimal
import itertools
import math
import random
from fractions import Fraction as F

import numpy as np
import pytest

from transformist.arithmetic import SYSTEMS, Floating
from transformist.bounds import (
    dot_error,
    printed_remainder,
    softmax_remainder,
    sum_error,
    sum_error_within,
)
from transformist.errors import InvalidValue, NotFinite, ShapeMismatch, UnknownName

FLOATS = {name: system for name, system in SYSTEMS.items() if isinstance(system, Floating)}
in_formats = pytest.mark.parametrize("name", FLOATS)


def tree(terms, source):
    """A sum in a random grouping, each addition in the type of the terms."""
    terms = list(terms)
    while len(terms) > 1:
        left, right = (terms.pop(source.randrange(len(terms))) for _ in range(2))
        terms.append(left + right)
    return terms[0]


def in_blocks(terms, size):
    """The sum of the sums of blocks, each from left to right."""
    parts = [tree_left(terms[start : start + size]) for start in range(0, len(terms), size)]
    return tree_left(parts)


def tree_left(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def stored(value, system):
    """A value of the accumulator, as the format stores it."""
    return F(float(np.asarray(value).astype(system.dtype).astype(np.float64)))


def drawn(system, rng, n):
    """Numbers of a format: of one magnitude, of many, or that cancel."""
    scale = {0: 1.0, 1: np.exp2(rng.integers(-6, 6, size=n)), 2: 2.0**-5}[int(rng.integers(3))]
    x = system.array(rng.normal(size=n) * scale)
    return system.array(np.concatenate([system.numbers(x), -system.numbers(x)[::-1][: n // 2]]))


@in_formats
def test_sums_in_every_order(name):
    system, source = FLOATS[name], random.Random(0)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = drawn(system, rng, int(rng.integers(1, 40)))
        values = system.numbers(x)
        true = sum(map(F, values))
        anyhow, reference = (sum_error(values, system, order) for order in ("any", "reference"))
        within = sum_error_within(len(x), sum(abs(F(v)) for v in values), system)
        assert within >= anyhow
        terms = x.astype(system.accumulator)
        sums = [tree(terms, source) for _ in range(20)]
        sums += [in_blocks(terms, size) for size in (1, 2, 7)]
        sums += [tree_left(np.sort(terms)), np.sum(terms)]
        assert max(abs(stored(each, system) - true) for each in sums) <= anyhow
        got = F(float(system.numbers(system.sum(x[None]))[0, 0]))
        assert abs(got - true) <= reference


@in_formats
def test_the_bounds_of_sums_are_reached(name):
    """1 + w + … + w loses every w in the accumulator; a format that stores more coarsely, half."""
    system = FLOATS[name]
    w = system.accumulator_roundoff
    if system.unit_roundoff == w:
        for n in (2, 3, 100):
            x = [1, *[w] * (n - 1)]
            got = F(float(system.numbers(system.sum(system.array([x])))[0, 0]))
            error = sum(x) - got
            assert error == (n - 1) * w == sum_error(x, system)
            assert error > F(99, 100) * sum_error(x, system, "any")
    else:
        u = system.unit_roundoff
        x = [1, u]
        got = F(float(system.numbers(system.sum(system.array([x])))[0, 0]))
        assert abs(got - 1 - u) == u
        assert F(3, 4) * sum_error(x, system, "any") < u <= sum_error(x, system)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_every_sum_of_three_at_the_edges_of_binades(name, step):
    """Where additions round the most: powers of two, their neighbours, halves of their spacing."""
    system = FLOATS[name]
    u = float(system.unit_roundoff)
    axis = [
        1,
        1 - u,
        1 + 2 * u,
        u,
        u * (1 + 2 * u),
        u / 2,
        2 - 2 * u,
        3 * u,
        float(system.smallest),
    ]
    axis = np.array([sign * each for each in axis for sign in (1, -1)], dtype=system.dtype)
    worst = {"any": F(0), "reference": F(0)}
    for x in itertools.islice(itertools.product(axis, repeat=3), 0, None, step):
        values = [float(each) for each in x]
        true = sum(map(F, values))
        left = F(float((x[0] + x[1]) + x[2]))
        right = F(float(x[0] + (x[1] + x[2])))
        anyhow, reference = (sum_error(values, system, order) for order in worst)
        assert abs(left - true) <= reference
        assert max(abs(left - true), abs(right - true)) <= anyhow
        worst["any"] = max(worst["any"], abs(left - true) / anyhow)
        if reference:
            worst["reference"] = max(worst["reference"], abs(left - true) / reference)
    assert worst["reference"] == 1 and worst["any"] > F(9, 10)


@pytest.mark.parametrize("name", [n for n in FLOATS if FLOATS[n].dtype.itemsize <= 2])
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_sum_of_two_in_a_narrow_format(name, step):
    """A grid of all exponents and a few digits; storing is what rounds."""
    system = FLOATS[name]
    lowest, highest = math.log2(system.smallest), math.floor(math.log2(system.largest))
    digits = (1, 1 + 2 * float(system.unit_roundoff), 1.5)
    powers = range(int(lowest), highest + 1, 1 if highest < 20 else 7)
    axis = system.array([m * 2.0**e for e in powers for m in digits])
    values = system.numbers(axis)
    for x, value in zip(axis[::step], values[::step], strict=True):
        pairs = np.stack([np.full_like(axis, x), -axis], axis=-1)
        got = system.numbers(system.sum(pairs))[:, 0]
        for result, other in zip(got, values, strict=True):
            bound = sum_error([value, -other], system)
            assert abs(F(result) - F(value) + F(other)) <= bound


@in_formats
def test_dot_products(name):
    system, source, nearest = FLOATS[name], random.Random(1), F(0)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, y = (drawn(system, np.random.default_rng([seed, k]), 6) for k in (0, 1))
        if rng.uniform() < 0.3:  # products that underflow
            x = system.array(system.numbers(x) * 2.0 ** (math.log2(system.smallest) / 1.5))
        left, right = system.numbers(x), system.numbers(y)
        true = sum(F(p) * F(q) for p, q in zip(left, right, strict=True))
        bounds = {order: dot_error(left, right, system, order) for order in ("any", "reference")}
        with np.errstate(under="ignore"):
            products = x.astype(system.accumulator) * y.astype(system.accumulator)
            sums = [stored(tree(products, source), system) for _ in range(20)]
        assert max(abs(each - true) for each in sums) <= bounds["any"]
        got = F(float(system.numbers(system.affine(x[None], y[None]))[0, 0]))
        assert abs(got - true) <= bounds["reference"] <= bounds["any"] * F(2)
        nearest = max(nearest, abs(got - true) / bounds["reference"])
    assert nearest > F(1, 4)


def test_a_product_that_rounds_is_counted():
    """One product: the bound is what it rounds by, where it may round at all."""
    for name, system in FLOATS.items():
        u, w = system.unit_roundoff, system.accumulator_roundoff
        x = 1 + 2 * u
        bound = dot_error([x], [x], system)
        got = F(
            float(system.numbers(system.affine(system.array([[x]]), system.array([[x]])))[0, 0])
        )
        assert 0 < abs(got - x * x) <= bound, name
        assert bound <= (u + w) * x * x + F(system.smallest)


def test_a_product_that_underflows_is_counted():
    for name in ("float32", "float64"):
        x, y = FLOATS[name].smallest, 0.75
        got = FLOATS[name].numbers(FLOATS[name].affine(*map(FLOATS[name].array, ([[x]], [[y]]))))
        error = abs(F(got[0, 0]) - F(x) * F(y))
        assert F(x) / 4 == error <= dot_error([x], [y], name) <= F(x)


def test_where_a_sum_may_overflow_the_bound_is_infinite():
    for system in FLOATS.values():
        largest = F(system.largest)
        assert sum_error([largest, -largest / 2], system) < math.inf
        assert sum_error([largest, largest], system) == math.inf
        assert sum_error_within(3, largest * 2, system) == math.inf
        if largest > F(float(np.finfo(system.accumulator).max)) / 4:  # inf − … on the way
            for order in ("any", "reference"):
                assert sum_error([largest, largest, -largest], system, order) == math.inf
            assert sum_error([largest, -largest, largest / 2], system) < math.inf
            assert dot_error([largest, largest], [2, -2], system) == math.inf
        else:
            cancelling = [largest, largest, -largest, -largest / 2]
            assert sum_error(cancelling, system, "any") < largest


def test_what_does_not_round_and_what_is_no_sum():
    assert sum_error([F(1, 3), 5], "exact") == dot_error([F(1, 3)], [7], "exact") == 0
    for order in ("any", "reference"):
        assert sum_error([], "float32", order) == 0
        assert sum_error([3], "float32", order) == 0
        assert dot_error([], [], "float64", order) == 0
    assert sum_error_within(0, 0, "float32") == 0
    with pytest.raises(UnknownName, match="no order of summation.*choose from reference, any"):
        sum_error([1], "float32", "sorted")
    with pytest.raises(InvalidValue, match="numbers that float16 holds; received 0.1, which it"):
        sum_error([1, 0.1], "float16")
    with pytest.raises(NotFinite, match="65504"):
        sum_error([1e6], "float16")
    with pytest.raises(ShapeMismatch, match="must be a list of numbers"):
        sum_error([[1]], "float16")
    with pytest.raises(InvalidValue, match="^dot_error: .*received 0.1"):
        dot_error([1], [0.1], "float16")
    for wrong in (([[1]], [1]), ([1], 1)):
        with pytest.raises(ShapeMismatch, match="^dot_error: .*must be a list of numbers"):
            dot_error(*wrong, "float16")
    with pytest.raises(ShapeMismatch, match="2 and 1 numbers"):
        dot_error([1, 2], [1], "float16")
    for n, total in ((-1, 1), (1, -1), (1, "x")):
        with pytest.raises(
            InvalidValue, match="^sum_error_within: (n|total).* must be a .*at least 0"
        ):
            sum_error_within(n, total, "float32")


# Lemma 5.3


def power(x):
    """e^x to 60 digits."""
    with decimal.localcontext(prec=60, Emin=-(10**8)):
        return F((decimal.Decimal(F(x).numerator) / F(x).denominator).exp())


def remainder(scores):
    """‖hardmax(s) − softmax(s)‖₁."""
    exponentials = [power(score) for score in scores]
    total, best = sum(exponentials), scores.index(max(scores))
    return sum(abs(e / total - (k == best)) for k, e in enumerate(exponentials))


def test_the_remainder_of_softmax_is_reached_and_not_exceeded():
    source = random.Random(0)
    for n, gap in itertools.product((1, 2, 3, 10, 60), (F(1, 1000), F(1, 3), 1, 7, 40, 800)):
        bound = softmax_remainder(gap, n)
        reached = remainder([gap, *[0] * (n - 1)])
        assert reached <= bound
        if gap < 700:
            assert bound <= float(reached) * (1 + 1e-11)
        assert n == 1 or bound < printed_remainder(gap, n)
        for _ in range(20):
            below = [-F(source.expovariate(1)) for _ in range(n - 1)]
            assert remainder([gap, *below]) <= bound
        if n > 1:
            closer = [gap, *[0] * (n - 2), gap / 2]
            assert remainder(closer) > bound or gap == 800


def test_the_printed_remainder():
    for gap, n in ((0, 4), (1, 4), (F(1, 3), 7), (700, 2), (740, 3), (2000, 5)):
        bound = printed_remainder(gap, n)
        printed = 2 * n * power(-F(gap))
        assert printed <= bound <= float(printed) * (1 + 1e-11) + 1e-300
    for function, (gap, n) in itertools.product(
        (softmax_remainder, printed_remainder), ((-1, 3), (1, 0), ("x", 3), (math.nan, 2))
    ):
        with pytest.raises(
            InvalidValue, match=f"^{function.__name__}: (gap|n).* must be .* at least"
        ):
            function(gap, n)
