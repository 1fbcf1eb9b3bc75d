"""A drawn model is certified and, where the certificate holds, tried on every input to N."""

from __future__ import annotations

import random
from dataclasses import dataclass

from drawing import Drawn, drawn
from evaluations import Flash, NotANumber, Permuted, Reference
from in_rationals import Ideal

from transformist.errors import TransformistError
from transformist.verify.certificate.certification import Certification

ORDERS_TRIED = 2
"""So many permutations of every sum are drawn for a model."""

EXP2_ERROR = 2.0**-20
"""ε of the approximate exp2 of kernels, which the order of that name is for."""


@dataclass(frozen=True)
class Outcome:
    """What became of a drawn model, and the grade where its certificate holds.

    It is `refused`; `open`, where the certificate says that it does not hold; it `holds`, or is
    `false`; or `broken`, where certify raised an exception that is none of the library's.
    """

    kind: str
    seed: int
    verdict: str
    grade: int = 0
    what: str = ""

    @property
    def column(self) -> str:
        """As a table has it: what holds is told by its grade."""
        return f"grade {self.grade}" if self.verdict == "holds" else self.verdict


def certificate_of(each: Drawn):
    """The certificate for N that `certify` gives; `None` if refused.

    `certify` would also search for the largest length of a certificate that does not hold, which
    takes as long as everything else together.
    """
    N = each.model.max_length
    try:
        return Certification(each.model, each.a, N, each.order).certificate(N)
    except TransformistError:
        return None


def evaluations_of(each: Drawn, permutations: int = ORDERS_TRIED) -> dict:
    """Evaluations of which a certificate for an order speaks, by their names.

    That for any order speaks of the reference as well; that of kernels in blocks of no other.
    """
    draws = [random.Random(f"{each.kind} {each.seed} permuted {k}") for k in range(permutations)]
    if each.order == "flash":
        return {
            f"blocks {k}": Flash(each.model, each.a, draw, draw.choice((1, 2, 3)), EXP2_ERROR)
            for k, draw in enumerate(draws)
        }
    found = {"reference": Reference(each.model, each.a)}
    if each.order == "any":
        found |= {
            f"permutation {k}": Permuted(each.model, each.a, draw) for k, draw in enumerate(draws)
        }
    return found


def counterexample(each: Drawn, permutations: int = ORDERS_TRIED) -> str:
    """The first input on which the format does not decide as the weights do exactly; "" if none."""
    ideal = Ideal(each.model)
    evaluations = evaluations_of(each, permutations)
    for inputs in each.inputs:
        right = [ideal.answer(x) for x in inputs]
        for name, evaluation in evaluations.items():
            try:
                found = evaluation.answers(inputs)
            except (NotANumber, TransformistError) as error:
                return f"{name}: {error} on inputs of length {len(inputs[0])}"
            for x, y, z in zip(inputs, right, found, strict=True):
                if y is not None and y != z:
                    return f"{name}: {z} instead of {y} on {''.join(x)!r}"
    return ""


def has_norms(model) -> bool:
    norms = [norm for layer in model.layers for norm in (*layer.pre_norms, *layer.post_norms)]
    return any(norms) or model.final_norm is not None


def tried(kind: str, seed: int) -> Outcome:
    """Draw, certify, try."""
    each = drawn(kind, seed)
    try:
        found = certificate_of(each)
    except Exception as error:  # of another family than the library's
        what = f"{each}: {type(error).__name__}: {error}"
        return Outcome(kind, seed, "broken", what=what)
    if found is None:
        return Outcome(kind, seed, "refused")
    if not found.holds:
        return Outcome(kind, seed, "open")
    wrong = counterexample(each)
    what = wrong and f"{each}, grade {found.grade}: {wrong}"
    return Outcome(kind, seed, "false" if wrong else "holds", found.grade, what)
