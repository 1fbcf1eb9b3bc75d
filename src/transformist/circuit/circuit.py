"""Circuits: the numbers of a transformer, and the laws that hold of them on every input.

A number is an affine form of atoms; an atom is what needs a place in the weights. Three classes
stand in one file because each is defined by the others: the law of an atom follows from the laws of
the forms that it reads (`Atom`), what a head brings follows from what it attends to
(`Head`), and a `Circuit` adds up the laws of atoms into those of forms.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, ItemsView, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from transformist.circuit.forms import Form, content
from transformist.laws import INFINITY, ZERO, Bound, Grid, Range, Ranges, total_range

Rows: TypeAlias = tuple[Range, ...]
"""A range for each symbol of the alphabet, and for BOS where there is one."""

Pairs: TypeAlias = "list[tuple[Form, Form]]"
"""Queries and keys, whose products are summed."""


@dataclass(frozen=True)
class Law:
    """Facts about a number that hold on every input.

    Attributes:
        rows: its range at each kind of row, as `Ranges` or a tuple.
        grid: a grid that it lies on at the symbols, if one is known.
        least: its least magnitude but 0, where that is known without a grid.

    """

    rows: Ranges | Rows
    grid: Grid | None
    least: Fraction | None = None

    @cached_property
    def ranges(self) -> Ranges:
        """The ranges in `rows`, as `Ranges`."""
        return Ranges.of(self.rows)

    @cached_property
    def size(self) -> Bound:
        """The largest magnitude."""
        return max(row.size for row in self.ranges.distinct())


@dataclass(frozen=True)
class Tolerance:
    """A form, and the largest error that is allowed in it."""

    form: Form
    allowed: Fraction


class Head(ABC):
    """A head: its scores, and the law of the numbers that it brings."""

    mask: str

    is_scored: ClassVar[bool]
    """True if its scores differ, so that softmax leaves weight off target."""

    @property
    @abstractmethod
    def forms(self) -> tuple[Form, ...]:
        """Forms that queries and keys are made of."""

    @property
    @abstractmethod
    def scores(self) -> Pairs:
        """Queries and keys, in positions; under softmax they are multiplied by 1/τ."""

    @property
    def is_same_everywhere(self) -> bool:
        """True if it brings the same number to every row, BOS included."""
        return False

    @abstractmethod
    def law(self, circuit: Circuit, value: Form) -> Law:
        """Law of what the head fetches of a form."""

    @abstractmethod
    def grid_at_bos(self, circuit: Circuit, number: int, value: Form) -> Grid | None:
        """Grid at BOS of what the head fetches, where BOS sees symbols; `None` if not known."""

    def one_over(self, _circuit: Circuit, _value: Form) -> str | None:
        """Name of D, where the head brings 1/D."""
        return None

    @abstractmethod
    def tolerances(self, circuit: Circuit, sharpness: Fraction, share: Fraction) -> list[Tolerance]:
        """Tolerances of queries and keys, for a 1/τ and a share of the weight off target."""

    @abstractmethod
    def words(self, value: str, text_of: Callable[[Form], str]) -> str:
        """Description, for people, of what the head fetches of a value."""


class Atom(ABC):
    """A number that needs a place in the weights: what it reads, and its law."""

    absorbs_errors: ClassVar[bool] = False
    """True if small errors of what it reads do not change it, as with a step."""

    is_kept_alone: ClassVar[bool] = False
    """True if it has a slot of its own, and no slot holds its sum with other atoms."""

    @property
    @abstractmethod
    def reads(self) -> tuple[Form, ...]:
        """Forms that the atom is computed from."""

    @abstractmethod
    def law(self, circuit: Circuit) -> Law:
        """Law of the atom, from the laws of what it reads."""

    @abstractmethod
    def over_nothing(self, circuit: Circuit) -> Fraction:
        """Value at BOS where the input is empty."""

    def grid_at_bos(self, _circuit: Circuit, _number: int) -> Grid | None:
        """Grid at BOS, whatever the input; asked for only where there may be several values."""
        return None

    @property
    def is_same_everywhere(self) -> bool:
        """True if it is the same at every row, BOS included."""
        return self.fetched_by is not None and self.fetched_by.is_same_everywhere

    @property
    def hidden_units(self) -> tuple[tuple[Form, Fraction], ...]:
        """Pairs of f and c: the atom is Σ c ReLU(f); none if no network computes it."""
        return ()

    def height(self, _circuit: Circuit, _falls: bool) -> Bound:
        """Bound of each of two hidden units that cancel, beyond what they come to."""
        return Fraction(0)

    @property
    def reads_alone(self) -> tuple[Form, ...]:
        """Forms that the atom reads beside the queries and keys of its head."""
        return self.reads

    @property
    def fetched_by(self) -> Head | None:
        """The head that fetches the atom, if one does."""
        return None

    def one_over(self, _circuit: Circuit) -> str | None:
        """Name of D, where the atom is 1/D."""
        return None

    def tolerances(self, _allowed: Fraction | None) -> list[Tolerance]:
        """Tolerances of what is read, from the tolerance of the atom; `None` if it has none."""
        return []

    @abstractmethod
    def words(self, text_of: Callable[[Form], str]) -> str:
        """Description of the atom for people."""


@dataclass(eq=False)
class Circuit:
    """The atoms of a transformer, each once, after those that it reads.

    Attributes:
        alphabet: the symbols.
        bos: True if BOS is added in front.
        max_length: N, or `None` for any length.
        weighting: of the heads.
        atoms: by their numbers.
        laws: of each.
        names: of each, for people.

    """

    alphabet: tuple[Any, ...]
    bos: bool
    max_length: int | None
    weighting: str
    atoms: list[Atom] = field(default_factory=list)
    laws: list[Law] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    _numbers: dict[Atom, int] = field(default_factory=dict)
    _rows: dict[Form, Ranges] = field(default_factory=dict)
    _grids: dict[Form, Grid | None] = field(default_factory=dict)
    _spans_of_forms_at_bos: dict[Form, Range] = field(default_factory=dict)
    _values_over_nothing: dict[Form, Fraction] = field(default_factory=dict)
    _grids_of_forms_at_bos: dict[Form, Grid | None] = field(default_factory=dict)
    _head_atoms: dict[Head, frozenset[int]] = field(default_factory=dict)
    _clean_heads: dict[Head, bool] = field(default_factory=dict)
    _least_multiples: dict[Form, Fraction | None] = field(default_factory=dict)

    def add(self, atom: Atom, name: str, rows: Ranges | Rows | None = None) -> Form:
        """Add an atom if it is new, and return it as a form; `rows` may narrow its ranges."""
        number = self._numbers.get(atom)
        if number is None:
            law = atom.law(self)
            number = self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
            self.laws.append(law if rows is None else replace(law, rows=rows))
            self.names.append(name)
        return Form.atom(number)

    def number(self, atom: Atom) -> int:
        """The number of an atom that is there."""
        return self._numbers[atom]

    def find(self, atom: Atom) -> int | None:
        """The number of an atom, where it is there."""
        return self._numbers.get(atom)

    @property
    def longest(self) -> Bound:
        """N, or infinity."""
        return INFINITY if self.max_length is None else Fraction(self.max_length)

    @property
    def most_seen(self) -> int | None:
        """The most rows that a row attends to, where that is bounded."""
        return None if self.max_length is None else self.max_length + self.bos

    @property
    def reach(self) -> int:
        """P, the least power of two above N."""
        # A power of two, so that scales of scores that are made of it multiply without rounding.
        return 1 << int(self.max_length or 0).bit_length()

    def is_bos(self, form: Form) -> bool:
        """True if a form is 1 at BOS and 0 at symbols."""
        if not self.bos:
            return False
        symbols = len(self.alphabet)
        # Each of these ranges is a single number, so the form has exactly these values on every
        # input.
        return self.rows(form) == Ranges(symbols + 1, ZERO, {symbols: Range.of(1)})

    def rows(self, form: Form) -> Ranges:
        """The range of a form at each kind of row; kept, since no law changes."""
        found = self._rows.get(form)
        if found is None:
            found = self._rows[form] = self._shifted(form)
        return found

    def _shifted(self, form: Form) -> Ranges:
        """The ranges of a form, from those of the same form without its constant."""
        if not form.constant:
            return self._summed(form)
        ranges, constant = self.rows(form.linear), Range.of(form.constant)
        return ranges.mapped(lambda each: each + constant)

    def _summed(self, form: Form) -> Ranges:
        # The ranges of terms are added as if the terms were independent. That is sound for terms
        # that depend on each other, as the sum of ranges holds every sum of numbers from them; it
        # may be too wide.
        found = self._summed_as_whole_numbers(form)
        if found is not None:
            return found
        # `apart` has, for each kind, the terms whose range at this kind is not the common one. A
        # one-hot number is 0 at most kinds: it is left out of the common range, so that a sum of
        # one-hot numbers takes time in the number of terms, not of terms times kinds.
        known = self._ranges
        for law in self.laws[len(known) :]:
            ranges = law.ranges
            known.append((None if ranges.common == ZERO else ranges.common, ranges.others.items()))
        commons, apart = dict[int, Range](), dict[int, dict[int, Range]]()
        for number, factor in form.terms:
            common_of_atom, others_of_atom = known[number]
            if common_of_atom is not None:
                commons[number] = common_of_atom.times(factor)
            for kind, each in others_of_atom:
                apart.setdefault(kind, {})[number] = each.times(factor)
        others = {
            kind: total_range([*({**commons, **own}).values()]) for kind, own in apart.items()
        }
        common = total_range([Range.of(form.constant), *commons.values()])
        return Ranges(len(self.alphabet) + self.bos, common, others)

    def _summed_as_whole_numbers(self, form: Form) -> Ranges | None:
        """The sum of the ranges if all factors and bounds are whole numbers, else `None`."""
        known = self._whole_ranges
        for law in self.laws[len(known) :]:
            known.append(_whole_ranges(law.ranges))
        # Sums of `int` are much faster than sums of `Fraction`, which reduces each result. The
        # bounds of all atoms are read as whole numbers once, and a circuit has far more forms than
        # atoms.
        whole = form.whole_factors
        if whole is None:
            return None
        low, high = 0, 0  # sums of the common ranges
        apart: dict[int, list[int]] = {}  # what each other kind adds to these sums
        for number, factor in zip(form.atoms, whole, strict=True):
            ranges = known[number]
            if ranges is None:
                return None
            least, most, others = ranges
            # A negative factor swaps the ends of a range.
            if factor < 0:
                least, most = most, least
            low += factor * least
            high += factor * most
            for kind, lo, hi in others:
                if factor < 0:
                    lo, hi = hi, lo
                sums = apart.get(kind)
                if sums is None:
                    apart[kind] = [factor * lo, factor * hi]
                else:
                    sums[0] += factor * lo
                    sums[1] += factor * hi
        # `low` and `high` hold the common ends of every atom. An atom that has another range at a
        # kind added its factor times the distance of its ends from the common ones: with it the
        # common end of this atom cancels, and its own end is left.
        others_of_form = {
            kind: Range(Fraction(low + lo), Fraction(high + hi)) for kind, (lo, hi) in apart.items()
        }
        common = Range(Fraction(low), Fraction(high))
        return Ranges(len(self.alphabet) + self.bos, common, others_of_form)

    @cached_property
    def _whole_ranges(self) -> list[_WholeRanges | None]:
        """The ranges of each atom as whole numbers; `None` for other bounds."""
        return []

    @cached_property
    def _ranges(self) -> list[tuple[Range | None, ItemsView[int, Range]]]:
        """The common range of each atom, `None` for 0, and the ranges of the other kinds."""
        return []

    def size(self, form: Form, is_split: bool = False) -> Bound:
        """The largest magnitude of a form at any row; if split, its terms' magnitudes, added up."""
        # Split, the terms stand in several numbers that are added one by one: the sum of magnitudes
        # bounds every partial sum, in any order, even where the terms cancel in the end.
        if is_split and len(form.terms) > 1:
            parts = [abs(factor) * self.laws[number].size for number, factor in form.terms]
            return sum(parts, abs(form.constant))
        return max(row.size for row in self.rows(form).distinct())

    def span(self, form: Form) -> Range:
        """The range of a form at the symbols."""
        if form.constant and form.terms:
            return self.span(form.linear) + Range.of(form.constant)
        return self.rows(form).below(len(self.alphabet)).hull()

    def span_at_bos(self, form: Form) -> Range:
        """The range of a form at BOS; 0 where there is none."""
        if not self.bos:
            return ZERO
        if form in self._rows:
            return self._rows[form][-1]
        # The kept form is the one without its constant: many thresholds of one sum differ in it
        # alone.
        if form.constant and form.terms:
            return self.span_at_bos(form.linear) + Range.of(form.constant)
        if form not in self._spans_of_forms_at_bos:
            self._spans_of_forms_at_bos[form] = self._summed_at_bos(form)
        return self._spans_of_forms_at_bos[form]

    def _summed_at_bos(self, form: Form) -> Range:
        known = self._spans_at_bos
        for law in self.laws[len(known) :]:
            at_bos = law.ranges[-1]
            known.append(None if at_bos == ZERO else at_bos)
        terms = ((known[number], factor) for number, factor in form.terms)
        parts = [at_bos.times(factor) for at_bos, factor in terms if at_bos is not None]
        return total_range([Range.of(form.constant), *parts])

    @cached_property
    def _spans_at_bos(self) -> list[Range | None]:
        """The range of each atom at BOS; `None` for 0, which most are."""
        return []

    def grid(self, form: Form) -> Grid | None:
        """A grid that a form lies on at the symbols."""
        if form not in self._grids:
            self._grids[form] = self._joined_at_symbols(form)
        return self._grids[form]

    def _joined_at_symbols(self, form: Form) -> Grid | None:
        if form.constant and form.terms:
            grid = self.grid(form.linear)
            return None if grid is None else grid | Grid(form.constant.denominator)
        known = self._grids_at_symbols
        known += [law.grid for law in self.laws[len(known) :]]
        return _joined(form, known)

    @cached_property
    def _grids_at_symbols(self) -> list[Grid | None]:
        return []

    def grid_at_bos(self, form: Form) -> Grid | None:
        """A grid that a form lies on at BOS, whatever the input, where one is known."""
        if form not in self._grids_of_forms_at_bos:
            self._grids_of_forms_at_bos[form] = self._joined_at_bos(form)
        return self._grids_of_forms_at_bos[form]

    def _joined_at_bos(self, form: Form) -> Grid | None:
        at_bos = self.span_at_bos(form)
        if at_bos.is_point:
            return Grid.of([at_bos.lo])  # type: ignore[list-item]
        known = self._grids_at_bos
        for each in range(len(known), form.atoms[-1] + 1):
            at_bos = self.laws[each].ranges[-1]
            if at_bos.is_point:
                known.append(Grid.of([at_bos.lo]))  # type: ignore[list-item]
            else:
                known.append(self.atoms[each].grid_at_bos(self, each))
        return _joined(form, known)

    @cached_property
    def _grids_at_bos(self) -> list[Grid | None]:
        return []

    def separation(self, form: Form) -> Fraction | None:
        """The least magnitude of a form but 0, where one is known.

        The step of its grid; or, where no term is negative, the least of its terms but 0.
        """
        # On a grid of step s every number is a multiple of s, so the least magnitude other than 0
        # is s. Without a grid there is a bound for sums x = Σ fₖ xₖ + c of terms ≥ 0, c ≥ 0: x ≥ c,
        # which is the bound if c > 0; and with c = 0, x is 0 only if all terms are, and else at
        # least the least value of a term that is not 0.
        grid = self.grid(form)
        if grid is not None:
            return grid.separation(self.most_seen)
        terms = [(abs(factor), *self._term(number, factor)) for number, factor in form.terms]
        if form.constant < 0 or any(least is None or span.lo < 0 for _, least, span in terms):
            return None
        least = min(factor * least for factor, least, _ in terms)  # type: ignore[operator]
        return form.constant or least

    def is_atom_negative(self, number: int) -> bool:
        """True if an atom may be below 0 at some row."""
        known = self._negatives
        for law in self.laws[len(known) : number + 1]:
            known.append(any(row.lo < 0 for row in law.ranges.distinct()))
        return known[number]

    @cached_property
    def _negatives(self) -> list[bool]:
        return []

    def _term(self, number: int, factor: Fraction) -> tuple[Fraction | None, Range]:
        """The least magnitude but 0 of an atom, and the range of it times a factor."""
        law = self.laws[number]
        least = law.least if law.grid is None else law.grid.separation(self.most_seen)
        return least, law.ranges.below(len(self.alphabet)).hull().times(factor)

    def least_multiple(self, form: Form) -> Fraction | None:
        """A separation found after the common factor of factors and constant is taken out."""
        if form not in self._least_multiples:
            self._least_multiples[form] = self._least_multiple(form)
        return self._least_multiples[form]

    def _least_multiple(self, form: Form) -> Fraction | None:
        # The form is g · f, where f has whole factors without a common divisor. The grid of 2x with
        # whole x has the step 1, since a grid knows denominators only; the grid of x has the step 1
        # as well, and 2 · 1 is the separation that holds of 2x.
        common = content([*form.distinct_factors, form.constant])
        if not common:
            return None
        least = self.separation(form * (1 / common))
        return None if least is None else least * common

    def one_over(self, form: Form) -> frozenset[str] | None:
        """Name of D, where a form is 1/D: the mean of a number that is 1 at BOS alone."""
        if form.constant or len(form.terms) != 1 or form.terms[0][1] != 1:
            return None
        name = self.atoms[form.terms[0][0]].one_over(self)
        return None if name is None else frozenset({name})

    def is_whole(self, form: Form) -> bool:
        """True if a form is a whole number at the symbols."""
        grid = self.grid(form)
        return grid is not None and grid.c == 1 and not grid.counts

    def is_approximate(self, form: Form) -> bool:
        """True if stray weight of softmax gives a form an error, beside rounding."""
        if form.is_constant:
            return False
        known = self._approximate_up_to(form.atoms[-1])
        return any(known[atom] for atom in form.atoms)

    def is_atom_approximate(self, number: int) -> bool:
        """True if stray weight of softmax gives an atom an error, beside rounding."""
        return self._approximate_up_to(number)[number]

    def _approximate_up_to(self, number: int) -> list[bool]:
        """For each atom up to this one, and more: True if stray weight gives it an error."""
        # Atoms come after those that they read, so one pass in their order is enough. An atom is
        # approximate if its own head leaves weight off target, or if it reads one that is, unless
        # it absorbs errors: a step is exactly 0 or 1 again.
        known = self._approximations
        for each in range(len(known), number + 1):
            atom = self.atoms[each]
            head, forms = self.sources(each)
            if self.weighting == "softmax" and head is not None and head.is_scored:
                known.append(True)
                continue
            atoms = itertools.chain.from_iterable(form.atoms for form in forms)
            if head is not None:
                atoms = itertools.chain(atoms, self.atoms_of(head))
            known.append(not atom.absorbs_errors and any(known[k] for k in atoms))
        return known

    @cached_property
    def _approximations(self) -> list[bool]:
        return []

    def is_clean(self, form: Form) -> bool:
        """True if a form is computed from whole numbers alone, so that nothing rounds."""
        if self.is_approximate(form):
            return False
        known = self._clean
        # A whole number that is computed from a mean, such as n · (1/n), may round on its way: so
        # all atoms that it is computed from must be whole too, those of the scores of its head
        # included.
        for each in range(len(known), max(form.atoms, default=-1) + 1):
            head, forms = self.sources(each)
            if head is not None and head not in self._clean_heads:
                self._clean_heads[head] = self._are_of_clean(head.forms)
            known.append((head is None or self._clean_heads[head]) and self._are_of_clean(forms))
        return all(known[atom] for atom in form.atoms)

    def _are_of_clean(self, forms: Iterable[Form]) -> bool:
        """True if forms are whole and all their atoms are clean."""
        return all(self.is_whole(f) and all(self._clean[a] for a in f.atoms) for f in forms)

    @cached_property
    def _clean(self) -> list[bool]:
        return []

    def sources(self, number: int) -> tuple[Head | None, tuple[Form, ...]]:
        """The head that fetches an atom, and the forms that it reads beside those of the head.

        Many atoms may share a head with many queries and keys. Callers follow the forms of the head
        once, not once for each atom.
        """
        atom = self.atoms[number]
        return atom.fetched_by, atom.reads_alone

    def atoms_of(self, head: Head) -> frozenset[int]:
        """The numbers of the atoms that the queries and keys of a head are computed from."""
        if head not in self._head_atoms:
            atoms = (form.atoms for form in head.forms)
            self._head_atoms[head] = frozenset(itertools.chain.from_iterable(atoms))
        return self._head_atoms[head]

    def reads(self, number: int) -> Iterator[int]:
        """The numbers of the atoms that an atom is computed from."""
        for form in self.atoms[number].reads:
            yield from form.atoms

    def over_nothing(self, form: Form) -> Fraction:
        """The value of a form at BOS on the empty input."""
        # The value of the constant is the same on every input, so it is added at the end.
        linear = form.linear
        if linear not in self._values_over_nothing:
            self._values_over_nothing[linear] = self._linear_over_nothing(linear)
        return self._values_over_nothing[linear] + form.constant

    def _linear_over_nothing(self, form: Form) -> Fraction:
        known = self._at_nothing
        for each in range(len(known), max(form.atoms, default=-1) + 1):
            known.append(self.atoms[each].over_nothing(self) or None)
        value = Fraction(0)
        for number, factor in form.terms:
            alone = known[number]
            if alone is not None:
                value += factor * alone
        return value

    @cached_property
    def _at_nothing(self) -> list[Fraction | None]:
        """The value of each atom at BOS on the empty input; `None` for 0, which most are."""
        return []


