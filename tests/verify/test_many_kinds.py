"""Proofs over many kinds of rows: what is computed once for many is what each one has alone."""

import random
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.proof import answering, ideal, prove, rounding_errors, walking
from transformist.verify.proof.enumerating import case_keys, combinations
from transformist.verify.proof.grids import combined_grid, quantum
from transformist.verify.proof.ideal import Ideal, Pattern, Views
from transformist.verify.proof.sparse_products import Entries


def shifted(size, by=2):
    @tf.program(alphabet=[f"t{k}" for k in range(size)])
    def run(x):
        return x.predecessor(by, default="t0").tag()

    return tf.compile(run, max_length=6)


@pytest.mark.parametrize("seed", range(20))
def test_extremes_over_the_keys_that_a_query_sees(seed):
    draw = np.random.default_rng(seed)
    kinds = int(draw.integers(1, 6))
    sees = draw.random((kinds, kinds)) < draw.choice([0.0, 0.3, 0.9])
    x = draw.normal(size=(3, kinds))
    views = Views.of(sees)
    for row in range(3):
        for query in range(kinds):
            seen = [x[row, key] for key in range(kinds) if sees[query, key]]
            assert views.least(x)[row, query] == min(seen, default=np.inf)
            assert views.largest(x)[row, query] == max(seen, default=-np.inf)
            assert views.nothing[query] == (not seen)


@pytest.mark.parametrize("filled", [0.0, 0.05, 0.12, 1.0])
def test_products_with_sparse_matrices_have_every_term(filled):
    draw = np.random.default_rng(1)
    matrix = draw.integers(1, 9, (12, 30)) * (draw.random((12, 30)) < filled)
    z = draw.integers(0, 9, (2, 30, 4)).astype(float)
    expected = [
        [[sum(matrix[r, c] * each[c, k] for c in range(30)) for k in range(4)] for r in range(12)]
        for each in z
    ]
    at = Entries.of(matrix)
    assert (at.times(at.at(matrix), z) == np.array(expected)).all()
    most = [
        [max([z[0, c, k] for c in np.flatnonzero(row)], default=0.0) for k in range(4)]
        for row in matrix
    ]
    assert (at.reduced(np.maximum, z[0, at.columns], 0.0) == np.array(most)).all()
    assert at.count(at.at(matrix) % 2).tolist() == (matrix % 2 != 0).sum(axis=1).tolist()


def test_a_weight_of_0_times_infinity_is_no_term():
    matrix, z = np.eye(20), np.ones((20, 1))
    matrix[4, 3], z[3] = 1.0, np.inf
    at = Entries.of(matrix)
    values = np.where((at.rows == 4) & (at.columns == 3), 0.0, 1.0)
    assert at.times(values, z)[:, 0].tolist() == [1.0] * 3 + [np.inf] + [1.0] * 16


def unknowns(draw, kinds):
    """An ideal with heads of each selection and other numbers, and forms of these."""
    found = Ideal(kinds, kinds - 1, 5, ["future"])
    sees = np.full((kinds, kinds), True)
    sees[: kinds - 1, kinds - 1] = draw.random() < 0.5
    for selection in ("mean", "one", "mixture"):
        head = Pattern("head", "future", selection, sees, np.full(kinds, draw.random() < 0.5))
        found.attended(head, [found.constant(Fraction(1))])
    for k in range(4):
        lo = draw.randint(-3, 3)
        found.add(f"number {k}", lo, lo + k, (Fraction(1, 1 + k % 2), None) if k < 3 else None)
    forms = []
    for _ in range(12):
        used = draw.sample(range(len(found.unknowns)), draw.randint(0, 8))
        forms.append({n: Fraction(draw.choice([-3, -1, 1, 2]), draw.choice([1, 2])) for n in used})
    return found, forms


@pytest.mark.parametrize("seed", range(10))
def test_forms_bounded_together_have_the_bounds_of_each(seed, monkeypatch):
    found, forms = unknowns(random.Random(seed), kinds=4)
    together = found.measured(forms)
    monkeypatch.setattr(ideal, "MOST_NUMBERS", 1)
    for pieces in (together, found.measured(forms)):
        for place, form in enumerate(forms):
            lo, hi, size = found.measured([form])
            assert np.array_equal(pieces[0][place], lo[0])
            assert np.array_equal(pieces[1][place], hi[0])
            assert np.array_equal(pieces[2][:, place], size[:, 0])


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_equal_terms_up_to_signs_have_the_grid_of_their_terms(seed):
    draw = random.Random(seed)
    found, forms = unknowns(draw, kinds=4)
    forms += [{n: x * draw.choice([-1, 1]) for n, x in form.items()} for form in forms]
    for form in draw.sample(forms, len(forms)):
        terms = [(abs(x.numerator), x.denominator, found.unknowns[n].grid) for n, x in form.items()]
        expected = combined_grid(terms)
        assert found.grid(form) == expected
        assert found.quantum(form) == quantum(expected)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("selection", ["mean", "one", "mixture"])
