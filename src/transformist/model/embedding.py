"""The embedding of strings (2.2.1), special symbols (3.4) and positions (3.5)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import Arithmetic, Array
from transformist.errors import (
    InvalidValue,
    ShapeMismatch,
    UnknownName,
    UnknownSymbol,
    require_type,
)
from transformist.model.definition import several
from transformist.model.parameter import Parameter, Parameterized, weights
from transformist.model.position_encoding import PositionEncoding, PositionFunctions
from transformist.model.stream import LinearForm, Stream
from transformist.model.weights_table import HasWeights, NamedPart, named_matrix, numbered

Symbol: TypeAlias = "str | int | float | Fraction | tuple[Any, ...]"
"""Symbol of an input; a tuple consists of symbols."""

BOS, EOS, CLS = "BOS", "EOS", "CLS"
"""Beginning of sequence, end of sequence, classification: symbols that a model adds itself."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Embedding(Parameterized, HasWeights):
    """z⁽⁰⁾ᵢ = we(xᵢ) + peₙ(i) (Eq. 2), for the input with the symbols that the model adds.

    Attributes:
        symbols: the vocabulary, in the order of the rows of `vectors`.
        vectors: the word embedding, shape (number of symbols, d).
        positions: pe, of the width of the vectors; `None` for no positions.
        front, back: the special symbols added before and after the input.

    Raises:
        ShapeMismatch, NotFinite: as for every weight; ShapeMismatch also for positions of another
            width.
        UnknownName: for a special symbol outside the vocabulary.
        InvalidValue: for a vocabulary with a symbol twice, or positions that are
            neither an encoding nor `None`.

    """

    symbols: tuple[Symbol, ...] = several(Hashable)
    vectors: Parameter = weights()
    positions: PositionEncoding | None = None
    front: tuple[str, ...] = several(str, default=())
    back: tuple[str, ...] = several(str, default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("vectors", (len(self.symbols), "d"), "a row for each symbol")
        if len(set(self.symbols)) != len(self.symbols):
            raise InvalidValue(
                "a vocabulary must hold each symbol once",
                received=repr(self.symbols),
                where="Embedding",
                remedy="remove the repeated symbol",
            )
        for special in (*self.front, *self.back):
            if special not in self.symbols:
                raise UnknownName.among("symbol", special, map(str, self.symbols), "Embedding")
        require_type(
            self.positions,
            PositionEncoding | None,
            "positions must be a position encoding, or None",
            where="Embedding",
            remedy="name slots of the stream with Embedding.of, or give PositionFunctions",
        )
        if self.positions is not None and self.positions.width != self.width:
            raise ShapeMismatch(
                f"positions must have the width of the word vectors, {self.width}",
                received=f"{type(self.positions).__name__} of width {self.positions.width}",
                where="Embedding",
                remedy="give positions as wide as the stream, or name its slots with Embedding.of",
            )

    @classmethod
    def of(
        cls,
        stream: Stream,
        words: Mapping[Any, LinearForm],
        positions: Mapping[str, str] | None = None,
        front: Sequence[str] = (),
        back: Sequence[str] = (),
    ) -> Embedding:
        """An embedding written with the slots of a stream.

        Args:
            stream: the slots.
            words: what each symbol writes.
            positions: for some slots, the name of a function in `POSITIONS`.
            front: the special symbols added before the input.
            back: those added after it.

        Raises:
            UnknownName: for a slot or a position function that does not exist.

        Example:
            >>> stream = Stream(("sign", "place"))
            >>> Embedding.of(
            ...     stream, {"(": {"sign": 1}, ")": {"sign": -1}}, positions={"place": "i/n"}
            ... ).vectors
            array([[ 1.,  0.],
                   [-1.,  0.]])

        """
        return cls(
            symbols=tuple(words),
            vectors=stream.reading(*words.values()),
            positions=_on_slots(stream, positions) if positions else None,
            front=tuple(front),
            back=tuple(back),
        )

    @property
    def alphabet(self) -> tuple[Symbol, ...]:
        """The symbols an input may hold: the vocabulary without the special symbols."""
        return tuple(s for s in self.symbols if s not in (*self.front, *self.back))

    @property
    def width(self) -> int:
        """d."""
        return int(self.vectors.shape[1])

    def encode(self, x: Sequence[Symbol], first: int = 1) -> list[int]:
        """Return the rows of the symbols of an input, specials included.

        Args:
            x: the symbols.
            first: the position of the first of them, in what is read piece by piece.

        Raises:
            UnknownSymbol: for a symbol outside the alphabet, with its position (from 1).

        """
        rows, allowed = self._rows, self._allowed
        if not _are_among(x, allowed):
            for i, symbol in enumerate(x, start=first):
                if not _are_among([symbol], allowed):
                    raise UnknownSymbol.among(
                        self.alphabet, symbol, i, "remove it, or build the model for it"
                    )
        return [rows[symbol] for symbol in (*self.front, *x, *self.back)]

    @cached_property
    def _rows(self) -> dict[Symbol, int]:
        """The row of each symbol."""
        return {symbol: row for row, symbol in enumerate(self.symbols)}

    @cached_property
    def _allowed(self) -> frozenset[Symbol]:
        """The symbols an input may hold."""
        return frozenset(self.alphabet)

    def __call__(self, inputs: Sequence[Sequence[Symbol]], a: Arithmetic) -> Array:
        """The embedded inputs, all of one length n: (batch, n + specials, d)."""
        length = len(inputs[0]) if inputs else 0
        words = self.rounded(a).vectors[np.array([self.encode(x) for x in inputs], dtype=np.int64)]
        if self.positions is None:
            return words
        # The symbols in front have the positions …, −1, 0, and those at the back n + 1, n + 2, …
        places = range(1 - len(self.front), length + len(self.back) + 1)
        return a.add(words, self.positions.at(places, length, a))

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The word vectors, a row for each symbol, and the parts of the positions."""
        added = [
            f"{' '.join(symbols)} {place} the input"
            for symbols, place in ((self.front, "before"), (self.back, "after"))
            if symbols
        ]
        writes = writes or numbered("output", self.width)
        vectors = named_matrix("vectors", self.symbols, writes, self.vectors)
        yield NamedPart(name or "embedding", " and ".join(added), (vectors,))
        if self.positions is not None:
            yield from self.positions.named_parts("positions", (), writes)


def _are_among(symbols: Sequence[object], allowed: frozenset[Symbol]) -> bool:
    """True if every symbol is allowed; a list, which has no hash, is not."""
    try:
        return allowed.issuperset(symbols)
    except TypeError:
        return False


def _on_slots(stream: Stream, positions: Mapping[str, str]) -> PositionFunctions:
    names: list[str | None] = [None] * stream.width
    for slot, name in positions.items():
        names[stream.index(slot)] = name
    return PositionFunctions(tuple(names))
