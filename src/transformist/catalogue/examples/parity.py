"""PARITY by modulo counting (section 3.5.2 of the Cookbook)."""

from __future__ import annotations

import math
import random
from fractions import Fraction

from transformist.arithmetic import Arithmetic
from transformist.assembly import attend
from transformist.claims import StringClaim, recipe
from transformist.domains import Strings
from transformist.model import BOS, Binary, Embedding, Layer, Stream, Transformer
from transformist.rounding import float_format_of


def _is_odd(x: str) -> bool:
    """True if the number of ones in x is odd."""
    return sum(1 for symbol in x if symbol == "1") % 2 == 1


def _hard_strings(n: int) -> list[str]:
    """Return strings of length n and n − 1 with few or many ones, first, last or anywhere."""
    walk = random.Random(n)
    strings = []
    for length in {n, max(n - 1, 0)}:
        for count in sorted({*range(min(length, 3) + 1), *range(max(length - 40, 0), length + 1)}):
            x = "1" * count + "0" * (length - count)
            strings += [x, x[::-1], "".join(walk.sample(x, length))]
    return list(dict.fromkeys(strings))


def quadratic_count_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the longest n up to which a count C ≤ n is looked up as itself: n² (6u + 9w) ≤ 1.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> quadratic_count_length(FLOAT32)
        1057

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # In units of 1/(n + 1), scores 2Ci − i² are at most n² in magnitude; C and C ± 1 score 1 apart.
    # The share of ones is within (w C/2 + u) of itself, which moves the difference by 2C times
    # that; each score has two products and a sum, rounded in the accumulator (w: 2n² + n² + n²),
    # then is stored and divided by √2 (u: 2n²). The share moves one difference, n² (w + 2u); the
    # rounding of scores counts twice, n² (8w + 4u).
    return math.isqrt(int(1 / (6 * a.unit_roundoff + 9 * a.accumulator_roundoff)))


@recipe(
    "parity",
    section="3.5.2",
    claim=StringClaim(
        statement="the number of 1s in x is odd",
        reference=_is_odd,
        domain=lambda: Strings(("0", "1"), _hard_strings),
        safe_length=lambda *, arithmetic: quadratic_count_length(arithmetic),
        why_safe="the answer depends on n and the count C alone. In units of 1/(n + 1) the scores "
        "2Ci − i² part C from C ± 1 by 1, and all that is rounded moves them by less",
        weightings=("average-hard", "leftmost-hard", "rightmost-hard"),
        mask="future",
        features=("i", "i^2", "(-1)^i"),
        variants=({"weighting": "leftmost-hard"}, {"weighting": "rightmost-hard"}),
        gap=lambda *, n: (Fraction(1, n + 1), 2),
        gap_statement="1/((n + 1) √2), between C and C ± 1",
        size="width 8, 2 layers, no feed-forward network",
    ),
    sources=("Chiang & Cholak 2022",),
    errata=("sinusoid-parity", "quadratic-scaled-keys"),
)
def parity(weighting: str = "average-hard") -> Transformer:
    """The share of ones, C/(n + 1), and of BOS, 1/(n + 1); then (−1)^i at i = C.

    The query (C, 1)/(n + 1) and the keys (2i, −i²) are those of the quadratic maximisation (5.3.4),
    scaled by a positive number. BOS has i = 0, where a count of 0 is found. The first head counts
    and is average-hard whatever the weighting of the second. Every prefix gets its own answer; the
    last one is read.
    """
    # (−1)^i at i = C is −1 for odd counts and 1 for even ones, exactly: the read-out parts them at
    # 0.
    stream = Stream(("bit", "first", "count", "unit", "index", "square", "sign", "even"))
    counted = attend(stream, ["bit", "first"], ["count", "unit"], mask="future")
    found = attend(
        stream,
        read=["sign"],
        write=["even"],
        query=["count", "unit"],
        key=[{"index": 2}, {"square": -1}],
        weighting=weighting,
        mask="future",
    )
    return Transformer(
        stream=stream,
        embedding=Embedding.of(
            stream,
            {"0": {}, "1": {"bit": 1}, BOS: {"first": 1}},
            positions={"index": "i", "square": "i^2", "sign": "(-1)^i"},
            front=[BOS],
        ),
        layers=(
            Layer((counted,)),
            Layer((found,)),
        ),
        read_out=Binary(W_out=stream.reading({"even": -1})),
    )


RECIPES = (parity,)
"""Recipes of the chapter, in the order in which they are listed."""
