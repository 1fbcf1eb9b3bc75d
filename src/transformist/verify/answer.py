"""Answers of recipes on a user's input, with the part of them that the claim covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformist.claims import Finding, Recipe, Settings, StringClaim
from transformist.model import Trace, Transformer


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


@dataclass(frozen=True, kw_only=True)
class BuiltModel:
    """A transformer built for an input.

    Attributes:
        model: the transformer.
        settings: those that it was built with.
        safe: the largest N that the claim covers in the arithmetic; `None` for any.
        covered: whether the claim covers the model.

    """

    model: Transformer
    settings: Settings
    safe: int | None = None
    covered: bool = True


@dataclass(frozen=True, kw_only=True)
class AnswerOnSymbols:
    """Answer of a transformer on symbols.

    Attributes:
        trace: the run.
        settings: those that the model was built with.
        safe: the largest N that the claim covers in this arithmetic; `None` for any.
        covered: whether the claim covers the model.
        finding: the finding about the input; empty where the claim does not cover it.
        error_bound: for an answer in numbers that the claim does not cover, an upper bound of their
            distance from the real values, which balls enclose; infinite where a number is, `None`
            where the input takes too many products, or the balls become too wide.
        recipe: the recipe that claims something of the model, if any.

    """

    trace: Trace
    settings: Settings
    safe: int | None
    covered: bool
    finding: Finding
    error_bound: float | None = None
    recipe: Recipe[StringClaim] | None = None
