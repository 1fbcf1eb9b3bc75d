"""`transformist compile`: a program into the weights of a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from transformist.cli.large_programs import warn_of_symbols, warn_of_weights
from transformist.cli.options import PositionCodes, Set
from transformist.cli.printing import Json, out, print_json, shown_warnings, warn, working
from transformist.hosts import save
from transformist.hosts.saved_model import model_path
from transformist.inputs import read_settings, with_options
from transformist.model import Transformer
from transformist.named import find_program
from transformist.report.size import Size, size
from transformist.rounding import float_format_of
from transformist.verify.certificate import grade_of


def command(
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
    max_length: Annotated[
        str | None,
        typer.Option("--max-length", help="The same as --set max_length=N.", metavar="N"),
    ] = None,
    arithmetic: Annotated[
        str | None, typer.Option(help="The same as --set arithmetic=A.", metavar="A")
    ] = None,
    masks: Annotated[
        str | None,
        typer.Option(
            help="The masks of the host: any, future (a causal decoder), none (an encoder); the "
            "same as --set masks=M.",
            metavar="M",
        ),
    ] = None,
    no_reuse: Annotated[
        bool,
        typer.Option("--no-reuse", help="A slot for each number; the same as --set reuse=false."),
    ] = False,
    width: Annotated[
        str | None,
        typer.Option(
            help="The width of the residual stream, at least that of the numbers, which is taken "
            "when it is left out; the same as --set width=D.",
            metavar="D",
        ),
    ] = None,
    position_codes: PositionCodes = None,
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """The file keeps the weights exactly, and is a MODEL of the other commands.

    `transformist certify FILE -o FILE` saves a certificate with them.
    """
    reuse = "false" if no_reuse else None
    options = {
        "max_length": max_length,
        "arithmetic": arithmetic,
        "masks": masks,
        "reuse": reuse,
        "width": width,
        "position_codes": position_codes,
    }
    model_path(output, "-o")  # before the model is compiled, which may take minutes
    named = find_program(program, with_options(read_settings(settings), options))
    warn_of_symbols(len(named.program.alphabet), "compiling", "leaves no file")
    with working(f"compiling {named.name}"), shown_warnings():
        model = named.compiled()
        save(model, output)
    warn(named.shortened(model.max_length))
    grade = _certified(model, output)
    facts = {
        "program": named.name,
        "file": str(output),
        **asdict(size(model)),
        "max_length": model.max_length,
        "weighting": named.options["weighting"],
        "arithmetic": model.built_for,
        "grade": grade,
    }
    if as_json:
        print_json(facts)
    else:
        out.print(_line(facts), markup=False)


def _certified(model: Transformer, output: Path) -> int | None:
    """Return the grade of the certificate for the N and the format that a model is compiled for.

    It is 0, with a warning, where the compiler accepts a program that no certificate follows; and
    `None` for a model without N, or for an arithmetic without certificates.
    """
    arithmetic = model.built_for
    if model.max_length is None or arithmetic is None or float_format_of(arithmetic) is None:
        return None
    warn_of_symbols(len(model.alphabet), "certifying", "keeps the saved file")
    warn_of_weights(model, "keeps the saved file")
    with working(f"certifying it for {arithmetic}"):
        grade, stopped = grade_of(model, arithmetic)
    if not grade:
        warn(
            f"no certificate follows it in {arithmetic} to N = {model.max_length} ({stopped}): "
            f"answers need not be wrong; transformist certify {output} looks for a smaller N"
        )
    return grade


def _line(facts: Mapping[str, Any]) -> str:
    longest = "any length" if facts["max_length"] is None else f"N = {facts['max_length']}"
    built = f"{longest}, {facts['weighting']}, {facts['arithmetic']}"
    if facts["grade"]:
        built += f", certified (grade {facts['grade']})"
    return f"{facts['program']} → {facts['file']}: {Size.of_facts(facts)}; {built}"
