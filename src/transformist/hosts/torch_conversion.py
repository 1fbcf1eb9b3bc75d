"""From a transformer to a module of PyTorch, and back; PyTorch is imported on the first call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from transformist.errors import InvalidValue
from transformist.hosts.named_arrays import (
    named_arrays,
    require_format,
    require_hostable,
    with_arrays,
)
from transformist.hosts.optional_library import optional
from transformist.hosts.torch_encoder import read_decoder, read_encoder
from transformist.model import LayerStack, Transformer
from transformist.settings import whole_length

if TYPE_CHECKING:
    from transformist.hosts.torch_module import TransformerModule


def to_torch(
    model: Transformer, dtype: Any = "float64", max_length: int | None = None
) -> TransformerModule:
    """Return a transformer as an `nn.Module` of PyTorch, with every mask and weighting.

    `module(token_ids, lengths)` gives the final vectors, the logits W_out z + b_out and, with
    `return_streams=True`, the residual stream by slot name; `module.encode("abba")` gives tokens
    and `module.answer("abba")` the answer. Weights are parameters, under the names of a saved file.
    The module can be trained, compiled (`torch.compile`) and exported (`torch.export`). Compiled in
    bfloat16 or float16, it has the roundings of the module only with
    `options={"emulate_precision_casts": True}`.

    Hard attention compares scores in the format, as the reference does: scores that are equal as
    real numbers but round differently do not tie. Sums over keys and in norms are taken in another
    order than in the reference, so a value may differ in the last bits; decisions within the
    margins of a certificate with order "any" are the same.

    Args:
        model: the transformer.
        dtype: `float64`, `float32`, `float16` or `bfloat16`, by name or as `torch.dtype`.
        max_length: the longest input, for positions that become a table in a model without one.

    Raises:
        InvalidValue: for another kind of model, a max_length that is no length, or if PyTorch is
            not installed.
        UnknownName: for another dtype.
        NotFinite: for a weight that is too large for the dtype.
        UndefinedValue: for a model whose positions have no vector for a symbol in front.

    Example:
        >>> import transformist as tf
        >>> module = tf.to_torch(tf.recipe("dyck-1").build(max_length=8))  # doctest: +SKIP
        >>> module.answer("(())"), module.encode("()").tolist()  # doctest: +SKIP
        (True, [[2, 0, 1]])
        >>> module(module.encode("()")).logits.shape  # doctest: +SKIP
        torch.Size([1, 3, 1])

    """
    require_hostable(model, "to_torch")
    name = require_format(dtype, "to_torch")
    if max_length is not None:
        max_length = whole_length(max_length, "to_torch", optional=True)
    room = optional("transformist.hosts.torch_module", "torch", "to_torch")
    module: TransformerModule = room.TransformerModule(model, name, max_length)
    return module


def from_torch(module: Any, mask: str = "none", memory: Any = None) -> Transformer | LayerStack:
    """Return the function that a module of PyTorch computes in `eval()`, with exactly its weights.

    `nn.GELU("tanh")` is read as GELU with tanh. The fast path of PyTorch (in `eval()` under
    `no_grad`) computes it by erf instead, which differs by up to 5e-4 for each hidden unit.

    Args:
        module: a module of `to_torch`, perhaps with trained weights, which gives a transformer; or
            an `nn.TransformerEncoder` or `nn.TransformerDecoder`, which gives a function of lists
            of vectors.
        mask: `future` for an encoder or decoder that is called with the causal mask.
        memory: for a decoder, the vector that it attends to, or equal vectors, such as zeros where
            it serves as a decoder-only stack.

    Raises:
        InvalidValue: for another module, one on the device `meta`, parts of other kinds or
            settings or with replaced methods, a decoder without memory, or a memory of different
            vectors.
        ShapeMismatch: for a memory of another width.
        NotFinite: for weights that are NaN or infinite.
        UnknownName: for a mask that does not exist.

    Example:
        >>> import torch, transformist as tf  # doctest: +SKIP
        >>> encoder = torch.nn.TransformerEncoder(
        ...     torch.nn.TransformerEncoderLayer(4, nhead=2, dim_feedforward=8), num_layers=2
        ... )  # doctest: +SKIP
        >>> tf.from_torch(encoder, mask="future").width  # doctest: +SKIP
        4

    """
    torch = optional("torch", "torch", "from_torch")
    room = optional("transformist.hosts.torch_module", "torch", "from_torch")
    _require_real(module, torch)
    if isinstance(module, room.TransformerModule):
        if memory is not None or mask != "none":
            raise InvalidValue(
                "mask and memory must be given for modules of torch.nn only",
                received="a module of to_torch, which has masks of its own",
                where="from_torch",
                remedy="leave them out",
            )
        # float64 holds every number of float32, float16 and bfloat16: `double` is exact.
        arrays = {
            name: each.detach().double().cpu().numpy() for name, each in module.state_dict().items()
        }
        _require_weights(module.model, arrays)
        return with_arrays(module.model, arrays)
    if isinstance(module, torch.nn.TransformerDecoder):
        settings = _settings(module, torch.nn, ("norm1", "norm2", "norm3"))
        if memory is None:
            raise InvalidValue(
                "an nn.TransformerDecoder must be given with the memory that it attends to",
                received="no memory",
                where="from_torch",
                remedy="give memory=torch.zeros(d) for a decoder-only stack, or another vector; a "
                "memory of different vectors is not read",
            )
        return read_decoder(module.state_dict(), memory, mask=mask, **settings)
    if memory is not None:
        raise InvalidValue(
            "memory must be given for an nn.TransformerDecoder only",
            received=f"memory for a module of the class {type(module).__name__}",
            where="from_torch",
            remedy="leave it out",
        )
    if isinstance(module, torch.nn.TransformerEncoder):
        settings = _settings(module, torch.nn, ("norm1", "norm2"))
        return read_encoder(module.state_dict(), mask=mask, **settings)
    raise InvalidValue(
        "the module must be an nn.TransformerEncoder, an nn.TransformerDecoder or a module of "
        "tf.to_torch",
        received=type(module).__name__,
        where="from_torch",
        remedy="give the encoder or decoder of the model, such as model.encoder of nn.Transformer",
    )


def _require_real(module: Any, torch: Any) -> None:
    """Require real weights on a device with data, and layers of torch.nn that no hook changes.

    Raises:
        InvalidValue: for a module with complex weights or on the device `meta`, or a layer of
            torch.nn with hooks.

    """
    if not isinstance(module, torch.nn.Module):
        return
    weights = [each for each in module.state_dict().values() if torch.is_tensor(each)]
    if any(each.is_meta for each in weights):
        raise InvalidValue(
            "weights must be on a device that holds them",
            received="weights on meta, which holds shapes only",
            where="from_torch",
            remedy="make the module again on a CPU, and load its weights",
        )
    if any(each.is_complex() for each in weights):
        raise InvalidValue(
            "weights must be real numbers",
            received="complex ones",
            where="from_torch",
            remedy="give a module with real weights",
        )
    # A hook may change what a layer takes or gives, and the state dict does not show it.
    read = (torch.nn.TransformerEncoder, torch.nn.TransformerDecoder)
    hooked = [
        name or type(module).__name__
        for name, each in module.named_modules()
        if each._forward_hooks or each._forward_pre_hooks
    ]
    if isinstance(module, read) and hooked:
        raise InvalidValue(
            "an encoder or decoder must have no forward hooks, whose effect is not in its weights",
            received=f"a hook on {hooked[0]}",
            where="from_torch",
            remedy="remove the hooks",
        )


def _require_weights(model: Transformer, arrays: Mapping[str, Any]) -> None:
    """Require every weight of a model.

    Raises:
        InvalidValue: for weights that are missing, such as those of a part that was removed.

    """
    missing = [name for name in named_arrays(model, "float64") if name not in arrays]
    if missing:
        raise InvalidValue(
            "a module of to_torch must have the weights that it was made with",
            received=f"one without {', '.join(missing[:4])}{', …' if len(missing) > 4 else ''}",
            where="from_torch",
            remedy="make pruning or a parametrization permanent first (torch.nn.utils.prune.remove "
            "or parametrize.remove_parametrizations); set the weights of a part to 0 instead of "
            "removing it",
        )


def _settings(encoder: Any, nn: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The settings of an encoder or decoder that its state dict does not hold.

    Raises:
        InvalidValue: for layers of other kinds, or with different settings.

    """
    # A state dict of an RMSNorm has the same key as one of a LayerNorm without bias.
    norms = [getattr(each, name) for each in encoder.layers for name in names]
    norms += [] if encoder.norm is None else [encoder.norm]
    for norm in norms:
        if type(norm) is not nn.LayerNorm or not norm.elementwise_affine:
            raise _unread("each norm must be an nn.LayerNorm with weights", norm)
        _require_stock(norm, nn.LayerNorm, "each norm")
    _require_stock_parts(encoder, nn)
    found = {
        (
            each.self_attn.num_heads,
            bool(each.norm_first),
            _activation(each.activation, nn),
        )
        for each in encoder.layers
    }
    epsilons = {norm.eps for norm in norms}
    if len(found) != 1 or len(epsilons) != 1:
        raise _unread("the layers of a stack must have the same settings", encoder)
    ((heads, norm_first, activation),) = found
    return {
        "heads": heads,
        "norm_first": norm_first,
        "activation": activation,
        "norm_epsilon": epsilons.pop(),
    }


