"""The circuit of a model as a graph: slots are wires, heads and hidden units are nodes on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from transformist.arithmetic import is_whole
from transformist.errors import InvalidValue
from transformist.figures.canvas import (
    BLUE,
    CHARACTER,
    GREY,
    PALE,
    VERMILION,
    drawn,
    require_kind,
    short,
    short_labels,
)
from transformist.figures.circuit_blocks import (
    CLEAR,
    KEY,
    QUERY,
    READ,
    VALUE,
    WRITE,
    Block,
    CircuitNode,
    Use,
    blocks_of,
    describe,
    held_names,
)
from transformist.model import Transformer

NODES, WIRES = 60, 64
"""Most nodes and wires that are drawn of a model; more do not fit a page."""

LAST = 16
"""Nodes and wires of the last block that are kept where a circuit is drawn in part."""


def circuit(model: Transformer, *, layers: Collection[int] | None = None) -> Any:
    """Draw the circuit of a model from its weights: slots as wires, heads and units as nodes.

    Hidden units that use the same slots are one node. A model of more than 60 nodes or 64 slots is
    drawn in part, and the figure says so.

    Args:
        model: a transformer.
        layers: the layers to draw, by number; every part of the model when left out.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: for a layer that is not there, and without matplotlib.

    """
    require_kind(model, Transformer, "circuit", "give tf.compile(program), or a recipe's model")
    blocks = blocks_of(model)
    if layers is not None:
        chosen = tuple(f"layer {number} " for number in _numbers(layers, len(model.layers)))
        blocks = tuple(block for block in blocks if block.title.startswith(chosen))
    # The first nodes and slots, not a random sample: a reader can follow a circuit from its
    # beginning, and `layers` draws any other part. The read-out, where every circuit ends, stays.
    shown = _first_nodes(blocks, NODES)
    every = layers is None and shown == blocks and model.width <= WIRES
    wires = _first_wires(_wires(model, shown, every), shown[-1], WIRES)
    shown = _connected(shown, set(wires))
    left_out = [
        f"{kept} of {count} {noun}"
        for kept, count, noun in (
            (_count(shown), _count(blocks), "nodes"),
            (len(wires), len(_wires(model, blocks, every=False)), "slots"),
        )
        if kept < count
    ]
    note = f"Drawn in part: {' and '.join(left_out)}." if left_out else ""
    if any(_undrawn(node, wires) for block in shown for node in block.nodes):
        note += " +k below a node: it uses k slots that are not drawn."
    extents = _extents(model, blocks_of(model), shown)
    changes = "".join(f", {each}" for each in model.changes)
    title = f"Circuit of a model with {len(model.layers)} layers{changes}."
    # A model as it was built needs no title; of a changed one the picture itself says so.
    note = f"Changed model, {'; '.join(model.changes)}. {note}".strip() if changes else note
    label = f"{title} {note} {describe(shown)}"
    return _draw(shown, {name: extents[name] for name in wires}, note, " ".join(label.split()))


def _numbers(layers: Any, count: int) -> list[int]:
    """The numbers of layers.

    Raises:
        InvalidValue: for a layer that is not there, and for none.

    """
    given = list(layers) if isinstance(layers, Iterable) else []
    if not given or not all(is_whole(each, 0) and each < count for each in given):
        raise InvalidValue(
            f"layers must be numbers from 0 to {count - 1}",
            received=f"{layers!r:.60}",
            where="circuit",
            remedy="leave it out to draw the whole model",
        )
    return [int(each) for each in given]


def _count(blocks: Iterable[Block]) -> int:
    return sum(len(block.nodes) for block in blocks)


def _first_nodes(blocks: Sequence[Block], most: int) -> tuple[Block, ...]:
    """The first nodes and the nodes of the last block, at most `most` in all."""
    *others, last = blocks
    end = replace(last, nodes=last.nodes[:LAST])
    most -= len(end.nodes)
    shown = []
    for block in others:
        if most <= 0:
            break
        shown.append(replace(block, nodes=block.nodes[:most]))
        most -= len(block.nodes)
    return (*shown, replace(last, nodes=last.nodes[: LAST + max(most, 0)]))


def _first_wires(wires: list[str], last: Block, most: int) -> list[str]:
    """The first wires and the wires of the last block, at most `most` in all."""
    if len(wires) <= most:
        return wires
    used = {use.wire for node in last.nodes for use in node.uses}
    ends = [name for name in wires if name in used][:LAST]
    others = [name for name in wires if name not in ends][: most - len(ends)]
    return [name for name in wires if name in {*ends, *others}]


def _connected(blocks: Sequence[Block], wires: set[str]) -> tuple[Block, ...]:
    """The blocks without the nodes that use slots, none of which is drawn."""
    return tuple(
        replace(
            block,
            nodes=tuple(
                node
                for node in block.nodes
                if not node.uses or any(use.wire in wires for use in node.uses)
            ),
        )
        for block in blocks
    )


def _undrawn(node: CircuitNode, wires: Collection[str]) -> int:
    """The number of slots of a node that are not drawn."""
    return len({use.wire for use in node.uses} - set(wires))


def _wires(model: Transformer, blocks: Sequence[Block], every: bool) -> list[str]:
    """Names of the numbers that these blocks use, or of every slot, in the order of the slots."""
    used = {use.wire for block in blocks for node in block.nodes for use in node.uses}
    stream = model.stream
    after = sum(len(list(layer.sublayers())) for layer in model.layers)
    # Numbers that share a slot one after another have a wire each, below one another: a wire with
    # several names would have to change its label on the way.
    order: dict[str, None] = {}
    for slot, name in enumerate(stream.slots):
        held = dict.fromkeys(held_names(stream, k)[slot] for k in range(after + 1))
        order |= dict.fromkeys([*held, name] if every and not stream.spans else held)
    return [name for name in order if name in used or (every and not stream.spans)]


def _extents(
    model: Transformer, whole: Sequence[Block], shown: Sequence[Block]
) -> dict[str, tuple[int, int]]:
    """The first and the last block shown in which the stream holds each number."""
    titles = [block.title for block in shown]
    places = [titles.index(block.title) if block.title in titles else -1 for block in whole]
    # A number is drawn from the block that writes it to the last block that can read it. Blocks
    # that are not drawn have no place; a number that is in none of those drawn has no wire.
    found: dict[str, list[int]] = {}
    for after in range(len(whole) - 1):
        # Block k writes the stream k, and block k + 1 reads it.
        for name in held_names(model.stream, after):
            found.setdefault(name, []).extend(p for p in places[after : after + 2] if p >= 0)
    return {name: (min(each), max(each)) for name, each in found.items() if each}


LABEL = 42
"""Most characters of the label of a node."""

COLUMN, ROW, GAP = 0.34, 0.24, 0.22
"""Inches between two nodes, between two wires, and between two blocks."""


def _draw(
    blocks: Sequence[Block], wires: Mapping[str, tuple[int, int]], note: str, label: str
) -> Any:
    """Draw a wire where the stream holds its number, and each node as a line down to its wires."""
    # Inches throughout: the axes span the figure, so that a text never changes the sizes of others.
    # The origin is the left end of the first wire; wires go down from 0, labels of nodes up.
    rows: dict[str, float] = {name: -ROW * k for k, name in enumerate(wires)}
    texts = [_text(node) for block in blocks for node in block.nodes]
    header = max(map(len, texts), default=0) * CHARACTER + 0.2
    places, x = [], 0.0
    for block in blocks:
        title = max(len(word) for word in _title(block.title).split("\n")) * CHARACTER + 0.1
        width = max(len(block.nodes) * COLUMN, title)
        places.append((x, width))
        x += width + GAP
    names = short_labels(wires)
    margin = max(map(len, names.values()), default=0) * CHARACTER + 0.15
    bottom = -ROW * max(len(wires) - 1, 0)
    with drawn(margin + x, header - bottom + 1.2) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(-margin, x)
        axes.set_ylim(bottom - 0.6, header + 0.6)
        axes.axis("off")
        for name, y in rows.items():
            axes.text(-0.1, y, names[name], ha="right", va="center", fontsize=8)
            first, last = wires[name]
            ends = [places[first][0], sum(places[last])]
            axes.plot(ends, [y, y], color="#BBBBBB", linewidth=0.7, zorder=1)
            axes.plot([-0.06, ends[0]], [y, y], ":", color="#DDDDDD", linewidth=0.7, zorder=1)
        for block, (left, width) in zip(blocks, places, strict=True):
            sides = [left, left + width, left + width, left]
            edges = [bottom - 0.16, bottom - 0.16, header, header]
            axes.fill(sides, edges, color=PALE, zorder=0, linewidth=0)
            middle = left + width / 2
            axes.text(
                middle,
                header + 0.05,
                _title(block.title),
                ha="center",
                va="bottom",
                fontsize=8,
                fontweight="bold",
            )
            start = middle - COLUMN * (len(block.nodes) - 1) / 2
            for index, node in enumerate(block.nodes):
                _draw_node(axes, start + COLUMN * index, node, rows)
        _draw_legend(axes, bottom - 0.42, note)
        figure.set_label(label)
    return figure


def _text(node: CircuitNode) -> str:
    return short(f"{node.label}, some of" if node.is_some else node.label, LABEL)


def _title(title: str) -> str:
    """The title of a block on up to three lines."""
    layer, _, rest = title.partition(" ")
    number, _, kind = rest.partition(" ")
    return "\n".join([f"{layer} {number}", *kind.split()]) if kind else title


def _draw_node(axes: Any, x: float, node: CircuitNode, rows: Mapping[str, float]) -> None:
    """Draw a node: its label, a line, and a mark on each wire that it uses."""
    axes.text(x, 0.14, _text(node), ha="center", va="bottom", rotation=90, fontsize=7)
    used = [use for use in node.uses if use.wire in rows]
    if not used:
        return
    lowest = min(rows[use.wire] for use in used)
    axes.plot([x, x], [0.12, lowest], color="#888888", linewidth=0.9, zorder=2)
    hidden = _undrawn(node, rows)
    if hidden:
        # Below the last wire: the node goes on to slots that have no wire here.
        low = min(rows.values())
        axes.plot([x, x], [lowest, low - 0.16], ":", color=VERMILION, linewidth=0.9, zorder=2)
        axes.text(x, low - 0.18, f"+{hidden}", ha="center", va="top", fontsize=6, color=VERMILION)
    by_wire: dict[str, list[Use]] = {}
    for use in used:
        by_wire.setdefault(use.wire, []).append(use)
    for wire, uses in by_wire.items():
        y = rows[wire]
        letters = "".join(use.role for use in uses if use.role in (QUERY, KEY, VALUE))
        written = [use for use in uses if use.role == WRITE]
        read = [use for use in uses if use.role == READ]
        cleared = [use for use in uses if use.role == CLEAR]
        # A node that reads and writes a slot has both marks there, side by side.
        beside = 0.075 if (written or cleared) and (letters or read) else 0
        if letters:
            _draw_letters(axes, x - beside, y, letters)
        for use in read:
            axes.plot(
                x - beside,
                y,
                "o",
                color=_colour(use),
                markerfacecolor="white",
                markersize=5,
                zorder=3,
            )
        for use in written:
            axes.plot(x + beside, y, "s", color=_colour(use), markersize=5, zorder=4)
        for _ in cleared:
            axes.plot(x + beside, y, "x", color="#333333", markersize=5, zorder=4)


def _draw_letters(axes: Any, x: float, y: float, letters: str) -> None:
    """Write the letters of queries, keys and values on a wire."""
    frame = {
        "boxstyle": "round,pad=0.12",
        "facecolor": "white",
        "edgecolor": GREY,
        "linewidth": 0.6,
    }
    axes.text(x, y, letters, ha="center", va="center", fontsize=6, bbox=frame, zorder=3)


def _colour(use: Use) -> str:
    return {1: BLUE, -1: VERMILION, 0: "#333333"}[use.sign]


def _draw_legend(axes: Any, y: float, note: str) -> None:
    """Explain the marks in one line below the wires, and what is left out below it."""
    text = (
        "q k v: query, key, value   ○ read   ■ written   × cleared   blue: weights > 0   "
        "red: weights < 0   dark: both signs, or written by a head"
    )
    left = axes.get_xlim()[0]
    axes.text(left, y, text, ha="left", va="center", fontsize=6.5, color="#444444")
    if note:
        axes.text(left, y - 0.18, note, ha="left", va="center", fontsize=8, color=VERMILION)
