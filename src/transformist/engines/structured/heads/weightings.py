"""What becomes of scores, and in which order keys come, as numbers for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformist.model import Mask, Weighting

SOFTMAX, AVERAGE, FIRST, LAST, OTHER = range(5)
"""What becomes of the maximal scores; first and last in the order in which keys come.

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
"""What a kind is where keys come from the last to the first."""

READ, TAKE, TAKE_READ, READ_TAKE = range(4)
"""What is done at each row, and in which order."""


def order_under(mask: Mask) -> int:
    """Order of work at each row; where all keys are seen, they are taken before the first row."""
    if mask.is_whole:
        return READ
    return TAKE_READ if mask.admits_itself else READ_TAKE


FAR = 110.0
"""How far below the largest a score is left out of a softmax: exp(−110) is less than 2⁻¹⁵⁸, and so
much less than the rounding of a sum is what any number of them weigh."""


def root_of(d_key: int, dtype: np.dtype[Any]) -> Any:
    """√d_key, by which scores are divided, as the reference rounds it: a number of the format.

    Example:
        >>> root_of(2, np.dtype(np.float32)).tolist()
        1.4142135381698608

    """
    return np.sqrt(np.float64(d_key)).astype(dtype)
