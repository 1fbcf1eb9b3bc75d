"""Constants and error bounds, each derived from ranges, separations, lengths and tolerances."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Floating
from transformist.errors import InvalidValue
from transformist.model import FeedForward, FeedForwardStack, Sublayer, rationals

FloatArray = NDArray[np.float64]


def power_of_two_at_most(x: Fraction) -> Fraction:
    """The largest power of two that is at most x > 0.

    Powers of two are exact in every binary format, and so are products with them.

    Raises:
        InvalidValue: for x ≤ 0.

    Example:
        >>> power_of_two_at_most(Fraction(1, 1000))
        Fraction(1, 1024)

    """
    if x <= 0:
        raise InvalidValue(
            "a power of two lies below positive numbers only",
            received=str(x),
            where="power_of_two_at_most",
            remedy="give a positive number",
        )
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= x else power / 2


GELU_PRODUCT = {"gelu": Fraction(7, 96), "gelu-tanh": Fraction(733, 10000)}
"""K with |√(π/2)(GELU(x+y) − GELU(x) − GELU(y)) − xy| ≤ K (|x| + |y|)⁴ for all x and y.

The left side is |∬ D(s + t)| over the rectangle from 0 to (x, y), D(z) = 1 − √(π/2) GELU″(z). For
x Φ(x), D(z) = 1 − e^(−z²/2)(1 − z²/2) lies in [0, z²], and the integral of (s + t)² is at most
7/96 (|x| + |y|)⁴, reached as x = y → 0. For the tanh form D(z) ≤ 1.00496 z².
"""

GELU_BEND = Fraction(1701, 10000)
"""sup |GELU(z) − ReLU(z)| = 0.16997 for x Φ(x) and 0.17004 for the tanh form, rounded up."""


def gelu_product_scale(tolerance: Fraction, radius: Fraction, activation: str) -> Fraction:
    """s, the largest power of two with K s² radius⁴ ≤ tolerance, for xy = mul(sx, sy)/s².

    Args:
        tolerance: the admitted error of the product, rounding aside.
        radius: a bound of |x| + |y|.
        activation: `gelu` or `gelu-tanh`.

    """
    square = tolerance / (GELU_PRODUCT[activation] * radius**4)
    return power_of_two_at_most(Fraction(math.isqrt(int(square * 2**200)), 2**100))


def relu_by_gelu_scale(tolerance: Fraction) -> Fraction:
    """c, the least power of two with GELU_BEND / c ≤ tolerance, for ReLU(x) ≈ GELU(cx)/c."""
    return 1 / power_of_two_at_most(tolerance / GELU_BEND)


def step_zone(max_length: int) -> Fraction:
    """s, the largest power of two that is at most 1/(N + 1).

    A mean over i + 1 ≤ N + 1 positions of integers is 0 or at least s in magnitude.

    Example:
        >>> step_zone(1000)
        Fraction(1, 1024)

    """
    return power_of_two_at_most(Fraction(1, max_length + 1))


def rounding_error(
    network: FeedForward | FeedForwardStack | Sublayer, x: Any, arithmetic: Arithmetic
) -> FloatArray:
    """How far the network's value in `arithmetic` can be from its real value, for given inputs.

    A running error analysis of the very order of operations of the reference: with w the unit
    roundoff of the accumulator, a dot product of t terms has relative error (1 + w)^(t+1) − 1 of
    the sum of magnitudes, the stored result u of itself; ReLU passes errors on, GELU at most
    1.13 times.

    Args:
        network: the weights.
        x: inputs that the format represents, shape (cases, d).
        arithmetic: the number system; the bound is 0 in one that does not round.

    Returns:
        Bounds of shape (cases, d_out); infinite where an intermediate result may overflow.

    """
    start = np.asarray(x, dtype=np.float64)
    if not isinstance(arithmetic, Floating):
        width = network.width_out
        return np.zeros((start.shape[0], width))
    if isinstance(network, Sublayer):
        if not isinstance(network.function, FeedForward) or network.pre_norm or network.post_norm:
            raise InvalidValue(
                "a rounding error is bounded for feed-forward networks without a norm",
                received=type(network.function).__name__,
                where="rounding_error",
                remedy="bound the parts one by one",
            )
        value, error = _network(network.function, start, np.zeros_like(start), arithmetic)
        return _stored(value + start, error, arithmetic, arithmetic.unit_roundoff) * _SLACK
    parts = network.parts if isinstance(network, FeedForwardStack) else (network,)
    value, error = start, np.zeros_like(start)
    for part in parts:
        value, error = _network(part, value, error, arithmetic)
    return error * _SLACK


_SLACK = 1 + 1e-9
"""Covers the rounding of the bound itself, which is computed in float64 from positive terms."""

_GELU_SLOPE = 1.13
_GELU_ROUNDINGS = 8


def _network(
    network: FeedForward, x: FloatArray, error: FloatArray, a: Floating
) -> tuple[FloatArray, FloatArray]:
    """The real values of y, to float64, and a bound of the error of its computed values."""
    h, error = _affine(network.W_1, network.b_1, x, error, a)
    if network.activation != "relu":
        rounding = _GELU_ROUNDINGS * float(a.unit_roundoff)
        error = _GELU_SLOPE * error + rounding * (np.abs(h) + error) + _GELU_ROUNDINGS * a.smallest
    h = np.asarray(
        FeedForward(W_1=np.eye(h.shape[1]), W_2=np.eye(h.shape[1]), activation=network.activation)(
            h
        )
    )
    return _affine(network.W_2, network.b_2, h, error, a)


def _affine(
    W: Any, b: Any, x: FloatArray, error: FloatArray, a: Floating
) -> tuple[FloatArray, FloatArray]:
    exact_W, exact_b = W.astype(np.float64), b.astype(np.float64)
    near_W, near_b = a.numbers(a.array(W)), a.numbers(a.array(b))
    off_W = np.abs(rationals(near_W) - rationals(W)).astype(np.float64)
    off_b = np.abs(rationals(near_b) - rationals(b)).astype(np.float64)
    lost = np.asarray(~np.isfinite(error).all(axis=1))
    error = np.where(lost[:, None], 0.0, error)
    size = np.abs(x) + error
    magnitude = size @ np.abs(near_W).T + np.abs(near_b)
    terms = np.count_nonzero(near_W, axis=1) + 1
    w = float(a.accumulator_roundoff)
    total = error @ np.abs(near_W).T + size @ off_W.T + off_b
    total = total + magnitude * np.expm1((terms + 1) * np.log1p(w))
    total = total + terms * float(np.finfo(a.accumulator).smallest_subnormal)
    value = x @ exact_W.T + exact_b
    total = total + magnitude * terms * 2.0**-52
    # a partial sum may overflow the accumulator though the whole is small
    total[lost] = np.inf
    total[magnitude + total >= float(np.finfo(a.accumulator).max)] = np.inf
    narrow = a.unit_roundoff if a.unit_roundoff > a.accumulator_roundoff else Fraction(0)
    return value, _stored(value, total, a, narrow)


def _stored(value: FloatArray, error: FloatArray, a: Floating, u: Fraction) -> FloatArray:
    """The error after storing a value: infinite where the value may overflow the format."""
    size = np.abs(value) + error
    fits = size < a.largest
    return np.where(fits, error + float(u) * np.where(fits, size, 0.0) + a.smallest, np.inf)
