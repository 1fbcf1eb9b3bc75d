"""A transformer as a `torch.nn.Module`; this module needs PyTorch.

Numbers follow the reference: products and sums of half formats are taken in float32 and rounded
once, as in `arithmetic/floating`, and a score is divided by √d_key after its sum. Linear maps and
scores have the bits of the reference; the order of sums over keys and in norms, and the last bit of
exponentials, may differ.

Linear maps multiply and add without a matrix product of BLAS. BLAS computes the last rows of a
block by other instructions, so equal rows can get results that differ in the last bit (measured
with torch 2.13: in 204 of 1,000 small products in float64). This would break ties of hard
attention. Here every number of the result is computed by the same operations in the same order.

`torch.compile` and `torch.export` trace the module into a graph. A graph has one node for each
linear map, whose sum it takes in an order of its own. It cannot raise an error for a number, so it
gives NaN for an input that the module itself refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from transformist.arithmetic import number_system
from transformist.errors import (
    InputTooLong,
    InvalidValue,
    ShapeMismatch,
    UndefinedValue,
    require_type,
)
from transformist.hosts.named_arrays import (
    answer_from,
    fixed_positions,
    held_names,
    longest_input,
    named_arrays,
    require_hostable,
    token_ids,
)
from transformist.model import (
    GATES,
    Attention,
    Embedding,
    FeedForward,
    Layer,
    LayerNorm,
    PositionFunctions,
    PositionTable,
    Symbol,
    Transformer,
)
from transformist.position_features import WAVELENGTHS, position

Streams = dict[str, dict[str, Tensor]]
"""For each step, such as `layer 0 attention`, the slots by name, each of shape (batch, rows)."""


class ModuleOutput(NamedTuple):
    """Result of a forward pass.

    Attributes:
        vectors: the final vectors, shape (batch, rows, d); 0 in rows of padding.
        logits: W_out z + b_out at every row, shape (batch, rows, k).
        streams: the residual stream after each step by slot name, or None if not requested.

    """

    vectors: Tensor
    logits: Tensor
    streams: Streams | None = None


def _wide(x: Tensor) -> Tensor:
    """The numbers in the format in which sums accumulate."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _is_traced() -> bool:
    """True while `torch.compile`, `torch.export` or `torch.jit.trace` makes a graph."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _affine(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """W x + b for every vector along the last axis, rounded once."""
    wide_x, wide_W = _wide(x), _wide(W)
    # `LinearMap` would put two nodes for each column into a graph: a map of width 64 then takes 9 s
    # to compile instead of 1. As one product and its sum it is compiled to a loop without the array
    # of products.
    if _is_traced():
        total = (wide_x[..., None, :] * wide_W).sum(-1)
    else:
        total = LinearMap.apply(wide_x, wide_W)
    return (total if b is None else total + _wide(b)).to(x.dtype)


class LinearMap(torch.autograd.Function):
    """W x, summed from the first column to the last, as the reference does.

    The products of one column are in memory at a time, and none is kept for the gradient. The
    gradient is a matrix product: no tie rests on its last bit.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, W: Tensor) -> Tensor:
        """W x, (…, d_in) → (…, d_out)."""
        total = x.new_zeros((*x.shape[:-1], W.shape[0]))
        for coordinate, column in zip(x.unbind(-1), W.unbind(-1), strict=True):
            # Two operations and two roundings: a fused one, such as `addcmul`, may round once.
            total = total + coordinate[..., None] * column
        return total

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], _output: Tensor) -> None:
        """Keep x and W, for both kinds of derivatives."""
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients for x and W, from that for W x."""
        x, W = ctx.saved_tensors
        (gradient,) = gradients
        # With y = x W^T for every vector x, the gradient G of y gives G W for x, and for W the sum
        # of G^T x over all vectors.
        return gradient @ W, gradient.flatten(0, -2).T @ x.flatten(0, -2)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        """The derivative along a direction of x and W."""
        x, W = ctx.saved_tensors
        along_x, along_W = tangents
        parts = [] if along_x is None else [along_x @ W.T]
        parts += [] if along_W is None else [x @ along_W.T]
        return sum(parts[1:], parts[0])


class SoftmaxModule(nn.Module):
    """Attention weights by softmax; 0 in a row without an admissible score."""

    def forward(self, scores: Tensor, admissible: Tensor) -> Tensor:
        """Weights of the shape of the scores."""
        # The largest score of a row without an admissible score is −∞, and −∞ − (−∞) is NaN. Such a
        # row is computed with 0 instead of −∞ and gets weights of 0.
        is_empty = ~admissible.any(-1, keepdim=True)
        largest = scores.masked_fill(~admissible, -torch.inf).amax(-1, keepdim=True)
        below = (scores - largest.masked_fill(is_empty, 0)).masked_fill(~admissible, 0)
        e = below.exp().masked_fill(~admissible, 0)
        return e / e.sum(-1, keepdim=True).masked_fill(is_empty, 1)


def _maximal(scores: Tensor, admissible: Tensor) -> Tensor:
    """True at the admissible scores that equal the largest one in the format."""
    largest = scores.masked_fill(~admissible, -torch.inf).amax(-1, keepdim=True)
    return admissible & (scores == largest)


class AverageHardModule(nn.Module):
    """Equal weights on all largest scores; scores are compared after rounding to the format."""

    def forward(self, scores: Tensor, admissible: Tensor) -> Tensor:
        """Weights of the shape of the scores."""
        chosen = _maximal(scores, admissible)
        count = chosen.sum(-1, keepdim=True).clamp(min=1)
        return chosen.to(scores.dtype) / count.to(scores.dtype)


class LeftmostHardModule(nn.Module):
    """All the weight on the first largest score."""

    def forward(self, scores: Tensor, admissible: Tensor) -> Tensor:
        """Weights of the shape of the scores."""
        chosen = _maximal(scores, admissible)
        return (chosen & (chosen.cumsum(-1) == 1)).to(scores.dtype)


class RightmostHardModule(nn.Module):
    """All the weight on the last largest score."""

    def forward(self, scores: Tensor, admissible: Tensor) -> Tensor:
        """Weights of the shape of the scores."""
        chosen = _maximal(scores, admissible)
        # Counted from the right, the last of the largest scores is the first.
        return (chosen & (chosen.flip(-1).cumsum(-1).flip(-1) == 1)).to(scores.dtype)


WEIGHTINGS: Mapping[str, Callable[[], nn.Module]] = {
    "softmax": SoftmaxModule,
    "average-hard": AverageHardModule,
    "leftmost-hard": LeftmostHardModule,
    "rightmost-hard": RightmostHardModule,
}
"""The module of each weighting of `model.Weighting`."""

MASKS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "none": lambda i, j: (i == i) & (j == j),
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}
"""True where query i may attend to key j, for each mask of `model.Mask`."""


# The forms of GELU take the steps of `model.feed_forward`, each rounded to the format, and their
# transcendental functions in float64. `nn.functional.gelu` and `sigmoid` compute the last elements
# of a tensor by other instructions, so that equal rows get numbers that differ in the last bit
# (measured with torch 2.13: gelu-tanh of 16 in 200 numbers of float32, gelu of 4 of float64).


FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""The formats of a module."""

