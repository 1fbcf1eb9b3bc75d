"""Strings over an alphabet, and how they are covered."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

String: TypeAlias = "str | tuple[int, ...]"
"""A string where symbols are characters, a tuple where they are whole numbers."""


@dataclass(frozen=True)
class Strings:
    """Strings over an alphabet: every one to a length, then chosen and drawn ones.

    Attributes:
        alphabet: the symbols.
        hard: strings of about a given length on which a construction is most likely to fail.
    """

    alphabet: tuple[Any, ...]
    hard: Callable[[int], Sequence[Any]]

    def __str__(self) -> str:
        return f"strings over {{{', '.join(map(str, self.alphabet))}}}"

    def every(self, length: int, shortest: int = 0) -> Iterator[String]:
        """Every string of `shortest` to `length` symbols, the shorter ones first."""
        for n in range(shortest, length + 1):
            yield from map(self._string, itertools.product(self.alphabet, repeat=n))

    def drawn(self, length: int, count: int, seed: int) -> list[String]:
        """`count` strings drawn evenly over lengths up to `length` and over the alphabet."""
        source = random.Random(f"{seed} {length}")
        lengths = [source.randint(0, length) for _ in range(count)]
        return [self._string(tuple(source.choices(self.alphabet, k=n))) for n in lengths]

    def _string(self, symbols: tuple[Any, ...]) -> String:
        """The symbols as a str where every one is a character."""
        if all(isinstance(symbol, str) and len(symbol) == 1 for symbol in self.alphabet):
            return "".join(symbols)
        return symbols
