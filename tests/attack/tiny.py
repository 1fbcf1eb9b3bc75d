"""Tiny float formats, in which every rounding shows, as arithmetics of the library.

A `Tiny` has 3 to 11 bits of precision and 3 to 5 of exponent. It rounds where
`arithmetic.floating.Floating` says that a format does: each product and each partial sum once, in
the accumulator; each result once more, where it is stored. The accumulator is the format itself, or
a wider one. Numbers are kept as float64, which holds them all; so are intermediate results: a
float64 result of two numbers of at most 25 bits, rounded again, is the result rounded once
(Figueroa 1995: 53 ≥ 2·25 + 2, for +, −, ×, ÷ and √).

A format without subnormals flushes: a result that rounds, as if exponents had no end, to less than
the smallest normal number m in magnitude, is 0. What bounds need of `smallest` is that

1. a result x ≠ 0 that is too small for the relative bound is off by at most smallest/2, and
2. whole multiples of a power of two ≥ `smallest`, of at most p bits, are numbers of the format.

With subnormals both hold for the smallest positive number. Without, a flush costs up to m, so that
`smallest` is 2m, which has both properties; of the accumulator likewise. Nothing that bounds need
says that x + y never underflows, as with subnormals; who relies on that has to ask
`has_subnormals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from transformist.arithmetic import Floating
from transformist.arithmetic.given import exact_numbers
from transformist.arithmetic.systems import SYSTEMS
from transformist.errors import NotFinite

_quiet = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
_DOUBLE = np.dtype(np.float64)
_INT64 = np.dtype(np.int64)
_EXPONENT = np.array(0x7FF << 52)
_erfc = np.frompyfunc(math.erfc, 1, 1)


@dataclass(frozen=True)
class Shape:
    """The numbers of a format: ±k 2ᵉ, k < 2ᵖ, 2^least the smallest normal, all below 2^(most+1)."""

    precision: int
    least: int
    most: int
    has_subnormals: bool = True

    @classmethod
    def of(cls, precision: int, exponent: int, has_subnormals: bool = True) -> Shape:
        """With so many bits of exponent, as IEEE 754 has it."""
        bias = 2 ** (exponent - 1) - 1
        return cls(precision, 1 - bias, bias, has_subnormals)

    @cached_property
    def largest(self) -> float:
        return math.ldexp(2 - 2.0 ** (1 - self.precision), self.most)

    @cached_property
    def smallest(self) -> float:
        """As the module says: 2ᵏ, so that underflow costs at most half of it."""
        return math.ldexp(1, self.least + (1 - self.precision if self.has_subnormals else 1))

    @cached_property
    def _constants(self) -> list[np.ndarray]:
        """2^most, the smallest 2ᵏ that has a spacing of its own, and M for k = 0 (`round`)."""
        least = math.ldexp(1, self.least) if self.has_subnormals else 0.0
        constants = math.ldexp(1, self.most), least, math.ldexp(3, 52 - self.precision)
        return [np.array(x) for x in constants]  # faster in numpy than floats

    def round(self, x: np.ndarray) -> np.ndarray:
        """To nearest, ties to even; infinite beyond the largest number."""
        highest, least, shift = self._constants
        # For 2ᵏ ≤ |x| < 2^(k+1) the numbers of the format are the multiples of q = 2^(k+1−p). With
        # M = 3 · 2⁵¹ q the sum x + M is between 2⁵² q and 2⁵³ q, where float64 has the multiples of
        # q alone. So the addition rounds x to one of them, ties to even, as M/q is even, and the
        # subtraction of M is exact. The bits of the exponent of x, with a mantissa of 0, are 2ᵏ.
        power = (x.view(_INT64) & _EXPONENT).view(_DOUBLE)
        may_overflow = np.count_nonzero(power >= highest)
        if may_overflow:
            x, power = np.clip(x, -2 * highest, 2 * highest), np.minimum(power, 2 * highest)
        far = np.maximum(power, least) * shift
        found = np.copysign((x + far) - far, x)
        if not self.has_subnormals:
            found = found * (np.abs(found) >= math.ldexp(1, self.least))
        if may_overflow:
            found = np.where(np.abs(found) > self.largest, np.copysign(np.inf, found), found)
        return found

    def round_exactly(self, x: Fraction) -> float:
        """A rational, in one rounding."""
        if not x:
            return 0.0
        p, q = abs(x.numerator), x.denominator
        exponent = p.bit_length() - q.bit_length()
        exponent += Fraction(p, q) >= Fraction(2) ** exponent  # 2^(exponent − 1) ≤ |x| < 2^exponent
        if self.has_subnormals:
            exponent = max(exponent, self.least + 1)
        quantum = Fraction(2) ** (exponent - self.precision)
        found = round(x / quantum) * quantum
        if abs(found) > self.largest:
            return math.copysign(math.inf, x)
        if not self.has_subnormals and abs(found) < Fraction(2) ** self.least:
            return 0.0
        return float(found)


FOUR_BITS = Shape.of(4, 4)


@dataclass(frozen=True)
class Tiny(Floating):
    """A tiny format.

    Attributes:
        shape: its numbers.
        partial: those of its accumulator, which has infinities.
        clamps: whether a result beyond the largest number is the largest number.

    """

    shape: Shape = FOUR_BITS
    partial: Shape = FOUR_BITS
    clamps: bool = False

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def has_subnormals(self) -> bool:
        return self.shape.has_subnormals

    @cached_property
    def accumulator_roundoff(self) -> Fraction:
        return Fraction(1, 2**self.partial.precision)

    @cached_property
    def largest(self) -> float:
        return self.shape.largest

    @cached_property
    def smallest(self) -> float:
        return self.shape.smallest

    @cached_property
    def saturates(self) -> bool:
        return self.clamps

    @cached_property
    def smallest_partial(self) -> float:
        return self.partial.smallest

    @cached_property
    def largest_partial(self) -> float:
        return self.partial.largest

    @cached_property
    def all_numbers(self) -> list[float]:
        """Every finite number, in order."""
        p, least, most = self.shape.precision, self.shape.least, self.shape.most
        positive = {
            math.ldexp(k, e + 1 - p)
            for e in range(least, most + 1)
            for k in range(2 ** (p - 1), 2**p)
        }
        if self.has_subnormals:
            positive |= {math.ldexp(k, least + 1 - p) for k in range(1, 2 ** (p - 1))}
        return sorted({0.0, *positive, *(-x for x in positive)})

    def array(self, values):
        is_given = isinstance(values, np.ndarray) and values.dtype == _DOUBLE
        exact = values if is_given else exact_numbers(values)
        if exact.dtype == _DOUBLE:
            rounded = self.shape.round(exact)
        else:
            flat = [self.shape.round_exactly(Fraction(x)) for x in exact.ravel().tolist()]
            rounded = np.array(flat).reshape(exact.shape)
        if np.count_nonzero(np.abs(rounded) <= self.largest) < rounded.size:
            raise NotFinite(
                f"every number must be finite in {self.name}, whose largest is {self.largest:g}",
                received="one beyond",
                remedy="scale the values down or use a format with a wider range",
            )
        return rounded

    def near(self, values):
        return self.array(values(128))

    def numbers(self, x):
        return np.asarray(x)

    def _store(self, x):
        """One rounding to the format."""
        stored = self.shape.round(x)
        return np.clip(stored, -self.largest, self.largest) if self.clamps else stored

    _round = _store

    def _once(self, x):
        """One result of the accumulator, stored."""
        return self._store(x if self.partial is self.shape else self.partial.round(x))

    def stored(self, total):
        """Numbers of the accumulator, rounded to the format."""
        return total if self.partial is self.shape and not self.clamps else self._store(total)

    @cached_property
    def _holds_products(self) -> bool:
        """True if the accumulator holds the product of any two numbers of the format."""
        # Numbers are multiples of 2^ulp, of p bits, below 2^(most+1). So a product that is not 0 is
        # at least 2^(2 ulp), has 2p bits, and is below 2^(2 most + 2).
        shape, partial = self.shape, self.partial
        ulp = shape.least + 1 - shape.precision
        return (
            partial.precision >= 2 * shape.precision
            and partial.least <= 2 * ulp
            and partial.most >= 2 * shape.most + 1
        )

    def products(self, x, y):
        """Products of numbers of the format, rounded in the accumulator."""
        return x * y if self._holds_products else self.partial.round(x * y)

    @_quiet
    def add(self, x, y):
        return self._once(x + y)

    @_quiet
    def subtract(self, x, y):
        return self._once(x - y)

    @_quiet
    def multiply(self, x, y):
        return self._once(x * y)

    @_quiet
    def divide(self, x, y):
        return self._once(x / y)

    def _total(self, terms: Iterator[np.ndarray]) -> np.ndarray:
        """From left to right."""
        total = next(terms)
        for term in terms:
            total = self.partial.round(total + term)
        return total

    def _dot(self, x, y):
        products = self.products(x, y)
        if not products.shape[-1]:
            return np.zeros(products.shape[:-1])
        return self._total(products[..., k] for k in range(products.shape[-1]))

    @_quiet
    def affine(self, x, W, b=None):
        read = np.logical_or.reduce(W, axis=0)
        if np.count_nonzero(read) < len(read):
            x, W = x[..., read], W[:, read]
        total = self._dot(x[..., None, :], W)
        if b is not None:
            total = total + b
            if np.count_nonzero(b):  # without, nothing rounds
                total = self.partial.round(total)
        return self.stored(total)

    @_quiet
    def matmul(self, x, y):
        return self.stored(self._dot(x[..., :, None, :], np.swapaxes(y, -1, -2)[..., None, :, :]))

    @_quiet
    def scores(self, q, k):
        dot = self.stored(self._dot(q[..., :, None, :], k[..., None, :, :]))
        found = self.divide(dot, self.sqrt(self.array([q.shape[-1]])))
        if not np.isfinite(found).all():
            raise NotFinite(
                f"attention scores stay below {self.largest:g} in {self.name}",
                received="one that overflows",
                remedy="use a format with a wider range",
            )
        return found

    @_quiet
    def sum(self, x):
        if not x.shape[-1]:
            return np.zeros((*x.shape[:-1], 1))
        return self.stored(self._total(x[..., k] for k in range(x.shape[-1])))[..., None]

    @_quiet
    def maximum(self, x, among):
        highest = np.where(among, x, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
        return np.where(among.any(axis=-1, keepdims=True), highest, 0)

    def relu(self, x):
        return np.maximum(x, 0.0)

    @_quiet
    def sqrt(self, x):
        return self._store(np.sqrt(x))

    @_quiet
    def exp(self, x):
        return self._store(np.exp(x))

    def root_two_over_pi(self):
        return self._store(np.array([math.sqrt(2 / math.pi)]))

    def tanh(self, x):
        return self._store(np.tanh(x))

    def normal_cdf(self, x):
        return self._store(np.asarray(_erfc(x / -math.sqrt(2)), dtype=np.float64) / 2)

    def keep(self, x, where):
        return np.where(where, x, 0.0)

    def maximal(self, x, among):
        return np.asarray(among & (x == self.maximum(x, among)))

    def positive(self, x):
        return np.asarray(x > 0)


def tiny(
    precision: int,
    exponent: int,
    accumulator: str = "own",
    has_subnormals: bool = True,
    clamps: bool = False,
) -> Tiny:
    """A format by its bits; its accumulator is its `own`, `wider` by two bits, or twice as `wide`.

    A format that saturates adds up in an accumulator of its own precision and range, which
    overflows to infinity before it is stored, as all accumulators do.
    """
    shape = Shape.of(precision, exponent, has_subnormals)
    partial = {
        "own": shape,
        "wider": Shape.of(precision + 2, exponent + 1, has_subnormals),
        "wide": Shape.of(2 * precision + 2, 8),
    }[accumulator]
    parts = [f"p{precision}e{exponent}", accumulator]
    parts += ["flushing"] * (not has_subnormals) + ["clamping"] * clamps
    return Tiny("-".join(parts), _DOUBLE, _DOUBLE, precision, shape, partial, clamps)


FORMATS: dict[str, Tiny] = {
    each.name: each
    for each in (
        tiny(3, 5),
        tiny(3, 5, "wide"),
        tiny(3, 3, "wide"),
        tiny(4, 3),
        tiny(4, 4, "wide", clamps=True),
        tiny(4, 5, "wider"),
        tiny(4, 5, "wide", has_subnormals=False),
        tiny(5, 4),
        tiny(5, 5, "wide"),
        tiny(5, 5, has_subnormals=False),
        tiny(5, 5, clamps=True),
        tiny(6, 4, "wide", clamps=True),
        tiny(6, 5),
        tiny(6, 5, "wider", has_subnormals=False),
        tiny(6, 5, "wide"),
    )
}
"""Those that models are tried in."""

LONGER: dict[str, Tiny] = {
    each.name: each
    for each in (
        tiny(8, 5),
        tiny(8, 5, "wide"),
        tiny(7, 5, "wide", clamps=True),
        tiny(9, 5),
        tiny(11, 5, "wide"),
    )
}
"""Of seven to eleven bits: what has several parts leaves a margin only there."""


@contextmanager
def known() -> Iterator[None]:
    """A checker finds a format by the name that a certificate has."""
    names = {**FORMATS, **LONGER}
    SYSTEMS.update(names)
    try:
        yield
    finally:
        for name in names:
            del SYSTEMS[name]
