"""Steps of a decoder: all that is done to the stream of the next rows, one after another."""

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
    """One operation on the stream of the next rows.

    Attributes:
        changes: true if rows that come change its record.

    """

    changes = False

    @abstractmethod
    def __call__(self, z: NDArray[Any]) -> None:
        """Change z in place."""

    def record(self, z: NDArray[Any]) -> Record:
        """The record for the kernel for one token, which has each token's vector in z, (1, d)."""
        return Record()

    def settle(self, record: Any) -> None:  # noqa: B027 - most keep nothing
        """Count the rows that the kernel has consumed by its record, a `RECORD`."""


class _Sublayer:
    """Arrays that the steps of a sublayer of heads share: its input, and the sum of its outputs."""

    def __init__(self, written: Sequence[int], norm: LayerNorm | None, a: Floating) -> None:
        self.written, self._norm, self._a = np.array(written, np.int64), norm, a
        self._token = np.empty((0, 0), a.dtype)
        self._of_token = self._of_rows = (self._token, self._token)

    def hold(self, z: NDArray[Any]) -> None:
        """Make arrays that stay in place, for one token after another in this z."""
        norm, dtype = self._norm, self._a.dtype
        source = z if norm is None else np.zeros((1, norm.width_out), dtype)
        self._token, self._of_token = z, (source, np.zeros((1, len(self.written)), dtype))

    def begin(self, z: NDArray[Any]) -> None:
        """Normalize the input of the next rows, and set the sum to 0."""
        if z is not self._token:
            total = np.zeros((len(z), len(self.written)), self._a.dtype)
            self._of_rows = (self._normalized(z), total)
            return
        # The arrays of a token stay in place, so that the records with their addresses stay valid.
        source, total = self._of_token
        total[:] = 0
        if source is not z:
            source[:] = self._normalized(z)

    def _normalized(self, z: NDArray[Any]) -> NDArray[Any]:
        return z if self._norm is None else self._norm.on(z, self._a)

    def arrays(self, z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The input of these rows, and the sum of the outputs."""
        return self._of_token if z is self._token else self._of_rows

    @property
    def is_plain(self) -> bool:
        """True if the heads read the stream itself."""
        return self._norm is None


@final
class Begin(DecoderStep):
    """Begin a sublayer of heads."""

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
    """Add the output of a head to the sum."""

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
    """Add the sum to z, in the coordinates written."""

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
    """Add the output of a network to z."""

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
    """Normalize the stream."""

    def __init__(self, norm: LayerNorm, a: Floating) -> None:
        self._norm, self._a = norm, a

    def __call__(self, z: NDArray[Any]) -> None:
        for rows in blocks(len(z)):
            z[rows] = self._norm.on(z[rows], self._a)


@final
class Finite(DecoderStep):
    """Refuse an overflow in the stream."""

    # Infinite numbers and NaN stay so in every later sum, so one look at the end is enough, and one
    # before each post-norm, which may turn them into finite numbers.

    def __init__(self, a: Floating) -> None:
        self._a = a

    def __call__(self, z: NDArray[Any]) -> None:
        require_finite(Many(z), self._a)

    def record(self, z: NDArray[Any]) -> Record:
        return Record(FINITE)


def steps_of(model: Transformer, a: Floating) -> list[DecoderStep]:
    """The steps between the embedding and the read-out."""
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
        # All heads read the stream as it was before the sublayer, so their outputs are summed apart
        # first.
        steps = [Begin(shared), *(Attend(shared, head) for head in heads), End(shared, a)]
    norm = definition.post_norm
    return steps if norm is None else [Finite(a), *steps, Normalize(norm, a)]
