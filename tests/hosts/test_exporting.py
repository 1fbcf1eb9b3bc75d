"""Exports: compared with the model first, put in place whole, nothing left behind."""

import dataclasses
import errno
import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from drawn_models import drawn

import transformist as tf
from transformist.arithmetic import number_system
from transformist.cli import main
from transformist.errors import CoarserFormat, InvalidValue, UnknownName
from transformist.hosts import host_comparison
from transformist.hosts.host import HOSTS
from transformist.hosts.named_arrays import description
from transformist.named import find_model
from transformist.named.named_program import NamedProgram
from transformist.programs import PROGRAMS


@pytest.fixture
def host(monkeypatch):
    """A host that evaluates by the reference; `change` may make its logits wrong."""
    fake = SimpleNamespace(
        written=b"a model", change=lambda x, logits: logits, suffix=".fake", options={}
    )

    def write(model, arithmetic, max_length, facts):
        fake.model, fake.arithmetic, fake.facts = model, arithmetic, facts
        return fake.written

    def run(data):
        assert data == fake.written
        return lambda ids, lengths: [logits(each[:n]) for each, n in zip(ids, lengths, strict=True)]

    def logits(ids):
        embedding = fake.model.embedding
        symbols = [embedding.symbols[each] for each in ids]
        x = symbols[len(embedding.front) : len(symbols) - len(embedding.back)]
        *_, (_, z) = fake.model.streams([x], fake.arithmetic)
        return fake.change("".join(x), np.array(fake.model.read_out.values(z[0], _system(fake))))

    fake.loaded = lambda: SimpleNamespace(write=write, run=run)
    monkeypatch.setitem(HOSTS, "fake", fake)
    monkeypatch.setattr(host_comparison, "EVERY", 16)
    return fake


def test_each_phase_is_a_step_of_the_progress(tmp_path, host, caplog):
    """The last record of the library is what the command shows on standard error."""
    caplog.set_level("DEBUG", "transformist.hosts")
    model = tf.compile(PROGRAMS["majority"], max_length=9)
    planned = tf.export(model, tmp_path / "m.fake", "fake")
    weights, comparing, *_, last = (each.getMessage() for each in caplog.records)
    assert weights == "making the weights for fake in float32"
    assert comparing == f"comparing {planned.inputs} inputs in float32"
    assert last == f"{planned.inputs} of {planned.inputs} inputs compared in float32, length 9"
    caplog.clear()
    logits = host.loaded().run(host.written)
    host_comparison.search_logits(model, logits, "fake", "bfloat16", planned, "float32")
    assert caplog.messages[0] == "searching for a wrong answer of fake in bfloat16"


@pytest.mark.parametrize("name", ["mit\ntags: [x]", "the licence", "a: b", None, "-x"])
def test_a_licence_is_one_name(tmp_path, name):
    with pytest.raises(InvalidValue, match="`license` must be the identifier"):
        tf.export(tf.recipe("dyck-1").build(max_length=4), tmp_path / "made", "gpt2", license=name)


def _system(fake):
    from transformist.arithmetic import number_system

    return number_system(fake.arithmetic)


def turned(logits):
    """Numbers on the other side of 0."""
    return np.where(logits > 0, -1, 1)


def dyck(N=6):
    return tf.recipe("dyck-1").build(max_length=N)


def test_an_export_that_agrees_is_written(host, tmp_path):
    found = tf.export(dyck(), tmp_path / "model", "fake")
    assert (tmp_path / "model").read_bytes() == host.written
    assert [*tmp_path.iterdir()] == [tmp_path / "model"]
    # Every string to length 4 (2⁴ = 16), then hard ones of length 5 and 6.
    assert found.every_to == 4 and found.longest == 6 and found.inputs > 31 + 10


def test_a_format_coarser_than_that_of_the_margins_is_warned_of(host, tmp_path):
    model = tf.compile(PROGRAMS["dyck-1"], max_length=6)
    with pytest.warns(
        CoarserFormat, match=r"for float32: in bfloat16 .* certify\(model, 'bfloat16'"
    ):
        tf.export(model, tmp_path / "model", "fake", arithmetic="bfloat16")
    tf.export(model, tmp_path / "model", "fake", arithmetic="float64")
    tf.export(dyck(), tmp_path / "model", "fake", arithmetic="bfloat16")


