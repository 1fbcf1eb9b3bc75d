"""`transformist study`: a question on the constructions, answered by running them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from transformist.cli.printing import Json, err, out, print_json, warn, wide, working
from transformist.cli.workers_given import Address, Backend, read_workers
from transformist.errors import UnknownName
from transformist.studies import STUDIES, Findings, StudyFolder, carry_out, study_page
from transformist.studies.experiment import Row
from transformist.studies.study_page import shown
from transformist.verify import THIS_PROCESS


def command(
    name: Annotated[
        str, typer.Argument(help=f"The study: {', '.join(STUDIES)}.", show_default=False)
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer or smaller cases.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="A new folder for the page, the figure, the rows and the facts.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the files of a study in DIR.")
    ] = False,
    jobs: Annotated[
        str | None,
        typer.Option(
            help="Number of processes, each for one case. When left out, one.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    backend: Backend = None,
    address: Address = None,
    as_json: Json = False,
) -> int:
    """Exit code 1 where a claim of the study does not hold.

    With -o, finished cases are kept as they finish: after an interruption the same command goes on
    from there.
    """
    if name not in STUDIES:
        raise UnknownName.among("study", name, STUDIES, "study")
    study = STUDIES[name]
    study.require_library()
    workers = read_workers(jobs, backend, address)
    if jobs is backend is None:
        workers = THIS_PROCESS
    folder = None if output is None else StudyFolder(output, study, quick, force)
    done = 0
    try:
        with working(f"study {name}") as say:

            def begins(number: int, cases: int) -> None:
                nonlocal done
                done = number
                say(f"case {number + 1} of {cases}")

            found = carry_out(study, quick, folder, begins, workers)
    except KeyboardInterrupt:
        if folder is not None:
            err.print(f"{done} finished cases are kept in {folder.path}", markup=False)
        raise
    facts = _facts(found)
    files = [] if folder is None else _write(found, facts, folder)
    if as_json:
        print_json({**facts, "files": [str(each) for each in files]})
    else:
        _print(found, files)
    return int(not all(found.held))


def _write(found: Findings, facts: dict[str, Any], folder: StudyFolder) -> list[Path]:
    """Write the files of a study, the figure among them where matplotlib is installed."""
    if find_spec("matplotlib") is None:
        warn("the page has no figure; to draw it run: pip install 'transformist[figures]'")
        return folder.write(study_page(found), facts)
    figure = found.plot()
    return folder.write(study_page(found, figure.get_label()), facts, figure.bytes_of("svg"))


def _facts(found: Findings) -> dict[str, Any]:
    claims = zip(found.study.claims, found.held, strict=True)
    return {
        "study": found.study.name,
        "quick": found.is_quick,
        "held": all(found.held),
        "claims": [{"claim": claim.text, "held": held} for claim, held in claims],
        "answer": found.answer,
        "summary": list(found.summary),
        "rows": list(found.rows),
    }


def _print(found: Findings, files: list[Path]) -> None:
    out.print(f"question: {found.study.question}", markup=False)
    _print_table(found.rows)
    for claim, held in zip(found.study.claims, found.held, strict=True):
        out.print(f"{'holds' if held else 'DOES NOT HOLD'}: {claim.text}", markup=False)
    if found.summary:
        _print_table(found.summary)
    out.print(f"answer: {found.answer}", markup=False)
    for each in files:
        out.print(f"written: {each}", markup=False)


def _print_table(rows: Sequence[Row]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in rows[0]:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(shown(each) for each in row.values()))
    wide.print(table)
