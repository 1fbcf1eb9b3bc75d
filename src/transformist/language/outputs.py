"""What a program hands out: a verdict, a tag at every position, predictions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from transformist.errors import UnknownName
from transformist.language.node import Column, Node
from transformist.language.places import here

_ENDS = "an output ends a program and must be returned as it is"


def _no(sign: str) -> Callable[..., NoReturn]:
    def refuse(self: Output, *_: object) -> NoReturn:
        raise UnknownName(
            _ENDS,
            received=f"{sign} on what {type(self).does}",
            where=str(here()),
            remedy="compute with the sequence, before it is made an output",
        )

    return refuse


@dataclass(frozen=True)
class Output:
    """The values of a subexpression as an answer.

    Attributes:
        node: the subexpression.

    """

    does: ClassVar[str]
    node: Node

    def answer(self, values: Column) -> Any:
        """The answer from the values at positions 1 to n."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """Refuse operations of sequences; Python's own exception has neither line nor remedy."""
        if name.startswith("_") or name == "tracing":
            raise AttributeError(name)
        raise UnknownName(
            _ENDS,
            received=f".{name} on what {type(self).does}",
            where=str(here()),
            remedy="write b.accept(), y.tag() or y.next_token() once, as the last operation",
        )

    __bool__ = _no("the truth")
    __getitem__ = _no("an index")
    __iter__ = _no("a loop")
    __add__ = __radd__ = _no("+")
    __sub__ = __rsub__ = _no("-")
    __mul__ = __rmul__ = _no("*")
    __and__ = __rand__ = _no("&")
    __or__ = __ror__ = _no("|")
    __xor__ = __rxor__ = _no("^")
    __lt__ = _no("<")
    __le__ = _no("<=")
    __gt__ = _no(">")
    __ge__ = _no(">=")
    __truediv__ = __rtruediv__ = _no("/")
    __floordiv__ = __rfloordiv__ = _no("//")
    __mod__ = __rmod__ = _no("%")
    __pow__ = __rpow__ = _no("**")
    __matmul__ = __rmatmul__ = _no("@")
    __float__ = __int__ = _no("a conversion")
    __neg__ = __pos__ = _no("a sign")
    __abs__ = _no("abs")
    __invert__ = _no("~")


@dataclass(frozen=True)
class Accept(Output):
    """Whether the Boolean holds at the last position.

    Attributes:
        empty: the answer on the empty input.

    """

    does = "accepts"
    empty: bool

    def answer(self, values: Column) -> bool:
        """A bool."""
        return bool(values[-1]) if len(values) else self.empty


@dataclass(frozen=True)
class Tag(Output):
    """The value at every position."""

    does = "tags"

    def answer(self, values: Column) -> Any:
        """A string where every category is one character, a list elsewhere."""
        return joined(self.node.type.values or (None,), values)


@dataclass(frozen=True)
class NextToken(Output):
    """At every position the prediction of the symbol after it."""

    does = "predicts"

    def answer(self, values: Column) -> Any:
        """A string where every category is one character, a list elsewhere."""
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
