"""The types of values at a position: Boolean, category, number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from transformist.arithmetic import rational

Exact: TypeAlias = "int | Fraction"
"""A rational number: an int where it is whole, so that whole numbers are fast."""

MOST_VALUES = 64
"""The values of a number are listed where there are at most this many."""


@dataclass(frozen=True)
class Boolean:
    """False or true."""

    noun: ClassVar[str] = "a Boolean"
    values: ClassVar[tuple[bool, ...]] = (False, True)


@dataclass(frozen=True)
class Category:
    """One of finitely many values, such as symbols.

    Attributes:
        values: different and hashable, in the order in which they came.

    """

    noun: ClassVar[str] = "a category"
    values: tuple[Hashable, ...]


@dataclass(frozen=True)
class Number:
    """A rational number.

    Attributes:
        values: those it can have, increasing, where they are known and at most `MOST_VALUES`.

    """

    noun: ClassVar[str] = "a number"
    values: tuple[Exact, ...] | None = None


Type: TypeAlias = "Boolean | Category | Number"


def exact(value: Any) -> Exact:
    """The exact value of a number, or of the text of one; of a float, its own value.

    Raises:
        ValueError, TypeError, ArithmeticError: for a value that is no finite number, or a Boolean.

    Example:
        >>> exact("1/3"), exact(0.5), exact(4.0)
        (Fraction(1, 3), Fraction(1, 2), 4)

    """
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise TypeError
    number = value if isinstance(value, Fraction) else rational(value)
    return number.numerator if number.denominator == 1 else number


def quotient(numerator: Exact, denominator: Exact) -> Exact:
    """The fraction, an int where it is whole.

    Example:
        >>> quotient(6, 3), quotient(1, 3)
        (2, Fraction(1, 3))

    """
    # Whole numbers by divmod: a Fraction would take their greatest common divisor each time.
    if type(numerator) is int and type(denominator) is int:
        whole, rest = divmod(numerator, denominator)
        return Fraction(numerator, denominator) if rest else whole
    return exact(Fraction(numerator) / denominator)


def number_of(values: Iterable[Exact]) -> Number:
    """The type of a number that has one of these values."""
    listed = sorted(set(values))
    return Number(tuple(listed) if len(listed) <= MOST_VALUES else None)


def image(function: Callable[..., Exact], *types: Type) -> Number:
    """The type of a function of numbers, its values listed where theirs are."""
    # The image of listed values is listed by trying every combination; beyond MOST_VALUES² of them
    # that costs too much, and a type without a list is always true.
    known = [each.values for each in types if each.values is not None]
    if len(known) < len(types) or math.prod(map(len, known)) > MOST_VALUES**2:
        return Number()
    return number_of(itertools.starmap(function, itertools.product(*known)))


def union(first: Type, second: Type) -> Type:
    """The type of a value that is of one of two types, both Booleans, categories, or numbers."""
    if isinstance(first, Category) and isinstance(second, Category):
        return Category(tuple(dict.fromkeys((*first.values, *second.values))))
    if isinstance(first, Number) and isinstance(second, Number):
        if first.values is None or second.values is None:
            return Number()
        return number_of((*first.values, *second.values))
    return Boolean()
