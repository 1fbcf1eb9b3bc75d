"""How large a model is."""

from __future__ import annotations

from dataclasses import dataclass

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

    def __str__(self) -> str:
        return (
            f"{_counted(self.layers, 'layer')}, width {self.width}, "
            f"{_counted(self.heads, 'head')}, {_counted(self.nonzero, 'non-zero parameter')}"
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


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
