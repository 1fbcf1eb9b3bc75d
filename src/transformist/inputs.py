"""What a user hands in: text and the places of its symbols, vectors, a function in a file."""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformist.arithmetic import rational
from transformist.errors import InvalidValue, TransformistError, UnknownName, UnreadableInput


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


def read_vector(text: str, width: int, name: str, settings: tuple[str, ...]) -> list[Any]:
    """A JSON list of `width` numbers; a number in quotes may be a fraction.

    Args:
        text: the list.
        width: how many numbers it is to have.
        name: of what reads it, for a refusal.
        settings: by which the width may be set.

    Raises:
        InvalidValue: when it is no such list.
    """
    try:
        vector = json.loads(text, parse_float=rational)
    except (RecursionError, ValueError):
        vector = None
    if not isinstance(vector, list) or any(isinstance(v, list | dict) for v in vector):
        raise InvalidValue(
            f"{name} reads a JSON list of {width} numbers, fractions in quotes",
            received=repr(text)[:60],
            remedy=f"give one such as '{json.dumps([1] * width)}'",
        )
    if len(vector) != width:
        raise InvalidValue(
            f"{name} reads {width} numbers",
            received=f"{len(vector)}",
            remedy=f"give {width}" + (f", or set {', '.join(settings)}" if settings else ""),
        )
    return vector


def load_function(against: str) -> Callable[[str], Any]:
    """The function that FILE.py:NAME points to.

    Raises:
        InvalidValue: when it is not of that form.
        UnreadableInput: when the file cannot be read or does not run.
        UnknownName: when the file has no such function.
    """
    path, _, name = against.rpartition(":")
    if not path or not name:
        raise InvalidValue(
            "--against names a file and a function in it, FILE.py:NAME",
            received=repr(against),
            remedy="write --against oracle.py:balanced",
        )
    namespace: dict[str, Any] = {"__name__": "transformist_reference"}
    try:
        exec(compile(read_text(Path(path)), path, "exec"), namespace)
    except TransformistError:
        raise
    except Exception as error:
        raise UnreadableInput(
            "the file of --against runs",
            received=f"{path}, which raises {type(error).__name__}: {error}",
            remedy="mend the file",
        ) from None
    if not callable(namespace.get(name)):
        known = [key for key, value in namespace.items() if callable(value)]
        raise UnknownName.among("function of the file", name, known, path)

    function: Callable[[str], Any] = namespace[name]
    return function


def read_length(text: str) -> int:
    """The whole number of --max-length.

    Raises:
        InvalidValue: when it is none.
    """
    if text.isdecimal() and len(text) < 10:
        return int(text)
    raise InvalidValue(
        "--max-length is a whole number of at least 0",
        received=repr(text),
        remedy="strings one and all are feasible up to about 16",
    )
