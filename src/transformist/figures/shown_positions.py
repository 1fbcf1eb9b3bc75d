"""The positions of a run that a figure shows: those asked for, or the first and the last."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from transformist.errors import InvalidValue
from transformist.figures.canvas import listed
from transformist.model import Trace
from transformist.model.patching import row_of


def shown_rows(trace: Trace, positions: Any, most: int, where: str) -> list[int]:
    """Return the rows of the positions, in order: at most `most`, the first and the last.

    Args:
        trace: the run.
        positions: positions, from 1, where BOS in front has 0; all when `None`.
        most: the largest number of rows.
        where: the caller, for errors.

    Raises:
        InvalidValue: for a position that is not there, and for none.

    """
    rows = list(range(len(trace.symbols)))
    if positions is not None:
        given = list(positions) if isinstance(positions, Iterable) else []
        if not given or isinstance(positions, str):
            raise InvalidValue(
                "positions must be at least one position, in a list or a range",
                received=f"{positions!r:.60}",
                where=where,
                remedy="give one such as range(1, 9), or leave it out",
            )
        front = len(trace.model.embedding.front)
        rows = sorted({row_of(each, len(rows), front, where) for each in given})
    # The last position is read in most models, so both ends stay where the middle does not fit.
    last = most // 4
    return rows if len(rows) <= most else rows[: most - last] + rows[-last:]


def in_part(trace: Trace, rows: Collection[int]) -> list[str]:
    """Say which positions are drawn, where some are not; no text where all are.

    Example:
        >>> import transformist as tf
        >>> trace = tf.recipe("dyck-1").build(max_length=8).run("()()")
        >>> in_part(trace, [0, 1, 4]), in_part(trace, range(5))
        (['3 of 5 positions (0, 1, 4)'], [])

    """
    count = len(trace.symbols)
    if len(rows) == count:
        return []
    places = [place_of(trace, row) for row in rows]
    return [f"{len(rows)} of {count} positions ({listed(places)})"]


def place_of(trace: Trace, row: int) -> int:
    """The position of a row: 1 for the first symbol of the input."""
    return row + 1 - len(trace.model.embedding.front)


def gaps(rows: list[int]) -> list[int]:
    """The places in a list of rows after which rows are left out."""
    return [k for k in range(len(rows) - 1) if rows[k + 1] != rows[k] + 1]
