"""A run as cells: the slots that each step may change, at every position."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformist.errors import visible
from transformist.figures.canvas import VERMILION, drawn, require_kind, short
from transformist.figures.matrix_cells import CELL, WIDEST, draw_cells, margin_of
from transformist.model import NOTHING, Trace
from transformist.report.trace_table import changed_slots

POSITIONS, ROWS = 32, 90
"""Most positions and rows of cells that are drawn."""


def run(trace: Trace) -> Any:
    """Draw a run: after each step the slots that it may change, at every position.

    Blue is above 0 and red below; colours compare the positions of one slot. A run with more than
    32 positions or 90 rows is drawn in part, and the figure says so.

    Args:
        trace: the run, `model.run(x)`.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: without matplotlib.

    """
    require_kind(trace, Trace, "run", "give model.run(x)")
    # Only what a step may change is drawn after it: a slot that it leaves alone would repeat what
    # stands above, and a slot between two numbers holds nothing that another step reads.
    stream, panels = trace.model.stream, []
    for after, (name, slots) in enumerate(changed_slots(trace)):
        held = [stream.held(stream.index(slot), after) for slot in slots]
        rows = [
            (each, trace.values(slot, after))
            for slot, each in zip(slots, held, strict=True)
            if each != NOTHING
        ]
        if rows:
            panels.append((name, rows))
    symbols = [visible(str(each)) for each in trace.symbols]
    left_out = []
    if len(symbols) > POSITIONS:
        left_out.append(f"{POSITIONS} of {len(symbols)} positions")
    count = sum(len(rows) for _, rows in panels)
    if count > ROWS:
        left_out.append(f"{ROWS} of {count} rows")
    note = f"Drawn in part: {' and '.join(left_out)}." if left_out else ""
    return _draw(trace, _first_rows(panels, ROWS), symbols[:POSITIONS], note)


def _first_rows(panels: list[tuple[str, list[Any]]], most: int) -> list[tuple[str, list[Any]]]:
    """The first panels, with at most `most` rows in all."""
    shown = []
    for name, rows in panels:
        if most > 0:
            shown.append((name, rows[:most]))
        most -= len(rows)
    return shown


def _draw(trace: Trace, panels: list[tuple[str, list[Any]]], symbols: list[str], note: str) -> Any:
    """Draw one step below the other, with the symbols above the first."""
    # One column of panels: the same position stands at the same place in all, so that the eye can
    # follow it down through the steps.
    names = [name for _, rows in panels for name, _ in rows]
    left, across = margin_of(names) + 0.2, max(len(symbols) * WIDEST, 2.0)
    top = max(margin_of(symbols, 12), 0.1) + 0.35
    heights = [len(rows) * CELL for _, rows in panels]
    height, width = top + sum(heights) + 0.3 * len(panels) + 0.45, left + across + 0.2
    front = len(trace.model.embedding.front)
    with drawn(width, height) as figure:
        figure.text(
            0.1 / width,
            1 - 0.2 / height,
            f"Answer in {trace.arithmetic.name}: {short(trace.answer, 60)}",
        )
        y = height - top
        for index, ((name, rows), down) in enumerate(zip(panels, heights, strict=True)):
            y -= down + 0.3
            axes = figure.add_axes((left / width, y / height, across / width, down / height))
            values = np.array([[float(v) for v in row[: len(symbols)]] for _, row in rows])
            draw_cells(axes, values, [each for each, _ in rows], symbols, by_row=True)
            if index:
                axes.tick_params(axis="x", labeltop=False)
            figure.text(0.1 / width, (y + down + 0.06) / height, name, fontweight="bold")
        # The symbols above the first panel, the positions below the last; BOS in front has 0.
        places = [row + 1 - front for row in range(len(symbols))]
        axes.set_xticks(range(len(symbols)), [str(place) for place in places], rotation=0)
        axes.tick_params(axis="x", labelbottom=True, labeltop=False)
        figure.text(
            left / width,
            0.1 / height,
            note or "position",
            color=VERMILION if note else "black",
        )
        figure.set_label(_described(trace, panels, symbols, note))
    return figure


def _described(
    trace: Trace, panels: list[tuple[str, list[Any]]], symbols: list[str], note: str
) -> str:
    """Return the text alternative: the symbols, and the slots that each step may change."""
    steps = [f"{name} gives {', '.join(each for each, _ in rows)}" for name, rows in panels]
    begun = f"Run on {' '.join(symbols)} in {trace.arithmetic.name}, answer {trace.answer}."
    return " ".join(f"{begun} {note} {'; '.join(steps)}.".split())
