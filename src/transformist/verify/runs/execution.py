"""Execution of the pieces of a check, in this process or in others, with or without a journal.

The outcome depends on the pieces alone: the first string that is wrong, in the order of the
strings, whatever order the pieces ended in. Once a wrong string is found, a later piece is
tried only as far as it may have strings before that one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic
from transformist.domains import String, Strings
from transformist.errors import InvalidValue
from transformist.model import Transformer
from transformist.verify.comparison import (
    Refusal,
    first_wrong,
    first_wrong_of_every,
    raised,
)
from transformist.verify.runs.journal import Journal
from transformist.verify.runs.pieces import (
    DrawnRange,
    Piece,
    Place,
    Prefixed,
    place_of,
    string_at,
)
from transformist.verify.verdict import Mismatch

Compared: TypeAlias = "tuple[int, Mismatch | Refusal | None]"
"""Number of strings compared, and the first that is wrong or refused."""


@dataclass(frozen=True)
class Subject:
    """A model and what it is compared with, in an arithmetic.

    Attributes:
        model: the transformer.
        reference: returns the right answer on a string.
        arithmetic: the number system.

    """

    model: Transformer
    reference: Callable[[Any], Any]
    arithmetic: Arithmetic

    @property
    def domain(self) -> Strings:
        """The strings over the model's alphabet."""
        return Strings(self.model.alphabet, _no_hard_strings)

    def on(self, piece: Piece) -> Compared:
        """Compare on the strings of a piece, up to the first that is wrong."""
        system = self.arithmetic
        if isinstance(piece, DrawnRange):
            strings = self.drawn(piece)
            return first_wrong(self.model, self.reference, strings, system)
        prefix = tuple(self.model.alphabet[k] for k in piece.prefix)
        lengths = range(piece.shortest, piece.longest + 1)
        return first_wrong_of_every(
            self.model, self.reference, self.domain, lengths, system, prefix=prefix
        )

    def drawn(self, piece: DrawnRange) -> Iterator[String]:
        """The strings of a range."""
        lengths = range(piece.drawn.shortest, piece.drawn.longest + 1)
        numbers = range(piece.first, piece.stop)
        return self.domain.drawn_by_number(lengths, numbers, piece.drawn.seed)

    def at(self, place: Place, drawn: Iterable[DrawnRange]) -> Compared:
        """Compare on the string at a place."""
        kind, _, number = place
        if kind:
            # A drawn string is drawn by its number alone, so its number is its place.
            piece = next(each for each in drawn if each.first <= number < each.stop)
            return self.on(replace(piece, first=number, stop=number + 1))
        string = self.domain.joined(string_at(place, self.model.alphabet))
        return first_wrong(self.model, self.reference, [string], self.arithmetic)


def _no_hard_strings(_length: int) -> tuple[String, ...]:
    return ()


@dataclass(frozen=True)
class Progress:
    """Progress of a check.

    Attributes:
        finished: number of pieces finished, now or in the run of the journal.
        pieces: number of pieces.
        strings: number of strings compared in this run.
        left: number of strings in the pieces that have not finished.
        seconds: time since this run began.
        from_journal: number of pieces that a journal had.

    """

    finished: int
    pieces: int
    strings: int
    left: int
    seconds: float
    from_journal: int = 0


@dataclass(frozen=True)
class Executed:
    """Outcome of a check.

    Attributes:
        cases: number of strings compared; with a wrong one, those up to it.
        mismatch: the first wrong string, or `None`.
        pieces: number of pieces.
        from_journal: number of pieces that the journal had.
        is_drawn: True if the wrong string is a drawn one.

    """

    cases: int
    mismatch: Mismatch | None
    pieces: int
    from_journal: int
    is_drawn: bool = False


Outcomes: TypeAlias = "Generator[tuple[Piece, Compared], None, None]"
"""Pieces with their outcomes, in the order in which they end. Closing it ends what still runs."""

Spread: TypeAlias = Callable[[Subject, Iterable[Piece]], Outcomes]
"""A function that compares on pieces. It may take pieces before earlier ones have ended."""


def in_turn(subject: Subject, pieces: Iterable[Piece]) -> Outcomes:
    """Compare on one piece after the other, in this process."""
    for piece in pieces:
        yield piece, subject.on(piece)


