"""Models as graphs of ONNX, run by ONNX Runtime, against the reference evaluation."""

import dataclasses
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from drawn_models import CASES, as_string, drawn, on_strings, strings, uniform

import transformist as tf
from transformist.errors import InvalidValue
from transformist.hosts.named_arrays import answer_from, named_arrays, token_ids
from transformist.model.feed_forward import ACTIVATIONS
from transformist.programs import PROGRAMS

onnx = pytest.importorskip("onnx", reason="onnx is not installed (pip extra hosts)")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip extra hosts)")
from transformist.hosts import onnx_graph  # noqa: E402

pytestmark = pytest.mark.hosts

# As in test_torch_module: some hundred roundings of numbers below 100.
WITHIN = {"float64": 2.0**-36, "float32": 2.0**-9}


def evaluated(model, inputs, arithmetic, max_length=None):
    """The logits of each input, all in one padded batch of one session."""
    logits = onnx_graph.run(onnx_graph.write(model, arithmetic, max_length))
    ids = [token_ids(model, x) for x in inputs]
    rows = max(map(len, ids))
    return logits([[*each, *[-7] * (rows - len(each))] for each in ids], list(map(len, ids)))


def agree(model, inputs, arithmetic="float64", max_length=None):
    found = evaluated(model, inputs, arithmetic, max_length)
    for x, row, expected in zip(inputs, found, model.values(inputs, arithmetic), strict=True):
        wanted = np.asarray(expected, float)
        # Products of drawn numbers, as in gated units, may be larger than 100.
        within = WITHIN[arithmetic] * max(1, np.abs(wanted).max(initial=0) / 100)
        assert row[model.rows_read(len(x))] == pytest.approx(wanted, rel=0, abs=within), x


@pytest.mark.parametrize("arithmetic", WITHIN)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_answer_as_in_the_reference(name, arithmetic):
    model = tf.compile(PROGRAMS[name], max_length=12)
    source = random.Random(name)
    drawn_ones = [as_string(source.choices(model.alphabet, k=n)) for n in range(1, 13)]
    inputs = strings(model.alphabet) + drawn_ones
    found = [
        answer_from(model, row, len(x), arithmetic)
        for x, row in zip(inputs, evaluated(model, inputs, arithmetic), strict=True)
    ]
    assert found == model.answers(inputs, arithmetic)


@pytest.mark.parametrize("arithmetic", WITHIN)
@pytest.mark.parametrize("name", on_strings())
def test_recipes_have_the_values_of_the_reference(name, arithmetic):
    recipe = tf.recipe(name)
    model = recipe.build(**({"max_length": 16} if "max_length" in recipe.parameters else {}))
    inputs = [x for x in strings(model.alphabet) if len(x) or model.embedding.front]
    source = random.Random(name)
    inputs += [as_string(source.choices(model.alphabet, k=n)) for n in range(1, 17)]
    agree(model, inputs, arithmetic, 64)


def test_one_session_takes_every_length_to_n():
    model = tf.compile(PROGRAMS["reverse"], max_length=40)
    logits = onnx_graph.run(onnx_graph.write(model, "float32"))
    for n in range(41):
        x = ("abc" * 14)[:n]
        ids = token_ids(model, x)
        (found,) = logits([ids], [len(ids)])
        assert answer_from(model, found, n, "float32") == x[::-1]


@pytest.mark.parametrize("arithmetic", WITHIN)
@pytest.mark.parametrize(("mask", "weighting"), CASES)
def test_drawn_models_agree(mask, weighting, arithmetic):
    agree(drawn(mask, weighting, seed=11), strings("ab"), arithmetic)


@pytest.mark.parametrize("norms", ["pre", "post", "selecting"])
def test_norms_agree(norms):
    agree(drawn(norms=norms, seed=12), strings("ab"))


def test_several_outputs_agree():
    agree(drawn(several=True, seed=18), strings("ab"))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_agree(activation):
    agree(drawn(activation=activation, seed=13), strings("ab"), "float32")


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
def test_equal_rows_have_equal_vectors_in_every_place(activation, arithmetic):
    """Sums along the last axis, and Exp and Tanh in float64, would tell equal rows apart."""
    if activation in ("gelu", "geglu") and arithmetic == "float64":
        pytest.skip("ONNX Runtime has no Erf in float64")
    for width in (6, 51):
        norm = tf.LayerNorm(gain=np.ones(width), epsilon=1e-5)
        model = uniform(activation, norm, width=width)
        logits = onnx_graph.run(onnx_graph.write(model, arithmetic))
        for n in (2, 3, 5, 9, 30):
            found = logits([[0] * n], [n])[0]
            assert (found == found[0]).all(), (width, n)


