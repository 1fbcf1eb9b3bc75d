"""Certificates are checked again, for any order of summation, and saved with the model."""

import copy
import functools
import json
import pickle
import random
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from laws import by_laws, confirmed, holds_by_laws
from transformist.arithmetic import number_system
from transformist.bounds import ORDERS, STRUCTURED_ORDER
from transformist.circuit import StepFunction
from transformist.cli import certify, main
from transformist.engines.structured import evaluate
from transformist.errors import UnknownName
from transformist.laws import Range
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Uncertifiable, Unproved, extract, observing
from transformist.verify.certificate.confirming import confirm
from transformist.verify.certificate.finding import Search
from transformist.verify.certificate.identity import digest
from transformist.verify.certificate.recorded_margins import follow_within, noted
from transformist.verify.proof import prove

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


@functools.cache
def certified(name, **given):
    program = PROGRAMS[name] if name in PROGRAMS else tf.program(alphabet="abc")(SELECTIONS[name])
    model = tf.compile(program, max_length=given.pop("max_length", 60))
    return model, tf.certify(model, **given)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", ["any", "reference"])
def test_what_is_certified_follows_from_the_weights(name, order):
    model, found = certified(name, order=order, max_length=200)
    assert found.holds and found.grade == 1 and found.order == order
    tf.check_certificate(model, found)
    confirmed(model, order=order)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reference_adds_up_with_no_more_error_than_any_order(name):
    model, _ = certified(name)
    assert by_laws(model, order="reference").margin >= by_laws(model).margin


@pytest.mark.parametrize("arithmetic", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["dyck-1", "parity", "contains-abc", "histogram"])
def test_at_the_largest_length_of_a_format_too(name, arithmetic):
    model, found = certified(name, arithmetic=arithmetic, max_length=100)
    if not found.holds:
        model = tf.compile(PROGRAMS[name], max_length=100)
        found = tf.certify(model, arithmetic, found.largest_length or 1)
    if found.holds:
        tf.check_certificate(model, found)
    if holds_by_laws(model, arithmetic, found.max_length):
        assert found.holds
        confirmed(model, arithmetic, found.max_length)


@pytest.mark.parametrize(("name", "settings"), HAND_BUILT.items())
def test_models_built_by_hand(name, settings, seen_up_to):
    model = tf.recipe(name).build(**settings)
    n = seen_up_to if name == "dyck-k-d" else 200
    found = tf.certify(model, "float32", n)
    assert found.holds and found.largest_length == n
    assert [each.checked for each in found.assumes] == [seen_up_to] * 3 * (name == "dyck-k-d")
    assert found.grade == (1 if name == "dyck-1" else 2) and bool(found.stopped) == (
        found.grade == 2
    )
    tf.check_certificate(model, found)
    confirmed(model, max_length=n)


def test_what_is_assumed_is_said_and_true(seen_up_to):
    """The brackets of Dyck-k-D stay marked or not; that they are 0 or 1 is seen on short inputs."""
    found = tf.certify(tf.recipe("dyck-k-d").build(), "float32", seen_up_to)
    assert {str(each).split(" is from ")[1] for each in found.assumes} == {
        "0 to 1 at symbols, 0 to 0 at BOS "
        f"(checked exactly for every input of length up to {seen_up_to})"
    }
    assert "given that active after sublayer 2" in str(found)


def lines_changed(found, number, **changes):
    lines = list(found.lines)
    lines[number] = replace(lines[number], **changes)
    return replace(found, lines=tuple(lines))


def some_of(cases, count):
    """At most so many of them, which lie evenly among all, the first and the last included."""
    if len(cases) <= count:
        return cases
    return [cases[k * (len(cases) - 1) // (count - 1)] for k in range(count)]


WAYS = {
    "proved": (tf.certify, tf.check_certificate),
    "by the laws": (by_laws, confirm),
}
"""How a certificate comes about and is checked: that of the first grade, and by laws alone."""

CHANGED = ["dyck-1", "parity", "induction-most-recent", "reverse", "sort", *SELECTIONS]
each_way = pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "by the laws") for name in CHANGED),
        *((name, "proved") for name in ("dyck-1", "induction-most-recent", "reverse")),
    ],
)


