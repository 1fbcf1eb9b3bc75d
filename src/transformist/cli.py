"""The command line: each command parses, calls, and prints."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from transformist import __version__
from transformist.answers import answer_in_numbers, answer_on_symbols
from transformist.arithmetic import FAMILIES, SYSTEMS, Floating, number_system
from transformist.arithmetic import Arithmetic as NumberSystem
from transformist.catalogue import recipe as find_recipe
from transformist.catalogue import recipes
from transformist.claims import (
    Finding,
    PositionClaim,
    Recipe,
    StringClaim,
)
from transformist.errors import (
    InvalidValue,
    TransformistError,
    UnknownName,
    UnreadableInput,
)
from transformist.inputs import (
    Text,
    decode,
    load_function,
    read_length,
    read_positive,
    read_text,
)
from transformist.model import Trace
from transformist.report import (
    dependence_in_words,
    found_facts,
    how_close,
    how_near,
    numbers_facts,
    plain,
    precision_table,
    recipe_facts,
    recipe_table,
    size,
    trace_facts,
    trace_table,
    verdict_facts,
)
from transformist.verify import (
    WORK,
    Breakdown,
    LeastError,
    Verdict,
    check,
    check_recipes,
    float_format,
    formats,
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
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
wide = Console(highlight=False, width=160)

Set = Annotated[
    list[str],
    typer.Option("--set", metavar="k=v", help="A parameter of the recipe; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
Arithmetic = Annotated[
    str, typer.Option(help=f"The number system: {', '.join((*SYSTEMS, *FAMILIES))}.", metavar="A")
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 the command did its work; 1 a check does not hold; 2 the request was wrong.

    """
    given = sys.argv[1:] if arguments is None else list(arguments)
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return _refuse("interrupted")
    return code if isinstance(code, int) else 0


_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
"""The argument parser's own error, of which `typer.BadParameter` is a case."""


def _refuse(line: str) -> int:
    print(f"error: {' '.join(line.split())}", file=sys.stderr)
    return 2


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
    """List the recipes, chapter by chapter."""
    chapters = list(dict.fromkeys(each.chapter for each in recipes()))
    numbers = sorted({number for each in recipes() if (number := _chapter_number(each))})
    if chapter is not None and chapter not in (*chapters, *numbers):
        raise UnknownName.among("chapter", chapter, [*chapters, *numbers])
    chosen = [
        each
        for each in recipes()
        if chapter is None or chapter in (each.chapter, _chapter_number(each))
    ]
    if as_json:
        rows = [
            {
                "name": each.name,
                "chapter": each.chapter,
                "section": each.section,
                "document": each.document,
                "summary": each.summary,
            }
            for each in chosen
        ]
        _print_json({"recipes": rows, "programs": []})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("recipe", "section", "computes"):
        table.add_column(heading)
    for each in chosen:
        where = each.cookbook_section or each.document.split(" (")[0]
        table.add_row(each.name, where, escape(each.summary))
    out.print(table)


