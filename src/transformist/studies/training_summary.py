"""Summary of the study learnability: the seeds of each configuration in one row."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from transformist.studies import training
from transformist.studies.experiment import Row, select

SETTINGS = "task", "N", "features", "noise", "optimizer", "schedule"
"""Columns of the rows that are the same for all seeds of a configuration."""

ENDS = "best, median, worst"

SOLVED = {outcome for (*_, is_solved), outcome in training.OUTCOMES.items() if is_solved}
"""Outcomes of runs that are right to N at the end."""


def solved(rows: Sequence[Row], **given: Any) -> str:
    """Number of the runs with these settings that are solved at the end, such as "3 of 5"."""
    chosen = select(rows, **given)
    return f"{sum(row['outcome'] in SOLVED for row in chosen)} of {len(chosen)}"


def by_configuration(rows: Sequence[Row]) -> Sequence[Row]:
    """For each configuration the seeds that are right, and the best, median and worst of each."""
    configurations: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        configurations.setdefault(tuple(row[name] for name in SETTINGS), []).append(row)
    return [_summary(of_one) for of_one in configurations.values()]


def _summary(rows: Sequence[Row]) -> Row:
    task, is_lookup = rows[0]["task"], rows[0]["task"] == "lookup"
    # A lookup needs a large gap. For Dyck-1 the gap is the spread of scores that the construction
    # has all equal, so the least is the best.
    gaps = [row["gap of scores over training"][-1] for row in rows]
    return {
        **{name: rows[0][name] for name in SETTINGS},
        "right to N": _right(task, [row["error"] for row in rows]),
        "right to 2N": _right(task, [row["error at 2N"] for row in rows]),
        f"loss: {ENDS}": _ends([row["loss"] for row in rows]),
        f"error: {ENDS}": _ends([row["error"] for row in rows]),
        f"error at 2N: {ENDS}": _ends([row["error at 2N"] for row in rows]),
        f"gap of scores at the end: {ENDS}": _ends(gaps, is_largest_best=is_lookup),
        "ln 8N": rows[0]["ln 8N"] and _digits(rows[0]["ln 8N"]),
    }


def _right(task: str, errors: Sequence[float | None]) -> str | None:
    """Number of seeds whose error solves the task, such as "3 of 5"."""
    measured = [each for each in errors if each is not None]
    solved = sum(training.is_solved(task, each) for each in measured)
    return f"{solved} of {len(measured)}" if measured else None


def _ends(values: Sequence[float | None], is_largest_best: bool = False) -> list[float] | None:
    """The best, the median and the worst of the values, in three digits."""
    ordered = sorted((each for each in values if each is not None), reverse=is_largest_best)
    if not ordered:
        return None
    return [_digits(each) for each in (ordered[0], median(ordered), ordered[-1])]


def _digits(value: float) -> float:
    return float(f"{value:.3g}")
