"""Error bound of a feed-forward network or a norm, followed from given inputs.

A running error analysis of the order of operations of the reference: beside each value goes a bound
of its error, and each operation adds its own. With w the unit roundoff of the accumulator and u
that of the format,

- a dot product or a sum of t terms has an error of at most (1 + w)^(t+1) − 1 times the sum of the
  magnitudes;
- storing a result has one of u times the result, and half the least number of the format where it
  underflows;
- ReLU passes errors on, a form of GELU at most `ACTIVATION_SLOPES` times;
- with x̂ and ŷ the computed x and y, e_x and e_y their errors: |x̂ŷ − xy| ≤ |x| e_y + |y| e_x +
  2 e_x e_y, |x̂/ŷ − x/y| ≤ (e_x + |x/y| e_y)/|ŷ|, |√x̂ − √x| ≤ e_x/(√x̂ + √x), and at most √e_x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Arithmetic, Floating, number_system
from transformist.errors import InvalidValue, NotFinite
from transformist.model import (
    ACTIVATIONS,
    FeedForward,
    FeedForwardStack,
    LayerNorm,
    Sublayer,
    rationals,
)
from transformist.rounding.float_format import float_format_of, storing_roundoff
from transformist.rounding.powers import SLACK

FloatArray = NDArray[np.float64]

ACTIVATION_SLOPES = {
    "relu": Fraction(1),
    "gelu": Fraction(1129, 1000),
    "gelu-tanh": Fraction(1129, 1000),
    "gelu-sigmoid": Fraction(11, 10),
}
"""Largest |act′| of each activation, rounded up."""
# The slope of x Φ(x) is Φ(x) + x φ(x), its derivative φ(x)(2 − x²): greatest at √2, where it is
# Φ(√2) + √2 φ(√2) = 1.128905. The tanh form has 1.128994, the sigmoid form 1.099840, both found by
# maximising the slope; a test compares all three.


def rounding_error(
    network: FeedForward | FeedForwardStack | LayerNorm | Sublayer,
    x: Any,
    arithmetic: Arithmetic | str,
    carried: Any = 0,
) -> FloatArray:
    """Return error bounds of a network's values in `arithmetic`, for given inputs.

    Args:
        network: the weights.
        x: inputs, shape (cases, d).
        arithmetic: the number system; the bounds are 0 in one that does not round.
        carried: errors that the inputs have already, a bound for each number, or one for all.

    Raises:
        InvalidValue: for a sublayer of attention, or carried errors where nothing rounds.
        NotFinite: for inputs beyond float64 in a format that rounds.

    Returns:
        Bounds of shape (cases, d_out); infinite where an intermediate result may overflow, or the
        σ² + ε of a norm may be 0.

    """
    a = float_format_of(arithmetic)
    if a is None:
        _refuse_carried(carried, number_system(arithmetic))
        return np.zeros((np.shape(x)[0], network.width_out))
    start = _as_float64(x)
    error = np.broadcast_to(np.asarray(carried, dtype=np.float64), start.shape)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        _, error = _followed(network, (start, error), a)
    return error * SLACK


def _as_float64(x: Any) -> FloatArray:
    try:
        return np.asarray(x, dtype=np.float64)
    except OverflowError:
        raise NotFinite(
            "inputs must be numbers that float64 holds, in which errors are followed",
            received="a number beyond it",
            where="rounding_error",
            remedy="scale the inputs down, or use exact, where nothing rounds",
        ) from None


def _refuse_carried(carried: Any, system: Arithmetic) -> None:
    if np.any(np.asarray(carried) != 0):
        raise InvalidValue(
            "carried errors need a format that rounds",
            received=f"carried errors in {system.name}",
            where="rounding_error",
            remedy="leave carried out, or use perturbation_bound",
        )


Near: TypeAlias = tuple[FloatArray, FloatArray]
"""Values v in float64, with e: the real and the computed value lie within e of v and each other."""


def _followed(part: Any, x: Near, a: Floating) -> Near:
    """Return the values and errors that a part makes of its inputs."""
    if type(part) not in _ANALYSES:
        raise InvalidValue(
            "the part must be one of the feed-forward networks and norms",
            received=type(part).__name__,
            where="rounding_error",
            remedy="bound attention with mean_error or softmax_error",
        )
    return _ANALYSES[type(part)](part, x, a)


def _stack(stack: FeedForwardStack, x: Near, a: Floating) -> Near:
    for part in stack.parts:
        x = _network(part, x, a)
    return x


def _sublayer(sublayer: Sublayer, x: Near, a: Floating) -> Near:
    y = x if sublayer.pre_norm is None else _norm(sublayer.pre_norm, x, a)
    y = _sum(_followed(sublayer.function, y, a), x, a)
    return y if sublayer.post_norm is None else _norm(sublayer.post_norm, y, a)


def _norm(norm: LayerNorm, x: Near, a: Floating) -> Near:
    if norm.W_N is not None:
        x = _affine(norm.W_N, np.zeros(norm.width_out), *x, a)
    d = _weight([norm.width_out], a)
    mean, error = _quotient(_total(x, a), d, a)
    centred = _sum(x, (-mean, error), a)
    variance = _quotient(_total(_product(centred, centred, a), a), d, a)
    deviation = _root(_sum(variance, _weight(norm.epsilon, a), a), a)
    scaled = _product(_quotient(centred, deviation, a), _weight(norm.gain, a), a)
    return _sum(scaled, _weight(norm.bias, a), a)


_GELU_ROUNDINGS = 8
"""Error bound of a form of GELU at x, in units of u |x|, beside the errors of x."""
# To first order, in these units. x Φ(x): Φ and the product, 2. The tanh form, x/2 (1 + tanh z): z
# is off by at most 7u of itself, which moves the result by 7/2 · max z (1 − tanh² z) < 1.6; tanh,
# the sum and the product add 1/2, 1 and 1. The sigmoid form, x/(1 + e^−t) with t = 1.702 x: t is
# off by 2u of itself, which moves it by 2 · max t σ(t)(1 − σ(t)) < 0.5; e^−t, the sum and the
# quotient add 3. So all are below 4.2; 8 leaves room for functions that are off by 2u.


def _network(network: FeedForward, x: Near, a: Floating) -> Near:
    h, error = _affine(network.W_1, network.b_1, *x, a)
    if network.activation != "relu":
        slope = float(ACTIVATION_SLOPES[network.activation])
        rounding = _GELU_ROUNDINGS * float(a.unit_roundoff)
        error = slope * error + rounding * (np.abs(h) + error) + _GELU_ROUNDINGS * a.smallest
    h = np.asarray(ACTIVATIONS[network.activation](h, FLOAT64))
    return _affine(network.W_2, network.b_2, h, error, a)


def _affine(W: Any, b: Any, x: FloatArray, error: FloatArray, a: Floating) -> Near:
    # W and b are stored first: near_W and near_b, off by off_W and off_b.
    exact_W, exact_b = W.astype(np.float64), b.astype(np.float64)
    near_W, near_b = a.numbers(a.array(W)), a.numbers(a.array(b))
    off_W = np.abs(rationals(near_W) - rationals(W)).astype(np.float64)
    off_b = np.abs(rationals(near_b) - rationals(b)).astype(np.float64)
    # A row whose error is infinite stays so; 0 stands for it until then, as 0 · inf would be NaN.
    lost = np.asarray(~np.isfinite(error).all(axis=1))
    error = np.where(lost[:, None], 0.0, error)
    size = np.abs(x) + error
    magnitude = size @ np.abs(near_W).T + np.abs(near_b)
    terms = np.count_nonzero(near_W, axis=1) + 1
    w = float(a.accumulator_roundoff)
    total = error @ np.abs(near_W).T + size @ off_W.T + off_b
    total = total + magnitude * np.expm1((terms + 1) * np.log1p(w))
    total = total + terms * a.smallest_partial
    # `value` is itself computed in float64, where t terms are off by at most 2 t 2⁻⁵³ of them.
    value = x @ exact_W.T + exact_b
    total = total + magnitude * terms * 2.0**-52
    # A partial sum may overflow the accumulator though the whole is small.
    total[lost] = np.inf
    total[magnitude + total >= a.largest_partial] = np.inf
    return value, _stored(value, total, a, storing_roundoff(a))


def _stored(value: FloatArray, error: FloatArray, a: Floating, u: Fraction) -> FloatArray:
    """Return the error after storing a value, infinite where the value may overflow the format."""
    size = np.abs(value) + error
    fits = size < a.largest
    return np.where(fits, error + float(u) * np.where(fits, size, 0.0) + a.smallest, np.inf)


# The operations of a norm. A narrow format carries each out in float32 and then stores it. A format
# of p bits gets the correctly rounded result so: rounding twice is rounding once where the wider
# format has at least 2p + 2 bits (Figueroa 1995), as 24 are for p ≤ 11.


def _weight(values: Any, a: Floating) -> Near:
    """Return a parameter with the error of the format's, and of float64's, value of it."""
    exact = rationals(values)
    near = rationals(a.numbers(a.array(values)))
    value = exact.astype(np.float64)
    return value, np.asarray(abs(near - exact) + abs(rationals(value) - exact), dtype=np.float64)


def _once(value: FloatArray, error: FloatArray, a: Floating) -> Near:
    """Return a result with its own rounding and that of `value`; 0 if nothing is known."""
    error = _stored(value, error + 2.0**-53 * np.abs(value), a, a.unit_roundoff)
    return np.where(np.isfinite(error), value, 0.0), error


def _sum(x: Near, y: Near, a: Floating) -> Near:
    return _once(x[0] + y[0], x[1] + y[1], a)


def _product(x: Near, y: Near, a: Floating) -> Near:
    error = np.abs(x[0]) * y[1] + np.abs(y[0]) * x[1] + 2 * x[1] * y[1]
    return _once(x[0] * y[0], error, a)


def _quotient(x: Near, y: Near, a: Floating) -> Near:
    # |x̂/ŷ − x/y| ≤ (e_x + |x/y| e_y)/|ŷ|, where |x| ≤ |x̂| + e_x and |y|, |ŷ| ≥ `least`.
    least = np.abs(y[0]) - y[1] * SLACK
    error = (x[1] + (np.abs(x[0]) + x[1]) / least * y[1]) / least
    return _once(x[0] / y[0], np.where(least > 0, error, np.inf), a)


def _root(x: Near, a: Floating) -> Near:
    # √x̂ − √x = (x̂ − x)/(√x̂ + √x), and |√x̂ − √x| ≤ √|x̂ − x|: the smaller bound, also at x = 0.
    least = np.maximum(x[0] - x[1] * SLACK, 0)
    error = np.fmin(x[1] / (2 * np.sqrt(least)), np.sqrt(x[1]))
    return _once(np.sqrt(np.maximum(x[0], 0)), error, a)


def _total(x: Near, a: Floating) -> Near:
    """Return the sum of the coordinates, from left to right in the accumulator."""
    size = (np.abs(x[0]) + x[1]).sum(axis=-1, keepdims=True)
    terms = x[0].shape[-1]
    own = np.expm1(terms * np.log1p(float(a.accumulator_roundoff))) + terms * 2.0**-52
    error = x[1].sum(axis=-1, keepdims=True) + own * size
    error = np.where(size + error < a.largest_partial, error, np.inf)
    value = x[0].sum(axis=-1, keepdims=True)
    return value, _stored(value, error, a, storing_roundoff(a))


_ANALYSES: Mapping[type, Callable[[Any, Near, Floating], Near]] = {
    FeedForward: _network,
    FeedForwardStack: _stack,
    LayerNorm: _norm,
    Sublayer: _sublayer,
}
"""Error analysis of each kind of part."""
