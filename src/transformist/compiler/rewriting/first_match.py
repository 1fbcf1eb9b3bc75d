"""Masks of an encoder's any and first match: what all positions have, compared with the place.

The first match of all positions is the first of those up to i where its place is at most i; where
its place is after i, there is none up to i. The last match of all is, likewise, the last of those
from i on. A mean, a count, and the last match up to i have no such form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from transformist.compiler.rewriting.choices import value_or_default
from transformist.compiler.rewriting.rules import at_every_position
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
        choose: the match of all positions that is on the side if any is.
        relation: of the match's place less i to 0, where it is on the side.

    """

    choose: str
    relation: str


SIDES: Mapping[str, Side] = {
    Mask.FUTURE: Side("leftmost", "<="),
    Mask.STRICT_FUTURE: Side("leftmost", "<"),
    Mask.PAST: Side("rightmost", ">="),
    Mask.STRICT_PAST: Side("rightmost", ">"),
}
"""The side that each mask leaves."""


def cut_off_by_places(program: Program) -> Program:
    """The program with mask none for the others, where the first or last match tells."""
    return at_every_position(program, {Exists: _exists, Select: _select, SelectByRelation: _select})


def _exists(node: Exists) -> Node:
    if node.mask == Mask.NONE:
        return node
    side = SIDES[node.mask]
    whole = Select((node.children[0], TRUE, TRUE), side.choose, Mask.NONE.value, False)
    return _is_on(side, whole)


def _select(node: Select) -> Node:
    if node.mask == Mask.NONE or node.choose == "mean":
        return node
    side = SIDES[node.mask]
    keys, queries, values = node.children
    # Which of several matches is chosen does not matter where they have one value.
    if node.choose != side.choose and not isinstance(values, Constant):
        return node
    whole = replace(node, choose=side.choose, mask=Mask.NONE.value)
    is_of_all = type(node) is Select and keys == queries == TRUE
    if is_of_all and side.relation in ("<=", ">="):
        return whole  # positions 1 and n are on either side of every position
    # Let p be the place of the first match of all. If p ≤ i, it is the first of those up to i, so
    # the value at p is right; if p > i, there is none up to i, so the default is. Queries may
    # depend on i: all matches compared are those of the one query at i.
    found = _is_on(side, whole)
    return value_or_default(found, whole, node.default)


def _is_on(side: Side, whole: Select) -> Node:
    """True if a match of all positions is on the side, by its place; that is 0 if there is none."""
    i = Position((), "i")
    place = replace(whole, children=(*whole.children[:2], i), default=0)
    there = Comparison((Linear((place, i), (1, -1), 0),), side.relation)
    if side.choose == "rightmost":
        return there  # 0 is neither at i nor after it
    return Table((Comparison((place,), ">"), there), (False, False, False, True), Boolean())