def test_the_metadata_have_no_private_fields():
    several = tf.compile(both, max_length=4)
    for model in (dyck(), several):
        written = json.dumps(description(model, "float32"))
        assert '"_' not in written and "Floating" not in written


@tf.program(alphabet="ab")
def both(x):
    return tf.outputs(some=(x == "a").any().accept(empty=False), here=(x == "a").tag())


@pytest.mark.parametrize("wrong", ["", "()()", "(((((("])
def test_one_wrong_answer_is_named_and_leaves_the_old_file(host, tmp_path, wrong):
    host.change = lambda x, logits: turned(logits) if x == wrong else logits
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(InvalidValue) as refusal:
        tf.export(dyck(), path, "fake")
    assert f"on {wrong!r}, as the model does in float32" in str(refusal.value)
    assert path.read_bytes() == b"old" and [*tmp_path.iterdir()] == [path]


def test_a_wrong_answer_at_one_position_is_found(host, tmp_path):
    def change(x, logits):
        if x == wrong:
            logits[2] = logits[2][::-1] + 1
        return logits

    host.change = change
    model = tf.compile(PROGRAMS["histogram"], max_length=4)
    wrong = "".join(model.alphabet * 4)[:4]
    with pytest.raises(InvalidValue, match=f"'{wrong}'"):
        tf.export(model, tmp_path / "model", "fake")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("off", "is_refused"), [(1e-3, True), (1e-6, False)])
def test_numbers_may_differ_by_half_of_the_digits(host, tmp_path, off, is_refused):
    model = tf.Transformer(
        stream=tf.Stream(("p",)),
        embedding=tf.Embedding(symbols=("a",), vectors=[["1/3"]]),
        layers=(),
        read_out=tf.RealVector(W_out=[[1]], at="every"),
        max_length=3,
    )
    host.change = lambda x, logits: logits + off
    path = tmp_path / "model"
    if is_refused:
        with pytest.raises(InvalidValue, match="must answer"):
            tf.export(model, path, "fake")
    else:
        tf.export(model, path, "fake")
    assert path.exists() is not is_refused


@pytest.mark.parametrize("n", [20, 29, 30])
def test_a_wrong_answer_at_n_is_found_where_n_is_large(host, tmp_path, monkeypatch, n):
    """One position of a long string; the strings of length 29 are not among those compared."""
    monkeypatch.setattr(host_comparison, "THOROUGH", 20)

    def change(x, logits):
        if len(x) == n:
            logits[-1] = -logits[-1]
        return logits

    host.change = change
    model = drawn(grid=1)
    if n == 29:
        assert tf.export(model, tmp_path / "model", "fake", max_length=30).longest == 30
        return
    with pytest.raises(InvalidValue, match=f"must answer '.{{{n}}}' on"):
        tf.export(model, tmp_path / "model", "fake", max_length=30)


def test_the_file_and_the_result_say_what_was_compared(host, tmp_path):
    found = tf.export(dyck(), tmp_path / "model", "fake")
    assert host.facts["compared"] == dataclasses.asdict(found) and not found.ended
    assert found.longest == 6 and found.inputs > 31


@pytest.mark.parametrize(
    ("limits", "longest", "reason"),
    [
        # 5² · 4 heads and one symbol in front: four symbols have 100 scores, and five have 144.
        ({"MOST_SCORES": 100}, 4, "N is 90: .* 100 attention scores"),
        # 20² · 64 bytes and 20 rows of 5 · 5 weights, 16 bytes each: half of 67,200.
        ({"free_memory": lambda: 67_200}, 19, "N is 90: .* free memory"),
        ({"free_memory": lambda: 67_198}, 18, "N is 90: .* free memory"),
    ],
)
def test_hard_strings_end_where_memory_or_scores_do(
    host, tmp_path, monkeypatch, limits, longest, reason
):
    for name, value in limits.items():
        monkeypatch.setattr(host_comparison, name, value)
    found = tf.export(drawn(grid=1), tmp_path / "model", "fake", max_length=90)
    assert found.longest == longest and re.search(reason, found.ended)


