"""Observed ranges of slots on all short inputs, exactly; assumed where no law gives a range."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import number_system
from transformist.circuit import Rows
from transformist.laws import Range
from transformist.model import Transformer

INPUTS = 1500
"""Limit, for time: all inputs up to the longest length with at most this many are tried."""


@dataclass(frozen=True)
class Observations:
    """Ranges of slots on every input up to a length, in rationals, with hard attention for softmax.

    Attributes:
        length: the inputs are up to this long.
        held: for a slot and a sublayer the least and largest numbers at each kind of row.

    """

    length: int = 0
    held: Mapping[tuple[int, int], Rows] = field(default_factory=dict)


def observe(model: Transformer, most: int) -> Observations:
    """Observe the ranges of all slots on short inputs, up to the length `most`."""
    hard, length = hardened(model), longest(model, most)
    exact = number_system("exact")
    kinds = [*model.alphabet, *model.embedding.front]
    met: dict[tuple[int, int], list[NDArray[Any]]] = {}
    for n in range(_shortest(model), length + 1):
        inputs = list(itertools.product(model.alphabet, repeat=n))
        rows = np.array([[kinds.index(s) for s in (*model.embedding.front, *x)] for x in inputs])
        for sublayer, (_, stream) in enumerate(hard.streams(inputs, "exact")):
            values = exact.numbers(stream)
            for kind in np.unique(rows):
                seen = values[rows == kind]
                met.setdefault((sublayer, int(kind)), []).extend(
                    [seen.min(axis=0), seen.max(axis=0)]
                )
    # A symbol that no short input has would get no range at all: nothing is assumed then.
    if len({kind for _, kind in met}) < len(kinds):
        return Observations()
    return Observations(
        length,
        {
            (slot, sublayer): tuple(
                Range(*(end([each[slot] for each in met[sublayer, kind]]) for end in (min, max)))
                for kind in range(len(kinds))
            )
            for sublayer in {sublayer for sublayer, _ in met}
            for slot in range(model.width)
        },
    )


class TieScan:
    """Search for two labels that are the largest together, on all short inputs, exactly.

    The inputs of each length are tried once, however many lengths are asked for.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.hard = model, hardened(model)
        self.untried = _shortest(model)
        self.tied: int | None = None

    def __call__(self, most: int) -> tuple[bool, int]:
        """Return True and the longest length if it finds none; else False and their length."""
        length = longest(self.model, most)
        while self.tied is None and self.untried <= length:
            if _has_ties(self.hard, self.untried):
                self.tied = self.untried
            self.untried += 1
        if self.tied is not None and self.tied <= length:
            return False, self.tied
        return True, length


def _has_ties(hard: Transformer, n: int) -> bool:
    """True if two labels are the largest together at some position of an input of length n."""
    exact = number_system("exact")
    for rows in hard.values(list(itertools.product(hard.alphabet, repeat=n)), "exact"):
        largest = exact.maximal(rows, np.ones(rows.shape, bool))
        if (largest.sum(axis=-1) > 1).any():
            return True
    return False


def _shortest(model: Transformer) -> int:
    """Length of the shortest input."""
    return 0 if model.embedding.front or model.read_out.at == "every" else 1


def longest(model: Transformer, most: int) -> int:
    """Return the longest length, at most `most`, with at most `INPUTS` inputs up to it."""
    size, length = len(model.alphabet), 0
    # The sum counts the inputs up to length + 1, which is the next to be admitted.
    while length < most and sum(size**n for n in range(length + 2)) <= INPUTS:
        length += 1
    return length


def hardened(model: Transformer) -> Transformer:
    """Return the model with average-hard attention for softmax."""
    layers = []
    for layer in model.layers:
        heads = [
            head if head.weighting.is_hard else replace(head, weighting="average-hard")
            for head in layer.heads
        ]
        layers.append(replace(layer, heads=tuple(heads)))
    return replace(model, layers=tuple(layers))
