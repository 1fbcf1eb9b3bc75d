"""The heads that circuits are made of: what each attends to, and its scores.

Scores are in units of positions. With P a power of two above N, a row's admissible scores are

    match:   2P Σ keyⱼ · queryᵢ ± j, by place, at least 1 apart; or Σ keyⱼ · queryᵢ alone,
    at:      (2 q j − j²) w, less by m² w at distance m of q than at q,
    uniform: 0.

Under softmax they are multiplied by 1/τ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.circuit.forms import Form
from transformist.laws import INFINITY, Bound, Range, hull

ONE = Form.of(1)

SEES_BOS = ("none", "future", "strict-future")
"""The masks under which a symbol sees BOS."""

CAUSAL = ("future", "strict-future")
"""Those under which it sees nothing behind itself."""


def rows_under(mask: str) -> str:
    """What the denominator of a mean counts, for the grid that it lies on."""
    return f"rows under mask {mask}"


@dataclass(frozen=True)
class Uniform:
    """The mean over the positions that the mask leaves, BOS among them where it is seen."""

    mask: str

    @property
    def forms(self) -> tuple[Form, ...]:
        """What queries and keys are made of."""
        return ()


@dataclass(frozen=True)
class Match:
    """The positions that the mask leaves where Σ keyⱼ · queryᵢ is the largest.

    A match is 1, others are 0. BOS is a key by itself: with 1/2, it is attended to where nothing
    matches, with −1 never.

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

    @property
    def forms(self) -> tuple[Form, ...]:
        """What queries and keys are made of."""
        place = () if self.place is None else (self.place,)
        return (*self.keys, *self.queries, *place)


@dataclass(frozen=True)
class At:
    """The position that a whole number gives; BOS is position 0.

    Attributes:
        index: q w, the number in its unit.
        place, square: j and j².
        mask: which positions there are.
        unit: w, which is 1 or, of a count, at least 1/D.

    """

    index: Form
    place: Form
    square: Form
    mask: str = "none"
    unit: Form = ONE

    @property
    def forms(self) -> tuple[Form, ...]:
        """What queries and keys are made of."""
        return (self.index, self.place, self.square, self.unit)


Head: TypeAlias = Uniform | Match | At

Scores: TypeAlias = "list[tuple[Form, Form]]"
"""Pairs of a query and a key, whose products are summed."""


def _match_scores(head: Match) -> Scores:
    pairs = list(zip(head.queries, head.keys, strict=True))
    asked = [(query * head.scale, key) for query, key in pairs if not query.is_constant]
    last = Form()
    for query, key in pairs:
        if query.is_constant:
            last += key * (query.constant * head.scale)
    if head.place is not None:
        last += head.place * (1 if head.choose == "rightmost" else -1)
    return asked if last == Form() else [*asked, (ONE, last)]


def _at_scores(head: At) -> Scores:
    return [(head.index * 2, head.place), (-head.unit, head.square)]


SCORES: Mapping[type[Any], Callable[[Any], Scores]] = {
    Uniform: lambda _head: [],
    Match: _match_scores,
    At: _at_scores,
}
"""The scores of each kind of head."""


def mean_range(symbols: Range, bos: Range | None, most: Bound) -> Range:
    """The range of the mean of one to `most` numbers in a range, and of that of BOS."""
    if bos is None:
        return symbols
    share = Fraction(0) if most == INFINITY else 1 / (Fraction(most) + 1)
    return hull((bos, symbols.times(1 - share) + bos.times(share)))
