"""Plans: the method of each head of a model, and the reason for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from transformist.arithmetic import Arithmetic, is_whole
from transformist.engines.structured.evaluation import Chosen, evaluate
from transformist.errors import InvalidValue
from transformist.model import Symbol, Transformer, length_of

DRAWN = 1024
"""Length of the input that is drawn for a plan: twice `method.FEW`, so that many are not few."""


@dataclass(frozen=True)
class Plan:
    """Methods for the heads of a model on an input.

    Attributes:
        length: the length of the input.
        is_drawn: true if the input was drawn.
        heads: the method of each head, the reason for it, and the growth of its time.

    """

    length: int
    is_drawn: bool
    heads: tuple[Chosen, ...]

    def __str__(self) -> str:
        """A line for each head."""
        which = "a drawn string" if self.is_drawn else "the string given"
        return "\n".join([f"on {which}, n = {self.length}:", *map(str, self.heads)])


def plan(
    model: Transformer,
    x: Sequence[Symbol] | None = None,
    arithmetic: Arithmetic | str = "float64",
    length: int | None = None,
) -> Plan:
    """The methods for a model's heads, chosen by its weights and the vectors met on an input.

    Args:
        model: the model that would be run.
        x: the input; by default a drawn string.
        arithmetic: `float64` or `float32`.
        length: of the drawn string; by default 1024, or the largest that the model admits.

    Raises:
        InvalidValue: for another arithmetic, a length below 0, or one beside an input.
        UnknownSymbol, InputTooLong: as `Transformer.run`.

    Example:
        >>> import transformist as tf
        >>> print(tf.plan(tf.recipe("dyck-1").build(max_length=4)))
        on a drawn string, n = 4:
        layer 0 head 0 (softmax, mask future): by query, n · queries: the weights make scores 0
        layer 1 head 0 (softmax, mask future): by query, n · queries: the weights make scores 0

    """
    if length is not None and (x is not None or not is_whole(length, 0)):
        raise InvalidValue(
            "length must be a whole number from 0 on, and only a drawn string has one",
            received=f"length {length!r}" + ("" if x is None else " beside an input"),
            where="plan",
            remedy="give an input, or the length of a string to be drawn",
        )
    given = _drawn(model, length) if x is None else x
    return Plan(length_of(given), x is None, evaluate(model, given, arithmetic).heads)


def _drawn(model: Transformer, length: int | None) -> list[Symbol]:
    """Drawn symbols, the same each time; none where the alphabet is empty."""
    positions = model.embedding.positions
    bounds = (DRAWN, model.max_length, None if positions is None else positions.max_length)
    count = min(each for each in bounds if each is not None) if length is None else length
    return random.Random(0).choices(model.alphabet, k=count) if model.alphabet else []
