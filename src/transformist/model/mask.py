"""Masks: the positions that each position may attend to (Definition 2.3)."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Flags

Positions: TypeAlias = NDArray[np.int64]
"""Positions of a sequence, counted from 0."""

PositionOrPositions = TypeVar("PositionOrPositions", int, Positions)


class Mask(StrEnum):
    """Keys that a query may attend to: those before it, its own, those behind it.

    A mask is a string, its name, and compares, hashes and prints as one; `Mask("future")` finds it.
    The admissible keys of a query are always consecutive: `span` gives the ends.

    Attributes:
        looks_back: true if position i may attend to every j < i, BOS among them.
        admits_itself: true if position i may attend to j = i.
        looks_ahead: true if position i may attend to every j > i.

    Example:
        >>> from transformist.model import Mask
        >>> Mask("strict-future"), Mask("strict-future") == "strict-future"
        ('strict-future', True)
        >>> [mask for mask in Mask if mask.is_causal]
        ['future', 'strict-future']

    """

    looks_back: bool
    admits_itself: bool
    looks_ahead: bool

    NONE = "none", True, True, True
    FUTURE = "future", True, True, False
    STRICT_FUTURE = "strict-future", True, False, False
    PAST = "past", False, True, True
    STRICT_PAST = "strict-past", False, False, True

    def __new__(cls, name: str, *admits: bool) -> Mask:
        mask = str.__new__(cls, name)
        mask._value_ = name
        mask.looks_back, mask.admits_itself, mask.looks_ahead = admits
        return mask

    __repr__ = str.__repr__

    @property
    def is_causal(self) -> bool:
        """True if no position attends to a later one, so that symbols can be read one by one."""
        return not self.looks_ahead

    @property
    def is_strict(self) -> bool:
        """True if no position attends to itself."""
        return not self.admits_itself

    @property
    def is_whole(self) -> bool:
        """True if every position attends to all positions."""
        return self.looks_back and self.looks_ahead

    def admissible(self, i: Positions, j: Positions) -> Flags:
        """True where query i may attend to key j; the two arrays are broadcast.

        Example:
            >>> i = np.arange(3)
            >>> Mask.FUTURE.admissible(i[:, None], i[None, :]).astype(int).tolist()
            [[1, 0, 0], [1, 1, 0], [1, 1, 1]]

        """
        if self.is_whole:
            return np.full(np.broadcast_shapes(i.shape, j.shape), True)
        if self.looks_back:
            return j < i + int(self.admits_itself)
        return j >= i + int(self.is_strict)

    def span(
        self, i: PositionOrPositions, n: int
    ) -> tuple[PositionOrPositions, PositionOrPositions]:
        """Return (first, stop): query i of n may attend to the keys first ≤ j < stop.

        Example:
            >>> Mask.FUTURE.span(1, 3), Mask.STRICT_FUTURE.span(0, 3)
            ((0, 2), (0, 0))
            >>> Mask.PAST.span(np.array([0, 2]), 3)
            (array([0, 2]), array([3, 3]))

        """
        # 0 * i keeps the shape of an array of queries where the end is the same for all.
        first = 0 * i if self.looks_back else i + int(self.is_strict)
        stop = 0 * i + n if self.looks_ahead else i + int(self.admits_itself)
        return first, stop
