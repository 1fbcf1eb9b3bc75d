"""A transformer on one sheet: what it is built for, its size, and the contents of its slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from transformist.errors import symbols_in_words, visible
from transformist.model import Outputs, Span, Transformer
from transformist.report.size import Size, size
from transformist.report.values import plain


def model_facts(name: str, model: Transformer) -> dict[str, Any]:
    """The facts of a transformer, as plain values.

    Example:
        >>> import transformist as tf
        >>> facts = model_facts("mine", tf.recipe("dyck-1").build(max_length=8))
        >>> facts["max_length"], facts["arithmetic"], facts["slots"][0]["name"]
        (8, None, 'sign')

    """
    weightings = dict.fromkeys(head.weighting for each in model.layers for head in each.heads)
    stream = model.stream
    return {
        "name": name,
        "max_length": model.max_length,
        "weighting": " and ".join(weightings) or None,
        "arithmetic": model.built_for,
        "changes": list(model.changes),
        **asdict(size(model)),
        "alphabet": plain(list(model.alphabet)),
        **_outputs(model),
        "slots": [
            {"name": slot, "holds": [_held(each) for each in stream.spans if each.slot == index]}
            for index, slot in enumerate(stream.slots)
        ],
    }


def _outputs(model: Transformer) -> dict[str, list[str]]:
    """The names of several outputs, where there are several."""
    read_out = model.read_out
    return {"outputs": list(read_out.names)} if isinstance(read_out, Outputs) else {}


def _held(span: Span) -> dict[str, Any]:
    return {"name": span.name, "first": span.first, "last": span.last, "source": span.source}


def model_table(facts: Mapping[str, Any]) -> Table:
    """The facts of a transformer for a person."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    longest = "any length" if facts["max_length"] is None else f"N = {facts['max_length']} symbols"
    rows = [
        ("model", facts["name"]),
        ("longest input", longest),
        ("attention", facts["weighting"] or "no heads"),
        ("constants for", facts["arithmetic"] or "no format is recorded"),
        *([("changed", "; ".join(facts["changes"]))] if facts["changes"] else []),
        ("weights", str(Size.of_facts(facts))),
        ("alphabet", symbols_in_words(facts["alphabet"])),
    ]
    if "outputs" in facts:
        rows.append(("outputs", ", ".join(facts["outputs"])))
    for index, slot in enumerate(facts["slots"]):
        held = [_in_words(each) for each in slot["holds"]] or [slot["name"]]
        rows += [(f"slot {index}" if not number else "", each) for number, each in enumerate(held)]
    for row in rows:
        table.add_row(*(escape(visible(each)) for each in row))
    return table


def _in_words(held: Mapping[str, Any]) -> str:
    first, last = held["first"], held["last"]
    streams = f"stream {first}" if first == last else f"streams {first} to {last}"
    written = f": {held['source']}" if held["source"] else ""
    return f"{held['name']} ({streams}){written}"
