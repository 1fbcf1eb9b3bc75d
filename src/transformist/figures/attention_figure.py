"""The attention of a head on one input, as a matrix and as arcs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import visible
from transformist.figures.canvas import BLUE, GREY, VERMILION, drawn, listed, require_kind, short
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
    require_kind(trace, Trace, "attention", "give model.run(x)")
    whole = np.array([[float(value) for value in row] for row in trace.attention(layer, head)])
    count, weights = len(whole), whole[:POSITIONS, :POSITIONS]
    every = [short(visible(str(each)), 10) for each in trace.symbols]
    symbols, note = every[:POSITIONS], ""
    if count > POSITIONS:
        beyond = float(whole[:POSITIONS, POSITIONS:].sum(axis=1).max())
        note = (
            f"Drawn in part: {POSITIONS} of {count} positions. A query that is drawn has up to "
            f"{beyond:.3g} of its weight on keys that are not."
        )
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
        axes.set_xticks(range(len(symbols)), symbols, rotation=_turned(symbols))
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
            " ".join(f"Attention of {title}. {note} {_described(whole[:POSITIONS], every)}".split())
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
        turned = _turned(symbols)
        axes.text(place, 1.03, symbol, ha="center", va="bottom", fontsize=7, rotation=turned)
        axes.text(place, -0.03, symbol, ha="center", va="top", fontsize=7, rotation=turned)
    axes.text(count, 1.03, "keys", ha="left", va="bottom", fontsize=7, color=GREY)
    axes.text(count, -0.03, "queries", ha="left", va="top", fontsize=7, color=GREY)
    axes.set_xlim(-0.5, count + 0.5)
    axes.set_ylim(-0.05, 1.05)
    axes.axis("off")


def _turned(symbols: list[str]) -> int:
    """The angle of symbols above a column: a name of more than BOS's three letters is too wide."""
    return 90 if max(map(len, symbols)) > 3 else 0


def _described(weights: NDArray[Any], symbols: list[str]) -> str:
    """Return the text alternative: the keys of most weight of every query that is drawn.

    Args:
        weights: of the queries that are drawn, over all keys.
        symbols: of all keys.

    """
    told = []
    for row, line in enumerate(weights):
        most = float(line.max())
        best = np.flatnonzero(line == most).tolist()
        query = f"row {row} ({symbols[row]})"
        if most <= 0:
            told.append(f"{query} attends to nothing")
        elif len(best) > 1:
            told.append(f"{query} attends most to rows {listed(best)}, {most:.3g} each")
        else:
            hidden = "" if best[0] < POSITIONS else ", not drawn"
            told.append(
                f"{query} attends most to row {best[0]} ({symbols[best[0]]}), {most:.3g}{hidden}"
            )
    return "; ".join(told) + "."
