"""A transformer as plain arrays, which the writers of checkpoints read; they see no program.

A stock class has a norm before or after every sublayer, one size for all heads, and no bias in the
last map. A `PlainModel` is changed by passes until it fits: each slot gets a scale, a slot that
holds 1 is added, and one that makes the sum of all slots 0. A pass is a linear map T of the
residual stream with a map R that undoes it, R T = 1, so that it changes no logit.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import number_system
from transformist.errors import InvalidValue, NotFinite
from transformist.host_evaluation import HOST_CLASSES, HostEvaluation
from transformist.hosts.host import HOSTS, NO_OPTIONS, Unhostable
from transformist.hosts.named_arrays import longest_input, named_arrays, require_hostable
from transformist.model import (
    Binary,
    LanguageModel,
    Layer,
    Mask,
    MultiClass,
    Transformer,
    Weighting,
)
from transformist.model.stream import NOTHING

Matrix: TypeAlias = NDArray[Any]

FORMAT = "float32"
"""The usual number format of checkpoints."""

HEAD = 64
"""Least size of a head in a checkpoint: kernels of all hosts take it."""

CALIBRATED = 1024
"""Length of the longest input from which the scales of slots are read."""


ACTIVATIONS: Mapping[str, str] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu-tanh": "gelu_new",
    "gelu-sigmoid": "quick_gelu",
}
"""The name of each activation in transformers."""


@dataclass(frozen=True)
class PlainHead:
    """The arrays of a head; scores are W_Q z · W_K z with no further factor."""

    W_Q: Matrix
    b_Q: Matrix
    W_K: Matrix
    b_K: Matrix
    W_V: Matrix
    b_V: Matrix
    W_O: Matrix


@dataclass(frozen=True)
class PlainLayer:
    """The arrays of a layer; a layer without a network has no hidden units."""

    heads: tuple[PlainHead, ...]
    b_O: Matrix
    W_1: Matrix
    b_1: Matrix
    W_2: Matrix
    b_2: Matrix


@dataclass(frozen=True)
class PlainModel:
    """The arrays of a transformer without norms.

    Attributes:
        words: a row for each symbol, shape (symbols, d).
        positions: a row for each row of an input, shape (rows, d), zeros without positions.
        layers: the layers; at least one.
        W_out, b_out: a row for each answer; the answer is the one with the largest value.
        answers: the labels; `no` and `yes` of a recognizer are False and True.
        activation: the activation of all networks.
        has_positions: true if the table of positions is not all zeros.
        arithmetic: the number format of the checkpoint.

    """

    words: Matrix
    positions: Matrix
    layers: tuple[PlainLayer, ...]
    W_out: Matrix
    b_out: Matrix
    answers: tuple[Any, ...]
    activation: str
    has_positions: bool
    arithmetic: str = FORMAT

    @property
    def width(self) -> int:
        """The number of slots."""
        return int(self.words.shape[1])

    @property
    def most_heads(self) -> int:
        """The largest number of heads in a layer, at least 1."""
        return max(1, *(len(layer.heads) for layer in self.layers))

    @property
    def most_hidden(self) -> int:
        """The largest number of hidden units in a layer, at least 1."""
        return max(1, *(len(layer.b_1) for layer in self.layers))

    @property
    def head_size(self) -> int:
        """The size of a head in a checkpoint, at least `HEAD`."""
        return self.head_size_from(HEAD)

    def head_size_from(self, least: int) -> int:
        """The smallest power of 4 that is at least every d_key and d_value, and `least`."""
        # Hosts multiply scores by 1/√d_head. With d_head a power of 4 the root is a power of two,
        # and the weights that undo the factor (`stacked`) are exact.
        sizes = (
            size
            for layer in self.layers
            for head in layer.heads
            for size in (len(head.b_Q), len(head.b_V))
        )
        return int(4 ** math.ceil(math.log(max([least, *sizes]), 4)))


def plain_model(
    model: Transformer,
    host: str,
    masks: tuple[Mask, ...],
    max_length: int | None,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> PlainModel:
    """Return the arrays of a transformer that a host of these masks can hold.

    Args:
        model: the transformer.
        host: the name of the host, for refusals.
        masks: the masks that its heads may have.
        max_length: the longest input, for a model without N.
        options: the options with which a program is compiled for the host, for refusals.

    Raises:
        Unhostable: for a part that the host does not have.
        InvalidValue: for a model of any length without `max_length`.
        NotFinite: for a weight that is too large for float32.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["parity"], max_length=8, masks="future", reuse=False)
        >>> plain = plain_model(model, "gpt2", (Mask.FUTURE,), None)
        >>> plain.words.shape, plain.positions.shape, plain.answers
        ((3, 8), (9, 8), (False, True))

    """
    activation = require_plain(model, host, masks, options)
    arrays = named_arrays(model, FORMAT)
    is_binary = isinstance(model.read_out, Binary)
    # A recognizer accepts if y > 0. With the rows 0 and y, the first on a tie is `no`.
    zeros = np.zeros((int(is_binary), model.width))
    positions = _table(model, rows_of(model, max_length))
    return PlainModel(
        words=arrays["embedding.vectors"],
        positions=positions,
        layers=tuple(
            _layer(layer, arrays, f"layers.{number}.", model.width)
            for number, layer in enumerate(model.layers)
        )
        or (_layer(Layer(), {}, "", model.width),),
        W_out=np.concatenate([zeros, arrays["read_out.W_out"]]),
        b_out=np.concatenate([zeros[:, 0], arrays["read_out.b_out"]]),
        answers=(False, True) if is_binary else model.read_out.labels,  # type: ignore[attr-defined]
        activation=activation,
        has_positions=bool(positions.any()),
    )


def rows_of(model: Transformer, max_length: int | None) -> int:
    """The rows of the longest input, with the symbols that the model adds.

    Raises:
        InvalidValue: for a model of any length, if no length is given.

    """
    longest = longest_input(model, max_length)
    longest = max_length if longest is None else longest
    if longest is None:
        raise InvalidValue(
            "a checkpoint must have a longest input",
            received="a model for any length, and no max_length",
            where="export",
            remedy="give max_length, such as max_length=512",
        )
    return len(model.embedding.front) + longest + len(model.embedding.back)


def _table(model: Transformer, rows: int) -> Matrix:
    """The vector of each row's position."""
    positions, front = model.embedding.positions, len(model.embedding.front)
    if positions is None:
        return np.zeros((rows, model.width))
    a = number_system(FORMAT)
    # Row r has the position r + 1 − front. The length does not matter: no function knows it.
    places = range(1 - front, rows + 1 - front)
    table: Matrix = a.numbers(positions.at(places, rows, a))
    return table