@each_way
@pytest.mark.trials(3, 1000)
def test_a_line_that_says_too_much_is_refused(name, way, trials):
    certify, check = WAYS[way]
    model, _ = certified(name)
    found = certify(model)
    for number, line in some_of(list(enumerate(found.lines)), trials):
        wide = [k for k, row in enumerate(line.law.rows) if not row.is_point]
        if line.errors.absolute:
            less = replace(line.errors, absolute=line.errors.absolute / 2)
            with pytest.raises(Unproved, match=f"line {number}, "):
                check(model, lines_changed(found, number, errors=less))
        if wide:
            rows = list(line.law.rows)
            rows[wide[0]] = Range(rows[wide[0]].lo, rows[wide[0]].lo)
            narrow = replace(line.law, rows=tuple(rows))
            with pytest.raises(Unproved):
                check(model, lines_changed(found, number, law=narrow))
        if isinstance(line.atom, StepFunction):
            half = replace(line.atom, zone=line.atom.zone / 2)
            with pytest.raises(Unproved):
                check(model, lines_changed(found, number, atom=half))
        with pytest.raises(Unproved):
            check(model, lines_changed(found, number, falls=not line.falls))


@each_way
def test_what_does_not_follow_is_refused(name, way):
    certify, check = WAYS[way]
    model, _ = certified(name)
    found = certify(model)
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
    if certify(model, order="reference").lines != found.lines:
        others.append(replace(found, order="reference"))
    for other in others:
        if other != found:
            with pytest.raises(Unproved, match="must follow from the weights"):
                check(model, other)


FEW = ("dyck-1", "parity", "reverse", "signs")
"""Of which a quick run changes weights: counts, means, lookups, and a term of the position."""


@pytest.mark.trials(2, 10**6)
@pytest.mark.parametrize(
    "name",
    [each if each in FEW else pytest.param(each, marks=pytest.mark.slow) for each in CHANGED],
)
def test_other_weights_have_other_certificates(name, trials):
    """The weights of each array, one after the other, are changed a little: the lines do not fit.

    Nor is one of the first grade of these weights, whatever digest it bears: of each array a weight
    is tried.
    """
    model, proved = certified(name)
    found = by_laws(model)
    for number, layer in enumerate(model.layers):
        parts = [("heads", k, head) for k, head in enumerate(layer.heads)]
        parts += [("feed_forward", None, layer.feed_forward)] if layer.feed_forward else []
        for where, k, part in parts:
            for matrix in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "W_1", "b_1", "W_2"):
                weights = getattr(part, matrix, None)
                places = np.argwhere(weights).tolist() if weights is not None else []
                for at in map(tuple, some_of(places, trials)):
                    array = np.array(weights, dtype=object)
                    array[at] = Fraction(array[at]) * Fraction(9, 8)
                    one = replace(part, **{matrix: array.tolist()})
                    heads = [one if j == k else head for j, head in enumerate(layer.heads)]
                    given = {where: tuple(heads) if where == "heads" else one}
                    layers = list(model.layers)
                    layers[number] = replace(layer, **given)
                    other = replace(model, layers=tuple(layers))
                    with pytest.raises(Unproved):
                        confirm(other, found)
                    if at == tuple(places[0]):
                        with pytest.raises(Unproved, match="must belong to the model"):
                            tf.check_certificate(other, proved)
                        with pytest.raises(Unproved):
                            tf.check_certificate(other, replace(proved, weights=digest(other)))


