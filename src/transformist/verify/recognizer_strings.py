"""Grown strings of a model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from transformist.arithmetic import FLOAT64
from transformist.domains import GrownStrings
from transformist.errors import TransformistError
from transformist.model import Binary, Transformer

MOST_PAIRS = 2**20
"""Largest number of pairs of rows in the strings that are evaluated together."""


def grown_strings(model: Transformer) -> GrownStrings | None:
    """The grown strings of a recognizer, answered in float64; `None` for another model."""
    if not isinstance(model.read_out, Binary) or model.read_out.reads_several:
        return None

    def answers(strings: Sequence[Any]) -> list[bool | None]:
        found: list[bool | None] = []
        for length, alike in itertools.groupby(strings, key=len):
            while block := list(itertools.islice(alike, max(1, MOST_PAIRS // (length + 2) ** 2))):
                try:
                    found += model.answers(block, FLOAT64)
                except TransformistError:  # a number overflows, or a norm divides by 0
                    found += [None] * len(block)
        return found

    return GrownStrings(tuple(model.alphabet), answers, model.max_length)
