"""Constructions from constructions: section 8 of the Cookbook, each on an example."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from itertools import accumulate
from typing import Any

from transformist.arithmetic import Arithmetic
from transformist.assembly import attend, between, parallel, serial
from transformist.catalogue.attention import HARD, each
from transformist.catalogue.examples.dyck import dyck_1, dyck_1_2
from transformist.catalogue.feed_forward import MAXIMUM
from transformist.catalogue.safe_lengths import fraction_length
from transformist.claims import FunctionClaim, SequenceClaim, StringClaim, ask, recipe
from transformist.domains import Feature, Reals, Sequences, Values
from transformist.errors import ShapeMismatch
from transformist.model import (
    Binary,
    FeedForward,
    Layer,
    LayerStack,
    Stream,
    Transformer,
)


def _routed(*x: F, left: Any, right: Any) -> list[F]:
    """Return L max(R x), without a network."""
    u, v = (sum((a * b for a, b in zip(row, x, strict=True)), F(0)) for row in right)
    return [row[0] * max(u, v) for row in left]


@recipe(
    "route",
    section="8.2",
    claim=FunctionClaim(
        statement="y = L f(R x) for linear L and R, here with f = max of two numbers",
        reference=_routed,
        domain=lambda *, right: Reals(len(right[0])),
        variants=({"left": [["1/3"]], "right": [[1, 0, 0], [0, "-0.1", 7]]},),
    ),
    sources=("assembly.between for networks and heads, assembly.route on a stream",),
)
def routed(left: Any = ((2,), (-1,)), right: Any = ((1, 2, 0), (0, 1, -1))) -> FeedForward:
    """Lemma 8.1: W₁ R and L W₂, no further hidden units."""
    if len(right) != 2 or len(left[0]) != 1:
        raise ShapeMismatch(
            "R must have 2 rows and L must have 1 column: max reads 2 numbers and gives 1",
            received=f"{len(right)} rows and {len(left[0])} columns",
            where="route",
            remedy="give right with two rows, and left with rows of one number",
        )
    return between(MAXIMUM, right, left)


def _back(*, v: list[tuple[F, ...]], n: int, times: int) -> list[list[F]]:
    """Return the value `times` positions to the left, 0 where there is none."""
    return [list(v[i - times]) if i >= times else [F(0)] for i in range(n)]


@recipe(
    "serial",
    section="8.3",
    claim=SequenceClaim(
        statement="g after f, here with predecessor-strict, t times: yᵢ = vᵢ₋ₜ, 0 for i ≤ t",
        reference=_back,
        domain=lambda: Sequences((Feature.of("i/n"), Values("v", Reals(1)))),
        safe_length=lambda *, arithmetic: fraction_length(arithmetic),
        why_safe="bounds.fraction_length",
        weightings=HARD,
        mask="strict-future",
        gap=lambda *, n: (F(3, n * n), 1),
        gap_statement="3/n², as of predecessor-strict",
        variants=(*each("weighting", HARD), {"times": 1}, {"times": 5}),
        depends_on=("n",),
        size="t layers, width t + 2",
    ),
)
def in_series(times: int = 2, weighting: str = "average-hard") -> LayerStack:
    """Lemma 8.2: one stack after the other, which reads the outputs of the first."""
    stream = Stream(("i/n", "v", "previous"))
    head = attend(stream, ["v"], ["previous"], ["i/n"], ["i/n"], weighting, mask="strict-future")
    once = LayerStack(stream, ("i/n", "v"), (Layer((head,)),), ("i/n", "previous"))
    stack = once
    for _ in range(times - 1):
        stack = serial(stack, once)
    return replace(stack, outputs=stack.outputs[1:])


def _is_deep(x: str) -> bool:
    """True for a balanced string that has at least 3 brackets open somewhere."""
    depths = list(accumulate(1 if symbol == "(" else -1 for symbol in x))
    return bool(depths) and min(depths) >= 0 and depths[-1] == 0 and max(depths) > 2


def _shorter(*, arithmetic: Arithmetic) -> int | None:
    both = dyck_1, dyck_1_2
    lengths = [
        ask(each.claim.safe_length, arithmetic=arithmetic, **each.settings({})) for each in both
    ]
    return min((length for length in lengths if length is not None), default=None)


@recipe(
    "parallel",
    section="8.3",
    claim=StringClaim(
        statement="two transformers on one stream, here dyck-1 and dyck-1-2: x is in Dyck-1 but "
        "nests deeper than 2, for n ≤ N",
        reference=_is_deep,
        domain=lambda: ask(dyck_1.claim.domain),
        safe_length=_shorter,
        why_safe="the smaller of the safe lengths of dyck-1 and dyck-1-2",
        weightings=("softmax", "average-hard"),
        mask="as of the two",
        features=("i/n",),
        gap=lambda *, n: (F(1, n), 1),
        gap_statement="1/n, of dyck-1-2; all scores of dyck-1 are equal",
        depends_on=("n", "N"),
        size="the widths of both, the layers of the deeper one",
    ),
)
def in_parallel(max_length: int = 1024) -> Transformer:
    """Lemma 8.3: slots side by side, layers merged, the shorter padded; both bits are read."""
    # dyck-1 accepts with 1, else 0; dyck-1-2 leaves 1 where a bracket stays active, else 0. Both
    # are 1 for the words sought: their sum is 2 there and at most 1 elsewhere, with 3/2 between.
    both = parallel(dyck_1.build(max_length=max_length), dyck_1_2.build())
    verdicts = {"first accept": 1, "second remaining": 1}
    return replace(both, read_out=Binary(W_out=both.stream.reading(verdicts), b_out=[F(-3, 2)]))


RECIPES = (routed, in_series, in_parallel)
"""Recipes of the chapter, in the order in which they are listed."""