def least_magnitude(circuit: Circuit, value: Form) -> Fraction | None:
    """Least magnitude but 0, at any row, of a number that is nowhere negative."""
    # At BOS the separation is not known, since `separation` looks at symbols alone. So a value that
    # may be other than 0 at BOS has no least magnitude here.
    rows = circuit.rows(value)
    if rows.hull().lo < 0 or (circuit.bos and rows[-1] != ZERO):
        return None
    return circuit.separation(value)


def _joined(form: Form, of_atoms: Sequence[Grid | None]) -> Grid | None:
    """The grid of a form, from those of its atoms, where all are known."""
    # Many atoms share few grids and factors: each pair of them is joined once.
    parts = {(id(of_atoms[n]), id(factor)): (of_atoms[n], factor) for n, factor in form.terms}
    c, counts = form.constant.denominator, frozenset[str]()
    for part, factor in parts.values():
        if part is None:
            return None
        # A whole factor of a whole number is whole: lcm with 1 would change nothing.
        if part.c != 1 or factor.denominator != 1:
            c = math.lcm(c, part.times(factor).c)
        if part.counts:
            counts |= part.counts
    return Grid(c, counts)


_WholeRanges: TypeAlias = "tuple[int, int, list[tuple[int, int, int]]]"
"""Bounds of the common range, and for each other kind how far its bounds lie above them."""


def _whole_ranges(ranges: Ranges) -> _WholeRanges | None:
    """The bounds of ranges as whole numbers; `None` if one is not whole."""
    every = [ranges.common, *ranges.others.values()]
    bounds = [bound for each in every for bound in (each.lo, each.hi)]
    if not all(isinstance(each, Fraction) and each.denominator == 1 for each in bounds):
        return None
    low, high = int(ranges.common.lo), int(ranges.common.hi)
    others = [(k, int(each.lo) - low, int(each.hi) - high) for k, each in ranges.others.items()]
    return low, high, others