def _layer(layer: Layer, arrays: Mapping[str, Matrix], prefix: str, width: int) -> PlainLayer:
    heads = []
    b_O = np.zeros(width)
    for number, head in enumerate(layer.heads):
        names = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V")
        own = {name: arrays[f"{prefix}heads.{number}.{name}"] for name in names}
        W_O = arrays.get(f"{prefix}heads.{number}.W_O", np.eye(width))
        # The definition divides scores by √d_key; here the factor is in W_Q and b_Q.
        # Root and quotient round in float64 unless d_key is a power of 4, and the weights once more
        # in the format of the checkpoint. The comparison before a file is written judges the
        # answers that come of it.
        root = math.sqrt(head.W_Q.shape[0])
        own |= {"W_Q": own["W_Q"] / root, "b_Q": own["b_Q"] / root}
        heads.append(PlainHead(**own, W_O=W_O))
        # A host has one bias for the sum of all heads.
        b_O = b_O + arrays[f"{prefix}heads.{number}.b_O"]
    network = f"{prefix}feed_forward."
    return PlainLayer(
        heads=tuple(heads),
        b_O=b_O,
        W_1=arrays.get(f"{network}W_1", np.zeros((0, width))),
        b_1=arrays.get(f"{network}b_1", np.zeros(0)),
        W_2=arrays.get(f"{network}W_2", np.zeros((width, 0))),
        b_2=arrays.get(f"{network}b_2", np.zeros(width)),
    )