# `torch.compile` takes a constant into a kernel of a half format without rounding it. So torch
# rounds each constant here, from float64 and before a graph is made.
ROUNDED = {
    value: {dtype: torch.tensor(value, dtype=dtype).item() for dtype in FLOATS}
    for value in (0.044715, -1.702, math.sqrt(2 / math.pi))
}
"""The constants of the forms of GELU in each format."""


def _constant(value: float, x: Tensor) -> Tensor:
    """A number rounded to the format of x."""
    return torch.full((), ROUNDED[value][x.dtype], dtype=x.dtype, device=x.device)


def _gelu(x: Tensor) -> Tensor:
    """x Φ(x)."""
    return x * (torch.special.erfc(x.double() / -math.sqrt(2)) / 2).to(x.dtype)


def _gelu_tanh(x: Tensor) -> Tensor:
    """x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³)))."""
    # At ±40 the curve is ±1, and 40³ is finite in float16: a cube of ∞ has no finite gradient.
    y = x.clamp(-40, 40)
    inner = y + _constant(0.044715, x) * (y * (y * y))
    curve = (_constant(math.sqrt(2 / math.pi), x) * inner).double().tanh().to(x.dtype)
    return x / 2 * (1 + curve)


def _gelu_sigmoid(x: Tensor) -> Tensor:
    """x / (1 + exp(−1.702 x))."""
    exponent = (_constant(-1.702, x) * x).double()
    # Where the exponential is ∞ in the format, the quotient is 0, and its gradient would be 0 · ∞.
    is_over = exponent.exp().to(x.dtype).isinf()
    decay = exponent.masked_fill(is_over, 0).exp().to(x.dtype)
    return (x / (1 + decay)).masked_fill(is_over, 0)


def _tanh(x: Tensor) -> Tensor:
    return x.double().tanh().to(x.dtype)


def _sigmoid(x: Tensor) -> Tensor:
    """(1 + tanh(x/2))/2."""
    return (1 + _tanh(x / 2)) / 2


def _elu(x: Tensor) -> Tensor:
    """x for x > 0, 2t/(1 − t) for x ≤ 0, t = tanh(x/2)."""
    # e^x = (1 + t)/(1 − t), so e^x − 1 = 2t/(1 − t), which loses no digits near 0. For x > 0, t is
    # 0.
    t = _tanh(-torch.relu(-x) / 2)
    return torch.relu(x) + 2 * t / (1 - t)


def _silu(x: Tensor) -> Tensor:
    """x (1 + tanh(x/2))/2."""
    return x * _sigmoid(x)


