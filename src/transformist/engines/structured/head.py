"""A head on an input: its queries, keys and values, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Floating
from transformist.engines.structured.by_query import (
    AVERAGE,
    FIRST,
    LAST,
    READ,
    READ_TAKE,
    SOFTMAX,
    TAKE_READ,
)
from transformist.engines.structured.groups import Groups
from transformist.engines.structured.ranges import Measured, are_exact, are_small, largest_of
from transformist.engines.structured.sparse import SparseMap
from transformist.errors import NotFinite
from transformist.model import Attention

BLOCK = 2**12
"""How many rows are computed at once."""

FEW = 512
"""How many distinct queries or keys are few."""

SUMMED = 2.0**42
"""Four times more values than are ever summed."""

KINDS = {
    "softmax": SOFTMAX,
    "average-hard": AVERAGE,
    "leftmost-hard": FIRST,
    "rightmost-hard": LAST,
}
MIRRORED = {SOFTMAX: SOFTMAX, AVERAGE: AVERAGE, FIRST: LAST, LAST: FIRST}
"""What a kind is where keys come from the last to the first."""

ORDERS = {
    "none": READ,
    "future": TAKE_READ,
    "strict-future": READ_TAKE,
    "past": TAKE_READ,
    "strict-past": READ_TAKE,
}


def blocks(n: int, backwards: bool = False) -> Iterator[slice]:
    """Rows 0 to n − 1 in slices, or n − 1 to 0.

    Example:
        >>> [list(range(3)[rows]) for rows in blocks(3, backwards=True)]
        [[2, 1, 0]]

    """
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        if backwards:
            last = n - stop - 1
            yield slice(n - start - 1, None if last < 0 else last, -1)
        else:
            yield slice(start, stop)


def require_finite(z: NDArray[Any], a: Floating) -> None:
    """Refuse what has overflowed.

    Raises:
        NotFinite: for a number that is NaN or infinite.

    """
    for rows in blocks(len(z)):
        if not np.isfinite(z[rows]).all():
            raise NotFinite(
                f"scores and values stay below {a.largest:g} in {a.name}",
                received="one that overflows",
                where="structured engine",
                remedy="use a format with a wider range",
            )


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

    def terms(self, keys: NDArray[Any]) -> NDArray[np.float64]:
        """What keys add to dot products by the columns in which the weights fix the query."""
        terms = np.zeros(len(keys))
        for column in np.flatnonzero(self.fixed):
            terms += float(self.query.shift[column]) * keys[:, column]
        return terms

    @cached_property
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
        w = self.head.rounded(self.a)

        def most(W: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
            read = np.abs(W[:, self.read]).astype(np.float64)
            return np.asarray(read @ sizes + np.abs(b).astype(np.float64))

        with np.errstate(over="ignore", invalid="ignore"):
            q, k, v = most(w.W_Q, w.b_Q), most(w.W_K, w.b_K), most(w.W_V, w.b_V)
            numbers = np.concatenate([q, k, v, [(q * k).sum()]])
            fits = numbers <= self.a.largest / 4  # twice its rounding, and more
            return bool(fits.all() and (v <= FLOAT64.largest / SUMMED).all())


@dataclass(frozen=True, eq=False)
class HeadInput:
    """A head and the vectors it reads.

    Attributes:
        maps: what the head computes of each.
        z: the vectors, (n, d).

    """

    maps: HeadMaps
    z: NDArray[Any]

    @property
    def n(self) -> int:
        """How many vectors there are."""
        return int(self.z.shape[0])

    @property
    def d_key(self) -> int:
        """As the head has it; scores are divided by its root."""
        return int(self.maps.head.W_Q.shape[0])

    @property
    def width(self) -> int:
        """d_value."""
        return int(self.maps.head.W_V.shape[0])

    @property
    def backwards(self) -> bool:
        """Whether keys come from the last to the first."""
        return self.maps.head.mask in ("past", "strict-past")

    @property
    def kind(self) -> int:
        """What becomes of the scores, in the order in which keys come."""
        kind = KINDS[self.maps.head.weighting]
        return MIRRORED[kind] if self.backwards else kind

    @property
    def is_hard(self) -> bool:
        """Whether only the largest scores count."""
        return self.kind != SOFTMAX

    def at(self, rows: Any) -> NDArray[Any]:
        """The vectors of these rows, one after the other in memory."""
        return np.ascontiguousarray(self.z[rows])

    def whole(self, part: SparseMap, columns: Any = slice(None)) -> NDArray[Any]:
        """The images of all rows under a map, in some of its columns."""
        kept = np.arange(len(part.shift))[columns]
        out = np.empty((self.n, len(kept)), self.z.dtype)
        for rows in blocks(self.n):
            out[rows] = part(self.z[rows])[:, kept]
        return out

    def grouped(self, part: SparseMap, columns: Any = slice(None)) -> tuple[Any, Any] | None:
        """The images of all rows by their number, and the distinct ones, where they are few."""
        kept = np.arange(len(part.shift))[columns]
        groups = Groups(len(kept), min(FEW, max(self.n, 1)), self.z.dtype)
        ids = np.empty(self.n, np.int32)
        for rows in blocks(self.n):
            found = groups.of(part(self.z[rows])[:, kept])
            if found is None:
                return None
            ids[rows] = found
        return ids, groups.vectors

    @cached_property
    def queries(self) -> tuple[Any, Any] | None:
        """The distinct queries, where they are few."""
        return self.grouped(self.maps.query)

    @cached_property
    def is_finite(self) -> bool:
        """Whether nothing that its methods compute overflows, as the sizes met say."""
        read = self.maps.read
        sizes = np.zeros(self.z.shape[1])
        largest_of(self.z, read, sizes)
        return self.maps.stay_finite(sizes[read])

    @cached_property
    def measured(self) -> tuple[Measured, Measured]:
        """What is known of the numbers of queries and keys."""
        queries, keys = Measured(len(self.maps.fixed)), Measured(len(self.maps.fixed))
        for rows in blocks(self.n):
            queries.take(self.maps.query(self.z[rows]))
            keys.take(self.maps.key(self.z[rows]))
        return queries, keys

    @property
    def is_exact(self) -> bool:
        """Whether no dot product of a query and a key rounds, as `are_exact` says."""
        return are_exact(*self.measured, self.maps.a)

    @property
    def is_soft(self) -> bool:
        """Whether a softmax does not depend on how scores are summed, as `are_small` says."""
        return are_small(*self.measured, self.d_key)
