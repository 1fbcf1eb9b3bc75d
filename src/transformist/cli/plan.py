"""`transformist plan`: how the structured engine evaluates each head of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformist.arithmetic import number_system
from transformist.cli.options import Model, Set
from transformist.cli.printing import Json, out, print_json, shown_warnings, working
from transformist.engines.structured.plans import DRAWN
from transformist.inputs import read_positive, read_settings
from transformist.named import find_model
from transformist.running import plan

if TYPE_CHECKING:
    from transformist.engines.structured import Plan

Given = Annotated[
    str | None,
    typer.Argument(
        metavar="[INPUT]", help="The string; a drawn one when left out.", show_default=False
    ),
]
Format = Annotated[str, typer.Option(help="float64 or float32.", metavar="A")]
Length = Annotated[
    str | None,
    typer.Option(help=f"The length of the drawn string; {DRAWN} when left out.", metavar="n"),
]


def command(
    model: Model,
    given: Given = None,
    length: Length = None,
    arithmetic: Format = "float64",
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """The engine decides on a string: the one given, or one drawn over the alphabet."""
    named = find_model(model, read_settings(settings))
    named.require_strings("the structured engine", "plan")
    system = number_system(arithmetic)
    drawn = None if length is None else read_positive(length, "--length")
    longest = len(given) if given is not None else drawn or DRAWN
    built = named.adapted([given or ""]).built(longest, system).model
    with working(f"evaluating {longest} symbols"), shown_warnings():
        found = plan(built, given, system, drawn)
    if as_json:
        print_json(_facts(named.name, system.name, found))
    else:
        out.print(str(found), markup=False)


def _facts(name: str, arithmetic: str, found: Plan) -> dict[str, Any]:
    heads = [
        {
            "layer": each.layer,
            "head": each.head,
            "weighting": each.attention.weighting,
            "mask": each.attention.mask,
            "method": each.method,
            "why": each.why,
            "cost": each.cost,
        }
        for each in found.heads
    ]
    return {"model": name, "length": found.length, "arithmetic": arithmetic, "heads": heads}
