"""The instrument `count`, which is a compiled program."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformist.compiler import compile
from transformist.conformance.families import EVERY_FAMILY, FAMILIES
from transformist.conformance.instrument import OTHER, Checkpoint, Instrument, Prompt
from transformist.conformance.network_files import labels_of
from transformist.host_evaluation import HOST_CLASSES
from transformist.hosts.certifying import certify_unsearched
from transformist.hosts.host import HOSTS
from transformist.hosts.named_arrays import NO_FACTS
from transformist.language import Categories, Numbers, Program, Tag, program
from transformist.model import Transformer

FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
"""The files of a checkpoint that an engine reads; an encoder has no `generation_config.json`."""

# A position from the weight of BOS is not certified at 1,024 tokens.
LONGEST = 256
"""The longest input of the instrument, in tokens."""


@program(alphabet="ab")
def count(x: Categories) -> Tag:
    """The number of symbols so far, from the share of BOS in a mean."""
    place: Numbers = x.position("i")
    return place.tag()


@program(alphabet=count.alphabet)
def total(x: Categories) -> Tag:
    """The number of symbols in the text, from the share of BOS in a mean, at each symbol."""
    number: Numbers = x.isin(count.alphabet).count("none")
    return number.tag()


def _texts(longest: int) -> list[str]:
    lengths = sorted({min(n, longest) for n in (1, 2, 3, 7, 16, 33, 100, 250, longest)})
    return ["ab" * (n // 2) + "a" * (n % 2) for n in lengths]


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A program, its options besides those of the family, and what each wrong token means."""

    program: Program
    wrong: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)


IN_ENCODERS = _Source(
    program=total,
    wrong={
        OTHER: "larger by the padding: padding is attended; smaller: tokens are not attended, by a "
        "causal mask or a window; other: BOS stands twice, or the scale of scores"
    },
)
IN_DECODERS = _Source(
    program=count,
    options={"positions": "bos"},
    wrong={
        OTHER: "larger by the padding: padding is attended; about half: BOS stands twice; constant "
        "from a length on: a sliding window, or BOS was dropped; other: the scale of scores"
    },
)


def _make(family: str, length: int) -> Checkpoint:
    source = IN_DECODERS if FAMILIES[family].generates else IN_ENCODERS
    model = compile(
        # BOS takes one row of the longest input.
        source.program,
        max_length=length - 1,
        **{**HOSTS[family].options, **source.options},
    )
    writer = importlib.import_module(HOSTS[family].module)
    written: Mapping[str, bytes] = writer.write(model, "float32", None, NO_FACTS)
    facts = json.loads(written["transformist.json"])
    vocabulary = json.loads(written["tokenizer.json"])["model"]["vocab"]
    texts = sorted(vocabulary, key=vocabulary.__getitem__)
    # The rows after those of the alphabet are the symbols that the model adds, which is BOS.
    front = [texts[each] for each in facts["symbol_tokens"][len(model.alphabet) :]]
    return Checkpoint(
        files={name: written[name] for name in FILES if name in written},
        texts=texts,
        prompts=[_prompt(source, front, text) for text in _texts(length - 1)],
        answers=labels_of(written["config.json"]),
        certified=_certified(model, family, len(front)),
    )


def _certified(model: Transformer, family: str, before: int) -> int | None:
    """The longest input that is certified in the class, with the tokens before it."""
    if family not in HOST_CLASSES:
        return None
    largest = certify_unsearched(model, host=family).largest_length
    return largest + before if largest else None


def _prompt(source: _Source, front: Sequence[str], text: str) -> Prompt:
    return Prompt(
        tokens=[*front, *text],
        text=text,
        reads=range(len(front), len(front) + len(text)),
        expected=[str(each) for each in source.program(text)],
        length=len(front) + len(text),
        wrong=source.wrong,
    )


INSTRUMENTS = (
    Instrument(
        name="count",
        summary="the number of tokens so far, from the weight of BOS; in an encoder, of all tokens",
        depends_on=("causal mask", "padding", "scale of scores", "BOS"),
        families=EVERY_FAMILY,
        make=_make,
        longest=LONGEST,
    ),
)
