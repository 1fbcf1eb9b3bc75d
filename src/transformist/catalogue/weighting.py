"""One weighting by another, many heads by single ones: sections 5.5 to 5.7 of the Cookbook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

from transformist.arithmetic import SYSTEMS, Arithmetic, Floating
from transformist.assembly import attend, precompose, soften, split_heads, tie_break
from transformist.catalogue.attention import prefix_means
from transformist.catalogue.feed_forward import greater_than_zero
from transformist.catalogue.lookup import looked_up, one_hot, one_hot_lookup, require_share
from transformist.catalogue.safe_lengths import count_length, longest_apart
from transformist.claims import NO_SOFTMAX, FunctionClaim, SequenceClaim, everywhere, recipe
from transformist.domains import Bits, Feature, Reals, Sequences, Values, Where
from transformist.errors import InvalidValue
from transformist.model import Attention, FeedForward, Layer, LayerStack, Stream
from transformist.rounding import float_format_of, mean_error, softmax_error
from transformist.theory import sharpness, underflow_sharpness

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


def _one_hot_sharpness(max_length: int, tolerance: F) -> F:
    return sharpness((F(1), max_length), max_length, tolerance)


def _soft_rounding(n: int, max_length: int, tolerance: F, arithmetic: Arithmetic) -> float:
    # The largest dot product is 1, times the sharpness, over √d_key = √N.
    scores = float(_one_hot_sharpness(max_length, tolerance)) / math.sqrt(max_length)
    return softmax_error(n, scores, tolerance, arithmetic)


def _soft_length(*, max_length: int, tolerance: F, arithmetic: Arithmetic) -> int | None:
    return None if _soft_rounding(max_length, max_length, tolerance, arithmetic) < 1 / 4 else 0


@recipe(
    "soften",
    section="5.7",
    claim=SequenceClaim(
        statement="|yᵢ − v at position qᵢ| ≤ the tolerance, for v in [0, 1] and n ≤ N, by softmax",
        reference=looked_up,
        domain=lambda *, max_length: one_hot(
            max_length=max_length, value=Values("v", Reals(1, F(0), F(1)))
        ),
        error=lambda *, n, max_length, tolerance, arithmetic: (
            tolerance + _soft_rounding(n, max_length, tolerance, arithmetic)
        ),
        error_statement="the tolerance, and bounds.softmax_error",
        safe_length=_soft_length,
        why_safe="rounding moves the result by less than 1/4 (bounds.softmax_error)",
        weightings=("softmax",),
        mask="none",
        gap=lambda *, max_length, tolerance: (
            _one_hot_sharpness(max_length, tolerance),
            max_length,
        ),
        gap_statement="(1/τ)/√N, 1/τ ≥ √N ln((N − 1)/tolerance)",
        excluded={"exact": NO_SOFTMAX},
        variants=({"max_length": 1}, {"max_length": 11, "tolerance": "1/100"}),
        depends_on=("N",),
        size="width 2N + 1",
    ),
    sources=("τ = γ/ln 8N, with the natural logarithm and γ after 1/√d_key",),
    errata=("soft-logarithm", "softmax-to-hardmax", "one-hot-gap"),
)
def softened(max_length: int = 64, tolerance: F = F(1, 4)) -> Attention:
    """assembly.soften of one-hot-lookup, by bounds.sharpness of its gap, N and the tolerance."""
    require_share(tolerance, "soften")
    head = one_hot_lookup.build(max_length=max_length)
    return soften(head, _one_hot_sharpness(max_length, tolerance))


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


RECIPES = (split, break_ties, softened, softened_by_precision, round_to_bit)
"""Recipes of the chapter, in the order in which they are listed."""
