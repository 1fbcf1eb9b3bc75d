"""The largest of some slots by comparisons: functions from models to models (see `flags`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.assembly.flag_arguments import listed_slots, positive
from transformist.assembly.flags import Gate, M, clearing, with_layers, with_slots
from transformist.assembly.networks import units
from transformist.assembly.routing import expect
from transformist.errors import InvalidValue
from transformist.model import Layer, LayerStack, Stream, Transformer

Block: TypeAlias = "tuple[str, ...]"
"""Slots of which at most one is not 0."""


def _rounds(slots: Sequence[str]) -> list[list[tuple[Block, Block, str]]]:
    """Return rounds of pairs of blocks, each pair with a slot of its own, until one is left."""
    # At most one slot of a block is not 0, so the sum of a block is its largest number that is
    # left, and one comparison of two sums serves a pair of blocks of any size. After it, at most
    # one slot of both is not 0: they are one block. Each round halves the number of blocks, and an
    # odd last one waits, so that there are ⌈log₂ d⌉ rounds.
    blocks: list[Block] = [(slot,) for slot in slots]
    rounds, names = [], (f"less {k}" for k in itertools.count(1))
    while len(blocks) > 1:
        pairs = list(zip(blocks[::2], blocks[1::2], strict=False))
        rounds.append([(left, right, next(names)) for left, right in pairs])
        blocks = [left + right for left, right in pairs] + blocks[2 * len(pairs) :]
    return rounds


def _keep_larger(
    stream: Stream, largest: Fraction, matches: Sequence[tuple[Block, Block, str]]
) -> tuple[Layer, ...]:
    """Return layers that clear the block of each pair with the smaller sum; of equals the right."""
    # A slot becomes B ReLU(right − left). Numbers are 1/B apart, so it is 0 or at least 1: left is
    # cleared where it is at least 1, right where 1 less it is 1.
    compared = units(
        stream,
        *(
            ({**dict.fromkeys(left, -1), **dict.fromkeys(right, 1)}, 0, {less: largest})
            for left, right, less in matches
        ),
    )
    # Of equal sums the right one is cleared: the comparison is 0 there, and 1 less it is 1. So the
    # first of several largest numbers is kept.
    gates = [Gate(less, 0, left) for left, _, less in matches]
    gates += [Gate({less: -1}, 1, right) for _, right, less in matches]
    return Layer(feed_forward=compared), *clearing(stream, largest, *gates)


def keep_largest(model: M, slots: Sequence[str], largest: Any) -> M:
    """The model with 4 ⌈log₂ d⌉ layers that clear all but the first of the largest of d slots.

    New slots, `less 1`, …, hold comparisons. Numbers must be equal or at least 1/B apart, in
    different slots. Only in an arithmetic that clamps at B = `largest`, such as `saturating:B:r`.

    Raises:
        InvalidValue: for no slots, a slot given twice, or a `largest` of 0 or less.

    """
    expect(model, (Transformer, LayerStack), "keep_largest")
    slots, B = listed_slots(slots, "keep_largest"), positive(largest, "keep_largest")
    rounds = _rounds(slots)
    names = [less for each in rounds for _, _, less in each]
    if names:
        model = with_slots(model, names)
    layers = [_keep_larger(model.stream, B, matches) for matches in rounds]
    return with_layers(model, itertools.chain(*layers))


def keep_larger_as_printed(model: M, slots: Sequence[str], largest: Any) -> M:
    """The model with the seven printed layers: ReLU(a − b) and ReLU(b − a), as flags, as gates.

    Only in an arithmetic that clamps at B = `largest`, such as `saturating:B:r`.

    Raises:
        InvalidValue: unless there are two slots, and for a `largest` of 0 or less.

    """
    expect(model, (Transformer, LayerStack), "keep_larger_as_printed")
    slots = listed_slots(slots, "keep_larger_as_printed")
    if len(slots) != 2:
        raise InvalidValue(
            "the printed layers must have two slots",
            received=f"{len(slots)} slots",
            where="keep_larger_as_printed",
            remedy="use keep_largest",
        )
    (a, b), B = slots, positive(largest, "keep_larger_as_printed")
    greater, less = "a > b", "b > a"
    model = with_slots(model, (greater, less))
    stream = model.stream

    def multiplied(by: Fraction) -> Layer:
        """Return the layer that adds `by` times a comparison to itself."""
        return Layer(
            feed_forward=units(stream, *((each, 0, {each: by}) for each in (greater, less)))
        )

    def crossed(by: Fraction) -> Layer:
        return Layer(feed_forward=units(stream, (less, 0, {a: by}), (greater, 0, {b: by})))

    # A comparison is 0 or x ≥ 1/B. x + B x ≥ 1 + 1/B, and as much again is beyond B: clamped to B.
    # B + (1/B − 1) B = 1, without rounding where the format holds 1/B and 1 − 1/B. A flag of 1
    # then clears the other number, ((x + B) + B) − B = 0; flags of 0 leave both.
    compared = Layer(
        feed_forward=units(
            stream,
            ({a: 1, b: -1}, 0, {greater: 1}),
            ({a: -1, b: 1}, 0, {less: 1}),
        )
    )
    flags = [multiplied(by) for by in (B, B, 1 / B - 1)]
    gates = [crossed(by) for by in (B, B, -B)]
    return with_layers(model, [compared, *flags, *gates])
