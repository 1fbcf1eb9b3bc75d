"""Protocol of the number systems, for which each definition is written once.

A definition in `model/` is a composition of the operations below. Each operation takes and gives
arrays of the arithmetic's own kind, and rounds its result to the format once (`interval` encloses
it instead). Between operations nothing is kept in a wider format. Sums and dot products run from
left to right, and are rounded to the format at their end only.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = Any
"""An array of an arithmetic's own kind: it has `shape`, slices like numpy, and is not mutated."""

Flags: TypeAlias = NDArray[np.bool_]
"""A truth value for each entry of an array."""


class Arithmetic(Protocol):
    """A number system: its numbers, its rounding, its order of summation.

    Shapes follow numpy's broadcasting; `...` stands for any leading batch dimensions.
    """

    @property
    def name(self) -> str:
        """The name by which the arithmetic is asked for."""

    @property
    def unit_roundoff(self) -> Fraction:
        """u: a rounded normal result is at most u times itself away; 0 where nothing rounds."""

    @property
    def largest(self) -> Any:
        """The largest number; `None` where numbers do not end."""

    @property
    def saturates(self) -> bool:
        """True if a result too large becomes the largest number."""

    @property
    def most_scores(self) -> int:
        """Most attention scores that the dense reference computes in this arithmetic."""

    def array(self, values: Any) -> Array:
        """Numbers (nested lists, numpy arrays, rationals) rounded to the format, each once."""

    def near(self, values: Callable[[int], Any]) -> Array:
        """Real numbers, each rounded once; `values(b)` gives rationals within 2⁻ᵇ of them.

        The rationals for b = 128 round as the real numbers do. In `interval` the balls hold these.
        """

    def numbers(self, x: Array) -> NDArray[Any]:
        """The exact values of `x`: float64 where every one fits, else rationals.

        In `interval` the midpoints of the balls.
        """

    def radius(self, x: Array) -> NDArray[Any]:
        """Bounds of |real value − number|: radii of balls in `interval`, 0 elsewhere."""

    def shown(self, x: Array) -> Any:
        """Nested lists of numbers, or of balls in decimals, for a person."""

    def concatenate(self, parts: list[Array], axis: int) -> Array:
        """The parts one after the other along `axis`."""

    def add(self, x: Array, y: Array) -> Array:
        """x + y."""

    def subtract(self, x: Array, y: Array) -> Array:
        """x − y."""

    def multiply(self, x: Array, y: Array) -> Array:
        """x · y, entry by entry."""

    def divide(self, x: Array, y: Array) -> Array:
        """x / y, entry by entry; no entry of y is 0."""

    def affine(self, x: Array, W: Array, b: Array | None = None) -> Array:
        """W x + b for every vector x along the last axis: (..., d), (h, d), (h,) → (..., h)."""

    def matmul(self, x: Array, y: Array) -> Array:
        """The matrix product (..., r, k), (..., k, c) → (..., r, c)."""

    def scores(self, q: Array, k: Array) -> Array:
        """q · k / √d_key for every pair: (..., r, d_key), (..., n, d_key) → (..., r, n).

        An arithmetic without roots gives the dot products themselves; their order is the same.
        """

    def sum(self, x: Array) -> Array:
        """The sum along the last axis, which is kept with length 1."""

    def maximum(self, x: Array, among: Flags) -> Array:
        """The largest admissible entry along the last axis, kept with length 1; 0 where none is."""

    def relu(self, x: Array) -> Array:
        """max(0, x)."""

    def sqrt(self, x: Array) -> Array:
        """√x for x ≥ 0."""

    def exp(self, x: Array) -> Array:
        """eˣ."""

    def root_two_over_pi(self) -> Array:
        """√(2/π), of shape (1,)."""

    def tanh(self, x: Array) -> Array:
        """The hyperbolic tangent."""

    def normal_cdf(self, x: Array) -> Array:
        """Φ(x), the distribution function of the standard normal."""

    def keep(self, x: Array, where: Flags) -> Array:
        """x where the mask is true, 0 elsewhere."""

    def maximal(self, x: Array, among: Flags) -> Flags:
        """True for the admissible entries along the last axis that equal the largest of them."""

    def positive(self, x: Array) -> Flags:
        """x > 0, entry by entry."""
