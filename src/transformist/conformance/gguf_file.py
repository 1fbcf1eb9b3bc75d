"""A checkpoint of a suite as a file of llama.cpp (GGUF), by the package `gguf`.

llama.cpp has one fixed activation for each class. A checkpoint with another activation is refused,
since the file has no key for the activation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.hosts.optional_library import optional
from transformist.hosts.whole_file import path_of

Array = NDArray[np.float32]

WEIGHTS = {
    "float32": ("F32", "ALL_F32"),
    "float16": ("F16", "MOSTLY_F16"),
    "bfloat16": ("BF16", "MOSTLY_BF16"),
    "q8_0": ("Q8_0", "MOSTLY_Q8_0"),
}
"""Formats of weights, with the names of the format and of such a file in the package `gguf`."""


@dataclass(frozen=True, kw_only=True)
class _Family:
    """A class of transformers in llama.cpp.

    Attributes:
        architecture: the name in the package `gguf`.
        activation: the key of the activation in `config.json`, and the one that llama.cpp has.
        facts: function from `config.json` to the settings of the file: for each method of the
            writer, by its name without `add_`, the value.
        arranged: function from the name of a weight, the weight and `config.json` to the weight in
            the file.

    """

    architecture: str
    activation: tuple[str, str]
    facts: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    arranged: Callable[[str, Array, Mapping[str, Any]], Array]


def _gpt2_facts(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "block_count": config["n_layer"],
        "context_length": config["n_positions"],
        "embedding_length": config["n_embd"],
        "feed_forward_length": config["n_inner"],
        "head_count": config["n_head"],
        "layer_norm_eps": config["layer_norm_epsilon"],
    }


def _gpt2_arranged(name: str, weight: Array, _config: Mapping[str, Any]) -> Array:
    """Transpose matrices: GPT-2 stores them as (in, out), and llama.cpp as (out, in)."""
    is_matrix = name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
    return weight.T if is_matrix else weight


def _llama_facts(config: Mapping[str, Any]) -> Mapping[str, Any]:
    size = config["head_dim"]
    return {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "head_count": config["num_attention_heads"],
        "head_count_kv": config["num_key_value_heads"],
        "key_length": size,
        "value_length": size,
        "rope_dimension_count": size,
        "rope_freq_base": config["rope_parameters"]["rope_theta"],
        "layer_norm_rms_eps": config["rms_norm_eps"],
        "vocab_size": config["vocab_size"],
    }


def _llama_arranged(name: str, weight: Array, config: Mapping[str, Any]) -> Array:
    """Reorder rotated coordinates: the class pairs f with f + half, llama.cpp 2f with 2f + 1."""
    counts = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    projection = name.split(".")[-2]
    if projection not in counts:
        return weight
    # Row k d/2 + f of a head, k = 0 or 1, becomes its row 2f + k.
    halves = weight.reshape(config[counts[projection]], 2, config["head_dim"] // 2, -1)
    return halves.swapaxes(1, 2).reshape(weight.shape)


def _mistral_facts(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of Llama, and the window; llama.cpp has no key by which its class reads it."""
    window = config["sliding_window"]
    return {**_llama_facts(config), **({} if window is None else {"sliding_window": window})}


def _as_stored(_name: str, weight: Array, _config: Mapping[str, Any]) -> Array:
    return weight


LLAMA = _Family(
    architecture="LLAMA",
    activation=("hidden_act", "silu"),
    facts=_llama_facts,
    arranged=_llama_arranged,
)

FAMILIES = {
    "gpt2": _Family(
        architecture="GPT2",
        activation=("activation_function", "gelu_new"),
        facts=_gpt2_facts,
        arranged=_gpt2_arranged,
    ),
    "llama": LLAMA,
    "qwen2": replace(LLAMA, architecture="QWEN2", arranged=_as_stored),
    "mistral": replace(LLAMA, facts=_mistral_facts),
}
"""The classes that can be written, by their `model_type`."""


