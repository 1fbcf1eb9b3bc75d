"""Layer normalization: Definition 6.1 of the Cookbook, with the selection of 5.3.3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from transformist.arithmetic import Arithmetic, Array
from transformist.errors import InvalidValue, UndefinedValue
from transformist.model.definition import Function
from transformist.model.parameter import Parameter, Parameterized, vectors, weights
from transformist.model.weights_table import (
    NamedPart,
    named_matrix,
    named_vector,
    number_in_words,
    numbered,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerNorm(Parameterized, Function):
    """Layer normalization (Definition 6.1): (x − μ)/√(σ² + ε) ⊙ γ + β, of W_N x where W_N is given.

    μ is the mean of the coordinates and σ² their population variance (divided by d).

    Attributes:
        gain: γ, shape (d,).
        bias: β, shape (d,); zeros when left out.
        epsilon: ε ≥ 0, added to the variance.
        W_N: shape (d, d_in), the matrix that selects what is normalized (5.3.3); the identity when
            left out.

    Raises:
        ShapeMismatch: when the shapes do not fit.
        InvalidValue: for ε < 0.
        UndefinedValue: when called on a constant vector with ε = 0.

    Example:
        >>> LayerNorm(gain=[1, 1])([3, 1])
        array([ 1., -1.])

    """

    gain: Parameter = weights()
    bias: Parameter = weights(default=None)
    epsilon: Parameter = weights(default=0)
    W_N: Parameter = weights(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("gain", ("d",), "at least 1")
        self._fill("bias", self.width_out)
        self._require("bias", (self.width_out,), "the shape of gain")
        self._require("epsilon", (), "a single number")
        if self.epsilon < 0:
            raise InvalidValue(
                "ε must be at least 0",
                received=f"epsilon = {self.epsilon}",
                where="LayerNorm",
                remedy="give 0 or a positive number",
            )
        if self.W_N is not None:
            self._require("W_N", (self.width_out, "d_in"), "d being the length of gain")

    @property
    def width(self) -> int:
        """The length of the vectors it reads."""
        return self.width_out if self.W_N is None else int(self.W_N.shape[1])

    @property
    def width_out(self) -> int:
        """d, the length of the vectors it gives."""
        return int(self.gain.shape[0])

    def on(self, x: Array, a: Arithmetic) -> Array:
        """The normalized vectors along the last axis: (..., d_in) → (..., d)."""
        w = self.rounded(a)
        x = vectors(x, a, self.width, "LayerNorm")
        if w.W_N is not None:
            x = a.affine(x, w.W_N)
        d = a.array([self.width_out])
        centred = a.subtract(x, a.divide(a.sum(x), d))
        variance = a.divide(a.sum(a.multiply(centred, centred)), d)
        # σ² + ε is at least 0; it is 0 if ε is (or rounds to) 0 and the coordinates are equal, or
        # so close that their squares underflow. The formula then has no value.
        deviation = a.sqrt(a.add(variance, w.epsilon))
        if not np.all(a.positive(deviation)):
            raise UndefinedValue(
                f"a norm with ε = {self.epsilon:g} needs a vector whose σ² + ε is not 0"
                if self.epsilon
                else "a norm with ε = 0 needs a vector whose coordinates are not all equal",
                received=f"a vector with σ² + ε = 0 in {a.name}",
                where="LayerNorm",
                remedy="give ε > 0"
                + (" that the format does not round to 0" if self.epsilon else "")
                + ", or coordinates that differ by more than the format loses",
            )
        return a.add(a.multiply(a.divide(centred, deviation), w.gain), w.bias)

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The gain γ and the bias β, and W_N where it is given."""
        reads = reads or numbered("input", self.width)
        writes = writes or (reads if self.W_N is None else numbered("normed", self.width_out))
        matrices = [] if self.W_N is None else [named_matrix("W_N", writes, reads, self.W_N)]
        matrices += [
            named_vector("gain", writes, self.gain),
            named_vector("bias", writes, self.bias),
        ]
        kind = f"epsilon {number_in_words(self.epsilon.item())}"
        yield NamedPart(name or "norm", kind, tuple(matrices))
