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

- bounds: a lower and an upper end for each kind of row;
- a grid (`grids`);
- a size: a bound of the magnitude, and one of D times the magnitude for each mask of a mean, where
  D is the number of rows that the mask admits at the row.

A head is linear in its values, so it maps a form Σ c_u u to Σ c_u (the head's output for u). Its
output for the indicator of kind k is the *share* of kind k: the total weight on rows of that kind.
The shares of a head are at least 0, and add up to 1, or to 0 where the head sees no row. So a sum
Σ c_k share_k lies between the least and the largest c_k.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.verify.proof.grids import Grid, sum_grid
from transformist.verify.proof.upwards import (
    FLOOR,
    Floats,
    at_least_tiniest,
    magnitudes,
    outwards,
    require_terms,
    up,
    widened,
    within_reach,
)

Form: TypeAlias = "Mapping[int, Fraction]"

ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Attention pattern of a head: the rows that it attends to in the ideal.

    Attributes:
        where: the head's place in the model.
        mask: the head's mask.
        selection: `mean` (all admissible rows, with equal weights), `one` (a single row), or
            `mixture` (any weights that are at least 0 and add up to 1).
        sees: (kinds, kinds): True if a query of the first kind may attend to a key of the second.
        empty: (kinds,): True if a query of the kind may have no admissible key.

    """

    where: str
    mask: str
    selection: str
    sees: NDArray[np.bool_]
    empty: NDArray[np.bool_]

    def ends(self, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Return ends of Σ α_j x_j at each kind of query, from ends of x_j at each kind of key.

        The weights α_j are at least 0 and add up to 1, so the sum lies between the least and the
        largest x_j that the query may attend to. It is 0 where there is no admissible key.
        """
        low = np.where(self.sees, lo, np.inf).min(axis=1)
        high = np.where(self.sees, hi, -np.inf).max(axis=1)
        low = np.where(self.empty, np.minimum(low, 0), low)
        high = np.where(self.empty, np.maximum(high, 0), high)
        nothing = ~self.sees.any(axis=1)
        return np.where(nothing, 0.0, low), np.where(nothing, 0.0, high)


@dataclass(frozen=True, eq=False)
class Unknown:
    """Facts about an unknown that hold on every input.

    Attributes:
        lo, hi: (kinds,): lower and upper end.
        grid: the grid of its values.
        size: (1 + masks, kinds): bounds of its magnitude, and of D times its magnitude.
        share: the pattern of the head and the kind of row, if the unknown is a share.
        unit: the form x and the limit h (`None` for no limit), if the unknown is a hidden unit
            min(ReLU(x), h).

    """

    lo: Floats
    hi: Floats
    grid: Grid
    size: Floats
    share: tuple[Pattern, int] | None = None
    unit: tuple[Form, Fraction | None] | None = None


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
        self._named: dict[Any, int] = {}
        for kind in range(kinds):
            at = (np.arange(kinds) == kind).astype(float)
            self.add(("kind", kind), at, at, (ONE, None))

    def add(
        self, name: Any, lo: Any, hi: Any, grid: Grid, size: Floats | None = None, **of: Any
    ) -> int:
        """Return the number of the unknown of this name; make the unknown at its first use."""
        if name not in self._named:
            ends = (np.broadcast_to(np.asarray(x, float), (self.kinds,)) for x in (lo, hi))
            lo, hi = outwards(*ends)
            if size is None:
                size = self.scales[:, None] * magnitudes(lo, hi)
            size = at_least_tiniest(size)
            self._named[name] = len(self.unknowns)
            self.unknowns.append(Unknown(lo, hi, grid, size, **of))
        return self._named[name]

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
        return dict.fromkeys(range(self.kinds), value) if value else {}

    def combined(self, parts: Iterable[tuple[Any, Form]]) -> Form:
        """Return the form of Σ factor · form."""
        total: dict[int, Fraction] = {}
        for factor, form in parts:
            for number, coefficient in form.items():
                total[number] = total.get(number, Fraction(0)) + factor * coefficient
        require_terms(len(total), "weights", "terms in a sum")
        return {number: within_reach(x) for number, x in total.items() if x}

    def is_constant(self, form: Form) -> bool:
        """Return True if the form is one number at every row of every input."""
        own = {form.get(kind, Fraction(0)) for kind in range(self.kinds)}
        return len(own) == 1 and all(number < self.kinds for number in form)

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
        """Return the grid of a form."""
        grids = (self.unknowns[number].grid for number in form)
        return sum_grid(
            None if grid is None else (abs(x) * grid[0], grid[1])
            for grid, x in zip(grids, form.values(), strict=True)
        )

    def bounds(self, form: Form) -> tuple[Floats, Floats]:
        """Return the lower and upper end of a form at each kind of row."""
        lo = hi = self._constants(form)
        terms = np.abs(lo)
        for number, x in self._others(form):
            unknown = self.unknowns[number]
            ends = float(x) * unknown.lo, float(x) * unknown.hi
            lo, hi = lo + np.minimum(*ends), hi + np.maximum(*ends)
            terms = terms + abs(float(x)) * unknown.size[0]
        for head, shares in self._shares(form).items():
            low, high = head.ends(shares, shares)
            lo, hi, terms = lo + low, hi + high, terms + np.abs(shares).max()
        lo, hi = widened(lo, hi, terms) if len(form) else (lo, hi)
        return self.snapped(self.grid(form), lo, hi)

    def size(self, form: Form) -> Floats:
        """Return (1 + masks, kinds): bounds of the magnitude of a form, and of D times it."""
        total = self.scales[:, None] * np.abs(self._constants(form))
        for number, x in self._others(form):
            total = total + abs(float(x)) * self.unknowns[number].size
        for head, shares in self._shares(form).items():
            total = total + self._size_of_shares(head, shares)
        by_ends = self.scales[:, None] * magnitudes(*self.bounds(form))
        return at_least_tiniest(np.minimum(up(total), up(by_ends)))

    def _constants(self, form: Form) -> Floats:
        """(kinds,): the constant term of a form at each kind of row, rounded to float64."""
        return np.array([float(form.get(kind, 0)) for kind in range(self.kinds)])

    def _others(self, form: Form) -> Iterator[tuple[int, Fraction]]:
        """Terms of a form other than constants and shares."""
        for number, x in form.items():
            if number >= self.kinds and self.unknowns[number].share is None:
                yield number, x

    def _shares(self, form: Form) -> dict[Pattern, Floats]:
        """For each head, (kinds,): the coefficients of its shares."""
        found: dict[Pattern, Floats] = {}
        for number, x in form.items():
            share = self.unknowns[number].share
            if share is not None:
                found.setdefault(share[0], np.zeros(self.kinds))[share[1]] = float(x)
        return found

    def _size_of_shares(self, head: Pattern, shares: Floats) -> Floats:
        """Size of Σ c_k share_k; D times a mean is a sum over rows (`summed`)."""
        most = np.where(head.sees, np.abs(shares), 0).max(axis=1)
        return self._scaled(head, most, np.abs(shares))

    def _scaled(self, head: Pattern, most: Floats, each: Floats) -> Floats:
        """Size of Σ α_j x_j with |Σ α_j x_j| ≤ `most` at each query, |x_j| ≤ `each` at each key."""
        size: Floats = self.scales[:, None] * most
        if head.selection == "mean" and head.mask in self.masks:
            size[1 + self.masks.index(head.mask)] = self.summed(head.sees, each)
        return size

    def summed(self, sees: NDArray[np.bool_], x: Floats) -> Floats:
        """Return a bound of Σ x_j ≥ 0 over the admissible rows: at most N symbols, BOS once."""
        there = np.where(sees, x, 0.0)
        if self.bos is None:
            return np.asarray(self.longest * there.max(axis=-1))
        return np.asarray(self.longest * there[..., : self.bos].max(axis=-1) + there[..., self.bos])

    def snapped(self, grid: Grid, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Move ends inwards to the nearest numbers of a grid."""
        if grid is None or 0 < grid[0] < FLOOR:
            return lo, hi
        if not grid[0]:
            return np.zeros_like(lo), np.zeros_like(hi)
        g = float(grid[0])
        if grid[1] is None and Fraction(g) == grid[0]:
            # v = m g with m whole and lo ≤ v ≤ hi has ⌈lo/g⌉ ≤ m ≤ ⌊hi/g⌋. The computed quotient
            # is off by at most 2⁻⁵³ |lo/g|, so it is lowered by 10⁻⁶ + 10⁻¹² |lo/g| before it is
            # rounded up, and the other one raised. m g is exact if m times the odd part of g is
            # below 2⁵³; other ends stay.
            odd = grid[0].numerator // (grid[0].numerator & -grid[0].numerator)
            first = np.ceil(lo / g - (1e-6 + 1e-12 * np.abs(lo / g)))
            last = np.floor(hi / g + (1e-6 + 1e-12 * np.abs(hi / g)))
            fits = [np.abs(m) * odd < 2.0**53 for m in (first, last)]
            return np.where(fits[0], first * g, lo), np.where(fits[1], last * g, hi)
        # v is 0, or |v| ≥ g/D ≥ g/`most_rows`, less 10⁻⁶ for rounding. An end between is 0.
        gap = g * (1 - 1e-6) / (self.most_rows if grid[1] is not None else 1)
        lo = np.where(lo > -gap, np.maximum(lo, 0), lo)
        return lo, np.where(hi < gap, np.minimum(hi, 0), hi)

    def neighbours(self, form: Form, t: Fraction, kind: int) -> list[tuple[Fraction, int]]:
        """Return the values of a form next to a threshold t at a kind of row, and their sides.

        The pairs are (below, −1) and (above, 1): every value is at most `below` or at least
        `above`. A side with no value is left out. `below` may be too large, and `above` too small,
        which is the safe side.
        """
        own = form.get(kind, Fraction(0))
        moving = {number: x for number, x in form.items() if number >= self.kinds}
        lo, hi = (float(x[kind]) for x in self.bounds(moving))
        grid, at = self.grid(moving), t - own
        if at < lo:
            return [(Fraction(lo) + own, 1)]
        if at > hi:
            return [(Fraction(hi) + own, -1)]
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
        return [(below + own, -1), (above + own, 1)]

    # Outputs of heads

    def attended(self, head: Pattern, form: Form) -> Form:
        """Return the form of Σ α_j x_j, where x_j is a form at the rows that a head attends to."""
        shares = self._shares_of(head)
        found = self.combined(
            (x, {shares[number]: ONE} if number < self.kinds else self._fetched(head, number))
            for number, x in form.items()
        )
        own = {found.get(share, Fraction(0)) for share in shares}
        if not head.empty.any() and len(own) == 1:  # shares add up to 1
            rest = {number: x for number, x in found.items() if number not in shares}
            found = self.combined([(own.pop(), self.constant(ONE)), (ONE, rest)])
        return found

    def _shares_of(self, head: Pattern) -> list[int]:
        """Numbers of the shares of a head, one for each kind of row."""
        grids: dict[str, Grid] = {"mean": (ONE, head.mask), "one": (ONE, None)}
        found = []
        for kind, weight in enumerate(np.eye(self.kinds)):
            others = np.delete(head.sees, kind, axis=1).any(axis=1)
            hi = head.sees[:, kind].astype(float)
            lo = np.where(others | head.empty, 0.0, hi)
            grid, size = grids.get(head.selection), self._size_of_shares(head, weight)
            found.append(self.add((head, "kind", kind), lo, hi, grid, size, share=(head, kind)))
        return found

    def _fetched(self, head: Pattern, number: int) -> Form:
        """Form of Σ α_j u_j for an unknown u that is not an indicator."""
        is_mean = head.selection == "mean"
        if is_mean and number == self.known("i") and head.mask in ("none", "future"):
            return self._mean_position(head.mask)
        unknown = self.unknowns[number]
        lo, hi = head.ends(unknown.lo, unknown.hi)
        size = up(self._scaled(head, magnitudes(lo, hi), unknown.size[0]))
        grid = self._fetched_grid(head, unknown.grid)
        return {self.add((head, number), lo, hi, grid, size): ONE}

    def _fetched_grid(self, head: Pattern, grid: Grid) -> Grid:
        """Grid of Σ α_j x_j, where x_j has the given grid.

        A mean of multiples of g is a multiple of g/D. A single row with grid g/D has the D of that
        row, not of the query; the two are the same for the mask `none` only.
        """
        if grid is None or head.selection == "mixture":
            return None
        if head.selection == "mean":
            return None if grid[1] is not None else (grid[0], head.mask)
        return grid if grid[1] in (None, "none") else None

    def _mean_position(self, mask: str) -> Form:
        """Mean of the positions: m/2 for 0 to m (with BOS), (m + 1)/2 for 1 to m; m is i or n."""
        number = self.known("i")
        if mask == "none":
            least = 0 if self.bos is not None else 1
            number = self.add("n", least, self.longest, (ONE, None))
        assert number is not None
        first = self.constant(ONE if self.bos is None else Fraction(0))
        return self.combined([(Fraction(1, 2), {number: ONE}), (Fraction(1, 2), first)])
