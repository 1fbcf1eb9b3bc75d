"""An instrument: a checkpoint with known answers, and what its wrong answers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

OTHER = "*"
"""Key of the meaning of every wrong token that has no meaning of its own."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """An input with known answers, in texts of tokens.

    Attributes:
        tokens: the texts of all tokens, with the special tokens.
        text: the text that the tokenizer splits into the first `length` tokens.
        reads: the positions, from 0, at which the next token is known, or in an encoder the label.
        expected: the text of the next token, or of the label, at each of these positions.
        length: the number of tokens of the prompt; greedy generation continues it with the others.
        wrong: the meanings of wrong tokens, by their texts.
        formats: the number formats in which every answer must hold.

    """

    tokens: Sequence[str]
    text: str
    reads: Sequence[int]
    expected: Sequence[str]
    length: int
    wrong: Mapping[str, str] = field(default_factory=dict)
    formats: Sequence[str] = ("float32",)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The files of a checkpoint, and its prompts.

    Attributes:
        files: the bytes of each file by its name.
        texts: the text of each token.
        prompts: the inputs with known answers.
        answers: the text of each answer that the head gives: the next token, or in an encoder a
            label. When left out, these are the texts of the tokens.
        certified: the longest input, in tokens, for which a certificate shows that the class of
            transformers gives every answer in float32; None if there is no certificate.

    """

    files: Mapping[str, bytes]
    texts: Sequence[str]
    prompts: Sequence[Prompt]
    answers: Sequence[str] | None = None
    certified: int | None = None


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """A checkpoint with known answers, for each of some families of models.

    Attributes:
        name: the name, and that of its directory.
        summary: what the checkpoint computes.
        depends_on: the parts of an engine that the answers depend on.
        families: the families that have it.
        make: function from a family and the longest input, in tokens, to the checkpoint.
        longest: the largest length of an input, in tokens, for which answers are known.

    """

    name: str
    summary: str
    depends_on: tuple[str, ...]
    families: tuple[str, ...]
    make: Callable[[str, int], Checkpoint]
    longest: int = 4096
