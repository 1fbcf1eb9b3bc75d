"""What slots hold as forms, and what is known of a form that is read off weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from transformist.circuit import (
    Form,
    total,
)
from transformist.errors import InvalidValue
from transformist.model import rationals


class Unlawful(InvalidValue):
    """A model of which too little is known for a certificate.

    Attributes:
        after_a_sum: whether a slot goes on to hold a sum before what is refused.

    """

    after_a_sum: bool = False


def unlawful(invariant: str, received: str, where: str) -> Unlawful:
    """The refusal."""
    return Unlawful(
        invariant,
        received=received,
        where=where,
        remedy="certify a compiled program, or a recipe built of means, matches and steps",
    )


Hidden: TypeAlias = "MutableMapping[Form, Fraction]"
"""By how much the constants that a form is added up of are larger than its own."""


def read(matrix: Any, shift: Any, state: list[Form], hidden: Hidden | None = None) -> list[Form]:
    """The rows of W z + b as forms, in which nothing cancels, or only constants, which is noted.

    Raises:
        Unlawful: where slots that hold the same atom take each other away.

    """
    weights, shifts = rationals(matrix), rationals(shift)
    forms = []
    for row, constant in zip(weights, shifts, strict=True):
        parts = [state[slot] * row[slot] for slot in np.flatnonzero(row != 0)]
        forms.append(together([*parts, Form.of(constant)], hidden))
    return forms


def together(parts: Iterable[Form], hidden: Hidden | None = None) -> Form:
    """The sum of forms of different atoms: what rounds in each still rounds in the sum.

    Raises:
        Unlawful: where parts take each other away.

    """
    listed = list(parts)
    form = total(listed)
    if _bottom([form]) % _bottom(listed):
        raise unlawful("what is added up is on the grid of the sum", f"{form}", "a sum")
    cancelled = sum(abs(part.constant) for part in listed) - abs(form.constant)
    if hidden is not None and cancelled:
        hidden[form] = max(cancelled, hidden.get(form, Fraction(0)))
        cancelled = Fraction(0)
    atoms = [atom for part in listed for atom in part.atoms]
    if len(set(atoms)) < len(atoms):
        raise unlawful("a number is added up once", f"{form}", "a sum")
    if cancelled:
        raise unlawful("what is added up does not cancel", f"{form}", "a sum")
    return form


def _bottom(forms: Iterable[Form]) -> int:
    """The common denominator of all factors and constants."""
    numbers = (x for form in forms for x in (*form.factors.values(), form.constant))
    return math.lcm(*(x.denominator for x in numbers))