def _gated(gate: Callable[[Tensor], Tensor] | None) -> Callable[[Tensor], Tensor]:
    """v · act(g) for the halves v and g of the last axis, as `torch.nn.functional.glu`."""

    def product(x: Tensor) -> Tensor:
        values, gates = x.chunk(2, dim=-1)
        return values * (gates if gate is None else gate(gates))

    return product


PLAIN_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": _gelu,
    "gelu-tanh": _gelu_tanh,
    "gelu-sigmoid": _gelu_sigmoid,
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "elu": _elu,
    "silu": _silu,
}
"""The activations that are functions of one number."""

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    **PLAIN_ACTIVATIONS,
    **{name: _gated(PLAIN_ACTIVATIONS[gate] if gate else None) for name, gate in GATES.items()},
}
"""The function of each activation of `model.FeedForward`."""

# Whole numbers are int64 until the last step, so i³ is exact up to i = 2²⁰. A quotient is rounded
# to float64 and then to the format of the model. For float32 the two roundings equal one: i/n is
# either a number of 25 bits, or differs from every such number by at least 2⁻²⁵/n of itself, and
# 2⁻²⁵/n > 2⁻⁵³ for n < 2²⁸.
POSITION_FUNCTIONS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "1": lambda i, _n: torch.ones_like(i).double(),
    "i": lambda i, _n: i.double(),
    "i^2": lambda i, _n: (i * i).double(),
    "i^3": lambda i, _n: (i * i * i).double(),
    "1/i": lambda i, _n: 1 / i.double(),
    "-1/i": lambda i, _n: -1 / i.double(),
    "i/n": lambda i, n: (i.double() / n.double()).masked_fill(i == 0, 0),
    "-i/n": lambda i, n: (-i.double() / n.double()).masked_fill(i == 0, 0),
    "(-1)^i": lambda i, _n: (1 - 2 * (i % 2)).double(),
}
"""The functions of `position_features.POSITIONS`, of i (batch, rows) and n (batch, 1)."""


class FormulaPositions(nn.Module):
    """Positions by formula: some coordinates are functions of i and n."""

    def __init__(self, names: Sequence[str | None]) -> None:
        super().__init__()
        self.names = tuple(names)
        for column, name in enumerate(names):
            if name is not None and name in WAVELENGTHS:
                values = [float(position(name, i, 0)) for i in range(WAVELENGTHS[name])]
                table = torch.tensor(values, dtype=torch.float64)
                self.register_buffer(f"wave_{column}", table, persistent=False)

    def forward(self, places: Tensor, n: Tensor) -> Tensor:
        """The vectors of the positions, in float64."""
        nothing = torch.zeros_like(places).double()
        columns = [
            nothing
            if name is None
            else self._wave(column, places)
            if name in WAVELENGTHS
            else POSITION_FUNCTIONS[name](places, n)
            for column, name in enumerate(self.names)
        ]
        return torch.stack(columns, dim=-1)

    def _wave(self, column: int, places: Tensor) -> Tensor:
        """A sine or cosine, from a table of one wavelength."""
        # A module that is converted to a narrower format rounds its tables, as it should.
        table: Tensor = getattr(self, f"wave_{column}")
        return table[places % len(table)].double()


