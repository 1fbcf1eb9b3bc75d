"""Kinds of output: a verdict, tags, predictions, or several outputs by name."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self, TypeAlias

from transformist.errors import UnknownName
from transformist.language.node import Column, Node
from transformist.language.operators import CONVERSIONS, OPERATORS, refusing_operators
from transformist.language.places import here, refusal

_ENDS = "an output ends a program and must be returned as it is"


def _refuse(self: Output | NamedOutputs, sign: str, *_: object) -> NoReturn:
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

    @property
    def parts(self) -> tuple[tuple[str, Output], ...]:
        """The output itself, as the one part without a name."""
        return (("", self),)

    def of(self, nodes: Sequence[Node]) -> Self:
        """The same output of another subexpression."""
        (node,) = nodes
        return replace(self, node=node)

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


@refusing_operators(_refuse, OPERATORS, CONVERSIONS, {"its truth": "bool"})
@dataclass(frozen=True)
class NamedOutputs:
    """Several outputs by name; the answer is a mapping from each name to the answer of its output.

    Attributes:
        parts: pairs of a name and an output.

    """

    parts: tuple[tuple[str, Output], ...]
    does: ClassVar[str] = "hands out several values"

    def of(self, nodes: Sequence[Node]) -> Self:
        """The same outputs of other subexpressions."""
        pairs = zip(self.parts, nodes, strict=True)
        return replace(self, parts=tuple((name, each.of([node])) for (name, each), node in pairs))

    def answer(self, *values: Column) -> dict[str, Any]:
        """The answers from the values of each part at positions 1 to n."""
        pairs = zip(self.parts, values, strict=True)
        return {name: each.answer(column) for (name, each), column in pairs}


AnyOutput: TypeAlias = "Output | NamedOutputs"
"""The output of a program."""


def outputs(*unnamed: Output, **named: Output) -> NamedOutputs:
    """Hand out several values of a program, each by a name.

    The answer is a mapping from each name to the answer of that output alone. A program returns the
    result of `outputs` as its last step.

    Args:
        unnamed: none; each output must have a name.
        named: results of `accept`, `tag` or `next_token`, by name.

    Raises:
        InvalidValue: if no output is given, if a name is missing or not an identifier of Python,
            or if a value is not such a result.

    Example:
        >>> import transformist as tf
        >>> @tf.program(alphabet="()")
        ... def brackets(x):
        ...     opens = x == "("
        ...     return tf.outputs(depth=opens.count("future").tag(), last=opens.accept(empty=True))
        >>> brackets("(()")
        {'depth': [1, 2, 2], 'last': False}

    """
    for name, each in named.items():
        if not name.isidentifier():
            raise refusal(
                "the name of an output must be an identifier of Python, such as depth",
                received=repr(name),
                remedy="use letters, digits and underscores",
            )
        if not isinstance(each, Output):
            raise refusal(
                "each of several outputs must be made by accept, tag or next_token",
                received=f"{name} = {each!r:.40}",
                remedy=f"write tf.outputs({name}=y.tag()), where y is the sequence to give out",
            )
    if unnamed or not named:
        raise refusal(
            "outputs must be given by name",
            received=f"{len(unnamed)} without a name" if unnamed else "none",
            remedy="write return tf.outputs(a=y.tag(), b=z.accept())",
        )
    return NamedOutputs(tuple(named.items()))


def joined(labels: tuple[Hashable, ...], values: Column) -> Any:
    """The values as a string if every label is one character, else as a list.

    Example:
        >>> joined(("a", "b"), ["b", "a"]), joined(("a", "EOS"), ["a"])
        ('ba', ['a'])

    """
    if all(isinstance(label, str) and len(label) == 1 for label in labels):
        return "".join(values)
    return list(values)
