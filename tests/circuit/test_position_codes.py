"""The gap of a code of positions, against cosines that share no code with it."""

from fractions import Fraction

import numpy as np
import pytest

from transformist.arithmetic import number_system
from transformist.circuit import LONGEST_CODED, PositionCode
from transformist.model import PositionFunctions
from transformist.position_features import LONGEST_WAVE, SINE_STEP, WAVELENGTHS, WAVES, position

STEPS = 4096


def rounded_waves(places, wavelength):
    """Cosines and sines by numpy, rounded to multiples of 1/4096."""
    angles = 2 * np.pi * (np.asarray(places) % wavelength) / wavelength
    return np.rint(STEPS * np.cos(angles)) / STEPS, np.rint(STEPS * np.sin(angles)) / STEPS


def largest_and_gaps(longest):
    """The score of a position with itself, and the gap of positions 0 to n for n = 1, …, N.

    A query is the code of i − 1, by the rotation of the code of i, and a key the code of j.
    """
    places = np.arange(longest + 1)
    queries, keys = [], []
    for L, a in zip(PositionCode(longest).wavelengths, PositionCode(longest).weights, strict=True):
        c, s = rounded_waves(places, L)
        c1, s1 = rounded_waves([1], L)
        queries += [float(a) * (c * c1 + s * s1), float(a) * (s * c1 - c * s1)]
        keys += [c, s]
    scores = np.array(queries).T @ np.array(keys)
    target = np.arange(longest)
    own = scores[1:][target, target][:, None]
    below = own - scores[1:]
    below[target, target] = np.inf
    least = np.minimum.accumulate(np.minimum.accumulate(below, axis=0), axis=1)
    return float(own.max()), least[target, target + 1]  # i up to n, j up to n


# A code is the same for all N with one number of wavelengths, so these are all N to 2,048.
SLOWEST = [pytest.param(n, marks=pytest.mark.slow) for n in (1023, 2047, 2048)]


@pytest.mark.parametrize("longest", [*(2**k - 1 for k in range(1, 10)), *SLOWEST])
def test_the_gap_at_every_n(longest):
    code = PositionCode(longest)
    largest, gaps = largest_and_gaps(longest)
    assert (gaps >= float(code.gap)).all()
    first = 1 << (len(code.wavelengths) - 1)
    for n in range(first, longest + 1):
        assert PositionCode(n).weights == code.weights
    # The least gap is that of the longest wavelength, 2 but for the rounding of sines.
    assert gaps[first - 1 :].max() < 2.02
    relative = gaps[first - 1 :] / largest
    assert relative.min() > 0.266
    assert (relative.max() < 0.58) == (longest > 31)


@pytest.mark.parametrize("longest", [1, 2, 3, 12, 100, 2048, LONGEST_CODED])
def test_the_ideal_gap_is_2_and_rounding_takes_less_than_a_128th(longest):
    code = PositionCode(longest)
    d = np.arange(1, 2 * code.wavelengths[-1] // 2)
    terms = (
        float(a) * (1 - np.cos(2 * np.pi * (d % L) / L))
        for a, L in zip(code.weights, code.wavelengths, strict=True)
    )
    least = sum(terms).min()
    assert least == pytest.approx(2, abs=1e-9)
    assert 2 * Fraction(127, 128) < code.gap < 2
    assert code.wavelengths[-1] > longest >= code.wavelengths[-1] // 2


def test_a_coarser_step_takes_more():
    largest = PositionCode(LONGEST_CODED).largest
    assert 6 * SINE_STEP * largest < Fraction(2, 128) < 6 * 2 * SINE_STEP * largest


def test_waves_are_the_nearest_multiples():
    for name, wavelength in WAVELENGTHS.items():
        places = [*range(-2, 70), wavelength - 1, wavelength, 3 * wavelength + 5]
        expected = rounded_waves(places, wavelength)[name.startswith("sin")]
        found = [position(name, i, 7) for i in places]
        assert [float(x) for x in found] == expected.tolist(), name
        assert all((x / SINE_STEP).denominator == 1 for x in found)
    assert max(WAVELENGTHS.values()) == LONGEST_WAVE and {*WAVES} == {*WAVELENGTHS}


def test_formats_of_12_bits_hold_waves():
    encoding = PositionFunctions(tuple(WAVES))
    exact = np.asarray(number_system("exact").numbers(encoding(40, "exact")), dtype=float)
    for arithmetic in ("float64", "float32"):
        assert encoding(40, arithmetic).tolist() == exact.tolist()
    assert (encoding(40, "float16").astype(float) != exact).any()
