"""The ideal: every number of a transformer as an affine form of unknowns.

The ideal is the model in rational arithmetic, with average-hard attention in place of softmax. A
row of an input has a *kind*: its symbol, or BOS. A form is a sum Σ c_u u with rational coefficients
c_u. Its unknowns u are functions of the row:

- indicators: the one of kind k is 1 at rows of kind k and 0 elsewhere. A constant c is the form
  that gives every indicator the coefficient c;
- functions of the position;
- outputs of heads;
- hidden units.

Each unknown is stored, and each form is computed, with three facts that hold on every input:

- ends: a lower and an upper end for each kind of row;
- a grid (`grids`);
- a size: a bound of the magnitude, and one of D times the magnitude for each mask of a mean, where
  D is the number of rows that the mask admits at the row.

The *bounds* of a number are its ends and its sizes in one array (3 + masks, kinds): the lower end,
the upper end, the bound of the magnitude, and that of D times the magnitude for each mask. Arrays
of several numbers have an axis in front.

A head is linear in its values, so it maps a form Σ c_u u to Σ c_u (the head's output for u). Its
output for the indicator of kind k is the *share* of kind k: the total weight on rows of that kind.
The shares of a head are at least 0, and add up to 1, or to 0 where the head sees no row. So a sum
Σ c_k share_k lies between the least and the largest c_k.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.verify.proof.grids import (
    SYMBOLS,
    Grid,
    best_keys,
    combined_grid,
    farey_neighbours,
    quantum,
)
from transformist.verify.proof.row_functions import MOST_ROWS, NAMES, RowFunction
from transformist.verify.proof.sparse_rows import starts
from transformist.verify.proof.upwards import (
    FLOOR,
    MOST_SUMMED,
    Floats,
    at_least_tiniest,
    excess,
    magnitudes,
    outwards,
    raised,
    require_memory,
    require_terms,
    up,
    widened,
    within_reach,
)

Form: TypeAlias = "Mapping[int, Fraction]"

ZERO_FORM: Form = {}
"""The form 0: one object for all, so that what is known of it is computed once."""

Term: TypeAlias = "tuple[int, float, Floats]"
"""The place of the sum in a list, a factor, and the bounds of the number that it multiplies."""

MOST_NUMBERS = 2**21
"""Most terms times kinds of rows in one piece of an evaluation over all terms.

