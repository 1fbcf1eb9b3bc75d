"""Masks in an encoder: `any` and the first match, from the first match of all positions.

Let p be the position of the first match among all positions. If p ≤ i, p is also the first match up
to i; if p > i, there is no match up to i. In the same way, the last match among all positions gives
the last match from i on. A mean, a count, and the last match up to i cannot be found in this way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from transformist.compiler.rewriting.choices import value_or_default
from transformist.compiler.rewriting.rules import Rule, at_every_position
from transformist.language import Program
from transformist.language.across import Exists
from transformist.language.leaves import Constant, Position
from transformist.language.node import Node
from transformist.language.pointwise import Comparison, Linear, Table
from transformist.language.selection import Select, SelectByRelation
from transformist.language.types import Boolean
from transformist.model import Mask

TRUE = Constant((), Boolean, True)


@dataclass(frozen=True)
class Side:
    """The matches on one side of a position.

    Attributes:
        choose: the match of all positions that lies on the side if any match does.
        relation: the relation of p − i to 0 if the match at p lies on the side.

    """

    choose: str
    relation: str


SIDES: Mapping[Mask, Side] = {
    Mask.FUTURE: Side("leftmost", "<="),
    Mask.STRICT_FUTURE: Side("leftmost", "<"),
    Mask.PAST: Side("rightmost", ">="),
    Mask.STRICT_PAST: Side("rightmost", ">"),
}
"""The side that each mask leaves."""


def cut_off_by_places(program: Program, masks: Collection[Mask] = tuple(SIDES)) -> Program:
    """The program with mask none for these masks, where the first or last match of all suffices."""

    def among(rule: Rule) -> Rule:
        return lambda node: rule(node) if node.mask in masks else node

    rules: dict[type[Node], Rule] = {Exists: among(_exists)}
    rules |= dict.fromkeys((Select, SelectByRelation), among(_select))
    return at_every_position(program, rules)


def _exists(node: Exists) -> Node:
    side = SIDES[Mask(node.mask)]
    whole = Select((node.children[0], TRUE, TRUE), side.choose, Mask.NONE.value, False)
    return _is_on(side, whole)


def _select(node: Select) -> Node:
    if node.choose == "mean":
        return node
    side = SIDES[Mask(node.mask)]
    keys, queries, values = node.children
    # Under a constant value it does not matter which match is chosen.
    if node.choose != side.choose and not isinstance(values, Constant):
        return node
    whole = replace(node, choose=side.choose, mask=Mask.NONE.value)
    is_of_all = type(node) is Select and keys == queries == TRUE
    if is_of_all and side.relation in ("<=", ">="):
        return whole  # position 1 is up to every i, and n is from every i on
    # By the argument at the top, the value at p is right if p ≤ i, and the default if p > i. The
    # argument is about one query at a time, so queries may depend on i.
    found = _is_on(side, whole)
    return value_or_default(found, whole, node.default)


def _is_on(side: Side, whole: Select) -> Node:
    """True if the match of all positions lies on the side, by its position (0 if there is none)."""
    i = Position((), "i")
    place = replace(whole, children=(*whole.children[:2], i), default=0)
    there = Comparison((Linear((place, i), (1, -1), 0),), side.relation)
    if side.choose == "rightmost":
        return there  # without a match the position is 0, before every i
    return Table((Comparison((place,), ">"), there), (False, False, False, True), Boolean())
