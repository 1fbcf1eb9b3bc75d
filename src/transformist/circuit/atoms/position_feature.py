"""Functions of the position, by their names in `POSITIONS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from transformist.circuit.atom_errors import Errors
from transformist.circuit.circuit import Circuit, Law
from transformist.circuit.forms import Form
from transformist.circuit.margins import Margins, RoundedAtom
from transformist.laws import INFINITY, Bound, Grid, Range, Ranges
from transformist.position_features import SINE_STEP, WAVELENGTHS, position


def _inverse(n: Bound) -> Fraction:
    return Fraction(0) if n == INFINITY else 1 / Fraction(n)


_RANGES: Mapping[str, Callable[[Any], Range]] = {
    "1": lambda _n: Range.of(1),
    "i": lambda n: Range(Fraction(1), n),
    "i^2": lambda n: Range(Fraction(1), n**2),
    "i^3": lambda n: Range(Fraction(1), n**3),
    "1/i": lambda n: Range(_inverse(n), Fraction(1)),
    "-1/i": lambda n: Range(Fraction(-1), -_inverse(n)),
    "i/n": lambda n: Range(_inverse(n), Fraction(1)),
    "-i/n": lambda n: Range(Fraction(-1), -_inverse(n)),
    "(-1)^i": lambda _n: Range(Fraction(-1), Fraction(1)),
    **dict.fromkeys(WAVELENGTHS, lambda _n: Range(Fraction(-1), Fraction(1))),
}
"""Range of each function at the positions 1 to n, given N."""

_DENOMINATORS: Mapping[str, str] = {"1/i": "i", "-1/i": "i", "i/n": "n", "-i/n": "n"}


@dataclass(frozen=True)
class PositionFeature(RoundedAtom):
    """A function of the position, by its name."""

    name: str

    is_kept_alone = True

    @property
    def reads(self) -> tuple[Form, ...]:
        return ()

    def law(self, circuit: Circuit) -> Law:
        grid = Grid(SINE_STEP.denominator if self.name in WAVELENGTHS else 1)
        if self.name in _DENOMINATORS:
            grid = grid.divided(_DENOMINATORS[self.name])
        longest = max(circuit.longest, Fraction(1))
        symbols = len(circuit.alphabet)
        at_bos = {symbols: Range.of(self.over_nothing(circuit))} if circuit.bos else {}
        return Law(Ranges(symbols + circuit.bos, _RANGES[self.name](longest), at_bos), grid)

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return Fraction(position(self.name, 0, 0))

    def errors(self, margins: Margins, number: int) -> Errors:
        """Error bound: 0 for multiples of 2ᵏ that the significand holds, else 2u times the size."""
        law, a = margins.circuit.laws[number], margins.a
        size, grid = float(law.rows[0].size), law.grid
        # The format holds k/c, with c a power of two, if |k| ≤ 2ᵖ and 1/c does not underflow.
        # Else each value is rounded once: off by u |x|, or by at most half the least number where x
        # is subnormal. The largest value of such a function is at least 1, so u times the size
        # covers one, and u times the size once more the other: half the least number is below u.
        c = math.inf if grid is None or grid.counts else grid.c
        if size * c <= 2**a.precision and c * a.smallest <= 1:
            return Errors(0.0, 0.0)
        return Errors(2 * margins.u * size, 2 * margins.u * size * margins.most)

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"position function {self.name}"
