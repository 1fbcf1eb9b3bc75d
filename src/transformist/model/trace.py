"""A run of a transformer: the streams it passed through, and what can be recomputed from them."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Array
from transformist.deferred import Library
from transformist.errors import InputTooLarge, InvalidValue, UnknownName, require_type
from transformist.model.embedding import Embedding, Symbol
from transformist.model.layer import Layer
from transformist.model.normalization import LayerNorm
from transformist.model.stream import Stream

_NOTEBOOK = Library("transformist.report.notebook_html")
"""HTML for notebooks, imported when a notebook asks for it."""

_FIGURES = Library("transformist.figures")
"""The figures, imported when one is drawn: they need matplotlib."""

_MATRIX = 2**26
"""Most entries of an attention matrix of a trace; in float64 they take half a GiB."""


class Traced(Protocol):
    """The parts of a transformer that a trace of it reads."""

    @property
    def stream(self) -> Stream:
        """The names of the coordinates."""

    @property
    def embedding(self) -> Embedding:
        """The symbols, those in front and at the end included."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, whose heads compute their weights again."""

    @property
    def final_norm(self) -> LayerNorm | None:
        """The norm after the last layer."""

    @property
    def changes(self) -> tuple[str, ...]:
        """What was ablated, in words."""


@dataclass(frozen=True)
class Difference:
    """A place where two traces differ.

    Attributes:
        after: the name of the step after which they differ.
        position: of the input, from 1; BOS in front has the position 0.
        slot: the name of the slot, or of the number that it holds there.
        value, other: the number in the one trace and in the other.

    """

    after: str
    position: int
    slot: str
    value: Any
    other: Any


