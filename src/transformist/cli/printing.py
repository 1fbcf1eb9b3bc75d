"""What commands print: tables and lines for a person, or one JSON object."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
wide = Console(highlight=False, width=160, emoji=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]


def print_json(facts: dict[str, Any]) -> None:
    """One object on standard output, in which every number is one."""
    print(json.dumps(facts, allow_nan=False))


@contextmanager
def shown_warnings() -> Iterator[None]:
    """What the library warns of meanwhile, once each, as lines on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        yield


def warn(of: str) -> None:
    """A line on standard error; none where there is nothing to warn of."""
    if of:
        err.print(f"warning: {of}", markup=False)
