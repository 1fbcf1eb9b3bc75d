"""Functions of the number of a row, as tables of exact values.

Rows are numbered from 0, which is BOS, to N. A mean under the mask `future` at row r is over the
r + 1 rows 0 to r. One of them is BOS, so the share of BOS is 1/(r + 1). Sums of such shares, of
constants, and of hidden units that read these sums depend on r alone. Their values at r = 0, …, N
follow from the weights, without rounding. So a proof can see that a sum of hidden units is a
position function, such as i or i². It then has the unknown of this function (`Walk.position`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.position_features import position

MOST_ROWS = 2**12
"""Largest N for which functions are tabulated, which bounds the running time."""

NAMES = ("i", "i^2", "i^3", "(-1)^i")
"""Position functions with which sums are compared; all have whole values at every row and BOS."""


@dataclass(frozen=True, eq=False)
class RowFunction:
    """A function of the row r = 0, …, N, with the values numerators[r] / (c (r + 1)).

    Sums, multiples, and min(max(x, 0), h) of such functions are again of this form.

    Attributes:
        numerators: (N + 1,): whole numbers of any size.
        c: a whole number above 0.

    """

    numerators: NDArray[Any]
    c: int = 1

    @classmethod
    def share_of_bos(cls, longest: int) -> RowFunction:
        """1/(r + 1)."""
        return cls(np.array([1] * (longest + 1), dtype=object))

    @classmethod
    def of_position(cls, name: str, longest: int) -> RowFunction:
        """A position function of `NAMES`."""
        values = [int(position(name, r, r)) * (r + 1) for r in range(longest + 1)]
        return cls(np.array(values, dtype=object))

    @classmethod
    def of_rows(cls, at_bos: Fraction, at_symbols: Fraction, longest: int) -> RowFunction:
        """One number at BOS, and one at all other rows."""
        c = math.lcm(at_bos.denominator, at_symbols.denominator)
        values = np.arange(1, longest + 2).astype(object) * int(at_symbols * c)
        values[0] = int(at_bos * c)
        return cls(values, c)

    @classmethod
    def total(cls, parts: Iterable[tuple[Fraction, RowFunction]]) -> RowFunction:
        """Σ factor · function of one part or more."""
        listed = list(parts)
        c = math.lcm(*(x.denominator * each.c for x, each in listed))
        values: Any = 0
        for x, each in listed:
            values = values + each.numerators * int(x * (c // each.c))
        return cls(values, c)

    def clipped(self, limit: Fraction | None) -> RowFunction:
        """min(max(x, 0), limit); no limit for `None`."""
        if limit is None:
            return RowFunction(np.maximum(self.numerators, 0), self.c)
        rows = np.arange(1, len(self.numerators) + 1).astype(object)
        whole = RowFunction(self.numerators * limit.denominator, self.c * limit.denominator)
        most = rows * (whole.c // limit.denominator * limit.numerator)
        return RowFunction(np.minimum(np.maximum(whole.numerators, 0), most), whole.c)

    def at(self, row: int) -> Fraction:
        """The value at a row."""
        return Fraction(self.numerators[row], self.c * (row + 1))

    def ends(self) -> tuple[Fraction, Fraction]:
        """The least and the largest value at the rows 1 to N."""
        # Over the common denominator c (N + 1)! the numbers would be large, and rationals are slow.
        # float64 is off by less than 2⁻⁵⁰ of a value, so the least value is among the rows whose
        # float64 is within 2⁻⁴⁵ of the largest magnitude of the least float64; and so at the top.
        rows = np.arange(2, len(self.numerators) + 1).astype(object) * self.c
        values = (self.numerators[1:] / rows).astype(float)
        near = 2.0**-45 * np.abs(values).max()
        low = np.flatnonzero(values <= values.min() + near)
        high = np.flatnonzero(values >= values.max() - near)
        return min(self.at(int(r) + 1) for r in low), max(self.at(int(r) + 1) for r in high)

    def in_terms_of(self, other: RowFunction) -> tuple[Fraction, Fraction] | None:
        """Return (a, b) with self = a + b · other at every row and b ≠ 0, or `None`."""
        rise = other.at(1) - other.at(0)
        b = (self.at(1) - self.at(0)) / rise
        a = self.at(0) - b * other.at(0)
        one = RowFunction.of_rows(Fraction(1), Fraction(1), len(self.numerators) - 1)
        off = RowFunction.total([(Fraction(1), self), (-b, other), (-a, one)])
        return (a, b) if b and not off.numerators.any() else None
