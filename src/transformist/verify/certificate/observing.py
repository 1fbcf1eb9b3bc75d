"""What slots hold on short inputs, exactly: laws that are assumed where they do not follow."""

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
"""Inputs are tried one and all up to the length of which there are at most so many."""


@dataclass(frozen=True)
class Observations:
    """What was met on every input up to a length, in rationals, with hard attention for softmax.

    Attributes:
        length: the inputs are up to this long.
        held: for a slot and a sublayer the least and largest numbers at each kind of row.

    """

    length: int = 0
    held: Mapping[tuple[int, int], Rows] = field(default_factory=dict)


def observe(model: Transformer, most: int) -> Observations:
    """The ranges of all slots on short inputs, up to the length `most`."""
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
    if len({kind for _, kind in met}) < len(kinds):
        return Observations()  # not every symbol has been met
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


def has_no_ties(model: Transformer, most: int) -> tuple[bool, int]:
    """Whether one label is the largest on every short input, exactly, and how long these are."""
    hard, length = hardened(model), longest(model, most)
    exact = number_system("exact")
    for n in range(_shortest(model), length + 1):
        for rows in hard.values(list(itertools.product(model.alphabet, repeat=n)), "exact"):
            listed = [list(row) for row in exact.numbers(rows)]
            if any(row.count(max(row)) > 1 for row in listed):
                return False, n
    return True, length


def _shortest(model: Transformer) -> int:
    """The length of the shortest input."""
    return 0 if model.embedding.front or model.read_out.at == "every" else 1


def longest(model: Transformer, most: int) -> int:
    """The length up to which all inputs are few, at most `most`."""
    size, length = len(model.alphabet), 0
    while length < most and sum(size**n for n in range(length + 2)) <= INPUTS:
        length += 1
    return length


def hardened(model: Transformer) -> Transformer:
    """The model with average-hard attention for softmax."""
    layers = []
    for layer in model.layers:
        heads = [
            head if head.weighting.is_hard else replace(head, weighting="average-hard")
            for head in layer.heads
        ]
        layers.append(replace(layer, heads=tuple(heads)))
    return replace(model, layers=tuple(layers))
