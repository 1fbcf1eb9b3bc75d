"""Error bounds of every form of a circuit in a number format, given those of its atoms.

The sums of a form are bounded in any order; means, and hidden units that end in one slot, in an
order that is given. A sum has no error if it consists of whole numbers, or of other multiples of
one power of two, that the significand of the format holds.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, final

from transformist.arithmetic import is_power_of_two
from transformist.circuit import row_bounds, sum_errors
from transformist.circuit.atom_errors import (
    AtomErrors,
    Errors,
    magnitude,
    product_bound,
    significant_bits,
)
from transformist.circuit.circuit import Atom, Head
from transformist.circuit.forms import Form
from transformist.circuit.readings import Number, Readings, Sum, SumMatrix, form_of
from transformist.laws import Grid
from transformist.rounding import mean_error

MarginOwner: TypeAlias = "int | str"
"""The part of a model that needs a margin: an atom, by its number, or another part, by its name."""

READ_OUT = "read-out"
"""The owner of the margins of an answer."""

MarginHandler: TypeAlias = "Callable[[MarginOwner, str, float, float], None]"
"""Receives a margin: its owner, a quantity, the bound found, and the limit it must stay below."""


class ComparisonBound(NamedTuple):
    """Error bound of a form that is compared with a threshold, at values up to a number x.

    Attributes:
        others: the part that does not depend on x.
        parts: the error in relation to x.
        rest: error of evaluation that does not depend on x.

    """

    others: float
    parts: float
    rest: float

    def at(self, x: Any) -> float:
        """The bound at values up to x."""
        if self.others == math.inf:
            return math.inf
        return self.others + self.parts * magnitude(x) + self.rest


class RoundedHead(Head):
    """A head whose errors are bounded; each kind of head is a subclass."""

    @abstractmethod
    def errors(self, margins: Margins, value: Form, number: int) -> Errors:
        """Errors of what the head fetches of a form; its margins are required, too."""


class RoundedAtom(Atom):
    """An atom whose errors are bounded; each kind of atom is a subclass."""

    @abstractmethod
    def errors(self, margins: Margins, number: int) -> Errors:
        """Errors of the atom, from errors of what it reads; its margins are required, too."""


@final
@dataclass(eq=False, kw_only=True)
class Margins(AtomErrors):
    """Error bounds of the forms of a circuit in a format, and the margins that must exceed them.

    Attributes:
        sharpness: 1/τ of each head.
        on_margin: receives every margin, to refuse it or to note it.
        readings: how weights read each form, where there are weights; without, a form is taken to
            be added up of its atoms, each times its factor.
        accumulated: errors of adding the units of a form, each computed once.
        exact_forms: forms that the format computes without an error, each computed once.
        of_scores: bounds of the scores of heads, each computed once.
        separations: the least magnitudes of atoms but 0, each computed once.
        compared: error bounds of the units of a step, each computed once.

    """

    sharpness: Mapping[Head, Fraction]
    on_margin: MarginHandler
    readings: Readings | None = None
    accumulated: dict[Form, float] = field(default_factory=dict)
    exact_forms: dict[Form, bool] = field(default_factory=dict)
    of_scores: dict[Head, Any] = field(default_factory=dict)
    separations: dict[int, float] = field(default_factory=dict)
    compared: dict[int, list[tuple[float, ComparisonBound]]] = field(default_factory=dict)

    def size(self, form: Form) -> float:
        """Σ |factor| |atom| + |constant|, at the symbols or BOS."""
        total, sizes = magnitude(form.constant), self.sizes_of_atoms
        for atom, share in zip(form.atoms, self.factors_of(form), strict=True):
            most = sizes[atom]
            if most:
                total += share * most
        return total

    def reach(self, form: Form) -> float:
        """Largest magnitude of the number computed for a form."""
        return magnitude(self.circuit.size(form)) + self.error(form)

    def is_exact(self, form: Form) -> bool:
        """True if the format computes the form without an error, in any order of summation."""
        if self.readings is not None:
            return all(sum_errors.is_exact(self, each) for each in self._read(form))
        found = self.exact_forms.get(form)
        if found is None:
            found = self.exact_forms[form] = self._is_exact(form)
        return found

    def _is_exact(self, form: Form) -> bool:
        if any(self.errors[atom].absolute for atom in form.atoms):
            return False
        grid = self.grid_everywhere(form)
        if grid is None or grid.counts or grid.c & (grid.c - 1):
            return False
        # Terms and partial sums are multiples of 1/c, a power of two, and at most `size`: the
        # significand holds them if size · c ≤ 2ᵖ. None underflows if 1/c, divided, is a number.
        c = magnitude(grid.c)
        fits = self.size(form) * c <= 2.0**self.a.precision
        fits = fits and all(self.held(f) == f for f in form.distinct_factors)
        return fits and c * self._divisor(form) * self.a.smallest <= 1

    def _read(self, form: Form) -> list[Sum]:
        """The sums by which weights compute a form."""
        assert self.readings is not None
        return self.readings.sums[form]

    def rounding(self, form: Form) -> float:
        """Error bound of the evaluation of a form, errors of its atoms left out."""
        if self.readings is not None:
            return max(sum_errors.rounding(self, each) for each in self._read(form))
        size = self.size(form)
        # Partial sums are at most `size`, and twice that with their rounding: they do not overflow.
        if max(2 * size, self._divisor(form)) >= self.a.largest:
            return math.inf
        if self.is_exact(form):
            return 0.0
        underflow = self._underflow(form)
        if _is_a_power_of_two(form):
            return underflow + self._lost(form) if abs(form.terms[0][1]) < 1 else 0.0
        return self._relative(form) * size + underflow + self._lost(form)

    def _accumulation_error(self, form: Form) -> float:
        """Error bound of adding the units of several atoms in one slot: a step has two large ones.

        Nothing where all that is added are multiples of one power of two that the format holds.
        """
        linear = form.linear
        found = self.accumulated.get(linear)
        if found is None:
            found = self.accumulated[linear] = self._accumulated(linear)
        return found

    def _accumulated(self, form: Form) -> float:
        # A network adds the units of several atoms into one slot. The two units of a step cancel,
        # but each is rounded by its own size, and so is every partial sum that holds one without
        # the other. `steps` adds up the heights of these units and `sizes` what atoms come to.
        steps, sizes, units = 0.0, 0.0, 0
        size_of, factors = self.sizes_of_atoms, dict[int, Fraction]()
        for (number, factor), share in zip(form.terms, self.factors_of(form), strict=True):
            parts = len(self.circuit.atoms[number].hidden_units)
            if not parts:
                continue
            # Many units share few factors, which are the same objects.
            factors[id(factor)] = factor
            units += parts
            sizes += share * size_of[number]
            if parts > 1:
                steps += share * self.height_of(number)
        products = any(significant_bits(factor) > 1 for factor in factors.values())
        # With two summands the one addition rounds the sum itself, which `rounding` counts.
        if not steps or (units < 3 and not products):
            return 0.0
        has_errors = any(self.errors[atom].absolute for atom in form.atoms)
        if not has_errors and self._holds_units(form, 2 * steps + sizes):
            return 0.0
        # Each product rounds by w. The bounds are of first order in x = k w, for k units:
        # (e^x − 1)/x ≤ 1 + x for x ≤ 1, so the factor 1 + x covers the rest.
        x = units * self.w
        if x > 1:
            return math.inf
        rounded = self.w * (2 * steps + sizes) if products else 0.0
        return (self.order.accumulation(units, steps, sizes, self.w) + rounded) * (
            1 + max(x, 2**-10)
        )

    def _holds_units(self, form: Form, size: float) -> bool:
        """True if all units are multiples of one 2ᵏ, and p bits hold their sums up to a size.

        The atoms of the form must have no errors.
        """
        c, grids = 1, dict[tuple[int, int], tuple[Grid, Fraction]]()
        for number, factor in form.terms:
            if self.circuit.atoms[number].hidden_units:
                grid = self.grid_of_units(number)
                if grid is None or grid.counts:
                    return False
                grids[grid.c, id(factor)] = grid, factor
        # Many units share few grids and factors.
        for grid, factor in grids.values():
            c = math.lcm(c, grid.times(factor).c)
        return not c & (c - 1) and size * c <= 2.0**self.a.precision

    def _underflow(self, form: Form) -> float:
        """Error by underflow of a product and an addition for each term and for the constant."""
        return 2 * (len(form.terms) + 1) * self.a.smallest * self._divisor(form)

    def _divisor(self, form: Form) -> float:
        """The most that a sum may be divided by where it is kept; no factor is larger."""
        return max(1.0, *self.factors_of(form), 1.0)

    def error(self, form: Form) -> float:
        """Error bound of a form."""
        return self.inherited(form) + self._own(form)

    def _own(self, form: Form) -> float:
        """Error bound of a form beyond its atoms, the addition of units included."""
        added = self._accumulation_error(form) if self.readings is None else 0.0
        return added + self.rounding(form)

    def _lost(self, form: Form) -> float:
        """Error bound of factors that underflow, beyond their relative error."""
        rounded = dict[Fraction, Fraction]()
        for factor in form.distinct_factors:
            near = self.held(factor)
            if near is None:
                return math.inf
            if near != factor:
                rounded[factor] = near
        total = 0.0
        for atom, factor in form.terms if rounded else ():
            near = rounded.get(factor)
            if near is None:
                continue
            # `_relative` counts u for a factor that the format does not hold. A factor that
            # underflows is off by more than u times itself: only what is beyond that is added here.
            off = magnitude(near - factor) - self.u * magnitude(factor)
            total += max(off, 0.0) * magnitude(self.circuit.laws[atom].size)
        return total

    def sum_error(self, number: Number) -> float:
        """Error bound of a number that weights compute."""
        return self.inherited(form_of(number)) + sum_errors.rounding(self, number)

    @property
    def largest_magnitude(self) -> float:
        """Largest magnitude of all sums that weights compute; 0 without any."""
        if self.readings is None:
            return 0.0
        read = (sum_errors.magnitude_of(self, each) for each in self.readings.rows)
        return max(row_bounds.largest_magnitude_of_rows(self, self.readings.unlisted), *read, 0.0)

    def scaled_error(self, form: Form) -> float:
        """Error bound of D times a form."""
        return self.inherited(form, "scaled") + self._own(form) * self.most

    def relative_error(self, form: Form) -> float:
        """Relative error bound of a sum without negative terms, whose 0 is exact."""
        if form.constant or any(factor < 0 for _, factor in form.terms):
            return math.inf
        # No term is negative, so each is at most the sum: if every term is off by at most the part
        # `shared` of itself, the sum is off by at most this part of itself, however small it is.
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
        # An absolute error is relative to the least value that is not 0; 0 is computed exactly.
        worst = 0.0
        for each in self._read(form):
            of = sum_errors.relative(self, each)
            rest = of.rest + of.share * of.constants
            off = (1 + shared) * (1 + of.share) - 1
            worst = max(worst, off + (rest / least if least else math.inf) if rest else off)
        return worst

    def comparison_error_of(self, form: Form, each: Sum, scale: Fraction) -> ComparisonBound:
        """The bound `comparison_error` for a sum of which the form is `scale` times the terms."""
        if not self.is_from_nothing(form):
            return ComparisonBound(math.inf, 0.0, 0.0)
        of = sum_errors.relative(self, each)
        share, others = self._shares(form)
        by = magnitude(scale)
        parts = (1 + share) * (1 + of.share) - 1
        rest = by * (of.share * of.constants + of.rest)
        return ComparisonBound(others * (1 + of.share), parts, rest)

    def is_from_nothing(self, form: Form) -> bool:
        """True if no term is negative and there is no constant."""
        if form.constant or any(factor < 0 for factor in form.distinct_factors):
            return False
        return not any(self.circuit.is_atom_negative(atom) for atom in form.atoms)

    def _shares(self, form: Form) -> tuple[float, float]:
        """Largest relative error of the terms that have one, and error of all others together."""
        share, others = 0.0, 0.0
        for number, factor in form.terms:
            errors = self.errors[number]
            if errors.relative < math.inf:
                share = max(share, errors.relative)
            else:
                others += product_bound(factor, errors.absolute)
        return share, others

    def comparison_error(self, form: Form, at: Any) -> float:
        """Error bound of a form at values up to `at`, to compare it with a threshold.

        Where no term is negative, those with an error in relation to them are off by a part of
        `at`, and only the others by as much anywhere.
        """
        if not self.is_from_nothing(form):
            return math.inf
        kept = Form(tuple(t for t in form.terms if self.errors[t[0]].relative < math.inf))
        if not self._is_normal(kept):
            return math.inf
        share, others = self._shares(form)
        # These errors do not shrink with the value of the form, so they count in full at every
        # value.
        others += self._accumulation_error(form) + self._underflow(form)
        rounded = self._relative(form)
        # Terms have the relative error `share`, sums of them `rounded`, and the threshold, a bias
        # of the same sum, `rounded` as well: in all a part of `at`, as no term is above the form.
        parts = (1 + share) * (1 + rounded) - 1 + rounded
        return others * (1 + rounded) + parts * magnitude(at)

    def _is_normal(self, form: Form) -> bool:
        """True if neither a term nor a mean of it is so small that the format loses bits."""
        # A number is normal from s/(2u) on, s the least number: so is 1/D of one of 2 D s/u, with a
        # factor of 4 to spare for the errors of the number itself.
        least = 2 * self.most * self.a.smallest / self.u
        separations = (magnitude(factor) * self._least(atom) for atom, factor in form.terms)
        return all(each >= least for each in separations)

    def _least(self, atom: int) -> float:
        """The least magnitude of an atom other than 0; 0 if it is not known."""
        if atom not in self.separations:
            found = self.circuit.separation(Form.atom(atom))
            self.separations[atom] = magnitude(found or 0)
        return self.separations[atom]

    def _relative(self, form: Form) -> float:
        """Relative error of evaluating a form, in relation to its terms.

        Adding up m terms and a constant rounds by w at most m + 2 times. A sum in a slot is stored
        once by a network, or once by each head that adds to it, and once more as it is read: that
        is u each; a factor that the format does not hold is u more. A number alone is stored as
        it is.
        """
        terms = len(form.terms) + 2
        atoms = self.circuit.atoms
        heads = len({atoms[number].fetched_by for number in form.atoms} - {None})
        weights = (*form.distinct_factors, form.constant)
        rounded = any(significant_bits(weight) > self.a.precision for weight in weights)
        kept = max(heads, 1) if len(form.terms) > 1 else 0
        stored, added = (kept + 1 + rounded) * self.u, terms * self.w
        # j roundings by v and k by w come to (1 + v)ʲ (1 + w)ᵏ − 1 ≤ e^(a + b) − 1, a = jv, b = kw.
        # That is at most Σ aᵐ + Σ bᵐ, m ≥ 1, since aᵐ + bᵐ ≥ (a + b)ᵐ/2ᵐ⁻¹ ≥ (a + b)ᵐ/m!.
        if max(stored, added) >= 1:
            return math.inf
        return added / (1 - added) + stored / (1 - stored)

    def mean_error(self, size: Any) -> float:
        """Error bound of a mean of numbers of this size."""
        if size == math.inf:
            return math.inf
        return mean_error(self.most, Fraction(size), self.a, self.order)

    def require(self, owner: MarginOwner, what: str, error: float, allowed: Any) -> None:
        """Require that an error is below its limit."""
        self.on_margin(owner, what, error, magnitude(allowed))

    def require_count(
        self,
        owner: MarginOwner,
        y: Form,
        w: Form,
        scale: int,
        least: int,
        most: int,
        forms: Sequence[Form] = (),
    ) -> None:
        """Require that 2 k y − k² w tells neighbouring k apart.

        Args:
            owner: of the margins.
            y: a form, the count times w.
            w: a form that is at least 1/D.
            scale: the labels k are multiples of 1/scale.
            least: the first k, times the scale.
            most: the last k, times the scale.
            forms: 2 k y − k² w for each k, but for the rows in `Readings.unlisted`.

        """
        # Let k = m/scale and its neighbour be k ± 1/scale. Their forms differ by w/scale² at least.
        # An error e of y moves the difference by 2 e/scale, an error e of w by (2m ± 1) e/scale²,
        # and each form rounds. Times D scale², all of that has to be below 1. Products, their sum
        # and the stored result round both forms by 8w m² together; by 8u m² more in a format that
        # is narrower than its accumulator. Weights round both forms as they are read.
        largest = max(most, -least, 1)
        if self.readings is None:
            rounding = 8 * self.w + (8 * self.u if self.u > self.w else 0.0)
            error = 2 * scale * self.scaled_error(y) + (2 * largest + 1) * self.scaled_error(w)
            error += rounding * largest**2
        else:
            error = 2 * scale * self.inherited(y, "scaled")
            error += (2 * largest + 1) * self.inherited(w, "scaled")
            value = (largest / scale) ** 2 * (1 if least >= 0 or most <= 0 else 3)
            known = (y, largest / scale)
            unlisted = self._largest_scaled_rounding(self.readings.unlisted, w, value, known)
            read = (each for form in forms for each in self._read(form))
            each_is_off = (self.scaled_rounding(each, w, value, known) for each in read)
            error += 2 * scale**2 * max([unlisted, *each_is_off])
        self.require(owner, "the weights of the answer, a count", largest**2, self.a.largest)
        self.require(owner, "the error of the answer, a count", error, 1)

    def scaled_rounding(
        self, each: Sum, w: Form, value: float, known: tuple[Form, float] | None = None
    ) -> float:
        """Error bound of D times a sum, beyond its atoms.

        w is 1/D, and D times the sum is at most `value`.

        `known` is a number with a bound of D times the number. Where it is one of the parts, and
        none of its terms is negative, its own rounding is relative to it.
        """
        if sum_errors.is_exact(self, each):
            return 0.0
        value += self.inherited(each.form, "scaled")
        parts = [self._scaled_part(x, w, known) for _, x in each.parts]
        sizes, owns = [size for size, _ in parts], [own for _, own in parts]
        most = float(self.most)
        return sum_errors.rounding_within(self, each, sizes, value, most, owns=owns)

    def _largest_scaled_rounding(
        self, sums: SumMatrix, w: Form, value: float, known: tuple[Form, float]
    ) -> float:
        """Largest `scaled_rounding` of any row of `sums`."""
        parts = [self._scaled_part(x, w, known) for x in sums.numbers]
        sizes, owns = [size for size, _ in parts], [own for _, own in parts]
        values = value + row_bounds.limits_of_inherited(self, sums, "scaled")
        bounds = row_bounds.limits_of_rounding(self, sums, sizes, owns, values, float(self.most))
        return row_bounds.largest(
            bounds, lambda row: self.scaled_rounding(sums.row(row), w, value, known)
        )

    def _scaled_part(
        self, x: Number, w: Form, known: tuple[Form, float] | None
    ) -> tuple[float, float]:
        """Magnitude of D times a number, and D times its error beyond its atoms."""
        # Everything here is times D. An atom of w is 1/D, which times D is 1; any other atom is at
        # most D times its largest magnitude. Errors are those of D times the atom, and a constant
        # counts D times.
        form, own = form_of(x), sum_errors.rounding(self, x)
        size = sum(
            magnitude(factor) * (1.0 if atom in w.factors else self._scaled_size(atom))
            + product_bound(factor, self.errors[atom].scaled)
            for atom, factor in form.terms
        )
        size += (magnitude(form.constant) + own) * self.most
        own *= self.most
        if known is not None and form == known[0] and self.is_from_nothing(known[0]):
            of = sum_errors.relative(self, x)
            computed = known[1] + self.inherited(known[0], "scaled")
            relative = of.share * computed + of.rest * self.most
            size, own = min(size, computed + relative), min(own, relative)
        return size, own

    def _scaled_size(self, atom: int) -> float:
        return magnitude(self.circuit.laws[atom].size) * self.most


def _is_a_power_of_two(form: Form) -> bool:
    """True if the form is an atom times a power of two."""
    return not form.constant and len(form.terms) == 1 and is_power_of_two(abs(form.terms[0][1]))


def follow(margins: Margins) -> None:
    """Add the errors of the next atom, and require its margins."""
    number = len(margins.errors)
    atom = margins.circuit.atoms[number]
    assert isinstance(atom, RoundedAtom)
    margins.errors.append(atom.errors(margins, number))
