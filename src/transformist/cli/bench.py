"""`transformist bench`: long inputs beside dense evaluations, and checks of every string."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table

from transformist.bench import CASES, RECORDED, machine, measurements
from transformist.cli.printing import Json, err, print_json, wide
from transformist.errors import UnknownName


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"The cases to measure: {', '.join(CASES)}; everything when left out.",
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
    """Exit code 1 where an answer is wrong, or a measurement refused.

    Each case is measured in a process of its own, and its answers compared with those of a plain
    algorithm. After Ctrl-C the command prints what it has measured. Torch is left out where it is
    not installed.
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
        wide.print(_tables(machine(), rows))


Cell = Callable[[Mapping[str, Any]], str]


def _cell(key: str, form: str = "{}") -> Cell:
    return lambda row: "" if row[key] is None else form.format(row[key])


WHOLE: Mapping[str, Cell] = {
    "case": _cell("case"),
    "n": _cell("n", "{:,}"),
    "seconds": _cell("seconds", "{:.3f}"),
    "peak MiB": _cell("peak_mib", "{:,}"),
    "exponent": _cell("exponent", "{:.2f}"),
    "torch takes": _cell("ratio_to_torch", "{:,.0f} ×"),
    "numpy takes": _cell("ratio_to_numpy", "{:,.0f} ×"),
    "first call, s": _cell("first_call_seconds", "{:.2f}"),
    "load": _cell("load"),
    "right": lambda row: "" if row["right"] is None else "yes" if row["right"] else "NO",
}
EVERY: Mapping[str, Cell] = {
    "case": WHOLE["case"],
    "to n": WHOLE["n"],
    "strings": _cell("strings", "{:,}"),
    "seconds": WHOLE["seconds"],
    "processor s": _cell("processor_seconds", "{:.1f}"),
    "peak MiB": WHOLE["peak MiB"],
    "one at a time, s": _cell("one_at_a_time_seconds", "{:,.1f}"),
    "ratio": _cell("ratio_to_one_at_a_time", "{:,.0f} ×"),
    "load": WHOLE["load"],
    "right": WHOLE["right"],
}
DECODED: Mapping[str, Cell] = {
    "case": WHOLE["case"],
    "after n": WHOLE["n"],
    "tokens/s, take_all": _cell("take_all_per_second", "{:,}"),
    "tokens/s, take": _cell("take_per_second", "{:,}"),
    "µs a take": _cell("take_microseconds", "{:.2f}"),
    "exponent": WHOLE["exponent"],
    "peak MiB": WHOLE["peak MiB"],
    "first calls, s": WHOLE["first call, s"],
    "load": WHOLE["load"],
    "right": WHOLE["right"],
}
"""The columns of each table: headings and cells."""

NOTES = (
    "seconds: the best of three by the clock, or of as many as half a second has; first call: on "
    "2,048 symbols, with what is compiled or loaded; exponent: of the processor's time between two "
    "lengths, or of that of a take.",
    "tokens/s, µs a take: of the processor's time, one call of take a token.",
    "torch takes: the same vectors through the same layers in float64, every head by "
    "scaled_dot_product_attention, the best likewise, all processors; it has softmax alone, so "
    "hard heads are the softmax of their scores there, the time of which is theirs and the answer "
    "not.",
    "numpy takes: the same by matrix products in blocks of 1,024 rows, once.",
    "every-…: a check of all strings to n, in one process; one at a time: extrapolated from the "
    "processor's time of one string in a hundred, each checked by itself.",
    "load: processes that wanted a processor in the minute before; where they are more than there "
    "are processors, what takes long is slowed down more than what is over soon.",
)


def _tables(machine: str, rows: Sequence[Mapping[str, Any]]) -> Group:
    """Rows of whole inputs, decoders and checks; below these what is recorded elsewhere."""
    decoded = [row for row in rows if row["take_per_second"] is not None]
    every = [row for row in rows if row["strings"] is not None]
    others = [*decoded, *every]
    whole = [row for row in rows if row["seconds"] is not None and row not in others]
    refused = [f"{row['case']}, n = {row['n']}: {row['refused']}" for row in rows if row["refused"]]
    kinds = (WHOLE, whole), (DECODED, decoded), (EVERY, every)
    tables = [_table(*each) for each in kinds if each[1]]
    elsewhere = [
        f"recorded elsewhere, not measured here: {each['software']} ({each['attention']}), "
        f"{each['tokens_per_second']} tokens/s"
        for each in RECORDED
        if decoded
    ]
    return Group(machine, *tables, *refused, *NOTES, *elsewhere)


def _table(columns: Mapping[str, Cell], rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns:
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table
