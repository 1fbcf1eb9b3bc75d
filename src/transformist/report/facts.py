"""What is known of recipes, verdicts and traces, as plain values for JSON and for tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rich.markup import escape
from rich.table import Table

from transformist.claims import FunctionClaim, Recipe, ask
from transformist.errors import NotFinite
from transformist.model import Trace
from transformist.report.size import Size, size
from transformist.settings import SETTINGS
from transformist.verify import Verdict, worst_rounding


def plain(value: Any) -> Any:
    """A value for JSON: integers as they are, other rationals "p/q", no NaN or infinity.

    Raises:
        NotFinite: for NaN or infinity.

    Example:
        >>> plain([Fraction(4, 2), Fraction(1, 3), 0.5])
        [2, '1/3', 0.5]
    """
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotFinite(
            "every number of the answer is finite",
            received=str(value),
            remedy="scale the input down, or use a format with a wider range",
        )
    return value


def recipe_facts(recipe: Recipe, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `show` tells of a recipe: its claim, its parameters, its size under these settings."""
    built, claim = size(recipe.build(**settings)), recipe.claim
    parameters = {
        key: {"default": plain(value), "sets": SETTINGS[key].meaning}
        for key, value in recipe.settings({}).items()
    }
    return {
        "name": recipe.name,
        "section": recipe.section,
        "claim": claim.statement,
        "parameters": parameters,
        "layers": built.layers,
        "width": built.width,
        "heads": built.heads,
        "nonzero": built.nonzero,
        "depends_on": list(claim.depends_on),
        "gap": None,
        "safe_lengths": None if isinstance(claim, FunctionClaim) else dict(claim.safe_lengths),
        "sources": list(recipe.sources),
        "arithmetics": list(claim.arithmetics),
        "excluded": dict(claim.excluded),
        **_accuracy(recipe, settings),
    }


def _accuracy(recipe: Recipe, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the claim says of inputs and exactness, key by key."""
    claim = recipe.claim
    if not isinstance(claim, FunctionClaim):
        return {"inputs": str(claim.domain), "why_safe": claim.why_safe}
    facts: dict[str, Any] = {
        "inputs": str(ask(claim.domain, **recipe.settings(settings))),
        "in_real_numbers": claim.approximation_statement,
    }
    if claim.exact_on_statement:
        facts["floats_exact_on"] = claim.exact_on_statement
    worst = worst_rounding(recipe, settings)
    return {
        **facts,
        "rounding": claim.rounding_statement,
        "largest_rounding_tried": {
            name: None if math.isinf(bound) else float(f"{bound:.2g}")
            for name, bound in worst.items()
        },
    }


def recipe_table(facts: Mapping[str, Any]) -> Table:
    """The facts of a recipe for a person."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column()

    def row(heading: str, text: str) -> None:
        table.add_row(escape(heading), escape(text))

    row("recipe", f"{facts['name']} (section {facts['section']})")
    row("claim", facts["claim"])
    for key in ("inputs", "in_real_numbers", "floats_exact_on", "rounding", "why_safe"):
        if key in facts:
            row(key.replace("_", " "), facts[key])
    if "largest_rounding_tried" in facts:
        worst = facts["largest_rounding_tried"].items()
        shown = (f"{name} {'may overflow' if bound is None else bound}" for name, bound in worst)
        row("at most, as tried", ", ".join(shown))
    for name, reason in facts["excluded"].items():
        row("not in", f"{name}: {reason}")
    if facts["safe_lengths"] is not None:
        safe = facts["safe_lengths"].items()
        lengths = (f"{name} {'any' if bound is None else f'{bound:,}'}" for name, bound in safe)
        row("right if built for", f"n up to N: {', '.join(lengths)}")
    for name, setting in facts["parameters"].items():
        row(f"--set {name}=", f"{setting['sets']}; default {setting['default']}")
    counts = Size(*(facts[key] for key in ("layers", "width", "heads", "nonzero")))
    depends = f"; they depend on {' and '.join(facts['depends_on'])}" if facts["depends_on"] else ""
    row("weights", f"{counts}{depends}")
    for source in facts["sources"]:
        row("source", source)
    return table


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    """What `check` tells of one recipe."""
    found = verdict.counterexample
    counterexample = found and {
        "input": plain(found.input),
        "expected": plain(found.expected),
        "got": plain(found.got),
        "arithmetic": found.arithmetic,
    }
    return {
        "name": verdict.name,
        "held": verdict.held,
        "cases": verdict.cases,
        "arithmetics": list(verdict.arithmetics),
        "covered": verdict.covered,
        "counterexample": counterexample,
    }


def trace_facts(trace: Trace) -> list[dict[str, Any]]:
    """The streams of a trace: after each step, the values of each slot at every row."""
    slots = trace.model.stream.slots
    return [
        {
            "after": name,
            "values": {slot: plain(trace.values(slot, step).tolist()) for slot in slots},
        }
        for step, (name, _) in enumerate(trace.streams)
    ]
