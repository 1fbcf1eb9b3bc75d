"""Numbers that follow from the symbol alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.circuit import Circuit, Law
from transformist.circuit.forms import Form
from transformist.circuit.margins import Margins, RoundedAtom
from transformist.laws import ZERO, Grid, Range, Ranges

SHARED_ZERO = Fraction(0)
"""The number 0 as one object: tuples of it are compared without a call of `Fraction.__eq__`."""


@dataclass(frozen=True)
class Embedded(RoundedAtom):
    """A number for each symbol of the alphabet, and for BOS where there is one."""

    values: tuple[Fraction, ...]

    def __hash__(self) -> int:
        # Only the nonzero numbers are hashed: over a large alphabet they are few.
        return hash((len(self.values), tuple(self.nonzero.items())))

    @cached_property
    def nonzero(self) -> Mapping[int, Fraction]:
        """The numbers that are not 0, by the kinds of rows."""
        return {kind: x for kind, x in enumerate(self.values) if x is not SHARED_ZERO and x}

    @property
    def reads(self) -> tuple[Form, ...]:
        return ()

    def law(self, circuit: Circuit) -> Law:
        symbols = len(circuit.alphabet)
        ranges = {kind: Range.of(value) for kind, value in self.nonzero.items()}
        grid = Grid.of(value for kind, value in self.nonzero.items() if kind < symbols)
        return Law(Ranges(len(self.values), ZERO, ranges), grid)

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return self.values[-1]

    def errors(self, margins: Margins, number: int) -> Errors:
        """Rounding errors of the values; each is stored as one number of the format."""
        values = {*self.nonzero.values()}
        if any(abs(value) >= margins.a.largest for value in values):
            return Errors(math.inf, math.inf)
        gaps = {value: abs(value - (margins.held(value) or 0)) for value in values}
        # D times a number that is off by e is off by D e; D is at most `most`.
        error = magnitude(max(gaps.values(), default=0))
        relative = max(
            (magnitude(gap / value) if value > 0 else math.inf for value, gap in gaps.items()),
            default=0.0,
        )
        return Errors(error, error * margins.most, relative)

    def words(self, text_of: Callable[[Form], str]) -> str:
        return "embedded"


def at_bos(circuit: Circuit) -> Form:
    """The number that is 1 at BOS and 0 at symbols."""
    values = [SHARED_ZERO] * len(circuit.alphabet) + [Fraction(1)]
    return circuit.add(Embedded(tuple(values)), "BOS")


def at_symbols(circuit: Circuit) -> Form:
    """The number that is 1 at symbols and 0 at BOS."""
    values = [Fraction(1)] * len(circuit.alphabet) + [SHARED_ZERO] * circuit.bos
    return circuit.add(Embedded(tuple(values)), "symbol")
