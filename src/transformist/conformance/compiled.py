"""Instruments that are compiled programs."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformist.compiler import compile
from transformist.conformance.families import DECODERS, EVERY_FAMILY, FAMILIES
from transformist.conformance.instrument import OTHER, Checkpoint, Instrument, Prompt
from transformist.conformance.network_files import labels_of
from transformist.host_evaluation import HOST_CLASSES
from transformist.hosts.certifying import certify_unsearched
from transformist.hosts.host import HOSTS
from transformist.hosts.named_arrays import NO_FACTS
from transformist.language import Categories, NextToken, Numbers, Program, Tag, program
from transformist.model import Transformer

FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)
"""The files of a checkpoint that an engine reads; an encoder has no `generation_config.json`."""

# The comparisons of `sort` need errors below 1/2048, which float32 gives up to this length; a
# position from the weight of BOS, in `count`, is not certified at 1,024.
LONGEST = 256
"""The longest input of these instruments, in tokens."""

SORTED = "1234"
"""The symbols that `sort` puts in order."""


@program(alphabet="ab")
def count(x: Categories) -> Tag:
    """The number of symbols so far, from the share of BOS in a mean."""
    place: Numbers = x.position("i")
    return place.tag()


@program(alphabet="abcdefgh")
def recall(x: Categories) -> NextToken:
    """Successor of each symbol's last earlier occurrence; else the symbol itself."""
    before = x.predecessor(default="none")
    found: Categories = x.select(before, mask="future").rightmost(x, default=x)
    return found.next_token()


@program(alphabet=count.alphabet)
def total(x: Categories) -> Tag:
    """The number of symbols in the text, from the share of BOS in a mean, at each symbol."""
    number: Numbers = x.isin(count.alphabet).count("none")
    return number.tag()


@program(alphabet=recall.alphabet)
def first_successor(x: Categories) -> Tag:
    """Successor of each symbol's first occurrence; the symbol itself if nothing follows it."""
    before = x.predecessor(default="none")
    found: Categories = x.select(before, mask="none").leftmost(x, default=x)
    return found.tag()


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
    # n numbers, "=", and n numbers more that generation adds: 2n + 1 symbols fit if n ≤ (L − 1)/2.
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


COUNT_IN_ENCODERS = _Source(
    program=total,
    inputs=_counted,
    wrong={
        OTHER: "larger by the padding: padding is attended; smaller: tokens are not attended, by a "
        "causal mask or a window; other: BOS stands twice, or the scale of scores"
    },
)
RECALL_IN_ENCODERS = _Source(
    program=first_successor,
    inputs=lambda length: ((text, "") for text, after in _recalled(length) if not after),
    wrong={OTHER: "the value of another key: the mask, the positions or the order of rows"},
)
COUNT = _Source(
    program=count,
    inputs=_counted,
    options={"positions": "bos"},
    wrong={
        OTHER: "larger by the padding: padding is attended; about half: BOS stands twice; constant "
        "from a length on: a sliding window, or BOS was dropped; other: the scale of scores"
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


def _made(
    of_decoders: _Source, of_encoders: _Source | None = None
) -> Callable[[str, int], Checkpoint]:
    def make(family: str, length: int) -> Checkpoint:
        source = of_decoders if FAMILIES[family].generates or not of_encoders else of_encoders
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
            prompts=[
                _prompt(source, front, text, after) for text, after in source.inputs(length - 1)
            ],
            answers=labels_of(written["config.json"]),
            certified=_certified(model, family, len(front)),
        )

    return make


def _certified(model: Transformer, family: str, before: int) -> int | None:
    """The longest input that is certified in the class, with the tokens before it."""
    if family not in HOST_CLASSES:
        return None
    largest = certify_unsearched(model, host=family).largest_length
    return largest + before if largest else None


def _prompt(source: _Source, front: Sequence[str], text: str, after: str) -> Prompt:
    symbols = [*text, *after]
    answers = [str(each) for each in source.program(symbols)]
    # Symbol k of the text is a prefix of k symbols, whose answer is `answers[k - 1]`. Where
    # generation continues the text, only what follows its last symbol is asked.
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
        summary="the number of tokens so far, from the weight of BOS; in an encoder, of all tokens",
        depends_on=("causal mask", "padding", "scale of scores", "BOS"),
        families=EVERY_FAMILY,
        make=_made(COUNT, COUNT_IN_ENCODERS),
        longest=LONGEST,
    ),
    Instrument(
        name="recall",
        summary="the symbol that followed the last occurrence of the same symbol; in an encoder, "
        "the first one",
        depends_on=("causal mask", "cache", "order of rows"),
        families=EVERY_FAMILY,
        make=_made(RECALL, RECALL_IN_ENCODERS),
        longest=LONGEST,
    ),
    Instrument(
        name="sort",
        summary="generates the numbers before = in increasing order",
        depends_on=("causal mask", "cache", "generation"),
        families=DECODERS,
        make=_made(SORT),
        longest=LONGEST,
    ),
)
