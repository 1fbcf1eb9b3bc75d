"""Checkpoints as files of llama.cpp, read back by the package `gguf` and evaluated in float64."""

import hashlib
import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from transformist.cli import main
from transformist.conformance import cases, suite_files, write
from transformist.conformance.forward import Formulas, final_vectors
from transformist.conformance.gguf_file import FAMILIES, WEIGHTS, write_gguf
from transformist.conformance.mistake import opened
from transformist.errors import InvalidValue, UnknownName

WRITTEN = tuple(each for each in FAMILIES if each in suite_files.FAMILIES)
"""The families of both: suites may lack some, as GGUF may."""

NAMES = ("count", "marker", "depth", "heads")


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    """Suites of four instruments: relu in GPT-2, all biases, and heads that share keys."""
    base = tmp_path_factory.mktemp("suites")
    with pytest.MonkeyPatch.context() as patch:
        few = {name: suite_files.INSTRUMENTS[name] for name in NAMES}
        patch.setattr(suite_files, "INSTRUMENTS", few)
        for family in WRITTEN:
            write(base / family, family, 32)
    return base


def test_what_llama_cpp_does_not_have_is_refused(suites, tmp_path):
    target = tmp_path / "made.gguf"
    with pytest.raises(InvalidValue, match="the activation must be gelu_new.*received .* relu"):
        write_gguf(suites / "gpt2" / "count", target)
    with pytest.raises(UnknownName, match="q8_1"):
        write_gguf(suites / "gpt2" / "heads", target, "q8_1")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InvalidValue, match=r"must be of gpt2 or llama or .*received .* of bert"):
        write_gguf(other, target)
    assert not target.exists()


def test_the_command_writes_what_llama_cpp_holds_and_names_the_rest(tmp_path, monkeypatch, capsys):
    _gguf()
    few = {name: suite_files.INSTRUMENTS[name] for name in ("count", "heads")}
    monkeypatch.setattr(suite_files, "INSTRUMENTS", few)
    suite = tmp_path / "s"
    command = ["conformance", "write", str(suite), "--length", "32", "--gguf"]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [*facts["no_gguf"]] == ["count"] and "relu" in facts["no_gguf"]["count"]
    assert [each.name for each in suite.glob("*.gguf")] == ["heads.gguf"]
    write_gguf(suite / "heads", tmp_path / "again.gguf")
    assert (suite / "heads.gguf").read_bytes() == (tmp_path / "again.gguf").read_bytes()
    assert {case.instrument for case in cases(suite)} == {"count", "heads"}
    assert main(["conformance", "run", str(suite), "--gguf", "--engine", "transformers"]) == 2
    assert "--gguf must come with write" in capsys.readouterr().err


def test_a_family_that_llama_cpp_does_not_have_is_refused_in_one_line(
    tmp_path, monkeypatch, capsys
):
    _gguf()
    few = {name: suite_files.INSTRUMENTS[name] for name in ("marker", "place")}
    monkeypatch.setattr(suite_files, "INSTRUMENTS", few)
    command = ["conformance", "write", str(tmp_path / "s"), "--length", "32", "--gguf"]
    assert main([*command, "--family", "bert"]) == 0
    _, *refused = capsys.readouterr().out.splitlines()
    (line,) = refused
    assert line.startswith("no GGUF of bert: a checkpoint for llama.cpp must be of gpt2 or llama")
    assert main([*command, "--family", "bert"]) == 2
    assert "the directory of a suite must be empty" in capsys.readouterr().err


def _gguf():
    return pytest.importorskip("gguf", reason="gguf is not installed (pip extra hosts)")


def _field(reader, key):
    return reader.fields[key].contents()


