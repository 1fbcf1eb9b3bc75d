"""Error bounds of a format, operation by operation.

Every number has three bounds of |computed − ideal|, and each of them holds:

- E, for each kind of row (`Values.error[0]`);
- E_D/D, for each mask of a mean, where D is the number of its rows (`Values.error[1:]` is E_D);
- a + ρ |ideal| (`Values.absolute`, `Values.relative`): a alone where the ideal is 0.

Let u and w be the unit roundoffs of the format and of its accumulator. A sum of k nonzero terms, in
any order and grouping, has k − 1 roundings, and each product rounds once more unless every weight
is a power of two. So the sum is off by γ Σ |term|, γ = (1 + w)^roundings − 1 (Higham 2002, 4.2).
Storing it in a narrower format costs u of the result. An operation that underflows is off by at
most the smallest number of its format. For W z + b, with W̃ and b̃ for W and b in the format,

    E = |W̃| E_z + |W̃ − W| |z| + |b̃ − b| + γ (|W̃| (|z| + E_z) + |b̃|) + storing + underflow.

A sum is exact where all terms are multiples of one power of two, 2ᵏ, the format holds 2ᵏ, and the
magnitudes of the terms add up to at most 2^(p + k), p being the precision: then every partial sum
is a multiple of 2ᵏ with at most p bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.verify.proof.ideal import (
    MOST_TERMS,
    Floats,
    Form,
    Ideal,
    Unfollowed,
    compounded,
    exponent,
    quantum,
    up,
    within_reach,
)


@dataclass(frozen=True, eq=False)
class Values:
    """A vector of a row: ideal numbers, one for each coordinate, with error bounds.

    Attributes:
        forms: the ideal numbers.
        lo, hi: (coordinates, kinds): ends of the ideal numbers.
        size: (1 + masks, coordinates, kinds): bounds of their magnitudes, and of D times these.
        error: (1 + masks, coordinates, kinds): E, and E_D for each mask.
        absolute, relative: (coordinates, kinds): a and ρ.
        pairs: for hidden units, of which some coordinates stand for the difference of two: True for
            these coordinates; a bound of the sum of both computed magnitudes, in the shape of
            `size`; and the exponent k of 2ᵏ, of which both computed units are multiples, or `None`.

    """

    forms: Sequence[Form]
    lo: Floats
    hi: Floats
    size: Floats
    error: Floats
    absolute: Floats
    relative: Floats
    pairs: tuple[NDArray[np.bool_], Floats, Sequence[int | None]] | None = None

    @property
    def reach(self) -> Floats:
        """Bound of the magnitude of what a dot product adds up for each coordinate.

        For a pair of hidden units it is the sum of the two magnitudes, which a sum of products
        reads one by one, not that of their difference.
        """
        return self.size + self.error if self.pairs is None else self.pairs[1]

    def is_zero(self) -> NDArray[np.bool_]:
        """(coordinates,): True if the computed coordinate is exactly 0 at every row."""
        empty = np.array([not form for form in self.forms], dtype=bool)
        return np.asarray(empty & ~self.error[0].any(axis=1))


@dataclass(frozen=True, eq=False)
class Affine:
    """W z + b, with the parts of its error.

    Attributes:
        values: W z + b.
        inherited: (1 + masks, coordinates, kinds): the part of E from errors of z, W and b.
        rounding: (1 + masks, coordinates, kinds): the part of E from this evaluation.
        absolute, relative: a and ρ in relation to W z without b: |error| ≤ a + ρ |W z|.
        weights: W̃.
        shift: b̃.

    """

    values: Values
    inherited: Floats
    rounding: Floats
    absolute: Floats
    relative: Floats
    weights: Floats
    shift: Floats


class Rounding:
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
        """γ = (1 + w)^k − 1."""
        k = np.asarray(roundings, dtype=float)
        return np.asarray(up(np.expm1(k * math.log1p(self.w))))

    def rounded(self, weights: Any) -> tuple[Floats, Floats]:
        """Return W̃, the weights rounded to the format, and |W̃ − W|."""
        given = np.asarray(weights)
        rounded = np.asarray(self.a.numbers(self.a.array(given)), dtype=float)
        exact = [within_reach(Fraction(x)) for x in given.ravel().tolist()]
        off = [
            float(abs(Fraction(x) - y))
            for x, y in zip(rounded.ravel().tolist(), exact, strict=True)
        ]
        return rounded, np.asarray(up(np.array(off).reshape(given.shape)))

    # Sums of products

    def affine(self, W: Any, b: Any, z: Values, where: str) -> Affine:
        """Return W z + b with its error bounds."""
        if np.shape(W)[1] > MOST_TERMS:
            raise Unfollowed(where, f"a row has more than {MOST_TERMS} weights")
        scales = self.ideal.scales[:, None, None]
        weights, off = self.rounded(W)
        shift, shift_off = self.rounded(b)
        forms = self._forms(W, b, z)
        lo, hi, size = self.measured(forms)
        magnitude, uses = np.abs(weights), (weights != 0) | (off != 0)
        summed = up(_times(magnitude, z.reach) + np.abs(shift)[:, None] * scales)
        inherited = up(
            _times(magnitude, z.error) + _times(off, z.size) + shift_off[:, None] * scales
        )
        # A power of two has the mantissa 1/2 (0 has 0): its products do not round.
        plain = np.asarray(np.all(np.frexp(magnitude)[0] % 0.5 == 0, axis=1))
        count = (weights != 0).sum(axis=1) + (shift != 0)
        if z.pairs is not None:
            count = count + (weights[:, z.pairs[0]] != 0).sum(axis=1)
        growth = self.growth(np.maximum(count - 1, 0) + ~plain)[:, None]
        underflow = 2 * count * self.tiny_partial + (count > 0) * self.narrow * self.tiny
        underflow = underflow[:, None]
        rounding = growth * summed
        rounding = rounding + self.storing * (size + inherited + rounding) + underflow * scales
        # One product with 2ᵏ ≥ 1, and nothing added, neither rounds nor underflows.
        grows = np.where(weights != 0, magnitude, 1.0).min(axis=1, initial=1.0) >= 1
        free: Any = (count < 2) & plain & grows
        exact = self._exact(W, b, z, uses, summed[0]) & ~(inherited[0] > 0) | free[:, None]
        rounding = np.where(exact, 0.0, up(rounding))
        self.require(summed[0] * (1 + growth), self.a.largest_partial, where)
        error = self._least(inherited + rounding)
        self.require(size[0] + error[0], self.a.largest, where)
        mixed = self._mixed(weights, off, np.abs(shift), shift_off, z, growth, underflow)
        coherent, apart, share = mixed
        apart = np.where(exact, up(_times(magnitude, z.absolute) + shift_off[:, None]), apart)
        share = np.where(exact, _largest(uses, z.relative), share)
        coherent = coherent & ~(exact & np.any(off > 0, axis=1, keepdims=True))
        coherent = coherent & (z.pairs is None)
        apart, share = np.where(coherent, apart, error[0]), np.where(coherent, share, 0.0)
        apart = np.where(error[0] > 0, apart, 0.0)
        share = np.where(error[0] > 0, share, 0.0)
        whole = ((shift == 0) & (shift_off == 0))[:, None]
        values = Values(
            forms,
            lo,
            hi,
            size,
            error,
            np.where(whole, apart, error[0]),
            np.where(whole, share, 0.0),
        )
        return Affine(values, inherited, rounding, apart, share, weights, shift)

    def _forms(self, W: Any, b: Any, z: Values) -> list[Form]:
        forms = []
        for row, constant in zip(W, b, strict=True):
            parts = [(Fraction(row[c]), z.forms[c]) for c in np.flatnonzero(row).tolist()]
            forms.append(
                self.ideal.combined(
                    [*parts, (Fraction(1), self.ideal.constant(Fraction(constant)))]
                )
            )
        return forms

    def measured(self, forms: Sequence[Form]) -> tuple[Floats, Floats, Floats]:
        """Return lower ends, upper ends and sizes of forms, as in `Values`."""
        ends = [self.ideal.bounds(form) for form in forms]
        sizes = [self.ideal.size(form) for form in forms]
        lo, hi = (np.array([each[k] for each in ends]) for k in (0, 1))
        return lo, hi, np.array(sizes).swapaxes(0, 1)

    def fits(self, k: Any, total: Any, precision: int, tiny: float) -> Any:
        """True where no sum of multiples of 2ᵏ with this total magnitude rounds.

        Every partial sum is m 2ᵏ with |m| ≤ total/2ᵏ ≤ 2^precision, which the format holds if it
        holds 2ᵏ. k is clipped to what float64 holds, on the side that says False.
        """
        k = np.clip(np.asarray(k, dtype=float), -2000, 900)
        return (total <= 2.0 ** np.minimum(precision + k, 1000)) & (2.0**k >= tiny)

    def _exact(self, W: Any, b: Any, z: Values, uses: Any, summed: Floats) -> NDArray[np.bool_]:
        """(rows, kinds): True if z is exact, and all terms are multiples of one 2ᵏ that `fits`."""
        quanta: Sequence[int | None] = (
            [quantum(self.ideal.grid(form)) for form in z.forms] if z.pairs is None else z.pairs[2]
        )
        least = np.full(len(W), 10_000.0)
        for row, used in enumerate(uses):
            powers = [exponent(Fraction(b[row]))]
            for c in np.flatnonzero(used).tolist():
                power = exponent(Fraction(W[row][c]))
                other = quanta[c]
                powers.append(None if power is None or other is None else power + other)
            least[row] = min(-np.inf if power is None else power for power in powers)
        known = np.isfinite(least)[:, None]
        inexact = _times(uses.astype(float), (z.error[0] > 0).astype(float)) > 0
        held = self.fits(least[:, None], summed, self.a.precision, self.tiny)
        held &= self.fits(least[:, None], summed, self.partial_precision, self.tiny_partial)
        return np.asarray(known & ~inexact & held)

    def _mixed(
        self,
        weights: Floats,
        off: Floats,
        shift: Floats,
        shift_off: Floats,
        z: Values,
        growth: Floats,
        underflow: Floats,
    ) -> tuple[NDArray[np.bool_], Floats, Floats]:
        """Return where no two terms of W z have different signs; a and ρ there.

        A term is off by |W̃ z̃ (1 + δ) − W z|, |δ| ≤ γ, which is at most
        |W̃| a (1 + γ) + |W z| ((1 + |W̃ − W|/|W|) (1 + ρ) (1 + γ) − 1). For terms of one sign
        Σ |W z| = |Σ W z|, so the second parts add up to a relative error of the sum. ("γ" includes
        storing.) A weight that rounds to 0, or that rounding makes other than 0, has no such bound.
        """
        plus, minus = (weights > 0) | ((off > 0) & (weights == 0)), weights < 0
        below, above = (z.lo < 0).astype(float), (z.hi > 0).astype(float)
        lost = ((off > 0) & (weights == 0)).any(axis=1)[:, None]
        positive = _times(plus, below) + _times(minus, above) == 0
        negative = _times(plus, above) + _times(minus, below) == 0
        # |W| is at least |W̃| − |W̃ − W|.
        least = np.maximum(np.abs(weights) - off, 0)
        relative = np.where(off > 0, off / np.where(least > 0, least, 1), 0)
        relative = np.where((off > 0) & (least <= 0), np.inf, relative).max(axis=1)[:, None]
        once = compounded(growth, self.storing)
        share = compounded(_largest(weights != 0, z.relative), relative, once)
        apart = (_times(np.abs(weights), z.absolute) + shift_off[:, None]) * (1 + once)
        apart = apart + once * shift[:, None] + underflow
        coherent = (positive | negative) & ~lost & np.isfinite(share)
        return coherent, np.asarray(up(apart)), np.asarray(up(np.where(coherent, share, 0.0)))

    # Sums of stored numbers

    def added(self, parts: Sequence[Values], where: str) -> Values:
        """Return the sum of vectors, where each addition is stored, in any order and grouping.

        A sum of two rounds once, relative to the result. A sum of k > 2 has k − 1 roundings, each
        relative to a partial sum, which is at most the sum of the magnitudes.
        """
        if len(parts) > MOST_TERMS:
            raise Unfollowed(where, f"more than {MOST_TERMS} vectors are added")
        one = Fraction(1)
        forms = [
            self.ideal.combined([(one, form) for form in each])
            for each in zip(*(part.forms for part in parts), strict=True)
        ]
        lo, hi, size = self.measured(forms)
        there = np.array([~part.is_zero() for part in parts])
        count = there.sum(axis=0)[:, None]
        inherited = np.sum([part.error for part in parts], axis=0)
        total = up(sum(part.reach[0] for part in parts))
        reach = up(size + inherited)
        scales = self.ideal.scales[:, None, None]
        growth = up(np.expm1(np.maximum(count - 1, 0) * math.log1p(self.per_operation)))
        many = sum(part.reach for part in parts) * growth
        rounding = np.where(count > 2, many, self.per_operation * reach * (count == 2))
        rounding = rounding + (self.tiny + self.tiny_partial) * np.maximum(count - 1, 0) * scales
        exact = np.array(
            [
                self._sums_exactly([part.forms[slot] for part in parts], total[slot])
                for slot in range(len(forms))
            ]
        )
        rounding = np.where(exact & ~(inherited[0] > 0), 0.0, up(rounding))
        error = self._least(inherited + rounding)
        self.require(np.where(count > 1, total * (1 + growth), 0.0), self.a.largest, where)
        apart, share = error[0], np.zeros_like(lo)
        for coherent in (
            np.logical_and.reduce([part.lo >= 0 for part in parts]),
            np.logical_and.reduce([part.hi <= 0 for part in parts]),
        ):
            largest = np.maximum.reduce([part.relative for part in parts])
            a = sum(part.absolute for part in parts) * (1 + growth)
            a = up(a + (self.tiny + self.tiny_partial) * np.maximum(count - 1, 0))
            apart = np.where(coherent, a, apart)
            share = np.where(coherent, compounded(largest, growth), share)
        is_exact = error[0] == 0
        return Values(
            forms,
            lo,
            hi,
            size,
            error,
            np.where(is_exact, 0.0, apart),
            np.where(is_exact, 0.0, share),
        )

    def _sums_exactly(self, forms: Sequence[Form], total: Floats) -> Any:
        quanta = [quantum(self.ideal.grid(form)) for form in forms]
        if None in quanta:
            return np.zeros(total.shape, dtype=bool)
        return self.fits(min(quanta), total, self.a.precision, self.tiny)  # type: ignore[type-var]

    def _least(self, error: Floats) -> Floats:
        """E, and for each mask the lesser of E_D and E times the largest D."""
        return np.asarray(np.minimum(error, self.ideal.scales[:, None, None] * error[0]))

    def require(self, size: Any, largest: float, where: str) -> None:
        """Require that numbers do not overflow.

        Raises:
            Unfollowed: if one may be larger than `largest`.

        """
        if not np.all(size <= largest):
            raise Unfollowed(
                where, f"numbers may be larger than {largest:.3g}, the largest there is"
            )

    def values(self, forms: Sequence[Form], error: Floats) -> Values:
        """Return ideal numbers with these errors E."""
        lo, hi, size = self.measured(forms)
        scaled = self.ideal.scales[:, None, None] * error
        return Values(forms, lo, hi, size, scaled, error, np.zeros_like(error))


def _times(matrix: Any, z: Floats) -> Floats:
    """Return Σ_c matrix[r, c] z[…, c, kind]."""
    return np.asarray(np.matmul(np.asarray(matrix, dtype=float), z))


def _largest(uses: Any, z: Floats) -> Floats:
    """(rows, kinds): the largest z[c, kind] ≥ 0 among the coordinates c that a row uses."""
    return np.asarray(np.where(np.asarray(uses)[:, :, None], z[None], 0.0).max(axis=1, initial=0.0))