def test_the_leftmost_of_equal_rows_is_taken():
    rng = np.random.default_rng(0)
    for _ in range(20):
        W = [[*rng.integers(1, 100, 3) / 100, 0, 0]]
        word = rng.integers(1, 100, 3) / 100
        first = tf.Attention(
            W_Q=W, W_K=W, W_V=[[0, 0, 0, 1, 0]], W_O=[[0]] * 4 + [[1]], weighting="leftmost-hard"
        )
        model = tf.Transformer(
            stream=tf.Stream(tuple("pqrst")),
            embedding=tf.Embedding(symbols="ab", vectors=[[*word, 0, 0], [*word, 1, 0]]),
            layers=(tf.Layer((first,)),),
            read_out=tf.Binary(W_out=[[0, 0, 0, 0, 1]], at="every"),
        )
        assert not (evaluated(model, ["ab", "abbb"], "float32")[0, :2] > 0).any()


def test_exponentials_have_nearly_the_digits_of_the_format():
    """e, rounded to float64, is no base alone: its powers lose digits with their exponent."""
    places = [-np.log(3), -1, -20, -100, -700, -5000]
    model = tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=range(7), vectors=[[0, 0], *([x, 0] for x in places)]),
        layers=(
            tf.Layer(
                (tf.Attention(W_Q=[[0, 0]], b_Q=[1], W_K=[[1, 0]], W_V=[[0, 0], [1, 0]]),)
            ),
        ),
        read_out=tf.RealVector(W_out=[[0, 1]], at="every"),
    )  # fmt: skip
    logits = onnx_graph.run(onnx_graph.write(model, "float64"))
    for symbol, x in enumerate(places, 1):
        # Weights 1 and eˣ: the mean of x is x eˣ / (1 + eˣ).
        found = logits([[0, symbol]], [2])[0, 0, 0]
        assert found == pytest.approx(x * np.exp(x) / (1 + np.exp(x)), rel=2.0**-50, abs=0), x


@pytest.mark.parametrize(("mask", "weighting"), CASES[::3])
def test_sums_by_scan_are_those_by_cumsum(monkeypatch, mask, weighting):
    """Both add from the first term to the last, so that no bit may differ, also for no rows."""
    model = drawn(mask, weighting, seed=19, norms="selecting")
    ids, lengths = [[2, 0, 1, 1, 0], [2, 1, 0, 0, 0]], [5, 2]
    cumsum = onnx_graph.run(onnx_graph.write(model, "float32"))
    monkeypatch.setattr(onnx_graph, "LARGE", 1)
    monkeypatch.setattr(onnx_graph, "MANY", 1)
    scan = onnx_graph.run(onnx_graph.write(model, "float32"))
    assert np.array_equal(scan(ids, lengths), cumsum(ids, lengths))
    for logits in (scan, cumsum):
        assert logits([[], []], [0, 0]).shape == (2, 0, 3)
        assert logits(np.zeros((0, 3)), []).shape == (0, 3, 3)


WIDE = """
import resource, sys
from drawn_models import uniform
from transformist.hosts import onnx_graph

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

logits = onnx_graph.run(onnx_graph.write(uniform(width=300), "float32"))
logits([[0] * 2], [2])
before = peak()
logits([[0] * 300], [300])
print(peak() - before)
"""


@pytest.mark.slow
def test_a_wide_model_takes_little_memory():
    """Every term of a map at once would take 300 · 300 · 300 · 4 bytes, 108 MB, twice."""
    path = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    given = {"env": {**os.environ, "PYTHONPATH": path}, "capture_output": True, "check": True}
    kilobytes = int(subprocess.run([sys.executable, "-c", WIDE], **given).stdout)
    assert kilobytes < 40_000


