"""Instruments by hand that read where a token is: `marker`, `place` and `offset`."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

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
    complete,
    lengths,
    made,
)
from transformist.conformance.families import EVERY_FAMILY, FAMILIES
from transformist.conformance.family import Family
from transformist.conformance.instrument import OTHER, Instrument, Prompt


def _marker(family: Family, length: int) -> Design:
    half = 32
    texts = ["none", "seen", "here", "a", "b", "#", BOS, PAD]
    texts += [EOS, *(f"<unused{k}>" for k in range(7))]
    is_here, is_seen, again, constant = 0, 1, 2, 3
    # Every number of a word is 1 or −1, and the head moves the two −1 of `is_seen` to 1: each norm
    # divides by √(1 + eps), which rounds to 1 in bfloat16 and float16. All weights but 0 of one
    # output, or of one vector, have one magnitude: rounding to int8 or int4 with a scale of the
    # largest magnitude keeps them.
    words = np.ones((len(texts), half))
    words[:, [is_here, is_seen, again]] = -1
    words[texts.index("#"), is_here] = 1
    queries, keys, values, output = (np.zeros((half, HEAD)) for _ in range(4))
    # The score of the marker is 256/√32 > 45, and that of other tokens 0: e^(−45) · 4096 is below
    # 2⁻⁵². Rotations turn coordinate 15, the slowest, by less than 0.0012 up to 4,096 tokens.
    queries[constant, 15] = 16
    keys[[is_here, constant], 15] = 8
    values[[is_here, constant], 3] = output[[is_seen, again], 3] = 1
    labels = np.zeros((len(texts), half))
    # With s and h of `is_seen` and `is_here`, the logits are −4 − 8 s, 8 s and 16 (s + h). The
    # right label leads by 8 or more, and `none` by 4 at a marker that does not see itself. No two
    # are equal if half of the weight of the marker is lost, s = 0; nor if an engine adds 1 to the
    # gain: s is 3 after the marker, and `here` leads `seen` by 32 to 24.
    labels[0, [is_seen, again, constant]] = -4, -4, -4
    labels[1:3, [is_seen, is_here]] = (8, 0), (16, 16)
    labels[3:, constant] = -64
    window = window_of(length) if "window" in family.settings else None
    return Design(
        texts=texts,
        words=words,
        labels=labels,
        prompts=[*_marked(family, length, window)],
        by_character=True,
        heads=[HeadByHand(queries, keys, values, output.T)],
        window=window,
    )


def window_of(length: int) -> int:
    """The window of Mistral: no multiple of a usual block, and less than half of the longest input.

    Example:
        >>> window_of(32), window_of(256)
        (11, 95)

    """
    return 3 * length // 8 - 1


IN_A_DECODER = {
    "seen": "before the marker: a later token is attended; at the marker: the token is wrong; "
    "later: the window of the file is missing or too long",
    "none": "after the marker: the marker left the window or the cache too early; at the marker: "
    "the token does not attend to itself",
    "here": "not at the marker: the logits of another position, or another row of the batch",
}
"""The meanings of wrong answers of `marker`."""

IN_AN_ENCODER = {
    "seen": "at the marker: the token is wrong; in a text without one: another row of the batch",
    "none": "before the marker: a causal mask; on both sides of it: a window",
    "here": "not at the marker: the logits of another position, or another row of the batch",
}
"""The meanings of wrong answers of `marker` in an encoder, which sees the whole text."""


def _marked(family: Family, length: int, window: int | None) -> Iterable[Prompt]:
    rows = []
    for n in (1, 2, 3, 7, *lengths(length - 1, 8)):
        # Long prompts take time and memory: one each.
        for place in sorted({0, n // 2, n - 1}) if n < LONG else [n // 3]:
            rows.append("ab"[n % 2] * place + "#" + "b" * (n - place - 1))
    rows.append("ab" * (length // 2 - 1))
    for text in rows:
        place = text.find("#")
        answers = []
        for at in range(len(text)):
            is_before = family.generates and at < place
            is_lost = is_before or place < 0 or (window is not None and at - place >= window)
            answers.append("here" if at == place else "none" if is_lost else "seen")
        yield Prompt(
            tokens=[BOS, *text],
            text=text,
            reads=range(1, len(text) + 1),
            expected=answers,
            length=len(text) + 1,
            wrong=IN_A_DECODER if family.generates else IN_AN_ENCODER,
            formats=ALL_FORMATS,
        )


def _place(_family: Family, length: int) -> Design:
    half = 32
    texts = [*map(str, range(length)), "a", "b", BOS, PAD, EOS]
    texts += [f"<unused{k}>" for k in range(-len(texts) % 8)]
    words, labels = np.zeros((len(texts), half)), np.zeros((len(texts), half))
    # The code of a position is ±1 in each coordinate: another one has a product lower by 2 or more.
    codes = binary(length, PLACE_BITS)
    positions = np.zeros((length, half))
    # The sum of a word and any row of the table has 1 or −1 in every coordinate: a norm divides by
    # √(1 + eps). As in `marker`, each vector has one magnitude beside 0.
    positions[:, :PLACE_BITS], words[:, PLACE_BITS:] = codes, 1
    # The right label has 4 · 12, any other at most 4 (12 − 2): a lead of 8.
    labels[:length, :PLACE_BITS] = 4 * codes
    labels[length:, PLACE_BITS] = -64
    wrong = {
        OTHER: "larger by the padding: positions count padding; restarts at a chunk: positions "
        "start again; constant while decoding: positions do not advance"
    }
    prompts = [
        Prompt(
            tokens=[BOS, *text],
            text=text,
            reads=range(1, n + 1),
            expected=[*map(str, range(1, n + 1))],
            length=n + 1,
            wrong=wrong,
            formats=ALL_FORMATS,
        )
        for n in (1, 2, 3, 7, *lengths(length - 1, 8))
        for text in ["ab" * (n // 2) + "a" * (n % 2)]
    ]
    return Design(
        texts=texts,
        words=words,
        labels=labels,
        prompts=prompts,
        by_character=True,
        positions=positions,
    )


BACK = 11
"""Tokens from a position back to the one that `offset` gives."""

LETTERS = "abcdefghijkl"

BASE, FREQUENCIES, SHARPNESS = 500.0, 8, 192.0
"""Base of the rotary frequencies, the number of those that are used, and the largest score.