def test_a_model_for_any_length_is_compared_to_a_fixed_length(host, tmp_path, monkeypatch):
    monkeypatch.setattr(host_comparison, "THOROUGH", 20)
    found = tf.export(drawn(grid=1), tmp_path / "model", "fake")
    assert found.longest == 20 and "any length" in found.ended


def test_one_of_several_outputs_that_is_wrong_is_found(host, tmp_path):
    model = drawn(several=True, seed=9)
    assert tf.export(model, tmp_path / "right", "fake", max_length=9).inputs
    signs = [1, 1, 1, -1]
    host.change = lambda x, logits: np.where(x == "aba", logits * signs, logits)
    with pytest.raises(InvalidValue, match="'aba'"):
        tf.export(model, tmp_path / "wrong", "fake", max_length=9)
    assert [*tmp_path.iterdir()] == [tmp_path / "right"]


def test_a_constant_vector_in_a_norm_without_epsilon_is_not_exported(host, tmp_path):
    norm = tf.LayerNorm(gain=[1, 1], bias=[0, 0], epsilon=0)
    model = tf.Transformer(
        stream=tf.Stream(("p", "q")),
        embedding=tf.Embedding(symbols=("a",), vectors=[[1, 1]]),
        layers=(),
        final_norm=norm,
        read_out=tf.RealVector(W_out=[[1, 0]], at="every"),
        max_length=2,
    )
    with pytest.raises(tf.TransformistError, match="ε = 0"):
        tf.export(model, tmp_path / "model", "fake")
    assert not [*tmp_path.iterdir()]


def test_nan_is_refused(host, tmp_path):
    host.change = lambda x, logits: logits * np.nan
    with pytest.raises(tf.TransformistError, match="NaN"):
        tf.export(dyck(), tmp_path / "model", "fake")
    assert not [*tmp_path.iterdir()]


def full(_file):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(_file):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("fault", "error"), [(full, InvalidValue), (interrupted, KeyboardInterrupt)]
)
def test_a_full_disk_and_an_interrupt_leave_nothing(host, tmp_path, monkeypatch, fault, error):
    monkeypatch.setattr(os, "fsync", fault)
    with pytest.raises(error):
        tf.export(dyck(), tmp_path / "model", "fake")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"host": "tensorflow"}, UnknownName, "choose from|did you mean"),
        ({"host": ["onnx"]}, UnknownName, "host"),
        ({"arithmetic": "int8"}, UnknownName, "int8"),
        ({"arithmetic": "exact"}, UnknownName, "exact"),
        ({"path": "model.py"}, InvalidValue, "model.fake"),
        ({"path": 7}, InvalidValue, "path"),
        ({"path": "/no/such/directory/model"}, InvalidValue, "writable"),
        ({"model": "dyck-1"}, InvalidValue, "Transformer"),
    ],
)
def test_bad_input_is_refused(host, tmp_path, change, error, message):
    given = {"model": dyck(2), "path": tmp_path / "model", "host": "fake", **change}
    with pytest.raises(error, match=message):
        tf.export(**given)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("length", ["x", "5", 2.5, -3, 0, True, np.int64(-1), np.float64(5), [5]])
def test_a_length_that_is_no_whole_number_is_refused(host, tmp_path, length):
    with pytest.raises(InvalidValue, match="export: max_length must be a whole number from 1 to"):
        tf.export(dyck(2), tmp_path / "model", "fake", max_length=length)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("back", [(), ("EOS",)])
def test_a_table_of_positions_ends_the_inputs(host, tmp_path, back):
    """The metadata has the longest input that the exported model takes."""
    symbols = ("a", "b", *back)
    embedding = tf.Embedding(
        symbols=symbols,
        vectors=[[1]] * len(symbols),
        positions=tf.PositionTable(vectors=[[1], [2], [3]]),
        back=back,
    )
    read_out = tf.Binary(W_out=[[1]])
    model = tf.Transformer(
        stream=tf.Stream(("p",)), embedding=embedding, layers=(), read_out=read_out
    )
    longest = 3 - len(back)
    assert tf.export(model, tmp_path / "model", "fake").longest == longest
    assert description(model, "float32")["max_length"] == longest
    waves = tf.Embedding(symbols=("a",), vectors=[[1, 0]], positions=tf.Sinusoids(2))
    model = tf.Transformer(
        stream=tf.Stream(("p", "q")),
        embedding=waves,
        layers=(),
        read_out=tf.Binary(W_out=[[1, 1]]),
    )
    assert description(model, "float32", max_length=7)["max_length"] == 7


