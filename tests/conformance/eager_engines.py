"""Eager engines in numpy, which evaluate a directory of Hugging Face: GPT-2, Llama and BERT.

They share no code with the package, and every step that an inference engine can get wrong is a
method of its own, which `planted_bugs` replaces. A number format is kept by rounding each result to
it; sums are taken in float32, as accelerators do.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors.numpy

MASKED = np.finfo(np.float32).min
"""The score of a key that a query does not see. It is finite: a row of padding sees no key."""

FORMATS = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def rounded(x, number_format):
    """Round numbers of float32 to a format, and keep them in float32."""
    if number_format == "float32":
        return x
    return x.astype(FORMATS[number_format]).astype(np.float32)


def gelu(x):
    values = [math.erf(each) for each in (x / math.sqrt(2)).ravel().tolist()]
    return x * np.float32(0.5) * (1 + np.array(values, np.float32).reshape(x.shape))


def gelu_tanh(x):
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x**3)
    return np.float32(0.5) * x * (1 + np.tanh(inner))


def silu(x):
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "silu": silu,
}


@dataclass
class Cache:
    """Keys and values of each layer, shape (rows, groups, positions, d_head)."""

    keys: dict = field(default_factory=dict)
    values: dict = field(default_factory=dict)


class Engine:
    """What both families share: masks, positions, cache, attention, chunks and greedy decoding.

    Arrays have the shapes (rows, positions, width) and (rows, heads, positions, d_head). `mask` is
    True at tokens and False at padding, and covers the cache and the new positions.
    """

    generates = True

    def __init__(self, config, tensors, number_format="float32", chunk=None):
        self.config, self.format, self.chunk = config, number_format, chunk
        self.weights = {name: self.loaded(name, each) for name, each in tensors.items()}
        self.set_up()

    @classmethod
    def read(cls, directory, number_format="float32", chunk=None):
        config = json.loads((Path(directory) / "config.json").read_text(encoding="utf-8"))
        tensors = safetensors.numpy.load_file(Path(directory) / "model.safetensors")
        return cls(config, tensors, number_format, chunk)

    # Numbers

    def loaded(self, name, tensor):
        return self.round(tensor.astype(np.float32))

    def round(self, x):
        return rounded(x, self.format)

    def linear(self, x, name):
        y = x @ self.matrix(name)
        bias = self.bias(name)
        return self.round(y if bias is None else y + bias)

    def bias(self, name):
        return self.weights.get(f"{name}.bias")

    # Positions and masks

    def places(self, mask, past):
        """Position of each new token: the tokens of its row before it."""
        return np.maximum(mask.cumsum(1) - 1, 0)[:, past:]

    def seen(self, mask, past, layer):
        """True where a query sees a key, shape (rows, 1, queries, keys)."""
        keys = np.arange(mask.shape[1])
        causal = keys <= keys[past:, None]
        if self.window(layer) is not None:
            causal = causal & (keys > keys[past:, None] - self.window(layer))
        return (causal & mask[:, None, :])[:, None]

    def window(self, layer):
        """The number of keys that a query sees; None for all."""
        return self.config.get("sliding_window")

    # Attention

    def cached(self, cache, layer, k, v):
        """Append keys and values to the cache, and return all."""
        k, v = self.stored(k), self.stored(v)
        if layer in cache.keys:
            k = np.concatenate([cache.keys[layer], k], axis=2)
            v = np.concatenate([cache.values[layer], v], axis=2)
        cache.keys[layer], cache.values[layer] = k, v
        return k, v

    def stored(self, x):
        return x

    def scale(self, layer):
        return np.float32(1 / math.sqrt(self.size))

    def scores(self, q, k, layer):
        return self.round(self.round(q @ k.swapaxes(-1, -2)) * self.scale(layer))

    def softmax(self, scores):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return self.round(powers / powers.sum(-1, keepdims=True))

    def spread(self, x):
        """Give each query head the group of its keys or values."""
        return np.repeat(x, self.heads // x.shape[1], axis=1)

    def rotate(self, x, places):
        return x

    def attention(self, x, layer, places, mask, cache):
        q, k, v = self.queries_keys_values(x, layer)
        q, k = self.rotate(q, places), self.rotate(k, places)
        k, v = (self.spread(each) for each in self.cached(cache, layer, k, v))
        scores = self.scores(q, k, layer)
        seen = self.seen(mask, mask.shape[1] - x.shape[1], layer)
        weights = self.softmax(np.where(seen, scores, MASKED))
        mixed = self.round(weights @ v).swapaxes(1, 2)
        return self.output(mixed.reshape(*x.shape[:2], -1), layer)

    def split(self, x):
        """Split (rows, positions, heads · d_head) into heads."""
        return x.reshape(*x.shape[:2], -1, self.size).swapaxes(1, 2)

    # The network and the tokens

    def layer(self, x, layer, places, mask, cache):
        first, second = self.norms(layer)
        x = self.round(x + self.attention(self.norm(x, first), layer, places, mask, cache))
        return self.round(x + self.network(self.norm(x, second), layer))

    def activation(self, x):
        return ACTIVATIONS[self.activation_name](x)

    def forward(self, ids, mask, cache):
        """Logits of new tokens."""
        places = self.places(mask, mask.shape[1] - ids.shape[1])
        x = self.embedding(ids, places)
        for layer in range(self.depth):
            x = self.layer(x, layer, places, mask, cache)
        return self.head(self.final_norm(x))

    def final_norm(self, x):
        return self.norm(x, self.FINAL)

    def head(self, x):
        tied = self.config.get("tie_word_embeddings", False)
        return self.round(x @ self.weights[self.WORDS if tied else "lm_head.weight"].T)

    def prefill(self, ids, mask, cache):
        step = self.chunk or ids.shape[1]
        parts = [
            self.forward(ids[:, at : at + step], mask[:, : at + step], cache)
            for at in range(0, ids.shape[1], step)
        ]
        return np.concatenate(parts, axis=1)

    def logits(self, ids, mask=None):
        """Logits of each position of a batch, shape (rows, positions, tokens)."""
        ids = np.asarray(ids)
        mask = np.ones(ids.shape, bool) if mask is None else np.asarray(mask, bool)
        return self.prefill(ids, mask, Cache())

    def generate(self, ids, mask, max_new_tokens):
        """Greedy tokens after each row of a left-padded batch, shape (rows, max_new_tokens)."""
        ids, mask, cache = np.asarray(ids), np.asarray(mask, bool), Cache()
        last, found = self.prefill(ids, mask, cache)[:, -1], []
        for _ in range(max_new_tokens):
            found.append(self.next_tokens(last, [*ids.T, *found]))
            mask = np.pad(mask, ((0, 0), (0, 1)), constant_values=True)
            if len(found) < max_new_tokens:
                last = self.forward(found[-1][:, None], mask, cache)[:, -1]
        return np.stack(found, axis=1)

    def next_tokens(self, logits, before):
        return logits.argmax(-1)

    def run(self, ids, max_new_tokens):
        """Greedy tokens after an input, without it; it ends with the token that ends a text."""
        found = self.generate([ids], np.ones((1, len(ids))), max_new_tokens)[0].tolist()
        end = self.config.get("eos_token_id")
        return found[: found.index(end) + 1] if end in found else found


class GPT2(Engine):
    """GPT2LMHeadModel: learned positions, layer norms, one network with biases."""

    WORDS, FINAL = "transformer.wte.weight", "transformer.ln_f"

    def set_up(self):
        self.heads, self.depth = self.config["n_head"], self.config["n_layer"]
        self.size = self.config["n_embd"] // self.heads
        self.activation_name = self.config.get("activation_function", "gelu_new")
        self.eps = np.float32(self.config.get("layer_norm_epsilon", 1e-5))

    def matrix(self, name):
        return self.weights[f"{name}.weight"]

    def norms(self, layer):
        return f"transformer.h.{layer}.ln_1", f"transformer.h.{layer}.ln_2"

    def embedding(self, ids, places):
        return self.round(self.weights[self.WORDS][ids] + self.positions(places))

    def positions(self, places):
        return self.weights["transformer.wpe.weight"][places]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return self.round(x * self.matrix(name) + self.bias(name))

    def queries_keys_values(self, x, layer):
        joint = self.linear(x, f"transformer.h.{layer}.attn.c_attn")
        return (self.split(each) for each in np.split(joint, 3, axis=-1))

    def output(self, mixed, layer):
        return self.linear(mixed, f"transformer.h.{layer}.attn.c_proj")

    def network(self, x, layer):
        hidden = self.round(self.activation(self.linear(x, f"transformer.h.{layer}.mlp.c_fc")))
        return self.linear(hidden, f"transformer.h.{layer}.mlp.c_proj")


class Llama(Engine):
    """LlamaForCausalLM: rotary positions, RMS norms, grouped queries, a gated network."""

    WORDS, FINAL = "model.embed_tokens.weight", "model.norm"

    def set_up(self):
        self.heads, self.depth = (
            self.config["num_attention_heads"],
            self.config["num_hidden_layers"],
        )
        self.size = self.config.get("head_dim") or self.config["hidden_size"] // self.heads
        self.activation_name = self.config.get("hidden_act", "silu")
        self.eps = np.float32(self.config.get("rms_norm_eps", 1e-6))
        rope = self.config.get("rope_parameters") or {}
        assert rope.get("rope_type", "default") == "default", rope
        self.theta = rope.get("rope_theta", self.config.get("rope_theta", 10000.0))

    def matrix(self, name):
        return self.weights[f"{name}.weight"].T

    def norms(self, layer):
        prefix = f"model.layers.{layer}"
        return f"{prefix}.input_layernorm", f"{prefix}.post_attention_layernorm"

    def embedding(self, ids, places):
        return self.weights[self.WORDS][ids]

    def norm(self, x, name):
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return self.round(self.weights[f"{name}.weight"] * self.round(x))

    def queries_keys_values(self, x, layer):
        names = (f"model.layers.{layer}.self_attn.{each}_proj" for each in "qkv")
        return (self.split(self.linear(x, name)) for name in names)

    def frequencies(self):
        half = self.size // 2
        return (self.theta ** -(np.arange(half) / half)).astype(np.float32)

    def angles(self, places):
        return places.astype(np.float32)[:, None, :, None] * self.frequencies()

    def rotate(self, x, places):
        angles = self.angles(places)
        cos, sin = self.round(np.cos(angles)), self.round(np.sin(angles))
        first, second = np.split(x, 2, axis=-1)
        parts = [first * cos - second * sin, second * cos + first * sin]
        return self.round(np.concatenate(parts, axis=-1))

    def output(self, mixed, layer):
        return self.linear(mixed, f"model.layers.{layer}.self_attn.o_proj")

    def network(self, x, layer):
        prefix = f"model.layers.{layer}.mlp"
        gate, up = (self.linear(x, f"{prefix}.{each}_proj") for each in ("gate", "up"))
        hidden = self.round(self.round(self.activation(gate)) * up)
        return self.linear(hidden, f"{prefix}.down_proj")


class Qwen2(Llama):
    """Qwen2ForCausalLM: Llama with biases of queries, keys and values."""


class Mistral(Llama):
    """MistralForCausalLM: Llama with a sliding window, if the file has one."""


class Bert(Engine):
    """BertForTokenClassification: no causal mask, token types, norms after the sublayers."""

    generates = False
    WORDS, FINAL = "bert.embeddings.word_embeddings.weight", "bert.embeddings.LayerNorm"

    def set_up(self):
        self.heads = self.config["num_attention_heads"]
        self.depth = self.config["num_hidden_layers"]
        self.size = self.config["hidden_size"] // self.heads
        self.activation_name = self.config.get("hidden_act", "gelu")
        self.eps = np.float32(self.config.get("layer_norm_eps", 1e-12))

    def matrix(self, name):
        return self.weights[f"{name}.weight"].T

    def norms(self, layer):
        prefix = f"bert.encoder.layer.{layer}"
        return f"{prefix}.attention.output.LayerNorm", f"{prefix}.output.LayerNorm"

    def seen(self, mask, past, layer):
        """True at the tokens of a row: every query sees all of them, shape (rows, 1, 1, keys)."""
        return mask[:, None, None, :]

    def embedding(self, ids, places):
        x = self.weights[self.WORDS][ids] + self.positions(places) + self.types(ids)
        return self.norm(self.round(x), self.FINAL)

    def positions(self, places):
        return self.weights["bert.embeddings.position_embeddings.weight"][places]

    def types(self, ids):
        """The vectors of token types: all tokens have type 0."""
        return self.weights["bert.embeddings.token_type_embeddings.weight"][0]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return self.round(x * self.weights[f"{name}.weight"] + self.bias(name))

    def layer(self, x, layer, places, mask, cache):
        first, second = self.norms(layer)
        x = self.norm(self.round(x + self.attention(x, layer, places, mask, cache)), first)
        return self.norm(self.round(x + self.network(x, layer)), second)

    def queries_keys_values(self, x, layer):
        names = ("query", "key", "value")
        prefix = f"bert.encoder.layer.{layer}.attention.self"
        return (self.split(self.linear(x, f"{prefix}.{each}")) for each in names)

    def output(self, mixed, layer):
        return self.linear(mixed, f"bert.encoder.layer.{layer}.attention.output.dense")

    def network(self, x, layer):
        prefix = f"bert.encoder.layer.{layer}"
        hidden = self.round(self.activation(self.linear(x, f"{prefix}.intermediate.dense")))
        return self.linear(hidden, f"{prefix}.output.dense")

    def final_norm(self, x):
        return x

    def head(self, x):
        return self.linear(x, "classifier")


DECODERS = {"gpt2": GPT2, "llama": Llama, "qwen2": Qwen2, "mistral": Mistral}
"""Engines that predict the next token."""

ENGINES = {**DECODERS, "bert": Bert}


def random_encoder(matrix, gains, tokens, width, heads, depth, positions):
    """`random_model` of BERT, with as many labels as tokens."""
    shapes = {
        **{f"attention.self.{each}": (width, width) for each in ("query", "key", "value")},
        "attention.output.dense": (width, width),
        "intermediate.dense": (4 * width, width),
        "output.dense": (width, 4 * width),
    }
    rows = {"word": tokens, "position": positions, "token_type": 2}
    tensors = {
        f"bert.embeddings.{name}_embeddings.weight": matrix(count, width)
        for name, count in rows.items()
    }
    tensors |= gains("bert.embeddings.LayerNorm", True)
    for layer in range(depth):
        prefix = f"bert.encoder.layer.{layer}."
        for name, shape in shapes.items():
            tensors[f"{prefix}{name}.weight"] = matrix(*shape)
            tensors[f"{prefix}{name}.bias"] = np.zeros(shape[0], np.float32)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors |= gains(prefix + name, True)
    tensors["classifier.weight"] = matrix(tokens, width)
    tensors["classifier.bias"] = np.zeros(tokens, np.float32)
    labels = [f"label {k}" for k in range(tokens)]
    config = {
        "model_type": "bert",
        "vocab_size": tokens,
        "pad_token_id": 0,
        "hidden_act": "gelu",
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": positions,
        "num_attention_heads": heads,
        "num_hidden_layers": depth,
        "type_vocab_size": 2,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: k for k, label in enumerate(labels)},
    }
    return config, tensors


def random_model(family, seed=1, tokens=96, width=64, heads=4, depth=2, positions=256):
    """Config and weights as a library draws them, N(0, 0.02), with norms of 1 and biases of 0.

    The head is not the embedding, and Llama has two groups of keys for four heads: a test of an
    engine should have both.
    """
    source = np.random.default_rng(seed)

    def matrix(*shape):
        return source.normal(0, 0.02, shape).astype(np.float32)

    def gains(name, has_bias):
        made = {f"{name}.weight": np.ones(width, np.float32)}
        return made | ({f"{name}.bias": np.zeros(width, np.float32)} if has_bias else {})

    if family == "bert":
        return random_encoder(matrix, gains, tokens, width, heads, depth, positions)
    tensors = {"lm_head.weight": matrix(tokens, width)}
    common = {"eos_token_id": None, "pad_token_id": 0, "tie_word_embeddings": False}
    if family == "gpt2":
        tensors |= {
            "transformer.wte.weight": matrix(tokens, width),
            "transformer.wpe.weight": matrix(positions, width),
            **gains("transformer.ln_f", True),
        }
        shapes = {
            "attn.c_attn": (width, 3 * width),
            "attn.c_proj": (width, width),
            "mlp.c_fc": (width, 4 * width),
            "mlp.c_proj": (4 * width, width),
        }
        for layer in range(depth):
            prefix = f"transformer.h.{layer}."
            for name, shape in shapes.items():
                tensors[f"{prefix}{name}.weight"] = matrix(*shape)
                tensors[f"{prefix}{name}.bias"] = np.zeros(shape[1], np.float32)
            for name in ("ln_1", "ln_2"):
                tensors |= gains(prefix + name, True)
        sizes = {"n_embd": width, "n_head": heads, "n_layer": depth, "n_positions": positions}
        rest = {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
        return {"model_type": "gpt2", "vocab_size": tokens, **common, **sizes, **rest}, tensors
    tensors |= {"model.embed_tokens.weight": matrix(tokens, width), **gains("model.norm", False)}
    groups = heads // 2 * (width // heads)
    shapes = {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (groups, width),
        "self_attn.v_proj": (groups, width),
        "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (4 * width, width),
        "mlp.up_proj": (4 * width, width),
        "mlp.down_proj": (width, 4 * width),
    }
    for layer in range(depth):
        prefix = f"model.layers.{layer}."
        tensors |= {f"{prefix}{name}.weight": matrix(*shape) for name, shape in shapes.items()}
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors |= gains(prefix + name, False)
    for layer in range(depth if family == "qwen2" else 0):
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"):
            bias = np.zeros(shapes[name][0], np.float32)
            tensors[f"model.layers.{layer}.{name}.bias"] = bias
    config = {
        "model_type": family,
        "vocab_size": tokens,
        **common,
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 2,
        "num_hidden_layers": depth,
        "max_position_embeddings": positions,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        **({"sliding_window": 12} if family == "mistral" else {}),
    }
    return config, tensors
