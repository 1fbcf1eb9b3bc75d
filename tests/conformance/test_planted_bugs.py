"""Planted bugs: what known answers find of them is what the page says; right engines are right."""

import os
import subprocess
import sys
from pathlib import Path

import bug_table
import pytest
from eager_engines import ENGINES
from judging import modes_of, wrong_tokens
from planted_bugs import BUGS
from planted_suites import FAMILIES

# Rows of a family that may change on a processor that sums in another order: a wrong engine can be
# nearly right, and a bug in rounding nearly within a tolerance.
BORDERLINE = 1


def cells(table):
    """The rows of a table, without its header."""
    lines = [each for each in table.splitlines() if each.startswith("|")]
    return [tuple(cell.strip() for cell in each.split("|")[1:-1]) for each in lines][2:]


EVERY_BUG = cells(bug_table.PAGE.read_text("utf-8").split("## Every bug")[1])
"""The rows of the page."""


@pytest.mark.slow
@pytest.mark.parametrize("family", ENGINES)
def test_right_engines_are_right_in_every_mode(family):
    for instrument in bug_table.suite(family):
        for number_format in instrument.formats:
            engine = ENGINES[family].read(instrument.directory, number_format)
            prompts = [each for each in instrument.prompts if number_format in each.formats]
            found = wrong_tokens(engine, prompts)
            assert prompts, (instrument.name, number_format)
            assert not any(found.values()), (instrument.name, number_format, found)


@pytest.mark.slow
@pytest.mark.parametrize("family", ENGINES)
def test_a_wrong_answer_is_found_in_every_mode(family):
    # The head gives the next token of the vocabulary: every answer is wrong, in every mode.
    for instrument in bug_table.suite(family):
        engine = ENGINES[family].read(instrument.directory)
        for name in ("lm_head.weight", "classifier.weight", "classifier.bias"):
            if name in engine.weights:
                head = engine.weights[name]
                engine.weights[name] = head[[*range(1, len(head)), 0]]
        found = wrong_tokens(engine, instrument.prompts)
        reads = sum(len(each.reads) for each in instrument.prompts)
        modes = {*modes_of(engine)} - {"generation"}
        assert {mode: len(found[mode]) for mode in modes} == dict.fromkeys(modes, reads)


def test_bugs_are_many_and_have_names_of_their_own():
    assert len({bug.id for bug in BUGS}) == len(BUGS) >= 60
    assert {bug.family for bug in BUGS} == set(ENGINES)


def test_the_page_says_what_finds_each_feature_of_recent_models():
    page = Path(bug_table.PAGE).with_name("conformance.md").read_text("utf-8")
    section = page.split("## Features of recent models")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in section.splitlines()
        if line.startswith("|")
    ][2:]
    written = {each[2].split("`")[1]: set(each[3].split(", ")) for each in rows}
    assert len(written) == len(rows) == 14
    planted = {name: {bug.family for bug in BUGS if bug.name == name} for name in written}
    assert written == planted
    titles = {title: family for family, title in FAMILIES.items()}
    found = {name: set() for name in written}
    for name, title, _, instruments, *_ in EVERY_BUG:
        if name in written and instruments != "**none**":
            found[name].add(titles[title])
    assert found == written


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_has_what_each_test_finds(family):
    # One thread: the matrices are small, and threads would spend their time in waiting.
    made = subprocess.run(
        [sys.executable, bug_table.__file__, "--rows", family],
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    ).stdout
    found, written = cells(made), [row for row in EVERY_BUG if row[1] == FAMILIES[family]]
    assert [each[:2] for each in found] == [each[:2] for each in written]
    changed = [pair for pair in zip(found, written, strict=True) if len({*pair}) > 1]
    assert len(changed) <= BORDERLINE, changed


def test_known_answers_find_most_bugs_and_some_that_both_usual_tests_miss():
    assert len(EVERY_BUG) == len(BUGS)
    assert sum(each[3] != "**none**" for each in EVERY_BUG) >= 0.9 * len(BUGS)
    assert sum(each[3] != "**none**" and each[4:6] == ("no", "no") for each in EVERY_BUG) >= 15


def test_the_true_class_is_among_at_most_two_that_a_diagnosis_names():
    named = [(each[2], each[6].split(", ")) for each in EVERY_BUG if each[6]]
    assert all(len(faults) <= 2 for _, faults in named)
    assert sum(kind in faults for kind, faults in named) >= 0.9 * len(named) > 150
