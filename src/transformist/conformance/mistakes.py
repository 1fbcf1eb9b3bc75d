"""All known mistakes of engines; those of attention come from `attention_mistakes`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from transformist.conformance.attention_mistakes import (
    attention,
    file_windows,
    masks,
    masks_of_encoders,
)
from transformist.conformance.family import Array, Family
from transformist.conformance.forward import Formulas
from transformist.conformance.mistake import Mistake


def _to(name: str) -> Callable[[Array], Array]:
    """Return the function that rounds to a format of ml_dtypes or numpy."""
    kept: Any = np.float16 if name == "float16" else getattr(ml_dtypes, name)

    def rounded(x: Array) -> Array:
        return np.asarray(x.astype(np.float32).astype(kept), np.float64)

    return rounded


def _to_tf32(x: Array) -> Array:
    # TF32 keeps 10 of the 23 bits after the point: the mask cuts off the last 13.
    bits = x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return np.asarray(bits.view(np.float32), np.float64)


def _to_whole(x: Array, levels: int, axis: tuple[int, ...] | None) -> Array:
    # The largest number has the last level. The least step keeps 0/0 out where all numbers are 0.
    step = np.maximum(abs(x).max(axis, keepdims=True), 1e-30) / levels
    return np.asarray(np.round(x / step) * step)


def _in_groups(x: Array) -> Array:
    if x.shape[-1] % 32:
        return x
    # Signed whole numbers of 4 bits go from −8 to 7; a scale by the largest magnitude uses −7 to 7.
    return _to_whole(x.reshape(-1, 32), 7, (1,)).reshape(x.shape)


def _only(place: str, rounding: Callable[[Array], Array]) -> Formulas:
    return Formulas(rounded=lambda here, x: rounding(x) if here == place else x)


def _coarse() -> Iterator[Mistake]:
    places = {
        "matrix": "matrices are",
        "stream": "the residual stream is",
        "norm": "results of norms are",
        "scores": "scores are",
        "weights": "weights of attention are",
        "logits": "logits are",
        "angles": "angles of rotations are",
        "factor": "factors of matrix products are",
    }
    for place, words in places.items():
        yield Mistake(
            fault="coarse numbers",
            words=f"{words} rounded to bfloat16",
            formulas=_only(place, _to("bfloat16")),
        )
    others = {
        "factors of matrix products are rounded to TF32": ("factor", _to_tf32),
        "matrices are rounded to int8, one scale for each": (
            "matrix",
            lambda x: _to_whole(x, 127, None),
        ),
        "matrices are rounded to int4 in groups of 32": ("matrix", _in_groups),
        "matrices are rounded to float8": ("matrix", _to("float8_e4m3fn")),
    }
    for words, (place, rounding) in others.items():
        yield Mistake(fault="coarse numbers", words=words, formulas=_only(place, rounding))
    yield Mistake(
        fault="coarse numbers",
        words="weights of attention are rounded to float16",
        formulas=_only("weights", _to("float16")),
    )
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"):
        yield Mistake(
            fault="format of the cache",
            words=f"keys and values are rounded to {name}",
            formulas=_only("cache", _to(name)),
        )
    yield Mistake(
        fault="format of the cache",
        words="keys and values are rounded to int8, one scale for each head",
        formulas=_only("cache", lambda x: _to_whole(x, 127, (1, 2))),
    )


def _first_norm(family: Family) -> Callable[[str], str]:
    first, second = family.norms

    def name_of(name: str) -> str:
        # In BERT, the name of the first norm ends with that of the second.
        is_second = name.endswith(second) and not name.endswith(first)
        return name.removesuffix(second) + first if is_second else name

    return name_of


def outer_norm_missing(family: Family) -> Mapping[str, Formulas]:
    """Return the formulas without the norm outside of layers, by the words of this mistake."""
    name = "norm of the embeddings" if family.normalizes_after else "final norm"
    return {f"the {name} is missing": Formulas(left_out=("outer",))}


def norms_before(family: Family) -> Mapping[str, Formulas]:
    """Return the formulas with norms before sublayers, for a class with norms after them."""
    if not family.normalizes_after:
        return {}
    return {"norms come before the sublayers": Formulas(normalizes_before=True)}


def _norms(family: Family) -> Iterator[Mistake]:
    mean = "do not subtract the mean" if family.subtracts_mean else "subtract the mean"
    for words, formulas in {
        "eps is 0": Formulas(epsilon=0.0),
        **{
            f"eps is {each:g}, not the value in the file": Formulas(epsilon=each)
            for each in (1e-6, 1e-5, family.epsilon)
        },
        "eps is added outside the root": Formulas(
            deviation=lambda square, eps, _: np.sqrt(square) + eps
        ),
        "squares are divided by the width less one": Formulas(
            # The mean square times d is the sum of squares, which the mistake divides by d − 1.
            deviation=lambda square, eps, d: np.sqrt(square * d / (d - 1) + eps)
        ),
        "1 is added to the gain": Formulas(gain=lambda gain: gain + 1),
        "the gain is left out": Formulas(gain=np.ones_like),
        f"norms {mean}": Formulas(subtracts_mean=not family.subtracts_mean),
        **outer_norm_missing(family),
        **norms_before(family),
        "the second norm of each layer is missing": Formulas(left_out=("second",)),
        "the first norm of each layer is missing": Formulas(left_out=("first",)),
        "the second norm of each layer is the first": Formulas(norm_of=_first_norm(family)),
    }.items():
        yield Mistake(fault="norms", words=words, formulas=formulas)


def _networks(family: Family) -> Iterator[Mistake]:
    for name in ("gelu_new", "gelu", "quick_gelu", "silu", "relu", "linear"):
        yield Mistake(
            fault="activation",
            words=f"the activation is {'left out' if name == 'linear' else name}",
            formulas=Formulas(activation=name),
        )
    if family.has_gates:
        yield Mistake(
            fault="activation",
            words="the activation is applied to up_proj",
            formulas=Formulas(swaps_gate=True),
        )


def _layers(family: Family) -> Iterator[Mistake]:
    for place, names in family.biases.items():
        yield Mistake(
            fault="biases",
            words=f"the bias of {place} is missing",
            formulas=Formulas(zeros=names),
        )
    numbers = range(8)
    for words, formulas in {
        "the last layer is missing": Formulas(order=lambda count: range(count - 1)),
        "the first layer is missing": Formulas(order=lambda count: range(1, count)),
        "the first layer is evaluated twice": Formulas(order=lambda count: [0, *range(count)]),
        "the last layer is evaluated twice": Formulas(
            order=lambda count: [*range(count), count - 1]
        ),
        "the input of attention is not added": Formulas(
            without_residual=[f"{k}.attention" for k in numbers]
        ),
        "the input of networks is not added": Formulas(
            without_residual=[f"{k}.network" for k in numbers]
        ),
        "networks read the input of the layer": Formulas(reads_one_stream=True),
        "attention is missing": Formulas(skipped=[f"{k}.attention" for k in numbers]),
        "networks are missing": Formulas(skipped=[f"{k}.network" for k in numbers]),
    }.items():
        yield Mistake(fault="layers and residual stream", words=words, formulas=formulas)


def _with_distance(scores: Array) -> Array:
    heads, rows, _ = scores.shape
    # The slopes of ALiBi for a power of two of heads: 2^(−8h/H) for the heads h from 1 to H. A key
    # at distance t is lowered by t times the slope.
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    behind = np.arange(rows) - np.arange(rows)[:, None]
    return np.asarray(scores + slopes[:, None, None] * behind)


def _places_from(start: int, rows: int) -> Any:
    return np.arange(start, start + rows)


def _inputs(family: Family) -> Iterator[Mistake]:
    yield Mistake(
        fault="embedding",
        words="word vectors are multiplied by the root of the width",
        formulas=Formulas(embedded=lambda x: x * math.sqrt(x.shape[-1])),
    )
    yield Mistake(
        fault="embedding",
        words="the word vector is that of the token before in the vocabulary",
        formulas=Formulas(read=lambda ids: np.maximum(np.asarray(ids) - 1, 0)),
    )
    yield Mistake(
        fault="embedding",
        words="the word vector is that of the token after in the vocabulary",
        formulas=Formulas(read=lambda ids: np.asarray(ids) + 1),
    )
    if family.positions:
        yield Mistake(
            fault="position embedding",
            words="there are no positions",
            formulas=Formulas(places=None),
        )
        for start in (1, 2):
            yield Mistake(
                fault="position embedding",
                words=f"positions begin at {start}",
                formulas=Formulas(places=partial(_places_from, start)),
            )
    if family.types:
        for words, row in (("there are no token types", None), ("tokens have type 1", 1)):
            yield Mistake(fault="embedding", words=words, formulas=Formulas(token_type=row))
    yield Mistake(
        fault="position embedding",
        words="scores are lowered by distance, as in ALiBi",
        formulas=Formulas(scored=_with_distance),
    )


def _outputs(family: Family) -> Iterator[Mistake]:
    def before(logits: Array) -> Array:
        return np.concatenate([logits[:1], logits[:-1]])

    def cut(logits: Array) -> Array:
        count = logits.shape[-1]
        # An engine that takes tokens in blocks of 16 loses those after the last full block.
        return np.where(np.arange(count) < count // 16 * 16, logits, -np.inf)

    if family.generates:
        yield Mistake(fault="head over the vocabulary", words="the head is tied", is_tied=True)
    yield Mistake(
        fault="head over the vocabulary",
        words="logits are capped at 30",
        # In float32, large logits become equal.
        logits=lambda x: np.asarray(30 * np.tanh(x.astype(np.float32) / 30), np.float64),
    )
    yield Mistake(
        fault="head over the vocabulary",
        words="the last tokens of the vocabulary are lost",
        logits=cut,
    )
    yield Mistake(
        fault="head over the vocabulary",
        words="rows of zeros are added to the head",
        logits=lambda x: np.pad(x, ((0, 0), (0, 64))),
    )
    yield Mistake(
        fault="position that is read",
        words="logits are those of the position before",
        logits=before,
    )
    yield Mistake(
        fault="BOS", words="the first token stands twice", given=lambda ids: [ids[0], *ids]
    )


def mistakes(family: Family, first: int, behind: int = 0) -> Mapping[str, Mistake]:
    """The known mistakes by their words.

    Args:
        family: the family of the suite.
        first: the least distance of a wrong answer from the farthest token that it depends on.
        behind: the least distance of a wrong answer from a marker that it depends on; 0 for none.

    """
    # A window is seen at its own size if the token that leaves it is BOS, or the marker.
    sizes = sorted({each for each in (first, behind) if each > 1})
    every = [
        *(masks(first, sizes) if family.generates else masks_of_encoders(sizes)),
        *(file_windows() if "window" in family.settings else ()),
        *attention(family),
        *_coarse(),
        *_norms(family),
        *_networks(family),
        *_layers(family),
        *_inputs(family),
        *_outputs(family),
    ]
    return {each.words: each for each in every}
