"""Maximum of minima for a function that is affine on each of its polyhedra (Definition 4.1).

A polyhedron holds the points v + r, v in the convex hull of its vertices and r a sum of multiples
≥ 0 of its rays, if it has any. A piece [a₁, …, a_d, b] is the function a·x + b on it. Every such
function that is continuous on a convex union of polyhedra is maxₛ min_{j ∈ S} ℓⱼ for some sets S of
its pieces (Tarela and Martínez 1999, Ovchinnikov 2002). All numbers are rationals.

Vertices and rays have one form, a generator: [x 1] for a vertex x, [r 0] for a ray r. The points x
of a polyhedron are those for which [x 1] is a sum of multiples ≥ 0 of generators, and a piece is
the linear function [a b] · [x 1].
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


def _product(piece: Vector, generator: Vector) -> Fraction:
    """Return a·x + b at a vertex; at a ray a·r, the slope of the piece along it."""
    return sum((a * v for a, v in zip(piece, generator, strict=True)), Fraction(0))


def generators(vertices: Sequence[Vector], rays: Sequence[Vector] = ()) -> tuple[Vector, ...]:
    """Return [x 1] for each vertex and [r 0] for each ray.

    Example:
        >>> generators(((Fraction(2),),), ((Fraction(-1),),))
        ((Fraction(2, 1), Fraction(1, 1)), (Fraction(-1, 1), Fraction(0, 1)))

    """
    ends = [(vertices, Fraction(1)), (rays, Fraction(0))]
    return tuple((*each, end) for given, end in ends for each in given)


@functools.lru_cache(maxsize=64)
def lattice_form(
    polyhedra: Polyhedra, pieces: tuple[Vector, ...], rays: Polyhedra = ()
) -> tuple[tuple[int, ...], ...]:
    """Return the sets S of indices with f = maxₛ min_{j ∈ S} of piece j on every polyhedron.

    Args:
        polyhedra: the vertices of each, at least one.
        pieces: the piece of each.
        rays: the rays of each; nothing at all where every polyhedron is bounded.

    Raises:
        ShapeMismatch: for vertices, rays and pieces of different dimensions.
        InvalidValue: for a polyhedron that is flat, a function that is not continuous, or a union
            of polyhedra that is not convex and has no such form.

    Example:
        >>> absolute = ((-1, 0), (1, 0))
        >>> lattice_form((((-1,), (0,)), ((0,), (1,))), absolute)
        ((0,), (1,))
        >>> lattice_form((((0,),), ((0,),)), absolute, (((-1,),), ((1,),)))
        ((0,), (1,))

    """
    _require_shapes(polyhedra, pieces, rays)
    directions = rays or ((),) * len(polyhedra)
    spans = [generators(*each) for each in zip(polyhedra, directions, strict=True)]
    _require_spans(spans, len(pieces[0]))
    # For points x and y of a convex union, f runs over the segment from x to y through finitely
    # many pieces, and so one of them, ℓⱼ, has ℓⱼ(x) ≥ f(x) and ℓⱼ(y) ≤ f(y). With
    # S(x) = {j : ℓⱼ(x) ≥ f(x)} it follows that min over S(x) is at most f(y) at every y, and f(x)
    # at x: f = max over x. Within a cell, where no two pieces cross, S(x) is the same inside, and
    # no larger than on the border: one point of each cell is enough. A set that contains another
    # has a smaller minimum, and is left out.
    cells: list[tuple[int, tuple[Vector, ...]]] = []
    for index, span in enumerate(spans):
        cells += [(index, cell) for cell in _cells(span, pieces, MOST_CELLS - len(cells))]
    found = set()
    for index, cell in cells:
        # A cell has generators that span all dimensions, and so a vertex among them: their sum is
        # a multiple > 0 of [x 1] for a point x inside.
        centre = tuple(sum(column, Fraction(0)) for column in zip(*cell, strict=True))
        values = [_product(piece, centre) for piece in pieces]
        found.add(frozenset(j for j, value in enumerate(values) if value >= values[index]))
    least = [each for each in found if not any(other < each for other in found)]
    sets = tuple(sorted(tuple(sorted(each)) for each in least))
    # In a cell the pieces have one order, at its generators too, so that the form is one of the
    # pieces. It is f there if the products are those of f at the generators, which are a basis. A
    # maximum of minima is continuous: a function that is not differs from it somewhere.
    for index, cell in cells:
        for generator in cell:
            _require_equal(sets, pieces, index, generator)
    return sets


def _require_equal(
    sets: Sequence[Sequence[int]], pieces: Sequence[Vector], index: int, generator: Vector
) -> None:
    got = max(min(_product(pieces[j], generator) for j in each) for each in sets)
    wanted = _product(pieces[index], generator)
    if got != wanted:
        numbers, verb = ", ".join(map(str, generator[:-1])), "is"
        place = f"at ({numbers})"
        if not generator[-1]:
            verb, place = "grows by", f"along ({numbers})"
        raise InvalidValue(
            "pieces must agree where their polyhedra meet, and all polyhedra together must be "
            "convex",
            received=f"piece {index + 1} {verb} {wanted} {place}, where a "
            f"maximum of minima of the pieces {verb} {got}",
            where=_WHERE,
            remedy="correct the piece or the vertices, or give the polyhedra that are missing",
        )


def _require_shapes(polyhedra: Polyhedra, pieces: Sequence[Vector], rays: Polyhedra) -> None:
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
    if rays and (
        len(rays) != len(polyhedra) or any(len(r) != width for each in rays for r in each)
    ):
        raise ShapeMismatch(
            "there must be a list of rays for each polyhedron, and a ray must have a coordinate "
            "for each coordinate of a vertex",
            received=f"{len(rays)} lists of rays for {len(polyhedra)} polyhedra in {width} "
            "dimensions",
            where=_WHERE,
            remedy="give an empty list for a polyhedron without rays",
        )
    if len(pieces) > MOST_PIECES:
        raise InvalidValue(
            f"a function must have at most {MOST_PIECES} pieces",
            received=f"{len(pieces)}",
            where=_WHERE,
            remedy="give a function of one variable by its knots (cpwl), and others as a "
            "difference of maxima (max-affine)",
        )


def _require_spans(spans: Sequence[tuple[Vector, ...]], size: int) -> None:
    """Refuse generators of a polyhedron that are too many, or that leave it flat."""
    for number, span in enumerate(spans, start=1):
        if math.comb(len(span), size) > MOST_CELLS:
            raise InvalidValue(
                f"vertices and rays of a polyhedron must make at most {MOST_CELLS:,} simplices",
                received=f"{len(span)} of them in {size - 1} dimensions",
                where=_WHERE,
                remedy="cut it into polyhedra with fewer of them, and give each the same piece",
            )
        if not _simplices(span):
            raise InvalidValue(
                f"a polyhedron must have an inside: {size} vertices and rays that span all "
                "dimensions",
                received=f"polyhedron {number}, whose vertices and rays span fewer dimensions",
                where=_WHERE,
                remedy="add a vertex or a ray, or leave the polyhedron out",
            )


def _cells(
    span: tuple[Vector, ...], pieces: Sequence[Vector], most: int
) -> list[tuple[Vector, ...]]:
    """Return simplices that cover a polyhedron, within each of which no two pieces cross."""
    cells = [corners for corners, _ in _simplices(span)]
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
    sides = [_product(plane, x) for x in simplex]
    above, below = sides.index(max(sides)), sides.index(min(sides))
    if sides[above] <= 0 or sides[below] >= 0:
        return [simplex]
    # The edge from one side to the other is cut where it meets the plane. Each part keeps one of
    # its ends, and so has a corner less on the other side: the recursion ends.
    pairs = zip(simplex[above], simplex[below], strict=True)
    # With s(p) > 0 > s(q) for the plane's s, the sum s(p) q − s(q) p has s = 0 and factors above 0:
    # it lies on the edge once it is scaled.
    sums = [sides[above] * q - sides[below] * p for p, q in pairs]
    scale = sums[-1] or max(map(abs, sums))  # a vertex ends in 1, a ray in 0
    crossing = tuple(each / scale for each in sums)
    parts = []
    for replaced in (above, below):
        part = tuple(crossing if k == replaced else x for k, x in enumerate(simplex))
        parts += _cut(part, plane)
    return parts


def holds(span: tuple[Vector, ...], x: Vector) -> bool:
    """True if a point lies in the polyhedron with these generators.

    Example:
        >>> triangle = generators(((0, 0), (2, 0), (0, 2)))
        >>> holds(triangle, (1, 1)), holds(triangle, (2, 1))
        (True, False)
        >>> holds(generators(((0, 0),), ((1, 0), (0, 1))), (9, 9))
        True

    """
    # Carathéodory: a sum of multiples ≥ 0 of generators is one of d + 1 of them that are a basis.
    return any(
        all(affine(coordinate, x) >= 0 for coordinate in coordinates)
        for _, coordinates in _simplices(span)
    )


@functools.lru_cache(maxsize=256)
def _simplices(
    span: tuple[Vector, ...],
) -> tuple[tuple[tuple[Vector, ...], tuple[Vector, ...]], ...]:
    """Return the bases among generators, each with the coordinates in it as functions of x."""
    size = len(span[0])
    found = []
    for corners in itertools.combinations(span, size):
        inverse = _inverse([list(corner) for corner in corners])
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
