"""A transformer as an exported program of PyTorch (.pt2), which loads without this package."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transformist.hosts.named_arrays import NO_FACTS, description
from transformist.hosts.torch_module import TransformerModule
from transformist.model import Transformer


class PaddedModule(nn.Module):
    """The pair (vectors, logits) for tokens and lengths: the signature of an exported program."""

    def __init__(self, inner: TransformerModule) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, token_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The final vectors, (batch, rows, d), and the logits, (batch, rows, k)."""
        vectors, logits, _ = self.inner(token_ids, lengths)
        return vectors, logits


def write(
    model: Transformer,
    arithmetic: str,
    max_length: int | None = None,
    facts: Mapping[str, Any] = NO_FACTS,
) -> bytes:
    """Return the bytes of an exported program that takes every batch size and number of rows.

    Args:
        model: the transformer.
        arithmetic: `float64`, `float32`, `float16` or `bfloat16`.
        max_length: the longest input, for positions that become a table in a model without one.
        facts: the claim of the model and the inputs of its comparison, for the metadata.

    Raises:
        InvalidValue, NotFinite, UndefinedValue: as `to_torch`.

    """
    # A pair of tensors instead of `ModuleOutput`: the file then needs no class of this package.
    module = PaddedModule(TransformerModule(model, arithmetic, max_length))
    # The sizes of the example must not be 0 or 1, which the exporter would take as fixed.
    example = torch.zeros((2, 3), dtype=torch.int64), torch.tensor([3, 2])
    batch, rows = torch.export.Dim("batch", min=1), torch.export.Dim("rows", min=1)
    shapes = {"token_ids": {0: batch, 1: rows}, "lengths": {0: batch}}
    described = description(model, arithmetic, facts, max_length)
    facts = {"transformist.json": json.dumps(described)}
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter warns about its own code
        program = torch.export.export(module, example, dynamic_shapes=shapes)
        torch.export.save(program, file, extra_files=facts)
    return file.getvalue()


def run(data: bytes) -> Callable[[Any, Any], NDArray[Any]]:
    """Return a function from tokens and lengths to logits, by the exported program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.load(io.BytesIO(data)).module()

    def logits(ids: Any, lengths: Any) -> NDArray[Any]:
        with torch.no_grad():
            found = program(torch.tensor(ids), torch.tensor(lengths))[1]
        numbers: NDArray[Any] = found.double().numpy().astype(np.float64)
        return numbers

    return logits
