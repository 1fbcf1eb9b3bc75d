"""A run as cells: the slots that each step may change, at every position."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import visible
from transformist.figures.canvas import (
    CHARACTER,
    GREY,
    VERMILION,
    drawn,
    require_kind,
    short,
    short_labels,
)
from transformist.figures.matrix_cells import CELL, WIDEST, draw_cells, largest, margin_of
from transformist.figures.shown_positions import gaps, in_part, place_of, shown_rows
from transformist.model import NOTHING, Trace
from transformist.report.trace_table import changed_slots

POSITIONS, ROWS, LAST = 32, 90, 10
"""Most positions and rows of cells that are drawn, and the last rows among them."""

LEAST = 2.0**-10
"""Least magnitude that has full colour.

Numbers that circuits compute with, such as means over n positions, are rarely smaller at lengths
that are drawn; residues of softmax, which stand for 0, are far smaller, and stay white.
"""

COLOURING = (
    "Full colour: the largest magnitude of the slot in the run, but at least 2^-10. "
    "≈0: below 2^-20 of that."
)
"""The scale of the colours, in words."""


def run(trace: Trace, *, positions: Collection[int] | None = None) -> Any:
    """Draw a run: after each step the slots that it may change, at every position.

    Blue is above 0 and red below. A slot has full colour at its largest magnitude in the run, or at
    2⁻¹⁰ where it stays below that, so that residues of softmax look like the 0 that they stand for.
    A run with more than 32 positions or 90 rows is drawn in part, and the figure says which.

    Args:
        trace: the run, `model.run(x)`.
        positions: the positions to draw, from 1, where BOS in front has 0; all when left out. Of
            more than 32 the first 24 and the last 8 are drawn.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: for a position that is not there, and without matplotlib.

    """
    require_kind(trace, Trace, "run", "give model.run(x)")
    # Only what a step may change is drawn after it: a slot that it leaves alone would repeat what
    # stands above, and a slot between two numbers holds nothing that another step reads.
    stream, panels = trace.model.stream, []
    for after, (name, slots) in enumerate(changed_slots(trace)):
        held = [stream.held(stream.index(slot), after) for slot in slots]
        rows = [
            (each, np.array([float(value) for value in trace.values(slot, after)]))
            for slot, each in zip(slots, held, strict=True)
            if each != NOTHING
        ]
        if rows:
            panels.append((name, rows))
    shown = shown_rows(trace, positions, POSITIONS, "run")
    left_out = in_part(trace, shown)
    count = sum(len(rows) for _, rows in panels)
    if count > ROWS:
        left_out.append(f"the first {ROWS - LAST} and the last {LAST} of {count} rows")
    note = f"Drawn in part: {' and '.join(left_out)}." if left_out else ""
    return _draw(trace, _fitting(panels), shown, note)


Panel = tuple[str, list[tuple[str, NDArray[Any]]]]
"""A step, and the slots that it may change with their numbers at every position."""


def _fitting(panels: list[Panel]) -> list[Panel]:
    """The panels, with at most `ROWS` rows in all: the first, and the last, which is read."""
    numbered = [(name, row) for name, rows in panels for row in rows]
    kept = numbered if len(numbered) <= ROWS else numbered[: ROWS - LAST] + numbered[-LAST:]
    groups = groupby(kept, lambda pair: pair[0])
    return [(name, [row for _, row in pairs]) for name, pairs in groups]


def _draw(trace: Trace, panels: list[Panel], shown: list[int], note: str) -> Any:
    """Draw one step below the other, with the symbols above the first."""
    symbols = [visible(str(trace.symbols[row])) for row in shown]
    # One column of panels: the same position stands at the same place in all, so that the eye can
    # follow it down through the steps.
    # The title of the first panel stands beside the symbols, so its width belongs to the margin.
    names = short_labels(name for _, rows in panels for name, _ in rows)
    first = max([len(name) for name, _ in panels[:1]], default=0) * CHARACTER * 1.15
    left = max(margin_of([*names.values()], max(map(len, names.values()), default=0)), first) + 0.2
    across = max(len(symbols) * WIDEST, 2.0)
    top = max(margin_of(symbols, 12), 0.1) + 0.35
    heights = [len(rows) * CELL for _, rows in panels]
    height, width = top + sum(heights) + 0.3 * len(panels) + 0.75, left + across + 0.2
    sizes = _sizes(panels)
    with drawn(width, height) as figure:
        figure.text(
            0.1 / width,
            1 - 0.2 / height,
            f"Answer in {trace.arithmetic.name}{_changed(trace)}: {short(trace.answer, 60)}",
        )
        y = height - top
        for index, ((name, rows), down) in enumerate(zip(panels, heights, strict=True)):
            y -= down + 0.3
            axes = figure.add_axes((left / width, y / height, across / width, down / height))
            values = np.array([row[shown] for _, row in rows])
            labels = [names[each] for each, _ in rows]
            draw_cells(axes, values, labels, symbols, [sizes[each] for each, _ in rows])
            for gap in gaps(shown):
                axes.axvline(gap + 0.5, color=VERMILION, linewidth=1.2)
            if index:
                axes.tick_params(axis="x", labeltop=False)
            figure.text(0.1 / width, (y + down + 0.06) / height, name, fontweight="bold")
        # The symbols above the first panel, the positions below the last; BOS in front has 0.
        places = [str(place_of(trace, row)) for row in shown]
        axes.set_xticks(range(len(symbols)), places, rotation=0)
        axes.tick_params(axis="x", labelbottom=True, labeltop=False)
        figure.text(left / width, 0.4 / height, "position")
        figure.text(0.1 / width, 0.24 / height, COLOURING, fontsize=6.5, color=GREY)
        figure.text(0.1 / width, 0.08 / height, note, color=VERMILION)
        figure.set_label(_described(trace, panels, symbols, note))
    return figure


def _described(trace: Trace, panels: list[Panel], symbols: list[str], note: str) -> str:
    """Return the text alternative: the symbols, and the slots that each step may change."""
    steps = [f"{name} gives {', '.join(each for each, _ in rows)}" for name, rows in panels]
    begun = f"Run on {' '.join(symbols)} in {trace.arithmetic.name}{_changed(trace)}"
    told = f"{begun}, answer {trace.answer}. {note} {'; '.join(steps)}. {COLOURING}"
    return " ".join(told.split())


def _changed(trace: Trace) -> str:
    """What was changed in the run and in its model, in words."""
    return "".join(f", {each}" for each in trace.changes)


def _sizes(panels: list[Panel]) -> dict[str, float]:
    """The magnitude that has full colour for each slot: its largest in the run, or `LEAST`."""
    # Over all steps and positions, drawn or not: the same number has one colour everywhere.
    sizes: dict[str, float] = {}
    for name, row in (pair for _, rows in panels for pair in rows):
        sizes[name] = max(largest(row), sizes.get(name, LEAST))
    return sizes
