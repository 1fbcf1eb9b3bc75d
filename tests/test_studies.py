"""Studies: their claims hold, wrong rows are found, and an interrupted run goes on."""

import ast
import contextlib
import functools
import inspect
import json
import os
import re
import sys
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import pytest

import transformist as tf
from command_line import answer, run
from transformist.cli import study as study_command
from transformist.errors import InvalidValue
from transformist.studies import STUDIES, StudyFolder, carry_out, experiment
from transformist.studies.study_page import study_page
from transformist.verify import THIS_PROCESS, Workers

ROOT = Path(__file__).parents[1]


PUBLIC_ROOMS = {"bounds", "programs", "verify"}
"""Modules of the public interface, which the documents use."""

WRONG = [
    ("quick-checks", "found", [0.0, 0.0, 0.0, 0.0, 0.5]),
    ("arithmetic", "share exact", 0.999),
    ("arithmetic", "largest error / u max(|x|, |y|)", 5.0),
    ("soft-lookup", "error at most", 9e-9),
    ("soft-lookup", "2n e^(−γ/τ), γ = 1/√2", 1e-9),
    ("softmax-noise", "error found", 1.5),
    ("softmax-noise", "bound with rounding", 1e-20),
    ("dyck", "share right", 0.99),
    ("dyck", "distance of the bit", 0.4),
    ("precision", "share right", lambda share: 0.5 if share == 1 else 1.0),
    ("precision-law", "largest N certified", lambda found: [9 * n + 100 for n in found]),
    (
        "precision-law",
        "first N failing",
        lambda found: [5 - place for place, _ in enumerate(found)],
    ),
    ("precision-law", "exponent certified", 2.0),
    ("precision-law", "exponent failing", 2.0),
    ("precision", "fault", lambda fault: None),
    ("norms", "factor at each position", [1.0, 1.0, 1.0, 1.0]),
    ("norms", "spread of the factor", lambda spread: 0.5 if spread < 0.1 else 0.0),
    ("norms", "leakage", lambda leakage: 0.0 if leakage else 1e-300),
    ("amplification", "largest n, found", 546),
    ("dimensions", "all parts are right", False),
    ("dimensions", "live", 0),
    ("dimensions", "less is refused", False),
    ("dimensions", "width that the compiler needs", 3),
    (
        "learnability",
        "outcome",
        {
            "found": "not found",
            "not found": "found",
            "kept": "left",
            "found again": "not found again",
            "not found again": "found again",
        }.get,
    ),
    ("learnability", "errors of the construction", [0.26, None]),
    ("exact-uniform", "separation", 0.5),
    ("exact-uniform", "effect of a swap", 0.5),
    ("one-representation", "wrong", 1),
    ("six-steps", "wrong", 1),
    ("one-representation", "least distance", 6.0),
    ("signatures", "named before", "another signature"),
    ("signatures", "wrong before", 0),
    ("signatures", "answer after", "another answer"),
    ("signatures", "wrong after", 1),
]
"""For each study a column, and a value of it that is wrong in every row, or a function to one."""


SLOW = {name: [pytest.mark.slow] for name in ("precision-law", "learnability")}
"""Studies whose quick run takes more than some seconds."""


@functools.cache
def quick_run(name):
    """The findings of a study's quick run, made once in a process."""
    needs = STUDIES[name].needs
    if needs is not None:
        pytest.importorskip(needs, reason=f"{needs} is not installed")
    return carry_out(STUDIES[name], is_quick=True)


@pytest.fixture
def matplotlib():
    return pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.mark.parametrize("name", [pytest.param(each, marks=SLOW.get(each, [])) for each in STUDIES])
def test_every_claim_holds_and_every_row_is_json(name):
    found = quick_run(name)
    assert found.rows and all(found.held) and len(found.held) == len(STUDIES[name].claims)
    assert json.loads(json.dumps(found.rows, allow_nan=False)) == list(found.rows)
    assert all(set(row) == set(found.rows[0]) for row in found.rows)


@pytest.mark.parametrize(
    ("name", "column", "wrong"),
    [pytest.param(*each, marks=SLOW.get(each[0], [])) for each in WRONG],
)
def test_a_wrong_row_is_found_wherever_it_is(name, column, wrong):
    rows = quick_run(name).rows
    for place, row in enumerate(rows):
        if row[column] is None:  # the row has no value there
            continue
        value = wrong(row[column]) if callable(wrong) else wrong
        changed = (*rows[:place], {**row, column: value}, *rows[place + 1 :])
        assert not all(experiment.Findings(STUDIES[name], True, changed).held), row


