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
from transformist.cli import main
from transformist.compiler.margins import ERRORS
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Unlawful, certify, lift
from transformist.verify.certificate.finding import Recorded

ASSUMED = {"induction-most-frequent", "most-frequent-token", "binary-increment"}
"""Programs whose answer is a category made by a table: that one label wins is not derived."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_certified_for_two_hundred_symbols(name):
    model = tf.compile(PROGRAMS[name], max_length=200)
    found = certify(model, "float32", 200)
    assert found.holds and found.margin > 0 and found.largest_length == 200
    assert bool(found.assumes) == (name in ASSUMED)
    assert "holds" in str(found) and "does not" not in str(found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_circuit_is_what_the_weights_compute(name):
    program = PROGRAMS[name]
    model = tf.compile(program, max_length=8, weighting="average-hard")
    lifted = lift(model, 8)
    for x in itertools.islice(strings(program, 8, 1, 5), 40):
        ideal = Ideal(lifted.circuit, x)
        _, stream = model.run(given(program, x), "exact").streams[-1]
        values = number_system("exact").numbers(stream)
        for i in ideal.rows:
            assert [ideal.form(form, i) for form in lifted.state] == list(values[i]), (x, i)


@pytest.mark.parametrize("arithmetic", ["float32", "float16"])
@pytest.mark.parametrize("name", ["dyck-1", "reverse", "histogram", "parity", "contains-abc"])
def test_no_slot_is_further_off_than_its_bound(name, arithmetic):
    program = PROGRAMS[name]
    model = tf.compile(program, max_length=10)
    lifted = lift(model, 10)
    margins = Recorded(lifted.circuit, lifted.sharpness, number_system(arithmetic))
    for atom in lifted.circuit.atoms:
        margins.errors.append(ERRORS[type(atom)](margins, atom, None))
    if any(demand.share <= 0 for demand in margins.demands):
        pytest.skip("the format does not keep the margins of steps and heads")
    for x in itertools.islice(strings(program, 10, 2, 6), 60):
        ideal = Ideal(lifted.circuit, x)
        _, stream = model.run(given(program, x), arithmetic).streams[-1]
        values = number_system(arithmetic).numbers(stream)
        for i, (slot, form) in itertools.product(ideal.rows, enumerate(lifted.state)):
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


@pytest.mark.parametrize("name", ["dyck-1", "induction-most-recent", "reverse", "majority"])
def test_of_changed_weights_too_it_says_the_truth(name):
    """Where a certificate holds, the format decides as the changed weights do exactly."""
    program, draw, held = PROGRAMS[name], random.Random(name), 0
    model = tf.compile(program, max_length=6, weighting="average-hard")
    xs = [
        given(program, x) for n in range(5) for x in itertools.product(program.alphabet, repeat=n)
    ]
    for _ in range(30):
        other = changed(model, draw)
        try:
            found = certify(other, "float16", 4)
        except Unlawful:
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
    assert "does not hold" in str(found) and "read-out" in str(found)


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
    assert "does not hold" in capsys.readouterr().out
    path = tmp_path / "m.safetensors"
    tf.save(tf.compile(PROGRAMS["majority"], max_length=30), path)
    assert main(["certify", str(path)]) == 0
    assert "N = 30: holds" in capsys.readouterr().out
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
        (lambda: certify(tf.recipe("original-transformer").build(), "float32", 5), "certify a"),
    ],
)
def test_what_is_not_certified_is_refused(request_, message):
    with pytest.raises(tf.TransformistError, match=message):
        request_()
