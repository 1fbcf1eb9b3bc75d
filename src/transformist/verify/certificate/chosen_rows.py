"""Choice of the rows of a read-out whose forms are needed: for a count of thousands only a few."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from transformist.circuit import Circuit, Form, Number, total
from transformist.circuit.readings import form_of
from transformist.model import ReadOut
from transformist.verify.certificate.counted_labels import CountForms, count_of_rows
from transformist.verify.certificate.slot_contents import Contents


def needed_rows(
    circuit: Circuit, read_out: ReadOut, contents: Contents, state: Sequence[Form]
) -> tuple[Sequence[int], CountForms | None]:
    """Return the rows whose forms the margins of answers need, and the count if there is one.

    Args:
        circuit: the atoms.
        read_out: the read-out.
        contents: the contents of slots, as they are computed.
        state: their forms.

    """
    count = count_of_rows(circuit, read_out, state)
    if count is None:
        return range(len(read_out.W_out)), None
    return read_elsewhere(read_out, contents, state), count


def read_elsewhere(read_out: ReadOut, contents: Contents, state: Sequence[Form]) -> Sequence[int]:
    """Return the rows that `affine.read` may refuse, or whose form another sum may have.

    No number is computed from an answer, so leaving out another row changes no line. A row is
    refused only where its summands cancel. None do if its slots hold different atoms, at most one
    summand (the bias is one) is a constant, and each slot is computed from the atoms of its form.
    """
    known = {form.atoms for form in contents.readings.sums}
    is_read = np.column_stack([read_out.W_out != 0, read_out.b_out != 0])
    chosen = dict[bytes, bool]()  # many rows read the same slots
    packed = np.packbits(is_read, axis=1)
    patterns = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    for row, pattern in enumerate(patterns):
        if pattern not in chosen:
            *slots, is_shifted = is_read[row].tolist()
            read = np.flatnonzero(slots).tolist()
            held = [number for slot in read if (number := contents.held[slot]) is not None]
            atoms = _atoms_together([state[slot] for slot in read], is_shifted, held)
            chosen[pattern] = atoms is None or atoms in known
    return [row for row, pattern in enumerate(patterns) if chosen[pattern]]


def _atoms_together(
    parts: Sequence[Form], is_shifted: bool, held: Sequence[Number]
) -> tuple[int, ...] | None:
    """Return the atoms of slots that hold different ones and one constant at most, or `None`."""
    atoms = sorted(itertools.chain.from_iterable(form.atoms for form in parts))
    are_apart = len(set(atoms)) == len(atoms)
    one_constant = sum(bool(form.constant) for form in parts) + is_shifted < 2
    are_alike = total(map(form_of, held)).linear == total(parts).linear
    return tuple(atoms) if are_apart and one_constant and are_alike else None
