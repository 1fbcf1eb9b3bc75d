"""What is known of recipes, verdicts and traces, as plain values for JSON and for tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any, TypeVar

from rich.markup import escape
from rich.table import Table

from transformist.answers import Judged, Numbers
from transformist.arithmetic import SYSTEMS
from transformist.claims import (
    COOKBOOK,
    Claim,
    Finding,
    FunctionClaim,
    LengthClaim,
    PositionClaim,
    Recipe,
    SequenceClaim,
    Settings,
    StringClaim,
    ask,
)
from transformist.errors import NotFinite
from transformist.model import NOTHING, Trace, Transformer
from transformist.report.size import Size, size
from transformist.settings import SETTINGS
from transformist.texts import Text
from transformist.verify import (
    SHORT_WORK,
    Verdict,
    first_failure,
    formats,
    worst_rounding,
)


def plain(value: Any) -> Any:
    """A value for JSON: integers as they are, other rationals "p/q", no NaN or infinity.

    Raises:
        NotFinite: for NaN or infinity.

    Example:
        >>> plain([Fraction(4, 2), Fraction(1, 3), 0.5])
        [2, '1/3', 0.5]
    """
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
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


def recipe_facts(recipe: Recipe[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What `show` tells of a recipe: its claim, its parameters, its size under these settings."""
    settings, claim = recipe.settings(given), recipe.claim
    built = size(recipe.construct(**settings))
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
        "gap": None,
        "safe_lengths": None,
        "sources": list(recipe.sources),
        "errata": list(recipe.errata),
        "arithmetics": list(claim.claimed(settings)),
        "excluded": _excluded(claim, settings),
        "inputs": claim.inputs(settings),
        **_KINDS[type(claim)](recipe, settings),
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


def _length_facts(recipe: Recipe[LengthClaim], settings: Settings) -> dict[str, Any]:
    claim = recipe.claim
    facts: dict[str, Any] = {"why_safe": claim.why_safe}
    if getattr(claim, "error_statement", ""):
        facts["error"] = claim.error_statement  # type: ignore[attr-defined]
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
        "safe_lengths": claim.safe_lengths(settings),
        "first_failures": _first_failures(recipe, settings),
        "weightings": list(claim.weightings),
        "mask": claim.mask or None,
        "features": list(claim.needed_features(settings)),
    }


SEARCHED = 256
"""The longest inputs of the short search that is shown beside the claim."""


def _first_failures(recipe: Recipe[LengthClaim], settings: Settings) -> dict[str, Any]:
    """What a short search beyond the claim finds in each float format."""
    given = {name: value for name, value in settings.items() if name != "max_length"}
    found = {}
    for name in formats(recipe):
        each = first_failure(recipe, name, SEARCHED, SHORT_WORK, **given)
        found[name] = {"first_failure": each.length, "searched": each.searched}
    return found


_KINDS: Mapping[type, Callable[..., dict[str, Any]]] = {
    FunctionClaim: _function_facts,
    SequenceClaim: _length_facts,
    PositionClaim: _length_facts,
    StringClaim: _length_facts,
}
"""What is told of each kind of claim beside what is told of all."""


def recipe_table(facts: Mapping[str, Any]) -> Table:
    """The facts of a recipe for a person."""
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
    for name, setting in facts["parameters"].items():
        row(f"--set {name}=", f"{setting['sets']}; default {setting['default']}")
    counts = Size(*(facts[key] for key in ("layers", "width", "heads", "nonzero")))
    row("weights", f"{counts}; {dependence_in_words(facts['depends_on'])}")
    row("size", facts["size"])
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


def dependence_in_words(names: Sequence[str]) -> str:
    """What depends on the length.

    Example:
        >>> dependence_in_words(["n"]), dependence_in_words([])
        ('the positions depend on n', 'the same for every length')

    """
    told = {"N": "the weights depend on N", "n": "the positions depend on n"}
    return "; ".join(told[name] for name in sorted(names)) or "the same for every length"


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


def length_in_words(bound: int | None) -> str:
    """A safe length, "any" for every length."""
    if bound is None:
        return "any"
    if bound < 10**15:
        return f"{bound:,}"
    return f"{float(Context(prec=2, rounding=ROUND_FLOOR).create_decimal(bound)):.2g}"


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


def numbers_facts(answer: Numbers) -> dict[str, Any]:
    """What `run` tells of an answer in numbers beside the answer."""
    if answer.bound is None and answer.covered:
        return {"within_claim": True}
    finite = answer.bound is not None and math.inf not in answer.bound
    return {
        "within_claim": answer.covered,
        "error_bound": list(answer.bound or ()) if finite else None,
        "input_rounded": not answer.stored,
        "claimed_positions": None if answer.positions is None else list(answer.positions),
    }


