"""The suites that planted bugs are tried on, written once in a process."""

import tempfile
from functools import cache
from pathlib import Path

from transformist.conformance import write

FAMILIES = {
    "gpt2": "GPT-2",
    "llama": "Llama",
    "qwen2": "Qwen2",
    "mistral": "Mistral",
    "bert": "BERT",
}

LENGTH = 64
"""The longest prompts of the suites: longer than a window and several chunks."""

HELD = []


@cache
def suite_directory(family):
    """The suite of a family, written to a directory that stays until the process ends."""
    directory = tempfile.TemporaryDirectory()
    HELD.append(directory)
    write(Path(directory.name) / "suite", family, length=LENGTH)
    return Path(directory.name) / "suite"
