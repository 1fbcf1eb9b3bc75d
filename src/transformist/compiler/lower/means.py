"""Rules for numbers of positions: i and n, means, counts, any.

With BOS, a mean over D rows of which D − 1 are symbols is there times (D − 1)/D, and a count as
count/D. The number itself takes a head that leaves BOS out, or looks the count up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformist.circuit import SEES_BOS, At, Fetched, Form, Match, at_bos, total
from transformist.compiler.lower.builder import AS_IT_IS, Builder, Scale
from transformist.compiler.lower.rule import Asking, Rule, Scales
from transformist.language.across import Count, Exists, Mean
from transformist.language.leaves import Position
from transformist.language.node import Node


def _position(_ask: Asking, build: Builder, node: Position, scale: Scale) -> Form:
    """A feature; i/D and n/D are means of ones."""
    if scale != AS_IT_IS:
        return build.one_in(Scale("mean", scale.mask))
    return build.length(node) if node.name == "n" else build.feature(node.name, node)


def _position_scales(_ask: Asking, build: Builder, node: Position) -> Scales:
    """i is how many symbols there are up to here, n how many in all."""
    counted = {"i": "future", "n": "none"}
    if not build.circuit.bos or node.name not in counted:
        return (AS_IT_IS,)
    return AS_IT_IS, Scale("count", counted[node.name])


def _mean(ask: Asking, build: Builder, node: Mean, scale: Scale) -> Form:
    """A mean that BOS takes part in, as 0; or one that leaves it out."""
    name = build.name(node)
    value = build.quiet(ask.number(node.children[0]), name)
    if scale == build.mean_scale(node.mask):
        return build.mean(node, node.mask, value)
    build.require_means(node)
    build.require_sharpness(node)
    # The score is −1 for BOS and 0 for every symbol: all symbols are best, and BOS has no part.
    head = Match((at_bos(build.circuit),), (Form.of(-1),), "mean", node.mask)
    return build.add(Fetched(head, value), name)


def _mean_scales(_ask: Asking, build: Builder, node: Mean) -> Scales:
    return tuple(dict.fromkeys((build.mean_scale(node.mask), AS_IT_IS)))


_BY_LOOKUP: Mapping[str, tuple[Mapping[str, int], int]] = {
    "none": ({"none": 1}, 0),
    "future": ({"future": 1}, 0),
    "strict-future": ({"future": 1}, -1),
    "past": ({"none": 1, "future": -1}, 1),
    "strict-past": ({"none": 1, "future": -1}, 0),
}
"""For each mask: the factors of the counts that are looked up, and the factor of b at i itself.

The positions before i are those up to i without i. The positions after i are all positions without
those up to i. So two lookups suffice, under `none` and `future`, where every row sees BOS.
"""


def _count(ask: Asking, build: Builder, node: Count, scale: Scale) -> Form:
    """The mean count/D, or the count itself."""
    if scale != AS_IT_IS:
        return _share(ask, build, node, scale.mask)
    factors, own = _BY_LOOKUP[node.mask]
    name = build.name(node)
    parts = [
        build.add(Fetched(_at(ask, build, node, mask), build.feature("i", node)), name) * factor
        for mask, factor in factors.items()
    ]
    return total([*parts, ask.boolean(node.children[0]) * own] if own else parts)


def _share(ask: Asking, build: Builder, node: Count, mask: str) -> Form:
    """The share count/D, under a mask that sees BOS."""
    value = build.quiet(ask.boolean(node.children[0]), build.name(node))
    return build.mean(node, mask, value)


def at_count(ask: Asking, build: Builder, node: Count) -> At:
    """The head that finds the position whose number is a count under a mask that sees BOS."""
    return _at(ask, build, node, node.mask)


def _at(ask: Asking, build: Builder, node: Count, mask: str) -> At:
    """The head that finds the i with i/D = count/D, no later than the counted positions."""
    build.require_sharpness(node)
    scale = Scale("count", mask)
    own = mask == node.mask
    return At(
        ask.number(node, scale) if own else _share(ask, build, node, mask),
        build.feature("i", node),
        build.feature("i^2", node),
        "none" if mask == "none" else build.lookup_mask(),
        build.one_in(scale),
    )


def _count_scales(_ask: Asking, _build: Builder, node: Count) -> Scales:
    return (Scale("count", node.mask), AS_IT_IS) if node.mask in SEES_BOS else (AS_IT_IS,)


def _exists(ask: Asking, build: Builder, node: Exists) -> Form:
    """Hard attention looks for one; softmax takes the mean, and a step."""
    name = build.name(node)
    value = build.quiet(ask.boolean(node.children[0]), name)
    if value == Form():
        return value
    # The mean of the best rows is 1 if a row has the value 1, since only those rows are best then.
    # Under softmax this would leave stray weight; a mean of equal weights leaves none, and a step
    # reads it.
    if build.circuit.weighting != "softmax":
        head = Match((value,), (Form.of(1),), "any", node.mask)
        return build.add(Fetched(head, value), name)
    mean = build.mean(node, node.mask, value)
    return build.step(mean, build.zone(node, mean), name)


MEANS: Mapping[type[Node], Rule[Any]] = {
    Position: Rule(number=_position, scales=_position_scales),
    Mean: Rule(number=_mean, scales=_mean_scales),
    Count: Rule(number=_count, scales=_count_scales),
    Exists: Rule(boolean=_exists),
}
"""The rules of what speaks of many positions."""
