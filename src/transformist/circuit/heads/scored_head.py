"""Heads that attend to the rows with the largest score, and so leave weight off target.

With β = 1/τ, η the error of a score and δ that of an index, both in positions, the stray weight of
a kind of head (`stray_weight`), in relation to the weight of the target, is at most a sum of
e^(−β · gap) over the other rows. Each kind of head states the gaps and the errors that they allow.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from transformist.circuit.atom_errors import Errors, magnitude, significant_bits
from transformist.circuit.circuit import Circuit, Law, least_magnitude
from transformist.circuit.forms import Form
from transformist.circuit.margins import Margins, RoundedHead
from transformist.laws import ZERO, Grid, Ranges
from transformist.rounding import rounded_up


class ScoredHead(RoundedHead):
    """A head whose scores differ."""

    is_scored: ClassVar[bool] = True

    @property
    def attends_to_all_best(self) -> bool:
        """True if all rows of the largest score get the same weight, however many they are."""
        return False

    @property
    def averages_ties(self) -> bool:
        """True if several rows of the largest score are averaged, also where they are alike."""
        return False

    def scale_divisor(self, _circuit: Circuit) -> int:
        """The most by which the scale of scores divides 1/τ."""
        return 1

    @abstractmethod
    def stray_weight(self, circuit: Circuit, sharpness: float) -> float:
        """Upper bound of the weight off target, relative to the weight of the target."""

    @abstractmethod
    def least_sharpness(self, circuit: Circuit, share: float) -> float:
        """A 1/τ for which `stray_weight` is at most this share."""

    def short_sharpness(self, least: float) -> Fraction:
        """A number of few bits that is at least this 1/τ."""
        return rounded_up(least)

    def law(self, circuit: Circuit, value: Form) -> Law:
        """The law of the value at all rows; 0 where a strict mask leaves no row."""
        # Attention takes a mean of the values at the rows that it sees, with weights that sum to 1:
        # it lies between the least and the largest of them. The law is of exact attention, to one
        # row or to equal values, so the grid of the value holds too.
        rows = circuit.rows(value)
        seen = rows.hull()
        if self.mask.startswith("strict"):
            seen = seen.hull(ZERO)
        grid = circuit.grid(value)
        if grid is not None and circuit.bos:
            bos = circuit.span_at_bos(value)
            grid = grid | Grid.of([bos.lo]) if bos.is_point else None  # type: ignore[list-item]
        if grid is not None:  # D is that of the row that is fetched, not of the row that fetches
            elsewhere = self._elsewhere(circuit)
            grid = Grid(grid.c, frozenset(f"{count} {elsewhere}" for count in grid.counts))
        # BOS stands first: under `future` it sees itself alone, under `strict-future` nothing.
        at_bos = {"strict-future": ZERO, "future": rows[-1]}.get(self.mask, seen)
        others = {len(circuit.alphabet): at_bos} if circuit.bos else {}
        return Law(Ranges(len(rows), seen, others), grid, least_magnitude(circuit, value))

    @staticmethod
    def _elsewhere(circuit: Circuit) -> str:
        """Suffix of the names of counts at the row that the next atom fetches from."""
        return f"of atom {len(circuit.atoms)}"

    def grid_at_bos(self, circuit: Circuit, number: int, value: Form) -> Grid | None:
        """The grid at symbols: queries and keys of BOS are whole, so its scores lie as far apart.

        The head then chooses one of the symbols, or all that match, as it does at a symbol.
        """
        return circuit.laws[number].grid

    @cached_property
    def _largest_weight(self) -> float:
        """The largest factor in a query."""
        factors = (factor for query, _ in self.scores for _, factor in query.terms)
        return max(map(magnitude, factors), default=0.0)

    def require_range(self, margins: Margins, largest: float, number: int) -> None:
        """Require that scores and weights of queries, times 1/τ and √d_key, fit the format."""
        scale = magnitude(margins.sharpness[self]) * 2 * max(len(self.scores), 1) ** 0.5
        size = max(largest, self._largest_weight) * scale
        margins.require(number, "the size of scores", size, margins.a.largest)

    def chosen(self, margins: Margins, value: Form, spread: float) -> Errors:
        """Errors of a value fetched from one row, or from all best rows.

        Scores of the best rows are off by at most `spread`.
        """
        circuit = margins.circuit
        rows = circuit.rows(value)
        diameter = float(rows.hull().diameter)
        size = margins.reach(value)
        error = margins.error(value)
        if circuit.weighting == "softmax":
            # A difference m of scores is rounded, to m (1 − u) at least: m² (1 − u) − 3m/4, of
            # which (1 − 4u) m/4 is left, and m (1 − u) − 1/2, of which (1 − 2u) m/2 is.
            sharpness = float(margins.sharpness[self]) * (1 - 4 * margins.u)
            if not (sharpness > 0 and error < math.inf):
                return Errors(math.inf, math.inf)
            # Stray weight s moves the value by at most s times its diameter d. Best scores that
            # are off by at most `spread` move the weights, and so the mean of what has the largest
            # score, by at most tanh(a/2) ≤ a/2 in total variation, a = β spread: 2 a d covers it.
            error += self.stray_weight(circuit, sharpness) * diameter
            # Exponentials other than exp(0) = 1 are off by 2 units in the last place, 4u: weights
            # of best scores that differ are off by that, which moves the mean by at most 4u d.
            if self.attends_to_all_best and spread:
                error += 2 * spread * float(margins.sharpness[self]) * diameter
                error += math.expm1(4 * margins.u) * diameter
            # Given the weights, the mean rounds: the sum of the weights when it is stored, each
            # quotient, and the result (3u), each sum at `terms` additions, each quotient and each
            # product (2 (terms + 2) w). A relative error x of a denominator is one of at most
            # x/(1 − x) of the quotient; the other 4u are for that.
            terms = min(float(margins.most), self._heavy(margins, sharpness))
            error += math.expm1(7 * margins.u + 2 * (terms + 2) * margins.w) * size
            error += 3 * margins.most * margins.a.smallest * max(size, 1.0)
        elif circuit.weighting == "average-hard" and self.averages_ties:
            error += margins.mean_error(size)
        return Errors(error, error * margins.most)

    def _heavy(self, margins: Margins, sharpness: float) -> float:
        """Number of weights that can round a sum: adding a number e ≥ 0 is off by at most e.

        The weights are at most e^(−βm/4), m ≥ 1, at most two for an m, with β = 1/τ, of an index in
        the scale w at least 1/(τ D); those below the roundoff together have less than
        2/(1 − e^(−β/4)) of it, which the ten more terms cover for β ≥ 1.
        """
        divisor = self.scale_divisor(margins.circuit)
        if sharpness < divisor or self.attends_to_all_best:
            return math.inf
        return 8 * math.log(1 / margins.w) * divisor / sharpness + 10


def lengthened(sharpness: Fraction) -> float:
    """Factor 2ᵇ by which 1/τ, of b bits, can lengthen the significand of a whole number."""
    bits = significant_bits(sharpness)
    return bits if bits == math.inf else 2.0**bits
