"""Facts on answers on every input: distance from a threshold, and a unique best label."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from transformist.circuit import Circuit, Fetched, Form, Head, Match, total
from transformist.laws import Grid, Range, Ranges
from transformist.model import MultiClass
from transformist.verify.certificate.cases import cases

MOST_PAIRS = 2**18
"""The most pairs of forms that are compared one by one, which takes some seconds. Where there are
more, one bound is computed for all of them."""


def distance_from_zero(circuit: Circuit, form: Form) -> Fraction:
    """Return the least distance of a form from 0, by its range or by its grid."""
    within = span(circuit, form)
    if within.lo > 0:
        return Fraction(within.lo)
    if within.hi < 0:
        return -Fraction(within.hi)
    moving = Form(form.terms)
    grid, gap = circuit.grid(moving), circuit.least_multiple(moving)
    constant = abs(form.constant)
    if grid is None or gap is None:
        return Fraction(0)
    # The form is 0 where its moving part is −constant. The moving part is a multiple of
    # 1/(c D D′ …), a fraction whose denominator is at most `most`; `limit_denominator` finds the
    # nearest of these.
    if grid.counts:
        most = grid.c * (circuit.most_seen or 1) ** len(grid.counts)
        return abs(constant - constant.limit_denominator(most))
    # Without D it is a multiple of `gap`: the nearest ones are below and above the constant.
    rest = constant % gap
    return min(rest, gap - rest)


def has_one_best(circuit: Circuit, read_out: MultiClass, forms: list[Form]) -> bool:
    """Return True if no two labels are ever the largest together.

    It is shown for one-hot forms, consecutive whole numbers as labels, forms of which no two are
    ever equal, and where all cases are known.
    """
    whole = all(circuit.is_whole(form) and span(circuit, form).lo >= 0 for form in forms)
    # Whole numbers of at least 0 that always add up to 1 are one 1 and zeros.
    if whole and span(circuit, total(forms)) == Range.of(1):
        return True
    if _as_nearest(circuit, read_out, forms):
        return True
    if math.comb(len(forms), 2) <= MOST_PAIRS and all(
        distance_from_zero(circuit, a - b) > 0 for a, b in itertools.combinations(forms, 2)
    ):
        return True
    known = cases(circuit, forms)
    return known is not None and all(case.count(max(case)) == 1 for case in known)


def apart(circuit: Circuit, forms: list[Form]) -> Fraction:
    """Return the least distance of two forms that are not equal; 0 if not known.

    Two forms that differ do so by a multiple of a number that the grids of their atoms give
    (`Circuit.least_multiple`); the least of these numbers over all pairs is returned.

    For forms without a common atom this number follows from their constants, and from their factors
    with the grids of the atoms. Over a large alphabet, where each label reads an atom of its own,
    nearly all pairs have one such number, which is computed once.
    """
    # As whole numbers over one denominator: differences of `int` are fast.
    Q = math.lcm(
        *(x.denominator for form in forms for x in (*form.distinct_factors, form.constant))
    )
    rows = [_Row.of(form, Q) for form in forms]
    kinds = _kinds(circuit, rows)
    holders: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        for number in row.factors:
            holders.setdefault(number, []).append(place)
    if sum(math.comb(len(places), 2) for places in holders.values()) > MOST_PAIRS:
        return _apart_together(circuit, rows, Q)
    found = set[Fraction]()
    overlapping = Counter[frozenset[Hashable]]()
    for i, row in enumerate(rows):
        for j in {j for number in row.factors for j in holders[number] if j > i}:
            overlapping[frozenset((kinds[i], kinds[j]))] += 1
            found |= _distance(circuit, row, rows[j], Q)
    for pair, i, j, count in _pairs_of_kinds(kinds):
        if count > overlapping[pair]:  # some pair of these kinds has no common atom
            found |= _distance_of_kinds(circuit, rows[i], rows[j], Q)
    return min(found, default=Fraction(0))


def _apart_together(circuit: Circuit, rows: list[_Row], Q: int) -> Fraction:
    """Return a number that the difference of any two forms is a multiple of; 0 if not known."""
    # The factors and the constant of each form differ from those of the first form. Let g divide
    # all these differences: it divides those of any two forms as well. The difference of two forms
    # is then g/Q (Σ m · atom + k) with whole m and k: a multiple of g/Q over the common denominator
    # of the atoms.
    numbers = sorted({number for row in rows for number in row.factors})
    grids = [circuit.laws[number].grid for number in numbers]
    if None in grids:
        return Fraction(0)
    first = rows[0]
    g = math.gcd(*(row.constant - first.constant for row in rows))
    for row in rows:
        read = {*row.factors, *first.factors}  # all other factors are 0 in both
        g = math.gcd(g, *(row.factors.get(n, 0) - first.factors.get(n, 0) for n in read))
    joined = _joined((1, grid) for grid in grids)  # type: ignore[misc]
    return Fraction(g, Q) * (joined.separation(circuit.most_seen) or 0)


class _Row(NamedTuple):
    """A form times a common denominator: its factors and its constant are whole numbers."""

    form: Form
    factors: Mapping[int, int]
    constant: int

    @classmethod
    def of(cls, form: Form, Q: int) -> _Row:
        """Return a form times Q."""
        return cls(form, {n: int(x * Q) for n, x in form.terms}, int(form.constant * Q))


def _kinds(circuit: Circuit, rows: list[_Row]) -> list[Hashable]:
    """Return for each form what distances from forms without a common atom depend on.

    Where a grid is not known they depend on the whole form, so each is of a kind of its own.
    """
    grids = {number: circuit.laws[number].grid for row in rows for number in row.factors}
    if None in grids.values():
        return list(range(len(rows)))
    counts = (Counter((abs(x), grids[n]) for n, x in row.factors.items()) for row in rows)
    return [(frozenset(each.items()), row.constant) for each, row in zip(counts, rows, strict=True)]


def _pairs_of_kinds(
    kinds: list[Hashable],
) -> Iterator[tuple[frozenset[Hashable], int, int, int]]:
    """Yield each two kinds, or one of several forms, with two such forms and the count of pairs."""
    places: dict[Hashable, list[int]] = {}
    for place, kind in enumerate(kinds):
        places.setdefault(kind, []).append(place)
    for kind, (first, *more) in places.items():
        if more:
            yield frozenset((kind,)), first, more[0], math.comb(1 + len(more), 2)
    for (kind, these), (other, those) in itertools.combinations(places.items(), 2):
        yield frozenset((kind, other)), these[0], those[0], len(these) * len(those)


def _distance(circuit: Circuit, row: _Row, other: _Row, Q: int) -> set[Fraction]:
    """Return the least distance of two forms, 0 if it is not known; nothing for equal ones."""
    factors = dict(row.factors)
    for number, x in other.factors.items():
        factors[number] = factors.get(number, 0) - x
    return _distance_by_terms(circuit, [*factors.items()], row, other, Q)


def _distance_of_kinds(circuit: Circuit, row: _Row, other: _Row, Q: int) -> set[Fraction]:
    """Return `_distance` as if the two forms had no common atom, as some of their kinds have not.

    Forms of a kind of their own, whose grids are not known, have no common atom here.
    """
    terms = [*row.factors.items(), *other.factors.items()]
    return _distance_by_terms(circuit, terms, row, other, Q)


def _distance_by_terms(
    circuit: Circuit, terms: Iterable[tuple[int, int]], row: _Row, other: _Row, Q: int
) -> set[Fraction]:
    """Return the distance of two forms from the terms of the difference, whose signs are free."""
    # Over a common denominator Q, the factors and constants of a difference are g times whole
    # numbers m without a common divisor. With an atom on multiples of 1/c, m · atom lies on
    # multiples of gcd(c, m)/c, and the sum on multiples of 1/(the least common multiple of the
    # c/gcd(c, m)): the difference lies on g/Q times these.
    listed = [(number, x) for number, x in terms if x]
    g = math.gcd(*(x for _, x in listed), row.constant - other.constant)
    if not g:
        return set()
    parts = [(x // g, circuit.laws[number].grid) for number, x in listed]
    if any(grid is None for _, grid in parts):
        gap = circuit.least_multiple(row.form - other.form)
    else:
        gap = _joined(parts).separation(circuit.most_seen)  # type: ignore[arg-type]
        gap = None if gap is None else gap * Fraction(g, Q)
    return {gap or Fraction(0)}


def _joined(parts: Iterable[tuple[int, Grid]]) -> Grid:
    """Return the grid of Σ m · number from each m, a whole number, and the grid of the number."""
    c, counts = 1, frozenset[str]()
    for m, grid in parts:
        c, counts = math.lcm(c, grid.c // math.gcd(grid.c, m)), counts | grid.counts
    return Grid(c, counts)


def _as_nearest(circuit: Circuit, read_out: MultiClass, forms: list[Form]) -> bool:
    """True if the labels are consecutive whole numbers k with the values 2 k y − k², y whole."""
    labels = read_out.labels
    if not all(type(label) is int for label in labels):
        return False
    numbers = [Fraction(label) for label in labels]  # type: ignore[arg-type]
    if any(b - a != 1 for a, b in itertools.pairwise(numbers)):
        return False
    k = next((number for number in numbers if number), None)
    if k is None:
        return False
    # A label k ≠ 0 with the form f = 2 k y − k² gives y = (f + k²)/(2k).
    y = (forms[numbers.index(k)] + k**2) * (1 / (2 * k))
    # 2 k y − k² = y² − (y − k)² is largest for the label nearest to y. With y whole and labels that
    # are consecutive whole numbers, there is one nearest label: y itself, or the end that y is
    # beyond.
    agree = all(form == y * (2 * m) - m**2 for m, form in zip(numbers, forms, strict=True))
    return agree and circuit.is_whole(y)


def span(circuit: Circuit, form: Form) -> Range:
    """Return the range of a form at the symbols; values of one head are taken together."""
    # What one head fetches comes from the same rows with the same weights: a sum of it is what the
    # head fetches of the sum of the values, whose range is narrower than the sum of the ranges.
    by_head: dict[Head, list[tuple[int, Fraction]]] = {}
    fetched: dict[int, Form] = {}
    others = []
    for number, factor in form.terms:
        atom = circuit.atoms[number]
        if isinstance(atom, Fetched):
            fetched[number] = atom.value
            by_head.setdefault(atom.head, []).append((number, factor))
        else:
            others.append((number, factor))
    rows = circuit.rows(Form(tuple(others), form.constant))
    for head, terms in by_head.items():
        value = total(fetched[number] * factor for number, factor in terms)
        brought = head.law(circuit, value).ranges
        if _leaves_bos_out(circuit, head):
            symbols = circuit.rows(value).below(len(circuit.alphabet))
            brought = Ranges(len(brought), symbols.hull(), {})
        rows = rows.plus(brought)
    return rows.below(len(circuit.alphabet)).hull()


def _leaves_bos_out(circuit: Circuit, head: Head) -> bool:
    """True if a symbol, which sees itself, never attends to BOS.

    The last of what matches is chosen, no product is negative, BOS has none, and its place is 0.
    """
    if not isinstance(head, Match) or head.choose != "rightmost":
        return False
    if not circuit.bos or head.mask not in ("none", "future"):
        return False
    return head.is_beneath(circuit)
