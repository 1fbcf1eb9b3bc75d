"""Feed-forward networks: Definitions 2.4, 2.5 and 4.2 of the Cookbook, and gated linear units.

A gated unit is the product of two affine functions, one of them behind an activation: v · act(g).
W₁ and b₁ have the rows of all v, then those of all g: `torch.nn.functional.glu` halves its input
in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from transformist.arithmetic import Arithmetic, Array
from transformist.errors import ShapeMismatch, UnknownName
from transformist.model.definition import Definition, Function, part, several
from transformist.model.parameter import Parameter, Parameterized, vectors, weights
from transformist.model.weights_table import NamedPart, named_matrix, named_vector, numbered


def relu(x: Array, a: Arithmetic) -> Array:
    """ReLU(x) = max(0, x), Eq. 13."""
    return a.relu(x)


def gelu(x: Array, a: Arithmetic) -> Array:
    """GELU(x) = x Φ(x), Eqs. 23 and 24."""
    return a.multiply(x, a.normal_cdf(x))


def gelu_tanh(x: Array, a: Arithmetic) -> Array:
    """The form x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³))), Eq. 25."""
    half, one = a.array([Fraction(1, 2)]), a.array([1])
    cube = a.multiply(x, a.multiply(x, x))
    inner = a.add(x, a.multiply(a.array([Fraction("0.044715")]), cube))
    curve = a.tanh(a.multiply(a.root_two_over_pi(), inner))
    return a.multiply(a.multiply(half, x), a.add(one, curve))


def gelu_sigmoid(x: Array, a: Arithmetic) -> Array:
    """The form x · sigmoid(1.702 x), Eq. 26."""
    # For x far below 0 the exponential may overflow; x/∞ = 0 is then the limit of the function.
    one = a.array([1])
    decay = a.exp(a.multiply(a.array([Fraction("-1.702")]), x))
    return a.divide(x, a.add(one, decay))


def sigmoid(x: Array, a: Arithmetic) -> Array:
    """σ(x) = 1/(1 + e^−x) = (1 + tanh(x/2))/2."""
    # By tanh no exponential overflows.
    half, one = a.array([Fraction(1, 2)]), a.array([1])
    return a.multiply(half, a.add(one, a.tanh(a.multiply(half, x))))


def silu(x: Array, a: Arithmetic) -> Array:
    """SiLU(x) = x σ(x), the Swish of Shazeer 2020."""
    return a.multiply(x, sigmoid(x, a))


def tanh(x: Array, a: Arithmetic) -> Array:
    """The hyperbolic tangent."""
    return a.tanh(x)


def elu(x: Array, a: Arithmetic) -> Array:
    """ELU(x) = x for x > 0, e^x − 1 for x ≤ 0."""
    # With t = tanh(x/2) ≤ 0, e^x − 1 = 2t/(1 − t), which does not cancel near 0.
    one, two = a.array([1]), a.array([2])
    below = a.relu(a.subtract(a.array([0]), x))
    t = a.tanh(a.multiply(a.array([Fraction(-1, 2)]), below))
    return a.add(a.relu(x), a.divide(a.multiply(two, t), a.subtract(one, t)))


Activation: TypeAlias = Callable[[Array, Arithmetic], Array]

PLAIN_ACTIVATIONS: Mapping[str, Activation] = {
    "relu": relu,
    "gelu": gelu,
    "gelu-tanh": gelu_tanh,
    "gelu-sigmoid": gelu_sigmoid,
    "silu": silu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "elu": elu,
}
"""The activations that are functions of one number."""

GATES: Mapping[str, str | None] = {
    "glu": "sigmoid",
    "bilinear": None,
    "reglu": "relu",
    "geglu": "gelu",
    "swiglu": "silu",
}
"""The gated activations (Dauphin et al. 2017, Shazeer 2020), each with the activation of its gate.

