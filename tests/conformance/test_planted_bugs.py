"""Planted bugs: what known answers find of them is what the page says; right engines are right."""

import os
import subprocess
import sys

import bug_table
import pytest
from eager_engines import ENGINES
from judging import MODES, wrong_tokens
from planted_bugs import BUGS

# Entries that may change on a processor that sums in another order: a wrong engine can be nearly
# right, and a bug in rounding nearly within a tolerance.
BORDERLINE = 3


@pytest.mark.slow
@pytest.mark.parametrize("family", ENGINES)
def test_right_engines_are_right_in_every_mode(family):
    for instrument in bug_table.suite(family):
        for number_format in instrument.formats:
            engine = ENGINES[family].read(instrument.directory, number_format)
            found = wrong_tokens(engine, instrument.prompts)
            assert not any(found.values()), (instrument.name, number_format, found)


@pytest.mark.slow
@pytest.mark.parametrize("family", ENGINES)
def test_a_wrong_answer_is_found_in_every_mode(family):
    # The head gives the next token of the vocabulary: every answer is wrong, in every mode.
    for instrument in bug_table.suite(family):
        engine = ENGINES[family].read(instrument.directory)
        head = engine.weights["lm_head.weight"]
        engine.weights["lm_head.weight"] = head[[*range(1, len(head)), 0]]
        found = wrong_tokens(engine, instrument.prompts)
        reads = sum(len(each.reads) for each in instrument.prompts)
        modes = set(MODES) - {"generation"}
        assert {mode: len(found[mode]) for mode in modes} == dict.fromkeys(modes, reads)


def test_bugs_are_many_and_have_names_of_their_own():
    assert len({bug.id for bug in BUGS}) == len(BUGS) >= 60
    assert {bug.family for bug in BUGS} == set(ENGINES)


@pytest.mark.slow
def test_the_page_has_what_each_test_finds():
    # One thread: the matrices are small, and threads would spend their time in waiting.
    made = subprocess.run(
        [sys.executable, bug_table.__file__, "--print"],
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    ).stdout
    found, written = (entries(each) for each in (made, bug_table.PAGE.read_text("utf-8")))
    assert [each[:2] for each in found] == [each[:2] for each in written]
    changed = [pair for pair in zip(found, written, strict=True) if len({*pair}) > 1]
    assert len(changed) <= BORDERLINE, changed
    # Known answers find most bugs, and some that both usual tests miss.
    assert sum(each[3] != "**none**" for each in found) >= 0.9 * len(BUGS)
    assert sum(each[3] != "**none**" and each[4:6] == ("no", "no") for each in found) >= 15


def entries(page):
    """The rows of the table of all bugs."""
    lines = page.split("## Every bug")[1].splitlines()
    rows = [tuple(cell.strip() for cell in each.split("|")[1:-1]) for each in lines if "|" in each]
    return rows[2:]
