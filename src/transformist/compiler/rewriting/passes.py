"""The rewritings for each target, in their order."""

from __future__ import annotations

from collections.abc import Mapping

from transformist.compiler.rewriting.before import before_by_shifting
from transformist.compiler.rewriting.first_match import cut_off_by_places
from transformist.compiler.rewriting.last_position import causal_at_the_last, whole_at_the_last
from transformist.compiler.rewriting.neighbours import neighbours_by_number
from transformist.compiler.rewriting.past_at_the_last import past_at_the_last
from transformist.compiler.rewriting.rules import Rewriting
from transformist.language import Program

PASSES: Mapping[str, tuple[Rewriting, ...]] = {
    "any": (),
    # `neighbours_by_number` comes first: the lookup of a successor becomes causal where only the
    # last position is read. `past_at_the_last` comes before the next pass: the arguments of a past
    # mask, which are read at every position, are then read at the last position alone.
    "future": (neighbours_by_number, past_at_the_last, causal_at_the_last, before_by_shifting),
    "none": (neighbours_by_number, past_at_the_last, whole_at_the_last, cut_off_by_places),
}
"""The rewritings of each target, by the option `masks`."""


def rewritten(program: Program, masks: str) -> Program:
    """A program with the same answers, with masks that the target has where this is possible.

    A subexpression without a rule is left as it is; lowering refuses its head.
    """
    for each in PASSES[masks]:
        program = each(program)
    return program
