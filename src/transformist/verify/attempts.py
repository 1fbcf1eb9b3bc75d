"""One length tried: the inputs on which a recipe is most likely to fail, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import Arithmetic, Array
from transformist.claims import (
    LengthClaim,
    PositionClaim,
    Recipe,
    SequenceClaim,
    Settings,
    StringClaim,
    ask,
)
from transformist.domains import Sequences, Strings
from transformist.errors import NotFinite
from transformist.model import Attention, LayerStack, Transformer
from transformist.verify.sequences import admitted, close, free_numbers
from transformist.verify.strings import admitted_in, judged

EVERYWHERE = 64
"""Lists up to this length are looked at everywhere, longer ones at `places`."""

EVERY_PAIR = 12
"""Up to this length every position asks for every other."""

LISTS = 4
"""How many lists are tried for each length beyond."""

WHOLE = 256
"""Of longer lists, a stack of layers, which is evaluated everywhere, is tried on one."""

ENTRY = 32
"""Preparing one number of an input, or evaluating one of a reference, counts as so many scores."""

START = 2**12
"""Beginning with a length counts as so many, with one of strings as 4 times that; building a
transformer of width d for it counts as d²/8 times that."""

BLOCK = 2**22
"""How many scores are held at once."""

ALL_STRINGS = 64
"""Strings of one length are tried one and all where there are at most so many."""

SHORT_STRING = 16
"""A model that is built for N is tried on hard strings of about this length too."""

HARD_STRINGS = ((32, 24), (1024, 12), (math.inf, 4))
"""How many of the claim's hard strings are tried for lengths up to each of these."""

DRAWN_STRINGS = 2
"""How many strings are drawn besides."""

LONG_STRING = 2048
"""In models built for a larger N, strings have at most half as many symbols."""


@dataclass(frozen=True)
class Mismatch:
    """An input, or a place in one, the right answer, and the one given."""

    input: Any
    expected: Any
    got: Any


@dataclass(frozen=True)
class Attempt:
    """A length about to be tried.

    Attributes:
        scores: about how many attention scores it takes, other work included.
        claimed: the safe length, of the model that is built for it.
        inputs_to: the longest input.
        run: tries it; the first mismatch.

    """

    scores: int
    claimed: int | None
    inputs_to: int
    run: Callable[[], Mismatch | None]


Attempts: TypeAlias = Callable[[int], Attempt]


def safe_length(claim: LengthClaim, settings: Settings, a: Arithmetic) -> int | None:
    """The safe length in this arithmetic, 0 where the claim does not speak of it."""
    return claim.safe_lengths(settings).get(a.name, 0)


Declared: TypeAlias = "tuple[dict[str, Any], Any, int | None]"
"""Settings with N = n, the model they build, and its safe length."""


def declaring(recipe: Recipe[Any], settings: Settings, a: Arithmetic) -> Callable[[int], Declared]:
    """What is tried at a length n: a model built for N = n, or one for all where there is no N."""

    def declare(chosen: dict[str, Any]) -> Declared:
        return chosen, recipe.construct(**chosen), safe_length(recipe.claim, chosen, a)

    if "max_length" in settings and not _ignores_n(recipe, settings):
        return lambda n: declare({**settings, "max_length": n})
    for_all = declare(dict(settings))
    return lambda _n: for_all


def _ignores_n(recipe: Recipe[Any], settings: Settings) -> bool:
    """Whether a transformer that may be told N has the same weights for each."""
    claim = recipe.claim
    return isinstance(claim, StringClaim) and "N" not in claim.dependence(settings)