class TablePositions(nn.Module):
    """Positions from a table of vectors, a parameter of the model."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors)

    def forward(self, places: Tensor, n: Tensor) -> Tensor:
        """The vectors of the positions."""
        return nn.functional.embedding(places - 1, self.vectors)


class FixedPositions(nn.Module):
    """Positions from a table that is neither a parameter nor in the state dict."""

    table: Tensor

    def __init__(self, table: Tensor, first: int) -> None:
        super().__init__()
        self.first = first
        self.register_buffer("table", table, persistent=False)

    def forward(self, places: Tensor, n: Tensor) -> Tensor:
        """The vectors of the positions."""
        return nn.functional.embedding(places - self.first, self.table)


class EmbeddingModule(nn.Module):
    """Word vectors, and the vectors of positions added to them.

    Attributes:
        vectors: shape (symbols, d), a row for each symbol, BOS, EOS and CLS included.
        positions: the module of the positions, or None.

    """

    def __init__(self, embedding: Embedding, positions: nn.Module | None, of: _Arrays) -> None:
        super().__init__()
        self.vectors = nn.Parameter(of("vectors"))
        self.positions = positions
        self.front, self.added = len(embedding.front), len(embedding.front) + len(embedding.back)
        # A symbol at the back has i = n + 1, so that i/n is infinite on the empty input. A symbol
        # in front has i = 0, where i/n counts as 0.
        names = positions.names if isinstance(positions, FormulaPositions) else ()
        self.divides_by_n = bool(embedding.back) and not {"i/n", "-i/n"}.isdisjoint(names)

    def forward(self, ids: Tensor, is_token: Tensor) -> Tensor:
        """The embedded tokens, (batch, rows) → (batch, rows, d)."""
        words = nn.functional.embedding(ids, self.vectors)
        if self.positions is None:
            return words
        # Symbols in front have the positions …, −1, 0; padding takes no position.
        places = is_token.cumsum(-1) - self.front
        n = is_token.sum(-1, keepdim=True) - self.added
        return words + self.positions(places.masked_fill(~is_token, 1), n).to(words.dtype)


class HeadModule(nn.Module):
    """One attention head; its output is added to the residual stream.

    A forward hook that returns zeros ablates the head. The output of `weighting` is the attention
    matrix, shape (batch, queries, keys); a hook there reads or replaces it.

    Attributes:
        W_Q, W_K, W_V, W_O: matrices, with one row for each output; W_O may be None.
        b_Q, b_K, b_V, b_O: biases.
        weighting: the module that turns scores into attention weights.
        mask: the name of the mask.

    """

    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor

    def __init__(self, head: Attention, of: _Arrays) -> None:
        super().__init__()
        for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V"):
            self.register_parameter(name, nn.Parameter(of(name)))
        self.W_O = None if head.W_O is None else nn.Parameter(of("W_O"))
        self.b_O = nn.Parameter(of("b_O"))
        self.weighting = WEIGHTINGS[head.weighting]()
        self.mask = str(head.mask)

    def forward(self, z: Tensor, is_token: Tensor) -> Tensor:
        """The head's part of the sum, (batch, rows, d) → (batch, rows, d)."""
        q, k, v = (
            _affine(z, getattr(self, f"W_{each}"), getattr(self, f"b_{each}")) for each in "QKV"
        )
        j = torch.arange(z.shape[1], device=z.device)
        admissible = MASKS[self.mask](j[:, None], j[None, :]) & is_token[:, None, :]
        c = self._mixed(self.weighting(self.scores(q, k), admissible), v)
        return c + self.b_O if self.W_O is None else _affine(c, self.W_O, self.b_O)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """q · k / √d_key for every query and key."""
        q, k, size = _wide(q), _wide(k), q.shape[-1]
        total = q[..., :, None, 0] * k[..., None, :, 0]
        for each in range(1, size):
            total = total + q[..., :, None, each] * k[..., None, :, each]
        # The product is rounded to the format, then divided: two roundings, as in the reference.
        total = total.to(self.W_Q.dtype)
        return total / torch.full_like(total[..., :1, :1], size).sqrt()

    def _mixed(self, weights: Tensor, v: Tensor) -> Tensor:
        """Σⱼ αᵢⱼ vⱼ by columns of v, without a matrix product, so that equal rows stay equal."""
        weights, columns = _wide(weights), _wide(v).unbind(-1)
        mixed = [(weights * each[:, None, :]).sum(-1) for each in columns]
        return torch.stack(mixed, dim=-1).to(v.dtype)


class FeedForwardModule(nn.Module):
    """A two-layer network W_2 act(W_1 x + b_1) + b_2; its output is added to the stream."""

    W_1: Tensor
    b_1: Tensor
    W_2: Tensor
    b_2: Tensor

    def __init__(self, network: FeedForward, of: _Arrays) -> None:
        super().__init__()
        for name in ("W_1", "b_1", "W_2", "b_2"):
            self.register_parameter(name, nn.Parameter(of(name)))
        self.activation = network.activation

    def forward(self, x: Tensor) -> Tensor:
        """y for every vector along the last axis."""
        hidden = ACTIVATIONS[self.activation](_affine(x, self.W_1, self.b_1))
        return _affine(hidden, self.W_2, self.b_2)


class NormModule(nn.Module):
    """A layer norm: (x − μ)/√(σ² + ε) · gain + bias, of W_N x where there is a W_N."""

    epsilon: Tensor
    W_N: Tensor | None

    def __init__(self, norm: LayerNorm, of: _Arrays) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(of("gain")), nn.Parameter(of("bias"))
        self.register_buffer("epsilon", of("epsilon"))
        self.register_buffer("W_N", None if norm.W_N is None else of("W_N"))

    def forward(self, x: Tensor, is_token: Tensor) -> Tensor:
        """The normalized vectors; rows of padding keep a deviation of 1."""
        x = x if self.W_N is None else _affine(x, self.W_N)
        size = x.shape[-1]
        centred = x - x.sum(-1, keepdim=True) / size
        variance = (centred * centred).sum(-1, keepdim=True) / size
        # A row of padding is 0: with ε = 0 it would be NaN, and 0 · NaN would reach other rows.
        deviation = (variance + self.epsilon).masked_fill(~is_token[..., None], 1).sqrt()
        return centred / deviation * self.gain + self.bias


