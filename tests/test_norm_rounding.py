"""The rounding bound of norms, against the definition in rationals with roots to 2⁻²⁰⁰."""

import itertools
import math
from fractions import Fraction as F

import ml_dtypes
import numpy as np
import pytest

from transformist.arithmetic import SYSTEMS, Floating
from transformist.errors import InvalidValue, UndefinedValue
from transformist.model import (
    Attention,
    FeedForward,
    FeedForwardStack,
    Heads,
    LayerNorm,
    Sublayer,
    rationals,
)
from transformist.rounding import near_values, rounding_error

FORMATS = [
    name
    for name, system in SYSTEMS.items()
    if isinstance(system, Floating) and system.unit_roundoff <= F(1, 256)
]
in_formats = pytest.mark.parametrize("name", FORMATS)


def root(x):
    """√x of a rational to 2⁻²⁰⁰ of itself."""
    scale = 4 ** max(0, 220 + x.denominator.bit_length() - x.numerator.bit_length())
    return F(math.isqrt(x.numerator * x.denominator * scale), x.denominator) / math.isqrt(scale)


def normed(norm, x):
    x = x if norm.W_N is None else rationals(norm.W_N) @ x
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x) + F(norm.epsilon.item())
    deviation = root(variance)
    return (x - mean) / deviation * rationals(norm.gain) + rationals(norm.bias)


def real(part, x):
    """The value in real numbers, for one vector of rationals."""
    if isinstance(part, LayerNorm):
        return normed(part, x)
    if isinstance(part, FeedForwardStack):
        for each in part.parts:
            x = real(each, x)
        return x
    if isinstance(part, Sublayer):
        y = x if part.pre_norm is None else normed(part.pre_norm, x)
        y = real(part.function, y) + x
        return y if part.post_norm is None else normed(part.post_norm, y)
    h = [max(F(0), v) for v in rationals(part.W_1) @ x + rationals(part.b_1)]
    return rationals(part.W_2) @ np.array(h, dtype=object) + rationals(part.b_2)


def ratio(part, x, system, carried=0.0, meant=None):
    """The largest error over its bound for one vector; 0 where nothing is claimed."""
    meant = x if meant is None else meant
    bound = rounding_error(part, [meant], system, carried)[0]
    if not np.isfinite(bound).all():
        return 0.0
    got = system.numbers(part(system.array([x]), system))[0]
    wanted = real(part, rationals(meant))
    errors = [abs(F(g) - w) for g, w in zip(got, wanted, strict=True)]
    assert all(e <= F(b) for e, b in zip(errors, bound, strict=True)), (part, x, system.name)
    return max(float(e / F(b)) if b else 0.0 for e, b in zip(errors, bound, strict=True))


def drawn(rng, system, shape):
    """Numbers of the format, of many magnitudes, some rows nearly constant."""
    x = rng.normal(size=shape) * 2.0 ** rng.uniform(-12, 12)
    if rng.random() < 0.3:
        x = x * 2.0**-6 + rng.normal()
    return system.numbers(system.array(x))


def drawn_norm(rng, d, plain=False):
    epsilon = [0, "1/100000", 0.5][rng.integers(3)]
    if plain:
        return LayerNorm(gain=np.ones(d), epsilon=epsilon)
    gain, bias = ([F(int(v), 7) for v in rng.integers(-9, 10, d)] for _ in range(2))
    W_N = [[F(int(v), 3) for v in row] for row in rng.integers(-3, 4, (d, d))]
    return LayerNorm(gain=gain, bias=bias, epsilon=epsilon, W_N=W_N if d % 2 else None)


@in_formats
@pytest.mark.trials(30, 150)
def test_the_error_of_a_norm_stays_within_the_bound_and_comes_near_it(name, trials):
    system, rng = SYSTEMS[name], np.random.default_rng(5)
    largest, told = 0.0, 0
    for _ in range(trials):
        d = int(rng.integers(2, 8))
        norm = drawn_norm(rng, d)
        for x in drawn(rng, system, (4, d)):
            seen = ratio(norm, x, system)
            largest, told = max(largest, seen), told + (seen > 0)
    assert told > 2 * trials
    assert largest > 0.3


