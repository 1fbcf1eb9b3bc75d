"""What the engine does with each head of a model, and why."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from transformist.engines.structured.evaluation import Chosen, evaluate
from transformist.model import Symbol, Transformer

DRAWN = 1024
"""How long the input is that shows the methods: longer than what counts as few."""


@dataclass(frozen=True)
class Plan:
    """How each head is evaluated on an input.

    Attributes:
        length: of the input.
        is_drawn: whether the input was drawn.
        heads: the method of each head, what it was chosen for, and how its time grows.

    """

    length: int
    is_drawn: bool
    heads: tuple[Chosen, ...]

    def __str__(self) -> str:
        """A line for each head."""
        kind = "drawn" if self.is_drawn else "given"
        lines = [f"on {'an input' if not self.is_drawn else 'a string'} {kind}, n = {self.length}:"]
        for each in self.heads:
            head = each.attention
            lines.append(
                f"layer {each.layer} head {each.head} ({head.weighting}, mask {head.mask}): "
                f"{each.method}, {each.cost}: {each.why}"
            )
        return "\n".join(lines)


def plan(model: Transformer, x: Sequence[Symbol] | None = None) -> Plan:
    """The methods for a model's heads, as its weights and the vectors met on an input say.

    Args:
        model: what would be run.
        x: the input; left out, a drawn string of 1024 symbols, or of as many as the model admits.

    Raises:
        UnknownSymbol, InputTooLong: as `Transformer.run`.

    Example:
        >>> import transformist as tf
        >>> print(tf.plan(tf.recipe("dyck-1").build(max_length=4)))
        on a string drawn, n = 4:
        layer 0 head 0 (softmax, mask future): by query, n · queries: the weights make scores 0
        layer 1 head 0 (softmax, mask future): by query, n · queries: the weights make scores 0

    """
    given = x
    if given is None:
        positions = model.embedding.positions
        bounds = (DRAWN, model.max_length, None if positions is None else positions.max_length)
        longest = min(bound for bound in bounds if bound is not None)
        given = random.Random(0).choices(model.alphabet, k=longest) if model.alphabet else []
    return Plan(len(given), x is None, evaluate(model, given).heads)