def how_close(answer: Numbers, arithmetic: str) -> str:
    """How far an answer in numbers can be off, to follow it in a sentence."""
    if answer.bound is None:
        return ""
    if math.inf in answer.bound:
        return ", with no bound: a result on the way may be too large, or a divisor 0"
    worst, enclosed = max(answer.bound), arithmetic == "interval"
    if worst:
        close = f", {'a value ' if enclosed else ''}within {at_most(worst)} of the exact result"
    else:
        close = ", which holds the exact result" if enclosed else ", exactly"
    if answer.positions is not None:
        places = ", ".join(map(str, answer.positions))
        close += f", at position {places}; of the others nothing is claimed"
    return close if answer.stored else f"{close}, for the input as {arithmetic} rounds it"


def at_most(bound: float) -> str:
    """A bound in two digits, rounded up.

    Example:
        >>> at_most(0.0625), at_most(3e-16)
        ('0.063', '3e-16')

    """
    digits = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(bound)
    return f"{float(digits):.2g}"


def how_near(judged: Judged) -> str:
    """How far the numbers of an answer can be from the real values, in a sentence."""
    if judged.covered:
        return judged.recipe.claim.error_statement if judged.recipe else ""
    if judged.error_bound is None:
        return "how far off is not told: the products are too many for balls, or balls too wide"
    if math.isinf(judged.error_bound):
        return "a number is infinite"
    close = at_most(judged.error_bound)
    return f"each number within {close} of the real value, which interval encloses"


def judged_facts(judged: Judged, source: Text) -> dict[str, Any]:
    """What `run` tells of an answer on symbols beside the answer: what its claim covers."""
    if judged.recipe is None:
        return {}
    facts = {"within_claim": judged.covered, **finding_facts(judged.finding, source)}
    if judged.recipe.claim.in_numbers:
        bound = judged.error_bound
        facts["error_bound"] = None if bound is None or math.isinf(bound) else [bound]
    return facts


def run_in_words(
    name: str, model: Transformer, length: int, by: str, depends: str | None = None
) -> str:
    """What was run, and how large it is, in a line.

    Args:
        name: of the model.
        model: the model.
        length: of the input.
        by: the arithmetic, and the engine.
        depends: what a claim says that the weights depend on.

    Example:
        >>> import transformist as tf
        >>> run_in_words("mine", tf.recipe("dyck-1").build(max_length=9), 1, "float64")
        'mine on 1 symbol in float64: 2 layers, width 6, 2 heads, 26 non-zero parameters, N = 9'

    """
    told = str(size(model)) if depends is None else f"{size(model)}; {depends}"
    limit = "" if model.max_length is None else f", N = {model.max_length}"
    symbols = f"{length} symbol{'' if length == 1 else 's'}"
    return f"{name} on {symbols} in {by}: {told}{limit}"


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    """What `check` tells of one recipe."""
    found = verdict.counterexample
    counterexample = found and {
        "input": plain(found.input),
        "expected": plain(found.expected),
        "got": plain(found.got),
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


def finding_facts(finding: Finding, source: Text) -> dict[str, Any]:
    """What is found about an input, with the places of the symbols."""
    place = None if finding.position is None else source.place(finding.position)
    return {
        "finding": finding.sentence or None,
        "position": finding.position,
        "place": place,
        "related": [source.place(position) for position in finding.related],
        **finding.numbers,
    }


def answer_in_words(answer: Any) -> str:
    """A verdict as a word, a tag as a string, its beginning where it is long.

    Example:
        >>> answer_in_words(True), answer_in_words([1, Fraction(1, 2)]), answer_in_words("ab")
        ('accepted', '1 1/2', 'ab')

    """
    if isinstance(answer, bool):
        return "accepted" if answer else "rejected"
    text = " ".join(map(str, answer)) if isinstance(answer, list) else str(answer)
    return text if len(text) <= 200 else f"{text[:200]}…"


def compiled_facts(program: str, file: str, model: Transformer, weighting: str) -> dict[str, Any]:
    """What `compile` tells of a program and the model that was saved."""
    return {
        "program": program,
        "file": file,
        **asdict(size(model)),
        "max_length": model.max_length,
        "weighting": weighting,
        "arithmetic": model.built_for,
    }


def compiled_in_words(facts: Mapping[str, Any]) -> str:
    """What `compile` tells, in a line."""
    counts = Size(*(facts[key] for key in ("layers", "width", "heads", "nonzero")))
    longest = "any length" if facts["max_length"] is None else f"N = {facts['max_length']}"
    built = f"{longest}, {facts['weighting']}, {facts['arithmetic']}"
    return f"{facts['program']} → {facts['file']}: {counts}; {built}"


def trace_facts(trace: Trace) -> list[dict[str, Any]]:
    """The streams of a trace: after each step, the values at every row of what each slot holds."""
    stream = trace.model.stream
    return [
        {
            "after": name,
            "values": {
                stream.held(index, step): plain(trace.shown(slot, step))
                for index, slot in enumerate(stream.slots)
                if stream.held(index, step) != NOTHING
            },
        }
        for step, (name, _) in enumerate(trace.streams)
    ]