An array of a piece has 3 + masks numbers for each of them: 16 MiB times 3 + masks.
"""

MOST_VALUES = 4096
"""Largest number of values of a form that are listed, and of their D: bounds the running time."""

FEW_TERMS = 16
"""Most distinct terms, in |factor| and grid, of a sum whose grid is kept for sums with the same."""

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, eq=False)
class Views:
    """The kinds of keys that each kind of query may attend to, each set of keys once.

    All symbols see alike, so there are two sets where there is BOS, and one where there is none.
    Extremes over the keys of a query then take time in the number of kinds, not in its square.

    Attributes:
        sets: the distinct sets of keys, by their numbers.
        place: (kinds,): the place in `sets` of each kind of query.
        nothing: (kinds,): True for a query that sees no kind of key.

    """

    sets: tuple[NDArray[np.intp], ...]
    place: NDArray[np.intp]
    nothing: NDArray[np.bool_]

    @classmethod
    def of(cls, sees: NDArray[np.bool_]) -> Views:
        """Return the distinct rows of a matrix (queries, keys)."""
        known: dict[bytes, int] = {}
        place = [known.setdefault(row.tobytes(), len(known)) for row in sees]
        first = [place.index(number) for number in range(len(known))]
        sets = tuple(np.flatnonzero(sees[query]) for query in first)
        return cls(sets, np.array(place, dtype=np.intp), np.asarray(~sees.any(axis=1)))

    def least(self, x: Floats) -> Floats:
        """(…, queries): the least of x (…, keys) over the keys of each query; ∞ over none."""
        return self._extremes(np.minimum, x, np.inf)

    def largest(self, x: Floats) -> Floats:
        """(…, queries): the largest of x (…, keys) over the keys of each query; −∞ over none."""
        return self._extremes(np.maximum, x, -np.inf)

    def _extremes(self, extreme: np.ufunc, x: Floats, of_none: float) -> Floats:
        found = np.empty((*x.shape[:-1], len(self.sets)))
        for number, keys in enumerate(self.sets):
            extreme.reduce(x[..., keys], axis=-1, initial=of_none, out=found[..., number])
        return found[..., self.place]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Attention pattern of a head: the rows that it attends to in the ideal.

    Attributes:
        where: the head's place in the model.
        mask: the head's mask.
        selection: `mean` (all admissible rows, with equal weights), `one` (a single row), or
            `mixture` (some admissible rows, with equal weights: those with the largest score).
        sees: (kinds, kinds): True if a query of the first kind may attend to a key of the second.
        empty: (kinds,): True if a query of the kind may have no admissible key.

    """

    where: str
    mask: str
    selection: str
    sees: NDArray[np.bool_]
    empty: NDArray[np.bool_]

    def ends(self, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Return (…, kinds): ends of Σ α_j x_j at each kind of query, from those of x_j at keys.

        The weights α_j are at least 0 and add up to 1, so the sum lies between the least and the
        largest x_j that the query may attend to. It is 0 where there is no admissible key.
        """
        low, high = self.views.least(lo), self.views.largest(hi)
        low = np.where(self.empty, np.minimum(low, 0), low)
        high = np.where(self.empty, np.maximum(high, 0), high)
        nothing = self.views.nothing
        return np.where(nothing, 0.0, low), np.where(nothing, 0.0, high)

    @cached_property
    def views(self) -> Views:
        """The distinct rows of `sees`."""
        return Views.of(self.sees)


@dataclass(frozen=True, eq=False)
class Unknown:
    """Facts about an unknown that hold on every input.

    Attributes:
        bounds: (3 + masks, kinds): ends and sizes.
        grid: the grid of its values.
        share: the pattern of the head and the kind of row, if the unknown is a share.
        unit: the form x and the limit h (`None` for no limit), if the unknown is a hidden unit
            min(ReLU(x), h).
        rows: the values at each row, if they follow from the share of BOS alone.

    """

    bounds: Floats
    grid: Grid
    share: tuple[Pattern, int] | None = None
    unit: tuple[Form, Fraction | None] | None = None
    rows: RowFunction | None = None

    @property
    def lo(self) -> Floats:
        """(kinds,): its lower end."""
        return np.asarray(self.bounds[0])

    @property
    def hi(self) -> Floats:
        """(kinds,): its upper end."""
        return np.asarray(self.bounds[1])

    @property
    def size(self) -> Floats:
        """(1 + masks, kinds): bounds of its magnitude, and of D times its magnitude."""
        return self.bounds[2:]


class Moving(NamedTuple):
    """A form, and bounds of its part that does not follow from the kind of row.

    Attributes:
        form: the form.
        lo, hi: for each kind of row, the ends of the form without the constant of the kind.
        grid: the grid of that part.

    """

    form: Form
    lo: Sequence[float]
    hi: Sequence[float]
    grid: Grid


class Ideal:
    """The unknowns of a transformer on inputs of up to N symbols, and bounds of their forms.

    Attributes:
        kinds: the number of kinds of rows.
        bos: the number of the kind BOS, which is the last; `None` for a model without BOS.
        longest: N.
        masks: the masks of heads that take means, for which sizes times D are kept.
        most_rows: the largest number of rows of an input, and so the largest D.
        scales: the largest factor of each size: 1 for the magnitude, the largest D for each mask.
        unknowns: the unknowns, by number; the first `kinds` of them are the indicators.

    """

    def __init__(self, kinds: int, bos: int | None, longest: int, masks: Sequence[str]) -> None:
        self.kinds, self.bos, self.longest, self.masks = kinds, bos, longest, tuple(masks)
        self.most_rows = longest + (bos is not None)
        self.scales = np.array([1.0, *[float(self.most_rows)] * len(self.masks)])
        self.unknowns: list[Unknown] = []
        self._has_rows = False
        self._named: dict[Any, int] = {}
        self._shares: dict[Pattern, list[int]] = {}
        self._compositions: dict[tuple[Pattern, Pattern], Pattern] = {}
        self._grids: dict[int, tuple[Form, Grid, int | None]] = {}
        self._equal_grids: dict[Grid, Grid] = {}
        self._combined_grids: dict[Any, tuple[Grid, int | None]] = {}
        self._rests: dict[int, tuple[Form, Form]] = {}
        self._sums: dict[int, list[tuple[Fraction, Form]]] = {}
        self._with_shares: dict[int, bool] = {}
        self._measured: dict[int, tuple[Form, Floats]] = {}
        at = np.eye(kinds)
        self.add_all([("kind", kind) for kind in range(kinds)], at, at, [(ONE, None)] * kinds)

    def add(
        self, name: Any, lo: Any, hi: Any, grid: Grid, size: Floats | None = None, **of: Any
    ) -> int:
        """Return the number of the unknown of this name; make the unknown at its first use."""
        if name not in self._named:
            everywhere = np.zeros(self.kinds)
            lo, hi = outwards(everywhere + lo, everywhere + hi)
            if size is None:
                size = self.scales[:, None] * magnitudes(lo, hi)
            bounds = np.stack([lo, hi, *at_least_tiniest(size)])
            self._named[name] = len(self.unknowns)
            self._append(Unknown(bounds, self._one_grid(grid), **of))
        return self._named[name]

    def add_all(
        self,
        names: Sequence[Any],
        lo: Floats,
        hi: Floats,
        grids: Sequence[Grid],
        of: Sequence[Mapping[str, Any]] | None = None,
        size: Floats | None = None,
    ) -> list[int]:
        """Return the numbers of unknowns with ends (unknowns, kinds), as `add` does one by one.

        Args:
            names: of the unknowns.
            lo: (unknowns, kinds): their lower ends.
            hi: (unknowns, kinds): their upper ends.
            grids: their grids.
            of: what else is known of each (`Unknown`).
            size: (1 + masks, unknowns, kinds): their sizes, which by default follow from the ends.

        """
        lo, hi = outwards(lo, hi)
        if size is None:
            size = self.scales[:, None, None] * magnitudes(lo, hi)
        bounds = np.stack([lo, hi, *at_least_tiniest(size)], axis=1)
        for place, (name, grid) in enumerate(zip(names, grids, strict=True)):
            if name not in self._named:
                self._named[name] = len(self.unknowns)
                more = {} if of is None else of[place]
                self._append(Unknown(bounds[place], self._one_grid(grid), **more))
        return [self._named[name] for name in names]

    def _append(self, unknown: Unknown) -> None:
        self.unknowns.append(unknown)
        self._has_rows |= unknown.rows is not None

    def known(self, name: Any) -> int | None:
        """Return the number of the unknown of this name, or `None`."""
        return self._named.get(name)

    def index_of(self, mask: str | None) -> int | None:
        """Return the index of D in sizes and errors: 0 for D = 1; `None` if D is not kept."""
        if mask is None:
            return 0
        return 1 + self.masks.index(mask) if mask in self.masks else None

    # Forms

    def constant(self, value: Fraction) -> Form:
        """Return the form of a constant."""
        return dict.fromkeys(range(self.kinds), value) if value else ZERO_FORM

    def combined(self, parts: Iterable[tuple[Any, Form]]) -> Form:
        """Return the form of Σ factor · form; one form alone is returned as it is."""
        listed = [(factor, form) for factor, form in parts if form and factor]
        if not listed:
            return ZERO_FORM
        if len(listed) == 1 and listed[0][0] == 1:
            require_terms(len(listed[0][1]), "weights", "terms in a sum", MOST_SUMMED)
            return listed[0][1]
        total, is_zero, apart = dict[int, Fraction](), set[int](), True
        for factor, form in listed:
            scaled = form if factor == 1 else _scaled(factor, form)
            if total.keys().isdisjoint(scaled):
                total.update(scaled)
                continue
            for number, x in scaled.items():
                if number not in total:
                    total[number] = x
                    continue
                apart &= number < self.kinds
                total[number] += x
                if not total[number]:
                    is_zero.add(number)
        require_terms(len(total), "weights", "terms in a sum", MOST_SUMMED)
        for number in is_zero:
            if not total[number]:
                del total[number]
        for x in {id(x): x for x in total.values()}.values():
            within_reach(x)
        if apart and len(total) > self.kinds:
            rest = self.rest(total)
            if len(rest) > len(listed):
                parts = [(factor, self.rest(form)) for factor, form in listed]
                self._sums[id(rest)] = [(factor, part) for factor, part in parts if part]
        return total

    def shifted(self, form: Form, value: Fraction) -> Form:
        """Return the form plus a constant; both forms have one `rest`."""
        if not form or not value:
            return form or self.constant(value)
        total, sums = dict(form), {id(ZERO): value}  # most kinds share one constant
        for kind in range(self.kinds):
            own = total.get(kind, ZERO)
            if id(own) not in sums:
                sums[id(own)] = within_reach(own + value)
            if moved := sums[id(own)]:
                total[kind] = moved
            else:
                del total[kind]
        require_terms(len(total), "weights", "terms in a sum", MOST_SUMMED)
        self._rests[id(total)] = total, self.rest(form)
        return total

    def rest(self, form: Form) -> Form:
        """Return the terms of a form other than constants of the kinds."""
        known = self._rests.get(id(form))
        if known is None:
            rest = form
            if any(number < self.kinds for number in form):
                rest = {number: x for number, x in form.items() if number >= self.kinds}
                self._rests[id(rest)] = rest, rest
            # A kept form stays alive, so no other form has its id.
            known = self._rests[id(form)] = form, rest
        return known[1]

    def is_constant(self, form: Form) -> bool:
        """Return True if the form is one number at every row of every input."""
        if len(form) < self.kinds:  # a kind that is left out has the number 0
            return not any(form.values())
        return all(number < self.kinds for number in form) and len({*form.values()}) == 1

    def reciprocal(self, form: Form) -> tuple[Fraction, str | None] | None:
        """Return (b, None) for a form that is b > 0 at every row, (b, mask) for b/D.

        The share of BOS in a mean is 1/D, as there is one BOS among the D rows.
        """
        if form and self.is_constant(form):
            return (form[0], None) if form[0] > 0 else None
        if len(form) == 1:
            ((number, scale),) = form.items()
            head, kind = self.unknowns[number].share or (None, None)
            if head is not None and kind == self.bos and scale > 0 and head.selection == "mean":
                return (scale, head.mask) if head.sees[:, kind].all() else None
        return None

    def vertex(self, A: Form, B: Form) -> tuple[Fraction, int] | None:
        """Return (b, index of D) if D B = b > 0 and A/(2B) is whole, or `None`.

        A k − B k² = −B (k − q)² + B q² with q = A/(2B), so among whole k the value is a parabola
        with a whole vertex. D is 1, or the number of rows of a mask (`index_of`). If A is m g/D,
        q is m g/(2b): whole for every m if g is a multiple of 2b. If A is m g, it is (m D) g/D.
        """
        found, grid = self.reciprocal(B), self.grid(A)
        if found is None or grid is None or (grid[0] / (2 * found[0])).denominator != 1:
            return None
        index = self.index_of(found[1])
        if index is None or (grid[0] and grid[1] not in (None, found[1])):
            return None
        return found[0], index

    def grid(self, form: Form) -> Grid:
        """Return the grid of a form, computed once for each form."""
        known = self._grids.get(id(form))
        if known is None:
            # Equal terms have one common divisor, so each pair of coefficient and grid counts once.
            # `add` keeps equal grids as one object.
            distinct = dict[tuple[int, int, int], Grid]()
            for x, grid in self._terms_with_grids(form):
                p, q = x.as_integer_ratio()
                distinct[abs(p), q, id(grid)] = grid
            # A kept form stays alive, so no other form has its id.
            known = self._grids[id(form)] = form, *self._combined_grid(distinct)
        return known[1]

    def _combined_grid(self, terms: Mapping[tuple[int, int, int], Grid]) -> tuple[Grid, int | None]:
        """Return the grid of Σ (p/q) · number, and its `quantum`.

        It is kept, as many sums have terms of equal |factor| and grid. The ids of the grids stay
        valid: `_equal_grids` keeps these alive.
        """
        key = tuple(terms)
        found = self._combined_grids.get(key)
        if found is None:
            grid = combined_grid((p, q, each) for (p, q, _), each in terms.items())
            found = self._one_grid(grid), quantum(grid)
            if len(key) <= FEW_TERMS:
                self._combined_grids[key] = found
        return found

    def _terms_with_grids(self, form: Form) -> Iterable[tuple[Fraction, Grid]]:
        """Return pairs of a factor and a grid, from which `combined_grid` makes that of a form.

        Common divisors are associative, so the grid of a sum of sums is that of all their terms.
        Equal terms have one common divisor: a constant that kinds share is listed once.
        """
        rest = self.rest(form)
        if rest is not form:
            of_kinds, own = self.unknowns[0].grid, [form[kind] for kind in self._kinds_of(form)]
            distinct = {id(x): (x, of_kinds) for x in own}
            return [*distinct.values(), (ONE, self.grid(rest))]
        if id(rest) in self._sums:
            return [(factor, self.grid(part)) for factor, part in self._sums[id(rest)]]
        return [(x, self.unknowns[number].grid) for number, x in form.items()]

    def _kinds_of(self, form: Form) -> Iterable[int]:
        """Return the kinds with a constant in a form, without a walk through all of its terms."""
        if len(form) <= self.kinds:
            return [number for number in form if number < self.kinds]
        return [kind for kind in range(self.kinds) if kind in form]

    def quantum(self, form: Form) -> int | None:
        """Return the largest k such that all values of a form are multiples of 2ᵏ, or `None`."""
        if id(form) not in self._grids:
            self.grid(form)
        return self._grids[id(form)][2]

    def _one_grid(self, grid: Grid) -> Grid:
        """Return the one object for all equal grids."""
        return self._equal_grids.setdefault(grid, grid)

    def _tabulated(self, rows: RowFunction, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Move ends inwards to those of a function of the row."""
        least, most = (np.full(self.kinds, float(x)) for x in rows.ends())
        least[self.bos] = most[self.bos] = float(rows.at(0))
        least, most = widened(least, most, magnitudes(least, most))  # float(x) is off by 2⁻⁵³ x
        # Ends that were exact stay: they are whole multiples of a grid.
        return np.maximum(lo, least), np.minimum(hi, most)

    # Functions of the row

    def row_function(self, form: Form) -> RowFunction | None:
        """Return the values of a form at each row, if it depends on the share of BOS alone."""
        if not self._has_rows:
            return None
        others = [(x, self.unknowns[n].rows) for n, x in form.items() if n >= self.kinds]
        known = [(x, rows) for x, rows in others if rows is not None]
        if not known or len(known) < len(others):
            return None
        at_symbols = {form.get(kind, Fraction(0)) for kind in range(self.kinds - 1)}
        if len(at_symbols) > 1:
            return None
        at_bos = form.get(self.kinds - 1, Fraction(0))
        own = RowFunction.of_rows(at_bos, at_symbols.pop(), self.longest)
        return RowFunction.total([*known, (ONE, own)])

    def named(self, form: Form) -> Form:
        """Return the form with position functions in place of sums of hidden units equal to them.

        The terms that depend on the share of BOS alone are compared with each position function at
        every row, without rounding: where they are a + b f there, the form gets a + b f for them.
        """
        if not self._has_rows:
            return form
        of_rows = {n: x for n, x in form.items() if self.unknowns[n].rows is not None}
        if not any(self.unknowns[n].unit is not None for n in of_rows):
            return form
        rows = self.row_function(of_rows)
        assert rows is not None
        rest = {n: x for n, x in form.items() if n not in of_rows}
        for name in NAMES:
            function = RowFunction.of_position(name, self.longest)
            found = rows.in_terms_of(function)
            if found is not None:
                shift, factor = found
                number = self._position(name, function)
                return self.combined(
                    [(ONE, rest), (factor, {number: ONE}), (shift, self.constant(ONE))]
                )
        return form

    def _position(self, name: str, function: RowFunction) -> int:
        """Return the number of a position function, with its values at each row."""
        ends = function.ends()
        lo, hi = (np.full(self.kinds, float(x)) for x in ends)
        lo[self.bos] = hi[self.bos] = float(function.at(0))
        return self.add(name, lo, hi, (ONE, None), rows=function)

    def measured(self, forms: Sequence[Form]) -> tuple[Floats, Floats, Floats]:
        """Return bounds of several forms at once.

        Returns:
            (forms, kinds): lower ends, and upper ends; (1 + masks, forms, kinds): bounds of the
            magnitudes, and of D times the magnitudes.

        """
        rests = {id(rest): rest for form in forms if (rest := self.rest(form))}
        # `moving` asks again for sums that were measured just before, so the last ones are kept.
        # The forms are kept with them, so their ids stay valid; unknowns do not change.
        if not rests.keys() <= self._measured.keys():
            sums = self._bounds([*rests.values()])
            self._measured = dict(zip(rests, zip(rests.values(), sums, strict=True), strict=True))
        constants = np.zeros((len(forms), 1, self.kinds))
        used, of = list[int](), list[Floats]()
        for row, form in enumerate(forms):
            rest = self.rest(form)
            if rest is not form:
                for kind in self._kinds_of(form):
                    constants[row, 0, kind] = _nearest(form[kind])
            if rest:
                used.append(row)
                of.append(self._measured[id(rest)][1])
        # A row has one kind, so at most one constant is added there to the bounds of the rest.
        found = np.concatenate(
            [constants, constants, np.abs(constants) * self.scales[:, None]], axis=1
        )
        if used:
            found[used] += np.concatenate(of).reshape(len(used), *found.shape[1:])
        # The constants of all kinds are counted: too many, which is safe.
        count = np.array([[len(form)] for form in forms], dtype=float).reshape(-1, 1)
        # The bound of the magnitude is still a bound of Σ |term|, as no end has lowered it.
        lo, hi = widened(found[:, 0], found[:, 1], found[:, 2] * excess(count))
        total = raised(found[:, 2:].swapaxes(0, 1), count)
        self._snap(forms, lo, hi)
        for place, form in enumerate(forms):
            function = self.row_function(form)
            if function is not None:
                lo[place], hi[place] = self._tabulated(function, lo[place], hi[place])
        by_ends = self.scales[:, None, None] * magnitudes(lo, hi)
        # Where one is NaN `fmin` takes the other; where both are, `up` makes infinity of them.
        return lo, hi, at_least_tiniest(up(np.fmin(total, by_ends)))

    def _bounds(self, rests: Sequence[Form]) -> Floats:
        """Return bounds of sums of terms, not yet widened: (sums, 3 + masks, kinds).

        A sum of sums that have no unknown in common has the sums of their bounds; thousands of
        hidden units may read a few slots. Shares of one head in two sums do not: only together do
        they lie between the least and the largest coefficient. A factor of a sum rounds each of its
        terms twice more than a factor of the term, which `widened` covers.
        """
        listed = [self._parts_of(rest) for rest in rests]
        parts = {id(part): part for each in listed for _, part in each}
        found = self._bounds_by_terms([*parts.values()])
        if list(parts) == [id(rest) for rest in rests]:  # none is a sum of others
            return found
        of = dict(zip(parts, found, strict=True))
        terms = [
            (row, _nearest(factor), of[id(part)])
            for row, each in enumerate(listed)
            for factor, part in each
        ]
        return self._added(len(rests), terms)

    def _parts_of(self, rest: Form) -> Sequence[tuple[Fraction, Form]]:
        """Return the factors and sums that a sum was made of, if their bounds may be added.

        Else return (1, the sum) alone: bounds are not added where one of several has a share.
        """
        parts = self._sums.get(id(rest))
        if parts is None or (len(parts) > 1 and any(self._has_shares(part) for _, part in parts)):
            return [(ONE, rest)]
        return parts

    def _has_shares(self, rest: Form) -> bool:
        """Return True if a sum, which `_sums` keeps alive, has a share among its terms."""
        known = self._with_shares.get(id(rest))
        if known is None:
            known = any(self.unknowns[number].share is not None for number in rest)
            self._with_shares[id(rest)] = known
        return known

    def _bounds_by_terms(self, rests: Sequence[Form]) -> Floats:
        """Return bounds of sums by their terms: (sums, 3 + masks, kinds)."""
        terms, shares = list[Term](), dict[Pattern, list[tuple[int, int, float]]]()
        floats = dict[int, float]()  # equal coefficients are often one object
        for place, rest in enumerate(rests):
            for number, exact in rest.items():
                x = floats.get(id(exact))
                if x is None:
                    x = floats[id(exact)] = _nearest(exact)
                unknown = self.unknowns[number]
                if unknown.share is None:
                    terms.append((place, x, unknown.bounds))
                else:
                    head, kind = unknown.share
                    shares.setdefault(head, []).append((place, kind, x))
        found = self._added(len(rests), terms)
        for head, listed in shares.items():
            places = sorted({place for place, _, _ in listed})
            row_of = {place: row for row, place in enumerate(places)}
            weights = np.zeros((len(places), self.kinds))
            for place, kind, coefficient in listed:
                weights[row_of[place], kind] = coefficient
            size = self._size_of_shares(head, np.abs(weights))
            found[places] += np.stack([*head.ends(weights, weights), *size], axis=1)
        return found

    def _added(self, count: int, terms: Sequence[Term]) -> Floats:
        """Return the bounds of `count` sums of terms: (count, 3 + masks, kinds).

        The terms of one sum stand together, so that it is one run of one piece.
        """
        found = np.zeros((count, 2 + len(self.scales), self.kinds))
        if terms:
            longest = int(np.bincount([place for place, _, _ in terms]).max())
            require_memory(longest, self.kinds, "weights")
        for piece in _pieces(terms, self.kinds):
            rows, factors, of = zip(*piece, strict=True)
            x = np.array(factors)[:, None, None]
            each = x * np.concatenate(of).reshape(len(of), *found.shape[1:])
            lo, hi = each[:, 0], each[:, 1]
            each[:, 0], each[:, 1] = np.minimum(lo, hi), np.maximum(lo, hi)
            np.abs(each[:, 2:], out=each[:, 2:])
            at = np.array(rows)
            first = starts(at)
            found[at[first]] += np.add.reduceat(each, first)
        return found

    def _by_grid(self, forms: Sequence[Form]) -> dict[Grid, list[int]]:
        """Places of the forms of each grid."""
        found: dict[int, tuple[Grid, list[int]]] = {}
        for place, form in enumerate(forms):
            grid = self.grid(form)
            found.setdefault(id(grid), (grid, []))[1].append(place)
        return dict(found.values())

    def _snap(self, forms: Sequence[Form], lo: Floats, hi: Floats) -> None:
        """Move ends inwards to the grids of forms, all at once."""
        places, steps, odds = list[int](), list[float](), list[float]()
        near_zero, gaps = list[int](), list[float]()
        for grid, rows in self._by_grid(forms).items():
            if grid is None or 0 < grid[0] < FLOOR:
                continue
            if (g := _float_step(grid)) is not None:
                places += rows
                steps += [g] * len(rows)
                odds += [_odd_part(g)] * len(rows)
            elif not grid[0]:
                lo[rows] = hi[rows] = 0.0
            else:
                near_zero += rows
                gaps += [self.gap(grid)] * len(rows)
        if places:
            each, odd = np.array(steps)[:, None], np.array(odds)[:, None]
            lo[places], hi[places] = _multiples_within(each, odd, lo[places], hi[places])
        if near_zero:
            gap = np.array(gaps)[:, None]
            lo[near_zero], hi[near_zero] = _without(gap, lo[near_zero], hi[near_zero])

    def _size_of_shares(self, head: Pattern, magnitude: Floats) -> Floats:
        """Size of Σ c_k share_k for |c_k| (forms, kinds); D times a mean is a sum (`summed`)."""
        most = np.maximum(head.views.largest(magnitude), 0)
        return self._scaled(head, most, magnitude)

    def _scaled(self, head: Pattern, most: Floats, each: Floats) -> Floats:
        """Size of Σ α_j x_j with |Σ α_j x_j| ≤ `most` at each query, |x_j| ≤ `each` at each key.

        The result has the sizes first: (1 + masks, …, kinds) for (…, kinds).
        """
        size: Floats = np.multiply.outer(self.scales, most)
        if head.selection == "mean" and head.mask in self.masks:
            size[1 + self.masks.index(head.mask)] = self.summed(head.views, each)
        return size

    def summed(self, views: Views, x: Floats) -> Floats:
        """(…, queries): a bound of Σ x_j ≥ 0 over at most N admissible symbols, and BOS once."""
        if self.bos is None:
            return np.asarray(self.longest * np.maximum(views.largest(x), 0))
        found = []
        for keys in views.sets:
            most = x[..., keys[keys != self.bos]].max(axis=-1, initial=0.0)
            found.append(self.longest * most + (x[..., self.bos] if self.bos in keys else 0.0))
        return np.asarray(np.stack(found, axis=-1)[..., views.place])

    def snapped(self, grid: Grid, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Move ends inwards to the nearest numbers of a grid."""
        if grid is None or 0 < grid[0] < FLOOR:
            return lo, hi
        if not grid[0]:
            return np.zeros_like(lo), np.zeros_like(hi)
        step = _float_step(grid)
        if step is not None:
            return _multiples_within(step, _odd_part(step), lo, hi)
        return _without(self.gap(grid), lo, hi)

    def gap(self, grid: tuple[Fraction, str | None]) -> float:
        """Return a lower bound of |v| for the numbers v ≠ 0 of a grid.

        |v| ≥ g/D ≥ g/`most_rows`, less 10⁻⁶ for rounding.
        """
        return float(grid[0]) * (1 - 1e-6) / (self.most_rows if grid[1] is not None else 1)

    def moving(self, forms: Sequence[Form]) -> list[Moving]:
        """Return bounds of forms without the constants of the kinds, all computed at once."""
        parts = [self.rest(form) for form in forms]
        # Comparisons of one sum with several thresholds have one rest.
        distinct = {id(part): part for part in parts}
        lo, hi, _ = self.measured([*distinct.values()])
        ends = dict(zip(distinct, zip(lo.tolist(), hi.tolist(), strict=True), strict=True))
        listed = zip(forms, parts, strict=True)
        return [Moving(form, *ends[id(part)], self.grid(part)) for form, part in listed]

    def neighbours(
        self, near: Moving, t: Fraction, kinds: Iterable[int]
    ) -> Iterator[tuple[int, Fraction, int]]:
        """Yield the values of a form next to a threshold t at kinds of rows, and their sides.

        The triples are (kind, below, −1) and (kind, above, 1): every value is at most `below` or at
        least `above`. A side with no value is left out. `below` may be too large, and `above` too
        small, which is the safe side.
        """
        known = dict[tuple[Fraction, float, float], list[tuple[Fraction, int]]]()
        for kind in kinds:
            key = own, lo, hi = near.form.get(kind, ZERO), near.lo[kind], near.hi[kind]
            if key not in known:  # most kinds have the same bounds
                beside = self._beside(t - own, lo, hi, near.grid)
                known[key] = [(value + own, side) for value, side in beside]
            for value, side in known[key]:
                yield kind, value, side

    def _beside(self, at: Fraction, lo: float, hi: float, grid: Grid) -> list[tuple[Fraction, int]]:
        """Return the values next to `at` of a number from lo to hi on a grid, and their sides."""
        if at < lo:
            return [(Fraction(lo), 1)]
        if at > hi:
            return [(Fraction(hi), -1)]
        below = above = at
        if grid is not None and grid[0] and (at / grid[0]).denominator != 1:
            # Let m g < t < (m + 1) g. A value other than m g is at least g/D ≥ `gap` away from it,
            # so none lies strictly between m g and m g + gap; nor between (m + 1) g − gap and
            # (m + 1) g. For D = 1 the gap is g.
            g = grid[0]
            gap = g / (self.most_rows if grid[1] is not None else 1)
            first, last = math.floor(at / g) * g, math.ceil(at / g) * g
            if at <= first + gap:
                below, above = first, first + gap
            elif at >= last - gap:
                below, above = last - gap, last
            elif grid[1] is not None and (at / g).denominator > self.most_rows:
                # No fraction with a denominator D up to `most_rows` lies between the two.
                below, above = (g * x for x in farey_neighbours(at / g, self.most_rows))
        return [(below, -1), (above, 1)]

    def values(self, near: Moving, kind: int) -> list[Fraction] | None:
        """Return every value that the part of a form besides the constant of a kind may have.

        They are the numbers of its grid between its ends, for every D up to `most_rows`. Return
        `None` if no grid is known, or if the values or the D are more than `MOST_VALUES`.
        """
        lo, hi = near.lo[kind], near.hi[kind]
        if near.grid is None or not math.isfinite(hi - lo):
            return None
        g, count = near.grid
        if not g or lo == hi:
            return [Fraction(lo) if g else ZERO]
        rows = 1 if count is None else self.most_rows
        if rows > MOST_VALUES:
            return None
        low, high, found = Fraction(lo) / g, Fraction(hi) / g, set[Fraction]()
        for d in range(1, 1 + rows):
            first, last = math.ceil(low * d), math.floor(high * d)
            if last - first >= MOST_VALUES:
                return None
            found |= {Fraction(p, d) for p in range(first, last + 1)}
            if len(found) > MOST_VALUES:
                return None
        return [g * x for x in sorted(found)]

    # Outputs of heads

    def attended(self, head: Pattern, forms: Sequence[Form]) -> list[Form]:
        """Return the form of Σ α_j x_j for each form x_j at the rows that a head attends to."""
        shares = self._shares_of(head)
        read = dict.fromkeys(itertools.chain.from_iterable(forms))
        brought: dict[int, Form] = {kind: {share: ONE} for kind, share in enumerate(shares)}
        brought |= self._fetched(head, [number for number in read if number >= self.kinds])
        return [self._brought(head, shares, form, brought) for form in forms]

    def _brought(
        self, head: Pattern, shares: Sequence[int], form: Form, brought: Mapping[int, Form]
    ) -> Form:
        """Return the form of Σ α_j x_j; `brought` has Σ α_j u_j for each unknown u of x_j."""
        found = self.combined((x, brought[number]) for number, x in form.items())
        own = [x for kind in form if kind < self.kinds and (x := found.get(shares[kind]))]
        if not head.empty.any() and len(own) == self.kinds and len(set(own)) == 1:
            # Shares add up to 1, so equal coefficients of all of them are a constant.
            rest = {number: x for number, x in found.items() if number not in shares}
            found = self.combined([(own[0], self.constant(ONE)), (ONE, rest)])
        return found

    def _composed(self, head: Pattern, inner: Pattern) -> Pattern:
        """Return the pattern of a head that fetches the shares of another; both take one row.

        At the row j that `head` takes, the share of kind k in `inner` is 1 if the one row that
        `inner` takes from j is of kind k, else 0. So what is fetched is the share of kind k in the
        choice of that one row. There is none where one of the two heads sees no row.
        """
        if (head, inner) not in self._compositions:
            views = head.views
            sees = np.stack([inner.sees[keys].any(axis=0) for keys in views.sets])[views.place]
            empty = np.array([inner.empty[keys].any() for keys in views.sets])[views.place]
            empty |= head.empty
            where = f"{head.where} after {inner.where}"
            self._compositions[head, inner] = Pattern(where, head.mask, "one", sees, empty)
        return self._compositions[head, inner]

    def _shares_of(self, head: Pattern) -> list[int]:
        """Numbers of the shares of a head, one for each kind of row."""
        if head in self._shares:
            return self._shares[head]
        grid: Grid = self._fetched_grid(head, (ONE, None))
        sees, seen = head.sees.T, head.sees.sum(axis=1)
        lo = np.where((seen > sees) | head.empty, 0.0, sees)  # it may see another kind, or none
        found = self.add_all(
            [(head, "kind", kind) for kind in range(self.kinds)],
            lo,
            sees.astype(float),
            [grid] * self.kinds,
            [
                {"share": (head, kind), "rows": self._rows_of_share(head, kind)}
                for kind in range(self.kinds)
            ],
            self._size_of_shares(head, np.eye(self.kinds)),
        )
        self._shares[head] = found
        return found

    def _rows_of_share(self, head: Pattern, kind: int) -> RowFunction | None:
        """Return the share of BOS in a mean over the rows up to each row; `None` for others.

        There must be one BOS, at row 0, which every row sees, and a mean of all rows up to this
        one: so the mask is `future` (`strict-future` leaves out the row itself).
        """
        is_mean = head.selection == "mean" and head.mask == "future"
        if kind != self.bos or not is_mean or self.longest > MOST_ROWS:
            return None
        return RowFunction.share_of_bos(self.longest) if head.sees[:, kind].all() else None

    def _fetched(self, head: Pattern, numbers: Sequence[int]) -> dict[int, Form]:
        """Forms of Σ α_j u_j for unknowns u that are not indicators."""
        found, others = dict[int, Form](), list[int]()
        for number in numbers:
            if (form := self._fetched_apart(head, number)) is not None:
                found[number] = form
            else:
                others.append(number)
        if others:
            unknowns = [self.unknowns[number] for number in others]
            lo, hi = head.ends(
                np.stack([u.lo for u in unknowns]), np.stack([u.hi for u in unknowns])
            )
            sizes = np.stack([u.size[0] for u in unknowns])
            size = up(self._scaled(head, magnitudes(lo, hi), sizes))
            grids = [self._fetched_grid(head, u.grid) for u in unknowns]
            added = self.add_all([(head, number) for number in others], lo, hi, grids, size=size)
            found |= {number: {new: ONE} for number, new in zip(others, added, strict=True)}
        return found

    def _fetched_apart(self, head: Pattern, number: int) -> Form | None:
        """Form of Σ α_j u_j without an unknown of its own, or `None`.

        A mean of all positions, or a share that two heads bring that take one row each.
        """
        is_mean = head.selection == "mean"
        if is_mean and number == self.known("i") and head.mask in ("none", "future"):
            return self._mean_position(head.mask)
        share = self.unknowns[number].share
        if share is not None and head.selection == share[0].selection == "one":
            inner, kind = share
            return {self._shares_of(self._composed(head, inner))[kind]: ONE}
        return None

    def _fetched_grid(self, head: Pattern, grid: Grid) -> Grid:
        """Grid of Σ α_j x_j, where x_j has the given grid.

        A mean of multiples of g is a multiple of g/D; D is the number of admissible rows, or of the
        best among them. A single row with grid g/D has the D of that row, not of the query; the two
        are the same for the mask `none` and for the number of symbols.
        """
        if grid is None:
            return None
        if head.selection == "one":
            return grid if grid[1] in (None, "none", SYMBOLS) else None
        count = head.mask if head.selection == "mean" else best_keys(head.where)
        return None if grid[1] is not None else (grid[0], count)

    def _mean_position(self, mask: str) -> Form:
        """Mean of the positions: m/2 for 0 to m (with BOS), (m + 1)/2 for 1 to m; m is i or n."""
        number = self.known("i")
        if mask == "none":
            least = 0 if self.bos is not None else 1
            number = self.add("n", least, self.longest, (ONE, None))
        assert number is not None
        first = self.constant(ONE if self.bos is None else Fraction(0))
        return self.combined([(Fraction(1, 2), {number: ONE}), (Fraction(1, 2), first)])


def _nearest(x: Fraction) -> float:
    """Return the float64 nearest to a rational."""
    p, q = x.as_integer_ratio()
    return p / q


def _float_step(grid: Grid) -> float | None:
    """Return g of a grid of multiples of g if it is a float64 from `FLOOR` on, else `None`."""
    if grid is None or grid[1] is not None or not grid[0]:
        return None
    p, q = grid[0].as_integer_ratio()
    g = p / q
    return g if g >= FLOOR and g.as_integer_ratio() == (p, q) else None


def _without(gap: Any, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """Move ends nearer to 0 than a gap to 0: no number but 0 is as near."""
    lo = np.where(lo > -gap, np.maximum(lo, 0), lo)
    return lo, np.where(hi < gap, np.minimum(hi, 0), hi)


def _odd_part(g: float) -> float:
    """Return the numerator of g without its factors 2: below 2⁵³, as g is a float64."""
    p = int(g.as_integer_ratio()[0])
    return float(p // (p & -p))


def _multiples_within(g: Any, odd: Any, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """Move ends inwards to the nearest multiples of g, whose odd part is given.

    v = m g with m whole and lo ≤ v ≤ hi has ⌈lo/g⌉ ≤ m ≤ ⌊hi/g⌋. The computed quotient is off by
    at most 2⁻⁵³ |lo/g|, so it is lowered by 10⁻⁶ + 10⁻¹² |lo/g| before it is rounded up, and the
    other one raised. m g is exact if m times the odd part of g is below 2⁵³; other ends stay.
    """
    first = np.ceil(lo / g - (1e-6 + 1e-12 * np.abs(lo / g)))
    last = np.floor(hi / g + (1e-6 + 1e-12 * np.abs(hi / g)))
    fits = [np.abs(m) * odd < 2.0**53 for m in (first, last)]
    return np.where(fits[0], first * g, lo), np.where(fits[1], last * g, hi)


def _scaled(factor: Fraction, form: Form) -> Form:
    """Return factor · form; equal coefficients are often one object, and then so are products."""
    products = {id(x): x for x in form.values()}
    for key, x in products.items():
        products[key] = factor if x is ONE else factor * x
    return {number: products[id(x)] for number, x in form.items()}


def _pieces(terms: Sequence[Term], kinds: int) -> Iterator[Sequence[Term]]:
    """Yield terms in pieces of about `MOST_NUMBERS` terms times kinds.

    The terms of a sum stay together. It has at most `MOST_SUMMED` terms (`Ideal.combined`), and few
    enough for the memory.
    """
    start = 0
    while start < len(terms):
        end = min(start + max(MOST_NUMBERS // kinds, 1), len(terms))
        while end < len(terms) and terms[end][0] == terms[end - 1][0]:
            end += 1
        yield terms[start:end]
        start = end
