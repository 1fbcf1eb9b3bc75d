"""`transformist conformance`: known-answer tests for inference engines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transformist.cli.printing import Json, out, print_json, working
from transformist.conformance import write
from transformist.conformance.suite_files import FAMILIES, LENGTH, read_manifest
from transformist.errors import UnknownName, is_name
from transformist.inputs import read_positive

ACTIONS = ("write",)

Action = Annotated[
    str, typer.Argument(help=f"One of {', '.join(ACTIONS)}.", metavar="ACTION", show_default=False)
]
Directory = Annotated[
    Path,
    typer.Argument(
        help="The directory of the suite; `write` needs a new or empty one.",
        metavar="DIR",
        show_default=False,
    ),
]
Family = Annotated[
    str, typer.Option(help=f"The family of models: {', '.join(FAMILIES)}.", metavar="F")
]
Length = Annotated[
    str | None,
    typer.Option(help=f"The longest input in tokens; {LENGTH} when left out.", metavar="N"),
]


def command(
    action: Action,
    directory: Directory,
    family: Family = FAMILIES[0],
    length: Length = None,
    as_json: Json = False,
) -> None:
    """`write` makes stock checkpoints with prompts whose greedy tokens are known."""
    if not is_name(action, ACTIONS):
        raise UnknownName.among("action", action, ACTIONS, "conformance")
    longest = LENGTH if length is None else read_positive(length, "--length")
    with working(f"writing the suite of {family}"):
        prompts = write(directory, family, longest)
    manifest = read_manifest(directory)
    names = [each["name"] for each in manifest["instruments"]]
    size = sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())
    facts = {
        "directory": str(directory),
        "family": family,
        "length": longest,
        "instruments": names,
        "prompts": prompts,
        "bytes": size,
    }
    if as_json:
        print_json(facts)
    else:
        out.print(
            f"{directory}: {len(names)} checkpoints of {family}, {prompts} prompts of up to "
            f"{longest} tokens, {size:,} bytes: {', '.join(names)}",
            markup=False,
        )