class LayerModule(nn.Module):
    """A layer: attention heads, then a feed-forward network, each with residual and norms.

    Attributes:
        heads: the heads, whose outputs are summed.
        feed_forward: the network, or None.
        pre_norms, post_norms: for the attention and for the network; None where there is none.

    """

    def __init__(self, layer: Layer, of: _Arrays) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            HeadModule(head, of.below(f"heads.{number}")) for number, head in enumerate(layer.heads)
        )
        network = layer.feed_forward
        self.feed_forward = (
            None if network is None else FeedForwardModule(network, of.below("feed_forward"))
        )
        self.pre_norms = _norms(layer.pre_norms, of.below("pre_norms"))
        self.post_norms = _norms(layer.post_norms, of.below("post_norms"))

    def forward(self, z: Tensor, is_token: Tensor) -> list[tuple[str, Tensor]]:
        """The stream after each sublayer, with the sublayer's name."""
        streams = []
        if len(self.heads):
            x = self._normed("0", self.pre_norms, z, is_token)
            y = self.heads[0](x, is_token)
            for head in list(self.heads)[1:]:
                y = y + head(x, is_token)
            z = self._normed("0", self.post_norms, y + z, is_token)
            z = z.masked_fill(~is_token[..., None], 0)
            streams.append(("attention", z))
        if self.feed_forward is not None:
            x = self._normed("1", self.pre_norms, z, is_token)
            z = self._normed("1", self.post_norms, self.feed_forward(x) + z, is_token)
            z = z.masked_fill(~is_token[..., None], 0)
            streams.append(("feed-forward", z))
        return streams

    @staticmethod
    def _normed(which: str, norms: nn.ModuleDict, z: Tensor, is_token: Tensor) -> Tensor:
        return norms[which](z, is_token) if which in norms else z


def _norms(norms: Sequence[LayerNorm | None], of: _Arrays) -> nn.ModuleDict:
    """The norms that are there, by the number of their sublayer."""
    return nn.ModuleDict(
        {
            str(number): NormModule(norm, of.below(str(number)))
            for number, norm in enumerate(norms)
            if norm is not None
        }
    )


class ReadOutModule(nn.Module):
    """The linear map W_out z + b_out."""

    def __init__(self, of: _Arrays) -> None:
        super().__init__()
        self.W_out, self.b_out = nn.Parameter(of("W_out")), nn.Parameter(of("b_out"))

    def forward(self, z: Tensor) -> Tensor:
        """The values read out, (batch, rows, d) → (batch, rows, k)."""
        return _affine(z, self.W_out, self.b_out)


class _Arrays:
    """Weights by name, as tensors; `below` narrows the names to those with a prefix."""

    def __init__(self, arrays: Mapping[str, Any], dtype: torch.dtype, prefix: str = "") -> None:
        self._arrays, self._dtype, self._prefix = arrays, dtype, prefix

    def __call__(self, name: str) -> Tensor:
        return torch.tensor(self._arrays[self._prefix + name], dtype=self._dtype)

    def below(self, prefix: str) -> _Arrays:
        return _Arrays(self._arrays, self._dtype, f"{self._prefix}{prefix}.")


_OF_THE_SAME_MODEL = "give the state_dict() of a module that to_torch made of the same model"