def test_a_whole_number_of_numpy_is_a_length(host, tmp_path):
    model = drawn(grid=1)
    assert model.max_length is None
    assert tf.export(model, tmp_path / "model", "fake", max_length=np.int64(5)).longest == 5


@pytest.mark.parametrize("kind", ["link", "capitals"])
def test_a_saved_model_is_never_replaced(host, tmp_path, kind):
    saved = tmp_path / ("model.SAFETENSORS" if kind == "capitals" else "model.safetensors")
    saved.write_bytes(b"a saved model")
    target = saved if kind == "capitals" else tmp_path / "model.onnx"
    if kind == "link":
        target.symlink_to(saved)
    with pytest.raises(InvalidValue, match="another kind"):
        tf.export(dyck(2), target, "fake")
    assert saved.read_bytes() == b"a saved model"


@pytest.mark.parametrize("name", ["onnx", "torch"])
def test_a_missing_library_is_named_with_its_extra(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, HOSTS[name].module, raising=False)
    with pytest.raises(InvalidValue, match=rf"{name} must be .*'transformist\[{name}\]'"):
        tf.export(drawn(), tmp_path / "model", name)


def test_the_command_says_what_was_compared(host, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["export", "dyck-1", "--host", "fake", "-o", "d.fake", "--max-length", "5"]
    assert main(given) == 0
    assert "every string to length 4, hard ones to length" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main([*given, "--json"]) == 0
    assert '"bytes": 7' in capsys.readouterr().out
    host.change = lambda x, logits: turned(logits)
    assert main(given) == 2
    assert "the exported model must answer" in capsys.readouterr().err
    assert main(["export", "min", "--host", "fake", "-o", "x"]) == 2


def require_libraries(*hosts):
    for library in (each for host in hosts for each in HOSTS[host].libraries):
        pytest.importorskip(library, reason=f"{library} is not installed (pip extra hosts)")


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
def test_onnx_exports_a_program(arithmetic, tmp_path):
    require_libraries("onnx")
    model = tf.compile(PROGRAMS["dyck-1"], max_length=5, arithmetic=arithmetic)
    found = tf.export(model, tmp_path / "model", "onnx", arithmetic)
    assert found.every_to == 5 and (tmp_path / "model").stat().st_size > 1000


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "arithmetic", "written"),
    [("program", "bfloat16", "the model.pt2"), ("gelu", "float64", "the model.onnx")],
)
def test_the_command_that_a_refusal_gives_works(kind, arithmetic, written, tmp_path, capsys):
    """The command is copied from the line as it stands, spaces in names included."""
    require_libraries("onnx", "torch")
    model = "programs/dyck-1"
    if kind == "gelu":
        model = str(tmp_path / "a saved.safetensors")
        tf.save(drawn(activation="gelu", grid=1), model)
    given = ["--max-length", "5"] if kind == "program" else []
    out = str(tmp_path / "the model.onnx")
    arguments = ["export", model, "--host", "onnx", "-o", out, "--arithmetic", arithmetic, *given]
    assert main(arguments) == 2 and not (tmp_path / written).exists()
    command = " ".join(capsys.readouterr().err.split()).split("run: transformist ")[1]
    assert main(shlex.split(command)) == 0 and (tmp_path / written).stat().st_size > 1000


def test_the_extras_that_refusals_name_exist():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for host in HOSTS.values():
        needed = " ".join(project["optional-dependencies"][host.extra])
        assert all(library in needed for library in host.libraries)


def test_a_program_is_exported_for_the_length_that_is_asked_for(host, capsys, tmp_path):
    given = ["export", "programs/majority", "--host", "fake", "-o", str(tmp_path / "m.fake")]
    assert main([*given, "--max-length", "5", "--json"]) == 0
    assert '"max_length": 5' in capsys.readouterr().out


