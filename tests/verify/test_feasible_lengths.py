"""Lengths that are refused: the number of strings, and the length that fits a time."""

import re

import pytest

import transformist as tf
from command_line import run
from transformist.arithmetic import number_system
from transformist.cli import main
from transformist.errors import InvalidValue, OutOfTime
from transformist.programs import PROGRAMS
from transformist.verify import feasible
from transformist.verify.feasible import Sample, require_feasible, sample

FLOAT64 = number_system("float64")
DYCK = tf.recipe("dyck-1").build(max_length=40)


def is_dyck(x):
    while "()" in x:
        x = x.replace("()", "")
    return x == ""


def test_a_refusal_has_the_number_of_strings_and_the_length_that_fits_the_time():
    # Every string of length n takes n + 1 units, of which the sample has 1 + 2·5 + 3·25 = 86: at
    # most 31 · 3 are counted, one for each string and row, 0.1 s each. To length 5 these are
    # (1 + 10 + 75 + 500 + 3125 + 18750) · 0.1 s = 2246 s, to length 4 371 s, to length 3 59 s.
    taken = Sample(strings=31, length=2, seconds=9.3)
    found = [taken.seconds_to(n, 5) for n in range(6)]
    assert found == pytest.approx([0.1, 1.1, 8.6, 58.6, 371.1, 2246.1])
    with pytest.raises(InvalidValue) as refused:
        require_feasible(12, 5, measure=lambda: taken)
    assert refused.value.received == "max_length = 12 over 5 symbols, 244,140,625 strings"
    assert refused.value.remedy == (
        "give a length of at most 10, or of at most 17 with a journal (--journal FILE); about 59 s "
        "to length 3 in one process, at the speed of the first 31 strings"
    )
    assert [taken.longest_within(s, 9, 5) for s in (0, 0.1, 372, 1e9)] == [0, 0, 4, 9]


def test_a_length_that_fits_is_not_measured():
    def measure():
        raise AssertionError

    require_feasible(24, 2, measure=measure)
    require_feasible(40, 2, is_recorded=True, measure=measure)


@pytest.mark.parametrize(
    ("model", "shortest", "longest"),
    [(DYCK, 0, 40), (tf.compile(PROGRAMS["reverse"], max_length=3), 0, 3)],
)
def test_a_sample_is_of_the_first_strings_of_the_check(monkeypatch, model, shortest, longest):
    asked = []

    def reference(x):
        asked.append(x)
        return model(x)

    monkeypatch.setattr(feasible, "SAMPLE_SECONDS", 0.0)
    found = sample(model, reference, FLOAT64)
    assert found.seconds > 0 and found.length == min(longest, 5 if model is DYCK else 3)
    symbols = len(model.alphabet)
    assert found.strings == len(asked) == sum(symbols**n for n in range(found.length + 1))
    assert {*map(len, asked)} == {*range(shortest, found.length + 1)}


def test_a_string_that_is_wrong_at_once_measures_nothing():
    assert sample(DYCK, lambda x: True, FLOAT64) is None


def test_a_reference_that_refuses_or_hangs_is_not_measured():
    def raises(x):
        raise ValueError

    def hangs(x):
        raise OutOfTime("must end", received="x", remedy="mend it")

    assert sample(DYCK, raises, FLOAT64) is sample(DYCK, hangs, FLOAT64) is None
    with pytest.raises(InvalidValue, match=r"at most 40 with a journal \(--journal FILE\)$"):
        tf.check(DYCK, raises, 30)


def test_the_check_and_the_command_measure_what_they_would_compare(capsys, monkeypatch):
    monkeypatch.setattr(feasible, "SAMPLE_SECONDS", 0.0)
    said = r"about \d+ (s|min|h|days) to length \d+ in one process, at the speed of the first 63"
    with pytest.raises(InvalidValue, match=said):
        tf.check(DYCK, is_dyck, 30)
    code, out, err = run(
        capsys, "check", "dyck-1", "--against", "programs/dyck-1", "--max-length", 30
    )
    assert (code, out, err.count("\n")) == (2, "", 1) and re.search(said, err)


@pytest.mark.parametrize("name", ["dyck-1", "programs/dyck-1"])
def test_a_check_without_a_journal_names_none(name, capsys):
    assert main(["check", name, "--max-length", "40"]) == 2
    said = capsys.readouterr().err
    assert "at most 24" in " ".join(said.split()) and "journal" not in said
