"""The instrument `vocabulary`: the next token of a cycle, read from the word vector alone."""

from __future__ import annotations

import random

import numpy as np

from transformist.conformance.by_hand import (
    ALL_FORMATS,
    BOS,
    EOS,
    FURTHER,
    LONG,
    PAD,
    Design,
    binary,
    made,
)
from transformist.conformance.families import EVERY_FAMILY
from transformist.conformance.family import Family
from transformist.conformance.instrument import OTHER, Instrument, Prompt

TOKENS = 1031
"""Tokens of `vocabulary`: no multiple of 2, and 7 more than a multiple of every usual block."""

SPECIAL = 500
"""The first of three special tokens, in the middle: ordinary tokens stand at both ends."""

CODED = 11
"""Bits of the number of a token."""

BORDERS = (0, 1, 15, 16, 63, 64, 127, 128, 255, 256, 511, 512, 1023, 1024, 1029, 1030)
"""Tokens beside which a vocabulary is cut, padded or split."""


def _vocabulary(family: Family, length: int) -> Design:
    half = 32
    # Ideographs: each is one character, and no two become one by normalization.
    texts = [chr(0x4E00 + k) for k in range(TOKENS)]
    texts[SPECIAL : SPECIAL + 3] = BOS, PAD, EOS
    words = np.ones((TOKENS, half))
    words[:, :CODED] = binary(TOKENS, CODED)
    labels = words.copy()
    # The right logit is 11 − 21 = −10, below 0, and every other one at most −12: a bit that differs
    # takes 2 away. All numbers are 1 or −1, which rounding to int8 or int4 keeps.
    labels[:, CODED:] = -1
    # The row of a token in the head is the vector of the token before it in a cycle.
    ordinary = [k for k in range(TOKENS) if not SPECIAL <= k < SPECIAL + 3]
    source = random.Random(TOKENS)
    others = [k for k in ordinary if k not in BORDERS]
    cycle = [*source.sample(BORDERS, len(BORDERS)), *source.sample(others, len(others))]
    after = {each: cycle[(k + 1) % len(cycle)] for k, each in enumerate(cycle)}
    before = {second: first for first, second in after.items()}
    heads = labels[[before.get(k, k) for k in range(TOKENS)]]
    # Special tokens have rows of their own vectors, and no answer is read after such a token.
    prompts = []
    for n in sorted({4, 17, 31, min(length - 1, LONG)}):
        drawn = [*source.sample(BORDERS, min(n, len(BORDERS))), *source.choices(ordinary, k=n)][:n]
        # The right token after the last one stands in the prompt already.
        drawn[0], drawn[-1] = after[drawn[-1]], drawn[-1]
        rows = [drawn, [cycle[k % len(cycle) - 1] for k in range(n)]]
        for row in rows:
            symbols = [*row]
            for _ in range(FURTHER if family.generates and n + FURTHER < length else 0):
                symbols.append(after[symbols[-1]])
            prompts.append(
                Prompt(
                    tokens=[texts[k] for k in (SPECIAL, *symbols)],
                    text="".join(texts[k] for k in row),
                    reads=range(1, len(symbols) + 1),
                    expected=[texts[after[k]] for k in symbols],
                    length=n + 1,
                    wrong={
                        OTHER: "the last token itself: the head is tied; a special token or none "
                        "of the vocabulary: rows of zeros are added to the head; a token near the "
                        "end for one of the last: the vocabulary is cut; the answer to the token "
                        "before: the logits of another position"
                    },
                    formats=ALL_FORMATS,
                )
            )
    return Design(texts=texts, words=words, labels=heads, prompts=prompts, by_character=True)


INSTRUMENTS = (
    Instrument(
        name="vocabulary",
        summary="the next token of a cycle through a vocabulary of 1,031 tokens, by the head alone",
        depends_on=("head", "vocabulary", "choice of tokens"),
        families=EVERY_FAMILY,
        make=made(_vocabulary),
    ),
)