def _read(path, family, config):
    """The settings of a file, and its tensors by the names of the class in transformers."""
    gguf = _gguf()
    reader = gguf.GGUFReader(path)
    architecture = _field(reader, "general.architecture")
    own = {each.name: each for each in reader.tensors}
    tensors = {
        name: gguf.quants.dequantize(each.data, each.tensor_type).astype(float)
        for name, each in own.items()
    }
    kinds = {name: each.tensor_type.name for name, each in own.items()}
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[architecture.upper()], _field(reader, f"{architecture}.block_count")
    )
    return reader, architecture, names, tensors, kinds


def _files(checkpoint):
    config = json.loads((checkpoint / "config.json").read_text())
    return config, safetensors.numpy.load_file(checkpoint / "model.safetensors")


@pytest.mark.hosts
@pytest.mark.parametrize("name", ["depth", "heads"])
@pytest.mark.parametrize("family", WRITTEN)
def test_the_file_has_the_network_of_the_checkpoint(suites, tmp_path, family, name):
    _gguf()
    checkpoint = suites / family / name
    write_gguf(checkpoint, tmp_path / "made.gguf")
    config, tensors = _files(checkpoint)
    reader, architecture, names, made, kinds = _read(tmp_path / "made.gguf", family, config)
    assert {*kinds.values()} == {"F32"}
    ends = (".weight", ".bias")
    back = {each: made[names.get_name(each, try_suffixes=ends)] for each in tensors}
    assert len(back) == len(made)
    if family == "gpt2":
        back = {
            each: values.T if each.endswith(("attn.weight", "proj.weight", "fc.weight")) else values
            for each, values in back.items()
        }
        size = config["n_embd"] // config["n_head"]
        read = config["n_layer"], config["n_positions"], config["n_embd"], config["n_inner"]
        heads, epsilon = config["n_head"], config["layer_norm_epsilon"]
    else:
        size = config["head_dim"]
        read = (
            config["num_hidden_layers"],
            config["max_position_embeddings"],
            config["hidden_size"],
            config["intermediate_size"],
        )
        heads, epsilon = config["num_attention_heads"], config["rms_norm_eps"]
        assert config["num_key_value_heads"] == _field(
            reader, f"{architecture}.attention.head_count_kv"
        )
        theta = config["rope_parameters"]["rope_theta"]
        assert _field(reader, f"{architecture}.rope.freq_base") == theta
        for key in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
            assert _field(reader, f"{architecture}.{key}") == size
    window = reader.fields.get(f"{architecture}.attention.sliding_window")
    assert config.get("sliding_window") == (None if window is None else window.contents())
    keys = ("block_count", "context_length", "embedding_length", "feed_forward_length")
    assert read == tuple(_field(reader, f"{architecture}.{key}") for key in keys)
    assert heads == _field(reader, f"{architecture}.attention.head_count")
    kind = "layer_norm_epsilon" if family == "gpt2" else "layer_norm_rms_epsilon"
    assert np.float32(epsilon) == np.float32(_field(reader, f"{architecture}.attention.{kind}"))
    # In Llama, llama.cpp rotates neighbouring coordinates: the permuted rows of queries and keys
    # give the same scores by this formula, and other ones by that of the class.
    network = opened(checkpoint)
    found = replace(network, tensors=back)
    ids = json.loads((checkpoint / "prompts.jsonl").read_text().splitlines()[-1])["ids"]
    right = final_vectors(network, ids, Formulas())
    difference = {
        pairs: abs(final_vectors(found, ids, Formulas(pairs=pairs)) - right).max()
        for pairs in ("neighbours", "halves")
    }
    assert difference["neighbours" if architecture == "llama" else "halves"] < 1e-9
    if architecture == "llama":
        assert difference["halves"] > 0.01


