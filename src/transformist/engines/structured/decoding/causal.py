"""Heads under future masks, of which rows come a few at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.decoding.token_table import BY_KEY, BY_QUERY, Record
from transformist.engines.structured.heads.by_hull import ByHull
from transformist.engines.structured.heads.by_key import ByKey
from transformist.engines.structured.heads.by_query import ByQuery
from transformist.engines.structured.heads.every_pair import EveryPair
from transformist.engines.structured.heads.head import HeadMaps
from transformist.engines.structured.heads.method import Method
from transformist.engines.structured.heads.past import Past
from transformist.engines.structured.heads.weightings import OTHER
from transformist.engines.structured.ranges import largest_of
from transformist.errors import NotFinite

RUNNING: tuple[type[Method], ...] = (ByQuery, ByKey, ByHull, ByHull, EveryPair)
"""The methods that are tried in turn, each until rows come that it does not fit.

A hull is begun twice, as one key does not tell from which side keys come.
"""

CODES: dict[type[Method], int] = {ByQuery: BY_QUERY, ByKey: BY_KEY}
"""The steps of the kernel for one token that run a method."""


class CausalHead:
    """A head under a future mask, of which rows come a few at a time.

    Keys and values are kept: a query not met before needs them, and so does the next method, once
    rows come that the present one does not fit. They are not kept where the weights fix the query.
    """

    def __init__(self, maps: HeadMaps) -> None:
        self.maps, self._a = maps, maps.a
        self._sizes = np.full(maps.head.width, np.inf)  # for coordinates that are not read
        self._sizes[maps.read] = 0
        self._past = Past(len(maps.fixed), maps.d_value, self._a.dtype)
        self._left = [EveryPair] if maps.kind == OTHER else list(RUNNING)
        self._running: Method = self._left.pop(0)(maps)

    @property
    def method(self) -> str:
        """The name of the present method."""
        return self._running.name

    def mix(self, z: NDArray[Any]) -> NDArray[Any]:
        """The mixed values of the next rows, (rows, d) → (rows, d_value).

        Raises:
            NotFinite: where a query, key, value or score could overflow, or a sum of values.

        """
        if not len(z):
            return np.empty((0, self.maps.d_value), self._a.dtype)
        self._require_finite(z)
        queries, keys, values = self.maps.query(z), self.maps.key(z), self.maps.value(z)
        mixed = self._running.mix(queries, keys, values, self._past)
        # The method that failed may have taken some of the rows. The next one begins anew, from the
        # kept past.
        while mixed is None:
            self._running = self._left.pop(0)(self.maps)
            mixed = self._running.mix(queries, keys, values, self._past)
        if self._is_kept:
            self._past.take(keys, values)
        return mixed.astype(self._a.dtype, copy=False)

    @property
    def _is_kept(self) -> bool:
        """True if keys and values are kept."""
        return not (self.maps.fixed.all() and isinstance(self._running, ByQuery))

    def took(self, rows: int) -> None:
        """Record how many rows the kernel for one token consumed."""
        self._past.count += rows * self._is_kept
        self._running.took(rows)

    def record(self, source: NDArray[Any], total: NDArray[Any], into: NDArray[np.int64]) -> Record:
        """The record for the kernel for one token, which reads `source` and adds to `total`."""
        running, maps = self._running, self.maps
        found = running.token_arrays()
        if found is None:
            return Record()
        groups, own = found
        vectors, slots = groups.arrays
        keys, values = self._past.room
        numbers = {
            "order": maps.order,
            "kind": maps.kind,
            "is_kept": int(self._is_kept),
            "is_fixed": int(maps.fixed.all()),
            "seen": self._past.count,
            "taken": 0,
        }
        arrays = {
            "source": source,
            "total": total,
            "into": into,
            "found": vectors,
            "slots": slots,
            "ids": np.empty(1, np.int32),
            "keys": keys,
            "values": values,
            "sizes": self._sizes,
            **self._buffers(groups.width),
            **own,
        }
        affine = {name: getattr(maps, name) for name in ("query", "key", "value", "output")}
        return Record(CODES[type(running)], numbers, affine, arrays)

    def _buffers(self, width: int) -> dict[str, NDArray[Any]]:
        """Rows for what is computed of one token, whose groups have vectors of this width."""
        d_key, d_value, dtype = len(self.maps.fixed), self.maps.d_value, self._a.dtype
        sizes = {
            "query_row": d_key,
            "key_row": d_key,
            "value_row": d_value,
            "met": width,
            "rounded": d_value,
        }
        own = {name: np.empty((1, size), dtype) for name, size in sizes.items()}
        return {**own, "mixed": np.empty((1, d_value))}

    def _require_finite(self, z: NDArray[Any]) -> None:
        """Refuse rows with which a number could overflow."""
        # The kernel for one token compares rows with `_sizes` and stops beyond them. Doubling the
        # sizes met makes such stops rare; where twice the sizes could overflow, they are exact.
        met, read = np.zeros(len(self._sizes)), self.maps.read
        largest_of(z, read, met)
        if (met <= self._sizes).all():
            return
        with np.errstate(over="ignore"):
            doubled = np.maximum(self._sizes, 2 * met)
        fits = self.maps.stay_finite(doubled[read])
        self._sizes = doubled if fits else np.maximum(self._sizes, met)
        if not (fits or self.maps.stay_finite(self._sizes[read])):
            raise NotFinite(
                f"a decoder must read numbers so small that no score or sum of values overflows in "
                f"{self._a.name}",
                received="a number that is too large",
                where="Decoder",
                remedy="run the model on whole inputs, or use a format with a wider range",
            )
