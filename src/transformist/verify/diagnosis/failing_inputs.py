"""Search for an input on which the answer in a format differs from the exact one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transformist.arithmetic import FLOAT64, Arithmetic, Floating
from transformist.domains import GrownStrings, Strings
from transformist.errors import NotFinite, TransformistError
from transformist.model import Symbol, Transformer
from transformist.verify.diagnosis.stepwise import average_hard
from transformist.verify.recognizer_strings import grown_strings

EVERY = 2**9
"""Every string of a length is tried where there are at most this many."""

LONGEST = 2**9
"""The longest inputs tried where the model has no N, or a larger one."""

DRAWN = 8
"""Strings drawn for each length, and most strings grown."""

WORK = 2**20
"""Most scores, heads times pairs of positions, that are computed for inputs of one length."""

OF_ONE_LENGTH = 2**10
"""Most strings of one length. An alphabet of 300 symbols has 90,000 words of two symbols."""


@dataclass(frozen=True)
class Tried:
    """Strings that a search has compared.

    Attributes:
        failing: the first string on which the answers differ; `None` where there is none.
        strings: their number.
        longest: length of the longest one.

    """

    failing: Sequence[Symbol] | None
    strings: int
    longest: int


def failing_input(model: Transformer, a: Floating, max_strings: int, seed: int) -> Tried:
    """Search for a failing input among at most `max_strings` strings.

    The inputs are every short string, then strings of growing lengths up to N: a repeated word of
    one or two symbols, two blocks, strings drawn with the seed, and for a recognizer grown strings.
    The limit `WORK` leaves the last of these out at large lengths. Their answers are compared with
    those of the same weights in float64 with average-hard attention, which is fast but not exact.
    So the wrong answer may be that of float64; `diagnose` compares with the exact run.
    """
    ideal = average_hard(model)
    grown = grown_strings(ideal)
    longest = LONGEST if model.max_length is None else min(model.max_length, LONGEST)
    heads = max(1, sum(len(layer.heads) for layer in model.layers))
    strings = reached = 0
    for length in _lengths(longest):
        # A head has a score for each pair of rows; two rows cover symbols in front and at the back.
        by_work = max(1, WORK // (heads * (length + 2) ** 2))
        # A length takes at most `WORK` scores, or one string, so a search with few heads tries more
        # strings of each length than one with many.
        most = min(by_work, OF_ONE_LENGTH, max_strings - strings)
        if not most:
            break
        tried = _some_of_length(model.alphabet, length, most, seed, grown)
        strings, reached = strings + len(tried), length
        wanted, got = _answers(ideal, tried, FLOAT64), _answers(model, tried, a)
        for x, right, answer in zip(tried, wanted, got, strict=True):
            if right is not None and answer != right:
                return Tried(x, strings, reached)
    return Tried(None, strings, reached)


def _some_of_length(
    alphabet: Sequence[Symbol], length: int, most: int, seed: int, grown: GrownStrings | None = None
) -> list[Sequence[Symbol]]:
    """At most `most` different strings of a length."""
    # The strings are made one by one: all pairs of a large alphabet would not fit in memory. A
    # dictionary keeps the order, and each string once: at length 1 a word of two is cut to one.
    found: dict[Sequence[Symbol], None] = {}
    for x in _of_length(alphabet, length, seed, grown):
        if len(found) == most:
            break
        found[x] = None
    return list(found)


def _lengths(longest: int) -> Iterator[int]:
    """1, 2, … to 8, then each half as long again as the one before, and `longest`."""
    length = 1
    while length < longest:
        yield length
        length = length + 1 if length < 8 else length * 3 // 2
    yield longest


def _of_length(
    alphabet: Sequence[Symbol], length: int, seed: int, grown: GrownStrings | None
) -> Iterator[Any]:
    strings = Strings(tuple(alphabet), lambda _: ())
    if len(alphabet) ** length <= EVERY:
        yield from strings.every(length, length)
        return
    one_each = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in alphabet)
    for each in _regular(alphabet, length):
        yield "".join(map(str, each)) if one_each else each
    yield from strings.drawn(length, DRAWN, seed)
    if grown is not None:
        yield from grown.of_length(length, DRAWN, seed)


def _regular(alphabet: Sequence[Symbol], length: int) -> Iterator[tuple[Symbol, ...]]:
    """Repeated words of one and of two symbols, and two blocks of one symbol each."""
    for symbol in alphabet:
        yield (symbol,) * length
    for pair in itertools.permutations(alphabet, 2):
        yield (pair * length)[:length]
    for parts in (2, 4, 8):
        for one, two in itertools.permutations(alphabet, 2):
            yield (one,) * (length - length // parts) + (two,) * (length // parts)


def _answers(model: Transformer, inputs: Sequence[Any], a: Arithmetic) -> list[Any]:
    """The answers, `None` where an input has none."""
    try:
        return model.answers(inputs, a)
    except NotFinite:
        if len(inputs) == 1:
            return [None]
    except TransformistError:
        return [None] * len(inputs)
    # One input that overflows makes the whole list refused: halves find it, and answer the others.
    middle = len(inputs) // 2
    return _answers(model, inputs[:middle], a) + _answers(model, inputs[middle:], a)
