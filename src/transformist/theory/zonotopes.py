"""Zonotopes: how far a function of vectors may move, followed through its operations.

Let ẑ be vectors that are known and z vectors near them. For every number y that is computed from
them, a zonotope holds y(ẑ) and

    y(ẑ) − y(z) = Σₖ gₖ εₖ + r,   |εₖ| ≤ 1,   |r| ≤ `rest`,

with the same εₖ for all numbers, or for all numbers of one position: what cancels between numbers
cancels between their generators gₖ (affine arithmetic: de Figueiredo and Stolfi 2004). Linear maps
act on generators. The second-order
terms of products, norms, activations and softmax, each bounded here, go to `rest`, as does the
rounding of float64, in which all this is computed: sums of t terms are off by at most 2 t 2⁻⁵³ of
the magnitudes of their terms, t < 2²⁰, so by less than `LOOSE` of them. Each operation that
multiplies adds `UNDERFLOW`: what underflows may be multiplied by large numbers later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from transformist.arithmetic import FLOAT64
from transformist.errors import NotFinite
from transformist.model import GATES, FeedForward, LayerNorm
from transformist.rounding import ACTIVATION_SLOPES, near_values
from transformist.rounding.near_values import FloatArray, Near
from transformist.rounding.network_error import activated
from transformist.rounding.powers import SLACK, UNDERFLOW

LOOSE = 2.0**-30
"""Bound of the error of a sum in float64, as a share of the sum of its terms' magnitudes."""


class Zonotope(NamedTuple):
    """Numbers y(ẑ), and how far y(z) may be from them.

    Attributes:
        near: y(ẑ) as float64 computes it, and a bound of its error.
        generators: the gₖ of each number along the last axis.
        rest: the bound of |r|.

    """

    near: Near
    generators: FloatArray
    rest: FloatArray

    @property
    def value(self) -> FloatArray:
        """y(ẑ), as float64 computes it."""
        return self.near[0]

    @property
    def radius(self) -> FloatArray:
        """A bound of |y(ẑ) − y(z)|."""
        return np.asarray((np.abs(self.generators).sum(axis=-1) + self.rest) * SLACK)


def linear(W: Any, b: Any, x: Zonotope) -> Zonotope:
    """W x + b of the vectors x: numbers (n, d) → (n, d_out)."""
    W_64 = W.astype(np.float64)
    # LOOSE also covers the distance of W from float64, 2⁻⁵³ of itself.
    # UNDERFLOW · (1 + radius) also covers what W loses in float64 where it is below 2⁻¹⁰²².
    radius = x.radius
    rest = (x.rest + LOOSE * radius) @ np.abs(W_64).T
    rest = rest + UNDERFLOW * (1 + radius.sum(axis=-1, keepdims=True))
    generators = np.matmul(W_64, x.generators)
    return Zonotope(near_values.affine(W, b, *x.near, FLOAT64), generators, rest)


def summed(x: Zonotope, y: Zonotope) -> Zonotope:
    """x + y."""
    rest = x.rest + y.rest + LOOSE * (x.radius + y.radius)
    near = near_values.summed(x.near, y.near, FLOAT64)
    return Zonotope(near, x.generators + y.generators, rest)


def product(x: Zonotope, y: Zonotope) -> Zonotope:
    """x y, entry by entry."""
    # x̂ŷ − xy = ŷ (x̂ − x) + x̂ (ŷ − y) − (x̂ − x)(ŷ − y).
    size_x, size_y = (np.abs(each.value) for each in (x, y))
    radius_x, radius_y = x.radius, y.radius
    rest = size_y * x.rest + size_x * y.rest + radius_x * radius_y
    rest = rest + (x.near[1] + LOOSE * size_x) * radius_y + (y.near[1] + LOOSE * size_y) * radius_x
    rest = rest + UNDERFLOW
    generators = y.value[..., None] * x.generators + x.value[..., None] * y.generators
    return Zonotope(near_values.product(x.near, y.near, FLOAT64), generators, rest)


def scaled(x: Zonotope, by: Near) -> Zonotope:
    """x times parameters, entry by entry."""
    size = np.abs(by[0])
    rest = size * x.rest + (by[1] + LOOSE * size) * x.radius + UNDERFLOW
    near = near_values.product(x.near, by, FLOAT64)
    return Zonotope(near, by[0][..., None] * x.generators, rest)


def shifted(x: Zonotope, by: Near) -> Zonotope:
    """x plus parameters, entry by entry."""
    return Zonotope(near_values.summed(x.near, by, FLOAT64), x.generators, x.rest)


