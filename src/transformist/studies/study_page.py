"""The page of a study, in Markdown."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

from transformist.studies.experiment import Findings, Row


def study_page(found: Findings) -> str:
    """Return the page: question, method, table, claims, answer, command and machine."""
    study = found.study
    command = f"transformist study {study.name}" + " --quick" * found.is_quick
    claims = [
        f"- {claim.text} {'Holds.' if held else 'DOES NOT HOLD.'}"
        for claim, held in zip(study.claims, found.held, strict=True)
    ]
    parts = [
        f"# Study: {study.name}",
        f"**Question.** {study.question}",
        f"**Method.** {study.method}",
        "\n".join(_table(found.rows)),
        "**Claims, checked on these rows.**",
        "\n".join(claims),
        f"**Answer.** {found.answer}",
        f"Made by `{command} -o DIR` with Python {platform.python_version()} on {_machine()}.",
    ]
    return "\n\n".join(parts) + "\n"


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}"


def _table(rows: Sequence[Row]) -> list[str]:
    """One column for each name, in the order of the first row."""
    names = list(rows[0])
    lines = [[shown(name) for name in names], ["---"] * len(names)]
    lines += [[shown(row.get(name)) for name in names] for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def shown(value: Any) -> str:
    """Return a value of a row as the page shows it.

    Example:
        >>> shown(0.123456789), shown([1, 2.5]), shown(None), shown(12345)
        ('0.123457', '1, 2.5', '–', '12,345')

    """
    return FORMS.get(type(value), str)(value).replace("|", "\\|")


FORMS: Mapping[type, Callable[[Any], str]] = {
    NoneType: lambda _: "–",
    list: lambda values: ", ".join(map(shown, values)),
    float: "{:.6g}".format,
    int: "{:,}".format,
}
"""Forms of values that are not shown as Python shows them."""
