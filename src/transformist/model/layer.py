"""Transformer layers: Definition 2.2 of the Cookbook, with the norms of 6.2."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

from transformist.arithmetic import Arithmetic, Array, number_system
from transformist.errors import InvalidValue, ShapeMismatch
from transformist.model.attention import Attention
from transformist.model.definition import Definition, Function, finite, part, several
from transformist.model.feed_forward import FeedForward
from transformist.model.normalization import LayerNorm
from transformist.model.parameter import sequences
from transformist.model.stream import Stream
from transformist.model.weights_table import NamedPart, numbered


@dataclass(frozen=True, eq=False)
class Heads(Definition, Function):
    """Several attention heads, each reading the same vectors, summed from the first to the last."""

    heads: tuple[Attention, ...] = several(Attention, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({(head.width, head.width_out) for head in self.heads}) != 1:
            raise ShapeMismatch(
                "heads must all read and give vectors of one width",
                received=", ".join(f"{h.width} → {h.width_out}" for h in self.heads),
                where="Heads",
                remedy="route each head to the stream",
            )

    @property
    def width(self) -> int:
        """The length of the vectors every head reads."""
        return self.heads[0].width

    @property
    def width_out(self) -> int:
        """The length of the vectors every head gives."""
        return self.heads[0].width_out

    @property
    def written(self) -> tuple[int, ...]:
        """The coordinates to which some head may add something other than 0."""
        return tuple(sorted({row for head in self.heads for row in head.written}))

    def on(self, z: Array, a: Arithmetic) -> Array:
        """Σ over heads of head(z): (..., n, d) → (..., n, d)."""
        return self.total((head.on(z, a) for head in self.heads), a)

    def total(self, outputs: Iterable[Array], a: Arithmetic) -> Array:
        """The sum of the outputs of the heads, added from the first to the last."""
        # A format rounds after each addition, so the order is part of the answer. Error bounds and
        # the other engines follow this one.
        return functools.reduce(a.add, outputs)

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of each head, in order."""
        name = f"{name}, " if name else ""
        for number, head in enumerate(self.heads):
            yield from head.named_parts(f"{name}head {number}", reads, writes)


