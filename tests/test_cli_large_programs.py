"""`compile` and `certify` say how long large programs take, and how far they are.

Ctrl-C leaves a whole file or none.
"""

import pytest

import transformist as tf
from command_line import run
from transformist.cli import certify, large_programs, printing
from transformist.cli import compile as command
from transformist.compiler import emit, pipeline
from transformist.named.named_program import NamedProgram
from transformist.verify.certificate import certification, finding
from transformist.verify.proof import walking


def interrupted(*_given, **_more):
    raise KeyboardInterrupt


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(("limit", "says"), [(1, True), (2, False)])
def test_a_large_alphabet_is_told_of_before_the_work(path, capsys, monkeypatch, limit, says):
    monkeypatch.setattr(large_programs, "LARGE_ALPHABET", limit)
    monkeypatch.setattr(NamedProgram, "compiled", interrupted)
    code, _, err = run(capsys, "compile", "programs/majority", "-o", path)
    assert ("2 symbols: compiling takes about 1 s" in " ".join(err.split())) == says
    assert code == 130 and not [*path.parent.iterdir()]


@pytest.mark.parametrize(("limit", "says"), [(1, True), (10**6, False)])
def test_a_large_model_is_told_of_and_kept(path, capsys, monkeypatch, limit, says):
    monkeypatch.setattr(large_programs, "LARGE_MODEL", limit)
    monkeypatch.setattr(command, "grade_of", interrupted)
    code, _, err = run(capsys, "compile", "programs/majority", "-o", path, "--max-length", "9")
    assert ("certifying may take minutes" in " ".join(err.split())) == says
    assert code == 130
    assert tf.load(path)("011")
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize(("symbols", "weights"), [(1, 1), (2, 10**6)])
def test_certify_tells_of_a_large_model_before_the_proofs(
    path, capsys, monkeypatch, symbols, weights
):
    monkeypatch.setattr(large_programs, "LARGE_ALPHABET", symbols)
    monkeypatch.setattr(large_programs, "LARGE_MODEL", weights)
    monkeypatch.setattr(certify, "certify", interrupted)
    code, out, err = run(capsys, "certify", "programs/majority", "--max-length", "9", "-o", path)
    said = " ".join(err.split())
    assert ("2 symbols: compiling takes about 1 s" in said) == (symbols == 1)
    assert ("2 symbols: each of 4 proofs takes about 1 s" in said) == (symbols == 1)
    assert ("certifying may take minutes; Ctrl-C writes nothing" in said) == (weights == 1)
    assert said.endswith("error: interrupted")
    assert (code, out, [*path.parent.iterdir()]) == (130, "", [])


@pytest.mark.parametrize(
    ("called", "place", "name"),
    [
        ("compile", pipeline, "allocate"),
        ("compile", emit, "_network"),
        ("certify", walking, "decide"),
        ("certify", certification, "digest"),
    ],
)
def test_an_interruption_within_is_one_line_and_leaves_nothing(
    path, capsys, monkeypatch, called, place, name
):
    monkeypatch.setattr(place, name, interrupted)
    code, out, err = run(capsys, called, "programs/majority", "-o", path, "--max-length", "9")
    assert (code, out, err.strip()) == (130, "", "error: interrupted")
    assert not [*path.parent.iterdir()]


def test_each_phase_says_how_far_it_is(path, capsys, caplog, monkeypatch):
    """`working` shows the last of these records (`test_what_takes_long_says_so`)."""
    monkeypatch.setattr(printing, "_logged_to", lambda _handler: caplog.at_level("DEBUG"))
    code, _, err = run(capsys, "compile", "programs/histogram", "-o", path, "--max-length", "9")
    assert code == 0, err
    said = [record.getMessage() for record in caplog.records]
    model = tf.load(path)
    layers = len(model.layers)
    lowered = [line for line in said if line.startswith("lowered to ")]
    assert len({*lowered}) > 3
    for phase in ("weights of", "proof to N = 9,"):
        wanted = [f"{phase} layer {number} of {layers}" for number in range(layers)]
        assert [line for line in said if line.startswith(phase) and "layer" in line] == wanted
    assert said[-1] == "proof to N = 9, read-out"


def test_the_second_grade_says_how_far_it_is(caplog):
    model = tf.compile(tf.programs.PROGRAMS["majority"], max_length=9)
    with caplog.at_level("DEBUG", "transformist"):
        certificate = finding.Search(model, tf.arithmetic.FORMATS[0], 9, "any").certificate(9)
    said = [record.getMessage() for record in caplog.records]
    assert "reading a circuit off the weights, layer 0 of 1" in said
    count = len(certificate.lines)
    assert f"error bounds of {count - 1} of {count} numbers" in said
