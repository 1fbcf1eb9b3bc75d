"""Heads: the rows that one attends to in the ideal, and an error bound of its output.

Let s_j be the ideal scores of a query, and s̃_j the computed scores, |s̃_j − s_j| ≤ η. A *best* key
has the largest ideal score. The proof needs a lower bound of the distance from the best score to
the m-th distinct score below it. It knows four cases, with scores before the factor 1/√d_key.

- *even*: every product of query and key is exactly 0. All scores are equal.
- *nearest*: keys are affine in j and j², s_j = A j − B j² + constant, B > 0, q = A/(2B) whole. Then
  s_j = −B (j − q)² + constant. The best key is the admissible position p nearest to q, and at
  p ± m the score is lower by B ((|p − q| + m)² − |p − q|²) ≥ B m². An error of the query moves the
  difference of two scores m apart by at most m (|ΔA| + 2N |ΔB|), as |j² − k²| ≤ 2N |j − k|.
- *placed*: s_j = R_j + λ j, where R_j is a multiple of ρ, ρ is a multiple of |λ|, and ρ is larger
  than |λ| times the largest difference of positions. Then no two scores are equal, and all are
  multiples of |λ|. So the m-th score below the best is lower by at least m |λ|.
- *gridded*: scores are multiples of G. A score below the best is lower by at least G.

Softmax. Let t_j ≥ 0 be the distance of s̃_j below the largest computed score. The computed weight of
key j before normalisation is w_j = e^(−t_j (1 + θ)) (1 + ε) + underflow.

- Stray weight: S is a bound of Σ w_j over the keys that are not best. At least one best key has
  w_j ≥ low, so after normalisation these keys have at most S/low. This moves the mean by at most
  (S/low) · diameter, where the diameter is that of the values.
- Unequal best weights: w_j of a best key is between low = e^(−2η (1 + θ)) (1 − ε) and 1, as two
  computed scores of equal ideal differ by at most 2η. Normalised over the M best keys, each is
  between low/M and 1/(low M), so it differs from 1/M by at most (1/low − 1)/M. The excess of
  those above 1/M is what those below lack, and one of the two groups has at most M/2 keys. So at
  most (1/low − 1)/2 of the weight moves. Where the computed scores are equal, or there is one
  best key, low = 1.
- Sum, quotient, products and their sum round besides (`Evaluation.mean_error`).

Hard attention chooses as the ideal where 2η is below the distance, and where equal ideal scores are
equal bit for bit or there are none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.model import Attention, Mask
from transformist.verify.proof.ideal import (
    MOST_TERMS,
    Floats,
    Form,
    Grid,
    Ideal,
    Pattern,
    Unfollowed,
    common_divisor,
    compounded,
    quantum,
    up,
)
from transformist.verify.proof.orders import Evaluation
from transformist.verify.proof.rounding import Rounding, Values

_TERMS = 200
"""Number of distances whose exponentials are added one by one; each later one is at most the last.

Any number is sound. By the 200th the sum has converged wherever it is small enough to be of use.
"""

_SLIGHTLY_LESS = 1 - 2**-30
"""Factor of a distance of scores, for its rounding in float64.

