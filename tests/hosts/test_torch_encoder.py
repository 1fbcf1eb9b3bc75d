"""PyTorch's nn.TransformerEncoder: our reading of it, its own computation, and what is refused.

Differences are below 2⁻³⁹ in float64 and 2⁻¹⁵ in float32: both sides round, in different orders,
and norms with ε = 10⁻⁵ can multiply an error by some hundred. The largest found were 7·10⁻¹⁵ and
2·10⁻⁶.
"""

import itertools
import subprocess
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import INTERVAL
from transformist.errors import InvalidValue, NotFinite, ShapeMismatch, UnknownName

try:
    import torch
except ModuleNotFoundError:
    torch = None

hosts = pytest.mark.hosts
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed (pip extra hosts)")
WITHIN = {"float64": 2.0**-39, "float32": 2.0**-15}


def tensors(d=4, d_ff=3, layers=2, biased=True, final=False, seed=0):
    """A state dict of numpy arrays."""
    rng = np.random.default_rng(seed)
    shapes = {
        "self_attn.in_proj_weight": (3 * d, d),
        "self_attn.out_proj.weight": (d, d),
        "linear1.weight": (d_ff, d),
        "linear2.weight": (d, d_ff),
        "norm1.weight": (d,),
        "norm2.weight": (d,),
    }
    if biased:
        shapes |= {
            "self_attn.in_proj_bias": (3 * d,),
            "self_attn.out_proj.bias": (d,),
            "linear1.bias": (d_ff,),
            "linear2.bias": (d,),
            "norm1.bias": (d,),
            "norm2.bias": (d,),
        }
    state = {
        f"layers.{k}.{name}": rng.normal(size=shape)
        for k in range(layers)
        for name, shape in shapes.items()
    }
    if final:
        state |= {"norm.weight": rng.normal(size=d), "norm.bias": rng.normal(size=d)}
    return state


def by_definition(state, x, heads, future=False, activation="relu", norm_first=False, eps=1e-5):
    """What PyTorch documents, over all heads at once."""

    def norm(x, name):
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + eps)
        return x * state[f"{name}.weight"] + state.get(f"{name}.bias", 0)

    def attention(x, layer):
        projected = x @ state[f"{layer}.self_attn.in_proj_weight"].T
        projected = projected + state.get(f"{layer}.self_attn.in_proj_bias", 0)
        q, k, v = projected.reshape(len(x), 3, heads, -1).transpose(1, 2, 0, 3)
        s = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        s = s - np.triu(np.full(s.shape, np.inf), 1) if future else s
        e = np.exp(s - s.max(-1, keepdims=True))
        c = (e / e.sum(-1, keepdims=True)) @ v
        joined = c.transpose(1, 0, 2).reshape(x.shape)
        out = joined @ state[f"{layer}.self_attn.out_proj.weight"].T
        return out + state.get(f"{layer}.self_attn.out_proj.bias", 0)

    def network(x, layer):
        h = x @ state[f"{layer}.linear1.weight"].T + state.get(f"{layer}.linear1.bias", 0)
        h = np.maximum(h, 0)
        return h @ state[f"{layer}.linear2.weight"].T + state.get(f"{layer}.linear2.bias", 0)

    x = np.array(x, dtype=float)
    for k in range(len({key.split(".")[1] for key in state if key.startswith("layers")})):
        layer = f"layers.{k}"
        for part, name in ((attention, f"{layer}.norm1"), (network, f"{layer}.norm2")):
            x = x + part(norm(x, name), layer) if norm_first else norm(x + part(x, layer), name)
    return norm(x, "norm") if "norm.weight" in state else x


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_it_is_the_documented_function(biased, norm_first, final, heads):
    for seed, n in enumerate((1, 2, 7)):
        state = tensors(biased=biased, final=final, seed=seed)
        x = np.random.default_rng(seed).normal(size=(n, 4))
        mask = "future" if seed % 2 else "none"
        stack = tf.read_encoder(state, heads=heads, mask=mask, norm_first=norm_first)
        expected = by_definition(state, x, heads, mask == "future", norm_first=norm_first)
        assert np.abs(stack(x) - expected).max() < WITHIN["float64"]


def test_the_numbers_are_taken_exactly():
    state = {key: value.astype(np.float32) for key, value in tensors(final=True).items()}
    stack = tf.read_encoder(state, heads=2, norm_epsilon="1/3")
    first = stack.layers[0]
    assert first.heads[1].W_K.tolist() == state["layers.0.self_attn.in_proj_weight"][6:8].tolist()
    assert stack.final_norm.epsilon == Fraction(1, 3)
    assert stack.nonzero == sum(np.count_nonzero(value) for value in state.values()) + 5
    narrow = {key: value.astype(ml_dtypes.bfloat16) for key, value in state.items()}
    read = tf.read_encoder(narrow, heads=2).layers[1].feed_forward.W_1
    assert read.tolist() == narrow["layers.1.linear1.weight"].astype(float).tolist()


