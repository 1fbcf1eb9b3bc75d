"""Certificates are checked again, for any order of summation, and saved with the model."""

import json
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.bounds import ORDERS, STRUCTURED_ORDER
from transformist.circuit import Step
from transformist.cli import certifying, main
from transformist.engines.structured import evaluate
from transformist.laws import Range
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Unproved, extract, observing
from transformist.verify.certificate.demands import follow_within, noted

HAND_BUILT = {
    "dyck-1": {},
    "induction-most-recent": {"weighting": "softmax"},
    "dyck-k-d": {},
}


SELECTIONS = {
    "first as the query": lambda x: x.first(default="a").select(x, mask="past").any().tag(),
    "any as the query": lambda x: (x == "a").any("none").select(x == "b", mask="past").any().tag(),
    "signs": lambda x: x.position("(-1)^i").select(1, mask="past").any().any("past").tag(),
    "n": lambda x: x.lookup(x.select("a").leftmost(x.position("i")), default="c").tag(),
    "a mean behind": lambda x: (x.select(x, mask="past").mean(x == "b") > "1/2").tag(),
}


def certified(name, **given):
    program = PROGRAMS[name] if name in PROGRAMS else tf.program(alphabet="abc")(SELECTIONS[name])
    model = tf.compile(program, max_length=given.pop("max_length", 60))
    return model, tf.certify(model, **given)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", ["any", "reference"])
def test_what_is_certified_follows_from_the_weights(name, order):
    model, found = certified(name, order=order, max_length=200)
    assert found.holds and found.order == order
    tf.check_certificate(model, found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reference_adds_up_with_no_more_error_than_any_order(name):
    model, found = certified(name)
    assert tf.certify(model, order="reference").margin >= found.margin


@pytest.mark.parametrize("arithmetic", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["dyck-1", "parity", "contains-abc", "histogram"])
def test_at_the_largest_length_of_a_format_too(name, arithmetic):
    model, found = certified(name, arithmetic=arithmetic, max_length=100)
    if not found.holds:
        model = tf.compile(PROGRAMS[name], max_length=100)
        found = tf.certify(model, arithmetic, found.largest_length or 1)
    if found.holds:
        tf.check_certificate(model, found)


@pytest.mark.parametrize(("name", "settings"), HAND_BUILT.items())
def test_models_built_by_hand(name, settings, seen_up_to):
    model = tf.recipe(name).build(**settings)
    found = tf.certify(model, "float32", 200)
    assert found.holds and found.largest_length == 200
    assert [each.checked for each in found.assumes] == [seen_up_to] * 3 * (name == "dyck-k-d")
    tf.check_certificate(model, found)


def test_what_is_assumed_is_said_and_true(seen_up_to):
    """The brackets of Dyck-k-D stay marked or not; that they are 0 or 1 is seen on short inputs."""
    found = tf.certify(tf.recipe("dyck-k-d").build(), "float32", 50)
    assert {str(each).split(" is from ")[1] for each in found.assumes} == {
        "0 to 1 at symbols, 0 to 0 at BOS "
        f"(checked exactly for every input of length up to {seen_up_to})"
    }
    assert "given that active after sublayer 2" in str(found)


def lines_changed(found, number, **changes):
    lines = list(found.lines)
    lines[number] = replace(lines[number], **changes)
    return replace(found, lines=tuple(lines))


CHANGED = ["dyck-1", "parity", "induction-most-recent", "reverse", "sort", *SELECTIONS]


@pytest.mark.parametrize("name", CHANGED)
def test_a_line_that_says_too_much_is_refused(name):
    model, found = certified(name)
    for number, line in enumerate(found.lines):
        wide = [k for k, row in enumerate(line.law.rows) if not row.is_point]
        if line.errors.absolute:
            less = replace(line.errors, absolute=line.errors.absolute / 2)
            with pytest.raises(Unproved, match=f"line {number}, "):
                tf.check_certificate(model, lines_changed(found, number, errors=less))
        if wide:
            rows = list(line.law.rows)
            rows[wide[0]] = Range(rows[wide[0]].lo, rows[wide[0]].lo)
            narrow = replace(line.law, rows=tuple(rows))
            with pytest.raises(Unproved):
                tf.check_certificate(model, lines_changed(found, number, law=narrow))
        if isinstance(line.atom, Step):
            half = replace(line.atom, zone=line.atom.zone / 2)
            with pytest.raises(Unproved):
                tf.check_certificate(model, lines_changed(found, number, atom=half))
        with pytest.raises(Unproved):
            tf.check_certificate(model, lines_changed(found, number, falls=not line.falls))


@pytest.mark.parametrize("name", CHANGED)
def test_what_does_not_follow_is_refused(name):
    model, found = certified(name)
    worst = max(range(len(found.demands)), key=lambda k: found.demands[k].error)
    smaller = replace(found.demands[worst], error=found.demands[worst].error / 2)
    others = [
        replace(found, max_length=found.max_length + 1),
        replace(found, max_length=found.max_length - 1),
        replace(found, arithmetic="bfloat16"),
        replace(found, arithmetic="exact"),
        replace(found, order="no order"),
        replace(found, demands=found.demands[1:]),
        replace(found, demands=found.demands[:-1]),
        replace(found, demands=(*found.demands[:worst], smaller, *found.demands[worst + 1 :])),
        replace(found, lines=found.lines[:-1]),
        replace(found, heads=found.heads[:-1]),
        replace(found, units=tuple(layer[:-1] for layer in found.units)),
        replace(found, lines=found.lines[::-1]),
    ]
    if name != "dyck-1":  # which has no scores
        others.append(replace(found, weighting="average-hard"))
    if tf.certify(model, order="reference").lines != found.lines:
        others.append(replace(found, order="reference"))
    for other in others:
        if other != found:
            with pytest.raises(Unproved, match="follows from the weights"):
                tf.check_certificate(model, other)


@pytest.mark.parametrize("name", CHANGED)
def test_other_weights_have_other_certificates(name):
    """Every weight of the model, one after the other, is changed a little: the lines do not fit."""
    model, found = certified(name)
    for number, layer in enumerate(model.layers):
        parts = [("heads", k, head) for k, head in enumerate(layer.heads)]
        parts += [("feed_forward", None, layer.feed_forward)] if layer.feed_forward else []
        for where, k, part in parts:
            for matrix in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "W_1", "b_1", "W_2"):
                weights = getattr(part, matrix, None)
                for at in zip(*np.nonzero(weights), strict=True) if weights is not None else ():
                    array = np.array(weights, dtype=object)
                    array[at] = Fraction(array[at]) * Fraction(9, 8)
                    one = replace(part, **{matrix: array.tolist()})
                    heads = [one if j == k else head for j, head in enumerate(layer.heads)]
                    given = {where: tuple(heads) if where == "heads" else one}
                    layers = list(model.layers)
                    layers[number] = replace(layer, **given)
                    with pytest.raises(Unproved):
                        tf.check_certificate(replace(model, layers=tuple(layers)), found)


