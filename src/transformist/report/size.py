"""How large a model is."""

from __future__ import annotations

from dataclasses import dataclass

from transformist.claims import Model
from transformist.model import FeedForwardStack, Transformer


@dataclass(frozen=True)
class Size:
    """Counts of a model: layers, width of what it reads, attention heads, parameters not 0."""

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
    if isinstance(model, Transformer):
        heads = sum(len(layer.heads) for layer in model.layers)
        return Size(len(model.layers), model.width, heads, model.nonzero)
    layers = len(model.parts) if isinstance(model, FeedForwardStack) else 1
    return Size(layers, model.width, 0, model.nonzero)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
