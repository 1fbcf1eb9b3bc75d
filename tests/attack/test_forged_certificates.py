"""Changed certificates and changed files are refused, field by field and entry by entry.

A change may be harmless. Names that nothing evaluates are (`HARMLESS_IN_FILES`). Other weights are
if the certificate follows from them, too: it is checked again with the weights that are there, so
that it is true of them; all inputs to N are tried then.
"""

import copy
import itertools
import json
import math
import random
from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction as F

import numpy as np
import pytest
from drawing import Drawn, drawn
from safetensors import safe_open
from safetensors.numpy import save_file
from tiny import Tiny, known
from trying import certificate_of, counterexample

import transformist as tf
from transformist.arithmetic import number_system
from transformist.circuit import Circuit
from transformist.errors import TransformistError
from transformist.hosts.saved_model import KEY
from transformist.laws import ZERO, Ranges
from transformist.programs import PROGRAMS
from transformist.verify.certificate.statement import Demand

HARMLESS_IN_FILES = {
    "model.Transformer.stream": "names of slots, and what they hold when, are no part of what is "
    "computed; where a certificate quotes them, they have to be the same",
    "model.Transformer.built_for": "it says for which format constants were chosen, and is not "
    "evaluated",
}
"""Places of the metadata that no evaluation reads."""


def compiled(name, arithmetic="float32", N=4):
    model = tf.compile(PROGRAMS[name], max_length=N, arithmetic="exact")
    return model, tf.certify(model, arithmetic)


SUBJECTS = {
    "majority": lambda: compiled("majority"),
    "parity": lambda: compiled("parity"),
    "induction": lambda: compiled("induction-most-recent", N=3),
    "sort": lambda: compiled("sort", N=3),
    "dyck-1 by hand": lambda: of_recipe("dyck-1", max_length=4),
    "steps": lambda: first_that_holds("steps"),
    "heads": lambda: first_that_holds("heads"),
    "matches": lambda: first_that_holds("matches"),
    "repeated": lambda: first_that_holds("repeated"),
    "lookups": lambda: first_that_holds("lookups"),
}

QUICK = ("majority", "steps")

NAMES = [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SUBJECTS]


def of_recipe(name, **settings):
    model = tf.recipe(name).build(**settings)
    return model, tf.certify(model, "float32")


def first_that_holds(kind):
    for seed in itertools.count():
        each = drawn(kind, seed)
        found = certificate_of(each)
        if found is not None and found.holds and each.model.layers:
            return each.model, found
    raise AssertionError


# Changes of plain values


def changes_of_number(x):
    """Beside it, of the other sign, half and twice of it, 0, 1, and what is no number."""
    kind = type(x)
    if kind is float:
        beside = [float(np.nextafter(x, np.inf)), float(np.nextafter(x, -np.inf))]
        return [*beside, -x, x / 2, 2 * x, 0.0, 1.0, float("nan"), float("inf"), -float("inf")]
    return [x + 1, x - 1, -x, 2 * x, kind(0), *([x / 2, x + F(1, 2**60)] if kind is F else [])]


def changes(value, draw):
    """Other values for a part of a certificate or of metadata."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int | float | F):
        return [*changes_of_number(value), None, "1"]
    if isinstance(value, str):
        known = ["float64", "float16", "bfloat16", "any", "reference", "structured", "softmax"]
        known += ["average-hard", "none", "future", "past", "last", "every", "leftmost", "mean"]
        return [*draw.sample(known, 4), value + " ", "", None, 3]
    if isinstance(value, tuple | list):
        kind = type(value)
        listed = list(value)
        found = [kind(listed[:-1]), kind(listed[1:]), kind(listed[::-1]), kind([*listed, None])]
        return [*found, kind([*listed, *listed[-1:]]), None]
    if isinstance(value, frozenset):
        return [value | {0}, value | {"n"}, frozenset(list(value)[1:]), None]
    return [0, 1.0, "", ()]


def same(x, y):
    """Equal, with the types of all parts: 1 is neither True nor 1.0, but the rational 1."""
    if {type(x), type(y)} == {int, F}:
        return bool(x == y)
    if isinstance(x, str) and isinstance(y, str):  # a mask, and its name as it is read from a file
        return x == y
    if isinstance(x, Ranges) or isinstance(y, Ranges):  # which are a tuple when read from a file
        x, y = (tuple(each) if isinstance(each, Ranges) else each for each in (x, y))
    if type(x) is not type(y):
        return False
    if isinstance(x, Demand) and type(x.error) is type(y.error) is float:
        close = math.isclose(x.error, y.error, rel_tol=2.0**-30)  # but for another processor's sums
        return close and same((x.place, x.what, x.allowed), (y.place, y.what, y.allowed))
    if is_dataclass(x):
        return all(same(getattr(x, f.name), getattr(y, f.name)) for f in fields(x) if f.init)
    if isinstance(x, tuple | list):
        return len(x) == len(y) and all(map(same, x, y))
    return bool(x == y) or (x != x and y != y)


def variants(value, draw, path=()):
    """Every part of a value changed, each in several ways: the place, and the changed whole.

    A definition may refuse to be made, and one that is not made is forged by force.
    """
    if is_dataclass(value):
        for each in fields(value):
            if not each.init:
                continue
            part = getattr(value, each.name)
            for where, changed in variants(part, draw, (*path, each.name)):
                forged = copy.copy(value)
                forged.__dict__.update(
                    {
                        k: v
                        for k, v in forged.__dict__.items()
                        if k in {f.name for f in fields(value)}
                    }
                )
                object.__setattr__(forged, each.name, changed)
                yield where, forged
        return
    for changed in changes(value, draw):
        if not same(changed, value):
            yield path, changed
    if isinstance(value, tuple):
        for k, part in enumerate(value):
            for where, changed in variants(part, draw, (*path, k)):
                yield where, (*value[:k], changed, *value[k + 1 :])


def is_accepted(model, certificate):
    """Whether the checker accepts; a refusal has to be one of the library's."""
    try:
        tf.check_certificate(model, certificate)
    except TransformistError:
        return False
    return True


