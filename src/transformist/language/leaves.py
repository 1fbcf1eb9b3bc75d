"""Subexpressions without children: the input, constants, positions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformist.errors import is_name
from transformist.language.node import NO_VALUE, Column, Node, NoValue
from transformist.language.places import refusal
from transformist.language.types import (
    Boolean,
    Category,
    Ends,
    Exact,
    Number,
    Polynomial,
    Type,
    exact,
    number_of,
)
from transformist.position_features import POSITIONS, position


@dataclass(frozen=True, eq=False, repr=False)
class Token(Node):
    """Symbol xᵢ of the input."""

    alphabet: tuple[Hashable, ...]

    @cached_property
    def type(self) -> Type:
        return Category(self.alphabet)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return list(x)

    def over_nothing(self, *values: Any) -> NoValue:
        """No symbol."""
        return NO_VALUE


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Node):
    """Constant c at every position: a Boolean, a number or a category."""

    kind: type[Type]
    value: Any

    @cached_property
    def type(self) -> Type:
        if self.kind is Category:
            return Category((self.value,))
        return number_of([self.value]) if self.kind is Number else Boolean()

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return [self.value] * len(x)


NAMES = ("i", "n", *(name for name in POSITIONS if name != "i"))
"""The functions of a position i, from 1, and of the length n that a program may use."""


_LINES = {"i": Polynomial(1, 0, 0), "n": Polynomial(0, 1, 0), "1": Polynomial(0, 0, 1)}
"""The functions that are linear in i and n; no linear function bounds i^2 and i^3."""


@dataclass(frozen=True, eq=False, repr=False)
class Position(Node):
    """Named function of the position i, from 1, and of n."""

    name: str

    @cached_property
    def type(self) -> Type:
        if not is_name(self.name, NAMES):
            raise refusal(
                f"a function of the position must be one of {', '.join(NAMES)}",
                received=repr(self.name),
                remedy="compute it from one of these",
            )
        if self.name == "(-1)^i":
            return number_of([1, -1])
        line = _LINES.get(self.name)
        return Number(None, Ends(line, line) if line else None)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        n = len(x)
        if self.name == "n":
            return [n] * n
        return [exact(position(self.name, i, n)) for i in range(1, n + 1)]

    def over_nothing(self, *values: Any) -> Exact | NoValue:
        return 0 if self.name == "n" else NO_VALUE