class TransformerModule(nn.Module):
    """A transformer as a module of PyTorch; `tf.to_torch` makes it.

    Tokens are rows of the word embedding, with the symbols that the model adds: BOS in front and,
    in some models, EOS or CLS at the back. `encode` adds them.

    The state dict has the names of a saved file: `embedding.vectors`,
    `layers.0.heads.1.W_Q` (also b_Q, W_K, b_K, W_V, b_V, W_O, b_O), `layers.0.feed_forward.W_1`
    (also b_1, W_2, b_2), `layers.0.pre_norms.0.gain` (also bias, epsilon, W_N; 0 is the norm of the
    attention, 1 that of the network), `final_norm.gain`, `read_out.W_out`, `read_out.b_out`, and
    `embedding.positions.vectors` where positions are a table. A matrix has a row for each output,
    as in `nn.Linear`. Column s of a matrix that reads the stream, and row s of one that writes to
    it, belong to the slot `model.stream.slots[s]`.

    Attributes:
        model: the transformer that the module was made of, without later changes of parameters.
        max_length: N, the longest input without added symbols; None for any length.
        embedding, layers, final_norm, read_out: the submodules.

    """

    def __init__(
        self, model: Transformer, dtype: str = "float64", max_length: int | None = None
    ) -> None:
        super().__init__()
        require_hostable(model, "to_torch")
        arrays = _Arrays(named_arrays(model, dtype), getattr(torch, dtype))
        self.model = model
        positions = _positions(model, arrays, dtype, max_length)
        self.embedding = EmbeddingModule(model.embedding, positions, arrays.below("embedding"))
        self.layers = nn.ModuleList(
            LayerModule(layer, arrays.below(f"layers.{number}"))
            for number, layer in enumerate(model.layers)
        )
        norm = model.final_norm
        self.final_norm = None if norm is None else NormModule(norm, arrays.below("final_norm"))
        self.read_out = ReadOutModule(arrays.below("read_out"))
        self._held = tuple(tuple(each.items()) for each in held_names(model))
        self.max_length = longest_input(model, max_length)

    @property
    def dtype(self) -> torch.dtype:
        """The format of the weights."""
        return self.read_out.W_out.dtype

    def forward(
        self,
        token_ids: Tensor,
        lengths: Tensor | None = None,
        padding_mask: Tensor | None = None,
        return_streams: bool = False,
    ) -> ModuleOutput:
        """Evaluate a batch of tokens.

        Args:
            token_ids: whole numbers, shape (batch, rows); tokens in padding do not matter.
            lengths: the number of tokens in each row of the batch, added symbols included, if the
                rows end with padding; shape (batch,).
            padding_mask: True at padding, shape (batch, rows), as `key_padding_mask` of PyTorch;
                padding may stand anywhere. Give `lengths` or `padding_mask`, not both.
            return_streams: True to return the residual stream after each step.

        Raises:
            ShapeMismatch: for tensors of other shapes.
            InvalidValue: for `lengths` and `padding_mask` together, tensors of another type or on
                another device, numbers out of their range, and a module on the device `meta`.
            InputTooLong: for more tokens than N symbols and those that the model adds.
            UndefinedValue: for the empty input, if a symbol at the back has the position i/n.

        A graph of `torch.compile` or `torch.export` checks shapes and types when it is made. For
        numbers out of their range, or too many tokens, its results are NaN.

        """
        device = self.read_out.W_out.device
        if device.type == "meta" and not _is_traced():
            raise InvalidValue(
                "the module must be on a device that holds its weights",
                received="meta, which holds shapes only",
                where="forward",
                remedy="make the module again by tf.to_torch(model), and load its weights",
            )
        is_token = _is_token(token_ids, lengths, padding_mask, device)
        # PyTorch wraps a number that is compared with a tensor of 8 bits: 301 would be 45.
        token_ids, lengths = token_ids.long(), None if lengths is None else lengths.long()
        is_refused = torch.zeros_like(is_token[:, 0])
        for flags, refuse in self._refusals(token_ids, lengths, is_token):
            if not _is_traced() and bool(flags.any()):
                refuse(flags)
            is_refused = is_refused | flags
        # A refused input of a graph is padding until the end, so that no index leaves its table.
        is_token = is_token & ~is_refused[:, None]
        # Padding is kept at 0 after every step: a weight of 0 times NaN or ∞ would still be NaN.
        z = self.embedding(token_ids.masked_fill(~is_token, 0), is_token)
        z = z.masked_fill(~is_token[..., None], 0)
        streams = [("embedding", z)]
        for number, layer in enumerate(self.layers):
            streams += [(f"layer {number} {name}", each) for name, each in layer(z, is_token)]
            z = streams[-1][1]
        if self.final_norm is not None:
            z = self.final_norm(z, is_token).masked_fill(~is_token[..., None], 0)
            streams.append(("final norm", z))
        if _is_traced():
            is_nothing = is_refused[:, None, None]
            streams = [(name, each.masked_fill(is_nothing, torch.nan)) for name, each in streams]
            z = streams[-1][1]
        named: Streams = {
            name: {slot: vectors[..., column] for slot, column in held}
            for (name, vectors), held in zip(streams, self._held, strict=True)
        }
        return ModuleOutput(z, self.read_out(z), named if return_streams else None)

    def _refusals(
        self, token_ids: Tensor, lengths: Tensor | None, is_token: Tensor
    ) -> Iterator[tuple[Tensor, Callable[[Tensor], NoReturn]]]:
        """Yield for each rule the inputs that break it, and a function that refuses them."""
        symbols, rows = self.embedding.vectors.shape[0], token_ids.shape[1]
        is_other = is_token & ((token_ids < 0) | (token_ids >= symbols))

        def refuse_token(flags: Tensor) -> NoReturn:
            raise InvalidValue(
                f"token_ids must be rows of the word embedding, 0 to {symbols - 1}",
                received=f"{int(token_ids[is_other][0])} in input {_first(flags)}",
                where="forward",
                remedy="give module.encode(x), and lengths or padding_mask if there is padding",
            )

        yield is_other.any(-1), refuse_token
        if lengths is not None:

            def refuse_length(flags: Tensor) -> NoReturn:
                raise InvalidValue(
                    f"lengths must be from 0 to the number of rows, {rows}",
                    received=f"{int(lengths[flags][0])} in input {_first(flags)}",
                    where="forward",
                    remedy="give module.encode_batch(inputs), which returns tokens and lengths",
                )

            yield (lengths < 0) | (lengths > rows), refuse_length
        counts = is_token.sum(-1)
        if self.embedding.divides_by_n:

            def refuse_nothing(flags: Tensor) -> NoReturn:
                raise UndefinedValue(
                    "the position function i/n must have an n other than 0 at a symbol at the back",
                    received=f"the empty input, in input {_first(flags)}",
                    where="forward",
                    remedy="leave out the empty input, or use other position functions",
                )

            yield counts == self.embedding.added, refuse_nothing
        if self.max_length is not None:
            longest = self.max_length + self.embedding.added

            def refuse_count(flags: Tensor) -> NoReturn:
                count = int(counts[flags][0])
                raise _too_long(self.max_length, count - self.embedding.added, self.model)

            yield counts > longest, refuse_count

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Take the weights of a state dict; nothing changes if one of them does not fit.

        Args:
            state_dict: tensors by name.
            strict: False to allow names that are missing or unknown.
            assign: True to take the tensors themselves, as in `nn.Module`.

        Raises:
            InvalidValue: for names that are missing or unknown, and for tensors that are complex,
                sparse or without data.
            ShapeMismatch: for a tensor of another shape.

        Returns:
            The names that were missing and those that were unknown, as `nn.Module` does.

        """
        require_type(
            state_dict,
            Mapping,
            "a state dict must be a mapping from names to tensors",
            where="load_state_dict",
            remedy="give module.state_dict(), or what torch.load(file) gives",
        )
        own = self.state_dict()
        problems = {
            "without": [name for name in own if name not in state_dict],
            "with the unknown": [name for name in state_dict if name not in own],
        }
        if strict and any(problems.values()):
            received = "; ".join(
                f"{what} {', '.join(map(str, names[:4]))}{', …' if len(names) > 4 else ''}"
                for what, names in problems.items()
                if names
            )
            raise InvalidValue(
                "a state dict must have the names of this module",
                received=f"one {received}",
                where="load_state_dict",
                remedy=_OF_THE_SAME_MODEL,
            )
        for name in own.keys() & state_dict.keys():
            given = state_dict[name]
            if not isinstance(given, Tensor) or given.shape != own[name].shape:
                shape = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
                raise ShapeMismatch(
                    f"{name} must have shape {tuple(own[name].shape)}",
                    received=f"{shape}",
                    where="load_state_dict",
                    remedy=_OF_THE_SAME_MODEL,
                )
            # PyTorch drops an imaginary part, and raises an error for the others after it has
            # taken some of the weights.
            is_real = given.is_floating_point() or not (assign or given.is_complex())
            is_held = given.layout == torch.strided and (given.is_meta <= own[name].is_meta)
            if not (is_real and is_held):
                raise InvalidValue(
                    f"{name} must be a dense tensor of real numbers",
                    received=f"{given.dtype}, {given.layout}, on {given.device}",
                    where="load_state_dict",
                    remedy=_OF_THE_SAME_MODEL,
                )
        return super().load_state_dict(state_dict, strict=strict, assign=assign)

    def encode(self, x: Sequence[Symbol]) -> Tensor:
        """Return the tokens of one input, added symbols included, shape (1, rows).

        Raises:
            UnknownSymbol, InputTooLong, InvalidValue: as `Transformer.run`.

        """
        ids = [token_ids(self.model, x)]
        if self.max_length is not None and len(x) > self.max_length:
            raise _too_long(self.max_length, len(x), self.model)
        return torch.tensor(ids, dtype=torch.int64, device=self.read_out.W_out.device)

    def encode_batch(self, inputs: Sequence[Sequence[Symbol]]) -> tuple[Tensor, Tensor]:
        """Return the tokens of several inputs, padded with 0, and the lengths for `forward`.

        There is at least one row, also for empty inputs of a model that adds no symbol.

        Raises:
            UnknownSymbol, InputTooLong, InvalidValue: as `Transformer.run`.

        """
        rows = [self.encode(x)[0] for x in _listed(inputs, "encode_batch")]
        if not rows:
            raise InvalidValue(
                "a batch must have at least one input",
                received="none",
                where="encode_batch",
                remedy="give a list of strings",
            )
        lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        return (padded if padded.shape[1] else torch.zeros_like(lengths)[:, None]), lengths

    def answer(self, x: Sequence[Symbol]) -> Any:
        """Return the answer on one input, as `model(x)` gives it.

        Raises:
            UnknownSymbol, InputTooLong, InvalidValue: as `Transformer.run`.
            NotFinite: if a value read out is NaN.

        """
        return self.answers([x])[0]

    def answers(self, inputs: Sequence[Sequence[Symbol]]) -> list[Any]:
        """Return the answers on several inputs, evaluated as one padded batch.

        Args:
            inputs: strings, or sequences of symbols, of any lengths up to N.

        Raises:
            UnknownSymbol, InputTooLong, InvalidValue: as `Transformer.run`.
            NotFinite: if a value read out is NaN.

        Returns:
            An answer for each input, in their order, as `model.answers(inputs)` gives them.

        Example:
            >>> import transformist as tf
            >>> module = tf.to_torch(tf.recipe("dyck-1").build(max_length=8))  # doctest: +SKIP
            >>> module.answers(["(())", ")(", ""])  # doctest: +SKIP
            [True, False, True]

        """
        given = _listed(inputs, "answers")  # a generator gives its inputs once
        with torch.no_grad():
            logits = self(*self.encode_batch(given)).logits
        name = str(logits.dtype).removeprefix("torch.")
        values = logits.double().cpu().numpy()
        return [
            answer_from(self.model, each, len(x), name)
            for each, x in zip(values, given, strict=True)
        ]


def _listed(inputs: Any, where: str) -> list[Any]:
    """The inputs of a batch as a list.

    Raises:
        InvalidValue: for a string, whose symbols would be taken as inputs, and for a value that is
            not iterable.

    """
    # A 0-dimensional array or tensor has the method `__iter__`, which raises a TypeError.
    try:
        each = iter(inputs)
    except TypeError:
        each = None
    if each is None or isinstance(inputs, str):
        call = f": {where}([{inputs!r:.60}])" if isinstance(inputs, str) else ""
        raise InvalidValue(
            "a batch must be a list of strings, or of sequences of symbols",
            received=f"{inputs!r:.60}",
            where=where,
            remedy=f"put the input in a list{call}",
        )
    return list(each)


def _first(flags: Tensor) -> int:
    """The number of the first input of a batch that is flagged, from 0."""
    return int(flags.nonzero()[0])


def _too_long(longest: int | None, received: int, model: Transformer) -> InputTooLong:
    """The refusal of an input beyond N of the model, or beyond the table of its positions."""
    is_of_model = model.max_length is not None or isinstance(
        model.embedding.positions, PositionTable
    )
    return InputTooLong(
        f"an input must have a length of at most N = {longest}",
        received=f"length {received}",
        remedy=f"give to_torch a model of max_length={received} or more"
        if is_of_model
        else f"call tf.to_torch(model, max_length={received})",
    )


WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""Types that tokens and lengths may have."""


