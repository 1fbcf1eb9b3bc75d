"""Texts in pieces, and the places of symbols in them.

A long input is never held as text. It is read in pieces, and each piece becomes symbols at once, a
byte each. The place of a symbol, line and column, is found by reading the text again up to it:
an answer names few places, and a table of all of them would be larger than the input.
A pipe can be read only once. Where no character is skipped, its symbols are its text, so nothing
else is kept; where some are skipped, or one is no symbol, the text is kept too.
"""

from __future__ import annotations

import codecs
import itertools
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transformist.errors import InvalidValue, UnreadableInput
from transformist.memory import beyond_memory, free_memory
from transformist.model import Coded, Symbol

PIECE = 2**16
"""Bytes read at once."""


@dataclass(frozen=True)
class TextSource:
    """The source of a text.

    Attributes:
        name: the name of the file, or words for another source.
        again: gives the text in pieces, from its beginning each time.
        last: for a text that can be read only once: a single pass; pieces are discarded.
        length: the number of characters; `None` where only reading on can tell.

    """

    name: str
    again: Callable[[], Iterable[str]]
    last: Callable[[], Iterator[str]] | None = None
    length: int | None = None

    @classmethod
    def given(cls, text: str, name: str = "the input") -> TextSource:
        """The source of a text in memory."""
        return cls(name, lambda: (text,), length=len(text))

    @classmethod
    def file(cls, path: Path) -> TextSource:
        """A file without a newline at its very end; a regular file is read anew each time."""
        if os.path.isfile(path):  # noqa: PTH113 - which raises nothing
            return cls(str(path), lambda: without_last_newline(read_pieces(path)))
        once = ReadOnce(without_last_newline(read_pieces(path)))
        return cls(str(path), once.again, last=once.last)

    @classmethod
    def stream(cls, opened: BinaryIO, name: str) -> TextSource:
        """A stream without a newline at its very end; it is read once, as its pieces are needed."""
        once = ReadOnce(without_last_newline(decoded(opened, name)))
        return cls(name, once.again, last=once.last)

    def text(self) -> str:
        """The whole text."""
        return "".join(self.again())


COMPARED = 2**24
"""Bytes of kept text between two comparisons with the memory that is free."""


class ReadOnce:
    """A text that can be read once: pieces that have come are kept until they are discarded.

    Example:
        >>> once = ReadOnce(iter(["a", "b", "c"]))
        >>> next(once.again()), list(once.again()), list(once.last()), list(once.again())
        ('a', ['a', 'b', 'c'], ['a', 'b', 'c'], [])

    """

    def __init__(self, coming: Iterator[str]) -> None:
        self._kept: deque[str] = deque()
        self._size = self._compared = 0  # in bytes
        self._coming = coming

    def _keep(self, piece: str) -> None:
        """Keep a piece, unless the text takes more memory than is left.

        Raises:
            InputTooLarge: when it does.

        """
        self._kept.append(piece)
        self._size += sys.getsizeof(piece)
        if self._size > self._compared + COMPARED:
            self._compared, free = self._size, free_memory()
            if self._size > free:
                raise beyond_memory(
                    free,
                    f"a text of more than {self._size:,} bytes",
                    "input",
                    sum(map(len, self._kept)),
                )

    def again(self) -> Iterator[str]:
        """The pieces from the beginning; each is kept."""
        for at in itertools.count():
            if at == len(self._kept):
                for piece in itertools.islice(self._coming, 1):
                    self._keep(piece)
            if at == len(self._kept):
                return
            yield self._kept[at]

    def last(self) -> Iterator[str]:
        """The pieces from the beginning; each is discarded."""
        while self._kept:
            yield self._kept.popleft()
        yield from self._coming


