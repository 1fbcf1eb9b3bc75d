"""Means over all rows that the mask leaves: heads whose scores are all 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.atoms.position_feature import PositionFeature
from transformist.circuit.circuit import Circuit, Law, Pairs, Tolerance, least_magnitude
from transformist.circuit.forms import Form
from transformist.circuit.margins import Margins, RoundedHead
from transformist.circuit.seen_rows import SEES_BOS, mean_range, rows_under
from transformist.laws import ZERO, Grid, Range, Ranges


@dataclass(frozen=True)
class Uniform(RoundedHead):
    """The mean over the positions that the mask leaves, BOS among them where it is seen."""

    mask: str

    is_scored = False

    @property
    def forms(self) -> tuple[Form, ...]:
        return ()

    @property
    def scores(self) -> Pairs:
        return []

    @property
    def is_same_everywhere(self) -> bool:
        return self.mask == "none"

    def law(self, circuit: Circuit, value: Form) -> Law:
        rows = circuit.rows(value)
        symbols = circuit.span(value)
        factor = _factor_of_place(circuit, value)
        if self.mask == "none" and factor:  # of i it is n/2, or (n + 1)/2 without BOS
            longest = max(circuit.longest, Fraction(1))
            most = longest if circuit.bos else longest + 1
            half = Range(Fraction(0 if circuit.bos else 1), Fraction(1, 2) * most)
            return Law(Ranges(len(rows), half.times(factor), {}), Grid(2).times(factor))
        if self.mask in SEES_BOS:
            seen = mean_range(symbols, rows[-1] if circuit.bos else None, circuit.longest)
        else:
            # A mask that looks ahead alone never leaves BOS, which stands in front, to a symbol.
            seen = symbols
        if self.mask.startswith("strict"):
            seen = seen.hull(ZERO)
        at_bos = {
            "none": seen,
            "future": rows[-1],
            "strict-future": ZERO,
            "past": mean_range(symbols, rows[-1], circuit.longest),
            "strict-past": symbols.hull(ZERO),
        }[self.mask]
        least = least_magnitude(circuit, value)
        if least is not None:
            # A mean of numbers ≥ 0 that is not 0 has a term of at least `least`, divided by at most
            # `most_seen` rows.
            least = None if circuit.most_seen is None else least / circuit.most_seen
        others = {len(circuit.alphabet): at_bos} if circuit.bos else {}
        return Law(Ranges(len(rows), seen, others), self._grid(circuit, value), least)

    def _grid(self, circuit: Circuit, value: Form) -> Grid | None:
        """The grid of a mean of D numbers that have a grid without a D of its own."""
        grid = circuit.grid(value)
        if circuit.bos and self.mask in SEES_BOS:
            bos = circuit.span_at_bos(value)
            if not bos.is_point:
                return None
            grid = None if grid is None else grid | Grid.of([bos.lo])  # type: ignore[list-item]
        return None if grid is None or grid.counts else grid.divided(rows_under(self.mask))

    def grid_at_bos(self, circuit: Circuit, number: int, value: Form) -> Grid | None:
        """Grid of the mean of what BOS sees: all rows, itself and the symbols, or these alone."""
        if self.mask == "none":
            return circuit.laws[number].grid
        grid = circuit.grid(value)
        if self.mask == "past" and grid is not None:
            own = circuit.grid_at_bos(value)
            grid = None if own is None else grid | own
        return None if grid is None or grid.counts else grid.divided(rows_under(self.mask))

    def one_over(self, circuit: Circuit, value: Form) -> str | None:
        """D, where the value is 1 at BOS alone, which is seen."""
        is_share = self.mask in SEES_BOS and circuit.is_bos(value)
        return rows_under(self.mask) if is_share else None

    def tolerances(self, circuit: Circuit, sharpness: Fraction, share: Fraction) -> list[Tolerance]:
        return []

    def errors(self, margins: Margins, value: Form, number: int) -> Errors:
        """The mean of BOS is its weight 1/D, rounded; D is counted exactly in the accumulator."""
        size = margins.reach(value)
        # The softmax of equal scores adds D ones. The accumulator holds every whole number up to
        # 1/w = 2ᵖ, and the sum must not overflow when it is stored.
        counted = min(margins.a.largest, 1 / margins.w)
        margins.require(number, "the number of positions of a mean", margins.most, counted)
        error = margins.mean_error(size)
        inherited = margins.error(value)
        scaled = error * margins.most
        if margins.circuit.is_bos(value):
            # D times the share 1/D: the exponential of 0 is 1 and the sum D is exact in the
            # accumulator. Where results accumulate in the format itself, only the quotient rounds,
            # by u/D; its product with 1 and its sum with zeros are exact. Else D is stored (u), the
            # quotient rounds (u) and the result is stored (u): (1 + u)²/(1 − u) − 1 ≤ 4u for u ≤
            # 1/8.
            scaled = margins.u if margins.u == margins.w else 4 * margins.u
            scaled += 2 * margins.most * margins.a.smallest
        # No value is negative, so the error of the mean, which is bounded by a part of Σ |vⱼ|/D, is
        # the same part of the mean itself.
        one = margins.mean_error(1)
        relative = (1 + margins.relative_error(value)) * (1 + one) - 1
        if relative < math.inf:  # and what the products, and the result, lose by underflow
            least = magnitude(margins.circuit.separation(value) or 0) / margins.most
            lost = margins.a.smallest + margins.most * margins.a.smallest_partial
            relative += lost / least if least else math.inf
        return Errors(error + inherited, scaled + inherited * margins.most, relative)

    def words(self, value: str, text_of: Callable[[Form], str]) -> str:
        return f"mean of {value}"


def _factor_of_place(circuit: Circuit, value: Form) -> Fraction:
    """The factor c where a value is c · i; 0 where it is something else."""
    number = circuit.find(PositionFeature("i"))
    if number is None or value.atoms != (number,) or value.constant:
        return Fraction(0)
    return value.factors[number]
