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
"""By how much the constants that a form is added up of are larger than its own."""


def read(
    matrix: Any, shift: Any, state: Sequence[Form], cancelled: Cancelled | None = None
) -> list[Form]:
    """The rows of W z + b as forms, in which nothing cancels, or only constants, which is noted.

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
    """The sum of forms of different atoms: what rounds in each still rounds in the sum.

    Raises:
        Uncertifiable: where parts take each other away.

    """
    listed = list(parts)
    form = total(listed)
    if _bottom([form]) % _bottom(listed):
        raise uncertifiable("what is added up is on the grid of the sum", f"{form}", "a sum")
    lost = sum(abs(part.constant) for part in listed) - abs(form.constant)
    if cancelled is not None and lost:
        cancelled[form] = max(lost, cancelled.get(form, Fraction(0)))
        lost = Fraction(0)
    atoms = [atom for part in listed for atom in part.atoms]
    if len(set(atoms)) < len(atoms):
        raise uncertifiable("a number is added up once", f"{form}", "a sum")
    if lost:
        raise uncertifiable("what is added up does not cancel", f"{form}", "a sum")
    return form


def _bottom(forms: Iterable[Form]) -> int:
    """The common denominator of all factors and constants."""
    numbers = (x for form in forms for x in (*form.factors.values(), form.constant))
    return math.lcm(*(x.denominator for x in numbers))
