"""One check for every number that a user gives to a bound."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.arithmetic import rational
from transformist.errors import InvalidValue

Condition: TypeAlias = tuple[str, Callable[[Fraction], bool]]
"""Condition on a number, in words and as a test."""

NOT_NEGATIVE: Condition = ("of at least 0", lambda x: x >= 0)
SHARE: Condition = ("between 0 and 1", lambda x: 0 < x < 1)


def required(
    name: str, given: Any, condition: Condition, *, meaning: str, where: str, remedy: str
) -> Fraction:
    """Return a number that a user gave, as a rational.

    Args:
        name: the argument.
        given: its value.
        condition: what it must be.
        meaning: what it stands for, in a few words.
        where: the function that it was given to.
        remedy: what to give.

    Raises:
        InvalidValue: if the number is not finite, or does not meet the condition.

    Example:
        >>> required("size", "1/2", NOT_NEGATIVE, meaning="a norm", where="here", remedy="give one")
        Fraction(1, 2)

    """
    words, holds = condition
    try:
        number = rational(given)
        if holds(number):
            return number
    except (AttributeError, TypeError, ValueError, ArithmeticError):
        pass  # no number: refused below, as one out of range is
    raise InvalidValue(
        f"{name}, {meaning}, must be a number {words}",
        received=f"{name} = {given!s:.40}",
        where=where,
        remedy=remedy,
    )
