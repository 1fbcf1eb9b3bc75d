"""What there is: the recipes, chapter by chapter, and the packaged programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from transformist.catalogue import recipes
from transformist.claims import COOKBOOK, Recipe
from transformist.errors import UnknownName
from transformist.programs import PROGRAMS


def contents_facts(chapter: str | None = None) -> dict[str, Any]:
    """The recipes, and the programs where no chapter is asked for.

    Args:
        chapter: of which to list the recipes, by module or by number.

    Raises:
        UnknownName: for a chapter that does not exist.

    """
    chapters = list(dict.fromkeys(each.chapter for each in recipes()))
    numbers = sorted({number for each in recipes() if (number := _chapter_number(each))})
    if chapter is not None and chapter not in (*chapters, *numbers):
        raise UnknownName.among("chapter", chapter, [*chapters, *numbers])
    chosen = [
        {
            "name": each.name,
            "chapter": each.chapter,
            "section": each.section,
            "document": each.document,
            "summary": each.summary,
        }
        for each in recipes()
        if chapter is None or chapter in (each.chapter, _chapter_number(each))
    ]
    programs = [
        {"name": name, "summary": program.description.partition("\n")[0]}
        for name, program in PROGRAMS.items()
        if chapter is None
    ]
    return {"recipes": chosen, "programs": programs}


def contents_table(facts: Mapping[str, Any]) -> Table:
    """The recipes and programs for a person."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    rows = []
    for row in facts["recipes"]:
        where = row["section"] if row["document"] == COOKBOOK else row["document"].split(" (")[0]
        rows.append((row["name"], where, escape(row["summary"])))
    for row in facts["programs"]:
        rows.append((f"programs/{row['name']}", "", escape(row["summary"])))
    table.add_column("name", min_width=max(len(name) for name, _, _ in rows))
    for heading in ("section", "computes"):
        table.add_column(heading)
    for each in rows:
        table.add_row(*each)
    return table


def _chapter_number(recipe: Recipe[Any]) -> str | None:
    """The number of the chapter of the Cookbook, `None` where it is from another document."""
    section = recipe.cookbook_section
    return None if section is None else section.split(".")[0]
