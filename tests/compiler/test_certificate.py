"""Certificates read the weights, and what they say of a format is true of it."""

import itertools
import json
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from ideal import Ideal, given, strings

import transformist as tf
from transformist.arithmetic import number_system
from transformist.circuit import StepFunction
from transformist.cli import main
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Uncertifiable, certify, extract
from transformist.verify.certificate.recorded_margins import follow_within, noted


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_certified_for_two_hundred_symbols(name):
    model = tf.compile(PROGRAMS[name], max_length=200)
    found = certify(model, "float32", 200)
    assert found.holds and found.margin > 0 and found.largest_length == 200
    assert not found.assumes
    assert "holds" in str(found) and "not shown" not in str(found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_circuit_is_what_the_weights_compute(name):
    program = PROGRAMS[name]
    model = tf.compile(program, max_length=8, weighting="average-hard")
    extracted = extract(model, 8)
    for x in itertools.islice(strings(program, 8, 1, 5), 40):
        ideal = Ideal(extracted.circuit, x)
        _, stream = model.run(given(program, x), "exact").streams[-1]
        values = number_system("exact").numbers(stream)
        for i in ideal.rows:
            assert [ideal.form(form, i) for form in extracted.state] == list(values[i]), (x, i)


@pytest.mark.parametrize("arithmetic", ["float32", "float16"])
@pytest.mark.parametrize("name", ["dyck-1", "reverse", "histogram", "parity", "contains-abc"])
def test_no_slot_is_further_off_than_its_bound(name, arithmetic):
    program = PROGRAMS[name]
    model = tf.compile(program, max_length=10)
    extracted = extract(model, 10)
    margins, demands = noted(extracted.circuit, extracted.sharpness, number_system(arithmetic))
    for _ in extracted.circuit.atoms:
        follow_within(margins)
    if any(demand.share <= 0 for demand in demands):
        pytest.skip("the format does not keep the margins of steps and heads")
    for x in itertools.islice(strings(program, 10, 2, 6), 60):
        ideal = Ideal(extracted.circuit, x)
        _, stream = model.run(given(program, x), arithmetic).streams[-1]
        values = number_system(arithmetic).numbers(stream)
        for i, (slot, form) in itertools.product(ideal.rows, enumerate(extracted.state)):
            off = abs(Fraction(float(values[i][slot])) - ideal.form(form, i))
            assert off <= margins.error(form), (x, i, model.stream.slots[slot])


def changed(model, draw):
    """The model with one weight of a head, a network or the read-out multiplied."""
    parts = [("read_out", None, model.read_out)]
    for number, layer in enumerate(model.layers):
        parts += [("heads", (number, k), head) for k, head in enumerate(layer.heads)]
        if layer.feed_forward is not None:
            parts.append(("network", number, layer.feed_forward))
    kind, where, part = draw.choice(parts)
    names = [
        each
        for each in ("W_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "W_out", "b_out")
        if getattr(part, each, None) is not None and np.any(getattr(part, each) != 0)
    ]
    name = draw.choice(names)
    array = np.array(getattr(part, name), dtype=object)
    at = draw.choice(list(zip(*np.nonzero(array), strict=True)))
    array[at] = Fraction(array[at]) * draw.choice([-1, 0, 2, Fraction(1, 2), Fraction(3, 4)])
    part = replace(part, **{name: array.tolist()})
    if kind == "read_out":
        return replace(model, read_out=part)
    layers = list(model.layers)
    if kind == "network":
        layers[where] = replace(layers[where], feed_forward=part)
    else:
        heads = list(layers[where[0]].heads)
        heads[where[1]] = part
        layers[where[0]] = replace(layers[where[0]], heads=tuple(heads))
    return replace(model, layers=tuple(layers))


@pytest.mark.trials(8, 30)
@pytest.mark.parametrize("name", ["dyck-1", "induction-most-recent", "reverse", "majority"])
def test_of_changed_weights_too_it_says_the_truth(name, trials):
    """Where a certificate holds, the format decides as the changed weights do exactly."""
    program, draw, held = PROGRAMS[name], random.Random(name), 0
    model = tf.compile(program, max_length=6, weighting="average-hard")
    xs = [
        given(program, x) for n in range(5) for x in itertools.product(program.alphabet, repeat=n)
    ]
    for _ in range(trials):
        other = changed(model, draw)
        try:
            found = certify(other, "float16", 4)
        except Uncertifiable:
            continue
        if found.holds and not found.assumes:
            held += 1
            exact = other.answers(xs, "exact")
            assert other.answers(xs, "float16") == exact
    assert held


def test_a_threshold_without_a_margin_is_not_certified():
    model = tf.compile(PROGRAMS["majority"], max_length=50)
    bare = replace(model, read_out=tf.Binary(W_out=model.read_out.W_out))
    found = certify(bare, "float32")
    assert not found.holds and found.limiting.allowed == 0
    assert "is not shown to hold" in str(found) and "read-out" in str(found)


def test_a_format_that_keeps_less_says_how_much():
    model = tf.compile(PROGRAMS["fraction-of-previous"], max_length=200)
    found = certify(model, "bfloat16")
    assert not found.holds and 0 < found.largest_length < 200
    assert certify(model, "bfloat16", found.largest_length).holds
    assert not certify(model, "bfloat16", found.largest_length + 1).holds


def test_the_command(capsys, tmp_path):
    asked = ["certify", "programs/parity", "--max-length", "200", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"] and found["max_length"] == 200 and found["model"] == "programs/parity"
    assert found["assumes"] == [] and found["largest_length"] == 200 and 0 < found["margin"] < 1
    assert main([*asked[:4], "--arithmetic", "bfloat16"]) == 1
    assert "is not shown to hold" in capsys.readouterr().out
    path = tmp_path / "m.safetensors"
    tf.save(tf.compile(PROGRAMS["majority"], max_length=30), path)
    assert main(["certify", str(path)]) == 0
    assert "N = 30, in any order of summation: holds" in capsys.readouterr().out
    for request in (["min"], ["original-transformer"], [str(path), "--max-length", "31"]):
        assert main(["certify", *request]) == 2
        out, err = capsys.readouterr()
        assert not out and err.count("\n") == 1 and err.startswith("error: ")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lambda: certify(tf.compile(PROGRAMS["majority"]), "exact"), "in which numbers round"),
        (lambda: certify(tf.compile(PROGRAMS["majority"], max_length=9), "float32", 10), "N = 9"),
        (
            lambda: certify(
                tf.compile(PROGRAMS["reverse"], max_length=None, weighting="average-hard")
            ),
            "give max_length",
        ),
        (
            lambda: certify(tf.recipe("original-transformer").build(), "float32", 5),
            "received Sinusoids",
        ),
    ],
)
def test_what_is_not_certified_is_refused(request_, message):
    with pytest.raises(tf.TransformistError, match=message):
        request_()


