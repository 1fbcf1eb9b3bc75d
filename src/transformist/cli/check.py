"""`transformist check`: claims against weights, and models against functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from transformist.arithmetic import number_system
from transformist.catalogue import recipes
from transformist.cli.options import NUMBER_SYSTEMS, Set
from transformist.cli.piece_progress import pieces_shown
from transformist.cli.printing import Json, err, out, print_json, shown_warnings, warn, working
from transformist.cli.workers_given import Address, Backend, read_workers
from transformist.errors import InvalidValue
from transformist.inputs import read_length, read_seconds, read_settings, read_whole
from transformist.model import Transformer
from transformist.named import NamedModel, find_model
from transformist.named.named_program import NamedProgram
from transformist.named.named_recipe import NamedRecipe
from transformist.programs import PROGRAMS
from transformist.report.values import finite_or_words, plain
from transformist.user_code import TIMEOUT
from transformist.user_files import load_function
from transformist.verify import (
    LONGEST_DRAWN,
    Coverage,
    Drawn,
    Verdict,
    Workers,
    check,
    check_program,
    check_programs,
    check_recipe,
    check_recipes,
    length_within,
    require_feasible,
    sample,
    shortest_input,
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
        help="Try every string up to this length. When left out, up to a length with some "
        "thousand strings; a recipe is then also tried on hard and drawn ones.",
        metavar="n",
        show_default=False,
    ),
]
InArithmetic = Annotated[str, typer.Option(help=f"{NUMBER_SYSTEMS}.", metavar="A")]

JournalFile = Annotated[
    str | None,
    typer.Option(
        "--journal",
        help="Record finished pieces of the check in this file; the same command goes on from "
        "there.",
        metavar="FILE",
        show_default=False,
    ),
]
DrawnCount = Annotated[
    str | None,
    typer.Option(
        "--drawn",
        help="Number of drawn strings, which are tried after all short ones.",
        metavar="K",
        show_default=False,
    ),
]
DrawnLength = Annotated[
    str | None,
    typer.Option(
        help=f"Length of the longest drawn strings. When left out, {LONGEST_DRAWN}, or N if that "
        "is less.",
        metavar="n",
        show_default=False,
    ),
]
Seed = Annotated[
    str | None,
    typer.Option(help="Seed of the drawn strings. When left out, 0.", show_default=False),
]
Jobs = Annotated[
    str | None,
    typer.Option(
        help="Number of processes. When left out, one for one model, and one for each processor "
        "for the whole catalogue.",
        metavar="N",
        show_default=False,
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        help="How long the function of --against may take for one input, and its file to run; "
        f"{TIMEOUT:g} when left out.",
        metavar="SECONDS",
        show_default=False,
    ),
]


def command(
    model: Checked = None,
    against: Against = None,
    length: Longest = None,
    settings: Set = [],  # noqa: B006
    arithmetic: InArithmetic = "float64",
    timeout: Timeout = None,
    journal: JournalFile = None,
    drawn: DrawnCount = None,
    drawn_length: DrawnLength = None,
    seed: Seed = None,
    jobs: Jobs = None,
    backend: Backend = None,
    address: Address = None,
    as_json: Json = False,
) -> int:
    """Exit code 1 when a claim does not hold.

    --set, --arithmetic, --journal and --drawn go with --against, which tests one model on every
    string; --jobs and --backend with --against, or with the whole catalogue. A program is compiled
    with softmax, evaluated in float32, and with average-hard attention, evaluated in exact
    arithmetic.
    """
    named = None if model is None else find_model(model, read_settings(settings))
    max_length = None if length is None else read_length(length)
    workers = read_workers(jobs, backend, address)
    if against is not None:
        if drawn is None and (drawn_length is not None or seed is not None):
            raise InvalidValue(
                "--drawn-length and --seed must come with --drawn",
                received="one of them without --drawn",
                remedy="give --drawn K, the number of drawn strings, or leave it out",
            )
        seconds = TIMEOUT if timeout is None else read_seconds(timeout, "--timeout")
        reference = load_function(against, seconds)
        asked = _Asked(
            arithmetic,
            max_length,
            journal,
            0 if drawn is None else read_whole(drawn, "--drawn"),
            None if drawn_length is None else read_whole(drawn_length, "--drawn-length"),
            0 if seed is None else read_whole(seed, "--seed"),
            workers,
        )
        return _print_verdicts([_verdict_against(named, reference, asked)], as_json)
    _refuse_without_against(journal, drawn, drawn_length, seed)
    _refuse_settings(is_given=bool(settings) or arithmetic != "float64", timeout=timeout)
    if named is None:
        return _print_verdicts(_every_verdict(max_length, workers), as_json)
    for option, value in {"--jobs": jobs, "--backend": backend, "--address": address}.items():
        if value is not None:
            raise InvalidValue(
                f"{option} must come with --against, or without MODEL",
                received=f"{option} {value} with {named.name}",
                remedy="leave it out, or give --against FILE.py:NAME",
            )
    with working(f"checking {named.name}"), shown_warnings():
        verdict = _verdict(named, max_length)
    code = _print_verdicts([verdict], as_json)
    if isinstance(named, NamedProgram) and verdict.held and not as_json:
        out.print(
            "    the weights compute what the program says; to compare it with a function of your "
            f"own: transformist check {named.name} --against FILE.py:NAME",
            markup=False,
        )
    return code


def _refuse_settings(is_given: bool, timeout: str | None) -> None:
    """Refuse --set, --arithmetic and --timeout without --against."""
    if is_given:
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


def _refuse_without_against(*given: str | None) -> None:
    """Refuse the options of drawn strings and of a journal without --against."""
    options = "--journal", "--drawn", "--drawn-length", "--seed"
    for option, value in zip(options, given, strict=True):
        if value is not None:
            raise InvalidValue(
                f"{option} must come with --against, which checks one model on strings",
                received=f"{option} {value} without --against",
                remedy="leave it out, or give --against FILE.py:NAME",
            )


def _verdict(named: NamedModel, max_length: int | None) -> Verdict:
    """Check a model against its own claim, or against the interpretation of its program."""
    if isinstance(named, NamedRecipe):
        return check_recipe(named.recipe, max_length)
    if isinstance(named, NamedProgram):
        return check_program(named.name, named.program, max_length)
    raise InvalidValue(
        "a saved model must be compared with a function or a program",
        received="no --against",
        where=named.name,
        remedy="give --against FILE.py:NAME, or --against programs/NAME",
    )


def _print_verdicts(verdicts: Iterable[Verdict], as_json: bool) -> int:
    """Print each verdict when it is ready, and return the exit code."""
    held, rows = True, []
    for verdict in verdicts:
        held = held and verdict.held
        if as_json:
            rows.append(_facts(verdict))
        else:
            out.print(_lines(verdict))
    if as_json:
        print_json({"held": held, "recipes": rows})
    return 0 if held else 1


def _facts(verdict: Verdict) -> dict[str, Any]:
    found = verdict.counterexample
    counterexample = found and {
        "input": plain(found.input),
        "expected": plain(finite_or_words(found.expected)),
        "got": plain(finite_or_words(found.got)),
        "arithmetic": found.arithmetic,
        "settings": found.settings,
    }
    return {
        "name": verdict.name,
        "held": verdict.held,
        "cases": verdict.cases,
        "arithmetics": list(verdict.arithmetics),
        "covered": verdict.covered,
        "coverage": [_covered_facts(each) for each in verdict.coverage],
        "counterexample": counterexample,
    }


def _covered_facts(coverage: Coverage) -> dict[str, Any]:
    every, drawn = coverage.every, coverage.drawn
    return {
        "arithmetic": coverage.arithmetic,
        "cases": coverage.cases,
        "inputs": coverage.inputs,
        "settings": {name: plain(value) for name, value in coverage.settings.items()},
        "every": every and {"shortest": every[0], "longest": every[1]},
        "drawn": drawn and asdict(drawn),
        "pieces": coverage.pieces,
        "from_journal": coverage.from_journal,
    }


def _lines(verdict: Verdict) -> str:
    """A verdict in rich's markup: a line, and the counterexample in another."""
    mark = "[green]held[/]" if verdict.held else "[red]FAILED[/]"
    line = (
        f"{verdict.name:<28} {mark}  {verdict.cases:>6} inputs in "
        f"{', '.join(verdict.arithmetics)}; {escape(verdict.covered)}"
    )
    recorded = sum(each.from_journal for each in verdict.coverage)
    if recorded:
        pieces = sum(each.pieces for each in verdict.coverage)
        line += f"; {recorded} of {pieces} pieces from the journal"
    if verdict.counterexample is None:
        return line
    return f"{line}\n    {escape(str(verdict.counterexample))}"


