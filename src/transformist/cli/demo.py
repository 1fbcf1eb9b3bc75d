"""`transformist demo`: `run` on a file that every Python has."""

from __future__ import annotations

import argparse
from pathlib import Path

from transformist.cli import run
from transformist.cli.printing import out
from transformist.texts import Text, TextSource


def command() -> None:
    """The file is argparse.py; below the answer stand the layers at work."""
    path = Path(argparse.__file__)
    text = Text.over("()", TextSource.file(path), ignore_others=True)
    out.print(
        f"The {len(text.symbols)} parentheses of {path}, judged by a transformer whose weights "
        "were computed, not trained:\n"
    )
    run.command("dyck-1", file=str(path), ignore_others=True, trace=True)
    out.print(
        "\nNext: transformist list, transformist show dyck-1, "
        "transformist run dyck-1 --file PATH --ignore-others"
    )
