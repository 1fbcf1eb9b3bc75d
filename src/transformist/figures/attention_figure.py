"""The attention of a head on one input, as a matrix and as arcs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import visible
from transformist.figures.canvas import BLUE, GREY, VERMILION, drawn, short
from transformist.model import Trace

POSITIONS = 48
"""Most positions that are drawn."""

FAINTEST = 1 / 32
"""Least weight of an arc that is drawn: a fainter one would not be seen."""


def attention(trace: Trace, *, layer: int, head: int) -> Any:
    """Draw the attention weights of a head: a matrix, and arcs from each query to its keys.

    Args:
        trace: the run, `model.run(x)`.
        layer: the layer, from 0.
        head: the head in it, from 0.

    Returns:
        A matplotlib `Figure`; its label is a description in words. An input of more than 48
        positions is drawn in part, and the figure says so.

    Raises:
        InvalidValue: for a layer or head that is not there, and without matplotlib.
        InputTooLarge: if the matrix would not fit in memory.

    """
    weights = np.array([[float(value) for value in row] for row in trace.attention(layer, head)])
    count = len(weights)
    weights = weights[:POSITIONS, :POSITIONS]
    symbols = [short(visible(str(each)), 10) for each in trace.symbols[:POSITIONS]]
    note = f"Drawn in part: {POSITIONS} of {count} positions." if count > POSITIONS else ""
    kind = trace.model.layers[layer].heads[head]
    title = f"layer {layer}, head {head}: {kind.weighting}, mask {kind.mask}"
    side = max(0.2 * len(symbols), 1.6)
    # The matrix and the arcs are equally wide, as they show the same positions.
    names = max(map(len, symbols)) * 0.07
    width, height = 2 * side + 2.6 + names, side + names + 1.2
    with drawn(width, height) as figure:
        axes = figure.add_axes(((0.6 + names) / width, 0.45 / height, side / width, side / height))
        image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, interpolation="none")
        axes.set_yticks(range(len(symbols)), symbols)
        axes.set_xticks(range(len(symbols)), symbols, rotation=90 if names > 0.15 else 0)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.set_ylabel("query")
        axes.set_xlabel("key")
        beside = (0.6 + names + side + 0.1) / width
        bar = figure.add_axes((beside, 0.45 / height, 0.1 / width, side / height))
        figure.colorbar(image, cax=bar)
        right = (0.6 + names + side + 0.75) / width
        arcs = figure.add_axes((right, 0.45 / height, (side + 0.6) / width, side / height))
        _draw_arcs(arcs, weights, symbols)
        figure.text(0.1 / width, 1 - 0.2 / height, title, fontweight="bold")
        if note:
            figure.text(0.1 / width, 0.1 / height, note, color=VERMILION)
        figure.set_label(
            " ".join(f"Attention of {title}. {note} {_described(weights, symbols)}".split())
        )
    return figure


def _draw_arcs(axes: Any, weights: NDArray[Any], symbols: list[str]) -> None:
    """Draw keys to the left above and queries below, each query joined with its keys by curves."""
    # Two lines of symbols, not one with arcs above it: in one, the arc of a position to itself is
    # a point, and arcs to the left look like arcs to the right.
    count = len(symbols)
    along = np.linspace(0, 1, 25)
    for query, key in zip(*np.nonzero(weights >= FAINTEST), strict=True):
        # A smooth step from the query, below, to the key, above.
        x = query + (key - query) * (3 * along**2 - 2 * along**3)
        weight = float(weights[query, key])
        axes.plot(x, along, color=BLUE, alpha=min(weight, 1.0), linewidth=0.4 + 1.4 * weight)
    for place, symbol in enumerate(symbols):
        turned = 90 if max(map(len, symbols)) > 2 else 0
        axes.text(place, 1.03, symbol, ha="center", va="bottom", fontsize=7, rotation=turned)
        axes.text(place, -0.03, symbol, ha="center", va="top", fontsize=7, rotation=turned)
    axes.text(count, 1.03, "keys", ha="left", va="bottom", fontsize=7, color=GREY)
    axes.text(count, -0.03, "queries", ha="left", va="top", fontsize=7, color=GREY)
    axes.set_xlim(-0.5, count + 0.5)
    axes.set_ylim(-0.05, 1.05)
    axes.axis("off")


def _described(weights: NDArray[Any], symbols: list[str]) -> str:
    """Return the text alternative: the key of most weight of every query."""
    told = []
    for row, (symbol, line) in enumerate(zip(symbols, weights, strict=True)):
        best = int(np.argmax(line))
        told.append(
            f"row {row} ({symbol}) attends most to row {best} ({symbols[best]}), {line[best]:.3g}"
            if line[best] > 0
            else f"row {row} ({symbol}) attends to nothing"
        )
    return "; ".join(told) + "."
