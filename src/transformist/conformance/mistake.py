"""A known mistake of an engine: its class, and the tokens that it gives.

A mistake changes the formulas of `forward`, or what is read. Its tokens on the prompts of a suite
are evaluated in float64, one prompt at a time, and compared with those of an engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from transformist.conformance.case import Case
from transformist.conformance.families import FAMILIES
from transformist.conformance.family import Array, DenseModel
from transformist.conformance.forward import Formulas, logits_by

Tokens = NDArray[np.int64]


def _same_logits(logits: Array) -> Array:
    return logits


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A mistake of an engine.

    Attributes:
        fault: the class, a name of `FAULTS`.
        words: what the engine does.
        formulas: the formulas by which it evaluates a prompt.
        given: the ids that it evaluates, from those of the prompt; the logits of the last ones are
            read.
        logits: the logits (rows, tokens) that it reads, from those of `formulas`.
        is_tied: true if the word vectors serve as the head.

    """

    fault: str
    words: str
    formulas: Formulas = field(default_factory=Formulas)
    given: Callable[[Sequence[int]], Sequence[int]] = lambda ids: ids
    logits: Callable[[Array], Array] = _same_logits
    is_tied: bool = False


def opened(checkpoint: Path) -> DenseModel:
    """Read a checkpoint of a suite."""
    names = "config.json", "model.safetensors"
    return network_of({name: (checkpoint / name).read_bytes() for name in names})


def network_of(files: Mapping[str, bytes]) -> DenseModel:
    """Return the network of a checkpoint, from its files by name."""
    config = json.loads(files["config.json"])
    tensors = safetensors.numpy.load(files["model.safetensors"])
    return DenseModel(
        family=FAMILIES[config["model_type"]],
        config=config,
        tensors={name: np.asarray(each, np.float64) for name, each in tensors.items()},
    )


def tokens(network: DenseModel, case: Case, mistake: Mistake) -> Tokens:
    """The token of largest logit at each position that a case reads."""
    given, head = mistake.given(case.ids), network.family.words if mistake.is_tied else None
    # Some mistakes overflow or divide 0 by 0. `argmax` takes NaN for the largest logit.
    with np.errstate(all="ignore"):
        logits = logits_by(network, given, mistake.formulas, head)
        read = mistake.logits(logits)[-len(case.ids) :].argmax(-1)
    return np.asarray(read[list(case.reads)], np.int64)
