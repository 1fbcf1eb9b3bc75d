"""`transformist run` and `transformist demo`."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from transformist.arithmetic import Arithmetic, number_system
from transformist.catalogue import recipe as find_recipe
from transformist.claims import Finding, PositionClaim, Recipe, Settings
from transformist.cli.options import NUMBER_SYSTEMS, Model, Set
from transformist.cli.printing import (
    Json,
    err,
    out,
    print_json,
    shown_warnings,
    warn,
    wide,
    working,
)
from transformist.errors import InvalidValue, UnknownSymbol, UnreadableInput
from transformist.inputs import read_settings
from transformist.model import Trace
from transformist.named import Named, NamedRecipe, caution, named_model
from transformist.report import (
    answer_in_words,
    how_close,
    how_near,
    judged_facts,
    numbers_facts,
    plain,
    run_in_words,
    trace_facts,
    trace_table,
)
from transformist.running import LONG, admission, chosen_engine, naming_structured
from transformist.running import run as evaluate
from transformist.texts import Source, Text, admitted
from transformist.verify import AnswerInNumbers, answer_in_numbers

Given = Annotated[
    str | None,
    typer.Argument(
        metavar="[INPUT]",
        help="The string; for a recipe on vectors a JSON list, fractions in quotes. "
        "Standard input is read when neither this nor --file is given.",
        show_default=False,
    ),
]
InputFile = Annotated[
    str | None,
    typer.Option(help="Read the input from this file; - is standard input.", metavar="F"),
]
IgnoreOthers = Annotated[
    bool, typer.Option("--ignore-others", help="Skip characters outside the alphabet.")
]
InArithmetic = Annotated[
    str | None,
    typer.Option(
        help=f"{NUMBER_SYSTEMS}; float64, or the first in "
        "which the recipe is claimed, when left out.",
        metavar="A",
        show_default=False,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="What evaluates: reference, the definitions; structured, for long inputs in "
        f"float64 and float32, which sums in its own order; auto, that from {LONG} symbols on.",
        metavar="E",
    ),
]
ShowLayers = Annotated[bool, typer.Option("--trace", help="Show the layers at work.")]


def run(
    model: Model,
    given: Given = None,
    file: InputFile = None,
    ignore_others: IgnoreOthers = False,
    settings: Set = [],  # noqa: B006
    arithmetic: InArithmetic = None,
    engine: Engine = "reference",
    trace: ShowLayers = False,
    as_json: Json = False,
) -> None:
    """Run a model on an input and print the answer.

    A newline at the very end of a file or of standard input is not part of the input. Where
    max_length is not set, the model is built for the length of the input, rounded up to a power of
    two: a program for at least 16, or for the length itself where it is not compiled for more, a
    recipe not beyond the length that its claim covers if the input fits into it.
    """
    chosen_engine(engine, "", "float64")  # refuses an unknown one before any work
    named, chosen = named_model(model), read_settings(settings)
    system = number_system(arithmetic or named.usual_arithmetic(chosen))
    source = _input(given, file)
    if named.takes_strings:
        _run_on_string(named, chosen, source, system, engine, ignore_others, trace, as_json)
        return
    for what, received, is_asked in (
        ("the structured engine", "--engine structured", engine == "structured"),
        ("--trace", "--trace", trace),
        ("--ignore-others", "--ignore-others", ignore_others),
    ):
        if is_asked:
            named.require_strings(what, received)
    _run_on_json(find_recipe(model), chosen, source.text(), system, as_json)


def demo() -> None:
    """Judge the parentheses of a file of Python's own library with a transformer."""
    path = Path(argparse.__file__)
    text = Text.over("()", Source.file(path), ignore_others=True)
    out.print(
        f"The {len(text.symbols)} parentheses of {path}, judged by a transformer whose weights "
        "were computed, not trained:\n"
    )
    run("dyck-1", file=str(path), ignore_others=True, trace=True)
    out.print(
        "\nNext: transformist list, transformist show dyck-1, "
        "transformist run dyck-1 --file PATH --ignore-others"
    )


STANDARD_INPUT = "-"
"""What --file calls standard input; a file of this name is ./-."""


def _input(given: str | None, file: str | None) -> Source:
    """Where the input is from."""
    if given is not None and file is not None:
        raise InvalidValue(
            "there must be one input",
            received=f"INPUT {given!r} and --file {file}",
            remedy="give one of the two",
        )
    if given is not None:
        return Source.given(given)
    if file is not None and file != STANDARD_INPUT:
        return Source.file(Path(file))
    if sys.stdin is None:
        raise UnreadableInput(
            "the input must be given, in a file, or on standard input",
            received="a closed standard input",
            remedy="give INPUT, or --file with the name of a file",
        )
    if sys.stdin.isatty():
        err.print("reading standard input, to its end (Ctrl-D)")
    return Source.stream(sys.stdin.buffer, "standard input")


