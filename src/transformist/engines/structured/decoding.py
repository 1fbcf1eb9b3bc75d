"""Models under future masks, one token at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Floating
from transformist.engines.structured.causal import CausalHead
from transformist.engines.structured.embedded import codes, embed
from transformist.engines.structured.evaluation import (
    format_of,
    normalize,
    read_map,
    read_rows,
)
from transformist.engines.structured.head import BLOCK, HeadMaps, require_finite
from transformist.engines.structured.network import Network
from transformist.errors import InputTooLong, InvalidValue
from transformist.model import (
    Heads,
    NearestFraction,
    NearZero,
    Sublayer,
    Symbol,
    Transformer,
    length_of,
)

Step = Callable[[NDArray[Any]], None]
"""The stream of the next rows after a sublayer, in place."""


class Decoder:
    """A model that reads its input a token at a time, and answers for what it has read.

    What a head keeps of the past are the sums of `by query`, `by key` and `hull`, so that a token
    takes the time of the distinct queries or keys, or the logarithm of how many came. Answers are
    those of the engine on the prefix, but for the last places of means.

    Attributes:
        model: what is run.
        length: how many symbols have been read.
        answer: for what has been read: of a read-out at every position, at the last one. `None`
            before the first symbol, if the model adds none.

    Raises:
        InvalidValue: for a model that looks ahead, or needs to know where the input ends.

    Example:
        >>> import transformist as tf
        >>> decoder = tf.decoder(tf.recipe("dyck-1").build(max_length=100))
        >>> decoder.answer, decoder.take("("), decoder.take(")"), decoder.length
        (True, False, True, 2)

    """

    def __init__(self, model: Transformer, arithmetic: Arithmetic | str = "float64") -> None:
        self._a = format_of(arithmetic)
        _require_causal(model)
        self.model, self.length, self.answer = model, 0, None
        self._has_ended = False
        self._heads: list[CausalHead] = []
        self._out = read_map(model.read_out, self._a)
        self._steps = [
            self._step(sublayer) for layer in model.layers for _, sublayer in layer.sublayers()
        ]
        front = codes(model.embedding, "")
        if len(front):
            self.answer = self._answers(self._read(front, 1 - len(front))[-1:])[0]

    @property
    def methods(self) -> tuple[str, ...]:
        """How each head is evaluated by now, layer by layer."""
        return tuple(head.method for head in self._heads)

    def take(self, symbol: Symbol) -> Any:
        """The answer after one more symbol.

        Raises:
            UnknownSymbol: for a symbol outside the alphabet.
            InputTooLong: beyond `max_length`.
            NotFinite: for a number beyond the largest of the format, or so near it that a score or
                a sum of values could be.

        """
        return self.take_all([symbol])[0]

    def take_all(self, symbols: Sequence[Symbol]) -> list[Any]:
        """The answers after each of several symbols.

        Nothing is read where a symbol is unknown or one too many. What is refused on the way, as a
        number beyond the format, ends the decoder.

        Raises:
            UnknownSymbol, InputTooLong, NotFinite: as `take`.
            InvalidValue: after such an end, or for what is no sequence.

        """
        if self._has_ended:
            raise InvalidValue(
                "a decoder reads on until a number is refused",
                received="a symbol after one at which a number was refused",
                where="Decoder",
                remedy="begin a new decoder",
            )
        longest, length = self.model.max_length, self.length + length_of(symbols)
        if longest is not None and length > longest:
            raise InputTooLong(
                f"the model is built for inputs of length at most N = {longest}",
                received=f"length {length}",
                remedy=f"build it with max_length={length} or more",
            )
        rows = codes(self.model.embedding, symbols)[len(self.model.embedding.front) :]
        answers: list[Any] = []
        self._has_ended = True  # unless all goes well
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            z = self._read(part, self.length + 1)
            self.length += len(part)
            answers += self._answers(z)
        self._has_ended = False
        self.answer = answers[-1] if answers else self.answer
        return answers

    def _read(self, rows: NDArray[np.int64], first: int) -> NDArray[Any]:
        """The final vectors of the next symbols, at positions from `first` on."""
        z = embed(self.model.embedding, rows, first, max(first + len(rows) - 1, 0), self._a)
        for step in self._steps:
            step(z)
        require_finite(z, self._a)  # what is infinite or NaN stays so
        if self.model.final_norm is not None:
            normalize(self.model.final_norm, z, z, self._a)
        return z

    def _answers(self, z: NDArray[Any]) -> list[Any]:
        """An answer a row, the last of which is that for `length` symbols."""
        read_out, first = self.model.read_out, self.length - len(z) + 1
        if isinstance(read_out, NearZero):  # its threshold depends on n
            one = range(len(z))
            rows = [read_rows(read_out, self._out, z[i : i + 1], first + i, self._a) for i in one]
            return [answer for row in rows for answer in row]
        return read_rows(read_out, self._out, z, self.length, self._a)

    def _step(self, sublayer: Sublayer) -> Step:
        """A sublayer on the next rows."""
        a = self._a
        if isinstance(sublayer.function, Heads):
            heads = [CausalHead(HeadMaps.of(head, a), a) for head in sublayer.function.heads]
            self._heads += heads
            written = np.array(sublayer.function.written, np.int64)
            run: Step = _Attending(sublayer, heads, written, a)
        else:
            run = Network.of(sublayer.function, sublayer.pre_norm, a).add
        norm = sublayer.post_norm
        if norm is None:
            return run

        def then_normalized(z: NDArray[Any]) -> None:
            run(z)
            normalize(norm, z, z, a)

        return then_normalized


class _Attending:
    """z + Σ head(norm(z)), in place, for the next rows."""

    def __init__(
        self, sublayer: Sublayer, heads: list[CausalHead], written: NDArray[np.int64], a: Floating
    ) -> None:
        self._norm, self._heads, self._written, self._a = sublayer.pre_norm, heads, written, a
        self._into = [np.searchsorted(written, head.maps.written) for head in heads]

    def __call__(self, z: NDArray[Any]) -> None:
        source = z if self._norm is None else self._norm(z, self._a)
        total = np.zeros((len(z), len(self._written)), self._a.dtype)
        rows = slice(0, len(z))
        for head, into in zip(self._heads, self._into, strict=True):
            head.maps.output.add(head.mix(source), total, into, rows)
        z[:, self._written] = self._a.add(total, z[:, self._written])


def _require_causal(model: Transformer) -> None:
    """Refuse a model whose rows depend on what comes after them."""
    masks = {head.mask for layer in model.layers for head in layer.heads}
    ahead = sorted(masks - {"future", "strict-future"})
    positions = model.embedding.positions
    reasons = {
        f"masks that look ahead ({', '.join(ahead)})": bool(ahead),
        "symbols that it adds at the back": bool(model.embedding.back),
        "positions that know n": positions is not None and positions.knows_n,
        "a read-out at CLS": model.read_out.at == "cls",
        "a read-out of fractions of n": isinstance(model.read_out, NearestFraction),
    }
    found = [reason for reason, is_there in reasons.items() if is_there]
    if found:
        raise InvalidValue(
            "a decoder reads one symbol after another and never looks ahead",
            received=f"a model with {' and '.join(found)}",
            where="decoder",
            remedy="run it on whole inputs",
        )


def decoder(model: Transformer, arithmetic: Arithmetic | str = "float64") -> Decoder:
    """A model that reads its input a token at a time.

    Args:
        model: with future masks only.
        arithmetic: `float64` or `float32`.

    Raises:
        InvalidValue: for a model that looks ahead, or another arithmetic.

    """
    return Decoder(model, arithmetic)
