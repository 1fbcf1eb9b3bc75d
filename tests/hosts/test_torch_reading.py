"""Modules of PyTorch read back: those of our own making, and encoders."""

import numpy as np
import pytest
from drawn_models import drawn, strings

import transformist as tf
from transformist.errors import InvalidValue, NotFinite, ShapeMismatch
from transformist.hosts.named_arrays import named_arrays
from transformist.programs import PROGRAMS

torch = pytest.importorskip("torch", reason="torch is not installed (pip extra torch)")
from torch.nn.utils import prune  # noqa: E402

pytestmark = pytest.mark.hosts
nn = torch.nn


@pytest.mark.parametrize(
    "drawing", [{}, {"norms": "pre"}, {"norms": "post"}, {"norms": "selecting"}, {"several": True}]
)
def test_a_module_comes_back_with_its_weights(drawing):
    model = drawn(seed=31, **drawing)
    module = tf.to_torch(model)
    torch.manual_seed(0)
    for each in module.parameters():
        each.data += torch.randn_like(each) / 8
    changed = tf.from_torch(module)
    arrays, state = named_arrays(changed, "float64"), module.state_dict()
    assert {*arrays} == {*state}
    assert all(np.array_equal(arrays[name], each.numpy()) for name, each in state.items())
    inputs = strings("ab")
    found = [np.asarray(each) for each in changed.values(inputs)]
    for x, values in zip(inputs, found, strict=True):
        expected = module(module.encode(x)).logits[0].detach().numpy()[model.rows_read(len(x))]
        assert values == pytest.approx(expected, rel=0, abs=2.0**-36), x


def test_margins_of_other_weights_are_not_claimed():
    model = tf.compile(PROGRAMS["dyck-1"], max_length=8)
    assert model.built_for is not None
    assert tf.from_torch(tf.to_torch(model, "float32")).built_for is None


ENCODERS = {
    "as PyTorch makes it": {},
    "pre-norm": {"norm_first": True},
    "gelu": {"activation": "gelu"},
    "a GELU by tanh": {"activation": nn.GELU("tanh")},
    "a large epsilon": {"layer_norm_eps": 0.25},
    "one head": {"nhead": 1},
}


@pytest.mark.parametrize("what", ENCODERS)
@pytest.mark.parametrize("mask", ["none", "future"])
def test_an_encoder_computes_the_same(what, mask):
    torch.manual_seed(1)
    given = {"nhead": 2, "dim_feedforward": 6, "batch_first": True, "dropout": 0.5}
    layer = nn.TransformerEncoderLayer(4, **{**given, **ENCODERS[what]}, dtype=torch.float64)
    encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False).eval()
    for each in encoder.parameters():
        each.data = torch.randn_like(each)
    x = torch.randn((3, 5, 4), dtype=torch.float64)
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    # With gradients PyTorch does not take its fast path, which has one form of GELU only.
    expected = encoder(x, mask=None if mask == "none" else causal).detach().numpy()
    found = tf.from_torch(encoder, mask=mask)
    for one, other in zip(x.numpy(), expected, strict=True):
        assert found(one) == pytest.approx(other, rel=0, abs=2.0**-36)


def encoder(change=lambda e: None, **settings):
    layer = nn.TransformerEncoderLayer(4, **{"nhead": 2, "dim_feedforward": 6, **settings})
    made = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
    change(made)
    return made


def decoder(d=4, **settings):
    layer = nn.TransformerDecoderLayer(d, **{"nhead": 2, "dim_feedforward": 6, **settings})
    made = nn.TransformerDecoder(layer, num_layers=2, norm=nn.LayerNorm(d))
    for each in made.parameters():
        each.data = torch.randn_like(each)
    return made.double().eval()


@pytest.mark.parametrize(
    "settings", [{}, {"norm_first": True}, {"bias": False}, {"activation": "gelu", "nhead": 4}]
)
@pytest.mark.parametrize("mask", ["none", "future"])
def test_a_decoder_computes_the_same_on_equal_vectors_of_memory(settings, mask):
    torch.manual_seed(2)
    module = decoder(batch_first=True, **settings)
    x, m = torch.randn((3, 5, 4), dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    for memory in (m, m.expand(3, 4), torch.zeros(1, 4)):
        given = memory.double().reshape(1, -1, 4).expand(3, -1, 4)
        expected = module(x, given, tgt_mask=None if mask == "none" else causal).detach().numpy()
        found = tf.from_torch(module, mask=mask, memory=memory)
        for one, other in zip(x.numpy(), expected, strict=True):
            assert found(one) == pytest.approx(other, rel=0, abs=2.0**-34)


@pytest.mark.parametrize(
    ("memory", "error", "message"),
    [
        (None, InvalidValue, r"must be given with the memory .* give memory=torch.zeros\(d\)"),
        (torch.eye(4), InvalidValue, "one vector, or equal ones.* received 4 vectors that differ"),
        (torch.zeros(3), ShapeMismatch, r"shape \(4,\) or \(n, 4\).* received shape \(3,\)"),
        ([0.0, 0.0], ShapeMismatch, r"received shape \(2,\)"),
        (torch.zeros(0, 4), ShapeMismatch, r"received shape \(0, 4\)"),
        ("zeros", InvalidValue, "memory: .* received str"),
        (torch.full((4,), torch.nan), NotFinite, "memory"),
    ],
)
def test_a_memory_that_is_not_one_vector_is_refused(memory, error, message):
    with pytest.raises(error, match=message):
        tf.from_torch(decoder(), memory=memory)


def test_memory_is_for_decoders():
    with pytest.raises(InvalidValue, match="for an nn.TransformerDecoder only"):
        tf.from_torch(encoder(), memory=torch.zeros(4))
    for given in ({"memory": torch.zeros(4)}, {"mask": "future"}):
        with pytest.raises(InvalidValue, match="for modules of torch.nn only"):
            tf.from_torch(tf.to_torch(drawn()), **given)


def doubled(_module, _given, result):
    return 2 * result


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda m: prune.identity(m.read_out, "W_out"), "read_out.W_out"),
        (lambda m: setattr(m.layers[0], "feed_forward", None), "layers.0.feed_forward.W_1"),
    ],
)
def test_a_module_without_one_of_its_weights_is_refused(change, name):
    module = tf.to_torch(drawn())
    change(module)
    with pytest.raises(InvalidValue, match=f"from_torch: .* received one without {name}"):
        tf.from_torch(module)


