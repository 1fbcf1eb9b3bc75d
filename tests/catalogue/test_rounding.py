"""A step without tolerance: every number of the narrow formats, and every pair of some."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import SYSTEMS, Floating
from transformist.domains import FormatNumbers
from transformist.errors import InvalidValue, NotFinite
from transformist.model import FeedForwardStack

FLOATS = {name: system for name, system in SYSTEMS.items() if isinstance(system, Floating)}
NARROW = [name for name, system in FLOATS.items() if system.dtype.itemsize <= 2]
WIDE = [name for name in FLOATS if name not in NARROW]
STEP = tf.recipe("exact-step")


def every(system):
    """The finite numbers of a format of at most 16 bits."""
    size = system.dtype.itemsize
    numbers = np.arange(2 ** (8 * size)).astype(f"u{size}").view(system.dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return numbers[np.isfinite(numbers)]


def stepped(network, x, system):
    """The network at each number of the format, as float64."""
    return system.numbers(network(x[:, None], system))[:, 0]


@pytest.mark.parametrize("name", NARROW)
def test_every_number_of_a_narrow_format(name):
    system = FLOATS[name]
    x = every(system)
    assert len(x) > 0.9 * 2 ** (8 * system.dtype.itemsize)
    assert (stepped(STEP.build(format=name), x, system) == (system.numbers(x) > 0)).all()


@pytest.mark.parametrize("name", WIDE)
def test_ends_binades_and_drawn_numbers_of_a_wide_format(name):
    system = FLOATS[name]
    kind, size = system.dtype.type, system.dtype.itemsize
    drawn = np.random.default_rng(0).integers(0, 2**32, size=(200_000, size // 4), dtype="u4")
    drawn = drawn.view(system.dtype)[:, 0]
    info = np.finfo(system.dtype)
    powers = np.ldexp(kind(1), np.arange(info.minexp - info.nmant, info.maxexp))
    near = np.concatenate([powers, np.nextafter(powers, kind(0)), np.nextafter(powers, info.max)])
    x = np.concatenate([drawn[np.isfinite(drawn)], near, -near, [info.max, info.min, kind(0)]])
    network = STEP.build(format=name)
    assert (stepped(network, x.astype(system.dtype), system) == (x > 0)).all()


@pytest.mark.parametrize(("built", "run"), list(itertools.permutations(FLOATS, 2)))
def test_in_other_formats(built, run):
    """Exact in a coarser one; in a finer one outside (0, s), and x/s to 2u inside."""
    network, system = STEP.build(format=built), FLOATS[run]
    weights = [float(part.W_1.max()) for part in network.parts[:1]]
    if max(weights) > system.largest:
        with pytest.raises(NotFinite):
            network([[1]], system)
        return
    numbers = FormatNumbers(points=(Fraction(FLOATS[built].smallest),)).cases(system, 4000, seed=1)
    x = system.array(numbers)[:, 0]
    values, s = system.numbers(x), FLOATS[built].smallest
    expected = np.clip(values, 0, s) / s
    error = np.abs(stepped(network, x, system) - expected)
    inside = (values > 0) & (values < s)
    assert (error[~inside] == 0).all()
    assert inside.any() == (system.smallest < s)
    u = float(system.unit_roundoff + 2 * system.accumulator_roundoff)
    assert (error[inside] <= 2 * u).all()


@pytest.mark.parametrize("name", FLOATS)
def test_the_weights_are_powers_of_two_that_the_format_holds(name):
    system, network = FLOATS[name], STEP.build(format=name)
    first, second = network.parts
    (c,), (d,) = first.W_1[0], first.W_2[0]
    assert Fraction(c) * Fraction(d) * Fraction(system.smallest) == 1
    assert max(c, d) <= system.largest and max(c, d) <= 2 * min(c, d)
    assert 1 / Fraction(system.smallest) > Fraction(system.largest)  # one factor would overflow
    assert second.nonzero == 4


def test_a_comparison_with_a_tolerance_is_not_exact():
    """Eq. 29 with the smallest number of bfloat16 for ε gives 0 or NaN at large numbers."""
    system = FLOATS["bfloat16"]
    step = tf.recipe("greater-than-zero").build(epsilon=Fraction(1, 2**127))
    got = stepped(step, system.array([1.0, 3e38]), system)
    assert not (got == 1).any()


def comparison(name):
    """[x > y] as the step of x − y."""
    return FeedForwardStack((tf.recipe("subtract").build(), *STEP.build(format=name).parts))


def pairs_of(name):
    """Every pair of a format of 8 bits; of 16, of binades at both ends and about 1, both signs."""
    system = FLOATS[name]
    numbers = every(system)
    if system.dtype.itemsize == 1:
        return numbers
    bits = system.precision - 1
    ends = system.numbers(numbers[numbers > 0])
    ends = np.sort(ends)
    one = int(np.searchsorted(ends, 1.0))
    step = max(1, 2**bits // 64)
    chosen = [ends[:300], ends[-300:], ends[one - 2**bits : one + 2**bits : step]]
    positive = np.concatenate(chosen)
    return system.array(np.concatenate([-positive, [0.0], positive]))


@pytest.mark.parametrize("name", NARROW)
def test_every_comparison_of_a_narrow_format(name):
    system, network, numbers = FLOATS[name], comparison(name), pairs_of(name)
    values = system.numbers(numbers)
    for x, value in zip(numbers, values, strict=True):
        pairs = np.stack([np.full_like(numbers, x), numbers], axis=-1)
        got = system.numbers(network(pairs, system))[:, 0]
        assert (got == (value > values)).all(), value


@pytest.mark.parametrize("name", WIDE)
def test_comparisons_of_neighbours_in_a_wide_format(name):
    system, network = FLOATS[name], comparison(name)
    x = system.array(FormatNumbers().cases(system, 4000, seed=2))[:, 0]
    largest = system.dtype.type(system.largest)
    above = np.nextafter(x, largest)
    for left, right in ((x, above), (above, x), (x, x), (x, -x), (x, np.roll(x, 1))):
        got = system.numbers(network(np.stack([left, right], axis=-1), system))[:, 0]
        assert (got == (left > right)).all()


def test_the_step_in_exact_numbers():
    s = Fraction(1, 2**24)
    network = STEP.build(format="float16")
    for x, y in ((-1, 0), (0, 0), (s / 3, Fraction(1, 3)), (s, 1), (10**9, 1)):
        assert network([[x]], "exact").tolist() == [[y]]


def test_a_format_that_is_none_is_refused():
    with pytest.raises(
        InvalidValue, match="format must be float64 or float32 or .*the float format"
    ):
        STEP.build(format="exact")


def test_numbers_are_all_where_they_are_few_enough():
    system = FLOATS["float16"]
    cases = FormatNumbers().cases(system, 2**16, seed=0)
    assert {float(value) for (value,) in cases} == set(system.numbers(every(system)).tolist())
    few = {value for (value,) in FormatNumbers((Fraction(1, 8),)).cases(system, 100, seed=0)}
    marks = {Fraction(system.largest), Fraction(system.smallest), Fraction(1, 8), Fraction(3, 16)}
    assert marks | {-each for each in marks} <= few
