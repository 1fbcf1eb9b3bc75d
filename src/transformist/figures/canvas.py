"""New figures, their colours, and the files that they are written to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformist.errors import InvalidValue, require_type, visible
from transformist.hosts.optional_library import optional
from transformist.hosts.whole_file import path_of, replace_file, require_writable

if TYPE_CHECKING:
    from transformist.figures.drawing import Drawing

ENDINGS = (".svg", ".pdf", ".png")
"""Endings of files that a figure can be written to."""

BLUE, ORANGE, GREEN, VERMILION, GREY, PALE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#666666",
    "#EEF2F5",
)
"""Colours of Okabe and Ito, which colour-blind readers can tell apart, and two greys."""

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, "#CC79A7", "#56B4E9", "#000000", GREY)
"""Colours of curves, one after another."""

MARKERS = "os^Dv<>P"
"""Markers of curves, so that no curve is known by its colour alone."""

LONGEST = 34
"""Characters of a longer name that are kept, half at its start and half at its end."""

CHARACTER = 0.068
"""Estimated width of a character in inches.

A character of DejaVu Sans takes about 0.61 em; 1 em at 8 points is 8/72 = 1/9 inch.
"""


@contextmanager
def drawn(width: float, height: float) -> Iterator[Drawing]:
    """Make a figure of this size in inches, in the style of all figures.

    Raises:
        InvalidValue: if matplotlib is not installed.

    """
    module = _drawing()
    with module.style():
        yield module.Drawing(figsize=(width, height))


def _drawing() -> Any:
    return optional("transformist.figures.drawing", "figures", "figures")


def short(name: object, longest: int = LONGEST) -> str:
    """A name on one line; long names often differ at their ends, so these are kept.

    Example:
        >>> short("balance"), short("count of a in [1, 2]", 12)
        ('balance', 'count …[1, 2]')

    """
    # Line breaks and control characters are made visible: they would spoil the layout.
    text = visible(str(name))
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def in_digits(value: float) -> str:
    """A number in three digits; whole numbers up to 8 digits, and numbers up to 10⁵, have more.

    Example:
        >>> [in_digits(each) for each in (2048.0, -1 / 3, 65504.5, 0.000244140625, -1.5e-7, 1e100)]
        ['2048', '-0.333', '65504.5', '0.000244', '-1.5e-7', '1e100']

    """
    if value.is_integer() and abs(value) < 1e8:
        return f"{value:.0f}"
    if 1000 <= abs(value) < 1e5:
        return f"{value:.1f}"
    # Without the sign and the zeros that Python writes, the largest exponents fit a cell.
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.3g}")


def listed(numbers: Sequence[int]) -> str:
    """Whole numbers in words, neighbours as a range.

    Example:
        >>> listed([0, 1, 4, 5, 6])
        '0, 1, 4–6'

    """
    runs: list[Any] = []
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *rest = [number for _, number in run]
        runs += [first, *rest] if len(rest) < 2 else [f"{first}–{rest[-1]}"]
    return ", ".join(map(str, runs))


def short_labels(names: Iterable[str]) -> dict[str, str]:
    """Labels of names: each name cut short, but long enough that no two labels are equal.

    Example:
        >>> short_labels(["balance", "a" * 40 + "b" * 40, "a" * 39 + "c" + "b" * 40])["balance"]
        'balance'

    """
    labels = {name: short(name) for name in names}
    longest = LONGEST
    while len(set(labels.values())) < len(labels):
        longest *= 2
        seen = Counter(labels.values())
        labels = {
            name: short(name, longest) if seen[text] > 1 else text for name, text in labels.items()
        }
        if longest > max(map(len, labels)):  # names that only invisible characters tell apart
            break
    return labels


def require_kind(given: Any, kind: type, where: str, remedy: str) -> None:
    """Require a value of the class that a function draws.

    Raises:
        InvalidValue: for a value of another class.

    """
    require_type(
        given,
        kind,
        f"the value to draw must be a {kind.__name__}",
        where=where,
        remedy=remedy,
    )


def require_plot(given: Any, where: str) -> Path:
    """Require a path that a figure can be written to, before the work that it takes.

    Raises:
        InvalidValue: for another ending, a place that cannot be written to, and without
            matplotlib.

    Example:
        >>> require_plot("circuit.jpeg", "plot")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        transformist.errors.InvalidValue: plot: a figure must be written to .svg, .pdf or .png; ...

    """
    # In the order of what is cheapest to mend: the name, the extra, the place. All of this comes
    # before the model is built, so that no long work is lost to a wrong file name.
    path = path_of(given, where)
    if path.suffix.lower() not in ENDINGS:
        raise InvalidValue(
            f"a figure must be written to {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
            received=f"{str(given)!r:.60}",
            where=where,
            remedy="give a file name with one of these endings",
        )
    _drawing()
    require_writable(path, where)
    return path


def write(figure: Any, path: Any) -> None:
    """Write a figure to a file: SVG, PDF or PNG, by its ending; whole or not at all.

    Args:
        figure: a figure of `transformist.figures`.
        path: the file.

    Raises:
        InvalidValue: for another ending, and a place that cannot be written to.

    """
    # Whole or not at all: a figure that fails to be drawn leaves an older file as it was.
    place = require_plot(path, "write")
    if not hasattr(figure, "bytes_of"):
        raise InvalidValue(
            "the figure must be one of transformist",
            received=f"{figure!r:.60}",
            where="write",
            remedy="give one such as model.plot(); a figure of matplotlib has savefig",
        )
    replace_file(place, figure.bytes_of(place.suffix[1:].lower()), "write")
