"""Ways to evaluate a head under a future mask as keys come, a few at a time, none known before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.decoding.history import History
from transformist.engines.structured.decoding.token_table import BY_KEY, BY_QUERY
from transformist.engines.structured.groups import Groups
from transformist.engines.structured.heads.by_key import ByKey
from transformist.engines.structured.heads.by_query import ByQuery
from transformist.engines.structured.heads.dense import mix_dense
from transformist.engines.structured.heads.head import FEW, HeadMaps
from transformist.engines.structured.heads.on_hull import OnHull
from transformist.engines.structured.heads.weightings import (
    KINDS,
    OTHER,
    SOFTMAX,
    TAKE,
    order_under,
)
from transformist.engines.structured.ranges import Measured, are_exact, are_small
from transformist.engines.structured.rows import blocks

Own = tuple[int, Groups, Mapping[str, NDArray[Any]]]
"""What the kernel for one token needs of a method: a code, the groups, its arrays by name."""


class Running(ABC):
    """A way to evaluate a head as keys come."""

    name = ""

    def __init__(self, maps: HeadMaps) -> None:
        head = maps.head
        self.maps, self.dtype = maps, maps.a.dtype
        self.kind, self.order = KINDS.get(head.weighting, OTHER), order_under(head.mask)
        self.asked, self.held = Measured(len(maps.fixed)), Measured(len(maps.fixed))

    def measure(self, queries: NDArray[Any], keys: NDArray[Any]) -> None:
        """Queries and keys that have come, by their numbers."""
        self.asked.take(queries)
        self.held.take(keys)

    @property
    def is_exact(self) -> bool:
        """Whether no dot product of a query and a key so far rounds."""
        return are_exact(self.asked, self.held, self.maps.a)

    @abstractmethod
    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: History
    ) -> NDArray[np.float64] | None:
        """The mixed values of the next rows; `None` where it does not fit, which ends this object.

        `past` has the keys and values before these rows.
        """

    def own(self) -> Own | None:
        """`None` where the kernel for one token does not take the method, or not yet."""
        return None

    def took(self, rows: int) -> None:  # noqa: B027 - most count nothing
        """Know that the kernel has taken so many rows."""


@final
class RunningByQuery(Running):
    """A running result for each query met; a new one goes through the past once."""

    name = "by query"

    def __init__(self, maps: HeadMaps) -> None:
        super().__init__(maps)
        self._groups = Groups(len(maps.fixed), FEW, self.dtype)
        self._state = self._begun(np.empty((0, len(maps.fixed)), self.dtype))

    def _begun(self, queries: NDArray[Any]) -> ByQuery:
        return ByQuery(queries, self.maps.d_key, self.maps.d_value, self.kind)

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: History
    ) -> NDArray[np.float64] | None:
        """As `Running.mix`."""
        before = len(self._groups.vectors)
        ids = self._groups.of(queries)
        if ids is None:
            return None
        if len(self._groups.vectors) > before:
            new = self._begun(self._groups.vectors[before:])
            for rows in blocks(past.count):
                _mixed(new, TAKE, ids, past.keys[rows], past.values[rows])
            self._state.joined(new)
        return _mixed(self._state, self.order, ids, keys, values)

    def own(self) -> Own | None:
        """As `Running.own`."""
        if not len(self._groups.vectors):
            return None
        return BY_QUERY, self._groups, self._state.arrays


def _mixed(
    state: ByQuery, order: int, ids: NDArray[np.int32], keys: NDArray[Any], values: NDArray[Any]
) -> NDArray[np.float64]:
    """What is mixed at rows, each with a key and a value of its own."""
    rows = np.arange(len(keys), dtype=np.int32)
    out = np.empty((0 if order == TAKE else len(ids), values.shape[1]))
    state.mix(order, ids, (keys, rows), (values, rows), out)
    return out


@final
class RunningByKey(Running):
    """A running result for each key met, in the columns in which the query varies."""

    name = "by key"

    def __init__(self, maps: HeadMaps) -> None:
        super().__init__(maps)
        self._varying = np.flatnonzero(~maps.fixed)
        self._groups = Groups(len(self._varying), FEW, self.dtype)
        empty = np.empty((0, len(self._varying)), self.dtype)
        self._state = ByKey(empty, self.maps.d_key, self.maps.d_value, self.kind)
        self._seen = 0

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: History
    ) -> NDArray[np.float64] | None:
        """As `Running.mix`."""
        late = self._seen < past.count
        if late and self._taken(TAKE, past.keys[:0], past.keys, past.values) is None:
            return None
        return self._taken(self.order, queries, keys, values)

    def _taken(
        self, order: int, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any]
    ) -> NDArray[np.float64] | None:
        groups = self._groups.of(keys[:, self._varying])
        if groups is None or not self._fits(queries, keys):
            return None
        terms = self.maps.terms(keys)
        self._seen += len(keys)
        self._state.meet(self._groups.vectors)
        asked = np.ascontiguousarray(queries[:, self._varying])
        return self._state.mix(order, asked, groups, terms, values)

    def own(self) -> Own | None:
        """As `Running.own`."""
        if self.maps.fixed.any():  # keys have terms
            return None
        return BY_KEY, self._groups, {**self._state.arrays, "terms": np.zeros(1)}

    def took(self, rows: int) -> None:
        """As `Running.took`."""
        self._seen += rows
        self._state.took(rows)

    def _fits(self, queries: NDArray[Any], keys: NDArray[Any]) -> bool:
        """Whether sums with terms are those of the reference, or near enough under softmax."""
        if not self.maps.fixed.any():
            return True
        self.measure(queries, keys)
        if self.kind == SOFTMAX:
            return are_small(self.asked, self.held, self.maps.d_key)
        return self.is_exact


@final
class RunningHull(Running):
    """The upper hull of the keys so far, which come from the left or from the right."""

    name = "hull"

    def __init__(self, maps: HeadMaps) -> None:
        super().__init__(maps)
        self._state = OnHull(self.maps.d_key, self.maps.d_value, self.kind, room=16, a=maps.a)
        self._columns: list[int] = []
        self._signs = np.ones(2, self.dtype)
        self._right = -np.inf
        self._seen = 0

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: History
    ) -> NDArray[np.float64] | None:
        """As `Running.mix`."""
        if len(self.maps.fixed) != 2:
            return None
        before = past.keys if self._seen == 0 else past.keys[:0]
        keys = np.concatenate([before, keys])
        if not self._columns and not self._turn(queries, keys):
            return None
        asked, points = (
            np.ascontiguousarray(each[:, self._columns] * self._signs) for each in (queries, keys)
        )
        if not self._fits(asked, points):
            return None
        places = np.arange(self._seen, self._seen + len(points))
        old = len(before)
        self._state.mix(TAKE, asked, points[:old], places[:old], past.values[:old])
        self._seen += len(points)
        mixed = self._state.mix(self.order, asked, points[old:], places[old:], values)
        if self.kind != SOFTMAX:
            self.measure(asked, points)
        sure = self._state.is_sure(asked, are_exact=False) or (
            self.kind != SOFTMAX and self.is_exact and self._state.is_sure(asked, are_exact=True)
        )
        return mixed if sure else None

    def _turn(self, queries: NDArray[Any], keys: NDArray[Any]) -> bool:
        """Whether some column of the key is upwards, and the other rises but for its sign."""
        for axis in (1, 0):
            up = np.sign(queries[:, axis])
            x = keys[:, 1 - axis]
            rises, falls = (x[1:] >= x[:-1]).all(), (x[1:] <= x[:-1]).all()
            if up.all() and (up == up[0]).all() and (rises or falls):
                self._columns = [1 - axis, axis]
                self._signs = np.array([1 if rises else -1, up[0]], self.dtype)
                return True
        return False

    def _fits(self, asked: NDArray[Any], points: NDArray[Any]) -> bool:
        """Whether queries look upwards, and points come rightwards."""
        x = np.append(self._right, points[:, 0])
        self._right = x[-1]
        return bool((asked[:, 1] > 0).all() and (x[1:] >= x[:-1]).all())


@final
class RunningDense(Running):
    """Every key again for every query."""

    name = "dense"

    def mix(
        self, queries: NDArray[Any], keys: NDArray[Any], values: NDArray[Any], past: History
    ) -> NDArray[np.float64] | None:
        """As `Running.mix`."""
        n = past.count + len(keys)
        first, stop = self.maps.head.mask.span(np.arange(past.count, n), n)
        all_keys = np.concatenate([past.keys, keys])
        all_values = np.concatenate([past.values, values])
        seen = (all_keys, all_values, first, stop)
        return mix_dense(self.maps.head.weighting, self.maps.d_key, queries, *seen, self.maps.a)


RUNNING: tuple[type[Running], ...] = (
    RunningByQuery,
    RunningByKey,
    RunningHull,
    RunningHull,
    RunningDense,
)
"""The first that fits what has come is taken, and the last for a weighting not in `KINDS`. A hull
is begun twice, as one key does not tell from which side keys come."""
