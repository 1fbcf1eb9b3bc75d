"""A family of stock classes, as a value: names of tensors and settings, formulas, biases.

A new family is a module with a `Family`, and a row of the table in `families`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TOKEN_TYPES = 2
"""Token types of a class that has them, as BERT; all tokens of a prompt have type 0."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a network with fixed weights.

    Attributes:
        layers: the number of layers.
        heads: the number of query heads.
        groups: the number of heads of keys and values.
        head: the number of coordinates of a head.
        hidden: the number of hidden units.
        positions: the longest input, in tokens.

    """

    layers: int
    heads: int
    groups: int
    head: int
    hidden: int
    positions: int

    @property
    def width(self) -> int:
        """The width of the residual stream."""
        return self.heads * self.head


@dataclass(frozen=True, kw_only=True)
class DenseModel:
    """A checkpoint: the settings and the tensors by their names in the class."""

    family: Family
    config: Mapping[str, Any]
    tensors: Mapping[str, Array]

    def setting(self, name: str) -> Any:
        """The value of a setting, by its common name, a key of `Family.settings`."""
        return self.config[self.family.settings[name]]

    @property
    def window(self) -> int | None:
        """The number of keys that a query sees by the file; None for all."""
        found: int | None = self.config.get(self.family.settings.get("window", ""))
        return found


@dataclass(frozen=True, kw_only=True)
class Family:
    """A stock class, and what differs between it and others.

    Attributes:
        name: the name, the `model_type` of a configuration.
        title: the name in prose.
        architecture: the name of the class in transformers.
        auto: the name of the Auto class that loads it.
        generates: true if the head gives the next token; false for an encoder, whose head gives
            each token a label.
        words: the tensor of the word vectors.
        positions: the tensor of the table of positions; None in a class with rotations.
        types: the tensor of the vectors of token types; None in a class without them.
        layers: the front part of the names of tensors of layers.
        norms: the norms of a layer, the first and the second.
        outer: the norm outside of layers: the final one, or that of the embeddings.
        normalizes_after: true if norms follow the sublayers, and `outer` is that of the embeddings.
        subtracts_mean: true if a norm subtracts the mean and adds a bias.
        epsilon: the usual eps of a norm.
        activation: the usual activation.
        settings: the names of `layers`, `heads`, `epsilon` and `activation` in a configuration,
            and that of `window` if the class has sliding windows.
        has_gates: true if a network multiplies the activation of one product by another product.
        is_transposed: true if a matrix is stored as (out, in).
        matrices: the matrices of a layer with the shape (in, out), from the sizes.
        written: those of them that write to the residual stream.
        biases: the biases that a class has or can have, by their place in words: the last parts of
            the names of tensors.
        has_biases: true for matrices that always have a bias, from the name.
        can_have_biases: true if a setting gives each matrix a bias.
        config: the configuration, from the sizes, eps, the base of rotations, and true for biases
            that a setting gives.
        joined: the tensors of attention and network, from matrices (in, out) by the names `q`, `k`,
            `v`, `o`, `up` and `down`, without the front part.
        vectors: the vectors (rows, d) that the head reads, by formulas.
        head: the tensor of the head, shape (labels, d).
        head_bias: the tensor of the bias of the head; None in a class without it.

    """

    name: str
    title: str
    architecture: str
    words: str
    positions: str | None
    layers: str
    norms: tuple[str, str]
    outer: str
    subtracts_mean: bool
    epsilon: float
    activation: str
    settings: Mapping[str, str]
    has_gates: bool
    is_transposed: bool
    matrices: Callable[[Sizes], Mapping[str, tuple[int, int]]]
    written: tuple[str, str]
    biases: Mapping[str, tuple[str, ...]]
    has_biases: Callable[[str], bool]
    can_have_biases: bool
    config: Callable[[Sizes, float, float, bool], dict[str, Any]]
    joined: Callable[[Mapping[str, Array]], dict[str, Array]]
    vectors: Callable[[DenseModel, Sequence[int], Any], Array]
    auto: str = "AutoModelForCausalLM"
    generates: bool = True
    types: str | None = None
    normalizes_after: bool = False
    head: str = "lm_head.weight"
    head_bias: str | None = None
