"""Heads: error bounds of attention weights, and of the weighted means of values.

Let t_j ≥ 0 be the distance of a computed score below the largest computed score. The computed
weight of key j before normalisation is w_j = e^(−t_j (1 + θ)) (1 + ε) + underflow
(`SoftmaxOrder`). A *best* key has the largest ideal score; a computed score is off by at most η.

- Stray weight: S is a bound of Σ w_j over the keys that are not best. At least one best key has
  w_j ≥ low, so after normalisation these keys have at most S/low. This moves the mean by at most
  (S/low) · diameter, where the diameter is that of the values.
- Unequal best weights: w_j of a best key is between low = e^(−2η (1 + θ)) (1 − ε) and 1, as two
  computed scores of equal ideal differ by at most 2η. Normalised over the M best keys, each is
  between low/M and 1/(low M), so it differs from 1/M by at most (1/low − 1)/M. The excess of
  those above 1/M is what those below lack, and one of the two groups has at most M/2 keys. So at
  most (1/low − 1)/2 of the weight moves. Where the computed scores are equal, or there is one
  best key, low = 1.
- The sum of the weights, the quotients, the products and their sum also round
  (`SoftmaxOrder.mean_error`).
- Equal weights: where every key has the same computed weight ω, and the values are exact multiples
  of a power of two, the sum Σ ω v_j does not round, so it is ω Σ v_j. The error is relative to the
  mean: a mean of 0 is exactly 0, and the sign of every other is right (`equally_weighted`).

Hard attention chooses the keys of the ideal if 2η is below the distance to the next score, and if
either there is one best key or the computed scores of all best keys are equal bit for bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.model import Attention, Mask
from transformist.verify.proof.ideal import Pattern, Views
from transformist.verify.proof.rounding_errors import (
    MOST_JOINT,
    Approximation,
    CommonFactor,
    Mixed,
    RoundingErrors,
)
from transformist.verify.proof.row_functions import MOST_ROWS
from transformist.verify.proof.scoring import Leads, Scoring
from transformist.verify.proof.slack import Ledger, Margin
from transformist.verify.proof.softmax_orders import EqualWeight, SoftmaxOrder
from transformist.verify.proof.upwards import (
    ROOM,
    Floats,
    Unfollowed,
    compounded,
    magnitudes,
    up,
)

_MASKS = ("none", "future", "strict-future", "past", "strict-past")
"""Masks, which number the factors that means have in common (`CommonFactor`)."""


class Projections(NamedTuple):
    """Queries, keys and values of a head."""

    queries: Approximation
    keys: Approximation
    values: Approximation


class Choice(NamedTuple):
    """Distance of the computed weights from those of the ideal, for each kind of query.

    Attributes:
        chooses: True if the largest computed scores are those of best keys.
        stray: S; infinite where there is no bound.
        low: the least weight of a best key before normalisation.

    """

    chooses: NDArray[np.bool_]
    stray: Floats
    low: Floats


class Mean(NamedTuple):
    """Errors of a mean.

    Attributes:
        moved: (kinds,): the weight that is misplaced; infinite where there is no bound.
        low: the least weight of a best key before normalisation, over all kinds of queries.
        growth: γ of `SoftmaxOrder.mean_error`.
        tiny: the error by underflow.
        of_largest: the error in relation to the largest magnitude of a value.
        equal: the weight of every key, if all have the same; else `None`.
        beside_one: (kinds,): if one key has the weight 1 exactly, a bound of the other weights,
            and of the rounding of the sum in relation to the largest value; else infinite.

    """

    moved: Floats
    low: float
    growth: float
    tiny: float
    of_largest: float
    equal: EqualWeight | None = None
    beside_one: Floats | None = None


class Attending:
    """One head, on all inputs at once.

    Attributes:
        leads: of the best scores, once `output` has been called.

    """

    leads: Leads

    def __init__(
        self, head: Attention, where: str, rounding: RoundingErrors, order: SoftmaxOrder
    ) -> None:
        self.head, self.where, self.rounding, self.order = head, where, rounding, order
        self.ideal = rounding.ideal
        self.sees, self.empty = seen(head.mask, self.ideal.kinds, self.ideal.bos)
        self.views = Views.of(self.sees)

    def output(self, projections: Projections, ledger: Ledger) -> Approximation:
        """Return Σ α_j v_j, before W_O, with its error bounds."""
        head, rounding, takes_one = self.head, self.rounding, self.head.weighting.takes_one
        q, k, v = projections
        self._require_rows(len(q.forms))
        given = q, k, takes_one, self.where, self.sees, rounding, self.order, head.mask
        scoring = Scoring(*given)
        leads = self.leads = scoring.leads()
        choice = self.choice(leads)
        if leads.gap + leads.error > 0:
            what = "the error of a difference of scores"
            if not choice.chooses.all() and scoring.exceeds_table():
                what += f" of codes, whose table has at most {MOST_ROWS:,} rows,"
            margin = Margin(self.where, what, leads.error, leads.gap)
            (ledger.kept if choice.chooses.all() else ledger.lost).append(margin)
        sees = self.sees
        sees_both = head.mask.looks_back and head.mask.admits_itself
        if leads.selection == "one" and sees_both and scoring.bos_is_beaten():
            sees = sees.copy()  # the single best key of a symbol is never BOS
            sees[: self.ideal.bos, self.ideal.bos] = False
        selection = "one" if takes_one else leads.selection
        if not choice.chooses.all():
            selection = "mixture"
        pattern = Pattern(self.where, head.mask, selection, sees, self.empty)
        mean = self.mean(choice, pattern.selection)
        pieces = [
            (rows, self.weighted(pattern, v.taken(rows), mean))
            for rows in rounding.blocks(np.arange(len(v.forms)))
        ]
        return Approximation.assembled(len(v.forms), pieces, self.ideal)

    def _require_rows(self, d_key: int) -> None:
        """Require that d_key, and the sum of a row's exponentials, do not overflow.

        An exponential of a number ≤ 0 is at most 1, or 1 + 4u computed (2 units in the last place),
        and is stored: at most 1 + 8u.
        """
        r, rows = self.rounding, self.ideal.most_rows
        together_at_most = up(rows * (1 + r.growth(rows + 1)) * (1 + 8 * r.u))
        r.require(max(float(together_at_most), d_key), r.a.largest, f"{self.where} weights")

    # Weights

    def choice(self, leads: Leads) -> Choice:
        """Return the stray weight S and the least weight of a best key."""
        r, rows, ties = self.rounding, self.ideal.most_rows, leads.tie_error
        chooses = leads.falls.min(axis=0) > 0
        if self.head.weighting.is_hard:  # ties must be ties bit for bit; then all weights are equal
            chooses = chooses & (ties == 0)
            return Choice(chooses, np.where(chooses, 0.0, math.inf), np.ones(len(ties)))
        epsilon, theta = self.order.weight_error(r, rows), self.order.distance_error(r)
        # A distance that overflows is replaced by the largest number of the format, or by infinity.
        # exp(−700) > 10⁻³⁰⁵ is still a normal float64.
        lowest = min(700.0, r.a.largest)
        terms = np.exp(-np.minimum(np.where(chooses, leads.falls, 0.0) * (1 - theta), lowest))
        # Keys beyond the last distance are at most `rows` at each of two sides, each with at most
        # the last term. A weight underflows by up to 2 `tiny`, 2 units in the last place.
        beyond = rows * terms[-1] if len(terms) > 1 else 0.0
        stray = up(leads.keys * (terms.sum(axis=0) + beyond) * (1 + epsilon) + 2 * r.tiny * rows)
        stray = np.where(chooses, stray if leads.keys else 0.0, math.inf)
        # low: 1 − ROOM covers the float64 operations.
        bent = np.exp(-2 * np.minimum(ties * (1 + theta), 300)) * (1 - min(epsilon, 1.0))
        return Choice(chooses, stray, np.where(ties > 0, bent * (1 - ROOM), 1.0))

    def mean(self, choice: Choice, selection: str) -> Mean:
        """Return the errors of a mean with these weights."""
        if self.head.weighting.is_hard and selection == "one":  # one weight, of exactly 1
            return Mean(np.zeros(self.ideal.kinds), 1.0, 0.0, 0.0, 0.0)
        # 1/low − 1 is a difference: the factor 1 − ROOM in low < 1 covers its rounding.
        moved = up(choice.stray / choice.low + (1 / choice.low - 1) / 2)
        low = float(choice.low.min())
        even = low == 1.0 and not choice.stray.any()
        r, rows = self.rounding, self.ideal.most_rows
        equal = self.order.equal_weight(r, rows) if even else None
        beside = self._beside_one(choice.stray) if selection == "one" and low == 1.0 else None
        errors = *self.order.mean_error(r, rows, even), self.order.error_of_largest(rows)
        return Mean(moved, low, *errors, equal, beside)

    def _beside_one(self, stray: Floats) -> Floats | None:
        """Return a bound of what the other keys add to a single best key of weight 1.

        The best key has w = exp(0) = 1. The sum of all w_j is computed as 1 + t, and t ≥ 0, as
        rounding is monotone and 1 is a number of the format. It is off by γ (1 + S) at most, so
        t ≤ S (1 + γ) + γ. It is stored as 1 if t < u, as the next number above 1 is 1 + 2u. (A
        format that is its own accumulator rounds 1 + y to 1 at every addition with y < u, so
        S (1 + γ) < u is enough.) Then every weight is divided by 1: the best key has the
        weight 1, and the others add up to S at most. The sum of the products is the value ṽ of the
        best key plus T, |T| ≤ (S + γ (1 + S)) max |ṽ_j|. It is stored as the nearest number, and ṽ
        is a number of the format, so the result is at most 2 |T| from ṽ. What is flushed to 0
        counts as underflow.

        Kernels that normalise last, and evaluations with errors of their own, are not of this form.
        """
        r, rows = self.rounding, self.ideal.most_rows
        if self.order.rescales or self.order.is_approximate or not r.are_stored:
            return None
        growth = r.growth(rows + 1)
        is_one = up(up(stray * (1 + growth)) + growth * r.narrow) < r.u
        return np.where(is_one, up(2 * (stray + up(growth * (1 + stray)))), np.inf)

    # Values

    def weighted(self, pattern: Pattern, v: Approximation, mean: Mean) -> Approximation:
        """Return Σ α_j v_j with its error bounds.

        With computed weights w̃_j that add up to 1 and then round by γ,

            |Σ w̃_j (1 + γ) ṽ_j − Σ α_j v_j| ≤ Σ w̃_j (|ṽ_j − v_j| + γ |ṽ_j|) + |Σ (w̃_j − α_j) v_j|.

        The last sum is at most the misplaced weight times the diameter of the values.
        """
        r = self.rounding
        moved, low, growth, tiny, of_largest, equal, beside_one = mean
        forms = self.ideal.attended(pattern, v.forms)
        lo, hi, size = r.ideal.measured(forms)
        views = self.views  # not pattern.views: every admissible row has some weight
        # The largest of each bound over the keys. `below` is the largest of minus the lower end.
        bounds = v.reach[0], v.error[0], v.absolute, v.relative, v.hi, -v.lo
        reach, given, own, ratio, above, below = _over(views, np.stack(bounds))
        # The difference of the ends rounds by 2⁻⁵³ of itself, which `up` covers.
        diameter = up(np.maximum(above + below, 0))
        # Without a bound both means lie between the ends of the values: moved = 1.
        moved = up(np.where(np.isfinite(moved), moved, 1.0) * diameter)
        # An error in relation to the largest value is not one in relation to the mean, where the
        # weight of that value is small.
        lost = up(tiny * (reach + 1) + of_largest * reach)
        error = up(given + moved + growth * reach + lost)
        # Values of one sign: Σ w̃_j (a + ρ |v_j|) ≤ a + ρ (|Σ α_j v_j| + moved).
        relative = compounded(ratio, growth)
        absolute = up(own * (1 + growth) + moved * (1 + relative) + lost)
        errors = self.ideal.scales[:, None, None] * error
        index = self.ideal.index_of(pattern.mask)
        if pattern.selection == "mean" and index is not None:
            # D times a mean is a sum, as a weight is at most 1/(low D).
            each = self.ideal.summed(views, v.error[0] + growth * v.reach[0])
            summed = up(each / low + self.ideal.most_rows * (moved + lost))
            errors[index] = np.minimum(errors[index], summed)
        if self._bos_is_alone():
            alone = float(self.head.mask.admits_itself)
            bos = self.ideal.bos
            errors[:, :, bos] = self.ideal.scales[:, None] * v.error[0][:, bos] * alone
            absolute[:, bos] = v.absolute[:, bos] * alone
            relative[:, bos] = v.relative[:, bos] * alone
        errors[:, :, views.nothing] = 0.0
        r.require(size[0] + errors[0], r.a.largest, f"{self.where} values")
        # Partial sums: weights add up to 1; before the division each of them may be 1.
        together = self.ideal.most_rows if self.order.rescales else 1
        r.require(together * up(reach * (1 + growth)), r.a.largest_partial, f"{self.where} values")
        has_one_sign = ((below <= 0) | (above <= 0)) & (errors[0] > 0)
        absolute = np.where(has_one_sign, absolute, errors[0])
        relative = np.where(has_one_sign, relative, 0.0)
        if equal is not None:
            of_sum = self.equally_weighted(v, reach, equal)
            of_sizes = up(
                self.ideal.scales[:, None, None] * of_sum.absolute + of_sum.relative * size
            )
            errors = np.minimum(errors, of_sizes)
            holds = (errors[0] > 0) & np.isfinite(of_sum.relative)
            absolute = np.where(holds, of_sum.absolute, absolute)
            relative = np.where(holds, of_sum.relative, relative)
        if beside_one is not None:
            of_one = up(beside_one * reach + lost)
            alone = up(self.ideal.scales[:, None, None] * (given + of_one))
            is_better = alone[0] < errors[0]
            errors = np.minimum(errors, alone)
            absolute = np.where(is_better, up(own + of_one), absolute)
            relative = np.where(is_better, ratio, relative)
        # Products with the one weight are multiples of the product of both powers.
        multiples, cap, shared = None, None, None
        if equal is not None:
            multiples = None if v.multiples is None else v.multiples + equal.quantum
            largest = _over(views, magnitudes(v.lo, v.hi))
            cap = self._cap(np.isfinite(of_sum.relative), largest)
            if pattern.selection == "mean":
                shared = self._shared(of_sum, equal)
        return Approximation(
            forms,
            lo,
            hi,
            size,
            errors,
            absolute,
            relative,
            multiples=multiples,
            cap=cap,
            shared=shared,
        )

    def _shared(self, of_sum: Mixed, equal: EqualWeight) -> CommonFactor:
        """Return the factor ω D = 1 + δ of means that are ω Σ v_j, stored (`equally_weighted`).

        D is the number of all admissible rows, and ω follows from D: all means of one mask and kind
        of weighting have one δ at a row. (The best keys of two heads may differ in number.) The sum
        ω Σ v_j is exact, and storing it costs ε, |ε| ≤ `storing`: without underflow, as `absolute`
        is 0.
        """
        r, head = self.rounding, self.head
        holds = (np.isfinite(of_sum.relative) & (of_sum.absolute == 0)).all(axis=1)
        number = 2 * _MASKS.index(str(head.mask)) + head.weighting.is_hard
        own = float(up((1 + equal.error) * r.storing))
        return CommonFactor(np.where(holds, number, -1), equal.error, own)

    def _cap(self, is_sum: NDArray[np.bool_], largest: Floats) -> Floats | None:
        """Return 2ᵏ, which a mean of values of magnitudes up to 2ᵏ is not above; else infinity.

        Where Σ ω v_j does not round (`equally_weighted`) it is at most ω D 2ᵏ. Rounding to the
        nearest is off by at most u/(1 + u) of the exact number. So ω D ≤ 1 + u/(1 + u) < 1 + u, if
        D is a number of the format, and the sum is nearer to 2ᵏ than to the next number above it,
        2ᵏ (1 + 2u), if it is above 2ᵏ. If the quotient was rounded in an accumulator first, then
        ω D ≤ (1 + w) (1 + u/(1 + u)) < 1 + u for w ≤ u²/4.
        """
        r = self.rounding
        if self.ideal.most_rows > 2**r.a.precision or (r.narrow and r.w > r.u**2 / 4):
            return None
        fraction, k = np.frexp(largest)  # largest = fraction · 2ᵏ, 1/2 ≤ fraction < 1
        power = np.exp2(np.where(fraction == 0.5, k - 1, k).astype(float))
        return np.where(is_sum & (largest > 0), power, np.inf)

    def equally_weighted(self, v: Approximation, reach: Floats, weight: EqualWeight) -> Mixed:
        """Return a and ρ of Σ ω v_j for one weight ω; ρ is infinite where they do not hold.

        Let every v_j be exact, a multiple of 2ᵏ and at most M in magnitude, and let ω be a multiple
        of 2ᵐ with D ω ≤ 1 + e. Every product and every partial sum, in any order, is a multiple of
        2^(k + m) and at most (1 + e) M. Where the accumulator holds all of these, Σ ω v_j is
        ω Σ v_j = D ω · mean, which is stored: |computed − mean| ≤ ((1 + e) (1 + storing) − 1)
        |mean|. Storing underflows, by at most `tiny`, only where 2^(k + m) < `tiny`.
        """
        r, views = self.rounding, self.views
        quanta = [None if k is None else k + weight.quantum for k in v.quanta(self.ideal)]
        # A multiple of 2ᵏ is one of every smaller power of two too: k is cut to 900, so that the
        # powers below stay within float64. 2⁻²⁰⁰⁰ is 0 there, and such a mean does not count.
        powers = np.array(
            [[np.nan if k is None else float(np.clip(k, -2000, 900))] for k in quanta]
        )
        total = up(reach * (1 + weight.error))
        exact = (_over(views, v.error[0]) == 0) & (total <= 2.0 ** (r.partial_precision + powers))
        exact &= 2.0**powers >= r.tiny_partial
        rho = float(compounded(weight.error, r.storing))
        tiny = np.where(2.0**powers >= r.tiny, 0.0, r.tiny)
        return Mixed(np.where(exact, tiny, 0.0), np.where(exact, rho, np.inf))

    def _bos_is_alone(self) -> bool:
        """True if BOS, the first row, has no key, or only itself, with weight exactly 1.

        A kernel that rounds s c and m c apart (`Scoring`) gives even the largest score m a weight
        that is rounded, and so is not 1.
        """
        is_one = self.head.weighting.is_hard or not self.order.scores_in_accumulator
        return self.ideal.bos is not None and self.head.mask.is_causal and is_one


def projected(
    heads: Sequence[Attention], z: Approximation, rounding: RoundingErrors, layer: str
) -> list[Projections]:
    """Return W_Q z + b_Q, W_K z + b_K and W_V z + b_V of each head of a layer."""
    maps = [
        (W, b)
        for head in heads
        for W, b in ((head.W_Q, head.b_Q), (head.W_K, head.b_K), (head.W_V, head.b_V))
    ]
    found = _bounded_as_one(maps, z, rounding, layer)
    if found is None:
        found = [
            rounding.written(W, b, z, f"{layer} head {k // 3} {Projections._fields[k % 3]}")
            for k, (W, b) in enumerate(maps)
        ]
    return [Projections(*found[k : k + 3]) for k in range(0, len(found), 3)]


def _bounded_as_one(
    maps: Sequence[tuple[Any, Any]], z: Approximation, rounding: RoundingErrors, layer: str
) -> list[Approximation] | None:
    """Return W z + b of several maps by one call of `written`, which costs more than its rows.

    It is `None` for more than `MOST_JOINT` rows: a call may give up joint bounds of more, while up
    to this number each row has the bounds that it has alone. It is `None`, too, if a row is
    refused, so that the refusal can name its own map.
    """
    ends = np.cumsum([0, *(len(b) for _, b in maps)]).tolist()
    if ends[-1] > MOST_JOINT:
        return None
    W, b = (np.concatenate(each) for each in zip(*maps, strict=True))
    try:
        joint = rounding.written(W, b, z, layer)
    except Unfollowed:
        return None
    return [joint.taken(np.arange(*rows)) for rows in itertools.pairwise(ends)]


def _over(views: Views, x: Floats) -> Floats:
    """(coordinates, query kinds): largest x at an admissible kind of key; 0 if there is none."""
    return np.where(views.nothing, 0.0, views.largest(x))


def seen(mask: Mask, kinds: int, bos: int | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each kind of query: the admissible kinds of keys, and True if it may have none."""
    sees = np.full((kinds, kinds), True)
    empty = np.full(kinds, mask == "strict-past" or (mask == "strict-future" and bos is None))
    if bos is None:
        return sees, empty
    # BOS is the first row: symbols are behind it.
    sees[:, bos] = mask.looks_back
    sees[bos] = mask.looks_ahead
    sees[bos, bos] = mask.admits_itself
    empty[bos] |= mask == "strict-future"
    return sees, empty
