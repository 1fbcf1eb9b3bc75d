"""Remedies of a failure: changes of one number, each tried on the input that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transformist.arithmetic import FORMATS, Floating
from transformist.bisection import largest_below
from transformist.errors import TransformistError
from transformist.model import Symbol, Transformer, rationals
from transformist.verify.diagnosis.signatures import Blend, Signature

SHARPEST = 2**16
"""The largest factor of a sharpness that is tried."""

Build = Callable[[int], Transformer]
"""A function from N to the model for this N."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change with which the input has its right answer.

    Attributes:
        kind: `sharpness`, `max_length` or `arithmetic`.
        value: the factor of the sharpness, the N, or the name of the format.
        head: of a sharpness, the layer and the head.

    """

    kind: str
    value: int | str
    head: tuple[int, int] | None = None


def sharpened(model: Transformer, layer: int, head: int, factor: int) -> Transformer:
    """Return the model with the scores of one head multiplied by a factor.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=4)
        >>> sharpened(model, 0, 0, 2).layers[0].heads[0].W_Q.shape
        (1, 6)

    """
    changed = model.layers[layer].heads[head]
    W_Q, b_Q = rationals(changed.W_Q) * factor, rationals(changed.b_Q) * factor
    heads = list(model.layers[layer].heads)
    heads[head] = replace(changed, W_Q=W_Q, b_Q=b_Q)
    layers = list(model.layers)
    layers[layer] = replace(layers[layer], heads=tuple(heads))
    return replace(model, layers=tuple(layers))


def answers_rightly(model: Transformer, x: Sequence[Symbol], a: Floating, wanted: Any) -> bool:
    """True if the model gives the answer that is wanted."""
    try:
        return bool(model.answers([x], a)[0] == wanted)
    except TransformistError:
        return False


def remedies(
    model: Transformer,
    x: Sequence[Symbol],
    a: Floating,
    wanted: Any,
    signature: Signature,
    build: Build | None = None,
) -> tuple[Remedy, ...]:
    """The remedies that give the right answer, of each kind the least change that is found."""
    found = [
        *_sharper(model, x, a, wanted, signature),
        *_shorter(model, x, a, wanted, build),
        *_wider(model, x, a, wanted),
    ]
    return tuple(found)


def _sharper(
    model: Transformer, x: Sequence[Symbol], a: Floating, wanted: Any, signature: Signature
) -> Iterator[Remedy]:
    # Where the computed scores do not have the wanted position first, no factor helps.
    if not isinstance(signature, Blend) or signature.lead <= 0:
        return
    where = signature.layer, signature.head
    factor = 2
    while factor <= SHARPEST:
        if answers_rightly(sharpened(model, *where, factor), x, a, wanted):
            yield Remedy(kind="sharpness", value=factor, head=where)
            return
        factor *= 2


def _shorter(
    model: Transformer, x: Sequence[Symbol], a: Floating, wanted: Any, build: Build | None
) -> Iterator[Remedy]:
    """An N below the model's, by bisection: a larger one may give the right answer too."""
    least, N = max(len(x), 1), model.max_length
    if build is None or N is None or least >= N:
        return

    def fits(length: int) -> bool:
        try:
            return answers_rightly(build(length), x, a, wanted)
        except TransformistError:
            return False

    fitting = largest_below(N, lambda length: length < least or fits(length))
    if fitting >= least:
        yield Remedy(kind="max_length", value=fitting)


def _wider(model: Transformer, x: Sequence[Symbol], a: Floating, wanted: Any) -> Iterator[Remedy]:
    # The narrowest format comes first. Only a higher precision is tried.
    for wider in reversed(FORMATS):
        if wider.precision > a.precision and answers_rightly(model, x, wider, wanted):
            yield Remedy(kind="arithmetic", value=wider.name)
            return
