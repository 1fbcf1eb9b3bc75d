"""Claims on strings: their check, the attempt at one length, and errors beyond the claim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from transformist.arithmetic import Arithmetic, Interval, number_system
from transformist.claims import Recipe, Settings, StringClaim, ask
from transformist.domains import String, Strings
from transformist.errors import InvalidValue, NotFinite, Undecided
from transformist.model import Trace, Transformer, rationals
from transformist.verify.attempt import (
    LENGTH_COST,
    NUMBER_COST,
    Attempt,
    Attempts,
    declaring,
    heads_of,
    products_of,
    refused,
)
from transformist.verify.comparison import (
    LimitAt,
    compare,
    compare_every,
    lengths_in_words,
    shortest_input,
)
from transformist.verify.feasible import length_within, require_feasible
from transformist.verify.verdict import Coverage, Mismatch, Trial, Verdict, verdict_of

# The check

STRINGS = 2**11
"""Every string is tried up to a length L, the largest with at most this many strings up to L."""

LONGEST = 250
"""Hard and drawn strings are tried up to this length, or up to the safe length if it is less."""

LONGEST_IN = {"exact": 60, "interval": 24}
"""The same limit in arithmetics that are slower than the float formats."""

LARGEST_DECLARED = 2**20 - 1
"""Short strings are tried in models built for this N, or for the safe length if it is less."""

DRAWN = 50
"""Number of strings drawn at random for each arithmetic."""


def check_strings(recipe: Recipe[StringClaim], max_length: int | None = None) -> Verdict:
    """Check every short string, and hard and drawn ones, in models for n and for the largest N."""
    settings = recipe.settings({})
    domain: Strings = ask(recipe.claim.domain, **settings)
    shortest, length = (
        shortest_input(recipe.construct(**settings)),
        _length_of_all(domain, max_length, STRINGS),
    )
    reached = ", ".join(f"{n} in {name}" for name, n, _ in _reached(recipe.claim, settings, length))
    covered = (
        f"{domain}: all {lengths_in_words(shortest, length)}, hard and drawn ones to {reached}"
    )
    return verdict_of(recipe.name, _trials(recipe, max_length), covered)


def _trials(recipe: Recipe[StringClaim], max_length: int | None) -> Iterator[Trial]:
    claim, has_n = recipe.claim, "max_length" in recipe.parameters
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        domain: Strings = ask(claim.domain, **settings)
        length = _length_of_all(domain, max_length, STRINGS // (4 if given else 1))
        reference = partial(ask, claim.reference, **settings)
        for name, n, N in _reached(claim, settings, length):
            system = number_system(name)
            limit = _limit_at(claim, settings, system)
            chosen = [*domain.hard(n), *domain.drawn(n, DRAWN, seed=0)]
            # Margins are least in a model for the largest N, which must answer short strings too.
            # In a model for n itself inputs reach the full length that it is built for.
            for declared in (N, n) if has_n and n < N else (N,):
                built = {**given, **({"max_length": declared} if has_n else {})}
                model = recipe.construct(**recipe.settings(built))
                _require_alphabet(model, domain, recipe)
                cases, wrong, every = 0, None, None
                try:
                    if declared == N:
                        shorter = min(length, n)
                        every = shortest_input(model), shorter
                        cases, wrong = compare_every(
                            model, reference, domain, shorter, system, limit
                        )
                    if wrong is None:
                        long_enough = [x for x in chosen if len(x) >= shortest_input(model)]
                        more, wrong = compare(model, reference, long_enough, system, limit)
                        cases += more
                except NotFinite as refusal:
                    # A format that does not hold the numbers does not keep the claim.
                    wrong = refused(n, refusal)
                covered = Coverage(
                    arithmetic=name, cases=cases, inputs=str(domain), settings=built, every=every
                )
                yield Trial(covered, wrong)


def _require_alphabet(model: Transformer, domain: Strings, recipe: Recipe[StringClaim]) -> None:
    """Require the symbols of the claim in the alphabet of a model.

    Raises:
        InvalidValue: for a model without one of them.

    """
    missing = [each for each in domain.alphabet if each not in model.alphabet]
    if missing:
        raise InvalidValue(
            f"a model with the claim of {recipe.name} must have the symbols of the claim",
            received=f"a model over {model.alphabet!r:.60}, without {missing[0]!r}",
            where="check",
            remedy="give a model over the same alphabet",
        )


def _length_of_all(domain: Strings, max_length: int | None, count: int) -> int:
    """The length up to which every string is tried: `max_length`, or by the number of strings."""
    symbols = len(domain.alphabet)
    if max_length is None:
        return length_within(count, symbols)
    require_feasible(max_length, symbols, may_be_recorded=False)
    return max_length


def _reached(claim: StringClaim, settings: Settings, length: int) -> Iterator[tuple[str, int, int]]:
    """For each arithmetic: its name, the length of the longest strings tried, and the largest N."""
    for name, safe in claim.safe_lengths(settings).items():
        # The reference of a claim on numbers is evaluated in balls, whatever the arithmetic.
        slow = "interval" if claim.in_numbers else name
        n, N = max(LONGEST_IN.get(slow, LONGEST), length), LARGEST_DECLARED
        yield (name, n, N) if safe is None else (name, min(n, safe), min(N, safe))


def _limit_at(claim: StringClaim, settings: Settings, system: Arithmetic) -> LimitAt | None:
    """The error that a claim on numbers admits; `None` where answers are right or wrong."""
    error = claim.error
    if error is None:
        return None
    return lambda x: ask(error, x=x, n=len(x), arithmetic=system, **settings)


# One attempt

ALL_STRINGS = 64
"""Every string of a length is attempted if there are at most this many."""

SHORT_STRING = 16
"""A model that is built for N is attempted on hard strings of about this length too."""

HARD_STRINGS = ((32, 24), (1024, 12), (math.inf, 4))
"""Number of the claim's hard strings attempted for lengths up to each of these."""

