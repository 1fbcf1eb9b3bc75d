"""Mask strict-future as mask future over values moved one position to the right.

The values at j < i then stand at the positions 2 to i. Position 1 has no value from before, so it
must never match: a key there has a value that no query has, and a Boolean there is false.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

from transformist.compiler.rewriting.choices import value_or_default
from transformist.compiler.rewriting.neighbours import at_distance
from transformist.compiler.rewriting.rules import Rule, at_every_position
from transformist.language import Program
from transformist.language.across import Count, Exists, Mean
from transformist.language.leaves import Constant, Position
from transformist.language.node import Entry, Node, different
from transformist.language.pointwise import Choice, Comparison, Linear, Table
from transformist.language.selection import Select, SelectByRelation
from transformist.language.types import Boolean, Category, Number
from transformist.model import Mask

TRUE = Constant((), Boolean, True)

MOST_CASES = 2**10
"""The largest number of cases in which `_never_equal` compares a key with the query beside it."""


def before_by_shifting(program: Program) -> Program:
    """The program with mask future in place of strict-future."""
    rules: dict[type[Node], Rule] = {
        Exists: _exists,
        Count: _count,
        Mean: _mean,
        Select: _select,
        SelectByRelation: _by_relation,
    }
    return at_every_position(program, rules)


def _exists(node: Exists) -> Node:
    if node.mask != Mask.STRICT_FUTURE:
        return node
    return Exists((_moved(node.children[0], False),), Mask.FUTURE.value)


def _count(node: Count) -> Node:
    """The count of a moved Boolean."""
    if node.mask != Mask.STRICT_FUTURE:
        return node
    return Count((_moved(node.children[0], False),), Mask.FUTURE.value)


def _mean(node: Mean) -> Node:
    """The mean of moved values over the positions 2 to i; a key excludes position 1."""
    if node.mask != Mask.STRICT_FUTURE:
        return node
    children = (_moved(TRUE, False), TRUE, _moved(node.children[0], 0))
    return Select(children, "mean", Mask.FUTURE.value, 0)


def _select(node: Select) -> Node:
    """The selection by moved keys and values; unmoved, if no key matches the query beside it."""
    if node.mask != Mask.STRICT_FUTURE:
        return node
    keys, queries, values = node.children
    if keys == queries == TRUE and node.choose == "rightmost":
        return at_distance(values, 1, node.default)
    if _never_equal(keys, queries):
        return replace(node, mask=Mask.FUTURE.value)
    if isinstance(keys.type, Boolean) and queries != TRUE:
        keys, queries = (_as_number(each) for each in (keys, queries))
    if keys.type.values is None or queries.type.values is None:
        return _last(node)
    # The key and the value of j move to j + 1. The matches j < i become the matches j + 1 ≤ i, in
    # the same order and with the same values, so the first, the last and the mean are the same.
    # Position 1 never matches, so its value does not matter.
    children = (_moved(keys, _unlike(keys, queries)), queries, _moved(values, _any(values)))
    return Select(children, node.choose, Mask.FUTURE.value, node.default)


def _by_relation(node: SelectByRelation) -> Node:
    """The last match: whether a key at position 1 can match depends on the relation."""
    return _last(node) if node.mask == Mask.STRICT_FUTURE else node


def _last(node: Select) -> Node:
    """The last match, for keys without a value that matches no query.

    Position 1 may then match by mistake. It is the last match only if there is no other match,
    since every other match is after it. So there is a match before i if the last match is beyond 1.
    """
    keys, queries, values = node.children
    if node.choose != "rightmost" and not isinstance(values, Constant):
        return node
    keys = _moved(keys, _any(keys))

    def last(values: Node, default: Any) -> Node:
        children = (keys, queries, values)
        mask = Mask.FUTURE.value
        return replace(node, children=children, choose="rightmost", mask=mask, default=default)

    found = Comparison((Linear((last(Position((), "i"), 0),), (1,), -1),), ">")
    return value_or_default(found, last(_moved(values, _any(values)), node.default), node.default)


def _moved(node: Node, default: Any) -> Node:
    """The value at i − 1; the default at position 1."""
    return at_distance(node, 1, default)


def _as_number(node: Node) -> Node:
    """A Boolean as 1 or 0: a number can have a third value, which `_unlike` needs."""
    one, zero = (Constant((), Number, value) for value in (1, 0))
    return Choice((node, one, zero))


def _unlike(keys: Node, queries: Node) -> Any:
    """A value of the keys' type that no query has."""
    values: Any = (*(keys.type.values or ()), *(queries.type.values or ()))
    if isinstance(keys.type, Boolean):
        return False
    if isinstance(keys.type, Category):
        name = "nothing before"
        while name in values:
            name += "'"
        return name
    return max(values) + 1


def _any(node: Node) -> Any:
    """A value of the type; the caller does not depend on which one."""
    return node.type.values[0] if node.type.values else 0


def _never_equal(keys: Node, queries: Node) -> bool:
    """True if the tables of the key and the query show that both differ at every position."""
    numbered, (key, query) = different(keys, queries)
    entries, nodes = list(numbered), list(numbered.values())
    tables, free = _below(entries, key, query)
    listed: list[Any] = [nodes[k].type.values for k in free]
    if any(values is None for values in listed) or math.prod(map(len, listed)) > MOST_CASES:
        return False
    # Not every combination of arguments need occur. If no combination has an equal key and query,
    # they never are equal; if one has, nothing follows, and the answer is False.
    for case in itertools.product(*listed):
        found = dict(zip(free, case, strict=True))
        for k in tables:
            arguments = ([found[child]] for child in entries[k][2])
            (found[k],) = nodes[k].meaning((None,), *arguments)
        if found[key] == found[query]:
            return False
    return True


def _below(entries: list[Entry], *roots: int) -> tuple[list[int], list[int]]:
    """The tables that the roots are made of, and the arguments of these tables; children first."""
    found = set(roots)
    for k in range(len(entries) - 1, -1, -1):
        kind, _, children = entries[k]
        if k in found and issubclass(kind, Table | Constant):
            found.update(children)
    tables = [k for k in sorted(found) if issubclass(entries[k][0], Table | Constant)]
    return tables, sorted(found.difference(tables))
