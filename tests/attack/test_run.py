"""The run of many models counts each once, and goes on only where no certificate can differ."""

import ast
import json
from pathlib import Path

import pytest
import run

import transformist

TEXT = '"""Text."""\ndef f(x):\n    """More."""\n    # why\n    return x + 1\n'


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (TEXT.replace("Text", "Other words"), True),
        (TEXT.replace("More", "Less").replace("why", "for no reason"), True),
        (TEXT.replace("    # why\n", "\n\n"), True),
        (TEXT.replace("+ 1", "+ 2"), False),
        (TEXT.replace("return x + 1", '"".join(x)'), False),
    ],
)
def test_words_are_no_part_of_the_code(changed, same):
    assert (run.code_of(changed) == run.code_of(TEXT)) is same


def test_the_state_has_all_that_makes_certificates():
    source = Path(transformist.__file__).parents[1]
    rooms = {
        path.relative_to(source / "transformist").parts for path in run.certifying_files(source)
    }
    assert {
        ("verify", "proof", "rounding_errors.py"),
        ("verify", "certificate", "finding.py"),
        ("circuit", "margins.py"),
        ("model", "transformer.py"),
        ("arithmetic", "floating.py"),
    } <= rooms
    assert not {room[0] for room in rooms} & {"catalogue", "compiler", "hosts", "cli"}


def test_both_kinds_of_import_are_followed():
    module = ast.parse("import a.b\nfrom c.d import e\ndef f():\n    from g import h\n")
    assert [*run.imported(module)] == ["a.b", "c.d", "c.d.e", "g", "g.h"]


def test_the_record_has_the_first_chunks_that_every_kind_has(tmp_path):
    path, journal = tmp_path / "record.json", run.Journal(str(tmp_path / "first.sqlite"))
    for kind, chunk in [("one", 0), ("two", 0), ("one", 1), ("one", 2), ("two", 2)]:
        journal.add(kind, chunk, {"open": 40, "grade 1": 60}, [])
    run.Record(path).write(path, journal, ("one", "two"))
    record = run.Record(path)
    assert record.chunks == 1
    assert record.counts == {kind: {"open": 40, "grade 1": 60} for kind in ("one", "two")}

    further = run.Journal(str(tmp_path / "second.sqlite"))
    for kind in ("one", "two"):
        further.add(kind, 1, {"open": 100}, [])
    record.write(path, further, ("one", "two"))
    assert run.Record(path).counts["two"] == {"open": 140, "grade 1": 60}

    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | {"state": "of other code"}))
    assert (run.Record(path).chunks, run.Record(path).counts) == (0, {})
