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

    def every(
        self, length: int, shortest: int = 0, prefix: tuple[Any, ...] = ()
    ) -> Iterator[String]:
        """Every string of `shortest` to `length` symbols with a prefix, the shorter ones first."""
        # A string shorter than the prefix does not begin with it.
        for n in range(max(shortest, len(prefix)), length + 1):
            for rest in itertools.product(self.alphabet, repeat=n - len(prefix)):
                yield self.joined((*prefix, *rest))

    def drawn(self, length: int, count: int, seed: int) -> list[String]:
        """`count` strings drawn evenly over lengths up to `length` and over the alphabet."""
        source = random.Random(f"{seed} {length}")
        lengths = [source.randint(0, length) for _ in range(count)]
        return [self.joined(tuple(source.choices(self.alphabet, k=n))) for n in lengths]

    def drawn_by_number(self, lengths: range, numbers: range, seed: int) -> Iterator[String]:
        """The strings with these numbers in an endless sequence of drawn ones.

        Each string is drawn by itself, evenly over the lengths and over the alphabet. So a number
        stands for the same string in every range.

        Example:
            >>> bits = Strings(("0", "1"), lambda _: ())
            >>> [*bits.drawn_by_number(range(3, 6), range(4), seed=0)][2:] == [
            ...     *bits.drawn_by_number(range(3, 6), range(2, 4), seed=0)
            ... ]
            True

        """
        for number in numbers:
            # A generator of its own for each number: no string depends on those drawn before it.
            source = random.Random(f"{seed} {lengths.start} {lengths.stop} {number}")
            n = source.choice(lengths)
            yield self.joined(tuple(source.choices(self.alphabet, k=n)))

    def joined(self, symbols: tuple[Any, ...]) -> String:
        """The string of these symbols: a str where every one is a character."""
        if all(isinstance(symbol, str) and len(symbol) == 1 for symbol in self.alphabet):
            return "".join(symbols)
        return symbols
