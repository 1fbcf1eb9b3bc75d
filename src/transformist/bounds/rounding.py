"""How far rounding can move the results of the reference, in its own order of operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Arithmetic, Floating, Saturating, number_system
from transformist.bounds.approximation import ACTIVATION_SLOPES
from transformist.bounds.orders import ANY_ORDER, Order, order_of
from transformist.bounds.powers import SLACK
from transformist.errors import InvalidValue, NotFinite
from transformist.model import (
    ACTIVATIONS,
    FeedForward,
    FeedForwardStack,
    LayerNorm,
    Sublayer,
    rationals,
)

FloatArray = NDArray[np.float64]


def float_format_of(arithmetic: Arithmetic | str) -> Floating | None:
    """The format, `None` for an arithmetic in which nothing rounds.

    Raises:
        UnknownName, InvalidValue: as `for_real_numbers`.

    Example:
        >>> float_format_of("float16").precision, float_format_of("exact")
        (11, None)

    """
    system = for_real_numbers(arithmetic)
    return system if isinstance(system, Floating) else None


def for_real_numbers(arithmetic: Arithmetic | str) -> Arithmetic:
    """The number system of this name, which has to stand for the real numbers.

    Raises:
        UnknownName: for a name that no arithmetic has.
        InvalidValue: for saturating arithmetic, whose sums depend on their order by more than
            rounding.

    """
    system = number_system(arithmetic)
    if isinstance(system, Saturating):
        raise InvalidValue(
            "bounds compare an arithmetic with the real numbers, for which it stands",
            received=f"{system.name}, a finite arithmetic of its own",
            where="bounds",
            remedy="name a float format; recipes of the chapter finite say what holds in this one",
        )
    return system


def mean_error(
    n: int, size: Fraction, arithmetic: Arithmetic | str, order: Order | str = ANY_ORDER
) -> float:
    """How far a mean computed by attention can be from the mean of n numbers of magnitude ≤ size.

    The count is stored (u, where it has more bits than the format), each weight 1/n is rounded (u,
    or half the least number where it underflows), the products are rounded and added (`order`), and
    the result is stored (u). Each weight, and each product, may underflow. Infinite where the
    result or the count may overflow, or the accumulator may not count on (n > 1/w).

    In any order n products and their sum are off by (1 + w)^(n+1) − 1 of the size. From left to
    right, as in `REFERENCE_ORDER`, the k-th sum is at most k/n of it, so that rounding it costs
    less: together w + w (n + 1)/2 (1 + w)^(n+1).

    Args:
        n: how many numbers there are.
        size: a bound of their magnitudes.
        arithmetic: the number system.
        order: of summation, or its name in `ORDERS`.

    Raises:
        UnknownName: for an order that does not exist.

    Example:
        >>> mean_error(100, Fraction(1), "float32", "reference") < 4e-6 < mean_error(
        ...     100, Fraction(1), "float32", "any"
        ... )
        True

    """
    a, order = float_format_of(arithmetic), order_of(order)
    if a is None:
        return 0.0
    u, w = float(a.unit_roundoff), float(a.accumulator_roundoff)
    if n > min(Fraction(a.largest), 1 / a.accumulator_roundoff):
        return math.inf
    count = -math.log1p(-u) if n > 2**a.precision else 0.0
    relative = math.expm1(2 * math.log1p(u) + count + order.growth(n, w))
    if size * (1 + Fraction(relative)) >= Fraction(a.largest):
        return math.inf
    underflow = a.smallest * (n * float(size) + 1) + n * a.smallest_partial
    return (float(size) * relative + underflow) * SLACK


def softmax_error(
    n: int, scores: float, remainder: Fraction, arithmetic: Arithmetic | str
) -> float:
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
    a = float_format_of(arithmetic)
    if a is None:
        return 0.0
    u, w = float(a.unit_roundoff), float(a.accumulator_roundoff)
    delta = 10 * u * (1 + u) ** 4 * scores
    if delta > 1:
        return math.inf
    relative = math.expm1(7 * u + 2 * (n + 2) * math.log1p(w))
    moved = float(remainder) * math.expm1(delta)
    return (moved + (1 + moved) * relative + 3 * n * a.smallest) * SLACK


def layernorm_hash_error(n: int, arithmetic: Arithmetic | str) -> float:
    """How far each number of LN([x C, x, −x C, −x]) can be from lh(C), 1 ≤ C ≤ n, 1/n ≤ x, x C ≤ n.

    Let a ≥ b be x C and x as stored, r² = (a² + b²)/2, and u' = u where sums accumulate in a wider
    format, else 0. The result depends on ln(b/a), which storing moves by λ ≤ −2 ln(1 − u): a number
    by at most √2 · 0.385 λ. The sum a + b − a − b comes out as at most (1 + w)² w (a + 2b), where
    a + b ≤ 2r and b ≤ r, so that the mean is at most m r. Of the deviations from it (u), squared
    (u), the sum (3w, u') is 4(r² + μ²), and its root has half of that error, and one of its own
    (u). The deviation and the quotient round too (2u): a number changes by its R-th part,
    1 + R ≤ (1 − u)^−4.5 (1 − w)^−1.5 (1 − u')^−0.5 √(1 + m²), and m (1 + R). To first order, all
    is 7.5u + 2.9w + 0.7u'. Numbers that underflow change the variance by a θ-th part,
    θ = 2 n² smallest/(1 − u)², as r ≥ (1 − u)/n.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> round(layernorm_hash_error(1000, FLOAT32) * 2**24, 2)
        10.32

    """
    a = float_format_of(arithmetic)
    if a is None:
        return 0.0
    u, w = float(a.unit_roundoff), float(a.accumulator_roundoff)
    store = u if w < u else 0.0
    least = a.smallest * n / (1 - u)
    m = 0.75 * w * (1 + w) ** 2 * (1 + store) + least
    under = 2 * least * n / (1 - u)
    if under >= 1:
        return math.inf
    logs = (4.5, u), (1.5, w), (0.5, store), (0.5, under)
    growth = math.expm1(math.log1p(m * m) / 2 - sum(k * math.log1p(-x) for k, x in logs))
    turned = math.sqrt(2) * 0.385 * -2 * math.log1p(-u)
    return (math.sqrt(2) * growth + m * (1 + growth) + turned + a.smallest) * SLACK


def rounding_error(
    network: FeedForward | FeedForwardStack | LayerNorm | Sublayer,
    x: Any,
    arithmetic: Arithmetic | str,
    carried: Any = 0,
) -> FloatArray:
    """How far the network's value in `arithmetic` can be from its real value, for given inputs.

    A running error analysis of the very order of operations of the reference: with w the unit
    roundoff of the accumulator, a dot product or a sum of t terms has relative error
    (1 + w)^(t+1) − 1 of the sum of magnitudes, every stored result u of itself, and half the least
    number of the format where it underflows; ReLU passes errors on, GELU at most
    ACTIVATION_SLOPES times. In a norm a difference, a product, a quotient and a root pass on the
    errors of what they are taken of: |x̂ŷ − xy| ≤ |x| e_y + |y| e_x + 2 e_x e_y,
    |x̂/ŷ − x/y| ≤ (e_x + |x/y| e_y)/|ŷ|, |√x̂ − √x| ≤ e_x/(√x̂ + √x), and at most √e_x.

    Args:
        network: the weights.
        x: inputs, shape (cases, d).
        arithmetic: the number system; nothing is added in one that does not round.
        carried: how far the format's inputs are from x already, a bound for each number, or one.

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
            "a rounding error is followed from inputs that float64 holds, as every format here",
            received="a number beyond it",
            where="rounding_error",
            remedy="scale the inputs down, or use exact, where nothing rounds",
        ) from None


def _refuse_carried(carried: Any, system: Arithmetic) -> None:
    if np.any(np.asarray(carried) != 0):
        raise InvalidValue(
            "an error of the inputs is followed through a format that rounds",
            received=f"carried errors in {system.name}",
            where="rounding_error",
            remedy="give none, or use perturbation_bound",
        )


Near: TypeAlias = tuple[FloatArray, FloatArray]
"""Values v in float64, and e: the real and the computed one lie within e of v and of each other."""


def _followed(part: Any, x: Near, a: Floating) -> Near:
    """What a part makes of its inputs and their errors."""
    if type(part) not in _ANALYSES:
        raise InvalidValue(
            "a rounding error is bounded for feed-forward networks and norms",
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


def _network(network: FeedForward, x: Near, a: Floating) -> Near:
    h, error = _affine(network.W_1, network.b_1, *x, a)
    if network.activation != "relu":
        slope = float(ACTIVATION_SLOPES[network.activation])
        rounding = _GELU_ROUNDINGS * float(a.unit_roundoff)
        error = slope * error + rounding * (np.abs(h) + error) + _GELU_ROUNDINGS * a.smallest
    h = np.asarray(ACTIVATIONS[network.activation](h, FLOAT64))
    return _affine(network.W_2, network.b_2, h, error, a)


def _affine(W: Any, b: Any, x: FloatArray, error: FloatArray, a: Floating) -> Near:
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
    total[magnitude + total >= a.largest_partial] = np.inf
    return value, _stored(value, total, a, _narrowing(a))


def _narrowing(a: Floating) -> Fraction:
    """What storing a sum rounds by: u, or nothing where sums accumulate in the format itself."""
    return a.unit_roundoff if a.unit_roundoff > a.accumulator_roundoff else Fraction(0)


def _stored(value: FloatArray, error: FloatArray, a: Floating, u: Fraction) -> FloatArray:
    """The error after storing a value: infinite where the value may overflow the format."""
    size = np.abs(value) + error
    fits = size < a.largest
    return np.where(fits, error + float(u) * np.where(fits, size, 0.0) + a.smallest, np.inf)


# The operations of a norm. An accumulator of 2p + 2 bits makes rounding twice rounding once.


def _weight(values: Any, a: Floating) -> Near:
    """A parameter, and how far the format's is from it."""
    exact = rationals(values)
    near = rationals(a.numbers(a.array(values)))
    value = exact.astype(np.float64)
    return value, np.asarray(abs(near - exact) + abs(rationals(value) - exact), dtype=np.float64)


def _once(value: FloatArray, error: FloatArray, a: Floating) -> Near:
    """A result with its own rounding, and that of its value here; 0 where nothing is known."""
    error = _stored(value, error + 2.0**-53 * np.abs(value), a, a.unit_roundoff)
    return np.where(np.isfinite(error), value, 0.0), error


def _sum(x: Near, y: Near, a: Floating) -> Near:
    return _once(x[0] + y[0], x[1] + y[1], a)


def _product(x: Near, y: Near, a: Floating) -> Near:
    error = np.abs(x[0]) * y[1] + np.abs(y[0]) * x[1] + 2 * x[1] * y[1]
    return _once(x[0] * y[0], error, a)


def _quotient(x: Near, y: Near, a: Floating) -> Near:
    least = np.abs(y[0]) - y[1] * SLACK
    error = (x[1] + (np.abs(x[0]) + x[1]) / least * y[1]) / least
    return _once(x[0] / y[0], np.where(least > 0, error, np.inf), a)


def _root(x: Near, a: Floating) -> Near:
    least = np.maximum(x[0] - x[1] * SLACK, 0)
    error = np.fmin(x[1] / (2 * np.sqrt(least)), np.sqrt(x[1]))
    return _once(np.sqrt(np.maximum(x[0], 0)), error, a)


def _total(x: Near, a: Floating) -> Near:
    """The sum of the coordinates, from left to right in the accumulator."""
    size = (np.abs(x[0]) + x[1]).sum(axis=-1, keepdims=True)
    terms = x[0].shape[-1]
    own = np.expm1(terms * np.log1p(float(a.accumulator_roundoff))) + terms * 2.0**-52
    error = x[1].sum(axis=-1, keepdims=True) + own * size
    error = np.where(size + error < a.largest_partial, error, np.inf)
    value = x[0].sum(axis=-1, keepdims=True)
    return value, _stored(value, error, a, _narrowing(a))


_ANALYSES: Mapping[type, Callable[[Any, Near, Floating], Near]] = {
    FeedForward: _network,
    FeedForwardStack: _stack,
    LayerNorm: _norm,
    Sublayer: _sublayer,
}
"""How the error of each kind of part is followed."""