def write_gguf(checkpoint: Path, path: Path, weights: str = "float32") -> None:
    """Write a checkpoint as a file of llama.cpp, with its tokens.

    Matrices and word vectors are in the given format. Vectors (norms, biases) and the table of
    positions stay in float32, as llama.cpp needs them. The tokenizer of the file gives each
    character its own token, with BOS in front.

    Args:
        checkpoint: the directory of the checkpoint.
        path: the file, which is replaced if it is there.
        weights: `float32`, `float16`, `bfloat16`, or `q8_0`, blocks of 32 numbers with 8 bits each.

    Raises:
        UnknownName: for another format.
        InvalidValue: for a class or an activation that llama.cpp does not have, for a weight that
            the format does not hold, or if the package `gguf` is not installed.

    Example:
        >>> from transformist.conformance.gguf_file import write_gguf
        >>> write_gguf(Path("suite/norm"), Path("norm.gguf"))  # doctest: +SKIP

    """
    if not is_name(weights, WEIGHTS):
        raise UnknownName.among("format of weights", weights, WEIGHTS, "conformance")
    checkpoint = path_of(checkpoint, "conformance")
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    family = _family(config, checkpoint)
    gguf = optional("gguf", "llama-cpp", "conformance")
    writer = gguf.GGUFWriter(None, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH[family.architecture]])
    writer.add_name(checkpoint.name)
    for name, value in family.facts(config).items():
        getattr(writer, f"add_{name}")(value)
    _add_tokens(writer, gguf, checkpoint, config)
    _add_weights(writer, gguf, family, checkpoint, config, weights)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _family(config: Mapping[str, Any], checkpoint: Path) -> _Family:
    """The class of a checkpoint, with an activation that llama.cpp has."""
    kind = config["model_type"]
    if kind not in FAMILIES:
        raise InvalidValue(
            f"a checkpoint for llama.cpp must be of {' or '.join(FAMILIES)}",
            received=f"a checkpoint of {kind}",
            where="conformance",
            remedy="run the suite in another engine",
        )
    family = FAMILIES[kind]
    key, activation = family.activation
    if config[key] != activation:
        raise InvalidValue(
            f"the activation must be {activation}: llama.cpp has no other for {kind}",
            received=f"{key} {config[key]} in {checkpoint / 'config.json'}",
            where="conformance",
            remedy="run this instrument in another engine",
        )
    return family


def _add_tokens(writer: Any, gguf: Any, checkpoint: Path, config: Mapping[str, Any]) -> None:
    """Add the tokens by their texts, as a tokenizer of SentencePiece that merges none."""
    tokenizer = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    texts = sorted(vocabulary, key=vocabulary.__getitem__)
    special = {each["id"] for each in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_scores([0.0] * len(texts))
    kinds = gguf.TokenType
    writer.add_token_types(
        [kinds.CONTROL if number in special else kinds.NORMAL for number in range(len(texts))]
    )
    for name in ("bos", "eos", "pad"):
        getattr(writer, f"add_{name}_token_id")(config[f"{name}_token_id"])
    # Token 0 is an answer. Without this line it would stand for text without a token.
    writer.add_unk_token_id(config["eos_token_id"])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)


def _add_weights(
    writer: Any,
    gguf: Any,
    family: _Family,
    checkpoint: Path,
    config: Mapping[str, Any],
    weights: str,
) -> None:
    format_name, file_name = WEIGHTS[weights]
    tensors = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    architecture = gguf.MODEL_ARCH[family.architecture]
    names = gguf.get_tensor_name_map(architecture, family.facts(config)["block_count"])
    wanted = gguf.GGMLQuantizationType[format_name]
    single = gguf.GGMLQuantizationType.F32
    writer.add_file_type(gguf.LlamaFileType[file_name])
    if weights == "q8_0":
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for name, weight in sorted(tensors.items()):
        own = names.get_name(name, try_suffixes=(".weight", ".bias"))
        is_matrix = weight.ndim == 2 and not own.startswith("position_embd")
        kind = wanted if is_matrix else single
        arranged = np.ascontiguousarray(family.arranged(name, weight, config))
        made = _quantized(gguf, arranged, kind)
        if made is None:
            raise InvalidValue(
                f"every weight must be finite in {weights}, and every row must fill its blocks",
                received=f"{name} of {checkpoint}: shape {arranged.shape}, with numbers up to "
                f"{abs(arranged).max():g}",
                where="conformance",
                remedy="write the checkpoint with weights in bfloat16 or float32",
            )
        writer.add_tensor(own, made, raw_dtype=kind)


def _quantized(gguf: Any, weight: Array, kind: Any) -> NDArray[Any] | None:
    """The bytes of a weight in a format, or None if the format does not hold the weight."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            made: NDArray[Any] = gguf.quants.quantize(weight, kind)
        except gguf.quants.QuantError:
            return None
        return made if np.isfinite(gguf.quants.dequantize(made, kind)).all() else None
