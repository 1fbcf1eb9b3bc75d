"""The page of targets agrees with the compiler."""

import pytest

import targets as page
from transformist.programs import PROGRAMS

WRITTEN = page.PAGE.read_text(encoding="utf-8")

QUICK = ("majority", "fraction-of-previous")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS],
)
def test_the_rows_are_those_of_the_program(name):
    assert page.rows(name) in WRITTEN, "run python docs/targets.py"


@pytest.mark.slow
def test_the_rows_of_computed_positions_are_those_of_the_programs():
    written = page.COMPUTED + "".join(map(page.computed_rows, PROGRAMS))
    assert written in WRITTEN, "run python docs/targets.py"


@pytest.mark.slow
def test_the_rows_of_narrow_formats_are_those_of_the_programs():
    assert page.coded() in WRITTEN, "run python docs/targets.py"


def test_the_refusals_are_those_of_the_programs():
    found = "".join(map(page.refusals, PROGRAMS))
    assert WRITTEN.startswith(page.HEAD) and WRITTEN.endswith(page.REFUSED + found)


def test_every_program_has_a_row_for_every_target():
    lines = [line.split(" | ") for line in WRITTEN.splitlines() if line.startswith("| ")]
    found = sorted((name[2:], masks) for name, masks, *_ in lines if name[2:] in PROGRAMS)
    assert found == sorted((name, masks) for name in PROGRAMS for masks in page.TARGETS)
