"""Guided paths: a question about a model, and the places of its page that show the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from transformist.model import Transformer


@dataclass(frozen=True)
class Stop:
    """A place of a page, with a text about it.

    Attributes:
        text: what the reader sees there.
        input: the string.
        step: the step, by its name; `read-out` is the last one.
        position, slot: the number that is selected; positions count from 1, and BOS has 0.
        head: the head that is drawn.
        heads: the heads that are switched off, as (layer, head).

    """

    text: str
    input: str
    step: str
    position: int
    slot: str
    head: int = 0
    heads: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Guide:
    """A guided path through the page of a recipe, as it is built by default.

    Attributes:
        question: what the path answers.
        layers: number of layers of the model that it describes.
        stops: its places, in order.

    """

    question: str
    layers: int
    stops: tuple[Stop, ...]


_TWICE = ")("
_CROSSED = "([)]()"

GUIDES: Mapping[str, Guide] = {
    "dyck-1": Guide(
        "Which head would have to fail for )( to be accepted?",
        2,
        (
            Stop(
                "The string has as many ( as ), but closes before it opens, so it must be "
                "rejected. The slot sign is 1 at every ( and −1 at every ).",
                _TWICE, "embedding", 1, "sign",
            ),
            Stop(
                "The head of layer 0 takes the mean of sign over each prefix, BOS included, and "
                "writes it to balance. It is −1/2 after the first symbol: more closed than "
                "opened.",
                _TWICE, "layer 0 attention", 1, "balance",
            ),
            Stop(
                "The feed-forward network marks each position where the balance is below 0: at "
                "position 1, violation is 1. At the end the balance is 0, so imbalance is 0 "
                "there.",
                _TWICE, "layer 0 feed-forward", 1, "violation",
            ),
            Stop(
                "The last position alone is read, and its own violation is 0. Only the head of "
                "layer 1 brings it the violation of position 1: the mean, 1/3, in violations.",
                _TWICE, "layer 1 attention", 2, "violations",
            ),
            Stop(
                "The network accepts where imbalance + violations is 0. Here it is 1/3, so "
                "accept stays 0.",
                _TWICE, "layer 1 feed-forward", 2, "accept",
            ),
            Stop(
                "Now the head of layer 1 is switched off. Nothing tells the last position of the "
                "violation, accept becomes 1, and )( is accepted. If this head fails, every "
                "violation before the last position is missed.",
                _TWICE, "layer 1 feed-forward", 2, "accept", heads=((1, 0),),
            ),
            Stop(
                "The head of layer 0 is the other one whose failure is enough: without it the "
                "balance is 0 everywhere, so that )( is accepted, and every other string, too, as "
                "here ((.",
                "((", "layer 1 feed-forward", 2, "accept", heads=((0, 0),),
            ),
        ),
    ),
    "dyck-k-d": Guide(
        "Why is ([)]() rejected, though every bracket has a partner of its kind?",
        4,
        (
            Stop(
                "The slot bracket names the kind of each bracket: 1 for (, 2 for [, and −1, −2 "
                "for those that close them. All brackets are active at first.",
                _CROSSED, "embedding", 1, "bracket",
            ),
            Stop(
                "Head 1 of layer 0 looks at the nearest bracket to the right of each position, "
                "all being active, and writes it to right. The [ at position 2 finds −1 there: a "
                "), not its own ].",
                _CROSSED, "layer 0 attention", 2, "right", head=1,
            ),
            Stop(
                "The ( at position 5 finds −1 too, and that is its own partner.",
                _CROSSED, "layer 0 attention", 5, "right", head=1,
            ),
            Stop(
                "The network switches off a bracket whose neighbour is its partner. Positions 5 "
                "and 6 are such a pair, and active becomes 0 there.",
                _CROSSED, "layer 0 feed-forward", 5, "active",
            ),
            Stop(
                "Positions 1 to 4 remain active: [ stands between ( and ), and ) between [ and "
                "]. Neither pair is next to each other, so neither is removed.",
                _CROSSED, "layer 0 feed-forward", 2, "active",
            ),
            Stop(
                "The next layer looks again for active brackets. The [ at position 2 still finds "
                "the ), and the ( at position 1 still finds the [: neither finds its partner.",
                _CROSSED, "layer 1 attention", 2, "right", head=1,
            ),
            Stop(
                "So nothing more is removed in layers 1 and 2: the two pairs cross, and each "
                "keeps the other from becoming neighbours.",
                _CROSSED, "layer 2 feed-forward", 2, "active",
            ),
            Stop(
                "The head of layer 3 looks for the largest active anywhere. It finds 1 and "
                "writes it to remaining.",
                _CROSSED, "layer 3 attention", 6, "remaining",
            ),
            Stop(
                "The read-out is 1/2 − remaining = −1/2, which is not above 0: rejected. "
                "Exchange the third and fourth symbol, so that the string is ([])(), and it is "
                "accepted.",
                _CROSSED, "read-out", 6, "remaining",
            ),
        ),
    ),
}  # fmt: skip
"""Guided paths by the names of recipes."""


def guide_of(name: str, model: Transformer) -> dict[str, Any] | None:
    """The guided path of a recipe's page, as plain values.

    Args:
        name: the name of the recipe.
        model: the model that was built from it.

    Returns:
        The path; `None` for a recipe without one, and for a model without the steps, slots and
        symbols of the path, as other settings may build it.

    """
    guide = GUIDES.get(name)
    if guide is None:
        return None
    if len(model.layers) != guide.layers:
        return None
    steps = {
        f"layer {k} {kind}" for k, each in enumerate(model.layers) for kind, _ in each.sublayers()
    }
    for stop in guide.stops:
        fits = stop.step in {"embedding", "read-out", *steps} and stop.slot in model.stream.slots
        is_input = set(stop.input) <= set(model.alphabet)
        if not fits or not is_input or len(stop.input) > (model.max_length or len(stop.input)):
            return None
    return asdict(guide)
