"""Positive homogeneity (Definition 6.3): f(c x) = cᵏ f(x), as far as the weights show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    FeedForward,
    FeedForwardStack,
    Heads,
    Layer,
    LayerNorm,
    LayerStack,
    Sublayer,
    exact_product,
)


def homogeneity(part: Any) -> int | None:
    """Return the degree k with f(c x) = cᵏ f(x) for all x and c > 0, if the weights show one.

    | part | degree | because |
    |---|---|---|
    | `FeedForward` | 1 for ReLU without biases | ReLU(c h) = c ReLU(h), and W₂ is linear |
    | `LayerNorm` | 0 for ε = 0 | mean and √σ² of c x are c times those of x; β comes after |
    | `Attention`, hard | 1 (*) | scores grow by c², their order and ties stay; values grow by c |
    | `Attention`, softmax | 1 if W_Qᵀ W_K = 0 (*) | a row has equal scores, and a mean is linear |
    | `Heads` | that of all of them | a sum of terms that all grow by cᵏ |
    | `Sublayer` | post-norm's, or 1, if f(pre(x)) has degree 1 | as then f(pre(x)) + x has |
    | `FeedForwardStack`, `Layer`, `LayerStack`, a list of parts | product, until one is 0 | below |

    (*) If W_Kᵀ b_Q = 0, W_O b_V = 0 and b_O = 0. b_K adds the same to every score of a row, and
    nothing to the weights.

    For parts in series, f(g(c x)) = f(cᵇ g(x)) = cᵃᵇ f(g(x)). After a g of degree 0 nothing is left
    of c, so that any f after it has degree 0, biases and softmax included. A pre-norm with ε = 0 is
    such a g, and the residual x beside it grows: no degree is shown.
    Definition 6.3 has c = 0 as well, for which degree 1 holds, and degree 0 has no meaning in a
    norm with ε = 0.

    That every layer has degree 1 and the output degree 0 does not make norms idle, as 6.1 says:
    they scale each position by its own factor, and attention adds positions. With values
    3, −1, −1 the mean is 1/3; after a norm of each pair [x, −x] it is (1 − 1 − 1)/3 = −1/3.

    Args:
        part: a part of a model, or parts in the order in which they act.

    Returns:
        The degree; `None` where the weights show none, although there may be one.

    Raises:
        InvalidValue: if the argument is not a part.

    Example:
        >>> double = FeedForward(W_1=[[1], [-1]], W_2=[[2, -2]])
        >>> norm = LayerNorm(gain=[1], epsilon=0)
        >>> homogeneity(double), homogeneity(Sublayer(double, post_norm=norm))
        (1, 0)

    """
    if isinstance(part, list | tuple):
        return _in_series(part)
    if type(part) not in _DEGREES:
        raise InvalidValue(
            "the argument must be a part of a model, or a list of parts in order",
            received=type(part).__name__,
            where="homogeneity",
            remedy=f"give one of {', '.join(kind.__name__ for kind in _DEGREES)}, or a list",
        )
    return _DEGREES[type(part)](part)


def _in_series(parts: Iterable[Any]) -> int | None:
    # Degrees multiply. After a part of degree 0 the others cannot change it, whatever they are.
    degree: int | None = 1
    for part in parts:
        own = homogeneity(part)
        if degree != 0:
            degree = None if degree is None or own is None else degree * own
    return degree


NETWORK_DEGREES = {"relu": 1, "bilinear": 2, "reglu": 2}
"""Degrees of networks without biases: c x is c times as large in each factor of a hidden unit."""


def _of_network(network: FeedForward) -> int | None:
    biases = np.any(network.b_1 != 0) or np.any(network.b_2 != 0)
    return None if biases else NETWORK_DEGREES.get(network.activation)


def _of_norm(norm: LayerNorm) -> int | None:
    return 0 if norm.epsilon == 0 else None


def _of_attention(head: Attention) -> int | None:
    # Equal scores stay equal when they grow by c²; unequal ones sharpen softmax.
    soft = not head.weighting.is_hard and np.any(exact_product(head.W_Q.T, head.W_K) != 0)
    # A term b_Q · W_K y of a score grows by c only, while x · A y grows by c²: their order may
    # change. W_O b_V and b_O do not grow at all.
    biases = (exact_product(head.b_Q, head.W_K), head.value_shift, head.b_O)
    return None if soft or any(np.any(bias != 0) for bias in biases) else 1


def _of_heads(heads: Heads) -> int | None:
    degrees = {_of_attention(head) for head in heads.heads}
    return degrees.pop() if len(degrees) == 1 else None


def _of_sublayer(sublayer: Sublayer) -> int | None:
    # x has degree 1, so f(pre(x)) + x has degree 1 where f(pre(x)) has; a post-norm comes after it.
    inner = [part for part in (sublayer.pre_norm, sublayer.function) if part is not None]
    if _in_series(inner) != 1:
        return None
    return 1 if sublayer.post_norm is None else homogeneity(sublayer.post_norm)


def _of_layer(layer: Layer) -> int | None:
    return _in_series([sublayer for _, sublayer in layer.sublayers()])


_DEGREES: Mapping[type, Callable[[Any], int | None]] = {
    FeedForward: _of_network,
    FeedForwardStack: lambda stack: _in_series(stack.parts),
    LayerNorm: _of_norm,
    Attention: _of_attention,
    Heads: _of_heads,
    Sublayer: _of_sublayer,
    Layer: _of_layer,
    LayerStack: lambda stack: _in_series([*stack.layers, *filter(None, [stack.final_norm])]),
}
"""Function that finds the degree of each kind of part."""
