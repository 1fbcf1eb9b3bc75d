"""Index lookup (5.3): every position asked for, from every position, at every length."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import SYSTEMS, number_system
from transformist.assembly import soften
from transformist.bounds import layernorm_hash_sharpness, quadratic_length
from transformist.catalogue.positions import almost_orthogonal
from transformist.claims import ask
from transformist.domains import Feature, Query, Sequences, Values
from transformist.domains.vectors import Reals
from transformist.errors import InvalidValue

HARD = ("average-hard", "leftmost-hard", "rightmost-hard")
LOOKUPS = ("one-hot-lookup", "almost-orthogonal-lookup", "quadratic-lookup")
GIVEN = {"almost-orthogonal-lookup": {"epsilon": Fraction(7, 16)}}  # vectors of 94 signs
QUICK = (1, 2, 9, 10, 11, 12)
EVERY = range(1, 65)


def queries(n):
    """n lists of n queries, in which each position asks for each once."""
    return (np.arange(n)[None, :] + np.arange(n)[:, None]) % n


def coded(name, n, N=64):
    """What stands for position 1 to n: as a query, and as a position."""
    if name == "one-hot-lookup":
        table = np.eye(N, dtype=np.int64)[:n]
        return table, table
    if name == "almost-orthogonal-lookup":
        encoding = tf.recipe("position-almost-orthogonal").build(max_length=N, **GIVEN[name])
        table = encoding(n).astype(np.int64)
        return table, table
    i = np.arange(1, n + 1)[:, None]
    return i, np.concatenate([np.ones_like(i), i, i * i], axis=1)


def vectors(name, n, N=64):
    """Lists of [query, position, value], all queries from all positions.

    The values are numbers of every format, and those of positions less than 8 apart differ.
    """
    query, place = coded(name, n, N)
    values = (np.arange(n, 0, -1) % 8 + 1)[:, None]
    lists = [np.concatenate([query[q], place, values], axis=1) for q in queries(n)]
    return np.array(lists), values[queries(n), 0]


def lookup_is_exact(name, system, lengths, safe):
    given = GIVEN.get(name, {})
    heads = {weighting: tf.recipe(name).build(weighting=weighting, **given) for weighting in HARD}
    for n in lengths:
        if safe is not None and n > safe:
            break
        x, expected = vectors(name, n)
        given = system.array(x if system.name == "exact" else x.astype(np.float64))
        for weighting, head in heads.items():
            got = system.numbers(head(given, system))[..., 0]
            assert (got == expected).all(), (n, weighting)


def safe_length(name, arithmetic, **given):
    recipe = tf.recipe(name)
    return recipe.claim.safe_lengths(recipe.settings(given))[arithmetic]


@pytest.mark.parametrize(
    ("name", "arithmetic"),
    [
        (name, arithmetic)
        for name, arithmetic in itertools.product(LOOKUPS, SYSTEMS)
        if (name, arithmetic) != ("almost-orthogonal-lookup", "exact")  # with the slow ones
    ],
)
def test_every_query_of_some_lengths_is_answered_exactly(name, arithmetic):
    safe = safe_length(name, arithmetic)
    lengths = [n for n in QUICK if safe is None or n <= safe]
    if name == "almost-orthogonal-lookup":
        lengths = [n for n in lengths if n in (1, 2, 10)]
    lookup_is_exact(name, number_system(arithmetic), lengths, safe)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arithmetic"), list(itertools.product(LOOKUPS, SYSTEMS)))
def test_every_query_of_every_length_is_answered_exactly(name, arithmetic):
    # Rationals and balls of vectors as long as N take minutes; the formats try every length.
    is_dear = name == "one-hot-lookup" and arithmetic in ("exact", "interval")
    is_dear |= name == "almost-orthogonal-lookup"
    lengths = (*range(1, 17), 33, 64) if is_dear else EVERY
    if arithmetic == "interval":  # which finds what `exact` finds, and is slower
        lengths = (*range(1, 17), 33)
    lookup_is_exact(name, number_system(arithmetic), lengths, safe_length(name, arithmetic))


def soft_is_within_tolerance(arithmetic, lengths, tolerance):
    recipe = tf.recipe("quadratic-lookup-soft")
    system, head = number_system(arithmetic), recipe.build(tolerance=tolerance)
    settings = recipe.settings({"tolerance": tolerance})
    for n in lengths:
        if n > safe_length("quadratic-lookup-soft", arithmetic, tolerance=tolerance):
            break
        x, expected = vectors("quadratic-lookup-soft", n)
        x, expected = x.astype(float), expected / 64
        x[..., -1] /= 64
        far = x.copy()
        far[..., -1] = x[..., -1].round()
        for each, wanted in ((x, expected), (far, expected.round())):
            got = system.numbers(head(system.array(each), system))[..., 0]
            limit = float(ask(recipe.claim.error, n=n, arithmetic=system, **settings))
            assert (np.abs(got - wanted) <= limit).all(), n
            assert limit <= tolerance + 1 / 8


soft_formats = pytest.mark.parametrize("arithmetic", ["float64", "float32", "float16", "bfloat16"])


@soft_formats
def test_soft_lookup_is_within_the_tolerance(arithmetic):
    soft_is_within_tolerance(arithmetic, QUICK, Fraction(1, 4))


@pytest.mark.slow
@soft_formats
def test_soft_lookup_of_every_length_is_within_the_tolerance(arithmetic):
    soft_is_within_tolerance(arithmetic, EVERY, Fraction(1, 4))
    if arithmetic in ("float64", "float32"):
        soft_is_within_tolerance(arithmetic, EVERY, Fraction(1, 100))


def hashes(N):
    """The layernorm hashes of 1 to N, in float64."""
    i = np.arange(1, N + 1)[:, None]
    return np.sqrt(2 / (i**2 + 1)) * np.concatenate([i, i**0, -i, -(i**0)], axis=1)


def softened_lists(name, N):
    """For each of some places, its list of vectors with v = 1 there and 0 elsewhere."""
    places = sorted({1, 2, (N + 1) // 2, N - 1, N} - {0})
    for place in places:
        v = (np.arange(1, N + 1) == place)[:, None]
        if name == "first-value-soft":
            if place == 1:
                yield place, np.concatenate([v**0, -((-1) ** np.arange(N))[:, None], v], axis=1)
            continue
        if name == "layernorm-hash-head-soft":
            codes = hashes(N)
        else:
            codes = np.array(almost_orthogonal(N, Fraction(2, 5), None, 0))
        asked = np.repeat(codes[[place - 1]], N, axis=0)
        yield place, np.concatenate([asked, codes, v], axis=1)


# The greatest N that is safe in the format; in float64 a smaller one.
SOFTENED = [
    ("first-value-soft", "bfloat16", 746),
    ("almost-orthogonal-lookup-soft", "bfloat16", 27),
    ("layernorm-hash-head-soft", "float32", 15),
    pytest.param("layernorm-hash-head-soft", "float64", 600, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "arithmetic", "N"), SOFTENED)
def test_softened_lookups_leave_the_tolerance_elsewhere_in_the_format(name, arithmetic, N):
    recipe, system = tf.recipe(name), number_system(arithmetic)
    assert recipe.safe_lengths(max_length=N)[arithmetic] >= N
    head = recipe.build(max_length=N)
    for place, x in softened_lists(name, N):
        for values, wanted in ((x[:, -1:], 1), (1 - x[:, -1:], 0)):
            z = np.concatenate([x[:, :-1], values], axis=1).astype(float)
            got = system.numbers(head(system.array(z), system))[:, 0]
            assert np.abs(got - wanted).max() <= 1 / 4 + 1 / 8, place


def test_weights_for_a_length_beyond_the_safe_one_are_claimed_for_no_input():
    for name, arithmetic, greatest in (
        ("layernorm-hash-head-soft", "float32", 15),
        ("first-value-soft", "bfloat16", 746),
    ):
        recipe = tf.recipe(name)
        assert recipe.safe_lengths(max_length=greatest)[arithmetic] == greatest
        assert arithmetic not in recipe.safe_lengths(max_length=greatest + 1)


@pytest.mark.parametrize("tolerance", [Fraction(1, 4), Fraction(1, 100)])
def test_hash_sharpness_leaves_the_tolerance_elsewhere(tolerance):
    for N in (2, 3, 10, 100):
        codes = hashes(N)
        scores = float(layernorm_hash_sharpness(N, tolerance)) * (codes @ codes.T) / 2
        weights = np.exp(scores - np.diag(scores)[:, None])
        elsewhere = weights.sum(axis=1) - 1
        assert elsewhere.max() <= tolerance
        # 1/τ is no larger than it need be: the last position, with one neighbour, takes a fourth.
        assert elsewhere.max() >= tolerance / 4


def test_short_lists_in_a_model_for_long_ones():
    for weighting in HARD:
        head = tf.recipe("one-hot-lookup").build(max_length=256, weighting=weighting)
        for n in (1, 2, 3):
            x, expected = vectors("one-hot-lookup", n, N=256)
            for arithmetic in ("float16", "bfloat16"):
                system = number_system(arithmetic)
                assert (system.numbers(head(x, system))[..., 0] == expected).all()


def near_scores(system, longest):
    """Scores of q against q − 1, q, q + 1 for q from 1 on, in the arithmetic itself."""
    q = np.arange(1, longest + 1)
    j = q[:, None] + np.array([-1, 0, 1])
    query = np.stack([q, np.ones_like(q)], axis=-1)[:, None, :]
    number, square = system.array(j.astype(float)), system.array((j * j).astype(float))
    two, minus = system.array([2.0]), system.array([-1.0])
    keys = np.stack([system.multiply(number, two), system.multiply(square, minus)], axis=-1)
    return system.numbers(system.scores(system.array(query.astype(float)), keys))[:, 0]


@pytest.mark.parametrize(
    ("arithmetic", "claimed"), [("bfloat16", 13), ("float16", 38), ("float32", 3444)]
)
def test_quadratic_lookup_first_fails_between_its_safe_length_and_twice_that(arithmetic, claimed):
    system = number_system(arithmetic)
    assert quadratic_length(system) == claimed
    left, own, right = near_scores(system, 2 * claimed).T
    # q is missed in lists of length q where q − 1 ties or wins, of q + 1 where that does
    fails = [q for q in range(2, 2 * claimed + 1) if left[q - 1] >= own[q - 1]]
    fails += [q + 1 for q in range(1, 2 * claimed) if right[q - 1] >= own[q - 1]]
    assert claimed < min(fails) < 2 * claimed


def test_the_model_itself_fails_where_its_scores_do():
    for arithmetic, first in (("bfloat16", 13), ("float16", 38)):
        system = number_system(arithmetic)
        head = tf.recipe("quadratic-lookup").build(weighting="leftmost-hard")
        wrong = []
        for n in range(1, 2 * first):
            i = np.arange(1, n + 1)[:, None]
            x = np.concatenate([i, np.ones_like(i), i, i * i, i % 2], axis=1)
            got = system.numbers(head(system.array(x.astype(float)), system))[:, 0]
            wrong += [n] * bool((got != (i % 2)[:, 0]).any())
        assert first < wrong[0] < 2 * first


def test_the_printed_gap_is_too_large_for_softmax():
    """With 1/τ = ln 8N from the gap 1 of the dot products, a lookup errs by more than 1/4."""
    N = 64
    x, _ = vectors("one-hot-lookup", N)
    x = x[[0, 1, N - 1]].astype(float)  # some lists of queries
    x[..., -1] = np.arange(N) == 0
    expected = (queries(N)[[0, 1, N - 1]] == 0).astype(float)
    printed = soften(tf.recipe("one-hot-lookup").build(), Fraction(math.log(8 * N)))
    assert np.abs(printed(x)[..., 0] - expected).max() > 1 / 4
    ours = tf.recipe("soften").build()
    assert np.abs(ours(x)[..., 0] - expected).max() <= 1 / 4
    as_scores = soften(tf.recipe("one-hot-lookup").build(), Fraction(8 * math.log(8 * N)))
    assert np.abs(as_scores(x)[..., 0] - expected).max() <= 1 / 8


@pytest.mark.parametrize("name", [*LOOKUPS, "quadratic-lookup-soft", "soften"])
def test_a_query_outside_the_list_is_refused(name):
    recipe = tf.recipe(name)
    domain = ask(recipe.claim.domain, **recipe.settings({}))
    assert domain.read([[2, 0], [1, 1]])["q"] == [2, 1]
    for q in (0, 3, -1, "3/2"):
        with pytest.raises(InvalidValue, match="from 1 to n, here 2"):
            domain.read([[1, 0], [q, 1]])


def test_a_query_of_the_prefix_ends_at_its_own_position():
    domain = Sequences(
        (Query(lambda i, n: (i,), mask="future"), Feature.of("i"), Values("v", Reals(1)))
    )
    assert domain.read([[1, 0], [2, 0], [1, 0]])["q"] == [1, 2, 1]
    with pytest.raises(InvalidValue, match="from 1 to i, here 1"):
        domain.read([[2, 0], [2, 0]])