@dataclass(frozen=True)
class Text:
    """Symbols taken from a text, whose places are found by reading it again.

    Attributes:
        symbols: the input of a model: characters, coded by numbers, or other symbols.
        source: the text that they are taken from.
        kept: the characters that are symbols while others are skipped; `None` for all.

    """

    symbols: Sequence[Symbol]
    source: TextSource
    kept: frozenset[Symbol] | None = None

    @classmethod
    def over(
        cls,
        alphabet: Sequence[Symbol],
        source: TextSource,
        ignore_others: bool = False,
        admit: Callable[[int], None] = lambda _: None,
    ) -> Text:
        """A text for a model: characters where its symbols are, a JSON list elsewhere.

        Args:
            alphabet: of the model.
            source: the text.
            ignore_others: True to skip characters that are not in the alphabet.
            admit: receives the number of characters read so far; it may refuse more of them.

        Where no character is skipped, only the symbols of a stream are kept.

        Raises:
            InvalidValue: for a text that is no such list.

        Example:
            >>> x = Text.over(("a", "b"), TextSource.given("a-b"), ignore_others=True)
            >>> x.whole, x.place(2)
            ('ab', 'the input, line 1, column 3')
            >>> Text.over(("no", "yes"), TextSource.given('["yes"]')).symbols
            ('yes',)

        """
        kept = frozenset(alphabet) if ignore_others else None
        if not all(isinstance(each, str) and len(each) == 1 for each in alphabet):
            listed = _listed(source.text(), alphabet)
            return cls(tuple(each for each in listed if kept is None or each in kept), source, kept)
        characters = [str(each) for each in alphabet]
        if source.last is not None and not ignore_others:
            return cls._read_once(characters, source, source.last(), admit)
        coded = Coded.of(characters, source.again(), ignore_others, admit)
        return cls(source.text() if coded is None else coded, source, kept)

    @classmethod
    def _read_once(
        cls,
        alphabet: Sequence[str],
        source: TextSource,
        pieces: Iterator[str],
        admit: Callable[[int], None],
    ) -> Text:
        """The symbols, which stand for the text; the text itself where it has another character."""
        coded, other = Coded.begun(alphabet, pieces, admit=admit)
        if other is None:
            return cls(coded, replace(source, again=lambda: _characters(coded), last=None))
        rest = admitted(itertools.chain((other,), pieces), len(coded), admit)
        text = "".join(itertools.chain(_characters(coded), rest))
        return cls(text, replace(source, again=lambda: (text,), last=None))

    @property
    def whole(self) -> Sequence[Symbol]:
        """The symbols as they are: characters in a string."""
        return "".join(map(str, self.symbols)) if self._has_characters else self.symbols

    @property
    def _has_characters(self) -> bool:
        return isinstance(self.symbols, str | Coded)

    def place(self, position: int) -> str:
        """The place of the symbol at a position (from 1): file, line and column (from 1)."""
        if not self._has_characters:
            return f"{self.source.name}, number {position}"
        line, column, left = 1, 0, position
        for piece in self.source.again():
            for symbol in piece:
                column += 1
                left -= self.kept is None or symbol in self.kept
                if not left:
                    return f"{self.source.name}, line {line}, column {column}"
                if symbol == "\n":
                    line, column = line + 1, 0
        raise UnreadableInput(
            "a file must not change while it is read",
            received=f"{self.source.name}, which has no symbol {position} any more",
            remedy="run it again",
        )


def _characters(coded: Coded) -> Iterator[str]:
    """The text of coded symbols, in pieces."""
    points = np.array([ord(str(each)) for each in coded.alphabet], "<u4")
    for start in range(0, len(coded), PIECE):
        found = points[coded.numbers[start : start + PIECE]]
        yield found.tobytes().decode("utf-32-le", "surrogatepass")


def admitted(pieces: Iterable[str], count: int, admit: Callable[[int], None]) -> Iterator[str]:
    """The pieces, while their characters, added to the count, are admitted."""
    for piece in pieces:
        count += len(piece)
        admit(count)
        yield piece


