"""Rows of weights as forms of what slots hold, in which nothing cancels."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from transformist.circuit import Form, total
from transformist.model import rationals
from transformist.verify.certificate.refusals import uncertifiable

Cancelled: TypeAlias = "MutableMapping[Form, Fraction]"
"""Excess of the summed magnitudes of the constants in a form over its own constant."""


def read(
    matrix: Any, shift: Any, state: Sequence[Form], cancelled: Cancelled | None = None
) -> list[Form]:
    """Return the rows of W z + b as forms in which only constants cancel, which `cancelled` notes.

    Raises:
        Uncertifiable: where slots that hold the same atom take each other away.

    """
    weights, shifts = rationals(matrix), rationals(shift)
    forms = []
    for row, constant in zip(weights, shifts, strict=True):
        parts = [state[slot] * row[slot] for slot in np.flatnonzero(row).tolist()]
        forms.append(together([*parts, Form.of(constant)], cancelled))
    return forms


def together(parts: Iterable[Form], cancelled: Cancelled | None = None) -> Form:
    """Return the sum of forms of different atoms: a rounding in one still shows in the sum.

    Raises:
        Uncertifiable: where parts take each other away.

    """
    listed = list(parts)
    form = total(listed)
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
