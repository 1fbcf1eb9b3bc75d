"""`transformist bench`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from transformist.bench import CASES, RECORDED, machine, measurements
from transformist.cli.printing import Json, err, print_json, wide
from transformist.errors import UnknownName
from transformist.report import bench_table


def bench_command(
    names: Annotated[
        list[str] | None,
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
        print_json({"machine": machine(), "results": rows, "recorded_elsewhere": RECORDED})
    else:
        wide.print(bench_table(machine(), rows, RECORDED))
