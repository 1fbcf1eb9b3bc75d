"""Shrinking of a wrong string: a shorter one, of earlier symbols, on which the answer is wrong too.

As in delta debugging (Zeller and Hildebrandt 2002), parts of the string are deleted, at first
half of it, at last single symbols; then each symbol is replaced by one that is earlier in the
alphabet. Where neither helps, blocks of every size at every place are deleted, and pairs of symbols
that stand apart: a wrong string may need an even length, or brackets that match. Every string that
is taken has been compared and is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transformist.errors import OutOfTime
from transformist.verify.comparison import Refusal, first_wrong, shortest_input
from transformist.verify.runs.execution import Subject
from transformist.verify.verdict import Mismatch

TRIES = 3000
"""Most strings that are compared to shrink one.

A string of n symbols has n(n − 1)/2 pairs and nearly as many blocks: at n = 50, about 2,400.
"""


def shrunk(subject: Subject, wrong: Mismatch, tries: int = TRIES) -> Mismatch:
    """Shrink a wrong string.

    Args:
        subject: what is compared.
        wrong: a string on which the answer is wrong.
        tries: most strings that are compared.

    Returns:
        The mismatch of a string that is shorter, or that is as long and has at each place the same
        symbol or an earlier one of the alphabet. With enough tries, the answer is right on every
        string that lacks one block of its symbols, or two symbols. The result does not depend on
        the machine.

    """
    search = _Shrinking(subject, wrong, tries)
    try:
        while search.deletes() or search.replaces() or search.deletes_more():
            pass
    except _NoMoreTries:
        pass
    return search.wrong


class _NoMoreTries(Exception):
    """Raised when `tries` strings have been compared, or the reference takes too long on one."""


@dataclass
class _Shrinking:
    """The shortest wrong string so far, and the number of strings that may still be compared."""

    subject: Subject
    wrong: Mismatch
    tries: int

    def deletes(self) -> bool:
        """Delete what can be deleted; True if anything was."""
        before = len(self.wrong.input)
        size = max(1, before // 2)
        while size:
            at = 0
            while at < len(self.wrong.input):
                x = self._symbols()
                if not self._takes((*x[:at], *x[at + size :])):
                    at += size
            size //= 2
        return len(self.wrong.input) < before

    def deletes_more(self) -> bool:
        """Delete a block of any size, or two symbols; True if this succeeds.

        Small parts come first: where no single symbol can be deleted, a small part often can.
        """
        x = self._symbols()
        n = len(x)
        # Neighbours come first. In nested brackets some matching pair always stands side by side,
        # so that one of the first n − 1 tries leaves a balanced string balanced.
        pairs = (
            (*x[:i], *x[i + 1 : j], *x[j + 1 :])
            for i, j in sorted(
                itertools.combinations(range(n), 2), key=lambda pair: pair[1] - pair[0]
            )
        )
        blocks = (
            (*x[:at], *x[at + size :]) for size in range(3, n + 1) for at in range(n - size + 1)
        )
        return any(self._takes(each) for each in itertools.chain(pairs, blocks))

    def replaces(self) -> bool:
        """Replace each symbol by the first that leaves the answer wrong; True if any was."""
        before = self.wrong.input
        for at in range(len(before)):
            x = self._symbols()
            for symbol in self._earlier(x[at]):
                if self._takes((*x[:at], symbol, *x[at + 1 :])):
                    break
        return bool(self.wrong.input != before)

    def _symbols(self) -> Sequence[Any]:
        return tuple(self.wrong.input)

    def _earlier(self, symbol: Any) -> Iterator[Any]:
        alphabet = self.subject.model.alphabet
        yield from alphabet[: alphabet.index(symbol)]

    def _takes(self, symbols: tuple[Any, ...]) -> bool:
        """Take the string of these symbols if its answer is wrong."""
        if len(symbols) < shortest_input(self.subject.model):
            return False
        if not self.tries:
            raise _NoMoreTries
        self.tries -= 1
        subject = self.subject
        string = subject.domain.joined(symbols)
        _, found = first_wrong(subject.model, subject.reference, [string], subject.arithmetic)
        if isinstance(found, Refusal) and isinstance(found.error, OutOfTime):
            raise _NoMoreTries  # the reference may take its whole time on each of the others
        if not isinstance(found, Mismatch):
            return False
        self.wrong = found
        return True
