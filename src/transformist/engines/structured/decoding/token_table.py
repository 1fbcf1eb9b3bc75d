"""The table that the kernel for one token reads: one record for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.decoding.addresses import ARRAY, described
from transformist.engines.structured.sparse import SparseMap

LEFT, WORDS, CLEAR, BY_QUERY, BY_KEY, SUM, NETWORK, FINITE, SIGN, LARGEST = range(10)
"""Codes of steps; the kernel stops before a step that is `LEFT`."""

NEXT, PLACE, COUNT, STEPS = range(4)
"""Indices of the numbers of a table: the step to begin with, the token's position, the number of
steps, and the address of their records."""

MAP_ARRAYS = ("starts", "columns", "values", "shift")
MAP = np.dtype([(name, ARRAY) for name in MAP_ARRAYS], align=True)
"""The arrays of a `SparseMap`."""

NUMBERS = ("code", "order", "kind", "is_kept", "is_fixed", "seen", "taken")
"""The code of a step; for a head the order of work, the weighting, if keys are kept, if the query
is fixed, the rows seen before, and the rows that the kernel consumed since."""

MAPS = ("query", "key", "value", "output", "first", "second", "read_out")
"""The maps of a head, of a network, and of the read-out."""

ARRAYS = (
    *("vectors", "places", "functions"),  # of symbols; columns of positions, and their functions
    *("source", "total", "into"),  # input of heads, sum of their outputs, its columns
    *(
        "query_row",
        "key_row",
        "value_row",
        "mixed",
        "rounded",
    ),  # of one token
    *("met", "ids", "found", "slots"),  # the query or key to look up, and the groups
    *("keys", "values", "sizes"),  # of the past; limits of coordinates against overflow
    *("root", "scores", "top", "mass", "sums"),  # √d_key, and the running sums of a method
    *("starts", "columns", "queries"),  # of `by query`: the queries, as a `SparseMap` has them
    *("terms", "distinct", "chosen"),  # of `by key`: the keys
    *("hidden", "numbers"),  # of a network, of the read-out
)
"""The arrays of a step."""

RECORD = np.dtype(
    [
        *((name, np.int64) for name in NUMBERS),
        *((name, MAP) for name in MAPS),
        *((name, ARRAY) for name in ARRAYS),
    ],
    align=True,
)
"""A record; a step fills the fields that it needs."""


@dataclass(frozen=True, eq=False)
class Record:
    """A step for the kernel for one token.

    Attributes:
        code: its code; by default it is left to Python.
        numbers, maps, arrays: the fields that it needs, by their names.

    """

    code: int = LEFT
    numbers: Mapping[str, int] = field(default_factory=dict)
    maps: Mapping[str, SparseMap] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class TokenTable:
    """Records in contiguous memory, and the arrays to which they point, which are kept alive.

    Attributes:
        numbers: the numbers of the table, the argument of the kernel.

    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._steps = np.zeros(len(records), RECORD)
        self.numbers = np.zeros(4, np.int64)
        self.numbers[[COUNT, STEPS]] = len(records), described(self._steps)[0]
        self._kept: list[Record] = [Record()] * len(records)
        for number, record in enumerate(records):
            self.write(number, record)

    def write(self, number: int, record: Record) -> None:
        """Replace the record of a step."""
        own, before = self.of(number), self._kept[number]
        own["code"] = LEFT  # until all fields are set
        for name, each in record.numbers.items():
            own[name] = each
        for name, affine in record.maps.items():
            if before.maps.get(name) is not affine:
                own[name] = tuple(described(getattr(affine, part)) for part in MAP_ARRAYS)
        for name, array in record.arrays.items():
            own[name] = described(array)
        self._kept[number] = record
        own["code"] = record.code

    def of(self, number: int) -> Any:
        """The record of a step, whose fields can be set."""
        return self._steps[number]
