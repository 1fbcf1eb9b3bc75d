"""The weight that softmax leaves elsewhere, and how far off scores may be for that.

With β = 1/τ, η the error of a score and δ that of an index, in units of positions, the weight
elsewhere, relative to that of the place, is

    match, last or first: Σ e^(−β(m − 2η)), m ≥ 1, η ≤ 1/4; at most y/(1 − y²), y = e^(−β/2);
    at: 2 Σ e^(−βw(m² − 2mδ − 2η)), m ≥ 1, δ + η ≤ 3/8; at most 2y/(1 − y), y = e^(−βw/4);
    match, mean: (N + 1) e^(−β(1/2 − 2η)), η ≤ 1/16; at most (N + 1) y, y = e^(−3β/8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from transformist.circuit.circuit import Circuit
from transformist.circuit.heads import At, Match

SCORE_ERROR = Fraction(1, 4)
"""η: so far may the score of a match be off, in units of positions."""

INDEX_ERROR = Fraction(3, 8)
"""δ + η: so far may an index and the scores of positions be off."""

MEAN_SCORE_ERROR = Fraction(1, 16)
"""As much, where all that matches is to get the same weight, in units of a match."""


def scale_divisor(circuit: Circuit, head: Match | At) -> int:
    """The most that the unit of scores divides by."""
    of_one = isinstance(head, Match) or head.unit.is_constant
    return 1 if of_one else circuit.most_seen or 1


def _match_share(circuit: Circuit, head: Match, sharpness: float) -> float:
    if head.choose == "mean":
        return float(circuit.longest + 1) * math.exp(-3 / 8 * sharpness)
    return math.exp(-sharpness / 2) / -math.expm1(-sharpness)


def _at_share(circuit: Circuit, head: At, sharpness: float) -> float:
    scaled = sharpness / scale_divisor(circuit, head)
    return 2 * math.exp(-scaled / 4) / -math.expm1(-scaled / 4)


SHARES: Mapping[type[Any], Callable[[Circuit, Any, float], float]] = {
    Match: _match_share,
    At: _at_share,
}
"""The weight that 1/τ leaves elsewhere, in relation to that of the place, at most."""
