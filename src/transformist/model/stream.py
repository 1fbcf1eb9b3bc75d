"""The residual stream: names for the coordinates of the vectors zᵢ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import exact_numbers
from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.model.definition import Definition, several
from transformist.model.parameter import Parameter, parameter

LinearForm: TypeAlias = "str | Mapping[str, Any]"
"""A slot, or the coefficients of a sum of slots."""


NOTHING = "nothing"
"""Name of the contents of a slot between two numbers."""


@dataclass(frozen=True)
class Span:
    """A number that a slot holds for some of the sublayers.

    Attributes:
        name: of the number.
        slot: the coordinate, from 0.
        first, last: the streams in which it is there; 0 is the embedding, k that after the k-th
            sublayer.
        source: where it is computed in the source of a program, if it is.

    """

    name: str
    slot: int
    first: int
    last: int
    source: str = ""


@dataclass(frozen=True, eq=False)
class Stream(Definition):
    """The names of the d coordinates of the residual stream, in order.

    Attributes:
        slots: the names.
        spans: where slots hold one number after another, which holds what and when.

    Example:
        >>> stream = Stream(("sign", "balance"))
        >>> stream.reading("balance", {"sign": 2, "balance": -1})
        array([[ 0.,  1.],
               [ 2., -1.]])
        >>> stream.writing("balance")
        array([[0.],
               [1.]])

    """

    slots: tuple[str, ...] = several(str)
    spans: tuple[Span, ...] = several(Span, default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        repeated = sorted(slot for slot, count in Counter(self.slots).items() if count > 1)
        if repeated or not self.slots:
            raise InvalidValue(
                "a stream must have at least one slot and no name twice",
                received=repr(repeated or self.slots),
                remedy="give each slot a name of its own",
            )

        counts = Counter(span.name for span in self.spans)
        for span in self.spans:
            is_there = 0 <= span.slot < len(self.slots) and 0 <= span.first <= span.last
            if not is_there or counts[span.name] > 1:
                raise InvalidValue(
                    "a span must have a slot of the stream, a last stream not before its first, "
                    "and a name of its own",
                    received=f"{span}",
                    where="Stream",
                    remedy="give such spans",
                )

    @cached_property
    def _spans_of(self) -> Mapping[int, Sequence[Span]]:
        """The spans of each slot that has some."""
        found: dict[int, list[Span]] = {}
        for span in self.spans:
            found.setdefault(span.slot, []).append(span)
        return found

    @property
    def width(self) -> int:
        """d."""
        return len(self.slots)

    def index(self, slot: str) -> int:
        """The coordinate of `slot`, from 0.

        Raises:
            UnknownName: when there is none.

        """
        if not is_name(slot, self._indices):
            raise UnknownName.among("slot of the stream", slot, self.slots)
        return self._indices[slot]

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {slot: number for number, slot in enumerate(self.slots)}

    def place(self, name: str) -> tuple[int, int]:
        """The coordinate of a slot or of a number it holds, and the last stream that has it.

        Raises:
            UnknownName: when there is none.

        Example:
            >>> from transformist.model import Span, Stream
            >>> reused = Stream(("sign",), (Span("sign", 0, 0, 1), Span("share", 0, 2, 3)))
            >>> reused.place("sign"), reused.place("share"), Stream(("sign",)).place("sign")
            ((0, 1), (0, 3), (0, -1))
            >>> reused.place("balance")  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            transformist.errors.UnknownName: no slot ...; choose from sign, share

        """
        for span in self.spans:
            if is_name(name, (span.name,)):
                return span.slot, span.last
        if not is_name(name, self.slots):
            known = dict.fromkeys([*self.slots, *(span.name for span in self.spans)])
            raise UnknownName.among("slot of the stream", name, known)
        return self.index(name), -1

    def held(self, slot: int, after: int) -> str:
        """Return the name of the number in a slot; "nothing" between two numbers.

        Example:
            >>> from transformist.model import Span, Stream
            >>> reused = Stream(("sign",), (Span("sign", 0, 0, 1), Span("share", 0, 3, 4)))
            >>> [reused.held(0, after) for after in (0, 2, 3)]
            ['sign', 'nothing', 'share']

        """
        spans = self._spans_of.get(slot, ())
        names = [span.name for span in spans if span.first <= after <= span.last]
        return names[0] if names else NOTHING if spans else self.slots[slot]

    def names(self, after: int) -> tuple[str, ...]:
        """Names of the numbers in all slots; a slot that holds none then has its own name.

        Args:
            after: the stream, 0 being the embedding and k that after the k-th sublayer.

        """
        held = [self.held(slot, after) for slot in range(self.width)]
        pairs = zip(held, self.slots, strict=True)
        return tuple(slot if name == NOTHING else name for name, slot in pairs)

    def vector(self, form: LinearForm) -> Parameter:
        """The form as a vector of d coefficients."""
        return self._rows((form,))[0]

    def reading(self, *forms: LinearForm) -> Parameter:
        """The matrix (k, d) that takes a stream vector to the values of k forms."""
        return self._rows(forms)

    def writing(self, *forms: LinearForm) -> Parameter:
        """The matrix (d, k) that adds k values to the stream, value m along the m-th form."""
        return self._rows(forms).T

    def _rows(self, forms: Sequence[LinearForm]) -> Parameter:
        entries = [
            (row, self.index(slot), value)
            for row, form in enumerate(forms)
            for slot, value in ({form: 1} if isinstance(form, str) else form).items()
        ]
        # Read together, the coefficients get one type: float64 only if all of them are float64s.
        values = exact_numbers([value for _, _, value in entries])
        matrix = np.zeros((len(forms), self.width), dtype=values.dtype)
        if entries:
            rows, columns, _ = zip(*entries, strict=True)
            matrix[rows, columns] = values
        if matrix.dtype != np.float64:
            return parameter(matrix)
        # All entries have been checked. A copy would take memory for each 0 of a wide matrix.
        matrix.setflags(write=False)
        return matrix
