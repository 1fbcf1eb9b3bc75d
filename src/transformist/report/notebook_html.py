"""HTML of recipes, models, traces, verdicts and certificates, for notebooks.

Jupyter and marimo show the HTML of `_repr_html_` where a cell ends in such a value. The tables name
no colours, so they have the colours of the notebook, light or dark.
"""

from __future__ import annotations

from html import escape
from typing import Any

from rich.table import Table
from rich.text import Text

from transformist.claims import Recipe
from transformist.errors import visible
from transformist.model import Trace, Transformer
from transformist.report.certificate_table import certificate_table
from transformist.report.model_sheet import model_facts, model_table
from transformist.report.recipe_sheet import recipe_facts, recipe_table
from transformist.report.trace_table import trace_table
from transformist.report.values import answer_in_words, plain
from transformist.verify import Certificate, Verdict

MOST_ROWS = 100
"""Most rows of a table that are shown; a line below says how many are left out."""

LONGEST_TEXT = 400
"""Most characters of an input or an answer; a cell or a caption may have four times as many."""


def recipe_html(recipe: Recipe[Any]) -> str:
    """The claim, the parameters and the size of a recipe, as `transformist show` has them."""
    return _table(recipe_table(recipe_facts(recipe, {}), setting="setting {}"))


def model_html(model: Transformer) -> str:
    """The size of a transformer, and the content of its slots."""
    return _table(model_table(model_facts("Transformer", model)))


def trace_html(trace: Trace) -> str:
    """The answer of a run, and the slots that each step changed at the first and last positions."""
    read = "".join(map(str, trace.input))
    answer = answer_in_words(plain(trace.answer))
    changes = "".join(f", {each}" for each in trace.changes)
    run = f"{_cut(read) or 'the empty string'} in {trace.arithmetic.name}{changes}"
    caption = f"{run}: {_cut(answer)}"
    return _table(trace_table(trace), caption)


def verdict_html(verdict: Verdict) -> str:
    """The inputs that a check compared, and the first that failed."""
    table = Table("arithmetic", "inputs", "number")
    for each in verdict.coverage:
        given = ", ".join(f"{name} = {plain(value)}" for name, value in each.settings.items())
        inputs = f"{each.inputs}; {given}" if given else each.inputs
        table.add_row(*map(Text, (each.arithmetic, inputs, f"{each.cases:,}")))
    outcome = "held" if verdict.held else f"failed: {verdict.counterexample}"
    return _table(table, f"{verdict.name}: {outcome}")


def certificate_html(certificate: Certificate) -> str:
    """The statement of a certificate, and its bounds of the numbers of the model."""
    table = certificate_table(certificate)
    granted = Text.from_markup(str(table.caption)).plain
    return _table(table, f"{certificate}. {granted}")


def _table(table: Table, caption: str = "") -> str:
    """Return a table of rich as HTML, with long texts cut short and at most `MOST_ROWS` rows."""
    columns = [list(column.cells) for column in table.columns]
    headings = [_plain(column.header) for column in table.columns] if table.show_header else []
    rows = list(zip(*columns, strict=True))
    left_out = len(rows) - MOST_ROWS
    parts = [f"<caption {_STYLE}>{_shown(caption)}</caption>"] if caption else []
    if headings:
        parts.append(f"<thead><tr>{''.join(_cell('th', each) for each in headings)}</tr></thead>")
    body = "".join(
        f"<tr>{''.join(_cell('td', _plain(each)) for each in row)}</tr>" for row in rows[:MOST_ROWS]
    )
    parts.append(f"<tbody>{body}</tbody>")
    more = f"<p>… and {left_out:,} more rows</p>" if left_out > 0 else ""
    return f"<div><table>{''.join(parts)}</table>{more}</div>"


_STYLE = 'style="text-align: left; vertical-align: top; caption-side: top"'
"""Alignment alone: notebooks center captions, and align cells of tables to the right."""


def _cell(tag: str, text: str) -> str:
    return f"<{tag} {_STYLE}>{_shown(text)}</{tag}>"


def _plain(cell: Any) -> str:
    """The text of a cell or a heading, which may have the markup of rich."""
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


def _shown(text: str) -> str:
    return escape(visible(_cut(text, 4 * LONGEST_TEXT)))


def _cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text, its middle left out where it is too long."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"