def _every_verdict(max_length: int | None, workers: Workers) -> Iterator[Verdict]:
    """Check the recipes and the packaged programs; a terminal shows a bar on standard error."""
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
            check_recipes(names, max_length, workers), check_programs(max_length, workers)
        ):
            progress.update(task, advance=1, name=verdict.name)
            yield verdict


AGAINST = 2**14
"""About this many strings are tried with --against where --max-length is left out."""


@dataclass(frozen=True)
class _Asked:
    """Options of a check against a function."""

    arithmetic: str
    max_length: int | None
    journal: str | None
    drawn: int
    drawn_length: int | None
    seed: int
    workers: Workers

    def draws(self, model: Transformer) -> Drawn:
        """The drawn strings, of lengths that the model takes."""
        longest = self.drawn_length
        if longest is None:
            longest = min(LONGEST_DRAWN, model.max_length or LONGEST_DRAWN)
        return Drawn(self.drawn, shortest_input(model), longest, self.seed)


@contextmanager
def _journal_named(journal: str | None) -> Iterator[None]:
    """Say on Ctrl-C that the finished pieces are in the journal."""
    try:
        yield
    except KeyboardInterrupt:
        if journal is not None:
            err.print(
                f"finished pieces are kept in {journal}; the same command goes on", markup=False
            )
        raise


