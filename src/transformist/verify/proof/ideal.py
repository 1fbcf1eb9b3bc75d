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
- a grid: the value is a multiple of g at every row, or of g/D, where D is the number of rows that a
  mask admits at that row;
- a size: a bound of the magnitude, and one of D times the magnitude for each mask of a mean.

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

from transformist.model import Mask

Form: TypeAlias = "Mapping[int, Fraction]"
Floats: TypeAlias = "NDArray[np.float64]"
Grid: TypeAlias = "tuple[Fraction, str | None] | None"
"""(g, mask): multiples of g, or of g/D if a mask is given; g = 0: always 0; `None`: no grid."""

ROOM = 2.0**-40
"""Relative allowance for the rounding of the bounds themselves, which are computed in float64.

A float64 operation on numbers ≥ 0 is off by a factor 1 + δ, |δ| ≤ 2⁻⁵³, or underflows. After fewer
than 2¹² of them one after the other, a sum of n terms counting as n − 1, the result is off by
less than 2¹² · 2⁻⁵³ = 2⁻⁴¹ of itself to first order, which ROOM covers twice over.
"""

FLOOR = 1e-300
"""Absolute allowance for underflow in bounds: 2¹² results lose at most 2⁻¹⁰⁷⁴ each."""


class Unfollowed(Exception):
    """Raised at an operation for which the proof has no bound.

    Attributes:
        where: the part of the model.
        why: the reason.

    """

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where, self.why = where, why


MOST_TERMS = 2**11
"""Sums of more terms are not followed: `ROOM` covers fewer than 2¹² operations."""


def within_reach(x: Fraction) -> Fraction:
    """Return a weight or coefficient whose magnitude is 0 or between 2⁻⁵⁰⁰ and 2⁵⁰⁰.

    An error bound of 0 means "exact", so no bound may become 0 by underflow. The product of two
    such numbers is at least 2⁻¹⁰⁰⁰, above the smallest normal float64, 2⁻¹⁰²².

    Raises:
        Unfollowed: for any other magnitude.

    """
    if x and not -500 < x.numerator.bit_length() - x.denominator.bit_length() < 500:
        raise Unfollowed("weights", "numbers are below 2^-500, or above 2^500, in magnitude")
    return x


def up(x: Any) -> Any:
    """Round a bound x ≥ 0 up, past the rounding errors of float64 (`ROOM`); 0 stays 0.

    x must come from fewer than 2¹² operations on numbers ≥ 0: a difference is not covered. What is
    not a number, 0 · ∞ or 0/0, is no bound: infinity.
    """
    some = np.where(x > 0, x * (1 + ROOM) + FLOOR, np.inf)
    return np.where(x == 0, 0.0, some)


def compounded(*relative: Any) -> Any:
    """Return an upper bound of (1 + x)(1 + y) … − 1: relative errors of successive operations.

    Logarithms keep errors far below 2⁻⁵³, which 1 + x would lose.

    Example:
        >>> float(compounded(0.5, 1.0)) >= 2, float(compounded(2.0**-60, 2.0**-60)) < 2.0**-58
        (True, True)

    """
    return up(np.expm1(sum(np.log1p(x) for x in relative)))


def widened(lo: Floats, hi: Floats, terms: Floats) -> tuple[Floats, Floats]:
    """Move the ends of a sum outwards, past the rounding errors of float64.

    Terms of both signs may cancel, so the allowance is relative to `terms`, the sum of their
    magnitudes: n terms round by less than n 2⁻⁵³ Σ |term|.
    """
    room = terms * ROOM
    return lo - room, hi + room


def common_divisor(x: Fraction, y: Fraction) -> Fraction:
    """Return the largest g such that x and y are whole multiples of g."""
    return Fraction(
        math.gcd(x.numerator * y.denominator, y.numerator * x.denominator),
        x.denominator * y.denominator,
    )


def sum_grid(grids: Iterable[Grid]) -> Grid:
    """Grid of a sum of numbers on the given grids.

    A multiple of g is a multiple of g/D too; a multiple of g/D and one of h/D′, where D and D′
    belong to two masks, have no grid in common.
    """
    g, counts = Fraction(0), set[str]()
    for grid in grids:
        if grid is None:
            return None
        g = common_divisor(g, grid[0])
        counts |= {grid[1]} if grid[1] is not None and grid[0] else set()
    return None if len(counts) > 1 else (g, counts.pop() if counts else None)


def quantum(grid: Grid) -> int | None:
    """Largest k such that all numbers of a grid are multiples of 2ᵏ, or `None`."""
    if grid is None or grid[1] is not None:
        return None
    return exponent(grid[0])


