"""Models on long inputs: sublayer by sublayer, each head by the method that fits it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT32, FLOAT64, Arithmetic, Floating, number_system
from transformist.engines.structured.by_query import READ, TAKE
from transformist.engines.structured.embedded import codes, embed
from transformist.engines.structured.head import (
    ORDERS,
    HeadInput,
    HeadMaps,
    blocks,
    require_finite,
)
from transformist.engines.structured.methods import Method, method
from transformist.engines.structured.network import Network
from transformist.engines.structured.sparse import SparseMap
from transformist.errors import InputTooLarge, InvalidValue
from transformist.memory import free_memory as _free_memory
from transformist.model import (
    Attention,
    Heads,
    LayerNorm,
    MultiClass,
    ReadOut,
    Sublayer,
    Symbol,
    Transformer,
)

FORMATS = (FLOAT64, FLOAT32)
"""The arithmetics of this engine."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """How a head was evaluated.

    Attributes:
        layer, head: which, from 0.
        attention: the head itself.
        method: by its name.
        why: what it was chosen for.
        cost: how the time grows.

    """

    layer: int
    head: int
    attention: Attention
    method: str
    why: str
    cost: str


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What came of an input.

    Attributes:
        answer: what the read-out gave.
        vectors: the final vectors, (n and the specials, d).
        heads: how each head was evaluated.

    """

    answer: Any
    vectors: NDArray[Any]
    heads: tuple[Chosen, ...]


def evaluate(
    model: Transformer, x: Sequence[Symbol], arithmetic: Arithmetic | str = "float64"
) -> Evaluation:
    """A model on an input, of which its weights are all that is read.

    Embedding, feed-forward networks, norms and read-out are those of the reference, bit for bit. A
    head attends where the reference does on the vectors it reads: scores are compared as the
    reference rounds them, so that ties are the same. A value of one position, which leftmost- and
    rightmost-hard attention choose, is that value. Means and softmaxes, but where every pair is
    evaluated, are summed in float64 in an order of their own: underflow apart, in float64 they lie
    within (16n + 5000) 2⁻⁵³ of the largest value from the reference's, where a softmax has keys
    with a term that the query does not scale within 2⁻⁴⁰ more. In float32 they are nearer to the
    real ones than the reference's sums, and weights below 2⁻¹⁵⁰ are not 0. So the answer is the
    reference's, but where a later choice or read-out hangs on the last places of a mean.

    What overflows is refused in queries, keys, values, scores and sums of values, in the stream
    after each sublayer and in what is read out, also where the reference answers as it reaches no
    score and no answer, as at a row that is not read. What a network or a norm computes in between
    is refused by what comes of it only: a hidden unit that overflows is not where nothing reads it,
    or where ReLU makes 0 of −∞, and the answer is the reference's.

    Args:
        model: what to run.
        x: a string, or a sequence of symbols.
        arithmetic: `float64` or `float32`.

    Raises:
        InvalidValue: for another arithmetic.
        UnknownSymbol, InputTooLong: as `Transformer.run`.
        InputTooLarge: for what would not fit in memory.
        NotFinite: for what overflows, as above.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=100_000)
        >>> evaluate(model, "(" * 50_000 + ")" * 50_000).answer
        True

    """
    a = format_of(arithmetic)
    model.admit_length(x)
    require_memory(model, len(x), a)
    heads: list[Chosen] = []
    rows = codes(model.embedding, x)
    z = embed(model.embedding, rows, 1 - len(model.embedding.front), len(x), a)
    for number, layer in enumerate(model.layers):
        for _, sublayer in layer.sublayers():
            for head, found in enumerate(_apply(sublayer, z, a)):
                attention = found.given.maps.head
                heads.append(Chosen(number, head, attention, found.name, found.why, found.cost))
    if model.final_norm is not None:
        normalize(model.final_norm, z, z, a)
    return Evaluation(read(model, z, len(x), a), z, tuple(heads))


