"""`transformist list`: the recipes, chapter by chapter, and the packaged programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from transformist.catalogue import recipes
from transformist.claims import COOKBOOK, Recipe
from transformist.cli.printing import Json, out, print_json
from transformist.errors import UnknownName
from transformist.programs import PROGRAMS


def command(
    chapter: Annotated[
        str | None,
        typer.Option(help="Only this chapter, by module or number: feed-forward, 4."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A name of the list is the MODEL of the other commands."""
    facts = _facts(chapter)
    if as_json:
        print_json(facts)
    else:
        out.print(_table(facts))


def _facts(chapter: str | None) -> dict[str, Any]:
    """The recipes of a chapter, by its module or number; all of them, and the programs, for none.

    Raises:
        UnknownName: for a chapter that does not exist.

    """
    chapters = list(dict.fromkeys(each.chapter for each in recipes()))
    numbers = sorted({number for each in recipes() if (number := _chapter_number(each))})
    if chapter is not None and chapter not in (*chapters, *numbers):
        raise UnknownName.among("chapter", chapter, [*chapters, *numbers])
    chosen = [
        {key: getattr(each, key) for key in ("name", "chapter", "section", "document", "summary")}
        for each in recipes()
        if chapter is None or chapter in (each.chapter, _chapter_number(each))
    ]
    programs = [
        {"name": name, "summary": program.description.partition("\n")[0]}
        for name, program in PROGRAMS.items()
        if chapter is None
    ]
    return {"recipes": chosen, "programs": programs}


def _table(facts: Mapping[str, Any]) -> Table:
    rows = [(each["name"], _place(each), each["summary"]) for each in facts["recipes"]]
    rows += [(f"programs/{each['name']}", "", each["summary"]) for each in facts["programs"]]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("name", min_width=max(len(name) for name, _, _ in rows))
    for heading in ("section", "computes"):
        table.add_column(heading)
    for name, place, summary in rows:
        table.add_row(name, place, escape(summary))
    return table


def _place(row: Mapping[str, str]) -> str:
    """The section of a recipe of the Cookbook; the document of another."""
    return row["section"] if row["document"] == COOKBOOK else row["document"].split(" (")[0]


def _chapter_number(recipe: Recipe[Any]) -> str | None:
    """The number of the chapter of the Cookbook; `None` for a recipe of another document."""
    section = recipe.cookbook_section
    return None if section is None else section.split(".")[0]
