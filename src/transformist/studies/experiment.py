"""A study: a question, the cases that are run, their rows, and what must hold of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from transformist.deferred import Library
from transformist.hosts.optional_library import optional
from transformist.verify import THIS_PROCESS, Workers, spread

Row: TypeAlias = Mapping[str, Any]
"""A row of the table, or the settings of a case: names and values that JSON has."""

_FIGURES = Library("transformist.figures")
"""The figures, imported when one is drawn: they need matplotlib."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The figure of a study: its axes and its curves.

    Attributes:
        x: name of the horizontal axis.
        y: name of the vertical axis.
        curves: for each curve its points (x, y), by its name.
        logarithmic: the logarithmic axes: "x", "y" or "xy".

    """

    x: str
    y: str
    curves: Mapping[str, Sequence[tuple[Any, float]]]
    logarithmic: str = ""


def select(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Return the rows that have these values in these columns.

    Example:
        >>> select([{"n": 1, "e": 2}, {"n": 2, "e": 5}], n=2)
        [{'n': 2, 'e': 5}]

    """
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def curves_of(
    rows: Sequence[Row], by: Sequence[str], x: str, y: str
) -> dict[str, list[tuple[Any, Any]]]:
    """Return the curves of column y over column x, one for all rows that agree in other columns.

    Args:
        rows: the rows, of which those without y are left out.
        by: the other columns, whose values name the curve.
        x: the column for the horizontal axis.
        y: the column for the vertical axis.

    Example:
        >>> curves_of([{"a": "u", "n": 1, "e": 2}, {"a": "u", "n": 2, "e": 5}], ["a"], "n", "e")
        {'u': [(1, 2), (2, 5)]}

    """
    curves: dict[str, list[tuple[Any, Any]]] = {}
    for row in rows:
        if row[y] is not None:
            curves.setdefault(", ".join(str(row[each]) for each in by), []).append((row[x], row[y]))
    return curves


@dataclass(frozen=True)
class Claimed:
    """A claim of a study.

    Attributes:
        text: the claim, in a sentence.
        holds: true of rows for which the claim holds.

    """

    text: str
    holds: Callable[[Sequence[Row]], bool]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A question, and how it is answered.

    Attributes:
        name: in kebab-case.
        question: in a sentence or two.
        method: in at most five sentences.
        cases: returns the settings of each case; fewer cases, or smaller ones, for a quick run.
        rows: returns the rows of a case. The same case always gives the same rows.
        claims: what must hold of all rows.
        answer: returns the answer, from all rows.
        chart: returns what the figure shows, from all rows.
        summary: returns the rows of a short table that stands with the answer, from all rows;
            `None` for none.
        seed: of the numbers or strings that are drawn; `None` where none are.
        listing: a function whose source the page shows; `None` for none.
        needs: the optional library, which is also the extra that installs it; `None` for none.

    """

    name: str
    question: str
    method: str
    cases: Callable[[bool], Sequence[Row]]
    rows: Callable[[Row], Sequence[Row]]
    claims: tuple[Claimed, ...]
    answer: Callable[[Sequence[Row]], str]
    chart: Callable[[Sequence[Row]], Chart]
    summary: Callable[[Sequence[Row]], Sequence[Row]] | None = None
    seed: int | None = None
    listing: Callable[..., Any] | None = None
    needs: str | None = None

    def require_library(self) -> None:
        """Require the library that the study needs.

        Raises:
            InvalidValue: if it is not installed, with the command that installs it.

        """
        if self.needs is not None:
            optional(self.needs, self.needs, f"study {self.name}")


@dataclass(frozen=True)
class Findings:
    """Result of a study.

    Attributes:
        study: what was run.
        is_quick: true if the quick cases were run.
        rows: of all cases, in order.
        workers: the processes that ran the cases.

    """

    study: Study
    is_quick: bool
    rows: tuple[Row, ...]
    workers: Workers = THIS_PROCESS

    @property
    def held(self) -> tuple[bool, ...]:
        """For each claim of the study, true if it holds."""
        return tuple(bool(claim.holds(self.rows)) for claim in self.study.claims)

    @property
    def answer(self) -> str:
        """The answer of the study."""
        return self.study.answer(self.rows)

    @property
    def summary(self) -> Sequence[Row]:
        """The rows of the summary; empty where the study has none."""
        return () if self.study.summary is None else self.study.summary(self.rows)

    def plot(self) -> Any:
        """Draw the figure of the study.

        Returns:
            A matplotlib `Figure`; its label is a description in words.

        Raises:
            InvalidValue: without matplotlib (extra `figures`).

        """
        chart = self.study.chart(self.rows)
        return _FIGURES.curves(chart.curves, x=chart.x, y=chart.y, logarithmic=chart.logarithmic)


class FinishedCases(Protocol):
    """Rows of finished cases, kept where an interrupted study finds them again."""

    def finished(self, case: Row) -> Sequence[Row] | None:
        """Return the rows of a case; `None` if it is not finished."""

    def keep(self, case: Row, rows: Sequence[Row]) -> None:
        """Keep the rows of a case."""


def carry_out(
    study: Study,
    is_quick: bool = False,
    record: FinishedCases | None = None,
    begins: Callable[[int, int], None] = lambda *_: None,
    workers: Workers = THIS_PROCESS,
) -> Findings:
    """Run the cases of a study that are not finished.

    Args:
        study: the study.
        is_quick: true for the quick cases.
        record: where finished cases are found and kept. A case is kept once those before it are.
        begins: called with the number of finished cases and of all, before each case.
        workers: the processes, each of which takes a case at a time.

    Raises:
        InvalidValue: if the library that the study needs is not installed.

    Example:
        >>> from transformist.studies import STUDIES
        >>> carry_out(STUDIES["quick-checks"]).held
        (True, True, True)

    """
    study.require_library()
    cases = study.cases(is_quick)
    kept = [None if record is None else record.finished(case) for case in cases]
    missing = [case for case, rows in zip(cases, kept, strict=True) if rows is None]
    found = spread(study.rows, missing, workers)
    rows: list[Row] = []
    for number, (case, finished) in enumerate(zip(cases, kept, strict=True)):
        begins(number, len(cases))
        of_case = next(found) if finished is None else finished
        if finished is None and record is not None:
            record.keep(case, of_case)
        rows += of_case
    return Findings(study, is_quick, tuple(rows), workers)
