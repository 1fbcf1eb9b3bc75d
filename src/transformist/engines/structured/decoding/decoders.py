"""Models under future masks, one token at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator
from threading import RLock
from typing import Any

from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic
from transformist.engines.structured.decoding.reading import OneByOne
from transformist.engines.structured.decoding.steps import Attend, steps_of
from transformist.engines.structured.embedded import codes, embed
from transformist.engines.structured.evaluation import format_of
from transformist.engines.structured.final_answers import read_rows
from transformist.engines.structured.sparse_model import sparse_model
from transformist.engines.structured.stream_vectors import BLOCK
from transformist.errors import InputTooLong, InvalidValue, TransformistError
from transformist.model import NearestFraction, NearZero, Outputs, Symbol, Transformer, length_of
from transformist.model.definition import observe

BROKEN_OFF = "that was not read to its end"
"""State of a decoder during a call; an interruption leaves it, and so ends the decoder."""


class Decoder:
    """A model that reads its input a token at a time, and answers for what it has read.

    A head keeps running results, and the keys and values of the past unless the weights fix its
    query. The time of a token grows with the number of distinct queries or keys, with the logarithm
    of the length (`hull`), or with the length (`dense`). The answers are as the engine
    gives them on the prefix, but for the last places of means.

    Calls of several threads are done one after another. A copy, however it is made, goes on by
    itself, with the same model.

    Attributes:
        model: the model that is run.
        length: the number of symbols read.
        answer: the answer for the symbols read; the last one of a read-out at every position.
            `None` before the first symbol, if the model adds none.

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
        # A table of positions may end before N, and a model may have an N without a table.
        limits = [
            each.max_length for each in (model, model.embedding.positions) if each is not None
        ]
        self._longest = min((each for each in limits if each is not None), default=math.inf)
        self._lock, self._ended = RLock(), ""
        self._steps = steps_of(model, self._a)
        self._single: OneByOne | None = None
        self._has_settled = True  # true if the heads know what the kernel has consumed
        rows = {symbol: row for row, symbol in enumerate(model.embedding.symbols)}
        self._rows = {symbol: rows[symbol] for symbol in model.alphabet}
        front = codes(model.embedding, "")
        if len(front):
            self.answer = self._answers(self._read(front, 1 - len(front))[-1:], 0)[0]

    def __repr__(self) -> str:
        """The format, the length read, and the answer."""
        return f"<Decoder in {self._a.name}, length {self.length}, answer {self.answer!r}>"

    @property
    def methods(self) -> tuple[str, ...]:
        """The present method of each head, layer by layer."""
        return tuple(step.head.method for step in self._steps if isinstance(step, Attend))

    def take(self, symbol: Symbol) -> Any:
        """The answer after one more symbol.

        Raises:
            UnknownSymbol: for a symbol outside the alphabet.
            InputTooLong: beyond `max_length`, or where a table of positions ends.
            NotFinite: for an overflow in the stream or the read-out, and for numbers so large that
                a score or a sum of values could overflow. An overflow in a hidden unit of a network
                is refused only if it reaches the stream.
            UndefinedValue: for a norm that has no value.
            InvalidValue: after a call that was refused or interrupted, as in `take_all`.

        """
        try:
            row = self._rows[symbol]
        except (KeyError, TypeError):
            return self.take_all([symbol])[0]  # which refuses it
        with self._lock:
            if self._ended or self.length == self._longest:
                return self.take_all([symbol])[0]
            observe(self.model, range(self.length + 1), self._a)
            # Set before anything changes: Ctrl-C may come between any two lines, and would leave
            # some heads with the symbol and others without it.
            self._ended = BROKEN_OFF
            single = self._single
            if single is None or self._has_settled:
                single = self._begin_single()
            try:
                answer = single.read(row)
            except TransformistError as error:
                self._ended = _refused(error)
                raise
            self.answer = answer
            self.length += 1
            self._ended = ""
            return answer

    def take_all(self, symbols: Iterable[Symbol]) -> list[Any]:
        """The answers after each of several symbols, from a sequence or an iterator.

        Nothing is read if a symbol is unknown or there is one too many. A refusal on the way, as of
        an overflow, ends the decoder, and so does an interruption.

        Raises:
            UnknownSymbol, InputTooLong, NotFinite, UndefinedValue: as `take`.
            InvalidValue: after such an end; for an argument that is no sequence and no iterator.

        """
        given: Any = list(symbols) if isinstance(symbols, Iterator) else symbols
        with self._lock:
            self._admit(length_of(given))
            embedding = self.model.embedding
            rows = codes(embedding, given, self.length + 1)[len(embedding.front) :]
            self._ended = BROKEN_OFF
            try:
                answers = self._taken(rows)
            except TransformistError as error:
                self._ended = _refused(error)
                raise
            self.answer = answers[-1] if answers else self.answer
            self._ended = ""
            return answers

    def _admit(self, count: int) -> None:
        """Refuse symbols after an end, or beyond the longest input."""
        if self._ended:
            raise InvalidValue(
                "a decoder must not be used after a symbol that was refused or not read to its end",
                received=f"a symbol after one {self._ended}",
                where="Decoder",
                remedy="begin a new decoder",
            )
        longest, length = self.model.max_length, self.length + count
        if longest is not None and length > longest:
            raise InputTooLong(
                f"an input must have a length of at most N = {longest}",
                received=f"length {length}",
                remedy=f"build it with max_length={length} or more",
            )
        if length > self._longest:
            raise InputTooLong(
                f"a table of positions must reach the input's length; this one goes to "
                f"N = {self._longest}",
                received=f"length {length}",
                remedy=f"build it for {length} positions or more",
            )
        observe(self.model, range(length), self._a)

    def _taken(self, rows: NDArray[Any]) -> list[Any]:
        """The answers after each of the next symbols."""
        answers: list[Any] = []
        self._settle()
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            z = self._read(part, self.length + 1)
            self.length += len(part)
            answers += self._answers(z, self.length)
        return answers

    def _read(self, rows: NDArray[Any], first: int) -> NDArray[Any]:
        """The final vectors of the next symbols, at positions from `first` on."""
        z = embed(self.model.embedding, rows, first, max(first + len(rows) - 1, 0), self._a)
        for step in self._steps:
            step(z)
        return z

    def _answer(self, z: NDArray[Any], n: int) -> Any:
        """The answer for n symbols, the last of which has the final vector z."""
        return self._answers(z, n)[0]

    def _answers(self, z: NDArray[Any], n: int) -> list[Any]:
        """One answer for each row, the last being that for n symbols."""
        read_out, first, own = (
            self.model.read_out,
            n - len(z) + 1,
            sparse_model(self.model, self._a),
        )
        # Other read-outs decide each row by itself, so all rows are read at once.
        if isinstance(read_out, NearZero):  # its threshold depends on n
            one = range(len(z))
            rows = [read_rows(read_out, own, z[i : i + 1], first + i, self._a) for i in one]
            return [answer for row in rows for answer in row]
        return read_rows(read_out, own, z, n, self._a)

    def _begin_single(self) -> OneByOne:
        """Begin to read single tokens."""
        if self._single is None:
            own = (self.model.read_out, sparse_model(self.model, self._a).read_out)
            self._single = OneByOne(
                self.model.embedding, self._steps, own, self._answer, self._a, self.length
            )
        else:
            self._single.resume(self.length)
        self._has_settled = False
        return self._single

    def _settle(self) -> None:
        """End the reading of single tokens, till the next one."""
        if self._single is not None and not self._has_settled:
            self._single.settle()
        self._has_settled = True

    def __getstate__(self) -> dict[str, Any]:
        """The state of a copy: arrays of its own, and none of the addresses."""
        # What the kernel consumed is counted before the copy is made. The table of addresses is not
        # copied, as it leads to the arrays of this decoder; the copy makes its own.
        with self._lock:
            if not self._ended:
                self._ended = BROKEN_OFF
                self._settle()
                self._ended = ""
            # A lock cannot be copied; the copy gets its own in `__setstate__`.
            own = {name: each for name, each in self.__dict__.items() if name != "_lock"}
            return self._copied({**own, "_single": None})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays are copied: those of a pickle may be read-only, or those of another one."""
        self.__dict__.update(self._copied(state), _lock=RLock())

    def __copy__(self) -> Decoder:
        """A decoder that goes on by itself."""
        other = Decoder.__new__(type(self))
        other.__dict__.update(self.__getstate__(), _lock=RLock())
        return other

    def __deepcopy__(self, _memo: dict[int, Any]) -> Decoder:
        """The same as `copy.copy`, since a model does not change."""
        return copy.copy(self)

    @staticmethod
    def _copied(state: dict[str, Any]) -> dict[str, Any]:
        return copy.deepcopy(state, {id(state["model"]): state["model"]})


def _refused(error: TransformistError) -> str:
    """State of a decoder after this error."""
    return f"that was refused ({error.invariant})"


def _require_causal(model: Transformer) -> None:
    """Refuse a model whose rows depend on later ones."""
    masks = {head.mask for layer in model.layers for head in layer.heads}
    ahead = sorted(mask for mask in masks if mask.looks_ahead)
    positions, read_out = model.embedding.positions, model.read_out
    parts = read_out.parts if isinstance(read_out, Outputs) else (read_out,)
    is_fraction_of_n = any(
        isinstance(each, NearestFraction) and each.mask.looks_ahead for each in parts
    )
    reasons = {
        f"masks that look ahead ({', '.join(ahead)})": bool(ahead),
        "symbols that it adds at the back": bool(model.embedding.back),
        "positions that know n": positions is not None and positions.knows_n,
        "a read-out at CLS": read_out.at == "cls",
        "a read-out of fractions of n": is_fraction_of_n,
    }
    found = [reason for reason, is_there in reasons.items() if is_there]
    if found:
        raise InvalidValue(
            "a model for a decoder must not look ahead",
            received=f"a model with {' and '.join(found)}",
            where="decoder",
            remedy='run it on whole inputs; for a program, try tf.compile(program, masks="future")',
        )


def decoder(model: Transformer, arithmetic: Arithmetic | str = "float64") -> Decoder:
    """A decoder for a model.

    Args:
        model: a model with future masks only.
        arithmetic: `float64` or `float32`.

    Raises:
        InvalidValue: for a model that looks ahead, or another arithmetic.

    """
    return Decoder(model, arithmetic)
