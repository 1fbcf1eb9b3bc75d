"""The engine ONNX Runtime: a checkpoint exported by torch.onnx, on the processor, in float32."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.conformance.families import family_of
from transformist.hosts.checkpoint import loaded
from transformist.hosts.optional_library import optional


@dataclass(frozen=True)
class _Session:
    """An exported checkpoint, without a cache.

    Attributes:
        session: the `onnxruntime.InferenceSession`; its inputs are ids, mask and positions.

    """

    session: Any

    modes = ("alone", "left-padded", "right-padded")
    """The modes of `next_tokens`: the graph has no cache."""

    def run(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the greedy tokens after a prompt, each from the whole text before it."""
        found = [*ids]
        for _ in range(max_new_tokens):
            given = np.array([found], np.int64)
            found.append(int(self.next_tokens(given, given == given, ())[0, -1]))
        return found[len(ids) :]

    def next_tokens(self, ids: Any, mask: Any, _ends: Sequence[int]) -> NDArray[np.int64]:
        """Return the token of largest logit after each position of a batch."""
        mask = np.asarray(mask, np.int64)
        places = np.maximum(mask.cumsum(1) - 1, 0)
        names = [each.name for each in self.session.get_inputs()]
        (logits,) = self.session.run(None, dict(zip(names, (ids, mask, places), strict=True)))
        return np.asarray(logits.argmax(-1), np.int64)


def onnxruntime_engine() -> Callable[[Path], _Session]:
    """Return the function that exports a checkpoint and opens it in ONNX Runtime.

    Raises:
        InvalidValue: if torch, transformers, onnxscript or ONNX Runtime is not installed.

    """
    torch = optional("torch", "huggingface", "conformance")
    optional("transformers", "huggingface", "conformance")
    optional("onnxscript", "onnxruntime", "conformance")
    onnxruntime = optional("onnxruntime", "onnxruntime", "conformance")

    def opened(checkpoint: Path) -> _Session:
        family = family_of(checkpoint)
        _, network = loaded(checkpoint, family.auto)
        network.set_attn_implementation("eager")
        network.config.use_cache = False
        with TemporaryDirectory() as held:
            graph = Path(held) / "made.onnx"
            _export(torch, network, graph)
            settings = onnxruntime.SessionOptions()
            settings.log_severity_level = 3
            session = onnxruntime.InferenceSession(
                str(graph), settings, providers=["CPUExecutionProvider"]
            )
        return _Session(session)

    return opened


def _export(torch: Any, network: Any, graph: Path) -> None:
    """Write a graph whose batches and lengths are free."""
    sizes = {0: torch.export.Dim("rows"), 1: torch.export.Dim("positions")}
    # A tensor that is given twice would become one input of the graph: these are three.
    given = {
        "input_ids": torch.zeros(2, 7, dtype=torch.int64),
        "attention_mask": torch.ones(2, 7, dtype=torch.int64),
        "position_ids": torch.arange(7).expand(2, 7),
    }
    # The exporter writes warnings about shapes and operators of torchvision, and its progress to
    # standard output.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            kwargs=given,
            f=str(graph),
            dynamo=True,
            dynamic_shapes=dict.fromkeys(given, sizes),
            verbose=False,
        )
