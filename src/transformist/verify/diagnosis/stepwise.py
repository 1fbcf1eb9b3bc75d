"""A model evaluated one step at a time, from any stream on, and the run without rounding.

The embedding gives the first stream. Each step after it is a sublayer, the final norm or, at the
end, the read-out. So the numbers of a run are a list: the streams, then the values read out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from transformist.arithmetic import EXACT, Arithmetic, Array, number_system
from transformist.errors import InvalidValue, NotFinite, NotRepresentable, UndefinedValue
from transformist.model import (
    Attention,
    Heads,
    LanguageModel,
    LayerNorm,
    MultiClass,
    Outputs,
    RealVector,
    Sublayer,
    Symbol,
    Transformer,
)

READ_OUT = "read-out"
"""Name of the last step."""


@dataclass(frozen=True, eq=False)
class Step:
    """A step from one stream to the next: its name, its function and the number of its layer."""

    name: str
    function: Sublayer | LayerNorm
    layer: int | None = None

    @property
    def written(self) -> tuple[int, ...]:
        """The coordinates of the stream that may change."""
        if isinstance(self.function, LayerNorm):
            return tuple(range(self.function.width))
        return self.function.written


def steps_of(model: Transformer) -> tuple[Step, ...]:
    """The sublayers and the final norm, in order."""
    found = [
        Step(f"layer {number} {name}", sublayer, number)
        for number, layer in enumerate(model.layers)
        for name, sublayer in layer.sublayers()
    ]
    if model.final_norm is not None:
        found.append(Step("final norm", model.final_norm))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Stepwise:
    """A model in an arithmetic on inputs of one length, step by step.

    Where the format cannot compute a row of a head (a score overflows) or of a norm (its deviation
    is 0), that row is NaN, and the other rows are what they are in a run that answers.
    """

    model: Transformer
    length: int
    arithmetic: Arithmetic

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps between streams."""
        return steps_of(self.model)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the streams and of the read-out."""
        return ("embedding", *(step.name for step in self.steps), READ_OUT)

    def numbers(self, x: Sequence[Symbol]) -> tuple[Array, ...]:
        """The streams (rows, d) and the values read out (positions read, k).

        Raises:
            NotFinite: for a weight or a feature of a position that the format cannot hold.

        """
        # A batch of one input, without the axis of the batch.
        first = self.model.embedding([x], self.arithmetic)[0]
        return (first, *self.following(0, first))

    def following(self, after: int, z: Array) -> Iterator[Array]:
        """The streams that follow a stream, and the values read out."""
        for step in self.steps[after:]:
            z = self.applied(step.function, z)
            yield z
        # After the read-out nothing follows.
        if after <= len(self.steps):
            rows = self.model.rows_read(self.length)
            yield self.model.read_out.values(z[rows], self.arithmetic)

    def applied(self, function: Sublayer | LayerNorm, z: Array) -> Array:
        """The stream after a step."""
        a = self.arithmetic
        if isinstance(function, LayerNorm):
            return self.normed(function, z)
        if not isinstance(function.function, Heads):
            y = function.function.on(self.read(function, z), a)
        else:
            read = self.read(function, z)
            heads = function.function.heads
            y = function.function.total((self._output(head, read) for head in heads), a)
        y = a.add(y, z)
        return y if function.post_norm is None else self.normed(function.post_norm, y)

    def read(self, sublayer: Sublayer, z: Array) -> Array:
        """The vectors that the function of a sublayer takes."""
        return z if sublayer.pre_norm is None else self.normed(sublayer.pre_norm, z)

    def normed(self, norm: LayerNorm, z: Array) -> Array:
        """The normalized rows."""
        norm.rounded(self.arithmetic)  # a weight that does not fit is refused before any row
        return self._by_rows(
            lambda rows: norm.on(z[rows], self.arithmetic), z.shape[0], norm.width_out
        )

    def _output(self, head: Attention, read: Array) -> Array:
        """The output of a head; NaN only in the coordinates that it writes."""
        a = self.arithmetic
        mixed = self._mixed(head, read)
        y = head.output(mixed, a)
        if a.largest is None:
            return y
        lost = np.isnan(a.numbers(mixed)).any(axis=1)
        if lost.any():
            # 0 times NaN is NaN: a row of W_O that is 0 gives 0 all the same.
            others = [slot for slot in range(head.width_out) if slot not in head.written]
            y[np.ix_(lost, others)] = a.array([0])
        return y

    def _mixed(self, head: Attention, read: Array) -> Array:
        """Σⱼ αᵢⱼ vⱼ of every row i."""
        a, v = self.arithmetic, head.values(read, self.arithmetic)

        def some(rows: slice) -> Array:
            return a.matmul(head.weights(read, a, rows), v)

        return self._by_rows(some, read.shape[0], v.shape[-1])

    def _by_rows(self, function: Callable[[slice], Array], rows: int, width: int) -> Array:
        """A function of rows; in a format, NaN in the rows for which it is refused."""
        # Halving finds the rows that are refused, and evaluates the others together.
        a = self.arithmetic

        def between(start: int, end: int) -> Array:
            try:
                return function(slice(start, end))
            except (NotFinite, UndefinedValue):
                if a.largest is None:
                    raise
                if end - start == 1:
                    return np.full((1, width), np.nan).astype(a.array([0]).dtype)
            middle = (start + end) // 2
            return a.concatenate([between(start, middle), between(middle, end)], axis=0)

        return between(0, rows)

    def answers(self, y: Array) -> list[Any]:
        """The answer at each position read; `None` where a value is NaN."""
        a, read_out = self.arithmetic, self.model.read_out
        if a.largest is None:
            return read_out.answers(y, self.length, a)
        values = np.asarray(a.numbers(y), dtype=float)
        lost = np.isnan(values).any(axis=1)
        # A read-out refuses NaN. It gets 0 in the lost rows, whose answers are left out below, and
        # decides the others as in a run that answers.
        kept = np.where(lost[:, None], np.zeros_like(y), y) if lost.any() else y
        answers = read_out.answers(kept, self.length, a)
        return [None if gone else each for gone, each in zip(lost, answers, strict=True)]

    def decisions(self, answers: list[Any]) -> list[Any]:
        """The answers that count: an output of the last position has one at that position only."""
        read_out = self.model.read_out
        if not isinstance(read_out, Outputs):
            return answers
        last = len(answers) - 1
        several = {
            name: part.reads_several
            for name, part in zip(read_out.names, read_out.parts, strict=True)
        }
        return [
            each and {k: v for k, v in each.items() if i == last or several[k]}
            for i, each in enumerate(answers)
        ]

    def joined(self, answers: list[Any]) -> Any:
        """The answers as one answer."""
        read_out = self.model.read_out
        return read_out.join(answers, self.length) if read_out.reads_several else answers[0]

    def held(self, stream: int, slot: int) -> str:
        """The name of a number of a stream, or of a value that is read out."""
        if stream <= len(self.steps):
            return self.model.stream.held(slot, stream)
        read_out = self.model.read_out
        if isinstance(read_out, MultiClass):
            return f"score of the label {read_out.labels[slot]!r}"
        return "value" if len(read_out.W_out) == 1 else f"value {slot}"

    def layer(self, stream: int) -> int | None:
        """The layer of the step before a stream, if it is in one."""
        return self.steps[stream - 1].layer if 0 < stream <= len(self.steps) else None

    def position(self, stream: int, row: int) -> int:
        """The position of a row, from 1; BOS has the position 0."""
        front = len(self.model.embedding.front)
        start = 0 if stream <= len(self.steps) else self.model.rows_read(self.length).start
        return row + start + 1 - front


def average_hard(model: Transformer) -> Transformer:
    """The ideal of a model: average-hard attention for softmax."""
    layers = [
        replace(
            layer,
            heads=tuple(
                replace(head, weighting="average-hard") if not head.weighting.is_hard else head
                for head in layer.heads
            ),
        )
        for layer in model.layers
    ]
    return replace(model, layers=tuple(layers))


IDEALS = (EXACT.name, "interval")
"""Arithmetics of the ideal: the second where a norm or a GELU is irrational."""


@dataclass(frozen=True, eq=False)
class IdealRun:
    """The run of a model without rounding: its streams and values read out, and its answers."""

    stepwise: Stepwise
    numbers: tuple[Array, ...]
    answers: list[Any]

    @property
    def answer(self) -> Any:
        """The whole answer."""
        return self.stepwise.joined(self.answers)


def ideal_run(model: Transformer, x: Sequence[Symbol]) -> IdealRun:
    """The run of a model without rounding, with average-hard attention for softmax.

    Raises:
        InvalidValue: for answers that are not right or wrong, and for a model that neither exact
            arithmetic nor intervals evaluate on the input.
        UnknownSymbol, InputTooLong, InputTooLarge: as `Transformer.run`.

    """
    if isinstance(model.read_out, LanguageModel | RealVector):
        raise InvalidValue(
            "the model must have answers that are right or wrong",
            received=f"a model with {type(model.read_out).__name__}, which gives numbers",
            where="diagnose",
            remedy="give a recognizer or a tagger",
        )
    hard = average_hard(model)
    hard.admit_length(x)
    refusals = []
    for name in IDEALS:
        ideal = Stepwise(hard, len(x), number_system(name))
        try:
            numbers = ideal.numbers(x)
            answers = ideal.answers(numbers[-1])
        except (NotRepresentable, UndefinedValue, ArithmeticError) as refusal:
            refusals.append(refusal)
        else:
            return IdealRun(ideal, numbers, answers)
    raise InvalidValue(
        "the model must have an exact run to compare with",
        received=f"a model that exact arithmetic and intervals refuse ({refusals[-1]})",
        where="diagnose",
        remedy="give a model with ReLU networks, and norms with ε > 0",
    )
