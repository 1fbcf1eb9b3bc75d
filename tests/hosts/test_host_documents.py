"""The pages on the file format and on PyTorch: their examples are true."""

import dataclasses
import doctest
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from drawn_models import drawn, strings

import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import InvalidValue
from transformist.hosts.named_arrays import description
from transformist.hosts.plain_values import CLASSES
from transformist.model import Mask, NearestFraction, NearZero, Outputs
from transformist.programs import PROGRAMS

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), flags=re.S)


@pytest.fixture(scope="module")
def reader():
    (text,) = blocks("file-format.md")
    names = {}
    exec(text, names)
    return names


def test_the_reader_has_at_most_forty_lines():
    (text,) = blocks("file-format.md")
    assert len(text.splitlines()) <= 40


def changed_layer(model, **changes):
    return dataclasses.replace(
        model, layers=(dataclasses.replace(model.layers[0], **changes), *model.layers[1:])
    )


def changed_head(**changes):
    model = evaluated_by_reader()
    head = dataclasses.replace(model.layers[0].heads[0], **changes)
    return changed_layer(model, heads=(head, *model.layers[0].heads[1:]))


def evaluated_by_reader():
    return dataclasses.replace(drawn(seed=41, with_output=True), max_length=4)


def with_embedding(**changes):
    model = evaluated_by_reader()
    return dataclasses.replace(model, embedding=dataclasses.replace(model.embedding, **changes))


def norm():
    return tf.LayerNorm(gain=np.ones(5), bias=np.zeros(5), epsilon=1)


@pytest.mark.parametrize(
    ("model", "refusal"),
    [
        (lambda: changed_head(weighting="leftmost-hard"), "'leftmost-hard'"),
        (lambda: changed_head(weighting="rightmost-hard"), "'rightmost-hard'"),
        (lambda: drawn(activation="gelu"), "'gelu'"),
        (lambda: drawn(activation="gelu-tanh"), "'gelu-tanh'"),
        (lambda: drawn(activation="gelu-sigmoid"), "'gelu-sigmoid'"),
        (lambda: changed_layer(evaluated_by_reader(), pre_norms=(norm(), None)), "norms"),
        (lambda: changed_layer(evaluated_by_reader(), pre_norms=(None, norm())), "norms"),
        (lambda: changed_layer(evaluated_by_reader(), post_norms=(norm(), None)), "norms"),
        (lambda: changed_layer(evaluated_by_reader(), post_norms=(None, norm())), "norms"),
        (lambda: dataclasses.replace(evaluated_by_reader(), final_norm=norm()), "norms"),
        (lambda: with_embedding(positions=tf.Sinusoids(5)), "no attribute 'names'"),
        (lambda: with_embedding(positions=tf.PositionTable(vectors=np.ones((9, 5)))), "'names'"),
        *(
            (
                lambda name=name: with_embedding(positions=tf.PositionFunctions((name,) * 5)),
                re.escape(name),
            )
            for name in ("i^3", "1/i", "-1/i", "-i/n")
        ),
    ],
)
def test_the_reader_refuses_what_it_does_not_evaluate(reader, model, refusal, tmp_path):
    tf.save(model(), tmp_path / "model.safetensors")
    read = reader["read"](tmp_path / "model.safetensors")
    with pytest.raises((NotImplementedError, KeyError, AttributeError), match=refusal):
        reader["logits"](read, "a")


@pytest.mark.parametrize("symbol", [0.5, Fraction(1, 2), 2**60, ("b", "c")])
def test_the_reader_refuses_inputs_with_symbols_of_other_types(reader, symbol, tmp_path):
    model = with_embedding(symbols=("a", symbol, "BOS"))
    tf.save(model, tmp_path / "model.safetensors")
    read = reader["read"](tmp_path / "model.safetensors")
    found, expected = reader["logits"](read, "aa"), model.values(["aa"])[0]
    assert found[1:] == pytest.approx(expected, rel=0, abs=2.0**-30)
    with pytest.raises(ValueError, match="not in list"):
        reader["logits"](read, ["a", symbol])


