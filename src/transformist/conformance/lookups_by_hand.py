"""Instruments by hand that look up an earlier token by its symbol: `recall` and `sort`.

A head scores every token, and the score of the right one leads by more than 21. The others, up to
4,096 tokens, have together a weight below 10⁻⁸ in exact arithmetic. The head reads numbers v of 1
or −1, and adds v − 1 to a slot that holds 1: then it holds v.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import combinations, cycle, islice
from string import ascii_letters, digits

import numpy as np

from transformist.conformance.by_hand import (
    ALL_FORMATS,
    BOS,
    EOS,
    FURTHER,
    HEAD,
    LONG,
    PAD,
    PLACE_BITS,
    Design,
    HeadByHand,
    binary,
    lengths,
    made,
)
from transformist.conformance.families import DECODERS, EVERY_FAMILY
from transformist.conformance.family import Array, Family
from transformist.conformance.instrument import OTHER, Instrument, Prompt

NOT_FOUND = "none"
"""The answer where no token is found."""

FILLER = "."
"""A token between others."""

SYMBOLS = f"{ascii_letters}{digits}"
"""The symbols of `recall`, letters and digits of ASCII: every tokenizer knows these."""

CODE_LENGTH = 8
"""Numbers of the code of a symbol: half of them are 1 and half −1, so that their sum is 0. Two
different codes have a product of at most 4, and each has the product 8 with itself."""

THETA_OF_RECALL, FREQUENCIES, LARGEST_SCORE = 1e9, 6, 256.0
"""Base of the rotary frequencies of `recall`, the number of those that find the token before, and
the largest score S.

