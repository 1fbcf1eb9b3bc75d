"""Exact rational arithmetic: integers over one common denominator.

A `Rationals` array keeps its numerators as 64-bit integers while a bound on the result shows that
they cannot overflow, and as Python integers beyond that; the bound is taken before every operation.
What is not rational (a root of a non-square, e to a power other than 0, Φ, tanh) is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic.given import exact_numbers, is_power_of_two
from transformist.arithmetic.protocol import Array, Flags
from transformist.errors import NotRepresentable

# int64 holds magnitudes below 2⁶³. Before each operation the largest numerators bound its result
# and, with `growth` or `terms`, every partial sum of it; a bound below 2⁶² has a factor 2 to spare.
_WORD = 2**62
"""Numerators of this magnitude or more are kept as Python integers."""


class Rationals:
    """An array of rational numbers, `numerators / denominator`, in lowest common terms.

    Example:
        >>> Rationals.of([[0.5, 3]])
        Rationals([['1/2', '3']])

    """

    __slots__ = ("denominator", "numerators")

    def __init__(self, numerators: NDArray[Any], denominator: int = 1) -> None:
        if denominator != 1:
            # The array has one denominator: it is divided by what divides all numerators too. If
            # all are 0, gcd(D, 0) = D, and the denominator becomes 1.
            common = int(np.gcd.reduce(numerators.ravel())) if numerators.size else 0
            divisor = math.gcd(denominator, common)
            shortened = numerators // divisor if common else numerators * 0
            numerators = np.asarray(shortened, dtype=numerators.dtype)  # numpy unwraps a lone one
            denominator //= divisor
        if numerators.dtype == object and _peak(numerators) < _WORD:
            numerators = numerators.astype(np.int64)
        self.numerators = numerators
        self.denominator = denominator

    @classmethod
    def of(cls, values: Any) -> Rationals:
        """Nested lists or arrays of integers, floats or rationals, each taken as it is."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and _peak(values) < _WORD:
            return cls(values.astype(np.int64))
        exact = exact_numbers(values)
        if exact.dtype == np.float64 and _peak(exact) < _WORD and not (exact % 1).any():
            return cls(exact.astype(np.int64))
        distinct, places = exact.ravel(), np.arange(exact.size)
        if exact.dtype == np.float64:
            distinct, places = np.unique(distinct, return_inverse=True)  # weights repeat
        # pₖ/qₖ = pₖ (D/qₖ)/D with D the least common multiple of all qₖ.
        ratios = [value.as_integer_ratio() for value in distinct.tolist()]
        denominator = math.lcm(*(q for _, q in ratios))
        numerators = _integers([p * (denominator // q) for p, q in ratios])
        return cls(numerators[places].reshape(exact.shape), denominator)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.numerators.shape)

    def __getitem__(self, index: Any) -> Rationals:
        return Rationals(np.asarray(self.numerators[index]), self.denominator)

    def tolist(self) -> Any:
        """Nested lists of `Fraction`."""
        return self.fractions().tolist()

    def fractions(self) -> NDArray[Any]:
        """An object array of `Fraction` of the same shape."""
        flat = self.numerators.ravel().tolist()
        ratios = {p: Fraction(p, self.denominator) for p in set(flat)}  # numbers repeat
        array = np.empty(len(flat), dtype=object)
        array[:] = [ratios[p] for p in flat]
        return np.asarray(array.reshape(self.shape))

    def weights(self) -> NDArray[Any]:
        """Exact values: float64 if every entry is a float64, else an array of `Fraction`.

        Example:
            >>> Rationals.of(["1/2", 3]).weights(), Rationals.of(["1/3"]).weights()
            (array([0.5, 3. ]), array([Fraction(1, 3)], dtype=object))

        """
        # A numerator of at most 53 bits over 2ᵏ, k ≤ 1000, is 0 or at least 2⁻¹⁰⁰⁰ > 2⁻¹⁰²² in
        # magnitude, a normal float64: the quotient does not round.
        small = self.numerators.dtype != object and _peak(self.numerators) <= 2**53
        if small and self.denominator <= 2**1000 and is_power_of_two(Fraction(self.denominator)):
            return np.asarray(self.numerators / float(self.denominator))
        return exact_numbers(self.fractions())

    def over(self, denominator: int) -> NDArray[Any]:
        """The numerators over a multiple of the denominator."""
        return _times(self.numerators, denominator // self.denominator)

    def __repr__(self) -> str:
        return f"Rationals({np.vectorize(str, otypes=[object])(self.fractions()).tolist()})"


class Exact:
    """Rational arithmetic without rounding.

    Softmax is admitted where the admissible scores of a row are all equal, LayerNorm where
    σ² + ε is the square of a rational; elsewhere, and for GELU, a refusal says why.

    Example:
        >>> EXACT.divide(EXACT.array([1, 2]), EXACT.array([3, 3]))
        Rationals(['1/3', '2/3'])

    """

    name = "exact"
    unit_roundoff = Fraction(0)
    largest = None
    saturates = False
    most_scores = 2**22

    def array(self, values: Any) -> Array:
        """The numbers themselves."""
        return values if isinstance(values, Rationals) else Rationals.of(values)

    def near(self, values: Callable[[int], Any]) -> Array:
        """Rationals within 2⁻¹²⁸ of the real numbers."""
        return self.array(values(128))

    def numbers(self, x: Array) -> NDArray[Any]:
        """An object array of `Fraction`."""
        return Rationals.of(x).fractions() if not isinstance(x, Rationals) else x.fractions()

    def radius(self, x: Array) -> NDArray[Any]:
        """0: a rational is what it is."""
        return np.zeros(x.shape)

    def shown(self, x: Array) -> Any:
        return x.tolist()

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        return _combine(lambda *xs: np.concatenate(xs, axis=axis), parts, growth=1)

    def add(self, x: Array, y: Array) -> Array:
        return _combine(np.add, (x, y), growth=2)

    def subtract(self, x: Array, y: Array) -> Array:
        return _combine(np.subtract, (x, y), growth=2)

    def multiply(self, x: Array, y: Array) -> Array:
        return _product(np.multiply, x, y, terms=1)

    def divide(self, x: Array, y: Array) -> Array:
        # With L the least common multiple of the numerators qⱼ of y, and D its denominator,
        # 1/yⱼ = D/qⱼ = D (L/qⱼ)/L: whole numbers over the one denominator L.
        multiple = math.lcm(*(int(value) for value in np.unique(y.numerators)))
        inverse = _times(np.asarray(multiple // _wide(y.numerators), dtype=object), y.denominator)
        return self.multiply(x, Rationals(_narrow(inverse), multiple))

    def affine(self, x: Array, W: Array, b: Array | None = None) -> Array:
        """W x + b for every vector x along the last axis.

        Coordinates that W does not read are left out first: a long denominator among them would
        make all numerators long.
        """
        read = W.numerators.any(axis=0)
        if read.any() and not read.all():
            x, W = x[..., read], W[:, read]
        product = self.matmul(x, Rationals(W.numerators.T, W.denominator))
        return product if b is None else self.add(product, b)

    def matmul(self, x: Array, y: Array) -> Array:
        return _product(_matmul, x, y, terms=x.shape[-1])

    def scores(self, q: Array, k: Array) -> Array:
        """The dot products q · k; the common factor 1/√d_key changes neither order nor ties."""
        return self.matmul(q, Rationals(np.swapaxes(k.numerators, -1, -2), k.denominator))

    def sum(self, x: Array) -> Array:
        # Each partial sum of n numerators of magnitude at most P is at most n P.
        return _map(lambda n: n.sum(axis=-1, keepdims=True), x, growth=x.shape[-1])

    def maximum(self, x: Array, among: Flags) -> Array:
        # An entry that is not admissible counts as −peak, and is at most the largest of the others.
        least = -_peak(x.numerators)
        largest = np.where(among, x.numerators, least).max(axis=-1, keepdims=True, initial=least)
        return Rationals(np.where(among.any(axis=-1, keepdims=True), largest, 0), x.denominator)

    def relu(self, x: Array) -> Array:
        return _map(lambda n: np.maximum(n, 0), x, growth=1)

    def sqrt(self, x: Array) -> Array:
        """√x where every entry is the square of a rational.

        Raises:
            NotRepresentable: where one is not.

        """
        # √(p/q) = √(p q)/q, which is rational if and only if the whole number p q is a square.
        squares = [int(value) * x.denominator for value in x.numerators.ravel()]
        roots = [math.isqrt(square) for square in squares]
        irrational = [root * root != square for root, square in zip(roots, squares, strict=True)]
        if any(irrational):
            raise NotRepresentable(
                "in exact arithmetic σ² + ε must be the square of a rational",
                received=f"√{self._first(x, irrational)}",
                remedy="evaluate in float64, or choose ε so that σ² + ε is a square",
            )
        return Rationals(_integers(roots).reshape(x.shape), x.denominator)

    def exp(self, x: Array) -> Array:
        """e⁰ = 1 everywhere.

        Raises:
            NotRepresentable: for any other exponent, at which eˣ is irrational.

        """
        if x.numerators.any():
            raise NotRepresentable(
                "in exact arithmetic the admissible scores of a softmax row must all be equal, "
                "as e to a rational power other than 0 is irrational",
                received=f"scores that differ by {self._first(x, x.numerators)} before 1/√d_key",
                remedy="evaluate in float64, or give the head a hard weighting",
            )
        return Rationals(np.ones(x.shape, np.int64))

    def root_two_over_pi(self) -> Array:
        """Refused: not rational."""
        raise self._no_gelu()

    def tanh(self, x: Array) -> Array:
        """Refused: not rational."""
        raise self._no_gelu()

    def normal_cdf(self, x: Array) -> Array:
        """Refused: not rational."""
        raise self._no_gelu()

    def keep(self, x: Array, where: Flags) -> Array:
        return Rationals(np.where(where, x.numerators, 0), x.denominator)

    def maximal(self, x: Array, among: Flags) -> Flags:
        # `maximum` may shorten the fraction: over the denominator of x, equal rationals have equal
        # numerators.
        largest = self.maximum(x, among).over(x.denominator)
        return np.asarray(among & (x.numerators == largest), dtype=bool)

    def positive(self, x: Array) -> Flags:
        return np.asarray(x.numerators > 0, dtype=bool)

    @staticmethod
    def _first(x: Rationals, where: Any) -> Fraction:
        chosen = np.asarray(where, dtype=bool).ravel()
        return Fraction(int(x.numerators.ravel()[chosen][0]), x.denominator)

    @staticmethod
    def _no_gelu() -> NotRepresentable:
        return NotRepresentable(
            "in exact arithmetic an activation must have rational values",
            received="an activation other than ReLU",
            remedy="evaluate in float64, or use ReLU",
        )


def _peak(numerators: NDArray[Any]) -> int:
    return max(-int(numerators.min()), int(numerators.max()), 0) if numerators.size else 0


def _wide(numerators: NDArray[Any]) -> NDArray[Any]:
    return numerators.astype(object)


def _narrow(numerators: NDArray[Any]) -> NDArray[Any]:
    return numerators.astype(np.int64) if _peak(numerators) < _WORD else numerators


def _integers(values: Iterable[int]) -> NDArray[Any]:
    return _narrow(np.array(list(values), dtype=object))


def _times(numerators: NDArray[Any], factor: int) -> NDArray[Any]:
    if factor == 1:
        return numerators
    if max(_peak(numerators), 1) * abs(factor) >= _WORD:
        numerators = _wide(numerators)
    return np.asarray(numerators * factor, dtype=numerators.dtype)  # numpy unwraps a lone one


def _map(function: Callable[[NDArray[Any]], Any], x: Rationals, growth: int) -> Rationals:
    """Apply `function` to the numerators; it grows them by at most `growth`."""
    numerators = x.numerators
    if _peak(numerators) * growth >= _WORD:
        numerators = _wide(numerators)
    return Rationals(np.asarray(function(numerators)), x.denominator)


def _combine(function: Callable[..., Any], parts: Iterable[Rationals], growth: int) -> Rationals:
    """`function` of the numerators over one denominator, which it grows by at most `growth`."""
    given = list(parts)
    common = math.lcm(*(part.denominator for part in given))
    numerators = [part.over(common) for part in given]
    if max(_peak(n) for n in numerators) * growth >= _WORD:
        numerators = [_wide(n) for n in numerators]
    return Rationals(np.asarray(function(*numerators)), common)


def _product(function: Callable[..., Any], x: Rationals, y: Rationals, terms: int) -> Rationals:
    """Apply a bilinear `function` to the numerators; each result is a sum of `terms` products."""
    a, b = x.numerators, y.numerators
    if _peak(a) * _peak(b) * terms >= _WORD or b.dtype != a.dtype:  # beside zeros all may be wide
        a, b = _wide(a), _wide(b)
    return Rationals(np.asarray(function(a, b)), x.denominator * y.denominator)


def _matmul(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The product of two matrices of whole numbers."""
    # Each partial sum is a whole number of at most peak(a) · peak(b) · k. Below 2⁵³ float64 holds
    # all of these, so BLAS adds without rounding in whatever order it takes them.
    if object in (a.dtype, b.dtype) or _peak(a) * _peak(b) * a.shape[-1] >= 2**53:
        return np.asarray(np.matmul(a, b), dtype=np.result_type(a, b))  # numpy unwraps a lone one
    return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64))


EXACT = Exact()