class Doubled(nn.TransformerEncoderLayer):
    """A layer with the same weights and another network."""

    def _ff_block(self, x):
        return 2 * super()._ff_block(x)


def replaced(path, base, **methods):
    """A change that makes a part of a stack one of a subclass, with the same weights."""

    def change(stack):
        part = stack.get_submodule(path)
        part.__class__ = type("Replaced", (base,), methods)

    return change


def set_on(path, name):
    """A change that replaces a method of a part on the object itself."""

    def change(stack):
        part = stack.get_submodule(path)
        own = getattr(part, name)
        setattr(part, name, lambda *given, **more: own(*given, **more) * 2)

    return change


def twice(self, *given, **more):
    """The function of the class below, times 2."""
    return 2 * super(type(self), self).forward(*given, **more)


@pytest.mark.parametrize("make", [encoder, decoder])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (replaced("layers.1.self_attn", nn.MultiheadAttention, forward=twice), "attention"),
        (replaced("layers.1.linear1", nn.Linear, forward=twice), "linear map"),
        (replaced("layers.0.self_attn.out_proj", nn.Linear, forward=twice), "linear map"),
        (replaced("layers.1.dropout", nn.Dropout, __call__=twice), "dropout"),
        (lambda e: setattr(e.layers[1], "dropout", nn.Tanh()), "dropout"),
        (set_on("layers.0", "_ff_block"), "layer"),
        (set_on("layers.1.norm2", "forward"), "norm"),
        (set_on("", "forward"), "the stack"),
    ],
)
def test_a_part_that_computes_something_else_is_refused(make, change, what):
    memory = {} if make is encoder else {"memory": torch.zeros(4)}
    module = make()
    tf.from_torch(module, **memory)
    change(module)
    with pytest.raises(InvalidValue, match=f"{what} must compute as nn"):
        tf.from_torch(module, **memory)


def test_a_stack_that_runs_its_layers_twice_is_refused():
    for base, memory in ((nn.TransformerEncoder, None), (nn.TransformerDecoder, torch.zeros(4))):
        made = (encoder if memory is None else decoder)()
        made.__class__ = type("Twice", (base,), {"forward": twice})
        with pytest.raises(InvalidValue, match=f"the stack must compute as nn.{base.__name__} do"):
            tf.from_torch(made, memory=memory)


def test_a_subclass_that_computes_the_same_is_read():
    class Named(nn.TransformerEncoder):
        """An encoder with another constructor and a method of its own."""

        def __init__(self, layer):
            super().__init__(layer, 2)

        def named(self):
            return "own"

    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    layer.dropout = nn.Identity()
    assert tf.from_torch(Named(layer)).width == 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(2, 2), "received Linear"),
        (lambda: encoder(activation=torch.tanh), "relu or gelu"),
        (lambda: encoder(lambda e: setattr(e, "norm", nn.RMSNorm(4))), "nn.LayerNorm"),
        (lambda: encoder(lambda e: setattr(e.layers[1], "norm_first", True)), "same settings"),
        (lambda: encoder(lambda e: setattr(e.layers[1].norm2, "eps", 1.0)), "same settings"),
        (
            lambda: encoder(lambda e: setattr(e.layers[1].self_attn, "add_zero_attn", True)),
            "add_zero_attn=False",
        ),
        (
            lambda: encoder(lambda e: setattr(e.layers[1], "__class__", Doubled)),
            "each layer must compute as nn.TransformerEncoderLayer does; received Doubled",
        ),
        (
            lambda: encoder(lambda e: e.layers[1].linear2.register_forward_hook(doubled)),
            "no forward hooks.* on layers.1.linear2",
        ),
        (lambda: encoder(lambda e: e.to(torch.complex64)), "must be real numbers"),
        (lambda: encoder(lambda e: e.to("meta")), "on a device that holds them; received .* meta"),
        (lambda: tf.to_torch(drawn()).to("meta"), "on a device that holds them; received .* meta"),
    ],
)
def test_what_is_not_read_is_refused(make, message):
    with pytest.raises(InvalidValue, match=message):
        tf.from_torch(make())


def test_weights_that_are_no_numbers_are_refused():
    module = tf.to_torch(drawn())
    module.read_out.b_out.data[0] = float("nan")
    with pytest.raises(NotFinite):
        tf.from_torch(module)
