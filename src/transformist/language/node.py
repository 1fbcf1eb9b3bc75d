"""Nodes: the subexpressions of a program, frozen values that are equal if written alike.

A program may be nested thousands deep, and share subexpressions so often that written out it would
be exponentially long. So equality, pickles and evaluation go over the list of different nodes, and
never recurse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

from transformist.language.types import Type

Column: TypeAlias = "Sequence[Any]"
"""The values of a subexpression at positions 1 to n."""


class NoValue(Enum):
    """Marker for a node without a value over no positions; `None` is a value of categories."""

    NO_VALUE = "no value"


NO_VALUE = NoValue.NO_VALUE

Entry: TypeAlias = "tuple[type[Node], tuple[Any, ...], tuple[int, ...]]"
"""A node by its kind, its attributes and the numbers of its children."""


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """A subexpression.

    A node is defined by its kind, its children and the attributes of its kind; its type and its
    meaning follow from these. Where it is written, and how the user calls it, are no part of it.

    Attributes:
        children: the subexpressions it is made of.

    """

    children: tuple[Node, ...]

    def __post_init__(self) -> None:
        self.type  # noqa: B018 - checks that the types of the children fit
        hash(self)

    @cached_property
    def type(self) -> Type:
        """The type of its values.

        Raises:
            InvalidValue: where the types of the children do not fit.

        """
        raise NotImplementedError

    @cached_property
    def attributes(self) -> tuple[Any, ...]:
        """The values that define it beside its children."""
        return tuple(getattr(self, each.name) for each in dataclasses.fields(self)[1:])

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        """Its values at the n positions of an input.

        Args:
            x: the input.
            columns: the values of the children.

        """
        raise NotImplementedError

    def over_nothing(self, *values: Any) -> Any:
        """Its value over no positions, from the values of its children; `NO_VALUE` if it has none.

        Where values are computed position by position it is the same function.
        """
        if any(value is NO_VALUE for value in values):
            return NO_VALUE
        return self.meaning((None,), *([value] for value in values))[0]

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self.attributes, self.children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # Hashes are kept, so that unequal nodes are told apart at once; equal hashes need proof.
        if type(self) is not type(other) or hash(self) != hash(other):
            return False
        return listing(self) == listing(other)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle no hash: hashes of strings differ between processes."""
        return type(self), (self.children, *self.attributes)

    def __repr__(self) -> str:
        given = ", ".join(map(repr, self.attributes))
        return f"{type(self).__name__}({given})"


def different(*roots: Node) -> tuple[dict[Entry, Node], list[int]]:
    """Each different subexpression once, after its children; and the numbers of the roots."""
    # Two nodes are equal if they are of one kind and have equal attributes and equal children. With
    # the children numbered first, equal children have equal numbers, so one dictionary look-up for
    # each node finds the equal one before. `number` is by identity, `numbered` by content.
    number: dict[int, int] = {}
    entries: dict[Entry, Node] = {}
    numbered: dict[Entry, int] = {}
    for root in roots:
        for node in _postorder(root, number):
            entry = (type(node), node.attributes, tuple(number[id(c)] for c in node.children))
            number[id(node)] = numbered.setdefault(entry, len(numbered))
            entries.setdefault(entry, node)
    return entries, [number[id(root)] for root in roots]


def listing(*roots: Node) -> tuple[Entry, ...]:
    """The entries of each different subexpression, the same for expressions written alike."""
    return tuple(different(*roots)[0])


def restored(entries: Sequence[Entry]) -> list[Node]:
    """The nodes of a listing."""
    nodes: list[Node] = []
    for kind, attributes, children in entries:
        nodes.append(kind(tuple(nodes[each] for each in children), *attributes))
    return nodes


def _postorder(root: Node, done: dict[int, int]) -> Iterator[Node]:
    """The node and those below it, children first, without those that are `done`."""
    stack = [(root, False)]
    while stack:
        node, is_ready = stack.pop()
        if id(node) in done:
            continue
        if is_ready:
            yield node
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