def says_the_same(changed, certificate):
    """Whether an accepted certificate claims no more than the one it was made from.

    Another order may be named: every margin is computed again for it, and where all are the same it
    holds for that order as well. The groups of units of a layer are a set, each checked by itself
    and every unit in one of them: their order says nothing.
    """
    claims = []
    for each in (changed, certificate):
        groups = tuple(sorted(map(repr, layer)) for layer in each.units)
        claims.append(replace(each, order="any", units=groups))
    return same(*claims)


FEW = 600
"""Changes of which none is left out."""


def of_each_kind(forged, most, draw):
    """The changes of which there are few; else of each kind of place `most`, drawn.

    A kind is the fields on the way to a place, without the numbers in lists: what checks a field
    checks it in every line and demand. Plain draws would be of the long lists most of the time.
    """
    draw.shuffle(forged)
    by_kind = defaultdict(list)
    for where, changed in forged:
        by_kind[tuple(part for part in where if isinstance(part, str))].append((where, changed))
    if most > 1 and len(forged) <= FEW:
        return forged
    return [change for changes in by_kind.values() for change in changes[:most]]


@pytest.mark.trials(1, 4)
@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_a_certificate_is_checked(name, trials):
    with known():
        model, certificate = SUBJECTS[name]()
        assert is_accepted(model, certificate)
        draw = random.Random(name)
        accepted = [
            where
            for where, changed in of_each_kind(list(variants(certificate, draw)), trials, draw)
            if is_accepted(model, changed) and not says_the_same(changed, certificate)
        ]
        assert not accepted, accepted[:10]


@pytest.mark.parametrize("name", NAMES)
def test_a_certificate_of_another_model_is_refused(name):
    with known():
        _, certificate = SUBJECTS[name]()
        for other in SUBJECTS:
            if other in QUICK and other != name:
                assert not is_accepted(SUBJECTS[other]()[0], certificate)


def test_a_part_changed_in_place_is_refused():
    """Forms keep their numbers and their hash once computed; the check reads the parts instead."""
    model, certificate = compiled("majority")
    changed = 0
    for line in certificate.lines:
        form = getattr(line.atom, "value", None)
        if form is not None and form.terms:
            assert hash(form) == hash(form)  # computed, and kept
            object.__setattr__(form, "terms", tuple((atom, 2 * f) for atom, f in form.terms))
            changed += 1
    assert changed
    assert not is_accepted(model, certificate)


def test_ranges_of_kinds_that_are_not_there_bound_nothing(monkeypatch):
    # The forger states of a sum that is assumed to be in some range that it is 0 at the kinds −1,
    # −2, …: as many as there are, so that the range that all kinds have would not count.
    add = Circuit.add

    def narrowed(circuit, atom, name, rows=None):
        if rows is not None:
            others = {-1 - k: ZERO for k in range(len(rows))}
            rows = Ranges(len(rows), rows[0], others)
        return add(circuit, atom, name, rows)

    with known():
        each = drawn("repeated", 275)
        assert counterexample(each) and not certificate_of(each).holds
        with monkeypatch.context() as patch:
            patch.setattr(Circuit, "add", narrowed)
            forged = certificate_of(each)
        assert forged.holds
        assert not is_accepted(each.model, forged)


# Files


def described(path):
    """The tensors and the metadata of a file."""
    with safe_open(path, framework="numpy") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return tensors, json.loads(file.metadata()[KEY])


def written(path, tensors, metadata):
    save_file(tensors, path, {KEY: json.dumps(metadata)})


def parts(value, path=()):
    """The places of a JSON value, each with what is there."""
    yield path, value
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from parts(part, (*path, key))


def with_part(value, path, part):
    if not path:
        return part
    changed = copy.copy(value)
    changed[path[0]] = with_part(value[path[0]], path[1:], part)
    return changed


