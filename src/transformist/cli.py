"""The command line: each command parses, calls, and prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from transformist import __version__
from transformist.arithmetic import SYSTEMS, number_system, rational
from transformist.catalogue import recipe as find_recipe
from transformist.catalogue import recipes
from transformist.claims import Finding, FunctionClaim, Recipe, StringClaim
from transformist.errors import (
    InvalidValue,
    NotFinite,
    TransformistError,
    UnknownName,
    UnreadableInput,
)
from transformist.inputs import Text, decode, read_text
from transformist.model import Transformer
from transformist.report import size, trace_table
from transformist.settings import SETTINGS
from transformist.verify import Verdict, check, check_recipes

app = typer.Typer(
    name="transformist",
    help="Algorithms as the weights of a transformer, and what they can be trusted to do.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Set = Annotated[
    list[str],
    typer.Option("--set", metavar="k=v", help="A parameter of the recipe; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
Arithmetic = Annotated[
    str, typer.Option(help=f"The number system: {', '.join(SYSTEMS)}.", metavar="A")
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 the command did its work; 1 a check does not hold; 2 the request was wrong.

    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(given, prog_name="transformist", standalone_mode=False)
    except TransformistError as error:
        return _refuse(str(error))
    except _USAGE_ERROR as error:
        return _refuse(
            f"{error.format_message().rstrip('.')}; transformist --help lists what there is"
        )
    except BrokenPipeError:
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


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""


@app.command(name="list")
def list_recipes(
    chapter: Annotated[
        Optional[str], typer.Option(help="Only this chapter, such as feed-forward.")  # noqa: UP045
    ] = None,
    as_json: Json = False,
) -> None:
    """List the recipes, in the paper's order."""
    chapters = list(dict.fromkeys(each.chapter for each in recipes()))
    if chapter is not None and chapter not in chapters:
        raise UnknownName.among("chapter", chapter, chapters)
    chosen = [each for each in recipes() if chapter in (None, each.chapter)]
    if as_json:
        rows = [
            {"name": r.name, "chapter": r.chapter, "section": r.section, "summary": r.summary}
            for r in chosen
        ]
        _print_json({"recipes": rows, "programs": []})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("recipe", "section", "computes"):
        table.add_column(heading)
    for each in chosen:
        table.add_row(each.name, each.section, escape(each.summary))
    out.print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A recipe's name.")],
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Show what a recipe claims, what it takes, and how large its weights are."""
    recipe = find_recipe(name)
    model = recipe.build(**_settings(settings))
    built, claim = size(model), recipe.claim
    parameters = {
        key: {"default": _plain(value), "sets": SETTINGS[key].meaning}
        for key, value in recipe.settings({}).items()
    }
    safe = None if isinstance(claim, FunctionClaim) else dict(claim.safe_lengths)
    facts = {
        "name": recipe.name,
        "section": recipe.section,
        "claim": claim.statement,
        "parameters": parameters,
        "layers": built.layers,
        "width": built.width,
        "heads": built.heads,
        "nonzero": built.nonzero,
        "depends_on": list(claim.depends_on),
        "gap": None,
        "safe_lengths": safe,
        "sources": list(recipe.sources),
        "arithmetics": list(claim.arithmetics),
        "excluded": dict(claim.excluded),
        **_accuracy(recipe),
    }
    if as_json:
        _print_json(facts)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("recipe", f"{recipe.name} (section {recipe.section})")
    table.add_row("claim", escape(claim.statement))
    for key, value in _accuracy(recipe).items():
        table.add_row(key.replace("_", " "), escape(str(value)))
    for key, reason in claim.excluded.items():
        table.add_row("not in", f"{key}: {reason}")
    if safe is not None:
        lengths = (f"{key} {'every n' if n is None else f'{n:,}'}" for key, n in safe.items())
        table.add_row("safe to length", ", ".join(lengths))
    for key, setting in parameters.items():
        default = json.dumps(setting["default"])
        table.add_row(f"--set {key}=", escape(f"{setting['sets']}; default {default}"))
    table.add_row("weights", f"{built}; {_dependence(recipe)}")
    for source in recipe.sources:
        table.add_row("source", source)
    out.print(table)


def _accuracy(recipe: Recipe) -> dict[str, str]:
    claim = recipe.claim
    if not isinstance(claim, FunctionClaim):
        return {"why_safe": claim.why_safe}
    facts = {"in_real_numbers": claim.approximation_statement}
    if claim.exact_on_statement:
        facts["floats_exact_on"] = claim.exact_on_statement
    return {**facts, "rounding_elsewhere": claim.rounding_statement}


def _dependence(recipe: Recipe) -> str:
    names = recipe.claim.depends_on
    return f"they depend on {' and '.join(names)}" if names else "they depend on no length"


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    model: Annotated[str, typer.Argument(help="A recipe's name.", metavar="MODEL")],
    given: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="[INPUT]",
            help="The string, or a JSON list for a recipe on vectors; "
            "standard input is read when neither this nor --file is given.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Optional[Path], typer.Option(help="Read the input from this file.")  # noqa: UP045
    ] = None,
    ignore_others: Annotated[
        bool, typer.Option("--ignore-others", help="Skip characters outside the alphabet.")
    ] = False,
    settings: Set = [],  # noqa: B006
    arithmetic: Arithmetic = "float64",
    engine: Annotated[str, typer.Option(help="What evaluates: reference.")] = "reference",
    trace: Annotated[bool, typer.Option("--trace", help="Show the layers at work.")] = False,
    as_json: Json = False,
) -> None:
    """Run a recipe on an input and print the answer.

    A newline at the very end of a file or of standard input is not part of the input.
    """
    if engine != "reference":
        raise UnknownName.among("engine", engine, ["reference"])
    number_system(arithmetic)
    recipe, chosen = find_recipe(model), _settings(settings)
    recipe.settings(chosen)
    text, name = _input(given, file)
    if isinstance(recipe.claim, FunctionClaim):
        _run_function(recipe, recipe.build(**chosen), text, arithmetic, as_json)
        return
    keep = recipe.build(**chosen).alphabet if ignore_others else None
    source = Text.of(text, name, keep)
    _run_on_text(recipe, chosen, source, arithmetic, as_json, trace or file is not None)


def _run_function(recipe: Recipe, model: Any, text: str, arithmetic: str, as_json: bool) -> None:
    system = number_system(arithmetic)
    try:
        vector = json.loads(text, parse_float=rational)
    except (json.JSONDecodeError, RecursionError, ValueError):
        vector = None
    if not isinstance(vector, list) or any(isinstance(v, list | dict) for v in vector):
        raise InvalidValue(
            f"{recipe.name} reads a JSON list of {model.width} numbers",
            received=repr(text)[:60],
            remedy=f"give one such as '{json.dumps([1] * model.width)}'",
        )
    answer = [_plain(value) for value in system.numbers(model(vector, system)).tolist()]
    if as_json:
        _print_run(recipe, len(vector), answer, arithmetic)
    else:
        out.print(f"{recipe.name}({escape(text.strip())}) = {json.dumps(answer)} in {arithmetic}")


def _run_on_text(
    recipe: Recipe,
    chosen: dict[str, str],
    source: Text,
    arithmetic: str,
    as_json: bool,
    with_table: bool,
) -> None:
    if "max_length" in recipe.parameters and "max_length" not in chosen:
        needed = 1 << max(len(source.symbols) - 1, 0).bit_length()
        chosen = {**chosen, "max_length": str(needed)}
    model: Transformer = recipe.build(**chosen)
    claimed = _within_claim(recipe, model, len(source.symbols), arithmetic)
    trace = model.run(source.symbols, arithmetic)
    finding = recipe.explain(trace) if recipe.explain else Finding(sentence="")
    if as_json:
        more = {"within_claim": claimed, **_found(finding, source)}
        _print_run(recipe, len(source.symbols), trace.answer, arithmetic, more)
        return
    answer = {True: "accepted", False: "rejected"}.get(trace.answer, trace.answer)
    where = "" if finding.position is None else f", at {source.place(finding.position)}"
    out.print(f"[bold]{escape(str(answer))}[/]: {escape(finding.sentence)}{escape(where)}")
    if with_table:
        out.print(trace_table(trace, finding.position))
    limit = "" if model.max_length is None else f", N = {model.max_length}"
    out.print(
        f"{recipe.name} on {len(source.symbols)} symbols in {arithmetic}: {size(model)}; "
        f"{_dependence(recipe)}{limit}",
        style="dim",
    )


def _within_claim(recipe: Recipe, model: Transformer, length: int, arithmetic: str) -> bool:
    """Whether the claim covers this length in this arithmetic; a warning where it does not."""
    claim = recipe.claim
    safe = claim.safe_lengths[arithmetic] if isinstance(claim, StringClaim) else None
    built_for = model.max_length or length
    if safe is None or built_for <= safe:
        return True
    err.print(
        f"warning: {recipe.name} claims lengths up to {safe} in {arithmetic}, and this model is "
        f"built for {built_for}: the answer is what the format gives, right or wrong"
    )
    return False


def _found(finding: Finding, source: Text) -> dict[str, Any]:
    place = None if finding.position is None else source.place(finding.position)
    return {"finding": finding.sentence, "position": finding.position, "place": place}


def _print_run(
    recipe: Recipe, length: int, answer: Any, arithmetic: str, more: dict[str, Any] | None = None
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
    max_length = None if length is None else _length(length)
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
        verdicts = _with_progress(check_recipes(chosen, max_length), len(chosen))
    held, rows = True, []
    for verdict in verdicts:
        held = held and verdict.held
        if as_json:
            rows.append(_verdict_row(verdict))
        else:
            out.print(_verdict_line(verdict))
    if as_json:
        _print_json({"held": held, "recipes": rows})
    return 0 if held else 1


def _length(text: str) -> int:
    if text.isdecimal() and len(text) < 10:
        return int(text)
    raise InvalidValue(
        "--max-length is a whole number of at least 0",
        received=repr(text),
        remedy="strings one and all are feasible up to about 16",
    )


def _check_against(
    chosen: Sequence[Recipe],
    against: str,
    settings: dict[str, str],
    arithmetic: str,
    max_length: int | None,
) -> Verdict:
    length = 10 if max_length is None else max_length
    if len(chosen) != 1 or isinstance(chosen[0].claim, FunctionClaim):
        raise InvalidValue(
            "--against compares one model on strings with a function",
            received="the whole catalogue" if len(chosen) != 1 else chosen[0].name,
            remedy="name a recipe on strings, such as dyck-1",
        )
    if "max_length" in chosen[0].parameters:
        settings = {"max_length": str(max(length, 1)), **settings}
    reference = _load_function(against)
    verdict = check(chosen[0].build(**settings), reference, length, arithmetic)
    return Verdict(chosen[0].name, verdict.cases, verdict.arithmetics, *_rest(verdict))


def _rest(verdict: Verdict) -> tuple[str, Any]:
    return verdict.covered, verdict.counterexample


def _load_function(against: str) -> Callable[[str], Any]:
    """The function that FILE.py:NAME points to; what it raises is told in one line."""
    path, _, name = against.rpartition(":")
    namespace: dict[str, Any] = {"__name__": "transformist_reference"}
    try:
        exec(compile(read_text(Path(path)), path, "exec"), namespace)
    except TransformistError:
        raise
    except Exception as error:
        raise UnreadableInput(
            "the file of --against runs",
            received=f"{path}, which raises {type(error).__name__}: {error}",
            remedy="mend the file",
        ) from None
    if not callable(namespace.get(name)):
        known = [key for key, value in namespace.items() if callable(value)]
        raise UnknownName.among("function of the file", name, known or ["(none)"], path)

    def reference(string: str) -> Any:
        try:
            return namespace[name](string)
        except Exception as error:
            raise InvalidValue(
                "the function of --against answers every string",
                received=f"{type(error).__name__}: {error} on {string!r}",
                where=name,
                remedy="mend the function",
            ) from None

    return reference


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
        f"{verdict.name:<28} {mark}  {verdict.cases:>6} cases in "
        f"{', '.join(verdict.arithmetics)}; {escape(verdict.covered)}"
    )
    if verdict.counterexample is None:
        return line
    return f"{line}\n    {escape(str(verdict.counterexample))}"


def _verdict_row(verdict: Verdict) -> dict[str, Any]:
    found = verdict.counterexample
    return {
        "name": verdict.name,
        "held": verdict.held,
        "cases": verdict.cases,
        "arithmetics": list(verdict.arithmetics),
        "covered": verdict.covered,
        "counterexample": None
        if found is None
        else {
            "input": _plain(found.input),
            "expected": _plain(found.expected),
            "got": _plain(found.got),
            "arithmetic": found.arithmetic,
        },
    }


@app.command()
def demo() -> None:
    """Judge the parentheses of a file of Python's own library with a transformer."""
    path = Path(argparse.__file__)
    source = Text.of(read_text(path), str(path), keep="()")
    out.print(
        f"The {len(source.symbols)} parentheses of {path}, judged by a transformer whose weights "
        "were computed, not trained:\n"
    )
    _run_on_text(find_recipe("dyck-1"), {}, source, "float64", as_json=False, with_table=True)
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


def _plain(value: Any) -> Any:
    """A value for JSON: integers as they are, other rationals "p/q", no NaN or infinity.

    Raises:
        NotFinite: for NaN or infinity.

    """
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else str(value)
    if isinstance(value, float) and value - value != 0:
        raise NotFinite(
            "every number of the answer is finite",
            received=str(value),
            remedy="scale the input down, or use a format with a wider range",
        )
    return value


def _print_json(facts: dict[str, Any]) -> None:
    print(json.dumps(facts, ensure_ascii=False, allow_nan=False))


if __name__ == "__main__":
    sys.exit(main())
