"""Subexpressions across positions: means, counts, any, a position given by its number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from transformist.errors import is_name
from transformist.language.node import Column, Node
from transformist.language.places import refusal
from transformist.language.pointwise import require_kinds
from transformist.language.types import (
    Boolean,
    Category,
    Ends,
    Exact,
    Number,
    Polynomial,
    Type,
    number_of,
    quotient,
)
from transformist.language.types import union as either
from transformist.model import Mask


def spans(mask: str, n: int) -> list[tuple[int, int]]:
    """The positions that the mask leaves at 1 to n, as ranges of indices from 0.

    Example:
        >>> spans("strict-future", 3)
        [(0, 0), (0, 1), (0, 2)]

    """
    span = Mask(mask).span
    return [span(i, n) for i in range(n)]


def require_mask(mask: object) -> None:
    """Refuse a value that is no mask."""
    if not is_name(mask, tuple(Mask)):
        raise refusal(
            f"a mask must be one of {', '.join(Mask)}",
            received=repr(mask),
            remedy="write future for the positions up to here, strict-future for those before",
        )


def sums(values: Column, mask: str) -> list[tuple[Exact, int]]:
    """The sum over the positions that the mask leaves, and their number, at 1 to n."""
    # Every mask leaves an interval of positions, so each sum is a difference of two sums from the
    # left: n additions for all positions. Numbers are exact, so the difference is exact.
    total = list(accumulate(values, initial=0))
    return [(total[end] - total[start], end - start) for start, end in spans(mask, len(values))]


@dataclass(frozen=True, eq=False, repr=False)
class Mean(Node):
    """The mean of x over the positions that the mask leaves; 0 over none."""

    mask: str

    @cached_property
    def type(self) -> Type:
        require_mask(self.mask)
        require_kinds("a mean", self.children, Number)
        return Number()

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return [quotient(total, count or 1) for total, count in sums(columns[0], self.mask)]

    def over_nothing(self, *values: Any) -> Exact:
        return 0


_MOST = {"future": Polynomial(1, 0, 0), "strict-future": Polynomial(1, 0, -1)}
"""Upper ends of a count under future masks: i and i − 1. Under other masks the end is n."""


@dataclass(frozen=True, eq=False, repr=False)
class Count(Node):
    """Number of the positions that the mask leaves at which b holds.

    It is the mean of b times the number of these positions, so that a fraction of known denominator
    holds the same information.
    """

    mask: str

    @cached_property
    def type(self) -> Type:
        require_mask(self.mask)
        require_kinds("a count", self.children, Boolean)
        return Number(None, Ends(Polynomial(0, 0, 0), _MOST.get(self.mask, Polynomial(0, 1, 0))))

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return [total for total, _ in sums(columns[0], self.mask)]

    def over_nothing(self, *values: Any) -> Exact:
        return 0


@dataclass(frozen=True, eq=False, repr=False)
class Exists(Node):
    """True if b holds at one of the positions that the mask leaves; false over none."""

    mask: str

    @cached_property
    def type(self) -> Type:
        require_mask(self.mask)
        require_kinds("any", self.children, Boolean)
        return Boolean()

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return [total > 0 for total, _ in sums(columns[0], self.mask)]

    def over_nothing(self, *values: Any) -> bool:
        return False


def with_default(type_: Type, default: Any) -> Type:
    """The type of a value of this type or the default."""
    if isinstance(type_, Category):
        return either(type_, Category((default,)))
    if not isinstance(type_, Number):
        return type_
    elsewhere = Number(type_.values, type_.ends and type_.ends.anywhere())
    return either(elsewhere, number_of([default]))


@dataclass(frozen=True, eq=False, repr=False)
class Shift(Node):
    """x at position i − k; the default where there is no such position."""

    k: int
    default: Any

    @cached_property
    def type(self) -> Type:
        return with_default(self.children[0].type, self.default)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        (values,) = columns
        n = len(values)
        moved = (i - self.k for i in range(n))
        return [values[j] if 0 <= j < n else self.default for j in moved]

    def over_nothing(self, *values: Any) -> Any:
        return self.default


@dataclass(frozen=True, eq=False, repr=False)
class Lookup(Node):
    """x at the position with a given number, from 1; the default if the mask excludes it."""

    default: Any
    mask: str = "none"

    @cached_property
    def type(self) -> Type:
        require_mask(self.mask)
        values, index = self.children
        require_kinds("an index", (index,), Number)
        return with_default(values.type, self.default)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        # An index that is no whole number, or beyond 1 to n, is no key: Python's 1 and Fraction(1)
        # are one key, as they are equal and hash alike.
        at = dict(enumerate(columns[0], start=1))
        return [
            at.get(index, self.default) if start < index <= end else self.default
            for index, (start, end) in zip(columns[1], spans(self.mask, len(x)), strict=True)
        ]

    def over_nothing(self, *values: Any) -> Any:
        return self.default
