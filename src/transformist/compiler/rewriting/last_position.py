"""Mask future in place of none, or none in place of future, where only the last position is read.

The last position is n, and both masks leave it the positions 1 to n. There, n equals i, and a
lookup finds no later position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from transformist.compiler.rewriting.rules import Rule, at_the_last_position
from transformist.language import Program
from transformist.language.across import Count, Exists, Lookup, Mean
from transformist.language.leaves import Constant, Position
from transformist.language.node import Node
from transformist.language.selection import Select, SelectByRelation
from transformist.language.types import Number
from transformist.model import Mask

AT_N: Mapping[str, Node] = {
    "n": Position((), "i"),
    "i/n": Constant((), Number, 1),
    "-i/n": Constant((), Number, -1),
}
"""The value at position n of the position functions that depend on n."""


def causal_at_the_last(program: Program) -> Program:
    """The program with mask future in place of none where only the last position is read."""
    return at_the_last_position(program, {**_masked(Mask.NONE, Mask.FUTURE), Position: _at_n})


def whole_at_the_last(program: Program) -> Program:
    """The program with mask none in place of future where only the last position is read."""
    return at_the_last_position(program, _masked(Mask.FUTURE, Mask.NONE))


def _masked(old: Mask, new: Mask) -> dict[type[Node], Rule]:
    """The rules that replace one mask by another."""

    # The keys and values of these nodes are read at every position, so no rule changes them: they
    # are the same at the positions 1 to n.
    def rule(node: Any) -> Node:
        return replace(node, mask=str(new)) if node.mask == old else node  # type: ignore[no-any-return]

    return dict.fromkeys((Mean, Count, Exists, Select, SelectByRelation, Lookup), rule)


def _at_n(node: Position) -> Node:
    return AT_N.get(node.name, node)
