"""What a quick run (`-m "not slow"`) does less of; the whole suite leaves nothing out."""

import hypothesis
import pytest

from transformist.report import recipe_sheet
from transformist.verify import functions, sequences, strings

hypothesis.settings.register_profile("quick", max_examples=25)


def pytest_configure(config):
    if config.option.markexpr == "not slow":
        hypothesis.settings.load_profile("quick")


def pytest_generate_tests(metafunc):
    """A test marked `trials(few, many)` gets `trials`: few in a quick run, many besides."""
    for mark in metafunc.definition.iter_markers("trials"):
        few, many = mark.args
        metafunc.parametrize("trials", [few, pytest.param(many, marks=pytest.mark.slow)])


@pytest.fixture
def short(monkeypatch):
    """Fewer cases, shorter lists and strings: the quick side of what a slow test covers."""
    monkeypatch.setattr(functions, "CASES", 24)
    monkeypatch.setattr(sequences, "LENGTHS", (1, 2, 3, 5))
    monkeypatch.setattr(sequences, "FEW", (1, 2))
    monkeypatch.setattr(sequences, "LISTS", 4)
    monkeypatch.setattr(strings, "STRINGS", 2**4)
    monkeypatch.setattr(strings, "LONGEST", 10)
    monkeypatch.setattr(strings, "LONGEST_IN", {"exact": 8, "interval": 4})
    monkeypatch.setattr(strings, "DRAWN", 2)
    monkeypatch.setattr(recipe_sheet, "SHORT_WORK", 2**15)
