"""What a program was compiled to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from transformist.model import Transformer
from transformist.report.size import Size, size


def compiled_facts(program: str, file: str, model: Transformer, weighting: str) -> dict[str, Any]:
    """What `compile` tells of a program and the model that was saved."""
    return {
        "program": program,
        "file": file,
        **asdict(size(model)),
        "max_length": model.max_length,
        "weighting": weighting,
        "arithmetic": model.built_for,
    }


def compiled_in_words(facts: Mapping[str, Any]) -> str:
    """What `compile` tells, in a line."""
    counts = Size(*(facts[key] for key in ("layers", "width", "heads", "nonzero")))
    longest = "any length" if facts["max_length"] is None else f"N = {facts['max_length']}"
    built = f"{longest}, {facts['weighting']}, {facts['arithmetic']}"
    return f"{facts['program']} → {facts['file']}: {counts}; {built}"
