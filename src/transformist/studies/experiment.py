"""A study: a question, the cases that are run, their rows, and what must hold of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from transformist.verify import THIS_PROCESS, Workers, spread

Row: TypeAlias = Mapping[str, Any]
"""A row of the table, or the settings of a case: names and values that JSON has."""


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

    """

    name: str
    question: str
    method: str
    cases: Callable[[bool], Sequence[Row]]
    rows: Callable[[Row], Sequence[Row]]
    claims: tuple[Claimed, ...]
    answer: Callable[[Sequence[Row]], str]


@dataclass(frozen=True)
class Findings:
    """Result of a study.

    Attributes:
        study: what was run.
        is_quick: true if the quick cases were run.
        rows: of all cases, in order.

    """

    study: Study
    is_quick: bool
    rows: tuple[Row, ...]

    @property
    def held(self) -> tuple[bool, ...]:
        """For each claim of the study, true if it holds."""
        return tuple(bool(claim.holds(self.rows)) for claim in self.study.claims)

    @property
    def answer(self) -> str:
        """The answer of the study."""
        return self.study.answer(self.rows)


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

    Example:
        >>> from transformist.studies import STUDIES
        >>> carry_out(STUDIES["quick-checks"]).held
        (True, True, True)

    """
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
    return Findings(study, is_quick, tuple(rows))
