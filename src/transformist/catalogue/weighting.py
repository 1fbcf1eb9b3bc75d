"""One weighting by another, many heads by single ones: sections 5.5 to 5.7 of the Cookbook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

from transformist.arithmetic import SYSTEMS, Arithmetic, Floating
from transformist.assembly import attend, precompose, soften, split_heads, tie_break
from transformist.catalogue.attention import mark_first, mean_length, prefix_means
from transformist.catalogue.feed_forward import greater_than_zero
from transformist.catalogue.lookup import (
    almost_orthogonal_lookup,
    coded_positions,
    looked_up,
    one_hot,
    one_hot_lookup,
    quadratic_exponent,
    require_share,
)
from transformist.catalogue.normalization import (
    hash_code,
    layernorm_hash_gap,
    layernorm_hash_head,
)
from transformist.catalogue.positions import almost_orthogonal, almost_orthogonal_dimension
from transformist.catalogue.safe_lengths import count_length, longest, longest_apart
from transformist.claims import NO_SOFTMAX, FunctionClaim, SequenceClaim, everywhere, recipe
from transformist.domains import Bits, Feature, Reals, Sequences, Values, Where
from transformist.errors import InvalidValue
from transformist.model import Attention, FeedForward, Layer, LayerStack, Stream
from transformist.rounding import float_format_of, mean_error, rounded_up, softmax_error
from transformist.rounding.powers import log
from transformist.theory import sharpness, underflow_sharpness
from transformist.theory.softening import required_share

# 5.5: many heads by single ones


def _cycled(*, x: list[tuple[F, ...]], n: int, heads: int) -> list[list[F]]:
    """Return each coordinate plus the mean so far of the one before it, the last for the first."""
    means = prefix_means(x)
    return [[x[i][k] + means[i][k - 1] for k in range(heads)] for i in range(n)]


def _split_error(*, n: int, size: F, arithmetic: Arithmetic) -> F | float:
    """Return the error of a mean and of adding it, by a copy, to a number up to `size`."""
    if not isinstance(arithmetic, Floating):
        return 0
    if 3 * size >= F(arithmetic.largest):
        return math.inf
    # The copy by ReLU(x) − ReLU(−x) is exact. The sum with a number of the size, at most 2 size and
    # the error of the mean, rounds by about 2u size; 8 is room for four such roundings.
    return mean_error(n, size, arithmetic) + 8 * (
        arithmetic.unit_roundoff * size + F(arithmetic.smallest)
    )


@recipe(
    "split-heads",
    section="5.5",
    claim=SequenceClaim(
        statement="H heads, each adding the mean so far of one coordinate to the next, the last to "
        "the first, as H layers of one head: y[i, k] = x[i, k] + (x[1, k−1] + … + x[i, k−1])/i",
        reference=_cycled,
        domain=lambda *, heads: Sequences((Values("x", Reals(heads)),)),
        error=_split_error,
        error_statement="bounds.mean_error, and 8 u |x|; infinite where a sum may overflow",
        safe_length=lambda *, arithmetic: count_length(arithmetic),
        why_safe="bounds.count_length",
        weightings=("softmax", "average-hard"),
        mask="future",
        variants=({"weighting": "average-hard"}, {"heads": 2}, {"heads": 11}),
        size="width H + H, of which H are fresh",
    ),
    sources=("heads stacked in place would read what the heads before them wrote",),
    errata=("heads-in-place",),
)
def split(heads: int = 3, weighting: str = "softmax") -> LayerStack:
    """assembly.split_heads of one layer: fresh slots for each head, added up at the end."""
    slots = tuple(f"x{k}" for k in range(heads))
    stream = Stream(slots)
    together = tuple(
        attend(stream, [slots[k - 1]], [slots[k]], weighting=weighting, mask="future")
        for k in range(heads)
    )
    return split_heads(LayerStack(stream, slots, (Layer(together),), slots))


# 5.6: unique-hard by average-hard


def _first_or_last(*, a: Sequence[Any], v: Sequence[Any], term: str) -> list[list[F]]:
    """Return the value at the last (for −1/i and i/n) or first position up to i of largest a."""
    values, place = [], 0
    for i, entry in enumerate(a):
        if entry > a[place] or (entry == a[place] and term in ("-1/i", "i/n")):
            place = i
        values.append(list(v[place]))
    return values


def tie_break_length(*, term: str, arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which scores (s + t(j))/√2, s of 0 and 1, keep their order.

    Example:
        >>> from transformist.arithmetic import FLOAT16
        >>> tie_break_length(term="i/n", arithmetic=FLOAT16)
        409
        >>> tie_break_length(term="-1/i", arithmetic=FLOAT16)
        29

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u = a.unit_roundoff
    if term.endswith("n"):
        # t = ±j/n: 1/n > 5u. Sums differ by 1/n or more, by 1/n − u with t as rounded (within u/2).
        # They are stored as multiples of 2u, or of less, within u of themselves: more than 2u
        # apart, which is at least 4u in multiples of 2u. Divided by fl(√2) < 2 they are more than
        # 2u apart, the spacing above 1.
        return longest_apart(5 * u)
    # t = ±1/j: 2/(n(n − 1)) > 5u. Sums differ by g = 1/(n(n − 1)) or more, by g − u/2 with t as
    # rounded (within u/4, 1 being exact).
    # For −1/j sums are at most 1 in magnitude, stored as multiples of u within u/2 of themselves,
    # and more than u apart where g > 5u/2: at least 2u; quotients are below 1, where the spacing is
    # at most u, and more than that apart.
    # For 1/j and s = 1 sums are stored within u: distinct multiples of 2u, as their differences are
    # above 0 by the same g > 5u/2; quotients are below 1 from j = 3 on, since 4/3 < √2, and before
    # that differ by more than 2u by themselves, 1/6 being above 5u for u < 1/30 (n ≤ 2 elsewhere).
    # For 1/j and s = 0, t of neighbours are in a ratio of 1 + 1/(n − 1) or more, above
    # ((1 + u)/(1 − u))² since 1/(n − 1) > 5nu/2.
    pairs = longest_apart(5 * u / 2)
    largest_n = (1 + math.isqrt(1 + 4 * pairs)) // 2  # n(n − 1) ≤ pairs
    return largest_n if u < F(1, 30) else min(largest_n, 2)


def _tie_break_gap(*, n: int, term: str) -> tuple[F, int]:
    return (F(1, n) if term.endswith("n") else F(1, n * max(n - 1, 1))), 2


@recipe(
    "tie-break",
    section="5.6",
    claim=SequenceClaim(
        statement="yᵢ = vⱼ for the rightmost (−1/j, j/n) or leftmost (1/j, −j/n) j ≤ i of largest "
        "aⱼ, by average-hard attention",
        reference=_first_or_last,
        domain=lambda *, term: Sequences(
            (
                Feature.of("1"),
                Values("a", Bits(1)),
                Values("v", Reals(1)),
                Feature("γ = 1", lambda _i, _n: (1,)),
                Feature.of(term),
            )
        ),
        safe_length=tie_break_length,
        why_safe="bounds.tie_break_length",
        weightings=("average-hard",),
        mask="future",
        gap=_tie_break_gap,
        gap_statement="γ/(n(n − 1) √2) for ±1/j, γ/(n √2) for ±j/n, γ = 1",
        variants=({"term": "-1/i"}, {"term": "1/i"}, {"term": "-i/n"}),
        depends_on=lambda *, term: ("n",) if term.endswith("n") else (),
    ),
    sources=(
        "γ may be the gap of the dot products itself, the terms differing by less than 1",
        "the second block of W_K is printed as that of W_Q",
    ),
    errata=("tie-break-keys", "tie-break-scale", "tie-break-resolution"),
)
def break_ties(
    term: str = "i/n",  # noqa: ARG001 (an input: the weights are the same)
    weighting: str = "average-hard",
) -> Attention:
    """assembly.tie_break of the head with scores aⱼ, whose gap is 1; the term is an input."""
    return tie_break(
        Attention(
            W_Q=[[1, 0, 0]],
            W_K=[[0, 1, 0]],
            W_V=[[0, 0, 1]],
            weighting=weighting,
            mask="future",
        )
    )


# 5.7: hard by soft


PRINTED_TOLERANCE = F(1, 4)
"""The error for which τ is printed."""


def _one_hot_sharpness(max_length: int, tolerance: F, printed: bool) -> F:
    if not printed:
        return sharpness((F(1), max_length), max_length, tolerance)
    # τ = γ/ln 8N, and γ = 1/√N is the gap after 1/√d_key. 1/τ has 4 significant bits, as that of
    # `sharpness`, and is rounded up: τ is at most the printed one, and 2N e^(−γ/τ) ≤ 1/4.
    return rounded_up(F(math.sqrt(max_length) * log(F(8 * max_length))))


def _soft_rounding(
    n: int, max_length: int, tolerance: F, printed: bool, arithmetic: Arithmetic
) -> float:
    # The largest dot product is 1, times the sharpness, over √d_key = √N.
    scores = float(_one_hot_sharpness(max_length, tolerance, printed)) / math.sqrt(max_length)
    return softmax_error(n, scores, tolerance, arithmetic)


def _soft_length(
    *, max_length: int, tolerance: F, printed: bool, arithmetic: Arithmetic
) -> int | None:
    moved = _soft_rounding(max_length, max_length, tolerance, printed, arithmetic)
    return None if moved < 1 / 4 else 0


@recipe(
    "soften",
    section="5.7",
    claim=SequenceClaim(
        statement="|yᵢ − v at position qᵢ| ≤ the tolerance, for v in [0, 1] and n ≤ N, by softmax",
        reference=looked_up,
        domain=lambda *, max_length: one_hot(
            max_length=max_length, value=Values("v", Reals(1, F(0), F(1)))
        ),
        error=lambda *, n, max_length, tolerance, printed, arithmetic: (
            tolerance + _soft_rounding(n, max_length, tolerance, printed, arithmetic)
        ),
        error_statement="the tolerance, and bounds.softmax_error",
        safe_length=_soft_length,
        why_safe="rounding moves the result by less than 1/4 (bounds.softmax_error)",
        weightings=("softmax",),
        mask="none",
        gap=lambda *, max_length, tolerance, printed: (
            _one_hot_sharpness(max_length, tolerance, printed),
            max_length,
        ),
        gap_statement="(1/τ)/√N, 1/τ ≥ √N ln((N − 1)/tolerance); as printed 1/τ ≥ √N ln 8N",
        excluded={"exact": NO_SOFTMAX},
        variants=(
            {"max_length": 1},
            {"max_length": 11, "tolerance": "1/100"},
            {"max_length": 11, "printed": True},
        ),
        depends_on=("N",),
        size="width 2N + 1",
    ),
    sources=(
        "τ = γ/ln 8N, with the natural logarithm and γ after 1/√d_key: printed=True has this one",
    ),
    errata=("soft-logarithm", "softmax-to-hardmax", "one-hot-gap"),
)
def softened(
    max_length: int = 64, tolerance: F = PRINTED_TOLERANCE, printed: bool = False
) -> Attention:
    """assembly.soften of one-hot-lookup, by bounds.sharpness of its gap, N and the tolerance."""
    require_share(tolerance, "soften")
    if printed and tolerance != PRINTED_TOLERANCE:
        raise InvalidValue(
            f"the tolerance must be {PRINTED_TOLERANCE}, for which the temperature is printed",
            received=f"tolerance = {tolerance}, printed = true",
            where="soften",
            remedy="leave printed out, and the temperature is derived from the tolerance",
        )
    head = one_hot_lookup.build(max_length=max_length)
    return soften(head, _one_hot_sharpness(max_length, tolerance, printed))


def _underflowing(max_length: int, arithmetic: Arithmetic) -> F:
    return underflow_sharpness((F(1), max_length), F(1), arithmetic)


def _underflows(*, max_length: int, format: str, arithmetic: Arithmetic) -> int | None:
    """Return None, for every length, in formats where scores made for `format` underflow too."""
    if not isinstance(arithmetic, Floating):
        return 0
    scale = _underflowing(max_length, SYSTEMS[format])
    try:
        enough = scale >= _underflowing(max_length, arithmetic)
    except InvalidValue:
        return 0
    return None if enough and scale < F(arithmetic.largest) / 4 else 0


@recipe(
    "soften-by-precision",
    section="5.7",
    claim=SequenceClaim(
        statement="yᵢ = v at position qᵢ, exactly, by softmax: exp of all other scores rounds to 0",
        reference=looked_up,
        domain=lambda *, max_length: one_hot(max_length=max_length),
        safe_length=_underflows,
        why_safe="e^(−gap/τ) is below half the least number of the format",
        weightings=("softmax",),
        mask="none",
        gap=lambda *, max_length, format: (_underflowing(max_length, SYSTEMS[format]), max_length),
        gap_statement="(1/τ)/√N, 1/τ a power of two; exp rounds to 0 from 17.4 (float16), 93 "
        "(bfloat16), 104 (float32), 745.2 (float64)",
        excluded={"exact": NO_SOFTMAX},
        variants=(
            *({"format": name} for name in ("float32", "float16", "bfloat16")),
            {"max_length": 11},
        ),
        depends_on=("N",),
        size="width 2N + 1",
    ),
    errata=("softmax-to-hardmax",),
)
def softened_by_precision(max_length: int = 64, format: str = "float64") -> Attention:
    """assembly.soften of one-hot-lookup, by bounds.underflow_sharpness."""
    head = one_hot_lookup.build(max_length=max_length)
    return soften(head, _underflowing(max_length, SYSTEMS[format]))


# 5.7: softmax in the lookups of 5.2 and 5.3

_SHARE = Values("v", Reals(1, F(0), F(1)))


def _built_within(max_length: int, safe: int | None) -> int | None:
    """Return the safe length if the N that the weights are built for is within it, else 0."""
    # The scores grow with the N that the weights are made for, whatever the length of an input.
    return safe if safe is None or max_length <= safe else 0


def _first_sharpness(max_length: int, tolerance: F) -> F:
    return sharpness((F(1), 1), max_length, tolerance)


def softened_first_length(arithmetic: Arithmetic | str, tolerance: Any = F(1, 4)) -> int | None:
    """Return the largest N for which rounding moves first-value-soft by less than 1/8.

    Args:
        arithmetic: the number system.
        tolerance: the weight that may go elsewhere, between 0 and 1.

    Raises:
        InvalidValue: for a tolerance that is not between 0 and 1.

    Example:
        >>> softened_first_length("float16"), softened_first_length("float8_e4m3")
        (65504, 0)

    """
    share = required_share(tolerance, "softened_first_length")
    marked = mean_length(arithmetic)
    if marked is None:
        return None

    def holds(n: int) -> bool:
        # Marks are 0 and 1 exactly up to `mean_length`, so scores are 1/τ and 0.
        return n <= marked and _first_rounding(n, n, share, arithmetic) < 1 / 8

    return longest(holds)


def _first_rounding(n: int, max_length: int, tolerance: F, arithmetic: Arithmetic | str) -> float:
    scores = float(_first_sharpness(max_length, tolerance))
    return softmax_error(n, scores, tolerance, arithmetic)


@recipe(
    "first-value-soft",
    section="5.7",
    claim=SequenceClaim(
        statement="|yᵢ − v₁| ≤ the tolerance, for v in [0, 1] and n ≤ N, by softmax alone",
        reference=lambda *, v, n: [list(v[0])] * n,
        domain=lambda: Sequences((Feature.of("1"), Feature.of("(-1)^i"), _SHARE)),
        error=lambda *, n, max_length, tolerance, arithmetic: (
            tolerance + _first_rounding(n, max_length, tolerance, arithmetic)
        ),
        error_statement="the tolerance, and bounds.softmax_error",
        safe_length=lambda *, max_length, tolerance, arithmetic: _built_within(
            max_length, softened_first_length(arithmetic, tolerance)
        ),
        why_safe="bounds.softened_first_length: marks are exact, as those of first; rounding moves "
        "the result by less than 1/8",
        weightings=("softmax",),
        mask="future",
        gap=lambda *, max_length, tolerance: (_first_sharpness(max_length, tolerance), 1),
        gap_statement="1/τ ≥ ln((N − 1)/tolerance)",
        excluded={"exact": NO_SOFTMAX},
        variants=({"max_length": 1}, {"max_length": 11, "tolerance": "1/100"}),
        depends_on=("N",),
    ),
    errata=("first-weighting", "first-retrieval", "soft-logarithm", "softmax-to-hardmax"),
)
def first_value_softened(max_length: int = 64, tolerance: F = F(1, 4)) -> LayerStack:
    """Mark the first position by a mean (5.2), then attend to the mark, sharpened by 1/τ."""
    require_share(tolerance, "first-value-soft")
    stream = Stream(("1", "(-1)^i", "v", "odd share", "first", "first value"))
    scale = _first_sharpness(max_length, tolerance)
    fetch = attend(
        stream, ["v"], ["first value"], [{"1": scale}], ["first"], "softmax", mask="future"
    )
    layers = (mark_first(stream, "softmax"), Layer((fetch,)))
    return LayerStack(stream, ("1", "(-1)^i", "v"), layers, ("first value",))


def _width_of(max_length: int, epsilon: F, width: int | None) -> int:
    return almost_orthogonal_dimension(max_length, epsilon) if width is None else width


def _orthogonal_gap(*, max_length: int, epsilon: F, width: int | None) -> tuple[F, int]:
    """Return the least gap of dot products, m(1 − ε), and d_key = m."""
    m = _width_of(max_length, epsilon, width)
    return m * (1 - epsilon), m


def _orthogonal_rounding(
    n: int,
    max_length: int,
    epsilon: F,
    width: int | None,
    tolerance: F,
    arithmetic: Arithmetic | str,
) -> float:
    """Return how far rounding moves the result; infinite where sums may round or overflow."""
    gap = _orthogonal_gap(max_length=max_length, epsilon=epsilon, width=width)
    scale, m = sharpness(gap, max_length, tolerance), gap[1]
    a = float_format_of(arithmetic)
    # 1/τ has 4 significant bits, so that sums of m terms ±1/τ are whole multiples, up to 16 m, of
    # one power of two. The accumulator holds these exactly for 16 m w ≤ 1, and a score then rounds
    # when it is stored, and by the division by √m: less often than `softmax_error` admits.
    if a is not None and (16 * m * a.accumulator_roundoff > 1 or m * scale > F(a.largest)):
        return math.inf
    return softmax_error(n, float(scale) * math.sqrt(m), tolerance, arithmetic)


def softened_orthogonal_length(
    arithmetic: Arithmetic | str,
    epsilon: F = F(2, 5),
    width: int | None = None,
    tolerance: Any = F(1, 4),
) -> int | None:
    """Return the largest N for which rounding moves almost-orthogonal-lookup-soft by less than 1/8.

    Args:
        arithmetic: the number system.
        epsilon: ε of the vectors.
        width: m, the length of the vectors; derived from N and ε if left out.
        tolerance: the weight that may go elsewhere, between 0 and 1.

    Raises:
        InvalidValue: for a tolerance that is not between 0 and 1.

    Example:
        >>> softened_orthogonal_length("float16"), softened_orthogonal_length("bfloat16")
        (293253, 27)

    """
    share = required_share(tolerance, "softened_orthogonal_length")
    if float_format_of(arithmetic) is None:
        return None

    def holds(n: int) -> bool:
        return _orthogonal_rounding(n, n, epsilon, width, share, arithmetic) < 1 / 8

    return longest(holds)


def _near_shares(*, max_length: int, epsilon: F, width: int | None, seed: int) -> Sequences:
    family = almost_orthogonal(max_length, epsilon, width, seed)
    return coded_positions(lambda i, _n: family[i - 1], len(family[0]), "xⱼ", _SHARE)


def _orthogonal_soft_gap(
    *, max_length: int, epsilon: F, width: int | None, tolerance: F
) -> tuple[F, int]:
    gap = _orthogonal_gap(max_length=max_length, epsilon=epsilon, width=width)
    return gap[0] * sharpness(gap, max_length, tolerance), gap[1]


@recipe(
    "almost-orthogonal-lookup-soft",
    section="5.7",
    claim=SequenceClaim(
        statement="|yᵢ − v at position qᵢ| ≤ the tolerance, for v in [0, 1] and n ≤ N, by softmax, "
        "positions as the vectors of position-almost-orthogonal",
        reference=looked_up,
        domain=_near_shares,
        error=lambda *, n, max_length, epsilon, width, tolerance, arithmetic: (
            tolerance + _orthogonal_rounding(n, max_length, epsilon, width, tolerance, arithmetic)
        ),
        error_statement="the tolerance, and bounds.softmax_error",
        safe_length=lambda *, max_length, epsilon, width, tolerance, arithmetic: _built_within(
            max_length, softened_orthogonal_length(arithmetic, epsilon, width, tolerance)
        ),
        why_safe="sums of ±1/τ are exact, and rounding moves the result by less than 1/8 "
        "(bounds.softened_orthogonal_length)",
        weightings=("softmax",),
        mask="none",
        gap=_orthogonal_soft_gap,
        gap_statement="at least (1/τ)(1 − ε) √m, 1/τ ≥ ln((N − 1)/tolerance)/((1 − ε) √m)",
        excluded={"exact": NO_SOFTMAX},
        variants=({"max_length": 12, "epsilon": "1/3", "width": 60, "tolerance": "1/100"},),
        depends_on=("N",),
        size="width 2m + 1, m = ⌈(2/ε²) ln(2 N(N − 1))⌉, or as set",
    ),
    sources=("the gap is (1 − ε)/√m after 1/√d_key, for vectors of norm 1, not 1 − 2ε",),
    errata=("almost-orthogonal-gap", "soft-logarithm", "softmax-to-hardmax"),
)
def almost_orthogonal_softened(
    max_length: int = 16,
    epsilon: F = F(2, 5),
    width: int | None = None,
    seed: int = 0,
    tolerance: F = F(1, 4),
) -> Attention:
    """assembly.soften of almost-orthogonal-lookup, by bounds.sharpness of its gap."""
    require_share(tolerance, "almost-orthogonal-lookup-soft")
    head = almost_orthogonal_lookup.build(
        max_length=max_length, epsilon=epsilon, width=width, seed=seed
    )
    gap = _orthogonal_gap(max_length=max_length, epsilon=epsilon, width=width)
    return soften(head, sharpness(gap, max_length, tolerance))


def layernorm_hash_sharpness(max_length: int, tolerance: Any) -> F:
    """Return 1/τ for softmax in a lookup by layernorm hashes among N positions.

    Args:
        max_length: N, the most positions.
        tolerance: the weight that may go elsewhere, between 0 and 1.

    Raises:
        InvalidValue: for a tolerance that is not between 0 and 1.

    Example:
        >>> layernorm_hash_sharpness(8, F(1, 4))
        Fraction(7168, 1)

    """
    share = required_share(tolerance, "layernorm_hash_sharpness")
    # lh(q) · lh(j) = 4 cos θ, θ the angle between (q, 1) and (j, 1), and 1 − cos θ ≥ sin² θ/2. The
    # cross product of the two is q − j, so sin² θ = (q − j)²/((q² + 1)(j² + 1)), which is at least
    # (q − j)²/(M² + 1) for q ≠ j ≤ N, M = N² − N + 1 (`layernorm_hash_gap`). The position at
    # distance m thus scores at least m²/(M² + 1) below the best: as in the quadratic lookup.
    unit = layernorm_hash_gap(max_length) / 2
    return rounded_up(F(quadratic_exponent(share)) / unit)


def _hash_rounding(n: int, max_length: int, tolerance: F, arithmetic: Arithmetic | str) -> float:
    # A score rounds ten times: the two coordinates that are stored, the query times 1/τ (product
    # and store), the product and three sums of positive terms, the store, the root and the
    # quotient make 5u + 6w ≤ 11u of itself; two scores and their difference 24u. Scores are at
    # most 2/τ. `softmax_error` has 10u: it is asked for scores three times as large, 30u, which
    # has room for higher orders: where it is finite, u is at most 1/240.
    scores = 6 * float(layernorm_hash_sharpness(max_length, tolerance))
    return softmax_error(n, scores, tolerance, arithmetic)


def softened_hash_length(arithmetic: Arithmetic | str, tolerance: Any = F(1, 4)) -> int | None:
    """Return the largest N for which rounding moves layernorm-hash-head-soft by less than 1/8.

    Args:
        arithmetic: the number system.
        tolerance: the weight that may go elsewhere, between 0 and 1.

    Raises:
        InvalidValue: for a tolerance that is not between 0 and 1.

    Example:
        >>> [softened_hash_length(name) for name in ("float64", "float32", "float16")]
        [2289, 15, 1]

    """
    share = required_share(tolerance, "softened_hash_length")
    if float_format_of(arithmetic) is None:
        return None
    return longest(lambda n: _hash_rounding(n, n, share, arithmetic) < 1 / 8)


@recipe(
    "layernorm-hash-head-soft",
    section="5.7",
    claim=SequenceClaim(
        statement="|yᵢ − v at position qᵢ| ≤ the tolerance, for v in [0, 1] and n ≤ N, by softmax, "
        "positions given as their layernorm hashes",
        reference=looked_up,
        domain=lambda: coded_positions(hash_code, 4, "lh(j)", _SHARE),
        error=lambda *, n, max_length, tolerance, arithmetic: (
            tolerance + _hash_rounding(n, max_length, tolerance, arithmetic)
        ),
        error_statement="the tolerance, and bounds.softmax_error",
        safe_length=lambda *, max_length, tolerance, arithmetic: _built_within(
            max_length, softened_hash_length(arithmetic, tolerance)
        ),
        why_safe="rounding moves the result by less than 1/8 (bounds.softened_hash_length): the "
        "scores, at most 2/τ, grow as N⁴",
        weightings=("softmax",),
        mask="none",
        gap=lambda *, n, max_length, tolerance: (
            layernorm_hash_gap(n) * layernorm_hash_sharpness(max_length, tolerance),
            4,
        ),
        gap_statement="at least (1/τ)/(M² + 1), M = n² − n + 1, 1/τ from "
        "bounds.layernorm_hash_sharpness",
        excluded={"exact": NO_SOFTMAX},
        variants=({"max_length": 1}, {"max_length": 300, "tolerance": "1/100"}),
        depends_on=("N",),
        size="width 9, whatever N",
    ),
    sources=(
        "the weight elsewhere is at most 2x/(1 − x³), x = e^(−1/(τ(M² + 1))), M = N² − N + 1",
    ),
    errata=("hash-scale", "soft-logarithm", "softmax-to-hardmax"),
)
def layernorm_hash_softened(max_length: int = 8, tolerance: F = F(1, 4)) -> Attention:
    """assembly.soften of layernorm-hash-head, by bounds.layernorm_hash_sharpness."""
    require_share(tolerance, "layernorm-hash-head-soft")
    return soften(layernorm_hash_head.build(), layernorm_hash_sharpness(max_length, tolerance))


def _near_a_bit(case: tuple[F, ...]) -> bool:
    return case[0] <= F(1, 4) or case[0] >= F(3, 4)


@recipe(
    "round-to-bit",
    section="5.7",
    claim=FunctionClaim(
        statement="y = 0 for c in [0, 1/4], 1 for c in [3/4, 1]",
        reference=lambda c: [0 if c <= F(1, 2) else 1],
        domain=lambda: Where(
            Reals(1, F(0), F(1), points=(F(1, 4), F(3, 4))), _near_a_bit, "c ≤ 1/4 or c ≥ 3/4"
        ),
        exact_on=everywhere,
        exact_on_statement="all these inputs",
    ),
)
def round_to_bit() -> FeedForward:
    """GTZero of ε = ½ at c − ¼."""
    # It is 0 up to 0, where c = ¼, and 1 from ½ on, where c = ¾.
    return precompose(greater_than_zero.build(epsilon=F(1, 2)), [[1]], [F(-1, 4)])


RECIPES = (
    split,
    break_ties,
    softened,
    softened_by_precision,
    first_value_softened,
    almost_orthogonal_softened,
    layernorm_hash_softened,
    round_to_bit,
)
"""Recipes of the chapter, in the order in which they are listed."""
