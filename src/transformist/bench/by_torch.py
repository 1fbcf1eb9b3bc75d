"""Models dense in torch: every head by `scaled_dot_product_attention`.

torch has softmax alone. A hard head is replaced by the softmax of its scores, which takes as much
time, and gives another answer.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.model import Attention, Transformer

Floats = NDArray[np.float64]


def is_there() -> bool:
    """True if torch can be imported."""
    return importlib.util.find_spec("torch") is not None


class TorchModel:
    """A model without norms, whose networks have ReLUs, with its weights as tensors of float64.

    All masks are made with `is_causal`, as a mask given to torch would be stored as n² numbers. A
    strict mask is the causal one with keys and values moved by one; a past mask is the causal one
    on the rows from the last to the first.

    Attributes:
        is_exact: true if all heads are softmax, so that the vectors are those of the model.

    """

    def __init__(self, model: Transformer) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._model = model
        self.is_exact = all(
            not head.weighting.is_hard for layer in model.layers for head in layer.heads
        )

    def __call__(self, z: Floats) -> Floats:
        """The final vectors, (n, d) → (n, d)."""
        torch = self._torch
        with torch.inference_mode():
            x = torch.from_numpy(z)
            for layer in self._model.layers:
                if layer.heads:
                    x = x + sum(self._mixed(head, x) for head in layer.heads)
                if layer.feed_forward is not None:
                    ff = layer.feed_forward
                    hidden = torch.relu(self._affine(x, ff.W_1, ff.b_1))
                    x = x + self._affine(hidden, ff.W_2, ff.b_2)
            final: Floats = x.numpy()
            return final

    def _affine(self, x: Any, W: Any, b: Any) -> Any:
        tensors = (self._torch.tensor(np.asarray(each, np.float64)) for each in (W, b))
        return self._torch.nn.functional.linear(x, *tensors)

    def _mixed(self, head: Attention, x: Any) -> Any:
        """The output of a head."""
        q = self._affine(x, head.W_Q, head.b_Q)
        k = self._affine(x, head.W_K, head.b_K)
        v = self._affine(x, head.W_V, head.b_V)
        if not head.mask.looks_back:
            c = self._attended(head, q.flip(0), k.flip(0), v.flip(0)).flip(0)
        else:
            c = self._attended(head, q, k, v)
        if head.W_O is None:
            return c + self._torch.tensor(np.asarray(head.b_O, np.float64))
        return self._affine(c, head.W_O, head.b_O)

    def _attended(self, head: Attention, q: Any, k: Any, v: Any) -> Any:
        """The mixed values, without a mask or with one to the left."""
        if head.mask.is_strict:
            # Row i of a strict mask sees rows before i: the causal mask over keys and values one
            # row earlier. The first row sees none.
            nothing = self._torch.zeros_like(v[:1])
            seen = self._causal(q[1:], k[:-1], v[:-1], is_causal=True)
            return self._torch.cat([nothing, seen])
        return self._causal(q, k, v, is_causal=not head.mask.is_whole)

    def _causal(self, q: Any, k: Any, v: Any, is_causal: bool) -> Any:
        """The mixed values by the fused kernel."""
        # torch has a fast kernel on the CPU only if keys and values are equally wide; columns of 0
        # change no score, and their values are cut off. The scale stays that of the true d_key.
        functional = self._torch.nn.functional
        scale, value = 1 / math.sqrt(q.shape[1]), v.shape[1]
        wide = max(q.shape[1], value)
        padded = (functional.pad(each, (0, wide - each.shape[1]))[None, None] for each in (q, k, v))
        mixed = functional.scaled_dot_product_attention(*padded, is_causal=is_causal, scale=scale)
        return mixed[0, 0, :, :value]
