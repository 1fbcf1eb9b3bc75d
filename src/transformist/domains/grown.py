"""Long strings with the verdict that few short strings have, made of these."""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformist.domains.strings import String, Strings

Verdicts = Callable[[Sequence[String]], Sequence[bool | None]]
"""The verdicts of a recognizer on strings; `None` where it has none."""

WORDS = 2**8
"""Words are taken from every string up to the largest length with at most this many."""

TRIED = 4
"""So many strings are made for each one that is wanted; some have the other verdict."""


@dataclass(frozen=True)
class Grown:
    """Strings made of short ones that have the rarer verdict, and that have it too.

    Next to none of the long strings that are drawn evenly is well-nested, or a palindrome. These
    strings are: words with the verdict are put into each other or one after the other, or their
    symbols are repeated. What has the other verdict then is left out.

    Attributes:
        strings: every string over the alphabet.
        verdicts: of the recognizer.
        longest: the length of the longest string that it takes; `None` for any length.

    """

    strings: Strings
    verdicts: Verdicts
    longest: int | None = None

    @cached_property
    def words(self) -> tuple[tuple[Any, ...], ...]:
        """The short strings with the rarer verdict, without the empty one."""
        symbols, most = len(self.strings.alphabet), WORDS.bit_length()
        lengths = range(1, most if self.longest is None else min(most, self.longest) + 1)
        longest = max((n for n in lengths if symbols**n <= WORDS), default=0)
        every = [*self.strings.every(longest, 1)]
        verdicts = self.verdicts(every) if every else []
        decided = [each for each in verdicts if each is not None]
        rarer = 2 * sum(decided) <= len(decided)
        return tuple(tuple(x) for x, each in zip(every, verdicts, strict=True) if each == rarer)

    def of_length(self, length: int, most: int, seed: int) -> list[String]:
        """At most so many different strings of a length; none if no short string has the verdict.

        Example:
            >>> def well_nested(strings):
            ...     depths = [[x[:i].count("(") - x[:i].count(")") for i in range(len(x) + 1)]
            ...               for x in strings]
            ...     return [min(each) == each[-1] == 0 for each in depths]
            >>> grown = Grown(Strings(("(", ")"), lambda _: ()), well_nested)
            >>> all(well_nested(grown.of_length(30, 5, seed=0)))
            True

        """
        if not self.words:
            return []
        source = random.Random(f"{self.strings.alphabet} {length} {seed}")
        ways = itertools.islice(itertools.cycle(WAYS), TRIED * most)
        made = (self._made(way, length, source) for way in ways)
        candidates = [*dict.fromkeys(self.strings.joined(x) for x in made if len(x) == length)]
        wanted, *verdicts = self.verdicts([self.strings.joined(self.words[0]), *candidates])
        kept = (x for x, each in zip(candidates, verdicts, strict=True) if each == wanted)
        return [*itertools.islice(kept, most)]

    def _made(self, way: str, length: int, source: random.Random) -> tuple[Any, ...]:
        """A string made in one way; it is shorter if no further word fits into the length."""
        x: tuple[Any, ...] = ()
        words = self.words
        while fitting := words[: bisect(words, length - len(x), key=len)]:
            word = source.choice(fitting)
            half, at = len(word) // 2, source.randrange(len(x) + 1)
            match way:
                case "repeated":
                    times, rest = divmod(length, len(word))
                    return tuple(each for each in word for _ in range(times)) + word[-1:] * rest
                case "after":
                    x = (*x, *word)
                case "inside":
                    x = (*x[:at], *word, *x[at:])
                case "around":
                    x = (*word[:half], *x, *word[half:])
                    # A word around others has two equal halves.
                    words = tuple(each for each in self.words if len(each) % 2 == 0)
        return x


WAYS = ("after", "inside", "around", "repeated")
"""Ways to make a string: a word after the others, anywhere inside, its halves around them, or each
symbol of one word repeated."""
