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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.verify.proof.grids import ANY_POWER, exponent, least
from transformist.verify.proof.ideal import ONE, ZERO_FORM, Form, Ideal
from transformist.verify.proof.sparse_products import Entries
from transformist.verify.proof.sparse_rows import SparseRow, exactly, places, sparse_rows
from transformist.verify.proof.upwards import (
    MOST_TERMS,
    NEARLY,
    TINIEST,
    Floats,
    Unfollowed,
    at_least_tiniest,
    compounded,
    magnitudes,
    raised,
    repeated,
    require_memory,
    require_products,
    require_terms,
    up,
    widened,
    within_reach,
)

BLOCK = 2**15
"""Bounds of a piece of a vector: 256 KiB an array, so that the arrays of a piece fit in a cache.

Each coordinate is bounded by itself, so the bounds do not depend on the pieces, except that
`MOST_JOINT` counts the rows of one piece.
"""

MOST_JOINT = 64
"""Most rows whose terms are bounded jointly: bounds the running time of answers of many labels."""


class Halves(NamedTuple):
    """Computed summands of hidden coordinates: single units, or pairs taken as their difference.

    Attributes:
        pairs: (coordinates,): True for a difference.
        reach: (1 + masks, coordinates, kinds): bounds of the sum of both computed magnitudes.
        quanta: for each coordinate the exponent k of 2ᵏ, of which both computed units are
            multiples if they have no error, or `None`.

    """

    pairs: NDArray[np.bool_]
    reach: Floats
    quanta: Sequence[int | None]


class CommonFactor(NamedTuple):
    """A factor that coordinates have in common: z̃ = (1 + δ) (1 + ε) z, with one δ at each row.

    Attributes:
        by: (coordinates,): a number of what computes δ, the same for all with one δ; −1 for none.
        factor: bound of |δ|.
        own: bound of (1 + |δ|) |ε|.

    """

    by: NDArray[np.int_]
    factor: float
    own: float


@dataclass(frozen=True, eq=False)
class Approximation:
    """A computed vector of a row: ideal numbers, one for each coordinate, with error bounds.

    Attributes:
        forms: the ideal numbers; empty where they are not written out (`many_rows`), and then only
            the bounds may be read.
        lo, hi: (coordinates, kinds): ends of the ideal numbers.
        size: (1 + masks, coordinates, kinds): bounds of their magnitudes, and of D times these.
        error: (1 + masks, coordinates, kinds): E, and E_D for each mask.
        absolute, relative: (coordinates, kinds): a and ρ.
        halves: the hidden units, if the vector is a hidden layer; some are taken in pairs.
        multiples: (coordinates,): k such that the computed coordinate (of a pair both units) is a
            multiple of 2ᵏ; −∞ where none is known; `None` where none is known of any. `quanta` is
            about the ideal instead.
        cap: (coordinates, kinds): a bound of the computed magnitude besides `reach`, or ∞; `None`
            where there is none for any.
        shared: the common factors of coordinates; `None` where there is none.

    """

    forms: Sequence[Form]
    lo: Floats
    hi: Floats
    size: Floats
    error: Floats
    absolute: Floats
    relative: Floats
    halves: Halves | None = None
    multiples: Floats | None = None
    cap: Floats | None = None
    shared: CommonFactor | None = None

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

    def powers(self, ideal: Ideal) -> Floats:
        """(coordinates,): `quanta`, with −∞ for `None`."""
        return _as_powers(self.quanta(ideal))

    @cached_property
    def places(self) -> Mapping[int, int]:
        """The place of each form, by its `id`."""
        return {id(form): k for k, form in enumerate(self.forms)}

    @cached_property
    def is_zero(self) -> NDArray[np.bool_]:
        """(coordinates,): True if the computed coordinate is exactly 0 at every row."""
        empty = np.array([not form for form in self.forms], dtype=bool)
        return np.asarray(empty & ~self.error[0].any(axis=1))

    def taken(self, at: NDArray[np.intp]) -> Approximation:
        """Return the vector of these coordinates alone, in the given order."""
        if np.array_equal(at, np.arange(len(self.forms))):
            return self
        assert self.halves is None
        shared = self.shared
        bounds: dict[str, Any] = {name: getattr(self, name)[..., at, :] for name in BOUNDS}
        return Approximation(
            [self.forms[place] for place in at.tolist()],
            **bounds,
            multiples=None if self.multiples is None else self.multiples[at],
            cap=None if self.cap is None else self.cap[at],
            shared=shared and shared._replace(by=shared.by[at]),
        )

    @classmethod
    def assembled(
        cls, count: int, pieces: Sequence[tuple[NDArray[np.intp], Approximation]], ideal: Ideal
    ) -> Approximation:
        """Return a vector of `count` coordinates: each piece at its places, exact zeros beside."""
        if len(pieces) == 1 and len(pieces[0][0]) == count:
            return pieces[0][1]
        forms, plane = [ZERO_FORM] * count, (count, ideal.kinds)
        sized = len(ideal.scales), *plane
        bounds: dict[str, Any] = {
            name: np.zeros(sized if name in ("size", "error") else plane) for name in BOUNDS
        }
        multiples, cap = np.full(count, float(ANY_POWER)), np.full(plane, np.inf)
        by, factors = np.full(count, -1), list[CommonFactor]()
        for at, piece in pieces:
            for place, form in zip(at.tolist(), piece.forms, strict=True):
                forms[place] = form
            for name, array in bounds.items():
                array[..., at, :] = getattr(piece, name)
            multiples[at] = -np.inf if piece.multiples is None else piece.multiples
            if piece.cap is not None:
                cap[at] = piece.cap
            if piece.shared is not None:
                by[at] = piece.shared.by
                factors.append(piece.shared)
        # The factors of several pieces are bounded by the largest of each bound.
        largest = (max(getattr(x, name) for x in factors) for name in ("factor", "own"))
        return cls(
            forms,
            **bounds,
            multiples=multiples,
            cap=cap if any(piece.cap is not None for _, piece in pieces) else None,
            shared=CommonFactor(by, *largest) if factors else None,
        )


