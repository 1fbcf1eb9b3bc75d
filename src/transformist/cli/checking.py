"""`transformist check`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from transformist.arithmetic import number_system
from transformist.catalogue import recipes
from transformist.claims import Settings
from transformist.cli.options import NUMBER_SYSTEMS, Set
from transformist.cli.printing import Json, err, out, print_json, warn, working
from transformist.errors import InvalidValue
from transformist.inputs import load_function, read_length, read_seconds, read_settings
from transformist.named import Named, caution, named_model
from transformist.programs import PROGRAMS
from transformist.report import verdict_facts, verdict_line
from transformist.user_code import TIMEOUT
from transformist.verify import (
    Verdict,
    check,
    check_programs,
    check_recipes,
    length_within,
    require_feasible,
)

Checked = Annotated[
    str | None,
    typer.Argument(
        help="A recipe's name, programs/NAME, FILE.py:NAME, or, with --against, a saved file; "
        "every recipe and packaged program when left out.",
        metavar="[MODEL]",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py:NAME",
        help="Compare with this Python function of a string, or with programs/NAME.",
    ),
]
Longest = Annotated[
    str | None,
    typer.Option(
        "--max-length",
        help="Try every string up to this length; when left out, up to the length to which "
        "there are some thousand, and of a recipe besides hard and drawn ones.",
        metavar="n",
        show_default=False,
    ),
]
InArithmetic = Annotated[str, typer.Option(help=f"{NUMBER_SYSTEMS}.", metavar="A")]

Timeout = Annotated[
    str | None,
    typer.Option(
        help="How long the function of --against may take for one input, and its file to run; "
        f"{TIMEOUT:g} when left out.",
        metavar="SECONDS",
        show_default=False,
    ),
]


def check_command(
    model: Checked = None,
    against: Against = None,
    length: Longest = None,
    settings: Set = [],  # noqa: B006
    arithmetic: InArithmetic = "float64",
    timeout: Timeout = None,
    as_json: Json = False,
) -> int:
    """Test what recipes claim, each from its own claim, and programs against what is compiled.

    Exit code 1 when one does not hold. --set and --arithmetic go with --against, which tests one
    model on every string. A program is compiled with softmax, evaluated in float32, and with
    average-hard attention, evaluated in exact arithmetic.
    """
    named = None if model is None else named_model(model)
    max_length = None if length is None else read_length(length)
    if against is not None:
        chosen = read_settings(settings)
        seconds = TIMEOUT if timeout is None else read_seconds(timeout, "--timeout")
        reference = load_function(against, seconds)
        return _told([_check_against(named, reference, chosen, arithmetic, max_length)], as_json)
    if settings or arithmetic != "float64":
        raise InvalidValue(
            "--set and --arithmetic must come with --against: a claim is checked in every "
            "arithmetic and setting it names",
            received="one of them without --against",
            remedy="leave them out, or give --against FILE.py:NAME",
        )
    if timeout is not None:
        raise InvalidValue(
            "--timeout must come with --against, whose function it limits",
            received="--timeout without --against",
            remedy="leave it out, or give --against FILE.py:NAME",
        )
    if named is None:
        return _told(_every_verdict(max_length), as_json)
    with working(f"checking {named.name}"):
        verdict = named.verdict(max_length)
    return _told([verdict], as_json)


def _told(verdicts: Iterable[Verdict], as_json: bool) -> int:
    """Print verdicts as they come; 1 where one does not hold."""
    held, rows = True, []
    for verdict in verdicts:
        held = held and verdict.held
        if as_json:
            rows.append(verdict_facts(verdict))
        else:
            out.print(verdict_line(verdict))
    if as_json:
        print_json({"held": held, "recipes": rows})
    return 0 if held else 1


def _every_verdict(max_length: int | None) -> Iterator[Verdict]:
    """Of the recipes and the packaged programs; with a bar where standard error is a terminal."""
    names = [each.name for each in recipes()]
    columns = (
        TextColumn("checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[name]}"),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("", total=len(names) + len(PROGRAMS), name="")
        for verdict in itertools.chain(
            check_recipes(names, max_length), check_programs(max_length)
        ):
            progress.update(task, advance=1, name=verdict.name)
            yield verdict


def _check_against(
    named: Named | None,
    reference: Callable[[Any], Any],
    settings: Settings,
    arithmetic: str,
    max_length: int | None,
) -> Verdict:
    if named is None or not named.takes_strings:
        raise InvalidValue(
            "--against must come with one model on strings",
            received="the whole catalogue" if named is None else named.name,
            remedy="name a recipe on strings, such as dyck-1, a program, or a saved file",
        )
    symbols = len(named.alphabet(settings))
    length = length_within(AGAINST, symbols) if max_length is None else max_length
    require_feasible(length, symbols)
    system = number_system(arithmetic)
    model = named.transformer(settings, length, system)
    if max_length is None and model.max_length is not None:
        length = min(length, model.max_length)
    if not named.is_certified(system, "reference"):
        warn(caution(named.name, model, system))
    with working(f"checking every string to length {length} over {symbols} symbols"):
        return replace(check(model, reference, length, system), name=named.name)


AGAINST = 2**14
"""About how many strings --against tries where --max-length is left out."""
