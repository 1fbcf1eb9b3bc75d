"""Heads whose scores are sums of products of keys and queries, with the error bounds of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from transformist.circuit import score_errors, sum_errors
from transformist.circuit.atom_errors import magnitude
from transformist.circuit.circuit import Circuit
from transformist.circuit.forms import Form
from transformist.circuit.heads.scored_head import ScoredHead, lengthened
from transformist.circuit.margins import Margins
from transformist.circuit.readings import ScoreReading
from transformist.laws import Ranges


class ProductHead(ScoredHead):
    """A head with the scores s Σ keyⱼ · queryᵢ, and perhaps a number that a key adds.

    Attributes:
        keys, queries: as many of each.
        scale: s.

    """

    keys: tuple[Form, ...]
    queries: tuple[Form, ...]
    scale: Fraction

    def _beside(self, _margins: Margins) -> float:
        """Largest magnitude of what is added to the products."""
        return 0.0

    def _score_errors(self, margins: Margins) -> tuple[float, float, float]:
        """Bounds of scores, of their errors, and of the errors of quotients of exact scores."""
        if margins.readings is not None:
            found = [self._score_errors_as_read(margins, s) for s in margins.readings.scores[self]]
            return (*map(max, zip(*found, strict=True)),)
        rows = [
            [margins.circuit.rows(form) for form in forms] for forms in (self.keys, self.queries)
        ]
        keys, queries = (_by_kind(each, [0.0] * len(each)) for each in rows)
        scale = magnitude(self.scale)
        largest = scale * _largest_dot(keys, queries)
        largest += self._beside(margins)
        inexact = self._product_error(margins, keys, queries) * scale
        whole = all(margins.is_exact(form) for form in self.forms)
        parts = math.prod(_bottom(margins.circuit, forms) for forms in (self.keys, self.queries))
        bits = lengthened(margins.sharpness[self])
        held = largest * parts * bits <= 2**margins.a.precision
        if not (whole and held):
            # Up to p products of keys, one with the place and one with the centre: each rounds once
            # (w), and p + 1 additions follow (w each). The score is stored (u), its root and its
            # quotient round (2u). That is (p + 2) w + 3u, and what is left of p + 4 covers the
            # products of errors.
            inexact += (len(self.keys) + 4) * (margins.w + margins.u) * largest
        return largest, inexact, 0.0

    def _product_error(self, margins: Margins, keys: list[Vector], queries: list[Vector]) -> float:
        """Error of Σ key · query, from the errors and the largest magnitudes of both."""
        key_errors = [margins.error(form) for form in self.keys]
        query_errors = [margins.error(form) for form in self.queries]
        if math.inf in (*key_errors, *query_errors):
            return math.inf
        of_queries = max(_dot(key, query_errors) for key in keys)
        of_keys = max(_dot(query, key_errors) for query in queries)
        # (q + a)(k + b) − q k = q b + k a + a b, coordinate by coordinate. Errors count with the
        # magnitudes at one kind of row at a time: of one-hot keys a row has one, so the errors of
        # the others are multiplied with 0.
        both = sum(x * y for x, y in zip(key_errors, query_errors, strict=True))
        return of_queries + of_keys + both

    def _score_errors_as_read(
        self, margins: Margins, scoring: ScoreReading
    ) -> tuple[float, float, float]:
        """The same bounds for queries and keys as the weights compute them."""
        if not scoring.pairs:
            return 0.0, 0.0, 0.0
        if not score_errors.are_finite(margins, scoring):
            return math.inf, math.inf, 0.0
        columns = [list(each) for each in zip(*scoring.pairs, strict=True)]
        off_q, off_k = ([margins.sum_error(each) for each in column] for column in columns)
        rows = [[margins.circuit.rows(each.form) for each in column] for column in columns]
        queries, keys = _by_kind(rows[0], off_q), _by_kind(rows[1], off_k)
        largest = _largest_dot(queries, keys)
        lost, off, divided = score_errors.underflow(margins, scoring), 0.0, 0.0
        if not score_errors.is_exact(margins, scoring):
            off = max(_dot(k, off_q) for k in keys) + max(_dot(q, off_k) for q in queries)
            off += sum(x * y for x, y in zip(off_q, off_k, strict=True)) + lost
            off += score_errors.rounding(margins, len(scoring.pairs), largest, largest)
        if not score_errors.has_plain_root(scoring):
            divided = score_errors.OF_QUOTIENT * margins.u * largest + lost
        one = score_errors.one_score(margins, self, scoring) / sum_errors.SLACK
        return largest / one, off / one, divided / one


def _bottom(circuit: Circuit, forms: tuple[Form, ...]) -> int:
    """The common denominator of numbers that have one, as halves have."""
    return math.lcm(*(grid.c for form in forms if (grid := circuit.grid(form)) is not None))


Vector: TypeAlias = "Mapping[int, float]"
"""Coordinates of a vector that are not 0, in order."""


def _by_kind(rows: Sequence[Ranges], errors: Sequence[float]) -> list[Vector]:
    """The largest magnitudes, errors added, at each kind of row, as vectors; equal vectors once."""
    numbers = list(enumerate(zip(rows, errors, strict=True)))
    common = {j: x for j, (row, error) in numbers if (x := magnitude(row.common.size) + error)}
    others: dict[int, dict[int, float]] = {}
    for j, (row, error) in numbers:
        for kind, each in row.others.items():
            others.setdefault(kind, {})[j] = magnitude(each.size) + error
    found: dict[tuple[tuple[int, float], ...], Vector] = {}
    if not rows or len(others) < len(rows[0]):
        found[tuple(common.items())] = common
    for own in others.values():
        both = {j: size for j, size in sorted({**common, **own}.items()) if size}
        found.setdefault(tuple(both.items()), both)
    return list(found.values())


FEW = 8
"""At most this many vectors have a coordinate that counts as one-hot."""


def _largest_dot(x: Sequence[Vector], y: Sequence[Vector]) -> float:
    """The largest dot product of a vector of x and one of y; their coordinates are at least 0."""
    having: dict[int, list[Vector]] = {}
    for vector in y:
        for j in vector:
            having.setdefault(j, []).append(vector)
    # Most coordinates are one-hot: only a few vectors of y have them (`few`). Without these
    # coordinates most vectors of y have the same rest, so each different rest is taken once. If a
    # vector of y shares no coordinate of `few` with x, its dot product is exactly that of its rest.
    # Else its dot product is at least that of its rest, also in floating point: adding a number
    # that is not negative makes no sum less. So the largest product is the same, to the bit.
    few = {j for j, those in having.items() if len(those) <= FEW}
    rests = {tuple((j, size) for j, size in vector.items() if j not in few) for vector in y}
    largest, kept = 0.0, [dict(each) for each in rests if each]
    for vector in x:
        sharing = {id(each): each for j in vector if j in few for each in having[j]}
        products = (_dot(vector, each) for each in (*sharing.values(), *kept))
        largest = max(largest, max(products, default=0.0))
    return largest


def _dot(x: Vector, y: Vector | Sequence[float]) -> float:
    if isinstance(y, Mapping):
        shorter, longer = (x, y) if len(x) <= len(y) else (y, x)
        return sum(size * longer[j] for j, size in shorter.items() if j in longer)
    return sum(size * y[j] for j, size in x.items() if y[j])
