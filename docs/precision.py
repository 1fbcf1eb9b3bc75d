"""Write docs/precision.md: where number formats break recipes. Run: python docs/precision.py"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pages
from transformist.catalogue import recipe, recipes
from transformist.report.precision_table import cells
from transformist.verify import Breakdown, LeastError, formats, search

PAGE = Path(__file__).with_name("precision.md")


@dataclass(frozen=True)
class Part:
    """What the page says of a recipe.

    Attributes:
        name: of the recipe; a part is left out where the catalogue has none of this name.
        settings: those it is searched with.
        work: of the search in one format.
        quoted: what was measured elsewhere, with other code, by format.
        loose: why the claim is less than half of what is found, by format.
        differs: why what is found differs from what is quoted by more than a factor of two.

    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    work: int = 2**25
    quoted: Mapping[str, str] = field(default_factory=dict)
    loose: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""

    @property
    def title(self) -> str:
        """The heading of the part."""
        given = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.name} ({given})" if given else self.name


APART = (
    "The proof adds up the worst of every rounding, 5u in all; at these few lengths they do not "
    "fall together."
)

QUADRATIC = {"float16": "40", "float32": "3448", "float64": "fine at 5·10⁶"}

PARTS = (
    Part("one-hot-lookup"),
    Part("almost-orthogonal-lookup"),
    Part("quadratic-lookup", work=2**27, quoted=QUADRATIC),
    Part(
        "layernorm-hash-lookup",
        work=2**27,
        quoted={"float16": "6", "float32": "45", "float64": "5892"},
        loose={
            "bfloat16": "At n = 2 the dot products are 0.205 apart, and the roundings that the "
            "proof adds up come to 0.234 at worst; they do not fall together until n = 4."
        },
    ),
    Part(
        "predecessor-quadratic",
        work=2**29,
        quoted={name: f"{figure} (as quadratic-lookup)" for name, figure in QUADRATIC.items()},
    ),
    Part(
        "tie-break",
        {"term": "-1/i"},
        work=2**27,
        quoted={
            "float32": "4142 is the first j to collide with the one before, beside a score of 1"
        },
        loose={"float8_e4m3": APART},
    ),
    Part(
        "tie-break",
        {"term": "i/n"},
        work=2**27,
        quoted={"float32": "fine to 2²³"},
        loose={"float8_e5m2": APART},
        differs="The quoted figure is for sums s + j/n as they are. Here they are divided by √2 "
        "(Definition 2.3), after which neighbours are 0.7/n apart where the spacing is still that "
        "of numbers above 1: of two sums that differ by one spacing, some become one score. In "
        "float16 and bfloat16 that happens from n of about 1/(4u) on, u the unit roundoff, which "
        "would be about 2²² in float32.",
    ),
    Part(
        "dyck-1",
        work=2**30,
        quoted={
            "float16": "84 % of strings right at N = 250",
            "float32": "all of 75 strings right at N = 1000; this head, all of 3 at about 10⁵",
            "float64": "all right at N = 1000",
        },
        loose={
            "float16": "As in bfloat16, from N = 4096 on.",
            "bfloat16": "The proof allows a step that is to be 1 an error of u/s. For a balance of "
            "−1/2 its two thresholds, s/4 and 3s/4 away, are rounded apart, not together, so that "
            "the step counts 1 or more, until at N = 512 both round to −1/2 and it counts 0.",
            "float8_e5m2": "As in bfloat16, from N = 16 on: the first failure is at 2/u in each of "
            "the narrow formats.",
            "float8_e4m3": "As in bfloat16, from N = 32 on.",
        },
        differs="The quoted share in float16 is of another head, which compares with 0 at ε = 1/N² "
        "on a mean of violations; this one has steps of width s/2, s ≤ 1/(N + 1) a power of two, "
        "and a dead zone around 0, so that rounding never counts as a violation.",
    ),
    Part("induction-most-recent", work=2**26),
    Part(
        "induction-most-recent",
        {"weighting": "average-hard"},
        work=2**26,
        loose={"float8_e5m2": APART},
    ),
    Part(
        "multiply-by-gelu",
        quoted={"float32": "5·10⁻⁵ at s = 2⁻⁸", "float64": "7·10⁻¹¹ at s = 2⁻¹⁸"},
    ),
)

INTRODUCTION = """# Where number formats break recipes

Made by `python docs/precision.py`, which takes some minutes; `transformist precision NAME` searches
for one recipe, and `--help` says how far.

A search tries lengths one by one while that is cheap, then on a grid that grows by a quarter, then
halves the interval between the last length that passed and the first that failed. "Each tried to n"
means that every single length up to n was tried and passed: below the length found and above that,
shorter ones may fail. At each length the inputs are the hard ones of the claim's domain: lists of
which neighbours differ, looked at near their ends, their middle and powers of two; strings that
fail to be right at a single place. Where a recipe is built for N, the length is N, and inputs of N
and fewer symbols are tried (strings of at most 1024 symbols from N = 2049 on). A "none" is a search
that found nothing, not a proof; "claimed" is proved.

*Measured elsewhere* quotes figures of other implementations of the same formulas, which sum in
another order and, where it says so, score otherwise.
"""


def present(parts: tuple[Part, ...] = PARTS) -> Iterator[Part]:
    """The parts whose recipes are in the catalogue."""
    names = {each.name for each in recipes()}
    return (part for part in parts if part.name in names)


def line(part: Part, arithmetic: str) -> str:
    """One row of a part's table, searched anew."""
    found = search(recipe(part.name), arithmetic, part.settings, None, part.work)
    quoted = part.quoted.get(arithmetic, "")
    name, *rest = cells(found)
    if isinstance(found, LeastError):
        return _row(name, *rest[:3], quoted)
    mark = " (loose)" if is_loose(found) else ""
    return _row(name, rest[0] + mark, rest[1], rest[2], quoted)


def is_loose(found: Breakdown) -> bool:
    """Whether the claim is less than half of the first failing length."""
    return bool(found.claimed and found.length and 2 * found.claimed < found.length)


def _row(*entries: str) -> str:
    return f"| {' | '.join(entry.replace('|', '/') for entry in entries)} |"


def section(part: Part) -> Iterator[str]:
    """The lines of a part."""
    found = recipe(part.name)
    headings = ("format", "claimed", "first failure found", "on", "measured elsewhere")
    if "tolerance" in found.parameters:
        headings = ("format", "least error found", "at tolerance", "scale s", "measured elsewhere")
    yield from (f"## {part.title}", "", f"{found.summary}.", "")
    yield from (_row(*headings), _row(*["---"] * len(headings)))
    for arithmetic in formats(found):
        print(f"{part.title} in {arithmetic}", file=sys.stderr)
        yield line(part, arithmetic)
    notes = [f"Loose in {name}: {why}" for name, why in part.loose.items()]
    for note in [*notes, part.differs]:
        if note:
            yield from ("", note)
    yield ""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, *(each for part in present() for each in section(part))]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    pages.write(PAGE, page)