def normalized(norm: LayerNorm, x: Zonotope) -> Zonotope:
    """The layer norm of each vector: numbers (n, d) → (n, d_out).

    Raises:
        NotFinite: for ε = 0 and a vector that may be constant, whose norm has no value.

    """
    d = norm.width_out
    if norm.W_N is not None:
        x = linear(norm.W_N, np.zeros(d), x)
    size, count = x.radius, near_values.weight([d], FLOAT64)
    mean, error = near_values.quotient(near_values.total(x.near, FLOAT64), count, FLOAT64)
    c = Zonotope(
        near_values.summed(x.near, (-mean, error), FLOAT64),
        x.generators - x.generators.mean(axis=1, keepdims=True),
        x.rest + x.rest.mean(axis=1, keepdims=True)
        + LOOSE * (size + size.mean(axis=1, keepdims=True)) + UNDERFLOW,
    )  # fmt: skip
    # s = σ² + ε: ĉ² − c² = 2ĉ Δc − Δc², and its mean.
    square = near_values.total(near_values.product(c.near, c.near, FLOAT64), FLOAT64)
    variance = near_values.quotient(square, count, FLOAT64)
    s = near_values.summed(variance, near_values.weight(norm.epsilon, FLOAT64), FLOAT64)
    twice, radius = 2 * np.abs(c.value), c.radius
    generators = np.einsum("nd,ndm->nm", 2 * c.value, c.generators)[:, None] / d
    rest = twice * c.rest + (2 * c.near[1] + LOOSE * twice) * radius + UNDERFLOW
    moved = Zonotope(s, generators, rest.mean(axis=1, keepdims=True))
    squares = (radius**2).mean(axis=1, keepdims=True) * SLACK + UNDERFLOW
    # p = 1/√s is p̂ (1 + q), q = (1 − x + b)^(−1/2) − 1, where x = 2ĉ · Δc/(d ŝ) and 0 ≤ b ≤ B, the
    # mean of Δc² over ŝ. Without b, q is x/2 + r, and the terms of its series in x are positive:
    # for |x| ≤ X < 1, with w = √(1 − X), 0 ≤ r ≤ X² (2 + w)/(2 w (1 + w)²). With b it is less, by
    # at most B/2 · (1 − X)^(−3/2). And q lies between −(X + B)/2 and X/(w (1 + w)): |q| ≤ Q.
    # ŷ − y = p̂ (ĉ − (ĉ − Δc)(1 + q)) = p̂ Δc − ŷ q + p̂ Δc q.
    deviation = near_values.root(s, FLOAT64)
    y = near_values.quotient(c.near, deviation, FLOAT64)
    least, least_deviation = s[0] - s[1] * SLACK, deviation[0] - deviation[1] * SLACK
    X = np.where(least > 0, moved.radius / least * SLACK, np.inf)
    # s ≥ ŝ (1 − x) > 0 where X < 1. Elsewhere s may be 0 if ε is, and then y has no value: no bound
    # of ŷ − y may be given, and none of a later norm, whose own values are bounded by √d.
    if norm.epsilon == 0 and not (X < 1).all():
        raise NotFinite(
            "a norm with ε = 0 needs a vector that is not constant, whatever its error",
            received="a vector whose variance may be 0",
            where="LayerNorm",
            remedy="give ε > 0, or a more precise arithmetic",
        )
    w = np.sqrt(np.maximum(1 - X, 0))
    B = squares / least
    Q = np.maximum(X / (w * (1 + w)), (X + B) / 2)
    r = np.maximum(X**2 * (2 + w) / (2 * w * (1 + w) ** 2), B / 2 / w**3)
    p, size_y = 1 / deviation[0], np.abs(y[0])
    # p̂, ŷ and ŝ are themselves off by these shares, and by the error of ŷ.
    share = LOOSE + 2 * deviation[1] / least_deviation + 2 * s[1] / least
    half = y[0] / (2 * s[0])
    rest = p * c.rest + np.abs(half) * moved.rest + size_y * r
    rest = rest + p * radius * Q * (1 + share) + share * (p * radius + size_y * X) + y[1] * (X + Q)
    rest = rest + UNDERFLOW
    generators = p[..., None] * c.generators - half[..., None] * moved.generators
    # Both are normalized, and so of magnitude at most √d.
    most = size_y + y[1] + math.sqrt(d)
    bounded = _at_most(most, Zonotope(y, generators, rest))
    gain, bias = (near_values.weight(each, FLOAT64) for each in (norm.gain, norm.bias))
    return shifted(scaled(bounded, gain), bias)


def network(f: FeedForward, x: Zonotope) -> Zonotope:
    """The numbers that a feed-forward network gives: (n, d) → (n, d_out)."""
    hidden = linear(f.W_1, f.b_1, x)
    if not f.is_gated:
        return linear(f.W_2, f.b_2, _activation(f.activation, hidden))
    values, gates = (_units(hidden, rows) for rows in (slice(f.hidden), slice(f.hidden, None)))
    gate = GATES[f.activation]
    opened = gates if gate is None else _activation(gate, gates)
    return linear(f.W_2, f.b_2, product(values, opened))


