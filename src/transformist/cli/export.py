"""`transformist export`: a model into a file of other software."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from transformist.arithmetic import number_system
from transformist.cli.options import Model, PositionCodes, Set
from transformist.cli.printing import Json, out, print_json, shown_warnings, working
from transformist.compiler.target import host_refusal
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue
from transformist.hosts import export
from transformist.hosts.exporting import export_target
from transformist.hosts.host import HOSTS, Unhostable
from transformist.hosts.named_arrays import longest_input
from transformist.inputs import read_positive, read_settings, with_options
from transformist.model import Transformer
from transformist.named import NamedModel, find_model
from transformist.named.named_file import NamedFile
from transformist.named.named_program import NamedProgram

LENGTH = 64
"""The longest input of an exported model, unless another length is given."""


def command(
    model: Model,
    host: Annotated[str, typer.Option(help=f"One of {', '.join(HOSTS)}.", metavar="HOST")],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="F",
            help="The file, which is replaced; of a checkpoint, a new or empty directory.",
        ),
    ],
    max_length: Annotated[
        str | None,
        typer.Option(
            "--max-length",
            help=f"The longest input; {LENGTH} when left out. A saved model has its own N.",
            metavar="N",
        ),
    ] = None,
    arithmetic: Annotated[
        str, typer.Option(help="The number format of the file.", metavar="A")
    ] = "float32",
    position_codes: PositionCodes = None,
    settings: Set = [],  # noqa: B006
    force: Annotated[
        bool, typer.Option("--force", help="Replace a directory that holds an earlier export.")
    ] = False,
    license: Annotated[
        str,
        typer.Option(
            "--license",
            help="The identifier of the weights' licence, for the card; none when left out.",
            metavar="L",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """The exported model is loaded and compared with MODEL before the file is put in its place."""
    code = {"position_codes": position_codes}
    named = find_model(model, with_options(read_settings(settings), code))
    named.require_strings("export", f"export --host {host}")
    length = LENGTH if max_length is None else read_positive(max_length, "--max-length")
    has_length = named.has_length
    system = number_system(arithmetic)
    export_target(output, host, force)  # a refusal comes before minutes of compiling
    after, in_words = "", ""

    def command_for(other: str, arithmetic: str) -> str:
        suffix = HOSTS[other].suffix
        line = ["transformist", "export", model, "--host", other, "--arithmetic", arithmetic]
        line += ["-o", str(output.with_suffix(suffix) if suffix else output)]
        line += [] if max_length is None else ["--max-length", max_length]
        line += [] if position_codes is None else ["--position-codes", position_codes]
        line += [part for each in settings for part in ("--set", each)]
        return shlex.join(line)

    with working(f"exporting {named.name}"), shown_warnings():
        try:
            if isinstance(named, NamedProgram):
                named = named.with_defaults(max_length=length, **HOSTS[host].options).for_masks()
                after, in_words = named.answers_after, named.after_in_words
            found = named.built(length, system)
        except Uncompilable as refusal:
            if not HOSTS[host].options:
                raise
            # The graph of ONNX has every mask and every position function.
            other = f"or export to a host of all masks: {command_for('onnx', 'float32')}"
            raise host_refusal(host, refusal, other) from None
        built = found.model
        if has_length and max_length is not None:
            _require_own_length(built, length, named.name)
        try:
            compared = export(built, output, host, system, length, found.claim, force, license)
        except Unhostable as refusal:
            raise InvalidValue(
                refusal.invariant,
                received=refusal.received,
                where=refusal.where,
                remedy=_of_program(named, host, output, refusal.options)
                + f"run: {command_for(refusal.host, refusal.arithmetic)}",
            ) from None
    facts = {
        "model": named.name,
        "file": str(output),
        "host": host,
        "arithmetic": system.name,
        "max_length": built.max_length,
        "bytes": _bytes_at(output),
        "compared": compared.inputs,
        "every_string_to": compared.every_to,
        "longest_compared": compared.longest,
        "ended": compared.ended,
        "answers_after": after or None,
    }
    if as_json:
        print_json(facts)
    else:
        if after:
            out.print(in_words, markup=False)
        ended = f" ({compared.ended})" if compared.ended else ""
        out.print(
            f"{named.name} → {output}: {host}, {system.name}, {facts['bytes']:,} bytes; "
            f"{compared.inputs} answers compared, all equal: every string to length "
            f"{compared.every_to}, hard ones to length {compared.longest}{ended}",
            markup=False,
        )


def _of_program(named: NamedModel, host: str, output: Path, options: Mapping[str, Any]) -> str:
    """The advice to export the program of a saved model, or to compile it with these options.

    It is empty without options, which are those of the compiler for the host.
    """
    if not options:
        return ""
    own = ["transformist", "export", "FILE.py:NAME", "--host", host, "-o", str(output)]
    direct = f"export its program: {shlex.join(own)}; or " if isinstance(named, NamedFile) else ""
    settings = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in options.items()
    ]
    line = ["transformist", "compile", "PROGRAM", "-o", "F"]
    line += [part for each in settings for part in ("--set", each)]
    return f"{direct}compile the program anew: {shlex.join(line)}; or "


def _bytes_at(path: Path) -> int:
    """The bytes of a file, or of the files of a directory."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files)


def _require_own_length(model: Transformer, length: int, name: str) -> None:
    """Refuse another length for a model whose N does not come from `--max-length`.

    Raises:
        InvalidValue: for a length other than N.

    """
    own = longest_input(model)
    if own not in (None, length):
        raise InvalidValue(
            f"--max-length must be the N of the model, {own}",
            received=f"--max-length {length}",
            where=name,
            remedy="leave --max-length out, or build the model for the other N",
        )
