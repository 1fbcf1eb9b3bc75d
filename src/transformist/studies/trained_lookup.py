"""A lookup that PyTorch trains, from the weights of a recipe or from others of their shapes."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import transformist as tf

TESTS = 64
"""Test inputs of a length; each has a query at every position."""

BATCH = 32


class LookupTask:
    """One head with the weights of `quadratic-lookup-soft`, or of `soften` on one-hot vectors."""

    def __init__(self, N: int, features: str, generator: Any) -> None:
        self._torch = torch = importlib.import_module("torch")
        self._one_hot, self._N, self._generator = features == "one-hot", N, generator
        head = (
            tf.recipe("soften").build(max_length=N)
            if self._one_hot
            else tf.recipe("quadratic-lookup-soft").build()
        )
        # The inputs are q/N, 1, i/N, i²/N² and v, so that all are at most 1; columns of the weights
        # are multiplied by what the inputs are divided by.
        scale = np.ones(2 * N + 1) if self._one_hot else np.array([N, 1, N, N * N, 1])
        self.weights = [
            torch.nn.Parameter(torch.tensor(np.asarray(W, float) * scale, dtype=torch.float32))
            for W in (head.W_Q, head.W_K, head.W_V)
        ]
        # τ = γ/ln 8N (section 5.7), γ being the gap of scores for queries and keys that are the
        # inputs themselves: 1/√N for one-hot vectors, 1/(N² √2) for (q/N, 1) and (2i/N, −i²/N²).
        gap = 1 / math.sqrt(N) if self._one_hot else 1 / (N * N * math.sqrt(2))
        self.last_sharpness = math.log(8 * N) / gap
        lengths = (N,) if self._one_hot else (N, 2 * N)
        self._tests = {n: self._drawn(n, TESTS) for n in lengths}

    def _drawn(self, n: int, count: int) -> tuple[Any, Any, Any]:
        """Vectors, the positions asked for (from 0), and the values there."""
        torch = self._torch
        asked = torch.randint(0, n, (count, n), generator=self._generator)
        values = torch.rand(count, n, generator=self._generator)
        if self._one_hot:
            unit = torch.eye(n)
            x = torch.cat([unit[asked], unit.expand(count, n, n), values[..., None]], -1)
        else:
            i = (torch.arange(1, n + 1) / self._N).expand(count, n)
            columns = [(asked + 1) / self._N, torch.ones(count, n), i, i * i, values]
            x = torch.stack(columns, -1)
        return x, asked, torch.gather(values, 1, asked)

    def _computed(self, x: Any, sharpness: float) -> tuple[Any, Any]:
        """Scores, divided by √d_key as in Definition 2.3, and retrieved values."""
        W_Q, W_K, W_V = self.weights
        scores = (x @ W_Q.T) @ (x @ W_K.T).transpose(1, 2) * (sharpness / math.sqrt(len(W_Q)))
        return scores, (scores.softmax(-1) @ (x @ W_V.T))[..., 0]

    def loss(self, sharpness: float) -> Any:
        """Mean squared error of a new batch."""
        x, _, right = self._drawn(self._N, BATCH)
        return ((self._computed(x, sharpness)[1] - right) ** 2).mean()

    def measured(self, length: int, sharpness: float) -> Mapping[str, Any]:
        """Loss, largest error, and the least score of a wanted key above every other key's."""
        if length not in self._tests:
            return {"loss": None, "error": None, "scores": None}
        x, asked, right = self._tests[length]
        scores, found = self._computed(x, sharpness)
        wanted = scores.gather(2, asked[..., None])
        others = scores.scatter(2, asked[..., None], -math.inf).amax(-1)
        error = found - right
        return {
            "loss": float((error**2).mean()),
            "error": float(error.abs().max()),
            "scores": float((wanted[..., 0] - others).min()),
        }
