"""Plain arrays, and passes that change the stream and no logit; tokens, directories, refusals."""

import dataclasses
import itertools
import json
import math
import os
import pathlib
import sys
from types import ModuleType

import numpy as np
import pytest
from drawn_models import drawn

import transformist as tf
from transformist.errors import InvalidValue, NotFinite
from transformist.hosts import bert, gpt2, llama
from transformist.hosts.host import CHECKPOINT_FILES, HOSTS, Unhostable
from transformist.hosts.neutral_norms import LAYER_PINS, MEAN_SQUARE_PINS, neutral_norm
from transformist.hosts.plain_model import (
    as_tensor,
    plain_model,
    rescaled,
    slot_exponents,
    stacked,
    widened,
    with_constant,
    with_zero_sum,
)
from transformist.hosts.rewritten import rewritten
from transformist.hosts.vocabulary import vocabulary_of
from transformist.hosts.whole_directory import replace_directory, require_free
from transformist.model import Mask, NearestFraction
from transformist.programs import PROGRAMS

FUTURE = {"masks": "future", "reuse": False}


def decoder(**changes):
    """A drawn model that GPT-2 holds."""
    model = dataclasses.replace(drawn("future", seed=7, positions=False), max_length=6)
    return dataclasses.replace(model, **changes)