@in_formats
@pytest.mark.trials(40, 200)
def test_the_bound_is_a_few_units_where_nothing_cancels(name, trials):
    """Of [x, −x] with ε = 0 each number is within 30u √d, and errors reach 1/40 of the bound."""
    system, rng = SYSTEMS[name], np.random.default_rng(6)
    u, largest = float(system.unit_roundoff), 0.0
    for _ in range(trials):
        x = system.numbers(system.array(rng.uniform(1, 2, 3) * rng.choice([1, -1], 3)))
        pair = np.concatenate([x, -x])
        norm = LayerNorm(gain=np.ones(6))
        if u < 1 / 200:
            assert (rounding_error(norm, [pair], system) <= 30 * u * math.sqrt(6)).all()
        largest = max(largest, ratio(norm, pair, system))
    assert largest > 1 / 40


@in_formats
@pytest.mark.trials(20, 60)
def test_sublayers_with_norms_before_and_after(name, trials):
    system, rng = SYSTEMS[name], np.random.default_rng(7)
    largest = dict.fromkeys(("pre", "post", "both"), 0.0)
    for _ in range(trials):
        d = int(rng.integers(2, 5))
        network = FeedForward(W_1=rng.normal(size=(5, d)), W_2=rng.normal(size=(d, 5)))
        pre, post = (LayerNorm(gain=np.ones(d), bias=np.ones(d), epsilon="1/10") for _ in "ab")
        kinds = {"pre": (pre, None), "post": (None, post), "both": (pre, post)}
        for kind, norms in kinds.items():
            for x in drawn(rng, system, (2, d)):
                largest[kind] = max(largest[kind], ratio(Sublayer(network, *norms), x, system))
    assert min(largest.values()) > 0.03, largest


@pytest.mark.parametrize("precision", [3, 4])
@pytest.mark.trials(80, 400)
def test_formats_of_few_bits_are_bounded_too(precision, trials):
    """Where u is 1/8 or 1/16 and even the count of the coordinates is rounded."""
    dtype = {3: ml_dtypes.float8_e5m2, 4: ml_dtypes.float8_e4m3}[precision]
    system = Floating("coarse", np.dtype(dtype), np.dtype(np.float32), precision)
    rng, told = np.random.default_rng(10), 0
    for _ in range(trials):
        d = int(rng.choice([2, 3, 4, 11, 19]))
        gain = rng.choice([0.3, 1, 2], d)
        norm = LayerNorm(gain=gain, bias=rng.choice([0, 0.7], d), epsilon=rng.choice([1, 0.6, 8]))
        x = system.numbers(system.array(rng.choice([0, 1, 1.5, -1, -3], d)))
        told += ratio(norm, x, system) > 0
    assert told > trials // 4


@in_formats
@pytest.mark.trials(20, 100)
def test_an_error_that_the_input_carries_is_passed_on(name, trials):
    """The format is given numbers up to δ away from those that are meant."""
    system, rng = SYSTEMS[name], np.random.default_rng(8)
    largest = 0.0
    for _ in range(trials):
        d = int(rng.integers(2, 5))
        network = FeedForward(W_1=rng.normal(size=(3, d)), W_2=rng.normal(size=(d, 3)))
        for part in (drawn_norm(rng, d, plain=True), network):
            meant = rng.normal(size=d)
            x = system.numbers(system.array(meant + rng.choice([-1, 1], d) / 16))
            carried = np.abs(x - meant) * (1 + 1e-12)
            largest = max(largest, ratio(part, x, system, carried, meant))
    assert largest > 0.3
    with pytest.raises(InvalidValue, match="feed-forward networks and norms; received Heads"):
        head = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
        rounding_error(Sublayer(Heads((head,))), [[1.0]], system)


