"""Scores of a head: lead of the best score in the ideal, and error bounds of computed scores.

Let s_j be the ideal scores of a query, and s̃_j the computed scores, |s̃_j − s_j| ≤ η. A *best* key
has the largest ideal score. The proof needs a lower bound of the distance from the best score to
the m-th distinct score below it. It knows five cases, with scores before the factor 1/√d_key.

- *even*: every product of query and key is exactly 0. All scores are equal.
- *nearest*: keys are affine in j and j², so s_j = A j − B j² + constant, with a whole vertex
  q = A/(2B). The best key is the admissible position p nearest to q, and at p ± m the score is
  lower by B ((|p − q| + m)² − |p − q|²) ≥ B m².
- *placed*: s_j = R_j + λ j, where R_j is a multiple of ρ, ρ is a multiple of |λ|, and ρ is larger
  than |λ| times the largest difference of positions. Then R_j + λ j = R_k + λ k needs R_j = R_k,
  and so j = k: no two scores are equal. All are multiples of |λ|, but for a common constant. So the
  m-th score below the best is lower by at least m |λ|.
- *coded*: queries and keys are sines and cosines of positions. All scores are known
  (`coded_scores`), and so are their distances.
- *gridded*: scores are multiples of G. A score below the best is lower by at least G.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.model import Mask
from transformist.verify.proof.coded_scores import distances_below_best, have_codes
from transformist.verify.proof.grids import Grid, common_divisor, least
from transformist.verify.proof.ideal import Form
from transformist.verify.proof.rounding_errors import Approximation, RoundingErrors
from transformist.verify.proof.row_functions import MOST_ROWS
from transformist.verify.proof.softmax_orders import SoftmaxOrder
from transformist.verify.proof.upwards import Floats, Unfollowed, compounded, require_terms, up

DISTANCES = 200
"""Number of distances m whose exponentials are added one by one; any number is sound.

Wherever the sum is small enough to be of use, it has converged by the 200th distance.
"""

SLIGHTLY_LESS = 1 - 2**-30
"""Factor of a distance x − y of scores, for its rounding in float64.

