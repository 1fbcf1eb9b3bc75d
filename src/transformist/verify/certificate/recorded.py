"""The error of every number of a circuit in an order of summation, and every margin, noted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from transformist.bounds import mean_error
from transformist.compiler.circuit import Step
from transformist.compiler.forms import Form
from transformist.compiler.margins import ERRORS, Margins, magnitude
from transformist.language.node import Node
from transformist.laws import Range
from transformist.verify.certificate.statement import Demand


@dataclass(eq=False)
class Recorded(Margins):
    """Margins that are noted, not required.

    Attributes:
        order: of summation.
        rounds: how often a number rounds as it is written.
        hidden, falling: as in `Lifted`.
        demands: all of them.
        place: where the next is.

    """

    order: str = "any"
    rounds: int = 0
    hidden: dict[Form, Fraction] = field(default_factory=dict)
    falling: set[int] = field(default_factory=set)
    demands: list[Demand] = field(default_factory=list)
    place: str = ""

    def follow(self, number: int) -> None:
        """Note the errors of the next atom, and its margins."""
        atom = self.circuit.atoms[number]
        self.place = self.circuit.names[number]
        errors = ERRORS[type(atom)](self, atom, None)
        if number in self.falling:  # it is 0 where the difference of two numbers is 1
            errors = replace(errors, relative=math.inf)
        self.errors.append(errors)
        if self.circuit.bos and isinstance(atom, Step):
            self.require_at_bos(number, atom)

    @property
    def written(self) -> int:
        """How often a number rounds as it is written."""
        return self.rounds

    def size(self, form: Form) -> float:
        """As it is, with what its constants are more where they are added one by one."""
        return super().size(form) + magnitude(self.hidden.get(form, 0))

    def mean_error(self, size: Any) -> float:
        """How far a mean of numbers of this size can be off, in the order."""
        return mean_error(self.most, Fraction(size), self.a, self.order)

    def crowded(self, units: int, large: float, total: float) -> float:
        """What adding units up costs, in the order: in any, all large ones may be added first."""
        if self.order == "reference":
            return super().crowded(units, large, total)
        return (units - 1) * self.w * (2 * large + total)

    def require(self, node: Node | None, what: str, error: float, allowed: Any) -> None:
        """Note a margin."""
        self.demands.append(Demand(self.place, what, float(error), magnitude(allowed)))

    def require_at_bos(self, number: int, atom: Step) -> None:
        """A step is 0 or 1 at BOS, too: where it is known there, and where BOS stands alone."""
        circuit, anywhere = self.circuit, self.error(atom.form - atom.zone / 4)
        ranges = [Range.of(circuit.over_nothing(atom.form))]
        if circuit.laws[number].rows[-1].is_point:
            ranges.append(circuit.span_at_bos(atom.form))
        for each in ranges:
            at = max(each.hi, atom.zone)
            error = min(anywhere, self.comparison_error(atom.form, at))
            beside = max(atom.zone / 4 - each.hi, each.lo - 3 * atom.zone / 4, Fraction(0))
            self.require(None, "the error of a comparison at BOS", error, beside)