def two_slots(read_out, layers=(), words=((0, 0), (1, 0), (0, 0)), names=("x", "y")):
    stream = tf.Stream(names)
    embedding = tf.Embedding(symbols=("a", "b", "BOS"), vectors=words, front=("BOS",))
    return tf.Transformer(
        stream=stream, embedding=embedding, layers=layers, read_out=read_out, max_length=4
    )


ACCEPT = tf.Binary(W_out=[[0, 1]], b_out=["-1/2"])


@pytest.mark.parametrize(("scale", "steps"), [(2, 1), (Fraction(3, 2), 0)])
def test_a_step_without_room_above_its_zone_is_two_relus(scale, steps):
    """x is 0 or 1; the step ends at 3/4 of 1, or at 1 itself, where no error is allowed."""
    ramp = tf.FeedForward(W_1=[[scale, 0]] * 2, b_1=["-1/2", "-3/2"], W_2=[[0, 0], [1, -1]])
    atoms = extract(two_slots(ACCEPT, (tf.Layer((), ramp),)), 4).circuit.atoms
    assert sum(isinstance(atom, StepFunction) for atom in atoms) == steps


def test_under_softmax_what_matches_is_a_mean_that_others_share():
    head = tf.Attention(
        W_Q=[[0, 0]], b_Q=[2], W_K=[[1, 0]], W_V=[[1, 0]], W_O=[[0], [1]], mask="future"
    )
    model = two_slots(ACCEPT, (tf.Layer((head,)),))
    assert model("aab") is True and model("baa") is True  # the softmax is blunt, and near 1/2
    assert not certify(model, "float32", 4).holds


def test_a_slot_is_emptied_by_what_it_holds_alone():
    """y = x, then y − x: a copy of x rounds by itself, so that nothing is exactly 0."""
    copy = tf.FeedForward(W_1=[[1, 0], [-1, 0]], W_2=[[0, 0], [1, -1]])
    away = tf.FeedForward(W_1=[[1, 0], [-1, 0]], W_2=[[0, 0], [-1, 1]])
    with pytest.raises(Uncertifiable, match="added once"):
        extract(two_slots(ACCEPT, (tf.Layer((), copy), tf.Layer((), away))), 4)
    own = tf.FeedForward(W_1=[[0, 1], [0, -1]], W_2=[[0, 0], [-1, 1]])
    extracted = extract(two_slots(ACCEPT, (tf.Layer((), copy), tf.Layer((), own))), 4)
    assert not extracted.state[1].terms


def test_a_slot_that_is_copied_elsewhere_is_not_emptied_by_another():
    """y = x, then z = y and y − x: that y is read does not make it y that is taken away."""
    copy = tf.FeedForward(W_1=[[1, 0, 0], [-1, 0, 0]], W_2=[[0, 0], [1, -1], [0, 0]])
    both = tf.FeedForward(
        W_1=[[-1, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0]],
        W_2=[[0, 0, 0, 0], [1, -1, 0, 0], [0, 0, 1, -1]],
    )
    accept = tf.Binary(W_out=[[0, 0, 1]], b_out=["-1/2"])
    words = ((0, 0, 0), (1, 0, 0), (0, 0, 0))
    model = two_slots(accept, (tf.Layer((), copy), tf.Layer((), both)), words, ("x", "y", "z"))
    with pytest.raises(Uncertifiable, match="added once"):
        extract(model, 4)


def test_the_label_0_is_read_as_the_others_are():
    model = tf.compile(PROGRAMS["histogram"], max_length=6)
    moved = np.array(model.read_out.W_out)
    row = model.read_out.labels.index(0)
    moved[row, np.flatnonzero(np.any(moved != 0, axis=0))[0]] = 1
    other = replace(model, read_out=replace(model.read_out, W_out=moved))
    assert certify(model, "float32").assumes == ()
    found = certify(other, "float32")
    assert not found.holds or found.assumes


def test_a_fraction_is_read_with_bos_where_bos_is_seen():
    model = tf.compile(PROGRAMS["fraction-of-previous"], max_length=20)
    assert certify(model, "float32").holds
    assert not certify(replace(model, read_out=replace(model.read_out, with_bos=True))).holds


@pytest.mark.parametrize("length", [0, -1, 2.5, "12", True])
def test_a_length_is_a_whole_number(length):
    with pytest.raises(tf.TransformistError, match="whole number from 1 to 2.62"):
        certify(tf.compile(PROGRAMS["majority"], max_length=9), "float32", length)
