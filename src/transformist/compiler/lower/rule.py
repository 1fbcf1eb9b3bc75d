"""Rules: each turns a kind of subexpression into forms, given the forms of its children.

A rule has two things to work with. It may `ask` what other subexpressions become, and `build` forms
of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from transformist.circuit import Form
from transformist.compiler.lower.builder import AS_IT_IS, Builder, Scale
from transformist.language.node import Node
from transformist.language.types import Number

Scales: TypeAlias = "tuple[Scale, ...] | None"
"""Scales in which a number is available, always including 1; `None` for all."""

Ranked: TypeAlias = "tuple[Form, tuple[Any, ...]]"
"""A form that is k where a subexpression has its k-th value, from 0; and its values up to N."""

Channel: TypeAlias = "Callable[[Form], Form]"
"""Maps a value whose default is 0 to what a subexpression fetches of it."""


class Asking(ABC):
    """Forms of subexpressions, for a rule to ask for."""

    @abstractmethod
    def boolean(self, node: Node, /) -> Form:
        """A form that is 1 where the Boolean holds, 0 elsewhere."""

    @abstractmethod
    def loosely(self, node: Node, /) -> Form:
        """A whole number that is 1 where the Boolean holds, at most 0 elsewhere."""

    @abstractmethod
    def literal(self, node: Node, value: Any, /) -> Form:
        """A form that is 1 where a node of listed values has this value, 0 elsewhere."""

    @abstractmethod
    def number(self, node: Node, scale: Scale = AS_IT_IS, /) -> Form:
        """A form that is the number times the scale."""

    @abstractmethod
    def scales(self, node: Node, /) -> Scales:
        """The scales in which a number can be there."""

    @abstractmethod
    def channel(self, node: Node, /) -> Channel:
        """The channel of a subexpression that fetches."""

    @abstractmethod
    def rank(self, node: Node, /) -> Ranked | None:
        """The rank of the value; `None` if there is no rank for this node."""

    @abstractmethod
    def by_symbol(self, node: Node, /) -> list[Any] | None:
        """The value at each symbol of the alphabet, where it depends on nothing else."""

    def always(self, node: Node, value: Any) -> bool:
        """True if the node has this value at every symbol."""
        columns = self.by_symbol(node)
        return columns is not None and set(columns) == {value}

    def common_scales(self, nodes: Sequence[Node]) -> Scales:
        """The scales in which all of these can be there."""
        known = [scales for each in nodes if (scales := self.scales(each)) is not None]
        if not known:
            return None
        return tuple(scale for scale in known[0] if all(scale in scales for scales in known[1:]))

    def in_some_scale(self, node: Node) -> tuple[Form, Scale]:
        """The number in the first of its scales."""
        scale = (self.scales(node) or (AS_IT_IS,))[0]
        return self.number(node, scale), scale


def _of_another_type(_ask: Asking, _build: Builder, node: Node, *_more: Any) -> NoReturn:
    raise TypeError(f"no rule lowers {type(node).__name__} to the requested type")


def by_steps(ask: Asking, build: Builder, node: Node, value: Any) -> Form:
    """1 where a number has this listed value: the step at it minus the step at the next value."""
    if not isinstance(node.type, Number):
        _of_another_type(ask, build, node)
    # [y = vₖ] is [y ≥ vₖ] − [y ≥ vₖ₊₁]. Neighbouring values share a step, so that all k values
    # together take k − 1 steps, and not two for each.
    form = ask.number(node)
    listed = tuple(node.type.values or ())
    at = listed.index(value)

    def up_to(k: int) -> Form:
        """1 where the number is at least its k-th value, a gap above the value before."""
        above = form - listed[k - 1]
        return build.step(above, build.zone(node, above), f"{build.name(node)} >= {listed[k]}")

    below = up_to(at) if at > 0 else Form.of(1)
    return below - up_to(at + 1) if at + 1 < len(listed) else below


def _as_it_is(_ask: Asking, _build: Builder, _node: Node) -> Scales:
    return (AS_IT_IS,)


Kind = TypeVar("Kind", bound=Node)


@dataclass(frozen=True)
class Rule(Generic[Kind]):
    """Forms of a kind of subexpression, for each type that it can have.

    Attributes:
        boolean, literal, number, scales: as the methods of `Asking`.
        loosely: the same, where there is less to it than to `boolean`; it may give none.
        parted: a number that is above 0 where the Boolean holds, else below, and how far at least,
            where that costs no hidden units; it may give none.
        rank: as the method of `Asking`, if the rule has the rank as one number.

    """

    boolean: Callable[[Asking, Builder, Kind], Form] = _of_another_type
    loosely: Callable[[Asking, Builder, Kind], Form | None] | None = None
    parted: Callable[[Asking, Builder, Kind], tuple[Form, Fraction] | None] | None = None
    literal: Callable[[Asking, Builder, Kind, Any], Form] = by_steps
    number: Callable[[Asking, Builder, Kind, Scale], Form] = _of_another_type
    scales: Callable[[Asking, Builder, Kind], Scales] = _as_it_is
    rank: Callable[[Asking, Builder, Kind], Ranked] | None = None
