"""Modes: the ways in which an engine is given the prompts of an instrument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from transformist.conformance.case import Case
from transformist.errors import raised_in_words, visible

Tokens = NDArray[np.int64]

CHUNK = 16
"""Tokens of a piece of a prompt in the mode `chunks`: half of the shortest suite's length."""

LONG, LONG_CHUNK = 256, 500
"""Prompts of more than `LONG` tokens have a batch of their own. In `chunks` their pieces have
`LONG_CHUNK` tokens, no multiple of the blocks of a cache."""

STEPS = 12
"""Tokens that the mode `decoding` gives one at a time: less than half of the shortest suite's
length."""

LONGEST_REASON = 300
"""Most characters that are kept of the words of an engine."""


class Greedy(Protocol):
    """An engine with a checkpoint: greedy generation."""

    def __call__(self, ids: Sequence[int], max_new_tokens: int) -> Sequence[int]:
        """Return the new tokens after a prompt, without the prompt."""


class Batched(Protocol):
    """An engine that also gives the next tokens of batches."""

    def next_tokens(self, ids: Tokens, mask: Any, ends: Sequence[int]) -> Any:
        """Return the token of largest logit after each position, shape (rows, positions).

        An encoder returns the label of largest logit at each position.

        Args:
            ids: the tokens of a batch, shape (rows, positions).
            mask: True at tokens, False at padding.
            ends: the columns at which the pieces of the batch end; the engine takes one piece
                after the other, and keeps keys and values in its cache between them.

        """


Answer = tuple[Sequence[int], Sequence[int], str]
"""The positions that a mode reads, the tokens found there from the first on, and the reason for
missing ones."""


def generation(run: Greedy, case: Case) -> Answer:
    """Answers of greedy generation after a prompt alone."""
    wanted = len(case.generated)
    reads = range(case.length - 1, len(case.ids))
    # A stream of tokens may have no end. One token more than the prompt and the answer have shows
    # that it is too long.
    most = case.length + wanted + 1
    try:
        given: Any = run(list(case.prompt), wanted)
        tokens: Any = list(islice(given, most)) if isinstance(given, Iterable) else None
    except Exception as error:
        return reads, (), in_words(error)
    try:
        found = [_whole(each) for each in tokens]
    except Exception:
        return reads, (), f"run must return a list of token ids; it gave a {type(given).__name__}"
    if len(found) == most - 1 and tuple(found[: case.length]) == case.prompt:
        return reads, (), "run must return the new tokens without the prompt; it gave both"
    if len(found) > wanted:
        count = f"{len(found)}{' or more' * (len(found) == most)}"
        return reads, (), f"run must return at most {wanted} tokens; it gave {count}"
    short = f"the engine stopped after {len(found)} of {wanted} tokens"
    return reads, found, short if len(found) < wanted else ""


def _whole(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or value != number:
        raise ValueError(value)
    return number


def batches(mode: str, engine: Batched, cases: Sequence[Case]) -> list[Answer]:
    """Answers of one mode of `BATCHED`, for each case of an instrument."""
    groups: list[list[Case]] = [[each] for each in cases]
    if mode != "alone":
        # All rows of a batch are as wide as the longest: long prompts have a batch of their own.
        short = [each for each in cases if len(each.ids) <= LONG]
        groups = [each for each in (short, [each for each in cases if each not in short]) if each]
    found: dict[str, Answer] = {}
    for group in groups:
        ids, mask = padded([each.ids for each in group], PADDING.get(mode, "right"))
        ends = [each for each in BATCHED[mode](ids.shape[1]) if each > 0]
        try:
            # An engine may change what it is given, so that it gets copies.
            tokens = np.asarray(engine.next_tokens(ids.copy(), mask.copy(), ends))
            reason = "" if _fits(tokens, ids) else _misshapen(tokens, ids)
        except Exception as error:
            reason = in_words(error)
        if reason:
            found |= {each.id: (each.reads, (), reason) for each in group}
            continue
        for case, row, is_token in zip(group, tokens, mask, strict=True):
            found[case.id] = case.reads, row[is_token][list(case.reads)].tolist(), ""
    return [found[each.id] for each in cases]


def _fits(tokens: NDArray[Any], ids: Tokens) -> bool:
    return tokens.shape == ids.shape and tokens.dtype.kind in "iu"


def _misshapen(tokens: NDArray[Any], ids: Tokens) -> str:
    return (
        f"next_tokens must return whole numbers of shape {ids.shape}; it gave {tokens.dtype} of "
        f"shape {tokens.shape}"
    )


def _chunks(width: int, size: int) -> Sequence[int]:
    return [*range(size, width, size), width]


BATCHED: Mapping[str, Callable[[int], Sequence[int]]] = {
    "alone": lambda width: [width],
    "left-padded": lambda width: [width],
    "right-padded": lambda width: [width],
    "chunks": lambda width: _chunks(width, CHUNK if width <= LONG else LONG_CHUNK),
    "decoding": lambda width: [*range(width - STEPS, width + 1)],
}
"""The modes that need `next_tokens`, and the ends of the pieces of a batch of some width."""

OF_ENCODERS = ("alone", "left-padded", "right-padded")
"""The modes of an encoder, which has no cache and generates nothing."""

PADDING = {"left-padded": "left", "decoding": "left"}
"""The side of the padding, if it is the left."""

GENERATION = "generation"

MODES = (*BATCHED, GENERATION)
"""The modes, in the order in which they run."""

FURTHER = ("beams", "static-cache", "prompt-lookup", "prefix-cache")
"""Modes of generation that an engine may have beside these."""

EVERY_MODE = (*MODES, *FURTHER)


def padded(rows: Sequence[Sequence[int]], side: str) -> tuple[Tokens, NDArray[np.bool_]]:
    """Rows of tokens as a batch, padded with token 0 on a side, and its mask."""
    width = max(map(len, rows))
    ids, mask = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), bool)
    for row, tokens in enumerate(rows):
        at = slice(width - len(tokens), width) if side == "left" else slice(len(tokens))
        ids[row, at], mask[row, at] = tokens, True
    return ids, mask


def in_words(error: Exception) -> str:
    """The words of an exception, on one line."""
    line = visible(" ".join(raised_in_words(error).split()))
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"