@pytest.mark.parametrize("back", [(), ("EOS",)])
def test_the_reader_gives_nan_for_a_division_by_no_length(reader, back, tmp_path):
    """The reference refuses i/0, which an EOS has on the empty input; it takes 0/0 as 0."""
    model = drawn(back=back, seed=5)
    tf.save(model, tmp_path / "model.safetensors")
    read = reader["read"](tmp_path / "model.safetensors")
    assert np.isnan(reader["logits"](read, "")).all()
    assert np.isfinite(reader["logits"](read, "b")).all()


@pytest.mark.parametrize("at", [("1", None), ("(-1)^i", "i^2"), None])
def test_the_reader_takes_the_empty_input_where_nothing_is_divided(reader, at, tmp_path):
    """Also without any row, where the model adds no symbol."""
    positions = at and tf.PositionFunctions((*at, None, "i", "i"))
    for front in (("BOS",), ()):
        model = with_embedding(positions=positions, front=front)
        tf.save(model, tmp_path / "model.safetensors")
        read = reader["read"](tmp_path / "model.safetensors")
        for x in ("", "ab"):
            found, expected = reader["logits"](read, x)[len(front) :], model.values([x])[0]
            assert found == pytest.approx(np.asarray(expected), rel=0, abs=2.0**-30)
            assert len(reader["logits"](read, x)) == len(front) + len(x)


def test_the_reader_takes_rationals_as_the_nearest_floats(reader, tmp_path):
    read_out = dataclasses.replace(evaluated_by_reader().read_out, W_out=[["1/3", 0, 0, 0, 2]] * 3)
    tf.save(dataclasses.replace(evaluated_by_reader(), read_out=read_out), tmp_path / "model")
    found = reader["read"](tmp_path / "model").read_out.W_out
    assert found.tolist() == [[1 / 3, 0, 0, 0, 2]] * 3


def test_the_reader_takes_a_file_with_certificates(reader, tmp_path):
    model = tf.compile(PROGRAMS["dyck-1"], max_length=9)
    certificate = tf.certify(model, arithmetic="float32")
    tf.save(model, tmp_path / "model.safetensors", certificates=[certificate])
    read = reader["read"](tmp_path / "model.safetensors")
    assert (reader["logits"](read, "(()())")[-1] > 0) and (reader["logits"](read, "(()(")[-1] < 0)


def test_the_reader_refuses_an_input_beyond_n_and_another_version(reader, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    tf.save(evaluated_by_reader(), path)
    read = reader["read"](path)
    assert reader["logits"](read, "abab").shape == (5, 3)
    with pytest.raises(NotImplementedError, match="an input longer than N"):
        reader["logits"](read, "ababa")
    with pytest.raises(ValueError, match="'c' is not in list"):
        reader["logits"](read, "c")
    tf.save(dataclasses.replace(evaluated_by_reader(), max_length=0), tmp_path / "empty")
    with pytest.raises(NotImplementedError, match="an input longer than N"):
        reader["logits"](reader["read"](tmp_path / "empty"), "a")
    path.write_bytes(path.read_bytes().replace(b'version\\":1', b'version\\":2'))
    with pytest.raises(KeyError, match="^2$"):
        reader["read"](path)


def test_the_reader_leaves_other_kinds_of_values_as_they_are(reader, tmp_path):
    labels = (Fraction(1, 3), 2.5, 2**60)
    read_out = dataclasses.replace(evaluated_by_reader().read_out, labels=labels)
    tf.save(dataclasses.replace(evaluated_by_reader(), read_out=read_out), tmp_path / "model")
    found = reader["read"](tmp_path / "model").read_out.labels
    assert found == [{"rational": "1/3"}, {"float": (2.5).hex()}, {"integer": f"{2**60:x}"}]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reader_evaluates_saved_programs(reader, name, tmp_path):
    model = tf.compile(PROGRAMS[name], max_length=9)
    tf.save(model, tmp_path / "model.safetensors")
    read = reader["read"](tmp_path / "model.safetensors")
    assert read.max_length == 9 and read.stream.slots == [*model.stream.slots]
    for x in strings(model.alphabet, most=12):
        if len(x) <= 9 and (x or model.embedding.front):
            found = reader["logits"](read, x)[model.rows_read(len(x))]
            expected = model.values([x])[0]
            assert found == pytest.approx(np.asarray(expected), rel=0, abs=2.0**-30), x


@pytest.mark.parametrize("mask", ["none", "future", "strict-future", "past", "strict-past"])
@pytest.mark.parametrize(
    "drawing",
    [
        {"weighting": "softmax"},
        {"weighting": "average-hard"},
        {"with_output": True},
        {"several": True, "weighting": "average-hard"},
    ],
)
def test_the_reader_has_every_mask(reader, mask, drawing, tmp_path):
    """Heads with W_O and without it, one output and several."""
    model = drawn(mask, seed=21, **drawing)
    tf.save(model, tmp_path / "model.safetensors")
    read = reader["read"](tmp_path / "model.safetensors")
    for x in ("a", "ab", "abbab"):
        found = reader["logits"](read, x)[model.rows_read(len(x))]
        assert found == pytest.approx(np.asarray(model.values([x])[0]), rel=0, abs=2.0**-30), x


def test_the_page_has_every_class_and_field():
    text = (DOCS / "file-format.md").read_text()
    rows = dict.fromkeys(CLASSES, "")
    for names, fields in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.*) \|$", text, flags=re.M):
        rows |= {name: rows.get(name, "") + fields for name in re.findall(r"\w+", names)}
    for name, each in CLASSES.items():
        for field in dataclasses.fields(each):
            if field.init:
                assert f"`{field.name}`" in rows[name], (name, field.name)


