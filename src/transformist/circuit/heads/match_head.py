"""Heads that attend to the rows whose key matches the query best.

A row's score is s Σ keyⱼ · queryᵢ ± j with the place j, or Σ keyⱼ · queryᵢ alone. The sum is the
same for all matches of a query: 1, or the number of true bits of a code. For other rows it is lower
by at least 1. For BOS, where it is seen, it is 1/2 below that of a match, or −1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from transformist.circuit import score_errors, sum_errors
from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.circuit import Circuit, Law, Pairs, Tolerance
from transformist.circuit.forms import ONE, Form, HashedOnce
from transformist.circuit.heads.scored_head import ScoredHead, lengthened
from transformist.circuit.margins import Margins
from transformist.circuit.readings import ScoreReading
from transformist.laws import Ranges

SCORE_ERROR = Fraction(1, 4)
"""Limit η of the error of a score, in positions, where the first or last match is chosen.

The scale of a match outweighs the places (2P, with P a power of two above N), so that scores are at
least 1 apart: the mth after the best is at least m below it, and at least m − 2η ≥ m − 1/2 as it is
computed. So the stray weight is at most

    Σ_{m ≥ 1} e^(−β(m − 1/2)) = e^(−β/2) / (1 − e^(−β)).
"""

MEAN_SCORE_ERROR = Fraction(1, 16)
"""Limit η of the error of a score, in matches, where all matches get the same weight.

