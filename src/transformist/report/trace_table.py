"""A table of the layers at work: the slots that each sublayer wrote, at a few positions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rich.markup import escape
from rich.table import Table

from transformist.errors import visible
from transformist.model import Trace

FIRST, LAST = 5, 2
"""Number of positions shown from each end."""

SLOTS = 12
"""Largest number of slots shown for one sublayer."""


def trace_table(trace: Trace, around: int | None = None) -> Table:
    """The slots that each sublayer changed, at the first and last rows and around one position.

    Args:
        trace: the run.
        around: a position of the input (from 1) to show with its neighbours.

    """
    rows = len(trace.symbols)
    columns = _columns(
        rows, None if around is None else len(trace.model.embedding.front) + around - 1
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("written by", "slot"):
        table.add_column(heading, no_wrap=True)
    for column in columns:
        heading = "…" if column is None else str(column)
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row("", "symbol", *_cells(trace.symbols, columns))
    for after, (name, slots) in enumerate(_steps(trace)):
        for index, slot in enumerate(slots[:SLOTS]):
            label = "" if index else name
            held = trace.model.stream.held(trace.model.stream.index(slot), after)
            values = _cells(trace.values(slot, after), columns)
            table.add_row(label, escape(visible(held)), *values)
        if len(slots) > SLOTS:
            table.add_row("", f"… {len(slots) - SLOTS} more slots")
    return table


def _steps(trace: Trace) -> list[tuple[str, list[str]]]:
    """The name of each stream of the trace, with the slots that the step before it may change."""
    model = trace.model
    slots = model.stream.slots
    embedded = [slot for slot in slots if trace.values(slot, 0).astype(bool).any()]
    written = [
        [slots[index] for index in sublayer.written]
        for layer in model.layers
        for _, sublayer in layer.sublayers()
    ]
    changed = [embedded, *written, *([list(slots)] if model.final_norm else [])]
    return [(name, each) for (name, _), each in zip(trace.streams, changed, strict=True)]


def _columns(rows: int, around: int | None) -> list[int | None]:
    """The rows to show in order, `None` for a gap."""
    shown = {*range(min(FIRST, rows)), *range(max(0, rows - LAST), rows)}
    if around is not None:
        shown |= {row for row in (around - 1, around, around + 1) if 0 <= row < rows}
    columns: list[int | None] = []
    for row in sorted(shown):
        if columns and columns[-1] != row - 1:
            columns.append(None)
        columns.append(row)
    return columns


def _cells(values: Any, columns: list[int | None]) -> list[str]:
    return ["…" if column is None else _cell(values[column]) for column in columns]


def _cell(value: Any) -> str:
    if isinstance(value, Fraction):
        text = str(value)
        return text if len(text) <= 9 else f"{float(value):.3g}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.0e}"
    return escape(visible(str(value)))
