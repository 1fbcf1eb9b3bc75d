"""Heads that attend to the row whose position a number gives.

With the index q and the scale w of the number, the row at place j has the score (2 q j − j²) w,
which is q² w less m² w at the distance m from q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from transformist.circuit import score_errors, sum_errors
from transformist.circuit.atom_errors import Errors
from transformist.circuit.circuit import Circuit, Pairs, Tolerance
from transformist.circuit.forms import ONE, Form, HashedOnce
from transformist.circuit.heads.scored_head import ScoredHead, lengthened
from transformist.circuit.margins import Margins
from transformist.circuit.readings import ScoreReading, Sum
from transformist.laws import ZERO, Grid

INDEX_ERROR = Fraction(3, 8)
"""Limit of δ + η: the error of an index and of the scores of positions, in positions.

An index off by δ and scores off by η w leave at the distance m ≥ 1 of the target a gap, over w, of

    m² − 2mδ − 2η ≥ m² − 2m(δ + η) ≥ m² − 3m/4 ≥ m/4.

Two rows lie at each distance, so the stray weight is at most

    2 Σ_{m ≥ 1} e^(−βwm/4) = 2y/(1 − y) with y = e^(−βw/4).
"""


@dataclass(frozen=True)
class At(ScoredHead, HashedOnce):
    """The position that a whole number gives; BOS is position 0.

    Attributes:
        index: q w, the number in its scale.
        place, square: j and j².
        mask: which positions there are.
        unit: the scale w, which is 1 or, of a count, at least 1/D.

    """

    index: Form
    place: Form
    square: Form
    mask: str = "none"
    unit: Form = ONE

    def __hash__(self) -> int:
        return self._hash

    @property
    def forms(self) -> tuple[Form, ...]:
        return (self.index, self.place, self.square, self.unit)

    @property
    def scores(self) -> Pairs:
        return [(self.index * 2, self.place), (-self.unit, self.square)]

    def scale_divisor(self, circuit: Circuit) -> int:
        return 1 if self.unit.is_constant else circuit.most_seen or 1

    def is_whole_at_bos(self, circuit: Circuit) -> bool:
        """True if the index is whole at BOS, too, in a scale that is not 0 there.

        The scale is 1, or 1/D by a mean: D is the same at BOS without a mask, and 1 under `future`,
        where BOS sees itself alone.
        """
        counts: frozenset[str] | None = frozenset()
        if not self.unit.is_constant:
            if circuit.span_at_bos(self.unit) == ZERO:
                return False
            counts = circuit.one_over(self.unit)
            atom = circuit.atoms[self.unit.atoms[0]]
            if counts is not None and not atom.is_same_everywhere:
                counts = frozenset()
        index = circuit.grid_at_bos(self.index)
        if index is None or counts is None:
            return False
        return index | Grid(1, counts) == Grid(1, counts)

    def stray_weight(self, circuit: Circuit, sharpness: float) -> float:
        """See `INDEX_ERROR`; w is at least 1 over the divisor."""
        scaled = sharpness / self.scale_divisor(circuit)
        return 2 * math.exp(-scaled / 4) / -math.expm1(-scaled / 4)

    def least_sharpness(self, circuit: Circuit, share: float) -> float:
        """With β w = 4 ln(1 + 2/s), y = s/(s + 2), and so 2y/(1 − y) = s."""
        return 4 * math.log1p(2 / share) * self.scale_divisor(circuit)

    def tolerances(self, circuit: Circuit, sharpness: Fraction, share: Fraction) -> list[Tolerance]:
        """A quarter of the limit; rounding has the rest.

        An error e of q w is the error e/w of the index, at most e times the divisor of the scale.
        """
        return [Tolerance(self.index, INDEX_ERROR / 4 / self.scale_divisor(circuit))]

    def errors(self, margins: Margins, value: Form, number: int) -> Errors:
        longest = float(margins.circuit.longest)
        most = 1 if self.unit.is_constant else margins.most
        scores = longest * max(
            longest, margins.size(self.index) * most
        )  # q beyond N counts as well
        if margins.readings is not None:
            read = margins.readings.scores[self]
            error = max(self._score_error_as_read(margins, each) for each in read)
        else:
            error = margins.error(self.index)
            # q is the number over the scale w ≥ 1/D, so an error of the number counts D times; an
            # error of w moves j² w, at most N² D times as much in positions.
            if not self.unit.is_constant:
                error = margins.scaled_error(self.index)
                error += longest**2 * margins.scaled_error(self.unit)
            # Let 0 ≤ q = cN and S = max(1, c) N², over the scale. The products 2 q j and j² are at
            # most (2c + 1) N² together, and their sum lies between −N² and N², or for c > 1 up to
            # (2c − 1) N². So products and sum are at most 4S together, and round by 4 S w; a sum
            # that is stored is at most 2S. Whole numbers up to 3S, lengthened by the bits of 1/τ,
            # do not round. (For q < 0 the products may come to 6S. They do no harm where BOS is
            # seen: at q = −m the score of row j is j² + 2mj below that of row 0, and rounds by 2w
            # times that.)
            if error or 3 * scores * lengthened(margins.sharpness[self]) > 2**margins.a.precision:
                stored = 2 * margins.u if margins.u > margins.w else 0.0
                error += (4 * margins.w + stored) * scores
            # j² must be held exactly: else two neighbouring keys may round to one number.
            error += 0 if longest**2 <= 2**margins.a.precision else math.inf
        self.require_range(margins, 4 * scores, number)
        margins.require(number, "the error of a position that is looked up", error, INDEX_ERROR)
        return self.chosen(margins, value, 0.0)

    def _score_error_as_read(self, margins: Margins, scoring: ScoreReading) -> float:
        """Error bound of the index and of the scores of positions, in positions.

        A score is A (2 q j − w j²), q = w times the index; divided by A w, w at least 1/D, the
        products are at most 2 |index| N and N², and their sum is as `top` says, 0 ≤ j ≤ N.
        """
        if len(scoring.pairs) != 2 or not score_errors.are_finite(margins, scoring):
            return math.inf
        n = float(margins.circuit.longest)
        times = 1.0 if self.unit.is_constant else float(margins.most)
        place, square = scoring.pairs
        # Weights may have the two coordinates in either order; the key tells which is which.
        if place[1].form.atoms != self.place.atoms:
            place, square = square, place
        off, one = 0.0, score_errors.one_score(margins, self, scoring)
        for query, key in scoring.pairs:
            off += margins.sum_error(key) * sum_errors.magnitude_of(margins, query) * times
        rows = margins.circuit.rows(self.index)
        low = min(float(rows.hull().lo) * times, 0.0)
        high = max(float(rows.hull().hi) * times, n)
        # In positions, q from `low` ≤ 0 to `high` ≥ N: 2 q j − j² falls to −N² + 2 N low at j = N,
        # and rises to at most 2 N high − N² there if q ≥ N, or to q² ≤ N² ≤ 2 N high − N² if q < N.
        top = max(n**2 - 2 * n * low, 2 * n * high - n**2)
        products = n**2 + 2 * n * max(high, -low)
        by_place, by_square = _factor(place[1]), _factor(square[1])
        # The query beside j has 2 q, and the one beside j² has w, both times `one` (1/τ √d_key) and
        # over the factor that their key has: scores are products, so the factor may stand on either
        # side.
        largest = 2 * max(high, -low) * one / by_place
        off += self._query_error(margins, place[0], largest) * by_place / 2
        off += self._query_error(margins, square[0], one / by_square) * by_square * n**2
        lost = score_errors.underflow(margins, scoring) * times
        if not score_errors.is_exact(margins, scoring):
            off += one * score_errors.rounding(margins, len(scoring.pairs), products, top) + lost
        if not score_errors.has_plain_root(scoring):
            off += one * score_errors.OF_QUOTIENT * margins.u * top + lost
        return off / one * sum_errors.SLACK

    def _query_error(self, margins: Margins, query: Sum, largest: float) -> float:
        """Error bound of a query; of D times the query where the scale is 1/D."""
        if self.unit.is_constant:
            return margins.sum_error(query)
        own = margins.scaled_rounding(query, self.unit, largest)
        return margins.inherited(query.form, "scaled") + own

    def words(self, value: str, text_of: Callable[[Form], str]) -> str:
        return f"{value} at position {text_of(self.index)}"


def _factor(key: Sum) -> float:
    """The factor of the place, or of its square, in a key."""
    return abs(float(key.form.terms[0][1]))
