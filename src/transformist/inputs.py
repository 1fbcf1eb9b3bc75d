"""Inputs as text: the symbols of a model's alphabet in a file or stream, and where they stand."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transformist.errors import UnreadableInput


@dataclass(frozen=True)
class Text:
    """Symbols taken from a text, with the place of each.

    Attributes:
        symbols: what a model reads.
        offsets: for each symbol, its index in the text.
        line_starts: the index at which each line of the text begins.
        name: the file, or a word for another source.
        is_file: whether it is a file.

    """

    symbols: str
    offsets: tuple[int, ...]
    line_starts: tuple[int, ...]
    name: str
    is_file: bool = False

    @classmethod
    def of(
        cls, text: str, name: str, keep: Iterable[str] | None = None, is_file: bool = False
    ) -> Text:
        """A text, whole or only those of its characters that are in `keep`.

        Example:
            >>> Text.of("f(x)", "a line", keep="()").symbols
            '()'

        """
        starts = (0, *(index + 1 for index, symbol in enumerate(text) if symbol == "\n"))
        if keep is None:
            return cls(text, tuple(range(len(text))), starts, name, is_file)
        kept = set(keep)
        offsets = tuple(index for index, symbol in enumerate(text) if symbol in kept)
        return cls("".join(text[index] for index in offsets), offsets, starts, name, is_file)

    def place(self, position: int) -> str:
        """Where the symbol at a position (from 1) stands: file, line and column (from 1)."""
        offset = self.offsets[position - 1]
        line = bisect.bisect_right(self.line_starts, offset)
        return f"{self.name}, line {line}, column {offset - self.line_starts[line - 1] + 1}"


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        UnreadableInput: when it is missing, cannot be read, or is not text.

    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableInput(
            "the input is a file that can be read",
            received=f"{path} ({error.strerror or error})",
            remedy="check the path and its permissions",
        ) from None
    return decode(data, str(path))


def decode(data: bytes, name: str) -> str:
    """Bytes as UTF-8 text.

    Raises:
        UnreadableInput: when they are not.

    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableInput(
            "the input is UTF-8 text",
            received=f"{name}, whose byte {error.start + 1} is not",
            remedy="convert it to UTF-8, or give another file",
        ) from None
    if "\0" in text:
        raise UnreadableInput(
            "the input is UTF-8 text",
            received=f"{name}, which has a NUL byte",
            remedy="give a text file",
        )
    return text
