"""Feed-forward networks by their weights that are not 0, in blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.stream_vectors import Vectors, blocks
from transformist.model import ACTIVATIONS, FeedForward, LayerNorm


@dataclass(frozen=True, eq=False)
class Network:
    """A feed-forward sublayer before its post-norm, as the reference computes it.

    Attributes:
        activation: the name of the activation.
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

    def __call__(self, z: ResidualStream) -> Vectors:
        """The output of the network for a stream, in the coordinates written."""
        if self.norm is None:
            hidden = z.rows(self.first.read).through(self.first.on_what_it_reads, self.first.height)
        else:
            norm = self.norm
            hidden = z.whole().through(lambda x: self.first(norm.on(x, self.a)), self.first.height)
        return hidden.through(lambda h: self.second(self._act(h)), len(self.written)).kept()

    def add(self, z: NDArray[Any]) -> None:
        """Add f(norm(z)) to z, in place."""
        for rows in blocks(len(z)):
            x = z[rows] if self.norm is None else self.norm.on(z[rows], self.a)
            self.second.add(self._act(self.first(x)), z[rows], self.written)

    def _act(self, hidden: NDArray[Any]) -> NDArray[Any]:
        activated: NDArray[Any] = ACTIVATIONS[self.activation](hidden, self.a)
        return activated
