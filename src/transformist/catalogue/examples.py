"""Worked examples: chapter 9 of the Cookbook."""

from __future__ import annotations

import random

from transformist.assembly import beside, route, uniform
from transformist.bounds import step_zone
from transformist.catalogue.feed_forward import MAXIMUM, cpwl, greater_than_zero
from transformist.claims import Finding, StringClaim, recipe
from transformist.domains import Strings
from transformist.model import BOS, Binary, Embedding, Layer, NearZero, Stream, Trace, Transformer


def _is_balanced(x: str) -> bool:
    """Dyck-1 by definition: no prefix closes more than it opens, and the whole closes all."""
    depth = 0
    for symbol in x:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _hard_strings(n: int) -> list[str]:
    """Strings of about length n that are balanced, or fail to be at a single place."""
    half, third = n // 2, n // 6
    walk = random.Random(n)
    drawn = walk.sample("(" * half + ")" * half, 2 * half)
    depth = lowest = where = 0
    for position, symbol in enumerate(drawn, start=1):
        depth += 1 if symbol == "(" else -1
        if depth < lowest:
            lowest, where = depth, position
    rotated = "".join(drawn[where:] + drawn[:where])
    strings = ["(" * n, ")" * n, ")(" * half, ")" * half + "(" * half]
    for x in ("((()))" * third, "(" * half + ")" * half, "()" * half, rotated):
        middle, inner = len(x) // 2, x[: max(len(x) - 2, 0)]
        strings += [x, f"{x}(", f"{x})", f"({x}", f"){x}"]  # one bracket too many
        strings += [x[1:], x[:-1], x[:middle] + x[middle + 1 :]]  # one too few
        strings += [f"){x[1:]}", f"{x[:-1]}(", f"){x[:-1]}", f"{x[1:]}("]  # one turned or moved
        strings += [f")({inner}", f"{inner})(", f"{x[:middle]})({x[middle:]}"]  # one dip below zero
    return [x for x in dict.fromkeys(strings) if len(x) <= n]


def _unmatched(trace: Trace) -> Finding:
    """The first bracket of the input that stays unmatched, found by matching, in no format."""
    opened: list[int] = []
    for position, symbol in enumerate(trace.input, start=1):
        if symbol == "(":
            opened.append(position)
        elif opened:
            opened.pop()
        else:
            return Finding(sentence="a ) closes a bracket that was never opened", position=position)
    if opened:
        sentence = f"a ( is never closed ({len(opened)} in all)"
        return Finding(sentence=sentence, position=opened[0])
    return Finding(sentence="every bracket is matched")


_PARENTHESES = Strings(alphabet=("(", ")"), hard=_hard_strings)
_WORDS = {"(": {"sign": 1}, ")": {"sign": -1}, BOS: {"sign": 0}}


@recipe(
    "dyck-1-uniform",
    section="9.2.1",
    claim=StringClaim(
        statement="x is in Dyck-1, for every length, by a check outside the weights",
        reference=_is_balanced,
        domain=_PARENTHESES,
        safe_lengths={
            "exact": None,
            "float64": 250_000,
            "float32": 300,
            "float16": 2047,
            "bfloat16": 32_767,
        },
        why_safe="a balance that is 0 is computed within u n/4 of 0, and exactly in the formats "
        "that accumulate in float32; the check parts 0 from 1/(n + 1)² half-way",
    ),
    sources=("Bhattamishra et al. 2020",),
    explain=_unmatched,
)
def dyck_1_uniform() -> Transformer:
    """Prefix means of ±1, then of the parts below zero; both are 0 at the end of a Dyck word."""
    stream = Stream(("sign", "balance", "shortfall", "shortfalls"))
    below_zero = cpwl.build(knots=[-1, 0, 1], values=[0, 0, 1])
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, _WORDS, front=[BOS]),
        layers=(
            Layer(
                heads=(uniform(stream, read="sign", write="balance", mask="future"),),
                feed_forward=route(below_zero, stream, read=[{"balance": -1}], write=["shortfall"]),
            ),
            Layer(heads=(uniform(stream, read="shortfall", write="shortfalls", mask="future"),)),
        ),
        read_out=NearZero(W_out=stream.reading("balance", "shortfalls"), powers=(1, 2)),
    )


@recipe(
    "dyck-1",
    section="9.2.1",
    claim=StringClaim(
        statement="x is in Dyck-1, for n ≤ N, as a slot that is 0 or 1",
        reference=_is_balanced,
        domain=_PARENTHESES,
        safe_lengths={
            "exact": None,
            "float64": 2**26 - 1,
            "float32": 2047,
            "float16": 511,
            "bfloat16": 63,
        },
        why_safe="with s ≤ 1/(N + 1) a power of two, a balance that is 0 is computed within u n/4 "
        "< s/4 of 0, and exactly in the formats that accumulate in float32; a word that ends in "
        "balance after a violation has passed −1, where the step counts at least 1 − u/s ≥ 3/4",
        depends_on=("N",),
    ),
    sources=("Bhattamishra et al. 2020",),
    explain=_unmatched,
)
def dyck_1(max_length: int = 1024) -> Transformer:
    """Means are 0 or at least s in magnitude; steps that are 0 to s/4 and 1 from 3s/4 part them.

    The first layer marks each prefix that closes more than it opens. The mark is exactly 0 within
    the dead zone, so that the rounding of many balances cannot add up in the second mean.
    """
    s = step_zone(max_length)
    step = greater_than_zero.build(epsilon=s / 2)
    stream = Stream(("sign", "balance", "imbalance", "violation", "violations", "accept"))
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, _WORDS, front=[BOS]),
        layers=(
            Layer(
                heads=(uniform(stream, read="sign", write="balance", mask="future"),),
                feed_forward=beside(
                    route(step, stream, [{"balance": -1}], ["violation"], shift=-s / 4),
                    route(MAXIMUM, stream, ["balance", {"balance": -1}], ["imbalance"]),
                ),
            ),
            Layer(
                heads=(uniform(stream, read="violation", write="violations", mask="future"),),
                feed_forward=route(
                    step, stream, [{"violations": -1, "imbalance": -1}], ["accept"], shift=3 * s / 4
                ),
            ),
        ),
        read_out=Binary(W_out=stream.reading("accept"), b_out=["-1/2"]),
        max_length=max_length,
    )


RECIPES = (dyck_1_uniform, dyck_1)
"""In the paper's order."""