BOUNDS = ("lo", "hi", "size", "error", "absolute", "relative")
"""The bounds that every approximation has, an array each."""


class Stored(NamedTuple):
    """W and b in the format: W̃, |W̃ − W|, b̃ and |b̃ − b|."""

    weights: Floats
    off: Floats
    shift: Floats
    shift_off: Floats

    @property
    def is_off(self) -> bool:
        """True if some weight or bias differs from its value in the format."""
        return bool(self.off.any() or self.shift_off.any())


class Terms(NamedTuple):
    """W̃ and |W̃ − W| where an entry of W is not 0; elsewhere both are 0."""

    at: Entries
    weights: Floats
    off: Floats


class IdealMap(NamedTuple):
    """The ideal values of W z + b, coordinate by coordinate.

    Attributes:
        forms: their forms; none where they are not written out (`RoundingErrors.many_rows`).
        lo, hi, size: as those of an `Approximation`.
        powers: a function from numbers of coordinates to exponents k, such that all ideal values
            are multiples of 2ᵏ; −∞ where none is known.

    """

    forms: Sequence[Form]
    lo: Floats
    hi: Floats
    size: Floats
    powers: Callable[[NDArray[np.intp]], Floats]


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
        summed: (coordinates, kinds): a bound of Σ |term|, as computed.
        terms: the entries of W, in the format.
        multiples: (coordinates,): k such that every computed term is a multiple of 2ᵏ, or −∞.
        source: z.
        common: a and ρ of the error of W̃ z̃ before it is rounded, as (1 + δ) W z is off by δ W z
            alone (`CommonFactor`); ∞ where there is none.
        has_one_sign: (coordinates, kinds): True if all terms of W z have one sign, but for those
            whose weight is 0 in the format.

    """

    values: Approximation
    inherited: Floats
    rounding: Floats
    accumulated: Floats
    mixed: Mixed
    stored: Stored
    summed: Floats
    terms: Terms
    multiples: Floats
    source: Approximation
    common: Mixed
    has_one_sign: NDArray[np.bool_]

    def keeps_zero(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """(rows, kinds): True if the computed W z is exactly 0 where the ideal one is 0.

        If all terms have one sign, a sum of 0 has terms of 0: each z_c that is read is 0, and its
        error at most its `absolute`. (The two units of a pair may differ from 0 where z_c is 0.)
        W̃ has the sign of W, unless it is 0: then nothing is known of the sign of that term of W z.
        """
        if self.source.halves is not None:
            return np.zeros((len(rows), self.summed.shape[1]), dtype=bool)
        weights, off = self.stored.weights[rows], self.stored.off[rows]
        vanishes = ((weights == 0) & (off > 0)).any(axis=1)
        is_off = (weights != 0).astype(float) @ (self.source.absolute != 0).astype(float) > 0
        return np.asarray(self.has_one_sign[rows] & ~is_off & ~vanishes[:, None])

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

    def errors_at(self, rows: Sequence[int], product: Floats) -> Floats:
        """Return `error_at` of (…, rows, kinds) products at once."""
        absolute, relative = (x[rows] for x in self.mixed)
        error = self.values.error[0, rows]
        near = np.where(relative < 1, up(absolute + relative * product), np.inf)
        return np.asarray(np.minimum(error, near))


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

    are_stored = True
    """True if computed numbers are stored as they are, so that `multiples` and zeros hold."""

    def __init__(self, a: Floating, ideal: Ideal) -> None:
        self.a, self.ideal = a, ideal
        self.u, self.w = float(a.unit_roundoff), float(a.accumulator_roundoff)
        self.narrow = self.u > self.w
        self.tiny, self.tiny_partial = a.smallest, a.smallest_partial
        self.partial_precision = Fraction(1, a.accumulator_roundoff).numerator.bit_length() - 1
        self.storing = self.u if self.narrow else 0.0
        self.per_operation = float(compounded(self.w, self.storing))
        # W̃ and |W̃ − W| of each weight so far. Equal numbers of two types are one key.
        self._rounded: dict[Any, tuple[float, float]] = {}

    def growth(self, roundings: Any) -> Floats:
        """Return γ = (1 + w)^k − 1."""
        return np.asarray(repeated(self.w, roundings))

    def rounded(self, weights: Any) -> tuple[Floats, Floats]:
        """Return W̃, the weights rounded to the format, and |W̃ − W|."""
        given = np.asarray(weights)
        found, (used,) = np.zeros((2, given.size)), places(given.ravel())  # 0 is in every format
        listed = given.ravel()[used].tolist()
        new = [y for y in dict.fromkeys(listed) if y not in self._rounded]  # a matrix has few
        if new:
            pairs = zip(*self._rounded_apart(np.array(new, dtype=given.dtype)), strict=True)
            self._rounded |= dict(zip(new, pairs, strict=True))
        if listed:
            found[:, used] = np.array([self._rounded[y] for y in listed]).T
        return found[0].reshape(given.shape), found[1].reshape(given.shape)

    def _rounded_apart(self, weights: NDArray[Any]) -> tuple[list[float], list[float]]:
        """Return W̃ and |W̃ − W| of weights other than 0, which are not looked up."""
        rounded = np.asarray(self.a.numbers(self.a.array(weights)), dtype=float)
        errors = np.zeros(len(weights))
        # For exponents below 400 in magnitude W is within reach, and so is W̃ − W, a multiple of
        # 2^(−400 − 53) or 0.
        is_plain = np.zeros(len(weights), dtype=bool)
        if weights.dtype == np.float64:
            # If W̃ is 0, or within a factor 2 of W, the float64 difference is exact (Sterbenz).
            ratio = np.divide(rounded, weights)
            is_plain = (ratio == 0) | (ratio >= 0.5) & (ratio <= 2)
            is_plain &= np.abs(np.frexp(weights)[1]) < 400
            errors[is_plain] = np.abs(rounded - weights)[is_plain]
        for k in np.flatnonzero(~is_plain).tolist():
            y = within_reach(exactly(weights[k]))
            errors[k] = float(abs(Fraction(float(rounded[k])) - y))
        return rounded.tolist(), at_least_tiniest(up(errors)).tolist()

    # Sums of products

    def affine(self, W: Any, b: Any, z: Approximation, where: str) -> AffineMap:
        """Return W z + b with its error bounds: the equation of E in the module's docstring."""
        at = self._entries(W, where)
        forms = self.forms(W, b, z)
        measured = self._measured(forms, [z] if z.halves is None else [])
        return self._bounded(W, b, z, at, IdealMap(forms, *measured, self._powers_of(forms)), where)

    def many_rows(self, W: Any, b: Any, z: Approximation, where: str) -> AffineMap:
        """Return W z + b with error bounds that may be wider than those of `affine`.

        No form of a row is made, of which there may be many thousands. Ends and sizes of a row
        follow from those of z by interval arithmetic. W has at most `MOST_TERMS` columns, and z is
        no hidden layer.
        """
        assert z.halves is None and W.shape[1] <= MOST_TERMS
        at = self._entries(W, where)
        weights, shift = (np.asarray(each, dtype=float) for each in (at.at(W), b))
        plus, minus, shift = np.maximum(weights, 0), np.maximum(-weights, 0), shift[:, None]
        # Terms of both signs may cancel: `widened` covers the rounding of these sums, and of W to
        # float64.
        lo = at.times(plus, z.lo) - at.times(minus, z.hi) + shift
        hi = at.times(plus, z.hi) - at.times(minus, z.lo) + shift
        terms = at.times(plus + minus, magnitudes(z.lo, z.hi)) + np.abs(shift)
        lo, hi = widened(lo, hi, terms)
        scales = self.ideal.scales[:, None, None]
        by_terms = at.times(plus + minus, z.size) + np.abs(shift) * scales
        size = np.minimum(up(by_terms), up(scales * magnitudes(lo, hi)))
        k = _powers(W, b, at, z.powers(self.ideal)[at.columns])[:, 0]
        rows = IdealMap((), lo, hi, at_least_tiniest(size), lambda rows: k[rows])
        return self._bounded(W, b, z, at, rows, where)

    def _entries(self, W: Any, where: str) -> Entries:
        """Return the places of the weights, if their bounds fit in memory."""
        require_memory(max(np.shape(W)), self.ideal.kinds, where)
        at = Entries.of(W)
        require_products(len(at.rows), self.ideal.kinds, where)
        return at

    def _bounded(
        self, W: Any, b: Any, z: Approximation, at: Entries, ideal: IdealMap, where: str
    ) -> AffineMap:
        """Return W z + b, of which the ideal is known, with its error bounds."""
        forms, lo, hi, size, powers = ideal
        scales = self.ideal.scales[:, None, None]
        terms = Terms(at, *self.rounded(at.at(W)))
        shift, shift_off = self.rounded(b)
        stored = Stored(at.filled(terms.weights), at.filled(terms.off), shift, shift_off)
        # Σ |term|, and W̃ z̃ + b̃ − (W z + b) = W̃ (z̃ − z) + (W̃ − W) z + (b̃ − b).
        magnitude = np.abs(terms.weights)
        summed = up(at.times(magnitude, z.reach) + np.abs(shift)[:, None] * scales)
        summands = self._summands(terms, shift, z)
        growth, underflow, keeps = self._operations(terms, *summands)
        self.require(up(summed[0] * (1 + growth)), self.a.largest_partial, where)
        exact = self._is_exact(W, b, z, terms.at, *summands, summed[0], size[0])
        is_given_exactly = not (stored.is_off or z.error[0].any(axis=1)[at.columns].any())
        if is_given_exactly and (exact | keeps).all():
            self.require(size[0], self.a.largest, where)
            return self._exactly(ideal, terms, stored, summed, z)
        of_weights = at.times(terms.off, z.size) + shift_off[:, None] * scales
        inherited = up(at.times(magnitude, z.error) + of_weights)
        one_sign = _has_one_sign(terms, z)
        common = self._bound_jointly(inherited, W, of_weights, terms, one_sign, z)
        multiples = np.full(len(shift), -np.inf)
        if self.narrow and self.are_stored:  # a format that is its own accumulator gains little
            multiples = _multiples(terms, shift, self._stored_multiples(z))
            inherited[0] = self._whole(inherited[0], multiples, powers(np.arange(len(shift))))
        rounding = growth * summed
        accumulated = up(rounding + underflow * scales)
        # A result of at most |W z + b| + inherited + γ Σ |term| is stored.
        rounding = rounding + self.storing * (size + inherited + rounding) + underflow * scales
        exact = exact & (inherited[0] == 0) | keeps
        largest = size + inherited
        adds, fits = self._fits_multiples(multiples[:, None], summed[0], up(largest[0]))
        accumulated = np.where(exact | adds, 0.0, accumulated)
        rounding = np.where(adds, self.storing * largest, rounding)
        rounding = np.where(exact | fits, 0.0, up(rounding))
        exact |= fits & (at.count(terms.off) == 0)[:, None]
        error = self.least(inherited + rounding)
        error = np.where(self._is_nearest(powers, lo, hi, error[0]), 0.0, error)
        self.require(size[0] + error[0], self.a.largest, where)
        mixed = self._mixed(terms, stored, z, growth, underflow, exact, one_sign)
        mixed = _where(mixed.relative >= 0, mixed, error[0])
        unshifted = ((shift == 0) & (shift_off == 0))[:, None]
        values = Approximation(
            forms,
            lo,
            hi,
            size,
            error,
            *_where(unshifted, mixed, error[0]),
            multiples=multiples,
            cap=_cap(terms, shift, z),
            shared=_shared(terms, stored, z),
        )
        return AffineMap(
            values,
            inherited,
            rounding,
            accumulated,
            mixed,
            stored,
            summed[0],
            terms,
            multiples,
            z,
            common,
            one_sign,
        )

    def _exactly(
        self, ideal: IdealMap, terms: Terms, stored: Stored, summed: Floats, z: Approximation
    ) -> AffineMap:
        """Return W z + b where nothing that it reads has an error, and nothing rounds.

        E_D is 0 like E: it bounds the same difference of computed and ideal, times D.
        """
        none = np.zeros_like(summed)
        multiples = np.full(len(summed[0]), -np.inf)
        if self.narrow and self.are_stored:
            multiples = _multiples(terms, stored.shift, self._stored_multiples(z))
        values = Approximation(
            ideal.forms,
            ideal.lo,
            ideal.hi,
            ideal.size,
            none,
            none[0],
            none[0],
            multiples=multiples,
            cap=_cap(terms, stored.shift, z),
            shared=_shared(terms, stored, z),
        )
        mixed = Mixed(none[0], none[0])
        one_sign = _has_one_sign(terms, z)
        return AffineMap(
            values, none, none, none, mixed, stored, summed[0], terms, multiples, z, mixed, one_sign
        )

    def used_rows(self, W: Any, b: Any, where: str) -> NDArray[np.intp]:
        """Return the rows of W z + b that are not 0: few, where W writes to slots of a stream."""
        require_memory(max(np.shape(W)), self.ideal.kinds, where)
        return np.flatnonzero((W != 0).any(axis=1) | (b != 0))

    def written(self, W: Any, b: Any, z: Approximation, where: str) -> Approximation:
        """Return W z + b, bounded by `affine` some rows at a time.

        Rows that are 0 are left out, and rows that copy a coordinate of z have its bounds
        (`_copied`).
        """
        rows = self.used_rows(W, b, where)
        is_copy, sources = self._copies(W, b, rows)
        pieces = [
            (rows[at], self._copied(z, sources[at], where))
            for at in self.blocks(np.flatnonzero(is_copy))
        ]
        blocks = self.blocks(rows[~is_copy])
        for at in blocks:
            read = np.arange(W.shape[1])
            if len(blocks) > 1:  # a piece of many reads few coordinates
                read = np.flatnonzero((W[at] != 0).any(axis=0))
            values = self.affine(W[np.ix_(at, read)], b[at], z.taken(read), where).values
            pieces.append((at, values))
        return Approximation.assembled(len(W), pieces, self.ideal)

    def _copies(
        self, W: Any, b: Any, rows: NDArray[np.intp]
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return True for each row that copies a coordinate of z, and this coordinate, there.

        Such a row has one weight, which is 1, and no bias: the number is multiplied with 1, and
        zeros are added, so nothing rounds. There are none in a format without the number 1, or
        where computed numbers are not stored as they are (`are_stored`).
        """
        if not self.are_stored or not self.a.smallest <= 1 <= self.a.largest:
            return np.zeros(len(rows), dtype=bool), rows  # the coordinates are not read
        used = W[rows] != 0
        sources = used.argmax(axis=1)
        is_copy = (used.sum(axis=1) == 1) & (W[rows, sources] == 1) & (b[rows] == 0)
        return is_copy, sources

    def _copied(self, z: Approximation, sources: NDArray[np.intp], where: str) -> Approximation:
        """Return rows that copy coordinates of z, with the bounds that `affine` gives them.

        E is lowered as there (`_whole`, `_is_nearest`). D times the error is at most D E, and where
        E is 0, so are a and ρ.
        """
        found = z.taken(sources)
        self.require(up(found.size[0] + found.error[0]), self.a.largest, where)
        if self.narrow:
            found = replace(found, multiples=self._stored_multiples(found))
        if not found.error[0].any():
            return found
        own, powers = found.error[0], self._powers_of(found.forms)
        if found.multiples is not None:
            own = self._whole(own, found.multiples, powers(np.arange(len(own))))
        own = np.where(self._is_nearest(powers, found.lo, found.hi, own), 0.0, own)
        error = np.minimum(found.error, up(self.ideal.scales[:, None, None] * own))
        error[0] = own
        a, rho = (np.where(own > 0, each, 0.0) for each in (found.absolute, found.relative))
        return replace(found, error=error, absolute=a, relative=rho)

    def blocks(self, rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return rows in pieces of about `BLOCK` bounds, each of one row or more."""
        count = min(-(-len(rows) * self.ideal.kinds // BLOCK), len(rows))
        return np.array_split(rows, count) if count else []

    def _powers_of(self, forms: Sequence[Form]) -> Callable[[NDArray[np.intp]], Floats]:
        """Return `IdealMap.powers` of written forms."""

        def powers(rows: NDArray[np.intp]) -> Floats:
            return _as_powers([self.ideal.quantum(forms[row]) for row in rows.tolist()])

        return powers

    @staticmethod
    def _whole(inherited: Floats, multiples: Floats, powers: Floats) -> Floats:
        """Round errors of W̃ z̃ + b̃ down to multiples of 2ᵏ, where it and the ideal are multiples.

        The division by a power of two and the product with it are exact: other k are left out.
        """
        k = np.minimum(multiples, powers)
        step = np.exp2(np.clip(k, -500, 500))[:, None]
        with np.errstate(invalid="ignore"):
            whole = np.floor(inherited / step) * step
        return np.where((np.abs(k) <= 500)[:, None] & np.isfinite(inherited), whole, inherited)

    def _fits_multiples(
        self, k: Floats, summed: Floats, largest: Floats
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(rows, kinds): True where a sum of computed multiples of 2ᵏ does not round; and where it
        is stored without a rounding, too.

        Every partial sum is a multiple, of at most Σ |term|, which the accumulator holds. The
        result is one of at most `largest`, which the format holds (`fits`).
        """
        k = np.clip(k, -2000, 900)
        adds = summed <= np.exp2(np.minimum(k + self.partial_precision, 1000))
        adds &= np.exp2(k) >= max(self.tiny, self.tiny_partial)
        return adds, adds & (largest <= np.exp2(np.minimum(k + self.a.precision, 1000)))

    def _bound_jointly(
        self,
        inherited: Floats,
        W: Any,
        of_weights: Floats,
        terms: Terms,
        has_one_sign: NDArray[np.bool_],
        z: Approximation,
    ) -> Mixed:
        """Lower inherited errors of rows with terms of both signs, by bounds of all terms together.

        Each z_c has one sign, and |z̃_c − z_c| ≤ a_c + ρ_c |z_c|. So W̃ z̃ is off by at most
        Σ |w_c| a_c + max ρ_c Σ |w_c z_c|, and Σ |w_c z_c| is a form, with bounds of its own: shares
        of one head add up to 1 at most, so that two of them are not both 1.

        Return `AffineMap.common`. Let K be coordinates with one factor 1 + δ (`CommonFactor`).
        Their terms add up to (1 + δ) Σ_K w_c z_c, off by at most own Σ_K |w_c z_c|. With the other
        terms δ Σ_K w_c z_c = δ (W z − Σ w_c z_c), which is at most |δ| (|W z| + Σ |w_c z_c|).
        """
        shape = terms.at.shape[0], z.lo.shape[-1]
        common = Mixed(np.full(shape, np.inf), np.zeros(shape))
        rough: NDArray[np.bool_] = np.asarray(z.relative.any(axis=1))
        if z.halves is not None or has_one_sign.all() or rough.sum() < 2:
            return common
        positive: NDArray[np.bool_] = np.asarray((z.lo >= 0).all(axis=1))
        one_sign: NDArray[np.bool_] = positive | np.asarray((z.hi <= 0).all(axis=1))
        at, signs = terms.at, np.where(positive, 1, -1)
        is_mixed = ~has_one_sign.all(axis=1)
        are_rough = at.count(rough[at.columns]) > 1
        mixed_signs = ~one_sign[at.columns]
        are_fit = (at.count(mixed_signs) == 0) & (at.count(terms.off) == 0)
        found = np.flatnonzero(is_mixed & are_rough & are_fit).tolist()
        if not 0 < len(found) <= MOST_JOINT:
            return common
        listed = sparse_rows(np.asarray(W)[found])
        size = self._size_of_terms(listed, signs, z)
        rho = at.reduced(np.maximum, z.relative[at.columns], 0.0)[found]
        absolute = at.times(np.abs(terms.weights), z.absolute)[found]
        scales = self.ideal.scales[:, None, None]
        bound = up(absolute * scales + rho * size + of_weights[:, found])
        inherited[:, found] = np.minimum(inherited[:, found], bound)
        if z.shared is None:
            return common
        by, factor, own = z.shared
        groups = [max((by[c] for c, _ in row), default=-1) for row in listed]
        inside = [
            [(c, x) for c, x in row if by[c] == k >= 0]
            for row, k in zip(listed, groups, strict=True)
        ]
        of_group = self._size_of_terms(inside, signs, z)[0]
        for place, (row, mine) in enumerate(zip(listed, inside, strict=True)):
            others = [(c, abs(float(x))) for c, x in row if (c, x) not in mine]
            beside = sum((x * (z.error[0, c] + factor * z.size[0, c]) for c, x in others), 0.0)
            beside = raised(beside, len(others))
            common.absolute[found[place]] = up(
                own * of_group[place] + beside + of_weights[0, found[place]]
            )
            common.relative[found[place]] = factor
        return common

    def _size_of_terms(
        self, rows: Sequence[Any], signs: NDArray[np.int_], z: Approximation
    ) -> Floats:
        """(1 + masks, rows, kinds): bounds of Σ |w_c z_c|, for z_c of these signs."""
        forms = [
            self.ideal.combined((exactly(abs(x) * int(signs[c])), z.forms[c]) for c, x in row)
            for row in rows
        ]
        return self.ideal.measured(forms)[2]

    def _stored_multiples(self, z: Approximation) -> Floats:
        """(coordinates,): `multiples`, or what follows for stored numbers from their magnitudes.

        Let |z̃ − z| ≤ ρ |z| with ρ < 1, and |z| ≥ g where z is not 0. So z̃ is 0, or |z̃| is at least
        2^e, e = ⌊log₂((1 − ρ) g)⌋, and a multiple of 2^(e−p+1), like all numbers of p bits from 2^e
        on. Numbers below the least normal one have a larger distance.
        """
        known = np.full(len(z.forms), -np.inf) if z.multiples is None else z.multiples
        if z.halves is not None:
            return known
        found = known.copy()
        rho = z.relative.max(axis=1)
        for c in np.flatnonzero(~z.absolute.any(axis=1) & (rho < 1)).tolist():
            grid = self.ideal.grid(z.forms[c]) if z.forms[c] else None
            if grid is not None and grid[0] >= TINIEST:
                least = self.ideal.gap(grid) * (1 - rho[c]) * NEARLY
                found[c] = max(found[c], math.frexp(least)[1] - self.a.precision)
        return np.where(z.is_zero, float(ANY_POWER), found)

    def forms(self, W: Any, b: Any, z: Approximation) -> list[Form]:
        """Return the forms of W z + b."""
        forms, known = [], dict[SparseRow, Form]()  # the two units of a step have equal rows
        for row, constant in zip(sparse_rows(W), np.asarray(b).tolist(), strict=True):
            if row not in known:
                known[row] = self.ideal.combined((exactly(x), z.forms[c]) for c, x in row)
            forms.append(self.ideal.shifted(known[row], exactly(constant)))
        return forms

    def _measured(
        self, forms: Sequence[Form], known: Sequence[Approximation]
    ) -> tuple[Floats, Floats, Floats]:
        """Return `Ideal.measured`; a form that is one of a known vector is not measured again.

        Nor is a form without terms, which is 0.
        """
        shape = len(forms), self.ideal.kinds
        lo, hi, size = np.zeros(shape), np.zeros(shape), np.zeros((len(self.ideal.scales), *shape))
        taken: dict[int, tuple[Approximation, list[int], list[int]]] = {}
        new = []
        for row, form in enumerate(forms):
            part = next((part for part in known if id(form) in part.places), None)
            if part is not None:
                _, rows, sources = taken.setdefault(id(part), (part, [], []))
                rows.append(row)
                sources.append(part.places[id(form)])
            elif form:
                new.append(row)
        for part, rows, sources in taken.values():
            lo[rows], hi[rows] = part.lo[sources], part.hi[sources]
            size[:, rows] = part.size[:, sources]
        if new:
            lo[new], hi[new], size[:, new] = self.ideal.measured([forms[row] for row in new])
        return lo, hi, size

    def _operations(
        self, terms: Terms, count: NDArray[np.int_], plain: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return γ and the underflow of each row, and True for rows that keep what they read.

        `_summands` gives `count` and `plain`.
        """
        growth = self.growth(np.maximum(count - 1, 0) + ~plain)
        # Each product and sum may underflow in the accumulator, the result where it is stored.
        underflow = 2 * count * self.tiny_partial + (count > 0) * self.narrow * self.tiny
        # One product with 2ᵏ ≥ 1, and nothing added, neither rounds nor underflows.
        magnitude = np.where(terms.weights != 0, np.abs(terms.weights), 1.0)
        keeps = (count < 2) & plain & (terms.at.reduced(np.minimum, magnitude, 1.0) >= 1)
        return growth[:, None], underflow[:, None], np.asarray(keeps)[:, None]

    @staticmethod
    def _summands(
        terms: Terms, shift: Floats, z: Approximation
    ) -> tuple[NDArray[np.int_], NDArray[np.bool_]]:
        """Return the number of terms of each row, and True where no product rounds."""
        weights = terms.weights
        # A power of two has the mantissa 1/2: its products do not round.
        rounds = (weights != 0) & (np.frexp(np.abs(weights))[0] % 0.5 != 0)
        count = terms.at.count(weights) + (shift != 0)
        if z.halves is not None:  # the two units of a pair are two summands
            count = count + terms.at.count(weights * z.halves.pairs[terms.at.columns])
        return count, terms.at.count(rounds) == 0

    def _is_exact(
        self,
        W: Any,
        b: Any,
        z: Approximation,
        at: Entries,
        count: NDArray[np.int_],
        plain: NDArray[np.bool_],
        summed: Floats,
        size: Floats,
    ) -> NDArray[np.bool_]:
        """(rows, kinds): True if z is exact, and all terms are multiples of one 2ᵏ that fits.

        `_summands` gives `count` and `plain`.

        If there are two terms, and their weights are powers of two, the result is the only partial
        sum: a multiple of 2ᵏ of at most `size`, however large the terms are.
        """
        powers = _powers(W, b, at, z.powers(self.ideal)[at.columns])
        is_inexact = at.any(z.error[0] > 0)
        total = np.where((plain & (count <= 2))[:, None], size, summed)
        return np.asarray(self.fits(powers, total, in_partials=True) & ~is_inexact)

    def _is_nearest(
        self,
        powers: Callable[[NDArray[np.intp]], Floats],
        lo: Floats,
        hi: Floats,
        error: Floats,
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
        rows = np.flatnonzero((np.isfinite(error) & (error > 0) & (m > error)).any(axis=1))
        of_grid = powers(rows)
        rows, of_grid = rows[of_grid > -np.inf], of_grid[of_grid > -np.inf, None]
        m, error = m[rows], error[rows]
        # frexp: m is in [2^(e−1), 2^e).
        k = np.minimum(np.frexp(np.maximum(m, 0.0))[1] - 1 - (self.a.precision - 1), of_grid)
        is_below = (m > error) & (error < np.exp2(np.clip(k, -1000, 1000)))
        found[rows] = is_below & (k >= -1000)
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
        self,
        terms: Terms,
        stored: Stored,
        z: Approximation,
        growth: Floats,
        underflow: Floats,
        exact: Any,
        has_one_sign: NDArray[np.bool_],
    ) -> Mixed:
        """Return a and ρ of W z; ρ = −1 where there are none.

        With |z̃ − z| ≤ a + ρ |z|, r = |W̃ − W|/|W| and |δ| ≤ γ (which here includes storing), a
        term is off by |W̃ z̃ (1 + δ) − W z| ≤ γ |W̃| |z̃| + |W̃| |z̃ − z| + |W̃ − W| |z|, which is at
        most |W̃| a (1 + γ) + |W z| ((1 + r) (1 + ρ) (1 + γ) − 1). Where all terms of W z have one
        sign, Σ |W z| = |Σ W z|, so the second parts add up to a relative error of the sum.
        """
        (at, weights, off), shift, shift_off = terms, stored.shift, stored.shift_off
        # |W| is at least |W̃| − |W̃ − W|. Where that is not above 0, r has no bound.
        magnitude = np.abs(weights)
        floor = magnitude - off
        r = np.where(off > 0, off / np.where(floor > 0, floor, 1), 0)
        r = np.where((off > 0) & (floor <= 0), np.inf, r)
        r = up(at.reduced(np.maximum, r, 0.0))[:, None]
        once = compounded(growth, self.storing)
        relative = np.where((weights != 0)[:, None], z.relative[at.columns], 0.0)
        of_z = at.reduced(np.maximum, relative, 0.0)
        rho = compounded(of_z, r, once)
        a_z = at.times(magnitude, z.absolute) + shift_off[:, None]
        a = up(a_z * (1 + once) + once * np.abs(shift)[:, None] + underflow)
        # Without rounding γ = 0; a row that keeps its one coordinate or b must also have W̃ = W.
        a = np.where(exact, up(a_z), a)
        rho = np.where(exact, of_z, rho)
        is_rounded = at.count(off)[:, None] > 0
        holds = has_one_sign & np.isfinite(r) & np.isfinite(rho) & ~(exact & is_rounded)
        if z.halves is not None:  # the two units of a pair round, not their difference
            holds &= ~at.count(weights * z.halves.pairs[at.columns])[:, None].astype(bool)
        return Mixed(a, np.where(holds, rho, -1.0))

    # Sums of stored numbers

    def added(self, parts: Sequence[Approximation], where: str) -> Approximation:
        """Return the sum of vectors, where each addition is stored, in any order and grouping.

        A sum of two rounds once, relative to the result. A sum of k > 2 has k − 1 roundings, each
        relative to a partial sum, which is at most the sum of the magnitudes. Where all vectors but
        one are 0, the sum is the one that is not, as x + 0 does not round.
        """
        require_terms(len(parts), where, "vectors in a sum")
        used = ~np.array([part.is_zero for part in parts])
        count = used.sum(axis=0)
        pieces = [
            (at, part.taken(at))
            for part, own in zip(parts, used, strict=True)
            if len(at := np.flatnonzero(own & (count == 1)))
        ]
        several = np.flatnonzero(count > 1)
        if len(several):
            pieces += [
                (rows, self._summed([part.taken(rows) for part in parts], where))
                for rows in self.blocks(several)
            ]
        return Approximation.assembled(len(count), pieces, self.ideal)

    def _summed(self, parts: Sequence[Approximation], where: str) -> Approximation:
        """Return the sum of vectors; in each coordinate two of them may be other than 0."""
        scales = self.ideal.scales[:, None, None]
        forms = [
            self.ideal.combined([(ONE, form) for form in each])
            for each in zip(*(part.forms for part in parts), strict=True)
        ]
        lo, hi, size = self._measured(forms, parts)
        additions = np.sum([~part.is_zero for part in parts], axis=0)[:, None] - 1
        inherited = sum(part.error for part in parts)
        reach = up(sum(part.reach for part in parts))
        growth = repeated(self.per_operation, additions)
        underflow = (self.tiny + self.tiny_partial) * additions
        once = self.per_operation * up(size + inherited) * (additions == 1)
        rounding = np.where(additions > 1, growth * reach, once) + underflow * scales
        rounding = np.where(self._sums_exactly(parts, inherited, reach), 0.0, up(rounding))
        error = self.least(inherited + rounding)
        self.require(up(reach[0] * (1 + growth)), self.a.largest, where)
        # Terms of one sign: Σ (a_i + ρ_i |x_i|) ≤ Σ a_i + max ρ_i |Σ x_i|, and so with rounding.
        has_one_sign = np.logical_and.reduce([part.lo >= 0 for part in parts])
        has_one_sign |= np.logical_and.reduce([part.hi <= 0 for part in parts])
        a = up(sum(part.absolute for part in parts) * (1 + growth) + underflow)
        rho = compounded(np.maximum.reduce([part.relative for part in parts]), growth)
        mixed = _where(has_one_sign, Mixed(a, rho), error[0])
        multiples = np.minimum.reduce([_known_multiples(part) for part in parts])
        return Approximation(forms, lo, hi, size, error, *mixed, multiples=multiples)

    def _sums_exactly(
        self, parts: Sequence[Approximation], inherited: Any, reach: Floats
    ) -> NDArray[np.bool_]:
        """(coordinates, kinds): True if all parts are exact multiples of one 2ᵏ that fits."""
        quanta = [part.quanta(self.ideal) for part in parts]
        k = _as_powers([least(each) for each in zip(*quanta, strict=True)])[:, None]
        return np.asarray(self.fits(k, reach[0]) & (inherited[0] == 0))

    # Vectors with given errors

    def values(self, forms: Sequence[Form], error: Floats) -> Approximation:
        """Return ideal numbers with these errors E."""
        scaled = up(self.ideal.scales[:, None, None] * error)
        return Approximation(forms, *self._measured(forms, ()), scaled, error, np.zeros_like(error))

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


def _has_one_sign(terms: Terms, z: Approximation) -> NDArray[np.bool_]:
    """(rows, kinds): True if all terms of W z have one sign, where W̃ is not 0."""
    at, weights = terms.at, terms.weights
    plus, minus = at.taken(weights > 0), at.taken(weights < 0)
    below, above = z.lo < 0, z.hi > 0
    may_be_positive = plus.any(above) | minus.any(below)
    may_be_negative = plus.any(below) | minus.any(above)
    # A single term has one sign, even if its number may have either.
    is_alone = at.count(weights)[:, None] < 2
    return np.asarray(~may_be_positive | ~may_be_negative | is_alone)


def _multiples(terms: Terms, shift: Floats, of_z: Floats) -> Floats:
    """(rows,): k such that every term of W̃ z̃ + b̃ is a multiple of 2ᵏ, or −∞.

    Then so is the computed sum: rounding takes a multiple of 2ᵏ to one. Between two neighbours of
    2^e and above, the numbers of a format are the multiples of some 2ʲ. If j ≤ k, a multiple of 2ᵏ
    is one of them and does not round; else it becomes a multiple of 2ʲ, which is one of 2ᵏ.
    """
    of_terms = np.where(
        terms.weights != 0, exponents(terms.weights) + of_z[terms.at.columns], np.inf
    )
    least_term = terms.at.reduced(np.minimum, of_terms, np.inf)
    return np.minimum(np.where(shift != 0, exponents(shift), float(ANY_POWER)), least_term)


def _powers(W: Any, b: Any, at: Entries, held: Floats) -> Floats:
    """(rows, 1): for each row k, as each W z and b is a multiple of 2ᵏ; −∞ where there is none.

    `held` has such a k for the z of each entry. A product of multiples of 2ʲ and 2ᵏ is one of
    2^(j+k).
    """
    terms = exponents(at.at(W)) + held
    return np.minimum(exponents(b), at.reduced(np.minimum, terms, np.inf))[:, None]


def _cap(terms: Terms, shift: Floats, z: Approximation) -> Floats | None:
    """(rows, kinds): |w| cap of the one number that a row multiplies with w = ±2ᵏ, k ≥ 0, else ∞.

    Such a product does not round.
    """
    if z.cap is None:
        return None
    at, weights, is_alone = terms.at, np.abs(terms.weights), _keeps_one(terms, shift)
    found = at.reduced(np.maximum, weights[:, None] * z.cap[at.columns], 0.0)
    return np.where(is_alone[:, None], found, np.inf)


def _keeps_one(terms: Terms, shift: Floats) -> NDArray[np.bool_]:
    """(rows,): True if a row is one number times ±2ᵏ, k ≥ 0, a product that does not round."""
    at, weights = terms.at, np.abs(terms.weights)
    is_alone = (at.count(weights) == 1) & (at.count(terms.off) == 0) & (shift == 0)
    keeps = (np.frexp(weights)[0] == 0.5) & (weights >= 1)
    return np.asarray(is_alone & (at.count(keeps) == 1))


def _shared(terms: Terms, stored: Stored, z: Approximation) -> CommonFactor | None:
    """Return the common factors of rows that keep one number of z.

    A b that rounds to 0 is a part of the ideal and not of the computed number: no factor of the
    ideal tells of it.
    """
    if z.shared is None:
        return None
    keeps = _keeps_one(terms, stored.shift) & (stored.shift_off == 0)
    of_entries = np.where(terms.weights != 0, z.shared.by[terms.at.columns], -1)
    by = terms.at.reduced(np.maximum, of_entries, -1.0).astype(int)
    return z.shared._replace(by=np.where(keeps, by, -1))


def largest_sums(W: Any, shift: Floats, z: Approximation, ideal: Ideal) -> Floats:
    """(rows, kinds): upper bounds of W z̃ + b, without a rounding; ∞ where some z_c may be negative.

    A term with w_c < 0 is at most |w_c| E_c, and at most 0 where z̃_c ≥ 0, as it is where
    |z̃_c − z_c| ≤ ρ_c z_c with ρ_c ≤ 1. The terms with w_c > 0 are at most w_c times the lesser of
    `cap` and hi_c + E_c. They also add up to at most Σ w_c a_c + (1 + max ρ_c) Σ w_c z_c. This is a
    form: shares of one head add up to 1 at most.

    A sum with b < 0 rounds by at most 2⁻⁵² of the other terms if it is above 0; `up` covers that.
    """
    at = Entries.of(W)
    weights = np.asarray(at.at(W), dtype=float)
    plus, minus = np.maximum(weights, 0.0), np.maximum(-weights, 0.0)
    forms = [
        ideal.combined((exactly(x), z.forms[c]) for c, x in row if x > 0)
        for row in sparse_rows(np.asarray(W))
    ]
    is_positive = (z.absolute == 0) & (z.relative <= 1)
    rho = at.reduced(np.maximum, np.where(plus[:, None] > 0, z.relative[at.columns], 0.0), 0.0)
    found = up(at.times(plus, z.absolute) + ideal.measured(forms)[2][0] * (1 + rho))
    top = up(np.maximum(z.hi, 0.0) + z.error[0])
    top = top if z.cap is None else np.minimum(top, z.cap)
    found = np.minimum(found, up(at.times(plus, top)))
    found = up(found + at.times(minus, np.where(is_positive, 0.0, z.error[0])))
    found = up(np.maximum(found + shift[:, None], 0.0))
    may_be_negative = np.asarray((z.lo < 0).any(axis=1))[at.columns]
    return np.where((at.count(may_be_negative) > 0)[:, None], np.inf, found)


def _as_powers(listed: Sequence[int | None]) -> Floats:
    """Return exponents of 2 as an array, with −∞ for `None`."""
    return np.array([-np.inf if k is None else k for k in listed], dtype=float)


def _known_multiples(part: Approximation) -> Floats:
    """(coordinates,): `multiples` where they are known; a coordinate that is 0 is of all powers."""
    known = np.full(len(part.forms), -np.inf) if part.multiples is None else part.multiples
    return np.where(part.is_zero, float(ANY_POWER), known)


def exponents(weights: Any) -> Floats:
    """Return the `exponent` of each weight, −∞ for `None`; any shape of float64, else a vector."""
    given = np.asarray(weights)
    if given.dtype == np.float64:
        # x = m 2^(e − 53), m whole. The lowest bit of m is 2ʲ: x is a multiple of 2^(e − 53 + j).
        fractions, e = np.frexp(given)
        m = (fractions * 2.0**53).astype(np.int64)
        j = np.frexp((m & -m).astype(float))[1] - 1
        return np.where(given == 0, float(ANY_POWER), (e - 53 + j).astype(float))
    listed = given.tolist()
    known = {x: exponent(exactly(x)) for x in set(listed)}
    return _as_powers([known[x] for x in listed])


def _where(holds: NDArray[np.bool_], mixed: Mixed, error: Floats) -> Mixed:
    """Return a and ρ where they hold, E and 0 elsewhere, and 0 and 0 where E is 0."""
    a = np.where(error > 0, np.where(holds, mixed.absolute, error), 0.0)
    return Mixed(a, np.where((error > 0) & holds, mixed.relative, 0.0))
