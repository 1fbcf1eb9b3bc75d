"""Comparison of an exported model with its transformer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformist.arithmetic import number_system
from transformist.errors import InvalidValue
from transformist.hosts.host import Logits
from transformist.hosts.named_arrays import answer_from, token_ids
from transformist.model import Symbol, Transformer

EVERY = 256
"""Every string is compared up to the largest length with at most this many strings."""

LONGEST = 256
"""Largest length of hard strings; a smaller N is the limit instead."""

DRAWN = 4
"""Number of strings drawn at random for each length of the hard ones."""


@dataclass(frozen=True, kw_only=True)
class HostComparison:
    """The inputs on which an exported model gave the answers of the reference.

    Attributes:
        inputs: the number of inputs.
        every_to: the length up to which every string was compared.
        longest: the length of the longest input.

    """

    inputs: int
    every_to: int
    longest: int


def compare_host(
    model: Transformer, logits: Logits, arithmetic: str, max_length: int | None = None
) -> HostComparison:
    """Compare an exported model with the reference, at every position that is read.

    Args:
        model: the transformer.
        logits: the function of the exported model.
        arithmetic: the number format of both.
        max_length: the longest input, for a model without N.

    Raises:
        InvalidValue: for the first input on which the answers differ, or a model without inputs.
        TransformistError: if the reference refuses an input in this format.

    """
    limit = model.max_length if model.max_length is not None else max_length
    longest = LONGEST if limit is None else min(limit, LONGEST)
    every_to = _length_of_all(len(model.alphabet), longest)
    count = reached = 0
    for block in _blocks(_inputs(model, every_to, longest)):
        _compare(model, logits, arithmetic, block)
        count, reached = count + len(block), max(reached, len(block[0]))
    if not count:
        raise InvalidValue(
            "an exported model must be compared on at least one input",
            received=f"a model with the alphabet {model.alphabet} and N = {limit}",
            where="export",
            remedy="give a model with symbols",
        )
    return HostComparison(inputs=count, every_to=every_to, longest=reached)


def _compare(model: Transformer, logits: Logits, arithmetic: str, block: Sequence[Any]) -> None:
    expected = model.answers(block, arithmetic)
    ids = [token_ids(model, x) for x in block]
    # Each row gets one token of padding, which must change nothing; so the empty string has a row.
    values = np.asarray(logits([[*each, 0] for each in ids], [len(each) for each in ids]))
    for x, answer, row in zip(block, expected, values, strict=True):
        found = answer_from(model, row, len(x), arithmetic)
        if not _agree(found, answer, arithmetic):
            raise InvalidValue(
                f"the exported model must answer {answer!r:.60} on {_shown(x)}, as the model does "
                f"in {arithmetic}",
                received=f"{found!r:.60}",
                where="export",
                remedy="nothing was written; give a wider format, such as float64, or build the "
                "model for shorter inputs, with a smaller max_length",
            )


def _agree(found: Any, expected: Any, arithmetic: str) -> bool:
    """True for equal decisions; floats may differ in the lower half of the format's digits."""
    # Sums in another order differ by a few u times the condition number of the sum, u the unit
    # roundoff. The tolerance √u is far above that, and far below the error of a wrong export.
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(
            _agree(found[key], expected[key], arithmetic) for key in expected
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            _agree(one, other, arithmetic) for one, other in zip(found, expected, strict=True)
        )
    if isinstance(expected, float):
        a: Any = number_system(arithmetic)
        return bool(abs(found - expected) <= float(a.unit_roundoff) ** 0.5 * max(1, abs(expected)))
    return bool(found == expected)


def _shown(x: Any) -> str:
    return repr(x) if len(x) <= 60 else f"{x[:40]!r}… (length {len(x)})"


def _length_of_all(symbols: int, longest: int) -> int:
    """The largest length at which there are at most `EVERY` strings."""
    return max(
        (n for n in range(longest + 1) if symbols**n <= EVERY and n <= EVERY.bit_length()),
        default=0,
    )


def _blocks(inputs: Iterator[Any]) -> Iterator[list[Any]]:
    """Inputs of one length at a time."""
    for _, block in itertools.groupby(inputs, key=len):
        yield list(block)


def _inputs(model: Transformer, every_to: int, longest: int) -> Iterator[Any]:
    """Every short string, then hard ones of growing lengths."""
    specials = model.embedding.front or model.embedding.back
    reads_empty = bool(specials) or model.read_out.at == "every"
    for n in range(0 if reads_empty else 1, every_to + 1):
        for x in itertools.product(model.alphabet, repeat=n):
            yield _string(x)
    lengths = {longest // 4, longest // 2, longest - 1, longest}
    for n in sorted(each for each in lengths if each > every_to):
        yield from dict.fromkeys(map(_string, _hard(model.alphabet, n)))


def _hard(alphabet: Sequence[Symbol], n: int) -> Iterator[tuple[Symbol, ...]]:
    """Hard strings: one symbol alone, two halves, one odd symbol, symbols in turn, random ones."""
    # Means are extreme when all symbols are equal. A match is hardest when one symbol differs from
    # all others. A selection has the longest ties when symbols take turns.
    source = random.Random(f"{alphabet} {n}")
    first, last = alphabet[0], alphabet[-1]
    yield from ((each,) * n for each in alphabet)
    for one, other in ((first, last), (last, first)):
        yield (one,) * (n // 2) + (other,) * (n - n // 2)
        yield (one,) + (other,) * (n - 1)
        yield (other,) * (n - 1) + (one,)
    yield tuple(itertools.islice(itertools.cycle(alphabet), n))
    for _ in range(DRAWN):
        yield tuple(source.choices(alphabet, k=n))


def _string(x: tuple[Symbol, ...]) -> Any:
    """A string if every symbol is a character, else the tuple."""
    is_text = all(isinstance(each, str) and len(each) == 1 for each in x)
    return "".join(map(str, x)) if is_text else x
