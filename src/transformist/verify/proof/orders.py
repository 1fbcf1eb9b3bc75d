"""Ways of evaluating softmax attention, and the rounding of each.

In each way sums may be taken in any order and grouping, which includes the reference's order, from
left to right. The ways differ in how exponentials are computed, stored and normalised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from transformist.verify.proof.ideal import up
from transformist.verify.proof.rounding import Rounding


@dataclass(frozen=True)
class Evaluation:
    """A way of evaluating softmax attention.

    Attributes:
        name: the argument `order` that selects it.
        words: its name within a sentence.
        rescales: True if exponentials are rounded to the format and applied before they are
            normalised, and sums are rescaled at each block of keys with a larger score, as in GPU
            kernels.
        scores_in_accumulator: True if scores are not rounded to the format.
        exp_error: relative error of an exponential; `None` for 2 units in the last place.
        further: error of a mean besides, relative to the largest value: per row, and once.

    """

    name: str
    words: str
    rescales: bool = False
    scores_in_accumulator: bool = False
    exp_error: float | None = None
    further: tuple[float, float] = (0.0, 0.0)

    def weight_error(self, r: Rounding, rows: int) -> float:
        """ε: relative error of a weight before it is normalised.

        A unit in the last place of x is at most 2u |x|, so two of them are 4u |x|. In blocks a
        weight is a product of its exponential and at most one exponential for each later block with
        a larger score (the others rescale by exp(0) = 1): at most `rows` factors. Each is off by
        e = `exp_error` + 4w (its argument and product round in the accumulator). The weight of a
        largest score, by which it is divided, may be 1 − e: 1/(1 − e) ≤ (1 + e)² for e ≤ 1/2.
        """
        if self.exp_error is None:
            return 4 * r.u
        return float(up(math.expm1((rows + 2) * math.log1p(self.exp_error + 4 * r.w))))

    def mean_error(self, r: Rounding, rows: int, even: bool) -> tuple[float, float]:
        """γ: relative error of Σ w_j v_j / Σ w_j for given w_j, and its error by underflow.

        The numerator is off by a factor 1 + T, the denominator by 1 + B at most, so the quotient by
        (1 + T)/(1 − B) − 1 = (T + B)/(1 − B) ≤ ((1 + T)(1 + B) − 1)/(1 − B).

        - Normalised first: Σ w_j has rows − 1 roundings and is stored (exactly, if all w_j are 1
          and the format holds the number of rows); each quotient is stored; products and their sum
          have `rows` roundings, and the sum is stored.
        - Normalised last: each w_j is rounded to the format (u). Both sums round at each of `rows`
          rows and, in blocks, at each of at most `rows` rescalings. The quotient is stored.

        Each row may underflow in a weight (`tiny`), a product and a sum (`tiny_partial`). The
        factor 2 covers the later factors 1 + T and 1/(1 − B).
        """
        w, once = rows * math.log1p(r.w), math.log1p(r.per_operation)
        if self.rescales:
            top, bottom = 2 * w + math.log1p(r.u) + once, 2 * w + once
        else:
            is_exact = even and rows <= 2**r.a.precision
            top, bottom = w + 2 * once, 0.0 if is_exact else w + once
        less = math.expm1(bottom)  # B
        growth = math.expm1(top + bottom) / (1 - less) if less < 0.5 else math.inf
        growth += self.further[0] * rows + self.further[1]
        return float(up(growth)), float(up(2 * rows * (r.tiny + 2 * r.tiny_partial)))
