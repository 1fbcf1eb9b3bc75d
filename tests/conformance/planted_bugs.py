"""Bugs of inference engines, planted in the eager engines: each replaces one step of the right one.

A bug changes some output in exact arithmetic, or rounds more coarsely than the format. `report` is
a public report of a fault of this sort in a real engine, where one was found: the same step went
wrong there, though not always in the same direction. Features that other models have (soft caps,
sinks, windows, norms of queries) are planted as an engine would get them wrong here, by applying
them to a model whose configuration has none.
"""

import math
from dataclasses import dataclass

import numpy as np
from eager_engines import ENGINES, MASKED, gelu, gelu_tanh, rounded, silu

BOTH = ("gpt2", "llama")

WITH_BERT = (*BOTH, "bert")

WINDOW = 24
"""Positions that a window keeps: fewer than the longest prompts have."""


@dataclass(frozen=True)
class Bug:
    name: str
    kind: str
    family: str
    report: str
    engine: type

    @property
    def id(self):
        return f"{self.family}-{self.name}"


BUGS = []


def plant(name, kind, families=BOTH, report=""):
    """Plant the class below, whose methods replace those of the right engine, in each family."""

    def planted(mixin):
        for family in (families,) if isinstance(families, str) else families:
            engine = type(mixin.__name__, (mixin, ENGINES[family]), {})
            BUGS.append(Bug(name, kind, family, report, engine))
        return mixin

    return planted


# Masks


@plant("sees-one-ahead", "causal mask")
class SeesOneAhead:
    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        return ((keys <= keys[past:, None] + 1) & mask[:, None, :])[:, None]


@plant("no-causal-mask", "causal mask")
class NoCausalMask:
    def seen(self, mask, past, layer):
        shape = (len(mask), 1, mask.shape[1] - past, mask.shape[1])
        return np.broadcast_to(mask[:, None, None, :], shape)


@plant("hides-its-own-position", "causal mask")
class HidesItself:
    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        return ((keys < np.maximum(keys[past:, None], 1)) & mask[:, None, :])[:, None]


@plant("no-mask-in-a-chunk-after-the-first", "mask over the cache", report="Mikyx-1/TinyLLM#17")
class NoMaskOverCache:
    def seen(self, mask, past, layer):
        seen = super().seen(mask, past, layer)
        return seen | mask[:, None, None, :] if past else seen


@plant(
    "mask-aligned-with-the-first-key", "mask over the cache", report="hyprstream/hyprstream#1521"
)
class UpperLeft:
    def seen(self, mask, past, layer):
        keys, queries = np.arange(mask.shape[1]), mask.shape[1] - past
        if queries == 1:
            return super().seen(mask, past, layer)
        return ((keys <= keys[:queries, None]) & mask[:, None, :])[:, None]


@plant("mask-is-minus-10000", "causal mask")
class FiniteMask:
    def softmax(self, scores):
        return super().softmax(np.where(scores == MASKED, -10000, scores))


@plant("last-key-of-a-tile-left-out", "causal mask")
class LeavesOutTileEnd:
    """A kernel over tiles of 16 keys whose loop ends one key early on full tiles."""

    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        return super().seen(mask, past, layer) & ((keys % 16 != 15) | (keys == keys[past:, None]))


# Padding


@plant("padding-is-attended", "padding mask")
class PaddingAttended:
    def seen(self, mask, past, layer):
        return super().seen(np.ones_like(mask), past, layer)


@plant("padding-is-attended-after-prefill", "padding mask")
class PaddingAttendedLater:
    def seen(self, mask, past, layer):
        return super().seen(np.ones_like(mask) if past else mask, past, layer)


@plant(
    "positions-count-padding",
    "positions of a batch",
    ("gpt2", "bert"),
    report="huggingface/transformers#21080",
)
class CountsPadding:
    def places(self, mask, past):
        return np.broadcast_to(np.arange(mask.shape[1]), mask.shape)[:, past:]


@plant("first-row's-positions-for-all", "positions of a batch", report="unslothai/unsloth#3699")
class SharedPositions:
    """Positions of one row serve the batch once there is a cache."""

    def places(self, mask, past):
        places = super().places(mask, past)
        return np.broadcast_to(places[:1], places.shape) if past else places


# Windows


@plant("window-where-there-is-none", "window", (*BOTH, "qwen2"))
class Window:
    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        return super().seen(mask, past, layer) & (keys > keys[past:, None] - WINDOW)


@plant("window-in-every-other-layer", "window", report="vllm-project/vllm#33594")
class WindowByLayer:
    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        near = keys > keys[past:, None] - WINDOW
        return super().seen(mask, past, layer) & (near | (layer % 2 == 1))


@plant("cache-drops-the-oldest", "window")
class DropsOldest:
    """A rotating cache of fewer positions than the text has, in decoding."""

    def seen(self, mask, past, layer):
        seen = super().seen(mask, past, layer)
        keys = np.arange(mask.shape[1])
        return seen & (keys >= mask.shape[1] - WINDOW) if seen.shape[2] == 1 else seen


