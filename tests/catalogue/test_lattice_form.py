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
