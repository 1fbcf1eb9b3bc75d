"""The pages on the file format and on PyTorch: their examples are true."""

import dataclasses
import doctest
import re
from pathlib import Path

import numpy as np
import pytest
from drawn_models import drawn, strings

import transformist as tf
from transformist.hosts.plain_values import CLASSES
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


def test_the_reader_has_at_most_sixty_lines():
    (text,) = blocks("file-format.md")
    assert len([line for line in text.splitlines() if line.strip()]) <= 60


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reader_evaluates_saved_programs(reader, name, tmp_path):
    model = tf.compile(PROGRAMS[name], max_length=9)
    tf.save(model, tmp_path / "model.safetensors")
    read = reader["read"](tmp_path / "model.safetensors")
    assert read["max_length"] == 9 and read["stream"]["slots"] == [*model.stream.slots]
    for x in strings(model.alphabet, most=12):
        if len(x) <= 9 and (x or model.embedding.front):
            found = reader["logits"](read, x)[model.rows_read(len(x))]
            expected = model.values([x])[0]
            assert found == pytest.approx(np.asarray(expected), rel=0, abs=2.0**-30), x


@pytest.mark.parametrize("mask", ["none", "future", "strict-future", "past", "strict-past"])
@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_the_reader_has_every_mask(reader, mask, weighting, tmp_path):
    model = drawn(mask, weighting, seed=21, with_output=True)
    tf.save(model, tmp_path / "model.safetensors")
    read = reader["read"](tmp_path / "model.safetensors")
    for x in ("", "ab", "abbab"):
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
def test_the_examples_of_the_page_on_pytorch_are_true():
    pytest.importorskip("torch", reason="torch is not installed (pip extra torch)")
    text = "\n".join(blocks("pytorch.md"))
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/pytorch.md", None, 0)
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.hosts
def test_the_examples_of_to_torch_and_export_are_true(tmp_path, monkeypatch):
    for library in ("torch", "onnx", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed (pip extra hosts)")
    monkeypatch.chdir(tmp_path)
    for function in (tf.to_torch, tf.export):
        text = function.__doc__.replace("# doctest: +SKIP", "")
        example = doctest.DocTestParser().get_doctest(text, {}, function.__name__, None, 0)
        assert example.examples and doctest.DocTestRunner().run(example).failed == 0