def _chapter_number(recipe: Recipe[Any]) -> str | None:
    """The number of the chapter of the Cookbook, `None` where it is from another document."""
    section = recipe.cookbook_section
    return None if section is None else section.split(".")[0]


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A recipe's name.")],
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Show what a recipe claims, what it takes, and how large its weights are."""
    recipe = find_recipe(name)
    facts = recipe_facts(recipe, _settings(settings))
    if as_json:
        _print_json(facts)
        return
    out.print(recipe_table(facts))


def _dependence(recipe: Recipe[Any], settings: Mapping[str, Any]) -> str:
    return dependence_in_words(recipe.claim.dependence(recipe.settings(settings)))


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    model: Annotated[
        str, typer.Argument(help="The name of a recipe; `list` has them.", metavar="MODEL")
    ],
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
    engine: Annotated[str, typer.Option(help="What evaluates: reference.")] = "reference",
    trace: Annotated[bool, typer.Option("--trace", help="Show the layers at work.")] = False,
    as_json: Json = False,
) -> None:
    """Run a recipe on an input and print the answer.

    A newline at the very end of a file or of standard input is not part of the input. Where
    max_length is not set, the model is built for the length of the input, rounded up to a power of
    two, but not beyond the length that the claim covers if the input fits into it.
    """
    if engine != "reference":
        raise UnknownName.among("engine", engine, ["reference"])
    recipe, chosen = find_recipe(model), _settings(settings)
    usual = recipe.claim.usual_arithmetic(recipe.settings(chosen))
    system = number_system(arithmetic or usual)
    text, name = _input(given, file)
    if isinstance(recipe.claim, StringClaim):
        if "alphabet" in recipe.parameters and "alphabet" not in chosen:
            chosen["alphabet"] = _alphabet_of(text)
        alphabet = recipe.build(**chosen).alphabet
        if all(isinstance(symbol, int) for symbol in alphabet):
            kept = alphabet if ignore_others else None
            source = Text.of_numbers(text, name, kept, is_file=file is not None)
        else:
            keep = map(str, alphabet) if ignore_others else None
            source = Text.of(text, name, keep, is_file=file is not None)
        _run_on_text(recipe, chosen, source, system, as_json, with_trace=trace)
        return
    if trace or ignore_others:
        option = "--trace" if trace else "--ignore-others"
        raise InvalidValue(
            f"{option} is for models on strings",
            received=f"{option} with {recipe.name}",
            remedy="leave it out",
        )
    _run_on_json(recipe, chosen, text, system, as_json)


def _alphabet_of(text: str) -> str:
    """The characters of a text in order; a and b beside them where there are not two."""
    characters = sorted(set(text))
    return "".join(characters) if len(characters) > 1 else "".join(sorted({*characters, *"ab"}))


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
        _print_run(recipe, answer.length, value, system.name, numbers_facts(answer))
    elif isinstance(recipe.claim, PositionClaim):
        for i, vector in enumerate(value, start=1):
            out.print(f"{i:>6}  {json.dumps(vector)}", markup=False)
    else:
        said = how_close(answer, system.name)
        shown = f"{recipe.name}({text.strip()}) = {json.dumps(value)} in {system.name}{said}"
        out.print(shown, markup=False)


def _run_on_text(
    recipe: Recipe[StringClaim],
    chosen: dict[str, str],
    source: Text,
    system: NumberSystem,
    as_json: bool,
    with_trace: bool = False,
) -> None:
    length = len(source.symbols)
    with err.status(f"evaluating {length} symbols densely"):
        judged = answer_on_symbols(recipe, chosen, source.symbols, system)
    trace, model, finding = judged.trace, judged.trace.model, judged.finding
    in_numbers = recipe.claim.in_numbers
    if not judged.covered and judged.safe:
        err.print(
            f"warning: {recipe.name} claims n up to N = {judged.safe} in {system.name}, and this "
            f"model is built for {model.max_length or length}: the answer may be wrong"
        )
    if as_json:
        more = {"within_claim": judged.covered, **_found(finding, source), **finding.numbers}
        if in_numbers:
            bound = judged.error_bound
            more["error_bound"] = None if bound is None or math.isinf(bound) else [bound]
        if with_trace:
            more["trace"] = trace_facts(trace)
        _print_run(recipe, length, plain(trace.answer), system.name, more)
        return
    if in_numbers:
        _print_vectors(trace, how_near(judged, recipe))
    else:
        _print_answer(trace, finding, source)
    if with_trace or source.is_file:
        wide.print(trace_table(trace, finding.position, whole=with_trace))
    limit = "" if model.max_length is None else f", N = {model.max_length}"
    out.print(
        f"{recipe.name} on {length} symbol{'' if length == 1 else 's'} in {system.name}: "
        f"{size(model)}; {_dependence(recipe, judged.settings)}{limit}",
        style="dim",
    )


def _print_vectors(trace: Trace, near: str) -> None:
    """A line for each position, and how near the numbers are to the real values."""
    for i, (symbol, vector) in enumerate(zip(trace.input, trace.answer, strict=True), start=1):
        out.print(f"{i:>6}  {symbol!s:>6}  {json.dumps(plain(vector))}", markup=False)
    out.print(near, markup=False)


def _print_answer(trace: Trace, finding: Finding, source: Text) -> None:
    """The answer in a word or a string, and what is found about the input."""
    answer = _answer_in_words(trace.answer)
    where = "" if finding.position is None else f", at {source.place(finding.position)}"
    if finding.related:
        where += f" (see {' and '.join(map(source.place, finding.related))})"
    why = f": {finding.sentence}{where}" if finding.sentence else ""
    out.print(f"[bold]{escape(answer)}[/]{escape(why)}")


def _answer_in_words(answer: Any) -> str:
    """A verdict as a word, a tag as a string, its beginning where it is long."""
    if isinstance(answer, bool):
        return "accepted" if answer else "rejected"
    text = answer if isinstance(answer, str) else " ".join(map(str, answer))
    return text if len(text) <= 200 else f"{text[:200]}…"


def _found(finding: Finding, source: Text) -> dict[str, Any]:
    place = None if finding.position is None else source.place(finding.position)
    return {
        "finding": finding.sentence or None,
        "position": finding.position,
        "place": place,
        "related": [source.place(position) for position in finding.related],
    }


def _print_run(
    recipe: Recipe[Any],
    length: int,
    answer: Any,
    arithmetic: str,
    more: dict[str, Any] | None = None,
) -> None:
    facts = {
        "model": recipe.name,
        "length": length,
        "answer": answer,
        "arithmetic": arithmetic,
        "engine": "reference",
    }
    _print_json({**facts, **(more or {})})


@app.command(name="check")
def check_command(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="A recipe's name; the whole catalogue when left out.", metavar="[NAME]"
        ),
    ] = None,
    against: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE.py:NAME", help="Compare with this Python function of a string."),
    ] = None,
    length: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--max-length", help="Try every string up to this length.", metavar="n"),
    ] = None,
    settings: Set = [],  # noqa: B006
    arithmetic: Arithmetic = "float64",
    as_json: Json = False,
) -> int:
    """Test what recipes claim, each from its own claim; exit code 1 when one does not hold.

    --set and --arithmetic go with --against, which tests one model on every string.
    """
    chosen = recipes() if name is None else (find_recipe(name),)
    max_length = None if length is None else read_length(length)
    verdicts: Iterable[Verdict]
    if against is not None:
        verdicts = [_check_against(chosen, against, _settings(settings), arithmetic, max_length)]
    elif settings or arithmetic != "float64":
        raise InvalidValue(
            "a claim is checked in every arithmetic and setting it names",
            received="--set or --arithmetic without --against",
            remedy="leave them out, or give --against FILE.py:NAME",
        )
    else:
        verdicts = _with_progress(
            check_recipes([each.name for each in chosen], max_length), len(chosen)
        )
    held, rows = True, []
    for verdict in verdicts:
        held = held and verdict.held
        if as_json:
            rows.append(verdict_facts(verdict))
        else:
            out.print(_verdict_line(verdict))
    if as_json:
        _print_json({"held": held, "recipes": rows})
    return 0 if held else 1


def _check_against(
    chosen: Sequence[Recipe[Any]],
    against: str,
    settings: dict[str, str],
    arithmetic: str,
    max_length: int | None,
) -> Verdict:
    length = 10 if max_length is None else max_length
    if len(chosen) != 1 or not isinstance(chosen[0].claim, StringClaim):
        raise InvalidValue(
            "--against compares one model on strings with a function",
            received="the whole catalogue" if len(chosen) != 1 else chosen[0].name,
            remedy="name a recipe on strings, such as dyck-1",
        )
    if "max_length" in chosen[0].parameters:
        settings = {"max_length": str(max(length, 1)), **settings}
    reference = load_function(against)
    verdict = check(chosen[0].build(**settings), reference, length, arithmetic)
    return Verdict(chosen[0].name, verdict.cases, verdict.arithmetics, *_rest(verdict))


def _rest(verdict: Verdict) -> tuple[str, Any]:
    return verdict.covered, verdict.counterexample


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


def _verdict_line(verdict: Verdict) -> str:
    mark = "[green]held[/]" if verdict.held else "[red]FAILED[/]"
    line = (
        f"{verdict.name:<28} {mark}  {verdict.cases:>6} inputs in "
        f"{', '.join(verdict.arithmetics)}; {escape(verdict.covered)}"
    )
    if verdict.counterexample is None:
        return line
    return f"{line}\n    {escape(str(verdict.counterexample))}"


@app.command(name="precision")
def precision_command(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            help="A recipe's name; every recipe that has a length when left out.", metavar="[NAME]"
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
    that is claimed.
    """
    if arithmetic is not None:
        float_format(arithmetic)
    longest = None if length is None else read_positive(length, "--max-length")
    budget = None if work is None else read_positive(work, "--work")
    if name is None:
        return _search_all(arithmetic, longest, budget, settings, as_json)
    recipe, chosen = find_recipe(name), _settings(settings)
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


