"""Weightings, and orders of work at a row, as numbers for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformist.model import Mask, Weighting

SOFTMAX, AVERAGE, FIRST, LAST, OTHER = range(5)
"""Weightings; the first and last of the largest scores are those in the order of the keys.

`OTHER` is a weighting that no kernel has: the reference's own function is called for every row.
"""

KINDS: dict[Weighting, int] = {
    Weighting.SOFTMAX: SOFTMAX,
    Weighting.AVERAGE_HARD: AVERAGE,
    Weighting.LEFTMOST_HARD: FIRST,
    Weighting.RIGHTMOST_HARD: LAST,
}
"""The weightings that the kernels have."""

MIRRORED = {SOFTMAX: SOFTMAX, AVERAGE: AVERAGE, FIRST: LAST, LAST: FIRST, OTHER: OTHER}
"""The weighting to compute where keys come from the last to the first."""

READ, TAKE, TAKE_READ, READ_TAKE = range(4)
"""Work at each row: read the query's answer, take the key, or both in either order."""


def order_under(mask: Mask) -> int:
    """Order of work at each row; where all keys are seen, they are taken before the first row."""
    if mask.is_whole:
        return READ
    return TAKE_READ if mask.admits_itself else READ_TAKE


# exp(−110) < 2⁻¹⁵⁸: 2⁴⁰ such weights together are below 2⁻¹¹⁸ of the largest one, far below the
# rounding 2⁻⁵³ of their sum.
FAR = 110.0
"""Scores this far below the largest are left out of a softmax."""


def root_of(d_key: int, dtype: np.dtype[Any]) -> Any:
    """√d_key, by which scores are divided, rounded to the format as in the reference.

    Example:
        >>> root_of(2, np.dtype(np.float32)).tolist()
        1.4142135381698608

    """
    return np.sqrt(np.float64(d_key)).astype(dtype)
