"""The weights of PyTorch's `nn.TransformerEncoder`, read from its state dict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import exact_numbers
from transformist.errors import InvalidValue, ShapeMismatch
from transformist.model import Attention, FeedForward, Layer, LayerNorm, LayerStack, Stream

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
    The bias of out_proj, which is added once, is that of the first head.

    A list of vectors has the shape (…, n, d), as with `batch_first=True`. What the state dict does
    not hold cannot be checked: norms are read as `nn.LayerNorm`, also where they are `nn.RMSNorm`,
    and a final norm without weights is not seen.

    Args:
        state: the state dict, of torch tensors or numpy arrays; the layers have biases or none.
        heads: `nhead`, which the state dict does not hold.
        mask: `future` for the causal mask; of `Attention`.
        norm_epsilon: `layer_norm_eps`, of every norm.
        activation: `relu`, `gelu` (PyTorch's own default form), `gelu-tanh`.
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
    _require_names(state)
    tensors = {key: _numbers(key, value) for key, value in state.items()}
    count = _require_keys(tensors)
    d = _width(tensors, heads)
    slots = tuple(f"x{k}" for k in range(d))
    layers = []
    for number in range(count):
        own = _of_layer(tensors, number, d)
        norms = (_norm(own, "norm1", norm_epsilon), _norm(own, "norm2", norm_epsilon))
        layers.append(
            Layer(
                heads=tuple(_heads(own, heads, mask)),
                feed_forward=FeedForward(
                    W_1=own["linear1.weight"],
                    b_1=own.get("linear1.bias"),
                    W_2=own["linear2.weight"],
                    b_2=own.get("linear2.bias"),
                    activation=activation,
                ),
                **{"pre_norms" if norm_first else "post_norms": norms},
            )
        )
    _require_shapes(tensors, {key: FINAL[key] for key in FINAL if key in tensors}, "", d)
    final = _norm(tensors, "norm", norm_epsilon) if "norm.weight" in tensors else None
    return LayerStack(Stream(slots), slots, tuple(layers), slots, final)


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
    wide = array if array.dtype.kind == "f" else array.astype(np.float64)
    return exact_numbers(np.atleast_1d(wide), key)


_LAYER = re.compile(r"layers\.(0|[1-9]\d{0,5})\.(.+)")


def _require_keys(tensors: Tensors) -> int:
    """Return the number of layers; refuse missing and unknown keys."""
    numbers = [int(found[1]) for key in tensors if (found := _LAYER.fullmatch(key))]
    count = len(set(numbers))
    biased = any(found[2] in BIASES for key in tensors if (found := _LAYER.fullmatch(key)))
    each = {**SHAPES, **(BIASES if biased else {})}
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
            "the state dict of an nn.TransformerEncoder must have the same weights in each layer, "
            "with all their biases or none",
            received=f"one {received}",
            where="read_encoder",
            remedy="give encoder.state_dict(), of an encoder whose queries, keys and values have "
            "one width",
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


def _of_layer(tensors: Tensors, number: int, d: int) -> Tensors:
    """The tensors of one layer by their names in it."""
    prefix = f"layers.{number}."
    names = [name for name in (*SHAPES, *BIASES) if prefix + name in tensors]
    _require_shapes(tensors, {name: {**SHAPES, **BIASES}[name] for name in names}, prefix, d)
    return {name: tensors[prefix + name] for name in names}


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