def logits(plain, ids):
    """The definition of a transformer for plain arrays, with mask future and ReLU."""
    z = plain.words[ids] + plain.positions[: len(ids)]
    for layer in plain.layers:
        y = z + layer.b_O
        for head in layer.heads:
            q, k = z @ head.W_Q.T + head.b_Q, z @ head.W_K.T + head.b_K
            scores = np.where(np.tri(len(ids)), q @ k.T, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            y = y + weights @ (z @ head.W_V.T + head.b_V) @ head.W_O.T
        z = y + np.maximum(y @ layer.W_1.T + layer.b_1, 0) @ layer.W_2.T + layer.b_2
    return z @ plain.W_out.T + plain.b_out, z


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_output", [False, True])
def test_a_plain_model_and_its_passes_have_the_logits_of_the_model(seed, with_output):
    positions = tf.PositionFunctions(("i", None, "(-1)^i", None, "i^2"))
    model = dataclasses.replace(drawn("future", seed=seed, with_output=with_output), max_length=6)
    model = dataclasses.replace(
        model, embedding=dataclasses.replace(model.embedding, positions=positions)
    )
    plain = plain_model(model, "gpt2", (Mask.FUTURE,), None)
    scaled = rescaled(plain, model)
    full = with_zero_sum(with_constant(scaled))
    for x in ("abbab", "bbbbbb", "a"):
        ids = model.embedding.encode(x)
        expected = model.read_out.values(
            [z for _, z in model.streams([x])][-1][0], tf.arithmetic.number_system("float64")
        )
        for each in (plain, scaled, full, widened(full, 64)):
            found, _ = logits(each, ids)
            assert found == pytest.approx(np.asarray(expected), rel=1e-5, abs=1e-5)
        _, z = logits(full, ids)
        assert z.sum(axis=1) == pytest.approx(np.zeros(len(ids)), abs=1e-9)
        assert (z[:, scaled.width] == 1).all() and abs(z[:, :-1]).max() <= 2


@tf.program(alphabet="x01")
def latest(x):
    """A selection with values that no key has: its slots hold what softmax leaves over."""
    before = x.predecessor(default="-")
    names = {("1", "x"): "x"}
    key = x.table(before, values=lambda own, last: names.get((own, last), "none"))
    return x.select(key, mask="strict-future").rightmost(x, default="-").tag()


@pytest.mark.parametrize("N", [4, 5, 15, 16, 64])
def test_what_softmax_leaves_over_is_not_scaled_up(N):
    model = tf.compile(latest, max_length=N, **FUTURE)
    plain = plain_model(model, "gpt2", (Mask.FUTURE,), None)
    exponents = slot_exponents(plain, model)
    assert min(exponents) >= -math.log2(len(plain.positions)) - 1
    # The largest numbers of a slot are kept at about 1.
    assert exponents[model.stream.slots.index("i^2")] == math.ceil(math.log2(N**2))


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("host", ["gpt2", "llama"])
@pytest.mark.parametrize("N", [4, 5, 16, 48])
def test_a_model_with_slots_that_hold_nothing_is_exported(host, N, tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed (extra huggingface)")
    model = tf.compile(latest, max_length=N, **HOSTS[host].options)
    assert tf.export(model, tmp_path / "made", host=host).longest == N


def test_heads_of_one_size_have_the_scores_of_the_heads():
    plain = plain_model(decoder(), "gpt2", (Mask.FUTURE,), None)
    places = np.array([5, 9, 2, *range(10, 16)])
    layer = plain.layers[0]
    z = np.random.default_rng(0).normal(size=(4, plain.width))
    found = stacked(layer, 3, places, 16)
    q, k = (z @ found[f"W_{each}"].T + found[f"b_{each}"] for each in "QK")
    for number, head in enumerate(layer.heads):
        own = slice(16 * number, 16 * number + 16)
        scores = q[:, own] @ k[:, own].T / 16**0.5
        wanted = (z @ head.W_Q.T + head.b_Q) @ (z @ head.W_K.T + head.b_K).T
        assert scores == pytest.approx(wanted)
        values = (z @ found["W_V"].T + found["b_V"])[:, own] @ found["W_O"][:, own].T
        assert values == pytest.approx((z @ head.W_V.T + head.b_V) @ head.W_O.T)
    assert not found["W_Q"][32:].any() and not found["W_O"][:, 32:].any()


def test_a_recognizer_has_the_rows_no_and_yes():
    model = tf.compile(PROGRAMS["majority"], max_length=6, **FUTURE)
    plain = plain_model(model, "gpt2", (Mask.FUTURE,), None)
    assert plain.answers == (False, True)
    found, _ = logits(plain, model.embedding.encode("0110111"[:6]))
    assert found[-1].argmax() == 1 and found[1].argmax() == 0


def with_norm():
    norm = tf.LayerNorm(gain=np.ones(5), bias=np.zeros(5), epsilon=1)
    return decoder(final_norm=norm)


def fraction():
    read_out = NearestFraction(
        W_out=[[1, 0, 0, 0, 0]], at="every", scale=1, mask="future", with_bos=True
    )
    return decoder(read_out=read_out)


def with_positions(*names):
    positions = tf.PositionFunctions((*names, *[None] * (5 - len(names))))
    return decoder(embedding=dataclasses.replace(decoder().embedding, positions=positions))


def other_networks(**changes):
    layers = [
        dataclasses.replace(layer, feed_forward=dataclasses.replace(layer.feed_forward, **changes))
        for layer in decoder().layers
    ]
    return decoder(layers=tuple(layers))


def two_activations():
    first, second = decoder().layers
    network = dataclasses.replace(second.feed_forward, activation="gelu")
    return decoder(layers=(first, dataclasses.replace(second, feed_forward=network)))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: drawn("future", "rightmost-hard", seed=7), "softmax, .* rightmost-hard takes one"),
        (lambda: drawn("past"), "masks=future gives|mask future.*; received heads with mask past"),
        (lambda: drawn("none"), "received heads with mask none"),
        (with_norm, "no norms of its own"),
        (
            lambda: other_networks(activation="elu"),
            "networks must have relu, gelu, .*received elu",
        ),
        (
            lambda: drawn("future", seed=7, positions=False, activation="swiglu"),
            "networks must have relu, gelu, .*received swiglu",
        ),
        (two_activations, "one activation; received gelu, relu"),
        (lambda: with_positions("i/n"), "must not depend on the length"),
        (fraction, "must be a label; received NearestFraction"),
        (
            lambda: tf.compile(PROGRAMS["dyck-k-d"], max_length=8, masks="future"),
            "reuse=False; received .* slots that hold several numbers",
        ),
    ],
)
def test_what_a_decoder_cannot_hold_is_refused_with_a_host_that_can(model, message):
    with pytest.raises(Unhostable, match=message) as refusal:
        gpt2.write(model(), "float32", 6)
    assert 'host="onnx"' in str(refusal.value)
    uncured = "no norms", "networks must have", "one activation", "must be a label"
    is_cured = not message.startswith(uncured)
    assert ("anew with masks='future', reuse=False" in str(refusal.value)) == is_cured


