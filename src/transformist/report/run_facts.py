"""What is known of an answer: how far a claim covers it, how close its numbers are."""

from __future__ import annotations

import math
from typing import Any

from transformist.claims import Finding
from transformist.model import NOTHING, Trace, Transformer
from transformist.report.size import size
from transformist.report.values import at_most, plain
from transformist.texts import Text
from transformist.verify import AnswerInNumbers, AnswerOnSymbols


def run_in_words(
    name: str, model: Transformer, length: int, by: str, depends: str | None = None
) -> str:
    """What was run, and how large it is, in a line.

    Args:
        name: of the model.
        model: the model.
        length: of the input.
        by: the arithmetic, and the engine.
        depends: what is claimed to depend on the length, in words.

    Example:
        >>> import transformist as tf
        >>> run_in_words("mine", tf.recipe("dyck-1").build(max_length=9), 1, "float64")
        'mine on 1 symbol in float64: 2 layers, width 6, 2 heads, 26 non-zero parameters, N = 9'

    """
    told = str(size(model)) if depends is None else f"{size(model)}; {depends}"
    limit = "" if model.max_length is None else f", N = {model.max_length}"
    symbols = f"{length} symbol{'' if length == 1 else 's'}"
    return f"{name} on {symbols} in {by}: {told}{limit}"


def numbers_facts(answer: AnswerInNumbers) -> dict[str, Any]:
    """What `run` tells of an answer in numbers beside the answer."""
    if answer.bound is None and answer.covered:
        return {"within_claim": True}
    finite = answer.bound is not None and math.inf not in answer.bound
    return {
        "within_claim": answer.covered,
        "error_bound": list(answer.bound or ()) if finite else None,
        "input_rounded": not answer.stored,
        "claimed_positions": None if answer.positions is None else list(answer.positions),
    }


def how_close(answer: AnswerInNumbers, arithmetic: str) -> str:
    """How far an answer in numbers can be off, to follow it in a sentence."""
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


def how_near(judged: AnswerOnSymbols) -> str:
    """How far the numbers of an answer can be from the real values, in a sentence."""
    if judged.covered:
        return judged.recipe.claim.error_statement if judged.recipe else ""
    if judged.error_bound is None:
        return "how far off is not told: the products are too many for balls, or balls too wide"
    if math.isinf(judged.error_bound):
        return "a number is infinite"
    close = at_most(judged.error_bound)
    return f"each number within {close} of the real value, which interval encloses"


def judged_facts(judged: AnswerOnSymbols, source: Text) -> dict[str, Any]:
    """What `run` tells of an answer on symbols beside the answer: what its claim covers."""
    if judged.recipe is None:
        return {}
    facts = {"within_claim": judged.covered, **finding_facts(judged.finding, source)}
    if judged.recipe.claim.in_numbers:
        bound = judged.error_bound
        facts["error_bound"] = None if bound is None or math.isinf(bound) else [bound]
    return facts


def finding_facts(finding: Finding, source: Text) -> dict[str, Any]:
    """What is found about an input, with the places of the symbols."""
    place = None if finding.position is None else source.place(finding.position)
    return {
        "finding": finding.sentence or None,
        "position": finding.position,
        "place": place,
        "related": [source.place(position) for position in finding.related],
        **finding.numbers,
    }


def trace_facts(trace: Trace) -> list[dict[str, Any]]:
    """The streams of a trace: after each step, the values at every row of what each slot holds."""
    stream = trace.model.stream
    return [
        {
            "after": name,
            "values": {
                stream.held(index, step): plain(trace.shown(slot, step))
                for index, slot in enumerate(stream.slots)
                if stream.held(index, step) != NOTHING
            },
        }
        for step, (name, _) in enumerate(trace.streams)
    ]
