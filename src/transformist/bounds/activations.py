"""How large the vectors of a transformer can be (Proposition 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import is_whole, rational
from transformist.bounds.norms import by_norm, operator_norm, root_above, vector_norm
from transformist.errors import InvalidValue
from transformist.model import (
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

Part: TypeAlias = FeedForward | FeedForwardStack | Attention | Heads | LayerNorm | Sublayer


def activation_bounds(
    model: Transformer | LayerStack, norm: str, *, max_length: int | None = None, size: Any = None
) -> dict[str, Fraction]:
    """X with ‖zᵢ‖ ≤ X for every input and position, after each step of a model (Proposition 7.1).

    It holds under every weighting and mask, and for norms with ε = 0, whose values are bounded, in
    real arithmetic.

    Args:
        model: a `Transformer`, or a `LayerStack`, whose inputs have norm at most `size`.
        norm: of the vectors: `l1`, `l2` or `linf`.
        max_length: N, the longest input, where a position function is not bounded; that of the
            model when left out.
        size: of the inputs of a `LayerStack`.

    Returns:
        A bound by the name of the step, as in `model.run(x).streams`; a stack begins with "input".

    Raises:
        InvalidValue: for positions such as i² without a longest length, positions of a kind that
            is not known, a stack without `size`, a `size` where the embedding says it, or what is
            neither.
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
    """`activation_bounds`, for the function that a refusal is to name."""
    if type(model) not in _BEGINNINGS:
        raise InvalidValue(
            "the steps of a Transformer or a LayerStack are bounded one after the other",
            received=type(model).__name__,
            where=where,
            remedy="give one of these; a part has size_bound, perturbation_bound and "
            "lipschitz_constant",
        )
    name, bound = _BEGINNINGS[type(model)](model, norm, max_length, size, where)
    bounds = {name: bound}
    for name, part in steps(model):
        bound = bounds[name] = size_bound(part, norm, bound)
    return bounds


def _embedded(
    model: Transformer, norm: str, max_length: int | None, size: Any, where: str
) -> tuple[str, Fraction]:
    if size is not None:
        raise InvalidValue(
            "the vectors a Transformer begins with are bounded by its embedding",
            received=f"size = {size!s:.40}",
            where=where,
            remedy="leave size out; it is for the inputs of a LayerStack",
        )
    longest = model.max_length if max_length is None else _length(max_length, where)
    return "embedding", embedding_bound(model.embedding, norm, longest, where)


def _given(_: LayerStack, __: str, ___: Any, size: Any, where: str) -> tuple[str, Fraction]:
    if size is None:
        raise InvalidValue(
            "a LayerStack needs size, a bound of the norm of the vectors that it is given",
            received="no size",
            where=where,
            remedy="give size, how large the vectors can be",
        )
    return "input", at_least_zero("size", size, where)


_BEGINNINGS: dict[type, Callable[..., tuple[str, Fraction]]] = {
    Transformer: _embedded,
    LayerStack: _given,
}
"""How large the first vectors of each kind of model are."""


def steps(model: Transformer | LayerStack) -> Iterator[tuple[str, Sublayer | LayerNorm]]:
    """The sublayers of a model in order, by the names they have in a trace, and its final norm."""
    for number, layer in enumerate(model.layers):
        for name, sublayer in layer.sublayers():
            yield f"layer {number} {name}", sublayer
    if model.final_norm is not None:
        yield "final norm", model.final_norm


def embedding_bound(
    embedding: Embedding, norm: str, max_length: int | None, where: str = "embedding_bound"
) -> Fraction:
    """The largest ‖we(x)ᵢ + peₙ(i)‖ that the magnitudes of its position functions leave room for.

    Raises:
        InvalidValue: for a position function that is not bounded, without a longest length, or
            positions of a kind whose magnitudes are not known.

    """
    words, positions = abs(rationals(embedding.vectors)), embedding.positions
    if positions is None:
        return vector_norm(words, norm)
    if type(positions) not in _REACHES:
        raise InvalidValue(
            f"magnitudes are known of {', '.join(kind.__name__ for kind in _REACHES)}",
            received=f"positions of the kind {type(positions).__name__}",
            where=where,
            remedy="give a PositionTable of the same vectors, or the layers in a LayerStack, with "
            "size",
        )
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
"""The largest magnitude of each coordinate of each kind of position encoding."""


def _reach(name: str, front: int, back: int, max_length: int | None, where: str) -> int:
    """The largest magnitude of a position function at i from 1 − front to n + back, n ≤ N."""
    if name in POWERS:
        if max_length is None:
            raise InvalidValue(
                f"the position function {name} is bounded up to a longest length only",
                received="no longest length",
                where=where,
                remedy="give max_length, or build the model with one",
            )
        return int(max(max_length + back, front - 1) ** POWERS[name])
    return max(1 + back, front - 1) if name in FRACTIONS else 1


