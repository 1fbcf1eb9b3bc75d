"""Comparison of an exported model with its transformer."""

from __future__ import annotations

import itertools
import logging
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformist.arithmetic import number_system
from transformist.errors import InvalidValue
from transformist.hosts.host import Logits
from transformist.hosts.named_arrays import answer_from, longest_input, named_arrays, token_ids
from transformist.memory import free_memory
from transformist.model import LanguageModel, Outputs, RealVector, Symbol, Transformer
from transformist.verify.recognizer_strings import grown_strings

LOG = logging.getLogger(__name__)

EVERY = 256
"""Every string is compared up to the largest length with at most this many strings."""

THOROUGH = 256
"""Largest length with all hard strings; the longer lengths N/2 and N have six each."""

DRAWN = 4
"""Number of strings drawn at random for each length of the hard ones."""

GROWN = 8
"""Most grown strings of one length."""

# A score takes about 40 ns in ONNX Runtime and 40 ns in the reference, so that an input with this
# many takes 20 seconds. There are six inputs of such a length, which take some minutes.
MOST_SCORES = 2**28
"""Largest number of attention scores of one input, over all heads."""

# Measured in float64: ONNX Runtime takes 36 bytes for each pair of rows, and PyTorch 58.
BYTES_A_PAIR = 64
"""Memory of a head for each pair of rows."""

# PyTorch holds the products of a linear map, 8 bytes for each weight and row, and their sums.
BYTES_A_WEIGHT = 16
"""Memory of a linear map for each row and weight."""

TOGETHER = 2**20
"""Largest number of pairs of rows in a block of inputs: 64 MiB for each head."""


@dataclass(frozen=True, kw_only=True)
class HostComparison:
    """The inputs on which an exported model gives the answers of the reference.

    Attributes:
        inputs: the number of inputs.
        every_to: the length up to which every string is compared.
        longest: the length of the longest input.
        ended: the reason why no input of length N is compared; empty if one is.

    """

    inputs: int
    every_to: int
    longest: int
    ended: str = ""


@dataclass(frozen=True, kw_only=True)
class HostSearch:
    """Result of a search for the first wrong answer of a host in a number format.

    Attributes:
        host: the name of the host.
        arithmetic: the number format.
        inputs: the number of right inputs of at most `right_to` symbols.
        every_to: the length up to which every string was to be tried.
        longest: the length of the longest input that was to be tried.
        right_to: the length up to which all inputs that were tried are right; −1 if none is.
        failed: the length of an input with a wrong answer; None if none was found.
        ended: the reason why no input, or no longer one, was tried; empty if one of length N was.

    Example:
        >>> tried = HostSearch(
        ...     host="gpt2", arithmetic="bfloat16", inputs=40, every_to=5, longest=64, right_to=4,
        ...     failed=5,
        ... )
        >>> str(tried)
        'gpt2 in bfloat16: 40 inputs were right, up to length 4; a wrong answer at length 5'

    """

    host: str
    arithmetic: str
    inputs: int
    every_to: int
    longest: int
    right_to: int
    failed: int | None = None
    ended: str = ""

    def __str__(self) -> str:
        start = f"{self.host} in {self.arithmetic}: "
        if self.longest < 0:
            return f"{start}no input was tried: {self.ended}"
        if not self.inputs:
            return f"{start}no input was right; a wrong answer at length {self.failed}"
        right = "1 input was right" if self.inputs == 1 else f"{self.inputs:,} inputs were right"
        tried = f"{start}{right}, up to length {self.right_to}"
        if self.failed is not None:
            return f"{tried}; a wrong answer at length {self.failed}"
        ended = f" ({self.ended})" if self.ended else ""
        return (
            f"{tried}: every string up to length {self.every_to}, and hard strings up to length "
            f"{self.longest}; no wrong answer was found{ended}"
        )


class Differs(InvalidValue):
    """An answer of an exported model that differs from the answer of the reference."""


class NoAnswer(InvalidValue):
    """Logits of an exported model that are no answer."""


def planned_comparison(
    model: Transformer, arithmetic: str, max_length: int | None = None, most: int | None = None
) -> HostComparison:
    """Choose the inputs of a comparison: every short string, and hard ones up to N.

    Args:
        model: the transformer.
        arithmetic: the number format of both.
        max_length: the longest input, for a model without N.
        most: a length that no input exceeds, for any model.

    Raises:
        InvalidValue: for a model without inputs.

    Example:
        >>> import transformist as tf
        >>> planned_comparison(tf.recipe("dyck-1").build(max_length=9), "float32")
        HostComparison(inputs=524, every_to=8, longest=9, ended='')

    """
    limit = longest_input(model, max_length)
    limit = max_length if limit is None else limit
    limit = min((each for each in (limit, most) if each is not None), default=None)
    longest, ended = _longest(model, arithmetic, limit)
    every_to = _length_of_all(len(model.alphabet), longest)
    lengths = [len(x) for x in _inputs(model, every_to, longest)]
    if not lengths:
        raise InvalidValue(
            "an exported model must be compared on at least one input",
            received=f"a model with the alphabet {model.alphabet} and N = {limit}",
            where="export",
            remedy="give a model with symbols",
        )
    return HostComparison(inputs=len(lengths), every_to=every_to, longest=max(lengths), ended=ended)


