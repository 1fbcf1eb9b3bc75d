"""Transformers with flags: functions from models to models (Primitives of transformers, corrected).

Most functions add slots or layers to a transformer or to a stack of layers. New slots are 0 or
flags, and no old layer reads them, so the old slots keep their numbers. New layers change the slots
that are named for them. B is the largest number of an arithmetic that clamps sums at it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from transformist.assembly.flag_arguments import (
    layer_numbers,
    listed_slots,
    mapped_slots,
    positive,
    require_forms,
)
from transformist.assembly.joining import move, on_stream
from transformist.assembly.networks import units
from transformist.assembly.routing import expect
from transformist.errors import InvalidValue, require_type
from transformist.model import (
    Attention,
    Embedding,
    Layer,
    LayerStack,
    LinearForm,
    PositionEncoding,
    PositionFlags,
    PositionFunctions,
    PositionsSideBySide,
    PositionTable,
    Stream,
    Transformer,
    exact_product,
    rationals,
)

M = TypeVar("M", bound=Transformer | LayerStack)


class Gate(NamedTuple):
    """Slots that are set to 0 where form + shift ≥ 1, and keep their numbers where it is ≤ 0."""

    form: LinearForm
    shift: int
    slots: Sequence[str]


def clearing(stream: Stream, largest: Any, *gates: Gate) -> tuple[Layer, ...]:
    """Three layers: ((x + B g) + B g) − B g of the slots x of each gate g."""
    # Where g ≥ 1, B g is clamped to B. x + B ≥ 0, as x ≥ −B; B more is B, clamped; less B it is 0.
    # Where g ≤ 0 its ReLU is 0 and x stays.
    return tuple(
        Layer(
            feed_forward=units(
                stream,
                *((gate.form, gate.shift, dict.fromkeys(gate.slots, by)) for gate in gates),
            )
        )
        for by in (largest, largest, -largest)
    )


def with_layers(model: M, layers: Iterable[Layer], before: int | None = None) -> M:
    """The model with more layers on its stream: before layer `before`, or after the last.

    Raises:
        InvalidValue: if `before` is not the number of a layer, or `layers` is no list of layers.

    """
    expect(model, (Transformer, LayerStack), "with_layers")
    require_type(
        layers,
        Iterable,
        "layers must be a list of Layer",
        where="with_layers",
        remedy="put the layer in a list",
    )
    # A bool is an int to isinstance, and True would be taken for layer 1; so the type is compared.
    place = len(model.layers) if before is None else before
    if type(place) is not int or not 0 <= place <= len(model.layers):
        last = len(model.layers) - 1
        some = f"before one of the layers 0 to {last}, or last" if last >= 0 else "last"
        raise InvalidValue(
            f"new layers must stand {some}",
            received=f"before = {before!r:.40}",
            where="with_layers",
            remedy="give the number of a layer, or leave it out",
        )
    return replace(model, layers=(*model.layers[:place], *layers, *model.layers[place:]))


def with_slots(model: M, slots: Sequence[str], at: int | None = None) -> M:
    """The model with more slots, which are 0: in front of the coordinate `at`, or after the last.

    Raises:
        InvalidValue: for a coordinate that the stream does not have, a name that it has, or a model
            with norms, which would see the new coordinates.

    """
    expect(model, (Transformer, LayerStack), "with_slots")
    return _with_columns(model, dict.fromkeys(listed_slots(slots, "with_slots")), at)


def with_flags(
    model: Transformer, flags: Mapping[str, Mapping[int, Any]], at: int | None = None
) -> Transformer:
    """The transformer with flags: more slots that have a number at some positions, 0 elsewhere.

    Args:
        model: without norms, which would see the flags.
        flags: by the name of a new slot, the number at each flagged position, from 1; symbols in
            front of the input have 0, −1, …
        at: the coordinate before which the slots stand; the last ones, if left out.

    Raises:
        InvalidValue: as `with_slots`, for no flags, or for a coordinate inside sinusoids.

    Example:
        >>> from transformist.model import Binary
        >>> model = Transformer(
        ...     stream=Stream(("x",)),
        ...     embedding=Embedding(symbols=("a",), vectors=[[7]]),
        ...     layers=(),
        ...     read_out=Binary(W_out=[[1]]),
        ... )
        >>> flagged = with_flags(model, {"second": {2: 1}, "ends": {1: 3, 4: "1/2"}}, at=0)
        >>> flagged.run("aaa")["second"].tolist(), flagged.run("aaaa")["ends"].tolist()
        ([0.0, 1.0, 0.0], [3.0, 0.0, 0.0, 0.5])

    """
    expect(model, Transformer, "with_flags")
    columns = {}
    for slot, given in mapped_slots(flags, "with_flags", "flags", "numbers by position").items():
        require_type(
            given,
            Mapping,
            f"the flag {slot!r} must map positions to numbers",
            where="with_flags",
            remedy="give a dict such as {2: 1}, for a flag of 1 at position 2",
        )
        columns[slot] = PositionFlags(places=tuple(given), values=list(given.values()))
    return _with_columns(model, columns, at)


def _with_columns(model: M, columns: Mapping[str, PositionEncoding | None], at: int | None) -> M:
    """Return the model with new slots, each with its position encoding, or with 0."""
    d = model.stream.width
    place = d if at is None else at
    if type(place) is not int or not 0 <= place <= d or not columns:
        raise InvalidValue(
            f"there must be a new slot, and its coordinate must be one of 0 to {d}",
            received=f"at = {at!r:.40}, {len(columns)} slots",
            where="with_slots",
            remedy="give the name of a slot, and leave `at` out to have it last",
        )
    # `old` is the matrix (d, d') of zeros and ones that takes a vector of the new stream to the old
    # slots. A layer that reads `old` z has weights 0 for the new slots, and one that writes through
    # `old.T` adds nothing to them: so they keep their numbers, and the old slots theirs. Each row
    # of `old` has a single 1, so no product rounds.
    slots = model.stream.slots
    stream = Stream((*slots[:place], *columns, *slots[place:]))
    old = on_stream(slots, stream)
    moved = tuple(move(layer, old, old.T) for layer in model.layers)
    if model.final_norm is not None:
        raise InvalidValue(
            "a model with new slots must have no norm, which sees every coordinate",
            received="a final norm",
            where="with_slots",
            remedy="add the slots before the norm",
        )
    if isinstance(model, LayerStack):
        return replace(model, stream=stream, layers=moved)
    given = model.embedding
    before, after = _parted(given.positions, place, d)
    parts = [*before, *(each or _zeros(1) for each in columns.values()), *after]
    embedding = Embedding(
        symbols=given.symbols,
        vectors=exact_product(given.vectors, old),
        positions=_side_by_side(parts),
        front=given.front,
        back=given.back,
    )
    read_out = replace(model.read_out, W_out=exact_product(model.read_out.W_out, old))
    return replace(model, stream=stream, embedding=embedding, layers=moved, read_out=read_out)


def _zeros(width: int) -> PositionFunctions:
    return PositionFunctions((None,) * width)


def _parted(
    positions: PositionEncoding | None, place: int, d: int
) -> tuple[list[PositionEncoding], list[PositionEncoding]]:
    """Return the positions of the coordinates before a place, and of the other coordinates."""
    if positions is None:
        positions = _zeros(d)
    if isinstance(positions, PositionFunctions):
        names = positions.names
        parted = names[:place], names[place:]
        functions = [list(map(PositionFunctions, [each] if each else [])) for each in parted]
        return [*functions[0]], [*functions[1]]
    if isinstance(positions, PositionTable):
        sides = positions.vectors[:, :place], positions.vectors[:, place:]
        tables = [[PositionTable(vectors=each)] if each.size else [] for each in sides]
        return [*tables[0]], [*tables[1]]
    if place in (0, d):
        return ([], [positions]) if place == 0 else ([positions], [])
    if isinstance(positions, PositionsSideBySide):
        ends = list(itertools.accumulate(part.width for part in positions.parts))
        # The first part that reaches the place is the one to cut. A place between two parts is the
        # end of the first, which then stays whole: so encodings that cannot be cut, such as
        # sinusoids, may stand side by side with new slots between them.
        number = next(k for k, end in enumerate(ends) if end >= place)
        part = positions.parts[number]
        before, after = _parted(part, place - ends[number] + part.width, part.width)
        return [*positions.parts[:number], *before], [*after, *positions.parts[number + 1 :]]
    raise InvalidValue(
        f"new slots must not stand inside positions of the kind {type(positions).__name__}",
        received=f"at = {place}",
        where="with_slots",
        remedy=f"give at=0 or at={d}",
    )


def _side_by_side(parts: Sequence[PositionEncoding]) -> PositionEncoding | None:
    """Return encodings side by side; named functions as one, and zeros alone as none."""
    joined: list[PositionEncoding] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, PositionFunctions) and isinstance(last, PositionFunctions):
            joined[-1] = PositionFunctions((*last.names, *part.names))
        else:
            joined.append(part)
    if len(joined) > 1:
        return PositionsSideBySide(tuple(joined))
    only = joined[0]
    is_zero = isinstance(only, PositionFunctions) and not any(only.names)
    return None if is_zero else only


def add_at_flag(model: M, flag: str, vector: LinearForm, before: int | None = None) -> M:
    """The model with a layer that adds a vector, times the flag, where the flag is positive.

    Raises:
        InvalidValue: for arguments that are no slots or forms, or no model.

    """
    expect(model, (Transformer, LayerStack), "add_at_flag")
    require_forms("add_at_flag", flag=flag, vector=vector)
    # The unit is ReLU(flag). It is 0 where the flag is 0 or negative, so that nothing is added
    # there.
    layer = Layer(feed_forward=units(model.stream, (flag, 0, vector)))
    return with_layers(model, (layer,), before)


def zero_at_flag(
    model: M, flag: str, slots: Sequence[str], largest: Any, before: int | None = None
) -> M:
    """The model with three layers that clear slots where the flag is at least 1.

    The slots are cleared only in an arithmetic that clamps at B = `largest`, such as
    `saturating:B:r`. The flag must not be one of the slots.

    Raises:
        InvalidValue: for a flag among the slots, a `largest` of 0 or less, or no slots.

    """
    expect(model, (Transformer, LayerStack), "zero_at_flag")
    require_forms("zero_at_flag", flag=flag)
    slots, B = listed_slots(slots, "zero_at_flag"), positive(largest, "zero_at_flag")
    _require_apart("zero_at_flag", [flag], slots)
    return with_layers(model, clearing(model.stream, B, Gate(flag, 0, slots)), before)


def gate_by_flags(model: M, flags: Mapping[str, str], largest: Any, before: int | None = None) -> M:
    """The model with three layers that clear each slot where its flag is 0 instead of 1.

    The slots are cleared only in an arithmetic that clamps at B = `largest`, as for `zero_at_flag`.

    Args:
        model: the model.
        flags: the flag of each slot.
        largest: B.
        before: the number of the layer before which the new ones stand; last, if left out.

    Raises:
        InvalidValue: for no flags, a flag that is cleared itself, or a `largest` of 0 or less.

    """
    expect(model, (Transformer, LayerStack), "gate_by_flags")
    given, B = (
        mapped_slots(flags, "gate_by_flags", "flags", "flags"),
        positive(largest, "gate_by_flags"),
    )
    flagging = listed_slots(dict.fromkeys(given.values()), "gate_by_flags", "the flags")
    _require_apart("gate_by_flags", flagging, tuple(given))
    # 1 − flag is 1 where the flag is 0, and 0 where it is 1: a gate clears where its form is at
    # least 1.
    gates = [Gate({flag: -1}, 1, [slot]) for slot, flag in given.items()]
    return with_layers(model, clearing(model.stream, B, *gates), before)


def _require_apart(where: str, flags: Sequence[Any], slots: Sequence[str]) -> None:
    both = [flag for flag in flags if flag in slots]
    if both:
        raise InvalidValue(
            "a flag must not be one of the slots that are cleared, as it is read in three layers",
            received=f"{both[0]!r} among the slots",
            where=where,
            remedy="leave it out of the slots",
        )


def linear_to_the_right(
    model: M,
    slots: Sequence[str],
    matrix: object,
    largest: Any,
    flag: str = "flag",
    receiver: str = "receiver",
    before: int | None = None,
) -> M:
    """The model with layers that write M x of the flagged position to slots of a later one.

    x are the slots of the position whose `flag` is 1. At each later position whose `receiver` is 1,
    the slots are set to 0 and M x is added to them. At all other positions the slots are corrupted.
    Only in an arithmetic that clamps at B = `largest`, as `zero_at_flag`.
    """
    expect(model, (Transformer, LayerStack), "linear_to_the_right")
    require_forms("linear_to_the_right", flag=flag, receiver=receiver)
    slots, B = listed_slots(slots, "linear_to_the_right"), positive(largest, "linear_to_the_right")
    stream = model.stream
    # The receiver must be cleared first: the head adds M x to what stands in its slots. The query
    # is B · receiver and the key is the flag, so the score of the flagged position is B and all
    # others are 0. Softmax subtracts the largest score, e^−B is 0 in this arithmetic, and all the
    # weight is on the flagged position. A position that is no receiver has the query 0 and gets the
    # mean of M x over all positions up to it, which corrupts its slots.
    cleared: tuple[Layer, ...] = clearing(stream, B, Gate(receiver, 0, slots))
    fetched = fetching(stream, {receiver: B}, flag, slots, matrix)
    return with_layers(model, (*cleared, Layer((fetched,))), before)


def fetching(
    stream: Stream, query: LinearForm, key: LinearForm, slots: Sequence[str], matrix: object
) -> Attention:
    """A head that adds M x of the position with the largest key to the slots x."""
    return Attention(
        W_Q=stream.reading(query),
        W_K=stream.reading(key),
        W_V=stream.reading(*slots),
        W_O=exact_product(stream.writing(*slots), matrix),
        mask="future",
    )


def linear_in_place(
    model: M,
    slots: Sequence[str],
    scratch: Sequence[str],
    matrix: object,
    largest: Any,
    flag: str = "flag",
    before: int | None = None,
) -> M:
    """The model with two layers that replace the slots x by M x at the first flagged position.

    `scratch` names as many slots, which must be 0 at that position, and are 0 there again at the
    end. At all other positions the slots and the scratch are corrupted.
    """
    expect(model, (Transformer, LayerStack), "linear_in_place")
    require_forms("linear_in_place", flag=flag)
    slots, scratch = (
        listed_slots(each, "linear_in_place", name)
        for each, name in ((slots, "slots"), (scratch, "scratch"))
    )
    B = positive(largest, "linear_in_place")
    # M x is computed into the scratch, since a head adds to slots and cannot replace their numbers;
    # the second layer brings it back with the identity. Each of the two clears the slots that it
    # reads.
    there = moving(model.stream, B, flag, slots, scratch, matrix)
    back = moving(model.stream, B, flag, scratch, slots, np.eye(len(scratch)))
    return with_layers(model, (there, back), before)


def moving(
    stream: Stream,
    largest: Any,
    flag: str,
    source: Sequence[str],
    target: Sequence[str],
    by: object,
) -> Layer:
    """Layer that adds `by` · source to target and clears source if a position attends to itself."""
    # At the first flagged position query and key are B and 1: its own score is B, those before it
    # are 0, and e^−B is 0, so it attends to itself alone. Then the head adds by · source to the
    # target and takes the source from itself: source − source = 0. A later flagged position also
    # attends to the first.
    adds = rationals(exact_product(stream.writing(*target), by))
    head = Attention(
        W_Q=stream.reading({flag: largest}),
        W_K=stream.reading(flag),
        W_V=stream.reading(*source),
        W_O=adds - rationals(stream.writing(*source)),
        mask="future",
    )
    return Layer((head,))


def ignoring(model: M, slots: Iterable[str], layers: Iterable[int] | None = None) -> M:
    """The model whose layers neither read nor write some slots, so that these never change.

    Columns of W_Q, W_K, W_V and W₁ become 0, and rows of W_O, b_O, W₂ and b₂; in a head
    without W_O, rows of W_V and b_V do.

    Args:
        model: its layers have no norms, which would see the slots.
        slots: the slots.
        layers: the numbers of the layers that ignore them; all, if left out.

    Raises:
        UnknownName: for a slot that the stream does not have.
        InvalidValue: for a layer that does not exist, or one with norms.

    Example:
        >>> from transformist.model import FeedForward
        >>> stream = Stream(("x", "y"))
        >>> doubled = FeedForward(W_1=[[1, 0], [0, 1]], W_2=[[1, 1], [1, 1]])
        >>> stack = LayerStack(stream, ("x", "y"), (Layer(feed_forward=doubled),), ("x", "y"))
        >>> ignoring(stack, ["y"])([[2, 5]]).tolist()
        [[4.0, 5.0]]

    """
    expect(model, (Transformer, LayerStack), "ignoring")
    # A diagonal matrix with 0 for the slots: read through it, no weight sees them; written through
    # it, nothing is added to them.
    kept = np.eye(model.stream.width)
    for slot in listed_slots(slots, "ignoring", least=0):
        kept[model.stream.index(slot)] = 0
    chosen = layer_numbers(layers, len(model.layers), "ignoring")
    moved = [
        move(layer, kept, kept) if number in chosen else layer
        for number, layer in enumerate(model.layers)
    ]
    return replace(model, layers=tuple(moved))
