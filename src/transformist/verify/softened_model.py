"""Softmax in place of the hard attention of a model, by a sharpness that follows from the weights.

A proof bounds the scores of a head on all inputs of up to N symbols (`verify/proof/scoring`): every
score that is not the largest is lower by at least a gap g. With 1/τ = ln(R/s)/g, and R rows at
most, softmax leaves a share s of the weight to other rows than the best ones (Lemma 5.3). The
ideal of a proof about the softened model is the model with average-hard attention, so the same
proof shows whether a share s is small enough for every answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from transformist.arithmetic import Floating, number_system
from transformist.assembly import soften
from transformist.model import Attention, Transformer, Weighting
from transformist.rounding import rounded_up
from transformist.verify.proof.proving import prove
from transformist.verify.proof.scoring import Leads
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.softmax_orders import EVALUATIONS
from transformist.verify.proof.upwards import Unfollowed
from transformist.verify.proof.walking import Walk

ORDER = "any"
"""The evaluation for which a share is proved to be small enough."""


class NoSharpness(Exception):
    """Raised for a hard head for which no finite sharpness follows from the weights.

    Attributes:
        where: the head, such as `layer 1 head 0`.
        why: the reason.

    """

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where, self.why = where, why


def softened(model: Transformer, arithmetic: str, max_length: int) -> Transformer:
    """Return the model with softmax in place of hard attention, with W_Q and b_Q times 1/τ.

    The heads share one s, the largest of 1/4, 1/16, … for which a proof shows that the format
    decides every input as the model does exactly. Where it shows this for none, s is the last one
    above the roundoff 2⁻ᵖ of the format: less weight would be below the rounding of the rest.

    Args:
        model: the transformer.
        arithmetic: a float format.
        max_length: N, the longest input.

    Raises:
        NoSharpness: for a head whose scores have no known gap, or several largest scores of which
            its weighting takes one.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("parity").build()
        >>> soft = softened(model, "float32", 16)
        >>> [str(head.weighting) for layer in soft.layers for head in layer.heads]
        ['softmax', 'softmax']

    """
    a = number_system(arithmetic)
    assert isinstance(a, Floating)
    if not any(head.weighting.is_hard for layer in model.layers for head in layer.heads):
        return model
    gaps = _gaps(model, max_length)
    rows = max_length + len(model.embedding.front)
    soft = model
    for share in _shares(a.precision):
        # Up to R − 1 other rows have a weight of at most e^(−g/τ) each, relative to the best: less
        # than R e^(−ln(R/s)) = s together.
        soft = _with_share(model, gaps, math.log(rows / share))
        if prove(soft, a, max_length, ORDER).holds:
            return soft
    return soft


def _shares(precision: int) -> Iterator[float]:
    """Yield 1/4, 1/16, … down to 2⁻ᵖ."""
    yield from (2.0**-bits for bits in range(2, precision + 1, 2))


def _with_share(model: Transformer, gaps: dict[str, float], wanted: float) -> Transformer:
    """Return the model whose hard heads have 1/τ = `wanted`/g, in few bits.

    A head with a gap of infinity has one score for all rows: every 1/τ gives them equal weights.
    """

    def soft(head: Attention, where: str) -> Attention:
        if not head.weighting.is_hard:
            return head
        gap = gaps[where]
        return soften(head, 1 if math.isinf(gap) else rounded_up(wanted / gap))

    return _each_head(model, soft)


def _each_head(model: Transformer, change: Callable[[Attention, str], Attention]) -> Transformer:
    layers = []
    for number, layer in enumerate(model.layers):
        heads = tuple(
            change(head, f"layer {number} head {k}") for k, head in enumerate(layer.heads)
        )
        layers.append(replace(layer, heads=heads))
    return replace(model, layers=tuple(layers))


def _gaps(model: Transformer, longest: int) -> dict[str, float]:
    """Return the least gap of each hard head; infinite where all scores of a row are equal.

    Raises:
        NoSharpness: for a hard head without one.

    """
    leads, stopped = _leads(model, longest)
    found = {}
    for number, layer in enumerate(model.layers):
        for k, head in enumerate(layer.heads):
            where = f"layer {number} head {k}"
            if not head.weighting.is_hard:
                continue
            if where not in leads:
                raise NoSharpness(where, stopped or "its scores are not known")
            found[where] = _gap(head, leads[where], where)
    return found


def _gap(head: Attention, leads: Leads, where: str) -> float:
    """Return the least distance of another score below the best ones."""
    if head.weighting.takes_one and leads.selection != "one":
        raise NoSharpness(
            where, f"several scores may be the largest, of which {head.weighting} takes one"
        )
    gap = float(leads.falls[0].min())
    if not gap > 0:
        raise NoSharpness(where, "no least difference of its scores follows from the weights")
    return gap


def _leads(model: Transformer, longest: int) -> tuple[dict[str, Leads], str]:
    """Return the leads of the heads in the ideal, and where a proof stops, if it does."""
    # In float64 the roundings of scores, which a lead counts, are far below its gap. With
    # average-hard attention, several best keys are seen as several, also where one is taken.

    def average(head: Attention, _where: str) -> Attention:
        return replace(head, weighting=Weighting.AVERAGE_HARD)

    number_format = number_system("float64")
    assert isinstance(number_format, Floating)
    leads: dict[str, Leads] = {}
    try:
        walk = Walk(
            _each_head(model, average), number_format, longest, EVALUATIONS[ORDER], Ledger()
        )
        leads = walk.leads
        with np.errstate(all="ignore"):
            walk.run()
    except (Unfollowed, OverflowError) as stop:
        return leads, str(stop)
    return leads, ""
