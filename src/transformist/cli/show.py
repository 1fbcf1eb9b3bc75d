"""`transformist show`: the claim, the parameters, the size and the slots of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from transformist.cli.options import Model, Set
from transformist.cli.printing import Json, out, print_json, warn, working
from transformist.inputs import read_settings
from transformist.named import find_model
from transformist.named.named_model import NamedModel
from transformist.named.named_recipe import NamedRecipe

Weights = Annotated[
    bool,
    typer.Option("--weights", help="Print every matrix, with named rows and columns, instead."),
]
Plot = Annotated[
    str | None,
    typer.Option(
        help="Draw the circuit of a model on strings, or the matrices of another, in this file "
        "(.svg, .pdf or .png), instead.",
        metavar="FILE",
        show_default=False,
    ),
]


def command(
    name: Model,
    settings: Set = [],  # noqa: B006
    weights: Weights = False,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Beside the claim of a recipe stands the first length at which each format was seen to fail.

    Only short inputs are searched; `precision` searches longer ones.
    """
    named = find_model(name, read_settings(settings))
    if plot is not None:
        _draw(named, plot, as_json)
        return
    if weights:
        _print_weights(named, as_json)
        return
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


def _print_weights(named: NamedModel, as_json: bool) -> None:
    """Print every matrix of a model; of large ones the rows and columns that are not all zero."""
    from transformist.report.weights_report import weights_facts, weights_text

    with working(f"building {named.name}"):
        if isinstance(named, NamedRecipe):
            table = named.recipe.construct(**named.settings).weights_table()
        else:
            model = named.shown()
            warn(named.shortened(model.max_length))
            table = model.weights_table()
    if as_json:
        print_json(weights_facts(named.name, table))
    else:
        out.print(weights_text(table), end="")


def _draw(named: NamedModel, file: str, as_json: bool) -> None:
    """Write a figure of a model to a file, and print the description that goes with it."""
    from transformist.figures import circuit, write
    from transformist.figures import weights as matrices
    from transformist.figures.canvas import require_plot

    require_plot(file, "--plot")
    with working(f"drawing {named.name}"):
        if isinstance(named, NamedRecipe):
            model = named.recipe.construct(**named.settings)
        else:
            model = named.shown()
        figure = circuit(model) if named.takes_strings else matrices(model)
        write(figure, file)
    if as_json:
        print_json({"name": named.name, "figure": file, "description": figure.get_label()})
    else:
        out.print(f"wrote {file}", markup=False)
