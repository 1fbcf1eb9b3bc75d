"""Bounds of the norms of a transformer's vectors, step by step (Proposition 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import whole_number
from transformist.errors import InvalidValue
from transformist.model import (
    GATES,
    Attention,
    Embedding,
    FeedForward,
    FeedForwardStack,
    Heads,
    LayerNorm,
    LayerStack,
    Parameter,
    PositionFunctions,
    PositionTable,
    Sinusoids,
    Sublayer,
    Transformer,
    rationals,
)
from transformist.rounding.arguments import NOT_NEGATIVE, required
from transformist.theory.norms import by_norm, operator_norm, root_above, vector_norm

Part: TypeAlias = FeedForward | FeedForwardStack | Attention | Heads | LayerNorm | Sublayer


def activation_bounds(
    model: Transformer | LayerStack, norm: str, *, max_length: int | None = None, size: Any = None
) -> dict[str, Fraction]:
    """Return X with ‖zᵢ‖ ≤ X for all inputs and positions, after each step (Proposition 7.1).

    The bounds hold in real arithmetic, under every weighting and mask, and for norms with ε = 0 as
    well, whose values are bounded.

    Args:
        model: a `Transformer`, or a `LayerStack`, whose inputs have norm at most `size`.
        norm: of the vectors: `l1`, `l2` or `linf`.
        max_length: N, the longest input, where a position function is not bounded; that of the
            model when left out.
        size: of the inputs of a `LayerStack`.

    Returns:
        A bound by the name of the step, as in `model.run(x).streams`; a stack begins with "input".

    Raises:
        InvalidValue: for positions such as i² without a longest length, an unknown kind of
            positions, a stack without `size`, a Transformer with `size`, or another model.
        UnknownName: for a norm that does not exist.

    Example:
        >>> import transformist as tf
        >>> bounds = activation_bounds(tf.recipe("dyck-1").build(max_length=7), "linf")
        >>> bounds["embedding"], bounds["layer 0 attention"]
        (Fraction(1, 1), Fraction(2, 1))

    """
    return stream_bounds(model, norm, max_length, size, "activation_bounds")


def stream_bounds(
    model: Any, norm: str, max_length: int | None, size: Any, where: str
) -> dict[str, Fraction]:
    """Return `activation_bounds`; a refusal names the function `where`."""
    if type(model) is Transformer:
        name, bound = "embedding", _embedded(model, norm, max_length, size, where)
    elif type(model) is LayerStack:
        name, bound = "input", _given(size, where)
    else:
        raise InvalidValue(
            "the model must be a Transformer or a LayerStack",
            received=type(model).__name__,
            where=where,
            remedy="give one of these, or a part of one to size_bound, perturbation_bound and "
            "lipschitz_constant",
        )
    bounds = {name: bound}
    for name, part in steps(model):
        bound = bounds[name] = size_bound(part, norm, bound)
    return bounds


def _embedded(
    model: Transformer, norm: str, max_length: int | None, size: Any, where: str
) -> Fraction:
    if size is not None:
        raise InvalidValue(
            "a Transformer must have no size, since its embedding bounds the first vectors",
            received=f"size = {size!s:.40}",
            where=where,
            remedy="leave size out",
        )
    longest = model.max_length
    if max_length is not None:
        must = "max_length must be a whole number of at least 0"
        remedy = "give the longest input, or leave it out"
        longest = whole_number(max_length, 0, must, where=where, remedy=remedy)
    return embedding_bound(model.embedding, norm, longest, where)


def _given(size: Any, where: str) -> Fraction:
    if size is None:
        raise InvalidValue(
            "a LayerStack needs size, a bound of the norms of its inputs",
            received="no size",
            where=where,
            remedy="give size=, such as size=1",
        )
    return norm_bound("size", size, where)


def steps(model: Transformer | LayerStack) -> Iterator[tuple[str, Sublayer | LayerNorm]]:
    """Yield the sublayers of a model in order, and its final norm, by their names in a trace."""
    for number, layer in enumerate(model.layers):
        for name, sublayer in layer.sublayers():
            yield f"layer {number} {name}", sublayer
    if model.final_norm is not None:
        yield "final norm", model.final_norm


def embedding_bound(
    embedding: Embedding, norm: str, max_length: int | None, where: str = "embedding_bound"
) -> Fraction:
    """Return a bound of ‖we(x)ᵢ + peₙ(i)‖, from the largest magnitudes of words and positions.

    Raises:
        InvalidValue: for a position function that grows with i, without a longest length, or
            positions of an unknown kind.

    """
    # Magnitudes are added coordinate by coordinate: a word and a position may have any signs, and
    # any word may stand at any position.
    words, positions = abs(rationals(embedding.vectors)), embedding.positions
    if positions is None:
        return vector_norm(words, norm)
    if type(positions) not in _REACHES:
        raise InvalidValue(
            f"positions must be one of {', '.join(kind.__name__ for kind in _REACHES)}",
            received=f"positions of the kind {type(positions).__name__}",
            where=where,
            remedy="give a PositionTable of the same vectors, or the layers in a LayerStack, with "
            "size",
        )
    # Symbols in front and at the back have positions beyond 1 to n.
    ends = len(embedding.front), len(embedding.back)
    return vector_norm(words + _REACHES[type(positions)](positions, *ends, max_length, where), norm)


def _of_functions(
    positions: PositionFunctions, front: int, back: int, max_length: int | None, where: str
) -> Parameter:
    return rationals(
        [
            0 if name is None else _reach(name, front, back, max_length, where)
            for name in positions.names
        ]
    )


_REACHES: dict[type, Callable[..., Parameter]] = {
    PositionFunctions: _of_functions,
    PositionTable: lambda table, *_: abs(rationals(table.vectors)).max(axis=0),
    Sinusoids: lambda sinusoids, *_: rationals(np.ones(sinusoids.width)),
}
"""Largest magnitude of each coordinate, for each kind of position encoding."""


def _reach(name: str, front: int, back: int, max_length: int | None, where: str) -> int:
    """Return the largest magnitude of a position function at i from 1 − front to n + back."""
    if name in POWERS:
        if max_length is None:
            raise InvalidValue(
                f"the position function {name} needs a longest length, up to which it is bounded",
                received="no longest length",
                where=where,
                remedy="give max_length, or build the model with one",
            )
        return int(max(max_length + back, front - 1) ** POWERS[name])
    # |i|/n is largest at n = 1, for i = 1 + back or i = 1 − front.
    return max(1 + back, front - 1) if name in FRACTIONS else 1


POWERS = {"i": 1, "i^2": 2, "i^3": 3}
"""Exponents of the position functions that grow with i."""

FRACTIONS = ("i/n", "-i/n")
"""Position functions that exceed 1 in magnitude where a model adds several symbols."""

WITHIN_ONE = ("1", "1/i", "-1/i", "(-1)^i")
"""Position functions that are at most 1 in magnitude wherever they have a value."""


def size_bound(part: Part, norm: str, size: Fraction) -> Fraction:
    """Return X′ with ‖f(x)‖ ≤ X′ for all ‖x‖ ≤ X; for lists of vectors, at each position.

    A network: ‖W₂‖(‖W₁‖ X + ‖b₁‖) + ‖b₂‖, since |act(h)| ≤ |h|; a gated unit has a bound for each
    factor. A head: ‖W_O W_V‖ X + ‖W_O b_V‖ +
    ‖b_O‖, its values being averaged. A residual connection adds X. A norm: `normalized_bound` and
    ‖β‖.

    Raises:
        InvalidValue: if the argument is not a part of a transformer.
        UnknownName: for a norm that does not exist.

    Example:
        >>> double = FeedForward(W_1=[[1], [-1]], W_2=[[2, -2]], b_2=[1])
        >>> size_bound(double, "linf", Fraction(3))
        Fraction(13, 1)

    """
    return by_type(_SIZES, part, "size_bound")(part, norm, size)


def normalized_bound(part: LayerNorm, norm: str) -> Fraction:
    """Return a bound of ‖γ ⊙ (x − μ)/√(σ² + ε)‖ over all x, for every ε ≥ 0."""
    # z = (x − μ)/√(σ² + ε) has Σ zₖ = 0 and Σ zₖ² ≤ d.
    # l2: |z| ≤ √d, and z = 0 for d = 1.
    # linf: zₖ² = (Σ_{j≠k} zⱼ)² ≤ (d − 1)(d − zₖ²) gives |zₖ| ≤ √(d − 1).
    # l1: where k coordinates are positive, with sum s, s²/k + s²/(d − k) ≤ Σ zₖ² ≤ d gives
    #     Σ|zₖ| = 2s ≤ 2 √(k(d − k)) ≤ 2 √(⌊d/2⌋⌈d/2⌉).
    # All are reached where ε = 0. γ multiplies by at most max |γₖ|.
    d = part.width_out
    square = {"l1": 4 * (d // 2) * (d - d // 2), "l2": d if d > 1 else 0, "linf": d - 1}
    return root_above(Fraction(by_norm(square, norm))) * vector_norm(part.gain, "linf")


def norm_bound(name: str, given: Any, where: str) -> Fraction:
    """Return a bound of norms that a user gave.

    Raises:
        InvalidValue: if the argument is not a number of at least 0.

    """
    remedy = "give a bound of the norms of the vectors, or of their changes"
    return required(
        name, given, NOT_NEGATIVE, meaning="a bound of norms", where=where, remedy=remedy
    )


def by_type(
    table: dict[type, Callable[..., Fraction]], part: Any, where: str
) -> Callable[..., Fraction]:
    """Return the entry of a table that has one for each kind of part.

    Raises:
        InvalidValue: for another kind.

    """
    if type(part) not in table:
        raise InvalidValue(
            f"the part must be one of {', '.join(kind.__name__ for kind in table)}",
            received=type(part).__name__,
            where=where,
            remedy="give one of these, or a LayerStack to the bounds of models",
        )
    return table[type(part)]


def _network(part: FeedForward, norm: str, size: Fraction) -> Fraction:
    # |act(h)| ≤ |h|, coordinate by coordinate, but for σ: |σ(h)| ≤ 1/2 + |h|/4. ‖v ∘ g‖ is at most
    # ‖v‖ max |g|, and max |g| ≤ ‖g‖ in each of the norms; σ is at most 1.
    if part.is_gated:
        (V, G), (c, b) = np.split(part.W_1, 2), np.split(part.b_1, 2)
        hidden = operator_norm(V, norm) * size + vector_norm(c, norm)
        if GATES[part.activation] != "sigmoid":
            hidden *= operator_norm(G, norm) * size + vector_norm(b, norm)
    else:
        hidden = operator_norm(part.W_1, norm) * size + vector_norm(part.b_1, norm)
    if part.activation == "sigmoid":
        hidden = hidden / 4 + vector_norm([Fraction(1, 2)] * len(part.b_1), norm)
    return operator_norm(part.W_2, norm) * hidden + vector_norm(part.b_2, norm)


def _networks(part: FeedForwardStack, norm: str, size: Fraction) -> Fraction:
    for network in part.parts:
        size = _network(network, norm, size)
    return size


def _head(part: Attention, norm: str, size: Fraction) -> Fraction:
    # A head gives a mean of values, with any weights, or 0: W_O W_V x + W_O b_V, and b_O.
    shifts = vector_norm(part.value_shift, norm) + vector_norm(part.b_O, norm)
    return operator_norm(part.value_matrix, norm) * size + shifts


def _heads(part: Heads, norm: str, size: Fraction) -> Fraction:
    return sum((_head(head, norm, size) for head in part.heads), Fraction(0))


def _norm(part: LayerNorm, norm: str, *_: Any) -> Fraction:
    return normalized_bound(part, norm) + vector_norm(part.bias, norm)


def _sublayer(part: Sublayer, norm: str, size: Fraction) -> Fraction:
    # A post-norm bounds its output whatever comes before it.
    if part.post_norm is not None:
        return _norm(part.post_norm, norm)
    read = size if part.pre_norm is None else _norm(part.pre_norm, norm)
    return size + size_bound(part.function, norm, read)


_SIZES: dict[type, Callable[..., Fraction]] = {
    FeedForward: _network,
    FeedForwardStack: _networks,
    Attention: _head,
    Heads: _heads,
    LayerNorm: _norm,
    Sublayer: _sublayer,
}
