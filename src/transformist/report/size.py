"""The size of a model: counts of its layers, heads and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformist.claims import Model
from transformist.model import (
    Attention,
    FeedForwardStack,
    LayerStack,
    PositionEncoding,
    Transformer,
)


@dataclass(frozen=True)
class Size:
    """Counts of a model: layers, width, attention heads, parameters that are not 0."""

    layers: int
    width: int
    heads: int
    nonzero: int

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Size:
        """The size among the facts of a model."""
        return cls(*(facts[key] for key in ("layers", "width", "heads", "nonzero")))

    def __str__(self) -> str:
        return (
            f"{counted(self.layers, 'layer')}, width {self.width}, "
            f"{counted(self.heads, 'head')}, {counted(self.nonzero, 'non-zero parameter')}"
        )


def size(model: Model) -> Size:
    """The counts of a model.

    Example:
        >>> import transformist as tf
        >>> str(size(tf.recipe("dyck-1").build()))
        '2 layers, width 6, 2 heads, 26 non-zero parameters'

    """
    heads, layers = 0, 0
    if isinstance(model, Transformer | LayerStack):
        layers, heads = len(model.layers), sum(len(layer.heads) for layer in model.layers)
    elif isinstance(model, FeedForwardStack):
        layers = len(model.parts)
    elif isinstance(model, Attention):
        layers, heads = 1, 1
    elif not isinstance(model, PositionEncoding):
        layers = 1
    width = model.stream.width if isinstance(model, LayerStack) else model.width
    return Size(layers, width, heads, model.nonzero)


def counted(count: int, noun: str) -> str:
    """A number of things, in words.

    Example:
        >>> counted(1, "layer"), counted(2, "layer")
        ('1 layer', '2 layers')

    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