def with_silent_head(model, weighting, silent):
    """The model whose first head has no queries (or keys), and this weighting."""
    head, *others = model.layers[0].heads
    names = {"W_Q": head.W_Q, "b_Q": head.b_Q} if silent == "queries" else {
        "W_K": head.W_K, "b_K": head.b_K,
    }  # fmt: skip
    zeros = {name: np.zeros(np.shape(values)) for name, values in names.items()}
    layer = dataclasses.replace(
        model.layers[0],
        heads=(dataclasses.replace(head, weighting=weighting, **zeros), *others),
    )
    return dataclasses.replace(model, layers=(layer, *model.layers[1:]))


def last_rows(model):
    """The final vectors that the answer is read from, on every string to length 4."""
    strings = [x for n in range(1, 5) for x in itertools.product(model.alphabet, repeat=n)]
    places = slice(None) if model.read_out.at == "every" else slice(-1, None)
    return [np.asarray(list(model.streams([x], "float64"))[-1][1])[0][places] for x in strings]


@pytest.mark.parametrize("silent", ["queries", "keys"])
@pytest.mark.parametrize("at", ["last", "every"])
@pytest.mark.parametrize("mask", ["none", "future", "strict-future"])
def test_rewritten_weights_are_the_same_function(mask, at, silent):
    model = drawn(mask, seed=5, at=at, positions=False)
    model = with_silent_head(model, "average-hard", silent)
    for masks in ((Mask.FUTURE,), (Mask.NONE,)):
        found = rewritten(model, masks)
        weightings = [str(head.weighting) for head in found.layers[0].heads]
        assert weightings == ["softmax", "softmax"]
        changed = {str(head.mask) for head in found.layers[-1].heads} != {mask}
        assert changed == (at == "last" and mask != "strict-future" and mask not in masks)
        assert {str(head.mask) for head in found.layers[0].heads} == {mask}
        for one, other in zip(last_rows(model), last_rows(found), strict=True):
            assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_hard_heads_with_scores_and_ties_to_one_side_stay_hard():
    scored = drawn("future", "average-hard", seed=5, positions=False)
    leftmost = with_silent_head(drawn("future", seed=5), "leftmost-hard", "keys")
    for model in (scored, leftmost):
        assert rewritten(model, (Mask.FUTURE,)).layers == model.layers


def test_llama_and_bert_refuse_what_they_do_not_have():
    positions = tf.compile(PROGRAMS["parity"], max_length=8, **FUTURE)
    with pytest.raises(Unhostable, match="in llama, .*no positions, .*positions=bos"):
        llama.write(positions, "float32")
    with pytest.raises(Unhostable, match="must have relu; received gelu"):
        llama.write(drawn("future", seed=7, positions=False, activation="gelu"), "float32", 6)
    with pytest.raises(Unhostable, match="in bert, heads must have mask none"):
        bert.write(positions, "float32")
    with pytest.raises(Unhostable, match="at the last or at every"):
        gpt2.write(
            decoder(read_out=tf.Binary(W_out=[[1] * 5], at="cls"), embedding=cls()), "float32"
        )


def cls():
    embedding = decoder().embedding
    return dataclasses.replace(
        embedding, symbols=("a", "b", "CLS"), front=("CLS",), vectors=embedding.vectors[:3]
    )