def changes_of_json(value, draw):
    if isinstance(value, dict):
        (key, *_) = value or [""]
        return [{}, {f"{key}x": value.get(key)}, {**value, "more": 1}, None, []]
    if isinstance(value, str) and "/" in value and value.replace("/", "").strip("-").isalnum():
        top, _, bottom = value.partition("/")  # a rational, in hexadecimal
        return [f"{top}1/{bottom}", f"{top}/{bottom}1", f"-{value}", f"{top}/0"]
    return changes(value, draw)


def outcome(path):
    """What a file is: `refused`, or its model and certificate, which follows from it."""
    try:
        model, proofs = tf.load(path), tf.load_certificates(path)
        for each in proofs:
            tf.check_certificate(model, each)
    except TransformistError:
        return None
    return model, proofs


def is_true(found, saved, proofs):
    """The same model; or another, of which the certificate is true, as it follows from its weights.

    Every input to N is tried then, in the certificate's order.
    """
    if unchanged(found, saved):
        return True
    for each in proofs:
        a = number_system(each.arithmetic)
        shortest = 0 if found.embedding.front or found.read_out.at == "every" else 1
        inputs = tuple(
            tuple(itertools.product(found.alphabet, repeat=n))
            for n in range(shortest, each.max_length + 1)
        )
        if counterexample(Drawn("", 0, "", found, a, each.order, inputs), 2 * isinstance(a, Tiny)):
            return False
    return True


def harmless(path):
    name = ".".join(map(str, path))
    return any(name.startswith(each) for each in HARMLESS_IN_FILES)


@pytest.mark.trials(1, 2)
@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_the_metadata_of_a_file_is_checked(name, trials, tmp_path):
    with known():
        model, certificate = SUBJECTS[name]()
        path = tmp_path / "model.safetensors"
        tf.save(model, path, [certificate])
        tensors, metadata = described(path)
        assert outcome(path) is not None
        draw = random.Random(name)
        forged = [
            (where, changed)
            for where, part in parts(metadata)
            for changed in changes_of_json(part, draw)
            if not same(part, changed)
        ]
        accepted = []
        for where, changed in of_each_kind(forged, trials, draw):
            written(path, tensors, with_part(metadata, where, changed))
            found = outcome(path)
            if found is None or harmless(where):
                continue
            other, proofs = found  # no certificate claims nothing, and twice the same the same
            same_proofs = all(says_the_same(each, certificate) for each in proofs)
            if not same_proofs or not is_true(other, model, proofs):
                accepted.append((where, changed))
        assert not accepted, accepted[:10]


def unchanged(found, model):
    """The same model, bit by bit."""
    try:
        return weights_of(found) == weights_of(model) and repr(found) == repr(model)
    except (TypeError, AttributeError):
        return False


def weights_of(value):
    """All weights and settings of a model but names, as plain values."""
    if isinstance(value, np.ndarray):
        return value.shape, [F(x) for x in value.ravel().tolist()]
    if isinstance(value, tf.Stream):
        return None
    if is_dataclass(value):
        named = {f.name: weights_of(getattr(value, f.name)) for f in fields(value) if f.init}
        named.pop("built_for", None)
        return type(value).__name__, named
    if isinstance(value, tuple):
        return [weights_of(each) for each in value]
    return type(value).__name__, value


@pytest.mark.trials(60, 600)
@pytest.mark.parametrize("name", NAMES)
def test_every_entry_of_a_tensor_of_a_file_is_checked(name, trials, tmp_path):
    with known():
        model, certificate = SUBJECTS[name]()
        path = tmp_path / "model.safetensors"
        tf.save(model, path, [certificate])
        tensors, metadata = described(path)
        draw = random.Random(name)
        forged = [
            (key, index, changed)
            for key, tensor in tensors.items()
            for index in np.ndindex(tensor.shape)
            for changed in changes_of_number(float(tensor[index]))
            if changed != tensor[index]
        ]
        draw.shuffle(forged)
        for key, index, changed in forged[:trials]:
            tensor = tensors[key].copy()
            tensor[index] = changed
            written(path, {**tensors, key: tensor}, metadata)
            found = outcome(path)
            # A tensor beside rationals holds the nearest floats of them, which are not read.
            assert found is None or is_true(found[0], model, found[1]), (key, index, changed)


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_of_another_shape_or_type_is_refused(name, tmp_path):
    with known():
        model, certificate = SUBJECTS[name]()
        path = tmp_path / "model.safetensors"
        tf.save(model, path, [certificate])
        tensors, metadata = described(path)
        for key, tensor in tensors.items():
            for changed in (
                tensor.astype(np.float32),
                tensor.astype(np.int64),
                np.ascontiguousarray(tensor[:-1]) if tensor.ndim else tensor[None],
                np.concatenate([tensor, tensor]) if tensor.ndim else tensor[None],
            ):
                written(path, {**tensors, key: changed}, metadata)
                found = outcome(path)
                assert found is None or is_true(found[0], model, found[1]), (key, changed.dtype)
            written(path, {k: v for k, v in tensors.items() if k != key}, metadata)
            assert outcome(path) is None
