"""The figure object: matplotlib's, with a style of its own and files that depend on it alone."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import matplotlib
from matplotlib.figure import Figure

from transformist.errors import visible

STYLE = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so that every machine has it
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "savefig.bbox": "tight",  # the canvas holds every text, however long
    "savefig.pad_inches": 0.08,
    "svg.fonttype": "none",  # text stays text: smaller, and open to search and screen readers
    "svg.hashsalt": "transformist",  # ids are drawn at random without it
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a symbol such as $ is that symbol
}
"""Settings of matplotlib, over its defaults; settings of the user do not count."""

METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
"""Fields left out of files: with dates or versions, the same figure would give other bytes."""


@contextmanager
def style() -> Iterator[None]:
    """Draw with `STYLE`, whatever the user's settings are."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A symbol that the font lacks is shown as a box; its name is in the text alternative.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        # The backend is left as it is: changing it would close the figures that the user has open.
        # Everything else begins at matplotlib's defaults, so that no setting of the user is left.
        matplotlib.rcParams.update(
            {name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"}
        )
        matplotlib.rcParams.update(STYLE)
        yield


class Drawing(Figure):
    """A figure of matplotlib, whose label is its text alternative."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure to a file or a path, as matplotlib does; SVG has the text as `<desc>`.

        The bytes depend on the figure and on the version of matplotlib alone.
        """
        path = Path(fname) if isinstance(fname, str | Path) else None
        kind = options.get("format") or (path.suffix[1:].lower() if path else "png")
        options = {"metadata": METADATA.get(kind), **options, "format": kind}
        # Into memory first: an SVG is changed before it is written.
        file = io.BytesIO()
        with style():
            super().savefig(file, **options)
        data = file.getvalue()
        if kind == "svg":
            data = self._described(data)
        if path is None:
            fname.write(data)
        else:
            path.write_bytes(data)

    def _described(self, data: bytes) -> bytes:
        """Put the text alternative into the root of an SVG."""
        # As the first child of the root, where readers of screens look for it. Symbols such as <
        # are escaped, since the text holds names that a user chose.
        text = escape(visible(str(self.get_label())))
        start = data.index(b">", data.index(b"<svg")) + 1
        return data[:start] + f"\n <desc>{text}</desc>".encode() + data[start:]

    def bytes_of(self, kind: str) -> bytes:
        """Return the contents of a file of this kind: svg, pdf or png."""
        file = io.BytesIO()
        self.savefig(file, format=kind)
        return file.getvalue()

    def _repr_svg_(self) -> str:
        return self.bytes_of("svg").decode()
