"""Enumeration of the values that several numbers can have together, on any input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from transformist.circuit import (
    SEES_BOS,
    At,
    Circuit,
    Embedded,
    Fetched,
    Form,
    Head,
    Match,
    Relu,
    StepFunction,
)

MOST_CASES = 4096
"""Limit, for time, on the cases that are enumerated."""


def cases(circuit: Circuit, forms: Sequence[Form]) -> list[list[Fraction]] | None:
    """Return all values that forms can have together at a symbol, perhaps more; `None` if unknown.

    They are made of embedded numbers, of those that heads fetch from one row, which is of any
    symbol, the same for all that a head fetches, and of steps and ReLUs of these. A step of
    anything else may be 0 and 1.
    """
    follows = _following(circuit, max((atom for form in forms for atom in form.atoms), default=-1))
    numbers = _behind(circuit, forms, follows)
    free = [number for number in numbers if not follows[number]]
    if any(not isinstance(circuit.atoms[number], StepFunction) for number in free):
        return None
    atoms = [circuit.atoms[number] for number in numbers]
    heads = list(dict.fromkeys(atom.head for atom in atoms if isinstance(atom, Fetched)))
    choices: list[Sequence[int | None]] = [range(len(circuit.alphabet))]
    choices += [(0, 1)] * len(free) + [_sources(circuit, head) for head in heads]
    if math.prod(map(len, choices)) > MOST_CASES:
        return None
    found = []
    # Each case takes any symbol at the own row, any value of each free step, and any row for each
    # head. Some cases may belong to no input: more cases make a claim about all of them stronger.
    for own, *others in itertools.product(*choices):
        bits = zip(free, others[: len(free)], strict=True)
        values = {number: Fraction(bit or 0) for number, bit in bits}
        rows = dict(zip((None, *heads), (own, *others[len(free) :]), strict=True))
        for number in numbers:
            if number not in values:
                values[number] = _follow(circuit, number, values, rows)
        found.append([_value(values, form) for form in forms])
    return found


def _following(circuit: Circuit, last: int) -> list[bool]:
    """True for each atom that follows from symbols and steps."""
    known: list[bool] = []
    for atom in circuit.atoms[: last + 1]:
        read = [number for form in atom.reads for number in form.atoms]
        if isinstance(atom, Fetched):
            embedded = (isinstance(circuit.atoms[k], Embedded) for k in atom.value.atoms)
            known.append(_chooses_one(atom.head) and all(embedded))
        else:
            steps = isinstance(atom, StepFunction | Relu)
            of_these = (known[k] or isinstance(circuit.atoms[k], StepFunction) for k in read)
            known.append(isinstance(atom, Embedded) or (steps and all(of_these)))
    return known


def _chooses_one(head: Head) -> bool:
    """True if a head attends to at most one row."""
    return isinstance(head, At) or (isinstance(head, Match) and head.choose.endswith("most"))


def _sources(circuit: Circuit, head: Head) -> list[int | None]:
    """Kinds of rows of which a head fetches one at a symbol; `None` for no row."""
    kinds: list[int | None] = [*range(len(circuit.alphabet))]
    if circuit.bos and head.mask in SEES_BOS:
        return [*kinds, len(circuit.alphabet)]
    return [*kinds, None] if head.mask.startswith("strict") else kinds


def _behind(circuit: Circuit, forms: Iterable[Form], follows: Sequence[bool]) -> list[int]:
    """Atoms of forms, and the atoms from which the steps and ReLUs among them are computed."""
    found = {number for form in forms for number in form.atoms}
    for number in range(len(follows) - 1, -1, -1):
        atom = circuit.atoms[number]
        if number in found and follows[number] and isinstance(atom, StepFunction | Relu):
            found.update(atom.form.atoms)
    return sorted(found)


def _follow(
    circuit: Circuit,
    number: int,
    values: Mapping[int, Fraction],
    rows: Mapping[Head | None, int | None],
) -> Fraction:
    """Value of an atom, given the values of earlier atoms and the rows that heads fetch from."""
    atom = circuit.atoms[number]
    if isinstance(atom, Embedded):
        return _embedded(circuit, number, rows[None])
    if isinstance(atom, Fetched):
        row = rows[atom.head]
        fetched = {k: _embedded(circuit, k, row) for k in atom.value.atoms}
        return Fraction(0) if row is None else _value(fetched, atom.value)
    form = _value(values, atom.reads[0])
    return (
        # Its form is at most 0 or at least the zone at every symbol (`conditions.of_step`).
        Fraction(int(form >= atom.zone))
        if isinstance(atom, StepFunction)
        else max(form, Fraction(0))
    )


def _embedded(circuit: Circuit, number: int, row: int | None) -> Fraction:
    """Value of an embedded number at a kind of row."""
    atom = circuit.atoms[number]
    return atom.values[row] if isinstance(atom, Embedded) and row is not None else Fraction(0)


def _value(values: Mapping[int, Fraction], form: Form) -> Fraction:
    return form.constant + sum(factor * values[atom] for atom, factor in form.terms)
