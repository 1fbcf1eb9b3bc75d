"""Maximum of minima for a function that is affine on each of its polyhedra (Definition 4.1).

A polyhedron is the convex hull of its vertices; a piece [a₁, …, a_d, b] is the function a·x + b on
it. Every such function that is continuous on a convex union of polyhedra is maxₛ min_{j ∈ S} ℓⱼ for
some sets S of its pieces (Tarela and Martínez 1999, Ovchinnikov 2002). All numbers are rationals.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.errors import InvalidValue, ShapeMismatch

Vector: TypeAlias = tuple[Fraction, ...]
Polyhedra: TypeAlias = tuple[tuple[Vector, ...], ...]

_WHERE = "cpwl-polyhedra"

MOST_PIECES = 24
"""Most pieces of a function: each polyhedron is cut along the crossings of all pairs of them."""

MOST_CELLS = 2_000
"""Most simplices that polyhedra are cut into: their number grows fast with that of pieces."""


def affine(piece: Vector, x: Vector) -> Fraction:
    """Return a·x + b for the piece [a₁, …, a_d, b].

    Example:
        >>> affine((Fraction(2), Fraction(1)), (Fraction(3),))
        Fraction(7, 1)

    """
    return sum((a * v for a, v in zip(piece, x, strict=False)), piece[-1])


@functools.lru_cache(maxsize=64)
def lattice_form(polyhedra: Polyhedra, pieces: tuple[Vector, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the sets S of indices with f = maxₛ min_{j ∈ S} of piece j on every polyhedron.

    Raises:
        ShapeMismatch: for vertices and pieces of different dimensions.
        InvalidValue: for a polyhedron that is flat, a function that is not continuous, or a union
            of polyhedra that is not convex and has no such form.

    Example:
        >>> absolute = ((-1, 0), (1, 0))
        >>> lattice_form((((-1,), (0,)), ((0,), (1,))), absolute)
        ((0,), (1,))

    """
    _require_shapes(polyhedra, pieces)
    # For points x and y of a convex union, f runs over the segment from x to y through finitely
    # many pieces, and so one of them, ℓⱼ, has ℓⱼ(x) ≥ f(x) and ℓⱼ(y) ≤ f(y). With
    # S(x) = {j : ℓⱼ(x) ≥ f(x)} it follows that min over S(x) is at most f(y) at every y, and f(x)
    # at x: f = max over x. Within a cell, where no two pieces cross, S(x) is the same inside, and
    # no larger than on the border: one point of each cell is enough. A set that contains another
    # has a smaller minimum, and is left out.
    cells: list[tuple[int, tuple[Vector, ...]]] = []
    for index, vertices in enumerate(polyhedra):
        cells += [(index, cell) for cell in _cells(vertices, pieces, MOST_CELLS - len(cells))]
    found = set()
    for index, cell in cells:
        centre = tuple(sum(column) / len(cell) for column in zip(*cell, strict=True))
        values = [affine(piece, centre) for piece in pieces]
        found.add(frozenset(j for j, value in enumerate(values) if value >= values[index]))
    least = [each for each in found if not any(other < each for other in found)]
    sets = tuple(sorted(tuple(sorted(each)) for each in least))
    # In a cell the form is one of the pieces, and so f there if it is f at the corners. A maximum
    # of minima is continuous: a function that is not differs from it somewhere.
    for index, cell in cells:
        for x in cell:
            _require_equal(sets, pieces, index, x)
    return sets


def _require_equal(
    sets: Sequence[Sequence[int]], pieces: Sequence[Vector], index: int, x: Vector
) -> None:
    got = max(min(affine(pieces[j], x) for j in each) for each in sets)
    wanted = affine(pieces[index], x)
    if got != wanted:
        raise InvalidValue(
            "pieces must agree where their polyhedra meet, and all polyhedra together must be "
            "convex",
            received=f"piece {index + 1} is {wanted} at ({', '.join(map(str, x))}), where a "
            f"maximum of minima of the pieces is {got}",
            where=_WHERE,
            remedy="correct the piece or the vertices, or give the polyhedra that are missing",
        )