@pytest.mark.hosts
def test_the_examples_of_the_page_on_pytorch_are_true(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed (pip extra torch)")
    monkeypatch.chdir(tmp_path)
    text = "\n".join(blocks("pytorch.md"))
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/pytorch.md", None, 0)
    assert doctest.DocTestRunner().run(example).failed == 0


def decoding():
    """The names that the page on ONNX defines."""
    (text,) = [each for each in blocks("onnx.md") if ">>>" not in each]
    assert not re.search(r"^(import|from) (transformist|onnx)\b", text, flags=re.M)
    names = {}
    exec(text, names)
    return names


@pytest.mark.hosts
def test_the_examples_of_the_page_on_onnx_are_true(tmp_path, monkeypatch):
    for library in ("onnx", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed (pip extra onnx)")
    monkeypatch.chdir(tmp_path)
    text = "\n".join(each for each in blocks("onnx.md") if ">>>" in each)
    example = doctest.DocTestParser().get_doctest(text, decoding(), "docs/onnx.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example).failed == 0 and len(example.examples) > 10


class Reference:
    """A session whose logits are those of the reference evaluation."""

    def __init__(self, model):
        self.model = model

    def run(self, _names, given):
        model, a = self.model, number_system("float64")
        logits = []
        for ids, length in zip(given["token_ids"], given["lengths"], strict=True):
            added = len(model.embedding.front), len(model.embedding.back)
            symbols = [model.embedding.symbols[each] for each in ids[added[0] : length - added[1]]]
            *_, (_, z) = model.streams([tuple(symbols)], a)
            padding = np.zeros((len(ids) - length, len(model.read_out.W_out)))
            logits.append(np.concatenate([model.read_out.values(z[0], a), padding]))
        return [np.array(logits)]


def as_read_out(read_out, back=()):
    """A drawn model with another read-out, and rows for the symbols that it adds."""
    return dataclasses.replace(
        drawn(seed=31, back=back, grid=2, positions=not back), read_out=read_out
    )


def read_outs():
    weights = np.random.default_rng(8).integers(-4, 5, (3, 5)) / 4
    one, three = {"W_out": weights[:1]}, {"W_out": weights}
    for at in ("last", "every"):
        yield tf.Binary(**one, at=at), ()
        yield tf.Binary(**one, at=at), ("EOS",)
        yield tf.MultiClass(**three, labels=("x", "y", "zz"), at=at), ()
        yield tf.MultiClass(**three, labels=(1, -2, 30), at=at), ()
        yield tf.MultiClass(**three, labels=(None, Fraction(1, 2), ("x", 2.5)), at=at), ()
        yield tf.LanguageModel(**three, labels=("a", "b", "EOS"), at=at), ()
        yield tf.RealVector(**three, at=at), ("EOS",)
        yield NearZero(**three, powers=(0, 1, 2), at=at), ()
    yield tf.Binary(**one, at="cls"), ("CLS",)
    last, every = tf.Binary(**one), tf.MultiClass(**three, labels="xyz", at="every")
    kind = tf.MultiClass(**three, labels="xyz")
    yield Outputs(names=("ok", "kind"), parts=(last, kind)), ("EOS",)
    for mask, with_bos, scale in (*((each, False, 1) for each in Mask), ("future", True, 3)):
        mean = NearestFraction(**one, at="every", scale=scale, mask=mask, with_bos=with_bos)
        yield mean, ()
        yield Outputs(names=("ok", "mean", "tags"), parts=(last, mean, every)), ()


@pytest.mark.hosts
@pytest.mark.parametrize(("read_out", "back"), [*read_outs()])
def test_the_code_of_the_page_on_onnx_decodes_every_read_out(read_out, back):
    """From the metadata alone; the logits are those of the reference."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip extra onnx)")
    model = as_read_out(read_out, back)
    facts = json.loads(json.dumps(description(model, "float64")))
    inputs = ["", "a", "b", "ab", "ba", "abbab", "bbbba"]
    found = decoding()["answers"](Reference(model), facts, inputs)
    for x, one, other in zip(inputs, found, model.answers(inputs), strict=True):
        assert one == nearly(other), x


LABELS = (
    *(Fraction(3), np.int64(4), ("r", Fraction(1, 2)), None, "None", Fraction(1, 2), "1/2", 0.25),
    *("0.25", True, math.inf, -math.inf, "inf"),
)


def labels_in_the_metadata():
    read_out = tf.MultiClass(W_out=np.zeros((len(LABELS), 5)), labels=LABELS, at="every")
    facts = description(as_read_out(read_out), "float64")
    return json.loads(json.dumps(facts, allow_nan=False))["labels"]


def test_different_labels_are_different_in_the_metadata():
    """The text of a label is not: None and "None" have the same, and 3 would be joined to text."""
    written = [json.dumps(each) for each in labels_in_the_metadata()]
    assert written[:3] == ["3", "4", '["r", {"fraction": "1/2"}]']
    assert len({*written}) == len(LABELS)


@pytest.mark.parametrize(
    "label",
    [1 + 2j, b"1", frozenset("a"), 10**5000, Fraction(1, 10**5000)],
    ids=["complex", "bytes", "set", "long", "long fraction"],
)
def test_labels_that_json_cannot_tell_apart_are_refused(label):
    read_out = tf.MultiClass(W_out=np.zeros((2, 5)), labels=("a", label), at="every")
    with pytest.raises(InvalidValue, match="in metadata must be strings, numbers of at most"):
        description(as_read_out(read_out), "float64")


@pytest.mark.hosts
def test_the_code_of_the_page_on_onnx_reads_every_label():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip extra onnx)")
    assert [*map(decoding()["value"], labels_in_the_metadata())] == [*LABELS]


def nearly(answer):
    """An answer whose floats may differ in the last digits."""
    if isinstance(answer, list):
        return [nearly(each) for each in answer]
    if isinstance(answer, dict):
        return {key: nearly(each) for key, each in answer.items()}
    if isinstance(answer, float):
        return pytest.approx(answer, rel=1e-12)
    return answer


@pytest.mark.hosts
def test_the_examples_of_functions_with_other_software_are_true(tmp_path, monkeypatch):
    for library in ("torch", "transformers", "onnx", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed (pip extra hosts)")
    monkeypatch.chdir(tmp_path)
    for function in (tf.to_torch, tf.export, tf.search_host):
        text = function.__doc__.replace("# doctest: +SKIP", "")
        example = doctest.DocTestParser().get_doctest(text, {}, function.__name__, None, 0)
        assert example.examples and doctest.DocTestRunner().run(example).failed == 0