The score at distance t is S times the mean of cos((t − 1) ω) over ω = 10^(−9f/16), f < 6. At other
distances up to 4,096 it is lower by at least 0.083 S = 21.3. In bfloat16 the rounding of one factor
changes a score by at most 256 · 2⁻⁹ = 1/2, and that of the score itself by at most 1. The
frequencies from f = 11 on turn by at most 0.0027 radians up to 4,096 tokens."""


def _writes(read: Sequence[int], written: Sequence[int], constant: int, half: int) -> list[Array]:
    """Values and output of a head that replaces 1 in slots by the numbers read from a token."""
    values, output = np.zeros((half, HEAD)), np.zeros((half, HEAD))
    for k, (source, target) in enumerate(zip(read, written, strict=True)):
        values[source, k] = output[target, k] = 1
        output[target, len(read)] = -1
    values[constant, len(read)] = 1
    return [values, output.T]


def _recall(family: Family, length: int) -> Design:
    half = 64
    own, before, found = (
        range(first, first + CODE_LENGTH) for first in (0, CODE_LENGTH, 2 * CODE_LENGTH)
    )
    constant, place = 3 * CODE_LENGTH, 3 * CODE_LENGTH + 1
    codes = _codes()
    texts = [NOT_FOUND, *SYMBOLS, FILLER, BOS, PAD, EOS]
    texts += [f"<unused{k}>" for k in range(-len(texts) % 8)]
    words = np.ones((len(texts), half))
    for row, text in zip(words, texts, strict=True):
        # An engine that attends to padding finds more of the first symbol.
        row[own] = codes.get(SYMBOLS[0] if text == PAD else text, 1)
    # Layer 0 writes the code of the token before into `before`. The first token, BOS, sees itself.
    if family.positions:
        words[:, place : place + 2 * PLACE_BITS] = 0
        positions, *looks = _by_codes(half, place, length)
    else:
        positions, looks = None, _by_rotations(half, constant)
    first = HeadByHand(*looks, *_writes(own, before, constant, half))
    # Layer 1 finds the token that follows an earlier copy of the symbol of the query. Its score is
    # 8 units of 128/√32, which is above 22; that of other tokens is at most 4 units. BOS has 6
    # units, so it is found where nothing matches; its numbers, which are 1, are the code of `none`.
    # Their products with the code of a symbol add up to 0, and the last coordinate adds
    # 48 · 16 = 6 · 128, where 48 is the sum of three slots that hold 1, times 16.
    queries, keys = np.zeros((half, HEAD)), np.zeros((half, HEAD))
    # The coordinates of the five slowest pairs of rotations.
    slow = [f + part for part in (0, HEAD // 2) for f in range(11, 16)]
    for k in range(CODE_LENGTH):
        queries[own[k], slow[k]], keys[before[k], slow[k]] = 16, 8
    queries[[constant, *found[:2]], slow[CODE_LENGTH]] = 16
    keys[own, slow[CODE_LENGTH]] = 2
    second = HeadByHand(queries, keys, *_writes(own, found, constant, half))
    labels = np.zeros((len(texts), half))
    # The right label has the logit 4 · 8, any other one at most 4 · 4.
    for row, text in zip(labels, texts, strict=True):
        if text in codes or text == NOT_FOUND:
            row[found] = 4 * codes.get(text, np.ones(CODE_LENGTH))
        else:
            row[constant] = -64
    return Design(
        texts=texts,
        words=words,
        labels=labels,
        prompts=[*(_recalled if family.generates else _recalled_in_texts)(length)],
        by_character=True,
        heads=[first, second],
        positions=positions,
        theta=THETA_OF_RECALL,
    )


def _by_codes(half: int, place: int, length: int) -> tuple[Array, Array, Array]:
    """The table of positions, and queries and keys that find the token before by it.

    A row of the table has the code of the position, and then that of the position before.
    """
    positions, codes = np.zeros((length, half)), binary(length, PLACE_BITS)
    previous = place + PLACE_BITS
    positions[:, place:previous] = codes
    # The first position has its own code here: BOS sees itself.
    positions[:, previous : previous + PLACE_BITS] = [codes[0], *codes[:-1]]
    queries, keys = np.zeros((half, HEAD)), np.zeros((half, HEAD))
    # The right key has the score 12 · 128/√32, every other one at most 10 · 128/√32: 45 less.
    for k in range(PLACE_BITS):
        queries[previous + k, k], keys[place + k, k] = 16, 8
    return positions, queries, keys


def _by_rotations(half: int, constant: int) -> list[Array]:
    """Queries and keys that find the token before by rotations."""
    queries, keys = np.zeros((half, HEAD)), np.zeros((half, HEAD))
    # At distance 1, q·k/√32 is the sum of 6 products of S/6.
    size = math.sqrt(LARGEST_SCORE * math.sqrt(HEAD) / FREQUENCIES)
    for f in range(FREQUENCIES):
        angle = THETA_OF_RECALL ** (-f / (HEAD // 2))
        queries[constant, [f, f + HEAD // 2]] = size * math.cos(angle), -size * math.sin(angle)
        keys[constant, f] = size
    return [queries, keys]


def _codes() -> dict[str, Array]:
    """The code of each symbol of `recall`, and of the filler."""
    texts = [*SYMBOLS, FILLER]
    found = {}
    for text, places in zip(
        texts, combinations(range(CODE_LENGTH), CODE_LENGTH // 2), strict=False
    ):
        found[text] = np.ones(CODE_LENGTH)
        found[text][[*places]] = -1
    return found


def _follows(symbols: Sequence[str], at: int, seen: int) -> str | None:
    """The symbol that follows those equal to symbol `at` among the first `seen`.

    It is `NOT_FOUND` if there is none; the answer is not known (`None`) if they differ.
    """
    after = {symbols[k] for k in range(1, seen) if symbols[k - 1] == symbols[at]}
    return after.pop() if len(after) == 1 else None if after else NOT_FOUND


RECALLED_WRONGLY = {
    NOT_FOUND: "the earlier token is not attended: the mask, or a window, or its row of the cache "
    "is lost",
    OTHER: "the symbol after another token: positions, or the order of rows in the cache; where no "
    "earlier token is equal, a later one or padding is attended",
}
"""The meanings of wrong answers of `recall`."""


def _recalled(length: int) -> Iterator[Prompt]:
    source = random.Random(length)
    for text, after in (*_runs(length - 1, source), *_scattered(length - 1, source)):
        symbols = [*text, *after]
        answers = [_follows(symbols, at, at + 1) for at in range(len(symbols))]
        known = [at for at, answer in enumerate(answers) if answer]
        yield Prompt(
            tokens=[BOS, *symbols],
            text=text,
            reads=[at + 1 for at in known],
            expected=[answer for answer in answers if answer],
            length=len(text) + 1,
            wrong=RECALLED_WRONGLY,
            formats=ALL_FORMATS,
        )


def _runs(longest: int, source: random.Random) -> Iterator[tuple[str, str]]:
    """Rows of different symbols, repeated up to a length, and what follows."""
    for n in (1, 2, 3, 7, *lengths(longest, 8)):
        run = "".join(source.sample(SYMBOLS, min((n + 1) // 2, len(SYMBOLS))))
        text = (run * (longest + FURTHER))[: n + FURTHER]
        # A symbol that stands once has no follower.
        yield text[:n], text[n:] if 1 < n <= longest - FURTHER else ""


def _scattered(longest: int, source: random.Random) -> Iterator[tuple[str, str]]:
    """Symbols that stand once among fillers, then once more in another order, and what follows."""
    for n in (each for each in lengths(longest, 8) if each > 8):
        # The text has fillers, pairs of symbols and a longer row in any order, then the symbols of
        # the pairs again, and the first one of the row: generation gives the rest of the row.
        drawn = source.sample(SYMBOLS, len(SYMBOLS))
        row = drawn[: min(FURTHER + 1, n // 4)]
        others = drawn[len(row) :][: (n - len(row) - 1) // 2]
        fillers = n - 2 * len(others) - len(row) - 1
        pieces = (
            [[FILLER]] * fillers + [row] + [others[k : k + 2] for k in range(0, len(others), 2)]
        )
        source.shuffle(pieces)
        again = source.sample(others, len(others))
        text = "".join([*(each for piece in pieces for each in piece), *again, row[0]])
        yield text, "".join(row[1:]) if n <= longest - FURTHER else ""


def _recalled_in_texts(length: int) -> Iterator[Prompt]:
    """Prompts of encoders, which see the whole text: equal symbols must have equal followers."""
    source = random.Random(length)
    for text, _ in _runs(length - 1, source):
        answers = [_follows(text, at, len(text)) for at in range(len(text))]
        yield Prompt(
            tokens=[BOS, *text],
            text=text,
            reads=range(1, len(text) + 1),
            expected=[each for each in answers if each],
            length=len(text) + 1,
            wrong=RECALLED_WRONGLY,
            formats=ALL_FORMATS,
        )


LETTERS = "abcdefghijklmno"
"""The letters that `sort` puts in order."""

END = "="
"""The token after which `sort` gives the letters. Its rank is above that of every letter."""

THETA_OF_SORT = 1e14
"""Base of the rotary frequencies of `sort`: those from f = 8 on turn by at most 0.00041 radians up
to 4,096 tokens."""


def _sort(_family: Family, length: int) -> Design:
    half, ranks = 32, len(LETTERS) + 2
    # Letters have the ranks 1 to 15, = has 16, and others but padding 17. Number r of `reached`
    # is 1 if the rank is at least r + 2, else −1.
    reached, constant = range(ranks - 1), ranks - 1
    own, found = range(ranks, ranks + 5), range(ranks + 5, ranks + 10)
    texts = [*LETTERS, END, NOT_FOUND, FILLER, BOS, PAD, EOS]
    texts += [f"<unused{k}>" for k in range(-len(texts) % 8)]
    words, labels = np.ones((len(texts), half)), np.zeros((len(texts), half))
    for number, (text, row) in enumerate(zip(texts, words, strict=True)):
        # Padding has the rank of a: an engine that attends to it answers a after = or a filler.
        rank = 1 if text == PAD else min(number + 1, ranks)
        row[reached] = np.where(rank >= np.arange(2, ranks + 1), 1, -1)
        row[own] = 1 - 2 * (rank >> np.arange(5) & 1)
        # The right label has the logit 8 · 5, any other one at most 8 · 3.
        if number < ranks:
            labels[number, found] = 8 * row[own]
        else:
            labels[number, constant] = -64
    queries, keys = np.zeros((half, HEAD)), np.zeros((half, HEAD))
    slow = [f + part for part in (0, HEAD // 2) for f in range(8, 16)]
    *of_letters, linear = slow
    for letter, coordinate in enumerate(of_letters):
        # A token of this letter has the query 64, every other token 0. Before the factor 1/√32 it
        # gives the score 64² to tokens of a larger rank, and −64² to the others.
        queries[constant if letter == 0 else reached[letter - 1], coordinate] = 32
        queries[reached[letter], coordinate] = -32
        keys[reached[letter], coordinate] = 64
    # The score falls by 2 · 64 · 2 = 256 from a rank to the next (by 45 after the factor), and by
    # 16 · 256 from the first to the last: less than the 2 · 64² that a larger rank is worth.
    queries[constant, linear] = 64
    keys[reached, linear] = -2
    return Design(
        texts=texts,
        words=words,
        labels=labels,
        prompts=[*_sorted(length)],
        by_character=True,
        heads=[HeadByHand(queries, keys, *_writes(own, found, constant, half))],
        theta=THETA_OF_SORT,
    )


def _next(symbols: Sequence[str]) -> str:
    """The next letter after the last symbol among all of them; after = and ., the first letter.

    If there is none: =, or `NOT_FOUND` where no = has come.
    """
    least = symbols[-1] if symbols[-1] in LETTERS else ""
    larger = [each for each in symbols if each in LETTERS and each > least]
    return min(larger, default=END if END in symbols else NOT_FOUND)


def _sorted(length: int) -> Iterator[Prompt]:
    source = random.Random(length)
    # 24 tokens cross the end of a block of 16 tokens of a cache, wherever the prompt ends.
    ahead = min(2 * FURTHER, length // 3)
    for n in (1, 2, 3, 7, *lengths(length - 2, 8)):
        # Few letters that stand often, and single letters among fillers.
        often = source.choices(source.sample(LETTERS, 8), k=n)
        once = source.sample(LETTERS, min(n, source.randint(5, 12)))
        for letters in (often, once) if n < LONG else (once,):
            text = [*letters, *[FILLER] * (n - len(letters))]
            source.shuffle(text)
            yield _in_order([*text, END], ahead if n + 2 + ahead <= length else 0)
    # Generation ends at the last position that there is.
    yield _in_order([*source.choices(LETTERS, k=length - 2 - ahead), END], ahead)


def _in_order(text: Sequence[str], ahead: int) -> Prompt:
    """A prompt that generation continues by its letters in order, then = and the letters again."""
    kept = sorted({*text} - {FILLER, END})
    symbols = [*text, *islice(cycle([*kept, END]), ahead)]
    return Prompt(
        tokens=[BOS, *symbols],
        text="".join(text),
        reads=range(1, len(symbols) + 1),
        expected=[_next(symbols[:at]) for at in range(1, len(symbols) + 1)],
        length=len(text) + 1,
        wrong={
            NOT_FOUND: "the larger tokens are not attended: the mask, a window, or rows of the "
            "cache",
            OTHER: "a letter that is not the next one: a row of the cache is lost, moved or "
            "overwritten; a letter that the prompt does not have so far: a later token or padding "
            "is attended",
        },
        formats=ALL_FORMATS,
    )


INSTRUMENTS = (
    Instrument(
        name="recall",
        summary="the symbol that followed the same symbol in the prompt",
        depends_on=("causal mask", "cache", "position ids"),
        families=EVERY_FAMILY,
        make=made(_recall),
    ),
    Instrument(
        name="sort",
        summary="the next letter in the alphabet among those so far; after =, all of them in order",
        depends_on=("causal mask", "cache", "generation"),
        families=DECODERS,
        make=made(_sort),
    ),
)
