"""Models as modules of PyTorch, against the reference evaluation of the same weights."""

import copy
import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from drawn_models import CASES, drawn, of_every_length, on_strings, strings, uniform

import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import (
    InputTooLong,
    InvalidValue,
    NotFinite,
    ShapeMismatch,
    UndefinedValue,
    UnknownName,
    UnknownSymbol,
)
from transformist.hosts.named_arrays import answer_from
from transformist.hosts.plain_values import encoded
from transformist.model.feed_forward import ACTIVATIONS, PLAIN_ACTIVATIONS
from transformist.programs import PROGRAMS

torch = pytest.importorskip("torch", reason="torch is not installed (pip extra torch)")
from transformist.hosts import torch_module  # noqa: E402

pytestmark = pytest.mark.hosts

# Both sides round each operation of some hundred to 2⁻⁵³ or 2⁻²⁴; numbers here are below 100.
WITHIN = {"float64": 2.0**-36, "float32": 2.0**-9}


def agree(model, inputs, dtype="float64"):
    """Compare values read out and answers, all inputs in one padded batch."""
    module = tf.to_torch(model, dtype)
    with torch.no_grad():
        logits = module(*module.encode_batch(inputs)).logits.double().numpy()
    for x, row, expected in zip(inputs, logits, model.values(inputs, dtype), strict=True):
        wanted = np.asarray(expected, float)
        # Products of drawn numbers, as in gated units, may be larger than 100.
        within = WITHIN[dtype] * max(1, np.abs(wanted).max(initial=0) / 100)
        assert row[model.rows_read(len(x))] == pytest.approx(wanted, rel=0, abs=within), x
    assert module.answers(inputs) == model.answers(inputs, dtype)


@pytest.mark.parametrize("dtype", WITHIN)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_answer_as_in_the_reference(name, dtype):
    model = tf.compile(PROGRAMS[name], max_length=12)
    module = tf.to_torch(model, dtype)
    inputs = strings(model.alphabet) + of_every_length(model.alphabet, 12)
    assert module.answers(inputs) == model.answers(inputs, dtype)


@pytest.mark.parametrize("weighting", ["average-hard", "rightmost-hard"])
@pytest.mark.parametrize("name", ["reverse", "induction-most-recent", "contains-abc"])
def test_programs_with_hard_attention_answer_as_in_the_reference(name, weighting):
    model = tf.compile(PROGRAMS[name], max_length=12, weighting=weighting)
    agree(model, strings(model.alphabet))


@pytest.mark.parametrize("name", on_strings())
def test_recipes_answer_as_in_the_reference(name):
    recipe = tf.recipe(name)
    has_n = "max_length" in recipe.parameters
    model = recipe.build(**({"max_length": 16} if has_n else {}))
    given = strings(model.alphabet) + of_every_length(model.alphabet, 16)
    inputs = [x for x in given if len(x) or model.embedding.front]
    module = tf.to_torch(model, max_length=64)
    found, expected = module.answers(inputs), model.answers(inputs)
    for x, one, other in zip(inputs, found, expected, strict=True):
        assert numbers_of(one) == pytest.approx(numbers_of(other), abs=1e-9), x


def numbers_of(answer):
    """Probabilities and numbers, which are compared up to rounding, or the answer itself."""
    if isinstance(answer, dict):
        return {str(key): value for key, value in answer.items()}
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        return [value for each in answer for value in each.values()]
    return np.asarray(answer, float) if isinstance(answer, list) and has_numbers(answer) else answer


def has_numbers(answer):
    return np.asarray(answer).dtype.kind == "f"


@pytest.mark.parametrize(("mask", "weighting"), CASES)
def test_drawn_models_agree(mask, weighting):
    agree(drawn(mask, weighting, seed=1), strings("ab"))


@pytest.mark.parametrize("norms", ["pre", "post", "selecting"])
def test_norms_agree(norms):
    agree(drawn(norms=norms, seed=2), strings("ab"))


def test_several_outputs_agree():
    agree(drawn(several=True, seed=8), strings("ab"))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_agree(activation):
    agree(drawn(activation=activation, seed=3), strings("ab"), "float32")


