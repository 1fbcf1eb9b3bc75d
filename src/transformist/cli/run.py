"""`transformist run`: the answer of a model on an input."""

from __future__ import annotations

import functools
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from transformist.arithmetic import Arithmetic, Interval, number_system
from transformist.claims import Finding, PositionClaim
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
from transformist.model import NOTHING, Trace, Transformer
from transformist.named import BuiltModel, NamedModel, find_model
from transformist.named.named_recipe import NamedRecipe
from transformist.report.size import counted, size
from transformist.report.values import answer_in_words, at_most, plain
from transformist.running import (
    STRUCTURED_FROM,
    admission,
    chosen_engine,
    naming_structured,
    require_engine,
)
from transformist.running import run as evaluate
from transformist.texts import Text, TextSource, admitted

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
        help=f"{NUMBER_SYSTEMS}. By default float64, or the first arithmetic of the "
        "recipe's claim.",
        metavar="A",
        show_default=False,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="The evaluator: reference (the definitions), structured (for long inputs in float64 "
        "and float32, which sums in its own order), auto (structured from "
        f"{STRUCTURED_FROM} symbols on).",
        metavar="E",
    ),
]
ShowLayers = Annotated[bool, typer.Option("--trace", help="Show the layers at work.")]
Plot = Annotated[
    str | None,
    typer.Option(
        help="Also draw the layers at work in this file (.svg, .pdf or .png): the slots that each "
        "step may change, at every position.",
        metavar="FILE",
        show_default=False,
    ),
]

STRUCTURED_ENGINE = "--engine structured"
"""The option that asks for the structured engine."""

STANDARD_INPUT = "-"
"""The name of standard input for --file; a file of this name is ./-."""


NO_WIDTH = 10**6
"""Characters of a line that is not shown on a terminal."""