POWERS = {"i": 1, "i^2": 2, "i^3": 3}
"""Position functions that grow with i, by their exponent."""

FRACTIONS = ("i/n", "-i/n")
"""Those that exceed 1 in magnitude where a model adds several symbols: n is at least 1."""

WITHIN_ONE = ("1", "1/i", "-1/i", "(-1)^i")
"""Those that are at most 1 in magnitude wherever they have a value."""


def size_bound(part: Part, norm: str, size: Fraction) -> Fraction:
    """X′ with ‖f(x)‖ ≤ X′ for all ‖x‖ ≤ X; for lists of vectors, at each position.

    A network: ‖W₂‖(‖W₁‖ X + ‖b₁‖) + ‖b₂‖, since |act(h)| ≤ |h|. A head: ‖W_O W_V‖ X + ‖W_O b_V‖ +
    ‖b_O‖, its values being averaged. A residual connection adds X. A norm: `normalized_bound` and
    ‖β‖.

    Raises:
        InvalidValue: for what is no part of a transformer.
        UnknownName: for a norm that does not exist.

    Example:
        >>> double = FeedForward(W_1=[[1], [-1]], W_2=[[2, -2]], b_2=[1])
        >>> size_bound(double, "linf", Fraction(3))
        Fraction(13, 1)

    """
    return by_type(_SIZES, part, "size_bound")(part, norm, size)


def normalized_bound(part: LayerNorm, norm: str) -> Fraction:
    """A bound of ‖γ ⊙ (x − μ)/√(σ² + ε)‖ over all x, for every ε ≥ 0.

    z = (x − μ)/√(σ² + ε) has Σ zₖ = 0 and Σ zₖ² ≤ d. So |z| ≤ √d; zₖ² = (Σ_{j≠k} zⱼ)² ≤
    (d − 1)(d − zₖ²) gives |zₖ| ≤ √(d − 1); and where k coordinates are positive, with sum s,
    s²/k + s²/(d − k) ≤ Σ zₖ² ≤ d gives Σ|zₖ| = 2s ≤ 2 √(k(d − k)) ≤ 2 √(⌊d/2⌋⌈d/2⌉). All are
    reached where ε = 0. γ multiplies by at most max |γₖ|.
    """
    d = part.width_out
    square = {"l1": 4 * (d // 2) * (d - d // 2), "l2": d if d > 1 else 0, "linf": d - 1}
    return root_above(Fraction(by_norm(square, norm))) * vector_norm(part.gain, "linf")


def _length(given: Any, where: str) -> int:
    """N, as a user gives it."""
    if not is_whole(given, 0):
        raise InvalidValue(
            "max_length must be a whole number of at least 0",
            received=f"max_length = {given!r:.40}",
            where=where,
            remedy="give the longest input, or leave it out",
        )
    return int(given)


def at_least_zero(name: str, value: Any, where: str) -> Fraction:
    """A bound that a user gives.

    Raises:
        InvalidValue: for what is no number of at least 0.

    """
    try:
        number = rational(value)
    except (AttributeError, TypeError, ValueError, ArithmeticError):
        number = Fraction(-1)
    if number < 0:
        raise InvalidValue(
            f"{name}, a bound of norms, is a number of at least 0",
            received=f"{name} = {value!s:.40}",
            where=where,
            remedy="give how large the vectors, or their changes, can be",
        )
    return number


def by_type(
    table: dict[type, Callable[..., Fraction]], part: Any, where: str
) -> Callable[..., Fraction]:
    """The entry of a table that has one for each kind of part.

    Raises:
        InvalidValue: for another kind.

    """
    if type(part) not in table:
        raise InvalidValue(
            f"bounds are known for {', '.join(kind.__name__ for kind in table)}",
            received=type(part).__name__,
            where=where,
            remedy="give one of these, or its layers in a LayerStack to the bounds of models",
        )
    return table[type(part)]


def _network(part: FeedForward, norm: str, size: Fraction) -> Fraction:
    hidden = operator_norm(part.W_1, norm) * size + vector_norm(part.b_1, norm)
    return operator_norm(part.W_2, norm) * hidden + vector_norm(part.b_2, norm)


def _networks(part: FeedForwardStack, norm: str, size: Fraction) -> Fraction:
    for network in part.parts:
        size = _network(network, norm, size)
    return size


def _head(part: Attention, norm: str, size: Fraction) -> Fraction:
    shifts = vector_norm(part.value_shift, norm) + vector_norm(part.b_O, norm)
    return operator_norm(part.value_matrix, norm) * size + shifts


def _heads(part: Heads, norm: str, size: Fraction) -> Fraction:
    return sum((_head(head, norm, size) for head in part.heads), Fraction(0))


def _norm(part: LayerNorm, norm: str, *_: Any) -> Fraction:
    return normalized_bound(part, norm) + vector_norm(part.bias, norm)


def _sublayer(part: Sublayer, norm: str, size: Fraction) -> Fraction:
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
