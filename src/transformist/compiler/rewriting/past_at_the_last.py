"""Past masks where only the last position is read, replaced by the value at that position.

At the last position n, mask past leaves n alone, and strict-past leaves no position. Over n alone a
mean is the value at n, a count is 1 or 0, and a selection compares one key with one query.
"""

from __future__ import annotations

import itertools
from typing import Any

from transformist.compiler.rewriting.choices import value_or_default
from transformist.compiler.rewriting.rules import Rule, at_the_last_position
from transformist.language import Program
from transformist.language.across import Count, Exists, Mean
from transformist.language.leaves import Constant
from transformist.language.node import Node
from transformist.language.pointwise import (
    RELATIONS,
    Choice,
    Comparison,
    Linear,
    Table,
    rows_of,
)
from transformist.language.selection import Select, SelectByRelation
from transformist.language.types import Boolean, Number
from transformist.model import Mask

FALSE = Constant((), Boolean, False)


def past_at_the_last(program: Program) -> Program:
    """The program without past masks where only the last position is read."""
    kinds = (Mean, Count, Exists, Select, SelectByRelation)
    rules: dict[type[Node], Rule] = dict.fromkeys(kinds, _at_n)
    return at_the_last_position(program, rules)


def _at_n(node: Any) -> Node:
    if node.mask == Mask.STRICT_PAST:
        return _over_nothing(node)
    return _OVER_ITSELF[type(node)](node) if node.mask == Mask.PAST else node


def _over_nothing(node: Any) -> Node:
    """The value over no position; a category keeps its values, since tables have rows for them."""
    if isinstance(node, Select) and node.choose != "mean":
        return value_or_default(FALSE, node.children[2], node.default)
    return Constant((), type(node.type), node.over_nothing())


def _value(node: Mean | Exists) -> Node:
    return node.children[0]


def _one_or_0(node: Count) -> Node:
    one, zero = (Constant((), Number, value) for value in (1, 0))
    return Choice((node.children[0], one, zero))


def _if_equal(node: Select) -> Node:
    keys, queries, values = node.children
    return value_or_default(_equal(keys, queries), values, node.default)


def _if_related(node: SelectByRelation) -> Node:
    keys, queries, values = node.children
    return value_or_default(_related(keys, queries, node.relation), values, node.default)


def _equal(x: Node, y: Node) -> Node:
    return _related(x, y, "==")


def _related(x: Node, y: Node, relation: str) -> Node:
    """True where x stands in a relation to y; both are of one type."""
    if isinstance(x.type, Number):
        return Comparison((Linear((x, y), (1, -1), 0),), relation)
    rows_of(x.type, y.type)  # refuses a table of too many rows
    pairs = itertools.product(x.type.values or (), y.type.values or ())
    return Table((x, y), tuple(RELATIONS[relation](a, b) for a, b in pairs), Boolean())


_OVER_ITSELF: dict[type[Node], Rule] = {
    Mean: _value,
    Exists: _value,
    Count: _one_or_0,
    Select: _if_equal,
    SelectByRelation: _if_related,
}
"""The value of each kind of node over a single position."""
