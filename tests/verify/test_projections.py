"""Maps of heads are bounded together, and rows that copy a coordinate have its bounds."""

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.proof import attending, prove
from transformist.verify.proof.host_walking import HostRounding
from transformist.verify.proof.ideal import ONE, Ideal
from transformist.verify.proof.rounding_errors import RoundingErrors

ROWS = {
    "a copy": ([0, 1, 0], 0, 1),
    "a copy of what another row copies": ([0, 1, 0], 0, 1),
    "a copy of the last": ([0, 0, 1], 0, 2),
    "twice a number": ([0, 2, 0], 0, None),
    "minus a number": ([-1, 0, 0], 0, None),
    "a third": ([1 / 3, 0, 0], 0, None),
    "a sum": ([1, 1, 0], 0, None),
    "a number and a constant": ([1, 0, 0], 2, None),
    "a constant": ([0, 0, 0], 2, None),
    "nothing": ([0, 0, 0], 0, None),
}
"""Weights and bias of a row, and the coordinate that it copies."""


def bounded(name):
    """A vector of three unknowns with errors, and the error bounds of a format."""
    ideal = Ideal(2, None, 4, ["future"])
    numbers = [
        ideal.add(f"x{k}", lo, hi, grid)
        for k, (lo, hi, grid) in enumerate(
            [(0.0, 3.0, (ONE, None)), (-900.0, 900.0, (ONE, None)), (-1.0, 2.0, None)]
        )
    ]
    r = RoundingErrors(number_system(name), ideal)
    errors = np.array([[0.0, 0.0], [0.25, 3.0], [0.001, 0.0]])
    return r, r.values([{number: ONE} for number in numbers], errors)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_rows_that_copy_have_the_bounds_of_a_product_with_1(name):
    r, z = bounded(name)
    W = np.array([w for w, _, _ in ROWS.values()], dtype=float)
    b = np.array([c for _, c, _ in ROWS.values()], dtype=float)
    is_copy, sources = r._copies(W, b, np.arange(len(W)))
    assert {int(k): int(sources[k]) for k in np.flatnonzero(is_copy)} == {
        k: copied for k, (_, _, copied) in enumerate(ROWS.values()) if copied is not None
    }
    written, whole = r.written(W, b, z, "here"), r.affine(W, b, z, "here").values
    assert [*written.forms] == [*whole.forms]
    for bound in ("lo", "hi", "size", "error", "absolute", "relative"):
        mine, product = getattr(written, bound), getattr(whole, bound)
        assert mine == pytest.approx(product, rel=1e-9), bound
    assert written.error.any()


def test_numbers_with_other_factors_in_a_host_are_not_copied():
    """A host stores the stream shrunk, so a product with 1 may underflow."""
    r, _ = bounded("float32")
    r.are_stored = False
    is_copy, _ = r._copies(np.eye(3), np.zeros(3), np.arange(3))
    assert not is_copy.any()
    assert not HostRounding.are_stored


@pytest.mark.parametrize("most", [64, 0])
def test_each_head_has_its_own_maps(monkeypatch, most):
    monkeypatch.setattr(attending, "MOST_JOINT", most)
    r, z = bounded("float32")
    heads = [
        tf.Attention(W_Q=[[k, 0, 0]], W_K=[[0, k, 0]], W_V=[[0, 0, k], [k, k, 0]])
        for k in (1, 2, 3)
    ]
    for k, found in enumerate(attending.projected(heads, z, r, "layer 0"), start=1):
        assert [len(each.forms) for each in found] == [1, 1, 2]
        x, y, w = z.forms
        assert found.queries.forms == [dict.fromkeys(x, k)]
        assert found.keys.forms == [dict.fromkeys(y, k)]
        assert found.values.forms == [dict.fromkeys(w, k), dict.fromkeys((*x, *y), k)]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("number_format", ["float32", "bfloat16"])
def test_joint_maps_keep_margins_and_copies_raise_none(monkeypatch, name, number_format):
    model, a = tf.compile(PROGRAMS[name], max_length=8), number_system(number_format)
    found = prove(model, a, 8, "any")
    monkeypatch.setattr(attending, "MOST_JOINT", 0)
    assert prove(model, a, 8, "any") == found
    monkeypatch.setattr(
        RoundingErrors, "_copies", lambda r, W, b, rows: (np.zeros(len(rows), bool), rows)
    )
    products = prove(model, a, 8, "any")
    assert products.stopped == found.stopped
    for mine, other in zip(found.margins, products.margins, strict=True):
        assert (mine.where, mine.what) == (other.where, other.what)
        assert mine.error == pytest.approx(other.error, rel=1e-9)
        assert mine.error <= other.error


@pytest.mark.parametrize("wrong", ["queries", "keys", "values"])
def test_the_map_that_overflows_is_named(wrong):
    stream = tf.Stream(("x", "y"))
    maps = {f"W_{each[0].upper()}": [[1, 1]] for each in ("queries", "keys", "values")}
    maps[f"W_{wrong[0].upper()}"] = [[60000, 60000]]
    ordinary = tf.Attention(W_Q=[[1, 0]], W_K=[[0, 1]], W_V=[[1, 1]], W_O=[[0], [1]])
    head = tf.Attention(**maps, W_O=[[0], [1]])
    model = tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, {"a": {"x": 1, "y": 1}, "b": {"x": 1}}),
        layers=(tf.Layer(heads=(ordinary, head)),),
        read_out=tf.Binary(W_out=[[1, 0]], b_out=[0]),
        max_length=4,
    )
    proof = prove(model, number_system("float16"), 4, "any")
    assert proof.stopped.startswith(f"layer 0 head 1 {wrong}: ")