def _require_stock_parts(encoder: Any, nn: Any) -> None:
    """Require modules that compute what PyTorch's own do: the state dict does not show it.

    Raises:
        InvalidValue: for a module with another computation, or an attention to an added zero.

    """
    is_decoder = isinstance(encoder, nn.TransformerDecoder)
    stack, stock = (
        (nn.TransformerDecoder, nn.TransformerDecoderLayer)
        if is_decoder
        else (nn.TransformerEncoder, nn.TransformerEncoderLayer)
    )
    _require_stock(encoder, stack, "the stack")
    for layer in encoder.layers:
        _require_stock(layer, stock, "each layer")
        attentions = [layer.self_attn, *([layer.multihead_attn] if is_decoder else [])]
        for attention in attentions:
            _require_stock(attention, nn.MultiheadAttention, "each attention")
            if attention.add_zero_attn:
                raise _unread("each attention must have add_zero_attn=False", attention)
        maps = [layer.linear1, layer.linear2, *(each.out_proj for each in attentions)]
        for each in maps:
            _require_stock(each, nn.Linear, "each linear map")
        for name, each in layer.named_children():
            if name.startswith("dropout") and type(each) is not nn.Identity:
                _require_stock(each, nn.Dropout, "each dropout")
        if isinstance(layer.activation, nn.Module):  # of a class that `_activation` knows
            _require_stock(layer.activation, type(layer.activation), "each activation")


