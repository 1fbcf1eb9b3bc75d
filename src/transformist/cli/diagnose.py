"""`transformist diagnose`: why an answer in a format differs from the exact one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from transformist.arithmetic import number_system
from transformist.cli.options import NUMBER_SYSTEMS, Model, Set
from transformist.cli.printing import Json, out, print_json, wide, working
from transformist.errors import InvalidValue
from transformist.inputs import read_settings
from transformist.model import Transformer
from transformist.named import NamedModel, find_model
from transformist.named.named_program import NamedProgram
from transformist.report.diagnosis_table import (
    chain_table,
    diagnosis_facts,
    diagnosis_lines,
    searched_facts,
)
from transformist.texts import Text, TextSource
from transformist.verify import diagnose, first_failing
from transformist.verify.diagnosis import MAX_STRINGS, Searched

Given = Annotated[
    str | None,
    typer.Argument(
        metavar="[INPUT]",
        help="The string; when left out, a failing one is searched for.",
        show_default=False,
    ),
]
InFormat = Annotated[
    str | None,
    typer.Option(
        "--arithmetic",
        help="The float format. When left out, the widest in which INPUT fails; without INPUT, "
        f"bfloat16, float16, float32 and float64 are searched in turn. {NUMBER_SYSTEMS}.",
        metavar="A",
        show_default=False,
    ),
]

MaxStrings = Annotated[
    int | None,
    typer.Option(
        "--max-strings",
        help=f"Without INPUT: most strings that are compared, {MAX_STRINGS:,} when left out.",
        metavar="K",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="Without INPUT: the seed of the drawn strings, 0 when left out.",
        metavar="S",
        show_default=False,
    ),
]

LENGTHS = (16, 32, 64, 128, 256, 512)
"""Each N for which a model is built and searched, if neither INPUT nor max_length is given."""


def command(
    model: Model,
    given: Given = None,
    arithmetic: InFormat = None,
    max_strings: MaxStrings = None,
    seed: Seed = None,
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """The run in the format is compared with the exact one, number by number.

    Softmax is compared with average-hard attention. A program is compiled for exact arithmetic, so
    that no format is refused. Exit code 0 whether the input fails or not.
    """
    named = _for_any_format(find_model(model, read_settings(settings)))
    named.require_strings("diagnose", "diagnose")
    exact = number_system("exact")
    searched = None
    if given is None:
        lengths = [0] if named.has_length else LENGTHS
        with working(f"searching for an input on which {named.name} fails"):
            searched = first_failing(
                lambda n: named.transformer(n, exact),
                lengths,
                arithmetic,
                max_strings=MAX_STRINGS if max_strings is None else max_strings,
                seed=0 if seed is None else seed,
            )
        if searched.failing is None:
            _print_none(named, arithmetic, searched, as_json)
            return
        built, x, arithmetic = searched.failing
    elif max_strings is not None or seed is not None:
        raise InvalidValue(
            "--max-strings and --seed must come without INPUT, which leaves nothing to search",
            received=f"INPUT of {len(given)} characters",
            where="diagnose",
            remedy="leave out INPUT, or these options",
        )
    else:
        named, x = _read(named, given)
        built = named.transformer(len(x), exact)
    with working(f"comparing {named.name} with its exact run on {len(x)} symbols"):
        found = diagnose(built, x, arithmetic, _builder(named))
    if as_json:
        more = {} if searched is None else {"searched": searched_facts(searched)}
        print_json(diagnosis_facts(named.name, found) | more)
        return
    if searched is not None:
        out.print(f"found by the search: {searched}", markup=False)
    for line in diagnosis_lines(named.name, found):
        out.print(line, markup=False)
    if found.chain:
        wide.print(chain_table(found))


def _for_any_format(named: NamedModel) -> NamedModel:
    """The model; a program is compiled for exact arithmetic, in which no margin is refused."""
    if isinstance(named, NamedProgram):
        return named.with_defaults(arithmetic="exact")
    return named


def _read(named: NamedModel, given: str) -> tuple[NamedModel, Sequence[Any]]:
    """The model with the settings that depend on the input, and the symbols."""
    source = TextSource.given(given)
    named = named.adapted([given])
    alphabet = named.alphabet(len(given), number_system("exact"))
    text = Text.over(alphabet, source)
    return named, text.whole


def _builder(named: NamedModel) -> Any:
    """A function from N to the model; `None` where the model is not that of a program."""
    if isinstance(named, NamedProgram):
        exact = number_system("exact")

        def build(length: int) -> Transformer:
            settings = {**named.given, "max_length": length}
            return NamedProgram(named.name, settings, named.program).transformer(length, exact)

        return build
    return None


def _print_none(
    named: NamedModel, arithmetic: str | None, searched: Searched, as_json: bool
) -> None:
    """Print that the search found no failing input, and how far it went."""
    if as_json:
        of_a_failure = "answer", "exact", "signature", "slot", "position", "layer", "remedy"
        facts = {"model": named.name, "input": None, "arithmetic": arithmetic, "fails": False}
        facts |= dict.fromkeys(of_a_failure)
        print_json({**facts, "searched": searched_facts(searched)})
        return
    most = "to its N" if named.has_length else f"for N up to {searched.lengths[-1]}"
    out.print(
        f"{named.name}: the search found no input that fails in {', '.join(searched.formats)} "
        f"{most}: {searched}" + "; --max-strings takes another limit" * searched.is_limited,
        markup=False,
    )
