"""What a transformer computes, number by number: embedded numbers, fetched ones, ReLUs.

Every number is an affine form of atoms, and an atom is what needs a place in the weights. Each atom
has its law: its range at every kind of row (the symbols of the alphabet, and BOS), and its grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from transformist.circuit.at_bos import AT_BOS
from transformist.circuit.atom_laws import ALONE, LAWS
from transformist.circuit.atoms import (
    Atom,
    Embedded,
    Fetched,
    Law,
    PositionFeature,
    Rows,
    StepFunction,
)
from transformist.circuit.forms import Form, content
from transformist.circuit.heads import SEES_BOS, Match, Uniform, rows_under
from transformist.laws import INFINITY, ZERO, Bound, Grid, Range, hull


@dataclass(eq=False)
class Circuit:
    """The atoms of a transformer, each once, after those that it reads.

    Attributes:
        alphabet: the symbols.
        bos: whether BOS is added in front.
        max_length: N, or `None` for any length.
        weighting: of the heads.
        atoms: by their numbers.
        laws: of each.
        names: what each is called.

    """

    alphabet: tuple[Any, ...]
    bos: bool
    max_length: int | None
    weighting: str
    atoms: list[Atom] = field(default_factory=list)
    laws: list[Law] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    _numbers: dict[Atom, int] = field(default_factory=dict)
    _rows: dict[Form, Rows] = field(default_factory=dict)

    def add(self, atom: Atom, name: str, rows: Rows | None = None) -> Form:
        """The atom as a form; it is numbered when it is new. Its ranges may be known to be less."""
        if atom not in self._numbers:
            law = LAWS[type(atom)](self, atom)
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
            self.laws.append(law if rows is None else replace(law, rows=rows))
            self.names.append(name)
        return Form.atom(self._numbers[atom])

    def number(self, atom: Atom) -> int:
        """The number of an atom that is there."""
        return self._numbers[atom]

    def feature(self, name: str) -> int | None:
        """The number of a position function, where it is there."""
        return self._numbers.get(PositionFeature(name))

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
        return 1 << int(self.max_length or 0).bit_length()

    @cached_property
    def at_bos(self) -> Form:
        """1 at BOS, 0 at symbols."""
        values = [Fraction(0)] * len(self.alphabet) + [Fraction(1)]
        return self.add(Embedded(tuple(values)), "BOS")

    @cached_property
    def at_symbols(self) -> Form:
        """1 at symbols, 0 at BOS."""
        values = [Fraction(1)] * len(self.alphabet) + [Fraction(0)] * self.bos
        return self.add(Embedded(tuple(values)), "symbol")

    def is_bos(self, form: Form) -> bool:
        """Whether a form is 1 at BOS and 0 at symbols."""
        ranges = self.rows(form) if self.bos else ()
        wanted = [Range.of(0)] * len(self.alphabet) + [Range.of(1)]
        return list(ranges) == wanted

    def rows(self, form: Form) -> Rows:
        """The range of a form at each kind of row; kept, since no law changes."""
        if form not in self._rows:
            self._rows[form] = self._summed(form)
        return self._rows[form]

    def _summed(self, form: Form) -> Rows:
        kinds = range(len(self.alphabet) + self.bos)
        constant = Range.of(form.constant)
        sums = [constant] * len(kinds)
        for number, factor in form.terms:
            law = self.laws[number].rows
            sums = [sums[k] + law[k].times(factor) for k in kinds]
        return tuple(sums)

    def size(self, form: Form, is_split: bool = False) -> Bound:
        """The largest magnitude of a form at any row; if split, of its terms by themselves."""
        if is_split and len(form.terms) > 1:
            parts = [abs(factor) * self.laws[number].size for number, factor in form.terms]
            return sum(parts, abs(form.constant))
        return max(row.size for row in self.rows(form))

    def span(self, form: Form) -> Range:
        """The range of a form at the symbols."""
        return hull(self.rows(form)[: len(self.alphabet)])

    def span_at_bos(self, form: Form) -> Range:
        """The range of a form at BOS; 0 where there is none."""
        return self.rows(form)[-1] if self.bos else ZERO

    def grid(self, form: Form) -> Grid | None:
        """A grid that a form lies on at the symbols."""
        return _joined(form, lambda number: self.laws[number].grid)

    def grid_at_bos(self, form: Form) -> Grid | None:
        """A grid that a form lies on at BOS, whatever the input, where one is known."""
        at_bos = self.span_at_bos(form)
        if at_bos.is_point:
            return Grid.of([at_bos.lo])  # type: ignore[list-item]
        return _joined(form, self._grid_at_bos)

    def _grid_at_bos(self, number: int) -> Grid | None:
        known = self._grids_at_bos
        for each in range(len(known), number + 1):
            at_bos = self.laws[each].rows[-1]
            if at_bos.is_point:
                known.append(Grid.of([at_bos.lo]))  # type: ignore[list-item]
            else:
                known.append(AT_BOS[type(self.atoms[each])](self, each, self.atoms[each]))
        return known[number]

    @cached_property
    def _grids_at_bos(self) -> list[Grid | None]:
        return []

    def separation(self, form: Form) -> Fraction | None:
        """The least magnitude of a form but 0, where one is known.

        It is that of its grid; or, where no term is negative, the least of its terms.
        """
        grid = self.grid(form)
        if grid is not None:
            return grid.separation(self.most_seen)
        terms = [(abs(factor), *self._term(number, factor)) for number, factor in form.terms]
        if form.constant < 0 or any(least is None or span.lo < 0 for _, least, span in terms):
            return None
        least = min(factor * least for factor, least, _ in terms)  # type: ignore[operator]
        return form.constant or least

    def _term(self, number: int, factor: Fraction) -> tuple[Fraction | None, Range]:
        """The least magnitude but 0 of an atom, and the range of it times a factor."""
        law = self.laws[number]
        least = law.least if law.grid is None else law.grid.separation(self.most_seen)
        return least, hull(law.rows[: len(self.alphabet)]).times(factor)

    def least_multiple(self, form: Form) -> Fraction | None:
        """As `separation`, from the form without what its factors and constant have in common."""
        common = content([*form.factors.values(), form.constant])
        if not common:
            return None
        least = self.separation(form * (1 / common))
        return None if least is None else least * common

    def one_over(self, form: Form) -> frozenset[str] | None:
        """The name of D, where a form is 1/D: the mean of what is 1 at BOS alone."""
        if form.constant or len(form.terms) != 1 or form.terms[0][1] != 1:
            return None
        atom = self.atoms[form.terms[0][0]]
        if not isinstance(atom, Fetched) or not isinstance(atom.head, Uniform):
            return None
        is_seen = atom.head.mask in SEES_BOS and self.is_bos(atom.value)
        return frozenset({rows_under(atom.head.mask)}) if is_seen else None

    def is_beneath(self, head: Match) -> bool:
        """Whether BOS never matches better than a symbol: its keys are 0, no product is below."""
        keys = [self.rows(key) for key in head.keys]
        queries = [self.rows(query) for query in head.queries]
        signs = all(row.lo >= 0 for rows in (*keys, *queries) for row in rows)
        return signs and all(rows[-1].hi == 0 for rows in keys)

    def is_whole(self, form: Form) -> bool:
        """Whether a form is a whole number at the symbols."""
        return self.grid(form) == Grid(1)

    def is_approximate(self, form: Form) -> bool:
        """Whether softmax gives a form with an error, beyond rounding."""
        return any(self._approximate(atom) for atom in form.atoms)

    def _approximate(self, number: int) -> bool:
        known = self._approximations
        for each in range(len(known), number + 1):
            atom = self.atoms[each]
            sharp = isinstance(atom, Fetched) and not isinstance(atom.head, Uniform)
            inherited = not isinstance(atom, StepFunction) and any(
                known[k] for k in self.reads(each)
            )
            known.append(inherited or (sharp and self.weighting == "softmax"))
        return known[number]

    @cached_property
    def _approximations(self) -> list[bool]:
        return []

    def is_clean(self, form: Form) -> bool:
        """Whether a format computes a whole number from whole numbers, so that nothing rounds."""
        known = self._clean
        for each in range(len(known), max(form.atoms, default=-1) + 1):
            forms = self.atoms[each].reads
            known.append(all(self.is_whole(f) and all(known[a] for a in f.atoms) for f in forms))
        return not self.is_approximate(form) and all(known[atom] for atom in form.atoms)

    @cached_property
    def _clean(self) -> list[bool]:
        return []

    def reads(self, number: int) -> Iterator[int]:
        """The numbers of the atoms that an atom is computed from."""
        for form in self.atoms[number].reads:
            yield from form.atoms

    def over_nothing(self, form: Form) -> Fraction:
        """The value of a form at BOS where the input is empty."""
        return form.constant + sum(
            (factor * self._alone(number) for number, factor in form.terms), Fraction(0)
        )

    def _alone(self, number: int) -> Fraction:
        known = self._at_nothing
        for each in range(len(known), number + 1):
            known.append(ALONE[type(self.atoms[each])](self, self.atoms[each]))
        return known[number]

    @cached_property
    def _at_nothing(self) -> list[Fraction]:
        return []


def _joined(form: Form, of_atom: Callable[[int], Grid | None]) -> Grid | None:
    """The grid of a form, from those of its atoms, where all are known."""
    grid = Grid.of([form.constant])
    for number, factor in form.terms:
        part = of_atom(number)
        if part is None:
            return None
        grid |= part.times(factor)
    return grid
