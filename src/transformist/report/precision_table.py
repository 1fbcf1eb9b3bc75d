"""Results of the searches for the limits of number formats, as plain values and as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from rich.markup import escape
from rich.table import Table

from transformist.claims import Recipe, Settings
from transformist.report.values import finite_or_words, length_in_words, plain
from transformist.verify import Breakdown, LeastError

SHOWN = 44
"""Largest number of characters of an input or an answer in a cell."""


def found_facts(found: Breakdown | LeastError) -> dict[str, Any]:
    """The result of a search, for JSON.

    Example:
        >>> import transformist as tf
        >>> from transformist.verify import first_failure
        >>> found = first_failure(tf.recipe("quadratic-lookup"), "bfloat16", longest=20)
        >>> facts = found_facts(found)
        >>> facts["claimed"], facts["first_failure"], facts["input"]["q"]
        (13, 17, 16)

    """
    return _FACTS[type(found)](found)


def _breakdown_facts(found: Breakdown) -> dict[str, Any]:
    return {
        "arithmetic": found.arithmetic,
        "claimed": found.claimed,
        "first_failure": found.length,
        "searched": found.searched,
        "every_length_to": found.every_length_to,
        "inputs_to": found.inputs_to,
        "input": plain(found.input),
        "expected": plain(found.expected),
        "got": plain(finite_or_words(found.got)),
        "ended": found.ended,
        "refutes_the_claim": found.refutes_the_claim,
    }


def _error_facts(found: LeastError) -> dict[str, Any]:
    return {
        "arithmetic": found.arithmetic,
        "least_error": found.error,
        "tolerance": float(found.tolerance),
        "scale": float(found.scale),
        "input": plain(found.input),
        "tried": float(found.tried),
        "cases": found.cases,
    }


_FACTS: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    Breakdown: _breakdown_facts,
    LeastError: _error_facts,
}
"""The facts of each kind of search."""


HEADINGS: Mapping[type, tuple[str, ...]] = {
    Breakdown: ("format", "claimed", "first failure found", "on", "expected", "got"),
    LeastError: ("format", "least error found", "at tolerance", "scale", "on"),
}
"""Headings of the columns that `cells` fills."""


def cells(found: Breakdown | LeastError) -> list[str]:
    """A row of a table: the result of a search, with inputs and answers shortened."""
    facts = found_facts(found)
    if isinstance(found, LeastError):
        exponents = [f"2^{math.frexp(facts[key])[1] - 1}" for key in ("tolerance", "scale")]
        return [found.arithmetic, f"{found.error:.2g}", *exponents, shortened(found.input)]
    row = [found.arithmetic, length_in_words(found.claimed), first_failure_in_words(facts)]
    if found.length is None:
        return [*row, "", "", ""]
    return [*row, *map(shortened, (found.input, found.expected, found.got))]


def first_failure_in_words(facts: Mapping[str, Any]) -> str:
    """The first failing length; where shorter ones were skipped, the length to which none was.

    Example:
        >>> first_failure_in_words({"first_failure": None, "searched": 256, "every_length_to": 99})
        'none to 256'
        >>> first_failure_in_words({"first_failure": 300, "searched": 400, "every_length_to": 99})
        '300 (each tried to 99)'

    """
    length, every = facts["first_failure"], facts["every_length_to"]
    if length is None:
        return f"none to {facts['searched']:,}"
    return f"{length:,}" if every == length - 1 else f"{length:,} (each tried to {every:,})"


def shortened(value: Any) -> str:
    """A value in a few characters: names and numbers of a place in a list, the ends of a string.

    Example:
        >>> shortened({"n": 40, "q": 7, "v": [0.5]}), shortened("()" * 40)
        ('n = 40, q = 7, v = 0.5', '()()()()()()()()()()…()()()()() (80 symbols)')

    """
    if isinstance(value, Mapping):
        text = ", ".join(f"{name} = {shortened(each)}" for name, each in value.items())
    elif isinstance(value, list | tuple):
        text = ", ".join(shortened(each) for each in value)
    elif isinstance(value, Fraction) and len(str(value)) > 9:
        text = f"{float(value):.6g}"
    elif isinstance(value, str) and len(value) > SHOWN:
        return f"{value[:20]}…{value[-10:]} ({len(value)} symbols)"
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = str(value)
    return text if len(text) <= 2 * SHOWN else f"{text[: 2 * SHOWN]}…"


def weighting_facts(recipe: Recipe[Any], given: Settings) -> dict[str, Any]:
    """The weighting of a recipe that is searched, and the others that it is claimed with.

    Example:
        >>> from transformist.catalogue import recipe
        >>> weighting_facts(recipe("parity"), {"weighting": "leftmost-hard"})
        {'weighting': 'leftmost-hard', 'other_weightings': ['average-hard', 'rightmost-hard']}

    """
    chosen = recipe.settings(given).get("weighting")
    if chosen is None:
        return {}
    others = [each for each in recipe.claim.weightings if each != chosen]
    return {"weighting": chosen, "other_weightings": others}


def searched_in_words(recipe: Recipe[Any], given: Settings) -> str:
    """The recipe and the weighting that are searched, and the option for the other weightings.

    Example:
        >>> from transformist.catalogue import recipe
        >>> searched_in_words(recipe("mean"), {})
        'mean with softmax weights; not searched: average-hard (--set weighting=)'

    """
    facts = weighting_facts(recipe, given)
    if not facts:
        return recipe.name
    searched = f"{recipe.name} with {facts['weighting']} weights"
    others = ", ".join(facts["other_weightings"])
    return f"{searched}; not searched: {others} (--set weighting=)" if others else searched


def precision_table(title: str, found: Iterable[Breakdown | LeastError]) -> Table:
    """The table of what a search found for one recipe, with a row for each number format."""
    rows = list(found)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS[type(rows[0])]:
        table.add_column(heading, overflow="fold")
    table.title, table.title_justify, table.min_width = escape(title), "left", len(title)
    for each in rows:
        table.add_row(*map(escape, cells(each)))
    return table
