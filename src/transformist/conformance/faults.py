"""Classes of faults of inference engines, of which a diagnosis names at most two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FAULTS: Mapping[str, str] = {
    "causal mask": "a query sees a later key, or not all keys up to its own; in BERT, not all keys",
    "mask over the cache": "the mask of a piece after the first is not that of the cached keys",
    "padding mask": "padding is attended",
    "window": "keys far back are not attended, or those beyond the window of the file are",
    "positions of a batch": "position ids count padding, or are those of another row",
    "positions of a chunk": "position ids of a piece after the first do not go on",
    "positions in decoding": "position ids of single tokens do not follow those of the prompt",
    "position embedding": "the positions of the class are missing, shifted or joined by others",
    "rotations": "the pairs, the frequencies or the vectors of the rotations are others",
    "scale of scores": "scores have another factor",
    "attention formula": "scores are changed beside their factor, or weights are no softmax",
    "coarse numbers": "weights or results are rounded more coarsely than float32",
    "layout of heads": "heads are split, shared or joined in another order",
    "format of the cache": "keys and values are rounded more coarsely than float32",
    "contents of the cache": "keys or values in the cache are lost, moved or overwritten",
    "rows of a batch": "a row gets the cache or the logits of another row",
    "norms": "a norm has a wrong eps, gain, mean or place, or is missing",
    "activation": "the activation of the networks is another",
    "biases": "a bias is not added",
    "layers and residual stream": "a layer, a sublayer or its input is missing or repeated",
    "embedding": "vectors of words or token types are scaled, missing, or taken from others",
    "head over the vocabulary": "logits come from another matrix, or tokens cannot be chosen",
    "position that is read": "logits are those of another position",
    "BOS": "BOS stands twice before the prompt",
    "choice of tokens": "a greedy token is not the one of the largest logit",
}
"""For each class, by its name, a description of the fault in the engine."""


@dataclass(frozen=True, kw_only=True)
class NamedFault:
    """A class of faults, with the evidence for it in wrong tokens.

    Attributes:
        fault: the class, a name of `FAULTS`.
        evidence: the property of the tokens that speaks for this class.

    """

    fault: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.fault} ({FAULTS[self.fault]}): {self.evidence}"
