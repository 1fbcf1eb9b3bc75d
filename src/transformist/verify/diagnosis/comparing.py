"""A run in a format beside its ideal, and the numbers whose exact values restore the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Array, Floating
from transformist.errors import NotFinite, UndefinedValue
from transformist.model import MultiClass, Symbol, Transformer
from transformist.verify.diagnosis.stepwise import Stepwise, ideal_run

FURTHEST = 16
"""Most read-out values that are replaced by exact ones, where the read-out has no labels."""

MOST_SINGLE_ROWS = 16
"""Most rows of a slot that are restored one by one, so that a search stays within seconds."""


@dataclass(frozen=True)
class RowNumbers:
    """Some numbers of one row: of a stream, or of the values that are read out after the last one.

    Attributes:
        stream: the number of the stream, 0 being the embedding.
        row: the row, specials included; of values that are read out, which of them.
        slots: the coordinates.

    """

    stream: int
    row: int
    slots: tuple[int, ...]


class SideBySide:
    """A run in a format and the ideal run on the same input."""

    def __init__(self, model: Transformer, x: Sequence[Symbol], a: Floating) -> None:
        self.arithmetic = a
        run = ideal_run(model, x)
        self.ideal, self.exact, self.right = run.stepwise, run.numbers, run.answer
        self.format = Stepwise(model, len(x), a)
        self.streams = self.format.numbers(x)
        self.wanted = self.ideal.decisions(run.answers)
        self.decided = self._decided(self.streams[-1])
        self.answer = _answer(model, x, a)
        self._rounded: dict[tuple[int, int], Array] = {}

    def _decided(self, y: Array) -> list[Any]:
        return self.format.decisions(self.format.answers(y))

    @property
    def fails(self) -> bool:
        """True if the format gives no answer, or one that differs from the exact answer."""
        return self.answer is None or self.wrong is not None

    @cached_property
    def wrong(self) -> int | None:
        """The first of the positions read whose answer is wrong.

        `None` where each is right once the rows that the format refuses are left out.
        """
        pairs = zip(self.decided, self.wanted, strict=True)
        return next((i for i, (got, wanted) in enumerate(pairs) if got != wanted), None)

    def got(self, stream: int, slot: int) -> NDArray[np.float64]:
        """The numbers of a slot in the format, at every row."""
        return np.asarray(self.arithmetic.numbers(self.streams[stream][:, slot]), dtype=float)

    def real(self, stream: int, slot: int) -> NDArray[Any]:
        """The numbers of a slot in the ideal run, at every row."""
        return self.ideal.arithmetic.numbers(self.exact[stream][:, slot])

    def rounded(self, stream: int, slot: int) -> Array:
        """The exact numbers of a slot, each rounded to the format once."""
        if (stream, slot) not in self._rounded:
            real, a = self.real(stream, slot), self.arithmetic
            beyond = np.array([abs(each) > a.largest for each in real], dtype=bool)
            column = a.array(np.where(beyond, 0, real)).copy()
            end = a.largest if a.saturates else np.inf
            column[beyond] = np.array([end if each > 0 else -end for each in real[beyond]])
            self._rounded[stream, slot] = column
        return self._rounded[stream, slot]

    def written(self, stream: int) -> Sequence[int]:
        """The coordinates that the step before a stream may have changed.

        After the read-out, the values that decide: the scores of the chosen label and of the right
        one, or the `FURTHEST` values that are furthest off.
        """
        if stream == 0:
            return range(self.streams[0].shape[1])
        if stream <= len(self.format.steps):
            return self.format.steps[stream - 1].written
        read_out = self.format.model.read_out
        if isinstance(read_out, MultiClass) and self.wrong is not None:
            chosen = self.decided[self.wrong], self.wanted[self.wrong]
            return [read_out.labels.index(each) for each in chosen if each in read_out.labels]
        slots = range(self.streams[stream].shape[1])
        row = self.wrong or 0
        return sorted(slots, key=lambda slot: -self.off(stream, row, slot))[:FURTHEST]

    def restored(self, stream: int, rows: Any, slots: Sequence[int]) -> tuple[Array, ...]:
        """The numbers from a stream on, with the exact values in some slots of some rows."""
        # The stream of the run is kept for other restorations.
        z = self.streams[stream].copy()
        for slot in slots:
            z[rows, slot] = self.rounded(stream, slot)[rows]
        return (z, *self.format.following(stream, z))

    def restores(self, stream: int, rows: Any, slots: Sequence[int]) -> bool:
        """True if these exact values restore the answer at the first wrong position."""
        decided = self._decided(self.restored(stream, rows, slots)[-1])
        assert self.wrong is not None
        return bool(decided[self.wrong] == self.wanted[self.wrong])

    def restoring(self) -> RowNumbers:
        """The first numbers whose exact values restore the answer.

        A single number is preferred; where none restores the answer, numbers of one row that one
        step writes, none of which can be left out; and last those that are read out, which may not
        restore it: the format may round scores that differ to equal ones.
        """
        last = len(self.streams) - 1
        if self.wrong is None:
            return self._refused()
        for numbers in self._singles(range(last)):
            return numbers
        for stream in range(last):
            rows = self._rows(stream, self.written(stream))
            if len(rows):
                return RowNumbers(stream, rows[0], self._needed(stream, rows[0]))
        for numbers in self._singles([last]):
            return numbers
        return RowNumbers(last, self.wrong, self._needed(last, self.wrong))

    def _refused(self) -> RowNumbers:
        """The first row that the format refuses, and the slots that are lost with it."""
        lost = [np.isnan(np.asarray(self.arithmetic.numbers(z))) for z in self.streams]
        stream = next(k for k, each in enumerate(lost) if each.any())
        row = int(np.flatnonzero(lost[stream].any(axis=1))[0])
        return RowNumbers(stream, row, tuple(map(int, np.flatnonzero(lost[stream][row]))))

    def _singles(self, streams: Sequence[int]) -> Iterator[RowNumbers]:
        for stream in streams:
            for slot in self.written(stream):
                rows = self._rows(stream, (slot,))
                if rows:
                    yield RowNumbers(stream, rows[0], (slot,))

    def _rows(self, stream: int, slots: Sequence[int]) -> list[int]:
        """The row at which exact values of slots restore the answer, or no row if none is found."""
        off = np.zeros(len(self.streams[stream]), dtype=bool)
        for slot in slots:
            off |= ~(self.streams[stream][:, slot] == self.rounded(stream, slot))
        every = rows = np.flatnonzero(off)
        # All rows first, then half of them again and again: where a single row restores the answer,
        # one of its halves mostly does too, so about 2 log₂ n evaluations find it among n rows.
        if not len(rows) or not self.restores(stream, rows, slots):
            rows = rows[:0]
        while len(rows) > 1:
            middle = len(rows) // 2
            halves = (rows[:middle], rows[middle:])
            rows = next((each for each in halves if self.restores(stream, each, slots)), rows[:0])
        # A row may restore the answer while the other exact rows spoil it again.
        if not len(rows) and 1 < len(every) <= MOST_SINGLE_ROWS:
            rows = next(
                (each for each in every[:, None] if self.restores(stream, each, slots)), rows
            )
        return [int(row) for row in rows]

    def _needed(self, stream: int, row: int) -> tuple[int, ...]:
        """Slots that together restore the answer, all of them needed; the largest error first."""
        # One slot after another is left out where the rest still restores the answer. So none of
        # those that are left can be left out alone, though a smaller set of others may exist.
        needed = list(self.written(stream))
        for slot in tuple(needed):
            fewer = [each for each in needed if each != slot]
            if fewer and self.restores(stream, [row], fewer):
                needed = fewer
        return tuple(sorted(needed, key=lambda slot: -self.off(stream, row, slot)))

    def off(self, stream: int, row: int, slot: int) -> float:
        """Distance of a number of the format from the exact one; infinite for NaN."""
        got = self.got(stream, slot)[row]
        return abs(got - float(self.exactly(stream, row, slot))) if np.isfinite(got) else np.inf

    def exactly(self, stream: int, row: int, slot: int) -> Any:
        """One number of the ideal run."""
        return self.ideal.arithmetic.numbers(self.exact[stream][row : row + 1, slot])[0]


def _answer(model: Transformer, x: Sequence[Symbol], a: Floating) -> Any:
    """The answer of the reference in a format; `None` where it is refused."""
    try:
        return model.answers([x], a)[0]
    except (NotFinite, UndefinedValue):
        return None
