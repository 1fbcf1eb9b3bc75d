"""Known mistakes of masks, scores, heads and rotations."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from transformist.conformance.family import Array, Family
from transformist.conformance.forward import Formulas
from transformist.conformance.mistake import Mistake

_Condition = Callable[[Any, Any, int], Any]
"""A condition on keys, queries and the layer, with keys and queries as positions."""


def _without_each(size: int) -> _Condition:
    # A query keeps its own key even at the end of a tile: no row is without keys.
    return lambda k, q, _: (k % size != size - 1) | (k == q)


def _and_causal(near: _Condition) -> _Condition:
    return lambda k, q, layer: (k <= q) & near(k, q, layer)


def _without_ends(size: int) -> _Condition:
    return _and_causal(_without_each(size))


def _seen(change: _Condition) -> Formulas:
    """The mask with this condition."""

    def sees(rows: int, layer: int) -> Any:
        keys, queries = np.arange(rows)[None, :], np.arange(rows)[:, None]
        return np.broadcast_to(change(keys, queries, layer), (rows, rows))

    return Formulas(sees=sees)


def file_windows() -> Iterator[Mistake]:
    """Mistakes about the window of the file, in a class that has sliding windows."""
    for words, change in {
        "there is no window": lambda _size, _layer: None,
        "the window has one key less": lambda size, _layer: size and size - 1,
        "the window has one key more": lambda size, _layer: size and size + 1,
        "layers 0, 2, … have no window": lambda size, layer: size if layer % 2 else None,
        "layers 1, 3, … have no window": lambda size, layer: None if layer % 2 else size,
    }.items():
        yield Mistake(fault="window", words=words, formulas=Formulas(window=change))


def masks(first: int, sizes: Collection[int]) -> Iterator[Mistake]:
    """Mistakes of masks: windows of some sizes, and parts of as many keys as `first`."""
    causal = {
        "a token sees the next one": _seen(lambda k, q, _: k <= q + 1),
        "there is no causal mask": _seen(lambda _k, q, _: q >= 0),
        # The first token sees itself all the same, as it sees no other.
        "a token does not see itself": _seen(lambda k, q, _: k < np.maximum(q, 1)),
    }
    for size in (16, 32, 64):
        causal[f"the last key of each tile of {size} is left out"] = _seen(_without_ends(size))
    for words, formulas in causal.items():
        yield Mistake(fault="causal mask", words=words, formulas=formulas)
    for size in sizes:
        windows = {
            "": _near(size, (0, 1)),
            " in layers 0, 2, …": _near(size, (0,)),
            " in layers 1, 3, …": _near(size, (1,)),
        }
        for where, near in windows.items():
            yield Mistake(
                fault="window",
                words=f"the last {size} tokens are attended{where}",
                formulas=_seen(_and_causal(near)),
            )
    if first > 1:
        yield Mistake(
            fault="attention formula",
            words=f"parts of {first} keys are joined without the sums of their weights",
            formulas=Formulas(weighed=lambda scores: _in_parts(scores, first)),
        )


def _near(size: int, parities: Collection[int]) -> _Condition:
    """True for the last `size` keys, and for all keys in the other layers, even or odd."""
    return lambda k, q, layer: (k > q - size) | (layer % 2 not in parities)


def masks_of_encoders(sizes: Collection[int]) -> Iterator[Mistake]:
    """Mistakes of masks of a class without a mask. A window has a number of keys on each side."""
    seen: dict[str, tuple[str, _Condition]] = {
        "there is a causal mask": ("causal mask", lambda k, q, _: k <= q),
        "there is a causal mask in layers 1, 2, …": (
            "causal mask",
            lambda k, q, layer: (k <= q) | (layer == 0),
        ),
        "a token does not see itself": ("causal mask", lambda k, q, _: k != q),
    }
    for size in (16, 32, 64):
        seen[f"the last key of each tile of {size} is left out"] = (
            "causal mask",
            _without_each(size),
        )
    for size in sizes:
        seen[f"keys at a distance of {size} or more are not attended"] = "window", _around(size)
    for words, (fault, change) in seen.items():
        yield Mistake(fault=fault, words=words, formulas=_seen(change))


def _around(size: int) -> _Condition:
    return lambda k, q, _: abs(k - q) < size


def _in_parts(scores: Array, size: int) -> Array:
    """Softmax of the first keys and of the others, joined with equal weights."""
    parts = [each for each in np.split(scores, [size], axis=-1) if each.shape[-1]]
    sees = [np.isfinite(each).any(-1, keepdims=True) for each in parts]
    weights = []
    for part, has_keys in zip(parts, sees, strict=True):
        # The maximum of a part without keys is −∞, and −∞ − (−∞) would be NaN: its powers are
        # e^(−∞) = 0, and so are its weights.
        powers = np.exp(part - np.where(has_keys, part.max(-1, keepdims=True), 0))
        weights.append(powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300))
    return np.concatenate(weights, axis=-1) / sum(each.astype(float) for each in sees)


def attention(family: Family) -> Iterator[Mistake]:
    """Mistakes of scores, weights, heads and rotations."""
    scales = {
        "scores have no scale": Formulas(scale=0.0),
        "scores are divided by the size of a head": Formulas(scale=-1.0),
        "scores are divided by the root of the width": Formulas(
            # The width is H d for H heads: √(H d) is √H times the right divisor √d.
            factor=lambda _, heads: heads**-0.5
        ),
        "scores are divided by the number of the layer": Formulas(
            factor=lambda layer, _: 1 / (layer + 1)
        ),
        "scores are multiplied by the factor of YaRN": Formulas(
            # YaRN multiplies queries and keys by 0.1 ln s + 1 each, s = 4 being the ratio of the
            # contexts.
            factor=lambda _layer, _heads: (0.1 * math.log(4) + 1) ** 2
        ),
    }
    for words, formulas in scales.items():
        yield Mistake(fault="scale of scores", words=words, formulas=formulas)

    def normalized(x: Array) -> Array:
        return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6))

    formulas_of_attention = {
        "the softmax has a sink of score 0": Formulas(weighed=_with_sink),
        "queries and keys are normalized": Formulas(
            prepared=lambda q, k, v: (normalized(q), normalized(k), v)
        ),
        "the softmax does not subtract the maximum": Formulas(weighed=_without_maximum),
        "scores are capped at 50": Formulas(scored=lambda x: 50 * np.tanh(x / 50)),
        "scores are capped at 30": Formulas(scored=lambda x: 30 * np.tanh(x / 30)),
        "queries, keys and values are clipped at 8": Formulas(
            prepared=lambda *qkv: [np.clip(each, -8, 8) for each in qkv]
        ),
        "all keys have the same weight": Formulas(scored=np.zeros_like),
    }
    for words, formulas in formulas_of_attention.items():
        yield Mistake(fault="attention formula", words=words, formulas=formulas)

    layouts = {
        "query heads take keys and values in turns": Formulas(groups="turns"),
        "all query heads take the first keys and values": Formulas(groups="first"),
        "heads are joined before they are moved behind the positions": Formulas(
            merged=lambda x: x.reshape(x.shape[1], x.shape[0], -1).transpose(1, 0, 2)
        ),
        "the last head is lost": Formulas(merged=_without_last),
        "queries, keys and values are split head by head": Formulas(
            joined=lambda x, d: [*x.reshape(len(x), -1, 3, d).transpose(2, 1, 0, 3)]
        ),
    }
    if family.positions:
        # A class with rotations may have fewer keys than queries.
        layouts["queries and keys are exchanged"] = Formulas(prepared=lambda q, k, v: (k, q, v))
    for words, formulas in layouts.items():
        yield Mistake(fault="layout of heads", words=words, formulas=formulas)
    if family.positions is None:
        yield from _rotations()


def _without_last(x: Array) -> Array:
    return x * (np.arange(len(x)) < max(len(x) - 1, 1))[:, None, None]


def _with_sink(scores: Array) -> Array:
    most = np.maximum(scores.max(-1, keepdims=True), 0)
    powers = np.exp(scores - most)
    # The sink adds e⁰ to the sum of e^score; all are divided by e^m, m the largest score or 0.
    return np.asarray(powers / (powers.sum(-1, keepdims=True) + np.exp(-most)))


def _without_maximum(scores: Array) -> Array:
    powers = np.exp(scores.astype(np.float32))
    return np.asarray(powers / powers.sum(-1, keepdims=True), np.float64)


def _stretched(frequencies: Array) -> Array:
    """Return the frequencies of the larger base that is used for a context four times as long."""
    half = len(frequencies)
    # With the base b 4^(d/(d − 2)) in place of b, the frequency k = 0, 1, … is b^(−2k/d) 4^(−2k/(d
    # − 2)), and with d = 2 half the second factor is 4^(−k/(half − 1)).
    return np.asarray(frequencies * 4.0 ** (-np.arange(half) / max(half - 1, 1)))


def _halved(frequencies: Array) -> Array:
    half = len(frequencies)
    # A frequency of 0 turns by the angle 0: the pair is not rotated.
    return np.where(np.arange(half) < half // 2, frequencies, 0)


def _rotations() -> Iterator[Mistake]:
    for words, formulas in {
        "rope_theta is 10000, not the value in the file": Formulas(theta=10000.0),
        "rope_theta is 500000, not the value in the file": Formulas(theta=500000.0),
        "rotations pair neighbouring coordinates": Formulas(pairs="neighbours"),
        "there are no rotations": Formulas(theta=0.0),
        "rotations turn backwards": Formulas(frequencies=lambda f: -f),
        "keys alone are rotated": Formulas(rotated="k"),
        "queries alone are rotated": Formulas(rotated="q"),
        "values are rotated as well": Formulas(rotated="qkv"),
        "half of each head is rotated": Formulas(frequencies=_halved),
        "positions are divided by 4": Formulas(frequencies=lambda f: f / 4),
        "frequencies are scaled as for a longer context": Formulas(frequencies=_stretched),
    }.items():
        yield Mistake(fault="rotations", words=words, formulas=formulas)
