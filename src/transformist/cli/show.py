"""`transformist show`: the claim, the parameters, the size and the slots of a model."""

from __future__ import annotations

from transformist.cli.options import Model, Set
from transformist.cli.printing import Json, out, print_json, warn, working
from transformist.inputs import read_settings
from transformist.named import find_model
from transformist.named.named_recipe import NamedRecipe


def command(name: Model, settings: Set = [], as_json: Json = False) -> None:  # noqa: B006
    """Beside the claim of a recipe stands the first length at which each format was seen to fail.

    Only short inputs are searched; `precision` searches longer ones.
    """
    named = find_model(name, read_settings(settings))
    with working(f"reading and measuring {named.name}"):
        if isinstance(named, NamedRecipe):
            from transformist.report.recipe_sheet import recipe_facts, recipe_table

            facts, table = recipe_facts(named.recipe, named.given), recipe_table
        else:
            from transformist.report.model_sheet import model_facts, model_table

            facts, table = model_facts(named.name, named.shown()), model_table
    warn(named.shortened(facts.get("max_length")))
    if as_json:
        print_json(facts)
    else:
        out.print(table(facts))
