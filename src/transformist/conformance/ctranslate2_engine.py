"""The engine CTranslate2: a checkpoint by its own converter, on the processor, in float32."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.hosts.checkpoint import silent
from transformist.hosts.optional_library import optional


@dataclass(frozen=True)
class _Generator:
    """A converted checkpoint.

    Attributes:
        generator: the `ctranslate2.Generator`.
        texts: the text of each token.
        held: the directory of the converted checkpoint, which stays as long as this object.

    """

    generator: Any
    texts: Sequence[str]
    held: TemporaryDirectory[str]

    modes = ("alone", "right-padded")
    """The modes of `next_tokens`: the generator pads batches itself, and gives no cache away."""

    def run(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the greedy tokens after a prompt."""
        return self._generated(ids, max_new_tokens, beam_size=1)

    @property
    def generations(self) -> dict[str, Callable[[Sequence[int], int], list[int]]]:
        """Other ways of generation, by the names of their modes."""
        return {"beams": partial(self._generated, beam_size=3)}

    def _generated(self, ids: Sequence[int], max_new_tokens: int, beam_size: int) -> list[int]:
        (made,) = self.generator.generate_batch(
            [[self.texts[each] for each in ids]],
            max_length=max_new_tokens,
            beam_size=beam_size,
            include_prompt_in_result=False,
        )
        found: list[int] = made.sequences_ids[0]
        return found

    def next_tokens(self, ids: Any, mask: Any, _ends: Sequence[int]) -> NDArray[np.int64]:
        """Return the token of largest logit after each position of a batch."""
        rows = [row[kept].tolist() for row, kept in zip(ids, mask, strict=True)]
        return np.asarray(np.array(self.generator.forward_batch(rows)).argmax(-1), np.int64)


def ctranslate2_engine() -> Callable[[Path], _Generator]:
    """Return the function that converts and opens a checkpoint in CTranslate2.

    Raises:
        InvalidValue: if CTranslate2, torch or transformers is not installed.

    """
    ctranslate2 = optional("ctranslate2", "ctranslate2", "conformance")
    converters = optional("ctranslate2.converters", "ctranslate2", "conformance")
    transformers = optional("transformers", "huggingface", "conformance")
    optional("torch", "huggingface", "conformance")

    def opened(checkpoint: Path) -> _Generator:
        held = TemporaryDirectory()
        made = Path(held.name) / "made"
        with silent(transformers):
            converter = converters.TransformersConverter(str(checkpoint))
            converter.convert(str(made), quantization="float32")
        settings = made / "config.json"
        facts = json.loads(settings.read_text("utf-8"))
        if facts.get("unk_token") is None:
            # A tokenizer without a token for unknown text gives null, which the generator refuses.
            facts["unk_token"] = ""
            settings.write_text(json.dumps(facts), "utf-8")
        vocabulary = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))["model"][
            "vocab"
        ]
        return _Generator(
            generator=ctranslate2.Generator(str(made), device="cpu", compute_type="float32"),
            texts=sorted(vocabulary, key=vocabulary.__getitem__),
            held=held,
        )

    return opened
