"""Sharpness 1/τ of every softmax head, from what the numbers that it fetches are used for.

The pass goes backwards through the circuit. The read-out and every step state how far off the forms
they read may be (`Tolerance`). The tolerance of a form is divided among its inexact atoms, and each
atom passes its own on to what it reads. When a head is reached, all uses of what it fetches are
known: they give the stray weight that it may leave, and that its sharpness.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from transformist.circuit import Circuit, Fetched, Form, Head, ScoredHead, Tolerance

STRAY_PART = Fraction(3, 8)
"""Part of the tolerance of a fetched number that is spent on stray weight.

The budget of a lookup: 3/8 stray weight, 1/2 error of the value (`Fetched.tolerances`), 1/8 unequal
weights of equal scores. For the last, `Match.tolerances` gives a mean at most share/4 times the
diameter of the value, which is 1/4 of 3/8 of the tolerance: 3/32, below 1/8.
"""

LARGEST_SHARE = Fraction(1, 4)
"""Upper limit on stray weight, also for a number whose uses set none.

Any limit below 1 would be sound. With this one 1/τ is at least 2 ln 5 for a match and 4 ln 9 for a
lookup in positions, so that `ScoredHead` can count the weights that round a sum (β ≥ 1).
"""


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
        inexact = [(a, f) for a, f in each.form.terms if circuit.is_atom_approximate(a)]
        weight = sum((abs(factor) for _, factor in inexact), Fraction(0))
        for atom, _ in inexact:
            # Σ |factor| · limit = allowed: the same error for each inexact atom
            limit = each.allowed / weight
            allowed[atom] = min(allowed.get(atom, limit), limit)

    for output in outputs:
        use(output)
    # An atom is read by later atoms only. So in this order all uses of an atom are known when it is
    # met.
    for number in range(len(circuit.atoms) - 1, -1, -1):
        atom = circuit.atoms[number]
        for each in atom.tolerances(allowed.get(number)):
            use(each)
        if not isinstance(atom, Fetched):
            continue
        head = atom.head
        if number in allowed and (spread := _diameter(circuit, atom.value)):
            # stray weight s moves what is fetched by at most s times the spread of the value
            share = allowed[number] * STRAY_PART / spread
            shares[head] = min(shares.get(head, LARGEST_SHARE), share)
        # The first atom of a head is met last: now the uses of everything that the head fetches are
        # known.
        if first[head] == number:
            found[head] = sharpness_for(circuit, head, float(shares.get(head, LARGEST_SHARE)))
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
    return Fraction(circuit.rows(value).hull().diameter)


def sharpness_for(circuit: Circuit, head: Head, share: float) -> Fraction:
    """1/τ of a head that may leave this share of the weight off target."""
    if circuit.weighting != "softmax" or not isinstance(head, ScoredHead):
        return Fraction(1)
    return max(head.short_sharpness(head.least_sharpness(circuit, share)), Fraction(1))
