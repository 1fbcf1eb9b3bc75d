"""How far a number format can be off every form of a circuit, given how far off its atoms can be.

An error is bounded as it is; times D, the number of rows a mean is over, for numbers whose scale is
1/D; and, for numbers that are never negative and whose 0 is exactly 0, in relation to them. The
sums of a form are bounded in any order; means, and hidden units that end in one slot, in an order
that is given. What is exact in the format, sums of whole numbers or of other multiples of one power
of two that its significand holds, has no error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

from transformist.arithmetic import Floating, is_power_of_two
from transformist.circuit import sum_errors
from transformist.circuit.atoms import Fetched, Relu, StepFunction, upper_unit
from transformist.circuit.circuit import Circuit
from transformist.circuit.forms import Form
from transformist.circuit.heads import Head
from transformist.circuit.readings import Number, Readings, Sum, form_of
from transformist.laws import Bound, Grid
from transformist.rounding import Order, mean_error

MarginOwner: TypeAlias = "int | str"
"""What asks for a margin: an atom, by its number, or another part of a model, by its name."""

READ_OUT = "read-out"
"""The part that asks for the margins of an answer."""

MarginHandler: TypeAlias = "Callable[[MarginOwner, str, float, float], None]"
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
        readings: how weights read each form, where there are weights; without, a form is taken to
            be added up of its atoms, each times its factor.
        falling: the steps that are computed from 1 downwards.
        errors: of each atom.
        weights, rounded, exact: weights as the format holds them, and what is known of sums.

    """

    circuit: Circuit
    sharpness: Mapping[Head, Fraction]
    a: Floating
    order: Order
    ask: MarginHandler
    readings: Readings | None = None
    falling: Collection[int] = ()
    errors: list[Errors] = field(default_factory=list)
    weights: dict[Fraction, Fraction | None] = field(default_factory=dict)
    rounded: dict[Sum, float] = field(default_factory=dict)
    exact: dict[Sum, bool] = field(default_factory=dict)

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

    @property
    def is_wide(self) -> bool:
        """Whether the accumulator holds every product of two numbers of the format."""
        return self.u**2 >= self.w

    def size(self, form: Form) -> float:
        """Σ |factor| |atom| + |constant|, at the symbols or BOS."""
        total = magnitude(form.constant)
        for atom, factor in form.terms:
            most = self.circuit.laws[atom].size
            total += magnitude(factor) * magnitude(most) if most else 0.0
        return total

    def reach(self, form: Form) -> float:
        """How large what is computed for a form can be."""
        return magnitude(self.circuit.size(form)) + self.error(form)

    def is_exact(self, form: Form) -> bool:
        """Whether the format computes it without an error, in any order of summation."""
        if self.readings is not None:
            return all(sum_errors.is_exact(self, each) for each in self._read(form))
        grid = self.grid_everywhere(form)
        if grid is None or any(self.errors[atom].absolute for atom in form.atoms):
            return False
        if grid.counts or grid.c & (grid.c - 1):
            return False
        c = magnitude(grid.c)
        fits = self.size(form) * c <= 2.0**self.a.precision
        fits = fits and all(sum_errors.held(self, f) == f for _, f in form.terms)
        return fits and c * self._divisor(form) * self.a.smallest <= 1

    def grid_everywhere(self, form: Form) -> Grid | None:
        """What it lies on, at BOS as well as far as that is known, and where BOS stands alone."""
        grid = self.circuit.grid(form)
        if grid is None or not self.circuit.bos:
            return grid
        alone = Grid.of([self.circuit.over_nothing(form)])
        at_bos = self.circuit.grid_at_bos(form)
        return None if at_bos is None else grid | alone | at_bos

    def _read(self, form: Form) -> list[Sum]:
        """The sums by which weights compute a form."""
        assert self.readings is not None
        return self.readings.sums[form]

    def rounding(self, form: Form) -> float:
        """How far the evaluation of a form can be off, its atoms as they are."""
        if self.readings is not None:
            return max(sum_errors.rounding(self, each) for each in self._read(form))
        size = self.size(form)
        if max(2 * size, self._divisor(form)) >= self.a.largest:
            return math.inf
        if self.is_exact(form):
            return 0.0
        underflow = self._underflow(form)
        if _is_a_power_of_two(form):
            return underflow + self._lost(form) if abs(form.terms[0][1]) < 1 else 0.0
        return self._relative(form) * size + underflow + self._lost(form)

    def _accumulation_error(self, form: Form) -> float:
        """What it costs to add up units of several atoms in one slot: a step has two large ones.

        Nothing where all that is added are multiples of one power of two that the format holds.
        """
        steps, sizes, c, is_dyadic = 0.0, 0.0, 1, True
        units, products = 0, False
        for number, factor in form.terms:
            atom, share = self.circuit.atoms[number], magnitude(factor)
            if not isinstance(atom, Relu | StepFunction):
                continue
            units += 1
            products |= significant_bits(factor) > 1
            sizes += share * magnitude(self.circuit.laws[number].size)
            if isinstance(atom, StepFunction):
                units += 1
                steps += share * magnitude(self.height(number, atom))
            read = atom.form if isinstance(atom, Relu) else upper_unit(atom)
            grid = self.grid_everywhere(read)
            is_dyadic &= grid is not None and not grid.counts
            c = c if grid is None else math.lcm(c, grid.times(factor).c)
        if not steps or (units < 3 and not products):
            return 0.0
        exact = is_dyadic and not c & (c - 1) and (2 * steps + sizes) * c <= 2.0**self.a.precision
        if exact and not any(self.errors[atom].absolute for atom in form.atoms):
            return 0.0
        rounded = self.w * (2 * steps + sizes) if products else 0.0
        return (self.order.accumulation(units, steps, sizes, self.w) + rounded) * (1 + 2**-10)

    def height(self, number: int, atom: StepFunction) -> Bound:
        """How large the units of a step can be, beside a slope of 2/zone."""
        return max(self._highest(number, atom), Fraction(0)) * 2 / atom.zone

    def _highest(self, number: int, atom: StepFunction) -> Bound:
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
        return self.inherited(form) + self._own(form)

    def _own(self, form: Form) -> float:
        """How far it is off beyond its atoms, where units have been added up as well."""
        added = self._accumulation_error(form) if self.readings is None else 0.0
        return added + self.rounding(form)

    def _lost(self, form: Form) -> float:
        """What factors lose beyond their relative error: where they underflow."""
        total = 0.0
        for atom, factor in form.terms:
            near = sum_errors.held(self, factor)
            if near is None:
                return math.inf
            off = magnitude(near - factor) - self.u * magnitude(factor)
            total += max(off, 0.0) * magnitude(self.circuit.laws[atom].size)
        return total

    def sum_error(self, number: Number) -> float:
        """How far a number that weights compute can be off."""
        return self.inherited(form_of(number)) + sum_errors.rounding(self, number)

    def magnitude_of(self, each: Sum) -> float:
        """How large what is computed for a sum can be."""
        return sum_errors.magnitude_of(self, each)

    def inherited(self, form: Form, which: str = "absolute") -> float:
        """The errors of the atoms together, at the kind of row where they are the most."""
        parts = [
            (_times(f, getattr(self.errors[atom], which)), self.errors[atom].silent)
            for atom, f in form.terms
        ]
        everywhere: float = sum(error for error, silent in parts if not silent)
        if not any(silent for _, silent in parts):
            return everywhere
        kinds = range(len(self.circuit.alphabet) + self.circuit.bos)
        return everywhere + max(
            math.fsum(error for error, silent in parts if silent and kind not in silent)
            for kind in kinds
        )

    def scaled_error(self, form: Form) -> float:
        """How far a form can be off, times D."""
        return self.inherited(form, "scaled") + self._own(form) * self.most

    def relative_error(self, form: Form) -> float:
        """How far a sum can be off in relation to it, where no term is negative, and 0 exact."""
        if form.constant or any(factor < 0 for _, factor in form.terms):
            return math.inf
        shared = max((self.errors[atom].relative for atom in form.atoms), default=0.0)
        least = magnitude(self.circuit.separation(form) or 0)
        if self.readings is None:
            if not self._is_normal(form):
                return math.inf
            added = self._accumulation_error(form)
            if self.is_exact(form) and not added:
                return shared
            own = self._relative(form)
            return (1 + shared) * (1 + own) - 1 + (added / least if added else 0.0)
        worst = 0.0
        for each in self._read(form):
            of = sum_errors.relative(self, each)
            rest = of.rest + of.share * of.constants
            off = (1 + shared) * (1 + of.share) - 1
            worst = max(worst, off + (rest / least if least else math.inf) if rest else off)
        return worst

    def step_error(self, number: int, at: Any, shift: Any) -> float:
        """How far the form of a step can be off where it is at most `at`.

        It is compared with a threshold, as it is read: less the shift.
        """
        atom: Any = self.circuit.atoms[number]
        if self.readings is None:
            form = atom.form
            return min(self.error(form - shift), self._comparison_error(form, at))
        worst = 0.0
        for units in self.readings.steps[number]:
            first, second = (each.form.constant for each in units)
            scale = atom.zone / abs(first - second) / 2  # they differ by half of a zone
            for each in units:
                anywhere = self.inherited(atom.form) + magnitude(scale) * sum_errors.rounding(
                    self, each
                )
                worst = max(worst, min(anywhere, self._compared(atom.form, each, scale, at)))
        return worst

    def step_rounding(self, number: int) -> float:
        """How far the two units of a step can be off, beyond what both inherit; 0 where exact."""
        atom: Any = self.circuit.atoms[number]
        if self.readings is None:
            scaled = upper_unit(atom)
            return 2 * self.rounding(scaled) + (0 if self.is_exact(scaled) else 2 * self.u)
        worst = 0.0
        for units in self.readings.steps[number]:
            if all(sum_errors.is_exact(self, each) for each in units):
                continue
            off = sum(sum_errors.rounding_apart(self, each) for each in units)
            upper, lower = (each.form.constant for each in units)
            worst = max(worst, off / magnitude(upper - lower) + 2 * self.u)
        return worst

    def _compared(self, form: Form, each: Sum, scale: Fraction, at: Any) -> float:
        """As `_comparison_error`, by a sum of which the form is `scale` times the terms."""
        if not self._is_from_nothing(form):
            return math.inf
        of = sum_errors.relative(self, each)
        share, others = self._shares(form)
        by = magnitude(scale)
        parts = (1 + share) * (1 + of.share) - 1
        rest = by * (of.share * of.constants + of.rest)
        return others * (1 + of.share) + parts * magnitude(at) + rest

    def _is_from_nothing(self, form: Form) -> bool:
        """Whether no term is negative."""
        terms = [(number, factor) for number, factor in form.terms]
        below = any(row.lo < 0 for atom, _ in terms for row in self.circuit.laws[atom].rows)
        return not (form.constant or below or any(factor < 0 for _, factor in terms))

    def _shares(self, form: Form) -> tuple[float, float]:
        """How far terms are off in relation to them, and how far all others together."""
        share, others = 0.0, 0.0
        for number, factor in form.terms:
            errors = self.errors[number]
            if errors.relative < math.inf:
                share = max(share, errors.relative)
            else:
                others += _times(factor, errors.absolute)
        return share, others

    def _comparison_error(self, form: Form, at: Any) -> float:
        """How far a form can be off where it is at most `at`, which is compared with a threshold.

        Where no term is negative, those with an error in relation to them are off by a part of
        `at`, and only the others by as much anywhere.
        """
        kept = Form(tuple(t for t in form.terms if self.errors[t[0]].relative < math.inf))
        if not self._is_from_nothing(form) or not self._is_normal(kept):
            return math.inf
        share, others = self._shares(form)
        others += self._accumulation_error(form) + self._underflow(form)
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
        stored, added = (kept + 1 + rounded) * self.u, terms * self.w
        if max(stored, added) >= 1:
            return math.inf
        return added / (1 - added) + stored / (1 - stored)

    def mean_error(self, size: Any) -> float:
        """How far a mean of numbers of this size can be off."""
        if size == math.inf:
            return math.inf
        return mean_error(self.most, Fraction(size), self.a, self.order)

    def require(self, part: MarginOwner, what: str, error: float, allowed: Any) -> None:
        """MarginHandler that an error of a part is below what is allowed."""
        self.ask(part, what, error, magnitude(allowed))

    def require_count(
        self,
        part: MarginOwner,
        y: Form,
        w: Form,
        scale: int,
        least: int,
        most: int,
        forms: Sequence[Form] = (),
    ) -> None:
        """MarginHandler that 2 k y − k² w tells neighbouring k apart.

        They differ by w/scale²; D y and D w are off, and the terms round.

        Of both, the products, their sum and what is stored: 8w k²; 8u k² more where the format is
        narrower than its accumulator, and does not hold the weights. Where there are weights, both
        forms round as they are read.
        """
        largest = max(most, -least, 1)
        if self.readings is None:
            rounding = 8 * self.w + (8 * self.u if self.u > self.w else 0.0)
            error = 2 * scale * self.scaled_error(y) + (2 * largest + 1) * self.scaled_error(w)
            error += rounding * largest**2
        else:
            error = 2 * scale * self.inherited(y, "scaled")
            error += (2 * largest + 1) * self.inherited(w, "scaled")
            value = (largest / scale) ** 2 * (1 if least >= 0 or most <= 0 else 3)
            rows = [each for form in forms for each in self._read(form)]
            known = (y, largest / scale)
            each_is_off = (self.scaled_rounding(each, w, value, known) for each in rows)
            error += 2 * scale**2 * max(each_is_off)
        self.require(part, "the weights of the answer, a count", largest**2, self.a.largest)
        self.require(part, "the error of the answer, a count", error, 1)

    def scaled_rounding(
        self, each: Sum, w: Form, value: float, known: tuple[Form, float] | None = None
    ) -> float:
        """How far a sum is off beyond its atoms, times D; w is 1/D, and D times the sum known.

        So may be D times a number that is one of its parts; where none of the terms of that is
        negative, it rounds in relation to it.
        """
        if sum_errors.is_exact(self, each):
            return 0.0
        sizes = [
            sum(
                magnitude(factor) * (1.0 if atom in w.factors else self._scaled_size(atom))
                + _times(factor, self.errors[atom].scaled)
                for atom, factor in form_of(x).terms
            )
            + (magnitude(form_of(x).constant) + sum_errors.rounding(self, x)) * self.most
            for _, x in each.parts
        ]
        owns = [sum_errors.rounding(self, x) * self.most for _, x in each.parts]
        for k, (_, x) in enumerate(each.parts):
            if known is not None and form_of(x) == known[0] and self._is_from_nothing(known[0]):
                of = sum_errors.relative(self, x)
                size = known[1] + self.inherited(known[0], "scaled")
                own = of.share * size + of.rest * self.most
                sizes[k], owns[k] = min(sizes[k], size + own), min(owns[k], own)
        value += self.inherited(each.form, "scaled")
        most = float(self.most)
        return sum_errors.rounding_within(self, each, sizes, value, most, owns=owns)

    def _scaled_size(self, atom: int) -> float:
        return magnitude(self.circuit.laws[atom].size) * self.most


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
