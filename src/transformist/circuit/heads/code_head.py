"""Heads that attend to the position i + c, c or c − i, for a number c, by codes of positions.

The score of key j is S(q − j), the inner product of the codes of the index q and of j
(`circuit/position_code`). The code of q is linear in the code of i, as q is i, 0 or −i plus c. So
the query is a sum of the cosines and sines of i, and of constants.

The score is largest at j = q, where it is Σ a, and at every other symbol it is lower by at least
the gap of the code. There may be no symbol at q. Then every symbol has less than Σ a by at least
the gap, wherever q is, as long as |q − j| is below the longest wavelength. So BOS takes what is
left: its score is the same for every query, half a gap below Σ a. A symbol at q leads BOS by half
a gap. Without one, BOS leads every symbol by half a gap.

For q = i and q = i − 1 there is always a row at q, as BOS is at 0. BOS then has the code of 0, and
the gap is that of the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from transformist.circuit.atom_errors import Errors
from transformist.circuit.circuit import Circuit, Pairs, Tolerance
from transformist.circuit.forms import Form, HashedOnce
from transformist.circuit.heads.product_head import ProductHead
from transformist.circuit.margins import Margins
from transformist.circuit.position_code import IDEAL_GAP, PositionCode
from transformist.circuit.seen_rows import CAUSAL

PART_OF_GAP = Fraction(1, 8)
"""Limit η/γ of the error of a score, in gaps.

