"""Steps in narrow formats: what rounds alike, what does not round, and what is exclusive."""

import math

import ml_dtypes
import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.proof import prove

FORMATS = {"float16": (np.float16, 11), "bfloat16": (ml_dtypes.bfloat16, 8)}


def bound(h, S, p):
    """The bound of `_rounding_alike` for a height h and sums up to S, by its formula."""
    power = 2.0 ** math.floor(math.log2(S))
    return 2.0**-p * (1.5 * power if power < 2 * h else max(power, 3 * h))


@pytest.mark.parametrize("name", FORMATS)
def test_two_sums_that_differ_by_a_height_round_alike(name):
    dtype, p = FORMATS[name]
    draw, reached = np.random.default_rng(1), 0.0

    def stored(x):
        return x.astype(np.float32).astype(dtype).astype(float)

    for _ in range(800):
        j = int(draw.integers(-6, 3))
        h = (2 * int(draw.integers(0, 4)) + 1) * 2.0**j
        E, q = int(draw.integers(-4, j + p - 1)), int(draw.integers(-16, j + 1))
        S = 2.0**E * (1 + draw.random())
        ends = np.concatenate([[0.0], 2.0 ** np.arange(E - 6, E + 1)])
        sums = ends[:, None] + np.floor(draw.uniform(0, h, (len(ends), 30)) / 2.0**q) * 2.0**q
        sums = sums[(sums > h) & (sums <= S)]
        if not len(sums):
            continue
        off = np.abs(stored(sums) - stored(sums - h) - h).max()
        assert off <= bound(h, S, p), (h, S, q)
        assert not off or 2.0 ** (q + p) < S
        reached = max(reached, off / bound(h, S, p))
    assert reached == 1  # no smaller bound would do


@pytest.mark.parametrize(
    ("name", "arithmetic", "N"),
    [("equal-abc", "float16", 300), ("contains-abc", "float16", 300), ("dyck-1", "bfloat16", 63)],
)
def test_flags_of_flags_have_no_error(name, arithmetic, N):
    """Conjunctions and negations are exact, so that their means have the weights of exact flags."""
    model = tf.compile(PROGRAMS[name], max_length=N, arithmetic="exact")
    assert prove(model, number_system(arithmetic), N, "any").holds


def test_dyck_1_is_certified_as_far_as_its_own_proof_goes():
    model = tf.recipe("dyck-1").build(max_length=511)
    assert tf.certify(model, "float16").holds
    assert not tf.certify(tf.recipe("dyck-1").build(max_length=512), "float16").holds
