"""Masks and weightings of a host for a transformer of the same answers and the same weights.

The changes are made where the weights alone show that no answer changes in exact arithmetic.
"""

from __future__ import annotations

from dataclasses import replace

from transformist.model import Attention, Mask, Transformer, Weighting

WHOLE_AT_THE_LAST = (Mask.NONE, Mask.FUTURE)
"""The masks that admit every row at the last row."""


def rewritten(model: Transformer, masks: tuple[Mask, ...]) -> Transformer:
    """Return a transformer of the same answers with masks of a host, where that is possible.

    An average-hard head whose scores are all 0 gets softmax.

    Args:
        model: the transformer.
        masks: the masks of the host.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=8, masks="none")
        >>> [str(head.mask) for head in rewritten(model, (Mask.FUTURE,)).layers[0].heads]
        ['future']

    """
    layers = [replace(each, heads=tuple(map(_softened, each.heads))) for each in model.layers]
    attending = [number for number, layer in enumerate(layers) if layer.heads]
    if model.read_out.at == "last" and attending:
        # The layers from here on are the last ones that mix rows. Under both masks the last row
        # attends to all rows, with the same scores, and gets the same vector. Other rows get other
        # vectors under the other mask, and nothing reads these.
        number = attending[-1]
        heads = tuple(_masked(each, masks) for each in layers[number].heads)
        layers[number] = replace(layers[number], heads=heads)
    return replace(model, layers=tuple(layers))


def _softened(head: Attention) -> Attention:
    """The head with softmax in place of average-hard, if all its scores are 0."""
    # Without queries or without keys, all scores are 0 in every format: the maximum is everywhere,
    # and both weightings give each admissible row the same weight.
    has_scores = (head.W_Q.any() or head.b_Q.any()) and (head.W_K.any() or head.b_K.any())
    if head.weighting != Weighting.AVERAGE_HARD or has_scores:
        return head
    return replace(head, weighting=Weighting.SOFTMAX)


def _masked(head: Attention, masks: tuple[Mask, ...]) -> Attention:
    """The head with a mask of the host, if its own and that one admit every row at the last."""
    others = [mask for mask in WHOLE_AT_THE_LAST if mask in masks]
    if head.mask in masks or head.mask not in WHOLE_AT_THE_LAST or not others:
        return head
    return replace(head, mask=others[0])
