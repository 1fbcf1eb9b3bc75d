"""The interface of the ways to evaluate a head."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.groups import Groups
from transformist.engines.structured.heads.head import HeadInput, HeadMaps
from transformist.engines.structured.heads.past import Past
from transformist.engines.structured.stream_vectors import Vectors

# A row costs 4 to 20 ns for each query or key, measured, against 4 to 10 ns for each position where
# every pair is evaluated: 512 of them pay from some 1,000 rows on. The scores of a block then take
# 2⁹ · 2¹³ numbers of float64, the 32 MiB of `estimates.ROOM`. In programs distinct queries are
# mostly as few as symbols, or as many as positions.
FEW = 512
"""At most this many distinct queries or keys count as few."""


class Method(ABC):
    """A way to evaluate one head on one input: on all rows at once, or on rows as they come.

    A whole input is evaluated by `fits`, then `mixed`. A decoder calls `mix` for rows as they come.

    Attributes:
        maps: the head.
        why: the reason for which the method was chosen.

    """

    name = ""
    cost = ""

    def __init__(self, maps: HeadMaps) -> None:
        self.maps, self.why = maps, ""

    @abstractmethod
    def fits(self, given: HeadInput) -> bool:
        """True if the method attends where the reference does on a whole input; sets `why`."""

    @abstractmethod
    def mixed(self, given: HeadInput) -> Vectors:
        """The mixed values of a whole input that fits, (n, d_value), in the format."""

    @abstractmethod
    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: Past
    ) -> NDArray[np.float64] | None:
        """The mixed values of the next rows, under a future mask.

        `None` says that the method does not fit these rows; the object must not be used again.

        Args:
            queries: of the next rows, in the columns of `HeadMaps`.
            keys: of the next rows, in the same columns.
            values: of the next rows, (rows, d_value).
            past: the keys and values of all rows before them.

        """

    def token_arrays(self) -> tuple[Groups, dict[str, NDArray[Any]]] | None:
        """The groups and arrays for the kernel for one token; `None` if it cannot run the method.

        The names are fields of `token_table.ARRAYS`.
        """
        return None

    def took(self, rows: int) -> None:  # noqa: B027 - most methods count nothing
        """Record how many rows the kernel for one token consumed."""

    def groups(self, width: int) -> Groups:
        """An empty table for few distinct vectors of this width."""
        return Groups(width, FEW, self.maps.a.dtype)
