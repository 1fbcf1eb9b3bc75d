"""The chapter finite: every input of small formats, drawn ones of larger; what infinities do."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import SYSTEMS, Saturating, number_system
from transformist.assembly import between
from transformist.claims import ask
from transformist.errors import InvalidValue, NotFinite
from transformist.model import Attention, FeedForward, Layer, LayerStack, exact_product
from transformist.verify import check_recipe

SMALL = [(1, 1), (2, 1), (2, "1/2"), (4, "1/4"), (8, 1), (8, "1/2")]
TINY = [(1, 1), (2, 1), (2, "1/2"), (4, 1)]
LARGE = [(64, "1/64"), (256, "1/16"), (1024, "1/1024")]
FORMATS = [*SMALL, *(pytest.param(each, marks=pytest.mark.slow) for each in LARGE)]


def ids(each) -> str:
    return f"B={each[0]}, r={each[1]}"


def every(a: Saturating) -> list[F]:
    end = int(a.largest / a.resolution)
    return [k * a.resolution for k in range(-end, end + 1)]


def outputs(model, vectors, a) -> list[list[F]]:
    """What a position-wise model makes of each vector, all of them in one list."""
    y = a.numbers(model(a.array([list(each) for each in vectors]), a)).tolist()
    return [[F(value) for value in row] for row in y]


def clamped(x: F, a: Saturating) -> F:
    return max(-a.largest, min(a.largest, x))


def drawn(a: Saturating, width: int, count: int = 3000) -> list[tuple[F, ...]]:
    rng = np.random.default_rng(7)
    end = int(a.largest / a.resolution)
    steps = rng.integers(-end, end + 1, (count, width))
    steps[: count // 2] = rng.choice(
        [-end, -end + 1, -1, 0, 1, 2, end - 1, end], (count // 2, width)
    )
    return [tuple(int(k) * a.resolution for k in row) for row in steps]


def vectors(a: Saturating, width: int) -> list[tuple[F, ...]]:
    if (2 * a.largest / a.resolution + 1) ** width <= 70_000:
        return list(itertools.product(every(a), repeat=width))
    return drawn(a, width)


@pytest.mark.parametrize("format", FORMATS, ids=ids)
def test_zero_at_flag(format):
    a = Saturating(*format)
    model = tf.recipe("zero-at-flag").build(width=2, largest=a.largest)
    numbers = vectors(a, 2)
    for bit in (0, 1):
        got = outputs(model, [(*x, bit) for x in numbers], a)
        assert got == [[(1 - bit) * value for value in x] for x in numbers]


@pytest.mark.parametrize("format", FORMATS, ids=ids)
def test_add_at_flag(format):
    a = Saturating(*format)
    v = [a.largest, -a.resolution]
    model = tf.recipe("add-at-flag").build(vector=v, largest=a.largest)
    numbers = vectors(a, 2)
    for bit in (0, 1):
        got = outputs(model, [(*x, bit) for x in numbers], a)
        assert got == [
            [clamped(p + bit * q, a) for p, q in zip(x, v, strict=True)] for x in numbers
        ]


@pytest.mark.parametrize("format", FORMATS, ids=ids)
def test_gate_by_flag(format):
    a = Saturating(*format)
    model = tf.recipe("gate-by-flag").build(width=2, largest=a.largest)
    numbers = vectors(a, 2)
    for bits in itertools.product((0, 1), repeat=2):
        got = outputs(model, [(*x, *bits) for x in numbers], a)
        assert got == [[p * q for p, q in zip(x, bits, strict=True)] for x in numbers]


@pytest.mark.parametrize("format", FORMATS, ids=ids)
def test_max_of_two(format):
    a = Saturating(*format)
    model = tf.recipe("max-of-two").build(largest=a.largest)
    numbers = vectors(a, 2)
    expected = [[p, 0] if p >= q else [0, q] for p, q in numbers]
    assert outputs(model, numbers, a) == expected


@pytest.mark.parametrize("width", [1, 2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", TINY + LARGE, ids=ids)
def test_max_of_many(format, width):
    a = Saturating(*format)
    model = tf.recipe("max-of-many").build(width=width, largest=a.largest)
    numbers = vectors(a, width)
    got = outputs(model, numbers, a)
    for x, row in zip(numbers, got, strict=True):
        place = min(k for k in range(width) if x[k] == max(x))
        assert row == [value if k == place else 0 for k, value in enumerate(x)], x
        assert sum(row) == max(x)


LINEAR = [[[2]], [[-1]], [[1, 1], [0, -1]]]


@pytest.mark.parametrize("matrix", LINEAR, ids=str)
@pytest.mark.parametrize("format", [(2, 1), (4, 1), (4, "1/2"), (8, 1)], ids=ids)
def test_linear_maps_of_every_vector_at_every_place(format, matrix):
    """Every x that M does not clamp; flag and receiver at every place of up to three."""
    a, d = Saturating(*format), len(matrix)
    most = max(sum(map(abs, row)) for row in matrix)
    numbers = [x for x in vectors(a, d) if most * max(map(abs, x)) <= a.largest]
    right = tf.recipe("linear-to-the-right").build(matrix=matrix, largest=a.largest)
    place = tf.recipe("linear-in-place").build(matrix=matrix, largest=a.largest)
    rng = np.random.default_rng(3)
    for source, n in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]:
        lists = [[numbers[k] for k in rng.integers(len(numbers), size=n)] for _ in numbers]
        for x, each in zip(numbers, lists, strict=True):
            each[source] = x
        mapped = [
            [sum(F(m) * v for m, v in zip(row, x, strict=True)) for row in matrix] for x in numbers
        ]
        flags = [int(i == source) for i in range(n)]
        rows = [[[*v, f] for v, f in zip(each, flags, strict=True)] for each in lists]
        got = a.numbers(place(a.array(rows), a))[:, source].tolist()
        assert got == [[*y, *[0] * d] for y in mapped]
        for receiver in range(source + 1, n):
            rows = [
                [
                    [*v, f, int(i == receiver)]
                    for i, (v, f) in enumerate(zip(each, flags, strict=True))
                ]
                for each in lists
            ]
            got = a.numbers(right(a.array(rows), a))[:, receiver].tolist()
            assert got == mapped


@pytest.mark.parametrize("format", [(16, 1), (16, "1/4"), (64, "1/64")], ids=ids)
@pytest.mark.parametrize("ignored", [(1,), (3,), (1, 2), (1, 2, 3)], ids=str)
def test_ignored_coordinates_change_nothing_and_stay(format, ignored):
    a = Saturating(*format)
    model = tf.recipe("ignore-coordinates").build(width=3, ignored=ignored, largest=a.largest)
    numbers = drawn(a, 3, 400)
    others = drawn(a, 3, 800)[400:]
    hidden = [k - 1 for k in ignored]
    changed = [
        tuple(q[k] if k in hidden else p[k] for k in range(3))
        for p, q in zip(numbers, others, strict=True)
    ]
    before, after = outputs(model, numbers, a), outputs(model, changed, a)
    for x, y, p, q in zip(numbers, changed, before, after, strict=True):
        for k in range(3):
            if k in hidden:
                assert (p[k], q[k]) == (x[k], y[k])
            else:
                assert p[k] == q[k]


@pytest.mark.parametrize("name", [*SYSTEMS, "saturating", "float32:64"])
def test_a_layer_that_ignores_is_the_layer_without_the_coordinates_bit_for_bit(name):
    a, rng = number_system(name), np.random.default_rng(1)
    kept, width = [0, 2, 3], 5
    onto = np.eye(width)[:, kept]
    weighting = "average-hard" if name == "exact" else "softmax"
    head = Attention(
        W_Q=rng.integers(-2, 3, (2, 3)),
        W_K=rng.integers(-2, 3, (2, 3)),
        W_V=rng.integers(-2, 3, (2, 3)),
        W_O=rng.integers(-2, 3, (3, 2)),
        weighting=weighting,
        mask="future",
    )
    network = FeedForward(
        W_1=rng.integers(-2, 3, (4, 3)),
        b_1=[1, 0, -1, 1],
        W_2=rng.integers(-1, 2, (3, 4)),
        b_2=[1, 0, 0],
    )
    small = Layer((head,), network)
    large = Layer((between(head, onto.T, onto),), between(network, onto.T, onto))
    x = rng.integers(-8, 9, (6, width)) / 8
    left, right = a.array(x), a.array(x[:, kept])
    got, expected = a.numbers(large(left, a)), a.numbers(small(right, a))
    assert np.array_equal(got[:, kept], expected)
    assert np.array_equal(got[:, [1, 4]], a.numbers(left)[:, [1, 4]])


@pytest.mark.parametrize("name", ["float64", "float32", "saturating"])
def test_a_flag_changes_nothing_as_long_as_d_key_stays(name):
    """Two heads on a stream with a flag: one reads it with zeros, one has a row more for it."""
    a, rng = number_system(name), np.random.default_rng(2)
    x = rng.integers(-16, 17, (5, 2)) / 8
    flags = tf.recipe("flag").build(max_length=5, flagged=3)(5)
    eye, wide = np.eye(2), np.eye(2, 3)
    plain = Attention(W_Q=eye, W_K=eye, W_V=eye)
    narrow = Attention(W_Q=wide, W_K=wide, W_V=wide)
    padded = Attention(W_Q=np.eye(3)[:, :3] * [1, 1, 0], W_K=np.diag([1, 1, 0]), W_V=wide)
    expected = a.numbers(plain(a.array(x), a))
    flagged = a.array(np.hstack([x, flags]))
    assert np.array_equal(a.numbers(narrow(flagged, a)), expected)
    assert np.abs(a.numbers(padded(flagged, a)) - expected).max() > 0.01


# What infinities do, and floats without a clamp


def evaluated(stack: LayerStack, vectors, infinite: float, wide=np.float32):
    """Its networks in plain numpy, the largest weights replaced by infinity."""
    with np.errstate(all="ignore"):
        z = np.asarray(vectors, wide) @ np.asarray(stack.stream.writing(*stack.inputs).T, wide)
        for layer in stack.layers:
            part = layer.feed_forward
            W_1, b_1, W_2 = (np.asarray(w, wide) for w in (part.W_1, part.b_1, part.W_2))
            W_2 = np.where(np.abs(W_2) == infinite, np.sign(W_2) * np.inf, W_2).astype(wide)
            z = z + np.maximum(z @ W_1.T + b_1, 0) @ W_2.T
        return z[:, [stack.stream.index(slot) for slot in stack.outputs]]


CLEARING = {
    "zero-at-flag": [[3, -2, 1], [3, -2, 0]],
    "gate-by-flag": [[3, -2, 1, 0], [3, -2, 0, 1]],
    "max-of-two": [[3, -2], [-2, 3]],
    "max-of-many": [[3, -2, 1, 0], [1, 2, 3, 4]],
}


@pytest.mark.parametrize("name", CLEARING)
def test_infinities_give_no_numbers(name):
    model = tf.recipe(name).build(largest=16)
    assert np.isnan(evaluated(model, CLEARING[name], infinite=16)).any()
    as_it_is = evaluated(model, CLEARING[name], infinite=-1)
    right = np.asarray(model(CLEARING[name], "saturating"))
    assert np.isfinite(as_it_is).all()
    assert not np.array_equal(as_it_is, right), "without a clamp the same weights are wrong too"


def test_an_infinite_score_gives_no_numbers():
    flags = np.array([1, 0, 0], np.float32)
    with np.errstate(all="ignore"):
        q = k = np.float32(np.inf) * flags
        assert np.isnan(np.outer(q, k)).any()
    with pytest.raises(NotFinite, match="every number must be finite"):
        Attention(W_Q=[[np.inf]], W_K=[[1]], W_V=[[1]])


@pytest.mark.parametrize("name", CLEARING)
@pytest.mark.parametrize(
    "wide", ["float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3"]
)
def test_float_formats_clear_numbers_where_they_are_clamped(name, wide):
    model = tf.recipe(name).build(largest=16)
    plain, finite = number_system(wide), number_system(f"{wide}:16")
    right = [list(map(float, row)) for row in model(CLEARING[name], "saturating").tolist()]
    assert finite.numbers(model(CLEARING[name], finite)).tolist() == right
    assert plain.numbers(model(CLEARING[name], plain)).tolist() != right


def test_in_place_works_in_ieee_formats_where_the_exponential_vanishes():
    recipe = tf.recipe("linear-in-place")
    names = recipe.claim.claimed(recipe.settings({"largest": 128}))
    assert {"float32", "bfloat16", "float16"} & set(names) == {"float32", "bfloat16", "float16"}
    assert "float64" not in names
    model = recipe.build(largest=128)
    x = [[5, 1, 0], [3, -7, 1], [2, 2, 0]]
    assert model(x, "float32")[1].tolist() == [-11, -10, 0, 0]
    assert recipe.build(largest=16)(x, "float32")[1].tolist() != [-11, -10, 0, 0]


NAMES = (*CLEARING, "add-at-flag", "ignore-coordinates", "linear-to-the-right", "linear-in-place")


@pytest.mark.parametrize(
    "name", [*NAMES[:3], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[3:])]
)
def test_a_fault_in_any_weight_is_caught(name):
    """Every number other than 0, one after the other, set to 0."""
    recipe = tf.recipe(name)
    model = recipe.build()
    faults = list(_faults(model))
    assert len(faults) >= 3
    for fault in faults:
        claim = dataclasses.replace(recipe.claim, variants=())
        broken = dataclasses.replace(recipe, claim=claim, construct=_giving(recipe, fault))
        assert not check_recipe(broken, max_length=9).held, fault


def _giving(recipe, model):
    def construct(**_settings):
        return model

    construct.__signature__ = inspect.signature(recipe.construct)
    construct.__module__ = recipe.construct.__module__
    return construct


def _faults(model: LayerStack):
    for number, layer in enumerate(model.layers):
        for kind, part in (("heads", layer.heads[:1]), ("feed_forward", layer.feed_forward)):
            part = part[0] if kind == "heads" and part else part
            if not part:
                continue
            for name in ("W_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2"):
                weights = getattr(part, name, None)
                if weights is None:
                    continue
                for place in zip(*np.nonzero(weights), strict=True):
                    changed = np.array(weights)
                    changed[place] = 0
                    if kind == "heads" and not _tells(part, name, changed):
                        continue
                    fault = dataclasses.replace(part, **{name: changed})
                    fault = (fault,) if kind == "heads" else fault
                    layers = list(model.layers)
                    layers[number] = dataclasses.replace(layer, **{kind: fault})
                    yield dataclasses.replace(model, layers=tuple(layers))


def _tells(head: Attention, name: str, changed) -> bool:
    """Whether a change of W_V or W_O changes their product, or is one of scores."""
    after = dataclasses.replace(head, **{name: changed})
    products = [exact_product(each.W_O, each.W_V) for each in (head, after)]
    return name in ("W_Q", "W_K") or not np.array_equal(*products)


@pytest.mark.parametrize("largest", [1, 2**11, 2**20])
def test_every_largest_number_has_arithmetics(largest):
    for name in ("zero-at-flag", "max-of-two", *["linear-in-place"] * (largest > 1)):
        recipe = tf.recipe(name)
        names = recipe.claim.claimed(recipe.settings({"largest": largest}))
        fixed = [each for each in names if each.startswith("saturating")]
        least = max(F(1, largest), F(largest, 2**20))
        assert (
            fixed[0] == f"saturating:{largest}:{least}" and fixed[-1] == f"saturating:{largest}:1"
        )
    model = tf.recipe("zero-at-flag").build(largest=largest)
    assert model([[1, -1, 1], [1, -1, 0]], fixed[-1]).tolist() == [[0, 0], [1, -1]]


@pytest.mark.parametrize("name", ["linear-to-the-right", "linear-in-place"])
def test_a_check_tries_positions_of_which_something_is_claimed(name):
    """Of the lists of each length from 2, a sixteenth at least says something, at two positions."""
    recipe = tf.recipe(name)
    settings = recipe.settings({})
    for arithmetic in recipe.claim.claimed(settings):
        a = number_system(arithmetic)
        for n in (2, 3, 9, 33):
            domain = ask(recipe.claim.domain, **settings)
            cases = domain.cases(n, 16, a)
            rows = [ask(recipe.claim.reference, **case, **settings) for case in cases]
            told = [i for each in rows for i, row in enumerate(each) if row is not None]
            assert len(told) >= len(cases) / 16 and len(set(told)) >= min(n - 1, 2), (arithmetic, n)


# Refusals


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("flag", {"flagged": 65}, "one from 1 to N = 64; received flagged = 65"),
        ("flag", {"flagged": 0}, "flagged must be a whole number of at least 1"),
        ("zero-at-flag", {"largest": 12}, "largest must be a power of two"),
        ("zero-at-flag", {"largest": "1/2"}, "largest must be a power of two"),
        ("add-at-flag", {"vector": [17]}, r"at most B = 16; received v = \[17\]"),
        ("ignore-coordinates", {"ignored": [5]}, r"some of 1 to 4.*received ignored = \[5\]"),
        ("ignore-coordinates", {"ignored": []}, r"ignored must be a list such as \[1, 3\]"),
        ("ignore-coordinates", {"largest": 16}, r"at least \(1 \+ d\)² = 25.*largest = 16"),
        ("ignore-coordinates", {"ignored": '"12"'}, "a list such as"),
        ("ignore-coordinates", {"ignored": '{"1": 2}'}, "a list such as"),
        (
            "linear-in-place",
            {"matrix": [[1, 2]]},
            "output must be as long as the input; received 1 rows of 2",
        ),
        ("linear-to-the-right", {"matrix": [[1], [2]]}, "received 2 rows of 1"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(name, given, message):
    with pytest.raises(InvalidValue, match=message):
        tf.recipe(name).build(**given)
