"""Two laws of the proof, tried on every number of small formats."""

from fractions import Fraction as F

import numpy as np
import pytest
from tiny import tiny

from transformist.arithmetic import number_system
from transformist.verify.proof.hidden_units import _twos
from transformist.verify.proof.ideal import Ideal
from transformist.verify.proof.rounding_errors import RoundingErrors
from transformist.verify.proof.softmax_orders import EVALUATIONS

SMALL = [
    tiny(2, 5, "wider"),
    tiny(3, 4),
    tiny(3, 4, "wide"),
    tiny(3, 4, "wide", has_subnormals=False),
    tiny(4, 4, has_subnormals=False),
    tiny(4, 5, "wider"),
]
LARGER = [tiny(6, 5, "wide"), *map(number_system, ("bfloat16", "float16", "float8_e5m2"))]
WITH_ROUNDED_COUNTS = ("p2e5-wider", "p3e4-wide", "p4e5-wider", "p6e5-wide", "bfloat16")
ROWS = (*range(1, 70), 127, 128, 129, 255, 256, 257, 511, 513, 4096, 65535, 65536)


def numbers(a):
    """Every number of a tiny format that is not negative."""
    shape, last = a.shape, 2 ** (a.precision - 1)
    found = {0.0}
    if shape.has_subnormals:
        found |= {m * 2.0 ** (shape.least - a.precision + 1) for m in range(last)}
    for e in range(shape.least, shape.most + 1):
        found |= {m * 2.0 ** (e - a.precision + 1) for m in range(last, 2 * last)}
    return np.array(sorted(found))


@pytest.mark.parametrize("a", [*SMALL, *LARGER], ids=lambda a: a.name)
def test_one_weight_is_near_one_over_the_keys_and_a_multiple_of_its_quantum(a):
    tried = 0
    for rows in ROWS:
        if rows > a.largest:
            continue
        weight = EVALUATIONS["any"].equal_weight(RoundingErrors(a, Ideal(2, None, rows, [])), rows)
        if weight is None:
            continue
        D = np.arange(1, rows + 1)
        found = a.numbers(a.divide(a.array(np.ones(rows)), a.array(D.astype(float))))
        assert (np.abs(found * D - 1) <= weight.error * (1 + 2.0**-50)).all(), rows
        assert (np.mod(found, 2.0**weight.quantum) == 0).all(), rows
        tried += rows > 2**a.precision  # where the number of keys rounds, too
    assert tried or a.name not in WITH_ROUNDED_COUNTS


@pytest.mark.parametrize("a", SMALL, ids=lambda a: a.name)
def test_a_unit_that_subtracts_from_one_number_does_not_round_where_the_proof_says_so(a):
    r, x, tried = RoundingErrors(a, Ideal(2, None, 4, [])), numbers(a), 0
    for k in range(-4, 5):
        size = 2.0**k
        if a.numbers(a.array([size]))[0] != size:
            continue
        for t in x[1:]:
            if 2.0 ** (int(np.frexp(t)[1]) - a.precision) < max(r.tiny, r.tiny_partial):
                continue
            y = x * size
            says = y - t <= 2.0 ** (_twos(F(t)) + a.precision)
            says &= (y + t <= a.largest_partial) & (y - t <= a.largest)
            unit = np.maximum(a.affine(x[:, None], np.array([[size]]), np.array([-t]))[:, 0], 0)
            assert (unit[says] == np.maximum(y - t, 0)[says]).all(), (k, t)
            tried += int(says.sum())
    assert tried > 5_000
