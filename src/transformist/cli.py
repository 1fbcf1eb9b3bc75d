"""The command line: each command parses, calls, and prints."""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Optional, TextIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from transformist import __version__
from transformist.answers import answer_in_numbers
from transformist.arithmetic import FAMILIES, SYSTEMS, Floating, number_system
from transformist.arithmetic import Arithmetic as NumberSystem
from transformist.bench import CASES, machine, measurements
from transformist.catalogue import recipe as find_recipe
from transformist.catalogue import recipes
from transformist.claims import (
    Finding,
    PositionClaim,
    Recipe,
    Settings,
)
from transformist.compiler import HEADS, WEIGHTINGS
from transformist.errors import (
    InvalidValue,
    TransformistError,
    UnknownName,
    UnreadableInput,
)
from transformist.hosts import load, load_certificates, save
from transformist.inputs import (
    load_function,
    read_length,
    read_positive,
    read_settings,
)
from transformist.model import Trace, Transformer
from transformist.named import (
    Named,
    NamedProgram,
    NamedRecipe,
    caution,
    named_model,
    named_program,
)
from transformist.programs import PROGRAMS
from transformist.report import (
    answer_in_words,
    bench_table,
    certificate_facts,
    certificate_table,
    compiled_facts,
    compiled_in_words,
    contents_facts,
    contents_table,
    found_facts,
    how_close,
    how_near,
    judged_facts,
    lengths_table,
    numbers_facts,
    plain,
    precision_table,
    run_in_words,
    size,
    trace_facts,
    trace_table,
    verdict_facts,
    verdict_line,
)
from transformist.running import LONG, chosen_engine, refuse_beyond_memory
from transformist.running import run as evaluate
from transformist.texts import Source, Text
from transformist.verify import (
    WORK,
    Breakdown,
    Certificate,
    LeastError,
    Unproved,
    Verdict,
    certify,
    check,
    check_certificate,
    check_programs,
    check_recipes,
    float_format,
    formats,
    length_within,
    require_feasible,
    search,
    search_all,
)

