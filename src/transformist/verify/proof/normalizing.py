"""Layer normalization: (x − μ)/√(σ² + ε) ⊙ γ + β, operation by operation.

- c = x − μ is affine in x, so it is a form, with ends. Let e_c be the error of the computed c.
- T = σ² + ε ≥ T₀ > 0; T̃ is computed within e_T. As |√a − √b| = |a − b|/(√a + √b), the computed
  root is within e_σ = e_T/√T₀ + v √T̃ of √T, v being the rounding of one operation.
- With s = √T ≥ √T₀ and s̃ ≥ √T₀ − e_σ, c̃/s̃ − c/s = ((c̃ − c) + (c/s)(s − s̃))/s̃, which is at most
  (e_c + |c| e_σ/√T₀)/(√T₀ − e_σ). The quotient rounds once more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from transformist.model import LayerNorm
from transformist.verify.proof.ideal import FLOOR, ROOM, Floats, Form, Unfollowed, compounded, up
from transformist.verify.proof.rounding import Rounding, Values


def normalized(norm: LayerNorm, z: Values, r: Rounding, where: str) -> Values:
    """Return the vector after a norm.

    Raises:
        Unfollowed: if there is no positive lower bound of σ² + ε, exact or computed.

    """
    ideal, size = r.ideal, norm.width_out
    if norm.W_N is not None:
        z = r.affine(norm.W_N, np.zeros(size), z, where).values
    given, counted = r.rounded(np.array([float(size)]))
    # Quotients by d: d is rounded to d̃ = d (1 + δ), |δ| ≤ near; |d/d̃ − 1| ≤ near/(1 − near).
    near = float(counted[0]) / size
    once = float(compounded(r.per_operation, near / (1 - near)))
    growth = r.growth(size - 1)  # d numbers are added with d − 1 roundings
    share = Fraction(1, size)
    mean = ideal.combined([(share, form) for form in z.forms])
    centred = [ideal.combined([(Fraction(1), x), (Fraction(-1), mean)]) for x in z.forms]
    lo, hi, sizes = r.measured(centred)
    c, x, e = sizes[0], z.reach[0], z.error[0]

    def summed(terms: Floats, errors: Floats) -> tuple[Floats, Floats]:
        """Bounds of (Σ terms)/d, and of its error."""
        total = (terms + errors).sum(axis=0)
        off = errors.sum(axis=0) + growth * total + size * 2 * r.tiny_partial
        off = off + r.storing * (total + off) + r.tiny
        r.require((total + off) * (1 + growth), r.a.largest, where)
        return up(total / size), up(off / size * (1 + once) + total / size * once + r.tiny)

    of_mean = summed(x, e)[1]
    of_c = e + of_mean
    of_c = up(of_c + r.per_operation * (c + of_c) + 2 * r.tiny)
    square = up((c + of_c) ** 2)
    of_square = up(2 * c * of_c + of_c**2 + r.per_operation * square + 2 * r.tiny)
    variance, of_variance = summed(square, of_square)
    # T₀: each c² is at least the square of the end of c that is nearer to 0.
    least_c = np.where((lo <= 0) & (hi >= 0), 0.0, np.minimum(np.abs(lo), np.abs(hi)))
    _, of_epsilon = r.rounded(np.asarray(norm.epsilon).reshape(1))
    least = ((least_c**2).sum(axis=0) / size + float(norm.epsilon)) * (1 - ROOM)
    most = up(variance + float(norm.epsilon) * (1 + ROOM) + FLOOR)
    of_sum = of_variance + of_epsilon[0]
    of_sum = up(of_sum + r.per_operation * (most + of_sum) + 2 * r.tiny)
    r.require(most + of_sum, r.a.largest, where)
    root = np.sqrt(np.maximum(least, FLOOR))
    of_root = up(of_sum / root + r.per_operation * np.sqrt(most + of_sum) + r.tiny)
    left = (root - of_root) * (1 - ROOM)
    if not (np.all(least > 0) and np.all(left > 0) and float(given[0]) > 0):
        raise Unfollowed(where, "there is no positive lower bound of σ² + ε")
    of_ratio = up((of_c + c * of_root / root) / left)
    ratio = up(c / root)
    of_ratio = up(of_ratio + r.per_operation * (ratio + of_ratio) + 2 * r.tiny)
    r.require(ratio + of_ratio, r.a.largest, where)
    # The ideal c/√T lies between the quotients of the ends of c and of √T.
    ends = root, np.sqrt(most) * (1 + ROOM)
    forms: list[Form] = []
    for k, form in enumerate(centred):
        if form:
            low = np.minimum(lo[k] / ends[0], lo[k] / ends[1])
            high = np.maximum(hi[k] / ends[0], hi[k] / ends[1])
            pad = ROOM * np.maximum(np.abs(low), np.abs(high))
            form = {ideal.add((where, k), low - pad, high + pad, None): Fraction(1)}
        forms.append(form)
    return _scaled(norm, r.values(forms, of_ratio), r, where)


def _scaled(norm: LayerNorm, y: Values, r: Rounding, where: str) -> Values:
    """Return y ⊙ γ + β: a product and a sum, each stored."""
    gain: Any = np.asarray(norm.gain)
    zero = np.zeros(len(gain))
    product = r.affine(gain[:, None] * np.eye(len(gain), dtype=int), zero, y, where).values
    shift = [r.ideal.constant(Fraction(x)) for x in np.asarray(norm.bias).tolist()]
    _, off = r.rounded(norm.bias)
    return r.added(
        [product, r.values(shift, np.repeat(off[:, None], r.ideal.kinds, axis=1))], where
    )
