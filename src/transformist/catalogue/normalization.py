"""Layer normalization: section 6 of the Cookbook, and its selection and its hash of 5.3.3.

The sum of a vector of pairs x, −x is 0, so that a norm only divides it by its magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction as F

import numpy as np

from transformist.arithmetic import Arithmetic, is_power_of_two
from transformist.assembly import cancel_residual, postcompose
from transformist.catalogue.attention import HARD, each
from transformist.catalogue.feed_forward import clip, identity
from transformist.catalogue.lookup import coded_positions, looked_up, match_codes
from transformist.catalogue.positions import layernorm_hash
from transformist.catalogue.safe_lengths import longest
from transformist.claims import NO_ROOT, FunctionClaim, SequenceClaim, recipe
from transformist.domains import (
    Case,
    Domain,
    Feature,
    Opposites,
    Product,
    Query,
    Reals,
    Sequences,
    Signs,
    Values,
    Where,
    WholeMultiples,
)
from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    FeedForward,
    Layer,
    LayerNorm,
    LayerStack,
    LinearForm,
    Stream,
    Sublayer,
)
from transformist.rounding import float_format_of
from transformist.rounding.float_format import storing_roundoff

_CLOSE = F(1, 2**90)
"""Error bound of a reference that approximates a root by a rational."""


def _over_root(x: F) -> F:
    """Return 1/√x of a positive rational, to within 2⁻¹⁰⁰ of itself."""
    # 1/√(p/q) = √(p q)/p. Times a power of two the integer root has at least 108 bits, of which the
    # last is off by 1 at most.
    square = x.numerator * x.denominator
    scale = 2 ** max(0, 110 - square.bit_length() // 2)
    return F(math.isqrt(square * scale**2), x.numerator * scale)


def _not_all_zero(domain: Domain, norm_epsilon: F) -> Domain:
    """Return the domain, without 0 where ε = 0, as the norm has no value there."""
    return domain if norm_epsilon else Where(domain, any, "x ≠ 0")


# 6.3: what a norm leaves alone


def _pairs_scaled(*x: F, norm_epsilon: F) -> list[F]:
    """Return c x, the first half of c [x, −x], for c = 1/√(the mean of all squares + ε)."""
    c = _over_root(sum((v * v for v in x), F(0)) / len(x) + norm_epsilon)
    return [c * v for v in x]


@recipe(
    "layernorm-pairs",
    section="6.3",
    claim=FunctionClaim(
        statement="y = LN([x, −x]) = c [x, −x], c = 1/√(mean of x² + ε) > 0; x ≠ 0 where ε = 0",
        reference=_pairs_scaled,
        domain=lambda *, width, norm_epsilon: Opposites(_not_all_zero(Reals(width), norm_epsilon)),
        approximation=lambda *_: _CLOSE,
        approximation_statement="exact; the reference, a rational, is within 2⁻⁹⁰ of the root",
        excluded={"exact": NO_ROOT},
        variants=(
            {"width": 1},
            {"width": 11, "norm_epsilon": "1/100000"},
            {"norm_epsilon": 2},
        ),
        size="width 2m for m numbers",
    ),
    sources=("β = 0, and γ is uniform: for other γ the ratios change",),
    errata=("layernorm-pairs-gain",),
)
def layernorm_pairs(width: int = 2, norm_epsilon: F = F(0)) -> LayerNorm:
    """γ = 1, β = 0. The numbers come in pairs, so their mean is 0 and only their size changes."""
    return LayerNorm(gain=np.ones(2 * width), epsilon=norm_epsilon)


# 6.4: the sign


def _sign_domain(*, width: int, delta: F) -> Domain:
    reals = Reals(1, points=(delta, -delta))
    return Opposites(Product((_at_least(reals, delta),) * width))


def _at_least(domain: Domain, delta: F) -> Domain:
    """Return the numbers of magnitude δ or more."""

    def large(case: Case) -> bool:
        return all(abs(value) >= delta for value in case)

    return Where(domain, large, f"|x| ≥ {delta}")


def _sign_grid(*, p: int, width: int, delta: F, norm_epsilon: F) -> tuple[Domain, ...]:
    """Return multiples of δ/4, where δ is a power of two: nothing rounds, and δ² is a square."""
    if p < 6 or norm_epsilon or not is_power_of_two(delta) or not F(1, 64) <= delta <= 64:
        return ()
    exponent = delta.numerator.bit_length() - delta.denominator.bit_length() - 2
    large = _at_least(WholeMultiples(1, bits=p - 4, exponent=exponent), delta)
    return (Opposites(Product((large,) * width)),)


@recipe(
    "layernorm-sign",
    section="6.4",
    claim=FunctionClaim(
        statement="y = [sign x, −sign x] of [x, −x], where |x| ≥ δ for every number of x; times "
        "δ/√(δ² + ε) where ε > 0",
        reference=lambda *x, delta, norm_epsilon: [
            (1 if v > 0 else -1) * (delta * _over_root(delta**2 + norm_epsilon)) for v in x
        ],
        domain=_sign_domain,
        approximation=lambda *_, norm_epsilon: _CLOSE if norm_epsilon else F(0),
        approximation_statement="exact; for ε > 0 the reference, a rational, is within 2⁻⁹⁰ of the "
        "root (and exact arithmetic needs δ² + ε to be a square)",
        exact_on=_sign_grid,
        exact_on_statement="multiples of δ/4 of magnitude at most 2^(p − 6) δ, where δ is a power "
        "of two from 1/64 to 64, ε = 0 and p ≥ 6",
        variants=(
            {"width": 1},
            {"width": 3, "delta": "1/3"},
            {"delta": "1/8"},
            {"delta": "3/4", "norm_epsilon": 1},
            {"delta": 4, "norm_epsilon": 9},
        ),
        size="width 2m for m numbers, and 8m hidden units",
    ),
    sources=(
        "b₂ of the clipping is −δ, printed as [−δ, δ]",
        "every number has to be at least δ, a 0 included: [0.3, 0, 0.7] gives 1.22, 0, 1.22",
        "Yang & Chiang 2024",
    ),
    errata=("sign-at-zero", "clip-bias"),
)
def layernorm_sign(width: int = 2, delta: F = F(1), norm_epsilon: F = F(0)) -> Sublayer:
    """Every number is clipped to ±δ (4.2 cancels the residual); the post-norm divides by δ."""
    one, eye = clip.build(delta=delta), np.eye(2 * width)
    clipped = FeedForward(
        W_1=np.kron(eye, one.W_1),
        b_1=np.tile(one.b_1, 2 * width),
        W_2=np.kron(eye, one.W_2),
        b_2=np.tile(one.b_2, 2 * width),
    )
    norm = LayerNorm(gain=np.ones(2 * width), epsilon=norm_epsilon)
    return Sublayer(cancel_residual(clipped), post_norm=norm)


# 5.3.3: a norm of some coordinates


def _selected_scaled(*x: F, norm_epsilon: F) -> list[F]:
    """Return c times the first four, c = 1/√((a² + b² + a² + b²)/d + ε), and 0 for the others."""
    c = _over_root(sum((v * v for v in x[:4]), F(0)) / len(x) + norm_epsilon)
    return [c * v for v in x[:4]] + [F(0)] * (len(x) - 4)


def _selected_domain(*, width: int, norm_epsilon: F) -> Domain:
    selected = Opposites(_not_all_zero(Reals(2), norm_epsilon))
    return Product((selected, Reals(width - 4))) if width > 4 else selected


@recipe(
    "selective-layernorm",
    section="5.3.3",
    claim=FunctionClaim(
        statement="y = LN(W_N x) = [c a, c b, −c a, −c b, 0, …, 0] of x = [a, b, −a, −b, …], "
        "c = 1/√(2(a² + b²)/d + ε): the four as if alone, times √(d/4) where ε = 0",
        reference=_selected_scaled,
        domain=_selected_domain,
        approximation=lambda *_: _CLOSE,
        approximation_statement="exact; the reference, a rational, is within 2⁻⁹⁰ of the root",
        excluded={"exact": NO_ROOT},
        variants=({"width": 4}, {"width": 16, "norm_epsilon": "1/100000"}, {"norm_epsilon": 2}),
        size="width d, as set",
    ),
    sources=(
        "the factor √(d/4) is harmless, being the same at every position",
        "one norm over a query and a key scales each by the other: they need norms of their own",
    ),
    errata=("hash-selective-norm",),
)
def selective_layernorm(width: int = 8, norm_epsilon: F = F(0)) -> LayerNorm:
    """W_N = diag(1, 1, 1, 1, 0, …, 0), γ = 1, β = 0."""
    if width < 4:
        raise InvalidValue(
            "width must be at least 4, for two numbers and their opposites",
            received=f"width = {width}",
            where="selective-layernorm",
            remedy="give a width of 4 or more",
        )
    selected = np.arange(width) < 4
    return LayerNorm(
        gain=np.ones(width), epsilon=norm_epsilon, W_N=np.diag(selected.astype(np.float64))
    )


def layernorm_hash_gap(n: int) -> F:
    """Return a rational just below the least lh(q) · lh(q) − lh(q) · lh(j), j ≠ q ≤ n.

    Example:
        >>> layernorm_hash_gap(10)
        Fraction(1, 4141)

    """
    # lh(q) has norm 2 and the direction of (q, 1) twice, and the directions of neighbours are
    # nearest at n: with M = n(n − 1) + 1 and (n² + 1)((n − 1)² + 1) = M² + 1, the difference is
    # 4(1 − M/√(M² + 1)) = 4/(√(M² + 1)(√(M² + 1) + M)), at least 2/(M² + 1), at most 2/M².
    return F(2, (n * (n - 1) + 1) ** 2 + 1)


def layernorm_hash_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which layernorm-hash-lookup finds its position.

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> layernorm_hash_length(FLOAT16), layernorm_hash_length(FLOAT32)
        (3, 24)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # Sums over pairs x, −x are 0 exactly, so a norm divides by a root. With v = u where sums are
    # stored in a narrower format than they accumulate in, else 0, and to first order, relatively:
    # the first norm's divisor is off by (u + 2w + v)/2 + u (squares, two inexact sums, a store; the
    # root), its quotients by u more, a in all. The hashes are 8/10 of the variance of the second,
    # so that a key comes out of it off by 0.6a + 0.4a, and by (2u + 8w + v)/2 + u of its divisor,
    # and u of the quotient: ρ = 11u/2 + 5w + v in all. This moves its product with the query, which
    # is 4, by 4ρ; four products and two inexact sums move it by 12w; two products keep their order
    # when stored if they differ by 8v, the spacing above 4.
    # The query moves both products alike, but for the quotients, off by 2u each: with s = sin(θ/2)
    # for the angle θ between (q, 1) and (j, 1), the products differ by 8s² and the hashes by 4s, so
    # by 16u s; the rounding of 1/j turns a key by at most u/2, which is 4u s. The difference
    # 8s² − 20u s grows with s, and s ≥ 1/(2√(M² + 1)), M as in `layernorm_hash_gap`. So
    # 2/(M² + 1) > (1 + 64u)(8ρ + 24w + 8v + 11u/M) is enough, the factor being for higher orders.
    u, w = a.unit_roundoff, a.accumulator_roundoff
    moved = 44 * u + 64 * w + 16 * storing_roundoff(a)  # 8ρ + 24w + 8v
    return longest(
        lambda n: layernorm_hash_gap(n) > (1 + 64 * u) * (moved + 11 * u / (n * (n - 1) + 1))
    )


_QUERY = tuple(f"lh(q) {k}" for k in range(1, 5))
_KEY = tuple(f"lh(i) {k}" for k in range(1, 5))
_HASHES = Stream(("q", "1", "1/i", "v", *_QUERY, *_KEY, "found"))


def _hash(x: str, one: str, slots: tuple[str, ...]) -> Layer:
    """Return the layer that stores LN([x, −x, one, −one]) in fresh slots."""
    norm = _norm_of({x: 1}, {x: -1}, {one: 1}, {one: -1})
    copy = postcompose(_HASHES.writing(*slots), identity.build(width=4))
    return Layer(feed_forward=copy, pre_norms=(None, norm))


def _norm_of(*forms: LinearForm) -> LayerNorm:
    """Return the norm of forms of the stream alone, with ε = 0."""
    return LayerNorm(gain=np.ones(len(forms)), W_N=_HASHES.reading(*forms))


def _found_by_hash(weighting: str) -> Layer:
    """Return the layer that fetches v where lh(q) · lh(j) is largest."""
    normalized = Stream((*_QUERY, *_KEY, "v", "−v"))
    head = Attention(
        W_Q=normalized.reading(*_QUERY),
        W_K=normalized.reading(*_KEY),
        W_V=normalized.reading("v"),
        W_O=_HASHES.writing("found"),
        weighting=weighting,
    )
    return Layer((head,), pre_norms=(_norm_of(*_QUERY, *_KEY, "v", {"v": -1}), None))


def hash_code(i: int, n: int) -> Sequence[F]:
    """Return lh(i) as rationals, near enough for the gap between positions up to n."""
    # A root off by 2^−bits turns no vector: it scales lh(i) by 1 − i 2^−bits at most, and so the
    # products, which are at most 4, by less than n⁻⁴ 2⁻¹⁰⁰, where they lie 1/n⁴ apart.
    return layernorm_hash(i, 110 + 6 * n.bit_length())


def layernorm_hash_head_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which layernorm-hash-head finds its position.

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> layernorm_hash_head_length(FLOAT16), layernorm_hash_head_length(FLOAT32)
        (4, 30)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # To first order: a stored key is off by u in each coordinate, which moves its product with the
    # query by u Σ |q| |k| ≤ 4u, as both have norm 2; two keys, 8u. All four terms of a product are
    # positive, so that rounding them adds 4w, and three sums of at most 4 add 12w; two products,
    # 32w. Two products keep their order when stored if they differ by 8v, the spacing above 4, v
    # being u where sums are stored in a narrower format than they accumulate in, else 0.
    # The query's own rounding moves both products alike, but for u Σ |q| |k − k'| ≤ 8u s, where
    # 4s = |lh(q) − lh(j)| and the products differ by 8s². The difference 8s² − 8u s grows with s
    # from u/2 on, and s ≥ 1/(2√(M² + 1)), M as in `layernorm_hash_gap`. So it is enough that
    # 2/(M² + 1) > (1 + 64u)(8u + 32w + 8v + 4u/M), the factor being for higher orders. No
    # coordinate underflows: by this condition n⁴ < 1/u, and they are at least 1/n.
    u, w = a.unit_roundoff, a.accumulator_roundoff
    moved = 8 * u + 32 * w + 8 * storing_roundoff(a)
    return longest(
        lambda n: layernorm_hash_gap(n) > (1 + 64 * u) * (moved + 4 * u / (n * (n - 1) + 1))
    )


@recipe(
    "layernorm-hash-head",
    section="5.3.3",
    claim=SequenceClaim(
        statement="yᵢ = v at position qᵢ, positions given as their layernorm hashes, any v",
        reference=looked_up,
        domain=lambda: coded_positions(hash_code, 4, "lh(j)"),
        safe_length=lambda *, arithmetic: layernorm_hash_head_length(arithmetic),
        why_safe="bounds.layernorm_hash_head_length",
        weightings=HARD,
        mask="none",
        gap=lambda *, n: (layernorm_hash_gap(n), 4),
        gap_statement="at least 1/(M² + 1), M = n² − n + 1: about 1/n⁴",
        excluded={"exact": NO_ROOT},
        variants=each("weighting", HARD),
        size="width 9",
    ),
    sources=(
        "Merrill & Sabharwal 2024a",
        "the head of Table 5 as printed; layernorm-hash-lookup computes the hashes as well",
    ),
    errata=("hash-scale",),
)
def layernorm_hash_head(weighting: str = "average-hard") -> Attention:
    """The score lh(qᵢ) · lh(j)/2 is largest at j = qᵢ. The hashes are given, so that v is free."""
    return match_codes(4, weighting)


def _given_to_the_lookup(*, printed: bool) -> Sequences:
    """Return the columns: qᵢ, 1, 1/i and a sign; as printed both hashes, and any number."""
    if printed:
        return coded_positions(hash_code, 4, "lh(j)")
    query = Query(lambda q, _n: (q,))
    return Sequences((query, Feature.of("1"), Feature.of("1/i"), Values("v", Signs(1))))


@recipe(
    "layernorm-hash-lookup",
    section="5.3.3",
    claim=SequenceClaim(
        statement="yᵢ = v at position qᵢ, for v of −1 or 1, positions as their layernorm hashes, "
        "which norms compute from qᵢ and 1, and from 1 and 1/i; as printed the hashes "
        "are given, and v is any number",
        reference=looked_up,
        domain=_given_to_the_lookup,
        # With the errors of `layernorm_hash_length`: v is divided by a root that is off by 0.8a and
        # (2u + 8w + v)/2 + u, and the quotient rounds (u). Where w = u, v = 0 and a = 7u/2, that is
        # 9.8u; where w is far below u, v = u and a = 3u, 5.9u. 12u has room for higher orders.
        error=lambda *, arithmetic, printed: 0 if printed else 12 * arithmetic.unit_roundoff,
        error_statement="12 u: v is divided by √(σ² + 0), which is 1 up to rounding; as printed 0",
        safe_length=lambda *, arithmetic, printed: (
            layernorm_hash_head_length(arithmetic) if printed else layernorm_hash_length(arithmetic)
        ),
        why_safe="bounds.layernorm_hash_length; as printed bounds.layernorm_hash_head_length",
        weightings=HARD,
        mask="none",
        gap=lambda *, n: (layernorm_hash_gap(n), 4),
        gap_statement="at least 1/(M² + 1), M = n² − n + 1: about 1/n⁴",
        excluded={"exact": NO_ROOT},
        variants=(*each("weighting", HARD), {"printed": True}),
        size="width 13, 3 layers; as printed a head of width 9",
    ),
    sources=(
        "Merrill & Sabharwal 2024a",
        "lh is LN(k [x, 1, −x, −1]) for every k > 0; of k < 0 it is the opposite",
        "one norm over qᵢ, i and v at once, as printed, scales each by the others and fails",
        "the pairs stand side by side, so that sums over them are 0 in every format",
        "printed=True has the head of Table 5, layernorm-hash-head, to which the hashes are given",
    ),
    errata=("hash-scale", "hash-selective-norm"),
)
def layernorm_hash_lookup(
    weighting: str = "average-hard", printed: bool = False
) -> LayerStack | Attention:
    """lh(qᵢ) and lh(i) by norms of their own, then the score lh(qᵢ) · lh(j)/2.

    The norm before the head sees both hashes and v, −v: mean 0 and variance (4 + 4 + 2)/10 = 1 at
    every position, so that it changes nothing.
    """
    if printed:
        head: Attention = layernorm_hash_head.build(weighting=weighting)
        return head
    return LayerStack(
        stream=_HASHES,
        inputs=("q", "1", "1/i", "v"),
        layers=(_hash("q", "1", _QUERY), _hash("1", "1/i", _KEY), _found_by_hash(weighting)),
        outputs=("found",),
    )


RECIPES = (
    layernorm_pairs,
    layernorm_sign,
    selective_layernorm,
    layernorm_hash_head,
    layernorm_hash_lookup,
)
"""Recipes of the chapter, in the order in which they are listed."""