def test_every_study_has_wrong_rows():
    assert {name for name, *_ in WRONG} == set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_is_that_of_the_full_run(name):
    """Its text is that of the study; its table has a row for each case, and every claim holds."""
    study = STUDIES[name]
    page = (ROOT / "docs" / "studies" / f"{name}.md").read_text()
    assert f"**Question.** {study.question}\n" in page
    assert f"**Method.** {study.method}\n" in page and "DOES NOT HOLD" not in page
    assert all(f"- {claim.text} Holds.\n" in page for claim in study.claims)
    assert re.search(rf"`transformist study {name}( --jobs \d+)? -o DIR`, with", page)
    assert ("without random numbers" if study.seed is None else f"with seed {study.seed}") in page
    svg = (ROOT / "docs" / "studies" / f"{name}.svg").read_text()
    (told,) = re.findall(r"<desc>(.*?)</desc>", svg)
    assert f"\n![{told}]({name}.svg)\n" in page and len(svg) < 60_000
    if study.listing is not None:
        assert f"\n```python\n{inspect.getsource(study.listing)}```\n" in page
    before, rows = page.split("\n**Rows.**\n")
    assert len([line for line in rows.splitlines() if line.startswith("| ")]) - 2 >= len(
        study.cases(False)
    )
    assert before.index("**Question.**") < before.index("**Answer.**") < before.index("![")
    assert ("\n| --- |" in before) == (study.summary is not None)
    assert f"]({name}.md)" in (ROOT / "docs" / "studies" / "index.md").read_text()


@pytest.mark.slow
def test_the_page_of_exact_numbers_is_made_again():
    found = carry_out(STUDIES["amplification"])
    page = (ROOT / "docs" / "studies" / "amplification.md").read_text()
    description = re.search(r"!\[(.*)\]\(", page).group(1)
    assert study_page(found, description).split("Made by")[0] == page.split("Made by")[0]


@pytest.mark.hosts
@pytest.mark.parametrize("name", STUDIES)
def test_the_figure_shows_the_rows(matplotlib, name):
    found = quick_run(name)
    figure = found.plot()
    assert figure.bytes_of("svg") == found.plot().bytes_of("svg")
    chart = STUDIES[name].chart(found.rows)
    (axes,) = figure.axes
    assert [each.get_text() for each in axes.get_legend().texts] == list(chart.curves)
    in_rows = {
        value
        for row in found.rows
        for cell in row.values()
        for value in (cell if isinstance(cell, list) else [cell])
    }
    for line, curve in zip(axes.lines, chart.curves.values(), strict=True):
        assert list(line.get_ydata()) == [value for _, value in curve]
        assert {value for _, value in curve} <= in_rows
    assert (axes.get_xlabel(), axes.get_ylabel()) == (chart.x, chart.y)


@pytest.mark.hosts
def test_the_page_of_exact_numbers_has_its_figure(matplotlib):
    figure = carry_out(STUDIES["amplification"]).plot()
    page = (ROOT / "docs" / "studies" / "amplification.md").read_text()
    assert f"![{figure.get_label()}](amplification.svg)" in page


def test_the_least_difference_of_one_norm_by_hand():
    """δ/√(δ² + ε) ≥ ½ where 3δ² ≥ ε: n² ≤ 3/ε for δ = 1/n, and n⁴ ≤ 3/ε for δ = 1/n²."""
    for row in carry_out(STUDIES["amplification"], is_quick=True).rows:
        if row["norms"] == 1:
            n, power = row["largest n, by the formula"], 2 * int(row["difference"][-1])
            assert n**power <= 3 / Fraction(row["epsilon"]) < (n + 1) ** power


