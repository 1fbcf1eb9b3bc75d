"""`transformist show`: the claim, the parameters, the size and the slots of a model.

A place of the Cookbook, such as 5.7 or lemma-5.3, is answered with what realises it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from transformist.catalogue.cookbook_place import find_places, is_place
from transformist.cli.options import Set
from transformist.cli.printing import Json, out, print_json, warn, working
from transformist.errors import InvalidValue
from transformist.inputs import read_settings
from transformist.named import find_model
from transformist.named.named_model import NamedModel
from transformist.named.named_recipe import NamedRecipe

ModelOrPlace = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A recipe's name, a packaged program (programs/NAME), a program in a file "
        "(FILE.py:NAME), a saved file, or a place of the Cookbook (5.7, lemma-5.3, equation-25, "
        "table-2).",
    ),
]
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
    name: ModelOrPlace,
    settings: Set = [],  # noqa: B006
    weights: Weights = False,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Beside the claim of a recipe stands the first length at which each format was seen to fail.

    Only short inputs are searched; `precision` searches longer ones.
    """
    if is_place(name) and not Path(name).exists():
        _show_places(name, {"--set": settings, "--weights": weights, "--plot": plot}, as_json)
        return
    named = find_model(name, read_settings(settings))
    if plot is not None and weights:
        raise InvalidValue(
            "--weights and --plot must come one at a time",
            received="both",
            remedy="leave one of the two out",
        )
    if plot is not None:
        _draw(named, plot, as_json)
        return
    if weights:
        _print_weights(named, as_json)
        return
    with working(f"reading and measuring {named.name}"):
        if isinstance(named, NamedRecipe):
            from transformist.report.recipe_sheet import recipe_facts, recipe_table

            facts = recipe_facts(named.recipe, named.given)
            table = recipe_table(facts)
        else:
            from transformist.report.model_sheet import model_facts, model_table

            facts = model_facts(named.name, named.shown())
            table = model_table(facts)
    warn(named.shortened(facts.get("max_length")))
    if as_json:
        print_json(facts)
    else:
        out.print(table)


def _show_places(name: str, options: Mapping[str, object], as_json: bool) -> None:
    """Print what realises the places of the Cookbook that a name refers to.

    Raises:
        UnknownName: for a place that the paper does not have.
        InvalidValue: for an option that only models have.

    """
    from transformist.report.place_table import place_facts, place_lines

    places = find_places(name)
    for option, given in options.items():
        if given:
            raise InvalidValue(
                f"{option} must come with a model",
                received=f"{option} with {places[0]}, a place of the Cookbook",
                remedy=f"choose one of the recipes that transformist show {name} lists",
            )
    facts = place_facts(places)
    if as_json:
        print_json({"places": facts})
    else:
        for line in place_lines(facts):
            out.print(line)


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
