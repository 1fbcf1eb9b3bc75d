"""Instruments that are compiled programs."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformist.compiler import compile
from transformist.conformance.instrument import OTHER, Checkpoint, Instrument, Prompt
from transformist.hosts.host import HOSTS
from transformist.hosts.named_arrays import NO_FACTS
from transformist.language import Booleans, Categories, NextToken, Numbers, Program, Tag, program

FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
"""The files of a checkpoint that an engine reads."""

SORTED = "1234"
"""The symbols that `sort` puts in order."""


@program(alphabet="ab")
def count(x: Categories) -> Tag:
    """The number of symbols so far, from the share of BOS in a mean."""
    place: Numbers = x.position("i")
    return place.tag()


@program(alphabet="ab#")
def marker(x: Categories) -> Tag:
    """Place of the marker #: `here`, `seen` at an earlier position, or `none` so far."""
    is_here: Booleans = x == "#"
    is_seen = is_here.any_so_far()
    found: Categories = is_here.table(is_seen, values=["none", "seen", "here", "here"])
    return found.tag()


@program(alphabet="abcdefgh")
def recall(x: Categories) -> NextToken:
    """Successor of each symbol's last earlier occurrence; else the symbol itself."""
    before = x.predecessor(default="none")
    found: Categories = x.select(before, mask="future").rightmost(x, default=x)
    return found.next_token()


@program(alphabet=[*SORTED, "="])
def sort(x: Categories) -> NextToken:
    """After "=", the numbers before it in increasing order, and "=" at the end."""
    is_after = (x == "=").any_so_far()
    written = is_after.count("future")
    passed = [
        written > (x.isin(SORTED[:k]) & ~is_after).count("future")
        for k in range(1, len(SORTED) + 1)
    ]
    following: Categories = is_after.table(
        *passed, values=lambda after, *bits: f"{SORTED}="[sum(bits)] if after else "="
    )
    return following.next_token()


def _counted(length: int) -> Iterator[tuple[str, str]]:
    for n in _lengths(length):
        yield "ab" * (n // 2) + "a" * (n % 2), ""


def _marked(length: int) -> Iterator[tuple[str, str]]:
    for n in _lengths(length):
        for place in sorted({0, n // 2, n - 1}):
            yield "ab"[n % 2] * place + "#" + "b" * (n - place - 1), ""
    yield "ab" * (length // 2), ""


def _recalled(length: int) -> Iterator[tuple[str, str]]:
    source = random.Random(length)
    for n in _lengths(length):
        yield "".join(source.choices(recall.alphabet, k=n)), ""
    # A run through all symbols determines every later token: the checkpoint repeats it.
    run = "".join(recall.alphabet)
    for n in (len(run) + 1, length // 2):
        text = (run * length)[:n]
        yield text, (run * length)[n : min(n + 16, length)]


def _sorted(length: int) -> Iterator[tuple[str, str]]:
    source = random.Random(length)
    for n in _lengths((length - 1) // 2):
        numbers = source.choices(SORTED, k=n)
        # Generation then takes as many tokens as the prompt has numbers: the cache doubles.
        yield "".join([*numbers, "="]), "".join(sorted(numbers))


def _lengths(longest: int) -> list[int]:
    return sorted({min(n, longest) for n in (1, 2, 3, 7, 16, 33, 100, 250, longest)})


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A program, its options beside those of the family, its inputs, and meanings by wrong token.

    An input is a text, and the text with which greedy generation continues it.
    """

    program: Program
    inputs: Callable[[int], Iterator[tuple[str, str]]]
    wrong: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)


COUNT = _Source(
    program=count,
    inputs=_counted,
    options={"positions": "bos"},
    wrong={
        OTHER: "larger by the padding: padding is attended; about half: BOS stands twice; constant "
        "from a length on: a sliding window, or BOS was dropped; other: the scale of scores"
    },
)
PLACE = _Source(
    program=count,
    inputs=_counted,
    wrong={
        OTHER: "larger by the padding: positions count padding; restarts at a chunk: positions "
        "start again; constant while decoding: positions do not advance"
    },
)
MARKER = _Source(
    program=marker,
    inputs=_marked,
    wrong={
        "seen": "before the marker: a later token is attended; at the marker: the token is wrong",
        "none": "after the marker: the marker left the window or the cache; at the marker: the "
        "token does not attend to itself",
        "here": "not at the marker: the logits of another position, or another row of the batch",
    },
)
RECALL = _Source(
    program=recall,
    inputs=_recalled,
    wrong={OTHER: "the value of another key: rows of the cache, or the mask"},
)
SORT = _Source(
    program=sort,
    inputs=_sorted,
    wrong={
        OTHER: "in generation alone: rows of the cache are mixed or overwritten; everywhere: the "
        "mask, or the positions"
    },
)


def _made(source: _Source) -> Callable[[str, int], Checkpoint]:
    def make(family: str, length: int) -> Checkpoint:
        model = compile(
            source.program, max_length=length - 1, **{**HOSTS[family].options, **source.options}
        )
        writer = importlib.import_module(HOSTS[family].module)
        written: Mapping[str, bytes] = writer.write(model, "float32", None, NO_FACTS)
        facts = json.loads(written["transformist.json"])
        vocabulary = json.loads(written["tokenizer.json"])["model"]["vocab"]
        texts = sorted(vocabulary, key=vocabulary.__getitem__)
        # The rows after those of the alphabet are the symbols that the model adds, which is BOS.
        front = [texts[each] for each in facts["symbol_tokens"][len(model.alphabet) :]]
        return Checkpoint(
            files={name: written[name] for name in FILES},
            texts=texts,
            prompts=[
                _prompt(source, front, text, after) for text, after in source.inputs(length - 1)
            ],
            formats=("float32",),
        )

    return make


def _prompt(source: _Source, front: Sequence[str], text: str, after: str) -> Prompt:
    symbols = [*text, *after]
    answers = [str(each) for each in source.program(symbols)]
    first = len(text) if after else 1
    # What follows the prompt is what the program predicts: greedy generation gives it.
    predicted = answers[first - 1 :][: len(after)] if after else []
    if [*after] != predicted:
        raise AssertionError(f"{source.program}: {text!r} is continued by {predicted}")
    return Prompt(
        tokens=[*front, *symbols],
        text=text,
        reads=range(len(front) + first - 1, len(front) + len(symbols)),
        expected=answers[first - 1 :],
        length=len(front) + len(text),
        wrong=source.wrong,
    )


INSTRUMENTS = (
    Instrument(
        name="count",
        summary="the number of tokens so far, from the weight of BOS",
        depends_on=("causal mask", "padding", "scale of scores", "BOS"),
        families=("gpt2", "llama"),
        make=_made(COUNT),
    ),
    Instrument(
        name="marker",
        summary="whether a marker is here, before, or not yet seen",
        depends_on=("causal mask", "cache"),
        families=("gpt2", "llama"),
        make=_made(MARKER),
    ),
    Instrument(
        name="place",
        summary="the position of each token, from the table of positions",
        depends_on=("position ids",),
        families=("gpt2",),
        make=_made(PLACE),
    ),
    Instrument(
        name="recall",
        summary="the symbol that followed the last occurrence of the same symbol",
        depends_on=("causal mask", "cache", "order of rows"),
        families=("gpt2", "llama"),
        make=_made(RECALL),
    ),
    Instrument(
        name="sort",
        summary="generates the numbers before = in increasing order",
        depends_on=("causal mask", "cache", "generation"),
        families=("gpt2", "llama"),
        make=_made(SORT),
    ),
)
