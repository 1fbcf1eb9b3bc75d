"""What an engine answers on a suite of known answers, in every mode, and where it is wrong."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from eager_engines import Cache

CHUNK, STEPS = 16, 12
"""Tokens of a chunk, and tokens that are given one at a time."""


@dataclass(frozen=True)
class Prompt:
    id: str
    ids: tuple
    length: int
    reads: tuple
    expected: tuple
    formats: tuple

    @property
    def continued(self):
        """The greedy tokens after the prompt."""
        known = dict(zip(self.reads, self.expected, strict=True))
        return [known[each] for each in range(self.length - 1, len(self.ids))]


@dataclass(frozen=True)
class Instrument:
    name: str
    directory: Path
    formats: tuple
    prompts: tuple


@dataclass(frozen=True)
class Wrong:
    """A wrong token: the position that was read, counted from the first token of the prompt."""

    prompt: str
    position: int
    expected: int
    got: int


def instruments(directory):
    """Read a suite from its files alone."""
    manifest = json.loads((Path(directory) / "manifest.json").read_text(encoding="utf-8"))
    return [_instrument(Path(directory), entry) for entry in manifest["instruments"]]


def _instrument(suite, entry):
    directory = suite / entry["directory"]
    lines = (directory / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    prompts = tuple(
        Prompt(
            each["id"],
            tuple(each["ids"]),
            each["length"],
            tuple(each["reads"]),
            tuple(each["expected"]),
            tuple(each["formats"]),
        )
        for each in records
    )
    return Instrument(entry["name"], directory, tuple(entry["formats"]), prompts)


def padded(rows, side):
    """Rows of tokens as a batch, padded with token 0, and its mask."""
    width = max(map(len, rows))
    ids, mask = np.zeros((len(rows), width), int), np.zeros((len(rows), width), bool)
    for row, tokens in enumerate(rows):
        at = slice(width - len(tokens), width) if side == "left" else slice(len(tokens))
        ids[row, at], mask[row, at] = tokens, True
    return ids, mask


def compared(prompts, rows):
    """Wrong tokens among those read in rows of tokens, one for each position of a prompt."""
    return [
        Wrong(prompt.id, read, wanted, int(row[read]))
        for prompt, row in zip(prompts, rows, strict=True)
        for read, wanted in zip(prompt.reads, prompt.expected, strict=True)
        if row[read] != wanted
    ]


def prefill(side, chunk=None):
    def answers(engine, prompts):
        engine.chunk = chunk
        ids, mask = padded([each.ids for each in prompts], side)
        tokens = engine.logits(ids, mask).argmax(-1)
        return compared(prompts, [row[real] for row, real in zip(tokens, mask, strict=True)])

    return answers


def decoding(engine, prompts):
    """All but the last tokens at once, and these one at a time, in a left-padded batch."""
    engine.chunk = None
    ids, mask = padded([each.ids for each in prompts], "left")
    cache, most = Cache(), ids.shape[1]
    parts = [engine.prefill(ids[:, :-STEPS], mask[:, :-STEPS], cache)]
    for at in range(most - STEPS, most):
        parts.append(engine.forward(ids[:, at : at + 1], mask[:, : at + 1], cache))
    tokens = np.concatenate(parts, axis=1).argmax(-1)
    return compared(prompts, [row[real] for row, real in zip(tokens, mask, strict=True)])


def one_by_one(engine, prompts):
    engine.chunk = None
    rows = [engine.logits([each.ids]).argmax(-1)[0] for each in prompts]
    return compared(prompts, rows)


def generation(engine, prompts):
    """Greedy tokens after a left-padded batch of the prompts with more than one answer."""
    engine.chunk = None
    prompts = [each for each in prompts if len(each.continued) > 1]
    if not prompts:
        return []
    ids, mask = padded([each.ids[: each.length] for each in prompts], "left")
    most = max(len(each.continued) for each in prompts)
    found = engine.generate(ids, mask, most)
    return [
        Wrong(prompt.id, prompt.length - 1 + number, wanted, int(got))
        for prompt, row in zip(prompts, found, strict=True)
        for number, (wanted, got) in enumerate(zip(prompt.continued, row, strict=False))
        if got != wanted
    ]


MODES = {
    "alone": one_by_one,
    "left-padded": prefill("left"),
    "right-padded": prefill("right"),
    "chunks": prefill("right", chunk=CHUNK),
    "decoding": decoding,
    "generation": generation,
}


OF_ENCODERS = ("alone", "left-padded", "right-padded")


def modes_of(engine):
    """The modes of an engine, or of a class of engines."""
    return tuple(MODES) if engine.generates else OF_ENCODERS


def wrong_tokens(engine, prompts, modes=None):
    """Wrong tokens of each mode; of all that the engine has when `modes` is left out."""
    with np.errstate(all="ignore"):
        return {mode: MODES[mode](engine, prompts) for mode in modes or modes_of(engine)}