Computed scores are at least γ − 2η ≥ 3γ/4 below the computed score of the target. There are at most
N other rows, so the stray weight is at most N e^(−3βγ/4).
"""


ALWAYS_THERE = ((1, 0), (1, -1))
"""Slope and offset of an index that is a row of every input, for every i from 1 on."""


@dataclass(frozen=True)
class AtCoded(ProductHead, HashedOnce):
    """The position q = slope · i + offset, or BOS, if the mask admits no symbol at q.

    Attributes:
        keys: the cosines and sines of j, and a number for BOS.
        queries: the cosines and sines of q, times the weights of the code, and the score of BOS.
        gap: γ, by which scores of other rows are lower at least.
        slope: 1, 0 or −1.
        offset: c, a whole number.
        mask: which positions there are.

    """

    keys: tuple[Form, ...]
    queries: tuple[Form, ...]
    gap: Fraction
    slope: int
    offset: int
    mask: str

    scale = Fraction(1)

    @classmethod
    def by(
        cls,
        code: PositionCode,
        index: tuple[int, int],
        mask: str,
        feature: Callable[[str], Form],
        at_bos: Form,
    ) -> AtCoded:
        """Return the head that finds a position by a code.

        Args:
            code: the code, whose longest wavelength is above every |q − j|.
            index: slope and offset.
            mask: which positions there are.
            feature: the form of each position function.
            at_bos: the form that is 1 at BOS and 0 at symbols.

        """
        waves = _waves(code, index, feature)
        if index in ALWAYS_THERE:
            # BOS finds itself: under a causal mask it sees no other row. Without a mask its query
            # is changed to the code of 0.
            own = Form() if mask in CAUSAL else at_bos
            pairs = [(x.query + own * (x.code_of_0 - x.query_at_0), x.key) for x in waves]
            gap = code.gap
        else:
            # The score of BOS is half-way: half a gap below a symbol at q, and half a gap above all
            # others.
            pairs, gap = _with_sink(code, waves, at_bos), code.gap / 2
        # A product with the form 0 adds nothing to a score, so its coordinate is left out. Of the
        # wavelength 2 the sine is 0 everywhere.
        queries, keys = zip(*(pair for pair in pairs if Form() not in pair), strict=True)
        return cls(keys, queries, gap, *index, mask)

    def __hash__(self) -> int:
        return self._hash

    @property
    def forms(self) -> tuple[Form, ...]:
        return (*self.keys, *self.queries)

    @cached_property
    def scores(self) -> Pairs:
        return list(zip(self.queries, self.keys, strict=True))

    def stray_weight(self, circuit: Circuit, sharpness: float) -> float:
        """See `PART_OF_GAP`."""
        return float(circuit.longest) * math.exp(-3 / 4 * sharpness * float(self.gap))

    def least_sharpness(self, circuit: Circuit, share: float) -> float:
        """A 1/τ for the share s of the weight: N e^(−3βγ/4) = s."""
        return 4 / 3 / float(self.gap) * math.log(float(circuit.longest) / share)

    def tolerances(self, circuit: Circuit, sharpness: Fraction, share: Fraction) -> list[Tolerance]:
        """Half of the limit of a score, shared among keys and queries; rounding has the other half.

        Let p products have factors of at most 3/2 in magnitude, each off by at most t =
        limit/(16 p). Their sum is off by at most p (3t + t²) ≤ limit/2. The score of BOS may be
        larger than 3/2, but it and the 1 at BOS that it is multiplied by are exact.
        """
        limit = self.gap * PART_OF_GAP
        return [Tolerance(form, limit / (16 * len(self.keys))) for form in self.forms]

    def errors(self, margins: Margins, value: Form, number: int) -> Errors:
        if self not in margins.of_scores:  # the same for each number that the head fetches
            margins.of_scores[self] = self._score_errors(margins)
        largest, inexact, divided = margins.of_scores[self]
        # Softmax subtracts the largest score from each: the difference of two scores must not
        # overflow.
        self.require_range(margins, 2 * largest, number)
        limit = self.gap * PART_OF_GAP
        margins.require(number, "the error of a score of codes", inexact + divided, limit)
        return self.chosen(margins, value, 0.0)

    def _heavy(self, margins: Margins, sharpness: float) -> float:
        """Number of weights that can round a sum.

        A sum of p and q ≥ 0 is off by at most the smaller of them, as the larger is a number of the
        format. The sums that hold the weight of the target meet all other weights, S together, so
        they are off by at most S, which is S/w times w. Ten more terms cover sums of the others.
        """
        return self.stray_weight(margins.circuit, sharpness) / margins.w + 10

    def words(self, value: str, text_of: Callable[[Form], str]) -> str:
        return f"{value} at position {self.index_words}"

    @property
    def index_words(self) -> str:
        """The index in words, such as `i - 1`."""
        if self.slope < 0:
            return f"{self.offset} - i"
        if not self.slope:
            return f"{self.offset}"
        return "i" + (f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}" * bool(self.offset))


class _Wave(NamedTuple):
    """A coordinate of queries and keys.

    Attributes:
        query, key: a cosine or sine of q, times the weight of its wavelength, and of j.
        query_at_0: the query at i = 0.
        code_of_0: the query that leads to position 0: the weight for a cosine, 0 for a sine.

    """

    query: Form
    key: Form
    query_at_0: Fraction
    code_of_0: Fraction


def _waves(
    code: PositionCode, index: tuple[int, int], feature: Callable[[str], Form]
) -> list[_Wave]:
    """Return the coordinates whose queries are the code of q = σi + c.

    With ω = 2π/L and σ = ±1: cos ωq = cos ωc cos ωi − σ sin ωc sin ωi, and
    sin ωq = sin ωc cos ωi + σ cos ωc sin ωi. With σ = 0 both are numbers.
    """
    slope, offset = index
    found = list[_Wave]()
    for weight, names, (c, s) in zip(code.weights, code.waves, code.at(offset), strict=True):
        # A wave whose query is 0 is not read.
        read = names if slope else (names[0] if c else None, names[1] if s else None)
        cosine, sine = (feature(name) if name else Form() for name in read)
        of_cosine, of_sine = Form.of(c), Form.of(s)
        if slope:
            of_cosine = cosine * c - sine * (slope * s)
            of_sine = cosine * s + sine * (slope * c)
        found.append(_Wave(of_cosine * weight, cosine, c * weight, weight))
        found.append(_Wave(of_sine * weight, sine, s * weight, Fraction(0)))
    return found


def _with_sink(code: PositionCode, waves: Sequence[_Wave], at_bos: Form) -> list[tuple[Form, Form]]:
    """Return queries and keys by which BOS has the same score for every query.

    This score is T, half of the ideal gap below Σ a. By `PositionCode.gap` the score of a symbol is
    off by at most 6 e Σ a. So T is at least 1 − 6 e Σ a below the score of a symbol at q, and at
    least as far above the scores of all others: half of the gap of the code.
    """
    score = code.largest - Fraction(IDEAL_GAP, 2)
    if all(each.query.is_constant for each in waves):
        # At BOS the cosines are 1 and the sines 0, so its score is S(q − 0), and what BOS's own
        # coordinate adds makes it T.
        score -= sum(each.query_at_0 for each in waves if each.code_of_0)
        return [*((each.query, each.key) for each in waves), (Form.of(score), at_bos)]
    # The cosines become 0 at BOS, so that their products do not round there.
    quiet = [(x.query, x.key - at_bos if x.code_of_0 else x.key) for x in waves]
    return [*quiet, (Form.of(score), at_bos)]
