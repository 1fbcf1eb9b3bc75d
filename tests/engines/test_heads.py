"""Every method that says it fits a head gives what the dense reference gives, ties included."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.engines.structured import stream_vectors as row_kinds
from transformist.engines.structured import threads
from transformist.engines.structured.decoding import causal
from transformist.engines.structured.decoding.causal import RUNNING, CausalHead
from transformist.engines.structured.heads import choose_method, method
from transformist.engines.structured.heads.by_hull import ByHull
from transformist.engines.structured.heads.choosing import METHODS
from transformist.engines.structured.heads.head import HeadInput, HeadMaps
from transformist.engines.structured.heads.upper_hull import (
    ABOVE,
    BELOW,
    ON,
    UNKNOWN,
    UpperHull,
    _turn,
)
from transformist.engines.structured.heads.weightings import FIRST, KINDS, TAKE
from transformist.engines.structured.ranges import ColumnRanges, are_exact
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.stream_vectors import Few
from transformist.errors import NotFinite
from transformist.model import Attention, Mask, Weighting

LENGTHS = (0, 1, 2, 3, 9, 40)


def stream(z):
    """Vectors as the stream has them where nothing is known of them."""
    return ResidualStream.of(len(z), [(range(z.shape[1]), Many(z))])


def in_parts(z, rnd):
    """The same in parts, as few distinct vectors and their numbers where that is drawn."""
    left, parts = list(range(z.shape[1])), []
    rnd.shuffle(left)
    while left:
        size = rnd.randint(1, 4)
        own, left = sorted(left[:size]), left[size:]
        if rnd.random() < 0.7:
            table, ids = np.unique(z[:, own], axis=0, return_inverse=True)
            parts.append((own, Few.of(table.astype(z.dtype), ids.reshape(-1).astype(np.int32))))
        else:
            parts.append((own, Many(np.ascontiguousarray(z[:, own]))))
    return ResidualStream.of(len(z), parts)


def attended(head, z, kind, a, parts=None):
    """What a head gives by one method, or None where it does not fit."""
    maps = HeadMaps.of(head, a)
    found, given = kind(maps), HeadInput(maps, parts or stream(z))
    if not found.fits(given):
        return None
    y = np.zeros((len(z), head.width_out), a.dtype)
    y[:, maps.written] = found.mixed(given).mapped(maps.output).whole()
    return y


def chosen(head, z, a):
    """The first number that is mixed at each row, and the method."""
    given = HeadInput(HeadMaps.of(head, a), stream(z))
    found = choose_method(given)
    return found.mixed(given).whole()[:, 0], found


def whole(rnd, *shape, size=3):
    return np.array([rnd.randint(-size, size) for _ in range(int(np.prod(shape)))]).reshape(shape)


# Each draws the rows of the stream: three numbers for the query, three for the key, two values.


def constant(rnd, n):
    return np.zeros((n, 3)), whole(rnd, n, 3)


def one_query(rnd, n):
    return np.tile(whole(rnd, 1, 3), (n, 1)), whole(rnd, n, 3, size=9)


def few_queries(rnd, n):
    return np.eye(3)[[rnd.randrange(3) for _ in range(n)]], whole(rnd, n, 3, size=2)


def few_keys(rnd, n):
    return whole(rnd, n, 3, size=9), np.eye(3)[[rnd.randrange(3) for _ in range(n)]]


def rank_one(rnd, n):
    q, k = whole(rnd, n, 3), whole(rnd, n, 3)
    q[:, 1:], k[:, 1:] = 0, 0
    return q, k


def lookup(rnd, n):
    """Positions and squares; queries half-way between two of them tie."""
    j = np.arange(n)
    asked = np.array([rnd.randint(-2, 2 * n + 2) / 2 for _ in range(n)]) * 2
    zero = np.zeros(n)
    return np.stack([asked, zero - 1, zero], 1), np.stack([j, j * j, zero], 1)


def nearest_active(rnd, n):
    """A parabola of which some points are far below."""
    q, k = lookup(rnd, n)
    k[[i for i in range(n) if rnd.random() < 0.5], 1] += 1000
    return q, k


def plane(rnd, n):
    """Points of a small grid, coming from the left or from the right, many on one line."""
    q, k = whole(rnd, n, 3), whole(rnd, n, 3)
    k[:, 0] = np.sort(k[:, 0])[:: rnd.choice([1, -1])]
    q[:, 1], q[:, 2] = rnd.choice([1, 2, -1]), 0
    return q, k


def flat(rnd, n):
    """Keys along a line, at which some queries look so that all of them tie."""
    q, k = plane(rnd, n)
    k[:, 0], k[:, 1] = np.arange(n), 2 * np.arange(n)
    q[:, 0] = -2 * q[:, 1]
    return q, k


def anything(rnd, n):
    return whole(rnd, n, 3), whole(rnd, n, 3)


SHAPES = (constant, one_query, few_queries, few_keys, rank_one, lookup, nearest_active, plane)
SHAPES += (flat, anything)


def drawn(shape, rnd, n, weighting, mask):
    """A head with biases, and vectors for it; the numbers 0 are 0 by the weights."""
    q, k = shape(rnd, n)
    z = np.concatenate([q, k, whole(rnd, n, 2, size=5)], axis=1).astype(float)
    select = np.eye(8)
    W_Q = select[:3] * (np.abs(q).sum(axis=0) != 0)[:, None]
    scale = rnd.choice([1, 1, 0.5])
    shift = rnd.choice([0, 0, 1])  # a column of the query that the weights fix
    unused = np.zeros((rnd.randint(0, 5), 8))  # so that √d_key is irrational, mostly
    head = Attention(
        W_Q=np.concatenate([W_Q * scale, np.zeros((1, 8)), unused]),
        b_Q=[0, 0, 0, shift, *unused[:, 0]],
        W_K=np.concatenate([select[3:6], [whole(rnd, 8, size=1)], unused]),
        W_V=select[6:],
        b_V=whole(rnd, 2),
        W_O=whole(rnd, 5, 2),
        b_O=whole(rnd, 5),
        weighting=weighting,
        mask=mask,
    )
    return head, z


@pytest.mark.trials(1, 4)
@pytest.mark.parametrize("few", [2, 512])
@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize("weighting", Weighting)
def test_methods_that_fit_agree_with_the_reference(weighting, mask, few, monkeypatch, trials):
    monkeypatch.setattr(method, "FEW", few)
    monkeypatch.setattr(row_kinds, "BLOCK", 16)
    a = number_system("float64")
    for shape, n, seed in itertools.product(SHAPES, LENGTHS, range(trials)):
        head, z = drawn(shape, random.Random(f"{shape.__name__} {n} {seed}"), n, weighting, mask)
        expected = head(z)
        for kind in METHODS:
            got = attended(head, z, kind, a)
            if got is not None:
                np.testing.assert_allclose(
                    got, expected, rtol=0, atol=1e-12, err_msg=f"{shape.__name__} {n} {kind}"
                )


@pytest.mark.trials(1, 4)
@pytest.mark.parametrize("much", [0, threads.MUCH], ids=["threads", "one thread"])
@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize("weighting", Weighting)
def test_streams_in_parts_are_attended_as_the_reference_does(
    weighting, mask, much, monkeypatch, trials
):
    """Where vectors are few they are computed once each, and hard heads hand on which they are."""
    monkeypatch.setattr(row_kinds, "BLOCK", 16)
    monkeypatch.setattr(row_kinds, "SHARE", 1)
    monkeypatch.setattr(threads, "MUCH", much)
    a, kinds = number_system("float64"), set()
    for shape, n, seed in itertools.product(SHAPES, LENGTHS, range(trials)):
        rnd = random.Random(f"{shape.__name__} {n} {seed}")
        head, z = drawn(shape, rnd, n, weighting, mask)
        expected, parts = head(z), in_parts(z, rnd)
        for kind in METHODS:
            got = attended(head, z, kind, a, parts)
            if got is not None:
                kinds |= {kind.__name__}
                message = f"{shape.__name__} {n} {seed} {kind}"
                np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12, err_msg=message)
    assert kinds == {kind.__name__ for kind in METHODS}


@pytest.mark.trials(1, 3)
@pytest.mark.parametrize("few", [2, 512])
@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize("weighting", ["average-hard", "leftmost-hard", "rightmost-hard"])
def test_the_positions_are_those_of_exact_arithmetic(weighting, mask, few, monkeypatch, trials):
    """Where no score rounds; an irrational √d_key is no excuse."""
    monkeypatch.setattr(method, "FEW", few)
    monkeypatch.setattr(row_kinds, "BLOCK", 16)
    a = number_system("float64")
    used = set()
    for shape, n, seed in itertools.product(SHAPES, LENGTHS, range(trials)):
        head, z = drawn(shape, random.Random(f"{shape.__name__} {n} {seed}"), n, weighting, mask)
        shares = np.array(head.weights(z, "exact").tolist(), dtype=float).reshape(n, n)
        marked = np.concatenate([z, np.eye(n)], axis=1)  # a value of its own at each position
        wide = Attention(
            **{name: np.pad(getattr(head, name), ((0, 0), (0, n))) for name in ("W_Q", "W_K")},
            b_Q=head.b_Q,
            W_V=np.eye(n, 8 + n, 8) if n else np.zeros((1, 8)),
            W_O=np.eye(8 + n, n) if n else np.zeros((8, 1)),
            weighting=weighting,
            mask=mask,
        )
        for kind in METHODS:
            got = attended(wide, marked, kind, a)
            if got is not None:
                used.add(kind.__name__)
                message = f"{shape.__name__} {n} {seed} {kind.__name__}"
                np.testing.assert_allclose(got[:, :n], shares, rtol=1e-15, err_msg=message)
    assert used == {kind.__name__ for kind in METHODS}


# Scores that round: what a column is at position j, r being drawn

ROUNDED = {
    "one": lambda j, r: 0 * j + 1,
    "j": lambda j, r: j + 1,
    "a parabola": lambda j, r: -((j + 1) ** 2),
    "tenths": lambda j, r: 0.1 * (j + 1),
    "thirds": lambda j, r: (j + 1) / 3,
    "units in the last place": lambda j, r: 1 + j * 2.0**-52,
    "and of float32": lambda j, r: 1 + j * 2.0**-23,
    "drawn": lambda j, r: r - 0.5,
    "positive": lambda j, r: r + 0.5,
    "sorted": lambda j, r: np.sort(r),
    "few": lambda j, r: np.round(3 * r),
    "far off": lambda j, r: 1e9 + j,
    "a parabola far off": lambda j, r: -((1e9 + j) ** 2),
    "noise on j": lambda j, r: j + 1e-13 * r,
    "noise on a parabola": lambda j, r: -((j + 1) ** 2) + 1e-9 * r,
    "a parabola, some below": lambda j, r: -((j + 1) ** 2) - 0.1 * (r > 0.5),
    "a parabola, some far below": lambda j, r: -((j + 1) ** 2) - 1000 * (r > 0.5),
    "asked": lambda j, r: 2 * np.round(r * (len(j) + 1)) + 0.1,
}
ASKED = ("asked", "thirds", "drawn", "one", "few")
RISING = ("j", "noise on j", "far off", "sorted", "tenths")
TALL = ("a parabola", "noise on a parabola", "a parabola, some below", "a parabola far off")
CLOSE = ("units in the last place", "and of float32", "j", "tenths", "drawn")
SCALES = {"float64": [1, 1, 1, 1e-170, 1e160, 1e-200], "float32": [1, 1, 1e15, 1e-18]}


def rounding(rnd, n, weighting, mask, a):
    """A head whose scores round, as the plane has them or not, and vectors; values are j and r."""
    j = np.arange(n)

    def column(names, scale):
        r = np.array([rnd.random() for _ in range(n)])
        return ROUNDED[rnd.choice(tuple(names))](j, r) * scale

    width = rnd.choice([1, 2, 2, 2, 3])
    scales = [rnd.choice(SCALES[a.name]) for _ in range(width)]
    kinds = [ROUNDED] * 2 * width
    if width == 1:
        kinds = [("thirds", "drawn"), CLOSE]
    if width == 2 and rnd.random() < 0.6:
        kinds = [ASKED, ("one", "positive"), RISING, TALL]
    q = [column(kinds[m], scales[m]) for m in range(width)]
    k = [column(kinds[width + m], rnd.choice([1, -1]) / scales[m]) for m in range(width)]
    z = a.array(np.stack([*q, *k, j, column(("drawn",), 1)], axis=1))
    select, unused = np.eye(2 * width + 2), np.zeros((rnd.randint(0, 2), 2 * width + 2))
    W_Q, b_Q = np.concatenate([select[:width], unused]), np.zeros(width + len(unused))
    if rnd.random() < 0.25:
        W_Q[0], b_Q[0] = 0, 0.1  # the weights fix the query there
    return Attention(
        W_Q=W_Q,
        b_Q=b_Q,
        W_K=np.concatenate([select[width : 2 * width], unused]),
        W_V=select[-2:],
        W_O=[[1, 0], [0, 1], *[[0, 0]] * (2 * width)],
        weighting=weighting,
        mask=mask,
    ), z


def agrees(got, expected, values, weighting, a, message):
    """Hard choices of one position, bit for bit; means but for the rounding of sums."""
    near = {"float64": 1e-12, "float32": 1e-5}[a.name] if weighting in MEANS else 0
    size = abs(values[:, -2:]).max(axis=0, initial=0).astype(float)
    assert (abs(got.astype(float) - expected)[:, :2] <= near * size).all(), message


MEANS = ("softmax", "average-hard")


@pytest.mark.trials(15, 60)
@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize("weighting", Weighting)
def test_where_scores_round_the_choice_is_that_of_the_reference(
    weighting, mask, arithmetic, monkeypatch, trials
):
    monkeypatch.setattr(method, "FEW", 2)
    monkeypatch.setattr(row_kinds, "BLOCK", 16)
    a, used = number_system(arithmetic), set()
    for n, seed in itertools.product((1, 2, 9, 40), range(trials)):
        head, z = rounding(random.Random(f"{n} {seed}"), n, weighting, mask, a)
        expected = head(z, a)
        for kind in METHODS:
            got = attended(head, z, kind, a)
            if got is not None:
                used.add(kind.__name__)
                message = f"{n} {seed} {kind.__name__}"
                agrees(got, expected, z, weighting, a, message)
    assert used == {kind.__name__ for kind in METHODS}


@pytest.mark.trials(15, 60)
@pytest.mark.parametrize("first", [1, 2], ids=lambda at: RUNNING[at].name)
@pytest.mark.parametrize("mask", ["future", "strict-future"])
@pytest.mark.parametrize("weighting", Weighting)
def test_where_scores_round_so_it_is_as_rows_come(weighting, mask, first, monkeypatch, trials):
    monkeypatch.setattr(method, "FEW", 2)
    monkeypatch.setattr(causal, "RUNNING", RUNNING[first:])
    used = set()
    for a, n, seed in itertools.product(
        map(number_system, ("float64", "float32")), (2, 9, 40), range(trials)
    ):
        rnd = random.Random(f"{n} {seed}")
        head, z = rounding(rnd, n, weighting, mask, a)
        running, y = CausalHead(HeadMaps.of(head, a)), np.zeros((n, head.width_out), a.dtype)
        for rows in chunks(rnd, n):
            mixed = running.mix(z[rows]).astype(a.dtype)
            running.maps.output.add(mixed, y[rows], running.maps.written)
        used.add(running.method)
        agrees(y, head(z, a), z, weighting, a, f"{a.name} {n} {seed} {running.method}")
    assert used >= {RUNNING[first].name, "dense"}


@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize("weighting", Weighting)
def test_every_pair_is_evaluated_as_the_reference_does_bit_for_bit(weighting, arithmetic):
    a = number_system(arithmetic)
    for mask, n in itertools.product(Mask, LENGTHS):
        head, z = rounding(random.Random(n), n, weighting, mask, a)
        assert np.array_equal(attended(head, z, METHODS[-1], a), head(z, a)), (mask, n)


def point_head(width=2, **given):
    """A head on the coordinates of a query, those of a key, and a value; √d_key is irrational."""
    select, none = np.eye(2 * width + 1), np.zeros((3 - width % 2, 2 * width + 1))
    return Attention(
        W_Q=np.concatenate([select[:width], none]),
        W_K=np.concatenate([select[width:-1], none]),
        W_V=select[-1:],
        W_O=select[-1:].T,
        **given,
    )


HUGE = 2.0**530

EDGES = {
    "products underflow": lambda t: [(t + 1) * 1e-200, (t + 1) * 1e-200],
    "products round to ties": lambda t: [(t + 1) / 3, 1 + t * 2.0**-52],
    "turns underflow": lambda t: [(t - 260) * 1e170, (t + 1) * 1e170, t / 1e170, t**2 / 1e170],
    "turns overflow": lambda t: [t / HUGE, (t + 1) / HUGE, t * HUGE, (t * 43 % 700) * HUGE],
    "noise around 0": lambda t: [-0.1 * (1 + t), 1 + t, t, 0.1 * t],
    "terms that cancel": lambda t: [
        *((t - 0.5 + 1.8e12) * 0.7319, 0 * t + 0.7319),
        *(t + 4096, -t * (t - 1) / 2 - 1.8e12 * (t + 4096)),
    ],
    "far off": lambda t: [2 * (1e9 + t), 0 * t + 1, 1e9 + t, -((1e9 + t) ** 2)],
}
"""Queries and keys at positions t, of as many coordinates."""


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("weighting", Weighting)
def test_long_inputs_choose_as_the_reference_at_the_edges_of_the_format(weighting, name):
    """More queries than are few."""
    t, a = np.arange(700.0), number_system("float64")
    z = np.stack([*EDGES[name](t), (t * 37) % 700], axis=1)
    head = point_head(z.shape[1] // 2, weighting=weighting)
    got, found = chosen(head, z, a)
    near = 1e-9 if weighting in MEANS else 0
    assert abs(got - head(z)[:, -1]).max() <= near * 700, found.name


@pytest.mark.parametrize("weighting", Weighting)
@pytest.mark.parametrize("size", [1, 1e9])
def test_a_term_is_rounded_away_as_in_the_reference(weighting, size):
    """Terms 1 + j 2⁻⁵² differ, and tie beside products that are larger than 1."""
    t, a = np.arange(700.0), number_system("float64")
    z = np.stack([t, t % 3, 1 + t * 2.0**-52, (t * 37) % 700], axis=1)
    head = Attention(
        W_Q=[[size, 0, 0, 0], [0] * 4, [0] * 4],
        b_Q=[0, size, 0],
        W_K=[[0, 1, 0, 0], [0, 0, 1, 0], [0] * 4],
        W_V=[[0, 0, 0, 1]],
        W_O=[[1], [0], [0], [0]],
        weighting=weighting,
    )
    near = 1e-9 if weighting in MEANS else 0
    got, _ = chosen(head, z, a)
    assert abs(got - head(z)[:, 0]).max() <= near * 700
    causal_head = replace(head, mask="future")
    running = CausalHead(HeadMaps.of(causal_head, a))
    got = running.mix(z)[:, 0]
    assert abs(got - causal_head(z)[:, 0]).max() <= near * 700


@pytest.mark.parametrize("weighting", Weighting)
def test_a_lookup_in_float32_is_the_reference_s(weighting):
    """Squares to 25,000,000 are rounded there, and scores that lie nearby tie."""
    n, a = 5000, number_system("float32")
    t = np.arange(float(n))
    z = a.array(np.stack([2 * t, 0 * t + 1, t, -(t**2), t], axis=1))
    head, rows = point_head(weighting=weighting, mask="none"), slice(4000, 4300)
    given = HeadInput(HeadMaps.of(head, a), stream(z))
    found = ByHull(given.maps)
    assert found.fits(given)
    got = found.mixed(given).whole()[rows, 0]
    expected = a.matmul(head.weights(z, a, rows), head.values(z, a))[:, 0]
    exact = weighting not in MEANS
    assert (abs(got - expected) <= (0 if exact else 1e-5 * n)).all()
    assert (expected != t[rows]).any()  # so that it is rounding that decides


def test_whole_numbers_are_exact_up_to_a_quarter_of_what_the_format_holds():
    """Beyond it two of them can tie once divided by √2."""
    a = number_system("float64")
    many, few = 2**53 - np.arange(8), 2**51 - np.arange(8)
    assert len(set(many / np.sqrt(2))) < len(set(few / np.sqrt(2))) == 8
    one, quarter, more = ColumnRanges(1), ColumnRanges(1), ColumnRanges(1)
    for measured, size in ((one, 1), (quarter, 2**51), (more, 2**51 + 1)):
        measured.take(np.array([[float(size)], [1.0]]))
    assert are_exact(one, quarter, a) and not are_exact(one, more, a)


def test_the_power_of_two_that_divides_numbers_is_found_however_small_they_are():
    met = ColumnRanges(2)
    met.take(np.array([[3 * 2.0**-60, 2.0**1000], [0, 5 * 2.0**-1074]]))
    assert met.steps.tolist() == [2.0**-60, 2.0**-1074]


def near_a_line(rnd):
    """Three points with x that rises, on a line but for a few units in the last place, mostly."""
    x = sorted(rnd.sample(range(1, 2**30), 3))
    slope, unit = rnd.choice([0.1, 3.0, -1 / 3]), rnd.choice([2.0**-20, 1.0, 2.0**300])
    return [
        (each * unit, math.nextafter(each * unit * slope, math.inf * rnd.choice([1, -1])))
        for each in x
    ]


def test_a_turn_that_is_known_is_that_of_the_points():
    rnd, seen = random.Random(0), set()
    for _ in range(2000):
        a, b, c = near_a_line(rnd)
        turn, depth = _turn(*a, *b, *c)
        (ax, ay), (bx, by), (cx, cy) = ((Fraction(x), Fraction(y)) for x, y in (a, b, c))
        below = ay + (cy - ay) * (bx - ax) / (cx - ax) - by
        seen.add(turn)
        assert turn == UNKNOWN or turn == (BELOW if below > 0 else ABOVE if below < 0 else ON)
        assert turn != BELOW or depth <= below * (1 + Fraction(1, 2**40))
    assert seen == {BELOW, ON, ABOVE, UNKNOWN}
    assert _turn(1, 2, 2, 4, 3, 6) == (ON, 0)
    assert _turn(1e-300, 2e-300, 2e-300, 1e-300, 3e-300, 3e-300)[0] == UNKNOWN


def test_a_hull_with_a_turn_that_is_not_known_is_not_sure():
    hull = UpperHull(1, 0, FIRST, 3, number_system("float64"))
    points = np.array([[1, 2], [2, 1], [3, 3]]) * 1e-300
    hull.mix(TAKE, points[:0], points, np.arange(3), np.empty((3, 0)))
    assert not hull.is_sure(points, are_exact=True)


@pytest.mark.parametrize("size", [1e308, 4e307])
def test_values_near_the_largest_are_evaluated_as_the_reference_does(size):
    a = number_system("float64")
    z = np.array([*[[size, 1]] * 6, [1, 2]])
    for weighting in Weighting:
        head = Attention(
            W_Q=[[0, 1]], W_K=[[0, 1]], W_V=[[1, 0]], W_O=[[1], [0]], weighting=weighting
        )
        got, found = chosen(head, z, a)
        assert (found.name, found.why) == ("dense", "numbers come near the largest of the format")
        assert np.array_equal(got, head(z)[:, 0])


@pytest.mark.parametrize(
    "z",
    [
        pytest.param([[1, 1e200, 1], [1, 1, 1e200]], id="a pair outside the mask"),
        pytest.param([[0, 1, 1], [0, 1, 1], [0, 1e308, 1]], id="a key where queries are 0"),
    ],
)
def test_scores_that_overflow_are_refused_wherever_the_reference_does(z):
    a = number_system("float64")
    head = Attention(
        W_Q=[[0, 1, 0], [0, 0, 0]],
        W_K=[[0, 0, 1], [0, 10, 0]],
        W_V=[[1, 0, 0]],
        W_O=[[1], [0], [0]],
        mask="strict-future",
        weighting="leftmost-hard",
    )
    rows = np.array(z, dtype=float)
    with pytest.raises(NotFinite, match="one that overflows"):
        head(rows)
    with pytest.raises(NotFinite, match="one that overflows"):
        chosen(head, rows, a)
    running = CausalHead(HeadMaps.of(head, a))
    with pytest.raises(NotFinite, match="a decoder must read numbers so small .* too large"):
        running.mix(rows)


def chunks(rnd, n):
    """Cuts of 0 to n: a few rows at a time, none at times."""
    cuts = sorted([0, n, *(rnd.randint(0, n) for _ in range(n // 3))])
    return [slice(*pair) for pair in itertools.pairwise(cuts)]


@pytest.mark.trials(2, 12)
@pytest.mark.parametrize("first", [0, 1, 2, 4], ids=lambda at: RUNNING[at].name)
@pytest.mark.parametrize("mask", ["future", "strict-future"])
@pytest.mark.parametrize("weighting", Weighting)
def test_heads_give_the_same_as_rows_come(weighting, mask, first, monkeypatch, trials):
    """Each way to evaluate first, and what takes over from it where it ceases to fit."""
    monkeypatch.setattr(method, "FEW", 3)
    monkeypatch.setattr(causal, "RUNNING", RUNNING[first:])
    used = set()
    for shape, n, seed in itertools.product(SHAPES, LENGTHS, range(trials)):
        rnd = random.Random(f"{shape.__name__} {n} {seed}")
        head, z = drawn(shape, rnd, n, weighting, mask)
        running = CausalHead(HeadMaps.of(head, number_system("float64")))
        y = np.zeros((n, head.width_out))
        for rows in chunks(rnd, n):
            running.maps.output.add(running.mix(z[rows]), y[rows], running.maps.written)
        used.add(running.method)
        message = f"{shape.__name__} {n} {seed} {running.method}"
        np.testing.assert_allclose(y, head(z), rtol=0, atol=1e-12, err_msg=message)
    assert used >= {RUNNING[first].name, "dense"}


def test_a_hull_is_kept_of_keys_that_come_from_the_right(monkeypatch):
    """One key does not tell; a second hull takes over, no dense evaluation."""
    monkeypatch.setattr(causal, "RUNNING", RUNNING[2:])
    n = 600
    head = Attention(
        W_Q=[[1, 0, 0], [0, 0, 0]],
        b_Q=[0, -1],
        W_K=[[0, 2, 0], [0, 0, 1]],
        W_V=[[0, 1, 0]],
        W_O=[[1], [0], [0]],
        weighting="average-hard",
        mask="future",
    )
    z = np.array([[-float(i // 2), -float(i), float(i * i)] for i in range(n)])
    running = CausalHead(HeadMaps.of(head, number_system("float64")))
    got = np.concatenate([running.mix(z[i : i + 1]) for i in range(n)])
    assert running.method == "hull"
    assert got[:, 0].tolist() == [-float(i // 2) for i in range(n)]


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_means_of_many_are_as_exact_as_the_format(weighting):
    """2⁵³ and a thousand ones: added one by one in float64 they leave 2⁵³."""
    values = [2**53, *[1] * 1000]
    z = np.array(values, dtype=float)[:, None]
    head = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]], weighting=weighting, mask="future")
    a = number_system("float64")
    for kind in (METHODS[0], METHODS[1]):
        got = attended(head, z, kind, a)[-1, 0]
        assert abs(Fraction(got) - Fraction(sum(values), 1001)) <= Fraction(np.spacing(got))


@pytest.mark.parametrize("weighting", Weighting)
def test_scores_are_compared_as_the_format_rounds_them(weighting):
    """In float32 2²⁴ and 2²⁴ + 1 tie, as in the reference."""
    a = number_system("float32")
    z = np.array([[0, 1], [1, 1]], dtype=a.dtype)
    head = Attention(
        W_Q=[[0, 2**12], [0, 1]],
        W_K=[[0, 2**12], [1, 0]],
        W_V=[[1, 0]],
        W_O=[[1], [0]],
        weighting=weighting,
    )
    tied = {"softmax": 0.5, "average-hard": 0.5, "leftmost-hard": 0, "rightmost-hard": 1}[weighting]
    for kind in (METHODS[0], METHODS[-1]):
        assert attended(head, z, kind, a)[:, 0].tolist() == head(z, a)[:, 0].tolist() == [tied] * 2


@pytest.mark.parametrize("kept", ["few", "many"])
@pytest.mark.parametrize("gap", [0.5, 40, 54.9])
def test_a_weight_is_left_out_only_where_it_is_far_below(gap, kept):
    """Each position scores so much more than the one before; the weights of two are compared."""
    a, n = number_system("float64"), 12
    z = np.concatenate([np.arange(n)[:, None] * gap, np.eye(3)[np.arange(n) % 3]], axis=1)
    head = Attention(
        W_Q=np.zeros((1, 4)), b_Q=[1], W_K=np.eye(1, 4), W_V=np.eye(3, 4, 1),
        W_O=np.eye(4, 3, -1), mask="future", weighting="softmax",
    )  # fmt: skip
    parts = stream(z)
    if kept == "few":
        letters = Few.of(np.eye(3), (np.arange(n) % 3).astype(np.int32))
        parts = ResidualStream.of(n, [([0], Many(z[:, :1])), ([1, 2, 3], letters)])
    got, expected = attended(head, z, METHODS[0], a, parts), head(z)
    least = math.exp(-110)
    assert (expected[:, 1:] > 0).sum() > n + 1
    seen = expected > least
    np.testing.assert_allclose(got[seen], expected[seen], rtol=1e-12)
    assert (abs(got - expected)[~seen] <= n * least).all()


def squared(s, admissible, a):
    """Weights in proportion to s² + 1: a weighting that no kernel has."""
    one = a.array(np.ones(s.shape))
    weights = a.keep(a.add(a.multiply(s, s), one), admissible)
    total = a.sum(weights)
    return a.divide(weights, a.add(total, a.array((~admissible.any(-1, keepdims=True)) * 1.0)))


def forget(weighting, function, monkeypatch):
    """Give a weighting another function, and take it from those that the kernels have."""
    monkeypatch.setattr(weighting, "_function", function)
    monkeypatch.delitem(KINDS, weighting)


@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize("shape", [one_query, few_keys, plane, anything])
def test_a_weighting_that_is_not_known_is_that_of_the_reference(shape, mask, monkeypatch):
    forget(Weighting.AVERAGE_HARD, squared, monkeypatch)
    head, z = drawn(shape, random.Random(mask), 9, "average-hard", mask)
    for name in ("float64", "float32"):
        a = number_system(name)
        _, found = chosen(head, a.array(z), a)
        assert found.name == "dense" and "no other way for this weighting" in found.why
        assert np.allclose(attended(head, a.array(z), type(found), a), head(z, a), rtol=1e-6)


def test_a_decoder_with_a_weighting_that_is_not_known(monkeypatch):
    forget(Weighting.AVERAGE_HARD, squared, monkeypatch)
    model = tf.recipe("induction-most-recent").build(alphabet="ab")
    layers = tuple(
        replace(each, heads=tuple(replace(head, weighting="average-hard") for head in each.heads))
        for each in model.layers
    )
    model, x = (
        replace(model, layers=layers, read_out=tf.RealVector(W_out=np.eye(model.width))),
        "abba",
    )
    one, other = tf.decoder(model), tf.decoder(model)
    expected = [tf.run(model, x[: n + 1], engine="structured") for n in range(len(x))]
    for n, answer in enumerate(expected):
        assert np.allclose(answer, model(x[: n + 1]))
        assert np.allclose(one.take(x[n]), answer)
    assert np.allclose(other.take_all(x), expected)
