"""A head on an input: its queries, keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Floating
from transformist.engines.structured.heads.weightings import (
    KINDS,
    MIRRORED,
    OTHER,
    SOFTMAX,
    order_under,
)
from transformist.engines.structured.once import once
from transformist.engines.structured.ranges import Measured, are_exact, are_small
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.rows import Few, Rows, blocks
from transformist.engines.structured.sparse import SparseMap
from transformist.model import Attention

FEW = 512
"""How many distinct queries or keys are few."""

SUMMED = 2.0**42
"""Four times more values than are ever summed."""


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """What a head computes of each vector, by its weights.

    Queries and keys are there in the columns in which neither is 0 by the weights: the products of
    the others are 0.

    Attributes:
        head: the head.
        a: the format.
        written: the coordinates that it writes.
        query, key, value, output: the affine maps, the last in the coordinates written.
        fixed: which columns of the query the weights make constant.

    """

    head: Attention
    a: Floating
    written: NDArray[np.int64]
    query: SparseMap
    key: SparseMap
    value: SparseMap
    output: SparseMap
    fixed: NDArray[np.bool_]

    @classmethod
    def of(cls, head: Attention, a: Floating) -> HeadMaps:
        """The maps of a head, its weights rounded to the format."""
        w = head.rounded(a)
        asked = (w.W_Q != 0).any(axis=1) | (w.b_Q != 0)
        held = (w.W_K != 0).any(axis=1) | (w.b_K != 0)
        live = np.flatnonzero(asked & held)
        written = np.array(head.written, np.int64)
        last = np.eye(head.width_out, dtype=a.dtype) if w.W_O is None else w.W_O
        return cls(
            head=head,
            a=a,
            written=written,
            query=SparseMap.of(w.W_Q[live], w.b_Q[live]),
            key=SparseMap.of(w.W_K[live], w.b_K[live]),
            value=SparseMap.of(w.W_V, w.b_V),
            output=SparseMap.of(last[written], w.b_O[written]),
            fixed=~(w.W_Q[live] != 0).any(axis=1),
        )

    @property
    def d_key(self) -> int:
        """As the head has it; scores are divided by its root."""
        return int(self.head.W_Q.shape[0])

    @property
    def d_value(self) -> int:
        """How many numbers a value has."""
        return int(self.head.W_V.shape[0])

    def terms(self, keys: NDArray[Any]) -> NDArray[np.float64]:
        """What keys add to dot products by the columns in which the weights fix the query."""
        terms = np.zeros(len(keys))
        for column in np.flatnonzero(self.fixed):
            terms += float(self.query.shift[column]) * keys[:, column]
        return terms

    @once
    def read(self) -> NDArray[np.int64]:
        """The coordinates that queries, keys or values are made of."""
        w = self.head.rounded(self.a)
        matrices = np.concatenate([w.W_Q, w.W_K, w.W_V])
        return np.flatnonzero((matrices != 0).any(axis=0))

    def stay_finite(self, sizes: NDArray[np.float64]) -> bool:
        """Whether no query, key, value or score overflows, and no sum of values in float64.

        Args:
            sizes: how large the coordinates are that it reads, at most.

        """
        W, b, most = self._sizes
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            numbers = W @ sizes + b
            scores = numbers[: self.d_key] @ numbers[self.d_key : 2 * self.d_key]
        return bool((numbers <= most).all() and scores <= self.a.largest / 4)

    @once
    def _sizes(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """|W| and |b| of queries, keys and values, and what these are to be at most."""
        w = self.head.rounded(self.a)
        W, b = (
            np.abs(np.concatenate(each)).astype(np.float64)
            for each in ([w.W_Q, w.W_K, w.W_V], [w.b_Q, w.b_K, w.b_V])
        )
        most = np.full(len(b), self.a.largest / 4)  # twice its rounding
        most[2 * self.d_key :] = min(self.a.largest / 4, FLOAT64.largest / SUMMED)
        return W[:, self.read], b, most


@dataclass(frozen=True, eq=False)
class HeadInput:
    """A head and the vectors it reads.

    Attributes:
        maps: what the head computes of each.
        z: the vectors.

    """

    maps: HeadMaps
    z: ResidualStream

    @property
    def n(self) -> int:
        """How many vectors there are."""
        return self.z.n

    @property
    def backwards(self) -> bool:
        """Whether keys come from the last to the first."""
        return not self.maps.head.mask.looks_back

    @property
    def order(self) -> int:
        """What is done at each row, under the mask."""
        return order_under(self.maps.head.mask)

    @property
    def kind(self) -> int:
        """What becomes of the scores, in the order in which keys come."""
        kind = KINDS.get(self.maps.head.weighting, OTHER)
        return MIRRORED[kind] if self.backwards else kind

    @property
    def is_hard(self) -> bool:
        """Whether only the largest scores count."""
        return self.kind != SOFTMAX

    def in_order(self) -> Iterator[slice]:
        """The rows in blocks, in the order in which the mask lets keys come."""
        return blocks(self.n, self.backwards)

    @once
    def queries(self) -> Rows:
        """The queries."""
        return self.z.image(self.maps.query)

    @once
    def keys(self) -> Rows:
        """The keys."""
        return self.z.image(self.maps.key)

    @once
    def values(self) -> Rows:
        """The values."""
        return self.z.image(self.maps.value)

    def few(self, rows: Rows) -> Few | None:
        """The distinct ones of queries or keys, where they are few."""
        return rows.grouped(FEW)

    @once
    def is_finite(self) -> bool:
        """Whether nothing that its methods compute overflows, as the sizes met say."""
        return self.maps.stay_finite(self.z.sizes(self.maps.read.tolist()))

    @once
    def measured(self) -> tuple[Measured, Measured]:
        """What is known of the numbers of queries and keys."""
        queries, keys = Measured(len(self.maps.fixed)), Measured(len(self.maps.fixed))
        self.queries.measure(queries)
        self.keys.measure(keys)
        return queries, keys

    @property
    def is_exact(self) -> bool:
        """Whether no dot product of a query and a key rounds, as `are_exact` says."""
        return are_exact(*self.measured, self.maps.a)

    @property
    def is_soft(self) -> bool:
        """Whether a softmax does not depend on how scores are summed, as `are_small` says."""
        return are_small(*self.measured, self.maps.d_key)
