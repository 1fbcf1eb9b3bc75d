"""The page of a study, in Markdown."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from transformist.studies.experiment import Findings, Row, Study
from transformist.verify import THIS_PROCESS

NO_FIGURE = "The figure needs matplotlib: `pip install 'transformist[figures]'`."


def study_page(found: Findings, description: str | None = None) -> str:
    """Return the page: question, answer, figure, method, claims, table, command and machine.

    Args:
        found: the result of the study.
        description: the figure in words; `None` where it is not drawn.

    """
    study = found.study
    claims = [
        f"- {claim.text} {'Holds.' if held else 'DOES NOT HOLD.'}"
        for claim, held in zip(study.claims, found.held, strict=True)
    ]
    parts = [
        f"# Study: {study.name}",
        f"**Question.** {study.question}",
        f"**Answer.** {found.answer}",
        *(["\n".join(_table(found.summary))] if found.summary else []),
        NO_FIGURE if description is None else f"![{_in_brackets(description)}]({study.name}.svg)",
        f"**Method.** {study.method}",
        *([] if study.listing is None else [f"```python\n{inspect.getsource(study.listing)}```"]),
        "**Claims, checked on the rows below.**",
        "\n".join(claims),
        "**Rows.**",
        "\n".join(_table(found.rows)),
        f"Made by `{command_of(found)}`, {_seed(study)}, with Python {platform.python_version()} "
        f"and numpy {np.__version__} on {platform.system()} {platform.machine()}.",
    ]
    return "\n\n".join(parts) + "\n"


def command_of(found: Findings) -> str:
    """The command line that ran the study."""
    command, workers = f"transformist study {found.study.name}", found.workers
    if found.is_quick:
        command += " --quick"
    if workers != THIS_PROCESS:
        given = {"jobs": workers.jobs, "backend": workers.backend, "address": workers.address}
        command += "".join(f" --{name} {value}" for name, value in given.items() if value)
    return f"{command} -o DIR"


def _seed(study: Study) -> str:
    return "without random numbers" if study.seed is None else f"with seed {study.seed}"


def _in_brackets(text: str) -> str:
    """The text as the alternative of an image in Markdown, which brackets would end."""
    return text.replace("[", "(").replace("]", ")").replace("\n", " ")


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