@plant("sink-kept-and-middle-dropped", "window")
class StreamingCache:
    """The first four positions and the last ones, as streaming does, without being asked."""

    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        near = (keys > keys[past:, None] - WINDOW) | (keys < 4)
        return super().seen(mask, past, layer) & near


@plant("prompt-cut-to-its-end", "window")
class CutsPrompt:
    def prefill(self, ids, mask, cache):
        kept = np.arange(mask.shape[1]) >= mask.shape[1] - 2 * WINDOW
        return super().prefill(ids, mask & kept, cache)


def other_window(name, change, report=""):
    @plant(f"window-of-the-file-{name}", "window", "mistral", report)
    class OtherWindow:
        def window(self, layer):
            size = super().window(layer)
            return None if size is None else change(size, layer)

    return OtherWindow


other_window("ignored", lambda size, layer: None)
other_window("one-longer", lambda size, layer: size + 1, "ml-explore/mlx-lm#390")
other_window("one-shorter", lambda size, layer: size - 1)
other_window("in-even-layers-alone", lambda size, layer: None if layer % 2 else size)


@plant("window-of-the-file-not-in-decoding", "window", "mistral")
class NoWindowInDecoding:
    def seen(self, mask, past, layer):
        self.is_decoding = past > 0 and mask.shape[1] - past == 1
        return super().seen(mask, past, layer)

    def window(self, layer):
        return None if self.is_decoding else super().window(layer)


@plant("window-of-the-file-in-decoding-alone", "window", "mistral")
class WindowInDecodingAlone:
    def seen(self, mask, past, layer):
        self.is_decoding = past > 0 and mask.shape[1] - past == 1
        return super().seen(mask, past, layer)

    def window(self, layer):
        return super().window(layer) if self.is_decoding else None


@plant(
    "rotating-cache-overwritten-before-it-is-read",
    "window",
    "mistral",
    report="huggingface/transformers#37574",
)
class RotatingCache:
    """A cache of as many keys as the window: a chunk is written before its queries read."""

    def seen(self, mask, past, layer):
        seen, size = super().seen(mask, past, layer), self.window(layer)
        if size is None or not past:
            return seen
        keys = np.arange(mask.shape[1])
        return seen & (keys >= mask.shape[1] - max(size, mask.shape[1] - past))


# Positions


@plant(
    "positions-restart-at-a-chunk", "positions of a chunk", report="huggingface/transformers#43082"
)
class RestartsAtChunk:
    def places(self, mask, past):
        places = super().places(mask, past)
        return super().places(mask[:, past:], 0) if places.shape[1] > 1 else places


@plant("positions-of-a-chunk-counted-twice", "positions of a chunk", report="mlx-node/mlx-node#33")
class CountsChunkTwice:
    def places(self, mask, past):
        places = super().places(mask, past)
        if places.shape[1] > 1:
            places = places + past
        return np.minimum(places, self.config.get("n_positions", 2**30) - 1)


@plant("positions-stand-still-in-decoding", "positions in decoding")
class StandsStill:
    def places(self, mask, past):
        places = super().places(mask, past)
        return np.maximum(places - 1, 0) if past and places.shape[1] == 1 else places


@plant("position-one-ahead-in-decoding", "positions in decoding")
class OneAhead:
    def places(self, mask, past):
        places = super().places(mask, past)
        ahead = places + (past > 0 and places.shape[1] == 1)
        return np.minimum(ahead, self.config.get("n_positions", 2**30) - 1)


@plant("positions-begin-at-one", "position embedding", "gpt2")
class BeginsAtOne:
    def positions(self, places):
        return super().positions(np.minimum(places + 1, self.config["n_positions"] - 1))


@plant("no-positions", "position embedding", ("gpt2", "bert"))
class NoPositions:
    def positions(self, places):
        return np.float32(0)


@plant("positions-reversed-in-a-batch", "positions of a batch")
class RightAligned:
    """Positions counted back from the longest row, as if each row ended with it."""

    def places(self, mask, past):
        shift = mask.shape[1] - mask.sum(1, keepdims=True)
        places = super().places(mask, past) + shift
        return np.minimum(places, self.config.get("n_positions", 2**30) - 1)


@plant("alibi-added", "position embedding")
class Alibi:
    def attention(self, x, layer, places, mask, cache):
        self.behind = np.maximum(mask.cumsum(1) - 1, 0)[:, None, None, :] - places[:, None, :, None]
        return super().attention(x, layer, places, mask, cache)

    def scores(self, q, k, layer):
        slopes = 2.0 ** (-8 * np.arange(1, self.heads + 1) / self.heads)
        return super().scores(q, k, layer) + (slopes[:, None, None] * self.behind).astype(q.dtype)


