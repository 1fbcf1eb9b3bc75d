"""`compile` of large programs says how long it takes; Ctrl-C leaves a whole file or none."""

import pytest

import transformist as tf
from command_line import run
from transformist.cli import compile as command
from transformist.named.named_program import NamedProgram


def interrupted(*_given):
    raise KeyboardInterrupt


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(("limit", "says"), [(1, True), (2, False)])
def test_a_large_alphabet_is_told_of_before_the_work(path, capsys, monkeypatch, limit, says):
    monkeypatch.setattr(command, "LARGE_ALPHABET", limit)
    monkeypatch.setattr(NamedProgram, "compiled", interrupted)
    code, _, err = run(capsys, "compile", "programs/majority", "-o", path)
    assert ("2 symbols: compiling takes about 1 s" in " ".join(err.split())) == says
    assert code == 130 and not [*path.parent.iterdir()]


@pytest.mark.parametrize(("limit", "says"), [(1, True), (10**6, False)])
def test_a_large_model_is_told_of_and_kept(path, capsys, monkeypatch, limit, says):
    monkeypatch.setattr(command, "LARGE_MODEL", limit)
    monkeypatch.setattr(command, "grade_of", interrupted)
    code, _, err = run(capsys, "compile", "programs/majority", "-o", path, "--max-length", "9")
    assert ("certifying may take minutes" in " ".join(err.split())) == says
    assert code == 130
    assert tf.load(path)("011")
    assert [*path.parent.iterdir()] == [path]