def _require_stock(module: Any, stock: Any, what: str) -> None:
    """Require that no step of a class of PyTorch is replaced in a subclass or on the module.

    Raises:
        InvalidValue: for a module of another class, or with a replaced step.

    """
    # The methods of the class are compared, since those of an instance are new objects at each
    # access. A method that is set on the instance is in its own attributes. A call of any module
    # goes through `__call__` and `_call_impl` to `forward`.
    own = {name for name, each in vars(stock).items() if inspect.isfunction(each)}
    steps = {name for name in own if not name.startswith("__")}
    steps |= {"__call__", "_call_impl", "forward"}
    if not isinstance(module, stock) or any(
        name in vars(module) or getattr(type(module), name) is not getattr(stock, name)
        for name in steps
    ):
        raise _unread(f"{what} must compute as nn.{stock.__name__} does", module)


def _activation(given: Any, nn: Any) -> str:
    """The name of an activation of a layer: a function, or a module."""
    names = {
        nn.functional.relu: "relu",
        nn.functional.gelu: "gelu",
        nn.ReLU: "relu",
        (nn.GELU, "none"): "gelu",
        (nn.GELU, "tanh"): "gelu-tanh",
    }
    # A function is found itself, a module by its class: two modules of one class are not equal.
    kind = (type(given), given.approximate) if isinstance(given, nn.GELU) else type(given)
    for key in (given, kind):
        if key in names:
            return names[key]
    raise _unread("the activation must be relu or gelu", given)


def _unread(must: str, received: Any) -> InvalidValue:
    return InvalidValue(
        must,
        received=f"{received!r:.60}",
        where="from_torch",
        remedy="give a module of such parts, or write the layers as tf.Layer",
    )
