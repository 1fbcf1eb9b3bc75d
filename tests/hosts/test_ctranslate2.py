"""Checkpoints in CTranslate2: the answers of programs, on every position, and continued texts."""

import json

import numpy as np
import pytest
from exported_programs import expected, exported, strings, texts

from transformist.hosts import host_comparison
from transformist.programs import PROGRAMS

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

CASES = [
    *(
        (host, name, 64)
        for host in ("gpt2", "opt", "llama")
        for name in ("dyck-1", "induction-most-recent", "parity", "contains-abc")
    ),
    *((host, "induction-most-recent", 256) for host in ("gpt2", "llama")),
]


@pytest.fixture(scope="module")
def engine():
    for each in ("torch", "transformers", "ctranslate2"):
        pytest.importorskip(each, reason=f"{each} is not installed (pip extra hosts)")
    import ctranslate2

    return ctranslate2


@pytest.fixture
def few(monkeypatch):
    """Fewer strings in the comparison of an export: these tests compare others."""
    monkeypatch.setattr(host_comparison, "EVERY", 16)
    monkeypatch.setattr(host_comparison, "THOROUGH", 8)


def converted(engine, directory):
    """The generator and the tokenizer of a checkpoint, converted as the page says."""
    import transformers

    made = directory.with_name(directory.name + "-ct2")
    engine.converters.TransformersConverter(str(directory)).convert(str(made))
    generator = engine.Generator(str(made), compute_type="float32", intra_threads=1)
    return generator, transformers.AutoTokenizer.from_pretrained(directory)


def tokens_of(tokenizer, text):
    return tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])


def logits(generator, batch):
    """The logits of each input, without padding."""
    found = np.array(generator.forward_batch(batch))
    return [each[: len(tokens)] for each, tokens in zip(found, batch, strict=True)]


@pytest.mark.parametrize(("host", "name", "n"), CASES)
def test_ctranslate2_answers_as_the_program(engine, few, tmp_path, host, name, n):
    model = exported(tmp_path / "made", host, name, n)
    program, front = PROGRAMS[name], len(model.embedding.front)
    generator, tokenizer = converted(engine, tmp_path / "made")
    inputs = [*strings(program, n)]
    batch = [tokens_of(tokenizer, text) for text in texts(inputs)]
    positions = 0
    for x, found in zip(inputs, logits(generator, batch), strict=True):
        names = tokenizer.convert_ids_to_tokens(found.argmax(-1).tolist())
        wanted = expected(program, x)
        read = names[front:] if model.read_out.at == "every" else names[-1:]
        assert read == wanted, (x, read)
        positions += len(wanted)
    assert positions >= 40


@pytest.mark.parametrize("host", ["gpt2", "opt", "llama"])
def test_ctranslate2_continues_texts(engine, few, tmp_path, host):
    program = PROGRAMS["induction-most-recent"]
    exported(tmp_path / "made", host, "induction-most-recent", 40)
    generator, tokenizer = converted(engine, tmp_path / "made")
    given = ["abcab", "b", "cabbacacb", "aab" * 7]
    batch = [tokens_of(tokenizer, text) for text in given]
    results = generator.generate_batch(
        batch, max_length=12, min_length=12, sampling_topk=1, include_prompt_in_result=False
    )
    for text, found in zip(given, results, strict=True):
        wanted = text
        for _ in range(12):
            wanted += program(wanted)[-1]
        assert text + "".join(found.sequences[0]) == wanted


@pytest.mark.parametrize(
    ("host", "field", "usual", "is_read"),
    [("gpt2", "layer_norm_epsilon", 1e-5, False), ("llama", "rms_norm_eps", 1e-6, True)],
)
def test_ctranslate2_reads_the_epsilon_of_llama_and_not_of_gpt2(
    engine, few, tmp_path, host, field, usual, is_read
):
    """So a checkpoint of GPT-2 is safe there only with the usual eps, which it has."""
    exported(tmp_path / "made", host, "dyck-1", 20)
    path = tmp_path / "made" / "config.json"
    config = json.loads(path.read_text())
    assert config[field] == usual
    generator, tokenizer = converted(engine, tmp_path / "made")
    batch = [tokens_of(tokenizer, "(()())")]
    (before,) = logits(generator, batch)
    (tmp_path / "made-ct2").rename(tmp_path / "first")
    path.write_text(json.dumps(config | {field: 1.0}))
    generator, tokenizer = converted(engine, tmp_path / "made")
    (after,) = logits(generator, batch)
    assert (before != after).any() == is_read
