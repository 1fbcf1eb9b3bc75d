"""The circuit of a model as a graph: slots are wires, heads and hidden units are nodes on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import is_whole
from transformist.errors import InvalidValue, visible
from transformist.figures.canvas import (
    BLUE,
    CHARACTER,
    GREY,
    PALE,
    VERMILION,
    drawn,
    listed,
    require_kind,
    short,
    short_labels,
)
from transformist.model import NOTHING, Attention, FeedForward, LayerNorm, Stream, Transformer
from transformist.model.parameter import exact_product

NODES, WIRES = 60, 64
"""Most nodes and wires that are drawn of a model; more do not fit a page."""

SYMBOLS = 12
"""Most nodes of symbols; more are drawn as one."""

QUERY, KEY, VALUE, READ, WRITE, CLEAR = "q", "k", "v", "read", "write", "clear"
"""Uses of a slot by a node."""


@dataclass(frozen=True)
class Use:
    """A slot that a node reads or writes.

    Attributes:
        wire: the name of the slot, or of the number that it holds then.
        role: `q`, `k` or `v` for the queries, keys and values of a head, else `read`, `write`, or
            `clear` where the slot holds nothing afterwards.
        sign: of the weights: 1, −1, or 0 where both signs occur.

    """

    wire: str
    role: str
    sign: int


@dataclass(frozen=True)
class CircuitNode:
    """Heads, hidden units, symbols or labels that use the same slots in the same way."""

    label: str
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class Block:
    """The embedding, a sublayer or the read-out: its nodes side by side."""

    title: str
    nodes: tuple[CircuitNode, ...]


def blocks_of(model: Transformer) -> tuple[Block, ...]:
    """Return the graph of a model, read off its weights and the names of its slots.

    Example:
        >>> import transformist as tf
        >>> for block in blocks_of(tf.recipe("dyck-1").build(max_length=4)):
        ...     print(block.title, "|", ", ".join(node.label for node in block.nodes))
        embedding | ( ), BOS
        layer 0 attention | head 0: softmax, future
        layer 0 feed-forward | units 0, 1, units 2, 3
        layer 1 attention | head 0: softmax, future
        layer 1 feed-forward | units 0, 1
        read-out | answer

    """
    stream = model.stream
    blocks, after = [_embedding(model)], 0
    for number, layer in enumerate(model.layers):
        for kind, sublayer in layer.sublayers():
            reads = _held(stream, after)
            writes, cleared = _written(stream, after)
            function = sublayer.function
            if isinstance(function, FeedForward):
                nodes = _units(function, sublayer.pre_norm, reads, writes)
            else:
                nodes = [
                    _head(index, head, sublayer.pre_norm, reads, writes)
                    for index, head in enumerate(function.heads)
                ]
            nodes += _post_norm(sublayer.post_norm, reads, writes)
            norms = {"pre-norm": sublayer.pre_norm, "post-norm": sublayer.post_norm}
            normed = [name for name, norm in norms.items() if norm is not None]
            title = " ".join([f"layer {number} {kind}", *normed])
            blocks.append(Block(title, tuple(_clearing(node, cleared) for node in nodes)))
            after += 1
    # Some read-outs have a name for each row of W_out, others one answer, or names of outputs.
    labels = getattr(model.read_out, "labels", None) or ["answer"] * len(model.read_out.W_out)
    if len(labels) != len(model.read_out.W_out):
        labels = range(len(model.read_out.W_out))
    reads = _held(stream, after)
    rows = [
        (_label(label), _uses(row, reads, READ))
        for label, row in zip(labels, _before(model.final_norm, model.read_out.W_out), strict=True)
    ]
    title = "read-out" if model.final_norm is None else "read-out final-norm"
    blocks.append(Block(title, tuple(_merged(rows, "labels"))))
    return tuple(blocks)


def _label(symbol: Any) -> str:
    """A symbol or a label of an answer as a label of a node."""
    return visible(str(symbol)) or "the empty symbol"


def _held(stream: Stream, after: int) -> tuple[str, ...]:
    """Names of the numbers that the slots hold; a slot that holds none has its number."""
    held = [stream.held(slot, after) for slot in range(stream.width)]
    return tuple(
        f"slot {slot}, empty" if name == NOTHING else name for slot, name in enumerate(held)
    )


def _written(stream: Stream, after: int) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of what the next sublayer may write, and those of them that it clears."""
    # A compiled model subtracts a number that is no longer needed, so that its slot holds nothing
    # until another number is written there. This is no new number: it belongs to the old wire.
    before, names = _held(stream, after), list(_held(stream, after + 1))
    cleared = [slot for slot in range(stream.width) if stream.held(slot, after + 1) == NOTHING]
    for slot in cleared:
        names[slot] = before[slot]
    return tuple(names), frozenset(before[slot] for slot in cleared)


