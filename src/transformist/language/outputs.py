"""Outputs of a program: a verdict, a tag at every position, or predictions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from transformist.errors import UnknownName
from transformist.language.node import Column, Node
from transformist.language.operators import CONVERSIONS, OPERATORS, refusing_operators
from transformist.language.places import here

_ENDS = "an output ends a program and must be returned as it is"


def _refuse(self: Output, sign: str, *_: object) -> NoReturn:
    raise UnknownName(
        _ENDS,
        received=f"{sign} on an output that {type(self).does}",
        where=str(here()),
        remedy="compute with the sequence before you make it an output",
    )


@refusing_operators(_refuse, OPERATORS, CONVERSIONS, {"its truth": "bool"})
@dataclass(frozen=True)
class Output:
    """Way to hand out the values of a subexpression as an answer.

    Attributes:
        node: the subexpression.

    """

    does: ClassVar[str]
    node: Node

    def answer(self, values: Column) -> Any:
        """The answer from the values at positions 1 to n."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """Refuse operations of sequences, with a line and a remedy that Python does not give."""
        if name.startswith("_") or name == "tracing":
            raise AttributeError(name)
        raise UnknownName(
            _ENDS,
            received=f".{name} on an output that {type(self).does}",
            where=str(here()),
            remedy="write b.accept(), y.tag() or y.next_token() once, as the last operation",
        )


@dataclass(frozen=True)
class Accept(Output):
    """Verdict: the Boolean at the last position.

    Attributes:
        empty: the answer on the empty input.

    """

    does = "accepts"
    empty: bool

    def answer(self, values: Column) -> bool:
        return bool(values[-1]) if len(values) else self.empty


@dataclass(frozen=True)
class Tag(Output):
    """Tags: the value at every position."""

    does = "tags"

    def answer(self, values: Column) -> Any:
        return joined(self.node.type.values or (None,), values)


@dataclass(frozen=True)
class NextToken(Output):
    """Predictions: at every position the symbol after it."""

    does = "predicts"

    def answer(self, values: Column) -> Any:
        return joined(self.node.type.values or (None,), values)


def joined(labels: tuple[Hashable, ...], values: Column) -> Any:
    """The values as a string where every label is one character, as a list elsewhere.

    Example:
        >>> joined(("a", "b"), ["b", "a"]), joined(("a", "EOS"), ["a"])
        ('ba', ['a'])

    """
    if all(isinstance(label, str) and len(label) == 1 for label in labels):
        return "".join(values)
    return list(values)