def test_another_format_and_a_missing_length_are_refused():
    with pytest.raises(Unhostable, match='in float32 or float16; received bfloat16; .*host="gpt2"'):
        gpt2.write(decoder(), "bfloat16")
    with pytest.raises(InvalidValue, match="give max_length"):
        gpt2.write(drawn("future", seed=7, positions=False), "float32")


@pytest.mark.parametrize("host", ["gpt2", "llama", "bert"])
def test_a_missing_library_is_named_with_its_extra_before_any_work(host, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InvalidValue, match=r"transformers must be .*'transformist\[huggingface\]'"):
        tf.export(decoder(), tmp_path / "made", host)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("weight", [2.0**128, -(2.0**-140)])
def test_a_weight_beyond_float32_is_refused(weight):
    with pytest.raises(NotFinite, match="one in lm_head"):
        as_tensor("lm_head", np.array([[0, 1, weight]]))


@pytest.mark.parametrize("weight", [2.0**16, 2.0**-26])
def test_a_weight_that_float16_does_not_hold_is_refused(weight):
    with pytest.raises(NotFinite, match="number of float16"):
        as_tensor("lm_head", np.array([[0, 1, weight]]), "float16")
    held = as_tensor("lm_head", np.array([[0, 1, 2.0**-24]]), "float16")
    assert held.dtype == np.float16 and held[0, 2] > 0


@pytest.mark.parametrize(("pins", "is_layer"), [(LAYER_PINS, True), (MEAN_SQUARE_PINS, False)])
def test_a_norm_with_pins_keeps_the_stream(pins, is_layer):
    plain = plain_model(decoder(), "gpt2", (Mask.FUTURE,), None)
    plain = dataclasses.replace(plain, arithmetic="float16")
    neutral = neutral_norm(plain, 2.0**-50, pins)
    pinned = neutral.pinned(plain)
    found = widened(with_zero_sum(pinned) if is_layer else pinned, 64)
    written = found.words[:, plain.width : plain.width + len(pins)]
    assert neutral.factor == 1 and (written == pins).all()
    for z in found.words:
        less = z.mean() if is_layer else 0.0
        root = np.sqrt(((z - less) ** 2).mean() + 1e-5)
        out = (z - less) / root * neutral.gain(1e-5, 64)
        off = abs(out - z)[: plain.width]
        assert off.max() <= 2.0**-15 * max(1, abs(plain.words).max())
    # Nothing reads a pin: the logits are those of the model without pins.
    assert not found.W_out[:, plain.width :].any()
    assert all(not head.W_Q[:, plain.width :].any() for head in found.layers[0].heads)


def test_queries_and_keys_of_a_balanced_head_have_the_same_products():
    plain = plain_model(decoder(), "gpt2", (Mask.FUTURE,), None)
    (layer, *_), places = plain.layers, np.arange(64)
    count = len(layer.heads)
    plainly = stacked(layer, count, places, 64)
    balanced = stacked(layer, count, places, 64, are_balanced=True)
    for q, k in itertools.product(("W_Q", "b_Q"), ("W_K", "b_K")):
        for number in range(count):
            own = slice(64 * number, 64 * number + 64)
            products = [each[q][own].T @ each[k][own] for each in (plainly, balanced)]
            assert np.array_equal(*products)
            sizes = [abs(each[q][own]).max() for each in (plainly, balanced)]
            assert sizes[0] == 0 or np.log2(sizes[0] / sizes[1]).is_integer()


def alphabet(*symbols):
    read_out = tf.Binary(W_out=[[1]])
    embedding = tf.Embedding(
        symbols=(*symbols, "BOS"), vectors=[[1]] * (len(symbols) + 1), front=("BOS",)
    )
    return tf.Transformer(
        stream=tf.Stream(("p",)), embedding=embedding, layers=(), read_out=read_out
    )