def _longest(model: Transformer, arithmetic: str, limit: int | None) -> tuple[int, str]:
    """The length of the longest inputs, and the reason if it is not N."""
    if limit is None:
        return THOROUGH, "the model takes any length, and no max_length is given"
    heads = sum(len(layer.heads) for layer in model.layers)
    added = len(model.embedding.front) + len(model.embedding.back)
    reasons = {}
    if heads:
        by_scores = max(0, math.isqrt(MOST_SCORES // heads) - added)
        reasons[by_scores] = f"a longer input takes more than {MOST_SCORES:,} attention scores"
    arrays = named_arrays(model, arithmetic).items()
    weights = max(each.size for name, each in arrays if not name.startswith("embedding."))
    by_memory = _rows_in(free_memory() // 2, bool(heads), weights) - added
    reasons[max(0, by_memory)] = "a longer input may take more than half of the free memory"
    longest = min(reasons)
    return (limit, "") if limit <= longest else (longest, f"N is {limit}: {reasons[longest]}")


def _rows_in(memory: int, has_heads: bool, weights: int) -> int:
    """The largest number of rows whose evaluation takes at most this memory."""
    # p r² + w r ≤ m holds for r = ⌊(√(w² + 4 p m) − w) / 2p⌋, the root rounded down.
    p, w = BYTES_A_PAIR * has_heads, BYTES_A_WEIGHT * weights
    return (math.isqrt(w * w + 4 * p * memory) - w) // (2 * p) if p else memory // w


def compare_host(
    model: Transformer, logits: Logits, arithmetic: str, planned: HostComparison
) -> None:
    """Compare an exported model with the reference, at every position that is read.

    Args:
        model: the transformer.
        logits: the function of the exported model.
        arithmetic: the number format of both.
        planned: the inputs.

    Raises:
        InvalidValue: for the first input on which the answers differ.
        TransformistError: if the reference refuses an input in this format.

    """
    LOG.debug("comparing %d inputs in %s", planned.inputs, arithmetic)
    count = 0
    for block in _blocks(_inputs(model, planned.every_to, planned.longest)):
        _compare(model, logits, arithmetic, block)
        count += len(block)
        done = count, planned.inputs, arithmetic, len(block[0])
        LOG.debug("%d of %d inputs compared in %s, length %d", *done)


def search_logits(
    model: Transformer,
    logits: Logits,
    host: str,
    arithmetic: str,
    planned: HostComparison,
    expected: str,
) -> HostSearch:
    """Search a host for its first wrong answer, in inputs of growing lengths.

    The inputs are those of a comparison. After a wrong answer, hard strings are tried at up to 15
    lengths between `every_to` and the wrong one, then at up to 15 between the last right length and
    the first wrong one.

    Args:
        model: the transformer.
        logits: the function of the exported model.
        host: the name of the host.
        arithmetic: the number format of the host.
        planned: the inputs.
        expected: the number format of the reference, whose answers are the right ones.

    """
    LOG.debug("searching for a wrong answer of %s in %s", host, arithmetic)
    right: dict[int, int] = {}
    blocks = _blocks(_inputs(model, planned.every_to, planned.longest))
    failed = _first_wrong(model, logits, expected, blocks, right)

    def right_to() -> int:
        return max((n for n in right if failed is None or n < failed), default=-1)

    def shorter(start: int, end: int) -> int:
        """The first wrong length between two lengths; the second one if none is found."""
        # Sixteenths of the gap, rounded down: fewer lengths where it is short.
        lengths = {start + (end - start) * k // 16 for k in range(1, 16)} - {start, *right}
        between = (hard.of_length(n) for n in sorted(lengths))
        found = _first_wrong(model, logits, expected, between, right)
        return end if found is None else found

    if failed is not None:
        hard = _Hard(model)
        # No string of an odd length is well nested, for example. So a length that is right does not
        # show that shorter ones are.
        failed = shorter(min(planned.every_to, right_to()), failed)
        failed = shorter(right_to(), failed)
    longest = right_to()
    return HostSearch(
        host=host,
        arithmetic=arithmetic,
        inputs=sum(count for n, count in right.items() if n <= longest),
        every_to=planned.every_to,
        longest=planned.longest,
        right_to=longest,
        failed=failed,
        ended=planned.ended,
    )


def _first_wrong(
    model: Transformer,
    logits: Logits,
    expected: str,
    blocks: Iterable[Sequence[Any]],
    right: dict[int, int],
) -> int | None:
    """The length of the first wrong block, or `None`; counts right inputs by length."""
    for block in blocks:
        n = len(block[0])
        if _is_wrong(model, logits, expected, block):
            return n
        right[n] = right.get(n, 0) + len(block)
        LOG.debug("length %d is right; %d right inputs so far", n, sum(right.values()))
    return None


def _is_wrong(model: Transformer, logits: Logits, expected: str, block: Sequence[Any]) -> bool:
    try:
        _compare(model, logits, expected, block)
    except (Differs, NoAnswer):
        return True
    return False


def _compare(model: Transformer, logits: Logits, arithmetic: str, block: Sequence[Any]) -> None:
    expected = model.answers(block, arithmetic)
    ids = [token_ids(model, x) for x in block]
    # Each row gets one token of padding, which must change nothing; so the empty string has a row.
    values = np.asarray(logits([[*each, 0] for each in ids], [len(each) for each in ids]))
    for x, answer, row in zip(block, expected, values, strict=True):
        found = answer_from(model, row, len(x), arithmetic)
        if not _agree(model.read_out, found, answer, arithmetic):
            raise Differs(
                f"the exported model must answer {answer!r:.60} on {_shown(x)}, as the model does "
                f"in {arithmetic}",
                received=f"{found!r:.60}",
                where="export",
                remedy="nothing was written; give a wider format, such as float64, or build the "
                "model for shorter inputs, with a smaller max_length",
            )


def _agree(read_out: Any, found: Any, expected: Any, arithmetic: str) -> bool:
    """True for equal decisions; numbers may differ in the lower half of the format's digits."""
    if isinstance(read_out, Outputs):
        return all(
            _agree(part, found[name], expected[name], arithmetic)
            for name, part in zip(read_out.names, read_out.parts, strict=True)
        )
    # A label may be a float; two different floats are different labels.
    in_numbers = isinstance(read_out, RealVector | LanguageModel)
    return _near(found, expected, arithmetic) if in_numbers else bool(found == expected)


def _near(found: Any, expected: Any, arithmetic: str) -> bool:
    # Sums in another order differ by a few u times the condition number of the sum, u the unit
    # roundoff. The tolerance √u is far above that, and far below the error of a wrong export.
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(
            _near(found[key], expected[key], arithmetic) for key in expected
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            _near(one, other, arithmetic) for one, other in zip(found, expected, strict=True)
        )
    a: Any = number_system(arithmetic)
    return bool(abs(found - expected) <= float(a.unit_roundoff) ** 0.5 * max(1, abs(expected)))


def _shown(x: Any) -> str:
    return repr(x) if len(x) <= 60 else f"{x[:40]!r}… (length {len(x)})"


def _length_of_all(symbols: int, longest: int) -> int:
    """The largest length at which there are at most `EVERY` strings."""
    return max(
        # One symbol has one string of each length, however long: the second limit ends these.
        (n for n in range(longest + 1) if symbols**n <= EVERY and n <= EVERY.bit_length()),
        default=0,
    )


def _blocks(inputs: Iterator[Any]) -> Iterator[list[Any]]:
    """Blocks of inputs of one length; blocks of long inputs are smaller."""
    for length, alike in itertools.groupby(inputs, key=len):
        # A row of padding comes to each input: (n + 1)² pairs of rows.
        size = max(1, TOGETHER // (length + 1) ** 2)
        while block := list(itertools.islice(alike, size)):
            yield block


def _inputs(model: Transformer, every_to: int, longest: int) -> Iterator[Any]:
    """Every short string, then hard ones of growing lengths."""
    specials = model.embedding.front or model.embedding.back
    reads_empty = bool(specials) or model.read_out.at == "every"
    for n in range(0 if reads_empty else 1, every_to + 1):
        for x in itertools.product(model.alphabet, repeat=n):
            yield _string(x)
    near = min(longest, THOROUGH)
    lengths = {near // 4, near // 2, near - 1, near, longest // 2, longest}
    hard = _Hard(model)
    for n in sorted(each for each in lengths if each > every_to):
        yield from hard.of_length(n)


class _Hard:
    """Strings on which an export is most likely to be wrong."""

    def __init__(self, model: Transformer) -> None:
        self.alphabet, self.grown = model.alphabet, grown_strings(model)

    def of_length(self, n: int) -> list[Any]:
        """Hard strings of a length; grown ones up to the length `THOROUGH` only."""
        found = [*_regular(self.alphabet, n)]
        if self.grown is not None and n <= THOROUGH:
            found += [tuple(x) for x in self.grown.of_length(n, GROWN, seed=0)]
        return [*dict.fromkeys(map(_string, found))]


def _regular(alphabet: Sequence[Symbol], n: int) -> Iterator[tuple[Symbol, ...]]:
    """Hard strings: one symbol alone, two halves, one odd symbol, symbols in turn, random ones."""
    # Means are extreme when all symbols are equal. A match is hardest when one symbol differs from
    # all others. A selection has the longest ties when symbols take turns.
    source = random.Random(f"{alphabet} {n}")
    first, last = alphabet[0], alphabet[-1]
    if n > THOROUGH:
        yield (first,) * n
        yield (first,) * (n // 2) + (last,) * (n - n // 2)
        yield (first,) + (last,) * (n - 1)
        yield (last,) * (n - 1) + (first,)
        yield tuple(itertools.islice(itertools.cycle(alphabet), n))
        yield tuple(source.choices(alphabet, k=n))
        return
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
