"""The measures of `benchmarks/prose.py` against their limits, and what each measure counts."""

import json
import subprocess
import sys

import prose
import pytest

AT_LEAST = {"comment_percent": 2.9}
AT_MOST = {
    "docstring_opening_percent": 0.5,
    "file_names_used_twice": 4,
    "class_names_used_twice": 2,
    "isinstance_ladders": 7,
    "import_cycles": 0,
}
"""Limits of the source as it is: a change that improves a measure lowers its limit with it."""


@pytest.fixture(scope="module")
def found():
    return prose.measures()


@pytest.mark.parametrize("measure", [*AT_LEAST, *AT_MOST])
def test_no_measure_is_worse_than_its_limit(found, measure):
    value = found[measure]
    amount = len(value) if isinstance(value, list) else value
    assert AT_LEAST.get(measure, 0) <= amount <= AT_MOST.get(measure, 100), value


def test_what_is_counted(tmp_path):
    package = tmp_path / "some"
    (package / "room").mkdir(parents=True)
    files = {
        "__init__.py": "from some.room.first import One\n",
        "room/__init__.py": "",
        "room/first.py": '"""What it is."""\nfrom . import second\nclass One: pass\n',
        "room/second.py": "if TYPE_CHECKING:\n    from some.room.first import One\nclass One: pass",
        "first.py": "def f():\n    '''Why.'''\n    import some.last  # later\n    # alone\n",
        "last.py": "import some.first\nx = 1  # noqa\ndef g(x):\n    " + "isinstance(x, int);" * 4,
        "run.py": "",
        "room/run.py": "",
    }
    for name, text in files.items():
        (package / name).write_text(text)
    assert prose.measures(package) == {
        "lines": 15,
        "comment_percent": 6.67,
        "comment_percent_with_those_after_code": 13.33,
        "docstrings": 2,
        "docstring_opening_percent": 50.0,
        "file_names_used_twice": ["first"],
        "class_names_used_twice": ["One"],
        "isinstance_ladders": ["some.last.g"],
        "import_cycles": [["some.room.first", "some.room.second"]],
        "lines_by_room": {"room/": 6, "first.py": 4, "last.py": 4, "__init__.py": 1, "run.py": 0},
    }


def test_the_script_prints_the_measures(found):
    command = [sys.executable, prose.__file__, "--json"]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout) == found
