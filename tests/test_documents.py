"""The README and the pages beside it: their examples run as they stand."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from transformist.language import Booleans, Categories, Numbers
from transformist.language.per_position import Matches

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (
    "README.md",
    "docs/language.md",
    "docs/coming-from-rasp.md",
    "docs/tour.md",
    "docs/interventions.md",
    "docs/long-inputs.md",
    "docs/diagnosis.md",
)


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(), flags=re.S)


def commands(path, text):
    """The lines that begin with the command's name, as arguments of it."""
    lines = re.findall(r"^ *transformist (.*)$", text, flags=re.M)
    assert lines, path
    return [shlex.split(line, comments=True) for line in lines]


def require_success(arguments, directory):
    done = subprocess.run(
        [sys.executable, "-m", "transformist", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)


@pytest.mark.parametrize("path", PAGES)
def test_examples_of_python_are_true(path):
    text = "\n".join(blocks(path, "python"))
    example = doctest.DocTestParser().get_doctest(text, {}, path, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("kind", [Booleans, Categories, Numbers, Matches])
def test_each_operation_of_the_language_has_an_example(kind):
    text = "\n".join(blocks("docs/language.md", "python"))
    operations = [name for name in dir(kind) if not name.startswith("_")]
    assert [name for name in operations if not re.search(rf"\.{name}\b", text)] == []


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 120


def test_the_readme_holds_the_commands_of_ci():
    for mark in ("start", "test"):
        assert len(re.findall(rf"^.* # {mark}$", README.read_text(), flags=re.M)) == 1


def test_links_lead_to_files():
    for path in (README, *ROOT.glob("docs/*.md"), ROOT / "CONTRIBUTING.md"):
        # In code, `table[key](value)` is a call.
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (path.parent / link).exists(), (path, link)


def the_program_of_the_readme(directory):
    """Write it to `mine.py` of a directory; return the commands that follow it there."""
    (program,) = (each for each in blocks("README.md", "python") if ">>>" not in each)
    (directory / "mine.py").write_text(program)
    _, _, after = README.read_text().partition(program)
    return commands("README.md", after)


@pytest.mark.slow
def test_the_program_of_the_readme_goes_through_its_commands(tmp_path):
    for arguments in the_program_of_the_readme(tmp_path):
        if arguments[0] != "export":  # needs torch: the next test
            require_success(arguments, tmp_path)


@pytest.mark.slow
@pytest.mark.hosts
def test_the_program_of_the_readme_is_exported(tmp_path):
    pytest.importorskip("torch", reason="needs the extra hosts")
    (export,) = (each for each in the_program_of_the_readme(tmp_path) if each[0] == "export")
    require_success(export, tmp_path)
    assert (tmp_path / export[-1] / "config.json").exists()


@pytest.mark.slow
def test_the_examples_of_the_command_line_succeed(tmp_path):
    for name in ("src", "examples", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    (text,) = blocks("docs/command-line.md", "sh")
    for arguments in commands("docs/command-line.md", text):
        if arguments[0] != "bench":  # tests/test_bench.py tries its cases; it takes a minute
            require_success(arguments, tmp_path)