def test_studies_use_the_public_interface_alone():
    """A study imports the package itself and the definition of a study, nothing else of it."""
    room = ROOT / "src" / "transformist" / "studies"
    apart = {"__init__", "study_table", "experiment", "study_folder", "study_page"}
    modules = [path for path in room.glob("*.py") if path.stem not in apart]
    # What studies have in modules of their own, and the studies.
    parts = {
        "ab_star_model": {"six_steps"},
        "coded_values": {"one_representation"},
        "composed_parts": {"dimensions"},
        "dyck_strings": {"dyck_recognizers", "exact_uniform", "format_limits"},
        "failing_models": {"failure_signatures"},
        "format_results": {"format_limits"},
        "format_trials": {"precision_law"},
        "length_search": {"precision_law"},
        "short_formats": {"precision_law"},
        "training": {"learnability"},
        "training_summary": {"learnability"},
        "trained_dyck": {"learnability"},
        "trained_lookup": {"learnability"},
        "uniform_heads": {"format_limits"},
    }
    assert len(modules) == len(STUDIES) + len(parts)
    for path in modules:
        source = path.read_text()
        assert len(source.splitlines()) <= 150, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("transformist"):
                names = {f"{node.module}.{each.name}" for each in node.names} | {node.module}
                of_parts = {each for each in parts if f"transformist.studies.{each}" in names}
                public = ("transformist.studies.experiment", "transformist.arithmetic")
                assert node.module in public or of_parts, path
                mine = parts.get(path.stem, {path.stem})
                assert all(mine <= parts[each] for each in of_parts), path
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "tf":
                assert node.attr in {*tf.__all__, *PUBLIC_ROOMS}, (path, node.attr)


def interrupted_after(monkeypatch, finished):
    """Rows that raise KeyboardInterrupt when so many cases are finished; counts the cases run."""
    study, counted = STUDIES["quick-checks"], []

    def rows(case):
        if len(counted) == finished:
            raise KeyboardInterrupt
        counted.append(case)
        return study.rows(case)

    monkeypatch.setitem(STUDIES, "quick-checks", replace(study, rows=rows))
    return counted


def test_an_interruption_keeps_what_is_finished(capsys, monkeypatch, tmp_path):
    folder = tmp_path / "out"
    command = ("study", "quick-checks", "-o", folder)
    with monkeypatch.context() as patched:
        interrupted_after(patched, 2)
        code, out, err = run(capsys, *command)
    assert (code, out) == (130, "") and f"2 finished cases are kept in {folder}" in err
    (folder / "rows.jsonl").open("a").write('{"case": {"check": "overw')  # killed while it wrote
    with monkeypatch.context() as patched:
        counted = interrupted_after(patched, 9)
        found = answer(capsys, *command)
    assert [case["check"] for case in counted] == ["overwriting"]
    assert found["held"] and found["rows"] == list(carry_out(STUDIES["quick-checks"]).rows)
    names = [Path(each).name for each in found["files"]]
    assert names[:3] == ["rows.jsonl", "study.json", "quick-checks.md"]
    has_figure = find_spec("matplotlib") is not None
    assert names[3:] == ["quick-checks.svg"] * has_figure
    assert sorted(names) == sorted(each.name for each in folder.iterdir())
    assert (folder / "quick-checks.md").read_text().startswith("# Study: quick-checks\n")
    assert json.loads((folder / "study.json").read_text())["rows"] == found["rows"]
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 4


def test_a_run_killed_while_it_begins_loses_no_finished_case(monkeypatch, tmp_path):
    study = STUDIES["quick-checks"]
    case, rows = study.cases(True)[0], [{"x": 1}]
    killed = pytest.raises(KeyboardInterrupt)
    for kept in ([], rows):  # at the first start, and where a run goes on
        with monkeypatch.context() as patched, killed:

            def cut(path, text, encoding):
                with path.open("w") as file:
                    file.write(text[: len(text) // 2])
                raise KeyboardInterrupt

            patched.setattr(Path, "write_text", cut)
            StudyFolder(tmp_path, study, is_quick=True)
        folder = StudyFolder(tmp_path, study, is_quick=True)
        assert list(folder.finished(case) or []) == kept
        folder.keep(case, rows)


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, "loky"])
def test_rows_are_the_same_from_two_processes(backend, tmp_path):
    """In the order of the cases, and kept as in one process."""
    study = STUDIES["amplification"]
    folder = StudyFolder(tmp_path, study, is_quick=True)
    ours = os.getpid()
    told = replace(
        study, rows=lambda case: [{**row, "id": os.getpid()} for row in study.rows(case)]
    )
    found = carry_out(told, True, folder, workers=Workers(2, backend))
    assert all(row["id"] != ours for row in found.rows)
    rows = [{name: row[name] for name in row if name != "id"} for row in found.rows]
    assert rows == list(quick_run("amplification").rows)
    kept = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()[1:]]
    assert [each["case"] for each in kept] == list(study.cases(True))
    assert [row for each in kept for row in each["rows"]] == list(found.rows)


