"""Contents of slots, as the weights add them up, and the rows of weights that read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.circuit import (
    Circuit,
    Embedded,
    Form,
    Number,
    PositionFeature,
    Readings,
    Sum,
    SumMatrix,
)
from transformist.model import Attention, FeedForward, ReadOut, Transformer
from transformist.verify.certificate.affine import column_values, is_constant
from transformist.verify.proof.sparse_rows import exactly, sparse_rows


class Contents:
    """Contents of each slot: nothing, a number, or a sum of numbers.

    Attributes:
        held: the contents, slot by slot; `None` for an empty slot.
        readings: the sums that were computed from them.

    """

    def __init__(self, model: Transformer, circuit: Circuit) -> None:
        self.readings = Readings()
        embedding = model.embedding
        order = [embedding.symbols.index(s) for s in (*model.alphabet, *embedding.front)]
        names = getattr(embedding.positions, "names", (None,) * model.width)
        self.held: list[Number | None] = []
        for column, name in zip(embedding.vectors[order].T, names, strict=True):
            values = column_values(column)
            parts: list[Number] = []
            # A column that is the same for every symbol is a constant, not a number of its own.
            if not is_constant(values):
                parts.append(Form.atom(circuit.number(Embedded(values))))
            elif values[0]:
                parts.append(Sum((), values[0]))
            if name is not None:
                parts.append(Form.atom(circuit.number(PositionFeature(name))))
            self.held.append(_added(parts))

    def read(self, matrix: Any, shift: Any) -> list[Sum]:
        """Return the rows of W z + b."""
        rows = [
            Sum(
                tuple(
                    (exactly(weight), held)
                    for slot, weight in row
                    if (held := self.held[slot]) is not None
                ),
                exactly(constant),
            )
            for row, constant in zip(sparse_rows(matrix), shift.tolist(), strict=True)
        ]
        self.readings.rows.extend(rows)
        return rows

    def add_read_out(self, read_out: ReadOut, rows: Sequence[int]) -> tuple[Any, Any]:
        """Record the rows of a read-out, the given ones with their forms.

        Return the weights and biases of these.
        """
        W, shift = read_out.W_out[rows], read_out.b_out[rows]
        self.readings.add(self.read(W, shift))
        self._add_unlisted(np.delete(read_out.W_out, rows, axis=0), np.delete(read_out.b_out, rows))
        return W, shift

    def _add_unlisted(self, W: Any, shift: Any) -> None:
        """Record rows of W z + b by their weights alone, without a form for each."""
        used = np.flatnonzero(np.any(W != 0, axis=0)).tolist()
        numbers = {slot: held for slot in used if (held := self.held[slot]) is not None}
        self.readings.unlisted = SumMatrix((*numbers.values(),), W[:, [*numbers]], shift)

    def add_heads(self, heads: Sequence[Attention], fetched: Sequence[Sequence[Form]]) -> None:
        """Add the outputs of heads, one after the other, given the values that each has fetched."""
        added: list[list[Number | None]] = [[] for _ in self.held]
        for head, values in zip(heads, fetched, strict=True):
            output = np.eye(len(values)) if head.W_O is None else head.W_O
            rows = zip(sparse_rows(output), head.b_O.tolist(), strict=True)
            for slot, (row, constant) in enumerate(rows):
                if row or constant:
                    parts = [(exactly(weight), values[m]) for m, weight in row]
                    added[slot].append(_written(parts, exactly(constant)))
        self._add([_added(_present(parts)) for parts in added])

    def add_network(
        self, network: FeedForward, units: Iterable[tuple[tuple[int, ...], Number]]
    ) -> None:
        """Add the output of hidden units: each number times the weight of its first unit."""
        # The second unit of a copy or a step has the opposite column of W₂: the weight of the first
        # one is the factor of their difference.
        place_of = {group[0]: (place, x) for place, (group, x) in enumerate(units)}
        added: list[Number | None] = []
        for row, shift in zip(sparse_rows(network.W_2), network.b_2.tolist(), strict=True):
            read = sorted((place_of[k][0], k, weight) for k, weight in row if k in place_of)
            parts = [(exactly(weight), place_of[k][1]) for _, k, weight in read]
            added.append(
                _written(parts, exactly(shift), is_of_units=True) if row or shift else None
            )
        self._add(added)

    def _add(self, added: Sequence[Number | None]) -> None:
        """Add to the stream, slot by slot."""
        for slot, new in enumerate(added):
            old = self.held[slot]
            if new is not None:
                self.held[slot] = _added(_present([old, new]))
                # Both are computed and stored: what the sublayer adds, and its sum with what the
                # slot held.
                self.readings.rows.extend(
                    each for each in (new, self.held[slot]) if isinstance(each, Sum)
                )

    def keep(self, slot: int, form: Form) -> None:
        """Treat the contents of a slot as one number, and record how it is computed."""
        held, self.held[slot] = self.held[slot], form
        self.readings.add([held] if isinstance(held, Sum) else [])

    def empty(self, slot: int) -> None:
        """Mark a slot as exactly 0, after its contents were subtracted."""
        self.held[slot] = None


def _written(
    parts: Sequence[tuple[Fraction, Number]], shift: Fraction, is_of_units: bool = False
) -> Number | None:
    """Output of a row of weights: a number, a sum, or nothing."""
    real = tuple((weight, x) for weight, x in parts if not _is_nothing(x))
    if not real and not shift:
        return None
    if len(real) == 1 and real[0][0] == 1 and not shift:
        return real[0][1]
    return Sum(real, shift, is_of_units=is_of_units)


def _added(parts: Sequence[Number]) -> Number | None:
    """Sum of numbers that are added one after the other, each sum stored."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return Sum(tuple((Fraction(1), part) for part in parts), is_stored_each=True)


def _present(parts: Iterable[Number | None]) -> list[Number]:
    return [part for part in parts if part is not None]


def _is_nothing(number: Number) -> bool:
    """True for a sum of nothing; a sum that cancels is not one."""
    return isinstance(number, Sum) and not number.parts and not number.shift
