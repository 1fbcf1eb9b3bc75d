"""Parts of the study dimensions, composed in parallel, in series, and as one program."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

import transformist as tf

KINDS = "dyck", "min", "add", "lookup"


def part_program(numbers: Sequence[int], is_alone: bool = False) -> Any:
    """A program of the parts with these numbers."""

    @tf.program(alphabet="()")
    def parts(x: Any) -> Any:
        found = {f"part{number}": _part(x, number) for number in numbers}
        tagged = {name: each.tag() for name, each in found.items()}
        return tagged.popitem()[1] if is_alone else tf.outputs(**tagged)

    return parts


def _part(x: Any, number: int) -> Any:
    """One part; from number 4 on, `)` opens and `(` closes, and s is 2 instead of 1."""
    sign, s = (-1, 2) if number >= len(KINDS) else (1, 1)
    step = x.map({"(": sign, ")": -sign})
    kind = KINDS[number % 4]
    if kind == "dyck":
        balance = step.prefix_mean()
        return (balance == 0) & (balance >= 0).all_so_far()
    if kind == "lookup":
        return step.lookup(s, default=0)
    before = step.predecessor(s, default=0)
    return step.min(before) if kind == "min" else step + before


def right_answers(number: int, string: str) -> list[Any]:
    """Answers of the part with this number at each position, by its definition."""
    opening, s = (")", 2) if number >= len(KINDS) else ("(", 1)
    v = [1 if each == opening else -1 for each in string]
    before = [0] * s + v
    sums = list(itertools.accumulate(v))
    found: dict[str, list[Any]] = {
        "dyck": [sums[i] == 0 and min(sums[: i + 1]) >= 0 for i in range(len(v))],
        "min": [min(each, old) for each, old in zip(v, before, strict=False)],
        "add": [each + old for each, old in zip(v, before, strict=False)],
        "lookup": [v[s - 1] if len(v) >= s else 0] * len(v),
    }
    return found[KINDS[number % 4]]


def in_parallel(parts: int, n: int) -> Any:
    """Each part compiled alone, and all on one stream, with a read-out of each."""
    alone = [tf.compile(part_program([k], is_alone=True), max_length=n) for k in range(parts)]
    joint = alone[0]
    for each in alone[1:]:
        joint = tf.parallel(joint, each)
    read, start = [], 0
    for each in alone:
        W_out = np.zeros((len(each.read_out.W_out), joint.width), dtype=object)
        W_out[:, start : start + each.width] = each.read_out.W_out
        read.append(replace(each.read_out, W_out=W_out))
        start += each.width
    return replace(
        joint, read_out=tf.Outputs(names=tuple(f"part{k}" for k in range(parts)), parts=tuple(read))
    )


def _stack(number: int, n: int) -> Any:
    """A part on (v, i/n): Dyck-1 of v, min(v, i/n), v + i/n, or v at the position before."""
    if number == 0:
        dyck = tf.recipe("dyck-1").build(max_length=n)
        stream = tf.Stream(("v", "i/n", *dyck.stream.slots[1:]))
        reads = ["v", *dyck.stream.slots[1:]]  # the recipe's slot `sign` is v
        layers = [
            tf.Layer(
                tuple(tf.route(head, stream, reads, reads) for head in each.heads),
                tf.route(each.feed_forward, stream, reads, reads),
            )
            for each in dyck.layers
        ]
        return tf.LayerStack(stream, ("v", "i/n"), tuple(layers), ("accept", "i/n"))
    stream, kind = tf.Stream(("v", "i/n", "y")), KINDS[1 + (number - 1) % 3]
    if kind == "lookup":
        head = tf.recipe("predecessor-strict").build()
        layer = tf.Layer((tf.route(head, stream, ["i/n", "v"], ["y"]),))
    else:
        network = tf.recipe(kind).build()
        layer = tf.Layer((), tf.route(network, stream, ["v", "i/n"], ["y"]))
    return tf.LayerStack(stream, ("v", "i/n"), (layer,), ("y", "i/n"))


def in_series(parts: int, n: int) -> Any:
    """The stacks one after the other."""
    model = _stack(0, n)
    for number in range(1, parts):
        model = tf.serial(model, _stack(number, n))
    return model


def right_in_series(parts: int, string: str) -> list[Fraction]:
    """Numbers of the stacks in series, by their definitions; row 0 stands for BOS."""
    n = len(string)
    place = [Fraction(i, max(n, 1)) for i in range(n + 1)]
    sums = list(itertools.accumulate([0, *(1 if each == "(" else -1 for each in string)]))
    v = [Fraction(sums[i] == 0 and min(sums[: i + 1]) >= 0) for i in range(n + 1)]
    for number in range(1, parts):
        pairs = list(zip(v, place, strict=True))
        v = [
            [min(*each) for each in pairs],
            [sum(each, Fraction(0)) for each in pairs],
            [Fraction(0), *v[:-1]],
        ][(number - 1) % 3]
    return v


def as_vectors(string: str) -> list[list[Fraction]]:
    """(v, i/n) in each row; row 0 stands for BOS."""
    n = max(len(string), 1)
    steps = [0, *(1 if each == "(" else -1 for each in string)]
    return [[Fraction(v), Fraction(i, n)] for i, v in enumerate(steps)]


def live_slots(model: Any, streams: Sequence[Any], read: set[int]) -> list[int]:
    """For each stream, the number of slots that are not 0 on some input and are read later."""
    later, found = read, []
    reads = [_read_by(sublayer.function) for layer in model.layers for _, sublayer in
             layer.sublayers()]  # fmt: skip
    for z, columns in zip(reversed(streams), [set[int](), *reversed(reads)], strict=True):
        later = later | columns
        found.append(len(later & set(np.flatnonzero(z.any(axis=0)).tolist())))
    return found[::-1]


def _read_by(function: Any) -> set[int]:
    """The slots that a sublayer reads, by the columns of its weights that are not 0."""
    heads = getattr(function, "heads", ())
    matrices = [W for head in heads for W in (head.W_Q, head.W_K, head.W_V)] or [function.W_1]
    return {int(k) for W in matrices for k in np.flatnonzero((W != 0).any(axis=0))}
