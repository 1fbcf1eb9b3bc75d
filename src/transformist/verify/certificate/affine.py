"""Rows of weights as forms of what slots hold, in which nothing cancels."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.circuit import SHARED_ZERO, Form, total
from transformist.verify.certificate.refusals import uncertifiable
from transformist.verify.proof.sparse_rows import SparseRow, exactly, sparse_row, sparse_rows

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
    products = dict[tuple[int, Any], Form]()  # many rows read a slot with few weights
    # Parts of each row of W, and their sum if neither has a constant: two units of a step have one
    # row, and b is the only constant that is added to this sum, so nothing cancels.
    sums = dict[SparseRow, tuple[list[Form], Form | None]]()
    for row, constant in zip(sparse_rows(matrix), shift.tolist(), strict=True):
        if row not in sums:
            for slot, weight in row:
                if (slot, weight) not in products:
                    products[slot, weight] = state[slot] * exactly(weight)
            parts = [products[term] for term in row]
            form = total(parts)
            is_plain = _are_apart(parts, form) and not form.constant
            sums[row] = parts, form if is_plain else None
        parts, plain = sums[row]
        if plain is not None:
            forms.append(plain + exactly(constant))
        else:
            forms.append(together([*parts, *[Form.of(constant)] * bool(constant)], cancelled))
    return forms


def column_values(column: Any) -> tuple[Fraction, ...]:
    """Return the numbers of a column exactly; zeros are one object, so they are compared fast."""
    values = [SHARED_ZERO] * len(column)
    for place, x in sparse_row(column):
        values[place] = Fraction(x)
    return tuple(values)


def is_constant(values: Sequence[Fraction]) -> bool:
    """True if all numbers of a column are equal."""
    # `count` compares objects before it compares numbers, and most numbers are one object, 0.
    return values.count(values[0]) == len(values)


def together(parts: Iterable[Form], cancelled: Cancelled | None = None) -> Form:
    """Return the sum of forms of different atoms: a rounding in one still shows in the sum.

    Raises:
        Uncertifiable: where parts take each other away.

    """
    listed = list(parts)
    form = total(listed)
    if _are_apart(listed, form):
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


def _are_apart(parts: Sequence[Form], form: Form) -> bool:
    """True if parts have different atoms and one constant at most.

    Then nothing is added up, so nothing cancels.
    """
    are_different = len(form.terms) == sum(len(part.terms) for part in parts)
    return are_different and sum(bool(part.constant) for part in parts) < 2


def _bottom(forms: Iterable[Form]) -> int:
    """Common denominator of all factors and constants."""
    numbers = (x for form in forms for x in (*form.factors.values(), form.constant))
    return math.lcm(*(x.denominator for x in numbers))
