"""Error bounds of a format, operation by operation.

Every number has three bounds of |computed − ideal|, and each of them holds:

- E, for each kind of row (`Approximation.error[0]`);
- E_D/D, for each mask of a mean, where D is the number of its rows (`error[1:]` is E_D);
- a + ρ |ideal| (`absolute`, `relative`): a alone where the ideal is 0.

Let u and w be the unit roundoffs of the format and of its accumulator. A sum of k nonzero terms, in
any order and grouping, has k − 1 roundings, and each product rounds once more unless every weight
is a power of two. So the sum is off by γ Σ |term|, γ = (1 + w)^roundings − 1 (Higham 2002, 4.2).
Storing it in a narrower format costs u of the result. An operation that underflows is off by at
most the smallest number of its format. For W z + b, with W̃ and b̃ for W and b in the format,

    E = |W̃| E_z + |W̃ − W| |z| + |b̃ − b| + γ (|W̃| (|z| + E_z) + |b̃|) + storing + underflow.

The first three terms are inherited from z and the weights, the others are the rounding of this
evaluation. A sum does not round at all where it `fits`.

A format of p bits has no numbers between the multiples of 2ᵏ from 2^(p−1+k) on. Where the computed
result of W z + b is as large as that, it is such a multiple. If the ideal is one as well, and they
differ by less than 2ᵏ, they are equal (`_is_nearest`): adding a large constant to a whole number
with an error below 1/2 rounds the error away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.verify.proof.grids import ANY_POWER, exponent, least
from transformist.verify.proof.ideal import ONE, Form, Ideal
from transformist.verify.proof.sparse_rows import exactly, sparse_rows
from transformist.verify.proof.upwards import (
    NEARLY,
    Floats,
    Unfollowed,
    at_least_tiniest,
    compounded,
    repeated,
    require_terms,
    up,
    within_reach,
)

MOST_FILLED = 1 / 8
"""Largest share of nonzero weights at which the terms of a product are added one by one."""


class Halves(NamedTuple):
    """Computed summands of hidden coordinates: single units, or pairs taken as their difference.

    Attributes:
        pairs: (coordinates,): True for a difference.
        reach: (1 + masks, coordinates, kinds): bounds of the sum of both computed magnitudes.
        quanta: for each coordinate the exponent k of 2ᵏ, of which both computed units are
            multiples, or `None`.

    """

    pairs: NDArray[np.bool_]
    reach: Floats
    quanta: Sequence[int | None]


@dataclass(frozen=True, eq=False)
class Approximation:
    """A computed vector of a row: ideal numbers, one for each coordinate, with error bounds.

    Attributes:
        forms: the ideal numbers.
        lo, hi: (coordinates, kinds): ends of the ideal numbers.
        size: (1 + masks, coordinates, kinds): bounds of their magnitudes, and of D times these.
        error: (1 + masks, coordinates, kinds): E, and E_D for each mask.
        absolute, relative: (coordinates, kinds): a and ρ.
        halves: the hidden units, if the vector is a hidden layer; some are taken in pairs.

    """

    forms: Sequence[Form]
    lo: Floats
    hi: Floats
    size: Floats
    error: Floats
    absolute: Floats
    relative: Floats
    halves: Halves | None = None

    @property
    def reach(self) -> Floats:
        """Bounds of the magnitudes that a dot product adds up for each coordinate.

        It reads the two units of a pair one by one, not their difference.
        """
        return self.size + self.error if self.halves is None else self.halves.reach

    def quanta(self, ideal: Ideal) -> Sequence[int | None]:
        """For each coordinate, k such that it (for a pair, both units) is a multiple of 2ᵏ."""
        if self.halves is not None:
            return self.halves.quanta
        return [ideal.quantum(form) for form in self.forms]

    @cached_property
    def is_zero(self) -> NDArray[np.bool_]:
        """(coordinates,): True if the computed coordinate is exactly 0 at every row."""
        empty = np.array([not form for form in self.forms], dtype=bool)
        return np.asarray(empty & ~self.error[0].any(axis=1))


class Stored(NamedTuple):
    """W and b in the format: W̃, |W̃ − W|, b̃ and |b̃ − b|."""

    weights: Floats
    off: Floats
    shift: Floats
    shift_off: Floats


class Mixed(NamedTuple):
    """a and ρ of |error| ≤ a + ρ |ideal|."""

    absolute: Floats
    relative: Floats


@dataclass(frozen=True, eq=False)
class AffineMap:
    """W z + b, with the parts of its error.

    Attributes:
        values: W z + b.
        inherited: (1 + masks, coordinates, kinds): the part of E from errors of z, W and b.
        rounding: (1 + masks, coordinates, kinds): the part of E from this evaluation.
        accumulated: the part of `rounding` from the accumulator and from underflow, without what it
            costs to store the result.
        mixed: a and ρ in relation to W z without b: |error| ≤ a + ρ |W z|.
        stored: W and b in the format.

    """

    values: Approximation
    inherited: Floats
    rounding: Floats
    accumulated: Floats
    mixed: Mixed
    stored: Stored

    def error_at(self, row: int, kind: int, product: float) -> float:
        """Return an error bound that holds where |W z| without b is `product`, and beyond.

        For ρ < 1 the bound a + ρ |W z| grows more slowly than |W z|, so a margin that it leaves at
        one value is left at every value further away. For ρ ≥ 1 only the constant E does that.
        """
        absolute, relative = (x[row, kind] for x in self.mixed)
        error: float = self.values.error[0, row, kind]
        if relative >= 1:
            return error
        return min(error, float(up(absolute + relative * product)))


class RoundingErrors:
    """Error bounds of the operations of a format.

    Attributes:
        a: the format.
        ideal: the unknowns.
        u, w: the unit roundoffs of the format and of its accumulator.
        narrow: True if the format is narrower than its accumulator.
        tiny, tiny_partial: the smallest positive numbers of the format and of its accumulator.
        storing: relative error of storing a result of the accumulator.
        per_operation: relative error of one operation whose result is stored.

    """

    def __init__(self, a: Floating, ideal: Ideal) -> None:
        self.a, self.ideal = a, ideal
        self.u, self.w = float(a.unit_roundoff), float(a.accumulator_roundoff)
        self.narrow = self.u > self.w
        self.tiny, self.tiny_partial = a.smallest, a.smallest_partial
        self.partial_precision = Fraction(1, a.accumulator_roundoff).numerator.bit_length() - 1
        self.storing = self.u if self.narrow else 0.0
        self.per_operation = float(compounded(self.w, self.storing))

    def growth(self, roundings: Any) -> Floats:
        """Return γ = (1 + w)^k − 1."""
        return np.asarray(repeated(self.w, roundings))

    def rounded(self, weights: Any) -> tuple[Floats, Floats]:
        """Return W̃, the weights rounded to the format, and |W̃ − W|."""
        given = np.asarray(weights)
        flat, stored, off = given.ravel(), np.zeros(given.size), np.zeros(given.size)
        used = np.flatnonzero(flat)  # 0 is a number of every format
        listed = flat[used].tolist()
        place = {y: k for k, y in enumerate(dict.fromkeys(listed))}
        distinct = np.array(list(place), dtype=flat.dtype)  # a matrix has few distinct weights
        rounded = np.asarray(self.a.numbers(self.a.array(distinct)), dtype=float)
        errors, values = np.zeros(len(distinct)), list(place)
        # A float64 that the format holds has no error; its exponent shows that it is within reach.
        is_plain = np.zeros(len(distinct), dtype=bool)
        if distinct.dtype == np.float64:
            is_plain = (rounded == distinct) & (np.abs(np.frexp(distinct)[1]) < 400)
        for k in np.flatnonzero(~is_plain).tolist():
            y = within_reach(exactly(values[k]))
            errors[k] = float(abs(Fraction(float(rounded[k])) - y))
        at = np.array([place[y] for y in listed], dtype=np.intp)
        stored[used], off[used] = rounded[at], errors[at]
        off = at_least_tiniest(up(off))
        return stored.reshape(given.shape), off.reshape(given.shape)

    # Sums of products

    def affine(self, W: Any, b: Any, z: Approximation, where: str) -> AffineMap:
        """Return W z + b with its error bounds: the equation of E in the module's docstring."""
        require_terms(np.shape(W)[1], where, "weights in a row")
        scales = self.ideal.scales[:, None, None]
        stored = weights, off, shift, shift_off = Stored(*self.rounded(W), *self.rounded(b))
        forms = self._forms(W, b, z)
        lo, hi, size = self._measured(forms, [z] if z.halves is None else [])
        # Σ |term|, and W̃ z̃ + b̃ − (W z + b) = W̃ (z̃ − z) + (W̃ − W) z + (b̃ − b).
        magnitude = np.abs(weights)
        summed = up(_times(magnitude, z.reach) + np.abs(shift)[:, None] * scales)
        inherited = up(
            _times(magnitude, z.error) + _times(off, z.size) + shift_off[:, None] * scales
        )
        growth, underflow, keeps = self._operations(stored, z)
        rounding = growth * summed
        accumulated = up(rounding + underflow * scales)
        # A result of at most |W z + b| + inherited + γ Σ |term| is stored.
        rounding = rounding + self.storing * (size + inherited + rounding) + underflow * scales
        exact = self._is_exact(W, b, z, stored, summed[0], size[0]) & (inherited[0] == 0) | keeps
        rounding = np.where(exact, 0.0, up(rounding))
        error = self.least(inherited + rounding)
        error = np.where(self._is_nearest(forms, lo, hi, error[0]), 0.0, error)
        self.require(up(summed[0] * (1 + growth)), self.a.largest_partial, where)
        self.require(size[0] + error[0], self.a.largest, where)
        mixed = self._mixed(stored, z, growth, underflow, exact)
        mixed = _where(mixed.relative >= 0, mixed, error[0])
        unshifted = ((shift == 0) & (shift_off == 0))[:, None]
        values = Approximation(forms, lo, hi, size, error, *_where(unshifted, mixed, error[0]))
        return AffineMap(values, inherited, rounding, accumulated, mixed, stored)

    def _forms(self, W: Any, b: Any, z: Approximation) -> list[Form]:
        forms = []
        for row, constant in zip(sparse_rows(W), np.asarray(b).tolist(), strict=True):
            parts = [(exactly(x), z.forms[c]) for c, x in row]
            if constant:
                parts.append((ONE, self.ideal.constant(exactly(constant))))
            forms.append(self.ideal.combined(parts))
        return forms

    def _measured(
        self, forms: Sequence[Form], known: Sequence[Approximation]
    ) -> tuple[Floats, Floats, Floats]:
        """Return `Ideal.measured`; a form that is one of a known vector is not measured again."""
        place = {id(form): (part, k) for part in known for k, form in enumerate(part.forms)}
        shape = len(forms), self.ideal.kinds
        lo, hi, size = np.empty(shape), np.empty(shape), np.empty((len(self.ideal.scales), *shape))
        taken: dict[int, tuple[Approximation, list[int], list[int]]] = {}
        new = []
        for row, form in enumerate(forms):
            if id(form) in place:
                part, k = place[id(form)]
                _, rows, sources = taken.setdefault(id(part), (part, [], []))
                rows.append(row)
                sources.append(k)
            else:
                new.append(row)
        for part, rows, sources in taken.values():
            lo[rows], hi[rows] = part.lo[sources], part.hi[sources]
            size[:, rows] = part.size[:, sources]
        if new:
            lo[new], hi[new], size[:, new] = self.ideal.measured([forms[row] for row in new])
        return lo, hi, size

    def _operations(
        self, stored: Stored, z: Approximation
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return γ and the underflow of each row, and True for rows that keep what they read."""
        weights = stored.weights
        count, plain = self._summands(stored, z)
        growth = self.growth(np.maximum(count - 1, 0) + ~plain)
        # Each product and sum may underflow in the accumulator, the result where it is stored.
        underflow = 2 * count * self.tiny_partial + (count > 0) * self.narrow * self.tiny
        # One product with 2ᵏ ≥ 1, and nothing added, neither rounds nor underflows.
        least_weight = np.where(weights != 0, np.abs(weights), 1.0).min(axis=1, initial=1.0)
        keeps = (count < 2) & plain & (least_weight >= 1)
        return growth[:, None], underflow[:, None], np.asarray(keeps)[:, None]

    @staticmethod
    def _summands(stored: Stored, z: Approximation) -> tuple[NDArray[np.int_], NDArray[np.bool_]]:
        """Return the number of terms of each row, and True where no product rounds."""
        weights, shift = stored.weights, stored.shift
        used = np.nonzero(weights)
        # A power of two has the mantissa 1/2: its products do not round.
        plain = np.full(len(weights), True)
        plain[used[0][np.frexp(np.abs(weights[used]))[0] % 0.5 != 0]] = False
        count = np.bincount(used[0], minlength=len(weights)) + (shift != 0)
        if z.halves is not None:  # the two units of a pair are two summands
            count = count + (weights[:, z.halves.pairs] != 0).sum(axis=1)
        return count, plain

    def _is_exact(
        self, W: Any, b: Any, z: Approximation, stored: Stored, summed: Floats, size: Floats
    ) -> NDArray[np.bool_]:
        """(rows, kinds): True if z is exact, and all terms are multiples of one 2ᵏ that fits.

        If there are two terms, and their weights are powers of two, the result is the only partial
        sum: a multiple of 2ᵏ of at most `size`, however large the terms are.
        """
        uses = (stored.weights != 0) | (stored.off != 0)
        powers = _powers(W, b, z.quanta(self.ideal))
        is_inexact = _times(uses, (z.error[0] > 0).astype(float)) > 0
        count, plain = self._summands(stored, z)
        total = np.where((plain & (count <= 2))[:, None], size, summed)
        return np.asarray(self.fits(powers, total, in_partials=True) & ~is_inexact)

    def _is_nearest(
        self, forms: Sequence[Form], lo: Floats, hi: Floats, error: Floats
    ) -> NDArray[np.bool_]:
        """(rows, kinds): True if the computed result must be the ideal one, as both are multiples.

        Let E bound the error, and m ≥ 2^(p−1+k) be a lower bound of the computed magnitude. The
        result is stored in the format, and a number of p bits in [2^e, 2^(e+1)) is a multiple of
        2^(e−p+1), where e − p + 1 ≥ k: the computed result is a multiple of 2ᵏ. If the ideal is a
        multiple of 2ᵏ, too, and E < 2ᵏ, they differ by a multiple of 2ᵏ below 2ᵏ, which is 0. Any k
        will do; the largest one that m and the grid of the ideal allow is taken.
        """
        found = np.zeros(np.shape(error), dtype=bool)
        # A difference of ends and errors rounds by 2⁻⁵³ of a larger term; NEARLY covers it where
        # the error is at most half of the end, as it is where E < 2ᵏ ≤ m 2^(1−p), p ≥ 2.
        m = np.maximum(lo, -hi) * NEARLY - error
        for row in np.flatnonzero(
            (np.isfinite(error) & (error > 0) & (m > error)).any(axis=1)
        ).tolist():
            of_grid = self.ideal.quantum(forms[row])
            if of_grid is None:
                continue
            # frexp: m is in [2^(e−1), 2^e).
            exponents = np.frexp(np.maximum(m[row], 0.0))[1] - 1
            k = np.minimum(exponents - (self.a.precision - 1), of_grid)
            found[row] = (m[row] > error[row]) & (error[row] < 2.0 ** np.clip(k, -1000, 1000))
            found[row] &= k >= -1000
        return found

    def fits(self, k: Any, total: Any, in_partials: bool = False) -> NDArray[np.bool_]:
        """Return True where a sum of multiples of 2ᵏ with Σ |term| ≤ total does not round.

        Every partial sum is m 2ᵏ with |m| ≤ total/2ᵏ ≤ 2^precision, which the format holds if it
        holds 2ᵏ. With `in_partials` the accumulator must hold it as well. k is clipped to what
        float64 holds, on the side that says False: 2⁻²⁰⁰⁰ is 0 there, which no format holds.
        """
        k = np.clip(np.asarray(k, dtype=float), -2000, 900)
        held = (total <= 2.0 ** np.minimum(self.a.precision + k, 1000)) & (2.0**k >= self.tiny)
        if in_partials:
            held &= total <= 2.0 ** np.minimum(self.partial_precision + k, 1000)
            held &= 2.0**k >= self.tiny_partial
        return np.asarray(held)

    def _mixed(
        self, stored: Stored, z: Approximation, growth: Floats, underflow: Floats, exact: Any
    ) -> Mixed:
        """Return a and ρ of W z; ρ = −1 where there are none.

        With |z̃ − z| ≤ a + ρ |z|, r = |W̃ − W|/|W| and |δ| ≤ γ (which here includes storing), a
        term is off by |W̃ z̃ (1 + δ) − W z| ≤ γ |W̃| |z̃| + |W̃| |z̃ − z| + |W̃ − W| |z|, which is at
        most |W̃| a (1 + γ) + |W z| ((1 + r) (1 + ρ) (1 + γ) − 1). Where all terms of W z have one
        sign, Σ |W z| = |Σ W z|, so the second parts add up to a relative error of the sum.
        """
        weights, off, shift, shift_off = stored
        plus, minus = weights > 0, weights < 0
        below, above = (z.lo < 0).astype(float), (z.hi > 0).astype(float)
        has_one_sign = (_times(plus, below) + _times(minus, above) == 0) | (
            _times(plus, above) + _times(minus, below) == 0
        )
        has_one_sign |= (weights != 0).sum(axis=1, keepdims=True) < 2  # one term has one sign
        # |W| is at least |W̃| − |W̃ − W|. Where that is not above 0, r has no bound.
        floor = np.abs(weights) - off
        r = np.where(off > 0, off / np.where(floor > 0, floor, 1), 0)
        r = up(np.where((off > 0) & (floor <= 0), np.inf, r).max(axis=1, initial=0.0))[:, None]
        once = compounded(growth, self.storing)
        rho = compounded(_largest(weights != 0, z.relative), r, once)
        a = (_times(np.abs(weights), z.absolute) + shift_off[:, None]) * (1 + once)
        a = up(a + once * np.abs(shift)[:, None] + underflow)
        # Without rounding γ = 0; a row that keeps its one coordinate or b must also have W̃ = W.
        a = np.where(exact, up(_times(np.abs(weights), z.absolute) + shift_off[:, None]), a)
        rho = np.where(exact, _largest(weights != 0, z.relative), rho)
        is_rounded = np.any(off > 0, axis=1, keepdims=True)
        holds = has_one_sign & np.isfinite(r) & np.isfinite(rho) & ~(exact & is_rounded)
        if z.halves is not None:  # the two units of a pair round, not their difference
            holds &= ~(weights[:, z.halves.pairs] != 0).any(axis=1, keepdims=True)
        return Mixed(a, np.where(holds, rho, -1.0))

    # Sums of stored numbers

    def added(self, parts: Sequence[Approximation], where: str) -> Approximation:
        """Return the sum of vectors, where each addition is stored, in any order and grouping.

        A sum of two rounds once, relative to the result. A sum of k > 2 has k − 1 roundings, each
        relative to a partial sum, which is at most the sum of the magnitudes.
        """
        require_terms(len(parts), where, "vectors in a sum")
        scales = self.ideal.scales[:, None, None]
        forms = [
            self.ideal.combined([(ONE, form) for form in each])
            for each in zip(*(part.forms for part in parts), strict=True)
        ]
        lo, hi, size = self._measured(forms, parts)
        additions = np.maximum(sum(~part.is_zero for part in parts) - 1, 0)[:, None]
        inherited = sum(part.error for part in parts)
        reach = up(sum(part.reach for part in parts))
        growth = repeated(self.per_operation, additions)
        underflow = (self.tiny + self.tiny_partial) * additions
        once = self.per_operation * up(size + inherited) * (additions == 1)
        rounding = np.where(additions > 1, growth * reach, once) + underflow * scales
        rounding = np.where(self._sums_exactly(parts, inherited, reach), 0.0, up(rounding))
        error = self.least(inherited + rounding)
        self.require(
            np.where(additions > 0, up(reach[0] * (1 + growth)), 0.0), self.a.largest, where
        )
        # Terms of one sign: Σ (a_i + ρ_i |x_i|) ≤ Σ a_i + max ρ_i |Σ x_i|, and so with rounding.
        has_one_sign = np.logical_and.reduce([part.lo >= 0 for part in parts])
        has_one_sign |= np.logical_and.reduce([part.hi <= 0 for part in parts])
        has_one_sign |= additions == 0  # all other parts are 0
        a = up(sum(part.absolute for part in parts) * (1 + growth) + underflow)
        rho = compounded(np.maximum.reduce([part.relative for part in parts]), growth)
        mixed = _where(has_one_sign, Mixed(a, rho), error[0])
        return Approximation(forms, lo, hi, size, error, *mixed)

    def _sums_exactly(
        self, parts: Sequence[Approximation], inherited: Any, reach: Floats
    ) -> NDArray[np.bool_]:
        """(coordinates, kinds): True if all parts are exact multiples of one 2ᵏ that fits."""
        quanta = [part.quanta(self.ideal) for part in parts]
        powers = [least(each) for each in zip(*quanta, strict=True)]
        k = np.array([[-np.inf if power is None else power] for power in powers])
        return np.asarray(self.fits(k, reach[0]) & (inherited[0] == 0))

    # Vectors with given errors

    def values(self, forms: Sequence[Form], error: Floats) -> Approximation:
        """Return ideal numbers with these errors E."""
        scaled = up(self.ideal.scales[:, None, None] * error)
        return Approximation(
            forms, *self.ideal.measured(forms), scaled, error, np.zeros_like(error)
        )

    def least(self, error: Floats) -> Floats:
        """Return E, and for each mask the lesser of E_D and E times the largest D."""
        error = up(error)
        return np.asarray(np.minimum(error, up(self.ideal.scales[:, None, None] * error[0])))

    def require(self, size: Any, largest: float, where: str) -> None:
        """Require that numbers do not overflow; NaN is refused too.

        Raises:
            Unfollowed: if one may be larger than `largest`.

        """
        if not np.all(size <= largest):
            raise Unfollowed(
                where, f"numbers may be larger than {largest:.3g}, the largest there is"
            )


def _powers(W: Any, b: Any, quanta: Sequence[int | None]) -> Floats:
    """(rows, 1): for each row k, as each W z and b is a multiple of 2ᵏ; −∞ where there is none.

    `quanta` has such a k for each z. A product of multiples of 2ʲ and 2ᵏ is one of 2^(j+k).
    """
    W = np.asarray(W)
    rows, columns = np.nonzero(W)
    held = np.array([-np.inf if k is None else k for k in quanta], dtype=float)
    terms = _exponents(W[rows, columns]) + held[columns]
    found = _exponents(b)
    if len(rows):
        first = np.flatnonzero(np.diff(rows, prepend=-1))  # the place of each row's first term
        used = rows[first]
        found[used] = np.minimum(found[used], np.minimum.reduceat(terms, first))
    return found[:, None]


def _exponents(weights: Any) -> Floats:
    """Return the `exponent` of each weight, −∞ for `None`."""
    given = np.asarray(weights)
    if given.dtype == np.float64:
        # x = m 2^(e − 53), m whole. The lowest bit of m is 2ʲ: x is a multiple of 2^(e − 53 + j).
        fractions, e = np.frexp(given)
        m = (fractions * 2.0**53).astype(np.int64)
        j = np.frexp((m & -m).astype(float))[1] - 1
        return np.where(given == 0, float(ANY_POWER), (e - 53 + j).astype(float))
    listed = given.tolist()
    known = {x: exponent(exactly(x)) for x in set(listed)}
    return np.array([-np.inf if known[x] is None else known[x] for x in listed], dtype=float)


def _times(matrix: Any, z: Floats) -> Floats:
    """Return Σ_c matrix[r, c] z[…, c, kind]; of a sparse matrix only the terms that are not 0."""
    given = np.asarray(matrix, dtype=float)
    rows, columns = np.nonzero(given)
    if MOST_FILLED * given.size < len(rows):
        return np.asarray(np.matmul(given, z))
    found = np.zeros((*z.shape[:-2], len(given), z.shape[-1]))
    if not len(rows):
        return found
    first = np.flatnonzero(np.diff(rows, prepend=-1))  # the place of each row's first term
    terms = given[rows, columns][:, None] * z[..., columns, :]
    found[..., rows[first], :] = np.add.reduceat(terms, first, axis=-2)
    return found


def _largest(uses: Any, z: Floats) -> Floats:
    """(rows, kinds): the largest z[c, kind] ≥ 0 among the coordinates c that a row uses."""
    rows, columns = np.nonzero(uses)
    found = np.zeros((len(uses), z.shape[-1]))
    if len(rows):
        first = np.flatnonzero(np.diff(rows, prepend=-1))  # the place of each row's first term
        found[rows[first]] = np.maximum.reduceat(z[columns], first, axis=0)
    return np.maximum(found, 0.0)


def _where(holds: NDArray[np.bool_], mixed: Mixed, error: Floats) -> Mixed:
    """Return a and ρ where they hold, E and 0 elsewhere, and 0 and 0 where E is 0."""
    a = np.where(error > 0, np.where(holds, mixed.absolute, error), 0.0)
    return Mixed(a, np.where((error > 0) & holds, mixed.relative, 0.0))