@app.command()
def demo() -> None:
    """Judge the parentheses of a file of Python's own library with a transformer."""
    path = Path(argparse.__file__)
    source = Text.of(read_text(path), str(path), keep="()", is_file=True)
    out.print(
        f"The {len(source.symbols)} parentheses of {path}, judged by a transformer whose weights "
        "were computed, not trained:\n"
    )
    run("dyck-1", file=path, ignore_others=True)
    out.print(
        "\nNext: transformist list, transformist show dyck-1, "
        "transformist run dyck-1 --file PATH --ignore-others"
    )


def _input(given: str | None, file: Path | None) -> tuple[str, str]:
    """The text of the input and the name of where it is from."""
    if given is not None and file is not None:
        raise InvalidValue(
            "there is one input",
            received=f"INPUT {given!r} and --file {file}",
            remedy="give one of the two",
        )
    if given is not None:
        return given, "the input"
    if file is not None:
        return _without_last_newline(read_text(file)), str(file)
    if sys.stdin is None:
        raise UnreadableInput(
            "the input is given, in a file, or on standard input",
            received="a closed standard input",
            remedy="give INPUT or --file",
        )
    if sys.stdin.isatty():
        err.print("reading standard input, to its end (Ctrl-D)")
    return _without_last_newline(
        decode(sys.stdin.buffer.read(), "standard input")
    ), "standard input"


def _without_last_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _settings(given: Sequence[str]) -> dict[str, str]:
    """The pairs of --set."""
    pairs = [setting.partition("=") for setting in given]
    for setting, (name, equals, _) in zip(given, pairs, strict=True):
        if not equals or not name:
            raise InvalidValue(
                "--set takes name=value", received=repr(setting), remedy="write --set epsilon=1/8"
            )
    return {name.strip().replace("-", "_"): value for name, _, value in pairs}


def _print_json(facts: dict[str, Any]) -> None:
    print(json.dumps(facts, allow_nan=False))


if __name__ == "__main__":
    sys.exit(main())