@pytest.mark.parametrize("at", ["last", "cls"])
def test_read_outs_at_one_position_agree(at):
    agree(drawn(at=at, back=("CLS", "EOS"), positions=False, seed=4), strings("ab"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_formats_decide_as_the_reference_does(dtype):
    model = tf.compile(PROGRAMS["dyck-1"], max_length=5, arithmetic=dtype)
    module = tf.to_torch(model, dtype)
    inputs = strings("()", longest=5, most=63)[:63]
    assert module.dtype is getattr(torch, dtype)
    assert module.answers(inputs) == model.answers(inputs, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_equal_rows_have_equal_vectors_in_every_place(activation, dtype):
    """A matrix product of BLAS, `gelu` and `sigmoid` have other instructions for the last rows."""
    norm = tf.LayerNorm(gain=np.ones(51), epsilon=1e-5)
    module, seen = tf.to_torch(uniform(activation, norm), dtype), []
    module.layers[1].heads[0].weighting.register_forward_hook(lambda *each: seen.append(each[-1]))
    for n in (2, 5, 13, 30):
        found = module(torch.zeros((1, n), dtype=torch.int64)).logits[0]
        assert torch.equal(found, found[:1].expand_as(found)) and found.isfinite().all()
        assert torch.equal(seen[-1], torch.full((1, n, n), 1 / n, dtype=module.dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("activation", PLAIN_ACTIVATIONS)
def test_activations_take_every_place_alike(activation, dtype):
    function = torch_module.ACTIVATIONS[activation]
    for each in np.random.default_rng(4).normal(size=200) * 3:
        one, *more = (
            function(torch.full((n,), each, dtype=getattr(torch, dtype))) for n in (1, 5, 13, 33)
        )
        assert all(torch.equal(found, one.expand_as(found)) for found in more), each


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_are_rounded_as_in_the_reference(activation, dtype):
    a = number_system(dtype)
    x = a.array((np.random.default_rng(3).normal(size=500) * 8).tolist())
    expected = ACTIVATIONS[activation](x, a)
    given = torch.tensor(a.numbers(x), dtype=getattr(torch, dtype))
    found = torch_module.ACTIVATIONS[activation](given)
    # An entry may round to the neighbour where libraries differ in the last bit of float64.
    assert (found.double().numpy() != a.numbers(expected)).sum() <= 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("activation", PLAIN_ACTIVATIONS)
def test_gradients_are_finite_where_an_exponential_overflows(activation, dtype):
    x = torch.tensor([-500.0, -60, -8, 0, 8, 30], dtype=getattr(torch, dtype), requires_grad=True)
    torch_module.ACTIVATIONS[activation](x).sum().backward()
    slope = 0 if activation in ("sigmoid", "tanh") else 1
    assert x.grad.isfinite().all()
    assert x.grad[-2:].tolist() == pytest.approx([slope, slope], abs=2.0**-7)


def test_padding_may_stand_anywhere_and_hold_anything():
    model = drawn("future", "softmax", seed=6, norms="pre")
    module, x = tf.to_torch(model), "abba"
    ids = module.encode(x)
    padded = torch.tensor([[-100, ids[0, 0], 99, *ids[0, 1:], -100]])
    is_padding = (padded == -100) | (padded == 99)
    output = module(padded, padding_mask=is_padding)
    # The sums are longer by zeros, and so are taken in another order.
    assert torch.allclose(
        output.logits[:, ~is_padding[0]], module(ids).logits, rtol=0, atol=2.0**-40
    )
    assert not output.vectors[:, is_padding[0]].any()


@pytest.mark.parametrize("name", ["reverse", "histogram", "sort"])
def test_padding_between_tokens_changes_no_decision(name):
    """Positions and masks are those of the tokens alone, also under hard attention."""
    model = tf.compile(PROGRAMS[name], max_length=12, weighting="average-hard")
    module = tf.to_torch(model)
    for x in of_every_length(model.alphabet, 12):
        ids = module.encode(x)
        holes = torch.tensor([0, 5, -1] * 13)[: 2 * ids.shape[1] + 1][None].clone()
        holes[:, 1::2] = ids
        is_padding = torch.arange(holes.shape[1])[None] % 2 == 0
        logits = module(holes, padding_mask=is_padding).logits[0, 1::2].detach().numpy()
        assert answer_from(model, logits, len(x), "float64") == model(x)


def test_an_empty_input_has_an_answer_where_nothing_is_added():
    model = tf.compile(PROGRAMS["fraction-of-previous"], max_length=8)
    assert not model.embedding.front
    assert tf.to_torch(model).answer("") == model("")


def test_a_norm_without_epsilon_lets_no_padding_through():
    norm = tf.LayerNorm(gain=[1, 1])
    head = tf.Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0], [0, 1]])
    model = tf.Transformer(
        stream=tf.Stream(("p", "q")),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=[[3, 1], [1, 2]]),
        layers=(tf.Layer((head,), pre_norms=(norm, None)),),
        read_out=tf.RealVector(W_out=[[1, 0], [0, 1]], at="every"),
    )
    module = tf.to_torch(model)
    output = module(*module.encode_batch(["ab", "abab"]))
    assert torch.isfinite(output.logits).all()
    output.logits.sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in module.parameters())


