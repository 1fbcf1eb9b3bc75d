"""Instruments whose weights are written by hand: a layer with one head that is not 0.

Every word vector is (w, −w), so that its mean is 0. In some instruments its mean square and eps add
up to 1, and a norm then divides by 1, up to one rounding, in float16, bfloat16 and float32. In the
others all numbers are 1 or −1, and a norm divides by √(1 + eps) with an eps of at most 10⁻⁵, which
is 1 in bfloat16 and float16. So the weights are chosen as if there were no norms. A norm of BERT
changes the stream itself, but where the head adds nothing, changes a sign, or moves a number from
one slot to another, each norm divides by such a number as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transformist.conformance.families import FAMILIES
from transformist.conformance.family import TOKEN_TYPES, Array, DenseModel, Family, Sizes
from transformist.conformance.instrument import Checkpoint, Prompt
from transformist.conformance.network_files import files_of
from transformist.hosts.vocabulary import Vocabulary

HEADS, GROUPS = 4, 2
"""Numbers of query heads, and of heads of keys and values; the last of them computes."""

BOS, PAD, EOS = "<bos>", "<pad>", "<eos>"

FURTHER = 12
"""Tokens that greedy generation adds to a prompt, where the longest input leaves room for them."""

QUANTIZED = 32
"""Numbers of a group that shares a scale in usual formats of 4 and 8 bits: each row has whole
groups."""

LONG = 256
"""From this many symbols on, an instrument has one prompt of a length."""

ALL_FORMATS = ("float32", "bfloat16", "float16")


class HeadByHand(NamedTuple):
    """The head that computes, by matrices of half the width: reads are (half, d_head)."""

    queries: Array
    keys: Array
    values: Array
    output: Array


@dataclass(frozen=True, kw_only=True)
class Design:
    """A network by hand, with its tokens and prompts.

    Attributes:
        texts: the text of each token.
        words: the halves w of the word vectors, shape (tokens, half).
        labels: the halves of the rows of the head, shape (tokens, half).
        prompts: the inputs with known answers.
        by_character: true if a text is split into characters.
        head: the head that computes; None if no head does.
        size: the number of coordinates of a head: half of the half width.
        theta: base of the rotary frequencies.
        positions: the halves of the table of positions, shape (positions, half); None for zeros.
        window: the number of keys that a query sees, in a class with sliding windows.

    """

    texts: Sequence[str]
    words: Array
    labels: Array
    prompts: Sequence[Prompt]
    by_character: bool
    head: HeadByHand | None = None
    size: int = 16
    theta: float = 1e7
    positions: Array | None = None
    window: int | None = None


def _both(half: Array) -> Array:
    """Rows (w, −w) of halves w."""
    return np.concatenate([half, -half], axis=-1)


def _reading(half: Array) -> Array:
    """The matrix (in, out) that gives w·A for the row (w, −w)."""
    return _both(half.T / 2).T


def _network(family: Family, design: Design, length: int) -> DenseModel:
    sizes = Sizes(
        layers=1,
        heads=HEADS,
        groups=GROUPS,
        head=design.size,
        hidden=max(design.size, QUANTIZED),
        positions=length,
    )
    width = sizes.width
    groups = HEADS if family.positions else GROUPS
    parts = {
        "q": np.zeros((width, width)),
        "k": np.zeros((width, groups * design.size)),
        "v": np.zeros((width, groups * design.size)),
        "o": np.zeros((width, width)),
        "up": np.zeros((width, sizes.hidden)),
        "down": np.zeros((sizes.hidden, width)),
    }
    if design.head:
        for name, half in zip("qkv", design.head[:3], strict=True):
            # The reads of (w, −w) by (A/2, −A/2) are w A/2 + w A/2 = w A: both halves count once.
            parts[name][:, -design.size :] = _reading(half)
        parts["o"][-design.size :] = _both(design.head.output)
    own = f"{family.layers}.0"
    tensors = {f"{own}.{name}": each for name, each in family.joined(parts).items()}
    for name, shape in family.matrices(sizes).items():
        if family.has_biases(name):
            tensors[f"{own}.{name}.bias"] = np.zeros(shape[1])
    for name in (*(f"{own}.{each}" for each in family.norms), family.outer):
        tensors[f"{name}.weight"] = np.ones(width)
        if family.subtracts_mean:
            tensors[f"{name}.bias"] = np.zeros(width)
    if family.positions:
        empty = np.zeros((length, width))
        tensors[family.positions] = empty if design.positions is None else _both(design.positions)
    tensors[family.words] = _both(design.words)
    if family.types:
        tensors[family.types] = np.zeros((TOKEN_TYPES, width))
    tensors[family.head] = _both(design.labels / 2)
    if family.head_bias:
        tensors[family.head_bias] = np.zeros(len(design.labels))
    config = family.config(sizes, family.epsilon, design.theta, False)
    if "window" in family.settings:
        config[family.settings["window"]] = design.window
    return DenseModel(family=family, config=config, tensors=tensors)


def made(design: Callable[[Family, int], Design]) -> Callable[[str, int], Checkpoint]:
    """Return the function that makes the checkpoint of a design, as `Instrument.make`."""

    def make(family: str, length: int) -> Checkpoint:
        own = design(FAMILIES[family], length)
        number = {text: k for k, text in enumerate(own.texts)}
        tokens = Vocabulary(
            texts=tuple(own.texts),
            symbols=tuple(range(len(own.texts))),
            answers=tuple(range(len(own.texts))),
            front=(number[BOS],),
            back=(),
            pad=number[PAD],
            bos=number[BOS],
            eos=number[EOS],
            by_character=own.by_character,
        )
        return Checkpoint(
            files=files_of(_network(FAMILIES[family], own, length), tokens, length),
            texts=own.texts,
            prompts=own.prompts,
        )

    return make


def lengths(longest: int, least: int) -> list[int]:
    """Numbers of symbols of prompts, from `least` to `longest`."""
    return sorted({max(min(n, longest), least) for n in (16, 33, 100, 250, 700, 1800, longest)})


def complete(words: Array, first: int, epsilon: float) -> None:
    """Fill coordinates of each row from the first on, so that the mean square and eps add up to 1.

    Each has at most 8 bits, the precision of bfloat16; the fourth brings the sum within 2⁻²⁰.
    """
    for row in words:
        for place in range(first, first + 4):
            # With R still missing, a coordinate f = ⌊√R/s⌋ s with s ≤ 2⁻⁷ √R leaves R − f² ≤ 2 √R s
            # ≤ 2⁻⁶ R: after four of them at most 2⁻²⁴ of the first R.
            left = math.sqrt(max(len(row) * (1 - epsilon) - float(row @ row), 0))
            if left:
                step = 2.0 ** (math.floor(math.log2(left)) - 7)
                row[place] = math.floor(left / step) * step
