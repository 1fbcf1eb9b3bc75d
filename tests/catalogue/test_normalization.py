"""Norms: what they compute outside their claims, the hash of positions, and how far it reaches."""

import math
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import SYSTEMS, Floating
from transformist.bounds import (
    layernorm_hash_gap,
    layernorm_hash_head_length,
    layernorm_hash_length,
)
from transformist.errors import InvalidValue, NotRepresentable, UndefinedValue
from transformist.model import Attention, Layer, LayerNorm, LayerStack, Stream

# 6.3


def test_only_a_uniform_gain_keeps_the_ratios():
    x = np.array([1.0, 2, 3, -1, -2, -3])
    same = LayerNorm(gain=np.full(6, 5))(x) / x
    other = LayerNorm(gain=[1, 2, 3, 4, 5, 6])(x) / x
    assert np.ptp(same) < 1e-12 < np.ptp(other)
    assert np.ptp(LayerNorm(gain=np.ones(6), bias=np.ones(6))(x) / x) > 0.1


def test_the_factor_of_pairs_differs_from_vector_to_vector():
    norm = tf.recipe("layernorm-pairs").build(width=2)
    factors = [norm([k, 2 * k, -k, -2 * k])[0] / k for k in (1, 10)]
    assert factors[0] == pytest.approx(10 * factors[1])
    with pytest.raises(UndefinedValue, match="ε > 0, or coordinates that differ"):
        norm([0, 0, 0, 0])
    assert not tf.recipe("layernorm-pairs").build(norm_epsilon=1)([0, 0, 0, 0]).any()


@pytest.mark.parametrize("name", ["layernorm-pairs", "layernorm-sign", "selective-layernorm"])
def test_the_epsilon_of_a_norm_is_not_negative(name):
    with pytest.raises(InvalidValue, match="norm_epsilon must be a number of at least 0"):
        tf.recipe(name).build(norm_epsilon="-1/8")


# 6.4


def sign_of(x, arithmetic="float64", delta="1/8", **settings):
    """The sign of a vector by the recipe, which is given the pairs."""
    layer = tf.recipe("layernorm-sign").build(width=len(x), delta=delta, **settings)
    numbers = SYSTEMS[arithmetic].numbers(layer([*x, *(-v for v in x)], arithmetic))
    return np.array([float(v) for v in numbers[: len(x)]])


def test_every_sign_is_exact_where_all_are_large():
    assert sign_of([F(3, 10), -5, F(1, 8)], "exact").tolist() == [1, -1, 1]
    for name in ("float64", "float32", "float16"):
        assert sign_of([0.5, -7, 0.125], name).tolist() == [1, -1, 1]


def test_outside_the_precondition_numbers_that_are_small_move_all_of_them():
    small = {"delta": F(1, 10)}
    assert sign_of([0.3, 0, 0.7], **small) == pytest.approx([1.2247, 0, 1.2247], abs=1e-4)
    assert sign_of([0.3, 0.05, -0.7], **small) == pytest.approx([1.1547, 0.5774, -1.1547], abs=1e-4)
    with pytest.raises(UndefinedValue, match="coordinates are not all equal"):
        sign_of([0, 0, 0], **small)


@pytest.mark.parametrize(("delta", "size"), [("1/100", 0.953), ("1/1000", 0.302)])
def test_a_positive_epsilon_shrinks_the_signs(delta, size):
    got = sign_of([1, -2], delta=delta, norm_epsilon="1/100000")
    assert got == pytest.approx([size, -size], abs=1e-3)


@pytest.mark.parametrize(("delta", "x"), [("1e-9", 1.0), ("1e-25", 1e-20)])
def test_clipping_that_a_format_absorbs_is_refused(delta, x):
    """x ± δ is x in float32, or δ² is 0 there: the norm is left with zeros, and says so."""
    with pytest.raises(UndefinedValue):
        sign_of([x, x], "float32", delta=delta)
    assert sign_of([x, -x], "exact", delta=delta).tolist() == [1, -1]


