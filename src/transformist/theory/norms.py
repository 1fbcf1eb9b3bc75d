"""Norms of vectors and matrices, in which perturbations are measured (section 7.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from transformist.arithmetic import exact_numbers
from transformist.errors import ShapeMismatch, UnknownName, is_name
from transformist.model import rationals
from transformist.rounding.powers import SLACK

T = TypeVar("T")

NORMS = ("l1", "l2", "linf")
"""Names of Σ|xₖ|, √Σxₖ² and max|xₖ|; the norm of a list of vectors is the largest of theirs."""


def by_norm(table: Mapping[str, T], norm: str) -> T:
    """Return the entry of a table that has one for each norm.

    Raises:
        UnknownName: for a norm that does not exist.

    """
    if not is_name(norm, NORMS):
        raise UnknownName.among("norm", norm, NORMS)
    return table[norm]


def root_above(x: Fraction) -> Fraction:
    """Return √x for x ≥ 0: exact for the square of a rational, else at most 2⁻⁶⁰ of it too large.

    Example:
        >>> root_above(Fraction(9, 4)), float(root_above(Fraction(2)))
        (Fraction(3, 2), 1.4142135623730951)

    """
    # √(p/q) = √(p q)/q, so that only the root of an integer is rounded. Shifted left by 2k bits the
    # integer has at least 124, its root at least 62: 1 too much is at most 2⁻⁶¹ of that root.
    product = x.numerator * x.denominator
    root = math.isqrt(product)
    if root * root == product:
        return Fraction(root, x.denominator)
    shift = max(0, 62 - product.bit_length() // 2)
    return Fraction(math.isqrt(product << 2 * shift) + 1, x.denominator << shift)


def _largest(sizes: Any) -> Fraction:
    return max((Fraction(size) for size in sizes), default=Fraction(0))


_VECTOR: dict[str, Callable[[Any], Fraction]] = {
    "l1": lambda row: sum((abs(x) for x in row), Fraction(0)),
    "l2": lambda row: root_above(sum((x * x for x in row), Fraction(0))),
    "linf": lambda row: _largest(abs(x) for x in row),
}


def vector_norm(x: Any, norm: str) -> Fraction:
    """Return ‖x‖, the largest over positions for a list of vectors; roots are rounded up (2⁻⁶⁰).

    Args:
        x: numbers, shape (..., d).
        norm: `l1`, `l2` or `linf`.

    Raises:
        UnknownName: for another norm.
        ShapeMismatch: for a single number, or none.

    Example:
        >>> [int(vector_norm([[3, -4], [1, 1]], norm)) for norm in NORMS]
        [7, 5, 4]

    """
    rows = rationals(x)
    if not rows.ndim or not rows.size:
        raise ShapeMismatch(
            "x must be a vector of at least one number, or a list of such vectors",
            received="no number" if rows.ndim else "a single number",
            where="vector_norm",
            remedy="give a list of numbers",
        )
    return _largest(map(by_norm(_VECTOR, norm), rows.reshape(-1, rows.shape[-1])))


def operator_norm(A: Any, norm: str) -> Fraction:
    """Return ‖A‖, the largest ‖A x‖ over ‖x‖ ≤ 1.

    The largest column sum of |A| for l1 and the largest row sum for linf, exactly; for l2 a proved
    upper bound of the largest singular value, about 10⁻⁹ of itself too large (`_spectral`), or the
    root of the sum of squares of a single row or column.

    Args:
        A: a matrix, shape (m, n).
        norm: `l1`, `l2` or `linf`.

    Raises:
        UnknownName: for another norm.
        ShapeMismatch: for an argument that is not a matrix.

    Example:
        >>> operator_norm([[1, 1]], "l1"), operator_norm([[1, 1]], "linf")
        (Fraction(1, 1), Fraction(2, 1))
        >>> round(float(operator_norm([[1, 1], [0, 0]], "l2")), 6)
        1.414214

    """
    return by_norm(_OPERATOR, norm)(_matrix(A, "operator_norm"))


def bilinear_norm(A: Any, norm: str) -> Fraction:
    """Return ‖A‖_B, a bound of |x · A y| over all ‖x‖, ‖y‖ ≤ 1.

    The largest |Aᵢⱼ| for l1, exactly; the bound of the largest singular value for l2; Σ|Aᵢⱼ| for
    linf, which is reached where A = diag(±1) |A| diag(±1).

    Raises:
        UnknownName: for another norm.
        ShapeMismatch: for an argument that is not a matrix.

    Example:
        >>> bilinear_norm([[1, -2], [3, 4]], "l1"), bilinear_norm([[1, -2], [3, 4]], "linf")
        (Fraction(4, 1), Fraction(10, 1))

    """
    return by_norm(_BILINEAR, norm)(_matrix(A, "bilinear_norm"))


def l_inf_1_norm(A: Any) -> Fraction:
    """Return ‖A‖_∞,₁ = Σᵢ maxⱼ |Aᵢⱼ| (section 7.2), a bound of the operator norm for l1 only.

    Each column sum of |A| is at most the sum of the row maxima. For l2 and linf it is no bound:
    A = [1 1] has ‖A‖_∞,₁ = 1, but takes (1, 1) to 2, which is √2 and 2 times as large:
    for those, `operator_norm`.

    Raises:
        ShapeMismatch: for an argument that is not a matrix.

    Example:
        >>> l_inf_1_norm([[1, -2], [3, 4]])
        Fraction(6, 1)

    """
    return sum(map(_largest, abs(rationals(_matrix(A, "l_inf_1_norm")))), Fraction(0))


def _matrix(A: Any, where: str) -> Any:
    exact = exact_numbers(A, "A")
    if exact.ndim != 2 or not exact.size:
        raise ShapeMismatch(
            "A must be a matrix with at least one row and one column",
            received=f"shape {exact.shape}",
            where=where,
            remedy="give a list of equally long rows",
        )
    return exact


def _spectral(A: Any) -> Fraction:
    """Return an upper bound of ‖A‖₂, from float64 singular vectors that need not be exact."""
    # With V any n × n matrix near an orthogonal one, and B = A V,
    #
    #     ‖A‖ ≤ ‖B‖ / σ_min(V),   ‖B‖² = ‖BᵀB‖ ≤ the largest row sum of |BᵀB|,
    #     σ_min(V)² ≥ 1 − ‖VᵀV − I‖_F,
    #
    # and V of the singular vectors makes BᵀB nearly diagonal. A float64 product of k terms, in any
    # order, is within k u |X| |Y| of X Y, so in the 2-norm within k u ‖X‖_F ‖Y‖_F: `gram`, `skew`
    # and `image` add that. A is scaled by a power of two, its largest entry then being in [¼, 1],
    # and rounded to float64 (u ‖A‖_F). Underflow, and the rounding of these few sums of positive
    # terms, are far within `SLACK`.
    # A matrix and its transpose have the same singular values; the smaller Gram matrix is taken.
    A = A if A.shape[0] >= A.shape[1] else A.T
    if A.shape[1] == 1:
        return vector_norm(A.T, "l2")
    top = _largest(abs(A).ravel().tolist())
    if not top:
        return Fraction(0)
    # With p of a bits and q of b, p/q lies between 2^(a−b−1) and 2^(a−b+1): the scale is above it,
    # and less than 4 times as large.
    scale = Fraction(2) ** (top.numerator.bit_length() - top.denominator.bit_length() + 1)
    near = (rationals(A) / scale).astype(np.float64)
    m, n = near.shape
    V = np.linalg.svd(near)[2].T
    B = near @ V
    size_A, size_B, size_V = (float(np.linalg.norm(X)) for X in (near, B, V))
    gram = float(np.abs(B.T @ B).sum(axis=1).max()) + m * _U * size_B**2
    skew = float(np.linalg.norm(V.T @ V - np.eye(n))) + n * _U * size_V**2
    image = math.sqrt(gram) + n * _U * size_A * size_V
    bound = image / math.sqrt(1 - skew) + 2 * _U * size_A
    return Fraction(bound * SLACK) * scale


_U = 2.0**-53
"""Unit roundoff of float64."""

_OPERATOR: dict[str, Callable[[Any], Fraction]] = {
    "l1": lambda A: vector_norm(A.T, "l1"),
    "l2": _spectral,
    "linf": lambda A: vector_norm(A, "l1"),
}

_BILINEAR: dict[str, Callable[[Any], Fraction]] = {
    "l1": lambda A: vector_norm(A, "linf"),
    "l2": _spectral,
    "linf": lambda A: vector_norm(A.reshape(1, -1), "l1"),
}
