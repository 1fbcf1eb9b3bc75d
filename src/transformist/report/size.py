"""The size of a model: counts of its layers, heads and parameters."""

from __future__ import annotations

import functools
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
    layers, heads = _layers_and_heads(model)
    width = model.stream.width if isinstance(model, LayerStack) else model.width
    return Size(layers, width, heads, model.nonzero)


@functools.singledispatch
def _layers_and_heads(_model: Any) -> tuple[int, int]:
    """The number of layers and of heads; a network or a norm is one layer."""
    return 1, 0


@_layers_and_heads.register(Transformer)
@_layers_and_heads.register(LayerStack)
def _of_layers(model: Transformer | LayerStack) -> tuple[int, int]:
    return len(model.layers), sum(len(layer.heads) for layer in model.layers)


@_layers_and_heads.register
def _of_networks(model: FeedForwardStack) -> tuple[int, int]:
    return len(model.parts), 0


@_layers_and_heads.register
def _of_head(_model: Attention) -> tuple[int, int]:
    return 1, 1


@_layers_and_heads.register
def _of_encoding(_model: PositionEncoding) -> tuple[int, int]:
    return 0, 0


def counted(count: int, noun: str) -> str:
    """A number of things, in words.

    Example:
        >>> counted(1, "layer"), counted(2, "layer")
        ('1 layer', '2 layers')

    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
