"""Codes of positions by cosines and sines of several wavelengths.

The code of position j has cos(2πj/L) and sin(2πj/L) for the wavelengths L = 2, 4, …, 2^F. With a
weight a_L for each wavelength, the inner product of the codes of q and j depends on their distance
d = q − j alone:

    S(d) = Σ_L a_L (cos(2πq/L) cos(2πj/L) + sin(2πq/L) sin(2πj/L)) = Σ_L a_L cos(2πd/L).

S(0) = Σ a_L is the largest value. The *gap* of the code is the least S(0) − S(d) at a distance d
that is no multiple of 2^F; these are all distances of different positions 0 to N < 2^F.

Let d = 2^k m with m odd. The terms with L ≤ 2^k are 0, and the term with L = 2^(k+s) is
a_L (1 − cos(2πm/2^s)), which is least for m = ±1, for all s at once. So the gap is the least, over
k = 0, …, F − 1, of

    g_k = Σ_{s ≥ 1} a_{2^(k+s)} (1 − cos(2π/2^s)) = 2 a_{2^(k+1)} + a_{2^(k+2)} + 0.29 a_{2^(k+3)} …

With a = 1 at the longest wavelength, g_{F−1} = 2. Each shorter wavelength gets the least weight
with which g_k ≥ 2 (`WEIGHT_STEP`), so that the gap is 2 at every F, against a largest score of Σ a:
a quadratic code has a gap of 1 against scores of up to N².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from transformist.position_features import LONGEST_WAVE, SIGN, SINE_STEP, cosine, wave_names

WEIGHT_STEP = Fraction(1, 32)
"""Weights are multiples of this. Any step is sound; a finer one adds bits to the queries.

Weights without a step would add up to less by at most F/32, since each is rounded up.
"""

IDEAL_GAP = 2
"""The gap of a code whose sines are not rounded."""

LONGEST_CODED = LONGEST_WAVE - 1
"""The largest N: positions are 0 to N, and 2^F above N."""


@dataclass(frozen=True)
class PositionCode:
    """The code that tells the positions 0 to N apart.

    Attributes:
        longest: N, from 1 to `LONGEST_CODED`.

    Example:
        >>> code = PositionCode(2048)
        >>> len(code.waves), float(code.relative_gap) > 0.26
        (12, True)

    """

    longest: int

    @cached_property
    def wavelengths(self) -> tuple[int, ...]:
        """2, 4, …, 2^F, F the least with 2^F > N."""
        return tuple(1 << k for k in range(1, self.longest.bit_length() + 1))

    @cached_property
    def weights(self) -> tuple[Fraction, ...]:
        """The weight of each wavelength, the shortest first."""
        # From the longest wavelength down: g_k = 2 a_{2^(k+1)} + Σ_{s ≥ 2} a_{2^(k+s)} (1 −
        # cos(2π/2^s)) needs the weights of all longer ones, and then gives the least weight of the
        # next shorter one.
        found = [Fraction(1)]  # that of the longest wavelength
        while len(found) < len(self.wavelengths):
            # A lower bound of 1 − cos(2π/2^s): the cosine is rounded to the nearest multiple of the
            # step, so it is at most half a step above the stored one. cos(2π/4) = 0 is exact.
            beyond = [
                a * (1 - cosine(1, 1 << s) - (SINE_STEP / 2 if s > 2 else 0))
                for s, a in enumerate(found, start=2)
            ]
            least = (IDEAL_GAP - sum(beyond)) / 2
            found.insert(0, math.ceil(least / WEIGHT_STEP) * WEIGHT_STEP)
        return tuple(found)

    @property
    def largest(self) -> Fraction:
        """Σ a, the score of a position with itself, but for the rounding of sines."""
        return sum(self.weights, Fraction(0))

    @property
    def gap(self) -> Fraction:
        """Lower bound of the gap, with sines and cosines that are rounded.

        Let e be half a step. A key has two coordinates, each off by at most e. A query has the
        products of the code of i with the code of k: a sum x y + x′ y′ of two of them is off by at
        most e (|x| + |x′| + |y| + |y′|) + 2e² ≤ 2√2 e + 2e². So the product of query and key is
        off by at most

            √2 e + √2 (2√2 e + 2e²) + 2e (2√2 e + 2e²) ≤ 6e

        times the weight, as e ≤ 2⁻¹³; a difference of two products, by at most 12 e Σ a.
        """
        return IDEAL_GAP - 6 * SINE_STEP * self.largest

    @property
    def relative_gap(self) -> Fraction:
        """The gap, where the score of a position with itself is 1."""
        return self.gap / self.largest

    @property
    def waves(self) -> tuple[tuple[str, str | None], ...]:
        """The names of the position functions of each wavelength: cosine and sine.

        The sine of the wavelength 2 is 0 at every position.
        """
        return tuple((SIGN, None) if L == 2 else wave_names(L) for L in self.wavelengths)

    def at(self, position: int) -> tuple[tuple[Fraction, Fraction], ...]:
        """The cosine and the sine of each wavelength at a position, rounded.

        Example:
            >>> [(float(x), float(y)) for x, y in PositionCode(3).at(1)]
            [(-1.0, 0.0), (0.0, 1.0)]

        """
        return tuple(
            (cosine(position % L, L), cosine((position - L // 4) % L, L) if L > 2 else Fraction(0))
            for L in self.wavelengths
        )