def _require_shapes(polyhedra: Polyhedra, pieces: Sequence[Vector]) -> None:
    width = len(pieces[0]) - 1
    if (
        len(polyhedra) != len(pieces)
        or width < 1
        or any(len(x) != width for vertices in polyhedra for x in vertices)
    ):
        raise ShapeMismatch(
            "there must be a polyhedron for each piece, and a piece must have a coefficient for "
            "each coordinate of a vertex and one constant",
            received=f"{len(polyhedra)} polyhedra and {len(pieces)} pieces of {width + 1} numbers",
            where=_WHERE,
            remedy="give vertices [x₁, …, x_d] and pieces [a₁, …, a_d, b]",
        )
    if len(pieces) > MOST_PIECES:
        raise InvalidValue(
            f"a function must have at most {MOST_PIECES} pieces",
            received=f"{len(pieces)}",
            where=_WHERE,
            remedy="give a function of one variable by its knots (cpwl), and others as a "
            "difference of maxima (max-affine)",
        )
    for number, vertices in enumerate(polyhedra, start=1):
        if math.comb(len(vertices), width + 1) > MOST_CELLS:
            raise InvalidValue(
                f"vertices of a polyhedron must make at most {MOST_CELLS:,} simplices",
                received=f"{len(vertices)} vertices in {width} dimensions",
                where=_WHERE,
                remedy="cut it into polyhedra with fewer vertices, and give each the same piece",
            )
        if not _simplices(vertices):
            raise InvalidValue(
                f"a polyhedron must have an inside: {width + 1} vertices that span all dimensions",
                received=f"polyhedron {number}, whose vertices span fewer dimensions",
                where=_WHERE,
                remedy="add a vertex, or leave the polyhedron out",
            )


def _cells(
    vertices: tuple[Vector, ...], pieces: Sequence[Vector], most: int
) -> list[tuple[Vector, ...]]:
    """Return simplices that cover a polyhedron, within each of which no two pieces cross."""
    cells = [corners for corners, _ in _simplices(vertices)]
    for one, other in itertools.combinations(pieces, 2):
        plane = tuple(a - b for a, b in zip(one, other, strict=True))
        cells = [part for cell in cells for part in _cut(cell, plane)]
        if len(cells) > most:
            raise InvalidValue(
                f"pieces must cut the polyhedra into at most {MOST_CELLS:,} simplices",
                received=f"{len(pieces)} pieces, which cut them into more",
                where=_WHERE,
                remedy="give fewer pieces, or the function as a difference of maxima (max-affine)",
            )
    return cells


def _cut(simplex: tuple[Vector, ...], plane: Vector) -> list[tuple[Vector, ...]]:
    """Return simplices, each on one side of a plane, that make up a simplex."""
    sides = [affine(plane, x) for x in simplex]
    above, below = sides.index(max(sides)), sides.index(min(sides))
    if sides[above] <= 0 or sides[below] >= 0:
        return [simplex]
    # The edge from one side to the other is cut where it meets the plane. Each part keeps one of
    # its ends, and so has a corner less on the other side: the recursion ends.
    share = sides[above] / (sides[above] - sides[below])
    pairs = zip(simplex[above], simplex[below], strict=True)
    crossing = tuple(p + share * (q - p) for p, q in pairs)
    parts = []
    for replaced in (above, below):
        part = tuple(crossing if k == replaced else x for k, x in enumerate(simplex))
        parts += _cut(part, plane)
    return parts


def holds(vertices: tuple[Vector, ...], x: Vector) -> bool:
    """True if a point lies in the hull of the vertices.

    Example:
        >>> triangle = ((0, 0), (2, 0), (0, 2))
        >>> holds(triangle, (1, 1)), holds(triangle, (2, 1))
        (True, False)

    """
    # Carathéodory: a point of the hull lies in the hull of d + 1 vertices that span all dimensions.
    return any(
        all(affine(coordinate, x) >= 0 for coordinate in coordinates)
        for _, coordinates in _simplices(vertices)
    )


@functools.lru_cache(maxsize=256)
def _simplices(
    vertices: tuple[Vector, ...],
) -> tuple[tuple[tuple[Vector, ...], tuple[Vector, ...]], ...]:
    """Return the simplices of vertices, each with its barycentric coordinates as functions of x."""
    size = len(vertices[0]) + 1
    found = []
    for corners in itertools.combinations(vertices, size):
        inverse = _inverse([[*corner, Fraction(1)] for corner in corners])
        if inverse is not None:
            # [x 1] times the inverse are the coordinates of x: column i is that of corner i.
            found.append((corners, tuple(zip(*inverse, strict=True))))
    return tuple(found)


def _inverse(rows: list[list[Any]]) -> list[list[Fraction]] | None:
    """Return the inverse of a square matrix, by elimination; None for a singular one."""
    size = len(rows)
    work = [
        [*map(Fraction, row), *(Fraction(int(i == k)) for k in range(size))]
        for i, row in enumerate(rows)
    ]
    for column in range(size):
        pivot = next((row for row in range(column, size) if work[row][column]), None)
        if pivot is None:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        scale = work[column][column]
        work[column] = [value / scale for value in work[column]]
        for row in range(size):
            factor = work[row][column]
            if row != column and factor:
                work[row] = [v - factor * p for v, p in zip(work[row], work[column], strict=True)]
    return [row[size:] for row in work]
