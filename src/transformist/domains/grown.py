"""Grown strings: long strings with the rarer answer of a recognizer, built from short ones."""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformist.domains.strings import String, Strings

Answers = Callable[[Sequence[String]], Sequence[bool | None]]
"""The answers of a recognizer on strings; `None` where it has none."""

Word = tuple[Any, ...]
"""A short string that grown strings are built from, as a tuple of symbols."""

WORDS = 2**8
"""Words are taken from every string up to the largest length with at most this many."""

TRIED = 4
"""Candidates that are built for each string that is wanted."""


@dataclass(frozen=True)
class GrownStrings:
    """Long strings with the rarer answer: of yes and no, the one that fewer short strings have.

    A long string that is drawn evenly is almost never well nested, or a palindrome. Here short
    strings with the rarer answer (yes, if both are as frequent) are nested or concatenated, or
    their symbols are repeated. Candidates with the other answer are discarded.

    Attributes:
        alphabet: the symbols.
        answers: of the recognizer.
        longest: no word is longer; `None` for any length.

    """

    alphabet: tuple[Any, ...]
    answers: Answers
    longest: int | None = None

    @property
    def strings(self) -> Strings:
        """The strings over the alphabet."""
        return Strings(self.alphabet, lambda _: ())

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The short strings with the rarer answer, by length, without the empty one."""
        # One symbol has one string of each length, however long: the bit length ends these.
        most = WORDS.bit_length() if self.longest is None else min(WORDS.bit_length(), self.longest)
        few = (n for n in range(1, most + 1) if len(self.alphabet) ** n <= WORDS)
        every = [*self.strings.every(max(few, default=0), 1)]
        answers = self.answers(every) if every else []
        given = [each for each in answers if each is not None]
        rarer = 2 * sum(given) <= len(given)
        return tuple(tuple(x) for x, each in zip(every, answers, strict=True) if each == rarer)

    def of_length(self, length: int, most: int, seed: int) -> list[String]:
        """At most `most` different grown strings of a length; none if no candidate has the answer.

        Example:
            >>> def well_nested(strings):
            ...     depths = [[x[:i].count("(") - x[:i].count(")") for i in range(len(x) + 1)]
            ...               for x in strings]
            ...     return [min(each) == each[-1] == 0 for each in depths]
            >>> grown = GrownStrings(("(", ")"), well_nested)
            >>> all(well_nested(grown.of_length(30, 5, seed=0)))
            True

        """
        if not self.words:
            return []
        source, joined = random.Random(f"{self.alphabet} {length} {seed}"), self.strings.joined
        ways = itertools.islice(itertools.cycle(WAYS), TRIED * most)
        built = (way(self.words, length, source) for way in ways)
        candidates = [*dict.fromkeys(joined(x) for x in built if len(x) == length)]
        wanted, *answers = self.answers([joined(self.words[0]), *candidates])
        kept = (x for x, each in zip(candidates, answers, strict=True) if each == wanted)
        return [*itertools.islice(kept, most)]


def _drawn(words: Sequence[Word], room: int, source: random.Random) -> Word | None:
    """One of the words that fit into a room; `None` if none fits."""
    fitting = words[: bisect(words, room, key=len)]
    return source.choice(fitting) if fitting else None


def _concatenated(words: Sequence[Word], length: int, source: random.Random) -> Word:
    """Words one after the other; shorter than the length if none fits the rest."""
    x: Word = ()
    while word := _drawn(words, length - len(x), source):
        x = (*x, *word)
    return x


def _nested(words: Sequence[Word], length: int, source: random.Random) -> Word:
    """Words put into each other anywhere; shorter than the length if none fits the rest."""
    x: Word = ()
    while word := _drawn(words, length - len(x), source):
        at = source.randrange(len(x) + 1)
        x = (*x[:at], *word, *x[at:])
    return x


def _surrounded(words: Sequence[Word], length: int, source: random.Random) -> Word:
    """A word between the halves of words; shorter than the length if none fits the rest."""
    x = _drawn(words, length, source) or ()
    even = [each for each in words if len(each) % 2 == 0]
    while word := _drawn(even, length - len(x), source):
        half = len(word) // 2
        x = (*word[:half], *x, *word[half:])
    return x


def _repeated(words: Sequence[Word], length: int, source: random.Random) -> Word:
    """Each symbol of a word repeated, the last one more often if the length asks for it."""
    word = _drawn(words, length, source) or ()
    times, rest = divmod(length, max(len(word), 1))
    return tuple(each for each in word for _ in range(times)) + word[-1:] * rest


WAYS = (_concatenated, _nested, _surrounded, _repeated)
"""The ways to build a candidate, in turn."""