def test_what_does_not_hold_is_not_checked():
    model, found = certified("majority", arithmetic="bfloat16", max_length=200)
    assert not found.holds
    with pytest.raises(Unproved, match="it holds"):
        tf.check_certificate(model, found)


def crowded(n):
    """A slot with a mean, and the step of a square, whose two units are large."""
    stream = tf.Stream(("a", "square", "mean", "both"))
    embedding = tf.Embedding(
        symbols=("a", "b"),
        vectors=[[1, 0, 0, 0], [0, 0, 0, 0]],
        positions=tf.PositionFunctions((None, "i^2", None, None)),
    )
    mean = tf.Attention(
        W_Q=[[0] * 4], W_K=[[0] * 4], W_V=[[1, 0, 0, 0]], W_O=[[0], [0], [1], [0]], mask="future"
    )
    steps = tf.FeedForward(
        W_1=[[0, 0, 1, 0], [0, 2, 0, 0], [0, 2, 0, 0]],
        b_1=[0, "-1/2", "-3/2"],
        W_2=[[0] * 3, [0] * 3, [0] * 3, [1, 1, -1]],
    )
    layers = (tf.Layer((mean,), steps),)
    read_out = tf.Binary(W_out=[[0, 0, 0, 1]], b_out=["-1/2"])
    return tf.Transformer(
        stream=stream, embedding=embedding, layers=layers, read_out=read_out, max_length=n
    )