def test_streams_have_the_numbers_of_the_trace_by_name():
    model = tf.compile(PROGRAMS["histogram"], max_length=8)
    module, trace = tf.to_torch(model), model.run("abca")
    output = module(module.encode("abca"), return_streams=True)
    assert list(output.streams) == [name for name, _ in trace.streams]
    for after, slots in enumerate(output.streams.values()):
        assert "nothing" not in slots
        for name, column in slots.items():
            held = next((s for s in model.stream.spans if s.name == name), None)
            slot = held.slot if held else model.stream.index(name)
            expected = trace.streams[after][1][:, slot]
            assert column[0].detach().numpy() == pytest.approx(expected, abs=2.0**-40)
    assert module(module.encode("abca")).streams is None


def test_the_state_dict_has_the_names_of_a_saved_file():
    for model in (drawn(norms="pre"), drawn(norms="selecting"), tf.compile(PROGRAMS["sort"])):
        tensors = {}
        encoded(model, "", tensors)
        state = tf.to_torch(model).state_dict()
        assert {name: tuple(each.shape) for name, each in state.items()} == {
            name: each.shape for name, each in tensors.items()
        }
        module = tf.to_torch(model, "float32").double()
        module.load_state_dict({name: torch.tensor(each) for name, each in tensors.items()})
        assert all(torch.equal(module.state_dict()[name], each) for name, each in state.items())


def test_a_table_of_positions_is_a_parameter():
    stream = tf.Stream(("p",))
    model = tf.Transformer(
        stream=stream,
        embedding=tf.Embedding(
            symbols=("a", "b"),
            vectors=[[1], [2]],
            positions=tf.PositionTable(vectors=[[8], [4], [-7]]),
        ),
        layers=(),
        read_out=tf.RealVector(W_out=[[1]], at="every"),
    )
    module = tf.to_torch(model)
    assert "embedding.positions.vectors" in dict(module.named_parameters())
    assert module.answers(["a", "bab"]) == model.answers(["a", "bab"])
    for call in (
        lambda: module(torch.zeros((1, 4), dtype=torch.int64)),
        lambda: module.answer("abab"),
    ):
        with pytest.raises(InputTooLong, match="at most N = 3; received length 4"):
            call()


def test_sinusoids_need_a_longest_input():
    embedding = tf.Embedding(
        symbols=("a", "BOS"), vectors=[[1, 0], [0, 1]], positions=tf.Sinusoids(2), front=("BOS",)
    )
    read_out = tf.RealVector(W_out=[[1, 0], [0, 1]], at="every")
    model = tf.Transformer(
        stream=tf.Stream(("p", "q")), embedding=embedding, layers=(), read_out=read_out
    )
    with pytest.raises(InvalidValue, match="max_length=512"):
        tf.to_torch(model)
    module = tf.to_torch(model, max_length=3)
    assert module.answers(["", "aaa"]) == model.answers(["", "aaa"])
    with pytest.raises(InputTooLong, match=r"N = 3; .* 4; call tf.to_torch\(model, max_length=4\)"):
        module.answer("aaaa")