def _is_token(
    token_ids: Tensor, lengths: Tensor | None, padding_mask: Tensor | None, device: torch.device
) -> Tensor:
    """True at tokens, False at padding, shape (batch, rows)."""
    _require_tensor("token_ids", token_ids, WHOLE, device)
    if token_ids.dim() != 2:
        raise ShapeMismatch(
            "token_ids must have shape (batch, rows)",
            received=f"shape {tuple(token_ids.shape)}",
            where="forward",
            remedy="give module.encode(x), or token_ids[None] for a single input",
        )
    if token_ids.shape[1] == 0:
        raise ShapeMismatch(
            "token_ids must have at least one row, which may be padding",
            received=f"shape {tuple(token_ids.shape)}",
            where="forward",
            remedy="give the two results of module.encode_batch(['']), or call module.answer('')",
        )
    if lengths is not None and padding_mask is not None:
        raise InvalidValue(
            "padding must be given once",
            received="lengths and padding_mask",
            where="forward",
            remedy="leave one of them out",
        )
    if padding_mask is not None:
        # A mask of numbers, as tokenizers give it, has 1 at tokens: the opposite of this mask.
        _require_tensor("padding_mask", padding_mask, (torch.bool,), device)
        _require_shape("padding_mask", padding_mask, tuple(token_ids.shape))
        return ~padding_mask
    rows = torch.arange(token_ids.shape[1], device=token_ids.device)
    if lengths is not None:
        _require_tensor("lengths", lengths, WHOLE, device)
        _require_shape("lengths", lengths, (token_ids.shape[0],))
        return rows[None, :] < lengths[:, None]
    return torch.ones_like(token_ids, dtype=torch.bool)


