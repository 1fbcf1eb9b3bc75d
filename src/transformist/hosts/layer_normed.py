"""Plain models in a decoder with a layer norm before each sublayer: GPT-2, OPT and GPT-NeoX.

A norm is the identity up to rounding, since the sum of the stream is 0 and it has the factor s
(`SHRINK`), or in float16 pins (`neutral_norms`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from transformist.host_evaluation import SHRINK
from transformist.hosts.neutral_norms import LAYER_PINS, PINNED, neutral_norm
from transformist.hosts.next_token import answer_logits, word_vectors
from transformist.hosts.plain_model import (
    Matrix,
    PlainModel,
    in_heads,
    multiple_of_8,
    network_of,
    rescaled,
    stacked,
    with_constant,
    with_zero_sum,
)
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Transformer


@dataclass(frozen=True)
class LayerNormed:
    """The arrays of a decoder with layer norms, under the names of the definition.

    Attributes:
        size: d_head, the number of coordinates of a head.
        heads: the number of heads of each layer.
        hidden: the number of hidden units of each layer.
        words: a row for each token, shape (tokens, d).
        positions: a row for each row of an input, shape (rows, d).
        logits: a row for each token, shape (tokens, d).
        norm: the gain and the bias of every norm.
        layers: for each layer W_Q, W_K, W_V, W_O, W_1, W_2 and the bias of each.

    """

    size: int
    heads: int
    hidden: int
    words: Matrix
    positions: Matrix
    logits: Matrix
    norm: dict[str, Matrix]
    layers: tuple[dict[str, Matrix], ...]

    @property
    def width(self) -> int:
        """The number of slots."""
        return int(self.words.shape[1])


def layer_normed(
    plain: PlainModel, model: Transformer, tokens: Vocabulary, epsilon: float
) -> LayerNormed:
    """Fit a plain model to a decoder whose layer norms have this eps."""
    plain = with_constant(rescaled(plain, model))
    constant, size = plain.width - 1, plain.head_size
    norm = neutral_norm(plain, SHRINK, LAYER_PINS)
    # The order matters: the slot of 1 serves the logits and is scaled by nothing, pins are part of
    # the sum that is made 0, and zeros fill up the heads at last, as they change no sum.
    plain, count = in_heads(with_zero_sum(norm.pinned(plain)))
    hidden = multiple_of_8(plain.most_hidden)
    # A norm gives z for the stream s z (`neutral_norms`). The stream adds what a sublayer writes to
    # s z: words, positions, W_O, b_O, W_2 and b_2 have the factor s; W_Q, W_K, W_V and W_1 do not.
    gain = np.full(plain.width, norm.gain(epsilon, plain.width))
    return LayerNormed(
        size=size,
        heads=count,
        hidden=hidden,
        words=norm.factor * word_vectors(plain, tokens),
        positions=norm.factor * plain.positions,
        logits=answer_logits(plain, tokens, constant),
        norm={"weight": gain, "bias": np.zeros(plain.width)},
        layers=tuple(_layers(plain, count, size, hidden, norm.factor)),
    )


def _layers(
    plain: PlainModel, count: int, size: int, hidden: int, factor: float
) -> Iterator[dict[str, Matrix]]:
    are_balanced = plain.arithmetic == PINNED
    for layer in plain.layers:
        heads = stacked(layer, count, np.arange(size), size, are_balanced=are_balanced)
        network = network_of(layer, hidden)
        yield {
            **heads,
            "W_O": factor * heads["W_O"],
            "b_O": factor * layer.b_O,
            **network,
            "W_2": factor * network["W_2"],
            "b_2": factor * network["b_2"],
        }