def answers(
    model: Transformer,
    inputs: Iterable[Sequence[Symbol]],
    arithmetic: Arithmetic | str = "float64",
) -> list[Any]:
    """The answers for many inputs, of different lengths; all are admitted before any work.

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
    """The format of this name.

    Raises:
        InvalidValue: for one that the engine does not compute in.

    """
    a = number_system(arithmetic)
    for each in FORMATS:
        if a == each:
            return each
    raise InvalidValue(
        f"the structured engine computes in {' and '.join(each.name for each in FORMATS)}",
        received=a.name,
        where="structured engine",
        remedy="choose one of them, or the reference engine",
    )


def require_memory(model: Transformer, n: int, a: Floating) -> None:
    """Refuse what would not fit in memory.

    Raises:
        InputTooLarge: with the estimate.

    """
    rows = n + len(model.embedding.front) + len(model.embedding.back)
    needed = rows * bytes_a_row(model, a)
    free = _free_memory()
    if needed > free:
        longest = max(n * free // needed, 0)
        raise InputTooLarge(
            f"an input is evaluated in the memory that is free, {free / 2**30:.1f} GiB",
            received=f"length {n}, which takes {needed / 2**30:.1f} GiB",
            where="structured engine",
            remedy=f"give at most {longest} symbols",
        )


WORKING = 24
"""Numbers for a position that a method keeps beside queries, keys and values: a hull the most."""


def bytes_a_row(model: Transformer, a: Floating) -> int:
    """An upper estimate of the memory for a position: the stream, and the largest sublayer."""
    norms = any(norm for layer in model.layers for norm in layer.pre_norms)
    most = 0
    for layer in model.layers:
        total = sum(len(head.written) for head in layer.heads) if len(layer.heads) > 1 else 0
        sizes = [2 * (head.W_K.shape[0] + head.W_V.shape[0]) for head in layer.heads]
        most = max(most, total + max(sizes, default=0))
    return (model.width * (1 + norms) + most) * a.dtype.itemsize + (WORKING + 8) * 8


def _apply(sublayer: Sublayer, z: NDArray[Any], a: Floating) -> list[Method]:
    """The stream after a sublayer, in place; how its heads were evaluated."""
    found: list[Method] = []
    if isinstance(sublayer.function, Heads):
        source = z
        if sublayer.pre_norm is not None:
            source = np.empty((len(z), sublayer.pre_norm.width_out), a.dtype)
            normalize(sublayer.pre_norm, z, source, a)
        found = _attend(sublayer.function, source, z, a)
    else:
        Network.of(sublayer.function, sublayer.pre_norm, a).add(z)
    if sublayer.post_norm is not None:
        normalize(sublayer.post_norm, z, z, a)
    require_finite(z, a)
    return found


def normalize(norm: LayerNorm, z: NDArray[Any], out: NDArray[Any], a: Floating) -> None:
    """Every row of z, normalized, in `out`."""
    for rows in blocks(len(z)):
        out[rows] = norm(z[rows], a)


def _attend(heads: Heads, source: NDArray[Any], z: NDArray[Any], a: Floating) -> list[Method]:
    """z + Σ head(source), in place.

    What several heads give is summed first, by itself, as the reference sums it.
    """
    written = np.array(heads.written, np.int64)
    alone = len(heads.heads) == 1
    total = z if alone else np.zeros((len(z), len(written)), a.dtype)
    found = []
    for head in heads.heads:
        given = HeadInput(HeadMaps.of(head, a), source)
        chosen = method(given)
        into = written if alone else np.searchsorted(written, given.maps.written)
        for rows, mixed in mixes(chosen):
            given.maps.output.add(mixed.astype(a.dtype, copy=False), total, into, rows)
        found.append(chosen)
    if not alone:
        for rows in blocks(len(z)):
            z[rows, written] = a.add(total[rows], z[rows, written])
    return found


def mixes(chosen: Method) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """The mixed values, some rows at a time, in the order in which the mask lets keys come."""
    given = chosen.given
    order = ORDERS[given.maps.head.mask]
    if order == READ:
        for rows in blocks(given.n):
            chosen.mix(TAKE, rows)
    for rows in blocks(given.n, given.backwards):
        yield rows, chosen.mix(order, rows)


def read(model: Transformer, z: NDArray[Any], n: int, a: Floating) -> Any:
    """The answer from the final vectors."""
    rows = np.ascontiguousarray(z[model.rows_read(n)])
    answers = read_rows(model.read_out, read_map(model.read_out, a), rows, n, a)
    return model.read_out.join(answers) if model.read_out.at == "every" else answers[0]


def read_map(read_out: ReadOut, a: Floating) -> SparseMap:
    """The affine map of a read-out."""
    w = read_out.rounded(a)
    return SparseMap.of(w.W_out, w.b_out)


def read_rows(
    read_out: ReadOut, out: SparseMap, rows: NDArray[Any], n: int, a: Floating
) -> list[Any]:
    """An answer a row, for final vectors of inputs of length n."""
    y = out(rows)
    require_finite(y, a)
    return DECISIONS.get(type(read_out), _by_the_model)(read_out, y, n, a)


def _by_the_model(read_out: Any, y: NDArray[Any], n: int, a: Floating) -> list[Any]:
    answers: list[Any] = read_out.decide(y, a.numbers(y), n, a)
    return answers


def _labels(read_out: MultiClass, y: NDArray[Any], _n: int, _a: Floating) -> list[Any]:
    return [read_out.labels[at] for at in y.argmax(axis=1).tolist()]


DECISIONS: Mapping[type, Callable[[Any, NDArray[Any], int, Floating], list[Any]]] = {
    MultiClass: _labels
}
"""What is faster than the read-out itself, for a million positions."""
