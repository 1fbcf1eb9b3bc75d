"""Which way to evaluate a head: as its weights say, and the queries and keys that are met."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.engines.structured.heads.head import HeadInput
from transformist.engines.structured.heads.methods import (
    Averages,
    Choices,
    Dense,
    FewKeys,
    Hull,
    Method,
)
from transformist.engines.structured.heads.on_hull import OnHull
from transformist.engines.structured.heads.weightings import FIRST, LAST, OTHER, READ, TAKE
from transformist.engines.structured.rows import blocks, require_finite

SIGNS = 3
"""−1, 0 and 1."""


def few_queries(given: HeadInput) -> Method | None:
    """Where queries take few values; under hard attention those of one column, few signs."""
    maps, queries = given.maps, given.few(given.queries)
    if queries is not None:
        count = len(queries.table)
        why = f"{count} distinct quer{'y' if count == 1 else 'ies'} met"
        if maps.fixed.all():
            why = "the weights fix the query" if len(maps.fixed) else "the weights make scores 0"
    elif given.is_hard and len(maps.fixed) == 1 and _is_by_sign(given):
        queries = given.queries.through(np.sign, 1).kept().grouped(SIGNS)
        why = "scores of rank one: the sign of the query decides"
    if queries is None:
        return None
    by_place = given.kind in (FIRST, LAST)
    return (Choices if by_place else Averages)(given, why, queries)


def _is_by_sign(given: HeadInput) -> bool:
    """Whether products of a query and two different keys differ in the order of the keys.

    They do where keys lie at least 8u of the larger one apart, as a product and its quotient by
    √d_key are off by 2u of themselves, and nothing underflows.
    """
    a = given.maps.a
    queries, keys = (np.unique(each.whole()) for each in (given.queries, given.keys))
    keys, apart = keys.astype(np.float64), np.diff(keys.astype(np.float64))
    larger = np.maximum(abs(keys[1:]), abs(keys[:-1]))
    least = [
        abs(each[each != 0].astype(np.float64)).min(initial=np.inf) for each in (queries, keys)
    ]
    normal = a.smallest * 2.0**a.precision * given.maps.d_key
    with np.errstate(over="ignore", under="ignore"):
        product = least[0] * least[1]
    return bool((apart >= larger * 2.0 ** (3 - a.precision)).all() and product >= normal)


def few_keys(given: HeadInput) -> Method | None:
    """Where keys take few values in the columns in which the query varies.

    Beside terms the choice is that of the reference where no dot product rounds; a softmax is near
    enough where scores are small.
    """
    maps = given.maps
    varying = np.flatnonzero(~maps.fixed)
    keys = given.few(given.z.image(maps.key.rows(varying)))
    if keys is None:
        return None
    why = f"{len(keys.table)} distinct keys met"
    if maps.fixed.any():
        if not (given.is_exact if given.is_hard else given.is_soft):
            return None
        why += " and a term that the query does not scale"
    return FewKeys(given, why, keys, varying)


def points_of_the_plane(given: HeadInput) -> Method | None:
    """Where keys are points of the plane that come in a line's order, and queries look upwards.

    Points below the hull must lie too deep for rounding to lift them, where anything rounds; under
    softmax there must be none.
    """
    if len(given.maps.fixed) != 2:
        return None
    queries, points = given.queries.whole(), given.keys.whole()
    for axis in (1, 0):
        turned = _upwards(queries, points, axis, given)
        if turned is not None:
            return _on_hull(given, *turned)
    return None


def _on_hull(
    given: HeadInput, queries: NDArray[Any], points: NDArray[Any], arrivals: NDArray[np.int64]
) -> Method | None:
    """Where the hull of all points is known for sure; it is made, without values if keys come."""
    a, kind, come_first = given.maps.a, given.kind, given.order == READ
    width = given.maps.d_value
    state = OnHull(given.maps.d_key, width if come_first else 0, kind, given.n, a)
    for rows in blocks(given.n):
        at = (arrivals if come_first else np.arange(given.n)[:: -1 if given.backwards else 1])[rows]
        values = given.values.at(at) if come_first else np.empty((len(at), 0), a.dtype)
        state.mix(TAKE, queries[:0], points[at], at, values)
    if not state.is_sure(queries, are_exact=False) and not (
        given.is_hard and given.is_exact and state.is_sure(queries, are_exact=True)
    ):
        return None
    why = "keys are points of the plane" + ("" if given.is_hard else ", all on their hull")
    if come_first:
        return Hull(given, why, queries, points, lambda: state)
    begun = partial(OnHull, given.maps.d_key, width, kind, given.n, a)
    return Hull(given, why, queries, points, begun)


def _upwards(
    queries: NDArray[Any], points: NDArray[Any], axis: int, given: HeadInput
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]] | None:
    """Queries and points, mirrored so that every query looks upwards and points come rightwards.

    The third array says in which order points come, if all come before the first query.
    """
    sign = np.sign(queries[:1, axis])
    if not sign.all() or (np.sign(queries[:, axis]) != sign).any():
        return None
    up = sign[0] if len(sign) else queries.dtype.type(1)
    queries, points = (_turned(each, axis, up) for each in (queries, points))
    arrivals = np.arange(given.n)
    if given.maps.head.mask.is_whole:
        arrivals = np.lexsort((points[:, 1], points[:, 0]))
    come = points[arrivals, 0]
    falls, rises = (come[1:] < come[:-1]).any(), (come[1:] > come[:-1]).any()
    if given.backwards:
        falls, rises = rises, falls
    if falls and rises:
        return None
    if falls:
        left = np.array([-1, 1], queries.dtype)
        queries, points = queries * left, points * left
    return queries, points, arrivals


def _turned(vectors: NDArray[Any], axis: int, up: Any) -> NDArray[Any]:
    """The other column, and that of an axis times its sign."""
    turned = np.empty_like(vectors)
    turned[:, 0] = vectors[:, 1 - axis]
    np.multiply(vectors[:, axis], up, out=turned[:, 1])
    return turned


def every_pair(given: HeadInput) -> Method:
    """Always; what overflows is refused.

    Raises:
        NotFinite: for a query, key or value that overflows.

    """
    maps, a = given.maps, given.maps.a
    why = "neither queries nor keys are few"
    if given.kind == OTHER:
        why = "the engine has no other way for this weighting"
    if not given.is_finite:
        why = "numbers come near the largest of the format"
        w = maps.head.rounded(a)
        for W, b in ((w.W_Q, w.b_Q), (w.W_K, w.b_K)):
            affine = partial(a.affine, W=W, b=b)
            require_finite(given.z.whole().through(affine, len(W)), a)
    require_finite(given.values, a)
    return Dense(given, why)


METHODS: tuple[Callable[[HeadInput], Method | None], ...] = (
    few_queries,
    few_keys,
    points_of_the_plane,
    every_pair,
)
"""The first that fits is taken."""


def method(given: HeadInput) -> Method:
    """The method for a head on an input.

    Raises:
        NotFinite: for a query, key or value that overflows.

    """
    if given.kind == OTHER or not given.is_finite:
        return every_pair(given)
    return next(found for fits in METHODS if (found := fits(given)) is not None)
