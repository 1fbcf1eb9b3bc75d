"""What was measured of the structured engine, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table

Cell = Callable[[Mapping[str, Any]], str]


def _plain(key: str, form: str = "{}") -> Cell:
    return lambda row: "" if row[key] is None else form.format(row[key])


WHOLE: Mapping[str, Cell] = {
    "case": _plain("case"),
    "n": _plain("n", "{:,}"),
    "seconds": _plain("seconds", "{:.3f}"),
    "peak MiB": _plain("peak_mib", "{:,}"),
    "exponent": _plain("exponent", "{:.2f}"),
    "torch takes": _plain("ratio_to_torch", "{:,.0f} ×"),
    "numpy takes": _plain("ratio_to_numpy", "{:,.0f} ×"),
    "first call, s": _plain("first_call_seconds", "{:.2f}"),
    "load": _plain("load"),
    "right": lambda row: "" if row["right"] is None else "yes" if row["right"] else "NO",
}
DECODED: Mapping[str, Cell] = {
    "case": WHOLE["case"],
    "after n": WHOLE["n"],
    "tokens/s, take_all": _plain("take_all_per_second", "{:,}"),
    "tokens/s, take": _plain("take_per_second", "{:,}"),
    "µs a take": _plain("take_microseconds", "{:.2f}"),
    "exponent": WHOLE["exponent"],
    "peak MiB": WHOLE["peak MiB"],
    "first calls, s": WHOLE["first call, s"],
    "load": WHOLE["load"],
    "right": WHOLE["right"],
}
"""Headings, with what stands below them."""

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
    "load: processes that wanted a processor in the minute before; where they are more than there "
    "are processors, what takes long is slowed down more than what is over soon.",
)


def bench_table(
    machine: str,
    rows: Sequence[Mapping[str, Any]],
    recorded: Sequence[Mapping[str, str]] = (),
) -> Group:
    """The rows for a person: those of whole inputs, and those of decoders.

    Below them stands what is recorded of other software, if a decoder was measured.
    """
    decoded = [row for row in rows if row["take_per_second"] is not None]
    whole = [row for row in rows if row["seconds"] is not None and row not in decoded]
    refused = [f"{row['case']}, n = {row['n']}: {row['refused']}" for row in rows if row["refused"]]
    tables = [_table(*each) for each in ((WHOLE, whole), (DECODED, decoded)) if each[1]]
    others = [
        f"recorded elsewhere, not measured here: {each['software']} ({each['attention']}), "
        f"{each['tokens_per_second']} tokens/s"
        for each in recorded
        if decoded
    ]
    return Group(machine, *tables, *refused, *NOTES, *others)


def _table(columns: Mapping[str, Cell], rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns:
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table
