"""Study exact-uniform: the bits that weights without any length can give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import transformist as tf
from transformist.studies import dyck_strings
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of

ALL, EXACT_TO = 8, 64  # every string to 8; rationals to 64, where bits are exact
LENGTHS = ALL, 16, 64, 256, 1024  # a quick run has the first three
LEAST, MOST, APART, SWAP = "least, members", "largest, others", "separation", "effect of a swap"
RECIPE = tf.recipe("dyck-1-exact-uniform")
SLOTS = "sign", "front", "balance", "share", "violation", "violations", "size", "accept"


def _weights(**weights: Any) -> list[Any]:
    return [weights.get(slot, 0) for slot in SLOTS]


def _column(slot: str, units: int = 1) -> list[list[int]]:
    return [[int(each == slot)] * units for each in SLOTS]


def _sign_of(**weights: Any) -> tf.LayerNorm:
    """Map a number y to (y, −y) and normalize it with ε = 0: (±1, ∓1), whatever its size."""
    row = _weights(**weights)
    return tf.LayerNorm(gain=[1, 1], W_N=[row, [-each for each in row]])


def _mean(read: str, write: str) -> tf.Attention:
    zeros, value = [_weights()], [_weights(**{read: 1})]
    return tf.Attention(W_Q=zeros, W_K=zeros, W_V=value, W_O=_column(write), mask="future")


def _by_norms() -> tf.Transformer:
    """Uniform heads, and norms that take the sign of a number which is never 0."""
    # With r rows so far, the balance is B/r and the share of BOS is 1/r. B is an integer, so that
    # −B − 1/2 is positive if B is negative, and negative else. At the end violations and sizes are
    # V/r and |B|/r, and 1/2 − V − |B| is positive if V and B are 0, and negative else.
    half, stream = 0.5, tf.Stream(SLOTS)
    positive = {slot: tf.FeedForward(W_1=[[1, 0]], W_2=_column(slot)) for slot in SLOTS}
    size = tf.FeedForward(W_1=[_weights(balance=1), _weights(balance=-1)], W_2=_column("size", 2))
    is_negative = _sign_of(balance=-1, share=-half)
    is_zero = _sign_of(violations=-1, size=-1, share=half)
    heads = _mean("sign", "balance"), _mean("front", "share")
    layers = (
        tf.Layer(heads, positive["violation"], pre_norms=(None, is_negative)),
        tf.Layer((_mean("violation", "violations"),), size),
        tf.Layer((), positive["accept"], pre_norms=(None, is_zero)),
    )
    words = {"(": {"sign": 1}, ")": {"sign": -1}, "BOS": {"front": 1}}
    embedding = tf.Embedding.of(stream, words, front=["BOS"])
    read_out = tf.Binary(W_out=[_weights(accept=1)], b_out=["-1/2"])
    return tf.Transformer(stream=stream, embedding=embedding, layers=layers, read_out=read_out)


def _by_softmax(sharpness: int) -> tf.Transformer:
    """The recipe with softmax in its second layer, at a sharpness that no length changes."""
    model: tf.Transformer = RECIPE.build()
    first, second = model.layers
    softened = tuple(tf.soften(head, sharpness) for head in second.heads)
    return replace(model, layers=(first, replace(second, heads=softened)))


HARD, ZERO, FIXED = "leftmost-hard", "softmax and norms", "softmax, sharpness"
WAYS: Mapping[str, Callable[[], tf.Transformer]] = {
    HARD: RECIPE.build,
    ZERO: _by_norms,
    **{f"{FIXED} {each}": partial(_by_softmax, each) for each in (64, 4096)},
}


def _cases(is_quick: bool) -> Sequence[Row]:
    return [{"way": way, "n": n} for way in WAYS for n in LENGTHS[: 3 if is_quick else None]]


def _strings(n: int) -> Sequence[str]:
    if n <= ALL:
        return ["".join(each) for k in range(n + 1) for each in product("()", repeat=k)]
    k = n // 2 - 1  # two of the n symbols are in front or behind, in the right order or the wrong
    pairs, deep = "()" * k, "(" * k + ")" * k
    members = ["()" + pairs, "()" + deep, f"({deep})"]
    return [*members, ")(" + pairs, pairs + ")(", f"){deep}(", "((" + deep, deep + "))"]


def _rows(case: Row) -> Sequence[Row]:
    way, n = case["way"], case["n"]
    arithmetic = "float64" if way.startswith(FIXED) or n > EXACT_TO else "exact"
    # Heads at a fixed sharpness give no whole bit, so that the two bits of the recipe add up to
    # less than 1, from which on its slot `accept` differs from 0: their sum is read.
    slots = ("unviolated", "all closed") if way.startswith(FIXED) else ("accept",)
    model = WAYS[way]()
    traces = {x: model.run(x, arithmetic=arithmetic) for x in _strings(n)}
    values = {x: float(sum(traces[x][slot][-1] for slot in slots)) for x in traces}
    members = {x for x in values if dyck_strings.is_member(x)}
    least, most = min(values[x] for x in members), max(values[x] for x in values.keys() - members)
    swap = values["()" * (n // 2)] - values[")(" + "()" * (n // 2 - 1)]
    found = {LEAST: least, MOST: most, APART: least - most, SWAP: swap}
    return [{**case, "arithmetic": arithmetic, "strings": len(values), **found}]


def _is_as_claimed(row: Row) -> bool:
    """True for exact bits, or for softmax of a fixed sharpness that blurs its numbers."""
    if row["way"].startswith(FIXED):
        return bool(row[APART] < 0 < row[SWAP] < 3 / row["n"])
    return [row[each] for each in (LEAST, MOST, APART, SWAP)] == [1, 0, 1, 1]


EXACT_UNIFORM = Study(
    name="exact-uniform",
    question="By section 9.2.1 of the Cookbook, weights which depend on no length give no single 0 "
    "or 1 for Dyck-1. What can hard attention, softmax, and softmax with norms say exactly?",
    method="Models without a largest length compute a number: dyck-1-exact-uniform, whose second "
    "layer is leftmost-hard; the same with softmax there; and uniform heads with norms of ε = 0, "
    f"which take the sign of a number that is never 0. Every string up to n = {ALL}, and eight of "
    f"each longer n, are evaluated, in rationals up to n = {EXACT_TO} where bits are exact. The "
    "separation is the least number of a member less the largest of another string: no threshold "
    "tells them apart where it is negative. The swap exchanges the first two symbols of ()()….",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "Leftmost-hard heads, and uniform heads with norms, give 1 on every member and 0 on "
            "every other string.",
            lambda rows: all(map(_is_as_claimed, (r for r in rows if r["way"] in (HARD, ZERO)))),
        ),
        Claimed(
            "With softmax of a fixed sharpness no threshold separates members from the others, and "
            "the swap has an effect below 3/n.",
            lambda rows: all(map(_is_as_claimed, (r for r in rows if r["way"].startswith(FIXED)))),
        ),
    ),
    chart=lambda rows: Chart(
        x="n", y=APART, curves=curves_of(rows, ["way"], "n", APART), logarithmic="x"
    ),
    answer=lambda _: (
        "The statement does not hold in general.\n\n- Leftmost-hard attention gives 1 on every "
        "string of Dyck-1 tried, and 0 on every other.\n- So do uniform heads with norms of ε = 0, "
        "which make −1 or 1 of each number but 0. With ε > 0 this fails from a length on (study "
        "amplification).\n- Softmax of a fixed sharpness gives no bit: at every n some string "
        "outside of Dyck-1 has a larger number than some member. Equal scores share the weight, so "
        "a distant symbol moves the number by O(1/n), as Hahn (2020) proves without such norms."
    ),
)