def _require_tensor(
    name: str, given: Any, dtypes: Sequence[torch.dtype], device: torch.device
) -> None:
    if not isinstance(given, Tensor) or given.dtype not in dtypes:
        kind = "True or False" if torch.bool in dtypes else "whole numbers"
        raise InvalidValue(
            f"{name} must be a tensor of {kind}",
            received=f"{given.dtype if isinstance(given, Tensor) else type(given).__name__}",
            where="forward",
            remedy="give module.encode(x), or the two results of module.encode_batch(inputs)"
            if name != "padding_mask"
            else "give a mask that is True at padding",
        )
    if given.device != device:
        raise InvalidValue(
            f"{name} must be on the device of the module, {device}",
            received=f"{given.device}",
            where="forward",
            remedy=f"give {name}.to({str(device)!r})",
        )


def _require_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise ShapeMismatch(
            f"{name} must have shape {shape}, to fit token_ids",
            received=f"shape {tuple(tensor.shape)}",
            where="forward",
            remedy="give module.encode_batch(inputs), which returns tokens and lengths",
        )


def _positions(
    model: Transformer, arrays: _Arrays, dtype: str, max_length: int | None
) -> nn.Module | None:
    """The module of the positions of a model."""
    embedding = model.embedding
    if embedding.positions is None:
        return None
    if isinstance(embedding.positions, PositionFunctions):
        return FormulaPositions(embedding.positions.names)
    if isinstance(embedding.positions, PositionTable):
        return TablePositions(arrays("embedding.positions.vectors"))
    table, first = fixed_positions(model, number_system(dtype), max_length)
    return FixedPositions(torch.tensor(table, dtype=getattr(torch, dtype)), first)