app = typer.Typer(
    name="transformist",
    help="Algorithms as the weights of a transformer, and what they can be trusted to do.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
wide = Console(highlight=False, width=160, emoji=False)

MODEL_HELP = (
    "A recipe's name, a packaged program (programs/NAME), a program in a file (FILE.py:NAME), or a "
    "saved file; `list` has the names."
)
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="k=v",
        help="A parameter of the recipe, or an option of the compiler; repeatable. Those of the "
        f"compiler: max_length (a number, or None), weighting ({', '.join(WEIGHTINGS)}), "
        f"arithmetic ({', '.join(SYSTEMS)}), heads ({' or '.join(HEADS)} a layer), "
        "positions (a JSON list of names).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
Arithmetic = Annotated[
    str, typer.Option(help=f"The number system: {', '.join((*SYSTEMS, *FAMILIES))}.", metavar="A")
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 the command did its work; 1 a check does not hold, or a measurement was refused; 2 the
        request was wrong, or its answer cannot be written; 130 it was interrupted.

    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stdout is None:
        return _refuse("answers go to standard output; received a closed one; leave it open")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.set_int_max_str_digits(0)  # exact answers may be long
    try:
        code = app(given, prog_name="transformist", standalone_mode=False)
        sys.stdout.flush()
    except TransformistError as error:
        return _refuse(str(error))
    except _USAGE_ERROR as error:
        return _refuse(
            f"{error.format_message().rstrip('.')}; transformist --help lists what there is"
        )
    except MemoryError:
        return _refuse("the request does not fit in memory; give a smaller one")
    except (BrokenPipeError, SystemExit):  # rich exits when the reader of a pipe has gone
        _drop(sys.stdout)
        return 0
    except OSError as error:
        _drop(sys.stdout)
        where = error.filename or "standard output"
        return _refuse(
            "what a command reads and writes can be read and written; received "
            f"{where} ({error.strerror or error}); make room, or choose another"
        )
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        return _refuse("interrupted", code)
    return code if isinstance(code, int) else 0


_INTERRUPTED = 130
"""The exit code after Ctrl-C, which is also what the argument parser makes of it."""


_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
"""The argument parser's own error, of which `typer.BadParameter` is a case."""


def _refuse(line: str, code: int = 2) -> int:
    if sys.stderr is not None:  # else print takes standard output
        try:
            print(f"error: {' '.join(line.split())}", file=sys.stderr, flush=True)
        except OSError:
            _drop(sys.stderr)
    return code


def _drop(stream: TextIO) -> None:
    """Lead a stream to nowhere, so that nothing is written to it at the end either."""
    with suppress(OSError, ValueError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"transformist {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(name="list")
def list_recipes(
    chapter: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Only this chapter, by module or number: feed-forward, 4."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the recipes, chapter by chapter, and the packaged programs."""
    facts = contents_facts(chapter)
    if as_json:
        _print_json(facts)
        return
    out.print(contents_table(facts))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help=MODEL_HELP, metavar="MODEL", show_default=False)],
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Show what a recipe claims and takes, or what a compiled or saved model is; and its size."""
    named, chosen = named_model(name), read_settings(settings)
    if as_json:
        _print_json(named.facts(chosen))
        return
    out.print(named.table(chosen))


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    model: Annotated[str, typer.Argument(help=MODEL_HELP, metavar="MODEL", show_default=False)],
    given: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="[INPUT]",
            help="The string; for a recipe on vectors a JSON list, fractions in quotes. "
            "Standard input is read when neither this nor --file is given.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Optional[Path], typer.Option(help="Read the input from this file, and show the layers.")  # noqa: UP045
    ] = None,
    ignore_others: Annotated[
        bool, typer.Option("--ignore-others", help="Skip characters outside the alphabet.")
    ] = False,
    settings: Set = [],  # noqa: B006
    arithmetic: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help=f"The number system: {', '.join((*SYSTEMS, *FAMILIES))}; float64, or the first in "
            "which the recipe is claimed, when left out.",
            metavar="A",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="What evaluates: reference, the definitions; structured, for long inputs in "
            f"float64 and float32, which sums in its own order; auto, that from {LONG} symbols on.",
            metavar="E",
        ),
    ] = "reference",
    trace: Annotated[bool, typer.Option("--trace", help="Show the layers at work.")] = False,
    as_json: Json = False,
) -> None:
    """Run a model on an input and print the answer.

    A newline at the very end of a file or of standard input is not part of the input. Where
    max_length is not set, the model is built for the length of the input, rounded up to a power of
    two: a program for at least 16, a recipe not beyond the length that its claim covers if the
    input fits into it.
    """
    chosen_engine(engine, "", "float64")  # refuses an unknown one before any work
    named, chosen = named_model(model), read_settings(settings)
    system = number_system(arithmetic or named.usual_arithmetic(chosen))
    source = _input(given, file)
    if named.takes_strings:
        adapted = named.adapted(chosen, source.again())
        asked = "reference" if trace else engine
        admit = _admission(named, adapted, system, chosen_engine(asked, range(LONG), system))
        text = Text.over(named.alphabet(adapted), source, ignore_others, admit)
        taken = chosen_engine(asked, text.symbols, system)
        if trace and engine == "structured":
            raise InvalidValue(
                "the layers are shown by the reference engine",
                received="--trace with --engine structured",
                remedy="leave one of the two out",
            )
        if taken == "structured":
            _run_long(named, adapted, text, system, as_json)
        else:
            _run_on_text(named, adapted, text, system, as_json, with_trace=trace)
        return
    if engine == "structured":
        raise InvalidValue(
            "the structured engine is for models on strings",
            received=f"--engine structured with {named.name}",
            remedy="leave it out",
        )
    if trace or ignore_others:
        option = "--trace" if trace else "--ignore-others"
        raise InvalidValue(
            f"{option} is for models on strings",
            received=f"{option} with {named.name}",
            remedy="leave it out",
        )
    _run_on_json(find_recipe(model), chosen, source.text(), system, as_json)


MANY = 2**20
"""From so many symbols on, what they take is compared with the memory that is free."""


def _admission(
    named: Named, chosen: Settings, system: NumberSystem, engine: str
) -> Callable[[int], None]:
    """What refuses more symbols than an engine has memory for, while they come."""
    models: list[Transformer] = []

    def admit(count: int) -> None:
        if count > MANY:
            if not models:
                models.append(named.transformer(chosen, 1, system))
            refuse_beyond_memory(models[0], count, system, engine)

    return admit


def _run_on_json(
    recipe: Recipe[Any], chosen: dict[str, str], text: str, system: NumberSystem, as_json: bool
) -> None:
    """An answer in numbers: one line, or a line for each position."""
    answer = answer_in_numbers(recipe, chosen, text, system)
    value = plain(answer.shown)
    if not answer.covered:
        settings = recipe.settings(chosen)
        claimed = recipe.claim.claimed(settings)
        where = f"outside {recipe.claim.inputs(settings)}"
        where += "" if answer.stored else f" (the input as {system.name} rounds it)"
        if answer.positions == ():
            where = f"of any position of this list; {recipe.summary}"
        if system.name not in claimed:
            where = f"in {system.name}, only in {', '.join(claimed)}"
        err.print(f"warning: {recipe.name} claims nothing {where}", markup=False)
    if as_json:
        _print_run(recipe.name, answer.length, value, system.name, numbers_facts(answer))
    elif isinstance(recipe.claim, PositionClaim):
        for i, vector in enumerate(value, start=1):
            out.print(f"{i:>6}  {json.dumps(vector)}", markup=False)
    else:
        said = how_close(answer, system.name)
        shown = f"{recipe.name}({text.strip()}) = {json.dumps(value)} in {system.name}{said}"
        out.print(shown, markup=False)


def _run_on_text(
    named: Named,
    chosen: Settings,
    text: Text,
    system: NumberSystem,
    as_json: bool,
    with_trace: bool = False,
) -> None:
    length = len(text.symbols)
    with err.status(f"evaluating {length} symbols densely"):
        judged = named.answer(chosen, text.whole, system)
    trace, model = judged.trace, judged.trace.model
    _warn(caution(named.name, model, system))
    if not judged.covered and judged.safe:
        err.print(
            f"warning: {named.name} claims n up to N = {judged.safe} in {system.name}, and this "
            f"model is built for {model.max_length or length}: the answer may be wrong"
        )
    if as_json:
        more = judged_facts(judged, text)
        if with_trace:
            more["trace"] = trace_facts(trace)
        _print_run(named.name, length, plain(trace.answer), system.name, more)
        return
    if judged.recipe and judged.recipe.claim.in_numbers:
        _print_vectors(trace, how_near(judged))
    else:
        _print_answer(trace, judged.finding, text)
    if with_trace or text.source.is_file:
        wide.print(trace_table(trace, judged.finding.position, whole=with_trace))
    out.print(run_in_words(named.name, judged), style="dim", markup=False)


def _warn(of: str) -> None:
    if of:
        err.print(f"warning: {of}", markup=False)


def _run_long(
    named: Named, chosen: Settings, text: Text, system: NumberSystem, as_json: bool
) -> None:
    """The answer of the structured engine, which keeps no trace."""
    length = len(text.symbols)
    built = named.prepared(chosen, length, system)
    with err.status(f"evaluating {length} symbols"):
        answer = evaluate(built.model, text.symbols, system, engine="structured")
    _warn(caution(named.name, built.model, system))
    if not built.covered:
        _warn(f"{named.name} claims nothing of this length in {system.name}: it may be wrong")
    if as_json:
        more = {"within_claim": built.covered} if isinstance(named, NamedRecipe) else {}
        _print_run(named.name, length, plain(answer), system.name, more, engine="structured")
        return
    out.print(f"[bold]{escape(answer_in_words(answer))}[/]")
    line = f"{named.name} on {length} symbols in {system.name}, by the structured engine: "
    out.print(f"{line}{size(built.model)}", style="dim", markup=False)


def _print_vectors(trace: Trace, near: str) -> None:
    """A line for each position, and how near the numbers are to the real values."""
    for i, (symbol, vector) in enumerate(zip(trace.input, trace.answer, strict=True), start=1):
        out.print(f"{i:>6}  {symbol!s:>6}  {json.dumps(plain(vector))}", markup=False)
    out.print(near, markup=False)


def _print_answer(trace: Trace, finding: Finding, text: Text) -> None:
    """The answer in a word or a string, and what is found about the input."""
    answer = answer_in_words(trace.answer)
    where = "" if finding.position is None else f", at {text.place(finding.position)}"
    if finding.related:
        where += f" (see {' and '.join(map(text.place, finding.related))})"
    why = f": {finding.sentence}{where}" if finding.sentence else ""
    out.print(f"[bold]{escape(answer)}[/]{escape(why)}")


def _print_run(
    name: str,
    length: int,
    answer: Any,
    arithmetic: str,
    more: dict[str, Any] | None = None,
    engine: str = "reference",
) -> None:
    facts = {
        "model": name,
        "length": length,
        "answer": answer,
        "arithmetic": arithmetic,
        "engine": engine,
    }
    _print_json({**facts, **(more or {})})


@app.command(name="check")
def check_command(
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="A recipe's name, programs/NAME, FILE.py:NAME, or, with --against, a saved file; "
            "every recipe and packaged program when left out.",
            metavar="[MODEL]",
        ),
    ] = None,
    against: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="FILE.py:NAME",
            help="Compare with this Python function of a string, or with programs/NAME.",
        ),
    ] = None,
    length: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--max-length",
            help="Try every string up to this length; when left out, up to the length to which "
            "there are some thousand, and of a recipe besides hard and drawn ones.",
            metavar="n",
            show_default=False,
        ),
    ] = None,
    settings: Set = [],  # noqa: B006
    arithmetic: Arithmetic = "float64",
    as_json: Json = False,
) -> int:
    """Test what recipes claim, each from its own claim, and programs against what is compiled.

    Exit code 1 when one does not hold. --set and --arithmetic go with --against, which tests one
    model on every string. A program is compiled with softmax, evaluated in float32, and with
    average-hard attention, evaluated in exact arithmetic.
    """
    named = None if model is None else named_model(model)
    max_length = None if length is None else read_length(length)
    verdicts: Iterable[Verdict]
    if against is not None:
        chosen = read_settings(settings)
        verdicts = [_check_against(named, against, chosen, arithmetic, max_length)]
    elif settings or arithmetic != "float64":
        raise InvalidValue(
            "a claim is checked in every arithmetic and setting it names",
            received="--set or --arithmetic without --against",
            remedy="leave them out, or give --against FILE.py:NAME",
        )
    elif named is not None:
        verdicts = [named.verdict(max_length)]
    else:
        names = [each.name for each in recipes()]
        every = itertools.chain(check_recipes(names, max_length), check_programs(max_length))
        verdicts = _with_progress(every, len(names) + len(PROGRAMS))
    held, rows = True, []
    for verdict in verdicts:
        held = held and verdict.held
        if as_json:
            rows.append(verdict_facts(verdict))
        else:
            out.print(verdict_line(verdict))
    if as_json:
        _print_json({"held": held, "recipes": rows})
    return 0 if held else 1


def _check_against(
    named: Named | None,
    against: str,
    settings: dict[str, str],
    arithmetic: str,
    max_length: int | None,
) -> Verdict:
    if named is None or not named.takes_strings:
        raise InvalidValue(
            "--against compares one model on strings with a function",
            received="the whole catalogue" if named is None else named.name,
            remedy="name a recipe on strings, such as dyck-1, a program, or a saved file",
        )
    reference, symbols = load_function(against), len(named.alphabet(settings))
    length = length_within(AGAINST, symbols) if max_length is None else max_length
    require_feasible(length, symbols)
    system = number_system(arithmetic)
    model = named.transformer(settings, length, system)
    if max_length is None and model.max_length is not None:
        length = min(length, model.max_length)
    _warn(caution(named.name, model, system))
    with err.status(f"checking every string to length {length} over {symbols} symbols"):
        return replace(check(model, reference, length, system), name=named.name)


AGAINST = 2**14
"""About how many strings --against tries where --max-length is left out."""


def _with_progress(verdicts: Iterator[Verdict], total: int) -> Iterator[Verdict]:
    """The verdicts, with a bar on standard error where that is a terminal."""
    columns = (
        TextColumn("checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[name]}"),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("", total=total, name="")
        for verdict in verdicts:
            progress.update(task, advance=1, name=verdict.name)
            yield verdict


@app.command(name="compile")
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
    model = named.compiled(chosen)
    save(model, output)
    facts = compiled_facts(named.name, str(output), model, named.options(chosen)["weighting"])
    if as_json:
        _print_json(facts)
    else:
        out.print(compiled_in_words(facts), markup=False)


@app.command(name="certify")
def certify_command(
    model: Annotated[
        str,
        typer.Argument(
            help="programs/NAME, FILE.py:NAME, a recipe's name, or a saved file.", metavar="MODEL"
        ),
    ],
    length: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--max-length", help="N; a model's own, or 256, when left out.", metavar="N"),
    ] = None,
    arithmetic: Annotated[str, typer.Option(help="A float format.", metavar="A")] = "float32",
    order: Annotated[
        str,
        typer.Option(
            help="Of summation: any, as linear algebra libraries choose it (with that of the "
            "reference beside it); reference, from left to right; structured, that of the engine "
            "for long inputs.",
            metavar="O",
        ),
    ] = "any",
    lines: Annotated[
        bool, typer.Option("--lines", help="Print every number, with its range and error bound.")
    ] = False,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "-o", "--output", metavar="F", help="Save the model there, with its certificate."
        ),
    ] = None,
    check_saved: Annotated[
        bool, typer.Option("--check", help="Check the certificates that a saved file has.")
    ] = False,
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> int:
    """Say whether a format decides as the weights do exactly, for every input of length up to N.

    A bound of every error is composed over all layers; what holds is checked again by another
    reading of the weights. What is not shown to hold need not fail. Exit code 1 where a margin is
    not kept.
    """
    if check_saved:
        usual: tuple[Any, ...] = (None, "float32", "any", False, None, [])
        if (length, arithmetic, order, lines, output, settings) != usual:
            raise InvalidValue(
                "certificates that are saved are checked as they are",
                received="--check beside another option",
                where="certify",
                remedy="give --check and the file alone",
            )
        return _check_saved(model, as_json)
    named, chosen = named_model(model), read_settings(settings)
    longest = None if length is None else read_positive(length, "--max-length")
    if isinstance(named, NamedProgram) and longest is not None:
        chosen = {"max_length": str(longest), **chosen}
    built = named.transformer(chosen, longest or 256, number_system("exact"))
    longest = longest or getattr(built, "max_length", None) or 256
    orders = ("any", "reference") if order == "any" else (order,)
    found = [certify(built, arithmetic, longest, each) for each in orders]
    held = [each for each in found if each.holds]
    for each in held:
        check_certificate(built, each)
    if output is not None:
        save(built, output, held)
    if as_json:
        facts = certificate_facts(named.name, found[0])
        beside = [certificate_facts(named.name, each) for each in found[1:]]
        _print_json(facts | {"beside": beside, "saved": str(output) if output else None})
        return 0 if found[0].holds else 1
    for each in found:
        out.print(f"{named.name}: {each}", markup=False)
        if not each.holds:
            shown = each.largest_length or "none"
            out.print(f"the largest N for which it is shown to hold is {shown}", markup=False)
    if lines:
        wide.print(certificate_table(found[0]))
    if output is not None:
        count = f"{len(held)} certificate{'s' * (len(held) != 1)}"
        out.print(f"saved to {output}, with {count}", markup=False)
    return 0 if found[0].holds else 1


def _check_saved(path: str, as_json: bool) -> int:
    """Check what certificates a file has."""
    model, found = load(path), load_certificates(path)
    if not found:
        raise InvalidValue(
            "certificates that are saved with a model are checked",
            received=f"{path}, which has none",
            where="certify",
            remedy="give certify the option --output to save them",
        )
    unproved = [str(refusal) for each in found if (refusal := _unproved(model, each))]
    if as_json:
        checked = [certificate_facts(path, each) for each in found]
        _print_json({"checked": checked, "unproved": unproved})
    else:
        for each in found if not unproved else ():
            out.print(f"{path}: follows from the weights: {each}", markup=False)
        for reason in unproved:
            out.print(f"{path}: {reason}", markup=False)
    return 1 if unproved else 0


def _unproved(model: Transformer, certificate: Certificate) -> Unproved | None:
    try:
        check_certificate(model, certificate)
    except Unproved as refusal:
        return refusal
    return None


@app.command(name="precision")
def precision_command(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="A recipe's name, programs/NAME or FILE.py:NAME; every recipe that has a length "
            "when left out.",
            metavar="[NAME]",
        ),
    ] = None,
    arithmetic: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Only in this float format.", metavar="A", show_default=False),
    ] = None,
    length: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--max-length", help="Try no longer inputs.", metavar="n"),
    ] = None,
    work: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="About how many attention scores to compute a format.", metavar="w"),
    ] = None,
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> int:
    """Search for the first length at which a float format breaks a recipe, beyond what is claimed.

    For a function with a tolerance, search for the least error that the format reaches. The work is
    counted, not timed, so that the result is the same everywhere. Exit code 1 when a length fails
    that is claimed. Of a program, the largest N for which each format keeps the margins, to 2^17.
    """
    if arithmetic is not None:
        float_format(arithmetic)
    longest = None if length is None else read_positive(length, "--max-length")
    budget = None if work is None else read_positive(work, "--work")
    if name is None:
        return _search_all(arithmetic, longest, budget, settings, as_json)
    model, chosen = named_model(name), read_settings(settings)
    if isinstance(model, NamedProgram):
        return _lengths_of(model, chosen, arithmetic, longest, budget, as_json)
    if not isinstance(model, NamedRecipe):
        raise InvalidValue(
            "a search is for a recipe or a program, which is built for one length after another",
            received=f"{name}, a saved model",
            where="precision",
            remedy="name the program it is compiled from, FILE.py:NAME",
        )
    recipe = model.recipe
    named = [arithmetic] if arithmetic else formats(recipe)
    if not named:
        raise InvalidValue(
            "a search is done in the float formats in which something is claimed",
            received=f"{recipe.name}, which claims none of them as it is",
            where="precision",
            remedy=_instead_of_a_search(recipe),
        )
    found = []
    for each in named:
        with err.status(f"searching {recipe.name} in {each}"):
            found.append(search(recipe, each, chosen, longest, budget or WORK))
    if as_json:
        settled = recipe.settings(chosen)
        facts = {"recipe": recipe.name, "settings": {key: plain(settled[key]) for key in chosen}}
        _print_json({**facts, "results": [found_facts(each) for each in found]})
    else:
        wide.print(precision_table(recipe.name, found))
    return _refuted(found)


def _lengths_of(
    named: NamedProgram,
    chosen: Settings,
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    as_json: bool,
) -> int:
    """The largest N of a program in each float format."""
    if work is not None:
        raise InvalidValue(
            "the work of a search is bounded for recipes",
            received="--work with a program",
            where="precision",
            remedy="leave it out, or give --max-length",
        )
    floats = [name for name, system in SYSTEMS.items() if isinstance(system, Floating)]
    with err.status(f"compiling {named.name} for one length after another"):
        facts = named.lengths(chosen, [arithmetic] if arithmetic else floats, longest or 2**17)
    if as_json:
        _print_json(facts)
    else:
        wide.print(lengths_table(facts))
    return 0


def _instead_of_a_search(recipe: Recipe[Any]) -> str:
    """A format that it does claim, or what tells how far off it is."""
    names = recipe.claim.claimed(recipe.settings({}))
    clamped = [name for name in names if isinstance(number_system(name), Floating)]
    if clamped:
        return f"name one that it claims: --arithmetic {clamped[0]}"
    return f"transformist run {recipe.name} tells how far off it is on an input"


def _search_all(
    arithmetic: str | None,
    longest: int | None,
    work: int | None,
    settings: Sequence[str],
    as_json: bool,
) -> int:
    """The recipes that have a length, one after the other, with a sixteenth of the work each."""
    if settings:
        raise InvalidValue(
            "the parameters of --set are those of one recipe",
            received="--set without NAME",
            remedy="name the recipe, or leave --set out",
        )
    formats = () if arithmetic is None else (arithmetic,)
    code, rows = 0, []
    for recipe, found in search_all(longest, work or WORK // 16, formats):
        code = max(code, _refuted(found))
        if as_json:
            rows += [{"recipe": recipe.name, **found_facts(each)} for each in found]
            err.print(f"searched {recipe.name}", markup=False)
        elif found:
            wide.print(precision_table(recipe.name, found))
    if as_json:
        _print_json({"results": rows})
    return code


def _refuted(found: Sequence[Breakdown | LeastError]) -> int:
    """1 where a length fails that is claimed."""
    return int(any(isinstance(each, Breakdown) and each.refutes_the_claim for each in found))


@app.command(name="bench")
def bench_command(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            help=f"What to measure: {', '.join(CASES)}; everything when left out.",
            metavar="[CASE]...",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="The shortest inputs only: ratios, but no growth. About three minutes on two "
            "processors, most of them for the dense evaluation in numpy; more with torch.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Measure the structured engine on long inputs, beside dense evaluations in torch and numpy.

    Each case is measured in a process of its own, and its answers compared with those of a plain
    algorithm: exit code 1 where one is wrong, or a measurement refused. After Ctrl-C what was
    measured is printed. Torch is left out where it is not installed.
    """
    for name in names or ():
        if name not in CASES:
            raise UnknownName.among("case", name, CASES, "bench")
    rows: list[dict[str, Any]] = []
    try:
        for row in measurements(names or CASES, quick, _print_begun):
            rows.append(row)
    except KeyboardInterrupt:
        _print_measured(rows, as_json)
        raise
    _print_measured(rows, as_json)
    return int(any(row["right"] is not True for row in rows))


def _print_begun(case: str, n: int) -> None:
    err.print(f"measuring {case}, n = {n}", markup=False)


def _print_measured(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        _print_json({"machine": machine(), "results": rows})
    else:
        wide.print(bench_table(machine(), rows))


@app.command()
def demo() -> None:
    """Judge the parentheses of a file of Python's own library with a transformer."""
    path = Path(argparse.__file__)
    text = Text.over("()", Source.file(path), ignore_others=True)
    out.print(
        f"The {len(text.symbols)} parentheses of {path}, judged by a transformer whose weights "
        "were computed, not trained:\n"
    )
    run("dyck-1", file=path, ignore_others=True)
    out.print(
        "\nNext: transformist list, transformist show dyck-1, "
        "transformist run dyck-1 --file PATH --ignore-others"
    )


def _input(given: str | None, file: Path | None) -> Source:
    """Where the input is from."""
    if given is not None and file is not None:
        raise InvalidValue(
            "there is one input",
            received=f"INPUT {given!r} and --file {file}",
            remedy="give one of the two",
        )
    if given is not None:
        return Source.given(given)
    if file is not None:
        return Source.file(file)
    if sys.stdin is None:
        raise UnreadableInput(
            "the input is given, in a file, or on standard input",
            received="a closed standard input",
            remedy="give INPUT or --file",
        )
    if sys.stdin.isatty():
        err.print("reading standard input, to its end (Ctrl-D)")
    return Source.stream(sys.stdin.buffer, "standard input")


def _print_json(facts: dict[str, Any]) -> None:
    print(json.dumps(facts, allow_nan=False))


if __name__ == "__main__":
    sys.exit(main())