def test_it_goes_on_in_every_part_of_the_library():
    stack = tf.read_encoder(tensors(final=True), heads=2)
    x = np.random.default_rng(5).normal(size=(3, 4))
    bounds = tf.activation_bounds(stack, "linf", size=4)
    assert list(bounds)[-1] == "final norm"
    for z, bound in zip(stack.streams(x), bounds.values(), strict=True):
        assert np.abs(z).max() <= bound
    balls = stack(x, "interval")
    assert np.abs(INTERVAL.numbers(balls).astype(float) - stack(x)).max() < 1e-12
    for refused in (
        lambda: tf.serial(stack, stack),
        lambda: tf.split_heads(stack),
    ):
        with pytest.raises(InvalidValue, match="a final norm, which sees every coordinate"):
            refused()


def without(key):
    state = tensors()
    del state[key]
    return state


REFUSED = {
    "a missing weight": (without("layers.1.linear1.weight"), InvalidValue, r"layers.1.linear1.wei"),
    "a missing bias": (without("layers.0.norm2.bias"), InvalidValue, r"one without layers.0.norm2"),
    "no layer": ({}, InvalidValue, "one without layers.0.linear1"),
    "a gap": (
        {key.replace("layers.1", "layers.2"): each for key, each in tensors().items()},
        InvalidValue,
        "with the unknown layers.2.linear1.bias",
    ),
    "a decoder": (
        {**tensors(), "layers.0.multihead_attn.in_proj_weight": np.ones((12, 4))},
        InvalidValue,
        "unknown layers.0.multihead_attn.in_proj_weight",
    ),
    "a norm without gain": ({**tensors(), "norm.bias": np.ones(4)}, InvalidValue, "norm.weight"),
    "other keys": ({"weight": np.ones(1)}, InvalidValue, "unknown weight"),
    "keys that are no names": ({0: np.ones(1)}, InvalidValue, "a mapping from names"),
    "no mapping": ([1], InvalidValue, "received list"),
    "a shape": (
        {**tensors(), "layers.1.linear2.weight": np.ones((3, 4))},
        ShapeMismatch,
        r"layers.1.linear2.weight: the tensor must have shape \(4, 3\) .* received shape \(3, 4\)",
    ),
    "a number": (
        {**tensors(), "layers.1.linear2.weight": np.float64(1)},
        ShapeMismatch,
        "layers.1.linear2.weight",
    ),
    "a final norm of another width": (
        {**tensors(), "norm.weight": np.ones(3)},
        ShapeMismatch,
        "norm.weight",
    ),
    "NaN": (
        {**tensors(), "layers.0.linear1.bias": np.array([0, np.nan, 0])},
        NotFinite,
        "layers.0.linear1.bias",
    ),
    "complex numbers": (
        {**tensors(), "layers.0.linear1.bias": np.ones(3) * 1j},
        InvalidValue,
        "layers.0.linear1.bias: .* received ndarray of complex128",
    ),
    "whole numbers": ({**tensors(), "norm.weight": np.ones(4, int)}, InvalidValue, "of int64"),
    "text": ({**tensors(), "norm.weight": "abc"}, InvalidValue, "received str"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_encoder_is_refused(what):
    state, refusal, words = REFUSED[what]
    with pytest.raises(refusal, match=words):
        tf.read_encoder(state, heads=2)


@pytest.mark.parametrize("heads", [0, 3, 2.0, True, "2"])
def test_heads_that_do_not_divide_the_width_are_refused(heads):
    with pytest.raises(InvalidValue, match="divides the width of the encoder, 4; received heads"):
        tf.read_encoder(tensors(), heads=heads)


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(UnknownName, match="mask"):
        tf.read_encoder(tensors(), heads=2, mask="causal")
    with pytest.raises(UnknownName, match="activation"):
        tf.read_encoder(tensors(), heads=2, activation="mish")
    with pytest.raises(InvalidValue, match="ε must be at least 0"):
        tf.read_encoder(tensors(), heads=2, norm_epsilon=-1)


def test_a_final_norm_fits_the_stream():
    norm = tf.LayerNorm(gain=[1, 1, 1])
    with pytest.raises(ShapeMismatch, match="final norm"):
        tf.LayerStack(tf.Stream(("x",)), ("x",), (), ("x",), norm)


# Against PyTorch

SETTINGS = [
    {"norm_first": norm_first, "bias": bias, "activation": activation}
    for norm_first, bias, activation in itertools.product((0, 1), (0, 1), ("relu", "gelu"))
]


def encoder(d=8, heads=2, d_ff=12, layers=2, final=False, seed=0, **settings):
    """PyTorch's module with weights that are drawn, biases and gains among them."""
    torch.manual_seed(seed)
    options = {name: bool(value) for name, value in settings.items() if name != "activation"}
    layer = torch.nn.TransformerEncoderLayer(
        d, heads, d_ff, 0.1, settings["activation"], batch_first=True, **options
    )
    norm = torch.nn.LayerNorm(d) if final else None
    module = torch.nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) / 2)
    return module


