"""Binary floating point: float64, float32, float16, bfloat16, float8_e5m2, float8_e4m3.

Every operation rounds its result to the format once, to nearest, ties to even. Formats narrower
than float32 carry out each operation in float32, where its operands are exact, and accumulate sums
and dot products there, as accelerators do; float32 and float64 accumulate in themselves. Sums run
from left to right, so a result does not depend on the linear algebra library of the machine.
Overflow follows IEEE 754 and gives ±inf; float8_e4m3, which has no infinities, saturates at ±448.

The two roundings, to the accumulator and to the format, equal one. With p bits in the format and
q ≥ 2p + 2 in the accumulator this holds for +, −, ×, / and √ of normal numbers (S. Figueroa, *When
is double rounding innocuous?*, 1995); here q = 24 and p ≤ 11. Numbers that are not results of
these operations pass through float32 rounded to odd (`_nearest`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic.given import (
    exact_numbers,
    in_words,
    is_float64,
    nearest_float64,
    rational,
)
from transformist.arithmetic.protocol import Array, Flags
from transformist.errors import InvalidValue, NotFinite, NotRepresentable

_ieee = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
_erfc = np.frompyfunc(math.erfc, 1, 1)


@dataclass(frozen=True)
class Floating:
    """A binary floating-point format, with rounding to nearest, ties to even.

    √, exp, tanh and Φ are computed in float64, and rounded to the format once.

    Attributes:
        name: the format's name.
        dtype: numpy's type of a stored number.
        accumulator: numpy's type in which an operation is carried out before it is stored.
        precision: p, the bits of the significand with the leading one.

    Example:
        >>> from transformist.arithmetic import BFLOAT16
        >>> BFLOAT16.numbers(BFLOAT16.add(BFLOAT16.array([256]), BFLOAT16.array([1])))
        array([256.])

    """

    name: str
    dtype: np.dtype[Any]
    accumulator: np.dtype[Any]
    precision: int

    most_scores = 2**32

    @cached_property
    def unit_roundoff(self) -> Fraction:
        """u = 2⁻ᵖ."""
        return Fraction(1, 2**self.precision)

    @cached_property
    def accumulator_roundoff(self) -> Fraction:
        """The unit roundoff of the format in which sums accumulate."""
        return Fraction(1, 2 ** (int(ml_dtypes.finfo(self.accumulator).nmant) + 1))

    @cached_property
    def largest(self) -> float:
        """The largest finite number of the format."""
        return float(ml_dtypes.finfo(self.dtype).max)

    @cached_property
    def smallest(self) -> float:
        """The smallest positive number of the format, subnormals included."""
        return float(ml_dtypes.finfo(self.dtype).smallest_subnormal)

    @cached_property
    def saturates(self) -> bool:
        """True if the format has no infinities: a result too large is then the largest number."""
        return not np.isinf(np.float32(np.inf).astype(self.dtype))

    @property
    def infinity(self) -> Any:
        """+∞ as a number of the format.

        Raises:
            NotRepresentable: for a format that saturates.

        """
        if self.saturates:
            raise NotRepresentable(
                f"{self.name} has no infinity: its largest number is {self.largest:g}",
                received="a request for infinity",
                where=self.name,
                remedy=f"use {self.largest:g}, at which it saturates, or another format",
            )
        return self.dtype.type(np.inf)

    @cached_property
    def smallest_partial(self) -> float:
        """The smallest positive number of the format in which sums accumulate."""
        return float(ml_dtypes.finfo(self.accumulator).smallest_subnormal)

    @cached_property
    def largest_partial(self) -> float:
        """The largest finite number of the format in which sums accumulate."""
        return float(ml_dtypes.finfo(self.accumulator).max)

    def array(self, values: Any) -> Array:
        """Numbers rounded to the format, each once; an array of the format's own is taken as it is.

        Raises:
            NotFinite: for a number that is NaN, infinite, or too large for the format.

        """
        if isinstance(values, np.ndarray) and values.dtype == self.dtype:
            return values
        exact = exact_numbers(values)
        rounded = self._nearest(
            exact if exact.dtype == np.float64 else _to_float64(exact, self.dtype)
        )
        self._require_within(rounded, exact)
        return rounded

    def _require_within(self, rounded: Array, given: NDArray[Any]) -> None:
        """Refuse what is not finite once it is rounded, or beyond the largest number."""
        beyond = ~(np.abs(self.numbers(rounded)) <= self.largest)
        if beyond.any():
            first = given[beyond][0]
            shown = isinstance(first, float) and not math.isfinite(first)
            raise NotFinite(
                f"every number must be finite in {self.name}, whose largest is {self.largest:g}",
                received=str(first) if shown else in_words(Fraction(first)),
                remedy="scale the values down or use a format with a wider range",
            )

    def drawn(self, count: int, seed: str) -> NDArray[np.float64]:
        """All finite numbers, or those among `count` drawn patterns if there are more."""
        size = 8 * self.dtype.itemsize
        source = random.Random(seed)
        every = 2**size <= count
        patterns = range(2**size) if every else (source.getrandbits(size) for _ in range(count))
        bits = np.array(list(patterns), dtype=f"u{self.dtype.itemsize}")
        with np.errstate(invalid="ignore"):  # of NaNs that signal
            numbers = self.numbers(bits.view(self.dtype))
        return np.asarray(numbers[np.abs(numbers) <= self.largest], dtype=np.float64)

    def near(self, values: Callable[[int], Any]) -> Array:
        return self.array(values(128))

    @_ieee
    def numbers(self, x: Array) -> NDArray[Any]:
        """The values as float64, which holds each of them exactly."""
        return np.asarray(x).astype(np.float64)

    def radius(self, x: Array) -> NDArray[Any]:
        return np.zeros(x.shape)

    def shown(self, x: Array) -> Any:
        return self.numbers(x).tolist()

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        return np.concatenate(parts, axis=axis)

    @_ieee
    def add(self, x: Array, y: Array) -> Array:
        return self._store(self._load(x) + self._load(y))

    @_ieee
    def subtract(self, x: Array, y: Array) -> Array:
        return self._store(self._load(x) - self._load(y))

    @_ieee
    def multiply(self, x: Array, y: Array) -> Array:
        return self._store(self._load(x) * self._load(y))

    @_ieee
    def divide(self, x: Array, y: Array) -> Array:
        return self._store(self._load(x) / self._load(y))

    @_ieee
    def affine(self, x: Array, W: Array, b: Array | None = None) -> Array:
        """W x + b: products in order of the coordinates, then the bias, then one rounding."""
        # A coordinate that no row of W reads is left out: 0 times an overflow in it would be NaN.
        read = W.astype(bool).any(axis=0)
        if not read.all():
            x, W = x[..., read], W[:, read]
        total = self._dot(x[..., None, :], W)
        return self._store(total if b is None else total + self._load(b))

    @_ieee
    def matmul(self, x: Array, y: Array) -> Array:
        """x y, accumulated from the first product to the last, then rounded once."""
        x, y = self._load(x), self._load(y)
        shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
        total = np.zeros(shape, self.accumulator)
        for k in range(x.shape[-1]):
            total += x[..., :, k, None] * y[..., k, None, :]
        return self._store(total)

    @_ieee
    def scores(self, q: Array, k: Array) -> Array:
        """fl(fl(q · k) / fl(√d_key)).

        Raises:
            NotFinite: for a score that overflows.

        """
        dot = self._store(self._dot(q[..., :, None, :], k[..., None, :, :]))
        scores = self.divide(dot, self.sqrt(self.array([q.shape[-1]])))
        if not np.isfinite(scores.astype(np.float64)).all():
            raise NotFinite(
                f"attention scores must stay below {self.largest:g} in {self.name}",
                received="one that overflows",
                remedy="use a format with a wider range",
            )
        return scores

    @_ieee
    def sum(self, x: Array) -> Array:
        """The sum along the last axis, from left to right, rounded once."""
        total = np.zeros((*x.shape[:-1], 1), self.accumulator)
        if x.shape[-1]:
            total = np.add.accumulate(self._load(x), axis=-1)[..., -1:]
        return self._store(total)

    @_ieee
    def maximum(self, x: Array, among: Flags) -> Array:
        # −∞ stands for what is not admissible; a row without anything admissible has the maximum 0,
        # which no caller reads.
        lowest = np.where(among, self._load(x), -np.inf).max(
            axis=-1, keepdims=True, initial=-np.inf
        )
        return self._store(np.where(among.any(axis=-1, keepdims=True), lowest, 0))

    @_ieee
    def relu(self, x: Array) -> Array:
        return np.maximum(x, self.dtype.type(0))

    @_ieee
    def sqrt(self, x: Array) -> Array:
        return self._round(np.sqrt(self.numbers(x)))

    @_ieee
    def exp(self, x: Array) -> Array:
        return self._round(np.exp(self.numbers(x)))

    def root_two_over_pi(self) -> Array:
        return self._round(np.array([math.sqrt(2 / math.pi)]))

    def tanh(self, x: Array) -> Array:
        return self._round(np.tanh(self.numbers(x)))

    def normal_cdf(self, x: Array) -> Array:
        """Φ(x) = erfc(−x/√2)/2."""
        # The argument t = −x/√2 has a relative error of at most 2 · 2⁻⁵³ (√2 and the quotient are
        # rounded). For t > 0, erfc(t) > (2/√π) e^(−t²) / (t + √(t² + 2)), so |t erfc′(t)/erfc(t)|
        # < t² + t √(t² + 2) ≤ 2t² + 1 = x² + 1: Φ(x) moves by at most 2(x² + 1) · 2⁻⁵³ of itself,
        # which shows in float64 only.
        tail = _erfc(self.numbers(x) / -math.sqrt(2))
        return self._round(np.asarray(tail, dtype=np.float64) / 2)

    def keep(self, x: Array, where: Flags) -> Array:
        return np.where(where, x, self.dtype.type(0))

    @_ieee
    def maximal(self, x: Array, among: Flags) -> Flags:
        """The admissible entries equal to the largest, bit for bit but for the sign of zero."""
        return np.asarray(among & (x == self.maximum(x, among)))

    @_ieee
    def positive(self, x: Array) -> Flags:
        return np.asarray(x > 0)

    def _load(self, x: Array) -> NDArray[Any]:
        return np.asarray(x).astype(self.accumulator, copy=False)

    def _store(self, x: NDArray[Any]) -> Array:
        return self._within(x).astype(self.dtype, copy=False)

    def _within(self, x: NDArray[Any]) -> NDArray[Any]:
        """x, at most the largest number in magnitude where the format saturates."""
        return np.clip(x, -self.largest, self.largest) if self.saturates else x

    def _dot(self, x: Array, y: Array) -> NDArray[Any]:
        """Σ_k x_k y_k along the last axis, from left to right, in the accumulator."""
        x, y = self._load(x), self._load(y)
        # A loop over k, not BLAS, whose order of summation depends on the machine: error bounds
        # speak of one order, and results are the same everywhere.
        total = np.zeros(np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), self.accumulator)
        for k in range(x.shape[-1]):
            total += x[..., k] * y[..., k]
        return total

    def _round(self, x: NDArray[np.float64]) -> Array:
        """Round float64 to the format, once and correctly; saturate if the format does."""
        return self._nearest(self._within(x))

    @_ieee
    def _nearest(self, x: NDArray[np.float64]) -> Array:
        """float64 to the format in one correct rounding; beyond the largest number not finite."""
        if self.dtype.type.__module__ == "numpy":
            return x.astype(self.dtype)
        # ml_dtypes casts float64 by way of float32, which rounds twice: a number just above the
        # middle of two numbers of the format may become the middle, and then go to the even one.
        # Rounded to odd (truncated, with the last bit set if anything was cut off), an inexact
        # number stays on its side of every middle, as a middle needs p + 1 ≤ 9 bits and so is
        # even in 24 (Boldo and Melquiond, *Emulation of FMA and correctly rounded sums*, 2008).
        nearest = x.astype(np.float32)
        even = nearest.view(np.uint32) & 1 == 0
        towards = np.where(x > nearest, np.inf, -np.inf).astype(np.float32)
        odd = np.where((nearest != x) & even, np.nextafter(nearest, towards), nearest)
        return odd.astype(self.dtype)


@dataclass(frozen=True)
class Clamped(Floating):
    """A float format without infinities: a result beyond ±B is ±B. Accumulators are not clamped.

    Attributes:
        bound: B, a number of the format.

    Example:
        >>> half = Clamped.at(16, FLOAT16)
        >>> half.numbers(half.add(half.array([9]), half.array([9])))
        array([16.])

    """

    bound: float = 1.0

    def __post_init__(self) -> None:
        wide = math.isfinite(self.bound) and self._nearest(np.array([self.bound]))
        if not (self.bound > 0 and self.numbers(wide) == self.bound):
            raise InvalidValue(
                "the bound of a clamped format must be a positive number of the format",
                received=f"{self.bound:g}",
                where=self.name,
                remedy="give a number such as 16",
            )

    @classmethod
    def at(cls, bound: Any, wide: Floating) -> Clamped:
        """`wide`, clamped at B.

        Raises:
            InvalidValue: for a B that is no positive number of the format.

        """
        try:
            exact = rational(bound)
        except (ValueError, TypeError, OverflowError, ZeroDivisionError):
            exact = Fraction(0)
        held = nearest_float64(exact) if is_float64(exact) else math.nan
        return cls(
            f"{wide.name}:{exact or bound!s:.40}",
            wide.dtype,
            wide.accumulator,
            wide.precision,
            held,
        )

    @property
    def largest(self) -> float:
        """B."""
        return self.bound

    def array(self, values: Any) -> Array:
        """Numbers rounded to the format, each once; an array of the format's own is taken as it is.

        Raises:
            NotFinite: for a number that is NaN or beyond B.

        """
        rounded = super().array(values)
        self._require_within(rounded, self.numbers(rounded))
        return rounded

    def drawn(self, count: int, seed: str) -> NDArray[np.float64]:
        """Half of the numbers drawn evenly from −B to B, the others as for the format."""
        source = random.Random(f"{seed} evenly")
        even = np.array([source.uniform(-self.bound, self.bound) for _ in range(count // 2)])
        patterns = super().drawn(count - count // 2, seed)
        return np.concatenate([self.numbers(self._nearest(even)), patterns])

    @property
    def saturates(self) -> bool:
        return True


@_ieee
def _to_float64(exact: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Rationals as float64: nearest for float64 itself, to odd on the way to a narrower format.

    Odd in 53 bits, then odd in 24 (`_nearest`), equals odd in 24 at once: both steps truncate, and
    set the last bit if any bit was cut off.
    """
    flat = exact.ravel().tolist()
    nearest = np.array([nearest_float64(value) for value in flat], dtype=np.float64)
    if dtype != np.float64:
        sides = np.array(list(map(_side, flat, nearest.tolist())), dtype=np.float64)
        even = nearest.view(np.uint64) & 1 == 0
        nearest = np.where(even & (sides != 0), np.nextafter(nearest, sides * np.inf), nearest)
    return nearest.reshape(exact.shape)


def _side(value: Fraction, nearest: float) -> int:
    """The sign of value − nearest; 0 for an infinite one."""
    if math.isinf(nearest):
        return 0
    p, q = nearest.as_integer_ratio()
    difference = value.numerator * q - p * value.denominator
    return (difference > 0) - (difference < 0)


def _format(name: str, dtype: Any) -> Floating:
    stored, narrowest = np.dtype(dtype), np.dtype(np.float32)
    accumulator = max(stored, narrowest, key=lambda each: each.itemsize)
    return Floating(name, stored, accumulator, int(ml_dtypes.finfo(stored).nmant) + 1)


FORMATS = (
    FLOAT64 := _format("float64", np.float64),
    FLOAT32 := _format("float32", np.float32),
    FLOAT16 := _format("float16", np.float16),
    BFLOAT16 := _format("bfloat16", ml_dtypes.bfloat16),
    FLOAT8_E5M2 := _format("float8_e5m2", ml_dtypes.float8_e5m2),
    FLOAT8_E4M3 := _format("float8_e4m3", ml_dtypes.float8_e4m3fn),
)
"""Every float format, by falling size; one that is added here has its name everywhere."""
