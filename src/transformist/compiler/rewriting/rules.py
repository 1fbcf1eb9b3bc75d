"""Rewritings: passes from a program to a program with the same answers.

A rewriting is given by rules, one for each kind of subexpression that it changes. Two facts decide
what a rule may do: a subexpression that is read at every position must keep its value at every
position; one that is read at the last position alone must keep it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from transformist.compiler.lower import POINTWISE, WHOLE
from transformist.errors import BrokenInvariant
from transformist.language import Accept, Program
from transformist.language.across import Lookup
from transformist.language.node import Entry, Node, different
from transformist.language.places import Place
from transformist.language.selection import Select, SelectByRelation
from transformist.language.types import Number

Rule: TypeAlias = "Callable[[Any], Node]"
"""From a subexpression to one with the same value wherever the first is read."""

Rewriting: TypeAlias = "Callable[[Program], Program]"
"""A pass from a program to one with the same answers."""

READ_HERE: Mapping[type[Node], tuple[int, ...]] = {
    Lookup: (1,),
    Select: (1,),
    SelectByRelation: (1,),
}
"""Children that are read only where the node itself is read: an index, queries.

The same holds for all children of nodes that are computed position by position (`POINTWISE`,
`WHOLE`). All other children, such as values and keys, are read at every position.
"""


def at_every_position(program: Program, rules: Mapping[type[Node], Rule]) -> Program:
    """The program, rewritten by rules that keep values at every position."""
    return _rewritten(program, lambda _: rules)


def at_the_last_position(program: Program, rules: Mapping[type[Node], Rule]) -> Program:
    """The program, rewritten where only the last position is read, by rules for that position."""
    entries, numbers = _numbered(program)
    last_only = read_at_the_last(
        list(entries), {*zip(numbers, _are_accepted(program), strict=False)}
    )
    return _rewritten(program, lambda number: rules if number in last_only else {})


def _are_accepted(program: Program) -> list[bool]:
    """For each output, true if the answer is its value at the last position."""
    return [isinstance(each, Accept) for _, each in program.output.parts]


def read_at_the_last(entries: list[Entry], roots: set[tuple[int, bool]]) -> frozenset[int]:
    """Numbers of the subexpressions that are read at the last position alone.

    Args:
        entries: the subexpressions, children before parents.
        roots: the numbers of those that the program returns, each with true if the answer is its
            value at the last position.

    """
    here = {number for number, is_accepted in roots if is_accepted}
    everywhere = {number for number, is_accepted in roots if not is_accepted}
    # From parents to children: all readers of a node come before it.
    for number in range(len(entries) - 1, -1, -1):
        kind, _, children = entries[number]
        is_everywhere = number in everywhere
        if not (is_everywhere or number in here):
            continue
        for k, child in enumerate(children):
            is_here = kind in POINTWISE or kind in WHOLE or k in READ_HERE.get(kind, ())
            (here if is_here and not is_everywhere else everywhere).add(child)
    return frozenset(here - everywhere)


def _numbered(program: Program) -> tuple[dict[Entry, Node], list[int]]:
    """The entries of the subexpressions; the numbers of the outputs, then of the named ones."""
    handed_out = (each.node for _, each in program.output.parts)
    return different(*handed_out, *(node for _, node in program.names))


def _rewritten(program: Program, rules: Callable[[int], Mapping[type[Node], Rule]]) -> Program:
    """The program with each subexpression replaced by its rule, if its kind has a rule.

    Args:
        program: the program.
        rules: from the number of a subexpression to the rules that apply to it.

    """
    entries, numbers = _numbered(program)
    count = len(program.output.parts)
    made: list[Node] = []
    places: dict[int, Place] = {}
    for number, (kind, attributes, children) in enumerate(entries):
        node = kind(tuple(made[each] for each in children), *attributes)
        node = _of_its_type(node, rules(number).get(kind, _as_it_is)(node))
        _place(node, program.places[number], places)
        made.append(node)
    names = tuple(
        (name, made[k]) for (name, _), k in zip(program.names, numbers[count:], strict=True)
    )
    output = program.output.of([made[number] for number in numbers[:count]])
    # The program lists equal nodes once: `places` has the first object of each.
    handed_out = (each.node for _, each in output.parts)
    nodes, _ = different(*handed_out, *(node for _, node in names))
    return replace(
        program,
        output=output,
        names=names,
        places=tuple(places[id(node)] for node in nodes.values()),
    )


def _of_its_type(old: Node, new: Node) -> Node:
    """The new node; its type must be that of the old one, since tables have rows for its values.

    A number without listed values may get listed values or other ends, but a whole number must
    stay whole.
    """
    known, found = old.type, new.type
    is_kept = known == found
    if isinstance(known, Number) and isinstance(found, Number) and known.values is None:
        is_kept = known.whole is None or found.whole is not None
    if not is_kept:
        raise BrokenInvariant(
            "a rule of a rewriting must keep the type",
            received=f"{found} for {known}",
            where=type(old).__name__,
        )
    return new


def _as_it_is(node: Node) -> Node:
    return node


def _place(node: Node, place: Place, places: dict[int, Place]) -> None:
    """Give a node, and the nodes that a rule made below it, the place of the node they replace."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if id(each) not in places:
            places[id(each)] = place
            waiting.extend(each.children)
