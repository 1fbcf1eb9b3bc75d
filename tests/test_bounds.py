"""Derived constants: each is the extreme of its kind, and each bound covers what it bounds."""

import decimal
import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transformist as tf
from transformist import bounds
from transformist.arithmetic import FLOAT16, SYSTEMS, Floating
from transformist.bounds import (
    GELU_BEND,
    GELU_PRODUCT,
    count_length,
    fraction_length,
    gelu_product_scale,
    hash_range_length,
    layernorm_hash_error,
    mean_error,
    mean_length,
    nearest_active_length,
    power_of_two_at_most,
    quadratic_count_length,
    quadratic_length,
    quadratic_sharpness,
    recency_length,
    relu_by_gelu_scale,
    rounding_error,
    scaled_quadratic_length,
    sharpness,
    softmax_error,
    step_zone,
    tie_break_length,
    underflow_sharpness,
)
from transformist.errors import InvalidValue, NotFinite, UnknownName
from transformist.model import Attention, FeedForward, FeedForwardStack, LayerNorm, Sublayer

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


def test_scales_of_products_have_no_least_tolerance_but_zero():
    for tolerance in (Fraction(1, 10**100), Fraction(1, 3 * 10**1000), Fraction(10**400)):
        s, K = gelu_product_scale(tolerance, Fraction(2), "gelu"), GELU_PRODUCT["gelu"]
        assert K * s**2 * 16 <= tolerance < K * (2 * s) ** 2 * 16
    for tolerance, radius in ((0, 1), (-1, 1), (1, 0)):
        with pytest.raises(InvalidValue, match=f"^gelu_product_scale: .*tolerance = {tolerance}"):
            gelu_product_scale(Fraction(tolerance), Fraction(radius), "gelu")
    with pytest.raises(UnknownName, match="gelu_product_scale: no GELU.*'relu'"):
        gelu_product_scale(Fraction(1), Fraction(1), "relu")


def test_a_product_by_gelu_is_built_for_a_tolerance_far_below_float64():
    network = tf.recipe("multiply-by-gelu").build(tolerance="1e-100")
    assert 0 < network.W_1.max() < Fraction(1, 10**49)


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


@pytest.mark.parametrize("name", ["exact", "interval"])
def test_where_nothing_rounds_numbers_may_be_of_any_size(name):
    network = FeedForward(W_1=[[1, 1]], W_2=[[1], [2], [3]])
    x = [[Fraction(10) ** 5000, Fraction(1, 3)], [1, 2]]
    error = rounding_error(network, x, name)
    assert error.shape == (2, 3) and not error.any()
    with pytest.raises(InvalidValue, match=f"carried errors in {name}"):
        rounding_error(network, x, name, carried=Fraction(1, 10**5000))
    with pytest.raises(NotFinite, match="rounding_error: .*scale the inputs down"):
        rounding_error(network, x, "float32")


@pytest.mark.trials(60, 300)
def test_each_rounding_is_counted(trials):
    """One product, one bias, one residual sum: each rounds, and the bound has room for each."""
    rng = np.random.default_rng(3)
    for name in ("float32", "float16"):
        system = SYSTEMS[name]
        u = float(system.unit_roundoff)
        for _ in range(trials):
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


# Lengths up to which scores stay apart, by the operations of the arithmetic itself

NARROW = ("bfloat16", "float16")
FORMATS = (*NARROW, "float32", "float64")
with_float32 = pytest.mark.parametrize(
    "name", [*NARROW, pytest.param("float32", marks=pytest.mark.slow)]
)
in_formats = pytest.mark.parametrize(
    "name", [*NARROW, *[pytest.param(name, marks=pytest.mark.slow) for name in FORMATS[2:]]]
)


def lengths_to_try(system, longest):
    """Every length in a narrow format; in float32 the longest, and some a little shorter."""
    if system.name in NARROW:
        return range(1, longest + 1)
    return (3, longest - 7, longest - 1, longest)


def quotients(system, numerators, n):
    """fl(j/n)."""
    return system.divide(system.array(numerators.astype(float)), system.array([float(n)]))


def scored(system, query, *keys):
    """The scores of one query against many keys, as float64."""
    k = np.stack(np.broadcast_arrays(*keys), axis=-1)
    return system.numbers(system.scores(np.array([query], dtype=system.dtype), k))[0]


