"""A recipe on one sheet: its claim, parameters and size, and the formats that break it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from rich.markup import escape
from rich.table import Table

from transformist.arithmetic import SYSTEMS
from transformist.claims import (
    COOKBOOK,
    Claim,
    FunctionClaim,
    LengthClaim,
    Model,
    Recipe,
    Settings,
    ask,
)
from transformist.report.size import Size, size
from transformist.report.values import at_most, dependence_in_words, length_in_words, plain
from transformist.report.weight_cost import cost_in_words, costs_by_length, feature_bits
from transformist.settings import SETTINGS
from transformist.verify import SHORT_WORK, first_failure, formats, worst_rounding


def recipe_facts(recipe: Recipe[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a recipe under these settings, as plain values."""
    settings, claim = recipe.settings(given), recipe.claim
    model = recipe.construct(**settings)
    built = size(model)
    parameters = {
        key: {"default": plain(value), "sets": SETTINGS[key].meaning}
        for key, value in recipe.settings({}).items()
    }
    return {
        "name": recipe.name,
        "section": recipe.section,
        "document": recipe.document,
        "claim": claim.statement,
        "parameters": parameters,
        "layers": built.layers,
        "width": built.width,
        "heads": built.heads,
        "nonzero": built.nonzero,
        "depends_on": list(claim.dependence(settings)),
        "size": claim.size or "the same for every length",
        "weight_cost": costs_by_length(recipe, settings),
        "feature_bits": None,
        "gap": None,
        "safe_lengths": None,
        "sources": list(recipe.sources),
        "errata": list(recipe.errata),
        "arithmetics": list(claim.claimed(settings)),
        "excluded": _excluded(claim, settings),
        "inputs": claim.inputs(settings),
        **(
            _function_facts(recipe, settings)
            if isinstance(claim, FunctionClaim)
            else _length_facts(recipe, settings, model)
        ),
    }


def _excluded(claim: Claim, settings: Settings) -> dict[str, str]:
    """The arithmetics in which nothing is claimed under these settings, with the reason."""
    claimed = claim.claimed(settings)
    return {
        name: claim.excluded.get(name, "no length is safe")
        for name in SYSTEMS
        if name not in claimed
    }


def _function_facts(recipe: Recipe[FunctionClaim], settings: Settings) -> dict[str, Any]:
    claim = recipe.claim
    facts: dict[str, Any] = {"in_real_numbers": claim.approximation_statement}
    if claim.exact_on_statement:
        facts["floats_exact_on"] = claim.exact_on_statement
    worst = worst_rounding(recipe, settings)
    return {
        **facts,
        "rounding": claim.rounding_statement,
        "largest_rounding_tried": {
            name: None if math.isinf(bound) else float(at_most(bound))
            for name, bound in worst.items()
        },
    }


GAP_AT = 1024
"""The length at which a gap that depends on n is shown, where the recipe has no N."""


def _length_facts(recipe: Recipe[LengthClaim], settings: Settings, model: Model) -> dict[str, Any]:
    claim = recipe.claim
    facts: dict[str, Any] = {"why_safe": claim.why_safe}
    if claim.error_statement:
        facts["error"] = claim.error_statement
    n = settings.get("max_length") or GAP_AT
    gap = ask(claim.gap, n=n, **settings)
    if gap is not None:
        dot, d_key = gap
        facts |= {
            "gap": float(dot) / math.sqrt(d_key),
            "gap_at": n,
            "gap_statement": claim.gap_statement,
        }
    return {
        **facts,
        "feature_bits": {
            "n": n,
            "bits": feature_bits(model, claim.needed_features(settings), n),
        },
        "safe_lengths": claim.safe_lengths(settings),
        "first_failures": _first_failures(recipe, settings),
        "weightings": list(claim.weightings),
        "mask": claim.mask or None,
        "features": list(claim.needed_features(settings)),
    }


SEARCHED = 256
"""The longest inputs of the short search that is shown beside the claim."""


def _first_failures(recipe: Recipe[LengthClaim], settings: Settings) -> dict[str, Any]:
    """The first failure that a short search beyond the claim finds in each float format."""
    given = {name: value for name, value in settings.items() if name != "max_length"}
    found = {}
    for name in formats(recipe):
        each = first_failure(recipe, name, SEARCHED, SHORT_WORK, **given)
        found[name] = {"first_failure": each.length, "searched": each.searched}
    return found


