"""Error bound of a feed-forward network or a norm, followed from given inputs.

A running error analysis of the order of operations of the reference: beside each value goes a bound
of its error, and each operation adds its own. With w the unit roundoff of the accumulator and u
that of the format,

- a dot product or a sum of t terms has an error of at most (1 + w)^(t+1) − 1 times the sum of the
  magnitudes;
- storing a result has one of u times the result, and half the least number of the format where it
  underflows;
- an activation passes on an error at most `ACTIVATION_SLOPES` times as large;
- with x̂ and ŷ the computed x and y, e_x and e_y their errors: |x̂ŷ − xy| ≤ |x| e_y + |y| e_x +
  2 e_x e_y, |x̂/ŷ − x/y| ≤ (e_x + |x/y| e_y)/|ŷ|, |√x̂ − √x| ≤ e_x/(√x̂ + √x), and at most √e_x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import FLOAT64, Arithmetic, Floating, number_system
from transformist.errors import InvalidValue, NotFinite
from transformist.model import (
    GATES,
    PLAIN_ACTIVATIONS,
    FeedForward,
    FeedForwardStack,
    LayerNorm,
    Sublayer,
    halves,
)
from transformist.rounding.float_format import float_format_of
from transformist.rounding.near_values import (
    FloatArray,
    Near,
    affine,
    product,
    quotient,
    root,
    summed,
    total,
    weight,
)
from transformist.rounding.powers import SLACK

ACTIVATION_SLOPES = {
    "relu": Fraction(1),
    "gelu": Fraction(1129, 1000),
    "gelu-tanh": Fraction(1129, 1000),
    "gelu-sigmoid": Fraction(11, 10),
    "silu": Fraction(11, 10),
    "sigmoid": Fraction(1, 4),
    "tanh": Fraction(1),
    "elu": Fraction(1),
}
"""Largest |act′| of each activation of one number, rounded up."""
# The slope of x Φ(x) is Φ(x) + x φ(x), its derivative φ(x)(2 − x²): greatest at √2, where it is
# Φ(√2) + √2 φ(√2) = 1.128905. The tanh form has 1.128994, the sigmoid form 1.099840, both found by
# maximising the slope; a test compares all three. x σ(x) has the slopes of x σ(1.702 x). σ′ = σ(1 −
# σ) ≤ 1/4, tanh′ = 1 − tanh² ≤ 1, and ELU′ is 1 or e^x ≤ 1.


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
        _, error = followed(network, (start, error), a)
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


def followed(part: Any, x: Near, a: Floating) -> Near:
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
    y = x if sublayer.pre_norm is None else followed_norm(sublayer.pre_norm, x, a)
    y = summed(followed(sublayer.function, y, a), x, a)
    return y if sublayer.post_norm is None else followed_norm(sublayer.post_norm, y, a)


def followed_norm(norm: LayerNorm, x: Near, a: Floating) -> Near:
    """Return the values and errors of a norm."""
    if norm.W_N is not None:
        x = affine(norm.W_N, np.zeros(norm.width_out), *x, a)
    d = weight([norm.width_out], a)
    mean, error = quotient(total(x, a), d, a)
    centred = summed(x, (-mean, error), a)
    variance = quotient(total(product(centred, centred, a), a), d, a)
    deviation = root(summed(variance, weight(norm.epsilon, a), a), a)
    scaled = product(quotient(centred, deviation, a), weight(norm.gain, a), a)
    return summed(scaled, weight(norm.bias, a), a)


_ROUNDINGS = 8
"""Error bound of an activation at x, in units of u |x|, beside the errors of x; of σ, of u."""
# To first order, in these units. x Φ(x): Φ and the product, 2. The tanh form, x/2 (1 + tanh z): z
# is off by at most 7u of itself, which moves the result by 7/2 · max z (1 − tanh² z) < 1.6; tanh,
# the sum and the product add 1/2, 1 and 1. The sigmoid form, x/(1 + e^−t) with t = 1.702 x: t is
# off by 2u of itself, which moves it by 2 · max t σ(t)(1 − σ(t)) < 0.5; e^−t, the sum and the
# quotient add 3. So all are below 4.2; 8 leaves room for functions that are off by 2u. tanh rounds
# itself, 1 of |tanh x| ≤ |x|. ELU, 2t/(1 − t) for x ≤ 0 with t = tanh(x/2): t and the product by 2
# are off by 1, which 1/(1 − t), the derivative over the value, does not increase; the difference
# and the quotient add 2. σ = (1 + t)/2: t is off by u, the sum by 2u, in all 3/2 u, whatever x is;
# and x σ(x): σ and the product, 5/2 of |x|.


def _network(network: FeedForward, x: Near, a: Floating) -> Near:
    hidden = affine(network.W_1, network.b_1, *x, a)
    if network.is_gated:
        h = _gated(GATES[network.activation], hidden, a)
    else:
        h = activated(network.activation, hidden, a)
    return affine(network.W_2, network.b_2, *h, a)


def _gated(gate: str | None, x: Near, a: Floating) -> Near:
    (values, gates), (values_error, gates_error) = map(halves, x)
    opened = gates, gates_error
    # `product` has the value 0 where nothing is known of it, and an infinite error.
    return product((values, values_error), activated(gate, opened, a) if gate else opened, a)


def activated(activation: str, x: Near, a: Floating) -> Near:
    """Return the values and errors of an activation of one number."""
    h, error = x
    if activation != "relu":
        slope = float(ACTIVATION_SLOPES[activation])
        rounding = _ROUNDINGS * float(a.unit_roundoff)
        size = 1.0 if activation == "sigmoid" else np.abs(h) + error
        error = slope * error + rounding * size + _ROUNDINGS * a.smallest
    return np.asarray(PLAIN_ACTIVATIONS[activation](h, FLOAT64)), error


_ANALYSES: Mapping[type, Callable[[Any, Near, Floating], Near]] = {
    FeedForward: _network,
    FeedForwardStack: _stack,
    LayerNorm: followed_norm,
    Sublayer: _sublayer,
}
"""Error analysis of each kind of part."""