@pytest.mark.parametrize("place", ["missing/model", "directory", "a file/model"])
def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(
    host, tmp_path, monkeypatch, capsys, place
):
    (tmp_path / "directory").mkdir()
    (tmp_path / "a file").touch()
    before = sorted(tmp_path.rglob("*"))

    def work(*_given):
        pytest.fail("the work had begun")

    host.loaded = lambda: SimpleNamespace(write=work, run=work)
    with pytest.raises(InvalidValue, match="a file in a writable directory"):
        tf.export(dyck(), tmp_path / place, "fake")
    monkeypatch.setattr(NamedProgram, "transformer", work)
    given = ["export", "programs/majority", "--host", "fake", "-o", str(tmp_path / place)]
    assert main(given) == 2 and "in a writable directory" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("made", "given", "refusal"),
    [
        ("N", ["--max-length", "5"], "must be the N of the model, 6; received --max-length 5"),
        ("N", ["--max-length", "7"], "must be the N of the model, 6; received --max-length 7"),
        ("N", ["--max-length", "6"], ""),
        ("N", [], ""),
        ("table", ["--max-length", "4"], "must be the N of the model, 3; received"),
        ("any", ["--max-length", "4"], ""),
        ("--set", ["--max-length", "4"], "must be the N of the model, 6; received"),
    ],
)
def test_another_length_for_a_model_with_n_is_refused(host, tmp_path, capsys, made, given, refusal):
    """A length that the file does not have would be believed."""
    model = tmp_path / "model.safetensors"
    if made == "table":
        table = tf.PositionTable(vectors=[[1], [2], [3]])
        one = tf.Transformer(
            stream=tf.Stream(("p",)),
            embedding=tf.Embedding(symbols=("a",), vectors=[[1]], positions=table),
            layers=(),
            read_out=tf.Binary(W_out=[[1]]),
        )
        tf.save(one, model)
    else:
        tf.save(dyck() if made == "N" else drawn(grid=1), model)
    named = ["dyck-1", "--set", "max_length=6"] if made == "--set" else [str(model)]
    path = tmp_path / "exported"
    code = main(["export", *named, "--host", "fake", "-o", str(path), *given, "--json"])
    printed = capsys.readouterr()
    assert code == (2 if refusal else 0) and path.exists() is not bool(refusal)
    if refusal:
        assert refusal in " ".join(printed.err.split())
    else:
        assert json.loads(printed.out)["longest_compared"] == {"N": 6, "any": 4}[made]


@pytest.mark.parametrize(
    ("given", "claim"),
    [
        (["dyck-1"], "x is in Dyck-1, for n ≤ N, as a slot that is 0 or 1"),
        (["programs/reverse", "--max-length", "6"], "The symbols in opposite order."),
    ],
)
def test_the_command_gives_the_claim_to_the_metadata(host, tmp_path, given, claim):
    assert main(["export", *given, "--host", "fake", "-o", str(tmp_path / "model")]) == 0
    assert host.facts["claim"] == claim
    assert description(dyck(), "float32", host.facts)["claim"] == claim


def test_a_sentence_of_two_lines_is_claimed_whole(host, tmp_path):
    source = tmp_path / "mine.py"
    source.write_text(
        "import transformist as tf\n@tf.program(alphabet='ab')\ndef f(x):\n"
        '    """True where x has an a,\n    or no symbol.\n\n    More."""\n'
        "    return (x == 'a').any().accept(empty=True)\n"
    )
    assert main(["export", f"{source}:f", "--host", "fake", "-o", str(tmp_path / "model")]) == 0
    assert host.facts["claim"] == "True where x has an a, or no symbol."


def test_what_is_not_claimed_is_not_said(host, tmp_path):
    named = find_model("dyck-1", {"max_length": 1000})  # beyond the safe length of bfloat16, 63
    assert named.built(1000, number_system("float32")).claim
    assert not named.built(1000, number_system("bfloat16")).claim
    saved = tmp_path / "model.safetensors"
    tf.save(dyck(), saved)
    assert main(["export", str(saved), "--host", "fake", "-o", str(tmp_path / "model")]) == 0
    assert host.facts["claim"] == ""
    with pytest.raises(InvalidValue, match="`claim` must be a string; received 3"):
        tf.export(dyck(), tmp_path / "model", "fake", claim=3)