def _listed(text: str, alphabet: Sequence[Symbol]) -> list[Any]:
    """The symbols in a JSON list: strings and numbers, lists for tuples, strings for fractions."""
    try:
        given = json.loads(text)
        known = {each: each for each in alphabet}
        symbols = [_symbol(each, known) for each in given] if isinstance(given, list) else None
    except (RecursionError, ValueError, TypeError):
        symbols = None
    if symbols is None:
        raise InvalidValue(
            "the input must be a JSON list of symbols, since not all symbols of this model "
            "are characters",
            received=repr(text)[:60],
            remedy=f"give one such as '{_as_json(alphabet[:2])}'",
        )
    return symbols


def _symbol(given: Any, known: Mapping[Any, Any]) -> Any:
    """The symbol of an alphabet that a JSON value stands for; the value itself if there is none.

    Raises:
        TypeError: for a value of a type that no symbol has; strings and whole numbers are always
            accepted.

    Example:
        >>> known = {each: each for each in (Fraction(1, 3), ("a", 1))}
        >>> _symbol("1/3", known), _symbol(["a", 1], known), _symbol("1/2", known)
        (Fraction(1, 3), ('a', 1), '1/2')

    """
    value = _tuples(given)
    kinds = {float if isinstance(each, Fraction) else type(each) for each in known}
    if type(value) not in kinds | {int, str}:
        raise TypeError
    if isinstance(value, str) and value not in known:
        fractions = (each for each in known if isinstance(each, Fraction))
        return next((each for each in fractions if str(each) == value), value)
    return known.get(value, value)


def _tuples(given: Any) -> Any:
    return tuple(map(_tuples, given)) if isinstance(given, list) else given


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        UnreadableInput: when it is missing, cannot be read, or is not text.

    """
    return "".join(read_pieces(path))


def read_pieces(path: Path) -> Iterator[str]:
    """The text of a UTF-8 file, a piece at a time.

    Raises:
        UnreadableInput: as `read_text`.

    """
    try:
        with path.open("rb") as opened:
            yield from decoded(opened, str(path))
    except OSError as error:
        raise UnreadableInput(
            "the file must exist, and must be readable",
            received=f"{path} ({error.strerror or error})",
            remedy="check the path and its permissions",
        ) from None


def decoded(opened: BinaryIO, name: str) -> Iterator[str]:
    """Bytes as UTF-8 text, a piece at a time; a byte order mark in front is skipped.

    Raises:
        UnreadableInput: for bytes that are not UTF-8 text.

    """
    before, rest = 0, b""
    while data := rest + (more := opened.read(PIECE)):
        if not before and data.startswith(codecs.BOM_UTF8):
            before, data = len(codecs.BOM_UTF8), data[len(codecs.BOM_UTF8) :]
        try:
            text, used = codecs.utf_8_decode(data, "strict", not more)
        except UnicodeDecodeError as error:
            raise UnreadableInput(
                "the input must be UTF-8 text",
                received=f"{name}, whose byte {before + error.start + 1} is not",
                remedy="convert it to UTF-8, or give another file",
            ) from None
        if "\0" in text:
            raise UnreadableInput(
                "the input must be UTF-8 text",
                received=f"{name}, which has a NUL byte",
                remedy="give a text file",
            )
        yield text
        before, rest = before + used, data[used:]


def without_last_newline(pieces: Iterable[str]) -> Iterator[str]:
    r"""The pieces but for a newline, or a carriage return and a newline, at the very end.

    Example:
        >>> "".join(without_last_newline(["ab", "c\r", "\n"]))
        'abc'
        >>> "".join(without_last_newline(["a\n", "\n"]))
        'a\n'

    """
    # Two characters are held back: the newline at the end may have come in two pieces.
    last = ""
    for piece in pieces:
        last += piece
        yield last[:-2]
        last = last[-2:]
    yield last[:-2] if last.endswith("\r\n") else last.removesuffix("\n")


def _as_json(symbols: Sequence[Symbol]) -> str:
    return json.dumps(list(symbols), ensure_ascii=False, default=str)
