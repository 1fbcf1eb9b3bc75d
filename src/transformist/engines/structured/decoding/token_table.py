"""The table that the kernel for one token reads: a record for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.decoding.addresses import ARRAY, described
from transformist.engines.structured.sparse import SparseMap

LEFT, WORDS, CLEAR, BY_QUERY, BY_KEY, SUM, NETWORK, FINITE, SIGN, LARGEST = range(10)
"""What a step does; one that is left is not done by the kernel."""

NEXT, PLACE, COUNT, STEPS = range(4)
"""The numbers of a table: the step to begin with, the token's position, how many steps there are,
and the address of their records."""

MAP_ARRAYS = ("starts", "columns", "values", "shift")
MAP = np.dtype([(name, ARRAY) for name in MAP_ARRAYS], align=True)
"""A `SparseMap`."""

NUMBERS = ("code", "order", "kind", "is_kept", "is_fixed", "seen", "taken")
"""What a step does; of a head how it mixes, whether keys are kept, whether the query is fixed, how
many rows it had seen, and how many it has taken here since."""

MAPS = ("query", "key", "value", "output", "first", "second", "read_out")
"""Those of a head, of a network, and the read-out's."""

ARRAYS = (
    *("vectors", "places", "functions"),  # of symbols; where positions are added, and which
    *("source", "total", "into"),  # what heads read, the sum of what they give, and where it goes
    *(
        "query_row",
        "key_row",
        "value_row",
        "mixed",
        "rounded",
    ),  # one token
    *("met", "ids", "found", "slots"),  # the query or key that is sought, and the groups
    *("keys", "values", "sizes"),  # so far; how large coordinates can be without an overflow
    *("root", "scores", "top", "mass", "sums"),  # √d_key, and what a method keeps
    *("starts", "columns", "queries"),  # of `by query`: the queries, as a `SparseMap` has them
    *("terms", "distinct", "chosen"),  # of `by key`: the keys
    *("hidden", "numbers"),  # of a network, of the read-out
)
"""Those to which a step leads."""

RECORD = np.dtype(
    [
        *((name, np.int64) for name in NUMBERS),
        *((name, MAP) for name in MAPS),
        *((name, ARRAY) for name in ARRAYS),
    ],
    align=True,
)
"""A record; a step fills those fields that it needs."""


@dataclass(frozen=True, eq=False)
class Record:
    """A step as the kernel for one token has it.

    Attributes:
        code: what it does.
        numbers, maps, arrays: the fields that it needs, by their names.

    """

    code: int = LEFT
    numbers: Mapping[str, int] = field(default_factory=dict)
    maps: Mapping[str, SparseMap] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class TokenTable:
    """Records one after the other, with the arrays to which they lead.

    Attributes:
        numbers: what the kernel is given.

    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._steps = np.zeros(len(records), RECORD)
        self.numbers = np.zeros(4, np.int64)
        self.numbers[[COUNT, STEPS]] = len(records), described(self._steps)[0]
        self._kept: list[Record] = [Record()] * len(records)
        for number, record in enumerate(records):
            self.write(number, record)

    def write(self, number: int, record: Record) -> None:
        """The record of a step, in place of the one before."""
        own, before = self.of(number), self._kept[number]
        own["code"] = LEFT  # till all is there
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
        """The record of a step: what is put into its fields is there."""
        return self._steps[number]
