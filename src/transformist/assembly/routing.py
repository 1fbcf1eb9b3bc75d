"""The routing lemma (8.2): a network or a head between linear maps, or on the slots of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, overload

import numpy as np

from transformist.assembly.networks import postcompose, precompose
from transformist.errors import InvalidValue, ShapeMismatch, require_type
from transformist.model import Attention, FeedForward, LinearForm, Stream, exact_product, rationals

Part: TypeAlias = FeedForward | Attention


def expect(value: object, kinds: type | tuple[type, ...], where: str) -> None:
    """Refuse an argument that is not a model of one kind, or of one of several.

    Raises:
        InvalidValue: when it is not.

    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    require_type(
        value,
        kinds,
        f"the model that {where} takes must be of the kind "
        f"{' or '.join(kind.__name__ for kind in kinds)}",
        where=where,
        remedy=f"give a {' or a '.join(kind.__name__ for kind in kinds)}",
    )


@overload
def between(part: FeedForward, read: object, write: object) -> FeedForward: ...
@overload
def between(part: Attention, read: object, write: object) -> Attention: ...
def between(part: Part, read: object, write: object) -> Part:
    """L ∘ f ∘ R for linear R and L (Lemma 8.1), f a network or a head.

    A network becomes W₁ R, L W₂, L b₂; a head W_Q R, W_K R, W_V R, L W_O, L b_O.

    Args:
        part: f, which reads vectors of width k and gives vectors of width m.
        read: R, shape (k, d).
        write: L, shape (d, m).

    Example:
        >>> absolute = FeedForward(W_1=[[1], [-1]], W_2=[[1, 1]])
        >>> between(absolute, [[0, 2]], [[1], [0]])([5, -3])
        array([6., 0.])

    """
    if isinstance(part, FeedForward):
        return postcompose(write, precompose(part, read))
    # Queries, keys and values are linear in R z, and L commutes with the mean over positions; b_O
    # is added after W_O, so L maps both.
    return replace(
        part,
        W_Q=exact_product(part.W_Q, read),
        W_K=exact_product(part.W_K, read),
        W_V=exact_product(part.W_V, read),
        W_O=write if part.W_O is None else exact_product(write, part.W_O),
        b_O=exact_product(write, part.b_O),
    )


@overload
def route(
    part: FeedForward,
    stream: Stream,
    read: Sequence[LinearForm],
    write: Sequence[LinearForm],
    shift: object = 0,
) -> FeedForward: ...
@overload
def route(
    part: Attention, stream: Stream, read: Sequence[LinearForm], write: Sequence[LinearForm]
) -> Attention: ...
def route(
    part: Part,
    stream: Stream,
    read: Sequence[LinearForm],
    write: Sequence[LinearForm],
    shift: object = 0,
) -> Part:
    """A network or a head on a stream (Lemma 8.1): it reads forms of slots and adds to slots.

    Args:
        part: f, which reads vectors of k numbers and gives vectors of m.
        stream: the slots.
        read: the k forms that f reads.
        write: the m slots or forms to which its outputs are added.
        shift: what is added to the k forms before a network reads them; there is none for a head.

    Raises:
        InvalidValue: for a head with a shift, and for parts, streams or forms that are none.
        ShapeMismatch: for a shift of another length than `read`.

    Example:
        >>> stream = Stream(("x", "y", "larger"))
        >>> larger = FeedForward(W_1=[[1, 0], [-1, 0], [-1, 1]], W_2=[[1, -1, 1]])
        >>> route(larger, stream, read=["x", "y"], write=["larger"])([2, 5, 0])
        array([0., 0., 5.])

    """
    if not isinstance(part, Attention):
        expect(part, FeedForward, "route")
    expect(stream, Stream, "route")
    reading, writing = (
        stream.reading(*_forms(read, "read")),
        stream.writing(*_forms(write, "write")),
    )
    if isinstance(part, FeedForward):
        offset = rationals(shift)
        if offset.shape not in ((), (part.width,)):
            raise ShapeMismatch(
                f"shift must be one number, or {part.width} numbers, as the network reads",
                received=f"shape {offset.shape}",
                where="route",
                remedy="give a number for each form of read",
            )
        offset = np.broadcast_to(offset, (part.width,))
        part = precompose(part, np.eye(part.width), offset)
    elif np.any(rationals(shift) != 0):
        raise InvalidValue(
            "the shift must be 0 for a head, which reads forms as they are",
            received=f"shift = {shift}",
            where="route",
            remedy="add it to the forms, times a slot that is 1",
        )
    return between(part, reading, writing)


def _forms(given: Sequence[LinearForm], name: str) -> Sequence[LinearForm]:
    """Check and return `read` or `write`."""
    is_list = isinstance(given, list | tuple)
    if not is_list or not all(isinstance(each, str | Mapping) for each in given):
        raise InvalidValue(
            f"{name} must be a list of slots, or of forms, mappings from slots to coefficients",
            received=f"{given!r:.60}",
            where="route",
            remedy='give one such as ["x", {"x": 1, "y": -1}]',
        )
    return given
