"""A table of the layers at work: the slots that each sublayer wrote, at a few positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from transformist.errors import visible
from transformist.model import NOTHING, Trace

Line = tuple[str, str, dict[int, str]]
"""A line of the table: the step, the slot, and its values by row."""

FIRST, LAST = 5, 2
"""Largest number of positions shown from each end."""

SLOTS = 12
"""Largest number of slots shown for one sublayer."""

LEAST_NAME = 12
"""Least number of characters of a slot's name that are kept where the table is too wide."""

SYMBOL = 9
"""Characters of a symbol, the ellipsis included, where the table is too wide."""


def trace_table(trace: Trace, around: int | None = None, width: int = 160) -> Table:
    """The slots that each sublayer changed, at the first and last rows and around one position.

    Numbers are never truncated. Where the table would be too wide, names of slots are cut short
    first, then symbols, and then fewer positions are shown.

    Args:
        trace: the run.
        around: a position of the input (from 1) to show with its neighbours.
        width: the width of the table, in characters.

    """
    row = None if around is None else len(trace.model.embedding.front) + around - 1
    choices = list(_choices(len(trace.symbols), row))
    lines = list(_lines(trace, [column for column in choices[0] if column is not None]))
    steps = max(cell_len(step) for step, _, _ in [HEADINGS, *lines])
    longest = max(cell_len(name) for _, name, _ in [HEADINGS, *lines])
    (step, slot, symbols), *others = lines
    short = [(step, slot, {row: _cut(each, SYMBOL) for row, each in symbols.items()}), *others]
    for columns, shown in ((choices[0], lines), *((columns, short) for columns in choices)):
        taken = sum(_width(column, shown) for column in columns)
        beside = steps + taken + GAP * (len(columns) + 1)
        if width - beside >= min(longest, LEAST_NAME):
            break
    names = min(longest, max(width - beside, LEAST_NAME))
    # With a width of its own rich makes no column narrower, on no terminal.
    table = Table(
        width=beside + names, box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0)
    )
    for heading in HEADINGS[:2]:
        table.add_column(heading, no_wrap=True)
    for column in columns:
        heading = ELLIPSIS if column is None else str(column)
        table.add_column(heading, justify="right", no_wrap=True)
    for step, name, cells in shown:
        cut = Text(_cut(name, names))
        table.add_row(step, cut, *(Text(_at(column, cells)) for column in columns))
    return table


def _cut(name: str, width: int) -> str:
    """A text in at most so many cells; its middle is left out, as names differ at the end.

    Example:
        >>> _cut("first: above + fifth: below", 15), _cut("balance", 15)
        ('first: …: below', 'balance')

    """
    start, end = len(name) // 2, len(name) - len(name) // 2
    kept = name
    if len(name) > 2 * width and cell_len(name) > width:
        start = end = width  # of these more never fit, unless some take no cell
    while cell_len(kept) > width and (start or end):
        # Wide characters take two cells, so the halves shrink until the text fits.
        start, end = (start - 1, end) if start >= end else (start, end - 1)
        kept = f"{name[:start]}{ELLIPSIS}{name[len(name) - end :]}"
    return kept


HEADINGS: Line = ("written by", "slot", {})
"""The headings of the first columns."""

ELLIPSIS = "…"
"""Stands for the positions that are left out."""

GAP = 2
"""Spaces between two columns."""


def _lines(trace: Trace, rows: Sequence[int]) -> Iterator[Line]:
    """Each line: the step at the first of its slots, the slot, and its values at these rows."""
    yield "", "symbol", {row: visible(str(trace.symbols[row])) for row in rows}
    stream = trace.model.stream
    for after, (name, slots) in enumerate(changed_slots(trace)):
        held = {slot: stream.held(stream.index(slot), after) for slot in slots}
        # A slot between two numbers holds nothing that another sublayer reads.
        shown = [slot for slot in slots if held[slot] != NOTHING]
        for index, slot in enumerate(shown[:SLOTS]):
            values = trace.values(slot, after)
            cells = {row: _cell(values[row]) for row in rows}
            yield "" if index else name, visible(held[slot]), cells
        if len(shown) > SLOTS:
            yield "", f"{ELLIPSIS} {len(shown) - SLOTS} more slots", {}
        elif not shown:
            yield name, f"({NOTHING})", {}


def _at(column: int | None, cells: dict[int, str]) -> str:
    """The cell of a row; a gap for rows that are left out."""
    return "" if not cells else ELLIPSIS if column is None else cells[column]


def _width(column: int | None, lines: list[Line]) -> int:
    """The characters that a column takes."""
    heading = ELLIPSIS if column is None else str(column)
    return max(cell_len(heading), *(cell_len(_at(column, cells)) for _, _, cells in lines))


def _choices(rows: int, around: int | None) -> Iterator[list[int | None]]:
    """Rows to show, the longest choice first: some at each end and around one; `None` for gaps."""
    alone = [] if around is None else [around]
    near = [row + k for row in alone for k in (-1, 0, 1)]
    for first in range(FIRST, 0, -1):
        yield _columns(rows, first, min(first, LAST), near)
    yield _columns(rows, 1, 1, alone)


def changed_slots(trace: Trace) -> list[tuple[str, list[str]]]:
    """The name of each stream of the trace, with the slots that its step or a patch may change.

    After the embedding, these are the slots with a number other than 0.
    """
    model = trace.model
    slots = model.stream.slots
    embedded = [slot for slot in slots if trace.values(slot, 0).astype(bool).any()]
    written = [
        [slots[index] for index in sublayer.written]
        for layer in model.layers
        for _, sublayer in layer.sublayers()
    ]
    changed = [embedded, *written, *([list(slots)] if model.final_norm else [])]
    # A patch may put a number where the step writes nothing.
    for after in range(1, len(changed)):
        others = [slot for slot in slots if slot not in changed[after]]
        patched = {slot for slot in others if _differs(trace, slot, after)}
        if patched:
            changed[after] = [slot for slot in slots if slot in {*changed[after], *patched}]
    return [(name, each) for (name, _), each in zip(trace.streams, changed, strict=True)]


def _differs(trace: Trace, slot: str, after: int) -> bool:
    """True if a slot has other numbers after a step than before it; NaN equals NaN."""
    now, before = trace.values(slot, after), trace.values(slot, after - 1)
    return bool(((now != before) & ((now == now) | (before == before))).any())


def _columns(rows: int, first: int, last: int, others: Sequence[int]) -> list[int | None]:
    """The first and last rows and the others that are there, in order, `None` for a gap."""
    shown = {*range(min(first, rows)), *range(max(0, rows - last), rows)}
    shown |= {row for row in others if 0 <= row < rows}
    columns: list[int | None] = []
    for row in sorted(shown):
        if columns and columns[-1] != row - 1:
            columns.append(None)
        columns.append(row)
    return columns


def _cell(value: Any) -> str:
    """A number in a few digits; fractions exactly, up to nine characters."""
    if isinstance(value, Fraction):
        text = str(value)
        return text if len(text) <= 9 else f"{float(value):.3g}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.0e}"
    return visible(str(value))