def execute(
    subject: Subject,
    pieces: list[Piece],
    journal: Journal | None = None,
    spread: Spread = in_turn,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Executed:
    """Compare on every piece that the journal does not have.

    Args:
        subject: what is compared.
        pieces: the pieces of all strings.
        journal: records each finished piece.
        spread: evaluates the pieces.
        progress: called after each piece.

    Raises:
        TransformistError: the error of the model or the reference, if it is raised on a string
            before the first wrong one.
        InvalidValue: if a string that the journal has as wrong now has a right answer.

    """
    finished = {} if journal is None else journal.finished
    by_name = {str(each): each for each in pieces}
    earlier = [finished[name] for name in by_name if name in finished]
    first: Place | None = min((place for _, place in earlier if place is not None), default=None)
    wrong: Mismatch | Refusal | None = None
    cases, from_journal = sum(count for count, _ in earlier), len(earlier)
    begun, compared, done = time.monotonic(), 0, from_journal
    alphabet = subject.model.alphabet

    def left() -> Iterator[Piece]:
        # Read while pieces are evaluated: each is cut off at the first wrong string so far.
        for piece in remaining:
            short = _before(piece, first, len(alphabet))
            if short is not None:
                whole[short] = piece
                yield short

    whole = dict[Piece, Piece]()
    remaining = [each for name, each in by_name.items() if name not in finished]
    to_come = sum(each.count(len(alphabet)) for each in remaining)
    progress(Progress(done, len(pieces), 0, to_come, 0.0, from_journal))
    with closing(spread(subject, left())) as outcomes:
        for short, (count, found) in outcomes:
            piece = whole.pop(short)
            place = None
            if found is not None:
                place = _place(piece, count, found, alphabet)
                if first is None or place < first:
                    first, wrong = place, found
            cases, compared, done = cases + count, compared + count, done + 1
            to_come -= piece.count(len(alphabet))
            # An error is not recorded: the next run tries again. Nor is a piece that was cut off at
            # an error or a wrong string, because its later strings were not tried.
            if journal is not None and short == piece and not isinstance(found, Refusal):
                journal.record(str(piece), count, place)
            spent = time.monotonic() - begun
            progress(Progress(done, len(pieces), compared, to_come, spent, from_journal))
    if first is None:
        return Executed(cases, None, len(pieces), from_journal)
    if wrong is None:
        wrong = _again(subject, first, pieces)
    _, mismatch = raised(0, wrong)
    count = _strings_before(first, pieces, len(alphabet)) + 1
    return Executed(count, mismatch, len(pieces), from_journal, is_drawn=bool(first[0]))


def _again(subject: Subject, place: Place, pieces: list[Piece]) -> Mismatch | Refusal:
    """Compare again on the wrong string that an earlier run recorded.

    Raises:
        InvalidValue: where its answer is now right.

    """
    _, found = subject.at(place, [each for each in pieces if isinstance(each, DrawnRange)])
    if found is None:
        raise InvalidValue(
            "a reference must give a string the same answer each time",
            received="a right answer where the journal has a wrong one",
            where="check",
            remedy="make the reference a function of the string alone, and begin a new journal",
        )
    return found


def _before(piece: Piece, first: Place | None, symbols: int) -> Piece | None:
    """The part of a piece that may have strings before the first wrong one; `None` for no part."""
    if first is None:
        return piece
    kind, length, number = first
    if isinstance(piece, DrawnRange):
        if not kind or number < piece.first:
            return None
        return replace(piece, stop=min(piece.stop, number))
    if kind or piece.longest < length:
        return piece
    # The strings of a length with one prefix are consecutive. If the first of them stands behind
    # the wrong string, so do all: only shorter strings of the piece can stand before it.
    if _first_place(piece, length, symbols) > number:
        length -= 1
    return replace(piece, longest=length) if piece.shortest <= length else None


def _first_place(piece: Prefixed, length: int, symbols: int) -> int:
    """The number of the first string with a prefix among all strings of a length."""
    number = 0
    for k in (*piece.prefix, *[0] * (length - len(piece.prefix))):
        number = number * symbols + k
    return number


def _place(
    piece: Piece, count: int, found: Mismatch | Refusal, alphabet: tuple[object, ...]
) -> Place:
    """The place of the string that is wrong, or on which an error was raised."""
    if isinstance(piece, DrawnRange):
        # Ranges are compared in order, so that the last string compared is the wrong one; an
        # error is raised on the string after those compared.
        return 1, 0, piece.first + count - (0 if isinstance(found, Refusal) else 1)
    return place_of(found.input, alphabet)


def _strings_before(place: Place, pieces: list[Piece], symbols: int) -> int:
    """Number of strings of the check that stand before a place."""
    kind, length, number = place
    prefixed = [each for each in pieces if isinstance(each, Prefixed)]
    shortest = min(each.shortest for each in prefixed)
    longest = max(each.longest for each in prefixed)
    before = range(shortest, longest + 1 if kind else length)
    return sum(int(symbols**n) for n in before) + number
