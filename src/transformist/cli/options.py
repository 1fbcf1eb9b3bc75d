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
# The names are those of WEIGHTINGS, HEADS, TARGETS and POSITION_CODES of the compiler; a test
# compares them. To import the compiler for a line of help would make `run` start a third more
# slowly.
COMPILER_OPTIONS = (
    "max_length (a number, or None), weighting (softmax, average-hard, rightmost-hard), "
    f"arithmetic ({', '.join(SYSTEMS)}), heads (many or one a layer), "
    "positions (a JSON list of names), masks (any, future or none), "
    "reuse (true or false), width (a number), position_codes (quadratic or sinusoidal), whose "
    "sines, cosines and (-1)^i need not be in positions"
)

Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="k=v",
        help="A parameter of the recipe, or an option of the compiler; repeatable. Those of the "
        f"compiler: {COMPILER_OPTIONS}.",
    ),
]
PositionCodes = Annotated[
    str | None,
    typer.Option(
        help="The code by which heads find a position: quadratic, or sinusoidal for narrow "
        "formats, whose sines, cosines and (-1)^i need not be in positions; the same as --set "
        "position_codes=C.",
        metavar="C",
    ),
]
NUMBER_SYSTEMS = f"The number system: {', '.join((*SYSTEMS, *FAMILIES))}"