def test_the_printed_bias_of_the_clipping_is_wrong():
    """W₂ has one row, so b₂ is −δ; with [−δ, δ] the second output would be 2δ larger."""
    clip = tf.recipe("clip").build(delta=1)
    assert clip.b_2.tolist() == [-1]
    printed = replace(clip, W_2=np.repeat(clip.W_2, 2, axis=0), b_2=np.array([-1.0, 1]))
    assert printed([5]).tolist() == [1, 3]


def test_in_exact_arithmetic_the_root_has_to_be_rational():
    with pytest.raises(NotRepresentable, match="σ² \\+ ε is a square"):
        sign_of([1, 1], "exact", delta=1, norm_epsilon=1)
    assert sign_of([4, 3], "exact", delta=3, norm_epsilon=16).tolist() == [0.6, 0.6]


# 5.3.3: one norm for all of it fails


def test_a_selective_norm_scales_as_if_the_vector_had_its_width():
    rng = np.random.default_rng(0)
    for width in (4, 5, 16):
        a, b = rng.normal(size=2)
        rest = rng.normal(size=width - 4)
        got = tf.recipe("selective-layernorm").build(width=width)([a, b, -a, -b, *rest])
        alone = LayerNorm(gain=np.ones(4))([a, b, -a, -b])
        assert got[:4] == pytest.approx(math.sqrt(width / 4) * alone)
        assert not got[4:].any()
    with pytest.raises(InvalidValue, match="width must be at least 4.*received width = 3"):
        tf.recipe("selective-layernorm").build(width=3)


def hash_score_lookup(normalize, n, q, v):
    """Where q · k, of what `normalize` makes of the query and key parts, is largest."""
    found = []
    parts = [normalize([q[i], 1, -q[i], -1], [1, 1 / (i + 1), -1, -1 / (i + 1)], v[i])
             for i in range(n)]  # fmt: skip
    keys = np.array([key for _, key, _ in parts])
    for query, _, _ in parts:
        best = np.argmax(keys @ query)
        found.append(parts[best][2])
    return np.array(found)


def lookups(n=4):
    """Lists of queries that pair every i with every j ≠ i, and distinct values."""
    for shift in range(1, n):
        yield [(i + shift) % n + 1 for i in range(n)], [(-1) ** i * (i + 2) for i in range(n)]


def wrong(normalize, n=4):
    """How many of the n(n − 1) lookups do not give v at q, of how many."""
    results = [
        (hash_score_lookup(normalize, n, q, v), np.array([v[p - 1] for p in q]))
        for q, v in lookups(n)
    ]
    return int(sum((abs(got - want) > 1e-9).sum() for got, want in results)), n * (n - 1)


def norm(x):
    x = np.asarray(x, dtype=float)
    return (x - x.mean()) / math.sqrt(x.var())


def test_one_norm_over_queries_and_keys_fails_and_norms_of_their_own_do_not():
    def together(q, k, v):
        both = norm([*q, *k])
        return both[:4], both[4:], v

    def with_the_value(q, k, v):
        everything = norm([*q, *k, v, -v])
        return everything[:4], everything[4:8], everything[8]

    assert wrong(lambda q, k, v: (norm(q), norm(k), v)) == (0, 12)
    assert wrong(together) == (8, 12)
    assert wrong(together, n=12) == (120, 132)  # 10 or 11 of the 12 in each list
    assert wrong(with_the_value) == (12, 12)


def one_norm_lookup():
    """The printed layer: one head behind one norm over the hashes' parts, the value beside it."""
    stream = Stream(("q", "1", "1/i", "v", "found"))
    parts = (
        {"q": 1},
        "1",
        {"q": -1},
        {"1": -1},
        "1",
        "1/i",
        {"1": -1},
        {"1/i": -1},
        "v",
        {"v": -1},
    )
    normalized = Stream((*"abcdefgh", "v", "-v"))
    head = Attention(
        W_Q=normalized.reading(*"abcd"),
        W_K=normalized.reading(*"efgh"),
        W_V=normalized.reading("v"),
        W_O=stream.writing("found"),
        weighting="average-hard",
    )
    layer = Layer(
        (head,), pre_norms=(LayerNorm(gain=np.ones(10), W_N=stream.reading(*parts)), None)
    )
    return LayerStack(stream, ("q", "1", "1/i", "v"), (layer,), ("found",))


