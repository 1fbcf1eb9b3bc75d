"""Answers of recipes on a user's input, with the part of them that the claim covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformist.arithmetic import Arithmetic
from transformist.claims import Finding, LengthClaim, Recipe, Settings, StringClaim
from transformist.errors import InputTooLong, InvalidValue
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


def require_length(
    recipe: Recipe[LengthClaim], settings: Settings, n: int, system: Arithmetic
) -> None:
    """Refuse an input longer than N, or longer than the safe length of the format.

    Raises:
        InputTooLong: beyond N.
        InvalidValue: beyond the safe length, or in an arithmetic in which nothing is claimed.

    """
    built_for = settings.get("max_length")
    if built_for is not None and n > built_for:
        raise InputTooLong(
            f"{recipe.name} must have at most N = {built_for} positions, for which it is built",
            received=f"{n}",
            remedy=f"give --set max_length={n}",
        )
    arithmetic = system.name
    lengths = recipe.claim.safe_lengths(settings)
    safe = lengths.get(arithmetic, 0)
    if not lengths:
        raise InvalidValue(
            f"{recipe.name} must have settings that an arithmetic holds, to claim anything in it",
            received="numbers that none of them holds",
            remedy="give numbers such as 1/2 or 3, and no larger than the largest number",
        )
    if safe == 0:
        reason = recipe.claim.excluded.get(arithmetic)
        raise InvalidValue(
            f"the arithmetic must be one that {recipe.name} is claimed in: {', '.join(lengths)}",
            received=f"{arithmetic} ({reason})" if reason else arithmetic,
            remedy="choose another arithmetic",
        )
    if safe is not None and n > safe:
        raise InvalidValue(
            f"the length must be at most the one at which {recipe.name} is safe in {arithmetic}, "
            f"n = {safe}",
            received=f"n = {n}",
            remedy="give a shorter input or choose a wider format",
        )
