"""Studies: their claims hold, wrong rows are found, and an interrupted run goes on."""

import ast
import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import transformist as tf
from command_line import answer, run
from transformist.errors import InvalidValue
from transformist.studies import STUDIES, StudyFolder, carry_out, experiment
from transformist.studies.study_page import study_page
from transformist.verify import Workers

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def quick():
    """The findings of each study's quick run."""
    return {name: carry_out(study, is_quick=True) for name, study in STUDIES.items()}


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_holds_and_every_row_is_json(quick, name):
    found = quick[name]
    assert found.rows and all(found.held) and len(found.held) == len(STUDIES[name].claims)
    assert json.loads(json.dumps(found.rows, allow_nan=False)) == list(found.rows)
    assert all(set(row) == set(found.rows[0]) for row in found.rows)


@pytest.mark.parametrize(
    ("name", "column", "wrong"),
    [
        ("quick-checks", "found", [0.0, 0.0, 0.0, 0.0, 0.0]),
        ("arithmetic", "share exact", 0.999),
        ("arithmetic", "largest error / u max(|x|, |y|)", 5.0),
        ("amplification", "largest n, found", 546),
    ],
)
def test_wrong_rows_hold_no_claim(quick, name, column, wrong):
    first, *others = quick[name].rows
    rows = ({**first, column: wrong}, *others)
    assert not all(experiment.Findings(STUDIES[name], True, rows).held)


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_is_that_of_the_full_run(name):
    """Its text is that of the study; its table has a row for each case, and every claim holds."""
    study = STUDIES[name]
    page = (ROOT / "docs" / "studies" / f"{name}.md").read_text()
    assert f"**Question.** {study.question}\n" in page
    assert f"**Method.** {study.method}\n" in page and "DOES NOT HOLD" not in page
    assert all(f"- {claim.text} Holds.\n" in page for claim in study.claims)
    assert f"`transformist study {name} -o DIR`" in page
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) - 2 >= len(study.cases(False))
    assert f"]({name}.md)" in (ROOT / "docs" / "studies" / "index.md").read_text()


@pytest.mark.slow
def test_the_page_of_exact_numbers_is_made_again():
    found = carry_out(STUDIES["amplification"])
    page = (ROOT / "docs" / "studies" / "amplification.md").read_text()
    assert study_page(found).split("Made by")[0] == page.split("Made by")[0]


def test_the_least_difference_of_one_norm_by_hand():
    """δ/√(δ² + ε) ≥ ½ where 3δ² ≥ ε: n² ≤ 3/ε for δ = 1/n, and n⁴ ≤ 3/ε for δ = 1/n²."""
    for row in carry_out(STUDIES["amplification"], is_quick=True).rows:
        if row["norms"] == 1:
            n, power = row["largest n, by the formula"], 2 * int(row["difference"][-1])
            assert n**power <= 3 / Fraction(row["epsilon"]) < (n + 1) ** power


def test_studies_use_the_public_interface_alone():
    """A study imports the package itself and the definition of a study, nothing else of it."""
    room = ROOT / "src" / "transformist" / "studies"
    apart = {"__init__", "contents", "experiment", "study_folder", "study_page"}
    modules = [path for path in room.glob("*.py") if path.stem not in apart]
    assert len(modules) == len(STUDIES)
    for path in modules:
        source = path.read_text()
        assert len(source.splitlines()) <= 160, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("transformist"):
                assert node.module == "transformist.studies.experiment", path
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "tf":
                assert node.attr in tf.__all__, (path, node.attr)


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
    assert [Path(each).name for each in found["files"]] == [
        "rows.jsonl", "study.json", "quick-checks.md",
    ]  # fmt: skip
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
def test_rows_are_the_same_from_two_processes(quick, backend, tmp_path):
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
    assert rows == list(quick["amplification"].rows)
    kept = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()[1:]]
    assert [each["case"] for each in kept] == list(study.cases(True))
    assert [row for each in kept for row in each["rows"]] == list(found.rows)


def test_the_processes_of_a_study_are_checked(capsys):
    for given, said in (("--jobs", "0"), "--jobs"), (("--backend", "dusk"), "dask"):
        code, out, err = run(capsys, "study", "quick-checks", *given)
        assert (code, out) == (2, "") and said in err, err
    assert answer(capsys, "study", "quick-checks", "--jobs", "2")["held"]


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


def test_the_command(capsys, monkeypatch):
    code, out, _ = run(capsys, "study", "quick-checks")
    assert code == 0 and "question: Why does" in out and "0.721399, 0.265388" in out
    assert out.count("holds: ") == 3 and "answer: A hidden unit" in out and "written: " not in out
    code, out, err = run(capsys, "study", "quick-check")
    assert (code, out) == (2, "") and "did you mean quick-checks" in err
    code, _, err = run(capsys, "study", "learnability")
    assert code == 2 and "no study has this name" in err
    study = STUDIES["quick-checks"]
    false = experiment.Claimed("Two is three.", lambda rows: False)
    monkeypatch.setitem(STUDIES, "quick-checks", replace(study, claims=(false,)))
    code, out, _ = run(capsys, "study", "quick-checks", "--json")
    assert code == 1 and not json.loads(out)["held"]
    assert "DOES NOT HOLD: Two is three." in run(capsys, "study", "quick-checks")[1]
