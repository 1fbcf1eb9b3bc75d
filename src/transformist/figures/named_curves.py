"""Curves through given points, each with a name."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from transformist.errors import InvalidValue
from transformist.figures.canvas import COLOURS, MARKERS, drawn, short_labels

TOLD = 10
"""Points of a longer curve that the description names."""

LOGARITHMIC = ("", "x", "y", "xy")
"""Names of the axes that are logarithmic."""


def curves(
    points: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x: str,
    y: str,
    logarithmic: str = "",
) -> Any:
    """Draw curves through points.

    Args:
        points: for each curve its points (x, y), by its name. Where x is a text in every point,
            the axis has these texts at equal distances.
        x: name of the horizontal axis.
        y: name of the vertical axis.
        logarithmic: the logarithmic axes: "x", "y" or "xy"; none by default.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: for anything else, numbers that are not finite, or not positive on a
            logarithmic axis, and without matplotlib.

    """
    checked = _checked(points, logarithmic)
    labels = short_labels(checked)
    with drawn(6.4, 3.2) as figure:
        axes = figure.add_axes((0.11, 0.15, 0.56, 0.78))
        for number, (name, curve) in enumerate(checked.items()):
            # Curves on top of each other: each is narrower than the one below it.
            axes.plot(
                [place for place, _ in curve],
                [value for _, value in curve],
                marker=MARKERS[number % len(MARKERS)],
                color=COLOURS[number % len(COLOURS)],
                markersize=max(5.5 - 0.6 * number, 2.5),
                linewidth=max(2.4 - 0.3 * number, 0.8),
                label=labels[name],
            )
        _scale(axes, logarithmic, [place for curve in checked.values() for place, _ in curve])
        axes.set_xlabel(str(x))
        axes.set_ylabel(str(y))
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1))
        told = [f"{name}: {_told(curve)}" for name, curve in checked.items()]
        figure.set_label(f"{y} by {x}. {'; '.join(told)}.")
    return figure


def _scale(axes: Any, logarithmic: str, places: Sequence[Any]) -> None:
    """Make axes logarithmic, and put the ticks of the horizontal one at the places, if few."""
    for axis, name in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        if name in logarithmic:
            axis.axes.set(**{f"{name}scale": "log"})
            # The labels of matplotlib are formulas, which the style leaves as they are written.
            axis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.set_minor_formatter("")
    if isinstance(places[0], str):
        axes.tick_params(axis="x", rotation=20)
        return
    ticks = sorted(set(places))
    at = [math.log(tick) for tick in ticks] if "x" in logarithmic else ticks
    # A label takes about a twelfth of the axis.
    if all(12 * (b - a) >= at[-1] - at[0] for a, b in itertools.pairwise(at)):
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def _told(curve: Sequence[tuple[Any, float]]) -> str:
    """The points in words; of many the first, the last, and some between at equal distances."""
    told, most = min(TOLD, len(curve)), len(curve) - 1
    places = [round(k * most / max(told - 1, 1)) for k in range(told)]
    texts = [f"{value:.4g} at {_shown(place)}" for place, value in (curve[k] for k in places)]
    of = f" ({len(texts)} of {len(curve)} points)" if len(texts) < len(curve) else ""
    return ", ".join(texts) + of


def _shown(place: Any) -> str:
    return place if isinstance(place, str) else f"{place:.6g}"


def _checked(points: Any, logarithmic: Any) -> dict[str, list[tuple[Any, float]]]:
    """The points as plain numbers or texts.

    Raises:
        InvalidValue: where they cannot be drawn.

    """
    if str(logarithmic) not in LOGARITHMIC:  # by its text, since an array has no truth value
        raise _refused("logarithmic must be '', 'x', 'y' or 'xy'", logarithmic)
    try:
        plain = {
            str(name): [(_plain(place), float(value)) for place, value in curve]
            for name, curve in points.items()
        }
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise _refused("curves must be a dict from names to lists of points (x, y)", points) from (
            None
        )
    every = [point for curve in plain.values() for point in curve]
    if not every or not all(plain.values()):
        raise _refused("every curve must have a point", points)
    places, values = zip(*every, strict=True)
    if len({*map(type, places)}) > 1:
        raise _refused("x must be a number in every point, or a text in every point", points)
    _require_numbers("y", values, logarithmic, points)
    if not isinstance(places[0], str):
        _require_numbers("x", places, logarithmic, points)
    elif "x" in logarithmic:
        raise _refused("every x must be a positive number where it is logarithmic", points)
    return plain


def _plain(place: Any) -> str | float:
    return place if isinstance(place, str) else float(place)


def _require_numbers(axis: str, numbers: Sequence[float], logarithmic: str, points: Any) -> None:
    """Require numbers that have a place on their axis.

    Raises:
        InvalidValue: for infinity, NaN, and 0 or less on a logarithmic axis.

    """
    if not all(map(math.isfinite, numbers)):
        raise _refused(f"every {axis} must be finite", points)
    if axis in logarithmic and min(numbers) <= 0:
        raise _refused(f"every {axis} must be a positive number where it is logarithmic", points)


def _refused(wanted: str, received: Any) -> InvalidValue:
    return InvalidValue(
        wanted,
        received=f"{received!r:.60}",
        where="curves",
        remedy='give {"a": [(1, 2), (2, 4)]} or the like, and leave logarithmic out',
    )