def asked(module, x, causal=False):
    """What the module gives for a list of vectors, by its plain path."""
    x = torch.tensor(x, dtype=next(module.parameters()).dtype)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(len(x)) if causal else None
    mask = None if mask is None else mask.to(x.dtype)
    with torch.enable_grad():  # else PyTorch may take a fused path, of another order
        return module(x[None], mask=mask)[0].detach().numpy()


@hosts
@needs_torch
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("heads", [1, 4])
def test_it_is_what_torch_computes(settings, heads):
    for seed, n in enumerate((1, 2, 9)):
        causal, final = bool(seed % 2), seed > 0
        module = encoder(heads=heads, final=final, seed=seed, **settings)
        x = np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32)
        for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64")):
            module = module.to(dtype)
            stack = tf.read_encoder(
                module.state_dict(),
                heads=heads,
                mask="future" if causal else "none",
                activation=settings["activation"],
                norm_first=bool(settings["norm_first"]),
            )
            far = np.abs(stack(x, name) - asked(module, x, causal)).max()
            assert far < WITHIN[name], (name, far)


@hosts
@needs_torch
def test_torch_in_float32_is_near_the_real_values():
    """Which balls enclose: the distance is torch's own."""
    module = encoder(activation="gelu", bias=1, norm_first=0)
    x = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    stack = tf.read_encoder(module.state_dict(), heads=2, activation="gelu")
    real = INTERVAL.numbers(stack(x, "interval")).astype(float)
    far = np.abs(asked(module, x) - real).max()
    assert 0 < far < WITHIN["float32"]


@hosts
@needs_torch
def test_bfloat16_tensors_are_read():
    module = encoder(activation="relu", bias=1, norm_first=0)
    wide = tf.read_encoder(module.to(torch.bfloat16).double().state_dict(), heads=2)
    narrow = tf.read_encoder(module.to(torch.bfloat16).state_dict(), heads=2)
    x = np.random.default_rng(0).normal(size=(3, 8))
    assert (wide(x) == narrow(x)).all()
    with pytest.raises(InvalidValue, match=r"norm1.weight: .* torch.complex64"):
        state = module.state_dict()
        state["layers.0.norm1.weight"] = torch.ones(8, dtype=torch.complex64)
        tf.read_encoder(state, heads=2)


def loaded(model, d_ff, causal):
    """A torch module with the weights of an encoder of ours."""
    first = model.layers[0]
    module = encoder(
        model.width,
        len(first.heads),
        d_ff,
        len(model.layers),
        activation="relu",
        bias=1,
        norm_first=0,
    ).double()
    state = {name: torch.zeros_like(value) for name, value in module.state_dict().items()}
    for number, layer in enumerate(model.layers):
        projections = [np.concatenate([getattr(h, W) for h in layer.heads]) for W in QKV]
        attention, network = layer.post_norms
        given = {
            "self_attn.in_proj_weight": np.concatenate(projections),
            "self_attn.out_proj.weight": np.concatenate([h.W_O for h in layer.heads], axis=1),
            "linear1.weight": layer.feed_forward.W_1,
            "linear1.bias": layer.feed_forward.b_1,
            "linear2.weight": layer.feed_forward.W_2,
            "linear2.bias": layer.feed_forward.b_2,
            "norm1.weight": attention.gain,
            "norm1.bias": attention.bias,
            "norm2.weight": network.gain,
            "norm2.bias": network.bias,
        }
        state |= {f"layers.{number}.{key}": torch.tensor(each) for key, each in given.items()}
    module.load_state_dict(state)
    for layer in module.layers:
        layer.norm1.eps = layer.norm2.eps = float(first.post_norms[0].epsilon)
    return module


QKV = ("W_Q", "W_K", "W_V")


@hosts
@needs_torch
@pytest.mark.parametrize("mask", ["none", "future"])
def test_the_original_transformer_is_the_same_in_torch(mask):
    for given in ({}, {"d_model": 32, "heads": 8, "layers": 3, "seed": 4}):
        model = tf.recipe("original-transformer").build(mask=mask, **given)
        module = loaded(model, 32, mask == "future")
        for x in ((3,), (1, 2, 3), (0, 15, 15, 7, 7, 7, 2)):
            embedded = model.run(x).streams[0][1]
            far = np.abs(asked(module, embedded, mask == "future") - np.array(model(x))).max()
            assert far < WITHIN["float64"]
            back = tf.read_encoder(
                module.state_dict(),
                heads=len(model.layers[0].heads),
                mask=mask,
                norm_epsilon=model.layers[0].post_norms[0].epsilon,
            )
            assert (back(embedded) == np.array(model(x))).all()


@hosts
@needs_torch
def test_reading_an_encoder_does_not_import_torch():
    code = (
        "import sys, numpy as np, transformist as tf\n"
        "gain, one = np.ones(1), np.ones((1, 1))\n"
        "names = {'self_attn.in_proj_weight': np.ones((3, 1)), 'self_attn.out_proj.weight': one,\n"
        "  'linear1.weight': one, 'linear2.weight': one, 'norm1.weight': gain,\n"
        "  'norm2.weight': gain}\n"
        "tf.read_encoder({f'layers.0.{k}': v for k, v in names.items()}, heads=1)\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
