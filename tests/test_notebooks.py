"""The notebooks: every cell runs, in order, and prose states only numbers that were seen."""

import ast
import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


def cells(text):
    """The cells of a percent-format source, as (is it prose?, its text)."""
    head, *parts = re.split(r"^# %%", text, flags=re.M)
    assert head.strip() == "", "a notebook begins with a cell"
    for part in parts:
        kind, _, body = part.partition("\n")
        yield kind.strip() == "[markdown]", body


def numbers(text):
    """Numbers of a text, as strings; no digits of a word such as float32 or Dyck-1."""
    return set(
        re.findall(r"(?<![\w.])(?<![A-Za-z]-)\d[\d,]*(?:\.\d+)?(?![\w])", text.replace(",", ""))
    )


def asserted(code):
    """The text of the assertions of a cell."""
    statements = ast.walk(ast.parse(code))
    return "\n".join(ast.unparse(each) for each in statements if isinstance(each, ast.Assert))


def run(text, path="cell"):
    """Run the cells in one namespace; return numbers that stand in prose before they are seen."""
    names, seen, unseen = {"__name__": "__main__"}, set(), []
    for is_prose, body in cells(text):
        if is_prose:
            unseen += sorted(numbers(body) - seen)
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            # Errors name the lines of the file.
            lines = "\n" * text[: text.index(body)].count("\n")
            exec(compile(lines + body, path, "exec"), names)
        seen |= numbers(printed.getvalue()) | numbers(asserted(body))
    return unseen


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:.*is claimed for strings")
def test_a_notebook_runs_and_its_prose_states_what_was_seen(path):
    assert run(path.read_text(), path) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_prose_of_comments_only_and_imports_the_public_name(path):
    text = path.read_text()
    for is_prose, body in cells(text):
        if is_prose:
            assert all(line.startswith("#") or not line for line in body.splitlines()), body
        else:
            assert asserted(body) or "print(" in body or "picture(" in body, body
    imports = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imports <= {"transformist", "fractions", "tempfile", "pathlib"}
    assert "transformist" in imports


def test_a_number_that_was_not_seen_is_found():
    prose = "# %% [markdown]\n# It has {} heads.\n"
    assert run("# %%\nassert 1 + 1 == 2\n" + prose.format(2)) == []
    assert run("# %%\nprint(1 + 1)\n" + prose.format(2)) == []
    assert run("# %%\nx = 2\n" + prose.format(2)) == ["2"]
    assert run(prose.format(2) + "# %%\nprint(2)\n") == ["2"]
    with pytest.raises(AssertionError):
        run("# %%\nassert 1 + 1 == 3\n")


def test_each_notebook_is_linked_from_the_tour():
    tour = (Path(__file__).parents[1] / "docs/tour.md").read_text()
    assert NOTEBOOKS
    assert [each.name for each in NOTEBOOKS if f"../notebooks/{each.name}" not in tour] == []


LECTURE = next(each for each in NOTEBOOKS if each.stem == "dyck1_in_two_layers")


@pytest.mark.hosts
def test_the_lecture_shows_its_circuit_its_head_and_its_run(capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `figures`)")
    exec(compile(LECTURE.read_text(), LECTURE, "exec"), {"__name__": "__main__"})
    out = capsys.readouterr().out
    for told in (
        "Circuit of a model with 2 layers",
        "Attention of layer 0, head 0",
        "Run on BOS (",
    ):
        assert told in out


def test_the_lecture_runs_without_matplotlib():
    code = (
        "import sys, runpy; sys.modules['matplotlib'] = None\n"
        f"runpy.run_path({str(LECTURE)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("matplotlib must be installed") == 3
