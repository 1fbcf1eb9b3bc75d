"""A bridge of TransformerLens has the stream, the attention and the answers of the model."""

import dataclasses
import doctest
import random
import re
from pathlib import Path

import numpy as np
import pytest
from drawn_models import drawn

import transformist as tf
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import CoarserFormat, InputTooLong, InvalidValue, UnknownSymbol
from transformist.hosts import transformer_lens_bridge
from transformist.hosts.optional_library import MissingLibrary
from transformist.programs import PROGRAMS

# TransformerLens takes seconds to import.
pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "transformer-lens.md"
CAUSAL = {
    *("dyck-1", "dyck-k-d", "shuffle-dyck-2", "induction-most-recent", "induction-most-frequent"),
    *("majority", "parity", "equal-abc", "contains-abc"),
}
BIDIRECTIONAL = {
    *("histogram", "double-histogram", "most-frequent-token", "majority", "parity", "reverse"),
    *("palindrome", "sort", "equal-abc", "contains-abc", "binary-increment"),
}
HELD = [(name, "future") for name in sorted(CAUSAL)]
HELD += [(name, "none") for name in sorted(BIDIRECTIONAL)]


@pytest.fixture(autouse=True)
def library(request):
    if "hosts" in request.keywords:
        reason = "transformer-lens is not installed (extra `lens`)"
        pytest.importorskip("transformer_lens", reason=reason)


def compiled(name, masks, N=23):
    return tf.compile(PROGRAMS[name], max_length=N, masks=masks, reuse=False)


def inputs_of(model, lengths=(1, 2, 5, 9, 10, 11, 12, 23)):
    source = random.Random(7)
    drawn = [tuple(source.choices(model.alphabet, k=n)) for n in lengths]
    return [*drawn, *((each,) * 12 for each in model.alphabet[:2])]


def text_of(model, x):
    by_character = all(isinstance(each, str) and len(each) == 1 for each in model.alphabet)
    return ("" if by_character else " ").join(map(str, x))


def answer_of(bridge, model, logits, n):
    """The answer from the logits of one input of n symbols, by the texts of tokens."""
    front = len(model.embedding.front)
    texts = bridge.tokenizer.convert_ids_to_tokens(logits.argmax(-1).tolist())
    if isinstance(model.read_out, tf.Binary):
        return {"yes": True, "no": False}[texts[front + n + len(model.embedding.back) - 1]]
    labels = {str(each): each for each in model.read_out.labels}
    if model.read_out.at == "every":
        found = [labels[each] for each in texts[front : front + n]]
        return "".join(found) if all(isinstance(each, str) for each in found) else found
    return labels[texts[front + n + len(model.embedding.back) - 1]]


@pytest.mark.hosts
@pytest.mark.parametrize(("name", "masks"), HELD)
def test_the_stream_and_the_attention_are_those_of_the_model(name, masks):
    """At every step: an added norm, another scale, an exchanged slot or head would be seen."""
    model = compiled(name, masks)
    bridge = tf.to_transformer_lens(model)
    d = model.stream.width
    for x in inputs_of(model):
        _, cache = bridge.run_with_cache(text_of(model, x))
        trace = model.run(x, "float32")
        steps = {step: np.asarray(z[0]) for step, z in model.streams([x], "float32")}
        expected = steps["embedding"]
        assert cache["resid_pre", 0][0, :, :d].detach() == pytest.approx(expected, rel=1e-6)
        for k, layer in enumerate(model.layers):
            for step, own in (("attention", "resid_mid"), ("feed-forward", "resid_post")):
                expected = steps.get(f"layer {k} {step}", expected)
                found = cache[own, k][0].detach().numpy()
                scale = 1e-5 * np.maximum(1, abs(expected))
                assert (abs(found[:, :d] - expected) <= scale).all(), (name, x, k, step)
                assert (found[:, d] == 1).all()
            for number in range(len(layer.heads)):
                found = cache["pattern", k][0, number].detach().numpy()
                weights = np.asarray(trace.attention(layer=k, head=number))
                assert found == pytest.approx(weights, rel=0, abs=1e-5)


@pytest.mark.hosts
@pytest.mark.parametrize(("name", "masks"), HELD)
def test_the_answers_are_those_of_the_model_alone_and_in_a_padded_batch(name, masks):
    model = compiled(name, masks)
    bridge = tf.to_transformer_lens(model)
    inputs = inputs_of(model)
    texts = [text_of(model, x) for x in inputs]
    joint = bridge(texts)
    for x, text, row in zip(inputs, texts, joint, strict=True):
        assert answer_of(bridge, model, bridge(text)[0], len(x)) == model(x)
        assert answer_of(bridge, model, row, len(x)) == model(x)