A match is above everything else by 1/2 at least, that of BOS: as computed 1/2 − 2η ≥ 3/8 lie
between. There are at most N + 1 other rows, so the stray weight is at most (N + 1) e^(−3β/8).
"""


@dataclass(frozen=True)
class Match(ScoredHead, HashedOnce):
    """The positions that the mask leaves where Σ keyⱼ · queryᵢ is the largest.

    A match is above all others by 1 at least. BOS is a key by itself: 1/2 below a match it is
    attended to where nothing matches, with −1 never.

    Attributes:
        keys, queries: as many of each; without any, all positions match.
        choose: the last of several (`rightmost`), the first (`leftmost`), their `mean`, or `any`,
            where all that match have the same value.
        mask: which positions there are.
        place: j, where it is needed to choose.
        scale: of the match beside the place.

    """

    keys: tuple[Form, ...]
    queries: tuple[Form, ...]
    choose: str
    mask: str
    place: Form | None = None
    scale: Fraction = Fraction(1)

    def __hash__(self) -> int:
        return self._hash

    @property
    def forms(self) -> tuple[Form, ...]:
        place = () if self.place is None else (self.place,)
        return (*self.keys, *self.queries, *place)

    @cached_property
    def scores(self) -> Pairs:
        """The products, and all keys with constant queries in one."""
        pairs = list(zip(self.queries, self.keys, strict=True))
        varying = [(query * self.scale, key) for query, key in pairs if not query.is_constant]
        last = Form()
        for query, key in pairs:
            if query.is_constant:
                last += key * (query.constant * self.scale)
        if self.place is not None:
            last += self.place * (1 if self.choose == "rightmost" else -1)
        return varying if last == Form() else [*varying, (ONE, last)]

    @property
    def attends_to_all_best(self) -> bool:
        return self.choose == "mean"

    @property
    def averages_ties(self) -> bool:
        return self.choose in ("mean", "any")

    def is_beneath(self, circuit: Circuit) -> bool:
        """True if BOS never matches better than a symbol: its keys are 0, no product is below."""
        keys = [circuit.rows(key) for key in self.keys]
        queries = [circuit.rows(query) for query in self.queries]
        signs = all(row.lo >= 0 for rows in (*keys, *queries) for row in rows.distinct())
        return signs and all(rows[-1].hi == 0 for rows in keys)

    def law(self, circuit: Circuit, value: Form) -> Law:
        law = super().law(circuit, value)
        if self.choose != "mean":
            return law
        elsewhere = self._elsewhere(circuit)
        matches = f"matches {elsewhere}" if self.keys else f"symbols under mask {self.mask}"
        grid, least, most = law.grid, law.least, circuit.most_seen
        return Law(
            law.rows,
            None if grid is None or grid.counts else grid.divided(matches),
            None if least is None or most is None else least / most,
        )

    def stray_weight(self, circuit: Circuit, sharpness: float) -> float:
        """See `MEAN_SCORE_ERROR` and `SCORE_ERROR`."""
        if self.choose == "mean":
            return float(circuit.longest + 1) * math.exp(-3 / 8 * sharpness)
        return math.exp(-sharpness / 2) / -math.expm1(-sharpness)

    def least_sharpness(self, circuit: Circuit, share: float) -> float:
        """A 1/τ for the share s of the weight.

        For one match β = 2 ln(1 + 1/s), so that y = e^(−β/2) = s/(s + 1), and the stray weight is
        y/(1 − y²) = s (s + 1)/(2s + 1) ≤ s. For all matches, (N + 1) e^(−3β/8) = s.
        """
        if self.choose == "mean":
            return 8 / 3 * math.log(float(circuit.longest + 1) / share)
        return 2 * math.log1p(1 / share)

    def tolerances(self, circuit: Circuit, sharpness: Fraction, share: Fraction) -> list[Tolerance]:
        """Half of the limit of a score, shared among keys and queries; rounding has the other half.

        Let p products have factors of at most 1 in magnitude, each off by at most t = limit/(4p).
        Their sum is off by at most p (2t + t²) ≤ limit/2 + limit²/16, which is below the limit.
        Where all matches get the same weight, the limit is also share/(8β): then best scores move a
        mean by at most share/4 of its diameter (`chosen`).
        """
        limit = SCORE_ERROR / 2 / self.scale
        if self.choose == "mean":
            limit = min(MEAN_SCORE_ERROR / 2, share / (8 * sharpness))
        forms = (*self.keys, *self.queries)
        return [Tolerance(form, limit / (2 * len(forms))) for form in forms]

    def errors(self, margins: Margins, value: Form, number: int) -> Errors:
        if self not in margins.of_scores:  # the same for each number that the head fetches
            margins.of_scores[self] = self._score_errors(margins)
        largest, inexact, divided = margins.of_scores[self]
        self.require_range(margins, 2 * largest, number)
        alone = self.place is None and self.choose not in ("any", "mean")
        allowed: Any = SCORE_ERROR
        if self.choose == "mean":
            allowed = MEAN_SCORE_ERROR
        if divided:  # equal scores stay equal, others apart
            margins.require(number, "the error of a quotient of scores", divided, allowed)
        hard = margins.circuit.weighting != "softmax"
        if alone or (
            self.choose == "mean" and hard
        ):  # equal scores, all or one of which are chosen
            allowed = Fraction(0)
        if inexact:
            margins.require(number, "the error of a selection", inexact + divided, allowed)
        return self.chosen(margins, value, inexact)

    def _score_errors(self, margins: Margins) -> tuple[float, float, float]:
        """Bounds of scores, of their errors, and of the errors of quotients of exact scores."""
        if margins.readings is not None:
            found = [self._score_errors_as_read(margins, s) for s in margins.readings.scores[self]]
            return (*map(max, zip(*found, strict=True)),)
        rows = [
            [margins.circuit.rows(form) for form in forms] for forms in (self.keys, self.queries)
        ]
        keys, queries = (_by_kind(each, [0.0] * len(each)) for each in rows)
        scale = magnitude(self.scale)
        largest = scale * _largest_dot(keys, queries)
        largest += magnitude(margins.circuit.longest) if self.place is not None else 0.0
        inexact = self._product_error(margins, keys, queries) * scale
        whole = all(margins.is_exact(form) for form in self.forms)
        parts = math.prod(_bottom(margins.circuit, forms) for forms in (self.keys, self.queries))
        bits = lengthened(margins.sharpness[self])
        held = largest * parts * bits <= 2**margins.a.precision
        if not (whole and held):
            inexact += (len(self.keys) + 4) * (margins.w + margins.u) * largest
        return largest, inexact, 0.0

    def _product_error(self, margins: Margins, keys: list[Vector], queries: list[Vector]) -> float:
        """Error of Σ key · query, from the errors and the largest magnitudes of both."""
        key_errors = [margins.error(form) for form in self.keys]
        query_errors = [margins.error(form) for form in self.queries]
        if math.inf in (*key_errors, *query_errors):
            return math.inf
        of_queries = max(_dot(key, query_errors) for key in keys)
        of_keys = max(_dot(query, key_errors) for query in queries)
        both = sum(x * y for x, y in zip(key_errors, query_errors, strict=True))
        return of_queries + of_keys + both

    def _score_errors_as_read(
        self, margins: Margins, scoring: ScoreReading
    ) -> tuple[float, float, float]:
        """The same bounds for queries and keys as the weights compute them."""
        if not scoring.pairs:
            return 0.0, 0.0, 0.0
        if not score_errors.are_finite(margins, scoring):
            return math.inf, math.inf, 0.0
        columns = [list(each) for each in zip(*scoring.pairs, strict=True)]
        off_q, off_k = ([margins.sum_error(each) for each in column] for column in columns)
        rows = [[margins.circuit.rows(each.form) for each in column] for column in columns]
        queries, keys = _by_kind(rows[0], off_q), _by_kind(rows[1], off_k)
        largest = _largest_dot(queries, keys)
        lost, off, divided = score_errors.underflow(margins, scoring), 0.0, 0.0
        if not score_errors.is_exact(margins, scoring):
            off = max(_dot(k, off_q) for k in keys) + max(_dot(q, off_k) for q in queries)
            off += sum(x * y for x, y in zip(off_q, off_k, strict=True)) + lost
            off += score_errors.rounding(margins, len(scoring.pairs), largest, largest)
        if not score_errors.has_plain_root(scoring):
            divided = score_errors.OF_QUOTIENT * margins.u * largest + lost
        one = score_errors.one_score(margins, self, scoring) / sum_errors.SLACK
        return largest / one, off / one, divided / one

    def words(self, value: str, text_of: Callable[[Form], str]) -> str:
        return f"{value} of the {self.choose} match"


def _bottom(circuit: Circuit, forms: tuple[Form, ...]) -> int:
    """The common denominator of numbers that have one, as halves have."""
    return math.lcm(*(grid.c for form in forms if (grid := circuit.grid(form)) is not None))


Vector: TypeAlias = "Mapping[int, float]"
"""Coordinates of a vector that are not 0, in order."""


def _by_kind(rows: Sequence[Ranges], errors: Sequence[float]) -> list[Vector]:
    """The largest magnitudes, errors added, at each kind of row, as vectors; equal vectors once."""
    numbers = list(enumerate(zip(rows, errors, strict=True)))
    common = {j: x for j, (row, error) in numbers if (x := magnitude(row.common.size) + error)}
    others: dict[int, dict[int, float]] = {}
    for j, (row, error) in numbers:
        for kind, each in row.others.items():
            others.setdefault(kind, {})[j] = magnitude(each.size) + error
    found: dict[tuple[tuple[int, float], ...], Vector] = {}
    if not rows or len(others) < len(rows[0]):
        found[tuple(common.items())] = common
    for own in others.values():
        both = {j: size for j, size in sorted({**common, **own}.items()) if size}
        found.setdefault(tuple(both.items()), both)
    return list(found.values())


FEW = 8
"""At most this many vectors have a coordinate that counts as one-hot."""


def _largest_dot(x: Sequence[Vector], y: Sequence[Vector]) -> float:
    """The largest dot product of a vector of x and one of y; their coordinates are at least 0."""
    having: dict[int, list[Vector]] = {}
    for vector in y:
        for j in vector:
            having.setdefault(j, []).append(vector)
    # Most coordinates are one-hot: a few vectors have each (`few`). The rest of a vector of y is
    # the same for most of them, so each different rest is taken once. A vector of y that shares no
    # coordinate of `few` with one of x has the dot product of its rest, exactly. Another has at
    # least that of its rest, also in floating point: to add a number that is not negative never
    # makes a sum less. So neither the largest product nor its rounding changes.
    few = {j for j, those in having.items() if len(those) <= FEW}
    rests = {tuple((j, size) for j, size in vector.items() if j not in few) for vector in y}
    largest, kept = 0.0, [dict(each) for each in rests if each]
    for vector in x:
        sharing = {id(each): each for j in vector if j in few for each in having[j]}
        products = (_dot(vector, each) for each in (*sharing.values(), *kept))
        largest = max(largest, max(products, default=0.0))
    return largest


def _dot(x: Vector, y: Vector | Sequence[float]) -> float:
    if isinstance(y, Mapping):
        shorter, longer = (x, y) if len(x) <= len(y) else (y, x)
        return sum(size * longer[j] for j, size in shorter.items() if j in longer)
    return sum(size * y[j] for j, size in x.items() if y[j])
