"""The command line: a file for each command or two, which parse, call, and print."""

from transformist.cli.entry import main

__all__ = ["main"]
