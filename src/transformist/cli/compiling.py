"""`transformist compile`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformist.cli.options import Set
from transformist.cli.printing import Json, out, print_json, warn, working
from transformist.hosts import save
from transformist.inputs import read_settings
from transformist.named import named_program
from transformist.report import compiled_facts, compiled_in_words


def compile_command(
    program: Annotated[
        str,
        typer.Argument(
            help="FILE.py:NAME, a function below @tf.program, or programs/NAME.", metavar="PROGRAM"
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="F", help="The file; what is there is replaced."),
    ],
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Compile a program to the weights of a transformer, and save them."""
    named, chosen = named_program(program), read_settings(settings)
    with working(f"compiling {named.name}"):
        model = named.compiled(chosen)
        save(model, output)
    warn(named.shortened(chosen, model.max_length))
    facts = compiled_facts(named.name, str(output), model, named.options(chosen)["weighting"])
    if as_json:
        print_json(facts)
    else:
        out.print(compiled_in_words(facts), markup=False)
