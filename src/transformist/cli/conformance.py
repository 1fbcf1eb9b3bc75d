"""`transformist conformance`: known-answer tests for inference engines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from transformist.cli.printing import Json, out, print_json, wide, working
from transformist.conformance import Judgements, run, write
from transformist.conformance.junit import as_junit
from transformist.conformance.modes import MODES
from transformist.conformance.suite_files import FAMILIES, LENGTH, read_manifest
from transformist.conformance.transformers_engine import ENGINES
from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.inputs import read_positive

ACTIONS = ("run", "write")

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
        f"{FAMILIES[0]}.",
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
Mode = Annotated[
    str | None,
    typer.Option(
        help=f"The mode of `run`: {', '.join(MODES)}; all when left out.",
        metavar="M",
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


def command(
    action: Action,
    directory: Directory = None,
    family: Family = None,
    length: Length = None,
    engine: Engine = None,
    mode: Mode = None,
    junit: JUnit = None,
    as_json: Json = False,
) -> int:
    """`write` makes stock checkpoints with prompts whose greedy tokens are known.

    `run` gives them to an engine. Exit code 1 when an answer is wrong or did not run.
    """
    if not is_name(action, ACTIONS):
        raise UnknownName.among("action", action, ACTIONS, "conformance")
    longest = None if length is None else read_positive(length, "--length")
    if action == "run":
        if directory is not None and longest is not None:
            raise InvalidValue(
                "--length must come without DIR, which has the length with which it was written",
                received=f"--length {length} with {directory}",
                remedy="leave one of them out",
            )
        _require_place(junit)
        found, facts = _judged(directory, family, longest or LENGTH, engine, mode)
        _save(junit, as_junit(found, facts["engine"]))
        if as_json:
            print_json(facts)
        else:
            _show(found, facts)
        return 0 if found.is_right else 1
    for option, value in {"--engine": engine, "--mode": mode, "--junit": junit}.items():
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
    _write(directory, family or FAMILIES[0], longest or LENGTH, as_json)
    return 0


def _write(directory: Path, family: str, longest: int, as_json: bool) -> None:
    with working(f"writing the suite of {family}"):
        prompts = write(directory, family, longest)
    manifest = read_manifest(directory)
    names = [each["name"] for each in manifest["instruments"]]
    size = sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())
    facts = {
        "directory": str(directory),
        "family": family,
        "length": longest,
        "instruments": names,
        "prompts": prompts,
        "bytes": size,
    }
    if as_json:
        print_json(facts)
    else:
        out.print(
            f"{directory}: {len(names)} checkpoints of {family}, {prompts} prompts of up to "
            f"{longest} tokens, {size:,} bytes: {', '.join(names)}",
            markup=False,
        )


def _judged(
    directory: Path | None, family: str | None, longest: int, engine: str | None, mode: str | None
) -> tuple[Judgements, dict[str, Any]]:
    """The judgements of an engine, and what `--json` prints of them."""
    if engine is None:
        raise InvalidValue(
            "run must have an engine",
            received="no --engine",
            where="conformance",
            remedy=f"give --engine {' or --engine '.join(ENGINES)}; for an engine of your own, "
            "call transformist.conformance.run in Python",
        )
    if not is_name(engine, ENGINES):
        raise UnknownName.among("engine", engine, ENGINES, "conformance")
    opened = ENGINES[engine]()
    with working(f"running {engine}"):
        found = run(opened, directory, family=family, length=longest, mode=mode)
    facts = {
        "engine": engine,
        "family": found.family,
        "mode": mode or "all",
        "held": found.is_right,
        "instruments": [vars(each) for each in found.rows()],
        "diagnosis": [
            {
                "class": " or ".join(each.mistakes) or None,
                "evidence": str(each),
                "instrument": each.instrument,
                "modes": list(each.modes),
                "meanings": [
                    {"meaning": meaning, "count": count} for meaning, count in each.meanings
                ],
            }
            for each in found.evidence()
        ],
    }
    return found, facts


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
    for reason in dict.fromkeys(f"{each.name}: {each.reason}" for each in rows if each.reason):
        out.print(f"not run: {reason}", markup=False)
    for evidence in found.evidence():
        out.print(f"wrong: {evidence}", markup=False)
    total = sum(each.positions for each in rows)
    out.print(
        f"{facts['engine']}, {found.family}: {total} answers, {found.wrong} wrong, "
        f"{found.not_run} not run",
        markup=False,
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
