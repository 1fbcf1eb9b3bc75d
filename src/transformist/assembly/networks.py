"""Feed-forward networks from networks: affine maps around them, side by side (4.2, 8.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from transformist.errors import ShapeMismatch
from transformist.model import (
    FeedForward,
    LinearForm,
    Parameter,
    Stream,
    exact_product,
    parameter,
    rationals,
)


def precompose(network: FeedForward, A: object, b: object = None) -> FeedForward:
    """x ↦ f(A x + b), with no further hidden units: W₁ A and W₁ b + b₁.

    Args:
        network: f, which reads k numbers.
        A: shape (k, d).
        b: shape (k,); 0 when left out.

    Example:
        >>> absolute = FeedForward(W_1=[[1], [-1]], W_2=[[1, 1]])
        >>> precompose(absolute, [[2, 0]], [1])([-3, 9])
        array([5.])

    """
    b = np.zeros(network.width) if b is None else b
    # W₁ (A x + b) + b₁ = (W₁ A) x + (W₁ b + b₁).
    offset = exact_product(network.W_1, rationals(b).ravel())
    return replace(network, W_1=exact_product(network.W_1, A), b_1=_exact_sum(offset, network.b_1))


def postcompose(A: object, network: FeedForward) -> FeedForward:
    """x ↦ A f(x), with no further hidden units: A W₂ and A b₂."""
    return replace(network, W_2=exact_product(A, network.W_2), b_2=exact_product(A, network.b_2))


def beside(*networks: FeedForward) -> FeedForward:
    """x ↦ Σ fₘ(x): networks side by side in one, their hidden units one after the other.

    Raises:
        ShapeMismatch: when they differ in width or activation.

    """
    kinds = {(f.width, f.width_out, f.activation) for f in networks}
    if len(kinds) != 1:
        raise ShapeMismatch(
            "networks side by side must have one width and one activation",
            received=", ".join(f"{d} → {m} {act}" for d, m, act in sorted(kinds)) or "none",
            where="beside",
            remedy="route each of them to the stream first",
        )
    total = networks[0].b_2
    for network in networks[1:]:
        total = _exact_sum(total, network.b_2)
    # Of gated units W₁ has all values before all gates.
    sides = range(2 if networks[0].is_gated else 1)
    places = [
        (f, slice(side * f.hidden, (side + 1) * f.hidden)) for side in sides for f in networks
    ]
    return FeedForward(
        W_1=np.concatenate([f.W_1[rows] for f, rows in places]),
        b_1=np.concatenate([f.b_1[rows] for f, rows in places]),
        W_2=np.concatenate([f.W_2 for f in networks], axis=1),
        b_2=total,
        activation=networks[0].activation,
    )


def cancel_residual(network: FeedForward) -> FeedForward:
    """f′ with f′(x) + x = f(x) (section 4.2), by 2 d further hidden units.

    Raises:
        ShapeMismatch: when f does not give as many numbers as it reads, or is not a ReLU network.

    """
    if network.width != network.width_out or network.activation != "relu":
        raise ShapeMismatch(
            "cancelling a residual connection needs a ReLU network from R^d to R^d",
            received=f"{network.width} → {network.width_out}, {network.activation}",
            where="cancel_residual",
            remedy="pad the narrower side with zeros",
        )
    # f′(x) = f(x) − x, as −x = −ReLU(x) + ReLU(−x).
    identity = np.eye(network.width)
    minus = FeedForward(
        W_1=np.concatenate([identity, -identity]), W_2=np.concatenate([-identity, identity], axis=1)
    )
    return beside(network, minus)


def units(stream: Stream, *hidden: tuple[LinearForm, Any, LinearForm]) -> FeedForward:
    """A network given unit by unit: ReLU(form + bias), added along another form.

    Example:
        >>> stream = Stream(("x", "y", "both"))
        >>> units(stream, ({"x": 1, "y": 1}, -1, "both"))([1, 1, 0])
        array([0., 0., 1.])

    """
    read, bias, write = zip(*hidden, strict=True)
    return FeedForward(W_1=stream.reading(*read), b_1=bias, W_2=stream.writing(*write))


def _exact_sum(x: Parameter, y: Parameter) -> Parameter:
    return parameter(rationals(x) + rationals(y))
