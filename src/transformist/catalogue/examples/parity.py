"""PARITY and counting modulo m (section 3.5.2 of the Cookbook)."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

from transformist.arithmetic import Arithmetic
from transformist.assembly import attend
from transformist.catalogue.positions import on_the_circle
from transformist.claims import StringClaim, recipe
from transformist.domains import Strings
from transformist.model import (
    BOS,
    EOS,
    Binary,
    Embedding,
    Layer,
    MultiClass,
    PositionTable,
    Stream,
    Transformer,
)
from transformist.rounding import float_format_of
from transformist.rounding.float_format import storing_roundoff


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


def _few_hard_strings(n: int) -> list[str]:
    """Return strings of length n with few or many ones, in any order, one for each count."""
    walk = random.Random(n)
    counts = sorted({*range(min(n, 3) + 1), *range(max(n - 12, 0), n + 1)})
    return ["".join(walk.sample("1" * count + "0" * (n - count), n)) for count in counts]


TABLE = 1024
"""Longest N that count-modulo is claimed for: its positions stand in a table of N + 1 rows."""


def _circle(i: int, period: int) -> tuple[Fraction, Fraction]:
    """Return cos and sin of 2πi/m, each rounded to the nearest multiple of 2⁻⁶⁴."""
    x, y = (Fraction(round(v * 2**64), 2**64) for v in on_the_circle(i, period))
    return x, y


def count_modulo_length(*, period: int, arithmetic: Arithmetic | str) -> int | None:
    """Return the longest n up to which count-modulo finds its residue; 0 where m is too large.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT16
        >>> count_modulo_length(period=3, arithmetic=FLOAT16)
        18
        >>> count_modulo_length(period=40, arithmetic=BFLOAT16)
        0

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # The point fetched is the table's own, as stored: one position has all the weight. The residue
    # r of the point and another one, at an angle θ ≥ 2π/m, have scores cos 0 = 1 and cos θ, which
    # are 2 sin²(θ/2) ≥ 8/m² apart. A score x c + y s has |x c| + |y s| ≤ 1, so that to first order
    # it is off by 2u (the point and the weights as stored), 3w (products and a sum; all other terms
    # are 0 exactly) and v (storing). Two scores: 4u + 6w + 2v. 1 + 64u is for higher orders, and
    # 2⁻⁶⁰ for the table, whose entries are within 2⁻⁶⁴ of the sinusoids.
    u, w = a.unit_roundoff, a.accumulator_roundoff
    moved = (1 + 64 * u) * (4 * u + 6 * w + 2 * storing_roundoff(a)) + Fraction(1, 2**60)
    if Fraction(8, period**2) <= moved:
        return 0
    return quadratic_count_length(a)


def _table_length(*, period: int, arithmetic: Arithmetic) -> int:
    """Return the safe length, cut to the positions of a table of moderate size."""
    safe = count_modulo_length(period=period, arithmetic=arithmetic)
    return TABLE if safe is None else min(safe, TABLE)


@recipe(
    "count-modulo",
    section="3.5.2",
    claim=StringClaim(
        statement="C mod m for the number C of 1s in x, n ≤ N; PARITY for m = 2",
        reference=lambda x, *, period: x.count("1") % period,
        domain=lambda: Strings(("0", "1"), _few_hard_strings),
        safe_length=_table_length,
        why_safe="C is looked up as in parity; residues are told apart by scores that differ by "
        "8/m² at least (bounds.count_modulo_length). The table of positions has at most 1,025 rows",
        weightings=("average-hard", "leftmost-hard", "rightmost-hard"),
        mask="none",
        features=("i", "i^2", "cos 2πi/m", "sin 2πi/m"),
        variants=({"period": 2, "weighting": "leftmost-hard"},),
        gap=lambda *, n: (Fraction(1, n + 1), 2),
        gap_statement="1/((n + 1) √2), between C and C ± 1",
        depends_on=("N",),
        size="width 10, 2 layers, no feed-forward network, whatever N",
    ),
    sources=(
        "printed in a sentence: sinusoids of period m, and a lookup",
        "the looked up point of the circle is read out by its scalar product with each residue's",
        "certificates are for models with BOS: this model has EOS instead, and so no certificate",
    ),
    errata=("sinusoid-coordinates", "sinusoid-parity", "quadratic-scaled-keys"),
)
def count_modulo(
    period: int = 3, max_length: int = 64, weighting: str = "average-hard"
) -> Transformer:
    """The share of ones, C/(n + 1); then the point of the circle at C, and its residue.

    Positions count from 0, and EOS is position n: so each count from 0 to n is a position. The
    first head counts and is average-hard whatever the weighting of the second.
    """
    stream = Stream(
        ("bit", "last", "index", "square", "cos", "sin", "count", "unit", "cos C", "sin C")
    )
    counted = attend(stream, ["bit", "last"], ["count", "unit"])
    # (C, 1)/(n + 1) · (2i, −i²) is largest at i = C (5.3.4).
    found = attend(
        stream,
        read=["cos", "sin"],
        write=["cos C", "sin C"],
        query=["count", "unit"],
        key=[{"index": 2}, {"square": -1}],
        weighting=weighting,
    )
    words: dict[Any, Any] = {"0": {}, "1": {"bit": 1}, EOS: {"last": 1}}
    points = [_circle(r, period) for r in range(period)]
    places = [
        {"index": i, "square": i * i, "cos": points[i % period][0], "sin": points[i % period][1]}
        for i in range(max_length + 1)
    ]
    return Transformer(
        stream=stream,
        embedding=Embedding(
            symbols=tuple(words),
            vectors=stream.reading(*words.values()),
            positions=PositionTable(vectors=stream.reading(*places)),
            back=(EOS,),
        ),
        layers=(Layer((counted,)), Layer((found,))),
        read_out=MultiClass(
            labels=tuple(range(period)),
            W_out=stream.reading(*({"cos C": x, "sin C": y} for x, y in points)),
        ),
        max_length=max_length,
    )


RECIPES = (parity, count_modulo)
"""Recipes of the chapter, in the order in which they are listed."""