DRAWN_STRINGS = 2
"""Number of drawn strings that are attempted in addition."""

BALL_COST = 2**8
"""Scores that one score counts as where the reference is evaluated in balls."""

LONG_STRING = 2048
"""In models built for an N larger than this, strings have half this many symbols."""


def string_attempts(recipe: Recipe[StringClaim], settings: Settings, a: Arithmetic) -> Attempts:
    """Attempts on hard and drawn strings; if the model is built for an N, on short ones too."""
    declare = declaring(recipe, settings, a)

    def attempt(n: int) -> Attempt:
        chosen, model, safe = declare(n)
        has_n = model.max_length is not None
        strings = _attempted(ask(recipe.claim.domain, **chosen), n, has_n)
        each = sum(products_of(head) for head in heads_of(model))
        each *= BALL_COST if recipe.claim.in_numbers else 1
        # A transformer of width d has about d² weights to build for N = n.
        scores = LENGTH_COST * (model.width**2 // 8 if model.max_length else 4) + sum(
            (len(x) + 1) * ((len(x) + 1) * each + model.width * NUMBER_COST // 4) for x in strings
        )

        def run() -> Mismatch | None:
            reference = partial(ask, recipe.claim.reference, **chosen)
            limit = _limit_at(recipe.claim, chosen, a)
            try:
                return compare(model, reference, strings, a, limit)[1]
            except NotFinite as refusal:
                return refused(n, refusal)

        return Attempt(scores, safe, max(map(len, strings), default=0), run)

    return attempt


def _attempted(domain: Strings, n: int, has_n: bool) -> list[String]:
    length = LONG_STRING // 2 if has_n and n > LONG_STRING else n
    chosen = [*_some_hard(domain, length), *domain.drawn(length, DRAWN_STRINGS, seed=0)]
    # Short strings are few: all of them are attempted, and a wrong one cannot be missed.
    if len(domain.alphabet) ** length <= ALL_STRINGS:
        chosen += domain.every(length, length)
    if has_n:
        chosen += _some_hard(domain, min(n, SHORT_STRING))
    return list(dict.fromkeys(x for x in chosen if len(x)))


def _some_hard(domain: Strings, length: int) -> Sequence[String]:
    """Some of the hard strings; several lengths in a row together take all of them."""
    hard = list(domain.hard(length))
    most = next(count for longest, count in HARD_STRINGS if length <= longest)
    # Every ⌈h/most⌉-th of h strings, from an index that changes with the length.
    step = -(-len(hard) // most)
    return hard[length % step :: step]


# The error of an answer in numbers

ENCLOSED = 2**21
"""Largest number of products that are evaluated in balls to bound an error: some seconds."""

PRECISIONS = (128, 1024)
"""Precisions of the balls in bits; the second is used if the first does not decide a choice."""


def _products(model: Transformer, rows: int) -> int:
    """Approximate number of products in an evaluation."""
    # Every row takes each weight once; every pair of rows takes a score of d_key products and a
    # value of d_value products in each head.
    mixed = sum(head.W_Q.shape[0] + head.W_V.shape[0] for head in heads_of(model))
    return int(rows * model.nonzero + rows**2 * mixed)


def enclosed_error(model: Transformer, trace: Trace) -> float | None:
    """Upper bound of the distance of the answer of a run from the real values, by balls.

    It is infinite if a number is infinite, and `None` if there are more than `ENCLOSED` products or
    the balls become too wide.
    """
    if _products(model, len(trace.symbols)) > ENCLOSED:
        return None
    (y,) = model.values([trace.input], trace.arithmetic)
    numbers = trace.arithmetic.numbers(y)
    if numbers.dtype != object and not np.isfinite(numbers).all():
        return math.inf
    for bits in PRECISIONS:
        balls = Interval(bits)
        try:
            (enclosed,) = model.values([trace.input], balls)
        except Undecided:
            continue
        # The real value r lies in the ball m ± ρ, so |y − r| ≤ |y − m| + ρ, computed in rationals.
        # `float` rounds to the nearest; the next float above is no less than the rational.
        real, radii = rationals(balls.numbers(enclosed)), rationals(balls.radius(enclosed))
        return math.nextafter(float((abs(rationals(numbers) - real) + radii).max()), math.inf)
    return None