A distance is x − y, where x > 0 is a product of at most five numbers (off by 2⁻⁵⁰ x) and y was
rounded up by `up` (by at least 2⁻⁴⁰ y). Where y ≥ x/2 the latter covers the former; elsewhere
x − y > x/2, and this factor takes off 2⁻³¹ x.
"""


@dataclass(frozen=True, eq=False)
class Scores:
    """What holds of the scores of a head, for each kind of query.

    Attributes:
        way: `mean`, `one` or `mixture`, as in `Pattern`.
        stray: bound of the stray weight S; infinite where there is no bound.
        tie_error: η among best keys; 0 where their computed scores are equal bit for bit.
        chooses: True if the largest computed scores are those of best keys.
        error: error bound of a difference of two scores, for the margin.
        gap: that difference in the ideal, for the margin.

    """

    way: str
    stray: Floats
    tie_error: Floats
    chooses: NDArray[np.bool_]
    error: float = 0.0
    gap: float = math.inf


class Errors(NamedTuple):
    """Error bounds of scores, for each kind of query.

    Attributes:
        eta: η.
        of_evaluation: the part of η that is not due to errors of the query.
        tied: True if scores that are equal in the ideal are equal bit for bit.

    """

    eta: Floats
    of_evaluation: Floats
    tied: NDArray[np.bool_]


class Attending:
    """One head, on all inputs at once."""

    def __init__(
        self, head: Attention, where: str, rounding: Rounding, evaluation: Evaluation
    ) -> None:
        self.head, self.where, self.rounding, self.evaluation = head, where, rounding, evaluation
        self.ideal: Ideal = rounding.ideal
        self.sees, self.empty = seen(head.mask, self.ideal.kinds, self.ideal.bos)

    def output(self, z: Values) -> tuple[Values, Scores]:
        """Return Σ α_j v_j, before W_O, with its error bounds; and the scores."""
        head, rounding = self.head, self.rounding
        q = rounding.affine(head.W_Q, head.b_Q, z, f"{self.where} queries").values
        k = rounding.affine(head.W_K, head.b_K, z, f"{self.where} keys").values
        v = rounding.affine(head.W_V, head.b_V, z, f"{self.where} values").values
        scores = self.scores(q, k)
        sees = self.sees
        if scores.way == "one" and self.bos_is_beaten(q, k):
            sees = sees.copy()  # the single best key of a symbol is never BOS
            sees[: self.ideal.bos, self.ideal.bos] = False
        way = "one" if self.head.weighting.takes_one else scores.way
        if not scores.chooses.all():
            way = "mixture"
        pattern = Pattern(self.where, head.mask, way, sees, self.empty)
        return self.weighted(pattern, v, scores), scores

    # Scores

    def scores(self, q: Values, k: Values) -> Scores:
        """Bounds of the scores, by the first of the four cases that applies."""
        kinds = self.ideal.kinds
        reads = np.flatnonzero(~(q.is_zero() | k.is_zero())).tolist()
        none = np.zeros(kinds)
        self._require_rows(len(q.forms))
        takes_one = self.head.weighting.takes_one
        if not len(reads):
            return Scores("one" if takes_one else "mean", none, none, np.full(kinds, True))
        pairs = [(q.forms[c], k.forms[c]) for c in reads]
        root = math.sqrt(len(q.forms))
        return (
            self._nearest(q, k, reads, root)
            or self._placed(pairs, self._errors(q, k, reads), root)
            or self._gridded(pairs, self._errors(q, k, reads), root, takes_one)
        )

    def _errors(self, q: Values, k: Values, reads: Any, which: int = 0) -> Errors:
        """η for each kind of query; with `which` > 0 bounds of D times the error.

        With q̃ = q + Δq, k̃ = k + Δk, |q̃| at most `reach`: |q̃·k̃ − q·k| ≤ |Δq|·|k̃| + |q̃|·|Δk|. A dot
        product of c coordinates has c products and c − 1 sums, so at most c roundings one after the
        other (γ), and is stored (`storing`), unless kernels keep scores in the accumulator.
        """
        if len(reads) > MOST_TERMS:
            raise Unfollowed(self.where, f"queries have more than {MOST_TERMS} coordinates")
        r, u, e = self.rounding, self.rounding.u, self.evaluation
        scale_of = self.ideal.scales[which]
        mq, mk = q.reach[which][reads].T, k.reach[0][reads].T
        eq, ek = q.error[which][reads].T, k.error[0][reads].T
        summed = up(mq @ mk.T)
        of_queries, of_keys = up(eq @ mk.T), up(mq @ ek.T)
        growth = r.growth(len(reads))
        storing = 0.0 if e.scores_in_accumulator else r.storing
        rounding = growth * summed * (1 + storing) + storing * summed
        rounding = rounding + (2 * len(reads) * r.tiny_partial + r.tiny) * scale_of
        quanta_q, quanta_k = ([quantum(self.ideal.grid(x.forms[c])) for c in reads] for x in (q, k))
        least = None
        if None not in quanta_q and None not in quanta_k:
            least = min(a + b for a, b in zip(quanta_q, quanta_k, strict=True))  # type: ignore[operator]
            exact = r.fits(least, summed, r.a.precision, r.tiny)
            exact &= r.fits(least, summed, r.partial_precision, r.tiny_partial)
            inexact = ((eq > 0).astype(float) @ (mk > 0).T.astype(float)) > 0
            inexact |= ((mq > 0).astype(float) @ (ek > 0).T.astype(float)) > 0
            rounding = np.where(exact & ~inexact, 0.0, rounding)
        # Equal products q·k of exact numbers, summed without rounding, give one computed number.
        tied = (rounding == 0) & (of_queries == 0) & (of_keys == 0)
        if not which:
            r.require(summed * (1 + growth), min(r.a.largest, r.a.largest_partial), self.where)
        size = len(q.forms)
        root, unit = math.isqrt(size), r.w if e.scores_in_accumulator else u
        # Division by √d_key = 2ᵃ is exact. Else d_key is rounded to the format, its root and the
        # quotient are rounded: a relative error of each (1/(1 − unit) for those in a denominator).
        plain = root * root == size and not root & (root - 1)
        plain &= float(np.asarray(r.a.numbers(r.a.array([size])))[0]) == size
        below = unit / (1 - unit)
        divided = 0.0 if plain else float(compounded(r.per_operation, unit, below, below))
        scale = up(1 / math.sqrt(size))
        apart = up((rounding + of_keys) * scale * (1 + divided) + divided * summed * scale)
        if size > 1:
            # The quotient underflows unless the grid of the products, divided, is in the format.
            divides = plain and least is not None and 2.0 ** max(least, -1000) / root >= r.tiny
            apart = np.where(
                (apart + of_queries > 0) | (not divides), apart + r.tiny * scale_of, apart
            )
        if e.scores_in_accumulator:
            # A kernel computes exp2(s c − m c), c = log₂(e)/√d_key: √d_key, log₂ e, their quotient
            # and s c round (4 roundings), and m c for the largest score m as well (4).
            apart = up(apart + 8 * r.w * (summed * scale + apart))
        eta = up(apart + of_queries * scale * (1 + divided))
        return Errors(
            np.where(self.sees, eta, 0.0).max(axis=1),
            np.where(self.sees, apart, 0.0).max(axis=1),
            np.asarray(np.where(self.sees, tied, True).all(axis=1)),
        )

    def _nearest(self, q: Values, k: Values, reads: Any, root: float) -> Scores | None:
        """Scores A j − B j², or `None`.

        The grid of A being a multiple of 2B makes q = A/(2B) whole. If A and B are multiples of
        1/D, all bounds are of D times the scores, and are divided by the largest D at the end.
        """
        ideal = self.ideal
        place, square = ideal.known("i"), ideal.known("i^2")
        if square is None:
            return None
        of_place, of_square = [], []
        for c in reads:
            if not self._is_of_places(k.forms[c], place, square):
                return None
            of_place.append(
                k.forms[c].get(place, Fraction(0)) if place is not None else Fraction(0)
            )
            of_square.append(k.forms[c].get(square, Fraction(0)))
        queries = [q.forms[c] for c in reads]
        A = ideal.combined(zip(of_place, queries, strict=True))
        B = ideal.combined((-x, form) for x, form in zip(of_square, queries, strict=True))
        grid = ideal.grid(A)
        scale, divisor = ideal.unit(B)
        if scale is None or grid is None or (grid[0] / (2 * scale)).denominator != 1:
            return None
        if grid[0] and grid[1] is not None and grid[1] != divisor:
            return None
        if divisor is not None and divisor not in ideal.masks:
            return None
        which = 0 if divisor is None else 1 + ideal.masks.index(divisor)
        most = 1.0 if divisor is None else float(ideal.most_rows)
        weights = np.array([abs(float(a)) for a in of_place])
        squares = np.array([abs(float(b)) for b in of_square])
        moved = up((weights + 2 * ideal.longest * squares) @ q.error[which][reads])
        b, others = float(scale), self._errors(q, k, reads, which).of_evaluation
        m = np.arange(1, _TERMS + 1)[:, None]
        falls = (b * m**2 - moved * m) / root * _SLIGHTLY_LESS - 2 * others
        if which:
            self._errors(q, k, reads)  # requires that scores fit the format
        stated = (up(moved / root + 2 * others), b / root)
        return self._softened("one", falls / most, 2.0, others, stated)

    def _is_of_places(self, form: Form, place: int | None, square: int) -> bool:
        rest = {n: x for n, x in form.items() if n not in (place, square)}
        return not rest or self.ideal.is_constant(rest)

    def _placed(self, pairs: list[tuple[Form, Form]], errors: Errors, root: float) -> Scores | None:
        """Scores R_j + λ j, or `None`."""
        ideal = self.ideal
        place = ideal.known("i")
        if place is None:
            return None
        by_place = ideal.combined((key.get(place, Fraction(0)), query) for query, key in pairs)
        if not by_place or not ideal.is_constant(by_place):
            return None
        factor = abs(by_place[0])
        rests = [(query, {n: x for n, x in key.items() if n != place}) for query, key in pairs]
        grid = self._products(rests)
        if grid is None or grid[1] is not None:
            return None
        span = ideal.longest - (ideal.bos is None)
        if grid[0] and (grid[0] <= factor * span or (grid[0] / factor).denominator != 1):
            return None
        m = np.arange(1, _TERMS + 1)[:, None]
        gap = float(factor) / root * _SLIGHTLY_LESS
        return self._softened(
            "one", gap * m - 2 * errors.eta, 1.0, errors.eta, (2 * errors.eta, gap)
        )

    def _products(self, pairs: Iterable[tuple[Form, Form]]) -> Grid:
        """Grid of Σ query · key, without terms that are the same at every key.

        Multiples of a and of b have products that are multiples of a b. A query in multiples of
        a/D is the same for all its keys, and so is D; a key in multiples of b/D has a D of its own.
        """
        g, counts = Fraction(0), set[str]()
        for query, key in pairs:
            if not query or self.ideal.is_constant(key) or not key:
                continue
            a, b = self.ideal.grid(query), self.ideal.grid(key)
            if a is None or b is None or b[1] is not None:
                return None
            g = common_divisor(g, a[0] * b[0])
            counts |= {a[1]} if a[1] is not None else set()
        return None if len(counts) > 1 else (g, counts.pop() if counts else None)

    def _gridded(
        self,
        pairs: list[tuple[Form, Form]],
        errors: Errors,
        root: float,
        takes_one: bool,
    ) -> Scores:
        """Scores that are multiples of G; all equal if G = 0; without bounds if there is no G."""
        grid, eta = self._products(pairs), errors.eta
        tie_error = np.where(errors.tied, 0.0, eta)
        way = "one" if takes_one else "mixture"
        if grid is None:
            endless = np.full(self.ideal.kinds, math.inf)
            never = np.full(self.ideal.kinds, False)
            return Scores(way, endless, tie_error, never, float(2 * eta.max()), 0.0)
        if not grid[0]:  # every key has the same ideal score
            falls = np.full((1, self.ideal.kinds), math.inf)
            return self._softened(
                "mean" if not takes_one else "one", falls, 0.0, tie_error, (0, 0), True
            )
        rows = self.ideal.most_rows
        gap = float(grid[0]) / (1 if grid[1] is None else rows) / root * _SLIGHTLY_LESS
        falls = np.broadcast_to(gap - 2 * eta, (1, self.ideal.kinds))
        return self._softened(way, falls, rows - 1.0, tie_error, (2 * eta, gap), True)

    def _softened(
        self,
        way: str,
        falls: Floats,
        each: float,
        tie_error: Floats,
        stated: tuple[Any, Any],
        ties: bool = False,
    ) -> Scores:
        """Bound the stray weight by the distances of the first, second, … score below the best.

        Args:
            way: as in `Scores`.
            falls: (distances, kinds): lower bounds of computed distances. If the first is positive,
                later ones are larger: m λ − c grows with m, and so does B m² − c m where c < B.
            each: the number of keys at each distance, at most.
            tie_error: as in `Scores`.
            stated: error and gap, for the margin.
            ties: True if several keys may be best.

        """
        # θ: the distance s̃_j − max is one stored operation, off by `per_operation` of itself. In
        # blocks it is a sum of two or more differences of one sign, each off by as much of itself,
        # times a rounded log₂ e. Both numbers are doubled: for terms of second order.
        r = self.rounding
        epsilon = self.evaluation.weight_error(r, self.ideal.most_rows)
        theta = (4 if self.evaluation.rescales else 2) * r.per_operation
        # A distance that overflows is replaced by the largest number of the format, or by infinity.
        # exp(−700) > 10⁻³⁰⁵ is still a normal float64.
        lowest = min(700.0, r.a.largest)
        terms = np.exp(-np.minimum(falls * (1 - theta), lowest))
        stray = each * terms.sum(axis=0)
        if len(falls) > 1:
            stray = stray + each * self.ideal.most_rows * terms[-1]
        stray = up(stray * (1 + epsilon) + 2 * r.tiny * self.ideal.most_rows)
        chooses = falls.min(axis=0) > 0
        if ties and self.head.weighting.is_hard:
            chooses = chooses & (tie_error == 0)
        stray = np.where(chooses, stray if each else 0.0, math.inf)
        worst, gap = float(np.max(stated[0])), float(np.max(stated[1]))
        return Scores(way, stray, tie_error * ties, chooses, worst, gap)

    def _require_rows(self, d_key: int) -> None:
        """Require that d_key, and the sum of a row's exponentials, do not overflow.

        An exponential of a number ≤ 0 is at most 1, or 1 + 4u computed (2 units in the last place),
        and is stored: at most 1 + 8u.
        """
        r, rows = self.rounding, self.ideal.most_rows
        together_at_most = rows * (1 + float(r.growth(rows + 1))) * (1 + 8 * r.u)
        r.require(max(together_at_most, d_key), r.a.largest, f"{self.where} weights")

    def bos_is_beaten(self, q: Values, k: Values) -> bool:
        """True if every symbol has a larger ideal score at its own row than at BOS.

        The lead Σ_c q_c (k_c(own row) − k_c(BOS)) is bounded from below by the ends of each factor.
        2⁻⁴⁰ of each term covers float64: a difference, a product and fewer than 2¹² sums.
        """
        bos = self.ideal.bos
        if bos is None or self.head.mask not in ("none", "future"):
            return False
        lead = np.zeros(bos)
        for c in range(len(q.forms)):
            ends = [
                x * y
                for x in (q.lo[c, :bos], q.hi[c, :bos])
                for y in (k.lo[c, :bos] - k.hi[c, bos], k.hi[c, :bos] - k.lo[c, bos])
            ]
            lead = lead + np.minimum.reduce(ends)
            lead = lead - 2**-40 * np.max(np.abs(ends), axis=0)
        return bool((lead > 0).all())

    # Values

    def weighted(self, head: Pattern, v: Values, scores: Scores) -> Values:
        """Return Σ α_j v_j with its error bounds.

        The error is at most that of the values (weights add up to 1), plus the weight that is
        misplaced times the diameter of the values (`_softmax`), plus rounding and underflow.
        """
        ideal, r = self.ideal, self.rounding
        forms = [ideal.attended(head, form) for form in v.forms]
        lo, hi, size = r.measured(forms)
        sees = self.sees  # not head.sees: every admissible row has some weight
        reach = _over(sees, v.reach[0])
        given = _over(sees, v.error[0])
        diameter = np.maximum(_over(sees, v.hi) + _over(sees, -v.lo), 0)
        if self.head.weighting.is_hard and head.way == "one":
            spread, low, growth, tiny = np.zeros(ideal.kinds), 1.0, 0.0, 0.0  # one weight, of 1
        else:
            spread, low, growth, tiny = self._softmax(scores)
        # Without a bound the ideal and the computed mean both lie between the ends of the values.
        moved = up(np.where(np.isfinite(spread), spread, 1.0) * up(diameter))
        lost = tiny * (reach + 1)
        error = up(given + moved + growth * reach + lost)
        share = compounded(_over(sees, v.relative), growth)
        apart = up(_over(sees, v.absolute) * (1 + growth) + moved * (1 + share) + lost)
        errors = ideal.scales[:, None, None] * error
        if head.way == "mean" and head.mask in ideal.masks:
            # D times a mean is a sum: Σ (error + γ |value|), where a weight is at most 1/(low D).
            which = 1 + ideal.masks.index(head.mask)
            each = ideal.summed(sees, (v.error[0] + growth * v.reach[0])[:, None, :])
            summed = up(each / low + ideal.most_rows * (moved + lost))
            errors[which] = np.fmin(errors[which], summed)
        is_one = self.head.weighting.is_hard or not self.evaluation.scores_in_accumulator
        if ideal.bos is not None and head.mask.is_causal and is_one:
            # BOS is the first row: its only key is BOS, with weight exactly 1, or it has no key.
            # A kernel that rounds s c and m c apart (`_errors`) gives even the largest score m a
            # weight that is rounded, and so is not 1.
            bos, alone = ideal.bos, float(head.mask.admits_itself)
            errors[:, :, bos] = ideal.scales[:, None] * v.error[0][:, bos] * alone
            apart[:, bos], share[:, bos] = v.absolute[:, bos] * alone, v.relative[:, bos] * alone
        errors[:, :, ~sees.any(axis=1)] = 0.0
        r.require(size[0] + errors[0], r.a.largest, f"{self.where} values")
        # Partial sums: weights add up to 1; before the division each of them may be 1.
        together = ideal.most_rows if self.evaluation.rescales else 1
        r.require(together * up(reach * (1 + growth)), r.a.largest_partial, f"{self.where} values")
        # A relative bound needs values of one sign: then Σ α_j ρ |v_j| = ρ |Σ α_j v_j|.
        signed = (_over(sees, -v.lo) <= 0) | (_over(sees, v.hi) <= 0)
        signed &= errors[0] > 0
        apart = np.where(signed, apart, errors[0])
        return Values(forms, lo, hi, size, errors, apart, np.where(signed, share, 0.0))

    def _softmax(self, scores: Scores) -> tuple[Floats, float, float, float]:
        """Error of a mean relative to the diameter of the values; low; γ; error by underflow."""
        r, e = self.rounding, self.evaluation
        low, stray = np.ones(self.ideal.kinds), np.where(scores.chooses, 0.0, math.inf)
        if not self.head.weighting.is_hard:
            bent = np.exp(-2 * np.minimum(scores.tie_error * (1 + 2 * r.per_operation), 300))
            bent = bent * (1 - min(e.weight_error(r, self.ideal.most_rows), 1.0)) * (1 - 2.0**-40)
            low = np.where(scores.tie_error > 0, bent, 1.0)
            stray = np.where(scores.chooses, scores.stray, math.inf)
        spread = up(stray / low + (1 / low - 1) / 2)
        even = not (scores.tie_error.any() or stray.any())
        return spread, float(low.min()), *e.mean_error(r, self.ideal.most_rows, even)


def _over(sees: NDArray[np.bool_], x: Floats) -> Floats:
    """(coordinates, query kinds): largest x at an admissible kind of key; 0 if there is none."""
    found = np.where(sees[None], x[:, None, :], -np.inf).max(axis=2)
    return np.where(sees.any(axis=1), found, 0.0)


def seen(mask: Mask, kinds: int, bos: int | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the admissible kinds of keys for each kind of query, and who may have no key."""
    sees = np.full((kinds, kinds), True)
    empty = np.full(kinds, False)
    if not mask.looks_back and bos is not None:
        sees[:, bos] = False
        sees[bos, bos] = mask.admits_itself
    if mask.is_causal and bos is not None:
        sees[bos] = False
        sees[bos, bos] = mask.admits_itself
        empty[bos] = mask.is_strict
    if mask == "strict-future" and bos is None:
        empty[:] = True
    if mask == "strict-past":
        empty[:] = True
    return sees, empty
