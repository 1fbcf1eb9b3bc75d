"""Positional features: functions of a position i and the length n (section 3.5.1)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from transformist.errors import UndefinedValue

PositionFunction: TypeAlias = Callable[[int, int], Fraction | int]

POSITIONS: dict[str, PositionFunction] = {
    "1": lambda _i, _n: 1,
    "i": lambda i, _n: i,
    "i^2": lambda i, _n: i**2,
    "i^3": lambda i, _n: i**3,
    "1/i": lambda i, _n: Fraction(1, i),
    "-1/i": lambda i, _n: Fraction(-1, i),
    # With n = 0 there is only a symbol in front, i = 0: 0/0 is taken as the 0 of every other n.
    "i/n": lambda i, n: Fraction(i, n) if i else 0,
    "-i/n": lambda i, n: Fraction(-i, n) if i else 0,
    "(-1)^i": lambda i, _n: (-1) ** i,
}
"""By name; i counts from 1, and a symbol that a model adds in front has i = 0."""


def position(name: str, i: int, n: int) -> Fraction | int:
    """The value of a position function at (i, n).

    Raises:
        UndefinedValue: where the function has no value, as 1/i has none at i = 0.

    Example:
        >>> position("i/n", 2, 5)
        Fraction(2, 5)

    """
    try:
        return POSITIONS[name](i, n)
    except ZeroDivisionError:
        raise UndefinedValue(
            f"the position function {name} needs a divisor other than 0",
            received=f"i = {i}, n = {n}",
            where="position",
            remedy="use another position function: an added symbol in front has i = 0, and the "
            "empty input n = 0",
        ) from None
