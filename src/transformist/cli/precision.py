"""`transformist precision`: the lengths at which float formats break recipes and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from transformist.arithmetic import SYSTEMS, Floating, number_system
from transformist.claims import Recipe
from transformist.cli.options import Set
from transformist.cli.printing import Json, err, out, print_json, wide, working
from transformist.cli.workers_given import Address, Backend, read_workers
from transformist.errors import InvalidValue
from transformist.inputs import read_positive, read_settings
from transformist.named import find_model
from transformist.named.named_program import NamedProgram
from transformist.named.named_recipe import NamedRecipe
from transformist.report.precision_table import (
    found_facts,
    precision_table,
    searched_in_words,
    weighting_facts,
)
from transformist.report.values import plain
from transformist.verify import (
    THIS_PROCESS,
    WORK,
    Breakdown,
    LeastError,
    Workers,
    float_format,
    formats,
    search_all,
    search_formats,
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

Jobs = Annotated[
    str | None,
    typer.Option(
        help="Number of processes, each for one format or one recipe. When left out, one with "
        "NAME, and one for each processor without.",
        metavar="N",
        show_default=False,
    ),
]


def command(
    name: Searched = None,
    arithmetic: Format = None,
    length: Longest = None,
    work: Work = None,
    settings: Set = [],  # noqa: B006
    jobs: Jobs = None,
    backend: Backend = None,
    address: Address = None,
    as_json: Json = False,
) -> int:
    """Exit code 1 when a length fails that is claimed.

    For a function with a tolerance, search for the least error that the format reaches. The work is
    counted, not timed, so that the result is the same everywhere. For a program, search for the
    largest N for which each format keeps the margins, up to 2^17.
    """
    if arithmetic is not None:
        float_format(arithmetic)
    longest = None if length is None else read_positive(length, "--max-length")
    budget = None if work is None else read_positive(work, "--work")
    workers = read_workers(jobs, backend, address)
    if name is None:
        return _search_all(arithmetic, longest, budget, settings, workers, as_json)
    if jobs is backend is None:
        workers = THIS_PROCESS
    named = find_model(name, read_settings(settings))
    if isinstance(named, NamedProgram):
        return _lengths_of(named, arithmetic, longest, budget, workers, as_json)
    if isinstance(named, NamedRecipe):
        return _search(named, arithmetic, longest, budget, workers, as_json)
    raise InvalidValue(
        "the model must be a recipe or a program, which can be built for every length",
        received=f"{name}, a saved model",
        where="precision",
        remedy="name the program that the model was compiled from, FILE.py:NAME",
    )


def _search(
    model: NamedRecipe,
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    workers: Workers,
    as_json: bool,
) -> int:
    """Search for what breaks one recipe, in each float format in which it claims something."""
    recipe, chosen = model.recipe, model.given
    named = [arithmetic] if arithmetic else formats(recipe)
    if not named:
        raise InvalidValue(
            "a search must be in a float format in which something is claimed",
            received=f"{recipe.name}, which claims none of them as it is",
            where="precision",
            remedy=_instead_of_a_search(recipe),
        )
    found = []
    searches = search_formats(recipe, named, chosen, longest, work or WORK, workers)
    for each in named:
        with working(f"searching {recipe.name} in {each}"):
            found.append(next(searches))
    if as_json:
        settings = {key: plain(model.settings[key]) for key in chosen}
        facts = {"recipe": recipe.name, "settings": settings}
        facts |= weighting_facts(recipe, chosen)
        print_json({**facts, "results": [found_facts(each) for each in found]})
    else:
        wide.print(precision_table(searched_in_words(recipe, chosen), found))
    return _refuted(found)


def _instead_of_a_search(recipe: Recipe[Any]) -> str:
    """The remedy: a format that the recipe does claim, or `run`, which says how far off it is."""
    names = recipe.claim.claimed(recipe.settings({}))
    clamped = [name for name in names if isinstance(number_system(name), Floating)]
    if clamped:
        return f"name one that it claims: --arithmetic {clamped[0]}"
    return f"transformist run {recipe.name} prints an error bound for an input"


def _lengths_of(
    named: NamedProgram,
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    workers: Workers,
    as_json: bool,
) -> int:
    """Print the largest N of a program in each float format."""
    if work is not None:
        raise InvalidValue(
            "--work must come with a recipe",
            received="--work with a program",
            where="precision",
            remedy="leave it out, or give --max-length",
        )
    floats = [name for name, system in SYSTEMS.items() if isinstance(system, Floating)]
    with working(f"compiling {named.name} for one length after another"):
        most = longest or 2**17
        found = named.largest_lengths([arithmetic] if arithmetic else floats, most, workers)
    facts = {
        "program": named.name,
        "weighting": named.options["weighting"],
        "searched": most,
        "results": [{"arithmetic": key, "largest_length": n} for key, n in found.items()],
    }
    if as_json:
        print_json(facts)
    else:
        wide.print(_lengths_table(facts))
        out.print(
            "the compiler keeps the margins of the format to this N; what is certified in it: "
            f"transformist certify {named.name}",
            markup=False,
        )
    return 0


def _lengths_table(facts: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.title, table.title_justify = escape(f"{facts['program']}, {facts['weighting']}"), "left"
    for heading in ("format", "largest N"):
        table.add_column(heading)
    for row in facts["results"]:
        length = row["largest_length"]
        more = " or more" if length == facts["searched"] else ""
        table.add_row(row["arithmetic"], f"{length:,}{more}" if length else "none")
    return table


def _search_all(
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    settings: Sequence[str],
    workers: Workers,
    as_json: bool,
) -> int:
    """Search the recipes that have a length, one after another, a sixteenth of the work each."""
    if settings:
        raise InvalidValue(
            "--set must come with one recipe",
            received="--set without NAME",
            remedy="name the recipe, or leave --set out",
        )
    only = () if arithmetic is None else (arithmetic,)
    code, rows = 0, []
    for recipe, found in search_all(longest, work or WORK // 16, only, workers):
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
    """The exit code: 1 where a claimed length fails."""
    return int(any(isinstance(each, Breakdown) and each.refutes_the_claim for each in found))