def exponent(x: Fraction) -> int | None:
    """Largest k such that x is a whole multiple of 2ᵏ; 10,000 for 0; `None` if x is not dyadic."""
    if not x:
        return 10_000
    odd = x.denominator
    if odd & (odd - 1):
        return None
    p = abs(x.numerator)
    return (p & -p).bit_length() - odd.bit_length()


@dataclass(frozen=True, eq=False)
class Pattern:
    """Attention pattern of a head: the rows that it attends to in the ideal.

    Attributes:
        where: the head's place in the model.
        mask: the head's mask.
        way: `mean` (all admissible rows, with equal weights), `one` (a single row), or `mixture`
            (any weights that are at least 0 and add up to 1).
        sees: (kinds, kinds): True if a query of the first kind may attend to a key of the second.
        empty: (kinds,): True if a query of the kind may have no admissible key.

    """

    where: str
    mask: Mask
    way: str
    sees: NDArray[np.bool_]
    empty: NDArray[np.bool_]

    def ends(self, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Ends of Σ α_j x_j for queries of each kind, given the ends of x_j for keys of each kind.

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
    """What holds of an unknown on every input.

    Attributes:
        lo, hi: (kinds,): lower and upper end.
        grid: the grid of its values.
        size: (1 + masks, kinds): bounds of its magnitude, and of D times its magnitude.
        share: of a share: the pattern of the head, and the kind of row.
        unit: of a hidden unit min(ReLU(x), h): the form x, and h (`None` where there is no limit).

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
        unknowns: the unknowns, by number; the first `kinds` of them are the indicators.

    """

    def __init__(self, kinds: int, bos: int | None, longest: int, masks: Sequence[str]) -> None:
        self.kinds, self.bos, self.longest, self.masks = kinds, bos, longest, tuple(masks)
        self.most_rows = longest + (bos is not None)
        """Largest number of rows of an input, and so the largest D."""
        self.scales = np.array([1.0, *[float(self.most_rows)] * len(self.masks)])
        """Largest factor of each size: 1 for the magnitude, the largest D for each mask."""
        self.unknowns: list[Unknown] = []
        self._named: dict[Any, int] = {}
        for kind in range(kinds):
            at = (np.arange(kinds) == kind).astype(float)
            self.add(("kind", kind), at, at, (Fraction(1), None))

    def add(
        self, name: Any, lo: Any, hi: Any, grid: Grid, size: Floats | None = None, **of: Any
    ) -> int:
        """Return the number of the unknown of this name; make the unknown at its first use."""
        if name not in self._named:
            lo, hi = (np.broadcast_to(np.asarray(x, float), (self.kinds,)) for x in (lo, hi))
            if size is None:
                size = self.scales[:, None] * np.maximum(np.abs(lo), np.abs(hi))
            self._named[name] = len(self.unknowns)
            self.unknowns.append(Unknown(lo, hi, grid, size, **of))
        return self._named[name]

    def known(self, name: Any) -> int | None:
        """Number of the unknown of this name, or `None`."""
        return self._named.get(name)

    def constant(self, value: Fraction) -> Form:
        """Form of a constant."""
        return dict.fromkeys(range(self.kinds), value) if value else {}

    # Forms

    def combined(self, parts: Iterable[tuple[Fraction, Form]]) -> Form:
        """Form of Σ factor · form."""
        total: dict[int, Fraction] = {}
        for factor, form in parts:
            for number, coefficient in form.items():
                total[number] = total.get(number, Fraction(0)) + factor * coefficient
        if len(total) > MOST_TERMS:
            raise Unfollowed("weights", f"a sum has more than {MOST_TERMS} terms")
        return {number: within_reach(x) for number, x in total.items() if x}

    def constants(self, form: Form) -> Floats:
        """(kinds,): the constant term of a form at each kind of row, rounded to float64."""
        return np.array([float(form.get(kind, 0)) for kind in range(self.kinds)])

    def varying(self, form: Form) -> Form:
        """The form without its constant terms."""
        return {number: x for number, x in form.items() if number >= self.kinds}

    def is_constant(self, form: Form) -> bool:
        """True if the form is one number at every row of every input."""
        own = {form.get(kind, Fraction(0)) for kind in range(self.kinds)}
        return len(own) == 1 and all(number < self.kinds for number in form)

    def grid(self, form: Form) -> Grid:
        """Grid of a form."""
        grids = (self.unknowns[number].grid for number in form)
        return sum_grid(
            None if grid is None else (abs(x) * grid[0], grid[1])
            for grid, x in zip(grids, form.values(), strict=True)
        )

    def bounds(self, form: Form) -> tuple[Floats, Floats]:
        """Lower and upper end of a form at each kind of row."""
        lo = hi = self.constants(form)
        terms = np.abs(lo)
        for low, high, size in self._parts(form):
            lo, hi, terms = lo + low, hi + high, terms + size
        lo, hi = widened(lo, hi, terms) if len(form) else (lo, hi)
        return self.snapped(self.grid(form), lo, hi)

    def size(self, form: Form) -> Floats:
        """(1 + masks, kinds): bounds of the magnitude of a form, and of D times the magnitude."""
        lo, hi = self.bounds(form)
        magnitude = np.maximum(np.abs(lo), np.abs(hi))
        total = self.scales[:, None] * np.abs(self.constants(form))
        for number, x in form.items():
            unknown = self.unknowns[number]
            if number >= self.kinds and unknown.share is None:
                total = total + abs(float(x)) * unknown.size
        for head, shares in self._shares(form).items():
            total = total + self._size_of_shares(head, shares)
        return np.asarray(np.minimum(up(total), up(self.scales[:, None] * magnitude)))

    def _parts(self, form: Form) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Ends and magnitude of each term, where all shares of one head are a single term."""
        for number, x in form.items():
            unknown = self.unknowns[number]
            if number >= self.kinds and unknown.share is None:
                low, high = float(x) * unknown.lo, float(x) * unknown.hi
                yield np.minimum(low, high), np.maximum(low, high), abs(float(x)) * unknown.size[0]
        for head, shares in self._shares(form).items():
            yield *head.ends(shares, shares), np.full(self.kinds, np.abs(shares).max())

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
        size: Floats = self.scales[:, None] * most
        if head.way == "mean" and head.mask in self.masks:
            size[1 + self.masks.index(head.mask)] = self.summed(head.sees, np.abs(shares))
        return size

    def summed(self, sees: NDArray[np.bool_], x: Floats) -> Floats:
        """Bound of Σ x_j ≥ 0 over the admissible rows: at most N symbols, and BOS once."""
        there = np.where(sees, x, 0.0)
        if self.bos is None:
            return np.asarray(self.longest * there.max(axis=-1))
        return np.asarray(self.longest * there[..., : self.bos].max(axis=-1) + there[..., self.bos])

    def snapped(self, grid: Grid, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Move ends inwards to the nearest numbers of a grid.

        A value v = m g with m whole and lo ≤ v ≤ hi has ⌈lo/g⌉ ≤ m ≤ ⌊hi/g⌋. The computed quotient
        is off by at most 2⁻⁵³ |lo/g|; it is lowered by 10⁻⁶ + 10⁻¹² |lo/g| > 2⁻⁵³ |lo/g| before it
        is rounded up, and the other raised by as much. More would be sound, too.
        m g is exact in float64 if m times the odd part of g is below 2⁵³; other ends stay.
        For v = m g/D, D ≤ `most_rows`, or a g that is no float64, only the sign is used: v is 0 or
        |v| ≥ g/`most_rows`, of which 10⁻⁶ is taken off for rounding. So an end between is 0.
        """
        if grid is None:
            return lo, hi
        if not grid[0]:
            return np.zeros_like(lo), np.zeros_like(hi)
        g = float(grid[0])
        if g < FLOOR:
            return lo, hi
        if grid[1] is None and Fraction(g) == grid[0]:
            odd = grid[0].numerator // (grid[0].numerator & -grid[0].numerator)
            low, high = lo / g, hi / g
            fuzz = [1e-6 + 1e-12 * np.abs(x) for x in (low, high)]
            low, high = np.ceil(low - fuzz[0]), np.floor(high + fuzz[1])
            held = [np.abs(m) * odd < 2.0**53 for m in (low, high)]
            return np.where(held[0], low * g, lo), np.where(held[1], high * g, hi)
        least = g * (1 - 1e-6) / (self.most_rows if grid[1] is not None else 1)
        return np.where(lo > -least, np.maximum(lo, 0), lo), np.where(
            hi < least, np.minimum(hi, 0), hi
        )

    def neighbours(self, form: Form, threshold: Fraction, kind: int) -> tuple[float, float]:
        """Return the neighbours of a threshold t among the values of a form, at a kind of row.

        Every value is at most the first or at least the second; each is infinite where no value
        lies on its side. With grid g (D = 1) the neighbours of t are ⌊t/g⌋ g and ⌈t/g⌉ g. With
        grid g/D a value other than a multiple m g of g is at least g/D ≥ least = g/`most_rows`
        away from m g: no value lies strictly between m g and m g ± least. `_above` rounds both
        neighbours towards t, which is the safe side.
        """
        lo, hi = (float(x[kind]) for x in self.bounds(form))
        t, grid = float(threshold), self.grid(form)
        below, above = -math.inf, math.inf
        if lo <= t <= hi:
            below = above = t
            if grid is not None and grid[0]:
                g = grid[0]
                least = g / (self.most_rows if grid[1] is not None else 1)
                m = threshold / g
                first, last = math.floor(m) * g, math.ceil(m) * g
                if m.denominator == 1:
                    below = above = t
                elif threshold <= first + least:
                    below, above = _above(first), -_above(-first - least)
                elif threshold >= last - least:
                    below, above = _above(last - least), -_above(-last)
        elif t < lo:
            above = lo
        else:
            below = hi
        return below, above

    def unit(self, form: Form) -> tuple[Fraction | None, str | None]:
        """Return (b, None) for a form that is b > 0 at every row, (b, mask) for b/D.

        The share of BOS in a mean is 1/D, as there is one BOS among the D rows.
        """
        if form and self.is_constant(form):
            scale = form[0]
            return (scale, None) if scale > 0 else (None, None)
        if len(form) == 1:
            ((number, scale),) = form.items()
            share = self.unknowns[number].share
            if share is not None and scale > 0 and share[1] == self.bos:
                head = share[0]
                if head.way == "mean" and head.sees[:, share[1]].all():
                    return scale, head.mask
        return None, None

    # Outputs of heads

    def shares(self, head: Pattern) -> list[int]:
        """Numbers of the shares of a head, one for each kind of row."""
        found = []
        for kind in range(self.kinds):
            others = np.delete(head.sees, kind, axis=1).any(axis=1)
            hi = head.sees[:, kind].astype(float)
            lo = np.where(others | head.empty, 0.0, hi)
            grid: Grid = {"mean": (Fraction(1), head.mask), "one": (Fraction(1), None)}.get(
                head.way
            )
            weight = np.zeros(self.kinds)
            weight[kind] = 1.0
            size = self._size_of_shares(head, weight)
            found.append(self.add((head, "kind", kind), lo, hi, grid, size, share=(head, kind)))
        return found

    def attended(self, head: Pattern, form: Form) -> Form:
        """Form of Σ α_j x_j, where x_j is a form at the rows that a head attends to."""
        shares = self.shares(head)
        parts: list[tuple[Fraction, Form]] = []
        for number, x in form.items():
            if number < self.kinds:
                parts.append((x, {shares[number]: Fraction(1)}))
            else:
                parts.append((x, self._attended(head, number)))
        found = self.combined(parts)
        own = {found.get(share, Fraction(0)) for share in shares}
        if not head.empty.any() and len(own) == 1:  # shares add up to 1
            rest = {number: x for number, x in found.items() if number not in shares}
            found = self.combined([(own.pop(), self.constant(Fraction(1))), (Fraction(1), rest)])
        return found

    def _attended(self, head: Pattern, number: int) -> Form:
        """The same for an unknown that is not an indicator."""
        if head.way == "mean" and number == self.known("i") and head.mask in ("none", "future"):
            return self._mean_place(head.mask)
        unknown = self.unknowns[number]
        lo, hi = head.ends(unknown.lo, unknown.hi)
        size = self.scales[:, None] * np.maximum(np.abs(lo), np.abs(hi))
        if head.way == "mean" and head.mask in self.masks:
            size[1 + self.masks.index(head.mask)] = self.summed(head.sees, unknown.size[0])
        found = self.add((head, number), lo, hi, self._attended_grid(head, unknown.grid), up(size))
        return {found: Fraction(1)}

    def _attended_grid(self, head: Pattern, grid: Grid) -> Grid:
        """Grid of Σ α_j x_j, where x_j has the given grid.

        A mean of multiples of g is a multiple of g/D. A single row with grid g/D has the D of that
        row, not of the query; the two are the same for the mask `none` only.
        """
        if grid is None or head.way == "mixture":
            return None
        if head.way == "mean":
            return None if grid[1] is not None else (grid[0], head.mask)
        return grid if grid[1] in (None, "none") else None

    def _mean_place(self, mask: Mask) -> Form:
        """Mean of the positions: m/2 for 0 to m (with BOS), (m + 1)/2 for 1 to m; m is i or n."""
        half, number = Fraction(1, 2), self.known("i")
        if mask == "none":
            least = 0 if self.bos is not None else 1
            number = self.add("n", least, self.longest, (Fraction(1), None))
        assert number is not None
        return self.combined(
            [(half, {number: Fraction(1)})]
            + ([(half, self.constant(Fraction(1)))] if self.bos is None else [])
        )


def _above(x: Fraction) -> float:
    """Round x up to a float64."""
    return math.nextafter(float(x), math.inf) if Fraction(float(x)) < x else float(x)
