"""Claims on lists of vectors: their check, the attempt at one length, the answer on an input."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import Arithmetic, Array, is_whole, number_system
from transformist.claims import (
    LengthClaim,
    Recipe,
    SequenceClaim,
    Settings,
    ask,
    require_claimed_length,
)
from transformist.domains import Meaning, Sequences
from transformist.errors import InvalidValue, NotFinite
from transformist.inputs import read_vectors
from transformist.model import Attention, LayerStack
from transformist.verify.answer import AnswerInNumbers
from transformist.verify.attempt import (
    LENGTH_COST,
    NUMBER_COST,
    Attempt,
    Attempts,
    declaring,
    heads_of,
    places,
    products_of,
    refused,
)
from transformist.verify.verdict import (
    Coverage,
    Limit,
    Mismatch,
    Trial,
    Verdict,
    all_agree,
    verdict_of,
)

# The check

LENGTHS = (*range(1, 13), 16, 33, 64, 250)
"""Lists of these lengths are tried, as far as they are safe."""

LONGEST = {"exact": 64, "interval": 16}
"""The longest lists in arithmetics that are slower than the formats."""

SHORTER = 33
"""The longest lists for settings other than the defaults."""

FEW = (1, 2, 3, 9, 33)
"""Lists of these lengths are tried where a claim names its arithmetics, as it names many."""

LISTS = 16
"""About how many lists are tried for a length; with fewer positions, every query at every one."""

PRODUCTS = 2**23
"""Fewer lists are tried where their scores take more products than this."""

PRODUCTS_IN = {"interval": 2**18}
"""The same in arithmetics that are slower than the formats."""


def check_sequences(recipe: Recipe[SequenceClaim], max_length: int | None = None) -> Verdict:
    """Check lists of many lengths, in every arithmetic, under every variant."""
    covered = recipe.claim.inputs(recipe.settings({}))
    return verdict_of(recipe.name, _trials(recipe, max_length), covered)


def _trials(recipe: Recipe[SequenceClaim], max_length: int | None) -> Iterator[Trial]:
    claim = recipe.claim
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        model = recipe.construct(**settings)
        domain: Sequences = ask(claim.domain, **settings)
        for system, n in lengths_tried(claim, settings, max_length, shorter=bool(given)):
            # About n² scores a list, each of as many products as a vector has numbers.
            most = PRODUCTS_IN.get(system.name, PRODUCTS) // (n * n * domain.width)
            try:
                cases = domain.cases(n, max(2, min(LISTS, most)), system)
                wrong = _first_mismatch(claim, settings, model, domain, cases, n, system)
            except NotFinite as refusal:
                # A format that does not hold the numbers does not keep the claim.
                cases, wrong = [], refused(n, refusal)
            covered = Coverage(
                arithmetic=system.name, cases=len(cases), inputs=str(domain), settings=given
            )
            yield Trial(covered, wrong)


def lengths_tried(
    claim: LengthClaim, settings: Settings, max_length: int | None, *, shorter: bool
) -> Iterator[tuple[Arithmetic, int]]:
    """Each arithmetic with the lengths of lists to check in it, none beyond the safe length."""
    if max_length is not None and not is_whole(max_length, 1):
        raise InvalidValue(
            "lists must have at least one vector",
            received=f"max_length = {max_length!r:.40}",
            where="check",
            remedy="give a length of at least 1",
        )
    lengths = LENGTHS if claim.only_in is None else FEW
    for name, safe in claim.safe_lengths(settings).items():
        longest = min(
            math.inf if safe is None else safe,
            settings.get("max_length") or math.inf,
            LONGEST.get(name, math.inf),
            SHORTER if shorter else math.inf,
            math.inf if max_length is None else max_length,
        )
        # A limit within the lengths is itself tried, and lengths near it of which few are powers
        # of two, for which 1/n and i/n would be exact.
        near = {longest, longest - 1, longest * 3 // 4, longest * 2 // 3}
        ends = {int(n) for n in near if n >= 1} if longest <= lengths[-1] else set()
        for n in sorted({n for n in lengths if n < longest} | ends):
            yield number_system(name), n


def _first_mismatch(
    claim: SequenceClaim,
    settings: Settings,
    model: Any,
    domain: Sequences,
    cases: Sequence[Meaning],
    n: int,
    system: Arithmetic,
) -> Mismatch | None:
    y = model(domain.encode(cases, n, system), system)
    computed = system.numbers(y).tolist(), system.radius(y).tolist()
    for case, got, radii in zip(cases, *computed, strict=True):
        expected = ask(claim.reference, n=n, arithmetic=system, **case, **settings)
        limit = _admitted(claim, settings, _size(domain, case), n, system)
        if not all_agree(got, radii, expected, limit):
            free = {label: case[label] for label in _free(domain)}
            return Mismatch([free or n], expected, got)
    return None


def _admitted(
    claim: SequenceClaim, settings: Settings, size: Fraction, n: int, system: Arithmetic
) -> Limit:
    """The error that the claim admits for a list whose free numbers have magnitudes up to size."""
    limit: Limit = ask(claim.error, n=n, size=size, arithmetic=system, **settings)
    return limit


def _size(domain: Sequences, case: Meaning) -> Fraction:
    """The largest magnitude among the free numbers; positions that queries ask for are none."""
    entries = (
        entry
        for column in domain.columns
        # A column often repeats one entry at all positions: each object is looked at once.
        for entry in {id(each): each for each in case[column.label]}.values()
        if isinstance(entry, tuple)
    )
    return max((abs(Fraction(x)) for entry in entries for x in entry), default=Fraction(0))


def _free(domain: Sequences) -> list[str]:
    return [column.label for column in domain.columns if column.free]


# One attempt

EVERY_PAIR = 12
"""Up to this length every position asks for every other."""

ATTEMPTED = 4
"""Number of lists attempted for each length beyond."""

WHOLE = 256
"""Beyond this length a stack of layers, which is evaluated everywhere, is attempted on one list."""

BLOCK = 2**22
"""Number of scores held at once."""


def list_attempts(recipe: Recipe[SequenceClaim], settings: Settings, a: Arithmetic) -> Attempts:
    """Attempts on lists whose neighbours differ, constant lists and drawn ones, at `places`."""
    declare = declaring(recipe, settings, a)

    def attempt(n: int) -> Attempt:
        chosen, model, safe = declare(n)
        domain: Sequences = ask(recipe.claim.domain, **chosen)
        where = places(n)
        whole = not isinstance(model, Attention)
        count = max(ATTEMPTED, n if n <= EVERY_PAIR else 0)
        count = 1 if whole and n > WHOLE else count
        # A head computes only the rows at the places, a stack of layers all rows, as later layers
        # read them.
        rows = n if whole else len(where)
        scores = sum(rows * n * products_of(head) for head in heads_of(model))
        scores += n * 2 * model.width_out * NUMBER_COST
        scores = LENGTH_COST + count * scores + n * domain.width * NUMBER_COST

        def run() -> Mismatch | None:
            cases = domain.hard(n, count, a, where)
            try:
                results = _results(model, domain.encode(cases, n, a), a, np.array(where) - 1)
            except NotFinite as refusal:
                return refused(n, refusal)
            for case, got in zip(cases, a.numbers(results).tolist(), strict=True):
                expected = ask(recipe.claim.reference, n=n, arithmetic=a, **case, **chosen)
                limit = _limit(recipe.claim, chosen, _size(domain, case), n, a, safe)
                for i, row in zip(where, got, strict=True):
                    if not all_agree([row], [[0] * len(row)], [expected[i - 1]], limit):
                        entries = {label: case[label][i - 1] for label in _free(domain)}
                        return Mismatch({"n": n, "i": i, **entries}, expected[i - 1], row)
            return None

        return Attempt(scores, safe, n, run)

    return attempt


def _limit(
    claim: SequenceClaim,
    settings: Settings,
    size: Fraction,
    n: int,
    a: Arithmetic,
    safe: int | None,
) -> Limit:
    """The error beyond which a list of length n is wrong, for free numbers up to this size.

    Up to the safe length, the error that the claim admits. Beyond, the error that it admits at the
    safe length (at 1, where it claims nothing), or, where that is infinite, the tolerance and an
    eighth of the largest number, or of 1.
    """
    if safe is None or n <= safe:
        return _admitted(claim, settings, size, n, a)
    bound = _admitted(claim, settings, size, max(safe, 1), a)
    if bound < math.inf:
        return bound
    # No derivation: where nothing is claimed, an eighth of a value is a difference that no reader
    # would take for rounding, and that a lookup of a wrong position nearly always exceeds.
    return Fraction(settings.get("tolerance", 0)) + max(size, Fraction(1)) / 8


def _results(model: Attention | LayerStack, z: Array, a: Arithmetic, rows: Any) -> Array:
    """Outputs of a model at some rows of lists (lists, n, d); a head computes only these."""
    if not isinstance(model, Attention):
        return model(z, a)[:, rows]
    lists, n, _ = z.shape
    values = model.values(z, a)
    # Rows of a head do not depend on each other, so blocks of them give the same bits.
    size = max(1, BLOCK // (lists * n))
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    joined = a.concatenate([_mean(model, z, values, a, block) for block in blocks], axis=-2)
    return model.output(joined, a)


def _mean(head: Attention, z: Array, values: Array, a: Arithmetic, rows: Any) -> Array:
    """Σⱼ αᵢⱼ vⱼ over the j that have weight in some row."""
    # Leaving out the other j changes no bit: they add 0 · v = 0 (v is finite), and a sum from left
    # to right does not round where 0 is added.
    weights = head.weights(z, a, rows)
    used = weights.astype(bool).any(axis=(0, 1))
    return a.matmul(weights[..., used], values[:, used])


# The answer


def answer_on_vectors(
    recipe: Recipe[SequenceClaim], settings: Settings, text: str, system: Arithmetic
) -> AnswerInNumbers:
    """Answer on a list of vectors in JSON."""
    claim = recipe.claim
    domain: Sequences = ask(claim.domain, **settings)
    meaning = read_vectors(text, domain, recipe.name)
    n = len(next(iter(meaning.values())))
    model = recipe.construct(**settings)
    require_claimed_length(recipe, settings, n, system)
    y = model(domain.encode([meaning], n, system), system)[0]
    stored = domain.stored(meaning, system)
    inside = stored in domain
    claimed: tuple[int, ...] = ()
    if inside:
        rows = ask(claim.reference, n=n, arithmetic=system, **stored, **settings)
        claimed = tuple(i for i, row in enumerate(rows, start=1) if row is not None)
    # The claim bounds the error for the numbers that the arithmetic stores, like that of a vector.
    bound = _admitted(claim, settings, _size(domain, stored), n, system) if claimed else None
    return AnswerInNumbers(
        length=n,
        shown=system.shown(y),
        covered=bool(claimed),
        bound=None if bound is None else (float(bound),),
        stored=stored == meaning,
        positions=claimed if inside and len(claimed) < n else None,
    )
