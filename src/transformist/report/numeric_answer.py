"""An answer in numbers: how far the claim covers it, for JSON and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transformist.arithmetic import Arithmetic
from transformist.claims import Recipe, Settings
from transformist.report.values import at_most

if TYPE_CHECKING:
    from transformist.verify import AnswerInNumbers


def numeric_answer_facts(answer: AnswerInNumbers) -> dict[str, Any]:
    """The facts that stand beside the answer, for JSON."""
    if answer.bound is None and answer.covered:
        return {"within_claim": True}
    finite = answer.bound is not None and math.inf not in answer.bound
    return {
        "within_claim": answer.covered,
        "error_bound": list(answer.bound or ()) if finite else None,
        "input_rounded": not answer.stored,
        "claimed_positions": None if answer.positions is None else list(answer.positions),
    }


def closeness(answer: AnswerInNumbers, arithmetic: str) -> str:
    """The error bound of an answer, as the end of a sentence."""
    if answer.bound is None:
        return ""
    if math.inf in answer.bound:
        return ", with no bound: a result on the way may be too large, or a divisor 0"
    worst, enclosed = max(answer.bound), arithmetic == "interval"
    if worst:
        close = f", {'a value ' if enclosed else ''}within {at_most(worst)} of the exact result"
    else:
        close = ", which holds the exact result" if enclosed else ", exactly"
    if answer.positions is not None:
        places = ", ".join(map(str, answer.positions))
        close += f", at position {places}; of the others nothing is claimed"
    return close if answer.stored else f"{close}, for the input as {arithmetic} rounds it"


def outside_claim(
    recipe: Recipe[Any], settings: Settings, answer: AnswerInNumbers, system: Arithmetic
) -> str:
    """The place of an answer that the claim does not cover, in words."""
    claimed = recipe.claim.claimed(settings)
    if system.name not in claimed:
        return f"in {system.name}, only in {', '.join(claimed)}"
    if answer.positions == ():
        return f"of any position of this list; {recipe.summary}"
    rounded = "" if answer.stored else f" (the input as {system.name} rounds it)"
    return f"outside {recipe.claim.inputs(settings)}{rounded}"
