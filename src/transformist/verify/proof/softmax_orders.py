"""Ways of evaluating softmax attention, and the rounding of each.

In each way sums may be taken in any order and grouping, which includes the reference's order, from
left to right. The ways differ in how exponentials are computed, stored and normalised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from transformist.verify.proof.rounding_errors import RoundingErrors
from transformist.verify.proof.upwards import compounded, repeated, up


class EqualWeight(NamedTuple):
    """Weight ω that every key of a mean has, bit for bit.

    Attributes:
        error: bound of |D ω − 1|, D the number of keys.
        quantum: the exponent k of 2ᵏ, of which ω is a multiple.

    """

    error: float
    quantum: int


@dataclass(frozen=True)
class SoftmaxOrder:
    """A way of evaluating softmax attention.

    Attributes:
        name: the argument `order` that selects it.
        words: its name within a sentence.
        rescales: True if exponentials are rounded to the format and applied before they are
            normalised, and sums are rescaled at each block of keys with a larger score, as in GPU
            kernels.
        scores_in_accumulator: True if scores are not rounded to the format.
        exp_error: relative error of an exponential; `None` for 2 units in the last place.
        of_weight: additional relative error of each weight.
        of_largest: additional error of a mean, relative to the largest magnitude of a value, whose
            weight may be small: (per row, constant).
        scalings: roundings of a product of a query and a key where their coordinates are scaled.
        angle: largest angle by which pairs of coordinates of queries and keys are rotated.

    """

    name: str
    words: str
    rescales: bool = False
    scores_in_accumulator: bool = False
    exp_error: float | None = None
    of_weight: float = 0.0
    of_largest: tuple[float, float] = (0.0, 0.0)
    scalings: int = 0
    angle: float = 0.0

    @property
    def is_approximate(self) -> bool:
        """True if means have an additional error, so that no weight is computed as `any` does."""
        return self.of_weight > 0 or any(self.of_largest)

    def distance_error(self, r: RoundingErrors) -> float:
        """θ: relative error of the distance t of a score below the largest.

        s̃_j − max is one stored operation, off by v = `per_operation` of itself. In blocks it is a
        sum of two or more differences of one sign, each off by v of itself, times a rounded log₂ e:
        2v. Both are doubled, which covers products of errors: (1 + v)² − 1 ≤ 4v for v ≤ 2.
        """
        return (4 if self.rescales else 2) * r.per_operation

    def weight_error(self, r: RoundingErrors, rows: int) -> float:
        """ε: relative error of a weight before it is normalised.

        A unit in the last place of x is at most 2u |x|, so two of them are 4u |x|. In blocks a
        weight is a product of its exponential and at most one exponential for each later block with
        a larger score (the others rescale by exp(0) = 1): at most `rows` factors. Each is off by
        e = `exp_error` + 4w (its argument and product round in the accumulator). The weight of a
        largest score, by which it is divided, may be 1 − e: 1/(1 − e) ≤ (1 + e)² for e ≤ 1/2.
        """
        if self.exp_error is None:
            return 4 * r.u
        e = self.exp_error + 4 * r.w
        return float(repeated(e, rows + 2)) if e <= 0.5 else math.inf

    def mean_error(self, r: RoundingErrors, rows: int, even: bool) -> tuple[float, float]:
        """Return γ, the relative error of Σ w_j v_j / Σ w_j for given w_j, and that by underflow.

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
        growth += self.of_weight
        return float(up(growth)), float(up(2 * rows * (r.tiny + 2 * r.tiny_partial)))

    def error_of_largest(self, rows: int) -> float:
        """Return `of_largest` for this number of rows."""
        return float(up(self.of_largest[0] * rows + self.of_largest[1]))

    def equal_weight(self, r: RoundingErrors, rows: int) -> EqualWeight | None:
        """Return the one weight of a mean whose computed weights are all equal, or `None`.

        Every w_j is exp(0) = 1, or 1 is divided by the number of keys, D ≤ rows ≤ 2ᵗ. A sum of
        ones is exact in the accumulator for D ≤ 1/w. It is stored, exactly for D ≤ 2ᵖ, and the
        quotient ω = (1 + δ)/D is rounded once more. Rounding is monotone, so 2⁻ᵗ ≤ ω ≤ 1; if 2⁻ᵗ is
        a normal number, ω has p bits, so it is a multiple of 2^(1 − t − p). Every key has this ω.

        Kernels and the structured engine do not compute such weights: there is none for them.
        """
        if self.rescales or self.is_approximate or rows > 1 / r.w:
            return None
        t, p = (rows - 1).bit_length(), r.a.precision
        if 2.0**-t < r.tiny * 2.0 ** (p - 1):
            return None
        of_count = 0.0 if rows <= 2**p else r.per_operation
        return EqualWeight(float(compounded(r.per_operation, of_count / (1 - of_count))), 1 - t - p)


EVALUATIONS: Mapping[str, SoftmaxOrder] = {
    each.name: each
    for each in (
        SoftmaxOrder("any", "in any order of summation"),
        SoftmaxOrder("reference", "in the order of the reference, from left to right"),
        SoftmaxOrder(
            "structured",
            "by the structured engine, in the order of each method",
            # The distance from the reference that `engines/structured/evaluation.py` states and its
            # tests hold: (16 n + 5000) 2⁻⁵³ of the largest value, and 2⁻⁴⁰ for keys with terms.
            of_largest=(16 * 2.0**-53, 5000 * 2.0**-53 + 2.0**-40),
        ),
        SoftmaxOrder(
            "flash",
            "by kernels that normalise last, as flash attention",
            rescales=True,
            scores_in_accumulator=True,
            exp_error=2.0**-20,  # exp2 in hardware, float32: 2 units in the last place are 2⁻²²
        ),
    )
}
"""Ways of evaluating softmax attention, by name."""


def host_orders(angle: float) -> tuple[SoftmaxOrder, ...]:
    """Ways in which a stock class evaluates attention: eager, and the kernels of sdpa.

    - Eager attention normalises first, and the kernel of sdpa without blocks does so, too. This
      kernel scales queries and keys by the root of 1/√d_head: the root and each product round, 4
      roundings in all. A rotation computes q cos a + q′ sin a, with cos a = 1 up to 2u: it rounds
      by less than 4u each for q and k. So a product has fewer than 4 + 8 roundings of its own.
    - The kernels in blocks normalise last: `flash`.
    - Softmax may multiply by a rounded 1/Σ instead of dividing by Σ: less than 8u more.
    """
    shared = {"scalings": 12, "angle": angle, "of_weight": 8 * 2.0**-24}
    return tuple(replace(EVALUATIONS[name], **shared) for name in ("any", "flash"))  # type: ignore[arg-type]
