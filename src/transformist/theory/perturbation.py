"""Error bounds of a transformer's vectors where its inputs are perturbed (Propositions 7.2–7.5).

x̂ is the perturbed list of vectors, ‖x̂ᵢ − xᵢ‖ ≤ δ at every position i, ‖xᵢ‖ ≤ X. All is in real
arithmetic; X and δ are bounds in the same norm, which is given by name.

Two tables have an entry for each kind of part. `_CONSTANTS` has Lipschitz constants, which for
attention hold up to a largest δ. `_MOVES` has bounds for any δ, which for attention and norms grow
less than δ does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    FeedForward,
    FeedForwardStack,
    Heads,
    LayerNorm,
    LayerStack,
    Sublayer,
    Transformer,
    exact_product,
    rationals,
)
from transformist.rounding import ACTIVATION_SLOPES
from transformist.theory.activations import (
    Part,
    by_type,
    norm_bound,
    normalized_bound,
    size_bound,
    steps,
    stream_bounds,
)
from transformist.theory.norms import bilinear_norm, by_norm, operator_norm, root_above, vector_norm


def lipschitz_constant(part: Part, norm: str, size: Any = None) -> Fraction:
    """Return K with ‖f(x̂) − f(x)‖ ≤ K δ, for attention if ‖xᵢ‖ ≤ X = `size` and δ ≤ 1.

    Networks (7.2): ‖W₂‖ L ‖W₁‖, L the largest slope of the activation; of a stack the product.
    Attention (7.3): Σ over heads of ‖V‖ (1 + X (‖A‖_B (2X + 1) + ‖u‖)), see `perturbation_bound`.
    Residual connections (7.4): 1 + K. Norms (7.5): `normalization_constant`.

    Args:
        part: a network, a head or heads, a norm, or a sublayer.
        norm: `l1`, `l2` or `linf`.
        size: X, which attention needs.

    Raises:
        InvalidValue: for a hard weighting, a norm with ε = 0, attention without `size`, or what is
            not a part of a transformer.
        UnknownName: for a norm that does not exist.

    Example:
        >>> lipschitz_constant(FeedForward(W_1=[[1], [-1]], W_2=[[2, -2]]), "linf")
        Fraction(4, 1)
        >>> head = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
        >>> lipschitz_constant(head, "linf", size=2)
        Fraction(11, 1)

    """
    return _lipschitz(part, norm, size, "lipschitz_constant")


def _lipschitz(part: Part, norm: str, size: Any, where: str) -> Fraction:
    if _attends(part):
        size = _needed(size, where)
    return by_type(_CONSTANTS, part, where)(part, norm, size, Fraction(1))


def perturbation_bound(part: Part, delta: Any, norm: str, size: Any = None) -> Fraction:
    """Return a bound of ‖f(x̂) − f(x)‖ at every position, for any δ ≥ 0.

    K δ for networks and norms, for norms at most twice their largest value. For a head with
    V = W_O W_V, A = W_Qᵀ W_K/√d_key and u = b_Qᵀ W_K/√d_key, ‖u‖ the norm of y ↦ u y, 0 in 7.3:

        ‖V‖ δ + 2 ‖V‖ X tanh(η/2),   η = ‖A‖_B δ (2X + δ) + ‖u‖ δ.

    Since tanh(η/2) ≤ η/2, K of 7.3 follows for δ ≤ 1.

    Args:
        part: a network, a head or heads, a norm, or a sublayer.
        delta: δ.
        norm: `l1`, `l2` or `linf`.
        size: X, which attention needs.

    Raises:
        InvalidValue: for δ < 0, and as `lipschitz_constant`.
        UnknownName: for a norm that does not exist.

    Example:
        >>> head = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
        >>> float(perturbation_bound(head, 2, "linf", size=2)) <= 2 + 4
        True

    """
    return _moved(part, delta, norm, size, "perturbation_bound")


def _moved(part: Part, delta: Any, norm: str, size: Any, where: str) -> Fraction:
    if _attends(part):
        size = _needed(size, where)
    return by_type(_MOVES, part, where)(part, norm, size, norm_bound("delta", delta, where))


def error_after(part: Part, x: Any, perturbed: Any, norm: str, size: Any = None) -> Fraction:
    """Return K ‖x̂ − x‖ for given vectors, a bound of ‖f(x̂) − f(x)‖; check the hypotheses.

    Args:
        part: a network, a head or heads, a norm, or a sublayer.
        x: a vector or a list of them, shape (..., d).
        perturbed: x̂, of the same shape.
        norm: `l1`, `l2` or `linf`.
        size: X; ‖x‖ when left out.

    Raises:
        InvalidValue: for ‖x‖ > X, for ‖x̂ − x‖ > 1 before attention, and as `lipschitz_constant`.

    Example:
        >>> error_after(FeedForward(W_1=[[1]], W_2=[[3]]), [1], [1.5], "l1")
        Fraction(3, 2)

    """
    x, perturbed = rationals(x), rationals(perturbed)
    if x.shape != perturbed.shape:
        _outside(f"shapes {x.shape} and {perturbed.shape}", "give vectors of one shape")
    actual = vector_norm(x, norm)
    allowed = actual if size is None else norm_bound("size", size, "error_after")
    delta = vector_norm(perturbed - x, norm)
    if actual > allowed:
        _outside(f"‖x‖ = {float(actual):g}, above X = {float(allowed):g}", "give a larger size")
    if _attends(part) and delta > 1:
        _outside(f"‖x̂ − x‖ = {float(delta):g}", "use perturbation_bound, which holds for any δ")
    return _lipschitz(part, norm, allowed, "error_after") * delta


def perturbation_bounds(
    model: Transformer | LayerStack,
    delta: Any,
    norm: str,
    *,
    max_length: int | None = None,
    size: Any = None,
) -> dict[str, Fraction]:
    """Return a bound of the change of vectors after each step, the first ones moved by at most δ.

    `perturbation_bound` of each sublayer, with the sizes of `activation_bounds`.

    Args:
        model: a `Transformer`, or a `LayerStack`, whose inputs have norm at most `size`.
        delta: δ, of the embedded vectors, or of the inputs.
        norm: `l1`, `l2` or `linf`.
        max_length: as in `activation_bounds`.
        size: as in `activation_bounds`.

    Returns:
        A bound by the name of the step, the first one δ.

    Raises:
        InvalidValue: as `activation_bounds` and `perturbation_bound`.
        UnknownName: for a norm that does not exist.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=7)
        >>> moved = perturbation_bounds(model, "1/1000", "linf")
        >>> float(moved["embedding"]), float(moved["layer 0 attention"])
        (0.001, 0.002)

    """
    where = "perturbation_bounds"
    # What a part does to a change depends on the size of what it reads, which is bounded without
    # it.
    sizes = stream_bounds(model, norm, max_length, size, where)
    first, *_ = sizes
    moved = {first: norm_bound("delta", delta, where)}
    before = first
    for name, part in steps(model):
        moved[name] = _moved(part, moved[before], norm, sizes[before], where)
        before = name
    return moved


def normalization_constant(part: LayerNorm, norm: str) -> Fraction:
    """Return K with ‖LN(x̂) − LN(x)‖ ≤ K ‖x̂ − x‖ for all x and x̂ (Proposition 7.5).

    K = ‖diag(γ) C‖ ‖W_N‖/√ε for l2, with C = I − 11ᵀ/d. For l1 and linf, K = R max |γₖ| ‖W_N‖/√ε,
    where R ≥ 2 − 2/d bounds row sums of the Jacobian. ‖C W_N‖ serves as well as ‖W_N‖.

    Raises:
        InvalidValue: for ε = 0, where a norm is not Lipschitz.

    Example:
        >>> normalization_constant(LayerNorm(gain=[1, 2], epsilon="1/4"), "linf")
        Fraction(4, 1)

    """
    if part.epsilon == 0:
        raise InvalidValue(
            "the norm must have ε > 0 to be Lipschitz: with ε = 0 it takes (t, −t) to (1, −1) for "
            "every t > 0, and (−t, t) to (−1, 1)",
            received="epsilon = 0",
            where="LayerNorm",
            remedy="give the norm an epsilon above 0",
        )
    # With s² = |Cx|²/d + ε, z = Cx/s and t = |z|²/d < 1, the Jacobian of z is P/s, P = C − zzᵀ/d,
    # and 1/s = √(1 − t)/√ε. W_N multiplies by ‖W_N‖, or by ‖C W_N‖, P being P C.
    # l2: 0 ≤ P ≤ C, so P² ≤ P ≤ C and ‖diag(γ) P‖² = ‖diag(γ) P² diag(γ)‖ ≤ ‖diag(γ) C‖². The
    # constant is reached as Cx → 0.
    d = part.width_out
    centre = rationals(np.eye(d)) - Fraction(1, d)
    read = Fraction(1)
    if part.W_N is not None:
        centred = exact_product(centre, part.W_N)
        read = min(operator_norm(matrix, norm) for matrix in (part.W_N, centred))
    return (
        by_norm(_SLOPES, norm)(part.gain, centre)
        * read
        * root_above(1 / Fraction(part.epsilon.item()))
    )


def _of_row_sums(gain: Any, centre: Any) -> Fraction:
    return vector_norm(gain, "linf") * _row_sums(len(centre))


_SLOPES: dict[str, Callable[[Any, Any], Fraction]] = {
    "l1": _of_row_sums,
    "l2": lambda gain, centre: operator_norm(rationals(gain)[:, None] * centre, "l2"),
    "linf": _of_row_sums,
}
"""Factor of ‖W_N‖/√ε for each norm, from γ and C."""


def _row_sums(d: int) -> Fraction:
    """Return a bound of √(1 − t) Σⱼ |Pᵢⱼ| over all z, P as in `normalization_constant`."""
    # Σⱼ |Pᵢⱼ| ≤ 1 − 1/d − zᵢ²/d + (d − 1)/d + |zᵢ| Σ|zⱼ|/d, the sum over j ≠ i. With zᵢ² = θ t d
    # this is at most 2 − 2/d + t (−θ + √((d − 1) θ(1 − θ))), and over θ at most a + b t, where a =
    # 2 − 2/d and b = (√d − 1)/2. The largest √(1 − t)(a + b t) is a where 2b ≤ a, as for d ≤ 7, and
    # reached as Cx → 0; else it is at t = (2b − a)/(3b). P is symmetric: columns sum to the same.
    a, b = 2 - Fraction(2, d), (root_above(Fraction(d)) - 1) / 2
    if 2 * b <= a:
        return a
    return Fraction(2, 3) * (a + b) * root_above((a + b) / (3 * b))


def _attends(part: Any) -> bool:
    return isinstance(getattr(part, "function", part), Attention | Heads)


def _needed(size: Any, where: str) -> Fraction:
    if size is None:
        raise InvalidValue(
            "attention needs size, a bound of its vectors: its scores are quadratic in them",
            received="no size",
            where=where,
            remedy="give size, such as one of activation_bounds",
        )
    return norm_bound("size", size, where)


def _outside(received: str, remedy: str) -> None:
    raise InvalidValue(
        "the vectors must have one shape and ‖x‖ ≤ X, and before attention ‖x̂ − x‖ ≤ 1",
        received=received,
        where="error_after",
        remedy=remedy,
    )


def _network(part: FeedForward, norm: str, *_: Any) -> Fraction:
    if part.is_gated:
        raise InvalidValue(
            "a network must have units of one factor: the slope of a product grows with its "
            "factors and has no largest value",
            received=f"activation = {part.activation}",
            where="FeedForward",
            remedy="bound its errors for given inputs, with bounds.rounding_error",
        )
    slope = ACTIVATION_SLOPES[part.activation]
    return operator_norm(part.W_2, norm) * slope * operator_norm(part.W_1, norm)


def _networks(part: FeedForwardStack, norm: str, *_: Any) -> Fraction:
    return math.prod((_network(network, norm) for network in part.parts), start=Fraction(1))


def _norm(part: LayerNorm, norm: str, *_: Any) -> Fraction:
    return normalization_constant(part, norm)


def _head_norms(head: Attention, norm: str) -> tuple[Fraction, Fraction, Fraction]:
    """Return ‖V‖, ‖A‖_B and ‖u‖, as in `perturbation_bound`."""
    if head.weighting.is_hard:
        raise InvalidValue(
            "the weighting must be softmax: a hard choice jumps, as from scores (0, d) to (d, 0) "
            "for any d > 0",
            received=f"weighting = {head.weighting}",
            where="Attention",
            remedy="soften the head, or bound its scores and their gap",
        )
    A = bilinear_norm(exact_product(head.W_Q.T, head.W_K), norm)
    u = operator_norm(exact_product(head.b_Q, head.W_K)[None], norm)
    scale = root_above(Fraction(1, head.W_Q.shape[0]))
    return operator_norm(head.value_matrix, norm), A * scale, u * scale


def _head(part: Attention, norm: str, size: Fraction, most: Fraction) -> Fraction:
    """Return K for δ ≤ `most`."""
    # The bound of `perturbation_bound` with tanh(η/2) ≤ η/2, over δ.
    V, A, u = _head_norms(part, norm)
    return V * (1 + size * (A * (2 * size + most) + u))


def _heads(part: Heads, norm: str, size: Fraction, most: Fraction) -> Fraction:
    return sum((_head(head, norm, size, most) for head in part.heads), Fraction(0))


def _sublayer(part: Sublayer, norm: str, size: Any, most: Fraction) -> Fraction:
    read = Fraction(1)
    if part.pre_norm is not None:
        read = normalization_constant(part.pre_norm, norm)
        size = size_bound(part.pre_norm, norm, size)
    constant = by_type(_CONSTANTS, part.function, "Sublayer")
    # The pre-norm may stretch a change δ ≤ `most` to `read` · `most`, up to which the constant of
    # the function must hold.
    through = 1 + read * constant(part.function, norm, size, read * most)
    after = part.post_norm
    return through if after is None else normalization_constant(after, norm) * through


_CONSTANTS: dict[type, Callable[..., Fraction]] = {
    FeedForward: _network,
    FeedForwardStack: _networks,
    LayerNorm: _norm,
    Attention: _head,
    Heads: _heads,
    Sublayer: _sublayer,
}
"""Lipschitz constant of each kind of part, from a norm, X and the largest δ."""


def _tanh_above(x: Fraction) -> Fraction:
    """Return tanh x for x ≥ 0, rounded up: at most x, and at most 1."""
    least = min(x, Fraction(1))
    if x > 40:  # beyond which float64 may not hold x
        return least
    # math.tanh is off by far less than 2⁻⁴⁸ of itself.
    return min(least, Fraction(math.tanh(float(x))) * (1 + Fraction(1, 2**48)))


def _head_moves(part: Attention, norm: str, size: Fraction, delta: Fraction) -> Fraction:
    # ĉ − c = Σ α̂ⱼ V(x̂ⱼ − xⱼ) + Σ (α̂ⱼ − αⱼ) V xⱼ, in which W_O b_V and b_O cancel, the weights of
    # a row having one sum. The first sum is at most ‖V‖ δ.
    # Biases add to a score u y and two terms that are the same for all y of a row, which softmax
    # does not see. What is left, x·Ay + u y, moves by at most η, since (x + e)·A(y + f) − x·Ay =
    # e·Ay + x·Af + e·Af and u(y + f) − u y = u f. So for any set of positions the log-odds t of its
    # weight move by at most 2η, and its weight σ(t) by at most max σ(t + 2η) − σ(t) = tanh(η/2), at
    # t = −η. The set of the weights that grew moves by half of Σ|α̂ⱼ − αⱼ|: the second sum is at
    # most 2 tanh(η/2) ‖V‖ X.
    V, A, u = _head_norms(part, norm)
    eta = A * delta * (2 * size + delta) + u * delta
    return V * (delta + 2 * size * _tanh_above(eta / 2))


def _heads_move(part: Heads, norm: str, size: Fraction, delta: Fraction) -> Fraction:
    return sum((_head_moves(head, norm, size, delta) for head in part.heads), Fraction(0))


def _norm_moves(part: LayerNorm, norm: str, _: Any, delta: Fraction) -> Fraction:
    return min(normalization_constant(part, norm) * delta, 2 * normalized_bound(part, norm))


def _network_moves(part: Part, norm: str, _: Any, delta: Fraction) -> Fraction:
    return by_type(_CONSTANTS, part, "perturbation_bound")(part, norm) * delta


def _sublayer_moves(part: Sublayer, norm: str, size: Any, delta: Fraction) -> Fraction:
    read = delta
    if part.pre_norm is not None:
        read = _norm_moves(part.pre_norm, norm, size, delta)
        size = size_bound(part.pre_norm, norm, size)
    moves = by_type(_MOVES, part.function, "Sublayer")
    moved = delta + moves(part.function, norm, size, read)
    return moved if part.post_norm is None else _norm_moves(part.post_norm, norm, size, moved)


_MOVES: dict[type, Callable[..., Fraction]] = {
    FeedForward: _network_moves,
    FeedForwardStack: _network_moves,
    LayerNorm: _norm_moves,
    Attention: _head_moves,
    Heads: _heads_move,
    Sublayer: _sublayer_moves,
}
"""Bound of the change of each kind of part, from a norm, X and δ."""
