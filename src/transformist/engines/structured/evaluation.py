"""Evaluation of long inputs, sublayer by sublayer, each head by the method that fits it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT32, FLOAT64, Arithmetic, Floating, number_system
from transformist.engines.structured.arrays import keep_memory
from transformist.engines.structured.embedded import codes, embedded
from transformist.engines.structured.estimates import require_memory
from transformist.engines.structured.final_answers import read
from transformist.engines.structured.heads import HeadInput, HeadMaps, choose_method
from transformist.engines.structured.network import Network
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.sparse_model import SparseSublayer, sparse_model
from transformist.engines.structured.stream_vectors import Few, Vectors, require_finite
from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    LayerNorm,
    Symbol,
    Transformer,
)
from transformist.model.definition import observe

FORMATS = (FLOAT64, FLOAT32)
"""The formats in which this engine computes."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Method of one head.

    Attributes:
        layer, head: their numbers, from 0.
        attention: the head itself.
        method: its name.
        why: the reason for which it was chosen.
        cost: the growth of its time.

    """

    layer: int
    head: int
    attention: Attention = field(repr=False)
    method: str
    why: str
    cost: str

    def __str__(self) -> str:
        """One line."""
        kind = f"{self.attention.weighting}, mask {self.attention.mask}"
        where = f"layer {self.layer} head {self.head} ({kind})"
        return f"{where}: {self.method}, {self.cost}: {self.why}"


@dataclass(frozen=True, eq=False)
class EvaluatedInput:
    """Result of a model on an input.

    Attributes:
        answer: the answer of the read-out.
        stream: the residual stream after the last layer, in parts.
        heads: the method of each head.

    """

    answer: Any
    stream: ResidualStream
    heads: tuple[Chosen, ...]

    @property
    def vectors(self) -> NDArray[Any]:
        """The final vectors, (n + special symbols, d)."""
        return self.stream.whole().whole()


def evaluate(
    model: Transformer, x: Sequence[Symbol], arithmetic: Arithmetic | str = "float64"
) -> EvaluatedInput:
    """Evaluate a model on an input, from its weights alone.

    Embedding, feed-forward networks, norms and read-out are those of the reference, bit for bit. A
    head attends where the reference does on the vectors it reads: scores are compared as the
    reference rounds them, so that ties are the same. A value of one position, which leftmost- and
    rightmost-hard attention choose, is that value. Means and softmaxes, but where every pair is
    evaluated, are summed in float64 in an order of their own. In float64, underflow apart, they
    differ from the reference's by at most (16n + 5000) 2⁻⁵³ of the largest value, and by 2⁻⁴⁰ more
    in a softmax whose keys have a term that the query does not scale. Weights below exp(−110) <
    2⁻¹⁵⁸ of the largest may be left out. In float32 means are summed in float64 and rounded once:
    mostly nearer to the real ones than the reference's, but not where large values cancel. The
    answer is the reference's, unless a later choice or read-out hangs on the last places of a mean.

    An overflow is refused in queries, keys, values, scores and sums of values, in the stream after
    each sublayer and in the numbers read out. It is refused at every row, also at rows that the
    answer does not depend on, where the reference answers. An overflow inside a network or a norm
    is refused only if it reaches the stream: not where nothing reads the hidden unit, nor where
    ReLU makes 0 of −∞.

    Args:
        model: the model to run.
        x: a string, or a sequence of symbols.
        arithmetic: `float64` or `float32`.

    Raises:
        InvalidValue: for another arithmetic.
        UnknownSymbol, InputTooLong: as `Transformer.run`.
        InputTooLarge: for what would not fit in memory.
        NotFinite: for an overflow, as above.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=100_000)
        >>> evaluate(model, "(" * 50_000 + ")" * 50_000).answer
        True

    """
    a = format_of(arithmetic)
    model.admit_length(x)
    require_memory(model, len(x), a)
    observe(model, x, a)
    keep_memory()
    heads: list[Chosen] = []
    rows = codes(model.embedding, x)
    z = embedded(model.embedding, rows, 1 - len(model.embedding.front), len(x), a)
    own = sparse_model(model, a)
    for sublayer in own.sublayers:
        z, chosen = _after(sublayer, z, a)
        heads += chosen
    if model.final_norm is not None:
        z = normalized(model.final_norm, z, a)
    return EvaluatedInput(read(model, own, z, len(x), a), z, tuple(heads))


def answers(
    model: Transformer,
    inputs: Iterable[Sequence[Symbol]],
    arithmetic: Arithmetic | str = "float64",
) -> list[Any]:
    """The answers for many inputs, of different lengths; all are checked before any work.

    Raises:
        InvalidValue, UnknownSymbol, InputTooLong, InputTooLarge, NotFinite: as `evaluate`.

    Example:
        >>> import transformist as tf
        >>> answers(tf.recipe("dyck-1").build(), ["()", "", "(()"])
        [True, True, False]

    """
    a, given = format_of(arithmetic), list(inputs)
    for x in given:
        model.admit_length(x)
        require_memory(model, len(x), a)
    return [evaluate(model, x, a).answer for x in given]


def format_of(arithmetic: Arithmetic | str) -> Floating:
    """The format with this name.

    Raises:
        InvalidValue: for another one than `FORMATS`.

    """
    a = number_system(arithmetic)
    for each in FORMATS:
        if a == each:
            return each
    raise InvalidValue(
        f"the structured engine must compute in {' or '.join(each.name for each in FORMATS)}",
        received=a.name,
        where="structured engine",
        remedy="choose one of them, or the reference engine",
    )


def _after(
    sublayer: SparseSublayer, z: ResidualStream, a: Floating
) -> tuple[ResidualStream, list[Chosen]]:
    """The stream after a sublayer, and the methods of its heads."""
    chosen: list[Chosen] = []
    pre_norm, post_norm = sublayer.definition.pre_norm, sublayer.definition.post_norm
    if isinstance(sublayer.function, Network):
        added = sublayer.function(z)
    else:
        source = z if pre_norm is None else normalized(pre_norm, z, a)
        added, chosen = _attended(sublayer.layer, sublayer.function, sublayer.written, source)
    z = z.plus(sublayer.written, added, a)
    if post_norm is not None:
        z = normalized(post_norm, z, a)
    # Methods rely on finite numbers; looking here also refuses what the next norm would hide.
    # `require_finite` reads the sizes that a part keeps, so that a part which did not change costs
    # nothing.
    for part in z.parts:
        require_finite(part, a)
    return z, chosen


def normalized(norm: LayerNorm, z: ResidualStream, a: Floating) -> ResidualStream:
    """The stream, every vector normalized."""
    out = z.whole().through(lambda x: norm.on(x, a), norm.width_out).kept()
    return ResidualStream.of(z.n, [(range(norm.width_out), out)])


def _attended(
    layer: int, heads: Sequence[HeadMaps], written: Sequence[int], source: ResidualStream
) -> tuple[Vectors, list[Chosen]]:
    """Σ head(source) in the coordinates written, and the methods of the heads."""
    # The reference adds up the heads before it adds the sum to the stream, which rounds so.
    chosen, n, a = [], source.n, heads[0].a
    nothing = Few.of(np.zeros((1, len(written)), a.dtype), np.zeros(n, np.int32))
    total = ResidualStream.of(n, [(range(len(written)), nothing)])
    for number, maps in enumerate(heads):
        given = HeadInput(maps, source)
        found = choose_method(given)
        chosen.append(Chosen(layer, number, maps.head, found.name, found.why, found.cost))
        into = [written.index(column) for column in maps.written.tolist()]
        total = total.plus(into, found.mixed(given).mapped(maps.output), a)
    return total.whole(), chosen
