"""Claims on position encodings: their check, the attempt at one length, and the answer for n."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import repeat

from transformist.arithmetic import Arithmetic
from transformist.claims import PositionClaim, Recipe, Settings, ask, require_claimed_length
from transformist.errors import NotFinite
from transformist.inputs import read_count
from transformist.model import PositionEncoding
from transformist.verify.answer import AnswerInNumbers
from transformist.verify.attempt import (
    LENGTH_COST,
    NUMBER_COST,
    Attempt,
    Attempts,
    declaring,
    places,
    refused,
)
from transformist.verify.sequence_claims import lengths_tried
from transformist.verify.verdict import Coverage, Mismatch, Trial, Verdict, agrees, verdict_of


def check_positions(recipe: Recipe[PositionClaim], max_length: int | None = None) -> Verdict:
    """Check encodings of many lengths, in every arithmetic, under every variant."""
    return verdict_of(recipe.name, _trials(recipe, max_length), recipe.claim.inputs({}))


def _trials(recipe: Recipe[PositionClaim], max_length: int | None) -> Iterator[Trial]:
    claim = recipe.claim
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        encoding = recipe.construct(**settings)
        for system, n in lengths_tried(claim, settings, max_length, shorter=bool(given)):
            positions = range(1, n + 1)
            wrong = _first_mismatch(claim, settings, encoding, n, system, positions)
            if wrong is not None:
                wrong = Mismatch([{"i": wrong.input["i"], "n": n}], wrong.expected, wrong.got)
            covered = Coverage(arithmetic=system.name, cases=1, inputs="n", settings=given)
            yield Trial(covered, wrong)


def _first_mismatch(
    claim: PositionClaim,
    settings: Settings,
    encoding: PositionEncoding,
    n: int,
    system: Arithmetic,
    positions: Iterable[int],
) -> Mismatch | None:
    """The first of the positions at which a number is further off than the claim admits."""
    y = encoding(n, system)
    vectors = [list(map(Fraction, row)) for row in system.numbers(y).tolist()]
    # `observed` may mix the numbers of several vectors, so each is allowed the largest radius; the
    # width of a ball is limited by `agrees`.
    radius = max(system.radius(y).ravel().tolist())
    observed = claim.observed(vectors)
    for i in positions:
        got, expected = observed[i - 1], ask(claim.reference, i=i, n=n, **settings)
        limits = [
            ask(claim.error, arithmetic=system, value=Fraction(value), **settings)
            for value in expected
        ]
        if len(got) != len(expected) or not all(map(agrees, got, repeat(radius), expected, limits)):
            return Mismatch({"n": n, "i": i}, expected, got)
    return None


def position_attempts(recipe: Recipe[PositionClaim], settings: Settings, a: Arithmetic) -> Attempts:
    """Attempts on the vectors at `places`."""
    declare = declaring(recipe, settings, a)

    def attempt(n: int) -> Attempt:
        chosen, encoding, safe = declare(n)

        def run() -> Mismatch | None:
            try:
                return _first_mismatch(recipe.claim, chosen, encoding, n, a, places(n))
            except NotFinite as refusal:
                return refused(n, refusal)

        scores = LENGTH_COST + (n + 16 * len(places(n))) * encoding.width * NUMBER_COST
        return Attempt(scores, safe, n, run)

    return attempt


def answer_on_positions(
    recipe: Recipe[PositionClaim], settings: Settings, text: str, system: Arithmetic
) -> AnswerInNumbers:
    """Vectors of n positions, n in digits."""
    n = read_count(text, recipe.name)
    encoding = recipe.construct(**settings)
    require_claimed_length(recipe, settings, n, system)
    shown = system.shown(encoding(n, system))
    return AnswerInNumbers(length=n, shown=shown, covered=True, bound=None)