def test_no_worked_program_is_left_out():
    left_out = {*PROGRAMS} - CAUSAL - BIDIRECTIONAL
    assert left_out == {"fraction-of-previous"}
    for name in PROGRAMS:
        for masks, held in (("future", CAUSAL), ("none", BIDIRECTIONAL)):
            if name not in {*held, *left_out}:
                with pytest.raises(Uncompilable):
                    compiled(name, masks)


@pytest.mark.hosts
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu-tanh"])
@pytest.mark.parametrize("has_front", [True, False])
def test_drawn_models_have_their_numbers(activation, has_front):
    """Heads and networks of several sizes, biases everywhere, with and without BOS."""
    for seed in range(3):
        model = labelled(drawn(activation=activation, seed=seed, positions=False))
        model = model if has_front else without_front(model)
        bridge = tf.to_transformer_lens(model)
        x = "abba"
        _, cache = bridge.run_with_cache(x)
        *_, (_, z) = model.streams([x], "float64")
        found = cache["resid_post", len(model.layers) - 1][0].detach().numpy()
        assert found[:, :-1] == pytest.approx(np.asarray(z[0]), rel=1e-4, abs=1e-4)


@pytest.mark.hosts
def test_a_symbol_behind_stays_behind():
    """TransformerLens removes an EOS from the end of tokens."""
    model = labelled(drawn(positions=False, back=("EOS",)))
    bridge = tf.to_transformer_lens(model)
    assert bridge.to_str_tokens("ab") == ["<bos>", "a", "b", "<eos>"]
    texts = ["ab", "b", "abbab"]
    _, cache = bridge.run_with_cache(texts)
    for k, text in enumerate(texts):
        *_, (_, z) = model.streams([text], "float64")
        found = cache["resid_post", len(model.layers) - 1][k, : len(text) + 2].detach().numpy()
        assert found[:, :-1] == pytest.approx(np.asarray(z[0]), rel=1e-4, abs=1e-4)


@pytest.mark.hosts
@pytest.mark.parametrize("has_front", [True, False])
def test_symbols_in_front_are_added_once_and_can_be_left_out(has_front):
    model = labelled(drawn(positions=False))
    model = model if has_front else without_front(model)
    bridge = tf.to_transformer_lens(model)
    assert bridge.to_str_tokens("ab") == ["<bos>"] * has_front + ["a", "b"]
    assert bridge.to_tokens(["ab", "b"]).shape == (2, 2 + has_front)
    assert bridge.to_str_tokens("ab", prepend_bos=False) == ["a", "b"]


@pytest.mark.hosts
def test_a_format_coarser_than_that_of_the_compiler_is_warned_of():
    program = PROGRAMS["parity"]
    model = tf.compile(program, max_length=9, masks="future", reuse=False, arithmetic="float64")
    with pytest.warns(CoarserFormat, match="for float64: in float32 .* of the bridge") as warned:
        tf.to_transformer_lens(model)
    assert warned[0].filename == __file__


@pytest.mark.hosts
def test_the_default_type_of_torch_changes_nothing():
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        bridge = tf.to_transformer_lens(compiled("parity", "future"))
    finally:
        torch.set_default_dtype(before)
    assert {each.dtype for each in bridge.parameters()} == {torch.float32}


@pytest.mark.hosts
def test_a_wrong_weight_is_found_before_the_bridge_is_returned(monkeypatch):
    weights = transformer_lens_bridge._weights

    def wrong(*arguments):
        found = weights(*arguments)
        return found | {"pos_embed.weight": np.roll(found["pos_embed.weight"], 1, axis=0)}

    monkeypatch.setattr(transformer_lens_bridge, "_weights", wrong)
    with pytest.raises(InvalidValue, match="the bridge must answer .* on .*smaller max_length"):
        tf.to_transformer_lens(compiled("parity", "future"))


@pytest.mark.hosts
def test_weights_of_another_version_are_refused(monkeypatch):
    names = {**transformer_lens_bridge.SUBLAYERS, "1": "mlp.first"}
    monkeypatch.setattr(transformer_lens_bridge, "SUBLAYERS", names)
    with pytest.raises(
        InvalidValue,
        match=r"of TransformerLens 4\.3; received version 4.* has shape .*transformist\[lens\]",
    ):
        tf.to_transformer_lens(compiled("majority", "future"))


