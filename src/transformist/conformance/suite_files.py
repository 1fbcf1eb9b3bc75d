"""A suite on disk: a directory for each instrument, and a manifest with hashes."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformist
from transformist.conformance.case import Case
from transformist.conformance.compiled import INSTRUMENTS as COMPILED
from transformist.conformance.families import FAMILIES
from transformist.conformance.family import DenseModel
from transformist.conformance.instrument import Checkpoint, Instrument, Prompt
from transformist.conformance.lookups_by_hand import INSTRUMENTS as LOOKUPS
from transformist.conformance.mistake import network_of
from transformist.conformance.number_by_hand import INSTRUMENTS as NUMBERS
from transformist.conformance.places_by_hand import INSTRUMENTS as PLACES
from transformist.conformance.probes import INSTRUMENTS as PROBES
from transformist.conformance.rounding_margins import FORMATS, margins
from transformist.conformance.schema import SCHEMA
from transformist.conformance.vocabulary_by_hand import INSTRUMENTS as VOCABULARIES
from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.hosts.vocabulary import as_json
from transformist.hosts.whole_directory import replace_directory, require_free
from transformist.hosts.whole_file import path_of
from transformist.settings import whole_length

INSTRUMENTS: Mapping[str, Instrument] = {
    each.name: each for each in (*COMPILED, *LOOKUPS, *PLACES, *NUMBERS, *VOCABULARIES, *PROBES)
}
"""The instruments by name, in the order in which they are written and run."""

FAMILY = "gpt2"
"""The family of a suite, unless another is given."""

LENGTH = 256
"""The longest input of a suite, in tokens, unless another length is given."""

SHORTEST = 32
"""The least length of a suite: one chunk of a prefill would hold any shorter prompt."""

LONGEST = 4096
"""The largest length of a suite. Instruments may have less, by `Instrument.longest`."""

MANIFEST, MANIFEST_SCHEMA, PROMPTS = "manifest.json", "manifest.schema.json", "prompts.jsonl"

_log = logging.getLogger(__name__)


def write(path: str | os.PathLike[str], family: str = FAMILY, length: int = LENGTH) -> int:
    """Write the suite of a family to a directory, whole or not at all.

    Each instrument is a stock checkpoint in float32 with a tokenizer, and `prompts.jsonl` has its
    inputs with the known answers. The bytes depend on the arguments alone. An engine's own tests
    need these files and nothing of transformist.

    Args:
        path: the directory, which must be absent or empty.
        family: `gpt2`, `llama`, `qwen2`, `mistral` or `bert`.
        length: the longest input, in tokens, with BOS: from 32 to 4,096. Instruments that cannot
            have more than 256 tokens have prompts up to 256.

    Returns:
        The number of prompts.

    Raises:
        UnknownName: for another family.
        InvalidValue: for another length, or a place that cannot be written to.

    Example:
        >>> from transformist.conformance import cases, write
        >>> write("suite", "gpt2", length=32)  # doctest: +SKIP
        49

    """
    target = path_of(path, "conformance")
    if not is_name(family, FAMILIES):
        raise UnknownName.among("family", family, FAMILIES, "conformance")
    if not SHORTEST <= (whole_length(length, "conformance") or 0) <= LONGEST:
        raise InvalidValue(
            f"the length of a suite must be a whole number from {SHORTEST} to {LONGEST}",
            received=f"{length!r:.60}",
            where="conformance",
            remedy=f"give such a number, or leave it out for {LENGTH}",
        )
    # A refusal comes before the work, and no file of a user is replaced.
    require_free(target, frozenset(), "conformance", force=False, held="suite")
    files: dict[str, bytes] = {}
    entries, count = [], 0
    for instrument in INSTRUMENTS.values():
        if family not in instrument.families:
            continue
        _log.info("writing %s", instrument.name)
        made = instrument.make(family, min(length, instrument.longest))
        lines = _lines(instrument.name, made)
        text = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in lines)
        own = {**made.files, PROMPTS: text.encode()}
        files |= {f"{instrument.name}/{name}": data for name, data in own.items()}
        count += len(made.prompts)
        entries.append(
            {
                "name": instrument.name,
                "directory": instrument.name,
                "summary": instrument.summary,
                "depends_on": list(instrument.depends_on),
                "formats": [
                    name for name in FORMATS if any(name in each["formats"] for each in lines)
                ],
                "certified": made.certified,
                "sha256": {
                    name: hashlib.sha256(data).hexdigest() for name, data in sorted(own.items())
                },
            }
        )
    manifest = {
        "transformist": transformist.__version__,
        "family": family,
        "length": length,
        "instruments": entries,
    }
    files |= {MANIFEST: as_json(manifest), MANIFEST_SCHEMA: as_json(SCHEMA)}
    replace_directory(target, files, "conformance", "suite")
    return count


def _lines(name: str, made: Checkpoint) -> list[dict[str, Any]]:
    """The lines of `prompts.jsonl`."""
    token, answer = (
        {text: number for number, text in enumerate(texts)}
        for texts in (made.texts, made.answers or made.texts)
    )
    network = network_of(made.files)
    return [
        _described(f"{name}-{number}", prompt, token, answer, network)
        for number, prompt in enumerate(made.prompts)
    ]


def _described(
    name: str,
    prompt: Prompt,
    token: Mapping[str, int],
    answer: Mapping[str, int],
    network: DenseModel,
) -> dict[str, Any]:
    """A line of `prompts.jsonl`."""
    ids = [token[each] for each in prompt.tokens]
    expected = [answer[each] for each in prompt.expected]
    return {
        "id": name,
        "ids": ids,
        "text": prompt.text,
        "length": prompt.length,
        "reads": list(prompt.reads),
        "expected": expected,
        "formats": list(prompt.formats),
        "margins": margins(network, ids, prompt.reads, expected),
        "wrong": {str(answer.get(text, text)): words for text, words in prompt.wrong.items()},
    }


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the manifest of a suite, and compare the files with their hashes.

    Raises:
        InvalidValue: for a directory that is no suite, one of another version, or a changed file.

    """
    directory = path_of(path, "conformance")
    try:
        manifest: dict[str, Any] = json.loads((directory / MANIFEST).read_bytes())
        version, entries = manifest["transformist"], manifest["instruments"]
        hashes = {
            f"{entry['directory']}/{name}": digest
            for entry in entries
            for name, digest in entry["sha256"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidValue(
            f"a suite must be a directory with a {MANIFEST}, as `conformance write` gives",
            received=f"{directory} ({type(error).__name__}: {error})",
            where="conformance",
            remedy=f"run: transformist conformance write {directory}",
        ) from None
    if version != transformist.__version__:
        raise InvalidValue(
            f"a suite must be of this version, {transformist.__version__}",
            received=f"{directory}, of version {version}",
            where="conformance",
            remedy="write the suite again: transformist conformance write DIR",
        )
    for name, digest in hashes.items():
        try:
            found = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        except OSError as error:
            found = error.strerror or str(error)
        if found != digest:
            raise InvalidValue(
                "every file of a suite must have the hash in the manifest",
                received=f"{directory / name}: {found}",
                where="conformance",
                remedy="write the suite again: transformist conformance write DIR",
            )
    return manifest


def cases(path: str | os.PathLike[str]) -> list[Case]:
    """Read the cases of a suite that `write` wrote.

    Raises:
        InvalidValue: for a directory that is no suite, one of another version, or a changed file.

    Example:
        >>> import pytest
        >>> @pytest.mark.parametrize("case", cases("suite"), ids=str)  # doctest: +SKIP
        ... def test_engine(case):
        ...     run = my_engine(case.checkpoint)
        ...     found = run(case.prompt, max_new_tokens=len(case.generated))
        ...     assert tuple(found) == case.generated

    """
    directory = path_of(path, "conformance")
    return [
        _case(entry, directory, json.loads(line))
        for entry in read_manifest(directory)["instruments"]
        for line in (directory / entry["directory"] / PROMPTS).read_text("utf-8").splitlines()
    ]


def _case(entry: Mapping[str, Any], directory: Path, line: Mapping[str, Any]) -> Case:
    return Case(
        instrument=entry["name"],
        id=line["id"],
        checkpoint=directory / entry["directory"],
        ids=tuple(line["ids"]),
        text=line["text"],
        reads=tuple(line["reads"]),
        expected=tuple(line["expected"]),
        length=line["length"],
        formats=tuple(line["formats"]),
        wrong=line["wrong"],
        depends_on=tuple(entry["depends_on"]),
    )