def _run_on_json(
    recipe: Recipe[Any], chosen: Settings, text: str, system: Arithmetic, as_json: bool
) -> None:
    """An answer in numbers: one line, or a line for each position."""
    answer = answer_in_numbers(recipe, chosen, text, system)
    value = plain(answer.shown)
    if not answer.covered:
        where = _uncovered(recipe, chosen, answer, system)
        warn(f"{recipe.name} claims nothing {where}")
    if as_json:
        _print_run(recipe.name, answer.length, value, system.name, numbers_facts(answer))
    elif isinstance(recipe.claim, PositionClaim):
        for i, vector in enumerate(value, start=1):
            out.print(f"{i:>6}  {json.dumps(vector)}", markup=False)
    else:
        said = how_close(answer, system.name)
        shown = f"{recipe.name}({text.strip()}) = {json.dumps(value)} in {system.name}{said}"
        out.print(shown, markup=False)


def _uncovered(
    recipe: Recipe[Any], chosen: Settings, answer: AnswerInNumbers, system: Arithmetic
) -> str:
    """Where the claim says nothing."""
    settings = recipe.settings(chosen)
    claimed = recipe.claim.claimed(settings)
    if system.name not in claimed:
        return f"in {system.name}, only in {', '.join(claimed)}"
    if answer.positions == ():
        return f"of any position of this list; {recipe.summary}"
    stored = "" if answer.stored else f" (the input as {system.name} rounds it)"
    return f"outside {recipe.claim.inputs(settings)}{stored}"


def _run_on_string(
    named: Named,
    given: Settings,
    source: Source,
    system: Arithmetic,
    engine: str,
    ignore_others: bool,
    trace: bool,
    as_json: bool,
) -> None:
    """An answer by the engine that the length asks for."""
    asked = "reference" if trace else engine

    def admit_for(settings: Settings) -> Callable[[int], None]:
        if source.is_whole:  # what evaluates it refuses it, with its length
            return lambda _: None
        model = functools.partial(named.transformer, settings, 1, system)
        by = chosen_engine(asked, range(LONG), system)
        return admission(model, system, by, STRUCTURED_ENGINE, named.has_length(settings))

    chosen = named.adapted(given, admitted(source.again(), 0, admit_for(given)))
    text = Text.over(named.alphabet(chosen), source, ignore_others, admit_for(chosen))
    if trace and engine == "structured":
        raise InvalidValue(
            "the layers must be shown by the reference engine",
            received="--trace with --engine structured",
            remedy="leave one of the two out",
        )
    if chosen_engine(asked, text.symbols, system) == "structured":
        _run_long(named, chosen, text, system, as_json)
    else:
        _run_on_text(named, chosen, text, system, as_json, with_trace=trace)


STRUCTURED_ENGINE = "--engine structured"
"""The option that asks for it."""


@contextmanager
def _naming_ignore_others() -> Iterator[None]:
    """Say which option helps, of an unknown symbol."""
    try:
        yield
    except UnknownSymbol as refusal:
        raise refusal.with_remedy("(--ignore-others skips what is no symbol)") from None


def _run_on_text(
    named: Named,
    chosen: Settings,
    text: Text,
    system: Arithmetic,
    as_json: bool,
    with_trace: bool,
) -> None:
    """The answer of the reference, with what its trace shows."""
    length = len(text.symbols)
    asked = naming_structured(STRUCTURED_ENGINE, system)
    with working(f"evaluating {length} symbols densely"), asked, _naming_ignore_others():
        judged = named.answer(chosen, text.whole, system)
    trace, model = judged.trace, judged.trace.model
    if not named.is_certified(system, "reference"):
        warn(caution(named.name, model, system))
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
    if with_trace:
        wide.print(trace_table(trace, judged.finding.position))
    depends = named.dependence(judged.settings)
    line = run_in_words(named.name, model, length, system.name, depends)
    out.print(line, style="dim", markup=False)


def _run_long(
    named: Named, chosen: Settings, text: Text, system: Arithmetic, as_json: bool
) -> None:
    """The answer of the structured engine, which keeps no trace."""
    length = len(text.symbols)
    with working(f"building {named.name}"):
        built = named.prepared(chosen, length, system)
    with working(f"evaluating {length} symbols"), shown_warnings(), _naming_ignore_others():
        answer = evaluate(built.model, text.symbols, system, engine="structured")
    if not named.is_certified(system, "structured"):
        warn(caution(named.name, built.model, system))
    if not built.covered:
        warn(f"{named.name} claims nothing of this length in {system.name}: it may be wrong")
    if as_json:
        more = {"within_claim": built.covered} if isinstance(named, NamedRecipe) else {}
        _print_run(named.name, length, plain(answer), system.name, more, engine="structured")
        return
    out.print(f"[bold]{escape(answer_in_words(answer))}[/]")
    by, depends = f"{system.name}, by the structured engine", named.dependence(built.settings)
    line = run_in_words(named.name, built.model, length, by, depends)
    out.print(line, style="dim", markup=False)


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
    more: dict[str, Any],
    engine: str = "reference",
) -> None:
    facts = {
        "model": name,
        "length": length,
        "answer": answer,
        "arithmetic": arithmetic,
        "engine": engine,
    }
    print_json({**facts, **more})
