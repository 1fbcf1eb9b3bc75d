"""The margins of a certificate: the error bound of each slot beside the error allowed."""

from __future__ import annotations

import math
from typing import Any

from transformist.figures.canvas import (
    BLUE,
    CHARACTER,
    GREY,
    VERMILION,
    drawn,
    in_digits,
    require_kind,
    short,
    short_labels,
)
from transformist.verify import Certificate

PLACES = 40
"""Most margins that are drawn."""

SMALLEST = 2.0**-60
"""Least share that is drawn; a smaller one, and 0, is drawn as this."""

LARGEST = 2.0**20
"""Largest share that is drawn; a larger one, and infinity, is drawn as this."""


def certificate(statement: Certificate) -> Any:
    """Draw the margins of a certificate: for each slot, the margin with the largest share used.

    A bar is the bound of an error, a size or a count, divided by the largest that is allowed. A
    margin holds if its bar ends below 1.

    Args:
        statement: the certificate, `tf.certify(model)`.

    Returns:
        A matplotlib `Figure`; its label is a description in words. Of more than 40 slots those with
        the least margins are drawn, and the figure says so.

    Raises:
        InvalidValue: without matplotlib.

    """
    require_kind(statement, Certificate, "certificate", "give tf.certify(model)")
    # A slot has several margins, such as its size and the error of a comparison. The one used most
    # decides; the others would hide it among bars that say nothing.
    worst: dict[str, Any] = {}
    for margin in statement.demands:
        if margin.place not in worst or _used(margin) > _used(worst[margin.place]):
            worst[margin.place] = margin
    every = sorted(worst.values(), key=_used, reverse=True)
    shown = every[:PLACES]
    note = (
        f"Drawn in part: {len(shown)} of {len(every)} slots, least margins first."
        if shown != every
        else ""
    )
    places = _named([each.place for each in shown], statement)
    names = [f"{place}: {short(each.what, 44)}" for place, each in zip(places, shown, strict=True)]
    words = [f"{in_digits(each.error)} of {in_digits(each.allowed)}" for each in shown]
    left = max(map(len, names), default=0) * CHARACTER + 0.2
    height, width = 0.2 * len(shown) + 1.1, left + 5.0
    outcome = f"holds (grade {statement.grade})" if statement else "does not hold"
    where = f", in {statement.host.host}" if statement.host else ""
    title = f"{statement.model} in {statement.arithmetic}{where}, N = {statement.max_length}: "
    title += outcome
    with drawn(width, height) as figure:
        axes = figure.add_axes((left / width, 0.5 / height, 3.6 / width, 0.2 * len(shown) / height))
        _draw_bars(axes, shown, names, words)
        figure.text(0.1 / width, 1 - 0.15 / height, title, fontweight="bold")
        if note:
            figure.text(0.1 / width, 0.08 / height, note, color=VERMILION)
        told = "; ".join(f"{name}, up to {text}" for name, text in zip(names, words, strict=True))
        figure.set_label(" ".join(f"Margins of {title}. {note} {told}.".split()))
    return figure


def _named(places: list[str], statement: Certificate) -> list[str]:
    """The places of margins, with the number that is made there where the certificate names it."""
    # A proof knows places of weights, such as `layer 1 unit 0`; the laws call the same place
    # `layer 1 unit 0: accept`, after the slot. A reader has to see that they are one.
    known = dict(line.name.split(": ", 1) for line in statement.lines if ": " in line.name)
    full = [f"{place}: {known[place]}" if place in known else place for place in places]
    labels = short_labels(full)
    return [labels[each] for each in full]


def _draw_bars(axes: Any, shown: list[Any], names: list[str], words: list[str]) -> None:
    """Draw a bar for each margin on a log axis, its name to the left and its words to the right."""
    # Both ends are cut: 0 and infinity have no place on a log axis.
    shares = [min(max(_used(each), SMALLEST), LARGEST) for each in shown]
    colours = [BLUE if each.share > 0 else VERMILION for each in shown]
    hatches = ["" if each.share > 0 else "//" for each in shown]
    # The axis ends at 4 at least, beyond the line at 1, and leaves a factor of 4 to the longest
    # bar.
    most = max([4.0, *(4 * share for share in shares)])
    least = max(SMALLEST, min([2.0**-8, *shares]) / 2)
    places = range(len(shown))
    axes.set_xscale("log", base=2)
    # On a log axis a bar has to begin at a number above 0.
    axes.barh(
        places,
        [s - least for s in shares],
        left=least,
        height=0.7,
        color=colours,
        hatch=hatches,
        edgecolor="white",
    )
    axes.axvline(1, color="black", linewidth=1)
    axes.text(1, -0.75, "allowed", ha="center", va="bottom", fontsize=7)
    for place, text in zip(places, words, strict=True):
        axes.text(most * 1.3, place, text, va="center", fontsize=6.5, color=GREY)
    axes.set_yticks(places, names)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(least, most)
    first, last = math.ceil(math.log2(least)), math.floor(math.log2(most))
    # At most nine ticks, at multiples of one exponent.
    step = max(1, -(-(last - first) // 8))
    exponents = [k for k in range(first, last + 1) if k % step == 0]
    axes.set_xticks([2.0**k for k in exponents], [f"2^{k}" for k in exponents])
    axes.minorticks_off()
    axes.set_xlabel("bound of the error, size or count, divided by what is allowed")
    axes.tick_params(axis="y", length=0)


def _used(margin: Any) -> float:
    """The share of a margin that is used.

    It is 0 for an error bound of 0. Otherwise it is infinite where no error is allowed, or where
    the share is NaN.
    """
    if margin.error == 0 or margin.allowed == math.inf:
        return 0.0
    share = margin.error / margin.allowed if margin.allowed > 0 else math.inf
    return math.inf if math.isnan(share) else float(share)
