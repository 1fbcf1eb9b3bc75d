"""Worked programs: each a few lines of the program language, by name in `PROGRAMS`."""

from transformist.programs.worked_programs import PROGRAMS

__all__ = ["PROGRAMS"]
