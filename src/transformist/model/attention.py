"""Self-attention: Definitions 2.3 and 5.1 of the Cookbook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import Arithmetic, Array, number_system
from transformist.model.definition import Function, OneOf
from transformist.model.mask import Mask, Positions
from transformist.model.parameter import (
    Parameter,
    Parameterized,
    exact_product,
    sequences,
    weights,
)
from transformist.model.weighting import Weighting
from transformist.model.weights_table import NamedPart, named_matrix, named_vector, numbered

Rows: TypeAlias = "slice | Positions"
"""Some of the positions, counted from 0."""

_BLOCK = 2**21
"""Most scores in memory at once: 16 MiB in float64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Attention(Parameterized, Function):
    """A self-attention head (Definition 2.3): cᵢ = Σⱼ αᵢⱼ vⱼ, α = S(q · k / √d_key).

    q = W_Q z + b_Q, k = W_K z + b_K, v = W_V z + b_V, and what the head gives is W_O cᵢ + b_O.
    Definition 2.3 has no biases. A row with no admissible position has cᵢ = 0, without b_V; b_O is
    added there too.

    Attributes:
        W_Q, W_K: shape (d_key, d).
        W_V: shape (d_value, d).
        W_O: shape (d, d_value); left out, the head gives cᵢ + b_O, and d_value = d.
        b_Q, b_K: shape (d_key,); zeros when left out.
        b_V: shape (d_value,); zeros when left out.
        b_O: shape (d,); zeros when left out.
        weighting: `softmax`, `average-hard`, `leftmost-hard` or `rightmost-hard`.
        mask: `none`, `future` (j ≤ i), `strict-future` (j < i), `past`, `strict-past`.

    Raises:
        ShapeMismatch: when the shapes do not fit.
        NotFinite: for a weight that is NaN or infinite.
        UnknownName: for a weighting or mask that does not exist.

    Example: the mean of all positions up to each.
        >>> head = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]], mask="future")
        >>> head([[1], [3]]).tolist()
        [[1.0], [2.0]]

    """

    W_Q: Parameter = weights()
    W_K: Parameter = weights()
    W_V: Parameter = weights()
    W_O: Parameter = weights(default=None)
    b_Q: Parameter = weights(default=None)
    b_K: Parameter = weights(default=None)
    b_V: Parameter = weights(default=None)
    b_O: Parameter = weights(default=None)
    weighting: OneOf[Weighting] = OneOf(Weighting, default=Weighting.SOFTMAX)
    mask: OneOf[Mask] = OneOf(Mask, default=Mask.NONE)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("W_Q", ("d_key", "d"), "both at least 1")
        width = self.W_Q.shape[1]
        self._require("W_K", self.W_Q.shape, "the shape of W_Q")
        self._require("W_V", ("d_value", width), "d being the columns of W_Q")
        if self.W_O is not None:
            self._require("W_O", ("d", self.W_V.shape[0]), "d_value being the rows of W_V")
        last = "W_V" if self.W_O is None else "W_O"
        for bias, matrix in (("b_Q", "W_Q"), ("b_K", "W_K"), ("b_V", "W_V"), ("b_O", last)):
            rows = getattr(self, matrix).shape[0]
            self._fill(bias, rows)
            self._require(bias, (rows,), f"the rows of {matrix}")

    @property
    def width(self) -> int:
        """d, the length of the vectors it reads."""
        return int(self.W_Q.shape[1])

    @property
    def width_out(self) -> int:
        """The length of the vectors it gives."""
        return int(self.b_O.shape[0])

    @property
    def value_matrix(self) -> Parameter:
        """V = W_O W_V: what the head gives is V zⱼ, averaged, beside its biases."""
        return self.W_V if self.W_O is None else exact_product(self.W_O, self.W_V)

    @property
    def value_shift(self) -> Parameter:
        """W_O b_V, which is added to that in a row with an admissible position."""
        return self.b_V if self.W_O is None else exact_product(self.W_O, self.b_V)

    @cached_property
    def written(self) -> tuple[int, ...]:
        """The coordinates to which the head may add a number other than 0, in any arithmetic."""
        # A row of W_O W_V that is 0 can still give W_O c ≠ 0, as c is rounded before: the rows of
        # W_O decide, not those of the product.
        last = self.W_V if self.W_O is None else self.W_O
        rows = np.any(last != 0, axis=1) | (self.value_shift != 0) | (self.b_O != 0)
        return tuple(int(row) for row in np.flatnonzero(rows))

    def on(self, z: Array, a: Arithmetic) -> Array:
        """W_O c + b_O for every sequence: (..., n, d) → (..., n, d_out), in blocks of rows."""
        z = sequences(z, a, self.width, "Attention")
        v = self.values(z, a)
        # The values are mixed before W_O: with fewer values than coordinates this takes fewer
        # products, and it is the order of roundings of Definition 2.3.
        c = [a.matmul(self.weights(z, a, rows), v) for rows in self._blocks(z.shape)]
        return self.output(a.concatenate(c, axis=-2), a)

    def queries(self, z: Array, a: Arithmetic) -> Array:
        """qᵢ: (..., n, d) → (..., n, d_key)."""
        w = self.rounded(a)
        return a.affine(z, w.W_Q, w.b_Q)

    def keys(self, z: Array, a: Arithmetic) -> Array:
        """kⱼ: (..., n, d) → (..., n, d_key)."""
        w = self.rounded(a)
        return a.affine(z, w.W_K, w.b_K)

    def values(self, z: Array, a: Arithmetic) -> Array:
        """vⱼ: (..., n, d) → (..., n, d_value)."""
        w = self.rounded(a)
        return a.affine(z, w.W_V, w.b_V)

    def output(self, c: Array, a: Arithmetic) -> Array:
        """W_O c + b_O for the mixed values c: (..., n, d_value) → (..., n, d_out)."""
        w = self.rounded(a)
        # Without W_O the matrix is the identity. A product with it would round nothing, and a bias
        # of 0 would add nothing: both are left out.
        if w.W_O is not None:
            return a.affine(c, w.W_O, w.b_O)
        return a.add(c, w.b_O) if np.any(self.b_O != 0) else c

    def scores(self, z: Any, arithmetic: Arithmetic | str, rows: Rows = slice(None)) -> Array:
        """sᵢⱼ for the queries i in `rows` (exact arithmetic: times √d_key), before the mask."""
        a = number_system(arithmetic)
        z = sequences(z, a, self.width, "Attention")
        return a.scores(self.queries(z[..., rows, :], a), self.keys(z, a))

    def weights(self, z: Any, arithmetic: Arithmetic | str, rows: Rows = slice(None)) -> Array:
        """The weights αᵢⱼ of the queries i in `rows` over all keys j: (..., n, d) → (..., r, n)."""
        a = number_system(arithmetic)
        z = sequences(z, a, self.width, "Attention")
        j = np.arange(z.shape[-2])
        admissible = self.mask.admissible(j[rows, None], j[None, :])
        return self.weighting(self.scores(z, a, rows), admissible, a)

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """W_Q, W_K, W_V, W_O and their biases; coordinates of vectors named by their numbers."""
        query, key = (numbered(noun, self.W_Q.shape[0]) for noun in ("query", "key"))
        reads = reads or numbered("input", self.width)
        writes = writes or numbered("output", self.width_out)
        value = writes if self.W_O is None else numbered("value", self.W_V.shape[0])
        matrices = [
            named_matrix("W_Q", query, reads, self.W_Q),
            named_vector("b_Q", query, self.b_Q),
            named_matrix("W_K", key, reads, self.W_K),
            named_vector("b_K", key, self.b_K),
            named_matrix("W_V", value, reads, self.W_V),
            named_vector("b_V", value, self.b_V),
        ]
        if self.W_O is not None:
            matrices.append(named_matrix("W_O", writes, value, self.W_O))
        matrices.append(named_vector("b_O", writes, self.b_O))
        kind = f"{self.weighting}, mask {self.mask}"
        yield NamedPart(name or "attention", kind, tuple(matrices))

    def _blocks(self, shape: tuple[int, ...]) -> Iterator[slice]:
        """Slices of the queries, so that a block of scores stays within `_BLOCK` entries."""
        *batch, n, _ = shape
        # A row's weights depend on no other row: blocks change nothing but the memory.
        rows = max(1, _BLOCK // max(1, n * int(np.prod(batch))))
        return (slice(start, start + rows) for start in range(0, max(n, 1), rows))