def test_what_does_not_hold_is_not_checked():
    model, found = certified("histogram", arithmetic="bfloat16", max_length=200)
    assert not found.holds
    with pytest.raises(Unproved, match="a certificate must hold"):
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
    assert sum(isinstance(atom, StepFunction) for atom in extracted.circuit.atoms) == 1
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
    found = tf.certify(model, "float32", seen_up_to)
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
    assert main([*asked[:4], "--order", "reference", "--lines", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["order"] == "reference" and facts["beside"] == []
    assert facts["lines"][0]["line"] == "[0]" and facts["lines"][0]["is"] == "embedded"
    other = tf.certify(tf.load(path), "float32", 49)
    monkeypatch.setattr(certify, "load_certificates", lambda _: (replace(other, model="another"),))
    assert main(["certify", str(path), "--check"]) == 1
    assert "its model is as stated" in capsys.readouterr().out
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
    contents = extracted.contents
    contents.readings.add(contents.read(model.read_out.W_out, model.read_out.b_out))
    margins, _ = noted(
        extracted.circuit, extracted.sharpness, a, STRUCTURED_ORDER, contents.readings
    )
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
        for slot, number in enumerate(contents.held):
            for row in range(len(values)):
                off = abs(Fraction(float(values[row, slot])) - ideal[row, slot])
                bound = 0 if number is None else margins.sum_error(number)
                assert off <= bound, (x, row, slot)


def test_the_engine_has_two_formats():
    model = tf.compile(PROGRAMS["majority"], max_length=9)
    with pytest.raises(tf.TransformistError, match="float64 or float32"):
        tf.certify(model, "float16", order="structured")


def of_the_second_grade(name, seen_up_to):
    """A model that the proof stops at, the operation, and its N."""
    if name == "dyck-k-d":
        return tf.recipe("dyck-k-d").build(), "layer 0 head 0", seen_up_to
    program = PROGRAMS["induction-most-frequent"]
    return tf.compile(program, max_length=900, arithmetic="float64"), "layer 2 unit 0", 900


@pytest.mark.parametrize("name", ["dyck-k-d", "induction-most-frequent"])
class TestTheSecondGrade:
    def test_it_says_where_the_proof_stopped_and_is_saved(self, name, seen_up_to, tmp_path):
        model, stopped, n = of_the_second_grade(name, seen_up_to)
        found = tf.certify(model, "float32", n)
        assert found.holds and found.grade == 2 and "second grade" in str(found)
        assert found.stopped.startswith(f"{stopped}: the error of a ")
        assert bool(found.assumes) == (name == "dyck-k-d")
        path = tmp_path / "m.safetensors"
        tf.save(model, path, found)
        assert tf.load_certificates(path) == (found,)
        tf.check_certificate(tf.load(path), found)
        proof = prove(model, number_system("float32"), n, "any")
        assert found.stopped == proof.stopped and not proof.holds

    def test_there_is_none_for_kernels(self, name, seen_up_to):
        """The laws know orders of summation, and not what normalises last."""
        model, stopped, n = of_the_second_grade(name, seen_up_to)
        try:
            found = tf.certify(model, "float32", n, "flash")
        except Uncertifiable as refusal:
            assert stopped in str(refusal)
        else:
            assert not found.holds and found.grade == 0 and found.stopped.startswith(stopped)


@pytest.mark.trials(2, 6)
def test_no_field_of_the_second_grade_is_free(trials):
    model = tf.recipe("dyck-k-d").build()
    found = tf.certify(model, "float32", 2)
    assert found.grade == 2
    for field in fields(found):
        is_digest = field.name == "weights"
        said = "must belong to the model" if is_digest else "must follow from the weights"
        for other in (((3,),), None, 1, 3, "any", ("x",))[:trials]:
            if other != getattr(found, field.name):
                with pytest.raises(Unproved, match=said):
                    tf.check_certificate(model, replace(found, **{field.name: other}))


def test_a_certificate_of_another_model_is_named_as_such():
    model, found = certified("dyck-1")
    other, _ = certified("dyck-1", max_length=61)
    network = model.layers[0].feed_forward
    shift = [Fraction(b) + Fraction(k == 0, 2**20) for k, b in enumerate(network.b_1)]
    layers = (replace(model.layers[0], feed_forward=replace(network, b_1=shift)), *model.layers[1:])
    for each in (other, replace(model, layers=layers)):
        with pytest.raises(Unproved, match="must belong to the model"):
            tf.check_certificate(each, found)


def test_a_certificate_of_another_version_is_named_as_such():
    model, found = certified("dyck-1")
    for version in (1, 3):
        with pytest.raises(Unproved, match=f"it is of version 2, not {version}"):
            tf.check_certificate(model, replace(found, version=version))


@pytest.mark.parametrize("name", ["dyck-1", "induction-most-recent", "histogram", "reverse"])
def test_kernels_that_normalise_last_are_certified(name, tmp_path):
    """No law of circuits tells of them: the certificate has margins alone."""
    path = tmp_path / "m.safetensors"
    model, found = certified(name, order="flash")
    assert found.holds and found.grade == 1 and found.order == "flash" and not found.lines
    assert "by kernels that normalise last" in str(found)
    tf.save(model, path, found)
    assert tf.load_certificates(path) == (found,)
    tf.check_certificate(tf.load(path), tf.load_certificates(path)[0])
    for order in ("any", "reference"):
        with pytest.raises(Unproved):
            tf.check_certificate(model, replace(found, order=order))
    *others, last = found.demands
    smaller = replace(last, error=last.error / 2 if last.error else 1e-9)
    for demands in ((*others, smaller), tuple(others)):
        with pytest.raises(Unproved, match="demands"):
            tf.check_certificate(model, replace(found, demands=demands))


def test_one_for_kernels_does_not_speak_of_the_reference(capsys, tmp_path):
    path = tmp_path / "m.safetensors"
    model = tf.compile(PROGRAMS["dyck-1"], max_length=30, arithmetic="exact")
    tf.save(model, path, tf.certify(model, "float32", order="flash"))
    for engine in ("reference", "structured"):
        options = ["--arithmetic", "float32", "--engine", engine]
        assert main(["run", str(path), "()", *options]) == 0
        # On a slow machine lines of progress stand before it.
        assert "warning:" in capsys.readouterr().err


@pytest.mark.parametrize("order", ["up", "", None, 3, ["any"]])
def test_an_order_that_there_is_not(order):
    """The list is given, or the one that may be meant."""
    model = tf.compile(PROGRAMS["dyck-1"], max_length=9)
    words = "did you mean any" if order == ["any"] else "any, reference, structured, flash"
    with pytest.raises(UnknownName, match=words):
        tf.certify(model, order=order)


def test_the_command_names_orders_and_grades(capsys):
    assert main(["certify", "programs/dyck-1", "--order", "flash", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["order"], facts["grade"], facts["stopped"]) == ("flash", 1, None)
    assert main(["certify", "dyck-k-d", "--max-length", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["grade"] == 2 and facts["stopped"].startswith("layer 0 head 0")
    assert main(["certify", "programs/dyck-1", "--order", "up"]) == 2
    assert "any, reference, structured, flash" in capsys.readouterr().err
    assert main(["certify", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(f"{order}," in text for order in ("any", "reference", "structured", "flash"))


def test_margins_may_differ_by_the_rounding_of_another_machine():
    """Libraries of linear algebra add in the order that suits the processor."""
    model, found = certified("dyck-1")

    def with_error(factor):
        first, *others = found.demands
        return replace(found, demands=(replace(first, error=first.error * factor), *others))

    tf.check_certificate(model, with_error(1 + 2.0**-40))
    with pytest.raises(Unproved, match="demands is as stated"):
        tf.check_certificate(model, with_error(1 + 2.0**-20))


def applied(monkeypatch):
    """A list that grows by one whenever the laws describe a model."""
    calls, describe = [], Search.described
    monkeypatch.setattr(Search, "described", lambda *of: calls.append(of) or describe(*of))
    return calls


def test_the_numbers_of_a_certificate_are_read_off_when_they_are_asked_for(monkeypatch):
    model = tf.compile(PROGRAMS["majority"], max_length=9)
    calls = applied(monkeypatch)
    found = tf.certify(model)
    assert found.holds and found.grade == 1 and str(found) and not calls
    lines = found.lines
    assert lines and found.heads and found.units and found.weighting == "softmax"
    assert found.lines is lines and len(calls) == 1


USES = {
    "equality": lambda found: found == tf.certify(tf.compile(PROGRAMS["majority"], max_length=9)),
    "hash": lambda found: hash(found) == hash(copy.copy(found)),
    "copy": lambda found: copy.copy(found) == found,
    "deep copy": lambda found: copy.deepcopy(found) == found,
    "pickle": lambda found: pickle.loads(pickle.dumps(found)) == found,
    "replace": lambda found: replace(found, max_length=8).lines == found.lines,
    "another number": lambda found: replace(found, lines=found.lines[1:]) != found,
}


@pytest.mark.parametrize("use", USES)
def test_a_certificate_not_yet_read_is_used_whole(use):
    model = tf.compile(PROGRAMS["majority"], max_length=9)
    found = tf.certify(model)
    assert USES[use](found)
    assert found.lines and {field.name for field in fields(found)} <= vars(found).keys()


def test_a_copy_of_a_certificate_computes_nothing(monkeypatch):
    found = copy.copy(tf.certify(tf.compile(PROGRAMS["majority"], max_length=9)))
    calls = applied(monkeypatch)
    assert found.lines and vars(found).keys() == {field.name for field in fields(found)}
    assert not calls


def test_a_certificate_has_no_other_attributes():
    found = tf.certify(tf.compile(PROGRAMS["majority"], max_length=9))
    with pytest.raises(AttributeError, match="'Certificate' object has no attribute 'rows'"):
        _ = found.rows