def test_gradients_are_those_of_the_function():
    module = tf.to_torch(drawn("future", seed=7, norms="pre", activation="gelu"))
    ids, lengths = module.encode_batch(["ab", "b"])
    weight = module.layers[0].heads[0].W_Q

    def values(W):
        replaced = {"layers.0.heads.0.W_Q": W}
        return torch.func.functional_call(module, replaced, (ids, lengths)).logits

    assert torch.autograd.gradcheck(values, (weight.detach().clone().requires_grad_(),))


def test_a_hook_ablates_a_head():
    model = tf.compile(PROGRAMS["dyck-1"], max_length=8)
    module = tf.to_torch(model)
    head = module.layers[0].heads[0]
    with_head = module(module.encode("(()")).logits
    hook = head.register_forward_hook(lambda _module, _inputs, output: torch.zeros_like(output))
    assert not torch.equal(module(module.encode("(()")).logits, with_head)
    hook.remove()
    assert torch.equal(module(module.encode("(()")).logits, with_head)


def test_modules_are_copied_and_saved():
    module = tf.to_torch(drawn())
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for other in (copy.deepcopy(module), torch.load(file, weights_only=False)):
        assert other.answer("abab") == module.answer("abab")


def short(mask, weighting, **drawing):
    """A drawn model of one layer with one head: a graph takes seconds for each head."""
    model = drawn(mask, weighting, **drawing)
    first = model.layers[0]
    return replace(model, layers=(replace(first, heads=first.heads[:1]),))


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["softmax", "rightmost-hard"])
def test_torch_export_gives_the_same(weighting):
    """At other sizes than those of the example, and NaN alone for what the module refuses."""
    module = tf.to_torch(replace(short("future", weighting, norms="pre"), max_length=7))
    ids, lengths = module.encode_batch(["abab", "b"])
    batch, rows = torch.export.Dim("batch"), torch.export.Dim("rows")
    shapes = {"token_ids": {0: batch, 1: rows}, "lengths": {0: batch}}
    exported = torch.export.export(module, (ids, lengths), dynamic_shapes=shapes).module()
    longer = module.encode_batch(["abbabba", "a", ""])
    # A graph takes the sum of a linear map in another order.
    near = {"rtol": 0, "atol": 2.0**-40}
    assert torch.allclose(exported(*longer).logits, module(*longer).logits, **near)
    refused = torch.tensor([[2, 0] * 5, [2, 9] * 5, [2, -1] * 5, [2, 0] * 5, [2, 0] * 5])
    counts = torch.tensor([9, 4, 4, 4, -1])
    found = exported(refused, counts)
    assert found.logits.isnan().all((1, 2)).tolist() == [True, True, True, False, True]
    assert found.vectors[:, :, 0].isnan().any(1).tolist() == [True, True, True, False, True]
    expected = module(refused[3:4], counts[3:4]).logits
    assert torch.allclose(found.logits[3:4, :4], expected[:, :4], **near)


# Without this option, the compiler skips the roundings of half formats between operations.
KEEPS_ROUNDINGS = {"emulate_precision_casts": True}


@pytest.mark.slow
def test_compiled_activations_are_those_of_the_module():
    """All in one kernel. A constant that is not rounded to the format changes two of them."""
    rng = np.random.default_rng(9)
    given = [
        torch.tensor(rng.normal(size=64) * 4, dtype=getattr(torch, dtype))
        for dtype in ("float64", "float32", "float16", "bfloat16")
    ]

    def every(given):
        return [f(x) for f in torch_module.ACTIVATIONS.values() for x in given]

    for found, expected in zip(
        torch.compile(every, options=KEEPS_ROUNDINGS)(given), every(given), strict=True
    ):
        if found.dtype in (torch.float16, torch.bfloat16):
            assert torch.equal(found, expected)
        else:
            # The last bits of erfc, tanh and exp may differ; x/2 (1 + tanh) then changes by u |x|/4
            # where it is itself smaller. Numbers are below 16.
            u = torch.finfo(found.dtype).eps
            assert torch.allclose(found, expected, rtol=64 * u, atol=4 * u)


