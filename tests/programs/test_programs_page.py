"""The page of programs shows them as they are written, and what they become today."""

import ast

import pytest

import programs as page
import transformist as tf
from transformist.compiler.pipeline import largest_length
from transformist.compiler.uncompilable import Uncompilable
from transformist.programs import PROGRAMS

WRITTEN = page.PAGE.read_text(encoding="utf-8")

QUICK = ("majority", "fraction-of-previous")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS],
)
def test_the_page_has_what_would_be_written(name):
    assert page.section(name) in WRITTEN, "run python docs/programs.py"


def test_each_program_has_a_section():
    headings = [line[3:] for line in WRITTEN.splitlines() if line.startswith("## ")]
    assert headings == list(PROGRAMS) and WRITTEN.startswith(page.HEAD)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_shown_is_the_program(name):
    """The source on the page, run by itself, is the program that is compiled."""
    _, code = page.source(PROGRAMS[name])
    assert f"```python\n{code}\n```" in WRITTEN
    (shown,) = [each for each in ast.parse(code).body[-1:] if isinstance(each, ast.FunctionDef)]
    scope = {}
    exec(f"from __future__ import annotations\n{IMPORTS}\n{code}", scope)
    assert scope[shown.name] == PROGRAMS[name]


IMPORTS = "import functools, itertools, operator\nfrom transformist.language import program"


@pytest.mark.parametrize(
    ("name", "most"),
    [("parity", 20), pytest.param("dyck-1", 70, marks=pytest.mark.slow), ("sort", 16)],
)
@pytest.mark.parametrize("arithmetic", ["float16", "bfloat16"])
def test_the_largest_length_is_the_last_that_is_not_refused(name, most, arithmetic):
    """Found by bisection; here every N is tried."""
    fits = [fits_in(arithmetic, name, N) for N in range(1, most + 1)]
    longest = largest_length(
        PROGRAMS[name], most=most, weighting="average-hard", arithmetic=arithmetic
    )
    assert fits == [True] * longest + [False] * (most - longest) and longest < most


def fits_in(arithmetic, name, N):
    try:
        tf.compile(PROGRAMS[name], max_length=N, weighting="average-hard", arithmetic=arithmetic)
    except Uncompilable:
        return False
    return True


def test_what_fits_is_at_most_what_is_asked_for():
    assert largest_length(PROGRAMS["majority"], most=100) == 100


def test_a_program_without_the_weighting_is_refused():
    with pytest.raises(tf.TransformistError, match="attends to several positions; received 'lead'"):
        largest_length(PROGRAMS["majority"], most=100, weighting="rightmost-hard")