def test_every_symbol_and_answer_has_a_token_of_its_own():
    tokens = vocabulary_of(alphabet(*"<bos>n"), ("n", "yes", "no"))
    assert tokens.texts[:3] == ("n", "yes", "no") and len(tokens.texts) % 8 == 0
    # A special token whose characters are all symbols would be found inside of a text.
    assert tokens.texts[tokens.front[0]] == "[bos]" and tokens.by_character
    every = vocabulary_of(alphabet(*"<[{⟨«⟦\ue000\ue001bos"), ("no", "yes"))
    assert every.texts[every.bos] == "\ue002bos\ue003"
    assert len({*tokens.symbols}) == 7 and tokens.text(tokens.symbols[:3]) == "<bo"
    assert not tokens.continues and vocabulary_of(alphabet(*"ab"), ("b",)).continues
    numbers = vocabulary_of(alphabet(1, 2, 30), (30, 1))
    assert numbers.text(numbers.symbols[1:3]) == "2 30" and numbers.answers == (0, 1)
    language = vocabulary_of(alphabet(*"ab"), ("a", "EOS"))
    assert language.answers == (0, language.eos)
    written = json.loads(language.tokenizer())
    assert written["post_processor"]["special_tokens"]["<bos>"]["ids"] == [language.bos]


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        (alphabet(1, "1"), (False, True)),
        (alphabet("two words", "b"), (False, True)),
        (alphabet("ab", ""), (False, True)),
        (alphabet("a", "b"), (1, "1")),
        (alphabet("a", "b"), (True, "yes")),
    ],
)
def test_symbols_and_labels_without_a_text_of_their_own_are_refused(model, answers):
    with pytest.raises(InvalidValue, match="different texts without white space"):
        vocabulary_of(model, answers)


def test_a_directory_is_replaced_whole_and_only_if_it_is_an_export(tmp_path, monkeypatch):
    target = tmp_path / "made"
    require_free(target, CHECKPOINT_FILES, "export", force=False)
    replace_directory(target, {"config.json": b"{}", "README.md": b"one"}, "export")
    assert {each.name for each in target.iterdir()} == {"config.json", "README.md"}
    with pytest.raises(InvalidValue, match=r"must be empty; .*holds README.md; .*--force"):
        require_free(target, CHECKPOINT_FILES, "export", force=False)
    require_free(target, CHECKPOINT_FILES, "export", force=True)
    replace_directory(target, {"config.json": b"two"}, "export")
    assert [each.read_bytes() for each in target.iterdir()] == [b"two"]
    (target / "thesis.tex").write_text("a year of work")
    with pytest.raises(InvalidValue, match=r"earlier export alone; .*thesis.tex"):
        require_free(target, CHECKPOINT_FILES, "export", force=True)
    (target / "thesis.tex").unlink()
    for within in (target, target / "below"):
        within.mkdir(exist_ok=True)
        monkeypatch.chdir(within)
        with pytest.raises(InvalidValue, match="must not be or hold the working directory"):
            require_free(target, CHECKPOINT_FILES | {"below"}, "export", force=True)
    (target / "below").rmdir()
    with pytest.raises(InvalidValue, match="must be a directory"):
        require_free(target / "config.json", CHECKPOINT_FILES, "export", force=True)
    with pytest.raises(InvalidValue, match="in a writable directory"):
        require_free(tmp_path / "no" / "made", CHECKPOINT_FILES, "export", force=False)
    assert [*tmp_path.iterdir()] == [target]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", ["os.fsync", "pathlib.Path.rename"])
def test_a_fault_leaves_the_old_directory_and_nothing_beside_it(tmp_path, monkeypatch, fault, at):
    target = tmp_path / "made"
    replace_directory(target, {"config.json": b"old"}, "export")
    calls = []

    def fails(*_):
        calls.append(at)
        if len(calls) == 2:
            raise fault
        return real(*_)

    real = os.fsync if at == "os.fsync" else pathlib.Path.rename
    monkeypatch.setattr(at, fails)
    with pytest.raises((InvalidValue, KeyboardInterrupt)):
        replace_directory(target, {"config.json": b"new", "README.md": b""}, "export")
    assert [*tmp_path.iterdir()] == [target]
    assert [each.read_bytes() for each in target.iterdir()] == [b"old"]
