"""Worked programs: each a few lines of the program language, by name in `PROGRAMS`."""

from transformist.programs.contents import PROGRAMS

__all__ = ["PROGRAMS"]
