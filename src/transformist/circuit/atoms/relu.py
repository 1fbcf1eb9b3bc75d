"""ReLUs of forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from transformist.circuit.atom_errors import Errors
from transformist.circuit.circuit import Circuit, Law, Tolerance
from transformist.circuit.forms import Form, HashedOnce
from transformist.circuit.margins import Margins, RoundedAtom
from transformist.laws import Grid, Range


@dataclass(frozen=True)
class Relu(RoundedAtom, HashedOnce):
    """max(form, 0)."""

    form: Form

    def __hash__(self) -> int:
        return self._hash

    @property
    def reads(self) -> tuple[Form, ...]:
        return (self.form,)

    @cached_property
    def hidden_units(self) -> tuple[tuple[Form, Fraction], ...]:
        return ((self.form, Fraction(1)),)

    def law(self, circuit: Circuit) -> Law:
        rows = circuit.rows(self.form).mapped(Range.relu)
        return Law(rows, circuit.grid(self.form), circuit.separation(self.form))

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return max(circuit.over_nothing(self.form), Fraction(0))

    def grid_at_bos(self, circuit: Circuit, number: int) -> Grid | None:
        return circuit.grid_at_bos(self.form)

    def errors(self, margins: Margins, number: int) -> Errors:
        """The error of the form: |max(x, 0) − max(y, 0)| ≤ |x − y|.

        Where the form is below −error, the computed form is negative, and the ReLU is exactly 0.
        """
        error = margins.error(self.form)
        rows = margins.circuit.rows(self.form)
        silent = frozenset(rows.where(lambda row: row.hi < -error))
        return Errors(error, margins.scaled_error(self.form), silent=silent)

    def tolerances(self, allowed: Fraction | None) -> list[Tolerance]:
        return [] if allowed is None else [Tolerance(self.form, allowed)]

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"ReLU({text_of(self.form)})"
