"""A proof that a format decides as the weights do exactly, for every input up to a length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transformist.arithmetic import Floating
from transformist.errors import NotFinite
from transformist.model import Transformer
from transformist.verify.proof.ideal import Unfollowed
from transformist.verify.proof.orders import Evaluation
from transformist.verify.proof.walking import Margin, Walk

EVALUATIONS: Mapping[str, Evaluation] = {
    each.name: each
    for each in (
        Evaluation("any", "in any order of summation"),
        Evaluation("reference", "in the order of the reference, from left to right"),
        Evaluation(
            "structured",
            "by the structured engine, in the order of each method",
            # The distance from the reference that `engines/structured/evaluation.py` states and its
            # tests hold: (16 n + 5000) 2⁻⁵³ of the largest value, and 2⁻⁴⁰ for keys with terms.
            further=(16 * 2.0**-53, 5000 * 2.0**-53 + 2.0**-40),
        ),
        Evaluation(
            "flash",
            "by kernels that normalise last, as flash attention",
            rescales=True,
            scores_in_accumulator=True,
            exp_error=2.0**-20,  # exp2 in hardware, float32: 2 units in the last place are 2⁻²²
        ),
    )
}
"""Ways of evaluating softmax attention, by name."""


@dataclass(frozen=True)
class Proof:
    """Margins of a model in a format, up to a length.

    Attributes:
        margins: every error bound on which a decision depends, and the error allowed there.
        stopped: the first operation without a bound, or margin that is exceeded; empty if the proof
            holds.

    """

    margins: tuple[Margin, ...]
    stopped: str = ""

    @property
    def holds(self) -> bool:
        """True if every error is below its margin: then every answer is the ideal one."""
        return not self.stopped and all(each.share > 0 for each in self.margins)


def prove(model: Transformer, a: Floating, longest: int, order: str) -> Proof:
    """Prove that a format decides as the ideal, on all inputs of up to `longest` symbols.

    Args:
        model: the model.
        a: the format.
        longest: N.
        order: a key of `EVALUATIONS`.

    """
    margins: list[Margin] = []
    lost: list[Margin] = []
    try:
        with np.errstate(all="ignore"):
            Walk(model, a, longest, EVALUATIONS[order], margins, lost).decided()
        why = ""
    except Unfollowed as stop:
        why = str(stop)
    except NotFinite as refusal:
        why = f"{refusal.where or 'weights'}: {refusal.invariant}; received {refusal.received}"
    except OverflowError:
        why = "a product of weights is larger than any float64"
    kept = Proof(tuple(margins), why)
    if kept.holds:
        return kept
    if not lost and not why:
        lost = sorted(margins, key=lambda margin: margin.share)
    return Proof(kept.margins, str(lost[0]) if lost else why)
