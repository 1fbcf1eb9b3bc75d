"""The instrument `number`: a number is compared with thresholds, bit by bit.

The number is 1.0101…01 in base 2. Rounding to b bits after the point changes it by a third of the
last bit, up or down. The thresholds are a quarter of that bit above and below the number, so the
rounded number is on the wrong side of one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from string import ascii_letters, digits
from typing import NamedTuple

import numpy as np

from transformist.conformance.by_hand import (
    ALL_FORMATS,
    BOS,
    EOS,
    HEAD,
    LONG,
    PAD,
    Design,
    HeadByHand,
    complete,
    made,
)
from transformist.conformance.families import EVERY_FAMILY
from transformist.conformance.family import Family
from transformist.conformance.instrument import OTHER, Instrument, Prompt

BITS = 22
"""Bits of the number after the binary point."""

VALUE = sum(4.0**-k for k in range(BITS // 2 + 1))
"""The number 1.0101…01 in base 2. Rounding to b bits changes it by a third of the last bit."""

FINEST = 16
"""The finest bit that is asked for: its quarter, 2⁻¹⁸, is 2⁶ roundings of float32 from 1 to 2."""

LEVELS = {
    ALL_FORMATS: range(3, 7),
    ("float32", "float16"): range(7, 10),
    ("float32",): range(10, FINEST + 1),
}
"""The bits that are asked for, by the formats that keep them: bfloat16 has 7 bits after the point,
and float16 has 10."""

LESS, MORE = "-", "+"
"""The answers: the number is less or more than the threshold of a question."""


class _Question(NamedTuple):
    """A comparison with the number plus or minus a quarter of a bit."""

    is_fetched: bool
    bit: int
    sign: str


def _questions() -> dict[str, _Question]:
    """The questions by their characters, of ASCII: every tokenizer knows these."""
    asked = [
        _Question(is_fetched, bit, sign)
        for is_fetched in (True, False)
        for bits in LEVELS.values()
        for bit in bits
        for sign in "+-"
    ]
    return dict(zip(f"{ascii_letters}{digits}", asked, strict=False))


QUESTIONS = _questions()

PIECE = 4
"""Bits of each piece of a threshold, so that narrow formats keep all pieces."""

IN_PLACE = "in place"
"""The first words of the meaning of a wrong answer to a question without a fetched number."""

COPIES = (0, 1, 3)
"""Tokens from which a question fetches the number, as their mean; at 0 it has the number itself."""


def _number(family: Family, length: int) -> Design:
    half = 32
    value, pieces, payload, is_kept, fetches, negative, hole, rest = 0, 1, 9, 10, 11, 12, 13, 14
    questions = {}
    for text, (_, bit, sign) in QUESTIONS.items():
        questions[text] = VALUE + (1 if sign == "+" else -1) * 2.0 ** -(bit + 2)
    texts = [LESS, MORE, ".", "#", *questions, BOS, PAD, EOS]
    texts += [f"<unused{k}>" for k in range(-len(texts) % 8)]
    words = np.zeros((len(texts), half))
    words[:, negative] = 1
    for row, text in zip(words, texts, strict=True):
        if text == "#":
            row[[payload, is_kept]] = VALUE, 1
        elif text in questions:
            # The stream then holds the number and the pieces of −t, which the labels add up: the
            # logit of + less that of − is 2 (number − t). No piece has more than `PIECE` bits, so
            # formats of 8 bits keep all of them as they are, where t itself would be rounded.
            row[pieces : pieces + 8] = [-each for each in _pieces(questions[text])]
            row[fetches] = QUESTIONS[text].is_fetched
            # The head moves the number from another slot to coordinate 0, so that the norm is 1
            # before and after it.
            row[hole if row[fetches] else value] = VALUE
    complete(words, rest, family.epsilon)
    queries, keys, values, output = (np.zeros((half, HEAD)) for _ in range(4))
    # Coordinates 15 and 31 turn by 10⁷^(−15/16) a token, less than 0.0012 up to 4,096 tokens, and
    # the cosine of this is above 1 − 10⁻⁶. The score of a kept number is 256/√32 > 45, and every
    # other score 0: e^(−45) · 4096 is below 2⁻⁵².
    queries[fetches, 15] = keys[is_kept, 15] = 16
    values[payload, 3] = output[value, 3] = 1
    output[hole, 3] = -1
    labels = np.zeros((len(texts), half))
    # At a question these two logits are less than 1 in magnitude. Those of other tokens are about
    # −64, as every word has 1 there.
    labels[0, value : pieces + 8], labels[1, value : pieces + 8] = -1, 1
    labels[2:, negative] = -64
    return Design(
        texts=texts,
        words=words,
        labels=labels,
        prompts=[*_asked(length)],
        by_character=True,
        heads=[HeadByHand(queries, keys, values, output.T)],
    )


def _pieces(threshold: float) -> list[float]:
    """Numbers of `PIECE` bits that add up to a number from 1 to 2."""
    # A threshold has at most 22 bits after the point, and 28 are kept: nothing is cut off.
    whole, found = int(Fraction(threshold) * 2 ** (PIECE * 7)), []
    for k in range(8):
        part = whole >> PIECE * (7 - k) & (2**PIECE - 1)
        found.append(part * 2.0 ** (-PIECE * k))
    return found


def _asked(length: int) -> Iterable[Prompt]:
    """Prompts of `number`: the number, other tokens, and questions at the end."""
    for count in COPIES:
        for formats, bits in LEVELS.items():
            asked = [
                text
                for text, each in QUESTIONS.items()
                if each.is_fetched == (count > 0) and each.bit in bits
            ]
            kept = ["#"] * count
            rows = [[*kept, ".", each] for each in asked[:: len(asked) - 1]]
            # From a distance, only the finest bits are asked: they are wrong wherever others are.
            far = length - 1 if length <= LONG or bits[-1] == FINEST else 31
            for n in sorted({31, far}):
                rows.append([*kept, *["."] * (n - count - len(asked)), *asked])
            where = (IN_PLACE, "from one token", "as the mean of three tokens")[COPIES.index(count)]
            meaning = f"{where}, fewer than {bits[-1]} bits of a number are kept"
            for symbols in rows:
                questions = [each for each in symbols if each in QUESTIONS]
                yield Prompt(
                    tokens=[BOS, *symbols],
                    text="".join(symbols),
                    reads=range(len(symbols) + 1 - len(questions), len(symbols) + 1),
                    expected=[LESS if QUESTIONS[each].sign == "+" else MORE for each in questions],
                    length=len(symbols) + 1,
                    wrong={
                        LESS: meaning,
                        MORE: meaning,
                        OTHER: "the logits of another position, or a head that is not the file's",
                    },
                    formats=formats,
                )


INSTRUMENTS = (
    Instrument(
        name="number",
        summary="compares a number with thresholds, bit by bit: in place, and from the cache",
        depends_on=("number formats", "cache", "softmax"),
        families=EVERY_FAMILY,
        make=made(_number),
    ),
)
