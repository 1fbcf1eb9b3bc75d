"""A certificate as plain values, and as a table of its lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from rich.markup import escape
from rich.table import Table

from transformist.circuit import (
    Form,
)
from transformist.errors import visible
from transformist.host_evaluation import HOST_ASSUMPTIONS
from transformist.laws import Grid, hull
from transformist.verify import TAKEN_FOR_GRANTED, Certificate


def certificate_facts(name: str, found: Certificate) -> dict[str, Any]:
    """The facts of a certificate; a margin that is not finite is null."""
    hosted = found.host is not None
    return {
        "model": name,
        "arithmetic": found.arithmetic,
        "max_length": found.max_length,
        "order": found.order,
        "holds": found.holds,
        "grade": found.grade,
        "stopped": found.stopped or None,
        "margin": found.margin if math.isfinite(found.margin) else None,
        "largest_length": found.largest_length,
        "limiting_slot": found.limiting.place,
        "limiting_quantity": found.limiting.what,
        "assumes": [str(each) for each in found.assumes],
        "takes_for_granted": list(TAKEN_FOR_GRANTED) + (list(HOST_ASSUMPTIONS) if hosted else []),
        **({"host": found.host.host} if found.host is not None else {}),
    }


HEADINGS = ("line", "name", "is", "from", "to", "multiple of", "off by at most")
"""The columns of each number of a model."""


def certificate_table(found: Certificate) -> Table:
    """Every number of a model: how it is made of others, its law, and its error bound."""
    where = f"{found.model} in {found.arithmetic}, N = {found.max_length}"
    assumed = (*TAKEN_FOR_GRANTED, *(HOST_ASSUMPTIONS if found.host is not None else ()))
    granted = f"Given that {'; '.join(assumed)}."
    table = Table(title=f"The numbers of {where}, {found.words}", caption=granted)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("line", "from", "to") else "left")
    for cells in certificate_rows(found):
        table.add_row(*(escape(visible(each)) for each in cells))
    return table


def certificate_rows(found: Certificate) -> Iterator[tuple[str, ...]]:
    """The cells of each number, under `HEADINGS`; D is a number of positions."""
    for number, line in enumerate(found.lines):
        within = hull(line.law.rows)
        off = f"{line.errors.absolute:.3g}" if line.errors.absolute else "0"
        ends = (_short(Fraction(end)) for end in (within.lo, within.hi))
        made = line.atom.words(_sum)
        yield f"[{number}]", line.name, made, *ends, _multiple(line.law.grid), off


def _multiple(grid: Grid | None) -> str:
    if grid is None:
        return ""
    bottom = " ".join([str(grid.c)] * (grid.c > 1) + ["D"] * len(grid.counts))
    return f"1/({bottom})" if " " in bottom else f"1/{bottom}" if bottom else "1"


def _short(value: Fraction) -> str:
    text = str(value)
    return text if len(text) <= 9 else f"{float(value):.4g}"


def _sum(form: Form) -> str:
    """A form, a line by its number in brackets."""
    parts = [
        ("−" if factor < 0 else "+", "" if abs(factor) == 1 else f"{_short(abs(factor))} ", line)
        for line, factor in form.terms
    ]
    text = " ".join(f"{sign} {factor}[{line}]" for sign, factor, line in parts)
    text = text.removeprefix("+ ")
    if form.constant or not parts:
        sign = "−" if form.constant < 0 else "+"
        constant = _short(abs(form.constant))
        text = f"{text} {sign} {constant}" if parts else f"{'−' * (sign == '−')}{constant}"
    return text