`None` stands for the identity.
"""


def halves(x: Array) -> tuple[Array, Array]:
    """The values and the gates of gated units: the two halves of the last axis."""
    # The number of rows of W₁ is even: `FeedForward` refuses another one.
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]


def gated(gate: str | None) -> Activation:
    """v · act(g), entry by entry, for v and g the halves of the last axis."""

    def product(x: Array, a: Arithmetic) -> Array:
        values, gates = halves(x)
        opened = gates if gate is None else PLAIN_ACTIVATIONS[gate](gates, a)
        return a.multiply(values, opened)

    return product


ACTIVATIONS: Mapping[str, Activation] = {
    **PLAIN_ACTIVATIONS,
    **{name: gated(gate) for name, gate in GATES.items()},
}
"""Every activation: from W₁ x + b₁ to the hidden units, along the last axis."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FeedForward(Parameterized, Function):
    """A two-layer feed-forward network (Definition 2.5): y = W₂ h + b₂, h = act(W₁ x + b₁).

    With a gated activation W₁ x + b₁ has two halves v and g, and h = v ∘ act(g), entry by entry.

    Attributes:
        W_1: shape (d_hid, d); of gated units (2 d_hid, d), the rows of v before those of g.
        b_1: a number for each row of W₁; zeros when left out.
        W_2: shape (d_out, d_hid).
        b_2: shape (d_out,); zeros when left out.
        activation: `relu`, one of the forms of GELU (`gelu`, `gelu-tanh`, `gelu-sigmoid`),
            `silu`, `sigmoid`, `tanh` or `elu`; of gated units `glu` (sigmoid), `bilinear` (the
            gate as it is), `reglu`, `geglu` or `swiglu` (ReLU, GELU, SiLU).

    Raises:
        ShapeMismatch: when the shapes do not fit.
        NotFinite: for a weight that is NaN or infinite.
        UnknownName: for an activation that does not exist.

    Example: |x|, and the product of two numbers.
        >>> FeedForward(W_1=[[1], [-1]], W_2=[[1, 1]])([-3])
        array([3.])
        >>> FeedForward(W_1=[[1, 0], [0, 1]], W_2=[[1]], activation="bilinear")([-3, 5])
        array([-15.])

    """

    W_1: Parameter = weights()
    b_1: Parameter = weights(default=None)
    W_2: Parameter = weights()
    b_2: Parameter = weights(default=None)
    activation: str = part(str, default="relu")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation not in ACTIVATIONS:
            raise UnknownName.among("activation", self.activation, ACTIVATIONS, "FeedForward")
        self._require("W_1", ("d_hid", "d"), "both at least 1")
        rows = self.W_1.shape[0]
        if self.is_gated and rows % 2:
            raise ShapeMismatch(
                f"W_1 must have two rows for each unit of {self.activation}, all values before all "
                "gates",
                received=f"{rows} rows",
                where="FeedForward",
                remedy="give the rows of the values, then as many rows of the gates",
            )
        meaning = (
            "d_hid being half the rows of W_1" if self.is_gated else "d_hid being the rows of W_1"
        )
        self._require("W_2", ("d_out", rows // 2 if self.is_gated else rows), meaning)
        self._fill("b_1", rows)
        self._fill("b_2", self.width_out)
        self._require("b_1", (rows,), "the rows of W_1")
        self._require("b_2", (self.width_out,), "the rows of W_2")

    @property
    def width(self) -> int:
        """d, the length of the vectors it reads."""
        return int(self.W_1.shape[1])

    @property
    def width_out(self) -> int:
        """d_out, the length of the vectors it gives."""
        return int(self.W_2.shape[0])

    @property
    def is_gated(self) -> bool:
        """True if the hidden units are products of a value and a gate."""
        return self.activation in GATES

    @property
    def hidden(self) -> int:
        """d_hid, the number of hidden units."""
        return int(self.W_2.shape[1])

    def rows_of(self, unit: int) -> tuple[int, ...]:
        """The rows of W₁ of a hidden unit: one, or one for its value and one for its gate."""
        return (unit, unit + self.hidden) if self.is_gated else (unit,)

    @property
    def written(self) -> tuple[int, ...]:
        """The coordinates to which it may add something other than 0."""
        rows = np.any(self.W_2 != 0, axis=1) | (self.b_2 != 0)
        return tuple(int(row) for row in np.flatnonzero(rows))

    def on(self, x: Array, a: Arithmetic) -> Array:
        """y for every vector along the last axis of x: (..., d) → (..., d_out)."""
        w = self.rounded(a)
        x = vectors(x, a, self.width, "FeedForward")
        h = ACTIVATIONS[self.activation](a.affine(x, w.W_1, w.b_1), a)
        return a.affine(h, w.W_2, w.b_2)

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The four parameters, the hidden units named by their numbers."""
        hidden = numbered("hidden", self.hidden)
        rows = hidden
        if self.is_gated:
            rows = *numbered("value", self.hidden), *numbered("gate", self.hidden)
        reads = reads or numbered("input", self.width)
        writes = writes or numbered("output", self.width_out)
        yield NamedPart(
            name or "feed-forward",
            self.activation,
            (
                named_matrix("W_1", rows, reads, self.W_1),
                named_vector("b_1", rows, self.b_1),
                named_matrix("W_2", writes, hidden, self.W_2),
                named_vector("b_2", writes, self.b_2),
            ),
        )


@dataclass(frozen=True, eq=False)
class FeedForwardStack(Definition, Function):
    """Feed-forward networks one after the other, with no residual connection between them.

    Example:
        >>> double = FeedForward(W_1=[[1], [-1]], W_2=[[2, -2]])
        >>> FeedForwardStack((double, double))([-3])
        array([-12.])

    """

    parts: tuple[FeedForward, ...] = several(FeedForward, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        for before, after in zip(self.parts, self.parts[1:], strict=False):
            if before.width_out != after.width:
                raise ShapeMismatch(
                    "each network of a stack must read as many coordinates as the one before gives",
                    received=f"{before.width_out} given, {after.width} read",
                    where="FeedForwardStack",
                    remedy="pad the narrower one",
                )

    @property
    def width(self) -> int:
        """The length of the vectors it reads."""
        return self.parts[0].width

    @property
    def width_out(self) -> int:
        """The length of the vectors it gives."""
        return self.parts[-1].width_out

    def on(self, x: Array, a: Arithmetic) -> Array:
        """The last network of … of the first of x: (..., d) → (..., d_out)."""
        for each in self.parts:
            x = each.on(x, a)
        return x

    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of each network, which reads the outputs of the one before."""
        last = len(self.parts) - 1
        for number, each in enumerate(self.parts):
            written = writes if number == last else ()
            yield from each.named_parts(f"{name or 'network'} {number}", reads, written)
            reads = numbered(f"output of {number},", each.width_out)
