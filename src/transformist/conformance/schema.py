"""JSON Schema of a suite's manifest, and of a line of `prompts.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformist.conformance.families import FAMILIES

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_WHOLE = {"type": "integer", "minimum": 0}
_WHOLES = {"type": "array", "items": _WHOLE}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


PROMPT = _object(
    {
        "id": _TEXT,
        "ids": _WHOLES,
        "text": _TEXT,
        "length": _WHOLE,
        "reads": _WHOLES,
        "expected": _WHOLES,
        "formats": _TEXTS,
        "margins": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "number", "minimum": 0}},
        },
        "wrong": {"type": "object", "additionalProperties": _TEXT},
    }
)

_ENTRY = _object(
    {
        "name": _TEXT,
        "directory": _TEXT,
        "summary": _TEXT,
        "depends_on": _TEXTS,
        "formats": _TEXTS,
        "certified": {"type": ["integer", "null"]},
        "sha256": {
            "type": "object",
            "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
    }
)

SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Manifest of a transformist conformance suite",
    **_object(
        {
            "transformist": _TEXT,
            "family": {"enum": [*FAMILIES]},
            "length": _WHOLE,
            "instruments": {"type": "array", "items": _ENTRY},
        }
    ),
    "$defs": {"prompt": PROMPT},
}
"""Schema of the manifest; `$defs/prompt` is that of a line of `prompts.jsonl`."""
