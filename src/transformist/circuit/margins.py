"""How far a number format can be off every form of a circuit, given how far off its atoms can be.

An error is bounded as it is; times D, the number of rows a mean is over, for numbers whose scale is
1/D; and, for numbers that are never negative and whose 0 is exactly 0, in relation to them. The
sums of a form are bounded in any order; means, and hidden units that end in one slot, in an order
that is given. What is exact in the format, sums of whole numbers or of other multiples of one power
of two that its significand holds, has no error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

from transformist.arithmetic import Floating, is_power_of_two
from transformist.bounds import Order, mean_error
from transformist.circuit.atoms import Fetched, Relu, Step
from transformist.circuit.circuit import Circuit
from transformist.circuit.forms import Form
from transformist.circuit.heads import Head
from transformist.laws import Bound, Grid

Part: TypeAlias = "int | str"
"""What asks for a margin: an atom, by its number, or another part of a model, by its name."""

READ_OUT = "read-out"
"""The part that asks for the margins of an answer."""

Ask: TypeAlias = "Callable[[Part, str, float, float], None]"
"""What to do with a demand: of a part, a quantity, a bound of it, and what this is to be below."""


@dataclass(frozen=True)
class Errors:
    """How far an atom can be off.

    Attributes:
        absolute: as it is.
        scaled: times D.
        relative: in relation to it, if it is at least 0 and its 0 exactly 0; else infinite.
        silent: the kinds of rows at which it is exactly 0.

    """

    absolute: float
    scaled: float
    relative: float = math.inf
    silent: frozenset[int] = frozenset()


@final
@dataclass(eq=False)
class Margins:
    """The errors of the atoms of a circuit in a format.

    Attributes:
        circuit: the atoms.
        sharpness: 1/τ of each head.
        a: the format.
        order: in which means and hidden units are added up.
        ask: what to do with a margin that is asked for: to refuse, or to note it.
        cancelled: by how much the constants that a form is added up of exceed its own.
        falling: the steps that are computed from 1 downwards.
        errors: of each atom.

    """

    circuit: Circuit
    sharpness: Mapping[Head, Fraction]
    a: Floating
    order: Order
    ask: Ask
    cancelled: Mapping[Form, Fraction] = field(default_factory=dict)
    falling: Collection[int] = ()
    errors: list[Errors] = field(default_factory=list)

    @property
    def most(self) -> int:
        """The largest D."""
        return self.circuit.most_seen or 1

    @property
    def u(self) -> float:
        """The unit roundoff of the format."""
        return float(self.a.unit_roundoff)

    @property
    def w(self) -> float:
        """That of its accumulator."""
        return float(self.a.accumulator_roundoff)

    def size(self, form: Form) -> float:
        """Σ |factor| |atom| + |constant|, at the symbols or BOS, and of constants that cancel."""
        total = magnitude(form.constant)
        for atom, factor in form.terms:
            most = self.circuit.laws[atom].size
            total += magnitude(factor) * magnitude(most) if most else 0.0
        return total + magnitude(self.cancelled.get(form, 0))

    def is_exact(self, form: Form) -> bool:
        """Whether the format computes it without an error, in any order of summation."""
        grid, at_bos = self.circuit.grid(form), self._at_bos(form)
        if grid is None or any(self.errors[atom].absolute for atom in form.atoms):
            return False
        whole = math.lcm(grid.c, at_bos.c)
        if grid.counts or at_bos.counts or whole & (whole - 1):
            return False
        c = magnitude(whole)
        fits = self.size(form) * c <= 2.0**self.a.precision
        return fits and c * self._divisor(form) * self.a.smallest <= 1

    def _at_bos(self, form: Form) -> Grid:
        """What it lies on at BOS, as far as that is known, and where BOS stands alone."""
        alone = Grid.of([self.circuit.over_nothing(form)]) if self.circuit.bos else Grid(1)
        return alone | (self.circuit.grid_at_bos(form) or Grid(1))

    def rounding(self, form: Form) -> float:
        """How far the evaluation of a form can be off, its atoms as they are.

        A number times 2ᵏ rounds beside constants that cancel.
        """
        size, is_exact = self.size(form), self.is_exact(form)
        rounds_beside = form in self.cancelled and not is_exact
        if max(2 * size, 0.0 if rounds_beside else self._divisor(form)) >= self.a.largest:
            return math.inf
        if is_exact:
            return 0.0
        underflow = self._underflow(form)
        if _is_a_power_of_two(form) and not rounds_beside:
            return underflow if abs(form.terms[0][1]) < 1 else 0.0
        return self._relative(form) * size + underflow

    def accumulation_error(self, form: Form) -> float:
        """What it costs to add up units of several atoms in one slot: a step has two large ones.

        Nothing where all that is added are multiples of one power of two that the format holds.
        """
        steps, sizes, c, is_dyadic = 0.0, 0.0, 1, True
        units, products = 0, False
        for number, factor in form.terms:
            atom, share = self.circuit.atoms[number], magnitude(factor)
            if not isinstance(atom, Relu | Step):
                continue
            units += 1
            products |= significant_bits(factor) > 1
            sizes += share * magnitude(self.circuit.laws[number].size)
            if isinstance(atom, Step):
                units += 1
                steps += share * magnitude(max(self._highest(number, atom), 0) * 2 / atom.zone)
            read = atom.form if isinstance(atom, Relu) else upper_unit(atom)
            grid = self.circuit.grid(read)
            grid = None if grid is None else grid | self._at_bos(read)
            is_dyadic &= grid is not None and not grid.counts
            c = c if grid is None else math.lcm(c, grid.times(factor).c)
        if not steps or (units < 3 and not products):
            return 0.0
        exact = is_dyadic and not c & (c - 1) and (2 * steps + sizes) * c <= 2.0**self.a.precision
        if exact and not any(self.errors[atom].absolute for atom in form.atoms):
            return 0.0
        rounded = self.w * (2 * steps + sizes) if products else 0.0
        return (self.order.accumulation(units, steps, sizes, self.w) + rounded) * (1 + 2**-10)

    def _highest(self, number: int, atom: Step) -> Bound:
        """How large what the units of a step read can be, before it is divided by half the zone.

        Of a step that falls, it is what is left of the zone above.
        """
        rows = self.circuit.rows(atom.form)
        if number in self.falling:
            return max(atom.zone - row.lo for row in rows)
        return max(row.hi for row in rows)

    def _underflow(self, form: Form) -> float:
        return 2 * (len(form.terms) + 1) * self.a.smallest * self._divisor(form)

    @staticmethod
    def _divisor(form: Form) -> float:
        """The most that a sum may be divided by where it is kept; no factor is larger."""
        return max(1.0, *(magnitude(factor) for _, factor in form.terms), 1.0)

    def error(self, form: Form) -> float:
        """How far a form can be off."""
        return (
            self._inherited(form, "absolute") + self.accumulation_error(form) + self.rounding(form)
        )

    def _inherited(self, form: Form, which: str) -> float:
        """The errors of the atoms together, at the kind of row where they are the most."""
        parts = [
            (_times(f, getattr(self.errors[atom], which)), self.errors[atom].silent)
            for atom, f in form.terms
        ]
        everywhere: float = sum(error for error, silent in parts if not silent)
        kinds = range(len(self.circuit.alphabet) + self.circuit.bos)
        return everywhere + max(
            math.fsum(error for error, silent in parts if silent and kind not in silent)
            for kind in kinds
        )

    def scaled_error(self, form: Form) -> float:
        """How far a form can be off, times D."""
        own = self.accumulation_error(form) + self.rounding(form)
        return self._inherited(form, "scaled") + own * self.most

    def relative_error(self, form: Form) -> float:
        """How far a sum can be off in relation to it, where no term is negative, and 0 exact."""
        negative = form.constant or any(factor < 0 for _, factor in form.terms)
        if negative or not self._is_normal(form):
            return math.inf
        inherited = max((self.errors[atom].relative for atom in form.atoms), default=0.0)
        added = self.accumulation_error(form)
        if self.is_exact(form) and not added:
            return inherited
        least = magnitude(self.circuit.separation(form) or 0)
        return (1 + inherited) * (1 + self._relative(form)) - 1 + (added / least if added else 0.0)

    def comparison_error(self, form: Form, at: Any) -> float:
        """How far a form can be off where it is at most `at`, which is compared with a threshold.

        Where no term is negative, those with an error in relation to them are off by a part of
        `at`, and only the others by as much anywhere.
        """
        terms = [(number, magnitude(factor)) for number, factor in form.terms]
        below = any(row.lo < 0 for atom, _ in terms for row in self.circuit.laws[atom].rows)
        if form.constant or below or any(factor < 0 for _, factor in form.terms):
            return math.inf
        kept = Form(tuple(t for t in form.terms if self.errors[t[0]].relative < math.inf))
        if not self._is_normal(kept):
            return math.inf
        share = max((self.errors[atom].relative for atom in kept.atoms), default=0.0)
        others = sum(
            factor * self.errors[atom].absolute
            for atom, factor in terms
            if self.errors[atom].relative == math.inf
        )
        others += self.accumulation_error(form) + self._underflow(form)
        rounded = self._relative(form)
        parts = (1 + share) * (1 + rounded) - 1 + rounded  # of the form, and of the threshold
        return others * (1 + rounded) + parts * magnitude(at)

    def _is_normal(self, form: Form) -> bool:
        """Whether no part of it, nor of a mean of it, is so small that the format loses bits."""
        least = 2 * self.most * self.a.smallest / self.u
        separations = [
            magnitude(factor) * magnitude(self.circuit.separation(Form.atom(atom)) or 0)
            for atom, factor in form.terms
        ]
        return min(separations, default=math.inf) >= least

    def _relative(self, form: Form) -> float:
        """In relation to its terms: a sum is stored, or what a head brings, and each further head.

        Then it is read, and stored again. A factor that the format does not hold rounds as well.
        One number alone has been stored as it is.
        """
        terms = len(form.terms) + 2
        atoms = [self.circuit.atoms[atom] for atom in form.atoms]
        heads = len({atom.head for atom in atoms if isinstance(atom, Fetched)})
        weights = (*(factor for _, factor in form.terms), form.constant)
        rounded = any(significant_bits(weight) > self.a.precision for weight in weights)
        kept = max(heads, 1) if len(atoms) > 1 else 0
        stored = (kept + 1 + rounded) * self.u
        return terms * self.w / (1 - terms * self.w) + stored / (1 - stored)

    def mean_error(self, size: Any) -> float:
        """How far a mean of numbers of this size can be off."""
        return mean_error(self.most, Fraction(size), self.a, self.order)

    def require(self, part: Part, what: str, error: float, allowed: Any) -> None:
        """Ask that an error of a part is below what is allowed."""
        self.ask(part, what, error, magnitude(allowed))

    def require_count(
        self, part: Part, y: Form, w: Form, scale: int, least: int, most: int
    ) -> None:
        """Ask that 2 k y − k² w tells neighbouring k apart.

        They differ by w/scale²; D y and D w are off, and the terms round.

        Of both, the products, their sum and what is stored: 8w k²; 8u k² more where the format is
        narrower than its accumulator, and does not hold the weights.
        """
        largest = max(most, -least, 1)
        rounding = 8 * self.w + (8 * self.u if self.u > self.w else 0.0)
        error = 2 * scale * self.scaled_error(y) + (2 * largest + 1) * self.scaled_error(w)
        error += rounding * largest**2
        self.require(part, "the weights of the answer, a count", largest**2, self.a.largest)
        self.require(part, "the error of the answer, a count", error, 1)


def upper_unit(atom: Step) -> Form:
    """What the second of the two units of a step reads."""
    return atom.form * (2 / atom.zone) - Fraction(3, 2)


def magnitude(value: Any) -> float:
    """|x| in float64; infinite where that is too large for it."""
    try:
        return abs(float(value))
    except OverflowError:
        return math.inf


def significant_bits(value: Fraction) -> float:
    """How many bits the significand of a number has; infinite where it has no end.

    Example:
        >>> significant_bits(Fraction(5, 8)), significant_bits(Fraction(1, 3))
        (3, inf)

    """
    if value.denominator & (value.denominator - 1):
        return math.inf
    odd = abs(value.numerator)
    return (odd // (odd & -odd)).bit_length() if odd else 0


def _times(factor: Fraction, error: float) -> float:
    return magnitude(factor) * error if error else 0.0


def _is_a_power_of_two(form: Form) -> bool:
    """Whether the form is an atom times a power of two."""
    return not form.constant and len(form.terms) == 1 and is_power_of_two(abs(form.terms[0][1]))
