"""The page of sizes says what is compiled today."""

import pytest

import compiled as page
from transformist.programs import PROGRAMS

WRITTEN = page.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rows_are_those_of_the_program(name):
    assert page.rows(name) in WRITTEN, "run python docs/compiled.py"


@pytest.mark.slow
def test_the_page_is_made_of_the_programs():
    assert page.page() == WRITTEN, "run python docs/compiled.py"


def test_what_is_recorded_elsewhere_is_said_to_be():
    _, _, recorded = WRITTEN.partition("## Recorded elsewhere")
    assert "not measured" in recorded and "tracr" in recorded
    assert "tracr" not in page.HEAD
