"""Transformers with the masks and weightings of a host, and the same answers.

The changes are made where the weights alone show that no answer changes in exact arithmetic. Hard
heads get softmax with a sharpness that follows from the gaps of their scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from transformist.hosts.host import HOSTS, Unhostable
from transformist.hosts.plain_model import FORMAT, require_plain
from transformist.model import Attention, Mask, Transformer, Weighting
from transformist.verify import NoSharpness, softened

WHOLE_AT_THE_LAST = (Mask.NONE, Mask.FUTURE)
"""The masks that admit every row at the last row."""


def with_softmax(model: Transformer, host: str, max_length: int | None) -> Transformer:
    """Return a transformer with softmax heads, where a sharpness of each follows from the weights.

    Args:
        model: the transformer.
        host: the name of the host, for refusals.
        max_length: the longest input, for a model without N.

    Raises:
        Unhostable: for a hard head whose scores have no known gap, with the reason.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("parity").build()
        >>> soft = with_softmax(model, "gpt2", 16)
        >>> {str(head.weighting) for layer in soft.layers for head in layer.heads}
        {'softmax'}

    """
    longest = max_length if model.max_length is None else model.max_length
    model = _each_head(model, _softened)
    heads = [head for layer in model.layers for head in layer.heads]
    if longest is None or not any(head.weighting.is_hard for head in heads):
        return model
    try:
        return softened(model, FORMAT, longest)
    except NoSharpness as reason:
        # A part that the host lacks in any case is named first.
        soft = _each_head(model, lambda head: replace(head, weighting=Weighting.SOFTMAX))
        require_plain(soft, host, tuple(Mask), HOSTS[host].options)
        raise Unhostable(
            f"in {host}, heads must have softmax, and scores from which its sharpness follows",
            received=f"{reason}",
            host="onnx",
            arithmetic=FORMAT,
            options=HOSTS[host].options,
        ) from None


def _each_head(model: Transformer, change: Callable[[Attention], Attention]) -> Transformer:
    layers = [replace(each, heads=tuple(map(change, each.heads))) for each in model.layers]
    return replace(model, layers=tuple(layers))


def rewritten(model: Transformer, masks: tuple[Mask, ...]) -> Transformer:
    """Return a transformer with the same answers and masks of a host, where that is possible.

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
    layers = [*_each_head(model, _softened).layers]
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
