"""A head, and its queries, keys and values on an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Floating
from transformist.engines.structured.arrays import unfilled
from transformist.engines.structured.heads.weightings import (
    KINDS,
    MIRRORED,
    OTHER,
    SOFTMAX,
    order_under,
)
from transformist.engines.structured.once import once
from transformist.engines.structured.ranges import ColumnRanges, are_exact, are_small
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.stream_vectors import Vectors, blocks
from transformist.model import Attention

# A float64 sum of up to 2⁴⁰ values, each below the largest number divided by 2⁴², stays finite with
# a factor of 4 to spare; no memory holds 2⁴⁰ rows.
SUMMED = 2.0**42
"""Values times this must not overflow in float64."""


# Numerator and denominator of a mean are sums over the same computed weights. Each of at most n
# terms is rounded once as a product, at most n times as part of a sum, and at most n times where
# sums are scaled: with u = 2⁻⁵³ the quotient is at most (1 + u)^(4n + 3) times the largest value.
# For n ≤ 2⁴⁰ that is below 1 + 2⁻¹⁰ even after rounding to float32.
MEAN_ROUNDING = 1 + 2.0**-10
"""A computed mean is at most this many times the largest value."""


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """The affine maps of a head.

    Queries and keys have only the columns in which the weights make neither of them 0: products of
    the other columns are 0.

    Attributes:
        head: the head.
        a: the format.
        written: the coordinates that it writes.
        query, key, value, output: the affine maps, the last in the coordinates written.
        fixed: true for columns of the query that the weights make constant.

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
        # A product with 0 is 0 and adds nothing to a score. √d_key counts all columns all the same.
        has_query = (w.W_Q != 0).any(axis=1) | (w.b_Q != 0)
        has_key = (w.W_K != 0).any(axis=1) | (w.b_K != 0)
        live = np.flatnonzero(has_query & has_key)
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
        """The head's d_key; scores are divided by its root."""
        return int(self.head.W_Q.shape[0])

    @property
    def d_value(self) -> int:
        """The number of numbers in a value."""
        return int(self.head.W_V.shape[0])

    @property
    def backwards(self) -> bool:
        """True if keys come from the last to the first."""
        return not self.head.mask.looks_back

    @property
    def order(self) -> int:
        """The order of work at each row, under the mask."""
        return order_under(self.head.mask)

    @once
    def kind(self) -> int:
        """The weighting as a number for kernels; first and last in the order in which keys come."""
        kind = KINDS.get(self.head.weighting, OTHER)
        return MIRRORED[kind] if self.backwards else kind

    def terms(self, keys: NDArray[Any]) -> NDArray[np.float64]:
        """The terms that columns with a fixed query add to the dot products of keys."""
        terms = np.zeros(len(keys))
        for column in np.flatnonzero(self.fixed):
            terms += float(self.query.shift[column]) * keys[:, column]
        return terms

    @once
    def read(self) -> NDArray[np.int64]:
        """The coordinates that queries, keys or values depend on."""
        w = self.head.rounded(self.a)
        matrices = np.concatenate([w.W_Q, w.W_K, w.W_V])
        return np.flatnonzero((matrices != 0).any(axis=0))

    def stay_finite(self, sizes: NDArray[np.float64]) -> bool:
        """True if no query, key, value or score overflows, and no sum of values in float64.

        Args:
            sizes: upper bounds on the sizes of the coordinates in `read`.

        """
        # |W| sizes + |b| bounds queries, keys, values and all their partial sums. A bound of a
        # quarter of the largest number leaves room for rounding, here and in the head, as n
        # rounded sums of d terms exceed it by a factor of at most (1 + 2⁻²⁴)^d < 2.
        W, b, most = self._sizes
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            numbers = W @ sizes + b
            scores = numbers[: self.d_key] @ numbers[self.d_key : 2 * self.d_key]
        return bool((numbers <= most).all() and scores <= self.a.largest / 4)

    @once
    def _sizes(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """|W| and |b| of queries, keys and values, and the limits of these."""
        w = self.head.rounded(self.a)
        W, b = (
            np.abs(np.concatenate(each)).astype(np.float64)
            for each in ([w.W_Q, w.W_K, w.W_V], [w.b_Q, w.b_K, w.b_V])
        )
        most = np.full(len(b), self.a.largest / 4)
        most[2 * self.d_key :] = min(self.a.largest / 4, FLOAT64.largest / SUMMED)
        return W[:, self.read], b, most


class ScoreRanges:
    """Ranges of the numbers in queries and keys, from which scores are judged.

    Attributes:
        queries, keys: the ranges of their columns.

    """

    def __init__(self, maps: HeadMaps) -> None:
        self._maps = maps
        self.queries, self.keys = ColumnRanges(len(maps.fixed)), ColumnRanges(len(maps.fixed))

    def take(self, queries: NDArray[Any], keys: NDArray[Any]) -> None:
        """Widen the ranges by more queries and keys."""
        self.queries.take(queries)
        self.keys.take(keys)

    @property
    def are_exact(self) -> bool:
        """True if no dot product of a query and a key rounds."""
        return are_exact(self.queries, self.keys, self._maps.a)

    @property
    def allow_terms(self) -> bool:
        """True if the order of summation in a score has no part in what a head attends to."""
        if self._maps.kind == SOFTMAX:
            return are_small(self.queries, self.keys, self._maps.d_key)
        return self.are_exact


@dataclass(frozen=True, eq=False)
class HeadInput:
    """A head and a whole input.

    Attributes:
        maps: the maps of the head.
        z: the vectors.

    """

    maps: HeadMaps
    z: ResidualStream

    @property
    def n(self) -> int:
        """The number of vectors."""
        return self.z.n

    def in_order(self) -> Iterator[slice]:
        """The rows in blocks, in the order in which the mask lets keys come."""
        return blocks(self.n, self.maps.backwards)

    @once
    def queries(self) -> Vectors:
        """The queries."""
        return self.z.image(self.maps.query)

    @once
    def keys(self) -> Vectors:
        """The keys."""
        return self.z.image(self.maps.key)

    @once
    def values(self) -> Vectors:
        """The values."""
        return self.z.image(self.maps.value)

    @once
    def is_finite(self) -> bool:
        """True if nothing that the methods compute overflows, as the sizes met show."""
        return self.maps.stay_finite(self.z.sizes(self.maps.read.tolist()))

    @once
    def scores(self) -> ScoreRanges:
        """The ranges of all queries and keys."""
        ranges = ScoreRanges(self.maps)
        self.queries.measure(ranges.queries)
        self.keys.measure(ranges.keys)
        return ranges

    def filled(self, mix: Callable[[slice, NDArray[Any]], None]) -> NDArray[Any]:
        """The mixed values that a function puts into blocks of rows, one after the other."""
        out = unfilled(self.n, self.maps.d_value, self.maps.a.dtype)
        for rows in self.in_order():
            with self.block(out, rows) as block:
                mix(rows, block)
        return out

    @contextmanager
    def block(self, out: NDArray[Any], rows: slice) -> Iterator[NDArray[Any]]:
        """The rows of `out`, to be filled: kernels are compiled for rows that go forwards."""
        block = np.empty_like(out[rows]) if self.maps.backwards else out[rows]
        yield block
        if self.maps.backwards:
            out[rows] = block

    def means(self, mixed: NDArray[Any]) -> Many:
        """Mixed values: means of values, so no larger than these but for their rounding."""
        return Many(mixed, self.values.sizes * MEAN_ROUNDING)
