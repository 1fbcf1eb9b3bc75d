"""The engine transformers: the stock class of a checkpoint, on the processor, in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.hosts.checkpoint import loaded
from transformist.hosts.optional_library import optional


@dataclass(frozen=True)
class _Network:
    """A checkpoint in its stock class."""

    torch: Any
    network: Any

    def run(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the tokens of `generate` after a prompt."""
        given = self.torch.tensor([ids])
        with self.torch.inference_mode():
            # `max_length` of the file is left out: it would stand beside `max_new_tokens`.
            made = self.network.generate(
                given,
                attention_mask=self.torch.ones_like(given),
                max_new_tokens=max_new_tokens,
                max_length=None,
                do_sample=False,
            )
        found: list[int] = made[0, len(ids) :].tolist()
        return found

    def next_tokens(self, ids: Any, mask: Any, ends: Sequence[int]) -> NDArray[np.int64]:
        """Return the token of largest logit after each position of a batch."""
        given = self.torch.tensor(ids)
        mask = self.torch.tensor(mask, dtype=self.torch.int64)
        # A class of learned positions counts padding unless it is told the positions: `generate`
        # derives them from the mask in the same way.
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        found, cache, begin = [], None, 0
        with self.torch.inference_mode():
            for end in ends:
                piece = self.network(
                    input_ids=given[:, begin:end],
                    attention_mask=mask[:, :end],
                    position_ids=places[:, begin:end],
                    past_key_values=cache,
                    use_cache=len(ends) > 1,
                )
                found.append(piece.logits.argmax(-1).numpy())
                cache, begin = piece.past_key_values, end
        return np.concatenate(found, axis=1)


def transformers_engine() -> Callable[[Path], _Network]:
    """Return the function that opens a checkpoint in transformers.

    Raises:
        InvalidValue: if torch or transformers is not installed.

    """
    torch = optional("torch", "huggingface", "conformance")
    optional("transformers", "huggingface", "conformance")

    def opened(checkpoint: Path) -> _Network:
        _, network = loaded(checkpoint, "AutoModelForCausalLM")
        return _Network(torch, network)

    return opened


ENGINES: dict[str, Callable[[], Callable[[Path], _Network]]] = {
    "transformers": transformers_engine,
}
"""The engines of `transformist conformance run`, by name."""