@pytest.mark.hosts
def test_a_text_is_refused_where_others_cut_or_replace_it():
    bridge = tf.to_transformer_lens(compiled("parity", "future", N=12))
    assert bridge.to_tokens("0" * 12).shape == (1, 13)
    with pytest.raises(InputTooLong, match="at most N = 12 symbols; received 13; .*max_length=13"):
        bridge("0" * 13)
    with pytest.raises(InputTooLong, match="received 13"):
        bridge(["0", "0" * 13])
    with pytest.raises(UnknownSymbol, match="received 'x' in '01x'"):
        bridge(["01", "01x"])


@pytest.mark.hosts
def test_compatibility_mode_keeps_stream_and_answers():
    """It centres the logits, and there is no norm to fold."""
    bridge = tf.to_transformer_lens(compiled("parity", "future"))
    before, cache = bridge.run_with_cache("0110111")
    bridge.enable_compatibility_mode()
    after, same = bridge.run_with_cache("0110111")
    assert (before.argmax(-1) == after.argmax(-1)).all()
    for k in range(2):
        assert (cache["resid_post", k] - same["resid_post", k]).abs().max() < 1e-12


def without_front(model):
    """The drawn model without BOS."""
    words = {"symbols": ("a", "b"), "vectors": model.embedding.vectors[:2], "front": ()}
    embedding = dataclasses.replace(model.embedding, **words)
    return dataclasses.replace(model, embedding=embedding)


def labelled(model, **changes):
    """The model with a label at every row, which is read from its first two slots."""
    width = model.stream.width
    read_out = tf.MultiClass(W_out=np.eye(2, width), labels=("no", "yes"), at="every")
    return dataclasses.replace(model, read_out=read_out, max_length=8, **changes)


def with_heads(**changes):
    model = compiled("majority", "none")
    layer = model.layers[0]
    heads = tuple(dataclasses.replace(head, **changes) for head in layer.heads)
    return dataclasses.replace(model, layers=(dataclasses.replace(layer, heads=heads),))


def reused(masks):
    return tf.compile(PROGRAMS["equal-abc"], max_length=9, masks=masks, reuse=True)


def without_rows():
    return dataclasses.replace(without_front(labelled(drawn(positions=False))), max_length=0)


def with_label(label):
    model = labelled(drawn(positions=False))
    read_out = dataclasses.replace(model.read_out, labels=(label, "x"))
    return dataclasses.replace(model, read_out=read_out)


def with_symbols(*symbols):
    model = labelled(drawn(positions=False))
    embedding = dataclasses.replace(model.embedding, symbols=(*symbols, "BOS"))
    return dataclasses.replace(model, embedding=embedding)


def with_vectors(factor):
    model = labelled(drawn(positions=False))
    vectors = factor * model.embedding.vectors
    return dataclasses.replace(
        model, embedding=dataclasses.replace(model.embedding, vectors=vectors)
    )


@pytest.mark.hosts
@pytest.mark.parametrize(
    ("model", "refusal"),
    [
        (lambda: with_heads(weighting="average-hard"), "softmax; .*weighting='softmax'"),
        (lambda: with_heads(mask="past"), "heads must have mask future.*masks='future'"),
        (lambda: reused("none"), "compile the program anew .*reuse=False, masks='none'"),
        (lambda: reused("future"), "compile the program anew .*reuse=False, masks='future'"),
        (lambda: compiled("fraction-of-previous", "future"), "must be a label.*tf.to_torch"),
        (
            lambda: labelled(drawn(activation="gelu-sigmoid", positions=False)),
            "relu, gelu, gelu-tanh",
        ),
        (
            lambda: dataclasses.replace(compiled("majority", "none"), max_length=None),
            "bridge must .*=512",
        ),
        (
            lambda: dataclasses.replace(compiled("majority", "none"), max_length=10**7),
            "at most half",
        ),
        (lambda: without_rows(), "at least one row; received N = 0"),
        (lambda: with_label(""), "text that is not empty; .* or call tf.to_torch"),
        (lambda: with_symbols("a b", "c"), "symbols of a bridge .* call tf.to_torch"),
        (lambda: with_vectors(1e-42), "weight of a bridge .*, or build it for shorter"),
        (lambda: tf.recipe("min").build(), "must be a Transformer"),
    ],
)
def test_what_the_class_does_not_hold_is_refused(model, refusal):
    with pytest.raises(tf.TransformistError, match=refusal) as refused:
        tf.to_transformer_lens(model())
    assert str(refused.value).startswith("to_transformer_lens: ")


def test_the_extra_is_named_where_the_library_is_missing(monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError("no module", name="transformer_lens")

    model = compiled("majority", "none")
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(MissingLibrary, match=r"pip install 'transformist\[lens\]'"):
        tf.to_transformer_lens(model)


@pytest.mark.hosts
def test_the_examples_of_the_page_are_true():
    text = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S))
    example = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
