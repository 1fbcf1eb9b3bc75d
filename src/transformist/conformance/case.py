"""A case: one prompt of a checkpoint, in token ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from transformist.conformance.instrument import OTHER


@dataclass(frozen=True, kw_only=True)
class Case:
    """A prompt of a checkpoint with its known answers, as token ids.

    Attributes:
        instrument: the name of the instrument.
        id: the name of the prompt.
        checkpoint: the directory of the checkpoint.
        ids: the tokens, with the special tokens.
        text: the text that the tokenizer splits into `ids[:length]`.
        reads: the positions in `ids`, from 0, at which the next token is known.
        expected: the next token at each of these positions.
        length: the number of tokens of the prompt; `generated` continues it.
        formats: the number formats in which the answers must hold.
        wrong: the meanings of wrong tokens.
        depends_on: the parts of an engine that the answers depend on.

    """

    instrument: str
    id: str
    checkpoint: Path
    ids: tuple[int, ...]
    text: str
    reads: tuple[int, ...]
    expected: tuple[int, ...]
    length: int
    formats: tuple[str, ...]
    wrong: Mapping[str, str]
    depends_on: tuple[str, ...]

    def __str__(self) -> str:
        return self.id

    @property
    def prompt(self) -> tuple[int, ...]:
        """The tokens that an engine is given."""
        return self.ids[: self.length]

    @property
    def generated(self) -> tuple[int, ...]:
        """The tokens that greedy generation gives after the prompt."""
        known = dict(zip(self.reads, self.expected, strict=True))
        return tuple(known[each] for each in range(self.length - 1, len(self.ids)))

    def meaning(self, token: int) -> str:
        """The meaning of a wrong token; empty if it has none."""
        return self.wrong.get(str(token), self.wrong.get(OTHER, ""))
