"""Single tokens, read by the kernel, and by the steps themselves where it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.decoding.one_token import FUNCTIONS, read_token
from transformist.engines.structured.decoding.steps import DecoderStep
from transformist.engines.structured.decoding.token_table import (
    LARGEST,
    LEFT,
    NEXT,
    PLACE,
    SIGN,
    WORDS,
    Record,
    TokenTable,
)
from transformist.engines.structured.embedded import embed
from transformist.engines.structured.sparse import SparseMap
from transformist.model import Binary, Embedding, MultiClass, PositionFunctions, ReadOut

Answer = Callable[[NDArray[Any], int], Any]
"""The answer from the final vector of the last of n symbols."""


class OneByOne:
    """A reader of single tokens.

    The kernel changes the arrays of the heads, but not their Python counters: `settle` brings these
    up to date, before the heads are used otherwise. After that, `resume` must be called.
    """

    def __init__(
        self,
        embedding: Embedding,
        steps: Sequence[DecoderStep],
        read_out: tuple[ReadOut, SparseMap],
        answer: Answer,
        a: Floating,
        length: int,
    ) -> None:
        self._embedding, self._steps, self._answer, self._a = embedding, steps, answer, a
        # One array for the vector of every token: records have its address.
        self._z = np.zeros((1, embedding.width), a.dtype)
        self._answers = _answers(read_out[0])
        between = [step.record(self._z) for step in steps]
        records = [_words(embedding, a), *between, _reading(*read_out)]
        self._table = TokenTable(records)
        self._numbers = self._table.numbers
        self._numbers[PLACE] = length + 1

    def read(self, row: int) -> Any:
        """The answer after one more symbol, given by its row in the vocabulary."""
        found = read_token(self._numbers, self._z, row)
        return self._answers[found] if found >= 0 else self._go_on(row)

    def settle(self) -> None:
        """Bring the counters of all steps up to date."""
        for number, step in enumerate(self._steps, start=1):
            step.settle(self._table.of(number))

    def resume(self, length: int) -> None:
        """Continue after `length` symbols, some of them read otherwise."""
        for number, step in enumerate(self._steps, start=1):
            if step.changes:
                self._table.write(number, step.record(self._z))
        self._numbers[PLACE] = length + 1

    def _go_on(self, row: int) -> Any:
        """The answer, from the step on at which the kernel stopped."""
        numbers, last = self._numbers, len(self._steps) + 1
        # The kernel stops before a step with nothing changed, so Python does this step, and the
        # kernel goes on with the next.
        while (number := int(numbers[NEXT])) < last:
            self._do(number, row)
            numbers[NEXT] = number + 1
            found = read_token(numbers, self._z, row)
            if found >= 0:
                return self._answers[found]
        answer = self._answer(self._z, int(numbers[PLACE]))
        numbers[NEXT] = 0
        numbers[PLACE] += 1
        return answer

    def _do(self, number: int, row: int) -> None:
        """Do a step without the kernel."""
        if number == 0:
            place = int(self._numbers[PLACE])
            self._z[:] = embed(self._embedding, np.array([row]), place, place, self._a)
            return
        step, own = self._steps[number - 1], self._table.of(number)
        step.settle(own)
        step(self._z)
        if step.changes:
            self._table.write(number, step.record(self._z))


def _words(embedding: Embedding, a: Floating) -> Record:
    """The record of the embedding; an empty one if the kernel lacks a position function."""
    positions = embedding.positions or PositionFunctions((None,) * embedding.width)
    if not isinstance(positions, PositionFunctions):
        return Record()
    used = [(column, name) for column, name in enumerate(positions.names) if name is not None]
    if any(name not in FUNCTIONS for _, name in used):
        return Record()
    arrays = {
        "vectors": np.ascontiguousarray(embedding.rounded(a).vectors),
        "places": np.array([column for column, _ in used], np.int64),
        "functions": np.array([FUNCTIONS.index(name) for _, name in used], np.int64),
    }
    return Record(WORDS, arrays=arrays)


DECISIONS: dict[type, int] = {Binary: SIGN, MultiClass: LARGEST}
"""Read-outs that the kernel decides."""

# A search for one vector takes about 70 µs, nearly all of it Python; comparing 8,192 labels of two
# numbers takes about as long.
FOR_THE_KERNEL = 2**13
"""Up to this many labels, the kernel compares all; beyond it, they are searched outside of it."""


def _reading(read_out: ReadOut, out: SparseMap) -> Record:
    """The record of the read-out."""
    code = DECISIONS.get(type(read_out), LEFT) if out.height <= FOR_THE_KERNEL else LEFT
    numbers = np.empty((1, out.height), out.values.dtype)
    return Record(code, maps={"read_out": out}, arrays={"numbers": numbers})


def _answers(read_out: ReadOut) -> tuple[Any, ...]:
    """The answers, by their numbers."""
    return read_out.labels if isinstance(read_out, MultiClass) else (False, True)
