"""Heads that attend to the rows whose key matches the query best.

A row's score is s Σ keyⱼ · queryᵢ ± j with the place j, or Σ keyⱼ · queryᵢ alone. The sum is the
same for all matches of a query: 1, or the number of true bits of a code. For other rows it is lower
by at least 1. For BOS, where it is seen, it is 1/2 below that of a match, or −1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.circuit import Circuit, Law, Pairs, Tolerance
from transformist.circuit.forms import ONE, Form, HashedOnce
from transformist.circuit.heads.product_head import ProductHead
from transformist.circuit.margins import Margins
from transformist.rounding import power_of_two_at_most

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


NOTHING = Form()
"""The form 0."""


@dataclass(frozen=True)
class Match(ProductHead, HashedOnce):
    """Head that attends to the positions of the mask at which Σ keyⱼ · queryᵢ is the largest.

    A match is above all others by 1 at least. BOS is a key by itself: 1/2 below a match it is
    attended to where nothing matches, with −1 never.

    Attributes:
        keys, queries: as many of each; without any, all positions match.
        choose: the last of several (`rightmost`), the first (`leftmost`), their `mean`, or `any`,
            where all that match have the same value.
        mask: which positions there are.
        place: j, where it is needed to choose.
        scale: of the match beside the place.
        centre: subtracted from all scores of a query, so that its matches have scores about 0.

    """

    keys: tuple[Form, ...]
    queries: tuple[Form, ...]
    choose: str
    mask: str
    place: Form | None = None
    scale: Fraction = Fraction(1)
    centre: Form = NOTHING

    def __hash__(self) -> int:
        return self._hash

    @property
    def forms(self) -> tuple[Form, ...]:
        place = () if self.place is None else (self.place,)
        centre = () if self.centre.is_constant else (self.centre,)
        return (*self.keys, *self.queries, *place, *centre)

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
        products = varying if last == Form() else [*varying, (ONE, last)]
        # The same for all keys of a query, so softmax and hard attention choose as without it. It
        # is a product by itself: in the sum `last` a format would round the places.
        return products if self.centre == NOTHING else [*products, (-self.centre, ONE)]

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

    def short_sharpness(self, least: float) -> Fraction:
        """A short 1/τ; a power of two for centred scores, which are whole numbers without 1/τ."""
        short = super().short_sharpness(least)
        return short if self.centre == NOTHING else 1 / power_of_two_at_most(1 / short)

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
        # Where one of several equal scores is chosen by its place in the order of rows, no error is
        # allowed: an error of any size would choose another row. The same holds for hard attention
        # to all matches.
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

    def _beside(self, margins: Margins) -> float:
        placed = magnitude(margins.circuit.longest) if self.place is not None else 0.0
        return placed + magnitude(margins.circuit.size(self.centre))

    def words(self, value: str, text_of: Callable[[Form], str]) -> str:
        return f"{value} of the {self.choose} match"