def places(n: int) -> list[int]:
    """Positions at which a list of n vectors is looked at, and which it asks for.

    All up to `EVERYWHERE`; beyond, the first four, the last 16, the middle, and each power of two
    with its neighbours.

    Example:
        >>> places(1000)[:8], places(1000)[-18:-14]
        ([1, 2, 3, 4, 5, 7, 8, 9], [512, 513, 985, 986])

    """
    if n <= EVERYWHERE:
        return list(range(1, n + 1))
    powers = (2**k + by for k in range(n.bit_length()) for by in (-1, 0, 1))
    middle = (n // 2 - 1, n // 2, n // 2 + 1)
    chosen = {1, 2, 3, 4, *middle, *powers, *range(n - 15, n + 1)}
    return sorted(place for place in chosen if 1 <= place <= n)


def limit(
    claim: SequenceClaim,
    settings: Settings,
    values: Sequence[Fraction],
    n: int,
    a: Arithmetic,
    safe: int | None,
) -> Fraction | float:
    """The error that makes a list of length n wrong, with these free numbers.

    Up to the safe length, what the claim admits. Beyond, what it admits at the safe length (at 1,
    where it is not claimed at all), or, where that is no finite number, the tolerance and an eighth
    of the largest number, or of 1.
    """
    if safe is None or n <= safe:
        return admitted(claim, settings, values, n, a)
    bound = admitted(claim, settings, values, max(safe, 1), a)
    if bound < math.inf:
        return bound
    size = max((abs(value) for value in values), default=Fraction(0))
    return Fraction(settings.get("tolerance", 0)) + max(size, Fraction(1)) / 8


# Lists of vectors


def list_attempt(recipe: Recipe[SequenceClaim], settings: Settings, a: Arithmetic) -> Attempts:
    """Lists whose neighbours differ, constant and drawn ones, at `places`."""
    declare = declaring(recipe, settings, a)

    def attempt(n: int) -> Attempt:
        chosen, model, safe = declare(n)
        domain: Sequences = ask(recipe.claim.domain, **chosen)
        where = places(n)
        whole = not isinstance(model, Attention)
        count = max(LISTS, n if n <= EVERY_PAIR else 0)
        count = 1 if whole and n > WHOLE else count
        rows = n if whole else len(where)
        scores = sum(rows * n * (1 + head.W_Q.shape[0] // 8) for head in _heads(model))
        scores = START + count * (scores + n * 2 * model.width_out * ENTRY)
        scores += n * domain.width * ENTRY

        def run() -> Mismatch | None:
            cases = domain.hard(n, count, a, where)
            try:
                results = _results(model, domain.encode(cases, n, a), a, np.array(where) - 1)
            except NotFinite as refusal:
                return _refused(n, refusal)
            for case, got in zip(cases, a.numbers(results).tolist(), strict=True):
                expected = ask(recipe.claim.reference, n=n, arithmetic=a, **case, **chosen)
                admits = limit(recipe.claim, chosen, _numbers(domain, case), n, a, safe)
                for i, row in zip(where, got, strict=True):
                    if not close([row], [[0] * len(row)], [expected[i - 1]], admits):
                        entries = {label: case[label][i - 1] for label in _free(domain)}
                        return Mismatch({"n": n, "i": i, **entries}, expected[i - 1], row)
            return None

        return Attempt(scores, safe, n, run)

    return attempt


def _free(domain: Sequences) -> list[str]:
    return [column.label for column in domain.columns if column.free]


def _numbers(domain: Sequences, case: Any) -> list[Fraction]:
    """The free numbers of a list, each one once where entries are one object."""
    distinct = {label: list({id(e): e for e in case[label]}.values()) for label in case}
    return list(free_numbers(domain, distinct))


def _heads(model: Attention | LayerStack | Transformer) -> list[Attention]:
    if isinstance(model, Attention):
        return [model]
    return [head for layer in getattr(model, "layers", ()) for head in layer.heads]


def _results(model: Attention | LayerStack, z: Array, a: Arithmetic, rows: Any) -> Array:
    """What a model gives at some rows of lists (lists, n, d); a head computes only these."""
    if not isinstance(model, Attention):
        return model(z, a)[:, rows]
    lists, n, _ = z.shape
    values = model.values(z, a)
    size = max(1, BLOCK // (lists * n))
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    joined = a.concatenate([_mean(model, z, values, a, block) for block in blocks], axis=-2)
    return model.output(joined, a)


def _mean(head: Attention, z: Array, values: Array, a: Arithmetic, rows: Any) -> Array:
    """Σⱼ αᵢⱼ vⱼ over the j that have weight in some row: a term 0 · v changes no sum."""
    weights = head.weights(z, a, rows)
    used = weights.astype(bool).any(axis=(0, 1))
    return a.matmul(weights[..., used], values[:, used])


def _refused(n: int, refusal: NotFinite) -> Mismatch:
    """The format cannot hold what the model needs."""
    return Mismatch({"n": n}, refusal.invariant, f"refused: {refusal.received}")


# Positions


def position_attempt(recipe: Recipe[PositionClaim], settings: Settings, a: Arithmetic) -> Attempts:
    """The vectors at `places`."""
    claim, declare = recipe.claim, declaring(recipe, settings, a)

    def attempt(n: int) -> Attempt:
        chosen, encoding, safe = declare(n)

        def run() -> Mismatch | None:
            try:
                rows = a.numbers(encoding(n, a)).tolist()
            except NotFinite as refusal:
                return _refused(n, refusal)
            seen = claim.observed([list(map(Fraction, row)) for row in rows])
            for i in places(n):
                expected = ask(claim.reference, i=i, n=n, **chosen)
                limits = [
                    ask(claim.error, arithmetic=a, value=Fraction(value), **chosen)
                    for value in expected
                ]
                within = (
                    abs(got - value) <= limit
                    for got, value, limit in zip(seen[i - 1], expected, limits, strict=True)
                )
                if not all(within):
                    return Mismatch({"n": n, "i": i}, expected, seen[i - 1])
            return None

        scores = START + (n + 16 * len(places(n))) * encoding.width * ENTRY
        return Attempt(scores, safe, n, run)

    return attempt


# Strings


def string_attempt(recipe: Recipe[StringClaim], settings: Settings, a: Arithmetic) -> Attempts:
    """Hard and drawn strings; in a model that is built for N, of a short length as well."""
    declare = declaring(recipe, settings, a)

    def attempt(n: int) -> Attempt:
        chosen, model, safe = declare(n)
        strings = _strings(
            ask(recipe.claim.domain, **chosen), n, built=model.max_length is not None
        )
        each = sum(1 + head.W_Q.shape[0] // 8 for head in _heads(model))
        scores = START * (model.width**2 // 8 if model.max_length else 4) + sum(
            (len(x) + 1) * ((len(x) + 1) * each + model.width * ENTRY // 4) for x in strings
        )

        def run() -> Mismatch | None:
            reference = partial(ask, recipe.claim.reference, **chosen)
            admits = admitted_in(recipe.claim, chosen, a)
            try:
                for string, expected, got, right in judged(model, reference, strings, a, admits):
                    if not right:
                        return Mismatch(string, expected, got)
            except NotFinite as refusal:
                return _refused(n, refusal)
            return None

        longest = max(map(len, strings), default=0)
        return Attempt(scores, safe, longest, run)

    return attempt


def _strings(domain: Strings, n: int, built: bool) -> list[Any]:
    length = LONG_STRING // 2 if built and n > LONG_STRING else n
    chosen = [*_some_hard(domain, length), *domain.drawn(length, DRAWN_STRINGS, seed=0)]
    if len(domain.alphabet) ** length <= ALL_STRINGS:
        chosen += domain.every(length, length)
    if built:
        chosen += _some_hard(domain, min(n, SHORT_STRING))
    return list(dict.fromkeys(x for x in chosen if len(x)))


def _some_hard(domain: Strings, length: int) -> list[Any]:
    """As many of the hard strings as are to be tried, others for the next length."""
    hard = list(domain.hard(length))
    most = next(count for longest, count in HARD_STRINGS if length <= longest)
    step = -(-len(hard) // most)
    return hard[length % step :: step]
