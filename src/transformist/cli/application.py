"""The commands by name, each imported when it is called."""

from __future__ import annotations

import difflib
import importlib
import inspect
import itertools
import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from transformist import __version__
from transformist.errors import UnknownName

COMMANDS: Mapping[str, str] = {
    "list": "List the recipes, chapter by chapter, and the packaged programs.",
    "show": "Show the claim and parameters of a recipe, or the slots of a model; and its size.",
    "run": "Run a model on an input and print the answer.",
    "check": "Check recipes against their claims, and compiled programs against their sources.",
    "compile": "Compile a program to the weights of a transformer, and save them.",
    "certify": "Prove that a format decides as exact weights do, for inputs of length up to N.",
    "export": "Write a model for PyTorch, ONNX or Hugging Face transformers, after a comparison.",
    "conformance": "Write known-answer tests for inference engines.",
    "precision": "Search for the first length at which a float format breaks a recipe.",
    "diagnose": "Find the number that makes an answer wrong in a format, and the remedy.",
    "explain": "Write a page in which a model works on a string of yours, step by step.",
    "plan": "Explain how the structured engine evaluates each head, and how its time grows.",
    "bench": "Measure long inputs beside torch and numpy, and checks of every string.",
    "study": "Answer a question on the constructions by running them.",
    "demo": "Judge the parentheses of a file of Python's own library with a transformer.",
}
"""The summary of each command, in the order of the help. The file of its name in this room has the
function `command`, whose docstring follows the summary in the command's own help."""


class Commands(TyperGroup):
    """The group of commands: it knows their summaries, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with, and the rest of them."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else _command(name), rest


def _command(name: str) -> Any:
    """The parser of one command; an argument that begins with `-` may be an INPUT."""
    function = importlib.import_module(f"transformist.cli.{name}").command
    alone, takes_dashes = _parser(), name in ("run", "diagnose", "explain")
    alone.command(
        name,
        cls=WithDashes if takes_dashes else None,
        context_settings={"ignore_unknown_options": takes_dashes},
        help=f"{COMMANDS[name]}\n\n{inspect.getdoc(function)}",
    )(function)
    return get_command(alone)


class WithDashes(TyperCommand):
    """A command whose INPUT may begin with `-`, and so may look like an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Refuse an unknown option: it resembles a known one, or stands beside an INPUT."""
        takes_value = {
            option: not getattr(each, "is_flag", False)
            for each in self.params
            for option in each.opts
            if option.startswith("-")
        }
        takes_value["--help"] = False
        others: list[str] = []
        given = iter(itertools.takewhile(lambda each: each != "--", args))
        for each in given:
            name, has_value, _ = each.partition("=")
            if name not in takes_value:
                others.append(name if _LIKE_AN_OPTION.fullmatch(name) else each)
            elif takes_value[name] and not has_value:
                next(given, None)
        for each in filter(_LIKE_AN_OPTION.fullmatch, others):
            if len(others) > 2 or difflib.get_close_matches(each, takes_value, cutoff=0.7):
                refusal = UnknownName.among("option", each, takes_value, self.name)
                raise refusal.with_remedy("(an INPUT that begins with -- comes after a -- alone)")
        return super().parse_args(ctx, args)


_LIKE_AN_OPTION = re.compile("--[a-z][a-z-]*")


def _parser(**settings: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings
    )


app = _parser(
    name="transformist",
    help="Algorithms as the weights of a transformer, and what they can be trusted to do.",
    cls=Commands,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"transformist {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""
    if context.invoked_subcommand is None:
        print(context.get_help())


for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)