def test_the_layer_as_printed_looks_up_the_wrong_value():
    printed, built = one_norm_lookup(), tf.recipe("layernorm-hash-lookup").build()
    off = {"printed": 0, "built": 0}
    for q, _ in lookups():
        for signs in range(16):
            v = [1 - 2 * (signs >> k & 1) for k in range(4)]
            x = [[q[i], 1, F(1, i + 1), v[i]] for i in range(4)]
            for name, stack in (("printed", printed), ("built", built)):
                got = np.sign(stack(x)[:, 0])
                off[name] += int((got != [v[p - 1] for p in q]).sum())
    assert off["built"] == 0 < 50 < off["printed"]


# How far the hash reaches


def exact_gap(n):
    """min over q and j ≠ q of lh(q) · lh(q) − lh(q) · lh(j), with 60 digits."""
    scale = 10**60

    def dot(q, j):
        return F(4 * (q * j + 1) * scale, math.isqrt((q * q + 1) * (j * j + 1) * scale**2))

    rows = range(1, n + 1)
    return min(4 - dot(q, j) for q in rows for j in rows if q != j)


def test_the_gap_is_kept_and_nearly_attained():
    for n in range(2, 30):
        M = n * n - n + 1
        least = exact_gap(n)
        assert layernorm_hash_gap(n) <= least <= layernorm_hash_gap(n) * F(M * M + 1, M * M)
        assert least == pytest.approx(4 * (1 - M / math.sqrt(M * M + 1)), rel=1e-6, abs=1e-12)


def test_what_the_stack_scores_has_the_gap():
    model = tf.recipe("layernorm-hash-lookup").build()
    for n in (2, 5, 9):
        x = [[i % n + 1, 1, F(1, i), 1] for i in range(1, n + 1)]
        z = list(model.streams(x, "float64"))[-2]
        last = model.layers[-1]
        scores = last.heads[0].scores(last.pre_norms[0](z), SYSTEMS["float64"])
        gap = min(np.sort(row)[-1] - np.sort(row)[-2] for row in scores)
        claimed, d_key = tf.recipe("layernorm-hash-lookup").gap(n)
        assert d_key == 4
        assert gap >= float(claimed) / 2 - 1e-14
        assert gap <= float(claimed) / 2 * (1 + 1 / (n * n - n + 1) ** 2) + 1e-14


def misses(system, positions, others=()):
    """Whether some of these positions is not found, whatever each position asks for.

    The norm before the head sees the hash of what a position asks for as well, so that every key is
    scored as it comes out beside every query, and those for `others`.
    """
    model = tf.recipe("layernorm-hash-lookup").build()
    q, i = (grid.ravel() for grid in np.meshgrid([*others, *positions], positions))
    x = [[int(a), 1, F(1, int(b)), 1] for a, b in zip(q, i, strict=True)]
    *_, before, _ = model.streams(x, system)
    head, (norm, _) = model.layers[-1].heads[0], model.layers[-1].pre_norms
    scores = system.numbers(head.scores(norm(before, system), system))
    for asked in positions:
        rows = scores[q == asked]
        rivals = rows[:, i != asked]
        if rivals.size and (rows[:, i == asked].min(axis=1) <= rivals.max(axis=1)).any():
            return True
    return False


FIRST_MISS = {"bfloat16": 4, "float16": 6, "float32": 39, "float64": 5713}
"""The first that fails, with every query at every position; in float64 of those from 4,600 on."""