def test_forms_fetched_together_have_the_bounds_of_each(seed, selection):
    """In a second ideal the same head fetches the forms one at a time."""
    together, apart = (unknowns(random.Random(seed), kinds=4) for _ in range(2))
    sees = np.full((4, 4), True)
    head = Pattern("second", "future", selection, sees, np.zeros(4, dtype=bool))
    bounds = together[0].measured(together[0].attended(head, together[1]))
    for place, form in enumerate(apart[1]):
        (fetched,) = apart[0].attended(head, [form])
        lo, hi, size = apart[0].measured([fetched])
        assert bounds[0][place] == pytest.approx(lo[0], rel=1e-12)
        assert bounds[1][place] == pytest.approx(hi[0], rel=1e-12)
        assert bounds[2][:, place] == pytest.approx(size[:, 0], rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_sums_have_the_bounds_of_their_terms(seed):
    """A form is bounded by the forms that it was made of; the plain terms bound it alike."""
    draw = random.Random(seed)
    found, forms = unknowns(draw, kinds=4)
    sums = []
    for _ in range(30):
        parts = [(Fraction(draw.choice([-2, 1, 3]), 2), form) for form in draw.sample(forms, 2)]
        constant = Fraction(draw.randint(-2, 2))
        sums.append(found.shifted(found.combined(parts), constant))
        assert sums[-1] == found.combined([*parts, (Fraction(1), found.constant(constant))])
        moving = {n: x for n, x in sums[-1].items() if n >= found.kinds}
        assert found.rest(sums[-1]) == moving
    assert found._sums
    plain = [dict(each) for each in sums]
    assert [found.grid(each) for each in sums] == [found.grid(each) for each in plain]
    for one, other in zip(found.measured(sums), found.measured(plain), strict=True):
        assert np.allclose(one, other, rtol=1e-11, atol=1e-11)


def answers(model, monkeypatch):
    """The forms of the labels of a model, their ideal, and the number of times cases are listed."""
    met, listed = [], []

    def decide(read_out, z, r, ledger):
        met.append((r.ideal, r.affine(read_out.W_out, read_out.b_out, z, "labels").values.forms))
        return kept(read_out, z, r, ledger)

    def by_cases(y, kind, r):
        listed.append(kind)
        return cases(y, kind, r)

    kept, cases = answering.decide, answering._by_cases
    monkeypatch.setattr(walking, "decide", decide)
    monkeypatch.setattr(answering, "_by_cases", by_cases)
    proof = prove(model, number_system("float32"), model.max_length, "any")
    return met[0], listed, proof


LABELLED = {
    "shift": lambda x: x.predecessor(2, default="a").tag(),
    "where": lambda x: (x == "b").where(x, x.predecessor(default="c")).tag(),
    "table": lambda x: (x == "a").any("future").where(x.predecessor(default="a"), "c").tag(),
}


@pytest.mark.parametrize("name", LABELLED)
def test_kinds_with_equal_keys_have_equal_cases(name, monkeypatch):
    model = tf.compile(tf.program(alphabet="abc")(LABELLED[name]), max_length=6)
    (found, forms), _, _ = answers(model, monkeypatch)
    alike = case_keys(found, forms)
    for one in range(found.kinds):
        for other in range(one):
            if alike[one] == alike[other]:
                mine, theirs = (combinations(found, forms, kind) for kind in (one, other))
                assert (mine is None) == (theirs is None)
                assert mine is None or (mine == theirs).all()


def test_cases_are_listed_once_for_kinds_that_are_alike(monkeypatch):
    _, listed, proof = answers(shifted(20), monkeypatch)
    assert proof.holds and len(listed) < 4 < sum(m.where == "read-out" for m in proof.margins)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("number_format", ["float32", "bfloat16"])
def test_a_vector_is_bounded_as_its_pieces_are(monkeypatch, name, number_format):
    model, a = tf.compile(PROGRAMS[name], max_length=8), number_system(number_format)
    whole = prove(model, a, 8, "any")
    monkeypatch.setattr(rounding_errors, "BLOCK", 1)
    assert prove(model, a, 8, "any") == whole


@pytest.mark.parametrize("largest", [3, 2**61, 2**70])
def test_combinations_of_small_and_of_large_numbers(largest):
    """Labels c_k · share_k − 1 of one head that takes one of three kinds, as Python's numbers."""
    known = Ideal(3, None, 4, [])
    head = Pattern("head", "future", "one", np.ones((3, 3), dtype=bool), np.zeros(3, dtype=bool))
    shares = known._shares_of(head)
    forms = [
        {
            0: Fraction(-1),
            **{share: Fraction(largest * (k + j), 3) for j, share in enumerate(shares)},
        }
        for k in range(4)
    ]
    found = combinations(known, forms, 0)
    expected = [[Fraction(largest * (k + j), 3) - 1 for k in range(4)] for j in range(3)]
    assert [[Fraction(x) for x in case] for case in found.tolist()] == expected