# Rotary positions


@plant("rotary-pairs-interleaved", "rotations", "llama", report="huggingface/transformers#47403")
class Interleaved:
    def rotate(self, x, places):
        halves = np.concatenate([x[..., ::2], x[..., 1::2]], axis=-1)
        first, second = np.split(super().rotate(halves, places), 2, axis=-1)
        return np.stack([first, second], axis=-1).reshape(x.shape)


@plant("theta-is-the-default", "rotations", ("llama", "qwen2"), report="lyogavin/airllm#369")
class DefaultTheta:
    def set_up(self):
        super().set_up()
        # Half the usual base where the checkpoint has the usual one.
        self.theta = 10000.0 if self.theta != 10000.0 else 500000.0


@plant("rotary-of-half-the-head", "rotations", "llama", report="AI-Hypercomputer/maxtext#4616")
class PartialRotary:
    def frequencies(self):
        frequencies = super().frequencies()
        return np.where(np.arange(len(frequencies)) < len(frequencies) // 2, frequencies, 0)


@plant("rotary-turns-backwards", "rotations", "llama")
class Backwards:
    def rotate(self, x, places):
        first, second = np.split(x, 2, axis=-1)
        turned = super().rotate(np.concatenate([second, first], axis=-1), places)
        second, first = np.split(turned, 2, axis=-1)
        return np.concatenate([first, second], axis=-1)


@plant("rotary-left-out", "rotations", "llama")
class NoRotary:
    def rotate(self, x, places):
        return x


@plant("rotary-of-values-too", "rotations", "llama")
class RotatesValues:
    def queries_keys_values(self, x, layer):
        q, k, v = super().queries_keys_values(x, layer)
        return q, k, self.rotate(v, np.broadcast_to(np.arange(x.shape[1]), x.shape[:2]))


@plant("rotary-of-keys-alone", "rotations", "llama")
class KeysAlone:
    def rotate(self, x, places):
        self.is_key = not getattr(self, "is_key", True)
        return super().rotate(x, places) if self.is_key else x


@plant("rotary-applied-twice-after-prefill", "contents of the cache", "llama")
class RotatedTwice:
    def cached(self, cache, layer, k, v):
        held = layer in cache.keys
        k, v = super().cached(cache, layer, k, v)
        if held:
            k = self.rotate(k, np.broadcast_to(np.arange(k.shape[2]), (len(k), k.shape[2])))
        return k, v


@plant("linear-scaling-by-4", "rotations", "llama")
class LinearScaling:
    def angles(self, places):
        return super().angles(places) / 4


@plant("ntk-scaling-by-4", "rotations", "llama")
class NtkScaling:
    def frequencies(self):
        stretched = 4.0 ** (-2 * np.arange(self.size // 2) / (self.size - 2))
        return super().frequencies() * stretched.astype(np.float32)


@plant("yarn-attention-factor", "scale of scores", "llama", report="turboderp-org/exllamav3#259")
class YarnFactor:
    def scale(self, layer):
        return super().scale(layer) * np.float32((0.1 * math.log(4) + 1) ** 2)


@plant("rotary-in-bfloat16", "coarse numbers", "llama", report="EleutherAI/gpt-neox#1003")
class RotaryInBfloat16:
    def angles(self, places):
        frequencies = rounded(self.frequencies(), "bfloat16")
        return rounded(places.astype(np.float32)[:, None, :, None] * frequencies, "bfloat16")


# Scores and softmax


@plant("scale-left-out", "scale of scores", WITH_BERT, report="mlc-ai/mlc-llm#3426")
class NoScale:
    def scale(self, layer):
        return np.float32(1)


@plant("scale-of-the-width", "scale of scores", report="lucidrains/vit-pytorch#65")
class ScaleOfWidth:
    def scale(self, layer):
        return np.float32(1 / math.sqrt(self.size * self.heads))


@plant("scale-without-root", "scale of scores", WITH_BERT)
class ScaleWithoutRoot:
    def scale(self, layer):
        return np.float32(1 / self.size)


@plant("scale-applied-twice", "scale of scores")
class ScaleTwice:
    def scale(self, layer):
        return super().scale(layer) ** 2


@plant("scale-by-inverse-layer", "scale of scores", "gpt2")
class ScaleByLayer:
    def scale(self, layer):
        return super().scale(layer) / np.float32(layer + 1)


@plant("scores-capped-at-50", "attention formula", report="vllm-project/vllm-metal#665")
class SoftCap:
    def scores(self, q, k, layer):
        return 50 * np.tanh(super().scores(q, k, layer) / 50)


@plant("sink-in-the-denominator", "attention formula", WITH_BERT, report="vllm-project/vllm#52156")
class Sink:
    def softmax(self, scores):
        sink = np.zeros((*scores.shape[:-1], 1), scores.dtype)
        return super().softmax(np.concatenate([scores, sink], axis=-1))[..., :-1]


@plant("queries-and-keys-normalized", "attention formula", report="tenstorrent/tt-mlir#9125")
class NormalizedQueries:
    def rotate(self, x, places):
        size = np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6))
        return super().rotate(x / size, places)


@plant("queries-keys-values-clipped", "attention formula")
class Clipped:
    def queries_keys_values(self, x, layer):
        return (np.clip(each, -8, 8) for each in super().queries_keys_values(x, layer))


@plant("scores-in-bfloat16", "coarse numbers")
class ScoresInBfloat16:
    def scores(self, q, k, layer):
        return rounded(super().scores(q, k, layer), "bfloat16")


@plant("weights-in-bfloat16", "coarse numbers", WITH_BERT)
class SoftmaxInBfloat16:
    def softmax(self, scores):
        return rounded(super().softmax(scores), "bfloat16")


@plant("weights-in-float16", "coarse numbers")
class SoftmaxInFloat16:
    def softmax(self, scores):
        return rounded(super().softmax(scores), "float16")


@plant("softmax-without-maximum", "attention formula")
class NoMaximum:
    def softmax(self, scores):
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.exp(scores)
            return self.round(powers / powers.sum(-1, keepdims=True))


@plant("parts-averaged-without-their-sums", "attention formula")
class PartsAveraged:
    """Attention in two parts of the keys, joined as if both parts weighed the same."""

    def softmax(self, scores):
        if scores.shape[-1] <= WINDOW:
            return super().softmax(scores)
        parts = np.split(scores, [WINDOW], axis=-1)
        sees = [(part > MASKED).any(-1, keepdims=True) for part in parts]
        parts = [
            super(PartsAveraged, self).softmax(part) * s
            for part, s in zip(parts, sees, strict=True)
        ]
        return np.concatenate(parts, axis=-1) / np.maximum(sees[0] + 1.0 * sees[1], 1)


@plant("uniform-weights", "attention formula", WITH_BERT)
class UniformWeights:
    """Flash attention that takes queries for zeros."""

    def scores(self, q, k, layer):
        return np.zeros_like(super().scores(q, k, layer))


# Groups of heads


@plant("groups-tiled", "layout of heads", ("llama", "qwen2", "mistral"), report="onnx/onnx#7274")
class Tiled:
    def spread(self, x):
        return np.tile(x, (1, self.heads // x.shape[1], 1, 1))


@plant("one-group-for-all", "layout of heads", "llama")
class OneGroup:
    def spread(self, x):
        return np.repeat(x[:, :1], self.heads, axis=1)


@plant("heads-in-reverse", "layout of heads")
class Reversed:
    def spread(self, x):
        return super().spread(x)[:, ::-1]


@plant("heads-joined-before-positions", "layout of heads", WITH_BERT)
class JoinedWrongly:
    """Heads reshaped to rows without being moved behind the positions."""

    def attention(self, x, layer, places, mask, cache):
        self.rows = x.shape[:2]
        return super().attention(x, layer, places, mask, cache)

    def output(self, mixed, layer):
        heads = mixed.reshape(*self.rows, self.heads, self.size).swapaxes(1, 2)
        return super().output(heads.reshape(mixed.shape), layer)


@plant("joint-matrix-split-by-head", "layout of heads", "gpt2")
class SplitByHead:
    """Queries, keys and values of each head beside each other, as in GPT-NeoX."""

    def queries_keys_values(self, x, layer):
        joint = self.linear(x, f"transformer.h.{layer}.attn.c_attn")
        joint = joint.reshape(*joint.shape[:2], self.heads, 3, self.size)
        return (joint[:, :, :, each].swapaxes(1, 2) for each in range(3))


@plant("queries-and-keys-exchanged", "layout of heads", ("gpt2", "bert"))
class Exchanged:
    def queries_keys_values(self, x, layer):
        q, k, v = super().queries_keys_values(x, layer)
        return k, q, v


@plant("last-head-is-lost", "layout of heads", WITH_BERT)
class LosesHead:
    def output(self, mixed, layer):
        kept = np.arange(mixed.shape[-1]) < mixed.shape[-1] - self.size
        return super().output(mixed * kept if self.heads > 1 else mixed, layer)


# Cache


def cache_format(name, number_format, report=""):
    @plant(f"cache-in-{name}", "format of the cache", report=report)
    class Stored:
        def stored(self, x):
            return rounded(x, number_format)

    return Stored


cache_format("bfloat16", "bfloat16")
cache_format("float16", "float16")
cache_format("float8-e4m3", "float8_e4m3", report="vllm-project/vllm#42179")
cache_format("float8-e5m2", "float8_e5m2")


def cache_format_after_prefill(name, number_format):
    @plant(f"cache-in-{name}-read-later", "format of the cache")
    class StoredLater:
        """A piece of the prompt reads its own keys as they are, and those of the cache rounded."""

        def cached(self, cache, layer, k, v):
            held, count = layer in cache.keys, k.shape[2]
            own_k, own_v = k, v
            k, v = super().cached(cache, layer, k, v)
            if held:
                k = np.concatenate([rounded(k[:, :, :-count], number_format), own_k], axis=2)
                v = np.concatenate([rounded(v[:, :, :-count], number_format), own_v], axis=2)
            return k, v

    return StoredLater


cache_format_after_prefill("bfloat16", "bfloat16")
cache_format_after_prefill("float16", "float16")
cache_format_after_prefill("float8-e5m2", "float8_e5m2")


@plant("cache-in-int8", "format of the cache")
class CacheInInt8:
    def stored(self, x):
        step = np.maximum(abs(x).max((1, 3), keepdims=True), np.float32(1e-30)) / 127
        return np.round(x / step) * step


@plant("new-row-written-over-the-last", "contents of the cache")
class WritesOverLast:
    def cached(self, cache, layer, k, v):
        if layer in cache.keys:
            cache.keys[layer][:, :, -1] = k[:, :, 0]
            cache.values[layer][:, :, -1] = v[:, :, 0]
        return super().cached(cache, layer, k, v)


@plant("new-values-not-stored", "contents of the cache")
class ValuesNotStored:
    def cached(self, cache, layer, k, v):
        held = layer in cache.keys
        k, v = super().cached(cache, layer, k, v * (not held))
        return k, v


@plant("keys-shifted-against-values", "contents of the cache")
class Shifted:
    def cached(self, cache, layer, k, v):
        held = layer in cache.keys
        k, v = super().cached(cache, layer, k, v)
        return (np.roll(k, 1, axis=2), v) if held else (k, v)


@plant("rows-of-the-batch-mixed", "rows of a batch", report="huggingface/transformers#46612")
class RowsMixed:
    """Rows of the cache follow another order than the rows of the batch, after prefill."""

    def cached(self, cache, layer, k, v):
        if layer in cache.keys:
            cache.keys[layer] = np.roll(cache.keys[layer], 1, axis=0)
            cache.values[layer] = np.roll(cache.values[layer], 1, axis=0)
        return super().cached(cache, layer, k, v)


@plant("second-block-overwritten", "contents of the cache")
class BlockOverwritten:
    """Blocks of 16 positions: the table gives the second and the third the same place."""

    def cached(self, cache, layer, k, v):
        k, v = super().cached(cache, layer, k, v)
        if k.shape[2] < 48:
            return k, v
        order = np.r_[:16, 32:48, 32 : k.shape[2]]
        return k[:, :, order], v[:, :, order]


@plant(
    "part-of-the-prompt-left-empty", "contents of the cache", report="tenstorrent/tt-metal#54413"
)
class LeftEmpty:
    def cached(self, cache, layer, k, v):
        k, v = super().cached(cache, layer, k, v)
        empty = (np.arange(k.shape[2]) // 4 == 3)[:, None]
        return k * ~empty, v * ~empty


@plant("layers-share-a-cache", "contents of the cache")
class SharedCache:
    """The last layer reads the rows of the first."""

    def cached(self, cache, layer, k, v):
        held = layer in cache.keys
        k, v = super().cached(cache, layer, k, v)
        return (cache.keys[0], cache.values[0]) if held and layer == self.depth - 1 else (k, v)


# Weights and the stream


def weight_format(name, number_format):
    @plant(f"weights-of-matrices-in-{name}", "coarse numbers")
    class Loaded:
        def loaded(self, tensor_name, tensor):
            tensor = super().loaded(tensor_name, tensor)
            return rounded(tensor, number_format) if tensor.ndim == 2 else tensor

    return Loaded


weight_format("bfloat16", "bfloat16")
weight_format("float8-e4m3", "float8_e4m3")


@plant("weights-in-int8-for-a-tensor", "coarse numbers", WITH_BERT)
class Int8:
    def loaded(self, name, tensor):
        step = np.float32(abs(tensor).max() / 127) or np.float32(1)
        return np.round(tensor / step) * step if tensor.ndim == 2 else tensor


@plant("weights-in-int4-for-groups-of-32", "coarse numbers")
class Int4:
    def loaded(self, name, tensor):
        if tensor.ndim < 2 or tensor.shape[-1] % 32:
            return tensor
        groups = tensor.reshape(-1, 32)
        step = np.float32(abs(groups).max(1, keepdims=True) / 7)
        return (np.round(groups / np.where(step, step, 1)) * step).reshape(tensor.shape)


@plant("stream-in-bfloat16", "coarse numbers", WITH_BERT)
class StreamInBfloat16:
    def layer(self, x, layer, places, mask, cache):
        return rounded(super().layer(x, layer, places, mask, cache), "bfloat16")


@plant("matrix-products-in-tf32", "coarse numbers", WITH_BERT)
class Tf32:
    """Factors of matrix products with ten bits after the first, as tensor cores take float32."""

    def linear(self, x, name):
        return super().linear((x.view(np.uint32) & 0xFFFFE000).view(np.float32), name)


# Norms


def other_eps(name, value, families=BOTH, report=""):
    @plant(f"eps-is-{name}", "norms", families, report)
    class Eps:
        def set_up(self):
            super().set_up()
            self.eps = np.float32(value)

    return Eps


other_eps("zero", 0.0, WITH_BERT)
other_eps("the-default-1e-6", 1e-6, "gpt2", "huggingface/transformers#38025")
other_eps("the-default-1e-5", 1e-5, "llama", "apache/tvm#15856")


@plant("eps-outside-the-root", "norms", "llama")
class EpsOutside:
    def norm(self, x, name):
        x = x / (np.sqrt((x * x).mean(-1, keepdims=True)) + self.eps)
        return self.round(self.weights[f"{name}.weight"] * x)


@plant("gain-plus-one", "norms", WITH_BERT)
class GainPlusOne:
    """The norm of Gemma, whose file has the gain less one."""

    def loaded(self, name, tensor):
        is_gain = tensor.ndim == 1 and name.endswith("weight")
        return super().loaded(name, tensor + 1 if is_gain else tensor)


@plant("gain-left-out", "norms")
class NoGain:
    def loaded(self, name, tensor):
        is_gain = tensor.ndim == 1 and name.endswith("weight")
        return super().loaded(name, np.ones_like(tensor) if is_gain else tensor)


@plant("mean-not-subtracted", "norms", "gpt2")
class NoMean:
    def norm(self, x, name):
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return self.round(x * self.matrix(name) + self.bias(name))


@plant("mean-subtracted", "norms", "llama")
class Mean:
    def norm(self, x, name):
        return super().norm(x - x.mean(-1, keepdims=True), name)


@plant("deviation-of-a-sample", "norms", "gpt2")
class SampleDeviation:
    """The sum of squares is divided by d - 1."""

    def norm(self, x, name):
        x, width = x - x.mean(-1, keepdims=True), x.shape[-1]
        x = x / np.sqrt((x * x).sum(-1, keepdims=True) / np.float32(width - 1) + self.eps)
        return self.round(x * self.matrix(name) + self.bias(name))


@plant("final-norm-left-out", "norms")
class NoFinalNorm:
    def final_norm(self, x):
        return x


@plant("second-norm-is-the-first", "norms")
class FirstNormTwice:
    def norms(self, layer):
        return (super().norms(layer)[0],) * 2


@plant("second-norm-left-out", "norms")
class NoSecondNorm:
    def norm(self, x, name):
        is_second = name.endswith(("ln_2", "post_attention_layernorm"))
        return x if is_second else super().norm(x, name)


@plant("norm-in-bfloat16", "coarse numbers")
class NormInBfloat16:
    def norm(self, x, name):
        return rounded(super().norm(x, name), "bfloat16")


# Networks


def other_activation(name, function, families, report=""):
    @plant(f"activation-is-{name}", "activation", families, report)
    class Activation:
        def activation(self, x):
            return function(x)

    return Activation


other_activation("gelu-with-erf", gelu, "gpt2", "kyutai-labs/pocket-tts#278")
other_activation("relu", lambda x: np.maximum(x, 0), WITH_BERT)
other_activation("gelu-with-tanh", gelu_tanh, ("llama", "bert"))
other_activation("silu", silu, "gpt2")


@plant("activation-is-quick-gelu", "activation", "gpt2")
class QuickGelu:
    def activation(self, x):
        with np.errstate(over="ignore"):
            return x / (1 + np.exp(np.float32(-1.702) * x))


@plant("activation-left-out", "activation", WITH_BERT)
class NoActivation:
    def activation(self, x):
        return x


@plant("gate-and-up-exchanged", "activation", "llama")
class GateAndUp:
    def linear(self, x, name):
        other = {"gate_proj": "up_proj", "up_proj": "gate_proj"}
        head, _, last = name.rpartition(".")
        return super().linear(x, f"{head}.{other.get(last, last)}")


# Biases, residual stream, depth


def lost_bias(name, ending, families="gpt2", report=""):
    @plant(f"bias-of-{name}-is-lost", "biases", families, report)
    class Lost:
        def bias(self, tensor_name):
            found = super().bias(tensor_name)
            return np.zeros_like(found) if tensor_name.endswith(ending) else found

    return Lost


lost_bias("queries-keys-values", "attn.c_attn")
lost_bias("attention", "attn.c_proj")
lost_bias("hidden-units", "mlp.c_fc")
lost_bias("network", "mlp.c_proj")
lost_bias("norms", ("ln_1", "ln_2", "ln_f"))
lost_bias("queries", "q_proj", "qwen2")
lost_bias("keys", "k_proj", "qwen2")
lost_bias("values", "v_proj", "qwen2")
lost_bias("attention", "attention.output.dense", "bert")
lost_bias("hidden-units", "intermediate.dense", "bert")
lost_bias("queries", "self.query", "bert")
lost_bias("values", "self.value", "bert")
lost_bias("norms", "LayerNorm", "bert")
lost_bias(
    "queries-keys-values-of-three-matrices",
    ("q_proj", "k_proj", "v_proj"),
    "qwen2",
    "sbryngelson/ANEForge#253",
)


@plant("biases-added-after-the-rotation", "biases", "qwen2")
class BiasAfterRotation:
    """Queries and keys get their biases where the rotation has been applied."""

    def attention(self, x, layer, places, mask, cache):
        self.prefix = f"model.layers.{layer}.self_attn"
        self.turn = -1
        return super().attention(x, layer, places, mask, cache)

    def bias(self, name):
        return None if name.endswith(("q_proj", "k_proj")) else super().bias(name)

    def rotate(self, x, places):
        self.turn += 1
        added = self.weights[f"{self.prefix}.{'qk'[self.turn]}_proj.bias"]
        return super().rotate(x, places) + added.reshape(x.shape[1], 1, self.size)


@plant("network-reads-the-old-stream", "layers and residual stream")
class ParallelResidual:
    """Both sublayers read the stream before the layer, as in GPT-J."""

    def layer(self, x, layer, places, mask, cache):
        first, second = (self.norm(x, each) for each in self.norms(layer))
        mixed = self.attention(first, layer, places, mask, cache)
        return self.round(x + mixed + self.network(second, layer))


@plant("no-residual-around-attention", "layers and residual stream")
class NoResidual:
    def layer(self, x, layer, places, mask, cache):
        first, second = self.norms(layer)
        x = self.attention(self.norm(x, first), layer, places, mask, cache)
        return self.round(x + self.network(self.norm(x, second), layer))


@plant("last-layer-left-out", "layers and residual stream", WITH_BERT)
class LayerLeftOut:
    def set_up(self):
        super().set_up()
        self.depth -= 1


@plant("first-layer-twice", "layers and residual stream", WITH_BERT)
class LayerTwice:
    def layer(self, x, layer, places, mask, cache):
        x = super().layer(x, layer, places, mask, cache)
        return super().layer(x, layer, places, mask, type(cache)()) if layer == 0 else x


@plant("embedding-times-root-of-width", "embedding")
class ScaledEmbedding:
    def embedding(self, ids, places):
        words = super().embedding(ids, places)
        return self.round(words * np.float32(math.sqrt(words.shape[-1])))


# Tokens


@plant("head-is-the-embedding", "head over the vocabulary", report="vllm-project/vllm#51063")
class Tied:
    def set_up(self):
        super().set_up()
        self.config = {**self.config, "tie_word_embeddings": True}


@plant("logits-capped-at-30", "head over the vocabulary")
class CappedLogits:
    def head(self, x):
        return 30 * np.tanh(super().head(x) / 30)


@plant("logits-in-bfloat16", "coarse numbers", WITH_BERT)
class LogitsInBfloat16:
    def head(self, x):
        return rounded(super().head(x), "bfloat16")


@plant("last-tokens-of-the-vocabulary-lost", "head over the vocabulary")
class LosesTokens:
    """The head is cut to a multiple of 16 tokens."""

    def head(self, x):
        logits = super().head(x)
        return np.where(np.arange(logits.shape[-1]) < logits.shape[-1] // 16 * 16, logits, MASKED)


@plant(
    "empty-rows-of-the-head-can-win", "head over the vocabulary", report="mirage-project/mirage#751"
)
class EmptyRowsWin:
    def head(self, x):
        logits = super().head(x)
        return np.pad(logits, ((0, 0), (0, 0), (0, 64)))


@plant("tokens-shifted-by-one", "embedding", WITH_BERT)
class TokensShifted:
    """The words of the file begin at row 1, after a row for an unknown token."""

    def embedding(self, ids, places):
        return super().embedding(np.maximum(np.asarray(ids) - 1, 0), places)


@plant("logits-of-the-position-before", "position that is read", WITH_BERT)
class PositionBefore:
    def prefill(self, ids, mask, cache):
        logits = super().prefill(ids, mask, cache)
        return np.concatenate([logits[:, :1], logits[:, :-1]], axis=1)


@plant("logits-of-the-next-row", "rows of a batch", WITH_BERT)
class NextRow:
    def prefill(self, ids, mask, cache):
        return np.roll(super().prefill(ids, mask, cache), 1, axis=0)


@plant("first-token-twice", "BOS", report="abetlen/llama-cpp-python#1501")
class FirstTokenTwice:
    """BOS before a prompt that begins with BOS."""

    def doubled(self, ids, mask):
        rows, first = np.arange(len(ids)), mask.argmax(1)
        ids, mask = (np.pad(each, ((0, 0), (1, 0))) for each in (ids, mask))
        ids[rows, first], mask[rows, first] = ids[rows, first + 1], True
        return ids, mask

    def logits(self, ids, mask=None):
        ids = np.asarray(ids)
        mask = np.ones(ids.shape, bool) if mask is None else np.asarray(mask, bool)
        return super().logits(*self.doubled(ids, mask))[:, 1:]

    def generate(self, ids, mask, max_new_tokens):
        wide = self.doubled(np.asarray(ids), np.asarray(mask, bool))
        return super().generate(*wide, max_new_tokens)

    def places(self, mask, past):
        last = self.config.get("n_positions", 2**30) - 1
        return np.minimum(super().places(mask, past), last)


@plant("repeated-tokens-punished", "choice of tokens", report="huggingface/optimum-nvidia#66")
class RepetitionPunished:
    def next_tokens(self, logits, before):
        logits = logits.copy()
        for tokens in before:
            at = np.arange(len(logits)), tokens
            logits[at] = np.where(logits[at] > 0, logits[at] / 1.3, logits[at] * 1.3)
        return super().next_tokens(logits, before)


# An encoder: no causal mask, token types, norms after the sublayers


@plant("causal-mask-applied", "causal mask", "bert")
class CausalMask:
    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        return super().seen(mask, past, layer) & (keys <= keys[:, None])


@plant("own-position-hidden", "causal mask", "bert")
class OwnHidden:
    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        return super().seen(mask, past, layer) & (keys != keys[:, None])


@plant("last-key-of-each-tile-left-out", "causal mask", "bert")
class EncoderTileEnd:
    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        near = (keys % 16 != 15) | (keys == keys[:, None])
        return super().seen(mask, past, layer) & near


@plant("local-attention", "window", "bert")
class LocalAttention:
    """A window on both sides, as some layers of ModernBERT have it."""

    def seen(self, mask, past, layer):
        keys = np.arange(mask.shape[1])
        return super().seen(mask, past, layer) & (abs(keys - keys[:, None]) < WINDOW)


@plant("padding-attended", "padding mask", "bert")
class EncoderPaddingAttended:
    def seen(self, mask, past, layer):
        return super().seen(np.ones_like(mask), past, layer)


@plant("padding-hidden-by-minus-1", "padding mask", "bert")
class WeakMask:
    """Padding is hidden by a small score: the mask is subtracted, and not its large multiple."""

    def softmax(self, scores):
        return super().softmax(np.where(scores == MASKED, -1, scores))


@plant("positions-begin-at-two", "position embedding", "bert")
class BeginsAtTwo:
    """The positions of RoBERTa, which begin after the number of the padding token."""

    def positions(self, places):
        last = self.config["max_position_embeddings"] - 1
        return super().positions(np.minimum(places + 2, last))


@plant("token-types-left-out", "embedding", "bert")
class NoTypes:
    def types(self, ids):
        return np.float32(0)


@plant("token-types-are-one", "embedding", "bert")
class OtherType:
    def types(self, ids):
        return self.weights["bert.embeddings.token_type_embeddings.weight"][1]


@plant("norms-before-the-sublayers", "norms", "bert")
class NormsBefore:
    def layer(self, x, layer, places, mask, cache):
        first, second = self.norms(layer)
        x = self.round(x + self.attention(self.norm(x, first), layer, places, mask, cache))
        return self.round(x + self.network(self.norm(x, second), layer))


@plant("norm-of-the-embeddings-left-out", "norms", "bert")
class NoOuterNorm:
    def norm(self, x, name):
        return x if name == self.FINAL else super().norm(x, name)


other_eps("the-default-1e-12", 1e-12, "bert")


@plant("norm-without-its-mean", "norms", "bert")
class EncoderNoMean:
    def norm(self, x, name):
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return self.round(x * self.weights[f"{name}.weight"] + self.bias(name))


@plant("attention-not-joined-to-its-input", "layers and residual stream", "bert")
class EncoderNoResidual:
    def layer(self, x, layer, places, mask, cache):
        first, second = self.norms(layer)
        x = self.norm(self.attention(x, layer, places, mask, cache), first)
        return self.norm(self.round(x + self.network(x, layer)), second)


@plant("both-sublayers-read-one-stream", "layers and residual stream", "bert")
class EncoderParallel:
    def layer(self, x, layer, places, mask, cache):
        first, second = self.norms(layer)
        mixed = self.norm(self.round(x + self.attention(x, layer, places, mask, cache)), first)
        return self.norm(self.round(mixed + self.network(x, layer)), second)


@plant("words-times-root-of-width", "embedding", "bert")
class EncoderScaled:
    def loaded(self, name, tensor):
        is_word = name == self.WORDS
        scale = np.float32(math.sqrt(tensor.shape[-1])) if is_word else np.float32(1)
        return super().loaded(name, tensor * scale)
