"""The commands there are, each imported when it is called."""

from __future__ import annotations

import difflib
import importlib
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from transformist import __version__
from transformist.errors import UnknownName


@dataclass(frozen=True)
class Command:
    """Where a command is, and what `transformist --help` says of it.

    Attributes:
        module: the file in this room.
        function: its name there.
        summary: the first line of its docstring.

    """

    module: str
    function: str
    summary: str

    def found(self) -> Callable[..., Any]:
        """The function, imported now."""
        module = importlib.import_module(f"transformist.cli.{self.module}")
        function: Callable[..., Any] = getattr(module, self.function)
        return function


COMMANDS: Mapping[str, Command] = {
    "list": Command(
        "listing",
        "list_recipes",
        "List the recipes, chapter by chapter, and the packaged programs.",
    ),
    "show": Command(
        "showing",
        "show",
        "Show what a recipe claims and takes, or what a compiled or saved model is; and its size.",
    ),
    "run": Command("answering", "run", "Run a model on an input and print the answer."),
    "check": Command(
        "checking",
        "check_command",
        "Test what recipes claim, each from its own claim, and programs against what is compiled.",
    ),
    "compile": Command(
        "compiling",
        "compile_command",
        "Compile a program to the weights of a transformer, and save them.",
    ),
    "certify": Command(
        "certifying",
        "certify_command",
        "Say whether a format decides as the weights do exactly, for every input of length up to "
        "N.",
    ),
    "precision": Command(
        "searching",
        "precision_command",
        "Search for the first length at which a float format breaks a recipe, beyond what is "
        "claimed.",
    ),
    "plan": Command(
        "planning",
        "plan_command",
        "Say how the structured engine evaluates each head, why, and how its time grows.",
    ),
    "bench": Command(
        "measuring",
        "bench_command",
        "Measure the structured engine on long inputs, beside dense evaluations in torch and "
        "numpy.",
    ),
    "demo": Command(
        "answering",
        "demo",
        "Judge the parentheses of a file of Python's own library with a transformer.",
    ),
}
"""In the order of the help."""


class Commands(TyperGroup):
    """Commands of which the summaries are there, and one is imported to be called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with, and the rest of them."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else _command(name), rest


def _command(name: str) -> Any:
    """With its own arguments; those that begin with `-` may be an input of `run`."""
    alone, takes_dashes = _parser(), name == "run"
    alone.command(
        name,
        cls=WithDashes if takes_dashes else None,
        context_settings={"ignore_unknown_options": takes_dashes},
    )(COMMANDS[name].found())
    return get_command(alone)


class WithDashes(TyperCommand):
    """A command whose INPUT may begin with `-`, and so may look like an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Refuse what was meant for an option: it is like one, or there is an INPUT besides."""
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


for _name, _each in COMMANDS.items():
    app.command(_name, help=_each.summary)(lambda: None)
