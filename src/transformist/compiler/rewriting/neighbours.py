"""Neighbours as lookups by number: a lookup has the same single peak under every mask."""

from __future__ import annotations

from transformist.compiler.rewriting.rules import at_every_position
from transformist.language import Program
from transformist.language.across import Lookup, Shift
from transformist.language.leaves import Position
from transformist.language.node import Node
from transformist.language.pointwise import Linear


def neighbours_by_number(program: Program) -> Program:
    """The program with neighbours as lookups of i − k, where k is negative for successors."""
    return at_every_position(program, {Shift: _by_number})


def _by_number(node: Shift) -> Node:
    return at_distance(node.children[0], node.k, node.default)


def at_distance(values: Node, k: int, default: object) -> Lookup:
    """The lookup of the position i − k; the default if i − k is not one of 1 to n."""
    index = Linear((Position((), "i"),), (1,), -k)
    return Lookup((values, index), default)
