"""Weightings: the functions from the scores of a query to its attention weights (2.3, 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import numpy as np

from transformist.arithmetic import Arithmetic, Array, Flags


def softmax(s: Array, admissible: Flags, a: Arithmetic) -> Array:
    """αᵢⱼ = exp(sᵢⱼ − maxᵢ) / Σ exp(sᵢⱼ − maxᵢ) over the admissible j."""
    # With maxᵢ subtracted every exponent is at most 0: no exponential overflows, and one of them is
    # e⁰ = 1, so the sum is at least 1.
    below = a.keep(a.subtract(s, a.maximum(s, admissible)), admissible)
    e = a.keep(a.exp(below), admissible)
    return a.divide(e, _or_one(a.sum(e), admissible, a))


def average_hard(s: Array, admissible: Flags, a: Arithmetic) -> Array:
    """Equal weights on all maximal admissible scores (ahardmax, Definition 5.1)."""
    # Whole numbers first, then one division: k equal weights are each 1/k, rounded once.
    chosen = a.maximal(s, admissible).astype(np.int64)
    return a.divide(a.array(chosen), a.array(np.maximum(chosen.sum(-1, keepdims=True), 1)))


def leftmost_hard(s: Array, admissible: Flags, a: Arithmetic) -> Array:
    """All the weight on the first maximal admissible score (lhardmax)."""
    maximal = a.maximal(s, admissible)
    return a.array((maximal & (np.cumsum(maximal, axis=-1) == 1)).astype(np.int64))


def rightmost_hard(s: Array, admissible: Flags, a: Arithmetic) -> Array:
    """All the weight on the last maximal admissible score (rhardmax)."""
    maximal = a.maximal(s, admissible)
    seen_from_right = np.cumsum(maximal[..., ::-1], axis=-1)[..., ::-1]
    return a.array((maximal & (seen_from_right == 1)).astype(np.int64))


def _or_one(total: Array, admissible: Flags, a: Arithmetic) -> Array:
    """The divisor of a row: its total, or 1 in a row without an admissible score."""
    empty = np.broadcast_to(~admissible.any(-1, keepdims=True), total.shape)
    return a.add(total, a.array(empty.astype(np.int64)))


class Weighting(StrEnum):
    """Function from scores to attention weights.

    A weighting is a string, its name, and compares, hashes and prints as one;
    `Weighting("softmax")` finds it. Its arguments are scores (..., r, n), flags that say which
    scores are admissible, and an arithmetic. It returns weights (..., r, n); in a row without an
    admissible score they are all 0.

    Attributes:
        is_hard: true if only the largest scores have weight, so that scores are compared and no
            exponential is needed.
        ties: how several largest scores share the weight: `mean` (equal parts), `leftmost` (the
            first has all) or `rightmost` (the last has all).

    Example:
        >>> from transformist.model import Weighting
        >>> [weighting for weighting in Weighting if weighting.takes_one]
        ['leftmost-hard', 'rightmost-hard']

    """

    is_hard: bool
    ties: str
    _function: Callable[[Array, Flags, Arithmetic], Array]

    SOFTMAX = "softmax", softmax, False, "mean"
    AVERAGE_HARD = "average-hard", average_hard, True, "mean"
    LEFTMOST_HARD = "leftmost-hard", leftmost_hard, True, "leftmost"
    RIGHTMOST_HARD = "rightmost-hard", rightmost_hard, True, "rightmost"

    def __new__(cls, name: str, *facts: Any) -> Weighting:
        weighting = str.__new__(cls, name)
        weighting._value_ = name
        weighting._function, weighting.is_hard, weighting.ties = facts
        return weighting

    __repr__ = str.__repr__

    @property
    def takes_one(self) -> bool:
        """True if a query attends to a single position."""
        return self.ties != "mean"

    def __call__(self, s: Array, admissible: Flags, a: Arithmetic) -> Array:
        """Attention weights α (..., r, n) of the scores s (..., r, n)."""
        return self._function(s, admissible, a)