def require_plain(
    model: Transformer,
    host: str,
    masks: tuple[Mask, ...],
    options: Mapping[str, Any] = NO_OPTIONS,
) -> str:
    """Require a model that a host of these masks can hold, and return its activation.

    Raises:
        Unhostable: for a part that the host does not have, with a host that has it.

    """
    require_hostable(model, "export")
    heads = [head for layer in model.layers for head in layer.heads]
    norms = [
        norm for layer in model.layers for norm in (*layer.pre_norms, *layer.post_norms) if norm
    ]
    networks = [layer.feed_forward for layer in model.layers if layer.feed_forward]
    activations = sorted({each.activation for each in networks}) or ["relu"]
    hard = sorted({str(head.weighting) for head in heads} - {str(Weighting.SOFTMAX)})
    other = sorted({str(head.mask) for head in heads} - {str(mask) for mask in masks})
    positions, read_out = model.embedding.positions, model.read_out
    has_labels = isinstance(read_out, Binary | MultiClass | LanguageModel)
    numbers = Counter(span.slot for span in model.stream.spans if span.name != NOTHING)
    reused = [slot for slot, count in numbers.items() if count > 1]
    masks_in_words = " or ".join(masks)
    masked = f"heads must have mask {masks_in_words}, as compile gives with masks={masks_in_words}"
    # No option of the compiler cures these: they come first, so that nobody compiles in vain.
    refuse_first(
        host,
        {
            "a model must have no norms of its own": (bool(norms or model.final_norm), "norms"),
            "all networks must have one activation": (
                len(activations) > 1,
                ", ".join(activations),
            ),
            f"networks must have {', '.join(ACTIVATIONS)}": (
                not {*activations} <= {*ACTIVATIONS},
                ", ".join(activations),
            ),
            "the answer must be a label": (not has_labels, type(read_out).__name__),
            "the answer must be read at the last or at every position": (
                read_out.at not in ("last", "every"),
                f"an answer at {read_out.at}",
            ),
        },
    )
    refuse_first(
        host,
        {
            "heads must have softmax": (bool(hard), f"heads with {', '.join(hard)}"),
            masked: (bool(other), f"heads with mask {', '.join(other)}"),
            "positions must not depend on the length of the input": (
                positions is not None and positions.knows_n,
                "a position function of n",
            ),
            "each number must have a slot of its own, as compile gives with reuse=False": (
                bool(reused),
                f"{len(reused)} slots that hold several numbers",
            ),
        },
        options,
    )
    return activations[0]


def refuse_first(
    host: str, faults: Mapping[str, tuple[bool, str]], options: Mapping[str, Any] = NO_OPTIONS
) -> None:
    """Refuse a model for the first fault that it has.

    Args:
        host: the name of the host.
        faults: for each condition, true if the model breaks it, and what was received.
        options: the options of the compiler that give a model without these faults.

    Raises:
        Unhostable: for the first fault; it names a host that holds the model.

    """
    for invariant, (is_wrong, received) in faults.items():
        if is_wrong:
            raise Unhostable(
                f"in {host}, {invariant}",
                received=received,
                host="onnx",
                arithmetic=FORMAT,
                options=options,
            )


def require_no_positions(plain: PlainModel, host: str) -> None:
    """Require a model whose rows have no vectors of positions.

    Raises:
        Unhostable: for another model.

    """
    invariant = "a model must have no positions, as compile gives with positions=bos"
    received = "position functions or a table"
    refuse_first(host, {invariant: (plain.has_positions, received)}, HOSTS[host].options)


def through(plain: PlainModel, writing: Matrix, reading: Matrix) -> PlainModel:
    """The model with the residual stream T z in place of z, where R T = 1.

    Args:
        plain: the model.
        writing: T, shape (d', d).
        reading: R, shape (d, d').

    """

    def head(each: PlainHead) -> PlainHead:
        return replace(
            each,
            W_Q=each.W_Q @ reading,
            W_K=each.W_K @ reading,
            W_V=each.W_V @ reading,
            W_O=writing @ each.W_O,
        )

    def layer(each: PlainLayer) -> PlainLayer:
        return replace(
            each,
            heads=tuple(head(one) for one in each.heads),
            b_O=writing @ each.b_O,
            W_1=each.W_1 @ reading,
            W_2=writing @ each.W_2,
            b_2=writing @ each.b_2,
        )

    # What is written to the stream is multiplied by T, what is read from it by R. Logits are W_out
    # z = (W_out R)(T z), as R T = 1; so every T with a left inverse R gives the same logits.
    return replace(
        plain,
        words=plain.words @ writing.T,
        positions=plain.positions @ writing.T,
        layers=tuple(layer(each) for each in plain.layers),
        W_out=plain.W_out @ reading,
    )


