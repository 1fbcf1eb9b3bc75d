"""The law of each kind of atom: its range at every kind of row, its grid, its least magnitude."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from transformist.circuit.atoms import (
    Embedded,
    Fetched,
    Kept,
    Law,
    PositionFeature,
    Relu,
    StepFunction,
)
from transformist.circuit.forms import Form
from transformist.circuit.heads import SEES_BOS, At, Head, Match, Uniform, mean_range, rows_under
from transformist.laws import INFINITY, ZERO, Bound, Grid, Range, hull
from transformist.positions import position

if TYPE_CHECKING:
    from transformist.circuit.circuit import Circuit


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


def _feature(circuit: Circuit, atom: PositionFeature) -> Law:
    grid = Grid(1)
    if atom.name in _DENOMINATORS:
        grid = grid.divided(_DENOMINATORS[atom.name])
    symbols = (_RANGES[atom.name](max(circuit.longest, Fraction(1))),) * len(circuit.alphabet)
    at_bos = (Range.of(position(atom.name, 0, 0)),) if circuit.bos else ()
    return Law((*symbols, *at_bos), grid)


def _relu(circuit: Circuit, atom: Relu) -> Law:
    rows = tuple(each.relu() for each in circuit.rows(atom.form))
    return Law(rows, circuit.grid(atom.form), circuit.separation(atom.form))


def _step(circuit: Circuit, atom: StepFunction) -> Law:
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
    factor = _of_place(circuit, value)
    if head.mask == "none" and factor:  # of i it is n/2, or (n + 1)/2 without BOS
        longest = max(circuit.longest, Fraction(1))
        most = longest if circuit.bos else longest + 1
        half = Range(Fraction(0 if circuit.bos else 1), Fraction(1, 2) * most)
        return Law((half.times(factor),) * len(rows), Grid(2).times(factor))
    if head.mask in SEES_BOS:
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
    if circuit.bos and head.mask in SEES_BOS and not circuit.span_at_bos(value).is_point:
        grid = None
    elif grid is not None:
        if circuit.bos and head.mask in SEES_BOS:
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


def _of_place(circuit: Circuit, value: Form) -> Fraction:
    """How many times the position a value is; 0 where it is something else."""
    number = circuit.feature("i")
    if number is None or value.atoms != (number,) or value.constant:
        return Fraction(0)
    return value.factors[number]


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
    PositionFeature: _feature,
    Relu: _relu,
    StepFunction: _step,
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
    PositionFeature: lambda _, atom: Fraction(position(atom.name, 0, 0)),
    Relu: lambda circuit, atom: max(circuit.over_nothing(atom.form), Fraction(0)),
    StepFunction: lambda circuit, atom: _stepped(circuit.over_nothing(atom.form), atom.zone),
    Fetched: _fetched_alone,
    Kept: lambda circuit, atom: circuit.over_nothing(atom.form),
}
"""The value of each kind of atom at BOS where the input is empty."""
