"""Numbers of a residual stream that are replaced while a model runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic, Array, is_whole
from transformist.errors import InvalidValue, UnknownName
from transformist.model.stream import Stream

Patch: TypeAlias = Mapping[Any, Any]
"""The number to put at each (after, position, slot): the step after which it is put there, the
position (from 1; BOS in front has 0), and the slot."""

Cells: TypeAlias = Mapping[int, Sequence[tuple[int, int, Array]]]
"""The entries (row, column, number) that are replaced in each stream, counted from 0."""


def read_patch(
    patch: Patch, stream: Stream, names: Sequence[str], rows: int, front: int, a: Arithmetic
) -> Cells:
    """Return the entries that a patch replaces.

    Args:
        patch: the patch as it was given.
        stream: the slots.
        names: the names of the steps, the embedding first.
        rows: the number of rows of a stream.
        front: the number of rows of symbols added before the input.
        a: the arithmetic of the run.

    Raises:
        InvalidValue: for a place that is not there, or a slot that holds another number after the
            step.
        UnknownName: for a step or a slot that does not exist.

    """
    if not isinstance(patch, Mapping):
        raise _not_a_patch(f"{type(patch).__name__}")
    cells: dict[int, list[tuple[int, int, Array]]] = {}
    for place, number in patch.items():
        if not isinstance(place, tuple) or len(place) != 3:
            raise _not_a_patch(f"the key {place!r:.60}")
        after = stream_number(place[0], names)
        row = row_of(place[1], rows, front)
        column = column_of(place[2], stream, after, names)
        cells.setdefault(after, []).append((row, column, _number(number, a)))
    return cells


def _not_a_patch(received: str) -> InvalidValue:
    return InvalidValue(
        "a patch must map (after, position, slot) to numbers",
        received=received,
        where="patch",
        remedy='write {("layer 0 attention", 2, "balance"): 0}',
    )


def stream_number(after: Any, names: Sequence[str]) -> int:
    """Return the number of the stream after a step; the embedding has 0.

    Args:
        after: the name of the step, or its number.
        names: the names of the steps, the embedding first.

    Raises:
        InvalidValue, UnknownName: for a step that is not there.

    """
    if isinstance(after, str):
        if after not in names:
            raise UnknownName.among("step", after, names)
        return list(names).index(after)
    if not is_whole(after, 0) or after >= len(names):
        raise InvalidValue(
            f"a step must be one of {', '.join(names)}, or its number from 0 to {len(names) - 1}",
            received=f"after = {after!r:.40}",
            where="patch",
            remedy="give one of these; trace.streams lists the steps in order",
        )
    return int(after)


def row_of(position: Any, rows: int, front: int, where: str = "patch") -> int:
    """Return the row of a position; positions count from 1, and BOS in front has 0.

    Raises:
        InvalidValue: for a position that is not there.

    """
    if not is_whole(position, 1 - front) or position - 1 + front >= rows:
        raise InvalidValue(
            f"a position must be a whole number from {1 - front} to {rows - front}",
            received=f"{position!r:.40}",
            where=where,
            remedy=_counted(front),
        )
    return int(position) - 1 + front


def _counted(front: int) -> str:
    """How positions are counted, in words."""
    before = {0: "", 1: "; the symbol that is added in front has 0"}
    return f"count positions from 1{before.get(front, f'; symbols in front have {1 - front} to 0')}"


def column_of(slot: Any, stream: Stream, after: int, names: Sequence[str]) -> int:
    """Return the coordinate of a slot, or of a number that a slot holds after a step.

    Raises:
        UnknownName: for a slot that does not exist.
        InvalidValue: for a number that no slot holds after the step.

    """
    column, _ = stream.place(slot)
    is_a_number = any(span.name == slot for span in stream.spans)
    if is_a_number and stream.held(column, after) != slot:
        raise InvalidValue(
            f"the stream after {names[after]} must hold the number",
            received=f"{slot!r}, where the slot holds {stream.held(column, after)!r}",
            where="patch",
            remedy="name a step from the one that writes it to the last that reads it",
        )
    return column


def replaced(z: Array, cells: Sequence[tuple[int, int, Array]], a: Arithmetic) -> Array:
    """The stream (1, rows, d) with other numbers in some entries."""
    for row, column, number in cells:
        # A new array is made: those of `exact` have no assignment to entries.
        line = z[:, row : row + 1]
        line = a.concatenate([line[..., :column], number, line[..., column + 1 :]], axis=-1)
        z = a.concatenate([z[:, :row], line, z[:, row + 1 :]], axis=-2)
    return z


def _number(given: Any, a: Arithmetic) -> Array:
    """A number as an array of shape (1, 1, 1)."""
    # An array of one number is an entry of another run, which may be a ball.
    is_entry = getattr(given, "shape", ()) == (1,)
    number = a.array(given if is_entry else [given])[None, None]
    if number.shape != (1, 1, 1):
        raise InvalidValue(
            "the value of a patch must be a number",
            received=f"{given!r:.40}",
            where="patch",
            remedy="give an integer, a float or a Fraction",
        )
    return number
