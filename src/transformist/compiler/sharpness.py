"""1/τ of every softmax head, from what its results are used for.

Backwards from the output, each use of a number says how far off it may be; a head gets a part of
that for the weight it leaves elsewhere, which `circuit/shares` bounds, what it fetches another.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from transformist.circuit import Circuit, Fetched, Form, Head, ScoredHead, Tolerance
from transformist.rounding import rounded_up

OF_A_HEAD = Fraction(3, 8)
"""So much of what a fetched number may be off is for the weight that the head leaves elsewhere.

Half is for what it fetches, an eighth for weights that are to be equal and are not.
"""

LARGEST_SHARE = Fraction(1, 4)
"""More of the weight no head leaves elsewhere."""


def sharpnesses(circuit: Circuit, outputs: Iterable[Tolerance]) -> dict[Head, Fraction]:
    """1/τ for each head that has scores; 1 where the weighting is hard.

    Args:
        circuit: the atoms.
        outputs: what the read-out uses.

    """
    allowed: dict[int, Fraction] = {}
    first = _first_atoms(circuit)
    shares: dict[Head, Fraction] = {}
    found: dict[Head, Fraction] = {}

    def use(each: Tolerance) -> None:
        inexact = [(a, f) for a, f in each.form.terms if circuit.is_approximate(Form.atom(a))]
        weight = sum((abs(factor) for _, factor in inexact), Fraction(0))
        for atom, _ in inexact:
            limit = each.allowed / weight
            allowed[atom] = min(allowed.get(atom, limit), limit)

    for output in outputs:
        use(output)
    for number in range(len(circuit.atoms) - 1, -1, -1):
        atom = circuit.atoms[number]
        for each in atom.tolerances(allowed.get(number)):
            use(each)
        if not isinstance(atom, Fetched):
            continue
        head = atom.head
        if number in allowed and (spread := _diameter(circuit, atom.value)):
            share = allowed[number] * OF_A_HEAD / spread
            shares[head] = min(shares.get(head, LARGEST_SHARE), share)
        if first[head] == number:
            found[head] = _sharpness(circuit, head, shares.get(head, LARGEST_SHARE))
            share = shares.get(head, Fraction(1))
            for each in head.tolerances(circuit, found[head], share):
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
    if circuit.weighting != "softmax" or not isinstance(head, ScoredHead):
        return Fraction(1)
    return max(rounded_up(head.least_sharpness(circuit, float(share))), Fraction(1))