def _units(x: Zonotope, rows: slice) -> Zonotope:
    near = x.near[0][:, rows], x.near[1][:, rows]
    return Zonotope(near, x.generators[:, rows], x.rest[:, rows])


def _at_most(most: FloatArray, x: Zonotope) -> Zonotope:
    """The zonotope; where its radius is unknown or above a bound, a rest of that bound alone."""
    lost = ~(x.radius <= most)
    generators = np.where(lost[..., None], 0.0, x.generators)
    return Zonotope(x.near, generators, np.where(lost, most, x.rest))


# Activations

_SHAPE = math.sqrt(2 / math.pi)


def _density(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def _logistic(x: FloatArray) -> FloatArray:
    return np.asarray((1 + np.tanh(x / 2)) / 2)


def _swish_slope(x: FloatArray, by: float) -> FloatArray:
    share = _logistic(by * x)
    return np.asarray(share + by * x * share * (1 - share))


def _gelu_slope(x: FloatArray) -> FloatArray:
    cdf = FLOAT64.numbers(FLOAT64.normal_cdf(x))
    return np.asarray(cdf + x * _density(x))


def _gelu_tanh_slope(x: FloatArray) -> FloatArray:
    t = np.tanh(_SHAPE * (x + 0.044715 * x**3))
    inner = _SHAPE * (1 + 3 * 0.044715 * x**2)
    # Beyond |x| = 30, 1 − t² is 0 where x³ is large.
    return np.asarray((1 + t) / 2 + np.where(np.abs(x) > 30, 0, x * (1 - t * t) / 2 * inner))


SLOPES: Mapping[str, tuple[Callable[[FloatArray], FloatArray], float]] = {
    "gelu": (_gelu_slope, 0.8),
    "gelu-tanh": (_gelu_tanh_slope, 0.81),
    "gelu-sigmoid": (lambda x: _swish_slope(x, 1.702), 0.86),
    "silu": (lambda x: _swish_slope(x, 1.0), 0.51),
    "sigmoid": (lambda x: _logistic(x) * (1 - _logistic(x)), 0.1),
    "tanh": (lambda x: 1 - np.tanh(x) ** 2, 0.77),
    "elu": (lambda x: np.exp(np.minimum(x, 0)), 1.0),
}
"""act′ of each activation but ReLU, and a bound of how fast it changes: the largest |act″|."""
# x Φ(x): |act″| = φ(x)|2 − x²| ≤ 2φ(0) = 0.7979; the tanh form reaches 0.7979 at 0 as well. Of
# x σ(cx) it is c/2 at 0, the largest: 0.851 for c = 1.702. σ″: 1/(6√3) = 0.0962; tanh″: 4/(3√3) =
# 0.7698; ELU″ ≤ 1, and ELU′ has no jump at 0. A test compares all with differences of slopes.


def _activation(name: str, x: Zonotope) -> Zonotope:
    """act(x) of every number, for an activation of one number."""
    near, radius = activated(name, x.near, FLOAT64), x.radius
    if name == "relu":
        # Where x̂ and x may have different signs, ReLU lies over an interval of half-width R around
        # x̂ between the line λ(x − l), λ = (R + x̂)/(2R), l = x̂ − R, and that line less 2μ, μ =
        # (R² − x̂²)/(4R). With a = ReLU(x̂) − λ x̂, which lies in [0, 2μ] as −λ l = 2μ, the rest is
        # between a − 2μ and a.
        # R ≥ UNDERFLOW > 0, and nothing is squared, so that small numbers do not underflow.
        value, wide = x.value, radius + x.near[1] + UNDERFLOW
        crosses = np.abs(value) <= wide
        slope = np.where(crosses, (1 + value / wide) / 2, value > 0)
        above = np.maximum(value, 0) - slope * value
        most = np.maximum(wide - np.abs(value), 0) * (1 + np.abs(value) / wide) / 2
        off = np.where(crosses, np.maximum(above, most - above) + x.near[1] + LOOSE * wide, 0)
    else:
        # act(x̂) − act(x) = act′(x̂) Δx − r, |r| ≤ max |act″| Δx²/2, and at most twice the steepest
        # slope times |Δx|.
        derivative, curvature = SLOPES[name]
        slope, steepest = derivative(x.value), float(ACTIVATION_SLOPES[name])
        off = np.minimum(curvature * radius / 2, 2 * steepest) * radius
        off = off + (LOOSE + curvature * x.near[1]) * radius
    rest = np.abs(slope) * (x.rest + LOOSE * radius) + off + UNDERFLOW
    return Zonotope(near, slope[..., None] * x.generators, rest)
