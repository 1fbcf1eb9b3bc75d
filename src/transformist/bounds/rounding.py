"""How far rounding can move the results of the reference, in its own order of operations."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Floating
from transformist.bounds.approximation import ACTIVATION_SLOPES
from transformist.errors import InvalidValue
from transformist.model import FeedForward, FeedForwardStack, Sublayer, rationals

FloatArray = NDArray[np.float64]


def mean_error(n: int, size: Fraction, arithmetic: Arithmetic) -> float:
    """How far a mean computed by attention can be from the mean of n numbers of magnitude ≤ size.

    The count is stored (u), each weight 1/n is rounded (u, or half the least number where it
    underflows), the dot product accumulates n terms from left to right ((1 + w)^(n+1) − 1), and the
    result is stored (u). Each weight, and each product, may underflow. Infinite where the result
    may overflow.
    """
    if not isinstance(arithmetic, Floating):
        return 0.0
    u, w = float(arithmetic.unit_roundoff), float(arithmetic.accumulator_roundoff)
    relative = math.expm1(2 * math.log1p(u) - math.log1p(-u) + (n + 1) * math.log1p(w))
    if max(size * (1 + Fraction(relative)), Fraction(n)) >= Fraction(arithmetic.largest):
        return math.inf
    underflow = arithmetic.smallest * (n * float(size) + 1) + n * arithmetic.smallest_partial
    return (float(size) * relative + underflow) * _SLACK


def softmax_error(n: int, scores: float, remainder: Fraction, arithmetic: Arithmetic) -> float:
    """How far the rounding of softmax can move a mean of values in [0, 1] fetched from one place.

    A score rounds at most four times (product, store, root, quotient), the difference from the
    maximum once more: δ ≤ 10u(1 + u)⁴ times the largest score. The weight elsewhere, relative to
    that of the place, grows by at most e^δ; the exponential (2u), the sum (n + 1 of w, one of u),
    the quotient and the store move the mean by as much of itself.

    Args:
        n: how many positions there are.
        scores: a bound of the magnitude of the scores.
        remainder: a bound of the weight elsewhere, relative to that of the place.
        arithmetic: the number system.

    """
    if not isinstance(arithmetic, Floating):
        return 0.0
    u, w = float(arithmetic.unit_roundoff), float(arithmetic.accumulator_roundoff)
    delta = 10 * u * (1 + u) ** 4 * scores
    if delta > 1:
        return math.inf
    relative = math.expm1(7 * u + 2 * (n + 2) * math.log1p(w))
    moved = float(remainder) * math.expm1(delta)
    return (moved + (1 + moved) * relative + 3 * n * arithmetic.smallest) * _SLACK


def rounding_error(
    network: FeedForward | FeedForwardStack | Sublayer, x: Any, arithmetic: Arithmetic
) -> FloatArray:
    """How far the network's value in `arithmetic` can be from its real value, for given inputs.

    A running error analysis of the very order of operations of the reference: with w the unit
    roundoff of the accumulator, a dot product of t terms has relative error (1 + w)^(t+1) − 1 of
    the sum of magnitudes, the stored result u of itself; ReLU passes errors on, GELU at most
    ACTIVATION_SLOPES times.

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

_GELU_ROUNDINGS = 8


def _network(
    network: FeedForward, x: FloatArray, error: FloatArray, a: Floating
) -> tuple[FloatArray, FloatArray]:
    """The real values of y, to float64, and a bound of the error of its computed values."""
    h, error = _affine(network.W_1, network.b_1, x, error, a)
    if network.activation != "relu":
        slope = float(ACTIVATION_SLOPES[network.activation])
        rounding = _GELU_ROUNDINGS * float(a.unit_roundoff)
        error = slope * error + rounding * (np.abs(h) + error) + _GELU_ROUNDINGS * a.smallest
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
    total = total + terms * a.smallest_partial
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