def recipe_table(facts: Mapping[str, Any], setting: str = "--set {}=") -> Table:
    """The facts of a recipe for a person.

    Args:
        facts: as `recipe_facts` gives them.
        setting: the heading of a parameter, with `{}` for its name.

    """
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column()

    def row(heading: str, text: str) -> None:
        table.add_row(escape(heading), escape(text))

    row("recipe", f"{facts['name']} ({section_in_words(facts['section'], facts['document'])})")
    row("claim", facts["claim"])
    for key in ("inputs", "in_real_numbers", "floats_exact_on", "rounding", "error", "mask"):
        if facts.get(key):
            row(key.replace("_", " "), facts[key])
    for key in ("weightings", "features"):
        if facts.get(key):
            row(key, ", ".join(facts[key]))
    if facts["gap"] is not None:
        row(
            "gap of scores",
            f"{facts['gap_statement']}; {facts['gap']:.3g} at n = {facts['gap_at']}",
        )
    if "largest_rounding_tried" in facts:
        worst = facts["largest_rounding_tried"].items()
        shown = (f"{name} {'no bound' if bound is None else bound}" for name, bound in worst)
        row("at most, as tried", ", ".join(shown))
    for reason, names in _grouped(facts["excluded"]).items():
        row("not in", f"{', '.join(names)}: {reason}")
    if facts["safe_lengths"] is not None:
        bounded = "N" if "max_length" in facts["parameters"] else "n"
        row(f"safe up to {bounded}", _lengths_in_words(facts["safe_lengths"]))
        row("why safe", facts["why_safe"])
        if facts["first_failures"]:
            row("first failure found", _found_in_words(facts["first_failures"]))
    for name, each in facts["parameters"].items():
        row(setting.format(name), f"{each['sets']}; default {each['default']}")
    row("weights", f"{Size.of_facts(facts)}; {dependence_in_words(facts['depends_on'])}")
    row("size", facts["size"])
    if facts["weight_cost"]:
        row("cost of weights", cost_in_words(facts["weight_cost"]))
    if facts["feature_bits"] and facts["feature_bits"]["bits"]:
        lengths = facts["feature_bits"]["bits"].items()
        words = ", ".join(f"{name} {count}" for name, count in lengths)
        row("bits of features", f"at most, to n = {facts['feature_bits']['n']}: {words}")
    for source in facts["sources"]:
        row("source", source)
    if facts["errata"]:
        row("errata", f"{', '.join(facts['errata'])} (docs/errata.md)")
    return table


def section_in_words(section: str, document: str) -> str:
    """A section, and of what where that is not the Cookbook.

    Example:
        >>> section_in_words("3.1", "A Paper (arXiv 1234)")
        'section 3.1 of A Paper (arXiv 1234)'

    """
    return f"section {section}" if document == COOKBOOK else f"section {section} of {document}"


K = TypeVar("K")


def _grouped(by_name: Mapping[str, K]) -> dict[K, list[str]]:
    """The names that have one value, in their order."""
    groups: dict[K, list[str]] = {}
    for name, value in by_name.items():
        groups.setdefault(value, []).append(name)
    return groups


def _lengths_in_words(lengths: Mapping[str, int | None]) -> str:
    """Safe lengths; where all are the same, the arithmetics.

    Example:
        >>> _lengths_in_words({"exact": None, "float16": 40})
        'exact any, float16 40'
        >>> _lengths_in_words({"exact": None, "float16": None})
        'any, in exact, float16'

    """
    groups = _grouped(lengths)
    if len(groups) == 1:
        return f"{length_in_words(*groups)}, in {', '.join(lengths)}"
    return ", ".join(f"{name} {length_in_words(bound)}" for name, bound in lengths.items())


def _found_in_words(found: Mapping[str, Mapping[str, int | None]]) -> str:
    """The formats that a short search breaks, then the others by how far it went.

    Example:
        >>> _found_in_words({
        ...     "float64": {"first_failure": None, "searched": 256},
        ...     "float16": {"first_failure": 40, "searched": 40},
        ... })
        'float16 40; none to 256 in float64'

    """
    broken = [
        f"{name} {each['first_failure']}" for name, each in found.items() if each["first_failure"]
    ]
    unbroken = _grouped(
        {name: each["searched"] for name, each in found.items() if not each["first_failure"]}
    )
    others = [f"none to {searched} in {', '.join(names)}" for searched, names in unbroken.items()]
    return "; ".join([", ".join(broken), *others] if broken else others)
