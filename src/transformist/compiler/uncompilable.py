"""Refusals of programs, with the user's own names and lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from transformist.errors import InvalidValue
from transformist.language import Program
from transformist.language.node import Node
from transformist.language.places import Place


class Uncompilable(InvalidValue):
    """A program, or a subexpression of it, that cannot be compiled as asked."""


class NoValueAtLength(Uncompilable):
    """Refusal of an N at which a function of a number is not defined."""


class TagsLookAhead(Uncompilable):
    """Refusal of tags that need later positions than a decoder has read."""


class TooNarrow(Uncompilable):
    """Refusal of a width below that of the numbers of a program."""


@dataclass(frozen=True)
class Subexpressions:
    """Names and places of the subexpressions of a program."""

    program: Program

    @cached_property
    def names(self) -> dict[Node, str]:
        """The user's names; the source text of what has none, "part of …" of what is within."""
        names = {node: place.name or type(node).__name__ for node, place in self.places.items()}
        for node in self.program.nodes:
            for child in node.children:
                if self.places[child] == self.places[node]:
                    names[child] = f"part of {self.places[node].name or type(node).__name__}"
        return names | {node: name for name, node in reversed(self.program.names)}

    @cached_property
    def places(self) -> dict[Node, Place]:
        """Place of each node in the user's file."""
        return dict(zip(self.program.nodes, self.program.places, strict=True))

    def refused(
        self,
        node: Node,
        invariant: str,
        *,
        received: str,
        remedy: str,
        kind: type[Uncompilable] = Uncompilable,
    ) -> Uncompilable:
        """The refusal of a subexpression, with its name and its line."""
        # Without the source, as at a plain prompt of Python, a place has no text to quote.
        is_named = self.places[node].text or any(node == each for _, each in self.program.names)
        named = f"'{self.names[node]}'" if is_named else f"{node.type.noun} that is computed there"
        return kind(
            invariant,
            received=f"{named}, {received}",
            where=str(self.places[node]),
            remedy=remedy,
        )