def test_the_page_has_the_command_that_made_it():
    found = quick_run("quick-checks")
    for workers, given in (
        (THIS_PROCESS, ""),
        (Workers(2), " --jobs 2"),
        (Workers(2, "loky"), " --jobs 2 --backend loky"),
        (Workers(None, "dask", "tcp://a:1"), " --backend dask --address tcp://a:1"),
    ):
        page = study_page(replace(found, workers=workers))
        assert f"`transformist study quick-checks --quick{given} -o DIR`" in page


def test_without_matplotlib_the_page_says_what_the_figure_needs(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(study_command, "find_spec", lambda _: None)
    folder = tmp_path / "out"
    code, out, err = run(capsys, "study", "quick-checks", "-o", folder)
    assert code == 0 and "transformist[figures]" in err and "svg" not in out
    assert "pip install 'transformist[figures]'" in (folder / "quick-checks.md").read_text()
    assert not (folder / "quick-checks.svg").exists()


def test_the_processes_of_a_study_are_checked_and_named_on_its_page(capsys, tmp_path):
    for given, said in (("--jobs", "0"), "--jobs"), (("--backend", "dusk"), "dask"):
        code, out, err = run(capsys, "study", "quick-checks", *given)
        assert (code, out) == (2, "") and said in err, err
    assert answer(capsys, "study", "quick-checks", "--jobs", "2", "-o", tmp_path)["held"]
    page = (tmp_path / "quick-checks.md").read_text()
    assert "`transformist study quick-checks --jobs 2 -o DIR`" in page


def test_a_folder_that_exists(capsys, tmp_path):
    command = ("study", "quick-checks", "-o", tmp_path)
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    code, out, err = run(capsys, *command)
    assert code == 2 and not out and "must be new, empty" in err and "--force" in err
    assert [*tmp_path.iterdir()] == [mine]
    assert run(capsys, *command, "--force")[0] == 0
    assert run(capsys, *command)[0] == 2  # a finished study is not replaced either
    assert run(capsys, *command, "--force")[0] == 0 and mine.read_text() == "mine"
    assert run(capsys, "study", "quick-checks", "-o", mine, "--force")[0] == 2


def test_an_interrupted_run_of_another_study_is_not_gone_on_with(tmp_path):
    StudyFolder(tmp_path, STUDIES["arithmetic"], is_quick=True)
    StudyFolder(tmp_path, STUDIES["arithmetic"], is_quick=True)
    for name, is_quick in (("arithmetic", False), ("amplification", True)):
        with pytest.raises(InvalidValue, match="the same study interrupted"):
            StudyFolder(tmp_path, STUDIES[name], is_quick)


def test_a_study_names_the_library_that_it_needs(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    folder = tmp_path / "out"
    code, out, err = run(capsys, "study", "learnability", "--quick", "-o", folder)
    assert (code, out) == (2, "") and err.count("\n") == 1 and not folder.exists()
    assert "study learnability: torch must be installed" in err and "transformist[torch]" in err
    with pytest.raises(InvalidValue, match="study learnability: torch must be installed"):
        carry_out(STUDIES["learnability"], is_quick=True)


@pytest.mark.hosts
def test_a_seed_gives_the_same_weights_and_noise_is_a_share_of_them():
    """The first measure is before training: its error is that of the construction, nearly."""
    pytest.importorskip("torch", reason="torch is not installed")
    study = STUDIES["learnability"]
    case = {**study.cases(True)[2], "steps": 4}
    (row,) = study.rows(case)
    assert study.rows(case) == [row]
    assert study.rows({**case, "seed": 1}) != [row]
    (quiet,) = study.rows({**case, "noise": 0.0, "schedule": False})
    # Without noise the gap is the sharpness 3 of the recipe, over √2.
    assert quiet["gap of scores over training"][0] == pytest.approx(3 / 2**0.5, rel=1e-3)
    assert row["gap of scores over training"][0] != quiet["gap of scores over training"][0]


def test_the_grid_of_learnability_is_fixed():
    cases = STUDIES["learnability"].cases(False)
    assert len({json.dumps(case) for case in cases}) == len(cases) <= 60
    settings = {json.dumps({**case, "seed": 0}) for case in cases}
    assert len(cases) == 5 * len(settings) and {case["seed"] for case in cases} == set(range(5))


def test_a_summary_has_the_best_the_median_and_the_worst_seed():
    """The largest gap is the best of a lookup, and the least spread of scores is of Dyck-1."""
    settings = {"N": 16, "features": "i/N", "noise": None, "optimizer": "SGD", "schedule": False}
    rows = [
        {
            "task": task,
            **settings,
            "outcome": "found" if error <= limit else "not found",
            "loss": loss,
            "error": error,
            "error at 2N": beyond,
            "gap of scores over training": [0.0, gap],
            "ln 8N": 4.852,
        }
        for task, limit, beyond in (("lookup", 0.25, None), ("dyck-1", 0, 0.5))
        for loss, error, gap in ((3.0, 0.2, 1.0), (1.0, 0.0, -2.0), (2.0, 0.3, 7.0))
    ]
    lookup, dyck = STUDIES["learnability"].summary(rows)
    assert (lookup["right to N"], lookup["right to 2N"]) == ("2 of 3", None)
    assert (dyck["right to N"], dyck["right to 2N"]) == ("1 of 3", "0 of 3")
    assert lookup["loss: best, median, worst"] == [1.0, 2.0, 3.0]
    assert lookup["error: best, median, worst"] == [0.0, 0.2, 0.3]
    assert lookup["error at 2N: best, median, worst"] is None
    assert lookup["gap of scores at the end: best, median, worst"] == [7.0, 1.0, -2.0]
    assert dyck["gap of scores at the end: best, median, worst"] == [-2.0, 1.0, 7.0]
    assert lookup["ln 8N"] == 4.85


@pytest.mark.parametrize("name", [name for name in STUDIES if STUDIES[name].summary])
def test_the_summary_on_a_page_is_that_of_its_rows(name):
    """Both are read back from the page; numbers have the digits that it shows."""
    study = STUDIES[name]
    page = (ROOT / "docs" / "studies" / f"{name}.md").read_text()
    before, after = page.split("\n**Rows.**\n")
    summary, rows = (
        [line for line in part.splitlines() if line.startswith("| ")] for part in (before, after)
    )
    names = [cell.strip() for cell in rows[0].strip("|").split(" | ")]
    read = []
    for line in rows[2:]:
        cells = zip(names, line.removeprefix("| ").removesuffix(" |").split(" | "), strict=True)
        read.append({key: read_back(key, cell) for key, cell in cells})
    findings = experiment.Findings(study, False, tuple(read))
    assert study_page(findings).split("\n**Rows.**\n")[0].count("\n| --- |") == 1
    assert [line for line in study_page(findings).split("\n**Rows.**\n")[0].splitlines()
            if line.startswith("| ")] == summary  # fmt: skip


LISTS = {"bits", "first N failing", "largest N certified", "ended by"}
LISTS |= {"gap of scores over training", "errors of the construction"}


def read_back(column, cell):
    """The value of a cell of a page."""
    if column in LISTS and cell != "–":
        return [read_back(None, each) for each in cell.split(", ")]
    if cell in ("–", "True", "False"):
        return {"–": None, "True": True, "False": False}[cell]
    with contextlib.suppress(ValueError):
        return float(cell) if "." in cell or "e-" in cell else int(cell.replace(",", ""))
    return cell


def test_the_command(capsys, monkeypatch):
    code, out, _ = run(capsys, "study", "quick-checks")
    assert code == 0 and "question: Why does" in out and "0.721399, 0.265388" in out
    assert out.count("holds: ") == 3 and "answer: A hidden unit" in out and "written: " not in out
    code, out, err = run(capsys, "study", "quick-check")
    assert (code, out) == (2, "") and "did you mean quick-checks" in err
    code, _, err = run(capsys, "study", "learning")
    assert code == 2 and "no study has this name" in err
    study = STUDIES["quick-checks"]
    false = experiment.Claimed("Two is three.", lambda rows: False)
    monkeypatch.setitem(STUDIES, "quick-checks", replace(study, claims=(false,)))
    code, out, _ = run(capsys, "study", "quick-checks", "--json")
    assert code == 1 and not json.loads(out)["held"]
    assert "DOES NOT HOLD: Two is three." in run(capsys, "study", "quick-checks")[1]
