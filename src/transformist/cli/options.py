"""Arguments and options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from transformist.arithmetic import FAMILIES, SYSTEMS

Model = Annotated[
    str,
    typer.Argument(
        help="A recipe's name, a packaged program (programs/NAME), a program in a file "
        "(FILE.py:NAME), or a saved file; `list` has the names.",
        metavar="MODEL",
        show_default=False,
    ),
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="k=v",
        help="A parameter of the recipe (`show NAME` lists them), or an option of the compiler "
        "(`compile --help` lists them); repeatable.",
    ),
]
NUMBER_SYSTEMS = f"The number system: {', '.join((*SYSTEMS, *FAMILIES))}"