@dataclass(frozen=True, eq=False)
class Sublayer(Definition, Function):
    """A function with its residual connection and norms: z ↦ post(f(pre(z)) + z).

    With neither norm this is a sublayer of Definition 2.2; `pre_norm` gives the pre-norm and
    `post_norm` the post-norm architecture of 6.2.

    Example:
        >>> double = FeedForward(W_1=[[1], [-1]], W_2=[[1, -1]])
        >>> Sublayer(double)([3])
        array([6.])

    """

    function: FeedForward | Heads = part(FeedForward, Heads)
    pre_norm: LayerNorm | None = part(LayerNorm, NoneType, default=None)
    post_norm: LayerNorm | None = part(LayerNorm, NoneType, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.width
        reads = width if self.pre_norm is None else self.pre_norm.width_out
        parts = self.function.heads if isinstance(self.function, Heads) else (self.function,)
        for each in parts:
            self._fits(type(each).__name__, "read", each.width, reads)
            self._fits(type(each).__name__, "give", each.width_out, width)
        if self.post_norm is not None:
            self._fits("post-norm", "read", self.post_norm.width, width)
            self._fits("post-norm", "give", self.post_norm.width_out, width)

    @staticmethod
    def _fits(name: str, verb: str, actual: int, wanted: int) -> None:
        if actual != wanted:
            raise ShapeMismatch(
                f"the {name} of a sublayer must {verb} vectors of width {wanted}, which its stream "
                "and pre-norm have",
                received=f"width {actual}",
                where="Sublayer",
                remedy="route the weights to the slots of the stream",
            )

    @property
    def width(self) -> int:
        """d, the width of the stream."""
        return self.function.width if self.pre_norm is None else self.pre_norm.width

    @property
    def width_out(self) -> int:
        """d, the width of the stream."""
        return self.width

    @property
    def written(self) -> tuple[int, ...]:
        """The coordinates of the stream that may change."""
        return self.function.written if self.post_norm is None else tuple(range(self.width))

    def on(self, z: Array, a: Arithmetic) -> Array:
        """post(f(pre(z)) + z): (..., d) → (..., d)."""
        z = a.array(z)
        return self.added(self.function.on(self.read(z, a), a), z, a)

    def read(self, z: Array, a: Arithmetic) -> Array:
        """pre(z), the vectors that the function takes."""
        return z if self.pre_norm is None else self.pre_norm.on(z, a)

    def added(self, y: Array, z: Array, a: Arithmetic) -> Array:
        """post(y + z), for y = f(pre(z))."""
        # The stream and what is added to it are rounded once, as a sum of two.
        y = a.add(y, z)
        return y if self.post_norm is None else self.post_norm.on(y, a)

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of the norm before the function, of the function, and of the norm after it."""
        reads = reads or numbered("input", self.width)
        writes, name = writes or reads, name or "sublayer"
        normed: Sequence[str] = reads
        if self.pre_norm is not None:
            if self.pre_norm.W_N is not None:
                normed = numbered("normed", self.pre_norm.width_out)
            yield from self.pre_norm.named_parts(f"{name}, norm before", reads, normed)
        yield from self.function.named_parts(name, normed, writes)
        if self.post_norm is not None:
            yield from self.post_norm.named_parts(f"{name}, norm after", writes, writes)


Norms = tuple[LayerNorm | None, LayerNorm | None]


@dataclass(frozen=True, eq=False)
class Layer(Definition, Function):
    """A transformer layer (Definition 2.2): self-attention, then a feed-forward network.

    Attributes:
        heads: the attention heads, summed; none leaves the stream as it is.
        feed_forward: the network, or `None` to leave the stream as it is.
        pre_norms, post_norms: for the attention and for the feed-forward sublayer (6.2).

    """

    heads: tuple[Attention, ...] = several(Attention, default=())
    feed_forward: FeedForward | None = part(FeedForward, NoneType, default=None)
    pre_norms: Norms = several(LayerNorm, NoneType, least=2, most=2, default=(None, None))
    post_norms: Norms = several(LayerNorm, NoneType, least=2, most=2, default=(None, None))

    def __post_init__(self) -> None:
        super().__post_init__()
        # A norm stands in a sublayer. Without heads or network there is none, and the norm would be
        # dropped without a word.
        for present, name, index in (
            (self.heads, "heads", 0),
            (self.feed_forward, "feed_forward", 1),
        ):
            if not present and (self.pre_norms[index] or self.post_norms[index]):
                raise ShapeMismatch(
                    f"a norm needs its sublayer: the layer must have {name}",
                    received="a norm without its sublayer",
                    where="Layer",
                    remedy=f"give {name}, with weights of zero if it is to do nothing",
                )
        # A sublayer checks the widths of its function and norms when it is made.
        list(self.sublayers())

    def sublayers(self) -> Iterator[tuple[str, Sublayer]]:
        """The sublayers that are there, with their names, in order."""
        if self.heads:
            yield "attention", Sublayer(Heads(self.heads), self.pre_norms[0], self.post_norms[0])
        if self.feed_forward is not None:
            yield (
                "feed-forward",
                Sublayer(self.feed_forward, self.pre_norms[1], self.post_norms[1]),
            )

    def on(self, z: Array, a: Arithmetic) -> Array:
        """The stream after the layer: (..., n, d) → (..., n, d)."""
        for _, sublayer in self.sublayers():
            z = sublayer.on(z, a)
        return z

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of the sublayers, in order."""
        for kind, sublayer in self.sublayers():
            yield from sublayer.named_parts(f"{name} {kind}".strip(), reads, writes or reads)


def require_widths(
    stream: Stream,
    layers: Sequence[Layer],
    final_norm: LayerNorm | None,
    others: Sequence[tuple[str, int]] = (),
) -> None:
    """Refuse a part that reads or gives vectors of another width than the stream.

    Args:
        stream: the stream of the layers.
        layers: the layers, in order.
        final_norm: the norm after them, if there is one.
        others: names and widths of other parts, such as the embedding.

    Raises:
        ShapeMismatch: for a part of another width.

    """
    widths = list(others)
    for number, layer in enumerate(layers):
        widths += [(f"layer {number}, {name}", each.width) for name, each in layer.sublayers()]
    if final_norm is not None:
        widths += [("final norm", width) for width in (final_norm.width, final_norm.width_out)]
    for where, width in widths:
        if width != stream.width:
            raise ShapeMismatch(
                f"every part must have the width of the stream, {stream.width}",
                received=f"width {width}",
                where=where,
                remedy="write the weights with the slots of the stream",
            )


def steps(
    layers: Sequence[Layer], final_norm: LayerNorm | None
) -> Iterator[tuple[str, Sublayer | LayerNorm]]:
    """Every sublayer and the final norm, each with its name."""
    for number, layer in enumerate(layers):
        for name, sublayer in layer.sublayers():
            yield f"layer {number} {name}", sublayer
    if final_norm is not None:
        yield "final norm", final_norm


def passed_through(
    z: Array, layers: Sequence[Layer], final_norm: LayerNorm | None, a: Arithmetic
) -> Iterator[tuple[str, Array]]:
    """Vectors (..., n, d) after every sublayer and the final norm, each with its name."""
    for name, function in steps(layers, final_norm):
        z = function.on(z, a)
        yield name, z


def named_layers(
    stream: Stream, layers: Sequence[Layer], final_norm: LayerNorm | None
) -> Iterator[NamedPart]:
    """The parts of layers and the final norm; coordinates have the names of what they hold then."""
    # A slot may hold one number after another, so its name depends on the step.
    after = 0
    for number, layer in enumerate(layers):
        for name, sublayer in layer.sublayers():
            reads, writes = stream.names(after), stream.names(after + 1)
            yield from sublayer.named_parts(f"layer {number} {name}", reads, writes)
            after += 1
    if final_norm is not None:
        yield from final_norm.named_parts("final norm", stream.names(after), stream.names(after))


@dataclass(frozen=True, eq=False)
class LayerStack(Definition, Function):
    """Layers one after the other, as a function of lists of vectors.

    The vectors it is given fill the slots `inputs`; the other slots of the stream start at 0, and
    the slots `outputs` are what it gives, after `final_norm` where there is one (6.2).

    Raises:
        ShapeMismatch: for a layer or norm that does not have the width of the stream.
        UnknownName: for an input or output that is no slot.
        InvalidValue: for an input given twice, or no input or output.

    Example: the mean of x up to each position, minus x.
        >>> stream = Stream(("x", "mean", "difference"))
        >>> head = Attention(
        ...     W_Q=[[0, 0, 0]],
        ...     W_K=[[0, 0, 0]],
        ...     W_V=[[0, 0, 0], [1, 0, 0], [0, 0, 0]],
        ...     mask="future",
        ... )
        >>> minus = FeedForward(
        ...     W_1=[[-1, 1, 0], [1, -1, 0]], W_2=[[0, 0], [0, 0], [1, -1]]
        ... )
        >>> stack = LayerStack(stream, ("x",), (Layer((head,), minus),), ("difference",))
        >>> stack([[1], [3]]).tolist()
        [[0.0], [-1.0]]

    """

    stream: Stream = part(Stream)
    inputs: tuple[str, ...] = several(str)
    layers: tuple[Layer, ...] = several(Layer)
    outputs: tuple[str, ...] = several(str)
    final_norm: LayerNorm | None = part(LayerNorm, NoneType, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_widths(self.stream, self.layers, self.final_norm)
        for slot in (*self.inputs, *self.outputs):
            self.stream.index(slot)
        if len(set(self.inputs)) != len(self.inputs) or not self.inputs or not self.outputs:
            raise InvalidValue(
                "a stack must read at least one slot, none twice, and give at least one",
                received=f"inputs {self.inputs}, outputs {self.outputs}",
                where="LayerStack",
                remedy="name each input once",
            )

    @property
    def width(self) -> int:
        """The length of the vectors it reads."""
        return len(self.inputs)

    @property
    def width_out(self) -> int:
        """The length of the vectors it gives."""
        return len(self.outputs)

    def on(self, x: Array, a: Arithmetic) -> Array:
        """The outputs: (..., n, inputs) → (..., n, outputs)."""
        *_, z = self.streams(x, a)
        return z[..., [self.stream.index(slot) for slot in self.outputs]]

    def streams(self, x: Any, arithmetic: Arithmetic | str = "float64") -> Iterator[Array]:
        """The stream (..., n, d) before the first layer, and after every sublayer and the norm."""
        a = number_system(arithmetic)
        x = sequences(finite(x, a, "LayerStack"), a, self.width, "LayerStack")
        # The matrix has a single 1 for each input and zeros elsewhere, so nothing rounds.
        first = a.affine(x, a.array(self.stream.writing(*self.inputs)))
        yield first
        for _, z in passed_through(first, self.layers, self.final_norm, a):
            yield z

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of the layers, in order, under the names of the slots."""
        yield from named_layers(self.stream, self.layers, self.final_norm)