@in_formats
def test_a_constant_vector_and_squares_that_overflow_or_underflow_have_no_bound(name):
    system = SYSTEMS[name]
    norm = LayerNorm(gain=[1, 1])
    root_largest = 2.0 ** (math.frexp(system.largest)[1] // 2 + 1)
    root_smallest = 2.0 ** (math.frexp(system.smallest)[1] // 2 - 2)
    for x in ([1, 1], [root_largest, -root_largest], [root_smallest, -root_smallest], [0, 0]):
        assert np.isinf(rounding_error(norm, [x], system)).all(), x
    assert np.isfinite(rounding_error(norm, [[1.0, -1.0]], system)).all()
    with pytest.raises(UndefinedValue):
        norm(system.array([[root_smallest, -root_smallest]]), system)
    # with ε > 0 an underflow of the squares does no harm
    assert np.isfinite(
        rounding_error(LayerNorm(gain=[1, 1], epsilon=1), [[root_smallest, 0]], system)
    ).all()
    # a variance within the error of 0, though it is none
    near = [1.0, 1.0 - float(system.unit_roundoff)]
    assert np.isinf(rounding_error(norm, [near], system, carried=1e-2)).all()
    # beyond an infinite error there is none, and a row that is lost does not spoil another
    network = FeedForward(W_1=np.eye(2), W_2=np.eye(2))
    lost = rounding_error(Sublayer(network, norm, norm), [[1, 1], [1, -1]], system)
    assert np.isinf(lost[0]).all() and np.isfinite(lost[1]).all()


@in_formats
def test_errors_larger_than_what_they_are_of(name):
    """Squares and roots of numbers that are mostly error, and a product that cancels in W_N."""
    system, largest = SYSTEMS[name], 0.0
    for epsilon in ("1/1024", "1/64"):
        norm = LayerNorm(gain=[1, 1], epsilon=epsilon)
        for meant in np.linspace(-0.25, 0.25, 41):
            for x in (0.125, -0.125, 0.25):
                carried = abs(x - meant) * (1 + 1e-12)
                seen = ratio(norm, [x, -x], system, carried, [meant, -meant])
                largest = max(largest, seen)
    assert largest > 0.1
    W_N = [[F(1, 3), F(-1, 7)], [F(1, 100), 0], [0, F(1, 100)]]
    cancelling = LayerNorm(gain=[1, 1, 1], epsilon=1, W_N=W_N)
    worst = max(ratio(cancelling, [3 * k, 7 * k], system) for k in range(20, 36))
    assert worst > 0.005


OPERATIONS = {
    "product": (near_values.product, lambda x, y: x * y),
    "quotient": (near_values.quotient, lambda x, y: x / y),
    "sum": (near_values.summed, lambda x, y: x + y),
    "root": (lambda x, _, a: near_values.root(x, a), lambda x, _: np.sqrt(x)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_bounded_wherever_its_operands_may_lie(operation):
    """Real and computed operands at the ends of what is known, and the results' distances."""
    followed, exact = OPERATIONS[operation]
    system, rng = SYSTEMS["float64"], np.random.default_rng(9)
    values = rng.uniform(0.01, 1, (2, 4000)) * rng.choice([1, -1], (2, 4000))
    errors = 2.0 ** rng.uniform(-12, 1, (2, 4000)) * np.abs(values)
    if operation == "root":
        values = np.abs(values)
    (x, y), (e, f) = values, errors
    with np.errstate(all="ignore"):
        _, bound = followed((x, e), (y, f), system)
    largest, told = 0.0, np.isfinite(bound)
    sides = list(itertools.product((-1, 0, 1), repeat=4))
    for one, other, up, down in sides:
        if 2 in (abs(one - other), abs(up - down)):
            continue  # they lie within the error of each other, too
        ends = (x + one * e, y + up * f), (x + other * e, y + down * f)
        with np.errstate(all="ignore"):
            if operation == "root":
                ends = tuple((np.maximum(p, 0), q) for p, q in ends)
            off = np.abs(exact(*ends[0]) - exact(*ends[1]))
        assert (off[told] <= bound[told] * (1 + 1e-9)).all()
        largest = max(largest, (off[told] / bound[told]).max())
    assert largest > 0.8