def command(
    model: Model,
    given: Given = None,
    file: InputFile = None,
    ignore_others: IgnoreOthers = False,
    settings: Set = [],  # noqa: B006
    arithmetic: InArithmetic = None,
    engine: Engine = "reference",
    trace: ShowLayers = False,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Of a file or of standard input, a byte order mark at the very beginning and a newline at the
    very end are not part of the input.

    Without --set max_length, the model is built for the length of the input, rounded up to a power
    of two. A program is built for at least 16, or for the length itself if it cannot be compiled
    for more. A recipe is built for at most the length that its claim covers, unless the input is
    longer.
    """
    require_engine(engine)
    named = find_model(model, read_settings(settings))
    for option, received, is_given in (
        ("the structured engine", STRUCTURED_ENGINE, engine == "structured"),
        ("--trace", "--trace", trace),
        ("--plot", "--plot", plot is not None),
        ("--ignore-others", "--ignore-others", ignore_others),
    ):
        if is_given:
            named.require_strings(option, received)
    shown = "--trace" if trace else None if plot is None else "--plot"
    if shown and engine == "structured":
        raise InvalidValue(
            "the layers must be shown by the reference engine",
            received=f"{shown} with --engine structured",
            remedy="leave one of the two out",
        )
    if plot is not None:
        from transformist.figures.canvas import require_plot

        require_plot(plot, "--plot")
    system = number_system(arithmetic or named.usual_arithmetic)
    source = _input(given, file)
    if isinstance(named, NamedRecipe) and not named.takes_strings:
        _run_on_numbers(named, source.text(), system, as_json)
        return
    engine = "reference" if shown else engine
    named, text = _read_text(named, source, system, engine, ignore_others)
    _run_on_text(named, text, system, engine, as_json, with_trace=trace, plot=plot)


def _input(given: str | None, file: str | None) -> TextSource:
    """The source of the input."""
    if given is not None and file is not None:
        raise InvalidValue(
            "the input must be given once",
            received=f"INPUT {given!r} and --file {file}",
            remedy="give one of the two",
        )
    if given is not None:
        return TextSource.given(given)
    if file is not None and file != STANDARD_INPUT:
        return TextSource.file(Path(file))
    if sys.stdin is None:
        raise UnreadableInput(
            "there must be an input: INPUT, a file, or standard input",
            received="a closed standard input",
            remedy="give INPUT, or --file with the name of a file",
        )
    if sys.stdin.isatty():
        err.print("reading standard input, to its end (Ctrl-D)")
    return TextSource.stream(sys.stdin.buffer, "standard input")


def _run_on_numbers(named: NamedRecipe, text: str, system: Arithmetic, as_json: bool) -> None:
    """Print an answer in numbers: one line, or a line for each position."""
    from transformist.report.numeric_answer import closeness, numeric_answer_facts, outside_claim
    from transformist.verify import answer_in_numbers

    answer = answer_in_numbers(named.recipe, named.given, text, system)
    value = plain(answer.shown)
    if not answer.covered:
        outside = outside_claim(named.recipe, named.settings, answer, system)
        warn(f"{named.name} claims nothing {outside}")
    if as_json:
        more = numeric_answer_facts(answer)
        _print_facts(named.name, answer.length, value, system, "reference", more)
    elif isinstance(named.recipe.claim, PositionClaim):
        for i, vector in enumerate(value, start=1):
            out.print(f"{i:>6}  {json.dumps(vector)}", markup=False)
    else:
        close = closeness(answer, system.name)
        line = f"{named.name}({text.strip()}) = {json.dumps(value)} in {system.name}{close}"
        out.print(line, markup=False)


def _read_text(
    named: NamedModel, source: TextSource, system: Arithmetic, engine: str, ignore_others: bool
) -> tuple[NamedModel, Text]:
    """The model, with the settings that depend on the text, and the symbols of the input.

    A stream is read only as far as it can be evaluated.
    """

    def admit_for(model: NamedModel) -> Callable[[int], None]:
        if source.length is not None:  # the evaluation refuses the text by its length
            return lambda _: None
        build = functools.partial(model.transformer, 1, system)
        engine_if_long = chosen_engine(engine, STRUCTURED_FROM, system)
        return admission(build, system, engine_if_long, STRUCTURED_ENGINE, model.has_length)

    named = named.adapted(admitted(source.again(), 0, admit_for(named)))
    length = 1 if source.length is None or ignore_others else source.length
    alphabet = named.alphabet(length, system)
    return named, Text.over(alphabet, source, ignore_others, admit_for(named))


def _run_on_text(
    named: NamedModel,
    text: Text,
    system: Arithmetic,
    engine: str,
    as_json: bool,
    with_trace: bool,
    plot: str | None,
) -> None:
    """Evaluate a text, and print the answer with the findings of its claim and its trace."""
    length = len(text.symbols)
    engine = chosen_engine(engine, length, system)
    built, answer, trace = _evaluated(named, text, system, engine)
    _warn_of(named, built, length, system, engine)
    finding = built.explained(trace) if trace else Finding(sentence="")
    in_numbers = built.recipe is not None and built.recipe.claim.in_numbers
    error = _error_of_numbers(built.model, trace) if trace and in_numbers else None
    drawn = {} if plot is None or trace is None else _drawn(trace, plot)
    if as_json:
        facts: dict[str, Any] = {"within_claim": built.covered} if built.recipe else {}
        if trace and built.recipe:
            facts |= _finding_facts(finding, text)
            if in_numbers:
                facts["error_bound"] = None if error is None or math.isinf(error) else [error]
        if trace and with_trace:
            facts["trace"] = _trace_facts(trace)
        _print_facts(named.name, length, plain(answer), system, engine, facts | drawn)
        return
    if trace and in_numbers:
        _print_vectors(trace)
        out.print(_nearness(built, error), markup=False)
    else:
        _print_answer(answer, finding, text)
    if trace and with_trace:
        from transformist.report.trace_table import trace_table

        # A file or another program has no width: there the names are whole.
        columns = shutil.get_terminal_size((NO_WIDTH, 0)).columns
        wide.print(trace_table(trace, finding.position, columns), crop=False)
    by = f"{system.name}, by the structured engine" if engine == "structured" else system.name
    model, claimed = built.model, f"; {built.dependence}" if built.dependence else ""
    limit = "" if model.max_length is None else f", N = {model.max_length}"
    line = f"{named.name} on {counted(length, 'symbol')} in {by}: {size(model)}{claimed}{limit}"
    out.print(line, style="dim", markup=False)
    if drawn:
        out.print(f"wrote {plot}", markup=False)


def _evaluated(
    named: NamedModel, text: Text, system: Arithmetic, engine: str
) -> tuple[BuiltModel, Any, Trace | None]:
    """The model for a text, its answer, and its trace; the structured engine gives no trace."""
    length = len(text.symbols)
    is_long = engine == "reference" and length >= STRUCTURED_FROM
    densely = " densely (--engine auto has another way for long inputs)" if is_long else ""
    with (
        working(f"evaluating {length} symbols{densely}"),
        shown_warnings(),
        _naming_options(system),
    ):
        built = named.built(length, system)
        if engine == "structured":
            return built, evaluate(built.model, text.symbols, system, engine), None
        trace = built.model.run(text.whole, system)
        return built, trace.answer, trace


def _drawn(trace: Trace, file: str) -> dict[str, str]:
    """Write the figure of a run to a file, and return the file and the figure's description."""
    from transformist.figures import run as run_figure
    from transformist.figures import write

    with working("drawing the layers"):
        figure = run_figure(trace)
        write(figure, file)
    return {"figure": file, "description": figure.get_label()}


@contextmanager
def _naming_options(system: Arithmetic) -> Iterator[None]:
    """Add the helpful option to a refusal of an input that is too long or has other symbols."""
    try:
        with naming_structured(STRUCTURED_ENGINE, system):
            yield
    except UnknownSymbol as refusal:
        raise refusal.with_remedy("(--ignore-others skips other characters)") from None


def _warn_of(
    named: NamedModel, built: BuiltModel, length: int, system: Arithmetic, engine: str
) -> None:
    """Warn of an arithmetic coarser than the margins, and of an N beyond the claim."""
    warn(named.caution(built.model, system, engine))
    if built.covered:
        return
    if built.safe:
        warn(
            f"the claim of {named.name} holds up to N = {built.safe} in {system.name}, and this "
            f"model is built for {built.model.max_length or length}: the answer may be wrong"
        )
    elif engine == "structured":
        warn(f"{named.name} claims nothing in {system.name}: the answer may be wrong")


def _error_of_numbers(model: Transformer, trace: Trace) -> float | None:
    """Error bound of an answer in numbers by balls; `None` for no bound, and for balls."""
    from transformist.verify import enclosed_error

    return None if isinstance(trace.arithmetic, Interval) else enclosed_error(model, trace)


def _nearness(built: BuiltModel, error: float | None) -> str:
    """The largest distance of the numbers from the real values, as a sentence."""
    if error is None and built.covered:
        return built.recipe.claim.error_statement if built.recipe else ""
    if error is None:
        return "no error bound: the input is too long for intervals, or the intervals are too wide"
    if math.isinf(error):
        return "a number is infinite"
    return f"each number is within {at_most(error)} of the real value, by interval arithmetic"


def _print_vectors(trace: Trace) -> None:
    for i, (symbol, vector) in enumerate(zip(trace.input, trace.answer, strict=True), start=1):
        out.print(f"{i:>6}  {symbol!s:>6}  {json.dumps(plain(vector))}", markup=False)


def _print_answer(answer: Any, finding: Finding, text: Text) -> None:
    """Print the answer as a word or a string, and the claim's finding about the input."""
    where = "" if finding.position is None else f", at {text.place(finding.position)}"
    if finding.related:
        where += f" (see {' and '.join(map(text.place, finding.related))})"
    why = f": {finding.sentence}{where}" if finding.sentence else ""
    out.print(f"[bold]{escape(answer_in_words(answer))}[/]{escape(why)}")


def _finding_facts(finding: Finding, text: Text) -> dict[str, Any]:
    """The finding about an input, with the places of the symbols."""
    return {
        "finding": finding.sentence or None,
        "position": finding.position,
        "place": None if finding.position is None else text.place(finding.position),
        "related": [text.place(position) for position in finding.related],
        **finding.numbers,
    }


def _trace_facts(trace: Trace) -> list[dict[str, Any]]:
    """The streams of a trace: after each sublayer, the content of each slot at every row."""
    stream = trace.model.stream
    return [
        {
            "after": name,
            "values": {
                stream.held(index, step): plain(trace.shown(slot, step))
                for index, slot in enumerate(stream.slots)
                if stream.held(index, step) != NOTHING
            },
        }
        for step, (name, _) in enumerate(trace.streams)
    ]


def _print_facts(
    name: str, length: int, answer: Any, system: Arithmetic, engine: str, more: dict[str, Any]
) -> None:
    facts = {
        "model": name,
        "length": length,
        "answer": answer,
        "arithmetic": system.name,
        "engine": engine,
    }
    print_json({**facts, **more})
