"""One length tried in the search for the length at which a format breaks a recipe.

The work of an attempt is counted in attention scores before it is done, so that a search can stop
within a budget, and stops at the same length on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic
from transformist.claims import LengthClaim, Recipe, Settings, StringClaim
from transformist.errors import NotFinite
from transformist.model import Attention, LayerStack, Transformer
from transformist.verify.verdict import Mismatch

# The unit of work is one attention score. The factors are rough: they decide how far a search
# goes, never what is an error.

NUMBER_COST = 32
"""Scores that encoding a number of an input, or computing one by a reference, counts as."""

LENGTH_COST = 2**12
"""Scores that beginning with a new length counts as."""

EVERYWHERE = 64
"""Lists up to this length are checked at every position, longer ones at `places`."""


@dataclass(frozen=True)
class Attempt:
    """A length about to be tried.

    Attributes:
        scores: estimate of the work, in attention scores.
        claimed: safe length of the model that is built for this length.
        inputs_to: length of the longest input.
        run: evaluates the inputs, and returns the first mismatch.

    """

    scores: int
    claimed: int | None
    inputs_to: int
    run: Callable[[], Mismatch | None]


Attempts: TypeAlias = Callable[[int], Attempt]
"""The attempt for each length."""


def safe_length(claim: LengthClaim, settings: Settings, a: Arithmetic) -> int | None:
    """The safe length in this arithmetic; 0 where nothing is claimed."""
    return claim.safe_lengths(settings).get(a.name, 0)


Declared: TypeAlias = "tuple[dict[str, Any], Any, int | None]"
"""Settings with N = n, the model they build, and its safe length."""


def declaring(recipe: Recipe[Any], settings: Settings, a: Arithmetic) -> Callable[[int], Declared]:
    """The model to try at each length n: built for N = n, or the same for all n without an N."""

    def declare(chosen: dict[str, Any]) -> Declared:
        return chosen, recipe.construct(**chosen), safe_length(recipe.claim, chosen, a)

    claim = recipe.claim
    ignores_n = isinstance(claim, StringClaim) and "N" not in claim.dependence(settings)
    if "max_length" in settings and not ignores_n:
        return lambda n: declare({**settings, "max_length": n})
    for_all = declare(dict(settings))
    return lambda _n: for_all


def places(n: int) -> list[int]:
    """Positions of a list of n vectors that are checked, and that queries ask for.

    All up to `EVERYWHERE`; beyond, the first four, the last 16, the middle, and each power of two
    with its neighbours.

    Example:
        >>> places(1000)[:8], places(1000)[-18:-14]
        ([1, 2, 3, 4, 5, 7, 8, 9], [512, 513, 985, 986])

    """
    if n <= EVERYWHERE:
        return list(range(1, n + 1))
    # The spacing of a float format doubles at each power of two, so that there functions of the
    # position such as i² begin to collide. They collide last-first: neighbours i and i + 1 differ
    # by the factor 1 + 1/i, least at the end of the list.
    powers = (2**k + by for k in range(n.bit_length()) for by in (-1, 0, 1))
    middle = (n // 2 - 1, n // 2, n // 2 + 1)
    chosen = {1, 2, 3, 4, *middle, *powers, *range(n - 15, n + 1)}
    return sorted(place for place in chosen if 1 <= place <= n)


def heads_of(model: Attention | LayerStack | Transformer) -> list[Attention]:
    """Every head of a model; a head is its only one."""
    if isinstance(model, Attention):
        return [model]
    return [head for layer in getattr(model, "layers", ()) for head in layer.heads]


def products_of(head: Attention) -> int:
    """Scores that one score of a head counts as; eight products of a long key take as long."""
    return 1 + int(head.W_Q.shape[0]) // 8


def refused(n: int, refusal: NotFinite) -> Mismatch:
    """The mismatch for a format that refuses the weights, features or scores at length n."""
    return Mismatch({"n": n}, refusal.invariant, f"refused: {refusal.received}")
