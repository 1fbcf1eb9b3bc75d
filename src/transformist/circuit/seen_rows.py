"""Rows that a mask leaves: whether BOS is among them, what counts them, and the range of a mean."""

from __future__ import annotations

from fractions import Fraction

from transformist.laws import INFINITY, Bound, Range, hull

SEES_BOS = ("none", "future", "strict-future")
"""The masks under which a symbol sees BOS."""

CAUSAL = ("future", "strict-future")
"""The masks under which a symbol sees nothing behind itself."""


def rows_under(mask: str) -> str:
    """Name of D, the number of rows that a mask leaves, in the grid of a mean."""
    return f"rows under mask {mask}"


def mean_range(symbols: Range, bos: Range | None, most: Bound) -> Range:
    """Range of the mean of one to `most` numbers in a range, and of the number at BOS.

    BOS has the weight 1/(m + 1) beside m symbols, which is least for m = `most`. The mean is linear
    in this weight, so both ends are at m = 0 (BOS alone) or at m = `most`.
    """
    if bos is None:
        return symbols
    share = Fraction(0) if most == INFINITY else 1 / (Fraction(most) + 1)
    return hull((bos, symbols.times(1 - share) + bos.times(share)))
