"""`transformist list`: the recipes, chapter by chapter, and the packaged programs."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from transformist.catalogue import recipes
from transformist.claims import COOKBOOK, Recipe
from transformist.cli.printing import Json, out, print_json
from transformist.errors import UnknownName
from transformist.programs import PROGRAMS

PROGRAMS_ALONE = "programs"
"""The chapter of the packaged programs."""

HEADINGS = {"finite": "saturating arithmetic", "original": "the original transformer"}
"""Headings of chapters that are not the names of their modules."""


def command(
    chapter: Annotated[
        str | None,
        typer.Option(
            help="Only this chapter or section, by module or number (feed-forward, 4, 5.3), or "
            "only the packaged programs (programs).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """A name of the list is the MODEL of the other commands."""
    facts = _facts(chapter)
    if as_json:
        print_json(facts)
    else:
        for line in _lines(facts, shutil.get_terminal_size((0, 0)).columns):
            out.print(line)


def _facts(chapter: str | None) -> dict[str, Any]:
    """The recipes of a chapter or a section; without one, all recipes and programs.

    Raises:
        UnknownName: for a chapter that does not exist.

    """
    names: dict[str, None] = {}
    chosen = []
    for each in recipes():
        places = _chapters(each)
        names |= dict.fromkeys(places)
        if chapter is None or chapter in places:
            keys = ("name", "chapter", "section", "document", "summary")
            chosen.append({key: getattr(each, key) for key in keys})
    programs = [
        {"name": name, "summary": program.description.partition("\n")[0]}
        for name, program in PROGRAMS.items()
        if chapter in (None, PROGRAMS_ALONE)
    ]
    if not chosen and not programs:
        raise UnknownName.among("chapter", str(chapter), [*sorted(names), PROGRAMS_ALONE])
    return {"recipes": chosen, "programs": programs}


def _lines(facts: Mapping[str, Any], width: int) -> Iterator[Text]:
    """A line for each model below the heading of its chapter, cut at a width other than 0."""
    rows = [
        (
            HEADINGS.get(each["chapter"], each["chapter"]),
            each["name"],
            _place(each),
            each["summary"],
        )
        for each in facts["recipes"]
    ]
    rows += [
        ("programs", f"programs/{each['name']}", "", each["summary"]) for each in facts["programs"]
    ]
    longest = max(len(name) for _, name, _, _ in rows)
    for number, (heading, group) in enumerate(itertools.groupby(rows, lambda row: row[0])):
        lines = list(group)
        sections = max(len(place) for _, _, place, _ in lines)
        yield Text(("\n" if number else "") + heading, style="bold")
        for _, name, place, summary in lines:
            line = Text(
                f"  {name:{longest}}  {place:{sections}}{'  ' if sections else ''}{summary}"
            )
            if width:
                line.truncate(width, overflow="ellipsis")
            yield line


def _place(row: Mapping[str, str]) -> str:
    """The section of a recipe of the Cookbook; the document of another."""
    return row["section"] if row["document"] == COOKBOOK else row["document"].split(" (")[0]


def _chapters(recipe: Recipe[Any]) -> list[str]:
    """The chapters that a recipe is listed under: its module, and its section with those above."""
    section = recipe.cookbook_section
    if section is None:
        return [recipe.chapter]
    numbers = section.split(".")
    return [recipe.chapter, *(".".join(numbers[: k + 1]) for k in range(len(numbers)))]
