"""What came out of a check."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from transformist.report.values import finite_or_words, plain
from transformist.verify import Verdict


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    """What `check` tells of one recipe."""
    found = verdict.counterexample
    counterexample = found and {
        "input": plain(found.input),
        "expected": plain(finite_or_words(found.expected)),
        "got": plain(finite_or_words(found.got)),
        "arithmetic": found.arithmetic,
        "settings": found.settings,
    }
    return {
        "name": verdict.name,
        "held": verdict.held,
        "cases": verdict.cases,
        "arithmetics": list(verdict.arithmetics),
        "covered": verdict.covered,
        "counterexample": counterexample,
    }


def verdict_line(verdict: Verdict) -> str:
    """A verdict for a person, in rich's markup: a line, and the counterexample in another."""
    mark = "[green]held[/]" if verdict.held else "[red]FAILED[/]"
    line = (
        f"{verdict.name:<28} {mark}  {verdict.cases:>6} inputs in "
        f"{', '.join(verdict.arithmetics)}; {escape(verdict.covered)}"
    )
    if verdict.counterexample is None:
        return line
    return f"{line}\n    {escape(str(verdict.counterexample))}"
