"""Feed-forward networks by the weights that are not 0, in blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.head import blocks
from transformist.engines.structured.sparse import SparseMap
from transformist.model import ACTIVATIONS, FeedForward, LayerNorm


@dataclass(frozen=True, eq=False)
class Network:
    """A feed-forward sublayer before its post-norm, as the reference computes it.

    Attributes:
        activation: by its name.
        norm: the pre-norm.
        a: the format.
        first, second: its affine maps, the second in the coordinates `written`.

    """

    activation: str
    norm: LayerNorm | None
    a: Floating
    first: SparseMap
    second: SparseMap
    written: NDArray[np.int64]

    @classmethod
    def of(cls, network: FeedForward, norm: LayerNorm | None, a: Floating) -> Network:
        """The maps of a network, its weights rounded to the format."""
        w, written = network.rounded(a), np.array(network.written, np.int64)
        first = SparseMap.of(w.W_1, w.b_1)
        second = SparseMap.of(w.W_2[written], w.b_2[written])
        return cls(network.activation, norm, a, first, second, written)

    def add(self, z: NDArray[Any]) -> None:
        """z + f(norm(z)), in place."""
        act = ACTIVATIONS[self.activation]
        for rows in blocks(len(z)):
            x = z[rows] if self.norm is None else self.norm(z[rows], self.a)
            self.second.add(act(self.first(x), self.a), z, self.written, rows)
