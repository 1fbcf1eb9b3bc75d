"""A program in terms of what a transformer computes: embedded numbers, fetched ones, ReLUs.

Every number is an affine form of atoms, and an atom is what needs a place in the weights. Each atom
has its law: its range at every kind of row (the symbols of the alphabet, and BOS), and its grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from transformist.compiler.forms import Form
from transformist.compiler.heads import BEHIND, At, Head, Match, Uniform, mean_range, rows_under
from transformist.language.node import Node
from transformist.language.places import Place
from transformist.laws import Bound, Grid, Range, hull
from transformist.positions import position

Rows: TypeAlias = "tuple[Range, ...]"
"""A range for each symbol of the alphabet, and for BOS where there is one."""

INFINITY = float("inf")
ZERO = Range.of(0)


@dataclass(frozen=True)
class Embedded:
    """A number for each symbol of the alphabet, and for BOS where there is one."""

    values: tuple[Fraction, ...]

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return ()


@dataclass(frozen=True)
class Feature:
    """A function of the position, by its name in `POSITIONS`."""

    name: str

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return ()


@dataclass(frozen=True)
class Relu:
    """max(form, 0)."""

    form: Form

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return (self.form,)


@dataclass(frozen=True)
class Step:
    """0 where the form is at most zone/4, 1 where it is at least 3 zone/4, straight between."""

    form: Form
    zone: Fraction

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return (self.form,)


@dataclass(frozen=True)
class Fetched:
    """What a head fetches of a form."""

    head: Head
    value: Form

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return (*self.head.forms, self.value)


@dataclass(frozen=True)
class Kept:
    """What a slot holds after more is added to it; no program is compiled to it."""

    form: Form

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return (self.form,)


Atom: TypeAlias = "Embedded | Feature | Relu | Step | Fetched | Kept"


@dataclass(frozen=True)
class Law:
    """What is known of a number.

    Attributes:
        rows: its range at each kind of row.
        grid: that it lies on, where there is one; at BOS it may not.
        least: its least magnitude but 0, where that is known without a grid.

    """

    rows: Rows
    grid: Grid | None
    least: Fraction | None = None

    @cached_property
    def size(self) -> Bound:
        """The largest magnitude."""
        return max(row.size for row in self.rows)


@dataclass(eq=False)
class Circuit:
    """The atoms of a program, each once, after those that it reads.

    Attributes:
        alphabet: the symbols.
        bos: whether BOS is added in front.
        max_length: N, or `None` for any length.
        weighting: of the heads.
        places: where subexpressions are written.
        atoms: by their numbers.
        laws: of each.
        names: what each is called.
        origins: the subexpression that each serves, first.
        called: what sums of atoms are called.

    """

    alphabet: tuple[Any, ...]
    bos: bool
    max_length: int | None
    weighting: str
    places: Mapping[Node, Place] = field(default_factory=dict)
    atoms: list[Atom] = field(default_factory=list)
    laws: list[Law] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    origins: list[Node | None] = field(default_factory=list)
    called: dict[Form, str] = field(default_factory=dict)
    _numbers: dict[Atom, int] = field(default_factory=dict)
    _rows: dict[Form, Rows] = field(default_factory=dict)

    def add(
        self, atom: Atom, name: str, origin: Node | None = None, rows: Rows | None = None
    ) -> Form:
        """The atom as a form; it is numbered when it is new. Its ranges may be known to be less."""
        if atom not in self._numbers:
            law = LAWS[type(atom)](self, atom)
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
            self.laws.append(law if rows is None else replace(law, rows=rows))
            self.names.append(name)
            self.origins.append(origin)
        return Form.atom(self._numbers[atom])

    def number(self, atom: Atom) -> int:
        """The number of an atom that is there."""
        return self._numbers[atom]

    def written(self, form: Form) -> list[str]:
        """Where the subexpressions are written that the atoms of a form serve."""
        origins = [self.origins[atom] for atom in form.atoms]
        return list(dict.fromkeys(str(self.places[each]) for each in origins if each is not None))

    def call(self, form: Form, name: str) -> Form:
        """The form, which has this name if it has none yet."""
        bit = 1 - form if form.constant == 1 else form
        if bit.terms and not bit.constant and bit.normalized() == (bit, Fraction(1)):
            self.called.setdefault(bit, name if bit is form else f"not ({name})")
        return form

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

    def span(self, form: Form) -> Range:
        """The range of a form at the symbols."""
        return hull(self.rows(form)[: len(self.alphabet)])

    def span_at_bos(self, form: Form) -> Range:
        """The range of a form at BOS; 0 where there is none."""
        return self.rows(form)[-1] if self.bos else ZERO

    def grid(self, form: Form) -> Grid | None:
        """A grid that a form lies on at the symbols."""
        grid = Grid.of([form.constant])
        for number, factor in form.terms:
            part = self.laws[number].grid
            if part is None:
                return None
            grid |= part.times(factor)
        return grid

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
            inherited = not isinstance(atom, Step) and any(known[k] for k in self.reads(each))
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

    @cached_property
    def _at_nothing(self) -> dict[int, Fraction]:
        return {}

    def over_nothing(self, form: Form) -> Fraction:
        """The value of a form at BOS where the input is empty."""
        return form.constant + sum(
            (factor * self._alone(number) for number, factor in form.terms), Fraction(0)
        )

    def _alone(self, number: int) -> Fraction:
        known = self._at_nothing
        for each in range(len(known), number + 1):
            known[each] = ALONE[type(self.atoms[each])](self, self.atoms[each])
        return known[number]


# Laws: a function for each kind of atom


def _embedded(circuit: Circuit, atom: Embedded) -> Law:
    symbols = atom.values[: len(circuit.alphabet)]
    return Law(tuple(map(Range.of, atom.values)), Grid.of(symbols))


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
}
"""The ranges of the functions of a position from 1 to n ≤ N."""

_DENOMINATORS: Mapping[str, str] = {"1/i": "i", "-1/i": "i", "i/n": "n", "-i/n": "n"}


def _feature(circuit: Circuit, atom: Feature) -> Law:
    grid = Grid(1)
    if atom.name in _DENOMINATORS:
        grid = grid.divided(_DENOMINATORS[atom.name])
    symbols = (_RANGES[atom.name](max(circuit.longest, Fraction(1))),) * len(circuit.alphabet)
    at_bos = (Range.of(position(atom.name, 0, 0)),) if circuit.bos else ()
    return Law((*symbols, *at_bos), grid)


def _relu(circuit: Circuit, atom: Relu) -> Law:
    rows = tuple(each.relu() for each in circuit.rows(atom.form))
    return Law(rows, circuit.grid(atom.form), circuit.separation(atom.form))


def _step(circuit: Circuit, atom: Step) -> Law:
    """Whole numbers at the symbols, where the form is 0 or at least the zone in magnitude."""

    def ends(each: Range) -> Range:
        lo, hi = (_stepped(end, atom.zone) for end in (each.lo, each.hi))
        return Range(lo, hi)

    symbols = len(circuit.alphabet)
    rows = circuit.rows(atom.form)
    kept = [Range(_floor(each.lo), _ceil(each.hi)) for each in map(ends, rows[:symbols])]
    return Law((*kept, *map(ends, rows[symbols:])), Grid(1))


def _floor(x: Bound) -> Fraction:
    return Fraction(int(x >= 1))


def _ceil(x: Bound) -> Fraction:
    return Fraction(int(x > 0))


def _stepped(x: Bound, zone: Fraction) -> Fraction:
    low, high = zone / 4, 3 * zone / 4
    if x <= low:
        return Fraction(0)
    return Fraction(1) if x >= high else (Fraction(x) - low) * 2 / zone


def _kept(circuit: Circuit, atom: Kept) -> Law:
    return Law(circuit.rows(atom.form), circuit.grid(atom.form), circuit.separation(atom.form))


def _fetched(circuit: Circuit, atom: Fetched) -> Law:
    return FETCHED[type(atom.head)](circuit, atom.head, atom.value)


def _mean(circuit: Circuit, head: Uniform, value: Form) -> Law:
    rows = circuit.rows(value)
    symbols = hull(rows[: len(circuit.alphabet)])
    if head.mask == "none" and value == _place(circuit):  # n/2, or (n + 1)/2 without BOS
        most = symbols.hi if circuit.bos else symbols.hi + 1
        half = Range(Fraction(0 if circuit.bos else 1), Fraction(1, 2) * most)
        return Law((half,) * len(rows), Grid(2))
    if head.mask in BEHIND:
        seen = mean_range(symbols, rows[-1] if circuit.bos else None, circuit.longest)
    else:
        seen = symbols
    if head.mask.startswith("strict"):
        seen = seen.hull(ZERO)
    at_bos = {
        "none": seen,
        "future": rows[-1],
        "strict-future": ZERO,
        "past": mean_range(symbols, rows[-1], circuit.longest),
        "strict-past": symbols.hull(ZERO),
    }[head.mask]
    grid = circuit.grid(value)
    if circuit.bos and head.mask in BEHIND and not circuit.span_at_bos(value).is_point:
        grid = None
    elif grid is not None:
        if circuit.bos and head.mask in BEHIND:
            grid |= Grid.of([circuit.span_at_bos(value).lo])  # type: ignore[list-item]
        grid = None if grid.counts else grid.divided(rows_under(head.mask))
    least = _least(circuit, value)
    if least is not None:
        least = None if circuit.most_seen is None else least / circuit.most_seen
    return Law((seen,) * len(circuit.alphabet) + (at_bos,) * circuit.bos, grid, least)


def _least(circuit: Circuit, value: Form) -> Fraction | None:
    """The least magnitude but 0, at any row, of a number that is nowhere negative."""
    rows = circuit.rows(value)
    if min(row.lo for row in rows) < 0 or (circuit.bos and rows[-1] != ZERO):
        return None
    return circuit.separation(value)


def _place(circuit: Circuit) -> Form | None:
    number = circuit._numbers.get(Feature("i"))
    return None if number is None else Form.atom(number)


def _match(circuit: Circuit, head: Match | At, value: Form) -> Law:
    rows = circuit.rows(value)
    seen = hull(rows)
    if head.mask.startswith("strict"):
        seen = seen.hull(ZERO)
    grid = circuit.grid(value)
    if grid is not None and circuit.bos:
        bos = circuit.span_at_bos(value)
        grid = grid | Grid.of([bos.lo]) if bos.is_point else None  # type: ignore[list-item]
    if grid is not None:
        elsewhere = f"of atom {len(circuit.atoms)}"
        grid = Grid(grid.c, frozenset(f"{count} {elsewhere}" for count in grid.counts))
        if isinstance(head, Match) and head.choose == "mean":
            matches = f"matches {elsewhere}" if head.keys else f"symbols under mask {head.mask}"
            grid = None if grid.counts else grid.divided(matches)
    least = _least(circuit, value)
    if least is not None and isinstance(head, Match) and head.choose == "mean":
        least = None if circuit.most_seen is None else least / circuit.most_seen
    at_bos = {"strict-future": ZERO, "future": rows[-1]}.get(head.mask, seen)
    return Law((seen,) * len(circuit.alphabet) + (at_bos,) * circuit.bos, grid, least)


FETCHED: Mapping[type[Head], Callable[[Circuit, Any, Form], Law]] = {
    Uniform: _mean,
    Match: _match,
    At: _match,
}
"""What is known of what each kind of head fetches."""

LAWS: Mapping[type[Any], Callable[[Circuit, Any], Law]] = {
    Embedded: _embedded,
    Feature: _feature,
    Relu: _relu,
    Step: _step,
    Fetched: _fetched,
    Kept: _kept,
}
"""The law of each kind of atom."""


# The empty input: BOS alone


def _fetched_alone(circuit: Circuit, atom: Fetched) -> Fraction:
    if atom.head.mask.startswith("strict"):
        return Fraction(0)
    return circuit.over_nothing(atom.value)


ALONE: Mapping[type[Any], Callable[[Circuit, Any], Fraction]] = {
    Embedded: lambda _, atom: atom.values[-1],
    Feature: lambda _, atom: Fraction(position(atom.name, 0, 0)),
    Relu: lambda circuit, atom: max(circuit.over_nothing(atom.form), Fraction(0)),
    Step: lambda circuit, atom: _stepped(circuit.over_nothing(atom.form), atom.zone),
    Fetched: _fetched_alone,
    Kept: lambda circuit, atom: circuit.over_nothing(atom.form),
}
"""The value of each kind of atom at BOS where the input is empty."""
