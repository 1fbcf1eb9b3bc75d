"""Write docs/printed.md: printed weights beside ours, with the reason; python docs/printed.py."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pages
from transformist.catalogue import recipe

PAGE = Path(__file__).with_name("printed.md")

HEAD = """# Printed weights beside ours

Made by `python docs/printed.py`. Each section has the weights as they are printed, on the left,
those of the recipe, on the right, and why they differ. The tables are those of
`model.weights_table()`; `transformist show NAME --weights` prints one of them.
`tests/catalogue/test_claims.py` checks both sides against their definitions.
"""


@dataclass(frozen=True)
class Side:
    """A recipe under some settings."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f'tf.recipe("{self.name}").build({given})'

    def text(self) -> str:
        """Every matrix of the model."""
        return str(recipe(self.name).build(**self.settings).weights_table())


@dataclass(frozen=True)
class Pair:
    """Printed weights, those of ours, and the reason why they differ."""

    title: str
    printed: Side
    ours: Side
    reason: str


PAIRS = (
    Pair(
        "Addition (Cookbook, 4.5)",
        Side("add", {"printed": True}),
        Side("add"),
        "The hidden units stand in another order: ours are x, y, −x, −y, as in every linear "
        "map of the section, W₁ = [I; −I] and W₂ = [A, −A]. Both round the sum once.",
    ),
    Pair(
        "Dyck-1 with weights that know N (Cookbook, 9.2.1)",
        Side("dyck-1", {"printed": True, "weighting": "average-hard", "max_length": 4}),
        Side("dyck-1", {"max_length": 4}),
        "EqZero has a comparator of width ε = 1/(N + 1)² around 0, so the weights of its "
        "three units are about (N + 1)² and cancel: a rounding by u becomes about (N + 1)² u."
        " Ours compares with half of the least magnitude, with steps that do not cancel at 0,"
        " and is safe to larger N in every float format. dyck-1-nonuniform is the printed one as a "
        "recipe of its own.",
    ),
    Pair(
        "Lookup by layer norm hashes (Cookbook, 5.3.3)",
        Side("layernorm-hash-lookup", {"printed": True}),
        Side("layernorm-hash-lookup"),
        "The printed head is given lh(qᵢ) and lh(j), and returns any value. Ours computes "
        "both hashes first, from qᵢ, 1 and 1/i, with a norm for each, since one norm over all"
        " of them scales each by the others; the value passes through a norm, so it must be "
        "−1 or 1. layernorm-hash-head is the printed one as a recipe of its own.",
    ),
    Pair(
        "Softmax in place of hard attention (Cookbook, 5.7)",
        Side("soften", {"printed": True, "max_length": 4}),
        Side("soften", {"max_length": 4}),
        "Printed is τ = γ/(log 8N), with the natural logarithm, for an error of 1/4. The gap γ of "
        "scores is 1/√N here, so that 1/τ = √N ln 8N stands in W_Q. Ours takes the error as a "
        "parameter, and by the exact form of Lemma 5.3 needs no more than 1/τ = √N ln((N − "
        "1)/error): √N ln 4(N − 1) for 1/4. Scores are smaller, and so is their rounding. Both "
        "are rounded up to 4 significant bits, which every format holds.",
    ),
    Pair(
        "Linear transformation storing to the right (Primitives of transformers)",
        Side("linear-to-the-right", {"printed": True}),
        Side("linear-to-the-right"),
        "Printed are the scores −∞ at all positions but the flagged one, which has 0: they need a "
        "coordinate that is 1 where the flag is 0, here computed by the first layer. Ours has the "
        "score B at the flag and 0 elsewhere, which differ as much, and needs no such coordinate.",
    ),
    Pair(
        "Maximum of two numbers (Primitives of transformers)",
        Side("max-of-two", {"printed": True}),
        Side("max-of-two"),
        "The printed circuit makes flags of both comparisons, by ·∞, ·∞ and ÷∞, and clears "
        "the other number by each. It needs 1/B, which most fixed point formats do not hold, "
        "and a tie keeps both numbers. Ours makes one comparison, whose flag is at least 1 "
        "after one multiplication by B, divides by nothing, and keeps the first of a tie.",
    ),
)
"""The recipes whose weights are not those in print."""


def page(pairs: Iterable[Pair] = PAIRS) -> str:
    """The whole page."""
    sections = [HEAD]
    for pair in pairs:
        reason = textwrap.fill(pair.reason, 120)
        sections += [f"## {pair.title}\n", f"{reason}\n", f"```text\n{_beside(pair)}\n```\n"]
    return "\n".join(sections)


def _beside(pair: Pair) -> str:
    """The texts of both sides, line by line."""
    left, right = ([str(side), "", *side.text().splitlines()] for side in (pair.printed, pair.ours))
    width = max(map(len, left))
    lines = itertools.zip_longest(left, right, fillvalue="")
    return "\n".join(f"{one:{width}} │ {other}".rstrip() for one, other in lines)


if __name__ == "__main__":
    pages.write(PAGE, page)
