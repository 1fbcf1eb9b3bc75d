"""Numbers that a head fetches; `circuit/heads` has the laws of each kind of head."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.circuit import Circuit, Head, Law, Tolerance
from transformist.circuit.forms import Form, HashedOnce
from transformist.circuit.margins import Margins, RoundedAtom, RoundedHead
from transformist.circuit.seen_rows import CAUSAL
from transformist.laws import Grid


@dataclass(frozen=True)
class Fetched(RoundedAtom, HashedOnce):
    """A form at the rows that a head attends to."""

    head: Head
    value: Form

    def __hash__(self) -> int:
        return self._hash

    @property
    def reads(self) -> tuple[Form, ...]:
        return (*self.head.forms, self.value)

    @property
    def reads_alone(self) -> tuple[Form, ...]:
        return (self.value,)

    @property
    def fetched_by(self) -> Head | None:
        return self.head

    def law(self, circuit: Circuit) -> Law:
        return self.head.law(circuit, self.value)

    def over_nothing(self, circuit: Circuit) -> Fraction:
        """The value at BOS, which attends to itself alone, or to nothing under a strict mask."""
        if self.head.mask.startswith("strict"):
            return Fraction(0)
        return circuit.over_nothing(self.value)

    def grid_at_bos(self, circuit: Circuit, number: int) -> Grid | None:
        """Grid at BOS: under a causal mask BOS attends to itself, or to nothing, which gives 0."""
        if self.head.mask in CAUSAL:
            is_strict = self.head.mask.startswith("strict")
            return Grid(1) if is_strict else circuit.grid_at_bos(self.value)
        return self.head.grid_at_bos(circuit, number, self.value)

    def one_over(self, circuit: Circuit) -> str | None:
        return self.head.one_over(circuit, self.value)

    def errors(self, margins: Margins, number: int) -> Errors:
        """Errors of the head, and the additional error of the order of summation."""
        assert isinstance(self.head, RoundedHead)
        errors = self.head.errors(margins, self.value, number)
        # The bounds of heads are those of the reference. The structured engine evaluates a head by
        # other methods: `apart` bounds how far its result is from that of the reference, relative
        # to the largest value.
        apart = margins.order.apart(margins.most, margins.a)
        if not apart:
            return errors
        size = apart * margins.reach(self.value)
        # A number other than 0 is at least its separation, so an absolute error is at most this
        # part of it.
        least = magnitude(margins.circuit.separation(Form.atom(number)) or 0)
        return replace(
            errors,
            absolute=errors.absolute + size,
            scaled=errors.scaled + size * margins.most,
            relative=errors.relative + size / least if least else math.inf,
        )

    def tolerances(self, allowed: Fraction | None) -> list[Tolerance]:
        """Half of the tolerance is for the value; `compiler/sharpness` spends the other half."""
        return [] if allowed is None else [Tolerance(self.value, allowed / 2)]

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"{self.head.words(text_of(self.value), text_of)}, mask {self.head.mask}"
