"""Interventions: ablation of a part of a model, and activation patching between two runs."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from transformist.arithmetic import EXACT, Arithmetic, Array, is_whole, number_system
from transformist.errors import InvalidValue, NothingChanged, UnknownName, is_name, visible
from transformist.model.attention import Attention
from transformist.model.embedding import Embedding, Symbol
from transformist.model.feed_forward import ACTIVATIONS, FeedForward
from transformist.model.layer import steps as functions_of
from transformist.model.parameter import exact_product
from transformist.model.patching import column_of, row_of, stream_number
from transformist.model.position_encoding import PositionFunctions, PositionTable
from transformist.model.stream import NOTHING
from transformist.model.trace import Trace
from transformist.model.transformer import Transformer, length_of, require_transformer

WAYS = ("zero", "mean")
"""Ways to ablate: the constant that replaces what a part adds."""


def ablate(
    model: Transformer,
    *,
    head: tuple[int, int] | None = None,
    unit: tuple[int, int] | None = None,
    slot: str | Sequence[str] | None = None,
    by: str = "zero",
    inputs: Iterable[Sequence[Symbol]] | None = None,
    arithmetic: Arithmetic | str = "float64",
) -> Transformer:
    """Return the model in which one part adds a constant to the stream, whatever the input.

    Args:
        model: the model.
        head: (layer, head), from 0: what the head adds is replaced.
        unit: (layer, unit), from 0: what the hidden unit of the feed-forward network adds is
            replaced.
        slot: the name of a slot, or several: what the embedding and every sublayer add to it is
            replaced. A norm after a sublayer, and the final norm, still change its number.
        by: `zero`, or `mean`: the mean of what the part adds, over all rows of `inputs`, also the
            rows of symbols that the model adds.
        inputs: the inputs for `mean`.
        arithmetic: the number system in which the inputs are run.

    Raises:
        InvalidValue: without exactly one part, for a part that is not there, for a slot that
            holds several numbers one after the other, and without inputs for the mean.
        UnknownName: for a slot that does not exist, and for another value of `by`.

    Returns:
        A model of the same shapes. Nothing is known of its margins: its `built_for` is `None`. Its
        `changes` say what was ablated.

    Example: without the head that finds violations, a string is accepted that closes too early.
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=4)
        >>> model(")("), tf.ablate(model, head=(1, 0))(")(")
        (False, True)

    """
    require_transformer(model, "ablate")
    given = {"head": head, "unit": unit, "slot": slot}
    parts = {name: value for name, value in given.items() if value is not None}
    if len(parts) != 1:
        raise InvalidValue(
            "ablate must get one of head, unit and slot",
            received=" and ".join(parts) or "none of them",
            where="ablate",
            remedy="write head=(layer, head), unit=(layer, unit) or slot='name'",
        )
    if not is_name(by, WAYS):
        raise UnknownName.among("way to ablate", by, WAYS, "ablate")
    if (by == "mean") != (inputs is not None):
        raise InvalidValue(
            "inputs must come with by='mean', and only with it",
            received=f"by={by!r} {'without' if inputs is None else 'with'} inputs",
            where="ablate",
            remedy="give by='mean' and the inputs over which the mean is taken",
        )
    mean = _Mean(model, inputs, number_system(arithmetic))
    # The margins that the compiler kept belong to the numbers of the whole model: a constant in
    # place of one of them may lie anywhere between two values that a later step tells apart.
    changed = replace(model, built_for=None)
    if slot is not None:
        slots = _several(slot, (), "ablate")
        for each in slots:
            changed = _without_slot(changed, each, mean)
        part = f"slot{'s' if len(slots) > 1 else ''} {', '.join(map(visible, slots))}"
    elif head is not None:
        changed, part = _without_head(changed, head, mean), f"head {head}"
    else:
        changed, part = _without_unit(changed, unit, mean), f"unit {unit}"
    said = f"ablated: {part} by {by}"
    # `changes` is no argument of a model, so that a file does not keep it; it is set after the
    # model is made.
    object.__setattr__(changed, "changes", (*model.changes, said))
    return changed


class _Mean:
    """The mean of a function of the stream over all rows of some inputs; 0 without inputs."""

    def __init__(self, model: Transformer, inputs: Any, a: Arithmetic) -> None:
        if isinstance(inputs, str) or not isinstance(inputs, Iterable | None):
            raise InvalidValue(
                "inputs must be a list of strings, or of sequences of symbols",
                received=f"{inputs!r:.40}",
                where="ablate",
                remedy="put the inputs in a list",
            )
        self._model, self._a = model, a
        self._traces = None if inputs is None else [model.run(x, a) for x in inputs]
        if self._traces is not None and not any(trace.symbols for trace in self._traces):
            raise InvalidValue(
                "there must be a row over which the mean is taken",
                received="no inputs, or empty ones",
                where="ablate",
                remedy="give inputs with symbols",
            )

    def embedded(self) -> Any:
        """The mean of the embedded vectors."""
        return self._over(0, lambda z: z)

    def attention(self, layer: int, head: Attention) -> Any:
        """The mean of the output of a head."""
        return self._of(layer, 0, lambda z: head.on(z, self._a))

    def network(self, layer: int, network: FeedForward) -> Any:
        """The mean of the output of a network."""
        return self._of(layer, 1, lambda z: network.on(z, self._a))

    def hidden(self, layer: int, network: FeedForward) -> Any:
        """The mean of the hidden units of a network."""
        a, w = self._a, network.rounded(self._a)
        activation = ACTIVATIONS[network.activation]
        return self._of(layer, 1, lambda z: activation(a.affine(z, w.W_1, w.b_1), a))

    def _of(self, layer: int, sublayer: int, function: Callable[[Array], Array]) -> Any:
        """The mean of a function of what a sublayer reads: 0 attention, 1 feed-forward."""
        layers = self._model.layers
        # Stream 0 is the embedding and every sublayer adds one, so the sublayers of earlier layers
        # count the stream that this layer reads. Its network reads one stream later, if the layer
        # has heads.
        earlier = sum(len(list(each.sublayers())) for each in layers[:layer])
        norm = layers[layer].pre_norms[sublayer]

        def of_stream(z: Array) -> Array:
            return function(z if norm is None else norm.on(z, self._a))

        return self._over(earlier + (sublayer and bool(layers[layer].heads)), of_stream)

    def _over(self, stream: int, function: Callable[[Array], Array]) -> Any:
        """The mean of a function of the vectors of a stream, one number a coordinate."""
        if self._traces is None:
            return defaultdict(int)
        # Each row counts once, so long inputs count more than short ones. The traces are those of
        # the model before the change: all means are taken in one and the same run.
        values = [self._a.numbers(function(trace.streams[stream][1])) for trace in self._traces]
        rows = np.concatenate(values)
        return rows.sum(axis=0) / len(rows)


def _without_head(model: Transformer, place: Any, mean: _Mean) -> Transformer:
    layer, number = _numbers(place, "head", [len(each.heads) for each in model.layers])
    heads = list(model.layers[layer].heads)
    constant = mean.attention(layer, heads[number])
    for row in range(heads[number].width_out):
        heads[number] = _writing(heads[number], row, constant[row])
    return _with_layer(model, layer, heads=tuple(heads))


def _without_unit(model: Transformer, place: Any, mean: _Mean) -> Transformer:
    networks = [each.feed_forward for each in model.layers]
    layer, unit = _numbers(place, "unit", [0 if f is None else f.hidden for f in networks])
    network = networks[layer]
    assert network is not None  # a network that has the unit
    # The unit with the value m adds m times its column of W₂, the same vector in every row: that is
    # a bias. Product and sum are exact, so that the bias is rounded once, when the model is
    # evaluated.
    added = exact_product(network.W_2[:, [unit]], [mean.hidden(layer, network)[unit]])
    W_2, b_2 = network.W_2.copy(), EXACT.add(EXACT.array(network.b_2), EXACT.array(added))
    W_2[:, unit] = 0
    changed = replace(network, W_2=W_2, b_2=EXACT.numbers(b_2))
    return _with_layer(model, layer, feed_forward=changed)


def _without_slot(model: Transformer, slot: str, mean: _Mean) -> Transformer:
    column, _ = model.stream.place(slot)
    # The numbers that share a slot would be ablated together, though only one of them is asked for.
    if len([span for span in model.stream.spans if span.slot == column]) > 1:
        raise InvalidValue(
            "a slot that is ablated must hold one number",
            received=f"{slot!r}, whose slot holds one number after another",
            where="ablate",
            remedy="compile the program with reuse=False, or patch the number where it is read",
        )
    embedding = _embedding_with(model.embedding, column, mean.embedded()[column])
    changed = replace(model, embedding=embedding)
    # Every sublayer that writes to the slot now adds a constant to it, its own mean. Unless a norm
    # follows a sublayer, the slot is then the same in every row after each step.
    for number, layer in enumerate(model.layers):
        heads = tuple(
            _writing(head, column, mean.attention(number, head)[column]) for head in layer.heads
        )
        network = layer.feed_forward
        if network is not None:
            W_2, b_2 = network.W_2.copy(), list(network.b_2)
            W_2[column], b_2[column] = 0, mean.network(number, network)[column]
            network = replace(network, W_2=W_2, b_2=b_2)
        changed = _with_layer(changed, number, heads=heads, feed_forward=network)
    return changed


def _writing(head: Attention, row: int, constant: Any) -> Attention:
    """The head with a constant in one coordinate of its output."""
    W_O = np.eye(head.width_out) if head.W_O is None else head.W_O.copy()
    b_O = list(head.b_O)
    W_O[row], b_O[row] = 0, constant
    return replace(head, W_O=W_O, b_O=b_O)


def _embedding_with(embedding: Embedding, column: int, constant: Any) -> Embedding:
    """The embedding with a constant in one coordinate of its vectors."""
    vectors, positions = list(map(list, embedding.vectors)), embedding.positions
    # `constant` is the mean of the embedded vectors, words and positions together. So the position
    # gets 0 in this coordinate, and every word the whole mean.
    for vector in vectors:
        vector[column] = constant
    if isinstance(positions, PositionFunctions):
        names = list(positions.names)
        names[column] = None
        positions = PositionFunctions(tuple(names))
    elif isinstance(positions, PositionTable):
        table = positions.vectors.copy()
        table[:, column] = 0
        positions = PositionTable(vectors=table)
    elif positions is not None:
        raise InvalidValue(
            "a model with an ablated slot must have positions by functions, by a table, or none",
            received=f"{type(positions).__name__}, which fill every slot",
            where="ablate",
            remedy="ablate a head or a unit, or give the model a PositionTable",
        )
    return replace(embedding, vectors=vectors, positions=positions)


def _with_layer(model: Transformer, number: int, **parts: Any) -> Transformer:
    layers = list(model.layers)
    layers[number] = replace(layers[number], **parts)
    return replace(model, layers=tuple(layers))


def _numbers(place: Any, part: str, counts: Sequence[int]) -> tuple[int, int]:
    """A layer and the number of a part in it."""
    is_pair = isinstance(place, tuple | list) and len(place) == 2
    if not is_pair or not all(is_whole(each, 0) for each in place):
        received = repr(place)[:40]
    elif place[0] >= len(counts):
        received = f"layer {place[0]} of a model with {len(counts)}"
    elif place[1] >= counts[place[0]]:
        received = f"{part} {place[1]} of layer {place[0]}, which has {counts[place[0]]}"
    else:
        return int(place[0]), int(place[1])
    raise InvalidValue(
        f"a {part} must be given as (layer, {part}), both counted from 0",
        received=received,
        where="ablate",
        remedy=f"give a {part} of the model; its layers have {', '.join(map(str, counts))} {part}s",
    )


def patch(
    model: Transformer,
    x: Sequence[Symbol],
    *,
    source: Sequence[Symbol] | Trace,
    slot: str | Sequence[str] | None = None,
    position: int | Sequence[int] | None = None,
    after: str | int = 0,
    arithmetic: Arithmetic | str = "float64",
) -> Trace:
    """Run a model on one input with numbers of its run on another (activation patching).

    Args:
        model: the model.
        x: the input.
        source: the other input, or its trace.
        slot: the slots whose numbers are replaced; when left out, all that hold a number then.
        position: the positions (from 1; BOS in front has 0); when left out, all.
        after: the step after which numbers are replaced: its name, or its number in
            `Trace.streams`, where the embedding is 0.
        arithmetic: the number system, by name.

    Raises:
        InvalidValue, UnknownName: for a place that one of the two runs does not have.
        NothingChanged: (a warning) where all numbers that are replaced are equal in both runs.
        UnknownSymbol, InputTooLong, InputTooLarge, NotRepresentable: as `Transformer.run`.

    Returns:
        The trace of the patched run.

    Example: with the balance of another string, the string is refused.
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=4)
        >>> trace = tf.patch(
        ...     model, "()()", source="((((", slot="balance", after="layer 0 attention"
        ... )
        >>> model("()()"), trace.answer
        (True, False)

    """
    require_transformer(model, "patch")
    a = number_system(arithmetic)
    other = source if isinstance(source, Trace) else model.run(source, a)
    steps = [name for name, _ in other.streams]
    own = [name for name, _ in functions_of(model.layers, model.final_norm)]
    for what, is_other in (
        ("slots", other.model.stream.slots != model.stream.slots),
        ("steps", steps != ["embedding", *own]),
        ("symbols in front", other.model.embedding.front != model.embedding.front),
    ):
        if is_other:
            raise InvalidValue(
                "the source must be a run of the model, or of an ablated one",
                received=f"a trace of a model with other {what}",
                where="patch",
                remedy="give an input, or a trace of this model",
            )
    front, back = model.embedding.front, model.embedding.back
    rows = len(front) + length_of(x) + len(back)
    number = stream_number(after, steps)
    z = other.streams[number][1]
    # In one arithmetic the entries are taken as they are: those of `interval` are balls, of which
    # `numbers` would keep the midpoints.
    numbers = z if other.arithmetic.name == a.name else other.arithmetic.numbers(z)
    if position is None and rows != len(other.symbols):
        raise InvalidValue(
            "positions must be named where the inputs have different lengths",
            received=f"{rows} and {len(other.symbols)} positions",
            where="patch",
            remedy="give position=, one or several",
        )
    held = [model.stream.held(column, number) for column in range(model.width)]
    everywhere = range(1 - len(front), 1 - len(front) + rows)
    entries, places = {}, []
    for each in _several(position, everywhere, "patch"):
        row = row_of(each, len(other.symbols), len(front))
        for name in _several(slot, [each for each in held if each != NOTHING], "patch"):
            column = column_of(name, model.stream, number, steps)
            entries[number, each, name] = numbers[row, column : column + 1]
            places.append((each, row, column))
    _warn_if_equal(model.run(x, a), other, number, places)
    return model.run(x, a, entries)


def _warn_if_equal(own: Trace, other: Trace, number: int, places: Sequence[Any]) -> None:
    """Warn where all numbers that are replaced are those that the run has anyway.

    Args:
        own: the run without a patch.
        other: the run that the numbers come from.
        number: the number of the step after which they are replaced.
        places: the position, the row in `other`, and the column of each number.

    """
    front, held = len(own.model.embedding.front), own.model.stream.held

    def differ(step: int) -> bool:
        z, y = (each.arithmetic.numbers(each.streams[step][1]) for each in (own, other))
        return any(
            z[position - 1 + front, column] != y[row, column]
            for position, row, column in places
            # A slot that is reused holds another number at another step; that it differs there is
            # no hint.
            if held(column, step) == held(column, number)  # else the slot has another number then
        )

    if differ(number):
        return
    steps = [name for k, (name, _) in enumerate(own.streams) if differ(k)]
    remedy = f"these slots differ after {', '.join(steps)}" if steps else "they differ at no step"
    warnings.warn(
        NothingChanged(
            f"patch: the numbers after {own.streams[number][0]} are equal in both runs, so that "
            f"the patch changes nothing; {remedy}"
        ),
        stacklevel=3,
    )


def _several(given: Any, every: Sequence[Any], where: str) -> Sequence[Any]:
    """The values that were given, one or several; all values for `None`.

    Raises:
        InvalidValue: for an empty list, which would leave the run as it is.

    """
    if given is None:
        return every
    if isinstance(given, list | tuple | range) and not given:
        raise InvalidValue(
            "slots and positions must be at least one",
            received=f"{given!r}",
            where=where,
            remedy="name one, or leave it out for all",
        )
    return given if isinstance(given, list | tuple | range) else (given,)
