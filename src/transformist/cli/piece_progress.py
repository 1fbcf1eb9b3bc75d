"""Progress of a check in pieces, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from transformist.cli.printing import err, working
from transformist.verify import Progress
from transformist.verify.feasible import seconds_in_words


@contextmanager
def pieces_shown(on: str) -> Iterator[Callable[[Progress], None]]:
    """Show progress: pieces, strings a second and the time left.

    A terminal shows a bar. Elsewhere a line is printed every few seconds, as `working` does.

    Args:
        on: the work, in words.

    Yields:
        The function to call after each piece.

    """
    if not err.is_terminal:
        with working(on) as say:
            yield lambda progress: say(_in_a_line(progress))
        return
    columns = (
        SpinnerColumn(),
        TextColumn(on, markup=False),
        BarColumn(),
        TextColumn("{task.fields[line]}", markup=False),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=None, line="")
        yield lambda progress: bar.update(
            task,
            completed=progress.finished,
            total=progress.pieces,
            line=_in_a_line(progress),
        )


def _in_a_line(progress: Progress) -> str:
    """The pieces and the speed; empty before the first piece has ended."""
    if not progress.finished:
        return ""
    return f"{progress.finished} of {progress.pieces} pieces{speed(progress)}"


def speed(progress: Progress) -> str:
    """Strings a second, and the time left if later strings take as long as those of this run.

    Example:
        >>> speed(Progress(6, 10, strings=2000, left=3000, seconds=4.0))
        ', 500 strings/s, 6 s left'

    """
    if not progress.strings or not progress.seconds:
        return ""
    left = progress.seconds * progress.left / progress.strings
    return f", {progress.strings / progress.seconds:,.0f} strings/s, {seconds_in_words(left)} left"
