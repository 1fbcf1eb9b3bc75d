"""Search for an input on which the answer in a format differs from the exact one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from transformist.arithmetic import FLOAT64, Arithmetic, Floating
from transformist.domains import Strings
from transformist.errors import NotFinite, TransformistError
from transformist.model import Symbol, Transformer
from transformist.verify.diagnosis.stepwise import average_hard

EVERY = 2**9
"""Every string of a length is tried where there are at most this many."""

LONGEST = 2**9
"""The longest inputs tried where the model has no N, or a larger one."""

DRAWN = 8
"""Number of strings drawn for each length."""

WORK = 2**20
"""Most scores, heads times pairs of positions, that are computed for inputs of one length."""


def failing_input(model: Transformer, a: Floating) -> Sequence[Symbol] | None:
    """A failing input; `None` where none is found.

    The inputs are every short string, then strings of doubling lengths up to N: a repeated word of
    one or two symbols, two blocks, and drawn strings. Their answers are compared with those of the
    same weights in float64 with average-hard attention, which is fast but not exact. So the wrong
    answer may be that of float64; `diagnose` compares with the exact run.
    """
    ideal = average_hard(model)
    longest = LONGEST if model.max_length is None else min(model.max_length, LONGEST)
    heads = max(1, sum(len(layer.heads) for layer in model.layers))
    for length in _lengths(longest):
        tried: list[Sequence[Symbol]] = list(dict.fromkeys(_of_length(model.alphabet, length)))
        tried = tried[: max(1, WORK // (heads * (length + 2) ** 2))]
        wanted, got = _answers(ideal, tried, FLOAT64), _answers(model, tried, a)
        for x, right, answer in zip(tried, wanted, got, strict=True):
            if right is not None and answer != right:
                return x
    return None


def _lengths(longest: int) -> Iterator[int]:
    """1, 2, … to 8, then half as long again each, and the longest."""
    length = 1
    while length < longest:
        yield length
        length = length + 1 if length < 8 else length * 3 // 2
    yield longest


def _of_length(alphabet: Sequence[Symbol], length: int) -> Iterator[Any]:
    strings = Strings(tuple(alphabet), lambda _: ())
    if len(alphabet) ** length <= EVERY:
        yield from strings.every(length, length)
        return
    pairs = list(itertools.permutations(alphabet, 2))
    words = [*((each,) for each in alphabet), *pairs]
    made = [(word * length)[:length] for word in words]
    for parts in (2, 4, 8):
        made += [
            (one,) * (length - length // parts) + (two,) * (length // parts) for one, two in pairs
        ]
    one_each = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in alphabet)
    yield from ("".join(map(str, each)) if one_each else each for each in made)
    yield from strings.drawn(length, DRAWN, seed=0)


def _answers(model: Transformer, inputs: Sequence[Any], a: Arithmetic) -> list[Any]:
    """The answers, `None` where an input has none."""
    try:
        return model.answers(inputs, a)
    except NotFinite:
        if len(inputs) == 1:
            return [None]
    except TransformistError:
        return [None] * len(inputs)
    middle = len(inputs) // 2
    return _answers(model, inputs[:middle], a) + _answers(model, inputs[middle:], a)
