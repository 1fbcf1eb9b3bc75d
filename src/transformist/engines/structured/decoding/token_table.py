"""The table that the kernel for one token reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.decoding.addresses import FIELD, described
from transformist.engines.structured.decoding.one_token import ARRAYS, COUNT, FIRST, LEFT, ROOM
from transformist.engines.structured.sparse import SparseMap


@dataclass(frozen=True, eq=False)
class Record:
    """A step as the kernel for one token has it.

    Attributes:
        code: what it does.
        arrays: in the order in which the kernel looks for them.
        numbers: those of a head.

    """

    code: int = LEFT
    arrays: tuple[NDArray[Any], ...] = ()
    numbers: tuple[int, ...] = ()


def arrays_of(affine: SparseMap) -> tuple[NDArray[Any], ...]:
    """The four arrays of an affine map."""
    return (affine.starts, affine.columns, affine.values, affine.shift)


class TokenTable:
    """Records one after the other, with the arrays to which they lead.

    Attributes:
        numbers: what the kernel reads.

    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.numbers = np.zeros(FIRST + ROOM * len(records), np.int64)
        self.numbers[COUNT] = len(records)
        self._kept: list[Record] = [Record()] * len(records)
        for number, record in enumerate(records):
            self.write(number, record)

    def write(self, number: int, record: Record) -> None:
        """The record of a step, in place of the one before."""
        own = self.of(number)
        own[0] = LEFT  # till all is there
        own[1 : 1 + len(record.numbers)] = record.numbers
        fields = [each for array in record.arrays for each in described(array)]
        own[ARRAYS : ARRAYS + FIELD * len(record.arrays)] = fields
        self._kept[number] = record
        own[0] = record.code

    def of(self, number: int) -> NDArray[np.int64]:
        """The numbers of a step."""
        start = FIRST + ROOM * number
        return self.numbers[start : start + ROOM]
