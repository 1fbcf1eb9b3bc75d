"""The eager engines against transformers: the same logits and the same greedy tokens."""

import json

import numpy as np
import pytest
import safetensors.numpy
from eager_engines import DECODERS, ENGINES, random_model

CLASSES = {
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "mistral": "MistralForCausalLM",
}


def lively(tensors, seed=5):
    """The weights with scores and biases that matter: ten times as large, and no gain of 1."""
    source = np.random.default_rng(seed)
    return {
        name: (10 * each if each.ndim == 2 else each + source.normal(0, 0.3, each.shape)).astype(
            np.float32
        )
        for name, each in tensors.items()
    }


def batch(seed=3):
    ids = np.random.default_rng(seed).integers(0, 96, (3, 33))
    mask = np.ones(ids.shape, bool)
    mask[1, :5] = mask[2, :20] = False
    return ids, mask


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("family", DECODERS)
def test_logits_and_greedy_tokens_are_those_of_transformers(family, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config, tensors = random_model(family)
    tensors = lively(tensors)
    classes = {"architectures": [CLASSES[family]]}
    (tmp_path / "config.json").write_text(json.dumps(config | classes), encoding="utf-8")
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    transformers.utils.logging.disable_progress_bar()
    network = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids, mask = batch()
    given = {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.tensor(mask, dtype=torch.int64),
    }
    places = torch.tensor(np.maximum(mask.cumsum(1) - 1, 0))
    with torch.inference_mode():
        wanted = network(**given, position_ids=places).logits.numpy()
        continued = network.generate(**given, max_new_tokens=12, do_sample=False)
    for chunk in (None, 1, 7):
        found = ENGINES[family].read(tmp_path, chunk=chunk).logits(ids, mask)
        # Sums of 64 to 256 products in another order: some tens of units of the last place.
        assert abs(found - wanted)[mask].max() < 2**-17 * abs(wanted).max()
    tokens = ENGINES[family].read(tmp_path).generate(ids, mask, 12)
    assert tokens.tolist() == continued[:, ids.shape[1] :].tolist()


@pytest.mark.hosts
@pytest.mark.slow
def test_logits_of_bert_are_those_of_transformers(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config, tensors = random_model("bert")
    classes = {"architectures": ["BertForTokenClassification"]}
    (tmp_path / "config.json").write_text(json.dumps(config | classes), encoding="utf-8")
    safetensors.numpy.save_file(lively(tensors), tmp_path / "model.safetensors", {"format": "pt"})
    network = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path).eval()
    ids, mask = batch()
    with torch.inference_mode():
        wanted = network(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(mask, dtype=torch.int64),
            position_ids=torch.tensor(np.maximum(mask.cumsum(1) - 1, 0)),
        ).logits.numpy()
    found = ENGINES["bert"].read(tmp_path).logits(ids, mask)
    assert abs(found - wanted)[mask].max() < 2**-17 * abs(wanted).max()


@pytest.mark.parametrize("family", ENGINES)
def test_chunks_and_padding_do_not_change_logits(family):
    config, tensors = random_model(family)
    ids, mask = batch()
    engine = ENGINES[family](config, lively(tensors))
    wanted = engine.logits(ids, mask)
    for chunk in (1, 7) if engine.generates else ():
        found = ENGINES[family](config, lively(tensors), chunk=chunk).logits(ids, mask)
        assert abs(found - wanted)[mask].max() < 2**-17 * abs(wanted).max()
    for row, real in zip(ids, mask, strict=True):
        alone = engine.logits([row[real]])[0]
        at = (ids == row).all(1).argmax()
        assert abs(alone - wanted[at, real]).max() < 2**-17 * abs(wanted).max()


@pytest.mark.parametrize("family", ENGINES)
def test_bfloat16_rounds_every_result(family):
    config, tensors = random_model(family)
    ids, mask = batch()
    exact = ENGINES[family](config, lively(tensors)).logits(ids, mask)
    found = ENGINES[family](config, lively(tensors), "bfloat16").logits(ids, mask)
    assert (found.view(np.uint32) & 0xFFFF == 0).all()
    assert 2**-10 < abs(found - exact)[mask].max() / abs(exact).max() < 2**-4