The score at distance t is S times the mean of cos((t − 11) ω) over ω = 500^(−f/16), f < 8. At other
distances up to 4,096 it is lower by at least 0.109 S = 20.9, so that all other tokens together have
a weight below 4096 e^(−20.9) < 10⁻⁵. A rounding to bfloat16 changes a score by less than 2."""


def _offset(family: Family, length: int) -> Design:
    half, pairs = 64, HEAD // 2
    constant = 2 * len(LETTERS)
    texts = [*LETTERS, BOS, PAD, EOS, "<unused0>"]
    words = np.zeros((len(texts), half))
    words[:, constant] = 4
    words[range(len(LETTERS)), range(len(LETTERS))] = 1
    complete(words, constant + 1, family.epsilon)
    queries, keys, values, output = (np.zeros((half, HEAD)) for _ in range(4))
    # q·k/√32 is the sum of 8 products of equal size.
    size = math.sqrt(SHARPNESS * math.sqrt(HEAD) / FREQUENCIES) / 4
    for f in range(FREQUENCIES):
        angle = BACK * BASE ** (-f / pairs)
        queries[constant, [f, f + pairs]] = size * math.cos(angle), -size * math.sin(angle)
        keys[constant, f] = size
    for k in range(len(LETTERS)):
        values[k, k] = output[len(LETTERS) + k, k] = 1
    labels = np.zeros((len(texts), half))
    labels[range(len(LETTERS)), range(len(LETTERS), constant)] = 16
    labels[len(LETTERS) :, constant] = -4
    wrong = {
        OTHER: "in a prompt that repeats 12 letters, the letter says the distance: another base or "
        "pairing of rotations; beyond a place in the prompt: positions restart, stand still or are "
        "rounded"
    }
    source = random.Random(length)
    prompts = []
    for n in lengths(length - 1, BACK + 1):
        drawn = "".join(source.choices(LETTERS, k=n))
        for text in (drawn, (LETTERS * length)[:n]) if n < LONG else (drawn,):
            symbols = [*text]
            for _ in range(FURTHER if n + FURTHER < length else 0):
                symbols.append(symbols[-BACK - 1])
            first = BACK + 1
            prompts.append(
                Prompt(
                    tokens=[BOS, *symbols],
                    text=text,
                    reads=range(first, len(symbols) + 1),
                    expected=[symbols[at - 1 - BACK] for at in range(first, len(symbols) + 1)],
                    length=n + 1,
                    wrong=wrong,
                    formats=ALL_FORMATS,
                )
            )
    return Design(
        texts=texts,
        words=words,
        labels=labels,
        prompts=prompts,
        by_character=True,
        heads=[HeadByHand(queries, keys, values, output.T)],
        theta=BASE,
    )


INSTRUMENTS = (
    Instrument(
        name="marker",
        summary="place of a marker: here, before, or not yet seen; in an encoder: here, elsewhere, "
        "or absent",
        depends_on=("causal mask", "cache", "window"),
        families=EVERY_FAMILY,
        make=made(_marker),
    ),
    Instrument(
        name="place",
        summary="the position of each token, from the table of positions",
        depends_on=("position ids",),
        families=tuple(each for each in EVERY_FAMILY if FAMILIES[each].positions),
        make=made(_place),
    ),
    Instrument(
        name="offset",
        summary="the token 11 places before, by rotations",
        depends_on=("rotations", "position ids", "cache"),
        families=tuple(each for each in EVERY_FAMILY if FAMILIES[each].positions is None),
        make=made(_offset),
    ),
)
