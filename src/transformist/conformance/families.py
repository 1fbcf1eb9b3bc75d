"""The families of stock classes that have instruments, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from transformist.conformance.bert_family import BERT
from transformist.conformance.family import Family
from transformist.conformance.gpt2_family import GPT2
from transformist.conformance.llama_family import LLAMA, MISTRAL, QWEN2

FAMILIES: Mapping[str, Family] = {each.name: each for each in (GPT2, LLAMA, QWEN2, MISTRAL, BERT)}
"""The families; a new one is its module and a row here."""

DECODERS = tuple(name for name, each in FAMILIES.items() if each.generates)
"""The families that predict the next token."""


def family_of(checkpoint: Path) -> Family:
    """Return the family of a checkpoint, by its configuration."""
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    return FAMILIES[config["model_type"]]


EVERY_FAMILY = tuple(FAMILIES)
"""The names of all families."""
