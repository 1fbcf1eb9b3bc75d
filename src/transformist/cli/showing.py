"""`transformist show`."""

from __future__ import annotations

from transformist.cli.options import Model, Set
from transformist.cli.printing import Json, out, print_json, warn, working
from transformist.inputs import read_settings
from transformist.named import named_model


def show(name: Model, settings: Set = [], as_json: Json = False) -> None:  # noqa: B006
    """Show what a recipe claims and takes, or what a compiled or saved model is; and its size."""
    named, chosen = named_model(name), read_settings(settings)
    with working(f"reading and measuring {named.name}"):
        facts = named.facts(chosen)
    warn(named.shortened(chosen, facts.get("max_length")))
    if as_json:
        print_json(facts)
        return
    out.print(named.table(facts))
