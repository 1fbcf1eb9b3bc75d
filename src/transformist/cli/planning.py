"""`transformist plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from transformist.arithmetic import number_system
from transformist.cli.options import Model, Set
from transformist.cli.printing import Json, out, print_json, shown_warnings, working
from transformist.engines.structured.plans import DRAWN
from transformist.inputs import read_positive, read_settings
from transformist.named import named_model
from transformist.report import plan_facts
from transformist.running import plan

Given = Annotated[
    str | None,
    typer.Argument(
        metavar="[INPUT]", help="The string; a drawn one when left out.", show_default=False
    ),
]
Format = Annotated[str, typer.Option(help="float64 or float32.", metavar="A")]
Length = Annotated[
    str | None,
    typer.Option(help=f"How long the drawn string is; {DRAWN} when left out.", metavar="n"),
]


def plan_command(
    model: Model,
    given: Given = None,
    length: Length = None,
    arithmetic: Format = "float64",
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Say how the structured engine evaluates each head, why, and how its time grows.

    It is what the engine finds on a string: the one given, or one drawn over the alphabet.
    """
    named, chosen = named_model(model), read_settings(settings)
    named.require_strings("the structured engine", "plan")
    system = number_system(arithmetic)
    drawn = None if length is None else read_positive(length, "--length")
    longest = len(given) if given is not None else drawn or DRAWN
    built = named.prepared(named.adapted(chosen, [given or ""]), longest, system).model
    with working(f"evaluating {longest} symbols"), shown_warnings():
        found = plan(built, given, system, drawn)
    if as_json:
        print_json(plan_facts(named.name, system.name, found))
        return
    out.print(str(found), markup=False)
