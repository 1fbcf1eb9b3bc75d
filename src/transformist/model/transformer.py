"""The transformer: Definition 2.1 of the Cookbook."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

from transformist.arithmetic import Arithmetic, Array, number_system, whole_number
from transformist.deferred import Library
from transformist.errors import (
    InputTooLarge,
    InputTooLong,
    InvalidValue,
    UnknownSymbol,
    require_type,
)
from transformist.model.definition import Definition, observe, part, several
from transformist.model.embedding import BOS, CLS, EOS, Embedding, Symbol
from transformist.model.layer import (
    Layer,
    named_layers,
    passed_through,
    require_widths,
    steps,
)
from transformist.model.normalization import LayerNorm
from transformist.model.patching import Patch, read_patch, replaced, stream_number
from transformist.model.read_out import EACH, LanguageModel, Outputs, ReadOut
from transformist.model.stream import Stream
from transformist.model.trace import Trace
from transformist.model.weights_table import HasWeights, NamedPart

_NOTEBOOK = Library("transformist.report.notebook_html")
"""What notebooks show, imported when a notebook asks for it."""

_FIGURES = Library("transformist.figures")
"""The figures, imported when one is drawn: they need matplotlib."""

_BATCH = 2**12
"""Rows, about, of inputs of one length that `answers` evaluates together."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Transformer(Definition, HasWeights):
    """A transformer (Definition 2.1): embedding, layers, read-out.

    Attributes:
        stream: the names of the d coordinates of the residual stream.
        embedding: we and pe, with the special symbols the model adds.
        layers: the transformer layers, counted from 0.
        read_out: what becomes of the final vectors (2.2.3).
        final_norm: the norm after the last layer of a pre-norm model (6.2).
        max_length: N, the longest input it is built for, specials not counted; `None` for any.
        built_for: the arithmetic whose margins its constants keep; `None` where that is not known.
        changes: what `tf.ablate` removed, in words. A file that is saved does not keep it.

    Raises:
        ShapeMismatch: when a part does not have the width of the stream.
        UnknownName: for an arithmetic that does not exist.

    """

    stream: Stream = part(Stream)
    embedding: Embedding = part(Embedding)
    layers: tuple[Layer, ...] = several(Layer)
    read_out: ReadOut = part(ReadOut)
    final_norm: LayerNorm | None = part(LayerNorm, NoneType, default=None)
    max_length: int | None = None
    built_for: str | None = part(str, NoneType, default=None)
    changes: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_length is not None:
            longest = whole_number(
                self.max_length,
                0,
                "max_length must be a whole number of at least 0, or None",
                where="Transformer",
                remedy="give the length of the longest input",
            )
            object.__setattr__(self, "max_length", longest)
        if self.built_for is not None:
            number_system(self.built_for)
        ends = ("embedding", self.embedding.width), ("read-out", self.read_out.W_out.shape[1])
        require_widths(self.stream, self.layers, self.final_norm, ends)
        specials = (*self.embedding.front, *self.embedding.back)
        if self.read_out.at == EACH and self.embedding.back:
            raise InvalidValue(
                "outputs at the last and at every position need an input without symbols after it",
                received=f"the special symbols {self.embedding.back} at the back",
                where="Transformer",
                remedy="add them in front",
            )
        if self.read_out.at == "cls" and specials.count(CLS) != 1:
            raise InvalidValue(
                "a read-out at CLS needs an embedding that adds CLS once",
                received=f"special symbols {specials}",
                where="Transformer",
                remedy="add CLS in front or at the back, or read the last position",
            )

    @property
    def width(self) -> int:
        """d, the width of the residual stream."""
        return self.stream.width

    @property
    def alphabet(self) -> tuple[Symbol, ...]:
        """The symbols an input may hold."""
        return self.embedding.alphabet

    def __call__(self, x: Sequence[Symbol], arithmetic: Arithmetic | str = "float64") -> Any:
        """The answer; `run` gives the trace as well."""
        return self.run(x, arithmetic).answer

    def __repr__(self) -> str:
        """The size, in a line."""
        positions = self.embedding.positions
        longest = self.max_length or (positions and positions.max_length)
        built = "any length" if longest is None else f"N = {longest}"
        changes = "".join(f", {each}" for each in self.changes)
        return f"Transformer({len(self.layers)} layers, width {self.width}, {built}{changes})"

    def run(
        self,
        x: Sequence[Symbol],
        arithmetic: Arithmetic | str = "float64",
        patch: Patch | None = None,
    ) -> Trace:
        """Evaluate the definition on one input and keep the streams.

        Args:
            x: a string, or a sequence of symbols.
            arithmetic: the number system, by name.
            patch: the numbers to put into the stream, each at (after, position, slot): the step
                after which it is put there (its name, or its number in `Trace.streams`), the
                position (from 1; BOS in front has 0), and the slot. All later steps read them.

        Raises:
            UnknownSymbol: for a symbol outside the alphabet.
            InputTooLong: for more than `max_length` symbols.
            InputTooLarge: for more attention scores than the dense reference computes.
            NotRepresentable: for what the arithmetic cannot hold.
            InvalidValue, UnknownName: for a place of a patch that is not there.

        Example: with a violation written at the second bracket, the string is refused.
            >>> import transformist as tf
            >>> model = tf.recipe("dyck-1").build(max_length=4)
            >>> model("(())"), model.run(
            ...     "(())", patch={("layer 0 feed-forward", 2, "violation"): 1}
            ... ).answer
            (True, False)

        """
        a = number_system(arithmetic)
        streams = tuple(self._streams([x], a) if patch is None else self._patched(x, a, patch))
        answer = self._read(streams[-1][1], len(x), a)[0]
        names = [name for name, _ in streams]
        patched = tuple(
            (names[stream_number(after, names)], int(position), slot)
            for after, position, slot in patch or ()
        )
        steps_of_x = tuple((name, z[0]) for name, z in streams)
        return Trace(self, tuple(x), a, steps_of_x, answer, patched)

    def _repr_html_(self) -> str:
        """The size and the slots, for notebooks."""
        html: str = _NOTEBOOK.model_html(self)
        return html

    def plot(self, *, layers: Collection[int] | None = None) -> Any:
        """Draw the circuit from the weights: slots as wires, heads and hidden units as nodes.

        Args:
            layers: the layers to draw, by number; every part of the model when left out.

        Returns:
            A matplotlib `Figure`; its label is a description in words. A model too large to draw
            whole is drawn in part, and the figure says so.

        Raises:
            InvalidValue: for a layer that is not there, and without matplotlib (extra `figures`).

        """
        return _FIGURES.circuit(self, layers=layers)

    def streams(
        self, inputs: Iterable[Sequence[Symbol]], arithmetic: Arithmetic | str = "float64"
    ) -> Iterator[tuple[str, Array]]:
        """The streams of inputs of one length, evaluated together; none is kept.

        Args:
            inputs: strings, or sequences of symbols, all of one length.
            arithmetic: the number system, by name.

        Raises:
            InvalidValue: for inputs of several lengths, or none.
            UnknownSymbol, InputTooLong, InputTooLarge, NotRepresentable: as `run`.

        Returns:
            One after the other, as `Trace.streams` has them for one input: the name of a step, and
            the vectors after it, an array of the arithmetic, shape (inputs, rows, d).

        Example:
            >>> import transformist as tf
            >>> model = tf.recipe("dyck-1").build(max_length=4)
            >>> [(name, z.shape) for name, z in model.streams(["()", "))"])][-1]
            ('layer 1 feed-forward', (2, 3, 6))

        """
        given = _listed(inputs, "Transformer.streams")
        lengths = sorted({length_of(x) for x in given})
        if len(lengths) != 1:
            raise InvalidValue(
                "inputs that are evaluated together must have one length",
                received=f"lengths {', '.join(map(str, lengths))}" if lengths else "no inputs",
                where="Transformer.streams",
                remedy="call it once for each length, or use answers",
            )
        return self._streams(given, number_system(arithmetic))

    def answers(
        self, inputs: Iterable[Sequence[Symbol]], arithmetic: Arithmetic | str = "float64"
    ) -> list[Any]:
        """The answers for many inputs; inputs of one length are evaluated together."""
        a = number_system(arithmetic)
        given = _listed(inputs, "Transformer.answers")
        answers: list[Any] = [None] * len(given)
        for block, length, z in self._in_blocks(given, a):
            for index, answer in zip(block, self._read(z, length, a), strict=True):
                answers[index] = answer
        return answers

    def values(
        self, inputs: Iterable[Sequence[Symbol]], arithmetic: Arithmetic | str = "float64"
    ) -> list[Array]:
        """Numbers W_out z + b_out at the positions read, of which the read-out makes its answers.

        Args:
            inputs: strings, or sequences of symbols.
            arithmetic: the number system, by name.

        Raises:
            UnknownSymbol, InputTooLong, InputTooLarge, NotRepresentable: as `run`.

        Returns:
            For each input an array of the arithmetic, shape (positions read, k).

        """
        a = number_system(arithmetic)
        given = _listed(inputs, "Transformer.values")
        values: list[Array] = [None] * len(given)
        for block, length, z in self._in_blocks(given, a):
            y = self.read_out.values(z[:, self.rows_read(length)], a)
            for row, index in enumerate(block):
                values[index] = y[row]
        return values

    def _in_blocks(
        self, given: list[Sequence[Symbol]], a: Arithmetic
    ) -> Iterator[tuple[list[int], int, Array]]:
        """Some inputs of one length at a time: their indices, the length, the final vectors."""
        by_length: dict[int, list[int]] = {}
        for index, x in enumerate(given):
            by_length.setdefault(length_of(x), []).append(index)
        for length, indices in by_length.items():
            size = max(1, _BATCH // (length + 1))
            for start in range(0, len(indices), size):
                block = indices[start : start + size]
                *_, (_, z) = self._streams([given[index] for index in block], a)
                yield block, length, z

    def log_probability(
        self, x: Sequence[Symbol], arithmetic: Arithmetic | str = "float64"
    ) -> float:
        """log P(x) of an autoregressive language model (Eq. 20): Σ log P(xᵢ | x₁ … xᵢ₋₁), EOS last.

        Raises:
            InvalidValue: when the model is not an autoregressive language model.
            InputTooLong, UnknownSymbol, InputTooLarge: as `run`.

        Returns:
            The natural logarithm, −inf where a symbol has probability 0.
        """
        distributions = self._next_symbols(x, number_system(arithmetic))
        # A format may round a probability to 0, whose logarithm is −∞; `math.log` would refuse it.
        chances = [each[symbol] for each, symbol in zip(distributions, (*x, EOS), strict=True)]
        return math.fsum(math.log(chance) if chance else -math.inf for chance in chances)

    def log_probability_given(
        self,
        y: Sequence[Symbol],
        x: Sequence[Symbol],
        arithmetic: Arithmetic | str = "float64",
    ) -> float:
        """log P(y | x) of a language model that reads x alone (Eq. 20): Σ log P(yᵢ | x, i).

        The model may have any mask, and gives a distribution at every position of x.

        Args:
            y: the string whose probability is asked for, of the length of x.
            x: the input.
            arithmetic: the number system, by name.

        Raises:
            InvalidValue: when the read-out gives no distribution at every position, and for a y of
                another length.
            UnknownSymbol: for a symbol of y that is none of the read-out's labels.
            InputTooLong, UnknownSymbol, InputTooLarge: as `run`.

        Returns:
            The natural logarithm, −inf where a symbol has probability 0.

        """
        if not isinstance(self.read_out, LanguageModel) or self.read_out.at != "every":
            raise InvalidValue(
                "the read-out must give a distribution at every position",
                received=f"{type(self.read_out).__name__} at {self.read_out.at}",
                where="Transformer.log_probability_given",
                remedy="give the model a LanguageModel read-out with at='every'",
            )
        if length_of(y) != length_of(x):
            raise InvalidValue(
                "y must have a symbol for every position of x",
                received=f"{len(y)} symbols for {len(x)} positions",
                where="Transformer.log_probability_given",
                remedy="give strings of one length",
            )
        labels = dict.fromkeys(self.read_out.labels)
        for i, symbol in enumerate(y, start=1):
            try:
                is_label = symbol in labels
            except TypeError:  # an array or a list, which has no hash
                is_label = False
            if not is_label:
                raise UnknownSymbol(
                    "every symbol of y must be one of the read-out's labels",
                    received=f"{symbol!r:.40} at position {i}",
                    remedy="remove it, or give the read-out a label for it",
                )
        given = zip(self(x, arithmetic), y, strict=True)
        chances = [distribution[symbol] for distribution, symbol in given]
        return math.fsum(math.log(chance) if chance else -math.inf for chance in chances)

    def generate(
        self,
        prompt: Sequence[Symbol] = "",
        max_new_tokens: int = 20,
        arithmetic: Arithmetic | str = "float64",
    ) -> list[Symbol]:
        """Continue a prompt with the most probable symbol, again and again, until EOS.

        Args:
            prompt: what to continue.
            max_new_tokens: how many symbols to add at most.
            arithmetic: the number system, by name.

        Returns:
            The new symbols, without the prompt and without EOS. Of equally probable symbols, the
            first among the read-out's labels is taken.

        Raises:
            InvalidValue: when the model is not an autoregressive language model.
            InputTooLong, UnknownSymbol, InputTooLarge: as `run`.
        """
        a = number_system(arithmetic)
        most = whole_number(
            max_new_tokens,
            0,
            "max_new_tokens must be a whole number of at least 0",
            where="generate",
            remedy="give how many symbols to add at most",
        )
        length_of(prompt)  # refuses an argument that is not a sequence
        new: list[Symbol] = []
        while len(new) < most:
            distribution = self._next_symbols((*prompt, *new), a)[-1]
            # `max` returns the first of equal entries, and the mapping has the labels in order.
            symbol = max(distribution, key=distribution.__getitem__)
            if symbol == EOS:
                break
            new.append(symbol)
        return new

    def _next_symbols(self, x: Sequence[Symbol], a: Arithmetic) -> list[dict[Symbol, float]]:
        """The distributions of the symbol after BOS, after x₁, …, after xₙ."""
        self._require_autoregressive()
        *_, (_, z) = self._streams([x], a)
        distributions: list[dict[Symbol, float]] = self.read_out(z[0], len(x), a)
        return distributions

    def _require_autoregressive(self) -> None:
        # The distribution of symbol i + 1 must be a function of symbols 1 to i. A mask that looks
        # ahead would show the row the symbol that it predicts, and a function of n would show where
        # the string ends. Symbols at the back would stand in other rows for each continuation.
        # Without BOS no row predicts the first symbol, and without EOS among the labels no
        # probability is left for the end.
        masks = {head.mask for layer in self.layers for head in layer.heads}
        ahead = sorted(mask for mask in masks if mask.looks_ahead)
        positions = self.embedding.positions
        lacking = {
            "a read-out with probabilities": not isinstance(self.read_out, LanguageModel),
            "EOS among the labels": EOS not in getattr(self.read_out, "labels", ()),
            "BOS in front, alone": self.embedding.front != (BOS,) or bool(self.embedding.back),
            f"future masks (it has {', '.join(ahead)})": bool(ahead),
            "positions that do not know n": positions is not None and positions.knows_n,
        }
        missing = [need for need, is_missing in lacking.items() if is_missing]
        if missing:
            raise InvalidValue(
                "an autoregressive language model must predict each symbol from those before it",
                received=f"a model without {' and '.join(missing)}",
                where="Transformer",
                remedy="give it LanguageModel over EOS and the alphabet, BOS, and future masks",
            )

    def _streams(
        self, inputs: list[Sequence[Symbol]], a: Arithmetic
    ) -> Iterator[tuple[str, Array]]:
        """The streams (batch, rows, d) of inputs of one length, after each step, with its name."""
        self._admit(inputs[0], a)
        z = self.embedding(inputs, a)
        yield "embedding", z
        yield from passed_through(z, self.layers, self.final_norm, a)

    def _patched(
        self, x: Sequence[Symbol], a: Arithmetic, patch: Patch
    ) -> Iterator[tuple[str, Array]]:
        """The streams (1, rows, d) of one input, with other numbers at some places."""
        self._admit(x, a)
        z, functions = self.embedding([x], a), list(steps(self.layers, self.final_norm))
        names = ["embedding", *(name for name, _ in functions)]
        rows, front = z.shape[1], len(self.embedding.front)
        # The whole patch is read before the first layer is evaluated, so that a wrong place is
        # refused at once.
        cells = read_patch(patch, self.stream, names, rows, front, a)
        z = replaced(z, cells.get(0, ()), a)
        yield names[0], z
        for number, (name, function) in enumerate(functions, start=1):
            z = replaced(function.on(z, a), cells.get(number, ()), a)
            yield name, z

    def _read(self, z: Array, n: int, a: Arithmetic) -> list[Any]:
        """The answers from the final vectors (batch, rows, d) of inputs of length n."""
        rows = self.rows_read(n)
        if self.read_out.reads_several:
            inputs = [z[each, rows] for each in range(z.shape[0])]
            return [self.read_out.join(self.read_out(each, n, a), n) for each in inputs]
        return self.read_out(z[:, rows.start], n, a)

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of embedding, layers, final norm and read-out, under the names of the slots."""
        last = sum(len(list(layer.sublayers())) for layer in self.layers)
        yield from self.embedding.named_parts("embedding", (), self.stream.names(0))
        yield from named_layers(self.stream, self.layers, self.final_norm)
        yield from self.read_out.named_parts("read-out", self.stream.names(last), ())

    def rows_read(self, n: int) -> slice:
        """The rows of the final vectors that the read-out reads, of an input of length n."""
        # The rows are the symbols in front, the n symbols of the input, and the symbols at the
        # back. For the empty input `EACH` reads the row before the input, which is BOS: a part at
        # the last position needs one row.
        front, back = self.embedding.front, self.embedding.back
        if self.read_out.at == "every":
            return slice(len(front), len(front) + n)
        if self.read_out.at == EACH:
            return slice(len(front) - (n == 0), len(front) + n)
        row = len(front) + n + len(back) - 1
        if self.read_out.at == "cls":
            row = (*front, *[None] * n, *back).index(CLS)
        return slice(row, row + 1)

    def part(self, name: str) -> Transformer:
        """The model with one of several outputs alone, from the same final vectors.

        Raises:
            UnknownName: for an output that the model does not have.

        """
        if not isinstance(self.read_out, Outputs):
            raise InvalidValue(
                "a model must have several outputs, if one of them is asked for",
                received=f"a model with {type(self.read_out).__name__}",
                where="Transformer.part",
                remedy="use the model itself",
            )
        return replace(self, read_out=self.read_out.part(name))

    def admit_length(self, x: Sequence[Symbol]) -> None:
        """Refuse an input by its length, before any work is done.

        Raises:
            InputTooLong: for more than `max_length` symbols.
            InvalidValue: if the input is not a sequence, or has no position to read.

        """
        n = length_of(x)
        if self.max_length is not None and n > self.max_length:
            raise InputTooLong(
                f"an input must have a length of at most N = {self.max_length}",
                received=f"length {n}",
                remedy=f"build it with max_length={n} or more",
            )
        specials = len(self.embedding.front) + len(self.embedding.back)
        if n + specials == 0 and self.read_out.at != "every":
            raise InvalidValue(
                "an input must have at least one symbol where the model adds none",
                received="the empty input",
                remedy="give a symbol, or a model with BOS",
            )

    def longest_dense(self, arithmetic: Arithmetic | str) -> int | None:
        """The longest input whose attention scores an arithmetic computes; `None` without heads.

        A head computes a score for each pair of rows; `most_scores` limits those of all heads.

        Example:
            >>> import transformist as tf
            >>> tf.recipe("dyck-1").build().longest_dense("float64")
            46339

        """
        # heads · rows² ≤ most if and only if rows² ≤ ⌊most / heads⌋, rows counting added symbols.
        a, heads = number_system(arithmetic), sum(len(layer.heads) for layer in self.layers)
        if not heads:
            return None
        added = len(self.embedding.front) + len(self.embedding.back)
        return math.isqrt(a.most_scores // heads) - added

    def _admit(self, x: Sequence[Symbol], a: Arithmetic) -> None:
        """Refuse an input by its length, and one that takes too many scores."""
        self.admit_length(x)
        n, longest = len(x), self.longest_dense(a)
        if longest is not None and n > longest:
            rows = len(self.embedding.front) + n + len(self.embedding.back)
            heads = sum(len(layer.heads) for layer in self.layers)
            raise InputTooLarge(
                f"an input must take at most {a.most_scores:,} attention scores in {a.name}",
                received=f"length {n}, which takes {heads * rows**2:,} "
                f"(a matrix of {rows**2 * 8 / 2**30:.1f} GiB a head in float64)",
                remedy=f"give at most {longest} symbols, or evaluate it by the structured engine",
            )
        observe(self, x, a)


def _listed(inputs: Any, where: str) -> list[Any]:
    """The inputs as a list.

    Raises:
        InvalidValue: for what cannot be gone through, or a string, whose symbols would be taken for
            inputs of length 1.

    """
    if isinstance(inputs, str):
        raise InvalidValue(
            "inputs must be a list of strings, not one string",
            received=f"{inputs!r:.60}",
            where=where,
            remedy=f"put the string in a list: {where.rpartition('.')[2]}([{inputs!r:.40}])",
        )
    # A 0-dimensional array has the method `__iter__`, which raises a TypeError.
    try:
        each = iter(inputs)
    except TypeError:
        raise InvalidValue(
            "inputs must be a list of strings, or of sequences of symbols",
            received=repr(inputs)[:60],
            where=where,
            remedy="put the input in a list",
        ) from None
    return list(each)


def length_of(x: Any) -> int:
    """Return the number of symbols of an input.

    Raises:
        InvalidValue: if the argument is not a sequence.

    """
    # A 0-dimensional array has the method `__len__`, which raises a TypeError.
    try:
        return len(x)
    except TypeError:
        raise InvalidValue(
            "an input must be a string, or a sequence of symbols",
            received=repr(x)[:60],
            where="Transformer",
            remedy="give a string, a list or a tuple",
        ) from None


def require_transformer(model: object, where: str) -> None:
    """Require a model on strings.

    Raises:
        InvalidValue: for anything else.

    """
    require_type(
        model,
        Transformer,
        "the model must be a Transformer",
        where=where,
        remedy="give tf.compile(program) or tf.recipe('dyck-1').build()",
    )
