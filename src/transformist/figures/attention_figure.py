"""The attention of a head on one input, as a matrix and as arcs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import visible
from transformist.figures.canvas import BLUE, GREY, VERMILION, drawn, listed, require_kind, short
from transformist.figures.shown_positions import gaps, in_part, shown_rows
from transformist.model import Trace

POSITIONS = 48
"""Most positions that are drawn."""

FAINTEST = 1 / 32
"""Least weight of an arc that is drawn: a fainter one would not be seen.

The arcs of the largest weights of a query are drawn however small these are: a query with equal
weights on many keys would seem to attend to nothing.
"""


def attention(
    trace: Trace, *, layer: int, head: int, positions: Collection[int] | None = None
) -> Any:
    """Draw the attention weights of a head: a matrix, and arcs from each query to its keys.

    Args:
        trace: the run, `model.run(x)`.
        layer: the layer, from 0.
        head: the head in it, from 0.
        positions: the positions to draw, from 1, where BOS in front has 0; all when left out. Of
            more than 48 the first 36 and the last 12 are drawn.

    Returns:
        A matplotlib `Figure`; its label is a description in words. An input that is drawn in part
        says which part, and how much weight is on keys that are not drawn.

    Raises:
        InvalidValue: for a layer, head or position that is not there, and without matplotlib.
        InputTooLarge: if the matrix would not fit in memory.

    """
    require_kind(trace, Trace, "attention", "give model.run(x)")
    whole = np.array([[float(value) for value in row] for row in trace.attention(layer, head)])
    shown = shown_rows(trace, positions, POSITIONS, "attention")
    weights = whole[np.ix_(shown, shown)]
    every = [short(visible(str(each)), 10) for each in trace.symbols]
    symbols, note = [every[row] for row in shown], ""
    part = in_part(trace, shown)
    if part:
        hidden = float(np.delete(whole[shown], shown, axis=1).sum(axis=1).max(initial=0))
        beyond = (
            "No query that is drawn has weight on keys that are not."
            if hidden <= 0
            else f"Queries that are drawn have up to {hidden:.3g} of their weight on keys that are "
            "not."
        )
        note = f"Drawn in part: {part[0]}. {beyond}"
    chosen = trace.model.layers[layer].heads[head]
    title = f"layer {layer}, head {head}: {chosen.weighting}, mask {chosen.mask}"
    title += "".join(f", {each}" for each in trace.changes)
    side = max(0.2 * len(symbols), 1.6)
    # The matrix and the arcs are equally wide, as they show the same positions.
    names = max(map(len, symbols)) * 0.07
    width, height = 2 * side + 2.6 + names, side + names + 1.4
    with drawn(width, height) as figure:
        axes = figure.add_axes(((0.6 + names) / width, 0.65 / height, side / width, side / height))
        image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, interpolation="none")
        axes.set_yticks(range(len(symbols)), symbols)
        axes.set_xticks(range(len(symbols)), symbols, rotation=_angle(symbols))
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.set_ylabel("query")
        axes.set_xlabel("key")
        beside = (0.6 + names + side + 0.1) / width
        bar = figure.add_axes((beside, 0.65 / height, 0.1 / width, side / height))
        figure.colorbar(image, cax=bar)
        right = (0.6 + names + side + 0.75) / width
        arcs = figure.add_axes((right, 0.65 / height, (side + 0.6) / width, side / height))
        left_out = _draw_arcs(arcs, weights, symbols)
        for gap in gaps(shown):
            axes.axvline(gap + 0.5, color=VERMILION, linewidth=0.8)
            axes.axhline(gap + 0.5, color=VERMILION, linewidth=0.8)
            arcs.axvline(gap + 0.5, color=VERMILION, linewidth=0.8)
        figure.text(0.1 / width, 1 - 0.2 / height, title, fontweight="bold")
        arcs_note = (
            ""
            if not left_out
            else (
                f"No arc for {left_out} weights below 1/32 that are not the largest of their query."
            )
        )
        figure.text(0.1 / width, 0.24 / height, arcs_note, fontsize=6.5, color=GREY)
        if note:
            figure.text(0.1 / width, 0.08 / height, note, color=VERMILION)
        told = _described(whole, every, shown)
        figure.set_label(" ".join(f"Attention of {title}. {note} {told} {arcs_note}".split()))
    return figure


def _draw_arcs(axes: Any, weights: NDArray[Any], symbols: list[str]) -> int:
    """Draw a line of keys above a line of queries, and a curve from each query to its keys.

    Returns:
        The number of weights above 0 that have no arc.

    """
    # Two lines of symbols, not one with arcs above it: in one, the arc of a position to itself is
    # a point, and arcs to the left look like arcs to the right.
    count = len(symbols)
    along = np.linspace(0, 1, 25)
    most = weights.max(axis=1, keepdims=True, initial=0)
    # Weights that are equal but for rounding are all the largest: 2⁻²⁰ is above what float32
    # rounds.
    is_drawn = (weights > 0) & ((weights >= FAINTEST) | (weights >= most * (1 - 2.0**-20)))
    for query, key in zip(*np.nonzero(is_drawn), strict=True):
        # A smooth step from the query, below, to the key, above.
        x = query + (key - query) * (3 * along**2 - 2 * along**3)
        weight = float(weights[query, key])
        alpha = min(max(weight, 0.15), 1.0)  # what is drawn has to be seen
        axes.plot(x, along, color=BLUE, alpha=alpha, linewidth=0.4 + 1.4 * weight)
    for place, symbol in enumerate(symbols):
        angle = _angle(symbols)
        axes.text(place, 1.03, symbol, ha="center", va="bottom", fontsize=7, rotation=angle)
        axes.text(place, -0.03, symbol, ha="center", va="top", fontsize=7, rotation=angle)
    axes.text(count, 1.03, "keys", ha="left", va="bottom", fontsize=7, color=GREY)
    axes.text(count, -0.03, "queries", ha="left", va="top", fontsize=7, color=GREY)
    axes.set_xlim(-0.5, count + 0.5)
    axes.set_ylim(-0.05, 1.05)
    axes.axis("off")
    return int(((weights > 0) & ~is_drawn).sum())


def _angle(symbols: list[str]) -> int:
    """Angle of the symbols above the columns: a column is as wide as the three letters of BOS."""
    return 90 if max(map(len, symbols)) > 3 else 0


def _described(weights: NDArray[Any], symbols: list[str], shown: list[int]) -> str:
    """Return the text alternative: the keys with most weight, for every query that is drawn.

    Args:
        weights: the weights of all queries over all keys.
        symbols: the symbols of all rows.
        shown: the rows that are drawn.

    """
    told = []
    for row in shown:
        line = weights[row]
        most = float(line.max())
        best = np.flatnonzero(line == most).tolist()
        query = f"row {row} ({symbols[row]})"
        if most <= 0:
            told.append(f"{query} attends to nothing")
        elif len(best) > 1:
            told.append(f"{query} attends most to rows {listed(best)}, {most:.3g} each")
        else:
            hidden = "" if best[0] in shown else ", not drawn"
            told.append(
                f"{query} attends most to row {best[0]} ({symbols[best[0]]}), {most:.3g}{hidden}"
            )
    return "; ".join(told) + "."
