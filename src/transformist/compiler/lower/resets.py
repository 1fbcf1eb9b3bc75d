"""Resets: numbers whose error has grown are set back to the values that they can have.

A subexpression that is a Boolean, a category or a number of listed values has a form which is one
of few values. Each ReLU and each head hands on the error of what it reads, and a form of several
atoms adds their errors up: along a chain of subexpressions the error doubles at each, and so does
the range that the laws know. A reset puts an end to both. For values v₀ < v₁ < … < vₘ it is

    v₀ + Σ_{k ≥ 1} (vₖ − vₖ₋₁) [x > vₖ₋₁],

a step for each value but the first. Its error is that of m steps, whatever the error of x was.

A conjunction is a ReLU if its form is made of whole numbers, and a step otherwise. The step has one
more hidden unit and takes no more layers, so it also replaces a ReLU whose error has grown.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from transformist.circuit import Form
from transformist.compiler.format_margins import GrowingErrors

MOST_VALUES = 64
"""Largest number of values of a number that is reset: each value takes two hidden units."""


EARLIER = 8
"""A conjunction becomes a step at 1/8 of the error at which another form is reset.

The step costs no layer, so it is taken three doublings before a reset would be due.
"""


@dataclass(eq=False)
class Resets:
    """The resets of a circuit that still grows, where errors by rounding reach a limit.

    A step grants what it reads the same tolerance wherever it stands, so stray weight of heads does
    not add up from reset to reset.

    Attributes:
        errors: error bounds by rounding.
        part: the part of the distance of two values that the error of a form may reach.
        made: True if there is a reset, or a step in place of a ReLU.

    """

    errors: GrowingErrors
    part: Fraction
    made: bool = False

    def step_is_due(self, form: Form) -> bool:
        """True if the conjunction with this form has to be a step, not a ReLU."""
        is_due = self.errors.of(form) > self.part / EARLIER
        self.made |= is_due
        return is_due

    def values_of(self, form: Form, values: Sequence[Any]) -> list[Fraction]:
        """The values to which a form is set back; none if its error has not grown.

        Args:
            form: at each symbol one of the values.
            values: in their order; those outside the range of the form do not occur.

        """
        within = self.errors.circuit.span(form)
        listed = [Fraction(each) for each in values if within.lo <= each <= within.hi]
        if form.is_constant or not 1 < len(listed) <= MOST_VALUES:
            return []
        gap = min(high - low for low, high in itertools.pairwise(listed))
        if self.errors.of(form) <= self.part * gap:
            return []
        self.made = True
        return listed