@pytest.mark.parametrize(
    ("ids", "length", "fault"),
    [
        ([[4, 0, 1, 2, 0, 1]], 6, "lengths_must_be_at_most_5'"),
        ([[4, 0, 1]], 4, "lengths_must_be_at_most_the_rows_of_token_ids"),
        ([[4, 0, 1]], -1, "lengths_must_be_at_least_0"),
        ([[4, 0, 1]], -(2**63), "lengths_must_be_at_least_0"),
        ([[4, -1, 1]], 3, "token_ids_must_be_0_to_4"),
        ([[4, 5, 1]], 3, "token_ids_must_be_0_to_4"),
        ([[4, 0, 1, 2, 0, -1]], 5, None),
    ],
)
def test_a_run_fails_for_what_is_no_input(ids, length, fault):
    model = tf.compile(PROGRAMS["histogram"], max_length=4)
    logits = onnx_graph.run(onnx_graph.write(model, "float32"))
    if fault is None:
        assert logits(ids, [length]).shape == (1, 6, 5)
        return
    with pytest.raises(Exception, match=fault):
        logits(ids, [length])
    with pytest.raises(Exception, match=fault):
        logits([[4] * len(ids[0]), *ids], [2, length])


@pytest.mark.parametrize(("inputs", "lengths"), [(2, [3]), (1, [3, 2]), (3, [3, 2]), (1, [])])
def test_a_run_fails_for_another_number_of_lengths(inputs, lengths):
    """Operators repeat a single length for a batch, and a single input for many lengths."""
    model = tf.compile(PROGRAMS["histogram"], max_length=4)
    logits = onnx_graph.run(onnx_graph.write(model, "float32"))
    assert logits([[4, 0, 1]] * inputs, [3] * inputs).shape == (inputs, 3, 5)
    with pytest.raises(Exception, match="lengths_must_be_as_many_as_the_inputs"):
        logits([[4, 0, 1]] * inputs, lengths)


@pytest.mark.parametrize(
    ("positions", "given"),
    [(tf.PositionTable(vectors=[[1], [2], [3]]), None), (tf.Sinusoids(1), 3)],
)
def test_a_table_of_positions_ends_the_inputs(positions, given):
    model = tf.Transformer(
        stream=tf.Stream(("x",)),
        embedding=tf.Embedding(symbols=("a",), vectors=[[0]], positions=positions),
        layers=(),
        read_out=tf.RealVector(W_out=[[1]], at="every"),
    )
    logits = onnx_graph.run(onnx_graph.write(model, "float64", given))
    assert logits([[0] * 3], [3]).shape == (1, 3, 1)
    with pytest.raises(Exception, match="lengths_must_be_at_most_3'"):
        logits([[0] * 4], [4])


def test_every_position_function_agrees():
    names = ("1", "i", "i^2", "i^3", "i/n", "-i/n", "(-1)^i", None)
    width = len(names)
    model = tf.Transformer(
        stream=tf.Stream(tuple(f"x{k}" for k in range(width))),
        embedding=tf.Embedding(
            symbols=("a", "BOS", "EOS"), vectors=np.zeros((3, width)),
            positions=tf.PositionFunctions(names), front=("BOS",), back=("EOS",),
        ),
        layers=(),
        read_out=tf.RealVector(W_out=np.eye(width), at="every"),
    )  # fmt: skip
    agree(model, ["a", "aaaa", "aaaaaaa"])


def test_the_graph_is_described():
    model = tf.compile(PROGRAMS["histogram"], max_length=9)
    proto = onnx.load_from_string(onnx_graph.write(model, "float32"))
    (entry,) = proto.metadata_props
    facts = json.loads(entry.value)
    assert facts["symbols"] == [*model.embedding.symbols] and facts["front"] == ["BOS"]
    assert facts["max_length"] == 9 and facts["slots"] == [*model.stream.slots]
    assert [each.version for each in proto.opset_import] == [18]
    stored = {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}
    for name, weights in named_arrays(model, "float32").items():
        assert np.array_equal(stored[name], weights), name


@pytest.mark.parametrize(
    ("model", "arithmetic", "remedy"),
    [
        (drawn(), "float16", 'host="torch", arithmetic="float16"'),
        (drawn(activation="gelu"), "float64", 'host="onnx", arithmetic="float32"'),
    ],
)
def test_what_a_graph_cannot_hold_is_refused_with_what_works(model, arithmetic, remedy):
    with pytest.raises(InvalidValue, match=remedy):
        onnx_graph.write(model, arithmetic)


def test_the_call_that_a_refusal_gives_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = drawn(activation="gelu", grid=1, norms="none")
    with pytest.raises(InvalidValue) as refusal:
        tf.export(dataclasses.replace(model, max_length=5), "model.onnx", "onnx", "float64")
    call = str(refusal.value).split("call: ")[1]
    eval(call, {"tf": tf, "model": dataclasses.replace(model, max_length=5)})
    assert (tmp_path / "model.onnx").exists()