x > 0 is a product of at most five numbers (off by 2⁻⁵⁰ x), and y was rounded up by `up` (by at
least 2⁻⁴⁰ y). Where y ≥ x/2 the latter covers the former; elsewhere x − y > x/2, and this factor
takes off 2⁻³¹ x.
"""


def largest_parabola(A: Any, DA: Any, B: Any, b: float, N: int, falls: Any) -> Any:
    """Return a bound of |A j − B j²| for 0 ≤ j ≤ N, from bounds of |A|, D |A| and B, with D B = b.

    A j − B j² is at most B q² = A q/2 with q = A/(2B) = D A/(2b). It is concave in j, and 0 for
    j = 0, so it is at least the lesser of 0 and its value at N. This is at least −B N², and
    −|A| N − B N² where A may be below 0 (`falls`). All may be D times as large, but for D |A|.
    """
    lowest = B * float(N) ** 2 + np.where(falls, A, 0.0) * float(N)
    return up(np.maximum(up(A * DA / (4 * b)), lowest))


@dataclass(frozen=True, eq=False)
class Leads:
    """Lower bounds of the distances of computed scores below that of the best key.

    Attributes:
        selection: `mean`, `one` or `mixture`, as in `Pattern`.
        falls: (distances, kinds of queries): the lower bounds. Where the first is positive,
            later ones are larger: m λ − c grows with m, and so does B m² − c m where c < B.
        keys: the largest number of keys at each distance; 0 where all keys are best.
        tie_error: (kinds,): η among best keys; 0 where their computed scores are equal bit for bit.
        error: error bound of a difference of two scores, for the margin.
        gap: that difference in the ideal, for the margin.

    """

    selection: str
    falls: Floats
    keys: float
    tie_error: Floats
    error: float = 0.0
    gap: float = 0.0


@dataclass(frozen=True, eq=False)
class ScoreErrors:
    """Error bounds of scores, for each kind of query.

    Attributes:
        eta: η.
        of_evaluation: the part of η that is not due to errors of the query.
        tied: True if scores that are equal in the ideal are equal bit for bit.

    """

    eta: Floats
    of_evaluation: Floats
    tied: NDArray[np.bool_]


class Scoring:
    """The scores of one head, from its queries and keys.

    Attributes:
        q, k: queries and keys.
        takes_one: True if the weighting gives all weight to one key.
        mask: the head's mask.
        reads: the coordinates whose products are not always exactly 0.
        root: √d_key.

    """

    def __init__(
        self,
        q: Approximation,
        k: Approximation,
        takes_one: bool,
        where: str,
        sees: NDArray[np.bool_],
        rounding: RoundingErrors,
        order: SoftmaxOrder,
        mask: Mask,
    ) -> None:
        self.q, self.k, self.takes_one, self.where, self.sees = q, k, takes_one, where, sees
        self.mask = mask
        self.rounding, self.order, self.ideal = rounding, order, rounding.ideal
        self.reads = np.flatnonzero(~(q.is_zero | k.is_zero)).tolist()
        self.root = math.sqrt(len(q.forms))
        require_terms(len(self.reads), where, "coordinates in a query")

    def leads(self) -> Leads:
        """Return the leads by the first of the five cases that applies."""
        if not self.reads:
            self._require_unrotated()
            return self._even(np.zeros(self.ideal.kinds))
        return self._nearest() or self._placed() or self._coded() or self._gridded()

    def _require_unrotated(self) -> None:
        """Require that rotations make no scores where queries and keys share no coordinate.

        A rotation mixes coordinates, so there may be a product, unless all queries or all keys are
        0.
        """
        if self.order.angle and not (self.q.is_zero.all() or self.k.is_zero.all()):
            raise Unfollowed(
                self.where, "rotations may make scores of queries and keys that share no coordinate"
            )

    # The five cases

    def _even(self, tie_error: Floats) -> Leads:
        endless = np.full((1, self.ideal.kinds), math.inf)
        return Leads("one" if self.takes_one else "mean", endless, 0.0, tie_error)

    def _nearest(self) -> Leads | None:
        """Leads of scores A j − B j², or `None`.

        If A and B are multiples of 1/D, all bounds are of D times the scores, and divided by the
        largest D at the end.
        """
        ideal, square = self.ideal, self.ideal.known("i^2")
        if square is None or not all(self._is_of_positions(self.k.forms[c]) for c in self.reads):
            return None
        linear, quadratic = (self._coefficients(name) for name in ("i", "i^2"))
        queries = [self.q.forms[c] for c in self.reads]
        A = ideal.combined(zip(linear, queries, strict=True))
        B = ideal.combined((-x, form) for x, form in zip(quadratic, queries, strict=True))
        found = ideal.vertex(A, B)
        if found is None:
            return None
        b, index = float(found[0]), found[1]
        largest = self._largest_parabolas(A, B, b, index)
        others = self.errors(index, largest[index]).of_evaluation
        # With errors ΔA and ΔB of the query, the difference of the scores at j and k = j ± m moves
        # by ΔA (j − k) − ΔB (j² − k²), at most m (|ΔA| + 2N |ΔB|), as j + k ≤ 2N.
        moves = np.array([abs(float(x)) for x in linear])
        moves = moves + 2 * ideal.longest * np.array([abs(float(x)) for x in quadratic])
        moved = up(moves @ self.q.error[index][self.reads])
        m = np.arange(1, DISTANCES + 1)[:, None]
        falls = (b * m**2 - moved * m) / self.root * SLIGHTLY_LESS - up(2 * others)
        if index:
            self.errors(0, largest[0])  # which requires that scores fit the format
        stated = float(up(moved / self.root + 2 * others).max()), b / self.root
        # At each distance m there are two positions, p + m and p − m.
        return Leads("one", falls / ideal.scales[index], 2.0, np.zeros(ideal.kinds), *stated)

    def _largest_parabolas(self, A: Form, B: Form, b: float, index: int) -> Floats:
        """(1 + masks, kinds): bounds of |q · k|, and of D |q · k|, for q · k = A j − B j² + C.

        C is the sum of the constants of the keys, which are affine in j and j², times the queries.
        """
        positions = {self.ideal.known("i"), self.ideal.known("i^2")}
        constants = [
            next((x for n, x in self.k.forms[c].items() if n not in positions), Fraction(0))
            for c in self.reads
        ]
        queries = [self.q.forms[c] for c in self.reads]
        C = self.ideal.combined(zip(constants, queries, strict=True))
        lo, _, sizes = self.ideal.measured([A, B, C])
        of_A, of_B, of_C = np.moveaxis(sizes, 1, 0)
        of_parabola = largest_parabola(of_A, of_A[index], of_B, b, self.ideal.longest, lo[0] < 0)
        return np.asarray(up(of_parabola + of_C))

    def _coefficients(self, name: str) -> list[Fraction]:
        """Coefficients of a function of the position in each coordinate of the keys."""
        number = self.ideal.known(name)
        if number is None:
            return [Fraction(0)] * len(self.reads)
        return [self.k.forms[c].get(number, Fraction(0)) for c in self.reads]

    def _is_of_positions(self, key: Form) -> bool:
        """True if a key is affine in j and j²."""
        positions = self.ideal.known("i"), self.ideal.known("i^2")
        rest = {number: x for number, x in key.items() if number not in positions}
        return not rest or self.ideal.is_constant(rest)

    def _placed(self) -> Leads | None:
        """Leads of scores R_j + λ j, or `None`."""
        ideal, place = self.ideal, self.ideal.known("i")
        pairs = [(self.q.forms[c], self.k.forms[c]) for c in self.reads]
        slopes = zip(self._coefficients("i"), pairs, strict=True)
        slope = ideal.combined((x, q) for x, (q, _) in slopes)
        if not slope or not ideal.is_constant(slope):
            return None
        lam = abs(slope[0])
        grid = self._grid([(q, {n: x for n, x in k.items() if n != place}) for q, k in pairs])
        if grid is None or grid[1] is not None:
            return None
        furthest = ideal.longest - (ideal.bos is None)  # positions are 0 to N with BOS, 1 to N else
        if grid[0] and (grid[0] <= lam * furthest or (grid[0] / lam).denominator != 1):
            return None
        errors, gap = 2 * self.errors().eta, float(lam) / self.root * SLIGHTLY_LESS
        falls = gap * np.arange(1, DISTANCES + 1)[:, None] - errors
        return Leads("one", falls, 1.0, np.zeros(ideal.kinds), float(errors.max()), gap)

    def _coded(self) -> Leads | None:
        """Leads of scores of codes of positions, or `None`."""
        pairs = [(self.q.forms[c], self.k.forms[c]) for c in self.reads]
        ideal, count = self.ideal, min(DISTANCES, self.ideal.most_rows)
        distances = distances_below_best(ideal, pairs, self.mask, count)
        if distances is None:
            return None
        errors = 2 * self.errors().eta
        falls = distances / self.root * SLIGHTLY_LESS - errors
        gap = float(distances.min()) / self.root * SLIGHTLY_LESS
        return Leads("one", falls, 1.0, np.zeros(ideal.kinds), float(errors.max()), gap)

    def exceeds_table(self) -> bool:
        """True if scores of codes are not followed, as the inputs have too many rows."""
        pairs = [(self.q.forms[c], self.k.forms[c]) for c in self.reads]
        return self.ideal.longest > MOST_ROWS and have_codes(self.ideal, pairs)

    def _gridded(self) -> Leads:
        """Leads of scores that are multiples of G or G/D; −∞ if they have no grid."""
        grid = self._grid([(self.q.forms[c], self.k.forms[c]) for c in self.reads])
        found = self.errors()
        ties, rows = np.where(found.tied, 0.0, found.eta), self.ideal.most_rows
        if grid is not None and not grid[0]:  # every key has the same ideal score
            return self._even(ties)
        gap, errors = 0.0, 2 * found.eta
        if grid is not None:
            most = 1 if grid[1] is None else rows
            gap = float(grid[0]) / most / self.root * SLIGHTLY_LESS
        falls = (gap - errors if grid is not None else np.full_like(errors, -math.inf))[None]
        selection = "one" if self.takes_one else "mixture"
        return Leads(selection, falls, rows - 1.0, ties, float(errors.max()), gap)

    def _grid(self, pairs: Sequence[tuple[Form, Form]]) -> Grid:
        """Grid of Σ query · key, without terms that are the same at every key.

        Multiples of a and of b have products that are multiples of a b. A query in multiples of
        a/D is the same for all its keys, and so is D; a key in multiples of b/D has a D of its own.
        """
        g, masks = Fraction(0), set[str]()
        for query, key in pairs:
            if not query or not key or self.ideal.is_constant(key):
                continue
            a, b = self.ideal.grid(query), self.ideal.grid(key)
            if a is None or b is None or b[1] is not None:
                return None
            g = common_divisor(g, a[0] * b[0])
            masks |= {a[1]} if a[1] is not None else set()
        return None if len(masks) > 1 else (g, masks.pop() if masks else None)

    # Errors

    def errors(self, index: int = 0, largest: Floats | None = None) -> ScoreErrors:
        """Return η for each kind of query; with an index of D, bounds of D times the error.

        `largest` has bounds of |q · k| or of D |q · k|, if there are better ones than Σ |q_c k_c|.
        """
        r, reads = self.rounding, self.reads
        scale_of = self.ideal.scales[index]
        # With q̃ = q + Δq and k̃ = k + Δk: |q̃·k̃ − q·k| ≤ |Δq| |k̃| + |q̃| |Δk|.
        mq, mk = self.q.reach[index][reads].T, self.k.reach[0][reads].T
        eq, ek = self.q.error[index][reads].T, self.k.error[0][reads].T
        summed, of_queries, of_keys = up(mq @ mk.T), up(eq @ mk.T), up(mq @ ek.T)
        # c products and c − 1 sums: at most c roundings one after the other. The result is stored,
        # unless kernels keep scores in the accumulator.
        growth = r.growth(len(reads) + self.order.scalings)
        storing = 0.0 if self.order.scores_in_accumulator else r.storing
        size = summed
        if largest is not None:
            size = np.minimum(size, up(largest[:, None] + of_queries + of_keys))
        rounding = growth * summed * (1 + storing) + storing * size
        rounding = rounding + (2 * len(reads) * r.tiny_partial + r.tiny) * scale_of
        powers = least(
            None if x[c] is None or y[c] is None else x[c] + y[c]  # type: ignore[operator]
            for x, y in [(self.q.quanta(self.ideal), self.k.quanta(self.ideal))]
            for c in reads
        )
        if powers is not None and not self.order.scalings:
            # Products of exact numbers that are multiples of one 2ᵏ that fits: nothing rounds.
            inexact = ((eq > 0).astype(float) @ (mk > 0).T.astype(float)) > 0
            inexact |= ((mq > 0).astype(float) @ (ek > 0).T.astype(float)) > 0
            rounding = np.where(r.fits(powers, summed, True) & ~inexact, 0.0, rounding)
        if self.order.angle:
            rounding = rounding + self._rotated(index)
        # Equal products q·k of exact numbers, summed without rounding, give one computed number.
        tied = (rounding == 0) & (of_queries == 0) & (of_keys == 0)
        if not index:
            r.require(up(summed * (1 + growth)), r.a.largest_partial, self.where)
            r.require(up(size + rounding), r.a.largest, self.where)
        apart, stretched = self._divided(
            rounding + of_keys, of_queries, up(size + rounding), powers, scale_of
        )
        eta = up(apart + of_queries * stretched)
        return ScoreErrors(
            np.where(self.sees, eta, 0.0).max(axis=1),
            np.where(self.sees, apart, 0.0).max(axis=1),
            np.asarray(np.where(self.sees, tied, True).all(axis=1)),
        )

    def _rotated(self, index: int) -> Floats:
        """Error of scores by rotations of pairs of coordinates by an angle of up to a.

        Each coordinate of q moves by at most a |q′|, q′ being its partner, beside roundings that
        `SoftmaxOrder.scalings` counts; and so does each of k. So q · k moves by at most
        a Σ |q′||k| + a Σ |q||k′| + a² Σ |q′||k′| ≤ (2a + a²) Σ |q| Σ |k| ≤ 3a Σ |q| Σ |k|. The
        factor 4 covers the rounding of these small terms, which are 2 d_key more in the sum.
        """
        of_queries, of_keys = self.q.reach[index].sum(axis=0), self.k.reach[0].sum(axis=0)
        return np.asarray(up(4 * self.order.angle * np.outer(of_queries, of_keys)))

    def _divided(
        self, error: Floats, of_queries: Floats, summed: Floats, power: int | None, scale_of: float
    ) -> tuple[Floats, float]:
        """Return the error after division by √d_key, and the factor for errors of the query.

        √d_key = 2ᵃ divides exactly. Else d_key is rounded to the format, its root and the quotient
        are rounded: a relative error of each, 1/(1 − unit) for those in a denominator. Products
        are at most `summed` in magnitude.
        """
        r, size = self.rounding, len(self.q.forms)
        unit, root = r.w if self.order.scores_in_accumulator else r.u, math.isqrt(size)
        plain = root * root == size and not root & (root - 1)
        plain &= float(np.asarray(r.a.numbers(r.a.array([size])))[0]) == size
        below = unit / (1 - unit)
        divided = 0.0 if plain else float(compounded(r.per_operation, unit, below, below))
        scale = float(up(1 / math.sqrt(size)))
        apart = up(error * scale * (1 + divided) + divided * summed * scale)
        if size > 1:
            # The quotient underflows unless the grid of the products, divided, is in the format.
            divides = plain and power is not None and 2.0 ** max(power, -1000) / root >= r.tiny
            underflows = (apart + of_queries > 0) | (not divides)
            apart = up(np.where(underflows, apart + r.tiny * scale_of, apart))
        if self.order.scores_in_accumulator:
            # A kernel computes exp2(s c − m c), c = log₂(e)/√d_key: √d_key, log₂ e, their quotient
            # and s c round (4 roundings), and m c for the largest score m as well (4).
            apart = up(apart + 8 * r.w * (summed * scale + apart))
        return apart, float(up(scale * (1 + divided)))

    def bos_is_beaten(self) -> bool:
        """Return True if every symbol has a larger ideal score at its own row than at BOS.

        A symbol then never attends to BOS, if its head takes one best key and its mask admits its
        own row. (Under `strict-future` the first symbol sees BOS alone.)

        The lead Σ_c q_c (k_c(own row) − k_c(BOS)) is bounded from below by the ends of each factor.
        2⁻⁴⁰ of each term covers float64: a difference, a product and fewer than 2¹² sums.
        """
        bos, q, k = self.ideal.bos, self.q, self.k
        if bos is None:
            return False
        lead = np.zeros(bos)
        for c in range(len(q.forms)):
            ends = [
                x * y
                for x in (q.lo[c, :bos], q.hi[c, :bos])
                for y in (k.lo[c, :bos] - k.hi[c, bos], k.hi[c, :bos] - k.lo[c, bos])
            ]
            lead = lead + np.minimum.reduce(ends) - 2**-40 * np.max(np.abs(ends), axis=0)
        return bool((lead > 0).all())
