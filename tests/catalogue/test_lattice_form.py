"""Functions given by polyhedra against interpolation between the values at their vertices."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.catalogue import lattice_form
from transformist.errors import InvalidValue, ShapeMismatch


def solved(rows, right):
    """x with rows · x = right, by Cramer's rule."""

    def determinant(matrix):
        if not matrix:
            return Fraction(1)
        return sum(
            (-1) ** k * matrix[0][k] * determinant([row[:k] + row[k + 1 :] for row in matrix[1:]])
            for k in range(len(matrix))
        )

    whole = determinant(rows)
    return [
        determinant([[*row[:k], r, *row[k + 1 :]] for row, r in zip(rows, right, strict=True)])
        / whole
        for k in range(len(rows))
    ]


def cube(dimension):
    """The simplices of the unit cube in which coordinates come in one order."""
    for order in itertools.permutations(range(dimension)):
        corners = [
            tuple(int(k in order[:size]) for k in range(dimension)) for size in range(dimension + 1)
        ]
        yield corners


def squares():
    for i, j in itertools.product(range(2), repeat=2):
        a, b, c, d = (i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)
        yield from ([a, b, c], [a, d, c])


CASES = {
    "interval": [[(k,), (k + 1,)] for k in range(5)],
    "square": list(cube(2)),
    "cube": list(cube(3)),
    "squares": list(squares()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_with_any_values_at_the_vertices(name):
    source, simplices = random.Random(name), CASES[name]
    heights = {x: source.randint(-9, 9) for corners in simplices for x in corners}
    pieces = [solved([[*x, 1] for x in each], [heights[x] for x in each]) for each in simplices]
    model = tf.recipe("cpwl-polyhedra").build(polyhedra=simplices, pieces=pieces)
    for corners in simplices:
        for _ in range(20):
            shares = [source.randint(0, 9) for _ in corners]
            total = sum(shares) or 1
            shares = shares if any(shares) else [1] + [0] * (len(corners) - 1)
            pairs = list(zip(shares, corners, strict=True))
            x = [sum(Fraction(s * v[k], total) for s, v in pairs) for k in range(len(corners[0]))]
            wanted = sum(Fraction(s * heights[v], total) for s, v in pairs)
            assert abs(model(np.array([float(v) for v in x]))[0] - float(wanted)) < 1e-12


def test_a_polyhedron_of_more_vertices_than_a_simplex():
    square = [[0, 0], [2, 0], [2, 2], [0, 2]]
    beside = [[2, 0], [3, 0], [3, 2], [2, 2]]
    model = tf.recipe("cpwl-polyhedra").build(
        polyhedra=[square, beside], pieces=[[1, 1, 0], [0, 1, 2]]
    )
    for x in ([0, 0], [1, 2], [2, 1], [2.5, 0.25], [3, 2]):
        assert model(x).tolist() == [min(x[0], 2) + x[1]]


HALVES = [[[-1], [0]], [[0], [1]]]
REFUSED = [
    (HALVES, [[1, 0], [1, 1]], InvalidValue, "agree where their polyhedra meet"),
    (
        [[[0, 0], [2, 0], [0, 2]], [[0, 0], [1, 1], [2, 0]]],
        [[1, 0, 0], [0, 1, 0]],
        InvalidValue,
        "agree",
    ),
    ([[[0], [0]], [[0], [1]]], [[1, 0], [1, 0]], InvalidValue, "polyhedron 1"),
    (HALVES, [[1, 0]], ShapeMismatch, "a polyhedron for each piece"),
    (HALVES, [[1, 0, 0], [1, 0, 0]], ShapeMismatch, "each coordinate"),
    ([[[k] for k in range(200)]], [[1, 0]], InvalidValue, "at most 2,000 simplices"),
    ([], [[1, 0]], InvalidValue, "list of polyhedra"),
    ([[[0], [1]], [[0, 1]]], [[1, 0]], InvalidValue, "list of polyhedra"),
]


@pytest.mark.parametrize(("polyhedra", "pieces", "refusal", "words"), REFUSED)
def test_what_is_no_continuous_function_is_refused(polyhedra, pieces, refusal, words):
    with pytest.raises(refusal, match=words):
        tf.recipe("cpwl-polyhedra").build(polyhedra=polyhedra, pieces=pieces)


def test_a_step_that_is_seen_only_between_two_vertices_is_refused():
    """Both functions are 0 at the common vertices of the lower triangles, and differ above."""
    lower = [[0, 0], [4, 0], [2, -1]]
    left, right = [[0, 0], [2, 0], [0, 2]], [[2, 0], [4, 0], [4, 2]]
    with pytest.raises(InvalidValue, match="agree"):
        tf.recipe("cpwl-polyhedra").build(
            polyhedra=[lower, left, right], pieces=[[0, 0, 0], [1, 0, 0], [-1, 0, 4]]
        )


def test_too_many_pieces_and_crossings_are_refused(monkeypatch):
    knots = [[[k], [k + 1]] for k in range(25)]
    with pytest.raises(InvalidValue, match="at most 24 pieces"):
        tf.recipe("cpwl-polyhedra").build(polyhedra=knots, pieces=[[0, 1]] * 25)
    monkeypatch.setattr(lattice_form, "MOST_CELLS", 3)
    hat = [[[-1], [0]], [[0], [1]], [[1], [4]]]
    with pytest.raises(InvalidValue, match="at most 3 simplices"):
        tf.recipe("cpwl-polyhedra").build(polyhedra=hat, pieces=[[1, 1], [-1, 1], ["1/2", "-3/2"]])


UNBOUNDED = {
    "absolute value": (
        [[[0]], [[0]]],
        [[[-1]], [[1]]],
        [[-1, 0], [1, 0]],
        lambda x: abs(x),
    ),
    "clip, bounded in the middle": (
        [[[-1]], [[-1], [1]], [[1]]],
        [[[-1]], [], [[2]]],
        [[0, -1], [1, 0], [0, 1]],
        lambda x: max(-1, min(1, x)),
    ),
    "maximum of three, on cones": (
        [[[0, 0]]] * 3,
        [[[-1, 0], [0, -1]], [[1, 1], [0, -1]], [[1, 1], [-1, 0]]],
        [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
        lambda x, y: max(x, y, 0),
    ),
    "half-planes, whose rays make a line": (
        [[[1, 0]], [[1, 0]]],
        [[[0, 1], [0, -1], [1, 0]], [[0, 1], [0, -1], [-1, 0]]],
        [[2, 1, 0], [0, 1, 2]],
        lambda x, y: y + 2 * max(x, 1),
    ),
    "strips": (
        [[[-1, 0], [1, 0]], [[1, 0]], [[-1, 0]]],
        [[[0, 1], [0, -1]], [[0, 1], [0, -1], [1, 0]], [[0, 1], [0, -1], [-1, 0]]],
        [[0, 3, 1], [1, 3, 0], [-1, 3, 0]],
        lambda x, y: max(abs(x), 1) + 3 * y,
    ),
    "difference of magnitudes, on quadrants": (
        [[[0, 0]]] * 4,
        [[[a, 0], [0, b]] for a in (1, -1) for b in (1, -1)],
        [[a, -b, 0] for a in (1, -1) for b in (1, -1)],
        lambda x, y: abs(x) - abs(y),
    ),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_polyhedra_that_reach_to_infinity(name):
    polyhedra, rays, pieces, function = UNBOUNDED[name]
    model = tf.recipe("cpwl-polyhedra").build(polyhedra=polyhedra, rays=rays, pieces=pieces)
    source = random.Random(name)
    for size in (1, 100, 10**9):
        for _ in range(40):
            x = [Fraction(source.randint(-9 * size, 9 * size), 4) for _ in polyhedra[0][0]]
            assert model(np.array(x), "exact").weights().tolist() == [function(*x)]


HALF = [[[0]], [[0]]]
CROSS = [[[1, 0], [0, 1]], [[1, 0], [0, -1]]]
REFUSED_RAYS = [
    ([[[-1]], [[1]]], [[1, 0], [1, 1]], HALF, InvalidValue, "agree where their polyhedra"),
    (CROSS, [[0, 0, 0], [1, 0, 0]], [[[0, 0]]] * 2, InvalidValue, "along"),
    ([[[1, 0]], [[0, 1]]], [[0, 0, 0], [1, 0, 0]], [[[0, 0]]] * 2, InvalidValue, "an inside"),
    ([[[1]]], [[1, 0], [1, 0]], HALF, ShapeMismatch, "1 lists of rays for 2 polyhedra"),
    ([[[1, 0]], []], [[1, 0], [1, 0]], HALF, ShapeMismatch, "a ray must have a coordinate"),
    (3, [[1, 0], [1, 0]], HALF, InvalidValue, "list of lists of rays"),
]


@pytest.mark.parametrize(("rays", "pieces", "polyhedra", "refusal", "words"), REFUSED_RAYS)
def test_rays_on_which_there_is_no_continuous_function_are_refused(
    rays, pieces, polyhedra, refusal, words
):
    with pytest.raises(refusal, match=words):
        tf.recipe("cpwl-polyhedra").build(polyhedra=polyhedra, rays=rays, pieces=pieces)


def test_three_quadrants_have_no_form_where_the_way_around_is_missing():
    """y, 0 and −x agree on the borders, but no maximum of minima of them is all three."""
    quadrants = [[[0, 1], [-1, 0]], [[-1, 0], [0, -1]], [[0, -1], [1, 0]]]
    with pytest.raises(InvalidValue, match="all polyhedra together must be convex"):
        tf.recipe("cpwl-polyhedra").build(
            polyhedra=[[[0, 0]]] * 3,
            rays=quadrants,
            pieces=[[0, 1, 0], [0, 0, 0], [-1, 0, 0]],
        )