def increase(values):
    return bool((np.diff(values) > 0).all())


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
@with_float32
def test_up_to_the_fraction_length_scores_of_neighbours_stay_in_order(name, step):
    system = SYSTEMS[name]
    longest = fraction_length(system)
    assert longest == {"bfloat16": 64, "float16": 512, "float32": 2**22}[name]
    for n in lengths_to_try(system, longest)[::-step]:
        place = quotients(system, np.arange(1, n + 1), n)
        if name == "float32":
            for i in {1, 2, 3, n // 2, n - 1, n}:
                if 1 <= i <= n:
                    assert increase(scored(system, [place[i - 1]], place)), (n, i)
        else:
            # All queries of a length at once: row i holds the scores of position i.
            scores = system.numbers(system.scores(place[:, None], place[:, None]))
            assert scores.shape == (n, n)
            assert increase(scores), n


@with_float32
def test_up_to_the_nearest_active_length_scores_of_active_positions_stay_apart(name):
    system = SYSTEMS[name]
    longest, u = nearest_active_length(system), system.unit_roundoff
    assert Fraction(1, longest) > 3 * u >= Fraction(1, longest + 1)
    for n in lengths_to_try(system, longest):
        place = quotients(system, np.arange(1, n + 1), n)
        one = system.array([1.0])
        left = scored(system, [1], system.add(one, place))
        right = scored(system, [1], system.subtract(one, place))
        assert increase(left) and increase(-right), n
        # an active position has 1 + j/n, an inactive one to its left at most (n − 1)/n; to the
        # right it has 1 − j/n, which is no less than 0, and an inactive one −j/n
        assert left[0] > float(place[-2] if n > 1 else 0)
        assert right[-1] > -float(place[0])


@with_float32
def test_up_to_the_recency_length_all_scores_differ(name):
    system = SYSTEMS[name]
    longest, u = recency_length(system), system.unit_roundoff
    assert Fraction(1, longest) > 5 * u >= Fraction(1, longest + 1)
    for n in lengths_to_try(system, longest):
        place = quotients(system, np.arange(1, n + 1), n)
        zero, one = system.array([0.0]), system.array([1.0])
        for d_key in (1, 2, 5) if name != "float32" else (3,):
            query, rest = [1, 1, *[0] * d_key][: max(d_key, 2)], [zero] * (d_key - 2)
            if d_key == 1:  # the sum stored beforehand
                low = scored(system, [1], place)
                high = scored(system, [1], system.add(one, place))
            else:
                key = np.broadcast_to(zero, place.shape)
                low = scored(system, query, key, place, *rest)
                high = scored(system, query, key + system.dtype.type(1), place, *rest)
            assert increase(np.concatenate([low, high])), (n, d_key)


def tie_break_terms(system, term, n):
    """fl(t(j)) for j from 1 to n, and the same in float64."""
    j = np.arange(1, n + 1)
    sign = -1 if term.startswith("-") else 1
    if term.endswith("n"):
        return quotients(system, sign * j, n), sign * j / n
    return system.divide(system.array([float(sign)]), system.array(j.astype(float))), sign / j


@pytest.mark.parametrize("term", ["-1/i", "i/n", "1/i", "-i/n"])
@with_float32
def test_up_to_the_tie_break_length_scores_keep_their_order(name, term):
    system = SYSTEMS[name]
    longest = tie_break_length(term=term, arithmetic=system)
    u = system.unit_roundoff

    def apart(n):
        """Twice the least difference of terms, for ±1/j; the difference, for ±j/n."""
        return Fraction(1, n) if term.endswith("n") else Fraction(2, n * (n - 1))

    assert apart(longest) > 5 * u >= apart(longest + 1)
    for n in lengths_to_try(system, longest):
        rounded, real = tie_break_terms(system, term, n)
        flags = np.repeat(system.array([0.0, 1.0]), n)
        scores = scored(system, [1, 1], flags, np.concatenate([rounded, rounded]))
        order = np.argsort(np.concatenate([real, 1 + real]), kind="stable")
        assert increase(scores[order]), n


@with_float32
def test_up_to_the_quadratic_length_every_row_has_one_maximum_at_the_query(name):
    system = SYSTEMS[name]
    n = quadratic_length(system)
    j = np.arange(1, n + 1, dtype=float)
    number, square = system.array(j), system.array(j * j)
    keys = (system.multiply(number, system.array([2.0])), -square)
    for q in range(1, n + 1) if name in NARROW else (1, 2, 1000, *range(n - 300, n + 1)):
        scores = scored(system, [q, 1], *keys)
        best = np.flatnonzero(scores == scores.max()) + 1
        assert best.tolist() == [q]


@with_float32
def test_up_to_the_quadratic_count_length_every_count_is_looked_up_as_itself(name):
    system = SYSTEMS[name]
    longest = quadratic_count_length(system)
    u, w = system.unit_roundoff, system.accumulator_roundoff
    assert longest**2 * (6 * u + 9 * w) <= 1 < (longest + 1) ** 2 * (6 * u + 9 * w)
    for n in lengths_to_try(system, longest):
        (weight,) = quotients(system, np.array([1]), n + 1)
        i = np.arange(n + 1, dtype=float)
        number, square = system.array(i), system.array(i * i)
        keys = (system.multiply(number, system.array([2.0])), -square)
        shares = np.cumsum(np.full(n, weight, system.accumulator), dtype=system.accumulator)
        shares = [system.dtype.type(0), *shares.astype(system.dtype)]
        for C in range(n + 1):
            scores = scored(system, [shares[C], weight], *keys)
            assert np.flatnonzero(scores == scores.max()).tolist() == [C], (n, C)


def scaled_queries(n, C, some=False):
    """C and 1 times 1/n, 1/i for every i (or some), and the factor of lh(C), to float64."""
    for i in sorted({1, 2, 3, 7, n // 3, n // 2, n - 1, n} - {0}) if some else range(1, n + 1):
        yield C / i, np.full(len(C), 1 / i)
    number = C.astype(np.longdouble)
    root = np.sqrt(2 / (number * number + 1))
    yield (number * root).astype(float), root.astype(float)


def found_from_every_scale(system, n, near=None):
    """Whether each C ≤ n is found from [x C, x]; with `near`, C and j at most that far from n."""
    j = np.arange(max(1, n - near) if near else 1, n + 1, dtype=float)
    C = j[near // 2 : -1 : 7] if near else j
    key = np.stack([system.array(2 * j), system.array(-j * j)], axis=-1)
    for number, one in scaled_queries(n, C, some=near is not None):
        query = np.stack([system.array(number), system.array(one)], axis=-1)
        scores = system.numbers(system.scores(query, key))
        best = scores == scores.max(axis=-1, keepdims=True)
        if not ((best.sum(axis=-1) == 1) & (j[best.argmax(axis=-1)] == C)).all():
            return False
    return True


@pytest.mark.parametrize("name", FORMATS)
def test_up_to_the_scaled_quadratic_length_every_number_is_found_and_not_to_twice_it(name):
    system = SYSTEMS[name]
    longest, narrow = scaled_quadratic_length(system), name in NARROW
    u, w = system.unit_roundoff, system.accumulator_roundoff
    g = (1 + w) * (1 + u) * ((1 + u) if w < u else 1) - 1

    def by_how_much(n):
        """A(C) − A(C + 1) − g (A(C) + A(C + 1)) at C = n, as the proof bounds it from below."""
        terms = 6 * n * n + 4 * n + 1
        apart = (1 - u) - 4 * n * u - w * (1 + u) * terms
        return apart - g * (2 * n * n + (u + w * (1 + u)) * terms)

    assert by_how_much(longest) > 0 >= by_how_much(longest + 1)
    for n in lengths_to_try(system, longest):
        assert found_from_every_scale(system, n, near=None if narrow else 200), n
    beyond = range(longest + 1, 2 * longest + 1, 1 if narrow else longest // 10)
    assert not all(found_from_every_scale(system, n, None if narrow else 200) for n in beyond)


def hashes(system, n, scale):
    """For C from 1 to n, LN([x C, x, −x C, −x]) in a format, and lh(C)."""
    C = np.arange(1, n + 1, dtype=np.longdouble)
    x = scale(n) * np.ones_like(C)
    norm = LayerNorm(gain=np.ones(4), W_N=[[1, 0], [0, 1], [-1, 0], [0, -1]])
    z = np.stack([C * x, x], axis=-1).astype(np.float64)
    root = np.sqrt(2 / (C * C + 1))
    return system.numbers(norm(system.array(z), system)), np.stack(
        [C * root, root, -C * root, -root], axis=-1
    )


SCALES = {"1": lambda n: 1, "1/n": lambda n: np.longdouble(1) / n, "1/3": lambda n: 1 / 3}


@pytest.mark.parametrize("name", FORMATS)
def test_a_layernorm_hash_stays_within_its_error_and_comes_near_it(name):
    system, nearest = SYSTEMS[name], 0.0
    longest = hash_range_length(system)
    for n in [n for n in (*range(1, 40), 64, 100, 128, 1000, 5000) if n <= longest]:
        for scale in SCALES.values():
            got, wanted = hashes(system, n, scale)
            share = float(np.abs(got - wanted).max()) / layernorm_hash_error(n, system)
            assert share <= 1, n
            nearest = max(nearest, share)
    assert nearest > 0.25
    u = float(system.unit_roundoff)
    assert 7 * u < layernorm_hash_error(8, system) < 11 * u


def test_beyond_the_hash_range_length_squares_over_and_underflow():
    """The length is 1.4 times short of the overflow; numbers underflow little by little."""
    system = SYSTEMS["float16"]
    n = hash_range_length(system)
    normal = 2.0**-14
    assert (1 / n) ** 2 >= normal > (1 / (n + 1)) ** 2
    got, wanted = hashes(system, 181, SCALES["1"])
    assert np.abs(got - wanted).max() > 1  # 2 (181² + 1) is no float16
    for scale, first in (("1", 181), ("1/n", 615)):
        for n in (first - 1, first):
            got, wanted = hashes(system, n, SCALES[scale])
            fits = np.abs(got - wanted).max() <= layernorm_hash_error(128, system)
            assert fits == (n < first), (scale, n)
    assert layernorm_hash_error(10**6, system) == math.inf


def test_lengths_are_unbounded_where_nothing_rounds():
    exact = SYSTEMS["exact"]
    bounds = (fraction_length, nearest_active_length, recency_length, quadratic_length)
    assert all(bound(exact) is None for bound in (*bounds, quadratic_count_length))
    assert tie_break_length(term="i/n", arithmetic=exact) is None
    assert scaled_quadratic_length(exact) is None and hash_range_length(exact) is None
    assert layernorm_hash_error(9, exact) == 0


BESIDES = {
    "d_key": 3,
    "n": 5,
    "term": "i/n",
    "period": 3,
    "size": Fraction(1),
    "scores": 2.0,
    "remainder": Fraction(1, 4),
    "network": FeedForward(W_1=[[0.3]], W_2=[[0.7]]),
    "x": [[0.1]],
    "y": [1],
    "total": 4,
    "gap": (1, 1),
    "largest": Fraction(1, 16),
}
"""What the functions of `bounds` take beside an arithmetic."""

OF_ARITHMETICS = [
    name
    for name in bounds.__all__
    if callable(getattr(bounds, name))
    and "arithmetic" in inspect.signature(getattr(bounds, name)).parameters
]


def answer(name, arithmetic):
    """A bound for an arithmetic, or the refusal of it."""
    function = getattr(bounds, name)
    wanted = inspect.signature(function).parameters.items()
    others = BESIDES | {"model": tf.recipe("original-transformer").build(layers=1)}
    values = {k: others[k] for k, p in wanted if p.default is p.empty and k != "arithmetic"}
    if name == "transformer_error":
        values["x"] = (2, 7, 1)
    if name in ("sum_error", "dot_error"):
        values["x"] = [1]
    try:
        return np.asarray(function(**values, arithmetic=arithmetic)).tolist()
    except InvalidValue as refusal:
        return str(refusal)


@pytest.mark.parametrize("name", OF_ARITHMETICS)
def test_an_arithmetic_is_given_by_its_name_too(name):
    assert len(OF_ARITHMETICS) >= 21
    answers = {system: answer(name, system) for system in SYSTEMS}
    assert answers == {key: answer(name, system) for key, system in SYSTEMS.items()}
    if name != "sum_error" and name != "dot_error":
        assert answers["float32"] != answers["exact"]
    with pytest.raises(UnknownName, match="no arithmetic has this name.*float16"):
        answer(name, "float61")


# Sharpness


def four_bits_below(x):
    """The largest number of 4 significant bits below x, which has 4 itself."""
    step = power_of_two_at_most(x) / 8
    return x - (step / 2 if x == power_of_two_at_most(x) else step)


def elsewhere(scores):
    """The softmax weight that does not go to the first score."""
    e = np.exp(scores - scores.max())
    return 1 - e[0] / e.sum()


GAPS = [(Fraction(1), 1), (Fraction(1), 64), (Fraction(3, 100), 2), (Fraction(7), 5)]
TOLERANCES = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 100), Fraction(1, 10**6)]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_sharpness_leaves_the_tolerance_elsewhere_and_the_next_number_below_does_not(
    gap, tolerance
):
    dot, d_key = gap
    for N in (2, 3, 10, 64, 1000):
        s = sharpness(gap, N, tolerance)
        assert (s / power_of_two_at_most(s) * 8).denominator == 1  # 4 bits

        def left(s, N=N):
            return (N - 1) * math.exp(-float(s) * float(dot) / math.sqrt(d_key))

        scores = np.array([0.0] + [-float(s) * float(dot) / math.sqrt(d_key)] * (N - 1))
        assert elsewhere(scores) <= left(s) * (1 + 1e-9)
        assert elsewhere(scores) <= tolerance and left(s) <= tolerance
        assert left(four_bits_below(s)) > tolerance


@pytest.mark.parametrize("tolerance", [*TOLERANCES, Fraction(1, 37)])
def test_quadratic_sharpness_leaves_the_tolerance_elsewhere_whatever_the_length(tolerance):
    s = quadratic_sharpness(tolerance)

    def left(s):
        x = math.exp(-float(s) / math.sqrt(2))
        return 2 * x / (1 - x**3)

    for n in (1, 2, 3, 10, 500):
        for q in {1, (n + 1) // 2, n}:
            m = np.array(sorted(range(1, n + 1), key=lambda j: abs(j - q))) - q
            assert elsewhere(-float(s) * m**2 / math.sqrt(2)) <= min(tolerance, left(s))
    assert left(s) <= tolerance
    if tolerance < 1:
        assert left(four_bits_below(s)) > tolerance


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("gap", [(Fraction(1), 1), (Fraction(1), 64), (Fraction(1, 2), 2)])
def test_underflow_sharpness_makes_every_other_weight_zero(name, gap):
    system = SYSTEMS[name]
    dot, d_key = gap
    largest = Fraction(1)
    s = underflow_sharpness(gap, largest, system)
    assert power_of_two_at_most(s) == s

    def weights(s):
        """Softmax of the two dot products, the best and the next, by a head."""
        zeros = np.zeros((1, d_key - 1))
        head = Attention(
            W_Q=np.concatenate([[[float(s)]], zeros], axis=1).T,
            W_K=np.concatenate([[[1.0]], zeros], axis=1).T,
            W_V=[[1]],
        )
        z = system.array([[1.0], [float(largest - dot)]])
        return system.numbers(head.weights(z, system))[0].tolist()

    assert weights(s) == [1, 0]
    assert weights(s / 4)[1] > 0  # half may do: one power of two is kept in hand


def test_underflow_sharpness_refuses_what_the_format_does_not_resolve():
    for name, largest in (("bfloat16", 2**6), ("float16", 2**9), ("float32", 2**22)):
        with pytest.raises(InvalidValue, match="the gap must stay above"):
            underflow_sharpness((Fraction(1), 1), Fraction(largest), SYSTEMS[name])
    with pytest.raises(InvalidValue, match="float16"):  # would overflow
        underflow_sharpness((Fraction(1, 700), 64), Fraction(1, 10), SYSTEMS["float16"])


# Means and softmax


@in_formats
@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_means_stay_within_their_bound_and_come_near_it(name, weighting):
    system = SYSTEMS[name]
    rng = np.random.default_rng(5)
    head = Attention(W_Q=[[0.0]], W_K=[[0.0]], W_V=[[1.0]], weighting=weighting, mask="future")
    nearest = {}
    for magnitude in (1.0, 2.0**-12):
        for signs in (True, False):
            x = rng.uniform(-magnitude if signs else magnitude / 2, magnitude, (2, 300, 1))
            x = system.array(x)
            size = Fraction(float(np.abs(system.numbers(x)).max()))
            got = system.numbers(head(x, system))[..., 0]
            for case, means in zip(system.numbers(x)[..., 0], got, strict=True):
                total = Fraction(0)
                for n, (value, mean) in enumerate(zip(case, means, strict=True), start=1):
                    total += Fraction(float(value))
                    error = abs(Fraction(float(mean)) - total / n)
                    bound = Fraction(mean_error(n, size, system))
                    assert error <= bound, (n, magnitude)
                    nearest[n] = max(nearest.get(n, 0), float(error / bound))
    assert max(nearest.values()) > 0.01
    assert max(share for n, share in nearest.items() if n > 250) > 0.001


FLOATS = {name: system for name, system in SYSTEMS.items() if isinstance(system, Floating)}


def mean_of_ones(system, n):
    """By the operations of attention: their count, the weight, and the sum of weights times 1."""
    weight = system.divide(system.array([1.0]), system.sum(np.ones(n, system.dtype)))
    return float(system.numbers(system.sum(np.full(n, weight[0])))[0])


def mean_of(system, x):
    weight = system.divide(system.array([1.0]), system.sum(np.ones(len(x), system.dtype)))
    return float(system.numbers(system.matmul(np.full((1, len(x)), weight[0]), x[:, None]))[0, 0])


@pytest.mark.parametrize("name", FLOATS)
def test_up_to_the_count_length_positions_are_counted_and_means_have_a_bound(name):
    system, longest = FLOATS[name], count_length(name)
    w, largest = system.accumulator_roundoff, Fraction(system.largest)
    assert longest * w <= Fraction(1, 16) and longest <= largest
    assert (longest + 1) * w > Fraction(1, 16) or longest + 1 > largest
    assert mean_error(longest, Fraction(1), system) < math.inf
    tried = {1, 2, 3, 17, 367, longest // 2, longest - 1, longest} if longest < 2**21 else {999}
    for n in tried:
        count = float(system.numbers(system.sum(np.ones(n, system.dtype)))[0])
        assert abs(count - n) <= system.unit_roundoff * n
        assert abs(mean_of_ones(system, n) - 1) <= mean_error(n, Fraction(1), system)
    assert mean_error(int(min(largest, 1 / w)) + 1, Fraction(1), system) == math.inf


@pytest.mark.parametrize("name", FLOATS)
def test_up_to_the_mean_length_means_are_within_an_eighth(name):
    system, longest = FLOATS[name], mean_length(name)
    if system.unit_roundoff < Fraction(1, 256) or name == "bfloat16":
        by_count = int(min(1 / (16 * system.accumulator_roundoff), Fraction(system.largest)))
        assert longest == by_count == count_length(name)
    rng, most = np.random.default_rng(3), min(longest, 2**20)
    for n in {*range(1, min(most, 400) + 1), most // 3, most - 1, most} - {0, -1}:
        assert abs(mean_of_ones(system, n) - 1) < 1 / 8, n
    for n in sorted({*range(1, min(most, 300) + 1, 7), min(most, 20_000)} - {0}):
        x = system.array(rng.uniform(-1, 1, n) if n % 2 else rng.uniform(0.5, 1, n))
        true = sum(map(Fraction, system.numbers(x))) / n
        assert abs(Fraction(mean_of(system, x)) - true) < Fraction(1, 8), n
    if not longest:  # no mean is safe where some of few numbers are further off
        assert max(abs(mean_of_ones(system, n) - 1) for n in range(1, 448)) > 1 / 8
    assert mean_length("exact") is None and count_length("interval") is None


def soft_lookup(case, n):
    """The head, its vectors of queries, positions and values, and a bound of its scores."""
    j = np.arange(1, n + 1)[:, None]
    rng = np.random.default_rng(n)
    values = np.round(rng.uniform(0, 1, (n, 1)) * 64) / 64
    asked = rng.integers(1, n + 1, (n, 1))
    if case == "quadratic":
        head = tf.recipe("quadratic-lookup-soft").build()
        scores = float(quadratic_sharpness(Fraction(1, 4))) * n * n
        return head, np.concatenate([asked, j**0, j, j * j, values], axis=1), scores
    head = tf.recipe("soften").build(max_length=32)
    eye = np.eye(32)
    scores = float(head.W_Q.max()) / math.sqrt(32)
    return head, np.concatenate([eye[asked[:, 0] - 1], eye[:n], values], axis=1), scores


def by_definition(head, z, digits):
    """Softmax attention to many digits."""
    context = decimal.Context(prec=digits)

    def real(x):
        return context.create_decimal(x.numerator) / context.create_decimal(x.denominator)

    with decimal.localcontext(context):
        root = context.sqrt(decimal.Decimal(head.W_Q.shape[0]))
        W_Q, W_K = head.W_Q.astype(float), head.W_K.astype(float)
        keys = z @ W_K.T
        means = []
        for query in z @ W_Q.T:
            dots = [
                sum(
                    (Fraction(a) * Fraction(b) for a, b in zip(query, key, strict=True)), Fraction()
                )
                for key in keys.tolist()
            ]
            e = [context.exp(real(dot - max(dots)) / root) for dot in dots]
            values = [context.create_decimal(float(value)) for value in z[:, -1]]
            means.append(sum(x * v for x, v in zip(e, values, strict=True)) / sum(e))
        return means


@in_formats
@pytest.mark.parametrize("case", ["quadratic", pytest.param("one-hot", marks=pytest.mark.slow)])
def test_soft_lookups_stay_within_the_softmax_error(name, case):
    system = SYSTEMS[name]
    tried = 0
    for n in (1, 2, 3, 4, 7, 16, 31):
        head, z, scores = soft_lookup(case, n)
        bound = softmax_error(n, scores, Fraction(1, 4), system)
        if math.isinf(bound) or n * n > 2 ** (system.precision + 1):
            continue
        rounded = system.array(z)
        if (system.numbers(rounded) != z).any():
            continue
        got = system.numbers(head(rounded, system))[:, 0]
        real = by_definition(head, z, 40)
        errors = [abs(Fraction(a) - Fraction(b)) for a, b in zip(got.tolist(), real, strict=True)]
        assert max(errors) <= bound, n
        tried += 1
    assert tried >= (2 if name in NARROW else 6)


def test_nothing_rounds_in_exact_arithmetic():
    exact = SYSTEMS["exact"]
    assert mean_error(300, Fraction(5), exact) == 0
    assert softmax_error(300, 1e6, Fraction(1, 4), exact) == 0


def test_what_is_no_gap_and_no_share_is_refused():
    for gap in ((0, 1), (1, 0), (-1, 2), 1, ("x", 1)):
        with pytest.raises(InvalidValue, match="gap must be a pair"):
            sharpness(gap, 10, Fraction(1, 4))
    for tolerance in (0, 1, 2, "x", -1):
        with pytest.raises(InvalidValue, match="between 0 and 1"):
            sharpness((1, 1), 10, tolerance)
        with pytest.raises(InvalidValue, match="between 0 and 1"):
            quadratic_sharpness(tolerance)
    with pytest.raises(InvalidValue, match="float format") as refusal:
        underflow_sharpness((1, 1), 1, "exact")
    assert all((name in refusal.value.remedy) == (name in FLOATS) for name in SYSTEMS)
    assert mean_error(70_000, Fraction(1), FLOAT16) == math.inf  # the count of positions overflows


@pytest.mark.parametrize("order", [*bounds.ORDERS])
def test_an_order_of_summation_is_taken_by_its_name(order):
    by_name = mean_error(9, Fraction(1), "float32", order)
    assert by_name == mean_error(9, Fraction(1), "float32", bounds.ORDERS[order])


def test_an_order_that_there_is_not_is_refused():
    model = tf.recipe("dyck-1").build(max_length=8)
    for call in (
        lambda order: mean_error(9, Fraction(1), "float32", order),
        lambda order: bounds.sum_error([1], "float32", order),
        lambda order: bounds.dot_error([1], [1], "float32", order),
        lambda order: tf.certify(model, order=order),
    ):
        with pytest.raises(UnknownName, match="no order of summation has this name"):
            call("referense")
