"""1/τ of every softmax head, from what its results are used for.

Backwards from the output, each use of a number says how far off it may be; a head gets a part of
that for the weight it leaves elsewhere, which `circuit/shares` bounds, what it fetches another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from transformist.circuit import (
    INDEX_ERROR,
    MEAN_SCORE_ERROR,
    SCORE_ERROR,
    At,
    Circuit,
    Fetched,
    Form,
    Head,
    Match,
    Relu,
    StepFunction,
    Uniform,
    scale_divisor,
)
from transformist.rounding import rounded_up

OF_A_HEAD = Fraction(3, 8)
"""So much of what a fetched number may be off is for the weight that the head leaves elsewhere.

Half is for what it fetches, an eighth for weights that are to be equal and are not.
"""

LARGEST_SHARE = Fraction(1, 4)
"""More of the weight no head leaves elsewhere."""


@dataclass(frozen=True)
class Use:
    """A form that is used, and how far off it may be."""

    form: Form
    allowed: Fraction


def sharpnesses(circuit: Circuit, outputs: Iterable[Use]) -> dict[Head, Fraction]:
    """1/τ for each head that has scores; 1 where the weighting is hard.

    Args:
        circuit: the atoms.
        outputs: what the read-out uses.

    """
    allowed: dict[int, Fraction] = {}
    first = _first_atoms(circuit)
    shares: dict[Head, Fraction] = {}
    found: dict[Head, Fraction] = {}

    def use(each: Use) -> None:
        inexact = [(a, f) for a, f in each.form.terms if circuit.is_approximate(Form.atom(a))]
        weight = sum((abs(factor) for _, factor in inexact), Fraction(0))
        for atom, _ in inexact:
            limit = each.allowed / weight
            allowed[atom] = min(allowed.get(atom, limit), limit)

    for output in outputs:
        use(output)
    for number in range(len(circuit.atoms) - 1, -1, -1):
        atom = circuit.atoms[number]
        if isinstance(atom, StepFunction):
            use(Use(atom.form, atom.zone / 8))
        elif number in allowed and isinstance(atom, Relu):
            use(Use(atom.form, allowed[number]))
        elif number in allowed and isinstance(atom, Fetched):
            use(Use(atom.value, allowed[number] / 2))
            spread = _diameter(circuit, atom.value)
            if spread:
                share = allowed[number] * OF_A_HEAD / spread
                shares[atom.head] = min(shares.get(atom.head, LARGEST_SHARE), share)
        if isinstance(atom, Fetched) and first[atom.head] == number:
            head = atom.head
            found[head] = _sharpness(circuit, head, shares.get(head, LARGEST_SHARE))
            for each in USES[type(head)](circuit, head, found[head], shares.get(head, Fraction(1))):
                use(each)
    return found


def _first_atoms(circuit: Circuit) -> dict[Head, int]:
    first: dict[Head, int] = {}
    for number, atom in enumerate(circuit.atoms):
        if isinstance(atom, Fetched):
            first.setdefault(atom.head, number)
    return first


def _diameter(circuit: Circuit, value: Form) -> Fraction:
    rows = circuit.rows(value)
    return Fraction(max(row.hi for row in rows) - min(row.lo for row in rows))


def _sharpness(circuit: Circuit, head: Head, share: Fraction) -> Fraction:
    if circuit.weighting != "softmax" or isinstance(head, Uniform):
        return Fraction(1)
    return max(rounded_up(LEAST_SHARPNESS[type(head)](circuit, head, float(share))), Fraction(1))


def _match_sharpness(circuit: Circuit, head: Match, share: float) -> float:
    if head.choose == "mean":
        return 8 / 3 * math.log(float(circuit.longest + 1) / share)
    return 2 * math.log1p(1 / share)


def _at_sharpness(circuit: Circuit, head: At, share: float) -> float:
    return 4 * math.log1p(2 / share) * scale_divisor(circuit, head)


LEAST_SHARPNESS: Mapping[type[Any], Callable[[Circuit, Any, float], float]] = {
    Match: _match_sharpness,
    At: _at_sharpness,
}
"""A 1/τ that leaves at most this share of the weight elsewhere."""


def _match_uses(_circuit: Circuit, head: Match, sharpness: Fraction, share: Fraction) -> list[Use]:
    limit = SCORE_ERROR / 2 / head.scale
    if head.choose == "mean":
        limit = min(MEAN_SCORE_ERROR / 2, share / (8 * sharpness))
    forms = (*head.keys, *head.queries)
    return [Use(form, limit / (2 * len(forms))) for form in forms]


def _at_uses(circuit: Circuit, head: At, _sharpness: Fraction, _share: Fraction) -> list[Use]:
    return [Use(head.index, INDEX_ERROR / 4 / scale_divisor(circuit, head))]


USES: Mapping[type[Any], Callable[[Circuit, Any, Fraction, Fraction], list[Use]]] = {
    Uniform: lambda *_: [],
    Match: _match_uses,
    At: _at_uses,
}
"""How far off the queries and keys of each kind of head may be."""
