"""Values with bounds of their errors, followed through the operations of the reference.

The docstring of `network_error`, which uses these operations, says how each adds to an error.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Floating
from transformist.model import rationals
from transformist.rounding.float_format import storing_roundoff
from transformist.rounding.powers import SLACK, UNDERFLOW

FloatArray = NDArray[np.float64]

Near: TypeAlias = tuple[FloatArray, FloatArray]
"""Values v in float64, with e: the real and the computed value lie within e of v and each other."""


def affine(W: Any, b: Any, x: FloatArray, error: FloatArray, a: Floating) -> Near:
    """Return W x + b, stored once."""
    # W and b are stored first: near_W and near_b, off by off_W and off_b.
    exact_W, exact_b = W.astype(np.float64), b.astype(np.float64)
    (near_W, off_W), (near_b, off_b) = _parameter(W, a), _parameter(b, a)
    # A row whose error is infinite stays so; 0 stands for it until then, as 0 · inf would be NaN.
    lost = np.asarray(~np.isfinite(error).all(axis=1))
    error = np.where(lost[:, None], 0.0, error)
    size = np.abs(x) + error
    magnitude = size @ np.abs(near_W).T + np.abs(near_b)
    # Each of t terms is rounded once as a product and in at most t additions.
    terms = np.count_nonzero(near_W, axis=1) + 1
    w = float(a.accumulator_roundoff)
    off = error @ np.abs(near_W).T + size @ off_W.T + off_b
    off = off + magnitude * np.expm1((terms + 1) * np.log1p(w))
    off = off + terms * a.smallest_partial
    # `value` is itself computed in float64, where t terms are off by at most 2 t 2⁻⁵³ of them.
    value = x @ exact_W.T + exact_b
    off = off + magnitude * terms * 2.0**-52
    # A partial sum may overflow the accumulator though the whole is small.
    off[lost] = np.inf
    off[magnitude + off >= a.largest_partial] = np.inf
    return value, stored(value, off, a, storing_roundoff(a))


def _parameter(values: Any, a: Floating) -> Near:
    """Return a parameter as the format stores it, and the distance from the parameter itself."""
    if a is FLOAT64 and values.dtype == np.float64:
        return values, np.zeros(values.shape)
    near = a.numbers(a.array(values))
    return near, distances(near, values)


def distances(near: Any, values: Any) -> FloatArray:
    """Return bounds of the distances of numbers, 0 where they are equal."""
    off = abs(rationals(near) - rationals(values))
    # A distance that float64 rounds to 0 may be multiplied by large numbers.
    return np.asarray(off, dtype=np.float64) + UNDERFLOW * np.asarray(off != 0, dtype=np.float64)


def stored(value: FloatArray, error: FloatArray, a: Floating, u: Fraction) -> FloatArray:
    """Return the error after storing a value, infinite where the value may overflow the format."""
    size = np.abs(value) + error
    fits, own = size < a.largest, max(a.smallest, UNDERFLOW)
    return np.where(fits, own + error + float(u) * np.where(fits, size, 0.0), np.inf)


# The operations of norms and of softmax. A narrow format carries out a sum, a product, a quotient
# or a root in float32 and then stores it. A format of p bits gets the correctly rounded result so:
# rounding twice is rounding once where the wider format has at least 2p + 2 bits (Figueroa 1995),
# as 24 are for p ≤ 11.


def weight(values: Any, a: Floating) -> Near:
    """Return a parameter in float64, with its errors of rounding to float64 and to the format."""
    if a is FLOAT64 and getattr(values, "dtype", None) == np.float64:
        return values, np.zeros(values.shape)
    value = rationals(values).astype(np.float64)
    return value, distances(a.numbers(a.array(values)), values) + distances(value, values)


def once(value: FloatArray, error: FloatArray, a: Floating) -> Near:
    """Return a result with its errors of storing and of float64; 0 where they are infinite."""
    # The value that goes beside the error is rounded in float64 itself, by 2⁻⁵³ of it.
    error = stored(value, error + 2.0**-53 * np.abs(value), a, a.unit_roundoff)
    return np.where(np.isfinite(error), value, 0.0), error


def summed(x: Near, y: Near, a: Floating) -> Near:
    """Return x + y."""
    return once(x[0] + y[0], x[1] + y[1], a)


def product(x: Near, y: Near, a: Floating) -> Near:
    """Return x y, entry by entry."""
    # |x̂ŷ − xy| ≤ |x̂| e_y + |y| e_x, where x̂ and y lie within e_x and e_y of the two values.
    error = np.abs(x[0]) * y[1] + np.abs(y[0]) * x[1] + 2 * x[1] * y[1]
    return once(x[0] * y[0], error, a)


def quotient(x: Near, y: Near, a: Floating) -> Near:
    """Return x/y; the error is infinite where y may be 0."""
    # |x̂/ŷ − x/y| ≤ (e_x + |x/y| e_y)/|ŷ|, where |x| ≤ |x̂| + e_x and |y|, |ŷ| ≥ `least`.
    least = np.abs(y[0]) - y[1] * SLACK
    error = (x[1] + (np.abs(x[0]) + x[1]) / least * y[1]) / least
    return once(x[0] / y[0], np.where(least > 0, error, np.inf), a)


def root(x: Near, a: Floating) -> Near:
    """Return √x of a number x ≥ 0, whose value less its error may be below 0."""
    # √x̂ − √x = (x̂ − x)/(√x̂ + √x), and |√x̂ − √x| ≤ √|x̂ − x|: the smaller bound, also at x = 0.
    least = np.maximum(x[0] - x[1] * SLACK, 0)
    error = np.fmin(x[1] / (2 * np.sqrt(least)), np.sqrt(x[1]))
    return once(np.sqrt(np.maximum(x[0], 0)), error, a)


def total(x: Near, a: Floating) -> Near:
    """Return the sum of the coordinates, from left to right in the accumulator."""
    size = (np.abs(x[0]) + x[1]).sum(axis=-1, keepdims=True)
    terms = x[0].shape[-1]
    # Each term is in at most t − 1 additions, in the accumulator and in float64.
    own = np.expm1(terms * np.log1p(float(a.accumulator_roundoff))) + terms * 2.0**-52
    error = x[1].sum(axis=-1, keepdims=True) + own * size
    error = np.where(size + error < a.largest_partial, error, np.inf)
    value = x[0].sum(axis=-1, keepdims=True)
    return value, stored(value, error, a, storing_roundoff(a))


def matrix_product(x: Near, y: Near, a: Floating) -> Near:
    """Return x y, each entry accumulated from the first product to the last and stored once."""
    k = x[0].shape[-1]
    size_x, size_y = np.abs(x[0]) + x[1], np.abs(y[0]) + y[1]
    magnitude = size_x @ size_y
    # |x̂ŷ − xy| ≤ |x| e_y + |y| e_x + 2 e_x e_y for each of k products, of which none needs rounding
    # more often than k + 1 times in the accumulator; float64 itself adds 2k 2⁻⁵³.
    off = np.abs(x[0]) @ y[1] + x[1] @ np.abs(y[0]) + 2 * (x[1] @ y[1])
    own = np.expm1((k + 1) * np.log1p(float(a.accumulator_roundoff))) + k * 2.0**-52
    off = off + own * magnitude + k * a.smallest_partial
    off = np.where(magnitude + off < a.largest_partial, off, np.inf)
    return x[0] @ y[0], stored(x[0] @ y[0], off, a, storing_roundoff(a))


def exponential(x: Near, a: Floating) -> Near:
    """Return e^x, for x of at most 0, computed in float64 and stored once."""
    # Both x and x̂ lie within e of v, and of each other: |e^x̂ − e^x| ≤ e^v (e^e − 1), and so for v.
    # The exponential of float64 is off by less than 2 · 2⁻⁵³ of itself.
    value = np.exp(x[0])
    grown = np.where(x[1] < 700, np.expm1(np.minimum(x[1], 700)), np.inf)
    return once(value, value * grown + value * (1 + grown) * 2.0**-52, a)
