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
from transformist.verify.proof.ideal import ONE, Form
from transformist.verify.proof.rounding_errors import Approximation, RoundingErrors
from transformist.verify.proof.upwards import (
    FLOOR,
    ROOM,
    Floats,
    Unfollowed,
    compounded,
    magnitudes,
    require_terms,
    up,
)


def normalized(norm: LayerNorm, z: Approximation, r: RoundingErrors, where: str) -> Approximation:
    """Return the vector after a norm.

    Raises:
        Unfollowed: if there is no positive lower bound of σ² + ε, exact or computed, or if the
            vectors are longer than the sums that `ROOM` covers.

    """
    require_terms(max(len(z.forms), norm.width_out), where, "coordinates")
    if norm.W_N is not None:
        z = r.affine(norm.W_N, np.zeros(norm.width_out), z, where).values
    mean = r.ideal.combined((Fraction(1, norm.width_out), form) for form in z.forms)
    centred = [r.ideal.combined([(ONE, form), (-ONE, mean)]) for form in z.forms]
    lo, hi, sizes = r.ideal.measured(centred)
    c = sizes[0]
    of_mean = _mean(z.reach[0], z.error[0], r, where)[1]
    of_c = _stored(c, z.error[0] + of_mean, r)
    least, most, of_sum = _sum(norm, lo, hi, c, of_c, r, where)
    # Where T₀ is not above 0, `left` is not either. `left` is a difference: the root of `least` is
    # below √T₀ by ROOM/2, e_σ was rounded up, and ROOM covers the rest.
    root = np.sqrt(np.maximum(least, FLOOR))
    of_root = up(of_sum / root + r.per_operation * np.sqrt(most + of_sum) + r.tiny)
    left = (root - of_root) * (1 - ROOM)
    if not (np.all(least > 0) and np.all(left > 0)):
        raise Unfollowed(where, "there is no positive lower bound of σ² + ε")
    ratio = up(c / root)
    of_ratio = _stored(ratio, up((of_c + c * of_root / root) / left), r)
    r.require(ratio + of_ratio, r.a.largest, where)
    # The ideal c/√T lies between the quotients of the ends of c and of √T, `root` and `top`.
    top, forms = np.sqrt(most) * (1 + ROOM), list[Form]()
    for k, form in enumerate(centred):
        if form:
            low = np.minimum(lo[k] / root, lo[k] / top)
            high = np.maximum(hi[k] / root, hi[k] / top)
            room = ROOM * magnitudes(low, high)
            form = {r.ideal.add((where, k), low - room, high + room, None): ONE}
        forms.append(form)
    return _scaled(norm, r.values(forms, of_ratio), r, where)


def _stored(size: Floats, error: Floats, r: RoundingErrors) -> Floats:
    """Error of a result that rounds once more: `error` before that, `size` of the ideal result."""
    return np.asarray(up(error + r.per_operation * (size + error) + 2 * r.tiny))


def _mean(terms: Floats, errors: Floats, r: RoundingErrors, where: str) -> tuple[Floats, Floats]:
    """Return bounds of (Σ terms)/d, and of its error.

    d terms are added with d − 1 roundings, and the sum is stored. d is rounded to d̃ = d (1 + δ),
    |δ| ≤ near; |d/d̃ − 1| ≤ near/(1 − near). The quotient rounds once more.
    """
    d = len(terms)
    (given,), (off,) = r.rounded(np.array([float(d)]))
    near = off / d
    if not (given > 0 and near < 1):
        raise Unfollowed(where, "its width is no number of the format")
    once, growth = float(compounded(r.per_operation, near / (1 - near))), r.growth(d - 1)
    total = (terms + errors).sum(axis=0)
    error = errors.sum(axis=0) + growth * total + d * 2 * r.tiny_partial
    error = error + r.storing * (total + error) + r.tiny
    r.require(up((total + error) * (1 + growth)), r.a.largest, where)
    return up(total / d), up(error / d * (1 + once) + total / d * once + r.tiny)


def _sum(
    norm: LayerNorm, lo: Floats, hi: Floats, c: Floats, of_c: Floats, r: RoundingErrors, where: str
) -> tuple[Floats, Floats, Floats]:
    """Return T₀, an upper bound of T, and the error e_T."""
    # |c̃² − c²| ≤ 2 |c| e_c + e_c², and the square rounds.
    square = up((c + of_c) ** 2)
    of_square = up(2 * c * of_c + of_c**2 + r.per_operation * square + 2 * r.tiny)
    variance, of_variance = _mean(square, of_square, r, where)
    # Each c² is at least the square of the end of c that is nearer to 0. ROOM covers d + 3
    # operations on numbers ≥ 0.
    least_c = np.where((lo <= 0) & (hi >= 0), 0.0, np.minimum(np.abs(lo), np.abs(hi)))
    least = ((least_c**2).sum(axis=0) / len(c) + float(norm.epsilon)) * (1 - ROOM)
    most = up(variance + float(norm.epsilon) * (1 + ROOM) + FLOOR)
    _, of_epsilon = r.rounded(np.asarray(norm.epsilon).reshape(1))
    of_sum = _stored(most, of_variance + of_epsilon[0], r)
    r.require(most + of_sum, r.a.largest, where)
    return least, most, of_sum


def _scaled(norm: LayerNorm, y: Approximation, r: RoundingErrors, where: str) -> Approximation:
    """Return y ⊙ γ + β: a product and a sum, each stored."""
    gain: Any = np.asarray(norm.gain)
    zero = np.zeros(len(gain))
    product = r.affine(gain[:, None] * np.eye(len(gain), dtype=int), zero, y, where).values
    shift = [r.ideal.constant(Fraction(x)) for x in np.asarray(norm.bias).tolist()]
    _, off = r.rounded(norm.bias)
    error = np.repeat(off[:, None], r.ideal.kinds, axis=1)
    return r.added([product, r.values(shift, error)], where)
