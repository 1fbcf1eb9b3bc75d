"""From a transformer to a module of PyTorch, and back; PyTorch is imported on the first call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformist.hosts.named_arrays import require_format, require_hostable
from transformist.hosts.optional_library import optional
from transformist.model import Transformer

if TYPE_CHECKING:
    from transformist.hosts.torch_module import TransformerModule


def to_torch(
    model: Transformer, dtype: Any = "float64", max_length: int | None = None
) -> TransformerModule:
    """Return a transformer as an `nn.Module` of PyTorch, with every mask and weighting.

    `module(token_ids, lengths)` gives the final vectors, the logits W_out z + b_out and, with
    `return_streams=True`, the residual stream by slot name; `module.encode("abba")` gives tokens
    and `module.answer("abba")` the answer. Weights are parameters, under the names of a saved file.
    The module can be trained, compiled (`torch.compile`) and exported (`torch.export`).

    Hard attention compares scores in the format, as the reference does: scores that are equal as
    real numbers but round differently do not tie. Long sums are taken in another order than that
    of the reference, so a value may differ in the last bits; decisions within the margins of a
    certificate with order "any" are the same.

    Args:
        model: the transformer.
        dtype: `float64`, `float32`, `float16` or `bfloat16`, by name or as `torch.dtype`.
        max_length: the longest input, for sinusoids in a model without one.

    Raises:
        InvalidValue: for another kind of model, or if PyTorch is not installed.
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
    room = optional("transformist.hosts.torch_module", "torch", "to_torch")
    module: TransformerModule = room.TransformerModule(model, name, max_length)
    return module