@pytest.mark.hosts
def test_the_tokens_of_the_file_are_those_of_the_tokenizer(suites, tmp_path):
    gguf = _gguf()
    checkpoint = suites / "llama" / "count"
    write_gguf(checkpoint, tmp_path / "made.gguf")
    reader = gguf.GGUFReader(tmp_path / "made.gguf")
    vocabulary = json.loads((checkpoint / "tokenizer.json").read_text())["model"]["vocab"]
    texts = _field(reader, "tokenizer.ggml.tokens")
    assert {text: k for k, text in enumerate(texts)} == vocabulary
    kinds = dict(zip(texts, _field(reader, "tokenizer.ggml.token_type"), strict=True))
    assert (kinds["<bos>"], kinds["a"]) == (gguf.TokenType.CONTROL, gguf.TokenType.NORMAL)
    assert _field(reader, "tokenizer.ggml.bos_token_id") == vocabulary["<bos>"]
    assert _field(reader, "tokenizer.ggml.unknown_token_id") == vocabulary["<eos>"]
    assert _field(reader, "tokenizer.ggml.add_bos_token")
    assert not _field(reader, "tokenizer.ggml.add_space_prefix")


@pytest.mark.hosts
def test_matrices_are_rounded_to_the_format_and_vectors_are_not(suites, tmp_path):
    _gguf()
    checkpoint = suites / "gpt2" / "heads"
    config, tensors = _files(checkpoint)

    def made(weights):
        write_gguf(checkpoint, tmp_path / "made.gguf", weights)
        return _read(tmp_path / "made.gguf", "gpt2", config)[2:]

    name = "transformer.h.0.attn.c_attn.weight"
    matrix = tensors[name].T
    for weights, kind in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        names, found, kinds = made(weights)
        own = names.get_name(name, try_suffixes=(".weight",))
        np.testing.assert_array_equal(found[own], matrix.astype(kind).astype(float))
        assert kinds[own] == WEIGHTS[weights][0]
        assert kinds["position_embd.weight"] == kinds["blk.0.attn_qkv.bias"] == "F32"
    names, found, kinds = made("q8_0")
    own = names.get_name(name, try_suffixes=(".weight",))
    blocks = abs(matrix).reshape(-1, 32)
    # The scale of a block is its largest number over 127, rounded to 11 bits.
    bound = (blocks.max(1) / 127 * (0.5 + 127 * 2**-11)).repeat(32).reshape(matrix.shape)
    assert kinds[own] == "Q8_0" and (abs(found[own] - matrix) <= bound).all()


@pytest.mark.hosts
@pytest.mark.parametrize(
    ("name", "weights", "received"),
    [
        ("count", "float16", "with numbers up to"),
        ("count", "q8_0", "with numbers up to"),
    ],
)
def test_weights_that_a_format_does_not_hold_are_refused(
    suites, tmp_path, name, weights, received, recwarn
):
    _gguf()
    with pytest.raises(InvalidValue, match=f"every weight must be finite in {weights}.*{received}"):
        write_gguf(suites / "llama" / name, tmp_path / "made.gguf", weights)
    assert not recwarn.list and not (tmp_path / "made.gguf").exists()


@pytest.mark.hosts
def test_blocks_of_8_bits_keep_marker_but_for_the_scale(suites, tmp_path):
    _gguf()
    write_gguf(suites / "llama" / "marker", tmp_path / "made.gguf", "q8_0")
    config, tensors = _files(suites / "llama" / "marker")
    _, _, names, made, kinds = _read(tmp_path / "made.gguf", "llama", config)
    for name, tensor in tensors.items():
        own = names.get_name(name, try_suffixes=(".weight", ".bias"))
        # A scale is stored in float16: it changes all numbers of a block by one factor.
        assert kinds[own] == ("Q8_0" if tensor.ndim == 2 else "F32")
        found = FAMILIES["llama"].arranged(name, tensor, config)
        assert (abs(made[own] - found) <= abs(found) * 2**-11).all()


@pytest.mark.hosts
def test_the_same_checkpoint_gives_the_same_bytes(suites, tmp_path):
    _gguf()
    digests = set()
    for name in ("first.gguf", "second.gguf"):
        write_gguf(suites / "llama" / "heads", tmp_path / name)
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).digest())
    assert len(digests) == 1
