"""The lengths that formats reach: claimed, and the first at which a failure was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from transformist.errors import InvalidValue
from transformist.figures.canvas import BLUE, VERMILION, drawn
from transformist.verify import Breakdown


def lengths(found: Iterable[Breakdown]) -> Any:
    """Draw for each format the length that is claimed and the first that was seen to fail.

    Args:
        found: results of `verify.first_failure`, one for each format.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: for anything else, and without matplotlib.

    """
    rows = list(found)
    if not rows or not all(isinstance(each, Breakdown) for each in rows):
        raise InvalidValue(
            "there must be results of first_failure, one for each format",
            received=f"{rows!r:.60}",
            where="lengths",
            remedy="give [verify.first_failure(recipe, format) for format in formats]",
        )
    height, width = 0.3 * len(rows) + 1.0, 6.4
    # Space to the right of the longest length, so that marks there are not cut, and so that a claim
    # for every length, which ends at the right end, differs from a claim for the longest.
    most = 4 * max(max(each.claimed or 1, each.length or 1, each.searched) for each in rows)
    with drawn(width, height) as figure:
        down = 0.3 * len(rows)
        axes = figure.add_axes((1.2 / width, 0.45 / height, 4.8 / width, down / height))
        told = [_draw_row(axes, place, each, most) for place, each in enumerate(rows)]
        axes.plot([], [], color=BLUE, linewidth=5, label="claimed")
        axes.plot([], [], "X", color=VERMILION, linestyle="", label="first failure found")
        axes.plot(
            [],
            [],
            ">",
            color="black",
            markerfacecolor="white",
            linestyle="",
            label="searched to here",
        )
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3)
        axes.set_xscale("log")
        axes.set_xlim(1, most)
        ticks = [10**k for k in range(len(str(most)))]
        axes.set_xticks(ticks, [f"{tick:,}" if tick < 10**7 else f"{tick:.0e}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks(range(len(rows)), [each.arithmetic for each in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("length")
        figure.set_label(f"Lengths by format. {'; '.join(told)}.")
    return figure


def _draw_row(axes: Any, place: int, found: Breakdown, most: int) -> str:
    """Draw the lengths of one format, and return them in words."""
    # A claim for every length goes to the right end of the axis.
    end = most if found.claimed is None else found.claimed
    if end > 1:
        axes.plot([1, end], [place, place], color=BLUE, linewidth=5, solid_capstyle="butt")
    claimed = "every length" if found.claimed is None else f"{found.claimed:,}"
    text = f"{found.arithmetic}: claimed {claimed}"
    if found.length is None:
        axes.plot(found.searched, place, ">", color="black", markerfacecolor="white")
        return f"{text}, no failure found to {found.searched:,}"
    axes.plot(found.length, place, "X", color=VERMILION, markersize=7)
    return f"{text}, first failure found at {found.length:,}"
