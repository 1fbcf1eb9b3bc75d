"""The weights of PyTorch's `nn.TransformerEncoder` and `nn.TransformerDecoder`, read back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import exact_numbers
from transformist.errors import InvalidValue, ShapeMismatch
from transformist.model import Attention, FeedForward, Layer, LayerNorm, LayerStack, Stream
from transformist.model.parameter import exact_product

SHAPES: Mapping[str, tuple[str, ...]] = {
    "self_attn.in_proj_weight": ("3d", "d"),
    "self_attn.out_proj.weight": ("d", "d"),
    "linear1.weight": ("d_ff", "d"),
    "linear2.weight": ("d", "d_ff"),
    "norm1.weight": ("d",),
    "norm2.weight": ("d",),
}
"""The weights of a layer; d_ff may be another in each."""

BIASES: Mapping[str, tuple[str, ...]] = {
    "self_attn.in_proj_bias": ("3d",),
    "self_attn.out_proj.bias": ("d",),
    "linear1.bias": ("d_ff",),
    "linear2.bias": ("d",),
    "norm1.bias": ("d",),
    "norm2.bias": ("d",),
}
"""The biases of a layer; either every layer has them all, or none has any."""

FINAL: Mapping[str, tuple[str, ...]] = {"norm.weight": ("d",), "norm.bias": ("d",)}
"""The norm after the last layer, where there is one, with a bias or without."""


class Names(NamedTuple):
    """The tensors of a layer by name, with their shapes, and the class of PyTorch."""

    module: str
    weights: Mapping[str, tuple[str, ...]]
    biases: Mapping[str, tuple[str, ...]]


ENCODER = Names("nn.TransformerEncoder", SHAPES, BIASES)
"""The tensors of a layer of an encoder."""

DECODER = Names(
    "nn.TransformerDecoder",
    {
        **SHAPES,
        "multihead_attn.in_proj_weight": ("3d", "d"),
        "multihead_attn.out_proj.weight": ("d", "d"),
        "norm3.weight": ("d",),
    },
    {
        **BIASES,
        "multihead_attn.in_proj_bias": ("3d",),
        "multihead_attn.out_proj.bias": ("d",),
        "norm3.bias": ("d",),
    },
)
"""The tensors of a layer of a decoder, which has a second attention and a third norm."""

Tensors = dict[str, NDArray[Any]]


def read_encoder(
    state: Mapping[str, Any],
    *,
    heads: int,
    mask: str = "none",
    norm_epsilon: object = 1e-5,
    activation: str = "relu",
    norm_first: bool = False,
) -> LayerStack:
    """The function of lists of vectors that PyTorch's `nn.TransformerEncoder` computes in `eval()`.

    The numbers are taken exactly: float64, float32, float16 and bfloat16 are exact rationals. The
    rows of in_proj are the queries, keys and values, d each, of which every head has d/heads.
    The bias of out_proj, which is added once, becomes the bias of the first head.

    A list of vectors has the shape (…, n, d), as with `batch_first=True`. What the state dict does
    not hold cannot be checked: norms are read as `nn.LayerNorm`, also where they are `nn.RMSNorm`,
    and a final norm without weights is not seen.

    Args:
        state: the state dict, of torch tensors or numpy arrays; the layers have biases or none.
        heads: `nhead`, which the state dict does not hold.
        mask: `future` for the causal mask; of `Attention`.
        norm_epsilon: `layer_norm_eps`, of every norm.
        activation: `relu`, `gelu` (PyTorch's own default form), `gelu-tanh`, or another one of
            `FeedForward` that is not gated.
        norm_first: whether norms come before sublayers (pre-norm), as PyTorch names it.

    Raises:
        InvalidValue: for keys that are missing or unknown, numbers that are not real, or heads that
            do not divide d.
        ShapeMismatch: for a tensor whose shape does not fit.
        NotFinite: for NaN or infinity.
        UnknownName: for a mask or activation that does not exist.

    Example: an attention that adds the mean of the vectors, and a network that adds nothing.
        >>> import numpy as np
        >>> one, zero, gain = np.eye(2), np.zeros((2, 2)), np.ones(2)
        >>> stack = read_encoder(
        ...     {
        ...         "layers.0.self_attn.in_proj_weight": np.concatenate([zero, zero, one]),
        ...         "layers.0.self_attn.out_proj.weight": one,
        ...         "layers.0.linear1.weight": zero,
        ...         "layers.0.linear2.weight": zero,
        ...         "layers.0.norm1.weight": gain,
        ...         "layers.0.norm2.weight": gain,
        ...     },
        ...     heads=2,
        ... )
        >>> stack([[0, 4], [2, 0]]).round(2).tolist()
        [[-1.0, 1.0], [1.0, -1.0]]

    """
    tensors, count, d = _read(state, heads, ENCODER)
    layers = []
    for number in range(count):
        own = _of_layer(tensors, number, d, ENCODER)
        norms = (_norm(own, "norm1", norm_epsilon), _norm(own, "norm2", norm_epsilon))
        layers.append(
            Layer(
                heads=tuple(_heads(own, heads, mask)),
                feed_forward=_network(own, activation),
                **{"pre_norms" if norm_first else "post_norms": norms},
            )
        )
    return _stack(tensors, d, layers, norm_epsilon)


def read_decoder(
    state: Mapping[str, Any],
    memory: Any,
    *,
    heads: int,
    mask: str = "none",
    norm_epsilon: object = 1e-5,
    activation: str = "relu",
    norm_first: bool = False,
) -> LayerStack:
    """The function that PyTorch's `nn.TransformerDecoder` computes in `eval()` with one memory.

    The memory is one vector, or equal ones. Whatever the queries and keys are, the weights of the
    second attention then sum to 1 over equal values, so that it adds the vector
    W_O (W_V m + b_V) + b_O to every row. It is read as a head that adds this vector. A transformer
    here cannot attend to different vectors of a second sequence.

    Args:
        state: the state dict, as `read_encoder` takes it.
        memory: the vector m, shape (d,), or equal vectors, shape (n, d).
        heads: `nhead`, as `read_encoder` takes it.
        mask: the mask of the first attention, which is `tgt_mask`.
        norm_epsilon: as `read_encoder` takes it.
        activation: as `read_encoder` takes it.
        norm_first: as `read_encoder` takes it.

    Raises:
        InvalidValue, ShapeMismatch, NotFinite, UnknownName: as `read_encoder`; also for a memory of
            another width, or of different vectors.

    """
    tensors, count, d = _read(state, heads, DECODER)
    # One layer of PyTorch has three sublayers, a layer here two: the first attention is a layer
    # without a network, the constant head and the network are the next.
    m = _vector_of_memory(memory, d)
    place = "pre_norms" if norm_first else "post_norms"
    layers: list[Layer] = []
    for number in range(count):
        own = _of_layer(tensors, number, d, DECODER)
        first, second, third = (_norm(own, f"norm{k}", norm_epsilon) for k in (1, 2, 3))
        layers += [
            Layer(tuple(_heads(own, heads, mask)), None, **{place: (first, None)}),
            Layer(
                (_constant_head(own, m),),
                _network(own, activation),
                **{place: (second, third)},
            ),
        ]
    return _stack(tensors, d, layers, norm_epsilon)


def _read(state: Mapping[str, Any], heads: int, names: Names) -> tuple[Tensors, int, int]:
    """The tensors of a state dict, the number of its layers, and d."""
    _require_names(state)
    tensors = {key: _numbers(key, value) for key, value in state.items()}
    return tensors, _require_keys(tensors, names), _width(tensors, heads)


def _network(own: Tensors, activation: str) -> FeedForward:
    return FeedForward(
        W_1=own["linear1.weight"],
        b_1=own.get("linear1.bias"),
        W_2=own["linear2.weight"],
        b_2=own.get("linear2.bias"),
        activation=activation,
    )


def _stack(tensors: Tensors, d: int, layers: list[Layer], norm_epsilon: object) -> LayerStack:
    """The layers, with the final norm where the state dict has one."""
    _require_shapes(tensors, {key: FINAL[key] for key in FINAL if key in tensors}, "", d)
    final = _norm(tensors, "norm", norm_epsilon) if "norm.weight" in tensors else None
    slots = tuple(f"x{k}" for k in range(d))
    return LayerStack(Stream(slots), slots, tuple(layers), slots, final)


def _vector_of_memory(memory: Any, d: int) -> NDArray[Any]:
    """The vector of a memory, whose rows must all be equal."""
    rows = _numbers("memory", memory)
    if rows.shape[-1] != d or not rows.size:
        raise ShapeMismatch(
            f"memory must have shape ({d},) or (n, {d}), for a decoder of width {d}",
            received=f"shape {rows.shape}",
            where="memory",
            remedy=f"give one vector of {d} numbers",
        )
    rows = rows.reshape(-1, d)
    if (rows != rows[0]).any():
        raise InvalidValue(
            "memory must be one vector, or equal ones: no transformer here attends to the "
            "different vectors of a second sequence",
            received=f"{len(rows)} vectors that differ",
            where="memory",
            remedy="give one vector, or train a decoder-only stack as an nn.TransformerEncoder and "
            "read it with mask='future'",
        )
    vector: NDArray[Any] = rows[0]
    return vector


def _constant_head(own: Tensors, m: NDArray[Any]) -> Attention:
    """A head that adds what the second attention gives for equal vectors of the memory."""
    d = len(m)
    W_V = own["multihead_attn.in_proj_weight"][2 * d :]
    b_V = own.get("multihead_attn.in_proj_bias", np.zeros(3 * d))[2 * d :]
    b_O = own.get("multihead_attn.out_proj.bias", np.zeros(d))
    # Products with 1 appended to a vector: W v + b = [W b] [v 1], without rounding.
    v = exact_product(np.column_stack([W_V, b_V]), np.append(m, 1))
    added = exact_product(
        np.column_stack([own["multihead_attn.out_proj.weight"], b_O]), np.append(v, 1)
    )
    # Queries, keys, values and W_O are 0, so the head gives b_O in every row.
    zeros = np.zeros((1, d))
    return Attention(W_Q=zeros, W_K=zeros, W_V=zeros, W_O=zeros.T, b_O=added)


def _require_names(state: Any) -> None:
    if not isinstance(state, Mapping) or not all(isinstance(key, str) for key in state):
        raise InvalidValue(
            "a state dict must be a mapping from names to tensors",
            received=type(state).__name__,
            where="read_encoder",
            remedy="give encoder.state_dict()",
        )


def _numbers(key: str, value: Any) -> NDArray[Any]:
    """The numbers of a tensor or an array, exactly."""
    try:
        value = value.detach().cpu() if hasattr(value, "detach") else value
        try:
            array = np.asarray(value)
        except TypeError:  # numpy has no bfloat16, of which float64 holds every number
            array = np.asarray(value.double())
    except (AttributeError, TypeError, ValueError, RuntimeError):
        array = np.asarray(None)
    if array.dtype.kind != "f" and "float" not in str(array.dtype):
        raise InvalidValue(
            "a state dict must hold tensors of real floating-point numbers",
            received=f"{type(value).__name__} of {getattr(value, 'dtype', 'no dtype')}",
            where=key,
            remedy="give the state_dict() of an encoder, or arrays of floats",
        )
    # A bfloat16 array of ml_dtypes has another kind; float64 holds all its numbers.
    wide = array if array.dtype.kind == "f" else array.astype(np.float64)
    return exact_numbers(np.atleast_1d(wide), key)


_LAYER = re.compile(r"layers\.(0|[1-9]\d{0,5})\.(.+)")


def _require_keys(tensors: Tensors, names: Names) -> int:
    """Return the number of layers; refuse missing and unknown keys."""
    numbers = [int(found[1]) for key in tensors if (found := _LAYER.fullmatch(key))]
    # If the numbers are 0 to count − 1, the keys needed are all there. A gap, such as layers 0 and
    # 2, lacks the keys of layer 1 and has the unknown ones of layer 2: both are refused below.
    count = len(set(numbers))
    # One bias anywhere asks for all biases everywhere: PyTorch has one switch for the whole layer.
    biased = any(found[2] in names.biases for key in tensors if (found := _LAYER.fullmatch(key)))
    each = {**names.weights, **(names.biases if biased else {})}
    needed = {f"layers.{number}.{name}" for number in range(max(count, 1)) for name in each}
    if "norm.bias" in tensors:
        needed.add("norm.weight")
    problems = {
        "without": sorted(needed - set(tensors)),
        "with the unknown": sorted(set(tensors) - needed - set(FINAL)),
    }
    received = "; ".join(
        f"{what} {', '.join(keys[:4])}{', …' if len(keys) > 4 else ''}"
        for what, keys in problems.items()
        if keys
    )
    if received:
        raise InvalidValue(
            f"the state dict of an {names.module} must have the same weights in each layer, "
            "with all their biases or none",
            received=f"one {received}",
            where="read_encoder" if names is ENCODER else "read_decoder",
            remedy="give the state_dict() of a module whose queries, keys and values have one "
            "width",
        )
    return count


def _width(tensors: Tensors, heads: int) -> int:
    """The width d; refuse heads that do not divide it."""
    d = int(tensors["layers.0.norm1.weight"].shape[0])
    if type(heads) is not int or heads < 1 or d % heads:
        raise InvalidValue(
            f"heads must be a whole number that divides the width of the encoder, {d}",
            received=f"heads = {heads!r}",
            where="read_encoder",
            remedy="give its nhead",
        )
    return d


def _of_layer(tensors: Tensors, number: int, d: int, names: Names) -> Tensors:
    """The tensors of one layer by their names in it."""
    prefix = f"layers.{number}."
    shapes = {**names.weights, **names.biases}
    held = {name: shape for name, shape in shapes.items() if prefix + name in tensors}
    _require_shapes(tensors, held, prefix, d)
    return {name: tensors[prefix + name] for name in held}


def _require_shapes(
    tensors: Tensors, shapes: Mapping[str, tuple[str, ...]], prefix: str, d: int
) -> None:
    sizes = {"d": d, "3d": 3 * d}
    if "linear1.weight" in shapes:
        sizes["d_ff"] = int(tensors[f"{prefix}linear1.weight"].shape[0])
    for name, shape in shapes.items():
        wanted = tuple(sizes[size] for size in shape)
        if tensors[prefix + name].shape != wanted:
            raise ShapeMismatch(
                f"the tensor must have shape {wanted} in an encoder of width {d}",
                received=f"shape {tensors[prefix + name].shape}",
                where=prefix + name,
                remedy="give the state dict as it was saved",
            )


def _norm(tensors: Tensors, name: str, epsilon: object) -> LayerNorm:
    return LayerNorm(
        gain=tensors[f"{name}.weight"], bias=tensors.get(f"{name}.bias"), epsilon=epsilon
    )


def _heads(own: Tensors, heads: int, mask: str) -> Iterator[Attention]:
    """The heads, in order; the first has the bias of the output."""
    # PyTorch concatenates the heads' values and multiplies by out_proj, whose columns
    # [h·d/H, (h+1)·d/H) therefore multiply head h alone: they are its W_O. The bias of out_proj is
    # added once to the sum of the heads, so that exactly one of them carries it.
    W = np.split(own["self_attn.in_proj_weight"], 3)
    d, out = len(W[0]), own["self_attn.out_proj.weight"]
    b = np.split(own.get("self_attn.in_proj_bias", np.zeros(3 * d)), 3)
    for number in range(heads):
        rows = slice(number * d // heads, (number + 1) * d // heads)
        yield Attention(
            W_Q=W[0][rows],
            W_K=W[1][rows],
            W_V=W[2][rows],
            W_O=out[:, rows],
            b_Q=b[0][rows],
            b_K=b[1][rows],
            b_V=b[2][rows],
            b_O=None if number else own.get("self_attn.out_proj.bias"),
            mask=mask,
        )
