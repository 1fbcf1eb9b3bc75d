"""The keys and values that a decoder has read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.arrays import unfilled


class Past:
    """The keys and values so far; the room for them doubles."""

    def __init__(self, width: int, value_width: int, dtype: np.dtype[Any]) -> None:
        self._keys = np.empty((16, width), dtype)
        self._values = np.empty((16, value_width), dtype)
        self.count = 0

    @property
    def keys(self) -> NDArray[Any]:
        """The keys, (count, columns)."""
        return self._keys[: self.count]

    @property
    def values(self) -> NDArray[Any]:
        """The values, (count, d_value)."""
        return self._values[: self.count]

    @property
    def room(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Keys and values with the unused room behind them."""
        return self._keys, self._values

    def take(self, keys: NDArray[Any], values: NDArray[Any]) -> None:
        """Append keys and values."""
        end = self.count + len(keys)
        if end > len(self._keys):
            size = max(2 * len(self._keys), end)
            grown = [unfilled(size, old.shape[1], old.dtype) for old in self.room]
            for old, new in zip((self.keys, self.values), grown, strict=True):
                new[: self.count] = old
            self._keys, self._values = grown
        self._keys[self.count : end] = keys
        self._values[self.count : end] = values
        self.count = end

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy, without unused memory, which may hold anything."""
        return {"_keys": self.keys, "_values": self.values, "count": self.count}
