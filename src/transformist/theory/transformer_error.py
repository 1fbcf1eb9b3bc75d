"""Error bound of a softmax transformer's numbers in a format, for one input.

An a-posteriori bound: it is computed beside the evaluation in the format. Let ẑ be the vectors that
the format has before a part F of the model, F̂(ẑ) those that it has after it, and z the real ones.
Then

    F̂(ẑ) − F(z) = (F̂(ẑ) − F(ẑ)) + (F(ẑ) − F(z)).

The first term is the defect of the part, the rounding of this evaluation: F(ẑ) is computed in
float64, with a bound of its error (`rounding.near_values`). Only the magnitude of the defect is
kept, so the bound does not depend on signs. The second term is how far F moves between ẑ and z.
They differ by the defects of earlier parts, carried through these parts as a zonotope
(`theory.zonotopes`). Bounds of single numbers, carried through matrix after matrix, would grow as
sums of |W| instead.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import EXACT, FLOAT64, Arithmetic, Floating
from transformist.errors import InvalidValue, NotFinite
from transformist.model import (
    Embedding,
    Heads,
    LayerNorm,
    Sublayer,
    Transformer,
    rationals,
)
from transformist.rounding import float_format_of
from transformist.rounding.near_values import distances
from transformist.rounding.powers import SLACK
from transformist.theory import zonotopes
from transformist.theory.attention_zonotopes import attended, attended_by_rows, spread
from transformist.theory.zonotopes import Zonotope

Floats = NDArray[np.float64]

IRRATIONAL = 2.0**-120
"""Bound of the distance of a sinusoid from the rational that exact arithmetic has for it."""
# `Sinusoids` gives exact arithmetic a rational within 2⁻¹²⁸ of each. Where float64 adds the bound
# to an error and rounds it away, SLACK covers it.

MOST_ENTRIES = 2**21
"""Most entries of generators, 16 MiB. With more, errors lose what they have in common."""
# n rows of width d have n d numbers, and n d generators more after each part. So the encoder of
# width 16 keeps all errors of its 4 parts to n = 40. Beyond that, those of earlier parts are
# replaced by one bound for each number. Where not even four parts fit, each part is followed row
# by row: all errors before attention are in one row at a time.


def transformer_error(model: Transformer, x: Sequence[Any], arithmetic: Arithmetic | str) -> Floats:
    """Return error bounds of the numbers W_out z + b_out of a softmax transformer, for one input.

    They hold for the reference evaluation in the arithmetic, which is carried out for this input.

    Args:
        model: the transformer; all its heads have softmax.
        x: the input.
        arithmetic: the number system; the bounds are 0 in one that does not round.

    Raises:
        InvalidValue: for a hard head, whose choice an error may change.
        UndefinedValue: for a norm of a vector that is constant in the format, where ε is 0 in it.

    Returns:
        Bounds of shape (positions read, k) of the distance of the numbers that the format gives
        from the real ones; infinite where a number overflows, where too little is known of one, and
        where a norm with ε = 0 may divide by 0 in real numbers.

    Example:
        >>> import transformist as tf
        >>> encoder = tf.recipe("original-transformer").build(layers=1)
        >>> bool((transformer_error(encoder, (2, 7, 1), "float64") < 1e-10).all())
        True
        >>> bool((transformer_error(encoder, (2, 7, 1), "bfloat16") < 0.1).all())
        True

    """
    a, rows = float_format_of(arithmetic), model.rows_read(len(x))
    shape = len(model.embedding.encode(x)[rows]), len(model.read_out.W_out)
    if a is None:
        return np.zeros(shape)
    _require_softmax(model)
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return _known(_followed(model, x, a))
    except NotFinite:
        return np.full(shape, np.inf)


def _require_softmax(model: Transformer) -> None:
    for layer in model.layers:
        for head in layer.heads:
            if head.weighting.is_hard:
                raise InvalidValue(
                    "every head must have softmax, so that its weights move little where scores do",
                    received=f"a head with {head.weighting}",
                    where="transformer_error",
                    remedy="certify the model, or make the head soft with assembly.soften",
                )


def _followed(model: Transformer, x: Sequence[Any], a: Floating) -> Floats:
    """Return the bounds; NaN or infinite where nothing is known."""
    z = model.embedding([x], a)[0]
    moved = _started(z, _embedding_defect(model.embedding, x, a), a)
    for layer in model.layers:
        for _, sublayer in layer.sublayers():
            z, moved = _after(sublayer, z, moved, a)
    if model.final_norm is not None:
        z, moved = _after(model.final_norm, z, moved, a)
    read, rows = model.read_out, model.rows_read(len(x))
    w = read.rounded(a)
    y = zonotopes.linear(read.W_out, read.b_out, _rows(moved, rows))
    return (_defect(a.affine(z[rows], w.W_out, w.b_out), y, a) + y.radius) * SLACK


def _embedding_defect(embedding: Embedding, x: Sequence[Any], a: Floating) -> Floats:
    """Return a bound of how far the embedded vectors are off."""
    real = rationals(embedding.vectors[np.array(embedding.encode(x), dtype=np.int64)])
    if embedding.positions is not None:
        places = range(1 - len(embedding.front), len(x) + len(embedding.back) + 1)
        real = real + rationals(EXACT.numbers(embedding.positions.at(places, len(x), EXACT)))
    got = a.numbers(embedding([x], a)[0])
    if not np.isfinite(got).all():
        return np.full(got.shape, np.inf)
    off = distances(got, real)
    return off + IRRATIONAL if embedding.positions is not None else off


def _started(z: Any, defect: Floats, a: Floating) -> Zonotope:
    """Return vectors of the format, each number off by at most its defect."""
    value = a.numbers(z)
    return _grown(Zonotope((value, np.zeros(value.shape)), np.zeros((*value.shape, 0)), defect))


def _is_apart(x: Zonotope) -> bool:
    """True if each position has generators of its own."""
    return 4 * x.rest.size**2 > MOST_ENTRIES


def _grown(x: Zonotope) -> Zonotope:
    """Return the zonotope with a generator for each rest, in place of old ones if too many."""
    n, d = x.rest.shape
    # Apart, the d generators of a position are its own: those of other positions are 0 there.
    count = d if _is_apart(x) else n * d
    if (x.generators.shape[-1] + count) * n * d > MOST_ENTRIES:
        x = Zonotope(x.near, np.zeros((n, d, 0)), x.radius)
    if count == d:
        own = np.eye(d) * x.rest[..., None]
    else:
        own = np.diag(x.rest.ravel()).reshape(n, d, count)
    return Zonotope(x.near, np.concatenate([x.generators, own], axis=-1), np.zeros((n, d)))


def _after(
    part: Sublayer | LayerNorm, z: Any, moved: Zonotope, a: Floating
) -> tuple[Any, Zonotope]:
    """Return the vectors after a part, as the format computes them, and how far they are off."""
    y = zonotopes.normalized(part, moved) if isinstance(part, LayerNorm) else _sublayer(part, moved)
    z = part.on(z[None], a)[0]
    value = a.numbers(z)
    # The new rest becomes generators of its own in `_grown`, so that later parts can cancel it,
    # too.
    rest = (y.rest + _defect(z, y, a)) * SLACK
    return z, _grown(Zonotope((value, np.zeros(value.shape)), y.generators, rest))


def _sublayer(sublayer: Sublayer, x: Zonotope) -> Zonotope:
    read = x if sublayer.pre_norm is None else zonotopes.normalized(sublayer.pre_norm, x)
    f = sublayer.function
    if not isinstance(f, Heads):
        return _added(sublayer, zonotopes.network(f, read), x)
    if not _is_apart(x):
        heads = (attended(head, read) for head in f.heads)
        return _added(sublayer, functools.reduce(zonotopes.summed, heads), x)
    rows = [
        _added(sublayer, y, spread(x, i)) for i, y in enumerate(attended_by_rows(f.heads, read))
    ]
    near = tuple(np.concatenate([each.near[part] for each in rows]) for part in range(2))
    radius = np.concatenate([each.radius for each in rows])
    return Zonotope((near[0], near[1]), np.zeros((*radius.shape, 0)), radius)


def _added(sublayer: Sublayer, y: Zonotope, x: Zonotope) -> Zonotope:
    y = zonotopes.summed(y, x)
    return y if sublayer.post_norm is None else zonotopes.normalized(sublayer.post_norm, y)


def _defect(got: Any, y: Zonotope, a: Floating) -> Floats:
    """Return bounds of the rounding errors of a part, evaluated on numbers of the format."""
    value, error = y.near
    if a is FLOAT64:
        # `error` bounds the distance of what the reference computes in float64 as well.
        return np.asarray(error)
    return np.abs(a.numbers(got) - value) + error


def _rows(x: Zonotope, rows: slice) -> Zonotope:
    return Zonotope((x.near[0][rows], x.near[1][rows]), x.generators[rows], x.rest[rows])


def _known(bound: Floats) -> Floats:
    """Return a bound; infinity where nothing is known."""
    return np.where(np.isnan(bound), np.inf, bound)
