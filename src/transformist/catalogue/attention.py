"""Attention that retrieves and averages: sections 5.1, 5.2 and 5.4 of the Cookbook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction as F
from itertools import accumulate
from typing import Any

import numpy as np

from transformist.arithmetic import Arithmetic, Floating
from transformist.assembly import attend, beside, route, units
from transformist.catalogue.feed_forward import greater_than_zero, require_interval
from transformist.catalogue.safe_lengths import (
    count_length,
    fraction_length,
    longest,
    nearest_active_length,
    quadratic_length,
)
from transformist.claims import SequenceClaim, recipe, rounded_once
from transformist.domains import Bits, Feature, Reals, Sequences, Values
from transformist.model import Attention, FeedForward, Layer, LayerStack, Mask, Stream, Weighting
from transformist.rounding import mean_error, power_of_two_at_most

HARD = tuple(weighting for weighting in Weighting if weighting.is_hard)
"""Weightings that agree where a row of scores has one maximum."""


def each(name: str, values: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
    """Return a variant for each value but the first, which is the default."""
    return tuple({name: value} for value in values[1:])


def _vectors(*, width: int) -> Sequences:
    return Sequences((Values("x", Reals(width)),))


def _mean(vectors: list[tuple[F, ...]]) -> list[F]:
    return [sum(column, F(0)) / len(vectors) for column in zip(*vectors, strict=True)]


def prefix_means(vectors: list[tuple[F, ...]]) -> list[list[F]]:
    """Return the mean of the vectors up to each position."""
    sums = zip(*(accumulate(column) for column in zip(*vectors, strict=True)), strict=True)
    return [[entry / i for entry in total] for i, total in enumerate(sums, start=1)]


# 5.1: trivial cases


@recipe(
    "attend-nothing",
    section="5.1.1",
    claim=SequenceClaim(
        statement="yᵢ = 0, so that yᵢ + xᵢ = xᵢ",
        reference=lambda *, n, width: [[0] * width] * n,
        domain=_vectors,
        weightings=("softmax", *HARD),
        mask="any (--set mask=)",
        variants=(
            *each("weighting", ("softmax", *HARD)),
            *each("mask", tuple(Mask)),
            {"width": 11, "weighting": "rightmost-hard", "mask": "strict-past"},
        ),
    ),
)
def attend_nothing(width: int = 2, weighting: str = "softmax", mask: str = "none") -> Attention:
    """W_Q = W_K = 0, W_V = 0."""
    return Attention(
        W_Q=np.zeros((1, width)),
        W_K=np.zeros((1, width)),
        W_V=np.zeros((width, width)),
        weighting=weighting,
        mask=mask,
    )


def _average(width: int, weighting: str, mask: str) -> Attention:
    """W_Q = W_K = 0, W_V = I."""
    zero = np.zeros((1, width))
    return Attention(W_Q=zero, W_K=zero, W_V=np.eye(width), weighting=weighting, mask=mask)


_MEAN: dict[str, Any] = {
    "domain": _vectors,
    "error": lambda *, n, size, arithmetic: mean_error(n, size, arithmetic),
    "error_statement": "bounds.mean_error of n and the largest magnitude; infinite where the mean "
    "may overflow",
    "safe_length": lambda *, arithmetic: count_length(arithmetic),
    "why_safe": "bounds.count_length: the count of positions stays exact enough, and finite",
    "weightings": ("softmax", "average-hard"),
    "variants": ({"weighting": "average-hard"}, {"width": 1}, {"width": 11}),
}


@recipe(
    "mean",
    section="5.1.2",
    claim=SequenceClaim(
        statement="yᵢ = (x₁ + … + xₙ)/n",
        reference=lambda *, x, n: [_mean(x)] * n,
        mask="none",
        **_MEAN,
    ),
)
def mean(width: int = 2, weighting: str = "softmax") -> Attention:
    """Equal scores, no mask."""
    return _average(width, weighting, mask="none")


@recipe(
    "prefix-mean",
    section="5.1.2",
    claim=SequenceClaim(
        statement="yᵢ = (x₁ + … + xᵢ)/i",
        reference=lambda *, x: prefix_means(x),
        mask="future",
        **_MEAN,
    ),
)
def prefix_mean(width: int = 2, weighting: str = "softmax") -> Attention:
    """Equal scores, future mask."""
    return _average(width, weighting, mask="future")


def mean_length(arithmetic: Arithmetic | str) -> int | None:
    """Return a length up to which a mean of numbers of magnitude ≤ 1 has an error below 1/8.

    Example:
        >>> [mean_length(name) for name in ("float32", "float16", "bfloat16", "float8_e4m3")]
        [1048576, 65504, 1048576, 0]

    """
    # `mean_error` grows with n. It is at most (1 + u)²/(1 − u) · (1 + w)^(n+1) − 1, and what
    # underflows. For u ≤ 1/256 the former is below (1 + 1/84)(1 + 1/15) − 1 < 1/12, as n w ≤ 1/16,
    # and the latter, n + 1 times the least number, below 1/255 in float16 and less elsewhere: all
    # of `count_length` is admitted. It is 0 where u is too large for n = 1 already: in 8 bits
    # (1 + u)²/(1 − u) − 1 is above 1/5.
    count = count_length(arithmetic)
    if count is None:
        return None
    return longest(lambda n: n <= count and mean_error(n, F(1), arithmetic) < 1 / 8)


# 5.2: the first position

_PARITY = Feature.of("(-1)^i")
_ONE = Feature.of("1")
_VALUE = Values("v", Reals(1))


def mark_first(stream: Stream, weighting: str) -> Layer:
    """Return a layer that sets `first` to 1 at position 1 and to 0 elsewhere.

    Its head writes the mean of −(−1)^j up to i to `odd share`.
    """
    # That mean is 1/i for odd i and 0 for even i: 1 at i = 1, at most 1/3 beyond. The step is 0 up
    # to ½ and 1 from 1 on. Where a mean is off by less than 1/8 (`mean_length`), 1/3 + 1/8 < ½; the
    # mean of one number is exact.
    share = attend(stream, [{"(-1)^i": -1}], ["odd share"], weighting=weighting, mask="future")
    step = greater_than_zero.build(epsilon=F(1, 2))
    return Layer((share,), route(step, stream, ["odd share"], ["first"], shift=F(-1, 2)))


@recipe(
    "first",
    section="5.2",
    claim=SequenceClaim(
        statement="yᵢ = [i = 1]",
        reference=lambda *, n: [[int(i == 1)] for i in range(1, n + 1)],
        domain=lambda: Sequences((_PARITY,)),
        safe_length=lambda *, arithmetic: mean_length(arithmetic),
        why_safe="a mean of ±1 is within 1/8 of its value (bounds.mean_length), the step at ½",
        weightings=("softmax", "average-hard"),
        mask="future",
        variants=({"weighting": "average-hard"},),
    ),
    sources=("unique-hard attention has no uniform mean, and cannot take this part",),
    errata=("first-weighting", "first-output-sign"),
)
def first(weighting: str = "softmax") -> LayerStack:
    """The mean of −(−1)^j up to i, then a step from ½ to 1."""
    stream = Stream(("(-1)^i", "odd share", "first"))
    return LayerStack(stream, ("(-1)^i",), (mark_first(stream, weighting),), ("first",))


@recipe(
    "first-value",
    section="5.2",
    claim=SequenceClaim(
        statement="yᵢ = v₁",
        reference=lambda *, v, n: [list(v[0])] * n,
        domain=lambda: Sequences((_ONE, _PARITY, _VALUE)),
        safe_length=lambda *, arithmetic: mean_length(arithmetic),
        why_safe="as first; the score is then 1 at position 1 and 0 elsewhere",
        weightings=HARD,
        mask="future",
        gap=lambda: (F(1), 1),
        gap_statement="1",
        variants=each("weighting", HARD),
    ),
    errata=("first-weighting", "first-retrieval"),
)
def first_value(weighting: str = "average-hard") -> LayerStack:
    """Mark the first position, then attend to the mark."""
    stream = Stream(("1", "(-1)^i", "v", "odd share", "first", "first value"))
    fetch = attend(stream, ["v"], ["first value"], ["1"], ["first"], weighting, mask="future")
    layers = (mark_first(stream, "average-hard"), Layer((fetch,)))
    return LayerStack(stream, ("1", "(-1)^i", "v"), layers, ("first value",))


# 5.4: the predecessor


def _shifted(by: int) -> Any:
    """Return the reference that shifts values `by` positions to the right, with 0 where none is."""

    def reference(*, v: list[tuple[F, ...]], n: int) -> list[list[F]]:
        return [list(v[i - by]) if 0 <= i - by < n else [F(0)] for i in range(n)]

    return reference


def _predecessor_or(*, v: list[tuple[F, ...]], default: F) -> list[list[F]]:
    """Return the default, then every value but the last."""
    return [[default], *map(list, v[:-1])]


def _in_interval(*columns: Feature) -> Any:
    return lambda *, lo, hi: Sequences((*columns, Values("v", Reals(1, F(lo), F(hi)))))


def _interval_error(*, lo: F, hi: F, default: F, arithmetic: Arithmetic) -> F:
    """Return the error of choosing by a network: 0 for lo = 0 and default 0."""
    if not isinstance(arithmetic, Floating):
        return F(0)
    # The default is a weight, which is rounded once, times a mark that is exactly 0 or 1. For
    # lo = 0 what is added to it is exactly 0; else it is the error below, and the sum rounds too.
    own = rounded_once(arithmetic, default) if default else F(0)
    if lo == 0:
        return own
    # Numbers stay below 4 S, S = 1 + hi − lo + |lo|, and at most 8 of them round, each by u of
    # itself: two weights and three sums in the first layer, a weight and two sums after it.
    choice = 32 * arithmetic.unit_roundoff * (1 + hi - lo + abs(lo)) + 8 * F(arithmetic.smallest)
    return choice + 3 * own


def _within(
    arithmetic: Arithmetic, lo: F, hi: F, default: F, length: Callable[[Arithmetic], int | None]
) -> int | None:
    """Return a safe length, 0 where the format may not hold the weights and their sums."""
    most = max(2 * (hi - lo) + abs(lo) + 1, abs(default))
    if isinstance(arithmetic, Floating) and most > arithmetic.largest:
        return 0
    return length(arithmetic)


_INTERVAL: dict[str, Any] = {
    "error": _interval_error,
    "error_statement": "exact for lo = 0, but for the rounding of the default; elsewhere in floats "
    "within 32 u (1 + hi − lo + |lo|), and 3 u of the default",
    "variants": (
        {"lo": -3, "hi": "1/3"},
        {"lo": "1/7", "hi": 2, "default": "-7/3"},
        {"default": "1/3"},
    ),
}


def _with_default(choice: FeedForward, stream: Stream, default: F) -> FeedForward:
    """Return the network with the default added to `predecessor` where `first` is 1."""
    if default == 0:
        return choice
    return beside(choice, units(stream, ({"first": 1}, 0, {"predecessor": default})))


@recipe(
    "predecessor",
    section="5.4",
    claim=SequenceClaim(
        statement="yᵢ = vᵢ₋₁, y₁ = the default, 0 if left out, for values in [lo, hi]",
        reference=_predecessor_or,
        domain=_in_interval(_ONE, _PARITY),
        safe_length=lambda *, arithmetic, lo, hi, default: _within(
            arithmetic, lo, hi, default, mean_length
        ),
        why_safe="scores are 1 and −1; position 1 is marked as by first",
        weightings=("rightmost-hard",),
        mask="future",
        gap=lambda: (F(2), 1),
        gap_statement="2",
        **_INTERVAL,
    ),
    sources=("position 1 is masked: as printed, it gets v₁",),
    errata=("predecessor-first", "predecessor-average-hard"),
)
def predecessor(
    lo: F = F(0), hi: F = F(1), default: F = F(0), weighting: str = "rightmost-hard"
) -> LayerStack:
    """The last even and the last odd position up to i; that of the other parity is i − 1."""
    require_interval(lo, hi, "predecessor")
    stream = Stream(
        ("1", "(-1)^i", "v", "odd share", "first", "last even", "last odd", "predecessor")
    )
    even = attend(stream, ["v"], ["last even"], ["1"], ["(-1)^i"], weighting, mask="future")
    odd = attend(stream, ["v"], ["last odd"], ["1"], [{"(-1)^i": -1}], weighting, mask="future")
    marked = mark_first(stream, "average-hard")
    # The first unit has a value − lo at odd i, where (−1)^i takes back `half`. At even i it reads
    # at most hi − lo − 2 half ≤ 0, as half ≥ (hi − lo)/2; at position 1, hi − lo less. The second
    # unit does so for the other parity, and the third adds lo but at position 1.
    half = 1 / power_of_two_at_most(2 / max(hi - lo, F(1)))
    choice = FeedForward(
        W_1=stream.reading(
            {"1": -half - lo, "(-1)^i": -half, "first": lo - hi, "last even": 1},
            {"1": -half - lo, "(-1)^i": half, "first": lo - hi, "last odd": 1},
            {"1": 1, "first": -1},
        ),
        W_2=stream.writing({"predecessor": 1}, {"predecessor": 1}, {"predecessor": lo}),
    )
    chosen = _with_default(choice, stream, default)
    layers = (Layer((*marked.heads, even, odd), marked.feed_forward), Layer((), chosen))
    return LayerStack(stream, ("1", "(-1)^i", "v"), layers, ("predecessor",))


_PLACE = Feature.of("i/n")

_BY_PLACE: dict[str, Any] = {
    "domain": lambda: Sequences((_PLACE, _VALUE)),
    "safe_length": lambda *, arithmetic: fraction_length(arithmetic),
    "why_safe": "bounds.fraction_length",
    "weightings": HARD,
    "variants": each("weighting", HARD),
    "depends_on": ("n",),
}


@recipe(
    "predecessor-strict",
    section="5.4",
    claim=SequenceClaim(
        statement="yᵢ = vᵢ₋₁, y₁ = 0",
        reference=_shifted(1),
        mask="strict-future",
        gap=lambda *, n: (F(3, n * n), 1),
        gap_statement="3/n² (at i = 3; row i has i/n²)",
        **_BY_PLACE,
    ),
    errata=("strict-mask-first-row", "masked-scores-zero"),
)
def predecessor_strict(weighting: str = "average-hard") -> Attention:
    """The score (i/n)(j/n) is largest at j = i − 1; row 1 has nothing to attend to."""
    # Neighbouring j differ by i/n². The first row with two keys is i = 3.
    return Attention(
        W_Q=[[1, 0]], W_K=[[1, 0]], W_V=[[0, 1]], weighting=weighting, mask="strict-future"
    )


@recipe(
    "predecessor-quadratic",
    section="5.4",
    claim=SequenceClaim(
        statement="yᵢ = vᵢ₋₁, y₁ = the default, 0 if left out, for values in [lo, hi]",
        reference=_predecessor_or,
        domain=_in_interval(_ONE, Feature.of("i"), Feature.of("i^2"), _PARITY),
        safe_length=lambda *, arithmetic, lo, hi, default: _within(
            arithmetic, lo, hi, default, quadratic_length
        ),
        why_safe="bounds.quadratic_length; position 1 is marked as by first",
        weightings=HARD,
        mask="none, and future for the mark",
        gap=lambda: (F(1), 2),
        gap_statement="1/√2",
        **{
            **_INTERVAL,
            "variants": (*_INTERVAL["variants"], *each("weighting", HARD)),
        },
    ),
    sources=("position 1 is masked: the scores alone give it v₁",),
    errata=("quadratic-gap",),
)
def predecessor_quadratic(
    lo: F = F(0), hi: F = F(1), default: F = F(0), weighting: str = "average-hard"
) -> LayerStack:
    """The score 2 (i − 1) j − j² is largest at j = i − 1."""
    # It is (i − 1)² − (j − i + 1)². For i = 1 there is no j = 0: `first` clears what is looked up.
    require_interval(lo, hi, "predecessor-quadratic")
    inputs = ("1", "i", "i^2", "(-1)^i", "v")
    stream = Stream((*inputs, "odd share", "first", "looked up", "predecessor"))
    look = attend(
        stream,
        ["v"],
        ["looked up"],
        query=[{"i": 1, "1": -1}, "1"],
        key=[{"i": 2}, {"i^2": -1}],
        weighting=weighting,
    )
    marked = mark_first(stream, "average-hard")
    choice = FeedForward(
        W_1=stream.reading({"1": -lo, "first": lo - hi, "looked up": 1}, {"1": 1, "first": -1}),
        W_2=stream.writing({"predecessor": 1}, {"predecessor": lo}),
    )
    chosen = _with_default(choice, stream, default)
    layers = (Layer((*marked.heads, look), marked.feed_forward), Layer((), chosen))
    return LayerStack(stream, inputs, layers, ("predecessor",))


@recipe(
    "successor-strict",
    section="5.4",
    claim=SequenceClaim(
        statement="yᵢ = vᵢ₊₁, yₙ = 0",
        reference=_shifted(-1),
        mask="strict-past",
        gap=lambda *, n: (F(1, n * n), 1),
        gap_statement="1/n² (at i = 1; row i has i/n²)",
        **_BY_PLACE,
    ),
    errata=("strict-mask-first-row", "masked-scores-zero"),
)
def successor_strict(weighting: str = "average-hard") -> Attention:
    """The score −(i/n)(j/n) is largest at j = i + 1; row n has nothing to attend to."""
    return Attention(
        W_Q=[[1, 0]], W_K=[[-1, 0]], W_V=[[0, 1]], weighting=weighting, mask="strict-past"
    )


def _nearest(step: int) -> Any:
    """The value at the nearest active position in steps, else at the adjacent one, else 0."""

    def reference(*, a: list[Any], v: list[Any], n: int) -> list[list[F]]:
        values = []
        for i in range(n):
            beside_it = range(i + step, n if step > 0 else -1, step)
            nearest = next((j for j in beside_it if a[j] == (1,)), None)
            if nearest is None and beside_it:
                nearest = i + step
            values.append([F(0)] if nearest is None else list(v[nearest]))
        return values

    return reference


_NEAREST: dict[str, Any] = {
    "domain": lambda: Sequences((_ONE, _PLACE, Values("a", Bits(1)), _VALUE)),
    "safe_length": lambda *, arithmetic: nearest_active_length(arithmetic),
    "why_safe": "bounds.nearest_active_length",
    "weightings": HARD,
    "gap": lambda *, n: (F(1, n), 1),
    "gap_statement": "1/n between active positions; 2/n between active and inactive ones",
    "variants": each("weighting", HARD),
    "depends_on": ("n",),
}


@recipe(
    "nearest-left",
    section="9.2.2",
    claim=SequenceClaim(
        statement="yᵢ = vⱼ, j < i the nearest with aⱼ = 1; where none is, j = i − 1; y₁ = 0",
        reference=_nearest(-1),
        mask="strict-future",
        **_NEAREST,
    ),
    errata=("strict-mask-first-row", "constant-query"),
)
def nearest_left(weighting: str = "average-hard") -> Attention:
    """The score aⱼ + j/n."""
    # Active positions score above 1, inactive ones below it in the strict prefix; among equals the
    # nearest, with the largest j, scores most.
    return Attention(
        W_Q=[[1, 0, 0, 0]],
        W_K=[[0, 1, 1, 0]],
        W_V=[[0, 0, 0, 1]],
        weighting=weighting,
        mask="strict-future",
    )


@recipe(
    "nearest-right",
    section="9.2.2",
    claim=SequenceClaim(
        statement="yᵢ = vⱼ, j > i the nearest with aⱼ = 1; where none is, j = i + 1; yₙ = 0",
        reference=_nearest(1),
        mask="strict-past",
        **_NEAREST,
    ),
    errata=("strict-mask-first-row", "constant-query", "past-mask-sign"),
)
def nearest_right(weighting: str = "average-hard") -> Attention:
    """The score aⱼ − j/n."""
    # Active positions score at least 0, inactive ones below it; among equals the nearest, with the
    # least j, scores most.
    return Attention(
        W_Q=[[1, 0, 0, 0]],
        W_K=[[0, -1, 1, 0]],
        W_V=[[0, 0, 0, 1]],
        weighting=weighting,
        mask="strict-past",
    )


RECIPES = (
    attend_nothing,
    mean,
    prefix_mean,
    first,
    first_value,
    predecessor,
    predecessor_strict,
    predecessor_quadratic,
    successor_strict,
    nearest_left,
    nearest_right,
)
"""Recipes of the chapter, in the order in which they are listed."""
