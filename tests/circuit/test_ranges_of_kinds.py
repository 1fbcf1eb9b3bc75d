"""Ranges by the kind of row, kept for the kinds that differ, against the same ranges one by one."""

import random
from fractions import Fraction as F

import pytest

from transformist.circuit import SHARED_ZERO, Circuit, Embedded, Form, PositionFeature
from transformist.circuit.heads.product_head import _dot, _largest_dot
from transformist.laws import Range, Ranges

KINDS = 6


def drawn(draw):
    """Ranges of numbers of which most are alike, and the same as a list."""
    common = Range(*sorted(F(draw.randint(-2, 2)) for _ in range(2)))
    others = {
        kind: Range(*sorted(F(draw.randint(-3, 3), 2) for _ in range(2)))
        for kind in draw.sample(range(KINDS), draw.randint(0, KINDS))
    }
    return Ranges(KINDS, common, others), [others.get(kind, common) for kind in range(KINDS)]


@pytest.mark.parametrize("seed", range(40))
def test_ranges_are_those_of_each_kind(seed):
    draw = random.Random(seed)
    ranges, listed = drawn(draw)
    first = draw.randint(1, KINDS)
    assert list(ranges) == listed and len(ranges) == KINDS and ranges[-1] == listed[-1]
    assert ranges.hull() == Range(min(x.lo for x in listed), max(x.hi for x in listed))
    assert list(ranges.below(first)) == listed[:first] == list(ranges[:first])
    assert sorted(ranges.where(lambda x: x.lo > 0)) == [k for k, x in enumerate(listed) if x.lo > 0]
    assert ranges == tuple(listed) == ranges and Ranges.of(tuple(listed)) == ranges
    more, also = drawn(draw)
    assert list(ranges.plus(more)) == [x + y for x, y in zip(listed, also, strict=True)]
    listed[first - 1] = Range(F(5), F(7))
    assert ranges != tuple(listed) and Ranges.of(listed) != ranges


@pytest.mark.parametrize("seed", range(40))
def test_a_sum_has_at_each_kind_the_range_of_its_terms(seed):
    """Also of numbers that are not 0 at most kinds, and beside a function of the position."""
    draw = random.Random(seed)
    circuit = Circuit(tuple("abcde"), True, 10, "softmax")
    atoms = [PositionFeature("i"), PositionFeature("(-1)^i")]
    for _ in range(4):
        most = draw.choice([SHARED_ZERO, F(1, 3)])
        atoms.append(
            Embedded(tuple(draw.choice([most, most, F(draw.randint(-2, 2))]) for _ in range(6)))
        )
    forms = [circuit.add(atom, "x") for atom in atoms]
    form = sum((x * F(draw.randint(-2, 2), 3) for x in forms), Form.of(F(draw.randint(-1, 1))))
    features = [(F(1), F(10)), (F(-1), F(1))]
    for kind, found in enumerate(circuit.rows(form)):
        lo = hi = form.constant
        for number, factor in form.terms:
            atom = circuit.atoms[number]
            if isinstance(atom, Embedded):
                ends = [atom.values[kind]] * 2
            else:
                at_bos = F(0 if atom.name == "i" else 1)
                ends = features[number] if kind < 5 else (at_bos, at_bos)
            products = [factor * end for end in ends]
            lo, hi = lo + min(products), hi + max(products)
        assert (found.lo, found.hi) == (lo, hi)


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_product_of_sparse_vectors(seed):
    draw = random.Random(seed)
    dense = [
        [[draw.choice([0.0, 0.0, 0.5, 3.0]) for _ in range(4)] for _ in range(3)] for _ in "xy"
    ]
    sparse = [[{j: v for j, v in enumerate(row) if v} for row in rows] for rows in dense]
    wanted = max(sum(a * b for a, b in zip(x, y, strict=True)) for x in dense[0] for y in dense[1])
    assert _largest_dot(*sparse) == wanted
    x, y = dense[0][0], dense[1][0]
    assert _dot(sparse[0][0], y) == sum(a * b for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_product_of_many_one_hot_vectors(seed):
    """Two coordinates that all vectors have, and eighteen one-hot ones, in order."""
    draw = random.Random(seed)

    def drawn():
        one_hot = {draw.randrange(1, 20): draw.choice([0.1, 0.5, 0.7]) for _ in range(2)}
        shared = {0: draw.choice([0.1, 0.3]), 20: draw.choice([0.2, 0.9])}
        return dict(sorted({**one_hot, **shared}.items()))

    x, y = ([drawn() for _ in range(24)] for _ in "xy")
    if seed % 2:  # no vector of x shares a one-hot coordinate with one of y
        x = [{0: each[0], 20: each[20]} for each in x]

    def product(one, other):
        total = 0.0
        for j in range(21):
            total += one.get(j, 0.0) * other.get(j, 0.0)
        return total

    assert _largest_dot(x, y) == max(product(one, other) for one in x for other in y)
