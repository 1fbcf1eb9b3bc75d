"""Instruments that name the formula by which an engine computes.

A network with fixed weights ends each prompt with one number r = (f₀ + f₂)/f₁, a ratio of
coordinates of the vector f that the head over the vocabulary reads. By the formulas of the class,
r = 0. The labels are values of r, and the head answers with the nearest to it, since the logit of v
is 2 v (f₀ + f₂) − v² f₁. The r of each known mistake is computed in float64. Most mistakes have a
label of their own; others share one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import safetensors.numpy

from transformist.conformance.forward import Array, DenseModel, Formulas, final_vectors
from transformist.conformance.instrument import OTHER, Checkpoint, Instrument, Prompt
from transformist.hosts.plain_model import as_tensor
from transformist.hosts.vocabulary import Vocabulary, as_json

# Engines in float32 differ in r by less than 10⁻⁵ (the tests measure it), and the least change of r
# that changes the answer is half of a step, 10⁻³: a hundred times as much.
STEP = 2.0**-9
"""Distance between the right label and its neighbours."""

SPACING = 2.0**-7
"""Least distance between two labels of mistakes."""

LARGEST = 8.0
"""Largest label."""

LEAST = 0.25
"""Least f₁ for which a mistake gets a label of its own."""

HEADS, SIZE, HIDDEN = 4, 32, 256
"""Numbers of heads, of coordinates of a head, and of hidden units."""

WIDTH = HEADS * SIZE

SYMBOLS = "abcdefgh"
"""Symbols of the prompts; the last symbol of a prompt is a capital letter of its own."""

PROMPT_LENGTHS = (2, 5, 11, 23)
"""Numbers of symbols of the prompts."""

BOS = "<bos>"


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """The settings of a network that differ from the usual ones, and the mistakes that it names."""

    layers: int
    mistakes: Callable[[DenseModel], Mapping[str, Formulas]]
    epsilon: float | None = None
    theta: float = 10000.0
    groups: int = HEADS
    has_biases: bool = False
    has_tails: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


def _norm_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    is_gpt2 = network.family == "gpt2"
    usual = 1e-5 if is_gpt2 else 1e-6
    mean = "does not subtract the mean" if is_gpt2 else "subtracts the mean"
    return {
        f"eps is {usual:g}, not the value in the file": Formulas(epsilon=usual),
        "1 is added to the gain": Formulas(gain_summand=1.0),
        f"the norm {mean}": Formulas(subtracts_mean=not is_gpt2),
        "the final norm is missing": Formulas(has_final_norm=False),
    }


def _activation_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    own = network.config["activation_function" if network.family == "gpt2" else "hidden_act"]
    others = [each for each in ("gelu_new", "gelu", "quick_gelu", "silu", "relu") if each != own]
    found = {f"the activation is {each}": Formulas(activation=each) for each in others}
    if network.family == "llama":
        found["the activation is applied to up_proj"] = Formulas(swaps_gate=True)
    return found


def _depth_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    is_gpt2 = network.family == "gpt2"
    count = network.config["n_layer" if is_gpt2 else "num_hidden_layers"]
    found = {}
    for layer in range(count):
        parts = [f"{layer}.attention", f"{layer}.network"]
        found[f"layer {layer} is skipped"] = Formulas(skipped=parts)
        for part in parts:
            found[f"{part} is skipped"] = Formulas(skipped=[part])
            found[f"the input of {part} is not added"] = Formulas(without_residual=[part])
    biases = [name for name in network.tensors if name.endswith(".bias")]
    # A bias of keys adds the same to all scores of a row without rotations; it is then no mistake.
    return found | {f"{name} is missing": Formulas(zeros=[name]) for name in biases}


def _head_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    found = {
        "scores have no scale": Formulas(scale=0.0),
        "scores are divided by the size of a head": Formulas(scale=-1.0),
    }
    if network.family == "llama":
        found |= {
            "query heads take keys and values in turns": Formulas(groups="turns"),
            "rope_theta is 10000, not the value in the file": Formulas(theta=10000.0),
            "rotations pair neighbouring coordinates": Formulas(pairs="neighbours"),
            "there are no rotations": Formulas(theta=0.0),
        }
    return found


def _network(family: str, probe: _Probe, length: int, source: random.Random) -> DenseModel:
    """A network with weights that are multiples of 2⁻¹⁰, the same on every machine."""

    def drawn(*shape: int, most: float) -> Array:
        numbers = [source.randint(-64, 64) for _ in range(int(np.prod(shape)))]
        return np.array(numbers, float).reshape(shape) * most / 64

    def norm(name: str) -> dict[str, Array]:
        made = {f"{name}.weight": 1 + drawn(WIDTH, most=0.5)}
        return made | ({f"{name}.bias": drawn(WIDTH, most=0.5)} if family == "gpt2" else {})

    matrices = _matrices(family, probe)
    prefix = "transformer.h" if family == "gpt2" else "model.layers"
    tensors: dict[str, Array] = {}
    for layer in range(probe.layers):
        for name, (shape, most) in matrices.items():
            stored = shape if family == "gpt2" else shape[::-1]
            tensors[f"{prefix}.{layer}.{name}.weight"] = drawn(*stored, most=most)
            if family == "gpt2" or probe.has_biases:
                tensors[f"{prefix}.{layer}.{name}.bias"] = drawn(shape[1], most=0.5)
        for each in _NORMS[family]:
            tensors |= norm(f"{prefix}.{layer}.{each}")
    if probe.has_tails and family == "gpt2":
        # gelu_new and gelu differ most, by 4.4 · 10⁻⁴, near −2.5: all hidden units add there.
        own = "transformer.h.0.mlp"
        tensors[f"{own}.c_fc.weight"] /= 16
        tensors[f"{own}.c_fc.bias"] = np.full(HIDDEN, -2.5)
        tensors[f"{own}.c_proj.weight"][:] = 0
        tensors[f"{own}.c_proj.weight"][:, 0] = 1
    tensors |= norm("transformer.ln_f" if family == "gpt2" else "model.norm")
    if family == "gpt2":
        tensors["transformer.wpe.weight"] = drawn(length, WIDTH, most=0.5)
        tensors["transformer.wpe.weight"][:, 1] = 0
    for name, values in tensors.items():
        # No sublayer writes to coordinate 1: f₁ is positive, as the word vectors have it.
        if name.endswith(("c_proj.weight", "_proj.bias")) and values.shape[-1] == WIDTH:
            values[..., 1] = 0
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            values[1] = 0
    return DenseModel(
        family=family, config=_config(family, probe, length) | dict(probe.settings), tensors=tensors
    )


_NORMS = {"gpt2": ("ln_1", "ln_2"), "llama": ("input_layernorm", "post_attention_layernorm")}


def _matrices(family: str, probe: _Probe) -> Mapping[str, tuple[tuple[int, int], float]]:
    """The shape (in, out) and the largest weight of each matrix of a layer."""
    # After a norm, a coordinate is about 1 and a weight on average half of the largest: queries and
    # keys then have coordinates of about 1.6, so that attention is neither uniform nor hard.
    inner, outer = 0.25, 0.125
    if family == "gpt2":
        return {
            "attn.c_attn": ((WIDTH, 3 * WIDTH), inner),
            "attn.c_proj": ((WIDTH, WIDTH), inner),
            "mlp.c_fc": ((WIDTH, HIDDEN), inner),
            "mlp.c_proj": ((HIDDEN, WIDTH), outer),
        }
    grouped = probe.groups * SIZE
    return {
        "self_attn.q_proj": ((WIDTH, WIDTH), inner),
        "self_attn.k_proj": ((WIDTH, grouped), inner),
        "self_attn.v_proj": ((WIDTH, grouped), inner),
        "self_attn.o_proj": ((WIDTH, WIDTH), inner),
        "mlp.gate_proj": ((WIDTH, HIDDEN), inner),
        "mlp.up_proj": ((WIDTH, HIDDEN), inner),
        "mlp.down_proj": ((HIDDEN, WIDTH), outer),
    }


def _config(family: str, probe: _Probe, length: int) -> dict[str, Any]:
    if family == "gpt2":
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "activation_function": "gelu_new",
            "layer_norm_epsilon": probe.epsilon or 1e-5,
            "n_embd": WIDTH,
            "n_head": HEADS,
            "n_inner": HIDDEN,
            "n_layer": probe.layers,
            "n_positions": length,
            **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0),
        }
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": probe.has_biases,
        "head_dim": SIZE,
        "hidden_act": "silu",
        "hidden_size": WIDTH,
        "intermediate_size": HIDDEN,
        "max_position_embeddings": length,
        "mlp_bias": probe.has_biases,
        "num_attention_heads": HEADS,
        "num_hidden_layers": probe.layers,
        "num_key_value_heads": probe.groups,
        "rms_norm_eps": probe.epsilon or 1e-6,
        "rope_theta": probe.theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": probe.theta},
        "attention_dropout": 0.0,
    }


def _made(name: str, probe: _Probe) -> Callable[[str, int], Checkpoint]:
    def make(family: str, length: int) -> Checkpoint:
        source = random.Random(f"{name} {family}")
        network = _network(family, probe, length, source)
        ends = "ABCDEFGH"[: len(PROMPT_LENGTHS)]
        bodies = ["".join(source.choices(SYMBOLS, k=n - 1)) for n in PROMPT_LENGTHS]
        inputs = [BOS, *SYMBOLS, *ends]
        place = {text: k for k, text in enumerate(inputs)}
        words = np.array([[source.randint(-64, 64) / 64 for _ in range(WIDTH)] for _ in inputs])
        words[:, 0], words[:, 1] = 0, 6
        rows = [
            [place[each] for each in (BOS, *body, end)]
            for body, end in zip(bodies, ends, strict=True)
        ]
        embedding = _EMBEDDING[family]
        network = replace(network, tensors={**network.tensors, embedding: words})
        for ids in rows:
            # What the last token adds to coordinate 0 reaches r by the residual stream, and little
            # by other ways: Newton's steps with a secant find r = 0.
            _zero(network, words[ids[-1]], ids)
        # Each mistake is evaluated here once: its answer is known before any engine is run.
        mistakes = probe.mistakes(network)
        found = [
            {words_: _read(network, ids, by) for words_, by in mistakes.items()} for ids in rows
        ]
        labels = _labels([read for each in found for read in each.values()])
        texts, files = _files(network, labels, inputs, length)
        prompts = [
            Prompt(
                tokens=[inputs[k] for k in ids],
                text=f"{body}{end}",
                reads=[len(ids) - 1],
                expected=[_text(0.0)],
                length=len(ids),
                wrong=_meanings(labels, each),
            )
            for ids, body, end, each in zip(rows, bodies, ends, found, strict=True)
        ]
        return Checkpoint(files=files, texts=texts, prompts=prompts, formats=("float32",))

    return make


_EMBEDDING = {"gpt2": "transformer.wte.weight", "llama": "model.embed_tokens.weight"}


def _read(network: DenseModel, ids: Sequence[int], by: Formulas) -> tuple[float, float]:
    """The numbers f₀ + f₂ and f₁ after the last token."""
    found = final_vectors(network, ids, by)[-1]
    return float(found[0] + found[2]), float(found[1])


def _ratio(network: DenseModel, ids: Sequence[int]) -> float:
    above, below = _read(network, ids, Formulas())
    return above / below


def _zero(network: DenseModel, word: Array, ids: Sequence[int]) -> None:
    """Set coordinate 0 of the last word, a multiple of 2⁻¹⁸, so that r = 0."""
    x0, r0 = 0.0, _ratio(network, ids)
    x1 = 1.0
    for _ in range(12):
        word[0] = x1
        r1 = _ratio(network, ids)
        if abs(r1) < 1e-9 or r1 == r0:
            break
        x0, x1, r0 = x1, x1 - r1 * (x1 - x0) / (r1 - r0), r1
    word[0] = round(word[0] * 2.0**18) / 2.0**18
    if abs(_ratio(network, ids)) > STEP / 64 or _read(network, ids, Formulas())[1] < LEAST:
        raise AssertionError(f"no r = 0 for {ids}")


def _labels(reads: Sequence[tuple[float, float]]) -> list[float]:
    """Labels: 0 first, its neighbours, and one within `SPACING` of most r of mistakes."""
    found = [0.0, STEP, -STEP]
    for r in sorted(above / below for above, below in reads if below > LEAST):
        near = round(r * 2**12) / 2**12
        is_far = all(abs(near - each) >= SPACING for each in found[3:])
        if is_far and 2 * STEP <= abs(near) <= LARGEST:
            found.append(near)
    return found


def _text(label: float) -> str:
    return f"{label:+.5f}"


def _meanings(labels: Sequence[float], reads: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """The meanings of labels: the mistakes that have each of them as their answer."""
    named: dict[str, list[str]] = {}
    for words, (above, below) in reads.items():
        answer = max(labels, key=lambda v: 2 * v * above - v * v * below)
        if answer:
            named.setdefault(_text(answer), []).append(words)
    return {
        **{text: " or ".join(every) for text, every in named.items()},
        OTHER: "another formula, a coarser format, or another order of weights",
    }


def _files(
    network: DenseModel, labels: Sequence[float], inputs: Sequence[str], length: int
) -> tuple[tuple[str, ...], dict[str, bytes]]:
    """The texts of the tokens, and the files of the checkpoint."""
    front = [*map(_text, labels), *inputs, "<pad>", "<eos>"]
    texts = (*front, *(f"<unused{k}>" for k in range(-len(front) % 8)))
    number = {text: k for k, text in enumerate(texts)}
    tokens = Vocabulary(
        texts=texts,
        symbols=tuple(number[each] for each in inputs),
        answers=tuple(range(len(labels))),
        front=(number[BOS],),
        back=(),
        pad=number["<pad>"],
        bos=number[BOS],
        eos=number["<eos>"],
        by_character=True,
    )
    name = _EMBEDDING[network.family]
    words = np.zeros((len(texts), WIDTH))
    words[[*tokens.symbols]] = network.tensors[name]
    head = np.zeros((len(texts), WIDTH))
    head[: len(labels), [0, 2]] = 2 * np.array(labels)[:, None]
    head[: len(labels), 1] = -np.square(labels)
    # f₁ is positive, so that no symbol and no special token has the largest logit.
    head[len(labels) :, 1] = -1024
    tensors = {**network.tensors, name: words, "lm_head.weight": head}
    arrays = {each: as_tensor(each, weights) for each, weights in tensors.items()}
    ids = {"pad_token_id": tokens.pad, "bos_token_id": tokens.bos, "eos_token_id": tokens.eos}
    common = {"dtype": "float32", "tie_word_embeddings": False, "vocab_size": len(texts)}
    return texts, {
        "config.json": as_json({**common, **ids, **network.config}),
        "generation_config.json": as_json({**ids, "do_sample": False, "max_new_tokens": 1}),
        "model.safetensors": safetensors.numpy.save(arrays, {"format": "pt"}),
        "tokenizer.json": tokens.tokenizer(),
        "tokenizer_config.json": tokens.settings(length, "left"),
    }


NORM = _Probe(layers=1, epsilon=0.5, mistakes=_norm_mistakes)
ACTIVATION = _Probe(layers=1, has_tails=True, mistakes=_activation_mistakes)
DEPTH = _Probe(layers=3, has_biases=True, mistakes=_depth_mistakes)
ATTENTION = _Probe(layers=2, theta=500.0, groups=2, mistakes=_head_mistakes)

INSTRUMENTS = (
    Instrument(
        name="norm",
        summary="names the formula of the norms; eps in the file is 0.5",
        depends_on=("norms",),
        families=("gpt2", "llama"),
        make=_made("norm", NORM),
    ),
    Instrument(
        name="activation",
        summary="names the activation",
        depends_on=("activation",),
        families=("gpt2", "llama"),
        make=_made("activation", ACTIVATION),
    ),
    Instrument(
        name="depth",
        summary="names the sublayer or the bias that is left out",
        depends_on=("biases", "layers", "residual stream"),
        families=("gpt2", "llama"),
        make=_made("depth", DEPTH),
    ),
    Instrument(
        name="heads",
        summary="names the formula of heads: groups, scale of scores, rotations",
        depends_on=("heads", "scale of scores", "rotations"),
        families=("gpt2", "llama"),
        make=_made("heads", ATTENTION),
    ),
)
