"""Instruments whose weights are written by hand: layers with at most one head that is not 0.

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

HEAD, GROUPS = 32, 2
"""Coordinates of a head, and heads of keys and values in a class with rotations; the last head
computes. Of the sizes that vLLM has on a CPU, 32 is the least."""

BOS, PAD, EOS = "<bos>", "<pad>", "<eos>"

FURTHER = 12
"""Tokens that greedy generation adds to a prompt, where the longest input leaves room for them."""

QUANTIZED = 32
"""Numbers of a group that shares a scale in usual formats of 4 and 8 bits: each row has whole
groups."""

LONG = 256
"""From this many symbols on, an instrument has one prompt of a length."""

PLACE_BITS = 12
"""Bits of a position."""

ALL_FORMATS = ("float32", "bfloat16", "float16")


class HeadByHand(NamedTuple):
    """The head that computes: queries, keys and values (half, d_head), output (d_head, half).

    `half` is half of the width.
    """

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
        heads: the head that computes in each layer; empty for one layer where no head does.
        theta: base of the rotary frequencies.
        positions: the halves of the table of positions, shape (positions, half); None for zeros.
        window: the number of keys that a query sees, in a class with sliding windows.

    """

    texts: Sequence[str]
    words: Array
    labels: Array
    prompts: Sequence[Prompt]
    by_character: bool
    heads: Sequence[HeadByHand] = ()
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
    count = 2 * design.words.shape[1] // HEAD
    sizes = Sizes(
        layers=max(len(design.heads), 1),
        heads=count,
        groups=min(count, GROUPS),
        head=HEAD,
        hidden=QUANTIZED,
        positions=length,
    )
    tensors: dict[str, Array] = {}
    for number in range(sizes.layers):
        own = f"{family.layers}.{number}"
        parts = _parts(family, sizes, design.heads[number] if design.heads else None)
        tensors |= {f"{own}.{name}": each for name, each in family.joined(parts).items()}
        for name, shape in family.matrices(sizes).items():
            if family.has_biases(name):
                tensors[f"{own}.{name}.bias"] = np.zeros(shape[1])
        for name in family.norms:
            tensors |= _norm(family, f"{own}.{name}", sizes.width)
    tensors |= _norm(family, family.outer, sizes.width)
    if family.positions:
        empty = np.zeros((length, sizes.width))
        tensors[family.positions] = empty if design.positions is None else _both(design.positions)
    tensors[family.words] = _both(design.words)
    if family.types:
        tensors[family.types] = np.zeros((TOKEN_TYPES, sizes.width))
    tensors[family.head] = _both(design.labels / 2)
    if family.head_bias:
        tensors[family.head_bias] = np.zeros(len(design.labels))
    config = family.config(sizes, family.epsilon, design.theta, False)
    if "window" in family.settings:
        config[family.settings["window"]] = design.window
    return DenseModel(family=family, config=config, tensors=tensors)


def _parts(family: Family, sizes: Sizes, head: HeadByHand | None) -> dict[str, Array]:
    """The matrices of a layer; its network is 0, and so are all heads but the last."""
    groups = sizes.heads if family.positions else sizes.groups
    parts = {
        "q": np.zeros((sizes.width, sizes.width)),
        "k": np.zeros((sizes.width, groups * HEAD)),
        "v": np.zeros((sizes.width, groups * HEAD)),
        "o": np.zeros((sizes.width, sizes.width)),
        "up": np.zeros((sizes.width, sizes.hidden)),
        "down": np.zeros((sizes.hidden, sizes.width)),
    }
    if head:
        for name, half in zip("qkv", head[:3], strict=True):
            # The reads of (w, −w) by (A/2, −A/2) are w A/2 + w A/2 = w A: both halves count once.
            parts[name][:, -HEAD:] = _reading(half)
        parts["o"][-HEAD:] = _both(head.output)
    return parts


def _norm(family: Family, name: str, width: int) -> dict[str, Array]:
    """The tensors of a norm: a gain of 1, and a bias of 0 if the class has one."""
    bias = {f"{name}.bias": np.zeros(width)} if family.subtracts_mean else {}
    return {f"{name}.weight": np.ones(width), **bias}


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


def binary(count: int, bits: int) -> Array:
    """Codes of the numbers below a count: 1 for each bit 0, −1 for each bit 1, shape (count, bits).

    The product of a code with itself is `bits`, and with another one at most `bits` − 2.
    """
    return np.asarray(1 - 2.0 * (np.arange(count)[:, None] >> np.arange(bits) & 1))


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
