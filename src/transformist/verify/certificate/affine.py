"""Rows of weights as forms of what slots hold, in which nothing cancels."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.circuit import SHARED_ZERO, Form, total
from transformist.verify.certificate.refusals import uncertifiable
from transformist.verify.proof.sparse_rows import exactly, sparse_row, sparse_rows

Cancelled: TypeAlias = "MutableMapping[Form, Fraction]"
"""Excess of the summed magnitudes of the constants in a form over its own constant."""


def read(
    matrix: Any, shift: Any, state: Sequence[Form], cancelled: Cancelled | None = None
) -> list[Form]:
    """Return the rows of W z + b as forms in which only constants cancel, which `cancelled` notes.

    Raises:
        Uncertifiable: where slots that hold the same atom take each other away.

    """
    forms = []
    for row, constant in zip(sparse_rows(matrix), shift.tolist(), strict=True):
        parts = [state[slot] * exactly(weight) for slot, weight in row]
        parts += [Form.of(constant)] * bool(constant)
        forms.append(together(parts, cancelled))
    return forms


def column_values(column: Any) -> tuple[Fraction, ...]:
    """Return the numbers of a column exactly; zeros are one object, so they are compared fast."""
    values = [SHARED_ZERO] * len(column)
    for place, x in sparse_row(column):
        values[place] = Fraction(x)
    return tuple(values)


def is_constant(values: Sequence[Fraction]) -> bool:
    """True if all numbers of a column are equal."""
    return all(value is values[0] or value == values[0] for value in values)


def together(parts: Iterable[Form], cancelled: Cancelled | None = None) -> Form:
    """Return the sum of forms of different atoms: a rounding in one still shows in the sum.

    Raises:
        Uncertifiable: where parts take each other away.

    """
    listed = list(parts)
    form = total(listed)
    # Different atoms and one constant at most: nothing is added up, so nothing cancels.
    if len(form.terms) == sum(len(part.terms) for part in listed) and (
        sum(bool(part.constant) for part in listed) < 2
    ):
        return form
    # 1/3 + 2/3 = 1 is on the grid of whole numbers, but its summands round: such sums are refused.
    if _bottom([form]) % _bottom(listed):
        raise uncertifiable("summands must be on the grid of their sum", f"{form}", "a sum")
    lost = sum(abs(part.constant) for part in listed) - abs(form.constant)
    if cancelled is not None and lost:
        cancelled[form] = max(lost, cancelled.get(form, Fraction(0)))
        lost = Fraction(0)
    # x − x/2 is computed from two numbers that round, and x/2 is one.
    atoms = [atom for part in listed for atom in part.atoms]
    if len(set(atoms)) < len(atoms):
        raise uncertifiable("a number must be added once", f"{form}", "a sum")
    if lost:
        raise uncertifiable("summands must not cancel", f"{form}", "a sum")
    return form


def _bottom(forms: Iterable[Form]) -> int:
    """Common denominator of all factors and constants."""
    numbers = (x for form in forms for x in (*form.factors.values(), form.constant))
    return math.lcm(*(x.denominator for x in numbers))
