"""`transformist precision`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from transformist.arithmetic import SYSTEMS, Floating, number_system
from transformist.claims import Recipe, Settings
from transformist.cli.options import Set
from transformist.cli.printing import Json, err, print_json, wide, working
from transformist.errors import InvalidValue
from transformist.inputs import read_positive, read_settings
from transformist.named import NamedProgram, NamedRecipe, named_model
from transformist.report import (
    found_facts,
    lengths_table,
    plain,
    precision_table,
    searched_in_words,
    weighting_facts,
)
from transformist.verify import (
    WORK,
    Breakdown,
    LeastError,
    float_format,
    formats,
    search,
    search_all,
)

Searched = Annotated[
    str | None,
    typer.Argument(
        help="A recipe's name, programs/NAME or FILE.py:NAME; every recipe that has a length "
        "when left out.",
        metavar="[NAME]",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(help="Only in this float format.", metavar="A", show_default=False),
]
Longest = Annotated[
    str | None,
    typer.Option("--max-length", help="Try no longer inputs.", metavar="n"),
]
Work = Annotated[
    str | None,
    typer.Option(help="About how many attention scores to compute a format.", metavar="w"),
]


def precision_command(
    name: Searched = None,
    arithmetic: Format = None,
    length: Longest = None,
    work: Work = None,
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> int:
    """Search for the first length at which a float format breaks a recipe, beyond what is claimed.

    For a function with a tolerance, search for the least error that the format reaches. The work is
    counted, not timed, so that the result is the same everywhere. Exit code 1 when a length fails
    that is claimed. Of a program, the largest N for which each format keeps the margins, to 2^17.
    """
    if arithmetic is not None:
        float_format(arithmetic)
    longest = None if length is None else read_positive(length, "--max-length")
    budget = None if work is None else read_positive(work, "--work")
    if name is None:
        return _search_all(arithmetic, longest, budget, settings, as_json)
    model, chosen = named_model(name), read_settings(settings)
    if isinstance(model, NamedProgram):
        return _lengths_of(model, chosen, arithmetic, longest, budget, as_json)
    if isinstance(model, NamedRecipe):
        return _search(model.recipe, chosen, arithmetic, longest, budget, as_json)
    raise InvalidValue(
        "a search must be for a recipe or a program, which is built for one length after another",
        received=f"{name}, a saved model",
        where="precision",
        remedy="name the program it is compiled from, FILE.py:NAME",
    )


def _search(
    recipe: Recipe[Any],
    chosen: Settings,
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    as_json: bool,
) -> int:
    """One recipe, in each float format in which it claims something."""
    named = [arithmetic] if arithmetic else formats(recipe)
    if not named:
        raise InvalidValue(
            "a search must be in a float format in which something is claimed",
            received=f"{recipe.name}, which claims none of them as it is",
            where="precision",
            remedy=_instead_of_a_search(recipe),
        )
    found = []
    for each in named:
        with working(f"searching {recipe.name} in {each}"):
            found.append(search(recipe, each, chosen, longest, work or WORK))
    if as_json:
        settled = recipe.settings(chosen)
        facts = {"recipe": recipe.name, "settings": {key: plain(settled[key]) for key in chosen}}
        facts |= weighting_facts(recipe, chosen)
        print_json({**facts, "results": [found_facts(each) for each in found]})
    else:
        wide.print(precision_table(searched_in_words(recipe, chosen), found))
    return _refuted(found)


def _instead_of_a_search(recipe: Recipe[Any]) -> str:
    """A format that it does claim, or what tells how far off it is."""
    names = recipe.claim.claimed(recipe.settings({}))
    clamped = [name for name in names if isinstance(number_system(name), Floating)]
    if clamped:
        return f"name one that it claims: --arithmetic {clamped[0]}"
    return f"transformist run {recipe.name} tells how far off it is on an input"


def _lengths_of(
    named: NamedProgram,
    chosen: Settings,
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    as_json: bool,
) -> int:
    """The largest N of a program in each float format."""
    if work is not None:
        raise InvalidValue(
            "--work must come with a recipe",
            received="--work with a program",
            where="precision",
            remedy="leave it out, or give --max-length",
        )
    floats = [name for name, system in SYSTEMS.items() if isinstance(system, Floating)]
    with working(f"compiling {named.name} for one length after another"):
        facts = named.lengths(chosen, [arithmetic] if arithmetic else floats, longest or 2**17)
    if as_json:
        print_json(facts)
    else:
        wide.print(lengths_table(facts))
    return 0


def _search_all(
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    settings: Sequence[str],
    as_json: bool,
) -> int:
    """The recipes that have a length, one after the other, with a sixteenth of the work each."""
    if settings:
        raise InvalidValue(
            "--set must come with one recipe",
            received="--set without NAME",
            remedy="name the recipe, or leave --set out",
        )
    only = () if arithmetic is None else (arithmetic,)
    code, rows = 0, []
    for recipe, found in search_all(longest, work or WORK // 16, only):
        code = max(code, _refuted(found))
        if as_json:
            which = {"recipe": recipe.name, **weighting_facts(recipe, {})}
            rows += [{**which, **found_facts(each)} for each in found]
            err.print(f"searched {recipe.name}", markup=False)
        elif found:
            wide.print(precision_table(searched_in_words(recipe, {}), found))
    if as_json:
        print_json({"results": rows})
    return code


def _refuted(found: Sequence[Breakdown | LeastError]) -> int:
    """1 where a length fails that is claimed."""
    return int(any(isinstance(each, Breakdown) and each.refutes_the_claim for each in found))
