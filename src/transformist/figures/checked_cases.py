"""The cases of a verdict: how many were compared in each arithmetic, and the counterexample."""

from __future__ import annotations

from typing import Any

from transformist.figures.canvas import BLUE, VERMILION, drawn, require_kind, short
from transformist.report.precision_table import shortened
from transformist.verify import Verdict


def verdict(outcome: Verdict) -> Any:
    """Draw a verdict: the number of inputs compared in each arithmetic, up to a counterexample.

    Args:
        outcome: the verdict, `tf.check(model, reference)`.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: without matplotlib.

    """
    require_kind(outcome, Verdict, "verdict", "give tf.check(model, reference)")
    # A verdict has a part for each choice of settings; one arithmetic may be in several of them.
    # Verdicts of saved runs may have no parts, only the sum.
    counts: dict[str, int] = {}
    for each in outcome.coverage:
        counts[each.arithmetic] = counts.get(each.arithmetic, 0) + each.cases
    counts = counts or dict.fromkeys(outcome.arithmetics, outcome.cases)
    wrong = outcome.counterexample
    found = "no counterexample"
    if wrong is not None:
        found = f"{_shown(wrong.input)} gives {_shown(wrong.got)}, not {_shown(wrong.expected)}"
    title = f"{outcome.name}: {'holds on what was tried' if outcome.held else 'refuted'}"
    height, width = 0.26 * max(len(counts), 1) + 1.15, 6.4
    with drawn(width, height) as figure:
        down = 0.26 * max(len(counts), 1)
        axes = figure.add_axes((1.2 / width, 0.6 / height, 4.2 / width, down / height))
        places = range(len(counts))
        colours = [
            VERMILION if wrong is not None and name == wrong.arithmetic else BLUE for name in counts
        ]
        axes.barh(places, list(counts.values()), height=0.65, color=colours)
        for place, count in enumerate(counts.values()):
            axes.text(count, place, f" {count:,}", va="center", fontsize=7)
        axes.set_yticks(places, counts)
        axes.set_ylim(len(counts) - 0.5, -0.5)
        axes.set_xlim(0, max([1, *counts.values()]) * 1.2)
        axes.set_xlabel("inputs compared")
        axes.tick_params(axis="y", length=0)
        figure.text(0.1 / width, 1 - 0.2 / height, title, fontweight="bold")
        figure.text(0.1 / width, 0.08 / height, found, color=VERMILION if wrong else "black")
        told = ", ".join(f"{count:,} in {name}" for name, count in counts.items())
        figure.set_label(f"Inputs compared for {title}: {told}; {found}.")
    return figure


def _shown(value: Any) -> str:
    return short(shortened(value)) or "the empty string"
