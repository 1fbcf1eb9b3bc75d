"""Numbers that follow from the symbol alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.circuit import Circuit, Law
from transformist.circuit.forms import Form
from transformist.circuit.margins import Margins, RoundedAtom
from transformist.laws import Grid, Range


@dataclass(frozen=True)
class Embedded(RoundedAtom):
    """A number for each symbol of the alphabet, and for BOS where there is one."""

    values: tuple[Fraction, ...]

    @property
    def reads(self) -> tuple[Form, ...]:
        return ()

    def law(self, circuit: Circuit) -> Law:
        symbols = self.values[: len(circuit.alphabet)]
        return Law(tuple(map(Range.of, self.values)), Grid.of(symbols))

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return self.values[-1]

    def errors(self, margins: Margins, number: int) -> Errors:
        """Rounding errors of the values; each is stored as one number of the format."""
        if max(map(abs, self.values)) >= margins.a.largest:
            return Errors(math.inf, math.inf)
        gaps = [abs(value - (margins.held(value) or 0)) for value in self.values]
        error = magnitude(max(gaps))
        relative = max(
            magnitude(gap / value) if value > 0 else math.inf if value < 0 else 0.0
            for gap, value in zip(gaps, self.values, strict=True)
        )
        return Errors(error, error * margins.most, relative)

    def words(self, text_of: Callable[[Form], str]) -> str:
        return "embedded"


def at_bos(circuit: Circuit) -> Form:
    """The number that is 1 at BOS and 0 at symbols."""
    values = [Fraction(0)] * len(circuit.alphabet) + [Fraction(1)]
    return circuit.add(Embedded(tuple(values)), "BOS")


def at_symbols(circuit: Circuit) -> Form:
    """The number that is 1 at symbols and 0 at BOS."""
    values = [Fraction(1)] * len(circuit.alphabet) + [Fraction(0)] * circuit.bos
    return circuit.add(Embedded(tuple(values)), "symbol")