@dataclass(frozen=True, eq=False)
class Trace:
    """A run: the stream after the embedding and after every sublayer, and the answer.

    Attributes:
        model: what was run.
        input: the symbols it was run on.
        arithmetic: the number system it was run in.
        streams: pairs of a name, such as `layer 0 attention`, and the vectors (rows, d) after it.
        answer: what the read-out gave.
        patched: the places (after, position, slot) at which a patch put numbers into the run.

    Example:
        >>> import transformist as tf
        >>> trace = tf.recipe("dyck-1").build(max_length=4).run("())", arithmetic="exact")
        >>> trace.answer, [str(value) for value in trace["balance"]]
        (False, ['0', '1/2', '0', '-1/4'])

    """

    model: Traced
    input: tuple[Symbol, ...]
    arithmetic: Arithmetic
    streams: tuple[tuple[str, Array], ...]
    answer: Any
    patched: tuple[tuple[str, int, str], ...] = ()

    def __repr__(self) -> str:
        changes = "".join(f", {each}" for each in self.changes)
        size = f"{len(self.input)} symbols, {self.arithmetic.name}"
        return f"Trace({size}, answer={self.answer!r}{changes})"

    @property
    def changes(self) -> tuple[str, ...]:
        """What was ablated in the model and patched in the run, in words.

        Example:
            >>> import transformist as tf
            >>> model = tf.recipe("dyck-1").build(max_length=4)
            >>> model.run("()", patch={("embedding", 2, "sign"): 1}).changes
            ('patched: sign at position 2 after embedding',)

        """
        patched: tuple[str, ...] = ()
        if self.patched:
            after, position, slot = self.patched[0]
            more = f" and {len(self.patched) - 1} more" if len(self.patched) > 1 else ""
            patched = (f"patched: {slot} at position {position} after {after}{more}",)
        return (*self.model.changes, *patched)

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbol of each row, specials included."""
        return (*self.model.embedding.front, *self.input, *self.model.embedding.back)

    def __getitem__(self, slot: str) -> NDArray[Any]:
        """The values of a slot at every row, after the last sublayer that leaves them there.

        float64 holds the values of every float format exactly; `exact` gives `Fraction`, and
        `interval` the midpoints of its balls, which `shown` gives whole.
        """
        return self.values(slot)

    def values(self, slot: str, after: int | str | None = None) -> NDArray[Any]:
        """The values of a slot at every row, after one step of the run.

        Where a slot holds one number after another, each has a name, and is found by it in the
        last stream that has it when `after` is left out.

        Args:
            slot: its name, or the name of a number that it holds.
            after: the step, by its name in `streams`, or by its number: 0 is the embedding, and −1
                the last step.

        Raises:
            UnknownName: for a slot or a step that is not there.
            InvalidValue: for the number of a step that is not there.

        Example:
            >>> import transformist as tf
            >>> trace = tf.recipe("dyck-1").build(max_length=2).run("()")
            >>> trace.values("balance", after="layer 0 attention").tolist()
            [0.0, 0.5, 0.0]

        """
        return self.arithmetic.numbers(self._column(slot, after))

    def shown(self, slot: str, after: int | str | None = None) -> list[Any]:
        """Values of a slot for a person: numbers, or decimal balls around the real values."""
        shown: list[Any] = self.arithmetic.shown(self._column(slot, after))
        return shown

    def scores(self, layer: int, head: int) -> NDArray[Any]:
        """The attention scores of a head, (rows, rows), before the mask.

        `exact` gives the dot products, which are the scores times √d_key.

        Raises:
            InvalidValue, InputTooLarge: as `attention`.

        """
        z, attention = self._head(layer, head)
        return self.arithmetic.numbers(attention.scores(z, self.arithmetic))

    def attention(self, layer: int, head: int) -> NDArray[Any]:
        """The attention weights of a head, (rows, rows).

        Raises:
            InvalidValue: for a layer or head that is not there.
            InputTooLarge: when the matrix would not fit in memory.

        """
        z, attention = self._head(layer, head)
        return self.arithmetic.numbers(attention.weights(z, self.arithmetic))

    def _repr_html_(self) -> str:
        """The answer and the layers at work, for notebooks."""
        html: str = _NOTEBOOK.trace_html(self)
        return html

    def plot(self, *, positions: Collection[int] | None = None) -> Any:
        """Draw the slots that each step may change, at every position.

        Args:
            positions: the positions to draw, from 1, where BOS in front has 0; all when left out.

        Returns:
            A matplotlib `Figure`; its label is a description in words. A run too large to draw
            whole is drawn in part, the first and the last positions, and the figure says which.

        Raises:
            InvalidValue: for a position that is not there, and without matplotlib (extra
                `figures`).

        """
        return _FIGURES.run(self, positions=positions)

    def plot_attention(
        self, *, layer: int, head: int, positions: Collection[int] | None = None
    ) -> Any:
        """Draw the attention weights of a head, as a matrix and as arcs.

        Args:
            layer: the layer, from 0.
            head: the head in it, from 0.
            positions: the positions to draw, as in `plot`.

        Returns:
            A matplotlib `Figure`; its label is a description in words.

        Raises:
            InvalidValue: for a layer, head or position that is not there, and without matplotlib.
            InputTooLarge: when the matrix would not fit in memory.

        """
        return _FIGURES.attention(self, layer=layer, head=head, positions=positions)

    def diff(self, other: Trace) -> tuple[Difference, ...]:
        """The places where two traces have different numbers, in order of step and position.

        The first places are where the difference begins; the later ones follow from them.

        Args:
            other: a run with the same steps, slots and number of positions: of another input, of an
                ablated model, with a patch, or in another arithmetic.

        Raises:
            InvalidValue: for anything else.

        Example: the differences that follow from a violation at the second bracket.
            >>> import transformist as tf
            >>> model = tf.recipe("dyck-1").build(max_length=2)
            >>> changed = model.run("()", patch={("layer 0 feed-forward", 2, "violation"): 1})
            >>> for each in model.run("()").diff(changed):
            ...     print(each.after, each.position, each.slot, each.value, each.other)
            layer 0 feed-forward 2 violation 0.0 1.0
            layer 1 attention 2 violation 0.0 1.0
            layer 1 attention 2 violations 0.0 0.3333333333333333
            layer 1 feed-forward 2 violation 0.0 1.0
            layer 1 feed-forward 2 violations 0.0 0.3333333333333333
            layer 1 feed-forward 2 accept 1.0 0.0

        """
        self._require_comparable(other)
        stream, front = self.model.stream, len(self.model.embedding.front)
        found = []
        pairs = zip(self.streams, other.streams, strict=True)
        for number, ((name, z), (_, y)) in enumerate(pairs):
            values, others = self.arithmetic.numbers(z), other.arithmetic.numbers(y)
            # NaN is unequal to itself: two NaN at one place are no difference.
            is_other = (values != others) & ~((values != values) & (others != others))
            found += [
                Difference(
                    name,
                    int(row) + 1 - front,
                    stream.held(int(column), number),
                    _plain(values[row, column]),
                    _plain(others[row, column]),
                )
                for row, column in np.argwhere(is_other)
            ]
        return tuple(found)

    def _require_comparable(self, other: Trace) -> None:
        """Refuse a trace with other steps, slots or rows."""
        require_type(
            other,
            Trace,
            "a trace must be compared with a trace",
            where="Trace.diff",
            remedy="give model.run(x)",
        )
        for what, mine, theirs in (
            ("steps", [name for name, _ in self.streams], [name for name, _ in other.streams]),
            ("slots", self.model.stream.slots, other.model.stream.slots),
            ("symbols in front", self.model.embedding.front, other.model.embedding.front),
            ("number of positions", len(self.symbols), len(other.symbols)),
        ):
            if mine != theirs:
                raise InvalidValue(
                    f"traces must have the same {what} to be compared",
                    received=_where_they_differ(mine, theirs),
                    where="Trace.diff",
                    remedy="run one model, or an ablated one, on inputs of one length",
                )

    def _column(self, slot: str, stream: int | str | None) -> Array:
        column, last = self.model.stream.place(slot)
        after = last if stream is None else stream
        if isinstance(after, str):
            names = [name for name, _ in self.streams]
            if after not in names:
                raise UnknownName.among("step", after, names, "Trace")
            after = names.index(after)
        if type(after) is not int or not -len(self.streams) <= after < len(self.streams):
            raise InvalidValue(
                f"the stream must be one of {len(self.streams)}, counted from 0, or from −1 back",
                received=f"after = {after!r}",
                where="Trace",
                remedy="trace.streams has them, with their names",
            )
        return self.streams[after][1][:, column]

    def _head(self, layer: int, head: int) -> tuple[Array, Any]:
        layers = self.model.layers
        whole = all(isinstance(each, int | np.integer) for each in (layer, head))
        if not (whole and 0 <= layer < len(layers) and 0 <= head < len(layers[layer].heads)):
            raise InvalidValue(
                "a head must be given by its layer and its number there, both counted from 0",
                received=f"layer {layer!r}, head {head!r}",
                remedy=f"the model has heads {[len(each.heads) for each in layers]} in its layers",
            )
        rows = len(self.symbols)
        if rows**2 > _MATRIX:
            raise InputTooLarge(
                f"the attention matrix of a trace must have at most {_MATRIX:.1e} entries",
                received=f"{rows} rows, {rows**2:.1e} entries, {rows**2 * 8 / 2**30:.1f} GiB",
                remedy="trace a shorter input",
            )
        # streams[0] is the embedding, and every sublayer adds one. Attention is the first sublayer
        # of its layer, so it reads the stream after all earlier layers.
        before = sum(len(list(each.sublayers())) for each in layers[:layer])
        z = self.streams[before][1]
        norm = layers[layer].pre_norms[0]
        return (z if norm is None else norm.on(z, self.arithmetic)), layers[layer].heads[head]


def _plain(value: Any) -> Any:
    """A number of numpy as a number of Python; any other as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _where_they_differ(mine: Any, theirs: Any) -> str:
    """Two numbers; of two lists, their lengths and the first entries that differ."""
    if isinstance(mine, int):
        return f"{mine} and {theirs}"
    pairs = itertools.zip_longest(mine, theirs)
    at = next(k for k, (one, other) in enumerate(pairs) if one != other)
    first = (f"{each[at]!r:.60}" if at < len(each) else "none" for each in (mine, theirs))
    return f"{len(mine)} and {len(theirs)}, first different at number {at}: {' and '.join(first)}"
