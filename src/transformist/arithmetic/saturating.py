"""Finite arithmetic in fixed point: every result is rounded to a grid and clamped to a range.

There is no infinity. The largest number B takes its part: x + B is B for every x ≥ 0, B · B is B,
and 0 · B is 0. Every product and every partial sum is rounded and clamped before the next, from
left to right, so that 7 + 7 − 7 is 0 where B = 7 and 7 − 7 + 7 is 7. So is the sum of softmax: of
more than B equal scores each has the weight 1/B.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic.given import exact_numbers, in_words, is_power_of_two, rational
from transformist.arithmetic.protocol import Array, Flags
from transformist.errors import InvalidValue, NotFinite

# A number is k r with |k| ≤ 2²⁰. A product of two is k₁ k₂ r², of at most 40 < 53 bits: exact in
# float64 before it is stored. Quotients, roots and exponentials below B are off by 2⁻⁵³ of
# themselves, or a few units in the last place: at most 2²⁰ · 2⁻⁵² = 2⁻³² steps, so only a result
# that near to the middle of two steps could go to the wrong one.
MOST_BITS = 20
"""The largest number B is at most 2²⁰ steps r."""

_erfc = np.frompyfunc(math.erfc, 1, 1)
_rounded = np.frompyfunc(round, 1, 1)


@dataclass(frozen=True)
class Saturating:
    """The multiples of a resolution r from −B to B, with rounding to nearest, ties to even.

    B ≥ 1 and r ≤ 1 are powers of two, and r ≥ 1/B, so that x > 0 implies x ≥ 1/B and x · B · B = B.
    The exponential of −B is 0. Roots, exponentials and their like are computed in float64 and
    rounded once.

    Attributes:
        largest: B.
        resolution: r, the least positive number.

    Raises:
        InvalidValue: for B or r that are no such powers of two, or B/r beyond 2²⁰.

    Example:
        >>> small = Saturating(8, "1/4")
        >>> small.numbers(small.add(small.array([3]), small.array([6])))
        array([8.])
        >>> small.numbers(small.multiply(small.array(["1/4"]), small.array(["1/2"])))
        array([0.])

    """

    largest: Fraction = Fraction(16)
    resolution: Fraction = Fraction(1, 16)

    saturates = True
    most_scores = 2**32
    unit_roundoff = Fraction(0)  # sums round nothing; products, half the resolution

    def __post_init__(self) -> None:
        for name in ("largest", "resolution"):
            object.__setattr__(self, name, _power_of_two(getattr(self, name), name))
        B, r = self.largest, self.resolution
        if not (1 / B <= r <= 1 <= B and B / r <= 2**MOST_BITS):
            raise InvalidValue(
                "the largest number B and the resolution r of fixed point must satisfy "
                "1/B ≤ r ≤ 1 ≤ B and B/r ≤ 2^20",
                received=f"B = {B}, r = {r}",
                where="saturating",
                remedy="give powers of two such as B = 16 and r = 1/16",
            )

    @property
    def name(self) -> str:
        """`saturating:B:r`."""
        return f"saturating:{self.largest}:{self.resolution}"

    @property
    def _step(self) -> float:
        return float(self.resolution)

    @property
    def smallest(self) -> Fraction:
        """The least positive number, r."""
        return self.resolution

    def drawn(self, count: int, seed: str) -> NDArray[np.float64]:
        """All numbers of the format if there are at most `count`, else `count` drawn ones."""
        end = int(self.largest / self.resolution)
        steps = range(-end, end + 1)
        if len(steps) > count:
            steps = random.Random(seed).choices(steps, k=count)  # type: ignore[assignment]
        return np.array(steps, dtype=np.float64) * self._step

    def array(self, values: Any) -> Array:
        """Numbers rounded to the grid, each once.

        Raises:
            NotFinite: for a number beyond B.

        """
        exact = exact_numbers(values)
        in_range = np.asarray(np.abs(exact) <= float(self.largest), dtype=bool)
        if not in_range.all():
            raise NotFinite(
                f"every number must be at most {self.largest} in magnitude in {self.name}",
                received=in_words(Fraction(exact[~in_range][0])),
                remedy="scale the values down, or use a wider range (widths and counts count too)",
            )
        if exact.dtype == object:
            # Rationals are rounded to whole steps before they become float64, which would round
            # them first.
            exact = np.asarray(_rounded(exact / self.resolution), np.float64) * self._step
        return self._store(exact)

    def near(self, values: Callable[[int], Any]) -> Array:
        return self.array(values(128))

    def numbers(self, x: Array) -> NDArray[Any]:
        return np.asarray(x, dtype=np.float64)

    def radius(self, x: Array) -> NDArray[Any]:
        return np.zeros(x.shape)

    def shown(self, x: Array) -> Any:
        return self.numbers(x).tolist()

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        return np.concatenate(parts, axis=axis)

    def add(self, x: Array, y: Array) -> Array:
        return self._store(x + y)

    def subtract(self, x: Array, y: Array) -> Array:
        return self._store(x - y)

    def multiply(self, x: Array, y: Array) -> Array:
        return self._store(x * y)

    def divide(self, x: Array, y: Array) -> Array:
        return self._store(x / y)

    def affine(self, x: Array, W: Array, b: Array | None = None) -> Array:
        """W x + b: products in order of the coordinates, then the bias; each step is clamped."""
        total = self._dot(x[..., None, :], W)
        return total if b is None else self.add(total, b)

    def matmul(self, x: Array, y: Array) -> Array:
        """x y, from the first product to the last; each step is clamped."""
        return self._dot(x[..., :, None, :], np.swapaxes(y, -1, -2)[..., None, :, :])

    def scores(self, q: Array, k: Array) -> Array:
        """q · k, clamped at each step, over √d_key, rounded once."""
        dot = self._dot(q[..., :, None, :], k[..., None, :, :])
        return self._store(dot / math.sqrt(q.shape[-1]))

    def sum(self, x: Array) -> Array:
        """The sum along the last axis, from left to right; each step is clamped."""
        return self._dot(x, np.ones(x.shape[-1]))[..., None]

    def maximum(self, x: Array, among: Flags) -> Array:
        largest = np.where(among, x, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
        return np.where(among.any(axis=-1, keepdims=True), largest, 0.0)

    def relu(self, x: Array) -> Array:
        return np.maximum(x, 0.0)

    def sqrt(self, x: Array) -> Array:
        return self._store(np.sqrt(x))

    def exp(self, x: Array) -> Array:
        """eˣ, rounded once and clamped."""
        # e^(ln B + 1) = e B is beyond B, so larger exponents give B as well, without an overflow.
        return self._store(np.exp(np.minimum(x, math.log(self.largest) + 1)))

    def root_two_over_pi(self) -> Array:
        return self._store(np.array([math.sqrt(2 / math.pi)]))

    def tanh(self, x: Array) -> Array:
        return self._store(np.tanh(x))

    def normal_cdf(self, x: Array) -> Array:
        return self._store(np.asarray(_erfc(x / -math.sqrt(2)), dtype=np.float64) / 2)

    def keep(self, x: Array, where: Flags) -> Array:
        return np.where(where, x, 0.0)

    def maximal(self, x: Array, among: Flags) -> Flags:
        return np.asarray(among & (x == self.maximum(x, among)))

    def positive(self, x: Array) -> Flags:
        return np.asarray(x > 0)

    def _store(self, x: NDArray[np.float64]) -> Array:
        """Round x to the grid and clamp it to the range; −0 becomes 0."""
        # The step is a power of two: the quotient and the product by it do not round.
        limit = float(self.largest)
        return np.clip(np.rint(x / self._step) * self._step, -limit, limit) + 0.0

    def _dot(self, x: Array, y: Array) -> Array:
        """Σ_k x_k y_k along the last axis, rounded and clamped at each product and sum."""
        total = np.zeros(np.broadcast_shapes(x.shape[:-1], y.shape[:-1]))
        for k in range(x.shape[-1]):
            total = self.add(total, self.multiply(x[..., k], y[..., k]))
        return total


def _power_of_two(given: Any, name: str) -> Fraction:
    try:
        value = rational(given)
        if is_power_of_two(value):
            return value
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        pass
    raise InvalidValue(
        f"the {name} of a saturating arithmetic must be a power of two",
        received=f"{given!s:.40}",
        where="saturating",
        remedy="give a power of two, such as 16 or 1/16",
    )


SATURATING = Saturating()
