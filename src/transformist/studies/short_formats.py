"""Formats of the study precision-law: floats of any precision, fixed point, and named ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Arithmetic, Floating, exact_numbers, number_system

WIDE, OWN, FIXED, NAMED = "sums in float64", "sums in the format", "fixed point", "named formats"
"""Kinds of formats."""

BITS: Mapping[str, Sequence[int]] = {
    WIDE: (4, 6, 8, 10, 12),
    OWN: (6, 9, 12, 15, 18),
    FIXED: (2, 3, 4, 5, 6, 7),
    NAMED: (8, 11, 24),
}
"""Bits of precision; of fixed point, the bits before and behind the point."""

NAMES = {8: "bfloat16", 11: "float16", 24: "float32"}

_quiet = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


@dataclass(frozen=True)
class ShortFloat(Floating):
    """Numbers of float64 with p bits of precision; sums in float64, or in the format itself.

    An operation rounds to float64 and then to p bits. Both together are one correct rounding if
    53 ≥ 2p + 2 (S. Figueroa, *When is double rounding innocuous?*, 1995), so p is at most 25.

    Attributes:
        sums_itself: true if each product and each partial sum is rounded to p bits.

    """

    sums_itself: bool = False

    @cached_property
    def accumulator_roundoff(self) -> Fraction:
        """The unit roundoff of sums."""
        return self.unit_roundoff if self.sums_itself else FLOAT64.unit_roundoff

    def array(self, values: Any) -> NDArray[Any]:
        """Numbers rounded to the format, each once."""
        exact = exact_numbers(values)
        if exact.dtype == object:
            rounded = [self._of(Fraction(each)) for each in exact.ravel().tolist()]
            exact = np.array(rounded, np.float64).reshape(exact.shape)
        rounded_again = self._nearest(exact)
        self._require_within(rounded_again, exact)
        return rounded_again

    def _of(self, x: Fraction) -> float:
        """The number of p bits that is nearest to a rational."""
        quantum = Fraction(2) ** (math.frexp(float(x))[1] - self.precision)
        return float(round(x / quantum) * quantum)

    def _nearest(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        # In the bits of a float64 number, half of the last place that is kept is added, less 1 if
        # the bit there is 0 (ties to even), and what is below that place is cut off. A carry goes
        # to the exponent, as it must; infinities and numbers of p bits stay as they are.
        cut = np.uint64(53 - self.precision)
        bits = np.ascontiguousarray(x, np.float64).view(np.uint64)
        half = (np.uint64(1) << (cut - np.uint64(1))) - np.uint64(1)
        bits = bits + half + ((bits >> cut) & np.uint64(1))
        return np.asarray((bits >> cut << cut).view(np.float64)).reshape(np.shape(x))

    _store = _nearest

    def _partial(self, x: NDArray[Any]) -> NDArray[Any]:
        return self._nearest(x) if self.sums_itself else x

    @_quiet
    def _dot(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        total = np.zeros(np.broadcast_shapes(x.shape[:-1], y.shape[:-1]))
        for k in range(x.shape[-1]):
            total = self._partial(total + self._partial(x[..., k] * y[..., k]))
        return total

    @_quiet
    def matmul(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """x y, accumulated from the first product to the last."""
        return self._store(self._dot(x[..., :, None, :], np.swapaxes(y, -1, -2)[..., None, :, :]))

    @_quiet
    def sum(self, x: NDArray[Any]) -> NDArray[Any]:
        """The sum along the last axis, from left to right."""
        return self._store(self._dot(x, np.ones(x.shape[-1])))[..., None]


def format_of(kind: str, bits: int) -> Arithmetic:
    """The format of a kind with these bits of precision.

    Fixed point has the largest number 2^bits and the resolution 2^−bits.

    Example:
        >>> float(format_of("sums in the format", 4).array([17])[0])
        16.0

    """
    if kind in (WIDE, OWN):
        double = FLOAT64.dtype
        return ShortFloat(f"{bits} bits, {kind}", double, double, bits, kind == OWN)
    return number_system(NAMES[bits] if kind == NAMED else f"saturating:{2**bits}:1/{2**bits}")