def near(n, name):
    """All positions, or in float64 the last ones, beside which others are asked for too."""
    if name == "float64":
        return {"positions": range(n - 6, n + 1), "others": range(1, 40)}
    return {"positions": range(1, n + 1)}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "float32")) for name in FIRST_MISS],
)
def test_the_safe_length_holds_and_is_within_half_of_the_first_failure(name):
    system, safe, first = SYSTEMS[name], layernorm_hash_length(SYSTEMS[name]), FIRST_MISS[name]
    tried = (safe, safe - 1, safe // 2 + 8) if name == "float64" else range(1, first)
    assert not any(misses(system, **near(n, name)) for n in tried)
    assert misses(system, **near(first, name))
    assert safe < first <= 2 * safe or name == "bfloat16"


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_the_value_is_within_its_bound_which_is_a_few_units(name):
    """The norm before the head divides v by what should be 1."""
    system = SYSTEMS[name]
    model = tf.recipe("layernorm-hash-lookup").build()
    n = min(layernorm_hash_length(system), 40)
    q, i = (grid.ravel() for grid in np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1)))
    x = [[int(a), 1, F(1, int(b)), 1] for a, b in zip(q, i, strict=True)]
    *_, before, _ = model.streams(x, system)
    normed = system.numbers(model.layers[-1].pre_norms[0](before, system))[:, 8]
    off = np.abs(normed - 1).max() / float(system.unit_roundoff)
    assert off <= 12
    assert off >= 1 or n == 1


def test_a_format_of_few_bits_is_not_claimed():
    coarse = Floating("coarse", np.dtype(np.float32), np.dtype(np.float32), 4)
    assert coarse.unit_roundoff == F(1, 16)
    assert layernorm_hash_length(coarse) == 0
    assert layernorm_hash_length(SYSTEMS["exact"]) is None


def test_queries_of_any_sign_go_to_the_nearest_direction():
    """lh(q) · lh(j) is largest at the nearest angle: q ≤ 0 finds position 1."""
    model = tf.recipe("layernorm-hash-lookup").build()
    v = [-1, 1, 1, -1]
    for q, j in ((0, 1), (-3, 1), (4, 4), (9, 4)):
        x = [[q, 1, F(1, i), v[i - 1]] for i in range(1, 5)]
        assert np.sign(model(x)[:, 0]).tolist() == [v[j - 1]] * 4


# The head on its own, on hashes that are given


def hashes(positions):
    """The layernorm hashes of positions, to 40 digits."""
    scale = 10**40
    roots = [F(math.isqrt(2 * scale**2 // (x * x + 1)), scale) for x in positions]
    return [[r * x, r, -r * x, -r] for x, r in zip(positions, roots, strict=True)]


def test_the_head_has_the_weights_as_printed():
    head = tf.recipe("layernorm-hash-head").build()
    assert head.W_Q.tolist() == np.eye(4, 9).tolist()
    assert head.W_K.tolist() == np.eye(4, 9, k=4).tolist()
    assert head.W_V.tolist() == [[0] * 8 + [1]]


def head_misses(system, positions):
    """Whether some of these positions is not the one best key of its hash among them."""
    head = tf.recipe("layernorm-hash-head").build()
    x = [[*code, *code, 0] for code in hashes(positions)]
    scores = system.numbers(head.scores(system.array(x), system))
    own = scores.diagonal()[:, None]
    return int((scores >= own).sum()) > len(x)


FIRST_MISS_OF_HEAD = {"bfloat16": 4, "float16": 7, "float32": 49, "float64": 6406}


@pytest.mark.parametrize("name", FIRST_MISS_OF_HEAD)
def test_the_safe_length_of_the_head_holds_and_is_within_half_of_the_first_failure(name):
    system, first = SYSTEMS[name], FIRST_MISS_OF_HEAD[name]
    safe = layernorm_hash_head_length(system)
    assert safe < first <= 2 * safe
    assert head_misses(system, range(max(first - 9, 1), first + 1))
    for n in (safe, safe - 1):
        assert not head_misses(system, range(max(n - 200, 1), n + 1))


@pytest.mark.parametrize("name", ["float64", "float16", "bfloat16"])
def test_the_head_fetches_any_value(name):
    """Values 5 and 7, which the norms of layernorm-hash-lookup would rescale."""
    system, head = SYSTEMS[name], tf.recipe("layernorm-hash-head").build()
    n = min(layernorm_hash_head_length(system), 9)
    coded, v = hashes(range(1, n + 1)), [5 + 2 * (i % 2) for i in range(n)]
    for shift in range(n):
        q = [(i + shift) % n for i in range(n)]
        x = [[*coded[q[i]], *coded[i], v[i]] for i in range(n)]
        assert system.numbers(head(x, system))[:, 0].tolist() == [v[p] for p in q]
