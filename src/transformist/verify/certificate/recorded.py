"""The error of every number of a circuit in an order of summation, and every margin, noted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.bounds import mean_error
from transformist.compiler.circuit import Fetched, Step
from transformist.compiler.forms import Form
from transformist.compiler.margins import ERRORS, Errors, Margins, magnitude
from transformist.language.node import Node
from transformist.laws import Bound, Range
from transformist.model import Transformer
from transformist.verify.certificate.statement import Demand


def weights_of(model: Transformer) -> Iterator[Any]:
    """All arrays of weights of layers and of the read-out."""
    parts: list[Any] = [head for layer in model.layers for head in layer.heads]
    parts += [layer.feed_forward for layer in model.layers if layer.feed_forward is not None]
    for part in (*parts, model.read_out):
        for each in fields(part):
            if isinstance(array := getattr(part, each.name), np.ndarray):
                yield array


@dataclass(eq=False)
class Recorded(Margins):
    """Margins that are noted, not required.

    Attributes:
        order: of summation.
        hidden, falling: as in `Lifted`.
        demands: all of them.
        place: where the next is.

    """

    order: str = "any"
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
        if isinstance(atom, Fetched) and self.order == "structured":
            errors = self.by_the_engine(number, atom, errors)
        self.errors.append(errors)
        size = magnitude(self.circuit.laws[number].size) + errors.absolute
        self.require(None, "the size of a number", size, self.a.largest)
        if self.circuit.bos and isinstance(atom, Step):
            self.require_at_bos(number, atom)

    def rounding(self, form: Form) -> float:
        """As it is; where constants are hidden, a number times 2ᵏ rounds beside them."""
        if form not in self.hidden or self.is_exact(form):
            return super().rounding(form)
        if 2 * self.size(form) >= self.a.largest:
            return math.inf
        return self._relative(form) * self.size(form) + self._underflow(form)

    def finite(self, model: Transformer, held: Iterable[Form]) -> None:
        """Note how large weights are, and sums that slots hold, whether they are read or not."""
        self.place = "weights"
        largest = max(magnitude(x) for each in weights_of(model) for x in np.ravel(each))
        self.require(None, "the size of a weight", largest, self.a.largest)
        self.place = "slots"
        sums = [self.size(form) + self.error(form) for form in held]
        self.require(None, "the size of what a slot holds", max(sums, default=0), self.a.largest)

    def size(self, form: Form) -> float:
        """As it is, with what its constants are more where they are added one by one."""
        return super().size(form) + magnitude(self.hidden.get(form, 0))

    def mean_error(self, size: Any) -> float:
        """How far a mean of numbers of this size can be off, in the order."""
        order = "any" if self.order == "any" else "reference"
        return mean_error(self.most, Fraction(size), self.a, order)

    def highest(self, number: int, atom: Step) -> Bound:
        """Of a step that falls, it is what is left of the zone above."""
        if number not in self.falling:
            return super().highest(number, atom)
        return max(atom.zone - row.lo for row in self.circuit.rows(atom.form))

    def crowded(self, units: int, large: float, total: float) -> float:
        """What adding units up costs, in the order: in any, all large ones may be added first."""
        if self.order != "any":
            return super().crowded(units, large, total)
        return (units - 1) * self.w * (2 * large + total)

    def by_the_engine(self, number: int, atom: Fetched, errors: Errors) -> Errors:
        """The structured engine is as far from the reference in float64 as `evaluate` says.

        In float32 it sums in float64, and is within the errors of the reference.
        """
        if self.a.name != "float64":
            return errors
        apart = (16 * self.most + 5000) * 2.0**-53 + 2.0**-40
        size = apart * self.size(atom.value)
        least = magnitude(self.circuit.separation(Form.atom(number)) or 0)
        return replace(
            errors,
            absolute=errors.absolute + size,
            scaled=errors.scaled + size * self.most,
            relative=errors.relative + size / least if least else math.inf,
        )

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