def rescaled(plain: PlainModel, model: Transformer) -> PlainModel:
    """The model with every slot divided by a power of two, so that its numbers are about 1."""
    # T = diag(1/s) and R = diag(s), with s powers of two: no weight rounds.
    scales = np.exp2(np.array(slot_exponents(plain, model), dtype=float))
    return through(plain, np.diag(1 / scales), np.diag(scales))


def slot_exponents(plain: PlainModel, model: Transformer) -> tuple[int, ...]:
    """The exponents of the powers of two by which slots are divided.

    A norm computes a mean over all slots, whose rounding error is added to each: next to a slot
    with i² = 2¹⁶, all others would get an error of 2⁻⁸. Powers of two cost no rounding. The largest
    number of a slot is read from a few inputs. Larger numbers on other inputs cost precision in the
    other slots, and nothing else.
    """
    front, back = model.embedding.front, model.embedding.back
    n = min(len(plain.positions) - len(front) - len(back), CALIBRATED)
    alphabet, source = model.alphabet, random.Random(n)
    inputs = [(each,) * n for each in alphabet[:: max(1, len(alphabet) // 8)]]
    inputs += [tuple(source.choices(alphabet, k=n)) for _ in range(2)]
    # A table of positions has rows beyond the calibrated inputs, whose numbers, such as i², are
    # larger.
    sizes = abs(plain.positions).max(axis=0, initial=0)
    for _, z in model.streams(inputs, "float64"):
        sizes = np.maximum(sizes, abs(np.asarray(z)).max(axis=(0, 1), initial=0))
    # The smallest numbers that a model is made to hold are about the share of one row, 1/r. Less is
    # what softmax leaves over where no key matches: scaled up, it would spoil the other slots.
    least = -len(plain.positions).bit_length()
    return tuple(max(least, math.ceil(math.log2(size))) if size else 0 for size in sizes.tolist())


def with_constant(plain: PlainModel) -> PlainModel:
    """The model with one more slot, the last, that holds 1 in every row."""
    wider = through(plain, *_added(plain.width, np.zeros((1, plain.width))))
    words = wider.words.copy()
    words[:, -1] = 1
    return replace(wider, words=words)


def with_zero_sum(plain: PlainModel) -> PlainModel:
    """The model with more slots, which make the sum of all slots 0.

    For each slot of positions another slot holds the number with the opposite sign, as far as the
    coordinates of the heads leave room. The last slot holds minus the sum of all others. A format
    holds minus a number exactly, but rounds a sum of several numbers, and the mean that a norm
    subtracts has the error of this rounding. With fewer numbers in the sum this error is smaller.
    """
    # The width of a host is a whole number of heads, so some coordinates are free anyway: those
    # beyond the slots and the last slot, which makes the sum 0. Slots with mirrors take no further
    # head.
    empty = _heads(plain, plain.width + 1) * plain.head_size - (plain.width + 1)
    of_positions = np.flatnonzero(plain.positions.any(axis=0))[:empty]
    # Rows of linear forms: −x for each mirrored slot, and for the last slot minus the sum of all
    # slots and mirrors. A mirrored slot cancels its mirror there, so its form has the coefficient
    # −1 + 1 = 0.
    mirrors = -np.eye(plain.width)[of_positions]
    rest = -1 - mirrors.sum(axis=0)
    return through(plain, *_added(plain.width, np.vstack([mirrors, rest])))


def _added(width: int, rows: Matrix) -> tuple[Matrix, Matrix]:
    """The maps T and R that add a slot for each row, which has a linear form of the others."""
    # T keeps the slots and adds the forms below them; R takes the first `width` coordinates: R T =
    # 1. No layer reads the added slots, and every layer writes to them what their forms ask for.
    return np.vstack([np.eye(width), rows]), np.eye(width, width + len(rows))


def in_heads(plain: PlainModel) -> tuple[PlainModel, int]:
    """The model with as many slots as coordinates in all heads, and the number of heads."""
    count = _heads(plain, plain.width)
    return widened(plain, count * plain.head_size), count


def _heads(plain: PlainModel, width: int) -> int:
    """The number of heads of a host, for a number of slots."""
    return max(plain.most_heads, math.ceil(width / plain.head_size))


def host_evaluation(plain: PlainModel, model: Transformer, host: str) -> HostEvaluation:
    """Return the evaluation of a transformer by a class, from which a proof bounds its errors."""
    # LayerNorm subtracts the mean of all slots, so the sum must be 0; RMSNorm does not.
    added = 2 if HOST_CLASSES[host].centres else 1  # the slot of 1, and minus the sum of all
    width = _heads(plain, plain.width + added) * plain.head_size
    return HostEvaluation(host, width, slot_exponents(plain, model))


def widened(plain: PlainModel, width: int) -> PlainModel:
    """The model with slots that stay 0, up to a width."""
    return through(plain, np.eye(width, plain.width), np.eye(plain.width, width))


def stacked(
    layer: PlainLayer,
    count: int,
    places: NDArray[np.int64],
    size: int,
    *,
    are_balanced: bool = False,
) -> dict[str, Matrix]:
    """The arrays Q, K, V, O of all heads of a layer, with biases, for heads of one size.

    Args:
        layer: the layer.
        count: the number of heads; those that the layer does not have are zeros.
        places: the coordinates of a head that hold its queries and keys, in their order.
        size: d_head; the host divides scores by its root.
        are_balanced: true to make queries and keys of each head about equally large, for a format
            of few exponents.

    """
    width = len(layer.b_O)
    found: dict[str, Matrix] = {
        name: np.zeros((count * size, width)) for name in ("W_Q", "W_K", "W_V")
    }
    found |= {name: np.zeros(count * size) for name in ("b_Q", "b_K", "b_V")}
    found["W_O"] = np.zeros((width, count * size))
    # `PlainHead` has scores without a factor, and the host divides them by √size: the queries carry
    # √size. `up` and `share` multiply queries and keys, and their product is √size for every share.
    root = math.sqrt(size)
    for number, head in enumerate(layer.heads):
        keys = number * size + places[: len(head.b_Q)]
        values = number * size + np.arange(len(head.b_V))
        share = _share_of_keys(head) if are_balanced else 1.0
        up = root / share
        found["W_Q"][keys], found["b_Q"][keys] = head.W_Q * up, head.b_Q * up
        found["W_K"][keys], found["b_K"][keys] = head.W_K * share, head.b_K * share
        found["W_V"][values], found["b_V"][values] = head.W_V, head.b_V
        found["W_O"][:, values] = head.W_O
    return found


def _share_of_keys(head: PlainHead) -> float:
    """The power of two that queries are divided and keys multiplied by, to be equally large."""
    queries, keys = (
        max(float(abs(each).max(initial=0)) for each in pair)
        for pair in ((head.W_Q, head.b_Q), (head.W_K, head.b_K))
    )
    # With queries of size a and keys of size b, both become √(ab) for the share √(a/b); to the
    # nearest power of two, so that no weight rounds.
    return float(2.0 ** round(math.log2(queries / keys) / 2)) if queries and keys else 1.0


def network_of(layer: PlainLayer, hidden: int) -> dict[str, Matrix]:
    """The arrays of the network of a layer, with this number of hidden units."""
    own = len(layer.b_1)
    # Hidden units without weights are act(0) times columns of 0: they add nothing, whatever act(0)
    # is.
    padding = ((0, hidden - own),)
    return {
        "W_1": np.pad(layer.W_1, (*padding, (0, 0))),
        "b_1": np.pad(layer.b_1, padding),
        "W_2": np.pad(layer.W_2, ((0, 0), *padding)),
        "b_2": layer.b_2,
    }


def multiple_of_8(number: int) -> int:
    """The least multiple of 8 that is at least a number."""
    return -(-number // 8) * 8


def as_tensor(name: str, weights: Matrix, arithmetic: str = FORMAT) -> NDArray[Any]:
    """Round an array of a checkpoint to float32 or float16.

    Raises:
        NotFinite: for a weight that is not 0 and not a normal number of float32; in float16, which
            also has the numbers below these, for one that is infinite or rounds to 0.

    """
    kind = np.dtype(arithmetic)
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.ascontiguousarray(weights, kind)
        least = float(np.finfo(np.float32).tiny)
        # Kernels may set subnormal numbers of float32 to 0. Those of float16 are normal numbers of
        # float32.
        is_lost = rounded == 0 if arithmetic != FORMAT else abs(weights) < least
    if not np.isfinite(rounded).all() or ((weights != 0) & is_lost).any():
        raise NotFinite(
            f"a weight of a checkpoint must be a normal number of {arithmetic}",
            received=f"one in {name} that is too large or too small",
            where="export",
            remedy="export the model with host='onnx', or for shorter inputs",
        )
    return rounded
