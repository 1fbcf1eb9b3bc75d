"""Models from models: one after the other, side by side, heads apart (5.5, 8.3)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from transformist.assembly.networks import beside
from transformist.assembly.routing import between, expect
from transformist.errors import InvalidValue, ShapeMismatch
from transformist.model import (
    Embedding,
    FeedForward,
    Layer,
    LayerStack,
    Outputs,
    Parameter,
    PositionEncoding,
    PositionFunctions,
    PositionsSideBySide,
    ReadOut,
    Stream,
    Transformer,
    exact_product,
)


def move(layer: Layer, read: object, write: object) -> Layer:
    """The layer on another stream: it reads R z, and L of what it adds is added.

    Args:
        layer: without norms, on a stream of width d.
        read: R, shape (d, d').
        write: L, shape (d', d).

    Raises:
        InvalidValue: for a layer with norms, which see every coordinate of the stream.

    """
    if any((*layer.pre_norms, *layer.post_norms)):
        raise InvalidValue(
            "models that are composed must have no layer norm (Lemma 8.3)",
            received="a layer with a norm, which sees every coordinate of its stream",
            where="move",
            remedy="compose the parts before the norm is added",
        )
    network = layer.feed_forward
    return Layer(
        tuple(between(head, read, write) for head in layer.heads),
        None if network is None else between(network, read, write),
    )


def serial(first: LayerStack, second: LayerStack) -> LayerStack:
    """The second after the first (Lemma 8.2): it reads what the first gives, in this order.

    The stream has the slots of the first, and then the slots of the second that are not its
    inputs, with `then ` before their names.

    Raises:
        ShapeMismatch: when the first does not give as many numbers as the second reads.
        InvalidValue: when the first gives one slot twice, or there is a norm in either.

    """
    for stack in (first, second):
        expect(stack, LayerStack, "serial")
        _require_no_final_norm(stack, "serial")
    if first.width_out != second.width:
        raise ShapeMismatch(
            "the second stack must read as many numbers as the first gives",
            received=f"{first.width_out} given, {second.width} read",
            where="serial",
            remedy="choose the outputs of the first",
        )
    if len(set(first.outputs)) != len(first.outputs):
        raise InvalidValue(
            "the first stack must give each slot once: each output is one input of the second",
            received=f"outputs {', '.join(first.outputs)}",
            where="serial",
            remedy="give each slot once",
        )
    # The second reads its inputs in the slots where the first leaves them. Its other slots start at
    # 0 and so are fresh ones, which no layer of the first writes to.
    names = dict(zip(second.inputs, first.outputs, strict=True))
    for slot in second.stream.slots:
        taken = (*first.stream.slots, *names.values())
        names.setdefault(slot, _unused(f"then {slot}", taken))
    fresh = tuple(names[slot] for slot in second.stream.slots if slot not in second.inputs)
    stream = Stream((*first.stream.slots, *fresh))
    before = on_stream(first.stream.slots, stream)
    after = on_stream([names[slot] for slot in second.stream.slots], stream)
    return LayerStack(
        stream=stream,
        inputs=first.inputs,
        layers=(
            *(move(layer, before, before.T) for layer in first.layers),
            *(move(layer, after, after.T) for layer in second.layers),
        ),
        outputs=tuple(names[slot] for slot in second.outputs),
    )


def parallel(
    first: Transformer, second: Transformer, read_out: ReadOut | None = None
) -> Transformer:
    """Both transformers at once on one stream (Lemma 8.3): (tf₁ ⊕ tf₂)(w)ᵢ = [tf₁(w)ᵢ; tf₂(w)ᵢ].

    The stream has the slots of the first, with `first ` before their names, and then the slots of
    the second, with `second `. The shorter one is padded with layers that do nothing; a layer holds
    the heads of both and both feed-forward networks side by side.

    Args:
        first: a transformer without norms.
        second: another, over the same alphabet and with the same special symbols.
        read_out: a read-out of the joint stream; the read-out of the first, if left out.

    Raises:
        InvalidValue: when they cannot be composed, with the reason.

    """
    for model in (first, second):
        expect(model, Transformer, "parallel")
    _require_parallel(first, second)
    names = [f"first {slot}" for slot in first.stream.slots]
    others = [f"second {slot}" for slot in second.stream.slots]
    stream = Stream((*names, *others))
    top, bottom = on_stream(names, stream), on_stream(others, stream)
    depth = max(len(first.layers), len(second.layers))
    layers = [
        _merged(move(upper, top, top.T), move(lower, bottom, bottom.T))
        for upper, lower in zip(_padded(first, depth), _padded(second, depth), strict=True)
    ]
    return Transformer(
        stream=stream,
        embedding=_both(first.embedding, second.embedding),
        layers=tuple(layers),
        read_out=read_out if read_out is not None else _read(first.read_out, top),
        max_length=min(
            (model.max_length for model in (first, second) if model.max_length is not None),
            default=None,
        ),
    )


def _require_parallel(first: Transformer, second: Transformer) -> None:
    differ = {
        "alphabets": (set(first.alphabet), set(second.alphabet)),
        "symbols in front": (first.embedding.front, second.embedding.front),
        "symbols at the back": (first.embedding.back, second.embedding.back),
    }
    for what, (one, other) in differ.items():
        if one != other:
            raise InvalidValue(
                f"transformers side by side must have the same {what}",
                received=f"{sorted(map(str, one))} and {sorted(map(str, other))}",
                where="parallel",
                remedy="build both over one alphabet, with the same special symbols",
            )
    for model in (first, second):
        _require_no_final_norm(model, "parallel")


def _require_no_final_norm(model: Transformer | LayerStack, where: str) -> None:
    if model.final_norm is not None:
        raise InvalidValue(
            "models that are composed must have no layer norm (Lemma 8.3)",
            received="a final norm, which sees every coordinate of its stream",
            where=where,
            remedy="compose the parts before the norm is added",
        )


def _padded(model: Transformer, depth: int) -> tuple[Layer, ...]:
    # A layer without heads and network adds 0 to the stream.
    return (*model.layers, *[Layer()] * (depth - len(model.layers)))


def _merged(upper: Layer, lower: Layer) -> Layer:
    """One layer that does what two do on disjoint slots."""
    # Neither reads what the other writes, so the order of the two does not matter.
    networks = [each for each in (upper.feed_forward, lower.feed_forward) if each is not None]
    return Layer((*upper.heads, *lower.heads), beside(*networks) if networks else None)


def _both(first: Embedding, second: Embedding) -> Embedding:
    order = [second.symbols.index(symbol) for symbol in first.symbols]
    return Embedding(
        symbols=first.symbols,
        vectors=np.concatenate([first.vectors, second.vectors[order]], axis=1),
        positions=_both_positions(first, second),
        front=first.front,
        back=first.back,
    )


def _both_positions(first: Embedding, second: Embedding) -> PositionEncoding | None:
    """The positions of both embeddings; named functions if each has these or no positions."""
    if first.positions is None and second.positions is None:
        return None
    parts = [
        PositionFunctions((None,) * each.width) if each.positions is None else each.positions
        for each in (first, second)
    ]
    # Engines and proofs know more about named functions than about other encodings.
    named = [each.names for each in parts if isinstance(each, PositionFunctions)]
    if len(named) == len(parts):
        return PositionFunctions(tuple(itertools.chain(*named)))
    return PositionsSideBySide(tuple(parts))


def _read(read_out: ReadOut, onto: Parameter) -> ReadOut:
    """The read-out on the stream of which the rows of `onto` select its own."""
    if isinstance(read_out, Outputs):
        return replace(read_out, parts=tuple(_read(each, onto) for each in read_out.parts))
    return replace(read_out, W_out=exact_product(read_out.W_out, onto))


def on_stream(slots: Sequence[str], stream: Stream) -> Parameter:
    """Return the matrix that takes vectors of a stream to the values of some of its slots."""
    return stream.reading(*slots)


def split_heads(stack: LayerStack) -> LayerStack:
    """Layers of H heads as layers of one (section 5.5).

    Each head of a layer writes to fresh slots of its own, so that the heads after it still read
    what it read; a feed-forward network adds them up at the end. In a format that rounds, the sums
    are taken in another order.

    Raises:
        InvalidValue: for a layer with norms.

    """
    expect(stack, LayerStack, "split_heads")
    _require_no_final_norm(stack, "split_heads")
    slots = stack.stream.slots
    aside: dict[tuple[int, int], dict[str, str]] = {}
    taken = list(slots)
    for number, layer in enumerate(stack.layers):
        for h, head in enumerate(layer.heads if len(layer.heads) > 1 else ()):
            aside[number, h] = {}
            for slot in (slots[row] for row in head.written):
                aside[number, h][slot] = _unused(f"{slot}, layer {number} head {h}", taken)
                taken.append(aside[number, h][slot])
    stream = Stream(tuple(taken))
    own = on_stream(slots, stream)
    layers: list[Layer] = []
    for number, layer in enumerate(stack.layers):
        moved = move(layer, own, own.T)
        if len(layer.heads) < 2:
            layers.append(moved)
            continue
        for h, head in enumerate(layer.heads):
            # What the head would add to a slot goes to a fresh one: the heads after it, in layers
            # of their own now, still read the stream as it was before this layer.
            fresh = stream.writing(*(aside[number, h].get(slot, {}) for slot in slots))
            layers.append(move(Layer((head,)), own, fresh))
        pairs = [pair for h in range(len(layer.heads)) for pair in aside[number, h].items()]
        if pairs:
            layers[-1] = Layer(layers[-1].heads, _moved_into(stream, pairs))
        if moved.feed_forward is not None:
            layers.append(Layer((), moved.feed_forward))
    return LayerStack(stream, stack.inputs, tuple(layers), stack.outputs)


def _moved_into(stream: Stream, pairs: Sequence[tuple[str, str]]) -> FeedForward:
    """A network that adds, for each pair, the second slot to the first."""
    # x = ReLU(x) − ReLU(−x), of which one term is 0: nothing rounds but the sums into slots.
    R = stream.reading(*(source for _, source in pairs))
    L = stream.writing(*(slot for slot, _ in pairs))
    return FeedForward(W_1=np.concatenate([R, -R]), W_2=np.concatenate([L, -L], axis=1))


def _unused(name: str, taken: Sequence[str]) -> str:
    """The name, marked as another one until it is none of those taken."""
    while name in taken:
        name = f"then {name}"
    return name
