"""Steps: comparisons with 0, by two ReLUs that bend in the middle of a separation.

Let x be the form and z its zone: at the symbols x ≤ 0 or x ≥ z. The step is

    ReLU(2x/z − 1/2) − ReLU(2x/z − 3/2),

which is 0 for x ≤ z/4, 1 for x ≥ 3z/4, and straight between. So an error of x below z/4 does not
change the step: where x ≤ 0 the computed x is at most z/4, and where x ≥ z at least 3z/4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from transformist.circuit import sum_errors
from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.circuit import Circuit, Law, Tolerance
from transformist.circuit.forms import Form, HashedOnce, content
from transformist.circuit.margins import ComparisonBound, Margins, RoundedAtom
from transformist.laws import Bound, Grid, Range, Ranges

_WHOLE = Grid(1)
_ZERO, _ONE = Fraction(0), Fraction(1)
_CONSTANTS = Fraction(-1, 2), Fraction(-3, 2)
"""Constants that the two units add to 2x/z."""

_BITS = {
    (is_one, is_bit): Range(Fraction(is_one), Fraction(is_bit))
    for is_one in (False, True)
    for is_bit in (False, True)
}
"""Ranges of a step, by whether it is 1 everywhere and whether it may be 1."""


@dataclass(frozen=True)
class StepFunction(RoundedAtom, HashedOnce):
    """0 where the form is at most zone/4, 1 where it is at least 3 zone/4, straight between."""

    form: Form
    zone: Fraction

    absorbs_errors = True

    def __hash__(self) -> int:
        return self._hash

    @property
    def reads(self) -> tuple[Form, ...]:
        return (self.form,)

    @cached_property
    def hidden_units(self) -> tuple[tuple[Form, Fraction], ...]:
        # 2x/z − 1/2 is 0 at z/4 and 1 at 3z/4, where the second unit, 2x/z − 3/2, begins: from
        # there on the difference stays 1.
        scaled = self.form * (2 / self.zone)
        first, second = (scaled + each for each in _CONSTANTS)
        return ((first, _ONE), (second, -_ONE))

    def height(self, circuit: Circuit, falls: bool) -> Bound:
        """Bound of ReLU(2x/z − 3/2): 2x/z, or 2(z − x)/z for a step that falls from 1."""
        rows, constant = circuit.rows(self.form.linear).distinct(), self.form.constant
        if falls:
            highest = self.zone - min(row.lo for row in rows) - constant
        else:
            highest = max(row.hi for row in rows) + constant
        return max(highest, _ZERO) * 2 / self.zone

    def law(self, circuit: Circuit) -> Law:
        """Whole numbers at the symbols, where the form is at most 0 or at least the zone."""
        symbols = len(circuit.alphabet)
        # The ranges of the form without its constant serve many steps: it is the ramp that moves.
        rows, constant = circuit.rows(self.form.linear), self.form.constant
        low, high = (end - constant for end in self._ramp)
        whole = rows.mapped(lambda x: _BITS[x.lo >= high, x.hi > low])
        # A kind whose range has become the common one is left out, so that sums of steps are short.
        others = {k: bits for k, bits in whole.others.items() if bits is not whole.common}
        if circuit.bos:
            # The zone separates the values at symbols. At BOS the form may lie between, where the
            # step is straight; it never falls, so the ends of its range are its values at the ends.
            # Where both ends lie outside the ramp, `mapped` has given the range.
            at_bos = rows[symbols]
            if low < at_bos.lo < high or low < at_bos.hi < high:
                ends = (self._at(end + constant) for end in (at_bos.lo, at_bos.hi))
                others[symbols] = Range(*ends)
        return Law(Ranges(len(rows), whole.common, others), _WHOLE)

    @cached_property
    def _ramp(self) -> tuple[Fraction, Fraction]:
        """The numbers between which the step is straight: it is 0 below, 1 above."""
        quarter = self.zone / 4
        return quarter, 3 * quarter

    def _at(self, x: Bound) -> Fraction:
        """The value of the step where the form is x."""
        low, high = self._ramp
        if x <= low:
            return _ZERO
        return _ONE if x >= high else (Fraction(x) - low) * 2 / self.zone

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return self._at(circuit.over_nothing(self.form))

    def grid_at_bos(self, circuit: Circuit, number: int) -> Grid | None:
        return Grid(1) if self.is_decided_at_bos(circuit) else None

    def is_decided_at_bos(self, circuit: Circuit) -> bool:
        """True if the form is at most 0, or at least the zone, at BOS as it is at symbols.

        Then it lies on a grid as coarse as the zone, or is made of numbers that are the same at
        every row.
        """
        # The form is then the same number at BOS as at any symbol, for which the zone was chosen.
        if all(circuit.atoms[number].is_same_everywhere for number in self.form.atoms):
            return True
        common = content([*self.form.distinct_factors, self.form.constant])
        grid = circuit.grid_at_bos(self.form * (1 / common))
        least = None if grid is None else grid.separation(circuit.most_seen)
        return least is not None and least * common >= self.zone

    def errors(self, margins: Margins, number: int) -> Errors:
        """Error bound: 0 is computed exactly, 1 as the difference of two numbers that round."""
        # The error at the zone itself is enough. Where the bound grows with x, it is a + b x with b
        # < 1, and the least computed number x − a − b x grows with x as well: above the zone it is
        # larger than there, where it is at least 3 zone/4.
        error = self.comparison_error(margins, number, self.zone)
        margins.require(number, "the error of a comparison", error, self.zone / 4)
        error = self._rounding(margins, number)
        falls = number in margins.falling  # then 0 is the difference of two numbers that round
        return Errors(error, error * margins.most, math.inf if falls else error)

    def comparison_error(self, margins: Margins, number: int, at: Any) -> float:
        """Error bound of form − zone/4, which the units read, where the form is at most `at`."""
        if margins.readings is None:
            anywhere = margins.error(self.form - self.zone / 4)
            return min(anywhere, margins.comparison_error(self.form, at))
        if number not in margins.compared:
            margins.compared[number] = self._compared(margins, number)
        bounds = margins.compared[number]
        return max((min(anywhere, up_to.at(at)) for anywhere, up_to in bounds), default=0.0)

    def _compared(self, margins: Margins, number: int) -> list[tuple[float, ComparisonBound]]:
        """Error bounds of each unit, as weights compute it: anywhere, and by the value."""
        assert margins.readings is not None
        found, inherited = [], margins.inherited(self.form)
        for units in margins.readings.steps[number]:
            first, second = (each.form.constant for each in units)
            # The units are A x + first and A x + second, 2x/z − ½ and 2x/z − 3/2 up to one factor:
            # their constants differ by 1 where A = 2/z, so 1/A is z/2 over the difference of the
            # constants.
            scale = self.zone / abs(first - second) / 2  # they differ by half of a zone
            for each in units:
                anywhere = inherited + magnitude(scale) * sum_errors.rounding(margins, each)
                found.append((anywhere, margins.comparison_error_of(self.form, each, scale)))
        return found

    def _rounding(self, margins: Margins, number: int) -> float:
        """Rounding error of the difference of the two units; their inherited errors cancel."""
        if margins.readings is None:
            # Where the step is 1 it is the difference of two units, each of which rounds as `upper`
            # does; both read the same computed form, whose error cancels. Their addition rounds 1
            # by w ≤ u, and the store by u.
            upper = self.hidden_units[-1][0]
            return 2 * margins.rounding(upper) + (0 if margins.is_exact(upper) else 2 * margins.u)
        worst = 0.0
        for units in margins.readings.steps[number]:
            if all(sum_errors.is_exact(margins, each) for each in units):
                continue
            # Both units are the same sum but for the constant, so only their evaluations differ.
            # The weights of the units in the slot divide the difference of the constants out again.
            off = sum(sum_errors.rounding_apart(margins, each) for each in units)
            first, second = (each.form.constant for each in units)
            worst = max(worst, off / magnitude(first - second) + 2 * margins.u)
        return worst

    def tolerances(self, allowed: Fraction | None) -> list[Tolerance]:
        """Tolerance of the form: half of zone/4 for any `allowed`; rounding has the other half."""
        return [Tolerance(self.form, self.zone / 8)]

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"step of {text_of(self.form)} at {text_of(Form.of(self.zone / 2))}"
