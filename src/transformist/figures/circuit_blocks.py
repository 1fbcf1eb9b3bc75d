"""The circuit of a model as data: the slots that each head, hidden unit, symbol and label uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import visible
from transformist.figures.canvas import listed
from transformist.model import NOTHING, Attention, FeedForward, LayerNorm, Stream, Transformer
from transformist.model.parameter import exact_product

GROUPS = 12
"""Most nodes of symbols, and of labels; with more, those that differ in their numbers are one."""

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
    """Heads, hidden units, symbols or labels that use the same slots in the same way.

    Attributes:
        label: their name.
        uses: the slots.
        is_some: True if the node stands for several symbols or labels, and each of them uses some
            of the slots.

    """

    label: str
    uses: tuple[Use, ...]
    is_some: bool = False


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
        embedding | (, ), BOS
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
            reads = held_names(stream, after)
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
    count = len(model.read_out.W_out)
    labels = getattr(model.read_out, "labels", None) or ["answer"]
    if len(labels) != count:
        labels = [f"answer {row}" for row in range(count)]
    rows = _before(model.final_norm, model.read_out.W_out)
    title = "read-out" if model.final_norm is None else "read-out final-norm"
    nodes = _merged(labels, rows, held_names(stream, after), READ, "labels")
    blocks.append(Block(title, tuple(nodes)))
    return tuple(blocks)


def _label(symbol: Any) -> str:
    """A symbol or a label of an answer as a label of a node."""
    return visible(str(symbol)) or "the empty symbol"


def held_names(stream: Stream, after: int) -> tuple[str, ...]:
    """Names of the numbers that the slots hold; a slot that holds none has its number."""
    held = [stream.held(slot, after) for slot in range(stream.width)]
    return tuple(
        f"slot {slot}, empty" if name == NOTHING else name for slot, name in enumerate(held)
    )


def _written(stream: Stream, after: int) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names of what the next sublayer may write, and of what it clears among them."""
    # A compiled model subtracts a number that is no longer needed, so that its slot holds nothing
    # until another number is written there. This is no new number: it belongs to the old wire.
    before, names = held_names(stream, after), list(held_names(stream, after + 1))
    cleared = [slot for slot in range(stream.width) if stream.held(slot, after + 1) == NOTHING]
    for slot in cleared:
        names[slot] = before[slot]
    return tuple(names), frozenset(before[slot] for slot in cleared)


def _clearing(node: CircuitNode, cleared: frozenset[str]) -> CircuitNode:
    """Return the node with the role `clear` for each number that its sublayer clears."""
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
    embedding, names = model.embedding, held_names(model.stream, 0)
    nodes = _merged(embedding.symbols, embedding.vectors, names, WRITE, "symbols")
    if embedding.positions is not None:
        uses = tuple(Use(names[column], WRITE, 0) for column in embedding.positions.filled)
        nodes.append(CircuitNode("positions", uses))
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
    for unit in range(network.hidden):
        rows = W_1[list(network.rows_of(unit))]
        read = tuple(use.wire for use in _uses(rows, reads, READ))
        written = tuple(use.wire for use in _uses(network.W_2[:, unit], writes, WRITE))
        groups.setdefault((read, written), []).append(unit)
    nodes = []
    for units in groups.values():
        uses = (
            *_uses(W_1[[row for unit in units for row in network.rows_of(unit)]], reads, READ),
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


def _merged(
    labels: Iterable[Any], rows: NDArray[Any], names: Sequence[str], role: str, noun: str
) -> list[CircuitNode]:
    """One node for all rows that are equal; with more than `GROUPS`, for rows of the same slots."""
    # Equal rows first: a node of several symbols says that all of them write the same numbers. Only
    # where a page has no room for that, the node says that they write the same slots, and then that
    # each writes some of them. Rows of zeros stay apart, since they use no slot.
    labelled = [(_label(label), row) for label, row in zip(labels, rows, strict=True)]
    for key in (_numbers_of, _slots_of, _is_zero):
        groups: dict[Any, list[tuple[str, NDArray[Any]]]] = {}
        for label, row in labelled:
            groups.setdefault(key(row), []).append((label, row))
        if len(groups) <= GROUPS:
            break
    nodes = []
    for group in groups.values():
        label = " ".join(each for each, _ in group)
        if len(group) > 1 and len(label) > 24:
            label = f"{len(group)} {noun}: {group[0][0]} … {group[-1][0]}"
        uses = _uses(np.array([row for _, row in group], dtype=object), names, role)
        is_some = len({_slots_of(row) for _, row in group}) > 1
        nodes.append(CircuitNode(label, uses, is_some))
    return nodes


def _numbers_of(row: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(row.tolist())


def _slots_of(row: NDArray[Any]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(row != 0).tolist())


def _is_zero(row: NDArray[Any]) -> bool:
    return not _slots_of(row)


VERBS = {WRITE: "writes", CLEAR: "clears"}
"""Verbs of the roles; every other role reads."""


def describe(blocks: Sequence[Block]) -> str:
    """Return the text alternative: every node with the slots that it reads and writes."""
    lines = []
    for block in blocks:
        for node in block.nodes:
            verbs: dict[str, dict[str, None]] = {}
            for use in node.uses:
                verb = VERBS.get(use.role, "reads")
                verbs.setdefault(verb, {})[visible(use.wire)] = None
            some = "some of " if node.is_some else ""
            done = " and ".join(f"{verb} {some}{', '.join(wires)}" for verb, wires in verbs.items())
            each = "each of " if node.is_some else ""
            lines.append(f"{block.title}, {each}{node.label} {done or 'uses no slot'}")
    return ". ".join(lines) + "."