@pytest.mark.slow
@pytest.mark.parametrize("activation", PLAIN_ACTIVATIONS)
def test_exported_activations_are_those_of_the_module(activation):
    class Activation(torch.nn.Module):
        def forward(self, x):
            return torch_module.ACTIVATIONS[activation](x)

    x = torch.linspace(-9, 9, 64)
    rows = {"x": {0: torch.export.Dim("rows")}}
    exported = torch.export.export(Activation(), (x,), dynamic_shapes=rows).module()
    for each in (x, x[:5]):
        assert torch.equal(exported(each), torch_module.ACTIVATIONS[activation](each))


@pytest.mark.slow
def test_a_compiled_module_keeps_the_roundings_and_refuses_with_nan():
    """In a half format, with hard attention to scores that tie in the format alone."""
    model = replace(short("none", "average-hard", seed=3, grid=7), max_length=9)
    model = replace(model, layers=(replace(model.layers[0], feed_forward=None),))
    module = tf.to_torch(model, "bfloat16")
    compiled = torch.compile(module, dynamic=True, options=KEEPS_ROUNDINGS)
    refused = torch.tensor([[2, *[0] * 10], [2, *[5] * 10]]), torch.tensor([11, 4])
    with torch.no_grad():
        for inputs in (strings("ab"), ["abab", "b", ""]):
            given = module.encode_batch(inputs)
            assert torch.equal(compiled(*given).logits, module(*given).logits)
        assert compiled(*refused).logits.isnan().all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m(m.encode("ab")[0]), ShapeMismatch, "token_ids must have shape"),
        (lambda m: m(m.encode("ab").double()), InvalidValue, "whole numbers; received torch.flo"),
        (lambda m: m([[2, 0, 1]]), InvalidValue, "token_ids must be a tensor .* received list"),
        (lambda m: m(m.encode("ab")[:, :0]), ShapeMismatch, r"at least one row.*shape \(1, 0\)"),
        (
            lambda m: m(torch.tensor([[2, 0], [2, 3]])),
            InvalidValue,
            "0 to 2; received 3 in input 1",
        ),
        (lambda m: m(torch.tensor([[2, -1]])), InvalidValue, "0 to 2; received -1 in input 0"),
        (lambda m: m(m.encode("ab").to("meta")), InvalidValue, "on the device of the module, cpu"),
        (lambda m: m(m.encode("ab"), torch.tensor([1, 2])), ShapeMismatch, "lengths"),
        (
            lambda m: m(m.encode("ab"), torch.tensor([4])),
            InvalidValue,
            "number of rows, 3; rec.* 4",
        ),
        (lambda m: m(m.encode("ab"), torch.tensor([-1])), InvalidValue, "number of rows, 3; .* -1"),
        (lambda m: m(m.encode("ab"), torch.tensor([3.0])), InvalidValue, "lengths must be a tenso"),
        (lambda m: m(m.encode("ab"), [3]), InvalidValue, "lengths must be .* received list"),
        (
            lambda m: m(m.encode("ab"), padding_mask=torch.zeros(1, 2) > 0),
            ShapeMismatch,
            "padding_mask",
        ),
        (
            lambda m: m(m.encode("ab"), padding_mask=torch.ones_like(m.encode("ab"))),
            InvalidValue,
            "padding_mask must be a tensor of True or False; received torch.int64",
        ),
        (
            lambda m: m(m.encode("ab"), torch.tensor([3]), m.encode("ab") == 0),
            InvalidValue,
            "padding must be given once",
        ),
        (lambda m: m.encode("abc"), UnknownSymbol, "c"),
        (lambda m: m.encode_batch([]), InvalidValue, "at least one input"),
        (lambda m: m.answers(5), InvalidValue, "a list of strings.* received 5"),
        (lambda m: m.answers("abc"), InvalidValue, r"received 'abc'; .*: answers\(\['abc'\]\)"),
        (lambda m: m.encode_batch("a"), InvalidValue, r"'a'; .* encode_batch\(\['a'\]\)"),
        (lambda m: m.answers(np.array("a")), InvalidValue, "a list of strings.* received array"),
        (lambda m: m.answer(np.array("a")), InvalidValue, "a string, or a sequence of .* array"),
        (lambda m: m.answer(torch.tensor(1)), InvalidValue, r"a sequence of .* tensor\(1\)"),
        (lambda m: m.to("meta").answer("ab"), InvalidValue, "holds its weights; received meta"),
        (
            lambda m: (m := m.to("meta"))(m.encode("ab")),
            InvalidValue,
            "holds its weights; received meta.*to_torch",
        ),
        (lambda m: m.load_state_dict({}), InvalidValue, "one without embedding.vectors, lay.*, …"),
        (lambda m: m.load_state_dict([]), InvalidValue, "a mapping from names to tensors"),
        (
            lambda m: m.load_state_dict({**m.state_dict(), "W": torch.zeros(1)}),
            InvalidValue,
            "one with the unknown W; give",
        ),
        (
            lambda m: m.load_state_dict({**m.state_dict(), "read_out.b_out": torch.zeros(2)}),
            ShapeMismatch,
            r"read_out.b_out must have shape \(3,\); received \(2,\)",
        ),
        (
            lambda m: m.load_state_dict({n: w + 0j for n, w in m.state_dict().items()}),
            InvalidValue,
            "must be a dense tensor of real numbers; received torch.complex128",
        ),
        (
            lambda m: m.load_state_dict({n: w.to_sparse() for n, w in m.state_dict().items()}),
            InvalidValue,
            "must be a dense tensor of real numbers; received torch.float64, torch.sparse_coo",
        ),
        (
            lambda m: m.load_state_dict(
                {n: w.long() for n, w in m.state_dict().items()}, assign=True
            ),
            InvalidValue,
            "must be a dense tensor of real numbers; received torch.int64",
        ),
        (
            lambda m: m.load_state_dict({n: w.to("meta") for n, w in m.state_dict().items()}),
            InvalidValue,
            "on meta",
        ),
        (lambda m: tf.to_torch(m), InvalidValue, "Transformer"),
        (lambda m: tf.to_torch(m.model, "int8"), UnknownName, "int8"),
        (lambda m: tf.to_torch(m.model, max_length="8"), InvalidValue, "max_length .* '8'"),
        (lambda m: tf.to_torch(m.model, max_length=2.5), InvalidValue, "max_length .* 2.5"),
        (lambda m: tf.to_torch(m.model, max_length=True), InvalidValue, "max_length .* True"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(tf.to_torch(drawn()))


def test_a_position_divided_by_no_length_is_refused():
    """As the reference does; W_out of an infinite position would be an answer."""
    embedding = tf.Embedding(
        symbols=("a", "EOS"),
        vectors=[[1, 1], [1, 1]],
        positions=tf.PositionFunctions(("1", "i/n")),
        back=("EOS",),
    )
    model = tf.Transformer(
        stream=tf.Stream(("p", "q")),
        embedding=embedding,
        layers=(),
        read_out=tf.Binary(W_out=[[1, 1]]),
    )
    module = tf.to_torch(model)
    assert module.answers(["a", "aa"]) == model.answers(["a", "aa"])
    for call in (lambda: model(""), lambda: module.answer(""), lambda: module.answers(["a", ""])):
        with pytest.raises(UndefinedValue, match="n = 0|the empty input"):
            call()


def test_tokens_and_lengths_of_8_bits_are_compared_as_whole_numbers():
    """PyTorch wraps 301 to 45 in a comparison with a tensor of uint8."""
    some = tf.program(alphabet=list(range(300)))(lambda x: (x == 3).any().accept())
    module = tf.to_torch(tf.compile(some, max_length=300))
    ids = torch.full((1, 290), 250, dtype=torch.uint8)
    expected = module(ids.long(), torch.tensor([100])).logits
    for dtype in (torch.uint8, torch.int8):
        assert torch.equal(module(ids, torch.tensor([100], dtype=dtype)).logits, expected)


def test_a_generator_is_a_batch():
    module = tf.to_torch(drawn())
    assert module.answers(x for x in ("ab", "b")) == module.answers(["ab", "b"])


def test_inputs_longer_than_n_are_refused():
    module = tf.to_torch(tf.compile(PROGRAMS["dyck-1"], max_length=3))
    ids = torch.tensor([[2, 0, 0, 0, 1], [2, 0, 1, 0, 1]])
    for call in (
        lambda: module.answer("((()"),
        lambda: module.encode_batch(["(", "((()"]),
        lambda: module(ids[:1]),
        lambda: module(ids, torch.tensor([4, 5])),
        lambda: module(ids, padding_mask=ids == 7),
    ):
        with pytest.raises(InputTooLong, match="at most N = 3; received length 4"):
            call()
    assert module(ids, torch.tensor([4, 1])).logits.isfinite().all()


def test_a_state_dict_may_be_loaded_in_part():
    module = tf.to_torch(drawn())
    found = module.load_state_dict({"read_out.b_out": torch.ones(3), "W": 0}, strict=False)
    assert found.unexpected_keys == ["W"] and "read_out.W_out" in found.missing_keys
    assert module.state_dict()["read_out.b_out"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_linear_maps_have_the_bits_of_the_reference(dtype):
    a, rng = number_system(dtype), np.random.default_rng(7)
    for rows, d_in, d_out in ((1, 1, 3), (9, 20, 20), (3, 500, 7)):
        # Numbers of very different sizes, whose sum depends on the order.
        x, W, b = (
            a.array(rng.normal(size=shape) * 10.0 ** rng.integers(-2, 3, shape))
            for shape in ((2, rows, d_in), (d_out, d_in), (d_out,))
        )
        given = [torch.tensor(a.numbers(each), dtype=getattr(torch, dtype)) for each in (x, W, b)]
        found = torch_module._affine(*given).double().numpy()
        assert np.array_equal(found, a.numbers(a.affine(x, W, b)))


def test_a_linear_map_does_not_hold_its_products():
    """Tensors beyond four of the size of the result, or products kept for the gradient."""
    x, W = torch.randn(1, 100, 200), torch.randn(200, 200)
    kept = []
    count = lambda each: kept.append(each.numel())  # noqa: E731
    with torch.autograd.graph.saved_tensors_hooks(count, lambda each: each):
        torch_module._affine(x.requires_grad_(), W.requires_grad_())
    assert sum(kept) <= x.numel() + W.numel()
    with torch.profiler.profile(profile_memory=True) as profile:
        torch_module._affine(x, W)
    size, held, most = 4 * x.numel(), 0, 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    assert size <= most <= 4 * size


def test_derivatives_of_a_linear_map():
    x, W = (torch.randn(shape, dtype=torch.float64) for shape in ((2, 3, 4), (5, 4)))
    given = (x.requires_grad_(), W.requires_grad_())
    assert torch.autograd.gradcheck(torch_module._affine, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(torch_module._affine, given)
    several = torch.stack([W.detach(), 2 * W.detach()])
    found = torch.func.vmap(lambda each: torch_module._affine(x, each))(several)
    assert torch.equal(found[1], torch_module._affine(x, 2 * W))
    rows = torch.func.vmap(torch.func.grad(lambda W: torch_module._affine(x, W).sum()))(several)
    assert torch.allclose(rows[0], x.sum((0, 1)).expand(5, 4))


def test_weights_beyond_the_format_are_refused():
    embedding = tf.Embedding(symbols=("a",), vectors=[[70000]])
    read_out = tf.RealVector(W_out=[[1]])
    model = tf.Transformer(
        stream=tf.Stream(("p",)), embedding=embedding, layers=(), read_out=read_out
    )
    with pytest.raises(NotFinite, match="weight"):
        tf.to_torch(model, "float16")


def test_a_value_that_is_not_a_number_is_refused():
    module = tf.to_torch(drawn())
    module.read_out.b_out.data[0] = float("nan")
    with pytest.raises(NotFinite, match="NaN"):
        module.answer("ab")


def test_a_model_without_a_vector_at_bos_is_refused():
    stream = tf.Stream(("p",))
    embedding = tf.Embedding.of(
        stream, {"a": {}, "BOS": {}}, positions={"p": "1/i"}, front=("BOS",)
    )
    model = tf.Transformer(
        stream=stream, embedding=embedding, layers=(), read_out=tf.RealVector(W_out=[[1]])
    )
    with pytest.raises(UndefinedValue, match="BOS"):
        tf.to_torch(model)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "transformist.hosts.torch_module", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InvalidValue, match=r"pip install 'transformist\[torch\]'"):
        tf.to_torch(drawn())