def _clearing(node: CircuitNode, cleared: frozenset[str]) -> CircuitNode:
    """The node with the role `clear` for the numbers that its sublayer clears."""
    uses = tuple(
        replace(use, role=CLEAR) if use.role == WRITE and use.wire in cleared else use
        for use in node.uses
    )
    return replace(node, uses=uses)


def _post_norm(
    norm: LayerNorm | None, reads: Sequence[str], writes: Sequence[str]
) -> list[CircuitNode]:
    """A node for a post-norm that mixes or shifts slots; any other only scales what is there."""
    if norm is None or (norm.W_N is None and not np.any(norm.bias != 0)):
        return []
    taken = np.ones(len(reads)) if norm.W_N is None else norm.W_N
    uses = [replace(use, sign=0) for use in _uses(taken, reads, READ)]
    return [CircuitNode("post-norm", (*uses, *(Use(name, WRITE, 0) for name in writes)))]


def _embedding(model: Transformer) -> Block:
    """The nodes of the symbols, and one of the positional features."""
    embedding, names = model.embedding, _held(model.stream, 0)
    rows = [
        (_label(symbol), _uses(row, names, WRITE))
        for symbol, row in zip(embedding.symbols, embedding.vectors, strict=True)
    ]
    nodes = list(_merged(rows, ""))
    if len(nodes) > SYMBOLS:
        nodes = [CircuitNode(f"{len(rows)} symbols", _uses(embedding.vectors, names, WRITE))]
    if embedding.positions is not None:
        used: set[str] = set()
        for part in embedding.positions.named_parts("positions", (), names):
            for matrix in part.matrices:
                is_set = [
                    any(value not in (0, "0", "") for value in column) for column in matrix.values.T
                ]
                used |= {
                    name for name, is_one in zip(matrix.columns, is_set, strict=True) if is_one
                }
        nodes.append(
            CircuitNode("positions", tuple(Use(name, WRITE, 0) for name in names if name in used))
        )
    return Block("embedding", tuple(nodes))


def _head(
    number: int,
    head: Attention,
    norm: LayerNorm | None,
    reads: Sequence[str],
    writes: Sequence[str],
) -> CircuitNode:
    """A head: the slots of its queries, keys and values, and those that it writes."""
    # The product W_O W_V shows what is copied from where: a slot whose values W_O drops is not
    # read.
    uses = [
        use
        for matrix, role in ((head.W_Q, QUERY), (head.W_K, KEY), (head.value_matrix, VALUE))
        for use in _uses(_before(norm, matrix), reads, role)
    ]
    written = tuple(Use(writes[row], WRITE, 0) for row in head.written)
    return CircuitNode(f"head {number}: {head.weighting}, {head.mask}", (*uses, *written))


def _units(
    network: FeedForward, norm: LayerNorm | None, reads: Sequence[str], writes: Sequence[str]
) -> list[CircuitNode]:
    """One node for all hidden units that use the same slots, and one for the output's bias."""
    W_1 = _before(norm, network.W_1)
    # A step takes two units, and a compiler writes several steps of one number side by side: units
    # with the same slots are one node, or a page would hold no layer of a compiled program.
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for unit in range(len(W_1)):
        read = tuple(use.wire for use in _uses(W_1[unit], reads, READ))
        written = tuple(use.wire for use in _uses(network.W_2[:, unit], writes, WRITE))
        groups.setdefault((read, written), []).append(unit)
    nodes = []
    for units in groups.values():
        uses = (
            *_uses(W_1[units], reads, READ),
            *_uses(network.W_2[:, units].T, writes, WRITE),
        )
        nodes.append(CircuitNode(f"unit{'s' if len(units) > 1 else ''} {listed(units)}", uses))
    if (network.b_2 != 0).any():
        nodes.append(CircuitNode("bias", _uses(network.b_2, writes, WRITE)))
    return nodes


def _before(norm: LayerNorm | None, matrix: NDArray[Any]) -> NDArray[Any]:
    """A matrix on the stream: after a norm with W_N it reads the slots that W_N reads."""
    if norm is None:
        return matrix
    scaled: NDArray[Any] = exact_product(matrix, np.diag(norm.gain))
    return scaled if norm.W_N is None else exact_product(scaled, norm.W_N)


def _uses(matrix: NDArray[Any], names: Sequence[str], role: str) -> tuple[Use, ...]:
    """The uses of the columns of a matrix, or of a vector, that are not all zero."""
    rows = np.atleast_2d(matrix)
    above, below = np.any(rows > 0, axis=0).tolist(), np.any(rows < 0, axis=0).tolist()
    return tuple(
        Use(name, role, is_above - is_below)
        for name, is_above, is_below in zip(names, above, below, strict=True)
        if is_above or is_below
    )


