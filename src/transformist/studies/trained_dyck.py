"""The recipe dyck-1 that PyTorch trains, from its weights or from others of their shapes."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import transformist as tf

TESTS = 500
"""Test strings up to a length."""

POOL = 2048
"""Strings to train on."""

BATCH = 64


class Dyck1:
    """The recipe `dyck-1`, built for 2N and trained on strings up to N."""

    def __init__(self, N: int, seed: int, generator: Any) -> None:
        self._torch = torch = importlib.import_module("torch")
        self._module: Any = tf.to_torch(tf.recipe("dyck-1").build(max_length=2 * N), "float32")
        self.weights = list(self._module.parameters())
        self.last_sharpness, self._generator = 1.0, generator
        random = np.random.default_rng(seed)
        self._pool = self._encoded(N, POOL, random)
        self._tests = {n: self._encoded(n, TESTS, random) for n in (N, 2 * N)}
        self._spreads: list[Any] = []
        layers: Any = self._module.layers
        for layer in layers:
            layer.heads[0].weighting.register_forward_hook(self._observe)
        self._loss: Callable[..., Any] = torch.nn.functional.binary_cross_entropy_with_logits

    def _observe(self, _weighting: Any, given: tuple[Any, Any], _weights: Any) -> None:
        """Keep the largest difference between admissible scores of a row."""
        scores, admissible = given
        largest = scores.masked_fill(~admissible, -math.inf).amax(-1)
        least = scores.masked_fill(~admissible, math.inf).amin(-1)
        difference = (largest - least)[admissible.any(-1)]
        self._spreads = [*self._spreads[-1:], difference.detach().max()]

    def _encoded(self, n: int, count: int, random: Any) -> tuple[Any, Any, Any]:
        """Tokens, lengths and right answers of strings up to length n."""
        strings = [_drawn_string(n, random) for _ in range(count)]
        tokens, lengths = self._module.encode_batch(strings)
        return tokens, lengths, self._torch.tensor([float(is_balanced(each)) for each in strings])

    def _logits(self, tokens: Any, lengths: Any) -> Any:
        logits = self._module(tokens, lengths).logits
        return logits[self._torch.arange(len(tokens)), lengths - 1, 0]

    def loss(self, _sharpness: float) -> Any:
        """Cross entropy of a batch of the pool."""
        tokens, lengths, right = self._pool
        chosen = self._torch.randint(0, POOL, (BATCH,), generator=self._generator)
        rows = int(lengths[chosen].max())
        return self._loss(self._logits(tokens[chosen, :rows], lengths[chosen]), right[chosen])

    def measured(self, length: int, _sharpness: float) -> Mapping[str, Any]:
        """Loss, share of wrong answers, and the largest spread of scores in a row of a head."""
        tokens, lengths, right = self._tests[length]
        logits = self._logits(tokens, lengths)
        wrong = (logits > 0) != (right > 0.5)
        spread = max(float(each) for each in self._spreads)
        loss = float(self._loss(logits, right))
        return {"loss": loss, "error": float(wrong.float().mean()), "scores": spread}


def is_balanced(string: str) -> bool:
    """True for a string of Dyck-1, by counting open brackets."""
    depth = 0
    for each in string:
        depth += 1 if each == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _drawn_string(n: int, random: Any) -> str:
    """A string of even length up to n: in half of the draws of Dyck-1, else near to one."""
    pairs = int(random.integers(1, n // 2 + 1))
    steps = random.permutation([1, -1] * pairs)
    # Begun after the first lowest point, a closed walk never goes below its start.
    balanced = np.roll(steps, -(int(np.argmin(np.cumsum(steps))) + 1))
    kind = int(random.integers(4))
    if kind == 2:  # as many of each bracket, in any order
        balanced = steps
    if kind == 3:  # one bracket turned round
        balanced[random.integers(2 * pairs)] *= -1
    return "".join("(" if step == 1 else ")" for step in balanced)
