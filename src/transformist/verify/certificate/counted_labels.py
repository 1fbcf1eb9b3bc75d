"""Labels of a count: label k has the value 2 k y − k² w, where w = 1/D.

y D is always a multiple of 1/c, as the labels are: c = 1 for whole counts.

A count up to N has N + 1 labels. Forms are linear in the rows of weights. So where the rows are
2 k P − k² Q for two vectors P and Q, the forms are 2 k y − k² w, with y and w the forms of P and Q,
and no form of a single label is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.circuit import Circuit, Form, total
from transformist.model import MultiClass, ReadOut, rationals
from transformist.verify.certificate.uniqueness import span
from transformist.verify.proof.sparse_rows import exactly, sparse_row


class CountForms(NamedTuple):
    """Forms that the labels of a count are read from.

    Attributes:
        y: the count times w.
        w: 1/D.

    """

    y: Form
    w: Form


def as_count(circuit: Circuit, read_out: MultiClass, forms: Sequence[Form]) -> CountForms | None:
    """Return y and w if the labels are those of a count, given the form of every row."""
    labels = _Labels.of(read_out.labels)
    if labels is None:
        return None
    y, w = labels.solved([forms[place] for place in labels.places])
    known = (
        (Fraction(top, labels.bottom), form) for top, form in zip(labels.tops, forms, strict=True)
    )
    agree = all(form == y * (2 * k) - w * k**2 for k, form in known)
    return CountForms(y, w) if agree and labels.are_of(circuit, y, w) else None


def count_of_rows(circuit: Circuit, read_out: ReadOut, state: Sequence[Form]) -> CountForms | None:
    """Return y and w if the rows show, without a form for each, that the labels are of a count.

    It is `None`, too, where BOS alone is answered: that margin needs the form of every row.
    """
    labels = _Labels.of(read_out.labels) if isinstance(read_out, MultiClass) else None
    if answers_the_empty_input(read_out, circuit) or labels is None:
        return None
    W, b = read_out.W_out, read_out.b_out
    y, w = labels.solved(
        total(state[slot] * exactly(x) for slot, x in sparse_row(W[place])) + exactly(b[place])
        for place in labels.places
    )
    return CountForms(y, w) if labels.are_of(circuit, y, w) and labels.are_of_rows(W, b) else None


def answers_the_empty_input(read_out: ReadOut, circuit: Circuit) -> bool:
    """True if an answer is read where BOS stands alone."""
    return circuit.bos and read_out.at != "every"


class _Labels(NamedTuple):
    """Numbers as labels.

    Attributes:
        tops: whole numbers.
        bottom: their common denominator.
        places: of the first two labels that are not 0.

    """

    tops: list[int]
    bottom: int
    places: list[int]

    @classmethod
    def of(cls, labels: Sequence[Any]) -> _Labels | None:
        """Return the labels if all are numbers, no two are equal, and at least two are not 0."""
        if not all(isinstance(k, int | Fraction) and type(k) is not bool for k in labels):
            return None
        bottom = math.lcm(*{k.denominator for k in labels})
        tops = [k.numerator * (bottom // k.denominator) for k in labels]
        places = np.flatnonzero([top != 0 for top in tops])[:2].tolist()
        are_apart = len(set(tops)) == len(tops)
        return cls(tops, bottom, places) if are_apart and len(places) == 2 else None

    def solved(self, values: Iterable[Any]) -> tuple[Any, Any]:
        """Return y and w from the values of the labels at `places`: forms, or rows of weights."""
        # f_k = 2 k y − k² w gives f_k/k − f_m/m = (m − k) w, and then y = (f_k + k² w)/(2 k).
        k, m = (Fraction(self.tops[place], self.bottom) for place in self.places)
        first, second = values
        w = (first * (1 / k) - second * (1 / m)) * (1 / (m - k))
        return (first + w * k**2) * (1 / (2 * k)), w

    def are_of(self, circuit: Circuit, y: Form, w: Form) -> bool:
        """True if w is 1/D, and y D is on the grid of the labels and never beyond the last.

        It may be below the first label, where y is always positive. Then the first label is the
        best, and leads by more than from y D at it.
        """
        counts, grid = circuit.one_over(w), circuit.grid(y)
        if counts is None or grid is None or grid.counts != counts or self.bottom % grid.c:
            return False
        step = self.bottom // grid.c
        first, last = self.tops[0], self.tops[-1]
        if self.tops != [*range(first, first + step * len(self.tops), step)]:
            return False
        # y times the largest D bounds y D from above where y > 0, and from below where y < 0.
        within = span(circuit, y).times(Fraction(circuit.most_seen or 1))
        low, high = Fraction(first - step, self.bottom), Fraction(last + step, self.bottom)
        return low < within.lo and within.hi < high

    def are_of_rows(self, W: NDArray[Any], b: NDArray[Any]) -> bool:
        """True if the row of each label k, its bias included, is 2 k P − k² Q exactly."""
        rows = np.column_stack([W, b])
        P, Q = self.solved(rationals(rows[self.places]))
        used = np.flatnonzero(np.any(rows != 0, axis=0))
        return all(self._are_in_column(rows[:, k], P[k], Q[k]) for k in used.tolist())

    def _are_in_column(self, column: NDArray[Any], p: Fraction, q: Fraction) -> bool:
        """True if the entry of each label k is 2 k p − k² q."""
        # With k = t/L, a common denominator c of p and q, and the entry top/bottom, both sides
        # times c L² · bottom are whole.
        c, L = math.lcm(p.denominator, q.denominator), self.bottom
        linear, square = int(2 * L * c * p), int(c * q)
        ratios = (x.as_integer_ratio() for x in column.tolist())
        return all(
            top * c * L * L == (linear * t - square * t * t) * bottom
            for t, (top, bottom) in zip(self.tops, ratios, strict=True)
        )
