"""`transformist conformance`: known-answer tests for inference engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from transformist.cli.printing import Json, out, print_json, wide, working
from transformist.conformance import Judgements, run, write
from transformist.conformance.engine_table import ENGINES, IN_FORMATS
from transformist.conformance.families import FAMILIES
from transformist.conformance.faults import FAULTS
from transformist.conformance.gguf_file import write_gguf
from transformist.conformance.junit import as_junit
from transformist.conformance.modes import EVERY_MODE, GENERATION
from transformist.conformance.openai_engine import openai_engine, server
from transformist.conformance.rounding_margins import FORMATS
from transformist.conformance.suite_files import (
    FAMILY,
    LENGTH,
    LONGEST,
    SHORTEST,
    read_manifest,
)
from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.hosts.optional_library import optional
from transformist.inputs import read_between

ACTIONS = ("run", "write")

NOT_RUN = 3
"""Exit code of `run` if no answer is wrong, and some did not come: they never count as right."""

Action = Annotated[
    str, typer.Argument(help=f"One of {', '.join(ACTIONS)}.", metavar="ACTION", show_default=False)
]
Directory = Annotated[
    Path | None,
    typer.Argument(
        help="The directory of the suite; `write` needs a new or empty one, and `run` writes a "
        "temporary one when it is left out.",
        metavar="DIR",
        show_default=False,
    ),
]
Family = Annotated[
    str | None,
    typer.Option(
        help=f"The family of models: {', '.join(FAMILIES)}; when left out, that of DIR, or "
        f"{FAMILY}.",
        metavar="F",
        show_default=False,
    ),
]
Length = Annotated[
    str | None,
    typer.Option(
        help=f"The longest input in tokens of a suite that is written; {LENGTH} when left out.",
        metavar="N",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help=f"The engine of `run`: {', '.join(ENGINES)}.", metavar="E", show_default=False
    ),
]
OpenAI = Annotated[
    str | None,
    typer.Option(
        "--openai",
        help="Run a server of the completions API of OpenAI in place of --engine: its URL, such as "
        "http://127.0.0.1:8000/v1, or its port on this machine. No other host is contacted.",
        metavar="URL",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="The one checkpoint of DIR that the server of --openai has: its name there, which "
        "ends with that of the instrument. When left out, the server has all.",
        metavar="NAME",
        show_default=False,
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(
        help=f"The mode of `run`: {', '.join(EVERY_MODE)}; all that the engine has when left out.",
        metavar="M",
        show_default=False,
    ),
]
Instrument = Annotated[
    str | None,
    typer.Option(
        help="The one instrument that `run` gives to the engine; all when left out.",
        metavar="NAME",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"The format in which the engine of `run` computes: {', '.join(FORMATS)}; prompts "
        f"whose answers need not hold in it are left out. {FORMATS[0]} when left out.",
        metavar="A",
        show_default=False,
    ),
]
JUnit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        help="Write the judgements of `run` to this file, as JUnit XML.",
        metavar="FILE",
        show_default=False,
    ),
]


Gguf = Annotated[
    bool,
    typer.Option(
        "--gguf",
        help="Also write each checkpoint of `write` as DIR/NAME.gguf, for llama.cpp, and list "
        "the checkpoints that it cannot represent.",
    ),
]


def command(
    action: Action,
    directory: Directory = None,
    family: Family = None,
    length: Length = None,
    engine: Engine = None,
    openai: OpenAI = None,
    model: Model = None,
    mode: Mode = None,
    instrument: Instrument = None,
    number_format: Format = None,
    junit: JUnit = None,
    gguf: Gguf = False,
    as_json: Json = False,
) -> int:
    """`write` makes stock checkpoints with prompts whose greedy tokens are known.

    `run` gives them to an engine or a server. Exit code 1 when an answer is wrong, and 3 when none
    is wrong but some did not run.
    """
    if not is_name(action, ACTIONS):
        raise UnknownName.among("action", action, ACTIONS, "conformance")
    longest = None if length is None else read_between(length, "--length", SHORTEST, LONGEST)
    if action == "run":
        if directory is not None and longest is not None:
            raise InvalidValue(
                "--length must come without DIR, which has the length with which it was written",
                received=f"--length {length} with {directory}",
                remedy="leave one of them out",
            )
        if gguf:
            raise InvalidValue(
                "--gguf must come with write",
                received="--gguf with run",
                where="conformance",
                remedy="leave it out: the engine llama.cpp writes its files itself",
            )
        _require_place(junit)
        opened, served = _engine(engine, openai, model, directory, number_format)
        if instrument is not None and served not in (None, instrument):
            raise InvalidValue(
                f"--instrument must be {served}, that of --model {model}",
                received=instrument,
                where="conformance",
                remedy="leave it out",
            )
        if openai is not None and mode not in (None, GENERATION):
            raise InvalidValue(
                f"--openai cannot run the mode {mode}: a server gives new tokens alone",
                received=f"--mode {mode} with --openai {openai}",
                where="conformance",
                remedy=f"leave --mode out, or give --mode {GENERATION}",
            )
        name = engine or "openai"
        with working(f"running {name}"):
            found = run(
                opened,
                directory,
                family=family,
                length=longest or LENGTH,
                mode=mode,
                instrument=instrument or served,
                number_format=number_format or FORMATS[0],
            )
        facts = _facts(found, name, mode)
        _save(junit, as_junit(found, name))
        if as_json:
            print_json(facts)
        else:
            _show(found, facts)
        return 1 if found.wrong else 0 if found.is_right else NOT_RUN
    given = {
        "--engine": engine,
        "--openai": openai,
        "--model": model,
        "--mode": mode,
        "--instrument": instrument,
        "--format": number_format,
        "--junit": junit,
    }
    for option, value in given.items():
        if value is not None:
            raise InvalidValue(
                f"{option} must come with run",
                received=f"{option} {value} with write",
                remedy="leave it out, or run: transformist conformance run DIR",
            )
    if directory is None:
        raise InvalidValue(
            "write must have the directory of the suite",
            received="no DIR",
            where="conformance",
            remedy="run: transformist conformance write DIR, where DIR is a new directory",
        )
    if gguf:
        optional("gguf", "llama-cpp", "conformance")
    with working(f"writing the suite of {family or FAMILY}"):
        prompts = write(directory, family or FAMILY, longest or LENGTH)
        refused = _write_gguf(directory) if gguf else {}
    _report(directory, prompts, refused, as_json)
    return 0


def _write_gguf(directory: Path) -> dict[str, str]:
    """Write the checkpoints of a suite as GGUF; return the reasons for those that are refused."""
    refused = {}
    for each in read_manifest(directory)["instruments"]:
        name = each["name"]
        try:
            write_gguf(directory / each["directory"], directory / f"{name}.gguf")
        except InvalidValue as error:
            refused[name] = f"{error.invariant}; {error.received}"
    return refused


def _report(directory: Path, prompts: int, refused: dict[str, str], as_json: bool) -> None:
    manifest = read_manifest(directory)
    family, longest = manifest["family"], manifest["length"]
    names = [each["name"] for each in manifest["instruments"]]
    size = sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())
    facts = {
        "directory": str(directory),
        "family": family,
        "length": longest,
        "instruments": names,
        "prompts": prompts,
        "bytes": size,
        "no_gguf": refused,
    }
    if as_json:
        print_json(facts)
    else:
        out.print(
            f"{directory}: {len(names)} checkpoints of {family}, {prompts} prompts of up to "
            f"{longest} tokens, {size:,} bytes: {', '.join(names)}",
            markup=False,
        )
        if {*refused} == {*names} and len({*refused.values()}) == 1:
            out.print(f"no GGUF of {family}: {refused[names[0]]}", markup=False)
            return
        for name, reason in refused.items():
            out.print(f"no GGUF of {name}: {reason}", markup=False)


def _engine(
    engine: str | None,
    openai: str | None,
    model: str | None,
    directory: Path | None,
    number_format: str | None,
) -> tuple[Callable[[Path], Any], str | None]:
    """The function that opens a checkpoint, and the one instrument that the engine has, or None."""
    if (engine is None) == (openai is None):
        raise InvalidValue(
            "run must have an engine: either --engine or --openai",
            received="no --engine" if engine is None else f"--engine {engine} --openai {openai}",
            where="conformance",
            remedy=f"give --engine {' or --engine '.join(ENGINES)}, or --openai URL; for an engine "
            "of your own, call transformist.conformance.run in Python",
        )
    if number_format is not None and not is_name(number_format, FORMATS):
        raise UnknownName.among("format", number_format, FORMATS, "conformance")
    if openai is not None:
        place = server(openai)
        if directory is None:
            raise InvalidValue(
                "--openai must come with DIR, the suite whose checkpoints the server has",
                received="no DIR",
                where="conformance",
                remedy="write one, serve its checkpoints, and give it: transformist conformance "
                f"run DIR --openai {openai}",
            )
        return openai_engine(place, directory, model)
    if model is not None:
        raise InvalidValue(
            "--model must come with --openai",
            received=f"--model {model} with --engine {engine}",
            where="conformance",
            remedy="leave it out",
        )
    if engine is None or not is_name(engine, ENGINES):
        raise UnknownName.among("engine", engine, ENGINES, "conformance")
    if engine in IN_FORMATS:
        return ENGINES[engine](number_format=number_format or FORMATS[0]), None
    if number_format not in (None, FORMATS[0]):
        raise InvalidValue(
            f"{engine} must run in {FORMATS[0]}",
            received=f"--format {number_format}",
            where="conformance",
            remedy=f"leave it out, or choose an engine with formats: {', '.join(IN_FORMATS)}",
        )
    return ENGINES[engine](), None


def _facts(found: Judgements, engine: str, mode: str | None) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {
        "engine": engine,
        "family": found.family,
        "mode": mode or "all",
        "held": found.is_right,
        "instruments": [vars(each) for each in found.rows()],
        "diagnosis": [
            {"class": each.fault, "meaning": FAULTS[each.fault], "evidence": each.evidence}
            for each in found.diagnosis
        ],
        "wrong": [
            {
                "mistake": " or ".join(each.mistakes) or None,
                "evidence": str(each),
                "instrument": each.instrument,
                "modes": list(each.modes),
                "meanings": [
                    {"meaning": meaning, "count": count} for meaning, count in each.meanings
                ],
            }
            for each in found.evidence()
        ],
        "notes": list(found.notes),
    }


def _show(found: Judgements, facts: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("instrument", "mode"):
        table.add_column(heading)
    for heading in ("answers", "wrong", "not run"):
        table.add_column(heading, justify="right")
    rows = found.rows()
    for each in rows:
        counts = each.positions, each.wrong, each.not_run
        table.add_row(each.name, each.mode, *map(str, counts))
    wide.print(table)
    for note in found.notes:
        out.print(f"note: {note}", markup=False)
    for evidence in found.evidence():
        out.print(f"wrong: {evidence}", markup=False)
    for number, named in enumerate(found.diagnosis):
        out.print(f"{'or' if number else 'diagnosis'}: {named}", markup=False)
    total = sum(each.positions for each in rows)
    out.print(
        f"{facts['engine']}, {found.family}: {total} answers, {found.wrong} wrong, "
        f"{found.not_run} not run",
        markup=False,
    )
    _show_not_run(found)


def _show_not_run(found: Judgements) -> None:
    """Print what did not run, and why, as the last lines."""
    modes: dict[tuple[str, str], dict[str, int]] = {}
    for each in found.rows():
        if each.not_run:
            modes.setdefault((each.name, each.reason), {})[each.mode] = each.not_run
    for (name, reason), counts in modes.items():
        out.print(
            f"not run: {sum(counts.values())} answers of {name} in {', '.join(counts)}: {reason}",
            markup=False,
        )
    if modes and not found.wrong:
        out.print(
            f"no answer is wrong; the exit code is {NOT_RUN}, since some did not run", markup=False
        )


def _require_place(path: Path | None) -> None:
    """Refuse a place that cannot have a file, before the engine runs."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise _no_place(path, "a directory" if path.is_dir() else "a directory that is not there")


def _save(path: Path | None, data: bytes) -> None:
    if path is not None:
        try:
            path.write_bytes(data)
        except OSError as error:
            raise _no_place(path, error.strerror or str(error)) from None


def _no_place(path: Path, received: str) -> InvalidValue:
    return InvalidValue(
        "--junit must be a file in a directory that exists",
        received=f"{path} ({received})",
        where="conformance",
        remedy="give the path of a new file, or of one to replace",
    )
