"""Answers of recipes on a user's input, with the part of them that the claim covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class AnswerInNumbers:
    """Answer of a recipe on a vector, on a list of vectors, or on a number of positions.

    Attributes:
        length: number of numbers, vectors or positions of the input.
        shown: nested lists of the numbers, or of balls in decimals.
        covered: whether the claim speaks of this input.
        bound: for each number, an upper bound of its distance from the value that the claim states
            for the stored input (in `interval`, of the distance of the real value that the ball
            holds); `None` where the claim gives none, infinite where a result may overflow.
        stored: whether the arithmetic holds the input without rounding.
        positions: the positions that the claim speaks of, from 1; `None` for all.

    """

    length: int
    shown: Any
    covered: bool
    bound: tuple[float, ...] | None
    stored: bool = True
    positions: tuple[int, ...] | None = None
