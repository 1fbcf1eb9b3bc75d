"""`transformist list`."""

from __future__ import annotations

from typing import Annotated

import typer

from transformist.cli.printing import Json, out, print_json
from transformist.report import contents_facts, contents_table


def list_recipes(
    chapter: Annotated[
        str | None,
        typer.Option(help="Only this chapter, by module or number: feed-forward, 4."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the recipes, chapter by chapter, and the packaged programs."""
    facts = contents_facts(chapter)
    if as_json:
        print_json(facts)
        return
    out.print(contents_table(facts))
