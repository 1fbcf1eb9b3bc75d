"""What a decoder does to the next rows, one step after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.decoding.causal import CausalHead
from transformist.engines.structured.decoding.token_table import (
    CLEAR,
    FINITE,
    NETWORK,
    SUM,
    Record,
)
from transformist.engines.structured.network import Network
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.sparse_model import SparseSublayer, sparse_model
from transformist.engines.structured.stream_vectors import blocks, require_finite
from transformist.model import LayerNorm, Transformer


class DecoderStep(ABC):
    """Something that is done to the stream of the next rows.

    Attributes:
        changes: whether its record is another one once rows have come.

    """

    changes = False

    @abstractmethod
    def __call__(self, z: NDArray[Any]) -> None:
        """Do it, in place."""

    def record(self, z: NDArray[Any]) -> Record:
        """For the kernel that takes one token after another, each in this z, (1, d)."""
        return Record()

    def settle(self, record: Any) -> None:  # noqa: B027 - most keep nothing
        """Know what the kernel has done, which is in its record, a `RECORD`."""


class _Sublayer:
    """What the steps of a sublayer of heads share: what they read, the sum of what they give."""

    def __init__(self, written: Sequence[int], norm: LayerNorm | None, a: Floating) -> None:
        self.written, self._norm, self._a = np.array(written, np.int64), norm, a
        self._token = np.empty((0, 0), a.dtype)
        self._of_token = self._of_rows = (self._token, self._token)

    def hold(self, z: NDArray[Any]) -> None:
        """Arrays that stay where they are, for one token after another in this z."""
        norm, dtype = self._norm, self._a.dtype
        source = z if norm is None else np.zeros((1, norm.width_out), dtype)
        self._token, self._of_token = z, (source, np.zeros((1, len(self.written)), dtype))

    def begin(self, z: NDArray[Any]) -> None:
        """What the heads read of the next rows, and 0 for what they give."""
        if z is not self._token:
            total = np.zeros((len(z), len(self.written)), self._a.dtype)
            self._of_rows = (self._normalized(z), total)
            return
        source, total = self._of_token
        total[:] = 0
        if source is not z:
            source[:] = self._normalized(z)

    def _normalized(self, z: NDArray[Any]) -> NDArray[Any]:
        return z if self._norm is None else self._norm.on(z, self._a)

    def arrays(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """What the heads read of these rows, and the sum of what they give."""
        return self._of_token if z is self._token else self._of_rows

    @property
    def is_plain(self) -> bool:
        """Whether the heads read the stream itself."""
        return self._norm is None


@final
class Begin(DecoderStep):
    """The beginning of a sublayer of heads."""

    def __init__(self, sublayer: _Sublayer) -> None:
        self._sublayer = sublayer

    def __call__(self, z: NDArray[Any]) -> None:
        self._sublayer.begin(z)

    def record(self, z: NDArray[Any]) -> Record:
        self._sublayer.hold(z)
        _, total = self._sublayer.arrays(z)
        return Record(CLEAR, arrays={"total": total}) if self._sublayer.is_plain else Record()


@final
class Attend(DecoderStep):
    """What a head gives, added to the sum."""

    changes = True

    def __init__(self, sublayer: _Sublayer, head: CausalHead) -> None:
        self.head, self._sublayer = head, sublayer
        self._into = np.searchsorted(sublayer.written, head.maps.written)

    def __call__(self, z: NDArray[Any]) -> None:
        source, total = self._sublayer.arrays(z)
        self.head.maps.output.add(self.head.mix(source), total, self._into)

    def record(self, z: NDArray[Any]) -> Record:
        return self.head.record(*self._sublayer.arrays(z), self._into)

    def settle(self, record: Any) -> None:
        self.head.took(int(record["taken"]))
        record["taken"] = 0


@final
class End(DecoderStep):
    """z + the sum, in the coordinates that are written."""

    def __init__(self, sublayer: _Sublayer, a: Floating) -> None:
        self._sublayer, self._a = sublayer, a

    def __call__(self, z: NDArray[Any]) -> None:
        written, (_, total) = self._sublayer.written, self._sublayer.arrays(z)
        z[:, written] = self._a.add(total, z[:, written])

    def record(self, z: NDArray[Any]) -> Record:
        _, total = self._sublayer.arrays(z)
        return Record(SUM, arrays={"total": total, "into": self._sublayer.written})


@final
class Feed(DecoderStep):
    """A network, added."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def __call__(self, z: NDArray[Any]) -> None:
        self._network.add(z)

    def record(self, z: NDArray[Any]) -> Record:
        own = self._network
        if own.activation != "relu" or own.norm is not None:
            return Record()
        maps = {"first": own.first, "second": own.second}
        arrays = {"hidden": np.empty((1, own.first.height), z.dtype), "into": own.written}
        return Record(NETWORK, maps=maps, arrays=arrays)


@final
class Normalize(DecoderStep):
    """The stream, normalized."""

    def __init__(self, norm: LayerNorm, a: Floating) -> None:
        self._norm, self._a = norm, a

    def __call__(self, z: NDArray[Any]) -> None:
        for rows in blocks(len(z)):
            z[rows] = self._norm.on(z[rows], self._a)


@final
class Finite(DecoderStep):
    """The refusal of what has overflowed: what is infinite or NaN stays so, but for a post-norm."""

    def __init__(self, a: Floating) -> None:
        self._a = a

    def __call__(self, z: NDArray[Any]) -> None:
        require_finite(Many(z), self._a)

    def record(self, z: NDArray[Any]) -> Record:
        return Record(FINITE)


def steps_of(model: Transformer, a: Floating) -> list[DecoderStep]:
    """All that is done between the embedding and the read-out."""
    steps: list[DecoderStep] = []
    for sublayer in sparse_model(model, a).sublayers:
        steps += _steps_of_sublayer(sublayer, a)
    steps.append(Finite(a))
    return steps if model.final_norm is None else [*steps, Normalize(model.final_norm, a)]


def _steps_of_sublayer(sublayer: SparseSublayer, a: Floating) -> list[DecoderStep]:
    function, definition = sublayer.function, sublayer.definition
    if isinstance(function, Network):
        steps: list[DecoderStep] = [Feed(function)]
    else:
        shared = _Sublayer(sublayer.written, definition.pre_norm, a)
        heads = [CausalHead(maps) for maps in function]
        steps = [Begin(shared), *(Attend(shared, head) for head in heads), End(shared, a)]
    norm = definition.post_norm  # which may drop what has overflowed before this sublayer
    return steps if norm is None else [Finite(a), *steps, Normalize(norm, a)]