def _merged(rows: Iterable[tuple[str, tuple[Use, ...]]], noun: str) -> Iterator[CircuitNode]:
    """One node for all rows that use the same slots."""
    groups: dict[tuple[str, ...], list[tuple[str, tuple[Use, ...]]]] = {}
    for label, uses in rows:
        groups.setdefault(tuple(use.wire for use in uses), []).append((label, uses))
    for group in groups.values():
        signs = [tuple(use.sign for use in uses) for _, uses in group]
        uses = tuple(
            Use(use.wire, use.role, use.sign if len({each[k] for each in signs}) == 1 else 0)
            for k, use in enumerate(group[0][1])
        )
        labels = " ".join(label for label, _ in group)
        yield CircuitNode(
            labels if len(labels) <= 24 or len(group) == 1 else f"{len(group)} {noun or 'symbols'}",
            uses,
        )


VERBS = {WRITE: "writes", CLEAR: "clears"}
"""Verbs of the roles that are no reading."""


def describe(blocks: Sequence[Block]) -> str:
    """Return the text alternative: every node with the slots that it reads and writes."""
    lines = []
    for block in blocks:
        for node in block.nodes:
            verbs: dict[str, dict[str, None]] = {}
            for use in node.uses:
                verb = VERBS.get(use.role, "reads")
                verbs.setdefault(verb, {})[visible(use.wire)] = None
            done = " and ".join(f"{verb} {', '.join(wires)}" for verb, wires in verbs.items())
            lines.append(f"{block.title}, {node.label} {done}".rstrip())
    return ". ".join(lines) + "."


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
    # beginning, and `layers` draws any other part.
    shown = _first_nodes(blocks, NODES)
    wires = _wires(model, shown, every=layers is None and shown == blocks and model.width <= WIRES)
    left_out = [
        f"{kept} of {count} {noun}"
        for kept, count, noun in (
            (_count(shown), _count(blocks), "nodes"),
            (min(len(wires), WIRES), len(_wires(model, blocks, every=False)), "slots"),
        )
        if kept < count
    ]
    note = f"Drawn in part: {' and '.join(left_out)}." if left_out else ""
    wires = wires[:WIRES]
    extents = _extents(model, blocks_of(model), shown)
    label = f"Circuit of a model with {len(model.layers)} layers. {note} {describe(shown)}"
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
    """The first blocks, with at most `most` nodes in all."""
    shown = []
    for block in blocks:
        if most <= 0:
            break
        shown.append(Block(block.title, block.nodes[:most]))
        most -= len(block.nodes)
    return tuple(shown)


def _wires(model: Transformer, blocks: Sequence[Block], every: bool) -> list[str]:
    """Names of the numbers that these blocks use, or of every slot, in the order of the slots."""
    used = {use.wire for block in blocks for node in block.nodes for use in node.uses}
    stream = model.stream
    after = sum(len(list(layer.sublayers())) for layer in model.layers)
    # Numbers that share a slot one after another have a wire each, below one another: a wire with
    # several names would have to change its label on the way.
    order: dict[str, None] = {}
    for slot, name in enumerate(stream.slots):
        held = dict.fromkeys(_held(stream, k)[slot] for k in range(after + 1))
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
        for name in _held(model.stream, after):
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
    texts = [short(node.label, LABEL) for block in blocks for node in block.nodes]
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


def _title(title: str) -> str:
    """The title of a block on up to three lines."""
    layer, _, rest = title.partition(" ")
    number, _, kind = rest.partition(" ")
    return "\n".join([f"{layer} {number}", *kind.split()]) if kind else title


def _draw_node(axes: Any, x: float, node: CircuitNode, rows: Mapping[str, float]) -> None:
    """Draw a node: its label, a line, and a mark on each wire that it uses."""
    axes.text(x, 0.14, short(node.label, LABEL), ha="center", va="bottom", rotation=90, fontsize=7)
    used = [use for use in node.uses if use.wire in rows]
    if not used:
        return
    lowest = min(rows[use.wire] for use in used)
    axes.plot([x, x], [0.12, lowest], color="#888888", linewidth=0.9, zorder=2)
    by_wire: dict[str, list[Use]] = {}
    for use in used:
        by_wire.setdefault(use.wire, []).append(use)
    for wire, uses in by_wire.items():
        y, letters = (
            rows[wire],
            "".join(use.role for use in uses if use.role in (QUERY, KEY, VALUE)),
        )
        written = [use for use in uses if use.role == WRITE]
        read = [use for use in uses if use.role == READ]
        # A node that reads and writes a slot has both marks there, side by side.
        cleared = [use for use in uses if use.role == CLEAR]
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