@pytest.mark.parametrize("order", ["reference", "any"])
def test_units_that_end_in_one_slot_push_each_other(order):
    n = 1000
    model = crowded(n)
    extracted = extract(model, n)
    a = number_system("float32")
    margins, _ = noted(extracted.circuit, extracted.sharpness, a, ORDERS[order])
    for _ in extracted.circuit.atoms:
        follow_within(margins)
    assert sum(isinstance(atom, Step) for atom in extracted.circuit.atoms) == 1
    z = model.run("aab" * (n // 3), "float32").streams[-2][1].astype(np.float32)
    ff = model.layers[0].feed_forward
    read, shift, write = (
        np.array(each, float).astype(np.float32) for each in (ff.W_1, ff.b_1, ff.W_2[3])
    )
    hidden = np.maximum(z @ read.T + shift, 0) * write
    added = {
        "reference": lambda h: (h[:, 0] + h[:, 1]) + h[:, 2],
        "any": lambda h: (h[:, 2] + h[:, 0]) + h[:, 1],
    }[order](hidden)
    i = np.arange(1, len(added) + 1)
    off = max(abs(added.astype(float) - 1 - (i - i // 3) / i))
    own = sum(margins.errors[atom].absolute for atom in extracted.state[3].atoms)
    assert own < off <= margins.error(extracted.state[3])


def test_certificates_are_saved_with_their_model(tmp_path):
    path = tmp_path / "m.safetensors"
    model, found = certified("histogram")
    found = (found, tf.certify(model, "float64", order="reference"))
    tf.save(model, path, found)
    assert tf.load_certificates(path) == found
    tf.check_certificate(tf.load(path), tf.load_certificates(path)[0])
    other = tf.compile(PROGRAMS["histogram"], max_length=61)
    with pytest.raises(Unproved):
        tf.save(other, path, found)
    assert tf.load_certificates(path) == found
    tf.save(other, path)
    assert tf.load_certificates(path) == ()


def test_assumptions_are_saved_too(tmp_path, seen_up_to):
    path = tmp_path / "m.safetensors"
    model = tf.recipe("dyck-k-d").build()
    found = tf.certify(model, "float32", 30)
    tf.save(model, path, [found])
    assert tf.load_certificates(path) == (found,) and found.assumes


def test_the_command_saves_checks_and_prints_lines(capsys, tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    asked = ["certify", "programs/dyck-1", "--max-length", "50", "--lines", "-o", str(path)]
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert "in any order" in out and "from left to right" in out and "2 certificates" in out
    assert "mean of [0], mask future" in out and "step of − [1]" in out
    assert main(["certify", str(path), "--check"]) == 0
    assert capsys.readouterr().out.count("follows from the weights") == 2
    assert main(["certify", str(path), "--check", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["checked"]) == 2
    assert main([*asked[:4], "--order", "reference", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["order"] == "reference" and facts["beside"] == []
    other = tf.certify(tf.load(path), "float32", 49)
    monkeypatch.setattr(
        certifying, "load_certificates", lambda _: (replace(other, model="another"),)
    )
    assert main(["certify", str(path), "--check"]) == 1
    assert "it is of this model" in capsys.readouterr().out
    assert main(["certify", str(path), "--check", "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["unproved"]) == 1
    monkeypatch.undo()
    for option in (["--order", "reference"], ["--order", "any"], ["--lines"]):
        assert main(["certify", str(path), "--check", *option]) == 2
        assert "beside another option" in capsys.readouterr().err
    tf.save(tf.compile(PROGRAMS["dyck-1"], max_length=50), path)
    for request in ([str(path), "--check"], ["programs/dyck-1", "--order", "up"]):
        assert main(["certify", *request]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize("name", ["dyck-1", "induction-most-recent", "histogram", "reverse"])
def test_the_structured_engine_is_within_what_is_certified_for_it(name, arithmetic):
    n = 40
    model, found = certified(name, arithmetic=arithmetic, max_length=n, order="structured")
    assert found.holds and "structured engine" in str(found)
    tf.check_certificate(model, found)
    extracted = extract(model, n)
    a = number_system(arithmetic)
    margins, _ = noted(extracted.circuit, extracted.sharpness, a, STRUCTURED_ORDER)
    for _ in extracted.circuit.atoms:
        follow_within(margins)
    assert tuple(margins.errors) == tuple(line.errors for line in found.lines)
    hard = observing.hardened(model)
    draw = random.Random(name)
    for length in (0, 1, 2, 9, n - 1, n):
        x = "".join(draw.choices(model.alphabet, k=length))
        *_, (_, exact) = hard.streams([x], "exact")
        ideal = number_system("exact").numbers(exact)[0]
        values = evaluate(model, x, arithmetic).vectors.astype(float)
        for slot, form in enumerate(extracted.state):
            for row in range(len(values)):
                off = abs(Fraction(float(values[row, slot])) - ideal[row, slot])
                assert off <= margins.error(form), (x, row, slot)


def test_the_engine_has_two_formats():
    model = tf.compile(PROGRAMS["majority"], max_length=9)
    with pytest.raises(tf.TransformistError, match="float64 and float32"):
        tf.certify(model, "float16", order="structured")
