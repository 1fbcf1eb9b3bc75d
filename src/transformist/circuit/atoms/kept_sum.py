"""Sums that a slot holds. They are read off weights; the compiler makes none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from transformist.circuit.atom_errors import Errors
from transformist.circuit.circuit import Circuit, Law
from transformist.circuit.forms import Form
from transformist.circuit.margins import Margins, RoundedAtom
from transformist.laws import Grid


@dataclass(frozen=True)
class Kept(RoundedAtom):
    """A form that a slot holds after more was added to it."""

    form: Form

    @property
    def reads(self) -> tuple[Form, ...]:
        return (self.form,)

    def law(self, circuit: Circuit) -> Law:
        form = self.form
        # The number is the form: adding up and storing change its error alone.
        return Law(circuit.rows(form), circuit.grid(form), circuit.separation(form))

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return circuit.over_nothing(self.form)

    def grid_at_bos(self, circuit: Circuit, number: int) -> Grid | None:
        return circuit.grid_at_bos(self.form)

    def errors(self, margins: Margins, number: int) -> Errors:
        """The error of the form, including the rounding of the partial sums that were stored."""
        return Errors(margins.error(self.form), margins.scaled_error(self.form))

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"{text_of(self.form)}, in one slot"
