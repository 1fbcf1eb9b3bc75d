"""The engine transformers: the stock class of a checkpoint, on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.conformance.families import family_of
from transformist.hosts.checkpoint import loaded
from transformist.hosts.optional_library import optional

DRAFTED = 3
"""Tokens that prompt lookup drafts at once."""


@dataclass(frozen=True)
class _Network:
    """A checkpoint in its stock class."""

    torch: Any
    network: Any

    def run(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the tokens of `generate` after a prompt."""
        return self._generated(ids, max_new_tokens)

    @property
    def generations(self) -> dict[str, Callable[[Sequence[int], int], list[int]]]:
        """Other ways of `generate`, by the names of their modes."""
        settings: dict[str, dict[str, Any]] = {
            "beams": {"num_beams": 3},
            "static-cache": {"cache_implementation": "static"},
        }
        ways = {name: partial(self._generated, **each) for name, each in settings.items()}
        return {
            **ways,
            "prompt-lookup": self._with_lookup,
            "prefix-cache": self._after_prefix,
        }

    def _with_lookup(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Generate with tokens drafted from the prompt."""
        try:
            return self._generated(ids, max_new_tokens, prompt_lookup_num_tokens=DRAFTED)
        except IndexError as error:
            places = self.network.config.max_position_embeddings
            if len(ids) + max_new_tokens + DRAFTED <= places:
                raise
            raise IndexError(
                f"{error} (prompt lookup of transformers drafts tokens beyond the {places} "
                "positions of the table, which the prompt and its new tokens fill)"
            ) from error

    def _after_prefix(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Generate with the keys and values of the first half of the prompt in the cache."""
        most = len(ids) // 2
        cache = None
        if most:
            with self.torch.inference_mode():
                first = self.network(input_ids=self.torch.tensor([ids[:most]]), use_cache=True)
            cache = first.past_key_values
        return self._generated(ids, max_new_tokens, past_key_values=cache)

    def _generated(self, ids: Sequence[int], max_new_tokens: int, **settings: Any) -> list[int]:
        given = self.torch.tensor([ids])
        with self.torch.inference_mode():
            # `max_length` of the file is left out: it would stand beside `max_new_tokens`.
            made = self.network.generate(
                given,
                attention_mask=self.torch.ones_like(given),
                max_new_tokens=max_new_tokens,
                max_length=None,
                do_sample=False,
                **settings,
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


@dataclass(frozen=True)
class _Encoder:
    """A checkpoint of an encoder in its stock class."""

    torch: Any
    network: Any

    def next_tokens(self, ids: Any, mask: Any, _ends: Sequence[int]) -> NDArray[np.int64]:
        """Return the label of largest logit at each position of a batch."""
        mask = self.torch.tensor(mask, dtype=self.torch.int64)
        with self.torch.inference_mode():
            logits = self.network(
                input_ids=self.torch.tensor(ids),
                attention_mask=mask,
                position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
            ).logits
        return np.asarray(logits.argmax(-1).numpy(), np.int64)


def transformers_engine(
    attention: str = "sdpa", number_format: str = "float32"
) -> Callable[[Path], _Network | _Encoder]:
    """Return the function that opens a checkpoint in transformers.

    Args:
        attention: the implementation of attention, `sdpa` or `eager`.
        number_format: the format of weights and results.

    Raises:
        InvalidValue: if torch or transformers is not installed.

    """
    torch = optional("torch", "huggingface", "conformance")
    optional("transformers", "huggingface", "conformance")

    def opened(checkpoint: Path) -> _Network | _Encoder:
        family = family_of(checkpoint)
        _, network = loaded(checkpoint, family.auto, number_format)
        network.set_attn_implementation(attention)
        return _Network(torch, network) if family.generates else _Encoder(torch, network)

    return opened