def _verdict_against(
    named: NamedModel | None, reference: Callable[[Any], Any], asked: _Asked
) -> Verdict:
    """Check a model against a function on every string."""
    if named is None or not named.takes_strings:
        raise InvalidValue(
            "--against must come with one model on strings",
            received="the whole catalogue" if named is None else named.name,
            remedy="name a recipe on strings, such as dyck-1, a program, or a saved file",
        )
    system, max_length = number_system(asked.arithmetic), asked.max_length
    symbols = len(named.alphabet(1, system))
    length = length_within(AGAINST, symbols) if max_length is None else max_length
    require_feasible(
        length,
        symbols,
        asked.journal is not None,
        lambda: sample(
            named.transformer(length_within(AGAINST, symbols), system), reference, system
        ),
    )
    longest = asked.drawn_length
    if longest is None and asked.drawn:
        longest = LONGEST_DRAWN
    model = named.transformer(max(length, longest or 0), system)
    if max_length is None and model.max_length is not None:
        length = min(length, model.max_length)
    warn(named.caution(model, system, "reference"))
    shown = pieces_shown(f"checking every string to length {length} over {symbols} symbols")
    with shown as show, _journal_named(asked.journal):
        verdict = check(
            model,
            reference,
            length,
            system,
            drawn=asked.draws(model),
            journal=asked.journal,
            jobs=asked.workers.jobs,
            backend=asked.workers.backend,
            address=asked.workers.address,
            progress=show,
        )
    return replace(verdict, name=named.name)
